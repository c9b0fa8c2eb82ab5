/* One pretended card: its properties, and the context of which there is one. */
#include "recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct card *card(void) {
    static const struct card *chosen;
    if (chosen) return chosen;
    const char *asked = getenv("RECORDER_CARD");
    const struct card *each = recorder_cards;
    while (asked && each->name && strcmp(each->name, asked)) each++;
    if (!each->name) {
        fprintf(stderr, "recorder: RECORDER_CARD is '%s', which is no card of devices.toml\n", asked);
        abort();
    }
    return chosen = each;
}

static size_t bytes_named(const char *variable, size_t otherwise) {
    const char *text = getenv(variable);
    char *end = NULL;
    if (!text) return otherwise;
    unsigned long long bytes = strtoull(text, &end, 10);
    if (!*text || *end) {
        fprintf(stderr, "recorder: %s is '%s', which is no number of bytes\n", variable, text);
        abort();
    }
    return (size_t)bytes;
}

size_t card_memory(void) { return bytes_named("RECORDER_MEMORY", card()->memory); }
size_t card_occupied(void) { return bytes_named("RECORDER_OCCUPIED", 0); }

/* For record.py: which card is pretended, and its compute capability as one number. */
const char *recorder_card(void) { return card()->name; }
int recorder_capability(void) { return 10 * card()->major + card()->minor; }

/* Whether other hardware may read memory that is mapped, which decides a flag of cuMemCreate and no bytes. */
static const int DIRECT_ACCESS_TO_MAPPED = 110;

static int attribute(int *value, int number, int device, const char *name) {
    if (device != 0) return failed(INVALID_DEVICE);
    *value = 0;
    if (number == DIRECT_ACCESS_TO_MAPPED) return SUCCESS;
    for (size_t i = 0; i < card()->attribute_count; i++)
        if (card()->attributes[i].number == number) {
            *value = card()->attributes[i].value;
            return SUCCESS;
        }
    char *said = malloc(80);
    snprintf(said, 80, "%s: attribute %d", name, number);
    return refuse(said);
}

int cudaDeviceGetAttribute(int *value, int number, int device) { return attribute(value, number, device, __func__); }
int cuDeviceGetAttribute(int *value, int number, int device) { return attribute(value, number, device, __func__); }

static int properties(void *into, int device) {
    if (device != 0) return failed(INVALID_DEVICE);
    size_t memory = card_memory();
    memcpy(into, card()->properties, card()->properties_size);
    memcpy((char *)into + card()->memory_offset, &memory, sizeof memory);
    return SUCCESS;
}

/* CUDA 12's headers lead to _v2; its first form has an older layout, which no wheel asks for. */
#if CUDA_MAJOR == 12
int cudaGetDeviceProperties_v2(void *into, int device) { return properties(into, device); }
#else
int cudaGetDeviceProperties(void *into, int device) { return properties(into, device); }
#endif

static int version(int *into) {
    *into = CUDA_VERSION;
    return SUCCESS;
}

int cudaDriverGetVersion(int *into) { return version(into); }
int cudaRuntimeGetVersion(int *into) { return version(into); }
int cuDriverGetVersion(int *into) { return version(into); }

static int answer(int *into, int value) {
    *into = value;
    return SUCCESS;
}

size_t cudnnGetCudartVersion(void) { return CUDA_VERSION; }

/* Whether this process may see the one device: CUDA_VISIBLE_DEVICES names it first, or is not there. */
static int visible(void) {
    const char *seen = getenv("CUDA_VISIBLE_DEVICES");
    char *end;
    return !seen || (strtol(seen, &end, 10) == 0 && end != seen && (!*end || *end == ','));
}

static int count(int *into) {
    *into = visible();
    return *into ? SUCCESS : failed(NO_DEVICE);
}

int cudaGetDeviceCount(int *into) { return count(into); }
int cuDeviceGetCount(int *into) { return count(into); }
int cuInit(void) { return visible() ? SUCCESS : NO_DEVICE; }
int cudaGetDevice(int *into) { return answer(into, 0); }
int cudaSetDevice(int device) { return device == 0 && visible() ? SUCCESS : failed(INVALID_DEVICE); }
int cuDeviceGet(int *into, int device) { return device == 0 ? answer(into, 0) : failed(INVALID_DEVICE); }
int cudaDeviceCanAccessPeer(int *into) { return answer(into, 0); }

int cudaDeviceGetPCIBusId(char *into, int size, int device) {
    snprintf(into, (size_t)size, "0000:01:00.0");
    return device == 0 ? SUCCESS : failed(INVALID_DEVICE);
}

int cuDeviceGetName(char *into, int size) {
    snprintf(into, (size_t)size, "%s", card()->title);
    return SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *into) {
    *into = card_memory();
    return SUCCESS;
}

int cuDeviceComputeCapability(int *major, int *minor) {
    *major = card()->major;
    *minor = card()->minor;
    return SUCCESS;
}

SUCCEEDS(cuLogsRegisterCallback)
SUCCEEDS(cuLogsUnregisterCallback)
SUCCEEDS(cudaSetDeviceFlags)
SUCCEEDS(cudaDeviceSetLimit)
SUCCEEDS(cudaDeviceSetCacheConfig)
SUCCEEDS(cudaProfilerStart)
SUCCEEDS(cudaProfilerStop)

/* The primary context, which is always there and current. */
CREATES(cuCtxGetCurrent)
CREATES(cuDevicePrimaryCtxRetain)
CREATES(cuCtxPopCurrent_v2)
SUCCEEDS(cuCtxSetCurrent)
SUCCEEDS(cuCtxPushCurrent_v2)
SUCCEEDS(cuDevicePrimaryCtxRelease_v2)
int cuCtxGetDevice(int *into) { return answer(into, 0); }

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    *flags = 0;
    *active = 1;
    return device == 0 ? SUCCESS : failed(INVALID_DEVICE);
}

/* NVML, by which PyTorch counts devices, names the processes in a message that memory ran out, and asks whether the card
   shares memory with other machines. */
static const int NVML_NOT_SUPPORTED = 3;
SUCCEEDS(nvmlInit)
SUCCEEDS(nvmlInit_v2)
SUCCEEDS(nvmlShutdown)
int nvmlDeviceGetCount_v2(unsigned *into) { return answer((int *)into, 1); }
int nvmlDeviceGetHandleByPciBusId_v2(const char *place, void **device) { return *device = (void *)place, SUCCESS; }
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count) { return (void)device, answer((int *)count, 0); }
int nvmlDeviceGetGpuFabricInfoV(void) { return NVML_NOT_SUPPORTED; }
