/* Kernels: by which name each is known, and that it would have been launched. */
#include "recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct dim3 {
    unsigned x, y, z;
};

/* Host addresses of kernels and their names: a table with open places, doubled where it is half full. A wheel registers
   some 30,000 while it is loaded. */
struct kernel {
    const void *address;
    const char *name;
    const void *binary; /* the images that it is one of */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels;
static size_t used, room;

static struct kernel *place(struct kernel *table, size_t size, const void *address) {
    size_t i = ((uintptr_t)address >> 4) * 0x9E3779B97F4A7C15u & (size - 1);
    while (table[i].address && table[i].address != address) i = (i + 1) & (size - 1);
    return table + i;
}

static void grow(void) {
    size_t size = room ? 2 * room : 65536;
    struct kernel *table = calloc(size, sizeof *table);
    if (!table) abort();
    for (size_t i = 0; i < room; i++)
        if (kernels[i].address) *place(table, size, kernels[i].address) = kernels[i];
    free(kernels);
    kernels = table;
    room = size;
}

static struct kernel found(const void *address) {
    pthread_mutex_lock(&lock);
    struct kernel kernel = room ? *place(kernels, room, address) : (struct kernel){0};
    pthread_mutex_unlock(&lock);
    return kernel;
}

static const char *name_of(const void *address) { return found(address).name; }

/* The handle holds the address of the images; it is never given back, as no library is ever unloaded. */
void **__cudaRegisterFatBinary(void *binary) {
    void **handle = malloc(sizeof *handle);
    if (!handle) abort();
    redirect_static_runtime();
    *handle = binary;
    return handle;
}

void __cudaRegisterFunction(void **binary, const void *address, char *device_name, const char *name) {
    (void)device_name;
    pthread_mutex_lock(&lock);
    if (2 * used >= room) grow();
    struct kernel *kernel = place(kernels, room, address);
    used += !kernel->address;
    *kernel = (struct kernel){address, name, *binary};
    pthread_mutex_unlock(&lock);
}

SUCCEEDS(__cudaRegisterFatBinaryEnd)
SUCCEEDS(__cudaUnregisterFatBinary)
SUCCEEDS(__cudaRegisterVar)
SUCCEEDS(__cudaRegisterManagedVar)
SUCCEEDS(__cudaRegisterTexture)
SUCCEEDS(__cudaRegisterSurface)
char __cudaInitModule(void) { return 1; }

/* Textures of CUDA 10 are described while a library is loaded; the structure is handed back as it was given. */
struct channel {
    int bits[4], kind;
};

struct channel cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
    return (struct channel){{x, y, z, w}, kind};
}

/* What stands between <<<...>>> and the launch: the compiler's code pushes it and the kernel's stub pops it. */
static __thread struct {
    struct dim3 grid, block;
    size_t shared;
    void *stream;
} configuration;

unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared, void *stream) {
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return SUCCESS;
}

int __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void **stream) {
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *stream = configuration.stream;
    return SUCCESS;
}

static int launch(const char *name, const char *how) {
    if (!name) return refuse(how); /* a kernel that was never registered */
    record(KERNEL, name, 0, HOST_TO_HOST);
    return SUCCESS;
}

int cudaLaunchKernel(const void *kernel) { return launch(name_of(kernel), __func__); }
int cudaLaunchCooperativeKernel(const void *kernel) { return launch(name_of(kernel), __func__); }
int cudaLaunchKernelExC(const void *how, const void *kernel) { return (void)how, launch(name_of(kernel), __func__); }

int __cudaGetKernel(const void **handle, const void *kernel) {
    *handle = kernel;
    return SUCCESS;
}

int __cudaLaunchKernel(const void *kernel) { return launch(name_of(kernel), __func__); }

int cudaGetFuncBySymbol(void **handle, const void *kernel) {
    const char *name = name_of(kernel);
    if (!name) return refuse(__func__);
    *handle = named(name);
    return SUCCESS;
}

/* Modules and functions of the driver: a handle holds a kernel's name. */
void *named(const char *name) {
    size_t length = strlen(name) + 1;
    char *handle = malloc(length);
    if (!handle) abort();
    return memcpy(handle, name, length);
}

CREATES(cuModuleLoadData)
CREATES(cuModuleLoadDataEx)
CREATES(cuModuleLoadFatBinary)
CREATES(cuModuleLoad)
CREATES(cuLibraryLoadData)
SUCCEEDS(cuModuleUnload)
SUCCEEDS(cuLibraryUnload)

static int get_function(void **function, const char *name) {
    *function = named(name);
    return SUCCESS;
}

int cuModuleGetFunction(void **function, void *module, const char *name) { return (void)module, get_function(function, name); }
int cuLibraryGetKernel(void **function, void *library, const char *name) { return (void)library, get_function(function, name); }

int cuKernelGetFunction(void **function, void *kernel) {
    *function = kernel;
    return SUCCESS;
}

int cuLaunchKernel(const char *function) { return launch(function, __func__); }
int cuLaunchCooperativeKernel(const char *function) { return launch(function, __func__); }
int cuLaunchKernelEx(const void *how, const char *function) { return (void)how, launch(function, __func__); }

/* The linker of PTX: its result is only ever handed to cuModuleLoadData. */
int cuLinkCreate_v2(unsigned count, int *options, void **values, void **state) {
    (void)count, (void)options, (void)values;
    *state = &configuration;
    return SUCCESS;
}

int cuLinkComplete(void *state, void **binary, size_t *size) {
    static char nothing[1];
    (void)state;
    *binary = nothing;
    *size = sizeof nothing;
    return SUCCESS;
}

SUCCEEDS(cuLinkAddData_v2)
SUCCEEDS(cuLinkDestroy)

/* How many blocks fit on a processor, if threads alone limit them. Registers and shared memory limit them as well, and
   the recorder does not know them, so the answer is recorded as an assumption. */
static int occupancy(int *blocks, int threads, const char *name) {
    if (threads <= 0) return failed(INVALID_VALUE);
    int fit = card()->threads / threads;
    *blocks = fit < card()->blocks ? fit : card()->blocks;
    record(ASSUMPTION, name, 0, HOST_TO_HOST);
    return SUCCESS;
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads) {
    return (void)kernel, occupancy(blocks, threads, __func__);
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel, int threads) {
    return (void)kernel, occupancy(blocks, threads, __func__);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads) {
    return (void)function, occupancy(blocks, threads, __func__);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads) {
    return (void)function, occupancy(blocks, threads, __func__);
}

/* cudaFuncAttributes as CUDA 10.2 has it; later members follow and are left alone. Sizes and registers are assumed. */
struct function_attributes {
    size_t shared, constant, local;
    int threads, registers, ptx_version, binary_version, cache_mode, dynamic_shared, carve_out;
};

static const int THREADS_PER_BLOCK = 1024, REGISTERS_ASSUMED = 32;

int cudaFuncGetAttributes(struct function_attributes *into, const void *kernel) {
    struct code code;
    if (!name_of(kernel) || !code_for_card(found(kernel).binary, &code)) return refuse(__func__);
    if (!code.ptx) return failed(INVALID_FUNCTION);
    *into = (struct function_attributes){
        .threads = THREADS_PER_BLOCK, .registers = REGISTERS_ASSUMED, .ptx_version = code.ptx,
        .binary_version = code.machine, .dynamic_shared = card()->shared};
    record(ASSUMPTION, __func__, 0, HOST_TO_HOST);
    return SUCCESS;
}

int cuFuncGetAttribute(int *into, int attribute) {
    int version = 10 * card()->major + card()->minor;
    const int values[] = {THREADS_PER_BLOCK, 0, 0, 0, REGISTERS_ASSUMED, version, version, 0, card()->shared};
    if (attribute < 0 || attribute >= (int)(sizeof values / sizeof *values)) return refuse(__func__);
    *into = values[attribute];
    record(ASSUMPTION, __func__, 0, HOST_TO_HOST);
    return SUCCESS;
}

SUCCEEDS(cudaFuncSetAttribute)
SUCCEEDS(cudaFuncSetCacheConfig)
SUCCEEDS(cuFuncSetAttribute)
SUCCEEDS(cuFuncSetCacheConfig)
