/*
 * The types of a KV cache that are ours, as ggml's tables want them. C99 and C++.
 *
 * Include it only under #ifdef ESPALIER, as espalier.h says.
 */
#ifndef ESPALIER_TYPES_H
#define ESPALIER_TYPES_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For each type of ESPALIER_KV_TYPES: to floats, from floats, and the product of a row with floats. */
#define ESPALIER_DECLARE_TYPE(number, name, block, bytes)                                            \
    ESPALIER_API void espalier_type_##number##_to_float  (const void * x, float * y, int64_t k);     \
    ESPALIER_API void espalier_type_##number##_from_float(const float * x, void * y, int64_t k);     \
    ESPALIER_API void espalier_type_##number##_vec_dot(int n, float * s, size_t bs, const void * x, size_t bx, const void * y, size_t by, int nrc);
ESPALIER_KV_TYPES(ESPALIER_DECLARE_TYPE)

/* false, with a line on stderr: a value of the nbytes of rows of this type is no number. */
ESPALIER_API bool espalier_type_validate(int type, const void * rows, size_t nbytes);

/* Tells a type of ours from others of its name; 0 for upstream's. */
ESPALIER_API uint64_t espalier_type_fingerprint(int type);

/* The number of ours with this name, or with the one that forks gave it; -1 if there is none. */
ESPALIER_API int espalier_type_of_name(const char * name);

/* How many layers at each end of a model have a V of q8_0 where one of ours was asked for: what ESPALIER_KV_EDGE_LAYERS says,
 * until a caller says something else. From 0 to 1024. */
ESPALIER_API int  espalier_edge_layers(void);
ESPALIER_API void espalier_keep_edge_layers(int layers);

/* Which cells of each sequence are kept in f16 too, where the cache has types of ours: what ESPALIER_KV_RECENT and ESPALIER_KV_SINKS
 * say, until a caller says something else. */
struct espalier_kv_exact_cells {
    int recent; /* a token reads itself and those before it, in all so many; from 0 to 65536 */
    int sinks;  /* and the first ones; from 0 to 1024 */
};
ESPALIER_API struct espalier_kv_exact_cells espalier_kv_exact(void);
ESPALIER_API void espalier_keep_recent(int cells);
ESPALIER_API void espalier_keep_sinks(int cells);

/* What a name for several settings of the cache stands for. */
struct espalier_kv_quality {
    const char * name;
    const char * type_k; /* as --cache-type-k calls it */
    const char * type_v;
    int          recent;
};

/* NULL for an unknown name. Static storage. */
ESPALIER_API const struct espalier_kv_quality * espalier_kv_quality_of_name(const char * name);

/* Sets what it says of cells, unless a caller or a variable has; the types are the caller's to set. */
ESPALIER_API void espalier_keep_kv_quality(const struct espalier_kv_quality * quality);

/* Whether the type of K or V ('K', 'V') was given by itself, which wins over a quality wherever it stands: variables and presets
 * come in an order that nobody chose. */
ESPALIER_API void espalier_note_cache_type(char what);
ESPALIER_API bool espalier_cache_type_was_given(char what);

/* The name that was given to --kv-quality; empty: none. */
ESPALIER_API const char * espalier_kv_quality_given(void);

/* Whether K has this type because a quality was given, and not by itself. */
ESPALIER_API bool espalier_quality_chose_k(const char * type);

/* Sets LLAMA_ARG_<FLAG> from the name that an option's variable had before, and warns on stderr. The new name wins. Call it before
 * the environment is read. */
ESPALIER_API void espalier_accept_old_variables(void);

/* The names, and what each stands for. Static storage. */
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

/* Entries of the CPU backend's type_traits_cpu. Rows are multiplied with floats as they are: nothing of them is lost. */
#define ESPALIER_TYPE_TRAITS_CPU_ENTRY(number, name, block, bytes)    \
    [number] = {                                                      \
        .from_float               = espalier_type_##number##_from_float, \
        .vec_dot                  = espalier_type_##number##_vec_dot, \
        .vec_dot_type             = GGML_TYPE_F32,                    \
        .nrows                    = 1,                                \
    },
#define ESPALIER_TYPE_TRAITS_CPU ESPALIER_KV_TYPES(ESPALIER_TYPE_TRAITS_CPU_ENTRY)

/* What --cache-type-k takes: a layer gets the larger blocks or the smaller ones, as its heads want. */
#define ESPALIER_CACHE_TYPES \
    (enum ggml_type) 200, (enum ggml_type) 202, (enum ggml_type) 204, (enum ggml_type) 206, (enum ggml_type) 208,

/* Bits of a value without its part of the scale: 2, 3 or 4; 0 for upstream's types. */
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
