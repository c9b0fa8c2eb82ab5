/* Device memory is host memory that is mapped and not committed, so that a card of 80 GB can be pretended.

   What the host copies to the device and back is really copied, so that inputs can be read again. Copies within the
   device and fills are counted and not done: large ones would commit memory that nobody may read, see READ_BACK. */
#define _GNU_SOURCE /* memfd_create */
#include "recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct block {
    char *address, *end;    /* whole pages */
    size_t bytes;           /* as asked for */
    int file;               /* what other processes map, or -1 where none may */
    struct physical *under; /* what is mapped there, or NULL where nothing else was asked for */
};

/* Trees of blocks by address, as search.h has them, since every copy asks which block an address is in. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *on_device, *on_host, *of_others; /* of_others: device memory of other processes */
static size_t taken, small, large; /* bytes as asked, and of these what a card puts together and in granules of their own */

/* What addresses are multiples of: more than the 256 bytes of the real cudaMalloc, so that no kernel is chosen otherwise. */
static const size_t PAGE = 4096;

/* In which a card gives memory out. What is smaller than half of one shares it. */
static const size_t GRANULE = 2 << 20;

static size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static size_t pages(size_t bytes) { return rounded(bytes, PAGE); }

static void take(size_t bytes, int sign) {
    taken += sign * bytes;
    if (bytes < GRANULE / 2) small += sign * rounded(bytes, 512);
    else large += sign * rounded(bytes, GRANULE);
}

static int before(const void *one, const void *other) {
    const struct block *a = one, *b = other;
    return a->end <= b->address ? -1 : b->end <= a->address ? 1 : 0;
}

static struct block *holding(void *const *tree, const void *address) {
    struct block byte = {.address = (char *)address, .end = (char *)address + 1};
    struct block **found = tfind(&byte, tree, before);
    return found ? *found : NULL;
}

static int held(void *const *tree, const void *address) {
    pthread_mutex_lock(&lock);
    int found = holding(tree, address) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

static int held_on_device(const void *address) { return held(&on_device, address) || held(&of_others, address); }

static void add(void **tree, void *address, size_t bytes) {
    struct block *block = malloc(sizeof *block);
    if (!block) abort();
    *block = (struct block){.address = address, .end = (char *)address + pages(bytes), .bytes = bytes, .file = -1};
    if (!tsearch(block, tree, before)) abort();
}

/* Takes the block that begins at `address` off the tree; -1 where none does. */
static int64_t removed(void **tree, const void *address) {
    struct block *block = holding(tree, address);
    if (!block || block->address != address) return -1;
    size_t bytes = block->bytes;
    tdelete(block, tree, before);
    if (block->file >= 0) close(block->file);
    free(block);
    return (int64_t)bytes;
}

static size_t left(size_t of_ours) {
    size_t gone = card_occupied() + of_ours, all = card_memory();
    return gone < all ? all - gone : 0;
}

static int allocate(void **address, size_t bytes, const char *name) {
    int error = SUCCESS;
    *address = NULL;
    if (!bytes) return SUCCESS;
    pthread_mutex_lock(&lock);
    if (bytes > left(taken)) {
        error = OUT_OF_MEMORY;
    } else {
        *address = mmap(NULL, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (*address == MAP_FAILED) abort();
        add(&on_device, *address, bytes);
        take(bytes, 1);
    }
    pthread_mutex_unlock(&lock);
    if (error) return failed(error);
    record(ALLOCATION, name, bytes, HOST_TO_HOST);
    return SUCCESS;
}

static int release(void *address, const char *name) {
    if (!address) return SUCCESS;
    pthread_mutex_lock(&lock);
    int64_t bytes = removed(&on_device, address);
    if (bytes >= 0) {
        munmap(address, pages((size_t)bytes));
        take((size_t)bytes, -1);
    }
    pthread_mutex_unlock(&lock);
    if (bytes < 0) return failed(INVALID_VALUE);
    record(FREE, name, (uint64_t)bytes, HOST_TO_HOST);
    return SUCCESS;
}

int cudaMalloc(void **address, size_t bytes) { return allocate(address, bytes, __func__); }
int cudaMallocAsync(void **address, size_t bytes) { return allocate(address, bytes, __func__); }
int cuMemAlloc_v2(void **address, size_t bytes) { return allocate(address, bytes, __func__); }
int cudaFree(void *address) { return release(address, __func__); }
int cudaFreeAsync(void *address) { return release(address, __func__); }
int cuMemFree_v2(void *address) { return release(address, __func__); }

/* The driver's virtual memory, of which PyTorch makes expandable segments. Bytes are taken when they are created, and given
   back when they are released and mapped nowhere. */
struct physical {
    size_t bytes;
    int users; /* the one who created it, and each place where it is mapped */
};

int cuMemCreate(struct physical **handle, size_t bytes) {
    pthread_mutex_lock(&lock);
    int room = bytes <= left(taken);
    if (room) take(bytes, 1);
    pthread_mutex_unlock(&lock);
    if (!room) return OUT_OF_MEMORY;
    if (!(*handle = malloc(sizeof **handle))) abort();
    **handle = (struct physical){bytes, 1};
    record(ALLOCATION, __func__, bytes, HOST_TO_HOST);
    return SUCCESS;
}

int cuMemRelease(struct physical *handle) {
    pthread_mutex_lock(&lock);
    int last = !--handle->users;
    if (last) take(handle->bytes, -1);
    pthread_mutex_unlock(&lock);
    if (!last) return SUCCESS;
    record(FREE, __func__, handle->bytes, HOST_TO_HOST);
    free(handle);
    return SUCCESS;
}

int cuMemAddressReserve(void **address, size_t bytes) {
    *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *address == MAP_FAILED ? OUT_OF_MEMORY : SUCCESS;
}

int cuMemAddressFree(void *address, size_t bytes) { return munmap(address, bytes) ? INVALID_VALUE : SUCCESS; }

int cuMemMap(void *address, size_t bytes, size_t offset, struct physical *handle) {
    (void)offset;
    pthread_mutex_lock(&lock);
    add(&on_device, address, bytes);
    holding(&on_device, address)->under = handle;
    handle->users++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cuMemUnmap(char *address, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        pthread_mutex_lock(&lock);
        struct block *block = holding(&on_device, address + done);
        struct physical *under = block ? block->under : NULL;
        int64_t size = under ? removed(&on_device, address + done) : -1;
        pthread_mutex_unlock(&lock);
        if (size < 0) return INVALID_VALUE;
        madvise(address + done, (size_t)size, MADV_DONTNEED);
        cuMemRelease(under);
        done += (size_t)size;
    }
    return SUCCESS;
}

int cuMemGetAllocationGranularity(size_t *into) {
    *into = GRANULE;
    return SUCCESS;
}

SUCCEEDS(cuMemSetAccess)

int cudaMemGetInfo(size_t *free, size_t *total) {
    *total = card_memory();
    *free = left(large + rounded(small, GRANULE));
    return SUCCESS;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) { return cudaMemGetInfo(free, total); }

static int allocate_pinned(void **address, size_t bytes, const char *name) {
    if (posix_memalign(address, PAGE, pages(bytes))) return failed(OUT_OF_MEMORY);
    pthread_mutex_lock(&lock);
    add(&on_host, *address, bytes);
    pthread_mutex_unlock(&lock);
    record(HOST_ALLOCATION, name, bytes, HOST_TO_HOST);
    return SUCCESS;
}

int cudaHostAlloc(void **address, size_t bytes) { return allocate_pinned(address, bytes, __func__); }
int cudaMallocHost(void **address, size_t bytes) { return allocate_pinned(address, bytes, __func__); }

int cudaFreeHost(void *address) {
    if (!address) return SUCCESS;
    pthread_mutex_lock(&lock);
    int64_t bytes = removed(&on_host, address);
    pthread_mutex_unlock(&lock);
    if (bytes < 0) return failed(INVALID_VALUE);
    free(address);
    record(HOST_FREE, __func__, (uint64_t)bytes, HOST_TO_HOST);
    return SUCCESS;
}

int cudaHostGetDevicePointer(void **device, void *host) {
    *device = host;
    return SUCCESS;
}

/* cudaPointerAttributes. CUDA 10 has an older `memoryType` before and calls an unknown address an error. */
struct pointer_attributes {
#if CUDA_MAJOR < 11
    int memory_type;
#endif
    int type, device;
    void *on_device, *on_host;
};

int cudaPointerGetAttributes(struct pointer_attributes *into, const void *address) {
    int type = held_on_device(address) ? 2 : held(&on_host, address) ? 1 : 0;
    void *same = type ? (void *)address : NULL;
    *into = (struct pointer_attributes){.type = type, .device = type ? 0 : -1, .on_device = same};
    into->on_host = type == 1 ? same : NULL;
#if CUDA_MAJOR < 11
    into->memory_type = type;
    if (!type) return failed(INVALID_VALUE);
#endif
    return SUCCESS;
}

/* Attribute 2 is the kind of memory, 1 for the host's and 2 for the device's; the others are not answered. */
int cuPointerGetAttribute(void *into, int attribute, const void *address) {
    int device = held_on_device(address);
    if (!device && !held(&on_host, address)) return INVALID_VALUE;
    if (attribute == 2) *(unsigned *)into = device ? 2 : 1;
    else if (attribute == 3) *(const void **)into = address;
    else return refuse(__func__);
    return SUCCESS;
}

static int copy(void *to, const void *from, size_t bytes, enum direction direction, const char *name) {
    unsigned to_device = held_on_device(to), from_device = held_on_device(from);
    if (direction == BY_ADDRESS) direction = from_device ? (to_device ? DEVICE_TO_DEVICE : DEVICE_TO_HOST) : to_device;
    if (bytes && (to_device != (direction & 1) || from_device != (direction >> 1 & 1))) return failed(INVALID_VALUE);
    if (direction != DEVICE_TO_DEVICE) memcpy(to, from, bytes);
    record(COPY, name, bytes, direction);
    return SUCCESS;
}

static int fill(void *to, size_t bytes, const char *name) {
    if (bytes && !held_on_device(to)) return failed(INVALID_VALUE);
    record(FILL, name, bytes, HOST_TO_HOST);
    return SUCCESS;
}

/* For record.py: how many bytes of device memory are taken. */
size_t recorder_bytes(void) { return taken; }

static int copy_and_wait(void *to, const void *from, size_t bytes, enum direction direction, const char *name) {
    int error = copy(to, from, bytes, direction, name);
    if (error) return error;
    record(WAIT, name, 0, HOST_TO_HOST);
    waited_for_default_stream();
    return SUCCESS;
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int direction) {
    return copy_and_wait(to, from, bytes, (enum direction)direction, __func__);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int direction) {
    return copy(to, from, bytes, (enum direction)direction, __func__);
}

int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    if (to_device || from_device) return failed(INVALID_DEVICE);
    return copy(to, from, bytes, DEVICE_TO_DEVICE, __func__);
}

int cuMemcpyHtoD_v2(void *to, const void *from, size_t bytes) {
    return copy_and_wait(to, from, bytes, HOST_TO_DEVICE, __func__);
}

int cuMemcpyDtoH_v2(void *to, const void *from, size_t bytes) {
    return copy_and_wait(to, from, bytes, DEVICE_TO_HOST, __func__);
}

int cudaMemset(void *to, int value, size_t bytes) { return (void)value, fill(to, bytes, __func__); }
int cudaMemsetAsync(void *to, int value, size_t bytes) { return (void)value, fill(to, bytes, __func__); }
int cuMemsetD8Async(void *to, int value, size_t bytes) { return (void)value, fill(to, bytes, __func__); }
int cuMemsetD32Async(void *to, int value, size_t words) { return (void)value, fill(to, 4 * words, __func__); }

/* What one process tells another of its memory; the rest of CUDA's 64 bytes is 0. `inode` tells a file from a later one that
   got the same number. */
struct shared {
    char mark[8];
    int64_t process, file;
    uint64_t bytes, inode;
};

static const char MARK[8] = "memory";

/* Puts a file that other processes can map under a block, with the same bytes at the same address. */
static int made_shared(struct block *block) {
    if (block->file >= 0) return 1;
    size_t size = pages(block->bytes);
    int file = memfd_create("recorder", MFD_CLOEXEC);
    if (file < 0) return 0;
    for (size_t done = 0; done < size;) {
        ssize_t written = write(file, block->address + done, size - done);
        if (written <= 0) return close(file), 0;
        done += (size_t)written;
    }
    if (mmap(block->address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) abort();
    block->file = file;
    return 1;
}

int cudaIpcGetMemHandle(struct ipc_handle *handle, void *address) {
    struct shared shared = {.process = getpid()};
    struct stat status;
    memcpy(shared.mark, MARK, sizeof MARK);
    pthread_mutex_lock(&lock);
    struct block *block = holding(&on_device, address);
    int done = block && made_shared(block) && !fstat(block->file, &status);
    if (done) shared.file = block->file, shared.bytes = block->bytes, shared.inode = status.st_ino;
    pthread_mutex_unlock(&lock);
    if (!block) return failed(INVALID_VALUE);
    if (!done) return refuse(__func__);
    distrust(); /* from now on another process may compute there */
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &shared, sizeof shared);
    return SUCCESS;
}

/* Memory of another process is not taken by this one, so it is neither counted nor logged. */
int cudaIpcOpenMemHandle(void **address, struct ipc_handle handle, unsigned flags) {
    (void)flags;
    struct shared shared;
    struct stat status;
    char path[64];
    memcpy(&shared, &handle, sizeof shared);
    if (memcmp(shared.mark, MARK, sizeof MARK)) return refuse(__func__);
    if (shared.process == getpid()) return failed(INVALID_CONTEXT); /* as CUDA has it */
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)shared.process, (long long)shared.file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return refuse(__func__);
    size_t size = pages(shared.bytes);
    int same = !fstat(file, &status) && status.st_ino == shared.inode && (size_t)status.st_size == size;
    *address = same ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (*address == MAP_FAILED) return refuse(__func__);
    distrust(); /* what is there may be a result */
    pthread_mutex_lock(&lock);
    add(&of_others, *address, shared.bytes);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cudaIpcCloseMemHandle(void *address) {
    pthread_mutex_lock(&lock);
    int64_t bytes = removed(&of_others, address);
    if (bytes >= 0) munmap(address, pages((size_t)bytes));
    pthread_mutex_unlock(&lock);
    return bytes < 0 ? failed(INVALID_VALUE) : SUCCESS;
}
