/*
 * Entry point for GGML_OP_MUL_MAT in ggml's CPU backend. C99 and C++.
 *
 * Compiled into the CPU backend: under #ifdef ESPALIER, as espalier.h says.
 */
#ifndef ESPALIER_MUL_MAT_NODE_H
#define ESPALIER_MUL_MAT_NODE_H

#include <stdbool.h>

struct ggml_tensor;

#ifdef __cplusplus
extern "C" {
#endif

/* Computes the share of one of nth threads, without a barrier. activations: those of the node's second source in q8_0,
 * contiguous. Returns false, on all threads and before anything is written, if upstream's code must compute the node:
 * the feature mul-mat is off, or types or layout are not supported. */
bool espalier_mul_mat_compute_node(const struct ggml_tensor * node, const void * activations, int ith, int nth);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_MUL_MAT_NODE_H */
