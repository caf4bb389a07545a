/*
 * What ggml's CPU backend calls for GGML_OP_FLASH_ATTN_EXT. C99 and C++.
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

/* Sources of the node that upstream does not know: copies of some cells, f16 or else, as K, V and mask are. What a token reads
 * there, its own mask hides. NULL: there are none. */
#define ESPALIER_SRC_COPIES_K    6
#define ESPALIER_SRC_COPIES_V    7
#define ESPALIER_SRC_COPIES_MASK 8

/* Bytes of work memory that n_threads threads need together; 0 if upstream's code is to compute the node. */
size_t espalier_flash_attn_ext_work_size(const struct ggml_tensor * node, int n_threads);

/* Each thread calls the first, all of them meet, then each calls the second. */
void espalier_flash_attn_ext_compute(const struct ggml_tensor * node, int ith, int nth, void * work);
void espalier_flash_attn_ext_merge  (const struct ggml_tensor * node, int ith, int nth, void * work);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_ATTENTION_H */
