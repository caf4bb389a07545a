#include "espalier-cache-types.h"

#include "llama-hparams.h"
#include "llama-impl.h"
#include "llama-model.h"

#include "ggml-backend.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Our types of the same format as `asked`, the one with the larger blocks first.
static std::vector<ggml_type> own_types_like(ggml_type asked) {
    const int first = asked - (asked - ESPALIER_KV_TYPE_FIRST) % 2;
    return { (ggml_type) first, (ggml_type) (first + 1) };
}

static ggml_type first_that_fits(const std::vector<ggml_type> & types, uint32_t head) {
    const auto fits = [&](ggml_type type) { return head % ggml_blck_size(type) == 0; };
    const auto found = std::find_if(types.begin(), types.end(), fits);
    return found == types.end() ? GGML_TYPE_F16 : *found;
}

// The type of a layer for which our types do not fit. K gets f16, because a q8_0 K without rotation cannot be shifted:
// upstream's K-shift graph needs the rotation.
static ggml_type instead_of_ours(bool is_k, uint32_t head) {
    return is_k ? GGML_TYPE_F16 : first_that_fits({ GGML_TYPE_Q8_0 }, head);
}

// Logs a line once per cache: it is skipped if an earlier layer of the same cache has logged it. Not once per process,
// because the first cache is often created only to measure its size, with logging off, so the line would never be
// shown.
static void warn_once(uint32_t layer, const std::string & line) {
    static std::mutex            mutex;
    static std::set<std::string> said;
    static uint32_t              last = 0;

    const std::lock_guard<std::mutex> lock(mutex);
    if (layer < last) {
        said.clear();
    }
    last = layer;
    if (said.insert(line).second) {
        LLAMA_LOG_WARN("espalier: %s\n", line.c_str());
    }
}

static thread_local espalier_cache_rules rules_of_scope = { 0, false };

espalier_cache_rules espalier_cache_scope::enter(const espalier_cache_rules & rules) {
    return std::exchange(rules_of_scope, rules);
}

static bool is_at_an_edge(uint32_t layer, uint32_t layers, const espalier_cache_rules & rules) {
    const uint32_t edge = (uint32_t) rules.edge_layers;
    return layer < edge || layer + edge >= layers;
}

// The type of the layer, without a warning.
static ggml_type type_of_layer(const llama_hparams & hparams, uint32_t layer, bool is_k, ggml_type asked, const espalier_cache_rules & rules) {
    const uint32_t head = is_k ? hparams.n_embd_head_k(layer) : hparams.n_embd_head_v(layer);
    if (!espalier_is_own_type(asked)) {
        // An explicitly requested type is kept, and is refused later if it does not fit; a type that --kv-quality chose
        // falls back to one that fits.
        return is_k && rules.has_k_fallback ? first_that_fits({ asked }, head) : asked;
    }
    const ggml_type ours = first_that_fits(own_types_like(asked), head);
    // Upstream does not rotate the cache of MLA.
    if (!espalier_is_own_type(ours) || hparams.is_mla()) {
        return instead_of_ours(is_k, head);
    }
    return !is_k && is_at_an_edge(layer, hparams.n_layer(), rules) ? first_that_fits({ GGML_TYPE_Q8_0 }, head) : ours;
}

ggml_type espalier_cache_type(const llama_hparams & hparams, uint32_t layer, const char * what, ggml_type asked) {
    const bool      is_k  = *what == 'K';
    const ggml_type found = type_of_layer(hparams, layer, is_k, asked, rules_of_scope);
    if (found == asked || espalier_is_own_type(found)) {
        return found;
    }
    const char * name = ggml_type_name(asked);
    if (hparams.is_mla() && espalier_is_own_type(asked)) {
        warn_once(layer, format("%s cache: %s needs rotated values, which this model (MLA) does not have: using %s", what, name, ggml_type_name(found)));
    } else if (!is_k && is_at_an_edge(layer, hparams.n_layer(), rules_of_scope)) {
        warn_once(layer, format("V cache: the first and last %d layers use %s instead of %s", rules_of_scope.edge_layers, ggml_type_name(found), name));
    } else {
        const uint32_t head = is_k ? hparams.n_embd_head_k(layer) : hparams.n_embd_head_v(layer);
        const int block = espalier_is_own_type(asked) ? 64 : (int) ggml_blck_size(asked);
        warn_once(layer, format("%s cache: %s has blocks of %d values, so layers with heads of %u values use %s", what, name, block, head, ggml_type_name(found)));
    }
    return found;
}

std::string espalier_describe_cache_types(const llama_model * model, bool is_k, ggml_type asked, const espalier_cache_rules & rules) {
    const llama_hparams & hparams = model->hparams;
    std::vector<std::pair<ggml_type, int>> found; // in the order of the layers
    for (uint32_t layer = 0; layer < hparams.n_layer(); layer++) {
        if (!hparams.has_kv(layer) || hparams.is_recr(layer) || (!is_k && hparams.is_mla())) {
            continue;
        }
        const ggml_type type = type_of_layer(hparams, layer, is_k, asked, rules);
        const auto same = std::find_if(found.begin(), found.end(), [&](const std::pair<ggml_type, int> & one) { return one.first == type; });
        if (same == found.end()) {
            found.push_back({ type, 1 });
        } else {
            same->second++;
        }
    }
    std::string text;
    for (const auto & [type, n_layers] : found) {
        text += (text.empty() ? "" : ", ") + std::string(ggml_type_name(type));
        text += found.size() > 1 ? " (" + std::to_string(n_layers) + " layers)" : "";
    }
    return text.empty() ? "none" : text;
}

// The device of the first layer that has one of our types and is not on a CPU; NULL if there is none.
static ggml_backend_dev_t other_device(const llama_model & model, ggml_type type_k, ggml_type type_v) {
    for (uint32_t layer = 0; layer < model.hparams.n_layer(); layer++) {
        const bool has_own = espalier_is_own_type(type_of_layer(model.hparams, layer, true, type_k, rules_of_scope)) ||
                             espalier_is_own_type(type_of_layer(model.hparams, layer, false, type_v, rules_of_scope));
        ggml_backend_dev_t device = model.dev_layer((int) layer);
        if (has_own && ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU) {
            return device;
        }
    }
    return nullptr;
}

bool espalier_cache_on_host(const llama_model & model, ggml_type type_k, ggml_type type_v) {
    ggml_backend_dev_t device = other_device(model, type_k, type_v);
    if (device) {
        LLAMA_LOG_WARN("espalier: %s does not support a KV cache of %s and %s: the cache is in host memory, and attention runs on the CPU\n",
                ggml_backend_dev_name(device), ggml_type_name(type_k), ggml_type_name(type_v));
    }
    return device != nullptr;
}

void espalier_warn_of_keys(ggml_type type_k) {
    const int bits = espalier_type_bits(type_k);
    if (bits == 2 || bits == 3) {
        LLAMA_LOG_WARN("espalier: quantizing K to %s degrades quality far more than quantizing V to it; output may be unusable; -ctk turbo4 or q8_0 is safer\n",
                ggml_type_name(type_k));
    }
}

void espalier_warn_of_rotation(uint32_t layer, const char * what, const ggml_tensor * cache, bool is_rotated) {
    if (cache != nullptr && espalier_is_own_type(cache->type) && !is_rotated) {
        warn_once(layer, format("%s cache: %s needs rotated values, and these are not rotated (LLAMA_ATTN_ROT_DISABLE, or heads of several sizes): quality will be lower",
                what, ggml_type_name(cache->type)));
    }
}

void espalier_refuse_weights(const ggml_tensor * tensor) {
    if (espalier_is_own_type(tensor->type)) {
        throw std::runtime_error(format("tensor '%s' has the type %s, which is for KV caches only", tensor->name, ggml_type_name(tensor->type)));
    }
}

static std::string describe(int type, uint64_t fingerprint) {
    const char * name = type >= 0 && type < GGML_TYPE_COUNT ? ggml_type_name((ggml_type) type) : nullptr;
    if (name == nullptr) {
        return "a type unknown to this build (" + std::to_string(type) + ")";
    }
    char codebook[64] = "";
    if (espalier_is_own_type(type)) {
        snprintf(codebook, sizeof(codebook), " (codebook %016llx)", (unsigned long long) fingerprint);
    }
    return std::string(name) + codebook;
}

bool espalier_refuse_state(const char * what, int saved, uint64_t fingerprint, ggml_type type) {
    const std::string was = describe(saved, fingerprint);
    const std::string is  = describe(type, espalier_type_fingerprint(type));
    LLAMA_LOG_ERROR("espalier: the state was saved with a %s cache of %s, and this one has %s\n", what, was.c_str(), is.c_str());
    return false;
}
