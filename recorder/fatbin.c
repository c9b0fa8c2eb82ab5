/* Which code of a kernel would the driver take on the card? Read from what the compiler put beside each kernel: a list of
   images, each for one compute capability. The layout is that of CUDA 8 to 13. */
#include "recorder.h"

enum { PTX = 1, MACHINE_CODE = 2 };

struct wrapper {
    uint32_t magic, version;
    const unsigned char *images;
};

struct container {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;
};

struct image {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed_size, options;
    uint16_t minor, major;
    uint32_t capability;
};

static const uint32_t WRAPPER_MAGIC = 0x466243b1, CONTAINER_MAGIC = 0xba55ed50;

int code_for_card(const void *binary, struct code *code) {
    const struct wrapper *wrapper = binary;
    if (!wrapper || wrapper->magic != WRAPPER_MAGIC) return 0;
    const struct container *all = (const void *)wrapper->images;
    if (all->magic != CONTAINER_MAGIC) return 0;
    int have = 10 * card()->major + card()->minor, machine = 0, ptx = 0;
    const unsigned char *at = wrapper->images + all->header_size, *end = at + all->size;
    while (at + sizeof(struct image) <= end) {
        const struct image *image = (const void *)at;
        int built_for = (int)image->capability;
        if (built_for <= have && image->kind == MACHINE_CODE && built_for / 10 == card()->major && built_for > machine)
            machine = built_for;
        if (built_for <= have && image->kind == PTX && built_for > ptx) ptx = built_for;
        if (!image->header_size) return 0;
        at += image->header_size + image->size;
    }
    /* Machine code of the same major capability runs as it is; PTX is compiled for the card. */
    *code = machine ? (struct code){machine, machine} : (struct code){ptx, have};
    return 1;
}
