#include "espalier-graph.h"

#include "espalier-attention.h"
#include "espalier.h"

#include "ggml-backend.h"

#include <cstring>

// ggml's plain CPU memory, the same mapped from a file, and the repacked form. Other CPU memory
// (AMX, KleidiAI, ...) comes with matrix kernels whose results have not been compared.
static bool lies_in_cpu_memory(const ggml_tensor * weight) {
    if (weight->buffer == nullptr) {
        return false;
    }
    const char * name = ggml_backend_buft_name(ggml_backend_buffer_get_type(weight->buffer));
    return strcmp(name, "CPU") == 0 || strcmp(name, "CPU_Mapped") == 0 || strcmp(name, "CPU_REPACK") == 0;
}

static bool has_only_cpu_devices() {
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        if (ggml_backend_dev_type(ggml_backend_dev_get(i)) != GGML_BACKEND_DEVICE_TYPE_CPU) {
            return false;
        }
    }
    return true;
}

// Queried from the backend and not from the compiler: with GGML_BACKEND_DL the CPU kernels are
// chosen at run time.
static const ggml_backend_feature * cpu_features() {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_reg_t reg    = device ? ggml_backend_dev_backend_reg(device) : nullptr;
    auto get_features = (ggml_backend_get_features_t)
        (reg ? ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features") : nullptr);
    return get_features ? get_features(reg) : nullptr;
}

static bool cpu_kernels_have(const char * name) {
    const ggml_backend_feature * feature = cpu_features();
    for (; feature != nullptr && feature->name != nullptr; feature++) {
        if (strcmp(feature->name, name) == 0) {
            return strcmp(feature->value, "0") != 0;
        }
    }
    return false;
}

static bool cpu_kernels_use_avx2() {
    return cpu_kernels_have("AVX2") && cpu_kernels_have("FMA") && cpu_kernels_have("F16C");
}

static bool may_be_flat(const ggml_tensor * weight, bool adapter_covers_weight) {
    // Devices and kernels are constant in a process, and this function runs for every layer of a
    // graph.
    static const bool only_cpu = has_only_cpu_devices();
    static const bool use_avx2 = cpu_kernels_use_avx2();

    espalier_gdn_output_facts facts = {};
    facts.weight_type           = weight->type;
    facts.weight_in_cpu_memory  = lies_in_cpu_memory(weight);
    facts.only_cpu_devices      = only_cpu;
    facts.cpu_kernels_use_avx2  = use_avx2;
    facts.adapter_covers_weight = adapter_covers_weight;
    return espalier_gdn_output_may_be_flat(&facts);
}

ggml_tensor * espalier_flatten_gdn_output(ggml_context * ctx, const ggml_tensor * weight, ggml_tensor * cur, bool adapter_covers_weight) {
    const bool is_one_sequence = cur->ne[2] == 1;
    if (is_one_sequence || !espalier_wants_flat_gdn_output() || !may_be_flat(weight, adapter_covers_weight)) {
        return cur;
    }
    return ggml_reshape_2d(ctx, cur, cur->ne[0], cur->ne[1] * cur->ne[2]);
}

void espalier_set_kv_blocks(ggml_tensor * attention, ggml_tensor * blocks) {
    const ggml_tensor * q = attention->src[0];
    const ggml_tensor * k = attention->src[1];
    GGML_ASSERT(attention->op == GGML_OP_FLASH_ATTN_EXT && attention->src[3] && !attention->src[ESPALIER_SRC_BLOCKS]);
    GGML_ASSERT(blocks->type == GGML_TYPE_I32 && blocks->ne[0] * 32 * ESPALIER_KV_BLOCK_SIZE >= k->ne[1]);
    GGML_ASSERT(blocks->ne[1] == q->ne[1] && q->ne[3] == 1);
    attention->src[ESPALIER_SRC_BLOCKS] = blocks;
}
