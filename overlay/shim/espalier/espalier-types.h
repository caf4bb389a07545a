/*
 * Our KV cache types, in the form that ggml's tables need. C99 and C++.
 *
 * Include it only under #ifdef ESPALIER, as espalier.h says.
 */
#ifndef ESPALIER_TYPES_H
#define ESPALIER_TYPES_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For each type of ESPALIER_KV_TYPES: conversion to floats, conversion from floats, and the dot product of a row with
 * floats. */
#define ESPALIER_DECLARE_TYPE(number, name, block, bytes)                                            \
    ESPALIER_API void espalier_type_##number##_to_float  (const void * x, float * y, int64_t k);     \
    ESPALIER_API void espalier_type_##number##_from_float(const float * x, void * y, int64_t k);     \
    ESPALIER_API void espalier_type_##number##_vec_dot(int n, float * s, size_t bs, const void * x, size_t bx, const void * y, size_t by, int nrc);
ESPALIER_KV_TYPES(ESPALIER_DECLARE_TYPE)

/* Returns false, with a line on stderr, if a value in these nbytes of rows is not finite. */
ESPALIER_API bool espalier_type_validate(int type, const void * rows, size_t nbytes);

/* Distinguishes one of our types from other types with the same name; 0 for upstream's types. */
ESPALIER_API uint64_t espalier_type_fingerprint(int type);

/* The id of our type with this name, or with the name that forks gave it; -1 if there is none. */
ESPALIER_API int espalier_type_of_name(const char * name);

/* Number of layers at each end of a model whose V is q8_0 although one of our types was requested:
 * ESPALIER_KV_EDGE_LAYERS, until a caller sets another value. From 0 to 1024. */
ESPALIER_API int  espalier_edge_layers(void);
ESPALIER_API void espalier_keep_edge_layers(int layers);

/* Residual window and attention sinks of each sequence, which are kept in f16 beside a cache of our types:
 * ESPALIER_KV_RECENT and ESPALIER_KV_SINKS, until a caller sets other values. */
struct espalier_kv_exact_cells {
    int recent; /* residual window: newest tokens that each token reads in f16, itself included; from 0 to 65536 */
    int sinks;  /* attention sinks: first tokens of the sequence; from 0 to 1024 */
};
ESPALIER_API struct espalier_kv_exact_cells espalier_kv_exact(void);
ESPALIER_API void espalier_keep_recent(int cells);
ESPALIER_API void espalier_keep_sinks(int cells);

/* A named combination of cache settings, for --kv-quality. */
struct espalier_kv_quality {
    const char * name;
    const char * type_k; /* as in --cache-type-k */
    const char * type_v;
    int          recent;
};

/* NULL for an unknown name. Static storage. */
ESPALIER_API const struct espalier_kv_quality * espalier_kv_quality_of_name(const char * name);

/* Sets the residual window of the combination, unless a caller or a variable has set one. The caller has to set the
 * types. */
ESPALIER_API void espalier_keep_kv_quality(const struct espalier_kv_quality * quality);

/* Whether the type of K or V ('K', 'V') was given explicitly, which takes precedence over --kv-quality regardless of
 * their order: variables and presets are read in an arbitrary order. */
ESPALIER_API void espalier_note_cache_type(char what);
ESPALIER_API bool espalier_cache_type_was_given(char what);

/* The name that was given to --kv-quality; empty: none. */
ESPALIER_API const char * espalier_kv_quality_given(void);

/* Whether K has this type because of --kv-quality, and not because it was given explicitly. */
ESPALIER_API bool espalier_quality_chose_k(const char * type);

/* Sets LLAMA_ARG_<FLAG> from the earlier name of an option's variable, and warns on stderr. The new name takes
 * precedence. Call it before the environment is read. */
ESPALIER_API void espalier_accept_old_variables(void);

/* Help text: the name of each combination and its settings. Static storage. */
ESPALIER_API const char * espalier_kv_quality_help(void);

/* Entries of ggml's type_traits. */
#define ESPALIER_TYPE_TRAITS_ENTRY(number, name, block, bytes)        \
    [number] = {                                                      \
        .type_name                = name,                             \
        .blck_size                = block,                            \
        .type_size                = bytes,                            \
        .is_quantized             = true,                             \
        .to_float                 = espalier_type_##number##_to_float, \
        .from_float_ref           = espalier_type_##number##_from_float, \
    },
#define ESPALIER_TYPE_TRAITS ESPALIER_KV_TYPES(ESPALIER_TYPE_TRAITS_ENTRY)

/* Entries of the CPU backend's type_traits_cpu. The other operand of the dot product stays f32, so it loses no
 * precision. */
#define ESPALIER_TYPE_TRAITS_CPU_ENTRY(number, name, block, bytes)    \
    [number] = {                                                      \
        .from_float               = espalier_type_##number##_from_float, \
        .vec_dot                  = espalier_type_##number##_vec_dot, \
        .vec_dot_type             = GGML_TYPE_F32,                    \
        .nrows                    = 1,                                \
    },
#define ESPALIER_TYPE_TRAITS_CPU ESPALIER_KV_TYPES(ESPALIER_TYPE_TRAITS_CPU_ENTRY)

/* The types that --cache-type-k accepts. Each layer gets the larger or the smaller blocks, as its heads require. */
#define ESPALIER_CACHE_TYPES \
    (enum ggml_type) 200, (enum ggml_type) 202, (enum ggml_type) 204, (enum ggml_type) 206, (enum ggml_type) 208,

/* Bits of a value without its share of the scale: 2, 3 or 4; 0 for upstream's types. */
#define ESPALIER_TYPE_BITS_CASE(number, name, block, bytes) case number: return ((bytes) - 2) * 8 / (block);
static inline int espalier_type_bits(int type) {
    switch (type) {
        ESPALIER_KV_TYPES(ESPALIER_TYPE_BITS_CASE)
        default: return 0;
    }
}

static inline bool espalier_is_own_type(int type) {
    return type >= ESPALIER_KV_TYPE_FIRST;
}

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_TYPES_H */
