/*
 * The API that the patches call. C99 and C++; no ggml, no llama: those are in espalier-graph.h.
 *
 * Include it only under #ifdef ESPALIER, which the espalier target defines: a build without the
 * kernels does not compile the call sites, and its code is upstream's.
 */
#ifndef ESPALIER_H
#define ESPALIER_H

/* For its types. Its functions are linked into the espalier library only. */
#include "espalier_fit.h"
#include "espalier_kernels.h"
#include "espalier_kv_gather.h"
#include "espalier_mul_mat.h"

#include <stdbool.h>

#if defined(ESPALIER_SHARED) && defined(_WIN32)
#    ifdef ESPALIER_BUILD
#        define ESPALIER_API __declspec(dllexport)
#    else
#        define ESPALIER_API __declspec(dllimport)
#    endif
#elif defined(ESPALIER_SHARED)
#    define ESPALIER_API __attribute__((visibility("default")))
#else
#    define ESPALIER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The identity of this build: "variant paged, pin v0.4.0, tree <40 hex digits>". A part that the
 * build tool did not name is "unknown". Static storage, never NULL. */
ESPALIER_API const char * espalier_identity(void);

/* The comma-separated names of the features that are on, "none" if none is. Static storage. */
ESPALIER_API const char * espalier_enabled_features(void);

/* Whether the kernels library has the ABI of this header. If not, every feature is off, since a header and a library of
 * different builds must not exchange structs; the first call reports that on stderr. */
ESPALIER_API bool espalier_kernels_match(void);

/* Whether the feature gdn-flat-output is on. */
ESPALIER_API bool espalier_wants_flat_gdn_output(void);

/* Whether it is on, and flattening this projection's input keeps every bit of its output. */
ESPALIER_API bool espalier_gdn_output_may_be_flat(const struct espalier_gdn_output_facts * facts);

/* The bytes that this process may still allocate by the limits of its control groups; INT64_MAX without a limit. */
ESPALIER_API int64_t espalier_free_of_container(void);

/* The cells that n_windows sliding windows of `window` tokens take in their layers, and a batch of up to n_batch tokens
 * beside them. 0 if the kernels are of another build. */
ESPALIER_API uint32_t espalier_cells_of_windows(uint32_t window, uint32_t n_windows, uint32_t n_batch);

/* espalier_fit_tokens(), for other libraries. If the kernels are of another build, n_max, as if no device had a part of
 * the cache. */
ESPALIER_API uint32_t espalier_fit_pool(const struct espalier_fit_device * devices, size_t count, uint32_t n_small,
                                        uint32_t n_large, uint32_t n_max, size_t * device);

/* The attention kernel, for other libraries: espalier_kernels.h documents the functions. */
struct espalier_attention_functions {
    size_t (*work_size)(const struct espalier_attention * problem, uint32_t threads);
    void   (*compute)  (const struct espalier_attention * problem, uint32_t thread, uint32_t threads, void * work);
    void   (*merge)    (const struct espalier_attention * problem, uint32_t thread, uint32_t threads, void * work);
};

/* Returns NULL if the kernels are of another build than this header; then no problem is supported. */
ESPALIER_API const struct espalier_attention_functions * espalier_attention_get_functions(void);

/* The recurrence of gated delta nets, in the same way. */
struct espalier_gdn_functions {
    int32_t (*is_supported)(const struct espalier_gdn * problem);
    int32_t (*compute)     (const struct espalier_gdn * problem, uint32_t thread, uint32_t threads);
};

/* Returns NULL if the kernels are of another build than this header; then no problem is supported. */
ESPALIER_API const struct espalier_gdn_functions * espalier_gdn_get_functions(void);

/* The hint of sparse attention over a paged cache, in the same way: espalier_kv_gather.h documents the functions. */
struct espalier_kv_gather_functions {
    uint32_t (*cells)      (const uint32_t * blocks, size_t count);
    uint32_t (*hint)       (uint32_t cells, uint32_t cache_cells, uint32_t tokens);
    int32_t  (*is_used)    (const char * backend, const struct espalier_kv_gather_node * node, uint32_t hint);
    int32_t  (*has_backend)(const char * backend);
};

/* Returns NULL if the kernels are of another build than this header; then there are no hints. */
ESPALIER_API const struct espalier_kv_gather_functions * espalier_kv_gather_get_functions(void);

/* Matrix products, in the same way: espalier_mul_mat.h documents the function. */
typedef int32_t (*espalier_mul_mat_function)(const struct espalier_mul_mat * problem, uint32_t thread, uint32_t threads);

/* Returns NULL if mul-mat is off, or the kernels are of another build than this header. */
ESPALIER_API espalier_mul_mat_function espalier_mul_mat_get_function(void);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_H */
