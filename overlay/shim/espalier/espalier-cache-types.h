// Which of our types a layer's cache has, and how a saved state says so. Compiled into llama.

#pragma once

#include "espalier-types.h"

#include "ggml-backend.h"
#include "ggml.h"

// The type of K or V (`what`) of a layer for which `asked` was asked, whose heads have `head` values: the same for types that
// are not ours; ours in the larger blocks that fit the head; where none fits, q8_0 or f16, which is said once a cache.
ggml_type espalier_cache_type(uint32_t layer, const char * what, ggml_type asked, uint32_t head);

// Whether a layer's cache stays in host memory, because its device is no CPU and ours are only on those. Its attention then
// runs on the CPU, which is said once a cache.
bool espalier_cache_on_host(uint32_t layer, ggml_backend_dev_t device, ggml_type type_k, ggml_type type_v);

// The call sites' forms.
#define ESPALIER_CACHE_TYPE(layer, what, type, head) espalier_cache_type((layer), (what), (type), (head))
#define ESPALIER_CACHE_ON_HOST(layer, device, type_k, type_v) espalier_cache_on_host((layer), (device), (type_k), (type_v))

// Throws if a model's weights have a type of ours: nothing multiplies with those at speed, and some operations do not know them.
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
