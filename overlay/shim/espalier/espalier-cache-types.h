// Chooses the KV cache type of each layer, and records our types in saved states. Compiled into llama.

#pragma once

#include "espalier-types.h"

#include "ggml.h"
#include "llama.h"

#include <string>

struct llama_hparams;

// Returns the type of a layer's K or V (`what`) if `asked` was requested:
//   * A type that is not ours is returned as it is, except that a K that --kv-quality chose becomes f16 if it does not
//     fit the heads.
//   * One of our types is returned with the larger blocks that fit the heads. If none fits, or upstream does not rotate
//     the cache, V gets q8_0 and K gets f16.
//   * V of the layers at each end that espalier_keep_edge_layers() sets gets q8_0.
// A substitute for one of our types is logged once per cache.
ggml_type espalier_cache_type(const llama_hparams & hparams, uint32_t layer, const char * what, ggml_type asked);

// The types of the layers' K or V if `asked` was requested: "tcq3", or with the number of layers of each if they
// differ, or "none" if no layer has a cache.
LLAMA_API std::string espalier_describe_cache_types(const llama_model * model, bool is_k, ggml_type asked);

// Whether the cache must stay in host memory, with attention on the CPU: a layer with one of our types is on another
// device, and our types are supported only on CPUs. Logs a warning in that case.
bool espalier_cache_on_host(const llama_model & model, ggml_type type_k, ggml_type type_v);

// Warns that a K cache of two or three bits can ruin the output.
void espalier_warn_of_keys(ggml_type type_k);

// Warns if a layer's K or V (`what`) has one of our types and is not rotated. `cache` is NULL if the layer has none.
void espalier_warn_of_rotation(uint32_t layer, const char * what, const ggml_tensor * cache, bool is_rotated);

// Forms for the call sites in the patches.
#define ESPALIER_CACHE_TYPE(hparams, layer, what, type) espalier_cache_type((hparams), (layer), (what), (type))
#define ESPALIER_CACHE_ON_HOST(model, type_k, type_v) espalier_cache_on_host((model), (type_k), (type_v))

// Throws if a weight tensor of a model or an adapter has one of our types: there is no fast matrix product for them,
// and some operations do not support them.
void espalier_refuse_weights(const ggml_tensor * tensor);

// Logs the type that a state was saved with and the type of this cache. Returns false.
bool espalier_refuse_state(const char * what, int saved, uint64_t fingerprint, ggml_type type);

// Writes the fingerprint of one of our types, which follows the type's id in a saved state.
template <typename io_write> void espalier_write_state_type(io_write & io, ggml_type type) {
    if (espalier_is_own_type(type)) {
        const uint64_t fingerprint = espalier_type_fingerprint(type);
        io.write(&fingerprint, sizeof(fingerprint));
    }
}

// Returns false if the state has another type, or one with the same name and other codebooks.
template <typename io_read> bool espalier_read_state_type(io_read & io, const char * what, int saved, ggml_type type) {
    uint64_t fingerprint = 0;
    if (espalier_is_own_type(saved)) {
        io.read(&fingerprint, sizeof(fingerprint));
    }
    const bool is_same = saved == (int) type && fingerprint == espalier_type_fingerprint(type);
    return is_same || espalier_refuse_state(what, saved, fingerprint, type);
}
