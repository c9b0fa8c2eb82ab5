/* Streams and events: where the host waits, and what an answer is that depends on whether the device has finished.

   Nothing runs, so how far a device would be is not known. Either it is always done with what it was given, or, where
   RECORDER_UNFINISHED is set, never before the host waits for it; on a GPU the answer lies in between. */
#include "recorder.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A place in a stream that an event marks, or where it waits for another stream's. The device has got there if it got to
   those `before` it and to the `other`. Places are never given back. */
struct place {
    struct place *before, *other;
    uint64_t when;
    int reached;
};

/* An event or a stream, or anything else of which no two may be the same. */
struct handle {
    unsigned flags;
    int priority;
    struct place *last;
    uint64_t waited; /* when the host last waited for the stream */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle default_stream;
static uint64_t now, waited_for_all; /* counts what the device was given */
static unsigned asked_in_vain;

/* How often a host may ask, giving the device nothing in between, before it is taken to wait. */
static const unsigned WAITS_BY_ASKING = 100000;

enum { LEAST = 0, GREATEST = -5 }; /* priorities of a stream */

static struct handle *stream_of(void *handle) { return (uintptr_t)handle <= 2 ? &default_stream : handle; }

static int reached(const struct place *place) { return !place || place->reached || place->when <= waited_for_all; }

static void reach(struct place *place) {
    for (; !reached(place); place = place->before) {
        place->reached = 1;
        reach(place->other);
    }
}

static struct place *mark(struct handle *stream, struct place *other) {
    struct place *place = malloc(sizeof *place);
    if (!place) abort();
    *place = (struct place){reached(stream->last) ? NULL : stream->last, other, ++now, 0};
    return stream->last = place;
}

void given_to_device(void) {
    pthread_mutex_lock(&lock);
    now++;
    asked_in_vain = 0;
    pthread_mutex_unlock(&lock);
}

static void wait_for(struct handle *handle) {
    pthread_mutex_lock(&lock);
    if (handle) reach(handle->last), handle->waited = now;
    else waited_for_all = now;
    pthread_mutex_unlock(&lock);
}

void waited_for_default_stream(void) { wait_for(&default_stream); }

static int waits(struct handle *handle, const char *name) {
    wait_for(handle);
    record(WAIT, name, 0, HOST_TO_HOST);
    return SUCCESS;
}

int cudaDeviceSynchronize(void) { return waits(NULL, __func__); }
int cudaStreamSynchronize(void *stream) { return waits(stream_of(stream), __func__); }
int cudaEventSynchronize(void *event) { return waits(event, __func__); }
int cuCtxSynchronize(void) { return waits(NULL, __func__); }
int cuStreamSynchronize(void *stream) { return waits(stream_of(stream), __func__); }
int cuEventSynchronize(void *event) { return waits(event, __func__); }

static int query(struct handle *handle, int is_stream, const char *name) {
    pthread_mutex_lock(&lock);
    int sure = reached(handle->last) && (!is_stream || now <= handle->waited || now <= waited_for_all);
    int done = sure || !getenv("RECORDER_UNFINISHED") || ++asked_in_vain > WAITS_BY_ASKING;
    if (done) reach(handle->last), handle->waited = now;
    pthread_mutex_unlock(&lock);
    if (!sure) record(QUERY, name, 0, HOST_TO_HOST);
    return done ? SUCCESS : failed(NOT_READY);
}

int cudaStreamQuery(void *stream) { return query(stream_of(stream), 1, __func__); }
int cudaEventQuery(void *event) { return query(event, 0, __func__); }
int cuStreamQuery(void *stream) { return query(stream_of(stream), 1, __func__); }
int cuEventQuery(void *event) { return query(event, 0, __func__); }

static int record_event(struct handle *event, void *stream) {
    pthread_mutex_lock(&lock);
    event->last = mark(stream_of(stream), NULL);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cudaEventRecord(void *event, void *stream) { return record_event(event, stream); }
int cudaEventRecordWithFlags(void *event, void *stream) { return record_event(event, stream); }
int cuEventRecord(void *event, void *stream) { return record_event(event, stream); }

static int wait_in_stream(void *stream, struct handle *event) {
    pthread_mutex_lock(&lock);
    if (!reached(event->last)) mark(stream_of(stream), event->last);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cudaStreamWaitEvent(void *stream, void *event) { return wait_in_stream(stream, event); }
int cuStreamWaitEvent(void *stream, void *event) { return wait_in_stream(stream, event); }

static int create(void **handle, unsigned flags, int priority) {
    struct handle *created = calloc(1, sizeof *created);
    if (!created) return failed(OUT_OF_MEMORY);
    created->flags = flags;
    created->priority = priority > LEAST ? LEAST : priority < GREATEST ? GREATEST : priority;
    *handle = created;
    return SUCCESS;
}

int create_handle(void **handle) { return create(handle, 0, 0); }

int destroy_handle(void *handle) {
    free(handle);
    return SUCCESS;
}

int cudaStreamCreate(void **stream) { return create_handle(stream); }
int cudaStreamCreateWithFlags(void **stream, unsigned flags) { return create(stream, flags, 0); }
int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority) { return create(stream, flags, priority); }
int cudaStreamDestroy(void *stream) { return destroy_handle(stream); }
int cudaEventCreate(void **event) { return create_handle(event); }
int cudaEventCreateWithFlags(void **event, unsigned flags) { return create(event, flags, 0); }
int cudaEventDestroy(void *event) { return destroy_handle(event); }
int cuStreamCreate(void **stream, unsigned flags) { return create(stream, flags, 0); }
int cuStreamDestroy_v2(void *stream) { return destroy_handle(stream); }
int cuEventCreate(void **event, unsigned flags) { return create(event, flags, 0); }
int cuEventDestroy_v2(void *event) { return destroy_handle(event); }

/* An event that other processes may wait for. Nothing runs in any of them, so it has always happened. */
static const unsigned BETWEEN_PROCESSES = 4;
static const char MARK[8] = "event";

int cudaIpcGetEventHandle(struct ipc_handle *handle, void *event) {
    int64_t process = getpid();
    if (!(((struct handle *)event)->flags & BETWEEN_PROCESSES)) return failed(INVALID_HANDLE);
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

/* No time ever comes from here: whoever asks for one is refused, and so is the measurement. */
int cudaEventElapsedTime(void) { return refuse(__func__); }
int cudaEventElapsedTime_v2(void) { return refuse(__func__); }
int cuEventElapsedTime(void) { return refuse(__func__); }
int cuEventElapsedTime_v2(void) { return refuse(__func__); }

int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = LEAST;
    if (greatest) *greatest = GREATEST;
    return SUCCESS;
}

int cudaStreamGetPriority(void *stream, int *priority) {
    *priority = stream_of(stream)->priority;
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
