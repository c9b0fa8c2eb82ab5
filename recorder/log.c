/* The log: every event since the process began, in order. It only grows; a measurement is a slice of it. */
#include "recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event *events;
static size_t count, room;
static __thread int last_error;

/* Whether anything ran, or would have, that leaves other values on the device than the host copied there. */
static int computed;

static void append(struct event event) {
    pthread_mutex_lock(&lock);
    if (count == room) {
        room = room ? 2 * room : 4096;
        events = realloc(events, room * sizeof *events);
        if (!events) abort();
    }
    events[count++] = event;
    pthread_mutex_unlock(&lock);
}

void record(enum kind kind, const char *name, uint64_t bytes, enum direction direction) {
    append((struct event){name, bytes, kind, direction});
    if (kind == COPY && direction == DEVICE_TO_HOST && computed)
        append((struct event){name, bytes, READ_BACK, direction});
    if (kind == KERNEL || kind == LIBRARY_CALL || kind == FILL || (kind == COPY && direction == DEVICE_TO_DEVICE))
        computed = 1;
    if (kind == KERNEL || kind == LIBRARY_CALL || kind == FILL || kind == COPY) given_to_device();
}

void distrust(void) { computed = 1; }

int recorder_missing(const char *name) {
    record(MISSING, name, 0, HOST_TO_HOST);
    return failed(NO_BODY);
}

int refuse(const char *name) {
    record(REFUSAL, name, 0, HOST_TO_HOST);
    return failed(NOT_SUPPORTED);
}

int failed(int error) {
    last_error = error;
    return error;
}

int cudaPeekAtLastError(void) { return last_error; }

int cudaGetLastError(void) {
    int error = last_error;
    last_error = SUCCESS;
    return error;
}

static const char *sentence(int error) {
    switch (error) {
    case SUCCESS: return "no error";
    case INVALID_VALUE: return "invalid argument";
    case OUT_OF_MEMORY: return "out of memory";
    case INVALID_FUNCTION: return "invalid device function";
    case NO_DEVICE: return "no CUDA-capable device is detected";
    case NOT_READY: return "device not ready";
    case INVALID_DEVICE: return "invalid device ordinal";
    case NOT_SUPPORTED: return "refused by the recorder: what was asked cannot be told without a GPU";
    case NO_BODY: return "an entry that the recorder does not stand in for was called";
    default: return "an error of the recorder";
    }
}

const char *cudaGetErrorString(int error) { return sentence(error); }

const char *cudaGetErrorName(int error) { return error == OUT_OF_MEMORY ? "cudaErrorMemoryAllocation" : sentence(error); }

int cuGetErrorString(int error, const char **text) {
    *text = sentence(error);
    return SUCCESS;
}

int cuGetErrorName(int error, const char **text) { return cuGetErrorString(error, text); }

/* For record.py: how many events there are, and some of them. */
size_t recorder_count(void) {
    pthread_mutex_lock(&lock);
    size_t now = count;
    pthread_mutex_unlock(&lock);
    return now;
}

size_t recorder_read(size_t first, size_t wanted, struct event *into) {
    pthread_mutex_lock(&lock);
    size_t there = first < count ? count - first : 0;
    if (wanted > there) wanted = there;
    if (wanted) memcpy(into, events + first, wanted * sizeof *into);
    pthread_mutex_unlock(&lock);
    return wanted;
}

/* Where the next event of a kind is, from `first` on; the count of all where there is none. */
size_t recorder_next(size_t first, int kind) {
    pthread_mutex_lock(&lock);
    while (first < count && events[first].kind != kind) first++;
    size_t found = first < count ? first : count;
    pthread_mutex_unlock(&lock);
    return found;
}
