/*
 * Entry points for GGML_OP_FLASH_ATTN_EXT in ggml's CPU backend. C99 and C++.
 *
 * Compiled into the CPU backend: under #ifdef ESPALIER, as espalier.h says.
 */
#ifndef ESPALIER_ATTENTION_H
#define ESPALIER_ATTENTION_H

#include <stddef.h>

struct ggml_tensor;

#ifdef __cplusplus
extern "C" {
#endif

/* Sources that upstream's node does not have. NULL: none.
 * BLOCKS: for each token, a bit for each block of ESPALIER_KV_BLOCK_SIZE cells; all cells of a block whose bit is 0 are
 * masked. Code that reads the mask may ignore it. espalier_set_kv_blocks() sets it.
 * RESIDUAL: the residual window, copies of some cells in f16 or another type, laid out like K, V and mask. A cell whose
 * copy a token reads is masked in the node's own mask. */
#define ESPALIER_SRC_BLOCKS        5
#define ESPALIER_SRC_RESIDUAL_K    6
#define ESPALIER_SRC_RESIDUAL_V    7
#define ESPALIER_SRC_RESIDUAL_MASK 8

/* Bytes of work memory that n_threads threads need together; 0 if upstream's code must compute the node. */
size_t espalier_flash_attn_ext_work_size(const struct ggml_tensor * node, int n_threads);

/* Each thread calls compute; after a barrier, each thread calls merge. */
void espalier_flash_attn_ext_compute(const struct ggml_tensor * node, int ith, int nth, void * work);
void espalier_flash_attn_ext_merge  (const struct ggml_tensor * node, int ith, int nth, void * work);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_ATTENTION_H */
