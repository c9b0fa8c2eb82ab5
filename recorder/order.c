/* Streams and events. Nothing runs, so everything queued is done at once; what counts is where the host waits. */
#include "recorder.h"

#include <stdlib.h>

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

/* A handle unlike every other. */
static int create(void **handle) {
    *handle = malloc(1);
    return *handle ? SUCCESS : failed(OUT_OF_MEMORY);
}

static int destroy(void *handle) {
    free(handle);
    return SUCCESS;
}

int cudaStreamCreate(void **stream) { return create(stream); }
int cudaStreamCreateWithFlags(void **stream) { return create(stream); }
int cudaStreamCreateWithPriority(void **stream) { return create(stream); }
int cudaStreamDestroy(void *stream) { return destroy(stream); }
int cudaEventCreate(void **event) { return create(event); }
int cudaEventCreateWithFlags(void **event) { return create(event); }
int cudaEventDestroy(void *event) { return destroy(event); }
int cuStreamCreate(void **stream) { return create(stream); }
int cuStreamDestroy_v2(void *stream) { return destroy(stream); }
int cuEventCreate(void **event) { return create(event); }
int cuEventDestroy_v2(void *event) { return destroy(event); }

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
