/* Entries by name, and static copies of the runtime inside a wheel, whose entries are overwritten with jumps to ours. */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef __x86_64__
#error "the recorder writes instructions of x86-64"
#endif

static const size_t PAGE = 4096;

static unsigned char *put(unsigned char *code, const char *opcode, size_t length, const void *value) {
    memcpy(code, opcode, length);
    memcpy(code + length, &value, value ? sizeof value : 0);
    return code + length + (value ? sizeof value : 0);
}

/* mov rax, target; jmp rax: 12 bytes, the least that build.py lets an entry have */
static unsigned char *put_jump(unsigned char *code, const void *target) {
    return put(put(code, "\x48\xb8", 2, target), "\xff\xe0", 2, NULL);
}

static int overwrite(struct dl_phdr_info *library, size_t size, void *unused) {
    (void)size, (void)unused;
    const char *slash = strrchr(library->dlpi_name, '/');
    const char *file = slash ? slash + 1 : library->dlpi_name;
    for (const struct redirection *each = recorder_redirections; each->library; each++) {
        if (strcmp(each->library, file)) continue;
        unsigned char *code = (unsigned char *)library->dlpi_addr + each->offset;
        void *page = (void *)((uintptr_t)code & ~(PAGE - 1));
        if (mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC)) abort();
        put_jump(code, each->target);
    }
    return 0;
}

static void overwrite_all(void) { dl_iterate_phdr(overwrite, NULL); }

/* Called while the first library with kernels registers them: what it needs is loaded then, and nothing was called yet. */
void redirect_static_runtime(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, overwrite_all);
}

/* A function that calls recorder_missing(name): mov rdi, name; then the jump. */
static void *missing_entry(const char *name) {
    unsigned char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) abort();
    put_jump(put(code, "\x48\xbf", 2, named(name)), (void *)recorder_missing);
    return code;
}

/* The entry of that name: its body, or one that says that it is missing. */
static void *entry(const char *name) {
    char longer[256];
    const char *suffixes[] = {"_v3", "_v2", ""};
    for (size_t i = 0; i < 3; i++) {
        snprintf(longer, sizeof longer, "%s%s", name, suffixes[i]);
        void *found = dlsym(RTLD_DEFAULT, longer);
        if (found) return found;
    }
    return missing_entry(name);
}

static int find(const char *name, void **into, int *status) {
    *into = entry(name);
    if (status) *status = SUCCESS;
    return SUCCESS;
}

int cudaGetDriverEntryPoint(const char *name, void **into, unsigned long long flags, int *status) {
    return (void)flags, find(name, into, status);
}

int cudaGetDriverEntryPointByVersion(const char *name, void **into, unsigned version, unsigned long long flags, int *status) {
    return (void)version, (void)flags, find(name, into, status);
}

#if CUDA_MAJOR >= 12
int cuGetProcAddress_v2(const char *name, void **into, int version, unsigned long long flags, int *status) {
    return (void)version, (void)flags, find(name, into, status);
}
#endif

int cuGetProcAddress(const char *name, void **into) { return find(name, into, NULL); }

/* NVRTC asks for a table of unpublished entries and does without where there is none. */
int cuGetExportTable(void) { return NOT_FOUND; }
