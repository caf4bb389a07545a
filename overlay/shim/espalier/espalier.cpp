#include "espalier.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#ifdef ESPALIER_HAS_IDENTITY
#include "espalier-identity.h"
#endif

#ifndef ESPALIER_VARIANT
#define ESPALIER_VARIANT "unknown"
#endif
#ifndef ESPALIER_PIN
#define ESPALIER_PIN "unknown"
#endif
#ifndef ESPALIER_TREE
#define ESPALIER_TREE "unknown"
#endif

static bool check_kernels_version() {
    const uint32_t version = espalier_kernels_abi_version();
    if (version == ESPALIER_KERNELS_ABI_VERSION) {
        return true;
    }
    fprintf(stderr, "espalier: the kernels library has ABI %u, this build expects %u: every feature is disabled\n",
            (unsigned) version, (unsigned) ESPALIER_KERNELS_ABI_VERSION);
    return false;
}

bool espalier_kernels_match(void) {
    static const bool match = check_kernels_version();
    return match;
}

static std::string list_enabled_features() {
    const size_t length = espalier_kernels_match() ? espalier_features(nullptr, 0) : 0;
    if (length == 0) {
        return "none";
    }
    std::string names(length + 1, '\0');
    espalier_features(&names[0], names.size());
    names.resize(length);
    return names;
}

const char * espalier_identity(void) {
    return "variant " ESPALIER_VARIANT ", pin " ESPALIER_PIN ", tree " ESPALIER_TREE;
}

const char * espalier_enabled_features(void) {
    static const std::string names = list_enabled_features();
    return names.c_str();
}

bool espalier_wants_flat_gdn_output(void) {
    return espalier_kernels_match() && espalier_feature_enabled(ESPALIER_FEATURE_GDN_FLAT_OUTPUT) != 0;
}

bool espalier_gdn_output_may_be_flat(const struct espalier_gdn_output_facts * facts) {
    return espalier_kernels_match() && espalier_gdn_output_is_flat(facts) != 0;
}

int64_t espalier_free_of_container(void) {
    return espalier_kernels_match() ? espalier_free_of_groups() : INT64_MAX;
}

uint32_t espalier_cells_of_windows(uint32_t window, uint32_t n_windows, uint32_t n_batch) {
    if (!espalier_kernels_match()) {
        return 0;
    }
    const uint64_t n_blocks = espalier_pool_blocks_of_windows(window, ESPALIER_KV_BLOCK_SIZE, n_windows, n_batch);
    return (uint32_t) std::min<uint64_t>(n_blocks, INT32_MAX / ESPALIER_KV_BLOCK_SIZE) * ESPALIER_KV_BLOCK_SIZE;
}

uint32_t espalier_fit_pool(const struct espalier_fit_device * devices, size_t count, uint32_t n_small,
                           uint32_t n_large, uint32_t n_max, size_t * device) {
    if (!espalier_kernels_match()) {
        *device = count;
        return n_max;
    }
    return espalier_fit_tokens(devices, count, n_small, n_large, n_max, device);
}

const struct espalier_attention_functions * espalier_attention_get_functions(void) {
    static const espalier_attention_functions functions = {
        espalier_attention_work_size, espalier_attention_compute, espalier_attention_merge,
    };
    return espalier_kernels_match() ? &functions : nullptr;
}

const struct espalier_gdn_functions * espalier_gdn_get_functions(void) {
    static const espalier_gdn_functions functions = { espalier_gdn_is_supported, espalier_gdn_compute };
    return espalier_kernels_match() ? &functions : nullptr;
}

const struct espalier_kv_gather_functions * espalier_kv_gather_get_functions(void) {
    static const espalier_kv_gather_functions functions = {
        espalier_kv_gather_cells, espalier_kv_gather_hint, espalier_kv_gather_is_used, espalier_kv_gather_has_backend,
    };
    return espalier_kernels_match() ? &functions : nullptr;
}

espalier_mul_mat_function espalier_mul_mat_get_function(void) {
    return espalier_kernels_match() && espalier_feature_enabled(ESPALIER_FEATURE_MUL_MAT) ? espalier_mul_mat_compute : nullptr;
}
