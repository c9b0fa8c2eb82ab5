/* Streams and events. Nothing runs, so everything queued is done at once; what counts is where the host waits. */
#include "recorder.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int waits(const char *name) {
    record(WAIT, name, 0, HOST_TO_HOST);
    return SUCCESS;
}

int cudaDeviceSynchronize(void) { return waits(__func__); }
int cudaStreamSynchronize(void) { return waits(__func__); }
int cudaEventSynchronize(void) { return waits(__func__); }
int cuCtxSynchronize(void) { return waits(__func__); }
int cuStreamSynchronize(void) { return waits(__func__); }
int cuEventSynchronize(void) { return waits(__func__); }

/* What is in a handle are an event's flags, otherwise 0. */
int create_handle(void **handle) {
    *handle = calloc(1, sizeof(unsigned));
    return *handle ? SUCCESS : failed(OUT_OF_MEMORY);
}

int destroy_handle(void *handle) {
    free(handle);
    return SUCCESS;
}

int cudaStreamCreate(void **stream) { return create_handle(stream); }
int cudaStreamCreateWithFlags(void **stream) { return create_handle(stream); }
int cudaStreamCreateWithPriority(void **stream) { return create_handle(stream); }
int cudaStreamDestroy(void *stream) { return destroy_handle(stream); }
int cudaEventCreate(void **event) { return create_handle(event); }
int cudaEventCreateWithFlags(void **event, unsigned flags) {
    int error = create_handle(event);
    if (!error) *(unsigned *)*event = flags;
    return error;
}
int cudaEventDestroy(void *event) { return destroy_handle(event); }
int cuStreamCreate(void **stream) { return create_handle(stream); }
int cuStreamDestroy_v2(void *stream) { return destroy_handle(stream); }
int cuEventCreate(void **event) { return create_handle(event); }
int cuEventDestroy_v2(void *event) { return destroy_handle(event); }

/* An event that other processes may wait for. Nothing runs in any of them, so it has always happened. */
static const unsigned BETWEEN_PROCESSES = 4;
static const char MARK[8] = "event";

int cudaIpcGetEventHandle(struct ipc_handle *handle, void *event) {
    int64_t process = getpid();
    if (!(*(unsigned *)event & BETWEEN_PROCESSES)) return failed(INVALID_HANDLE);
    memset(handle, 0, sizeof *handle);
    memcpy(handle->bytes, MARK, sizeof MARK);
    memcpy(handle->bytes + sizeof MARK, &process, sizeof process);
    return SUCCESS;
}

int cudaIpcOpenEventHandle(void **event, struct ipc_handle handle) {
    int64_t process;
    memcpy(&process, handle.bytes + sizeof MARK, sizeof process);
    if (memcmp(handle.bytes, MARK, sizeof MARK) || kill((pid_t)process, 0)) return refuse(__func__);
    return cudaEventCreateWithFlags(event, BETWEEN_PROCESSES);
}

SUCCEEDS(cudaStreamQuery)
SUCCEEDS(cudaEventQuery)
SUCCEEDS(cudaEventRecord)
SUCCEEDS(cudaEventRecordWithFlags)
SUCCEEDS(cudaStreamWaitEvent)
SUCCEEDS(cuStreamWaitEvent)
SUCCEEDS(cuEventRecord)
SUCCEEDS(cuEventQuery)

/* No time ever comes from here: whoever asks for one is refused, and so is the measurement. */
int cudaEventElapsedTime(void) { return refuse(__func__); }
int cudaEventElapsedTime_v2(void) { return refuse(__func__); }
int cuEventElapsedTime(void) { return refuse(__func__); }
int cuEventElapsedTime_v2(void) { return refuse(__func__); }

int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return SUCCESS;
}

int cudaStreamGetPriority(void *stream, int *priority) {
    (void)stream;
    *priority = 0;
    return SUCCESS;
}

int cudaStreamGetFlags(void *stream, unsigned *flags) {
    (void)stream;
    *flags = 1; /* does not wait for the default stream */
    return SUCCESS;
}

/* No stream is ever being captured; CUDA graphs have no body here. */
static int not_capturing(int *status) {
    *status = 0;
    return SUCCESS;
}

int cudaStreamIsCapturing(void *stream, int *status) { return (void)stream, not_capturing(status); }
int cudaStreamGetCaptureInfo(void *stream, int *status) { return (void)stream, not_capturing(status); }
int cudaStreamGetCaptureInfo_v2(void *stream, int *status) { return (void)stream, not_capturing(status); }
int cudaStreamGetCaptureInfo_v3(void *stream, int *status) { return (void)stream, not_capturing(status); }
SUCCEEDS(cudaThreadExchangeStreamCaptureMode)
