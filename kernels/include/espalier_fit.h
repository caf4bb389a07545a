/*
 * The C ABI of the Rust kernels, continued: the size of a KV cache that fits into free memory. As
 * espalier_kernels.h says of its functions, these may be called from any thread and never fail.
 */
#ifndef ESPALIER_FIT_H
#define ESPALIER_FIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of a device, in bytes. */
struct espalier_fit_device {
    int64_t available;  /* memory that the server may take */
    int64_t used_small; /* what it takes with the small cache */
    int64_t used_large; /* what it takes with the large cache */
};

/* The tokens of the largest KV cache that fits on each of `count` devices, given what the server takes with a cache of
 * n_small tokens and with one of n_large: a multiple of 256, or n_max, which is the most; less than n_small if not even
 * that fits. *device is the index of the device on which the fewest tokens fit; `count` if no device takes more with
 * the large cache: then the result is n_max. 0 if a pointer is NULL. */
uint32_t espalier_fit_tokens(const struct espalier_fit_device * devices, size_t count, uint32_t n_small,
                             uint32_t n_large, uint32_t n_max, size_t * device);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_FIT_H */
