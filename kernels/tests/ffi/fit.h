/* Part of ../ffi.c: the size of a KV cache that fits into free memory. */
#include "espalier_fit.h"

#include <stdio.h>

static void print_fit_layout(void) {
    printf("size.fit_device %zu\n", sizeof(struct espalier_fit_device));
    printf("offset.fit_device.available %zu\n", offsetof(struct espalier_fit_device, available));
    printf("offset.fit_device.used_small %zu\n", offsetof(struct espalier_fit_device, used_small));
    printf("offset.fit_device.used_large %zu\n", offsetof(struct espalier_fit_device, used_large));
}

static void print_fit_of(const char * name, const struct espalier_fit_device * devices, size_t count) {
    size_t device = 77;
    const uint32_t tokens = espalier_fit_tokens(devices, count, 256, 512, 4096, &device);
    printf("fit.%s %u device %u\n", name, (unsigned) tokens, (unsigned) device);
}

/* Two devices: 10 bytes for each token, beside 1,000 bytes of weights, and 20 beside 500. */
static void print_fit(void) {
    const struct espalier_fit_device devices[2] = { { 20000, 3560, 6120 }, { 20500, 5620, 10740 } };
    const struct espalier_fit_device constant = { 0, 100, 100 };

    print_fit_of("two", devices, 2);
    print_fit_of("one", devices, 1);
    print_fit_of("constant", &constant, 1);
    print_fit_of("none", devices, 0);
    print_fit_of("null", NULL, 2);
    printf("fit.null_device %u\n", (unsigned) espalier_fit_tokens(devices, 2, 256, 512, 4096, NULL));
}
