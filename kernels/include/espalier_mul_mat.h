/*
 * The C ABI of the Rust kernels, continued: matrix multiplication (GEMM) on the CPU. Its function may be called from any
 * thread. It aborts the process if it fails internally, since other threads may have written to the output by then.
 */
#ifndef ESPALIER_MUL_MAT_H
#define ESPALIER_MUL_MAT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For each token the dot products of its activations with each row of the weights. Strides are in bytes. */
struct espalier_mul_mat {
    const void * weights; /* rows of `size` values in q8_0 */
    const void * activations; /* a row of `size` values in q8_0 for each token; a dot product with a quant of -128, which
                               * ggml's conversion gives for NaN only, is unspecified */
    float * out; /* a row of `rows` values for each token; overlaps neither of the others */
    uint64_t weights_row; /* stride between rows of the weights */
    uint64_t activations_token; /* stride between tokens of the activations */
    uint64_t out_token; /* stride between tokens of the output, a multiple of 4 */
    uint32_t size; /* values in a row of the weights, a multiple of 32 */
    uint32_t rows; /* number of rows of the weights */
    uint32_t tokens; /* number of tokens */
};

/* Each of `threads` threads calls it with its index, without a barrier. Returns 1; or 0, on all threads and before
 * anything is written, if mul-mat is off, the sizes are not supported, or `problem` is NULL. The result depends neither
 * on the number of threads nor on the other tokens. */
int32_t espalier_mul_mat_compute(const struct espalier_mul_mat * problem, uint32_t thread, uint32_t threads);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_MUL_MAT_H */
