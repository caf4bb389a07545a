/*
 * The C ABI of the Rust kernels, continued: sparse attention over a paged cache on accelerators. As
 * espalier_kernels.h says of its functions, these may be called from any thread and never fail.
 */
#ifndef ESPALIER_KV_GATHER_H
#define ESPALIER_KV_GATHER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An upper bound of the cells that a token sees: those of the blocks of its sequence, of which the bit i % 32 of
 * blocks[i / 32] is set; `count` words. UINT32_MAX for NULL. */
uint32_t espalier_kv_gather_cells(const uint32_t * blocks, size_t count);

/* The hint for the nodes of a step (ggml_flash_attn_ext_set_n_kv_max) whose `tokens` tokens see at most `cells` of the
 * first cache_cells cells each: `cells`, rounded up. 0: no backend is faster with one, or `cells` is UINT32_MAX. With
 * ESPALIER_KV_GATHER_CHECK=1 it is the smaller of `cells` and cache_cells, not rounded and at least 1, also where no
 * backend is faster with one. The same arguments give the same hint. */
uint32_t espalier_kv_gather_hint(uint32_t cells, uint32_t cache_cells, uint32_t tokens);

/* A flash attention node over a paged cache. */
struct espalier_kv_gather_node {
    int32_t  key_type;   /* enum ggml_type of K */
    int32_t  value_type; /* enum ggml_type of V */
    uint32_t key_size;   /* values in a row of K */
    uint32_t value_size; /* values in a row of V */
    uint32_t heads;      /* number of heads of Q */
    uint32_t kv_heads;   /* number of heads of K and of V */
    uint32_t tokens;     /* number of tokens */
    uint32_t cells;      /* number of cells in K */
    int32_t  is_biased;  /* 1: scores have an ALiBi bias or a softcap */
};

/* 1 if the backend, by its name in ggml's registry, uses this hint for the node and is faster with it, else 0, also for
 * NULL. With ESPALIER_KV_GATHER_CHECK=1 it is always 1. */
int32_t espalier_kv_gather_is_used(const char * backend, const struct espalier_kv_gather_node * node, uint32_t hint);

/* 1 if the backend, by the same name, uses hints for some nodes, else 0, also for NULL. With
 * ESPALIER_KV_GATHER_CHECK=1 always 1. */
int32_t espalier_kv_gather_has_backend(const char * backend);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_KV_GATHER_H */
