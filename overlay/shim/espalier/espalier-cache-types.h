// Chooses the KV cache type of each layer, and records our types in saved states. Compiled into llama.

#pragma once

#include "espalier-types.h"

#include "ggml.h"
#include "llama.h"

#include <string>

struct llama_hparams;

// The rules for the caches that this thread creates while the object exists; without one there are no edge layers and
// no fallback. llama_init_from_model() has one, because the type of a layer is chosen in the constructor of
// llama_kv_cache: upstream's memory classes that contain such a cache, eight of them, pass only the requested types to
// it.
class espalier_cache_scope {
public:
    // From llama_context_params. A template, because the patch that adds these members is not the first that includes
    // this header.
    template <typename params_t> explicit espalier_cache_scope(const params_t & params) :
        before(enter({ espalier_kv_clamp(ESPALIER_KV_EDGE_LAYERS, params.kv_edge_layers), params.type_k_fallback })) {
    }

    ~espalier_cache_scope() { enter(before); }

    espalier_cache_scope(const espalier_cache_scope &)             = delete;
    espalier_cache_scope & operator=(const espalier_cache_scope &) = delete;

private:
    // Sets the rules of this thread, and returns those before.
    static espalier_cache_rules enter(const espalier_cache_rules & rules);

    const espalier_cache_rules before;
};

// Returns the type of a layer's K or V (`what`) if `asked` was requested, by the rules of the thread's scope:
//   * A type that is not ours is returned as it is, except that with has_k_fallback a K that does not fit the heads
//     becomes f16.
//   * One of our types is returned with the larger blocks that fit the heads. If none fits, or upstream does not rotate
//     the cache, V gets q8_0 and K gets f16.
//   * V of the edge layers gets q8_0.
// A substitute for one of our types is logged once per cache.
ggml_type espalier_cache_type(const llama_hparams & hparams, uint32_t layer, const char * what, ggml_type asked);

// The types of the layers' K or V if `asked` was requested with these rules: "tcq3", or with the number of layers of
// each if they differ, or "none" if no layer has a cache.
LLAMA_API std::string espalier_describe_cache_types(const llama_model * model, bool is_k, ggml_type asked, const espalier_cache_rules & rules);

// Whether the cache must stay in host memory, with attention on the CPU: by the rules of the thread's scope, a layer
// with one of our types is on another device, and our types are supported only on CPUs. Logs a warning in that case.
bool espalier_cache_on_host(const llama_model & model, ggml_type type_k, ggml_type type_v);

// Warns that a K cache of two or three bits can ruin the output.
void espalier_warn_of_keys(ggml_type type_k);

// Warns if a layer's K or V (`what`) has one of our types and is not rotated. `cache` is NULL if the layer has none.
void espalier_warn_of_rotation(uint32_t layer, const char * what, const ggml_tensor * cache, bool is_rotated);

// Forms for the call sites in the patches. ESPALIER_KV_DEFAULT is for llama_context_default_params().
#define ESPALIER_KV_DEFAULT(setting) espalier_kv_variable((setting), 0)
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
