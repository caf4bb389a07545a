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

/* Settings of a cache of our types. Each has an environment variable of the same name, which is the default of
 * llama_context_params: for programs without an option. */
enum espalier_kv_setting {
    ESPALIER_KV_EDGE_LAYERS = 0, /* layers at each end of the model whose V is q8_0 instead; at most 1024 */
    ESPALIER_KV_RECENT      = 1, /* residual window: newest tokens that each token of a sequence reads in f16, itself
                                  * included; at most 65536 */
    ESPALIER_KV_SINKS       = 2, /* attention sinks: first tokens of a sequence that are read in f16; at most 1024 */
};
#define ESPALIER_KV_SETTINGS 3

/* The value of the setting's variable, `otherwise` if it is not set. The variables are read once; a value out of range
 * is reported on stderr and ignored. */
ESPALIER_API int espalier_kv_variable(enum espalier_kv_setting setting, int otherwise);

/* The next value within the range of the setting. */
ESPALIER_API int espalier_kv_clamp(enum espalier_kv_setting setting, int value);

/* Rules by which a layer gets another type than the one that its cache was requested with. */
struct espalier_cache_rules {
    int  edge_layers;    /* ESPALIER_KV_EDGE_LAYERS */
    bool has_k_fallback; /* a K of an upstream type that does not fit the heads becomes f16 */
};

/* A named combination of cache settings, for --kv-quality. */
struct espalier_kv_quality {
    const char * name;
    const char * type_k; /* as in --cache-type-k */
    const char * type_v;
    int          recent;
};

/* NULL for an unknown name. Static storage. */
ESPALIER_API const struct espalier_kv_quality * espalier_kv_quality_of_name(const char * name);

/* Sets LLAMA_ARG_<FLAG> from the earlier name of an option's variable, and warns on stderr. The new name takes
 * precedence. Warns of misspelt variables, too. Call it before the environment is read; only the first call acts. */
ESPALIER_API void espalier_accept_old_variables(void);

/* The key of a preset, which can be the variable of an option: the present name of one that was renamed, with a
 * warning on stderr, else `key` itself. */
ESPALIER_API const char * espalier_accept_old_key(const char * key);

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

/* The types that --cache-type-k accepts: those with the larger blocks. Each layer gets the larger or the smaller
 * blocks, as its heads require. */
#define ESPALIER_CACHE_TYPE_OF_128(number) (enum ggml_type) number,
#define ESPALIER_CACHE_TYPE_OF_64(number)
#define ESPALIER_CACHE_TYPE_ENTRY(number, name, block, bytes) ESPALIER_CACHE_TYPE_OF_##block(number)
#define ESPALIER_CACHE_TYPES ESPALIER_KV_TYPES(ESPALIER_CACHE_TYPE_ENTRY)

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
