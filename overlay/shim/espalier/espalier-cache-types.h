// Which of our types a layer's cache has, and how a saved state says so. Compiled into llama.

#pragma once

#include "espalier-types.h"

#include "ggml.h"
#include "llama.h"

#include <string>

struct llama_hparams;

// The type of K or V (`what`) of a layer for which `asked` was asked: the same for types that are not ours (but f16 for a K that
// --kv-quality chose and that does not fit the heads); ours in the larger
// blocks that fit its heads; where none fits, or upstream does not rotate the cache, q8_0 for V and f16 for K, which is said once
// a cache; and q8_0 for V of the layers that espalier_keep_edge_layers names.
ggml_type espalier_cache_type(const llama_hparams & hparams, uint32_t layer, const char * what, ggml_type asked);

// The types of the layers' K or V if `asked` was requested: "tcq3", or with the number of layers of each if they differ, or
// "none" if no layer has a cache.
LLAMA_API std::string espalier_describe_cache_types(const llama_model * model, bool is_k, ggml_type asked);

// Whether the cache stays in host memory, and attention on the CPU: a layer with a type of ours is on another device, and ours are
// only on CPUs. Says so.
bool espalier_cache_on_host(const llama_model & model, ggml_type type_k, ggml_type type_v);

// Says what to expect of a K of two or three bits.
void espalier_warn_of_keys(ggml_type type_k);

// Says of a layer's K or V (`what`) that it is of a type of ours and not rotated. NULL: it has none.
void espalier_warn_of_rotation(uint32_t layer, const char * what, const ggml_tensor * cache, bool is_rotated);

// The call sites' forms.
#define ESPALIER_CACHE_TYPE(hparams, layer, what, type) espalier_cache_type((hparams), (layer), (what), (type))
#define ESPALIER_CACHE_ON_HOST(model, type_k, type_v) espalier_cache_on_host((model), (type_k), (type_v))

// Throws if weights, a model's or an adapter's, have a type of ours: nothing multiplies with those at speed, and some operations
// do not know them.
void espalier_refuse_weights(const ggml_tensor * tensor);

// Says what a state was saved with, and what this cache has instead.
bool espalier_refuse_state(const char * what, int saved, uint64_t fingerprint, ggml_type type);

// After a type's number, a state has the fingerprint of one that is ours.
template <typename io_write> void espalier_write_state_type(io_write & io, ggml_type type) {
    if (espalier_is_own_type(type)) {
        const uint64_t fingerprint = espalier_type_fingerprint(type);
        io.write(&fingerprint, sizeof(fingerprint));
    }
}

// false: the state is of another type, or of one with the same name and other codebooks.
template <typename io_read> bool espalier_read_state_type(io_read & io, const char * what, int saved, ggml_type type) {
    uint64_t fingerprint = 0;
    if (espalier_is_own_type(saved)) {
        io.read(&fingerprint, sizeof(fingerprint));
    }
    const bool is_same = saved == (int) type && fingerprint == espalier_type_fingerprint(type);
    return is_same || espalier_refuse_state(what, saved, fingerprint, type);
}
