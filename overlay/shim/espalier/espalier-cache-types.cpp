#include "espalier-cache-types.h"

#include "llama-impl.h"

#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

// Ours of the same code, the larger blocks first.
static std::vector<ggml_type> own_types_like(ggml_type asked) {
    const int first = asked - (asked - ESPALIER_KV_TYPE_FIRST) % 2;
    return { (ggml_type) first, (ggml_type) (first + 1) };
}

static ggml_type first_that_fits(std::vector<ggml_type> types, uint32_t head) {
    for (ggml_type type : types) {
        if (head % ggml_blck_size(type) == 0) {
            return type;
        }
    }
    return GGML_TYPE_F16;
}

// Logs a line, unless an earlier layer of the same cache has. The first cache of a process is often made for its size alone, with
// nothing logged, so that once a process would be never.
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

ggml_type espalier_cache_type(uint32_t layer, const char * what, ggml_type asked, uint32_t head) {
    if (!espalier_is_own_type(asked)) {
        return asked;
    }
    std::vector<ggml_type> types = own_types_like(asked);
    types.push_back(GGML_TYPE_Q8_0);
    const ggml_type found = first_that_fits(types, head);
    if (!espalier_is_own_type(found)) {
        warn_once(layer, format("%s cache: %s has blocks of 64 values, and layers with heads of %u get %s instead",
                what, ggml_type_name(asked), head, ggml_type_name(found)));
    }
    return found;
}

bool espalier_cache_on_host(uint32_t layer, ggml_backend_dev_t device, ggml_type type_k, ggml_type type_v) {
    const bool has_own  = espalier_is_own_type(type_k) || espalier_is_own_type(type_v);
    const bool is_on_cpu = ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
    if (!has_own || is_on_cpu) {
        return false;
    }
    warn_once(layer, format("%s does not know caches of %s and %s: those of its layers stay in host memory, and their attention runs on the CPU",
            ggml_backend_dev_name(device), ggml_type_name(type_k), ggml_type_name(type_v)));
    return true;
}

void espalier_refuse_weights(const ggml_tensor * tensor) {
    if (espalier_is_own_type(tensor->type)) {
        throw std::runtime_error(format("tensor '%s' has the type %s, which is for KV caches only", tensor->name, ggml_type_name(tensor->type)));
    }
}

static std::string describe(int type, uint64_t fingerprint) {
    const char * name = type >= 0 && type < GGML_TYPE_COUNT ? ggml_type_name((ggml_type) type) : nullptr;
    if (name == nullptr) {
        return "a type that this build does not know (" + std::to_string(type) + ")";
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
    LLAMA_LOG_ERROR("espalier: the state was saved with a %s cache of %s, and this one is of %s\n", what, was.c_str(), is.c_str());
    return false;
}
