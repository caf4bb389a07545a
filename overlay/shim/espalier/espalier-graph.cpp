#include "espalier-graph.h"

#include "espalier-attention.h"
#include "espalier-gdn.h"
#include "espalier.h"

#include "ggml-backend.h"

#include <algorithm>
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

// The backend whose memory has the cells, which computes the node; "" if K is not read from a cache as it is.
static const char * backend_of_cells(const ggml_tensor * k) {
    const ggml_tensor * cache = k->view_src ? k->view_src : k;
    ggml_backend_dev_t device = cache->buffer ? ggml_backend_buft_get_device(ggml_backend_buffer_get_type(cache->buffer)) : nullptr;
    ggml_backend_reg_t reg    = device ? ggml_backend_dev_backend_reg(device) : nullptr;
    return reg ? ggml_backend_reg_name(reg) : "";
}

static bool uses_kv_gather(const ggml_tensor * attention, int32_t hint) {
    const ggml_tensor * q = attention->src[0];
    const ggml_tensor * k = attention->src[1];
    const ggml_tensor * v = attention->src[2];
    float bias_and_softcap[2];
    memcpy(bias_and_softcap, attention->op_params + 1, sizeof(bias_and_softcap));

    espalier_kv_gather_node node = {};
    node.key_type   = k->type;
    node.value_type = v->type;
    node.key_size   = (uint32_t) k->ne[0];
    node.value_size = (uint32_t) v->ne[0];
    node.heads      = (uint32_t) q->ne[2];
    node.kv_heads   = (uint32_t) k->ne[2];
    node.tokens     = (uint32_t) q->ne[1];
    node.cells      = (uint32_t) k->ne[1];
    node.is_biased  = bias_and_softcap[0] != 0.0f || bias_and_softcap[1] != 0.0f;

    const espalier_kv_gather_functions * functions = espalier_kv_gather_get_functions();
    return functions && functions->is_used(backend_of_cells(k), &node, (uint32_t) hint);
}

void espalier_set_kv_blocks(ggml_tensor * attention, ggml_tensor * blocks) {
    const ggml_tensor * q = attention->src[0];
    const ggml_tensor * k = attention->src[1];
    GGML_ASSERT(attention->op == GGML_OP_FLASH_ATTN_EXT && attention->src[3] && !attention->src[ESPALIER_SRC_BLOCKS]);
    GGML_ASSERT(blocks->type == GGML_TYPE_I32 && blocks->ne[0] * 32 * ESPALIER_KV_BLOCK_SIZE >= k->ne[1]);
    GGML_ASSERT(blocks->ne[1] == q->ne[1] && q->ne[3] == 1);
    attention->src[ESPALIER_SRC_BLOCKS] = blocks;

    const int32_t hint = espalier_get_kv_gather(blocks);
    if (hint > 0 && uses_kv_gather(attention, hint)) {
        ggml_flash_attn_ext_set_n_kv_max(attention, hint);
    }
}

uint32_t espalier_cells_of_blocks(const std::vector<uint32_t> & blocks) {
    const espalier_kv_gather_functions * functions = espalier_kv_gather_get_functions();
    return functions ? functions->cells(blocks.data(), blocks.size()) : UINT32_MAX;
}

int32_t espalier_kv_gather_of_step(uint32_t n_cells, uint32_t n_kv, uint32_t n_tokens) {
    const espalier_kv_gather_functions * functions = espalier_kv_gather_get_functions();
    return functions ? (int32_t) functions->hint(n_cells, n_kv, n_tokens) : 0;
}

// An input has no operation, and so no parameters of one.
void espalier_set_kv_gather(ggml_tensor * blocks, int32_t hint) {
    GGML_ASSERT(blocks->op == GGML_OP_NONE);
    blocks->op_params[0] = hint;
}

int32_t espalier_get_kv_gather(const ggml_tensor * blocks) {
    return blocks->op_params[0];
}

static bool is_finite(ggml_fp16_t value) {
    return (value & 0x7c00) != 0x7c00;
}

void espalier_check_kv_gather(const ggml_tensor * blocks, const ggml_tensor * mask) {
    const int32_t hint = espalier_get_kv_gather(blocks);
    if (hint == 0 || !mask || !mask->buffer) {
        return;
    }
    GGML_ASSERT(mask->type == GGML_TYPE_F16 && ggml_is_contiguous(mask) && ggml_backend_buffer_is_host(mask->buffer));
    const ggml_fp16_t * row = (const ggml_fp16_t *) mask->data;
    for (int64_t i = 0; i < ggml_nrows(mask); i++) {
        GGML_ASSERT(std::count_if(row, row + mask->ne[0], is_finite) <= hint && "--kv-gather: a token sees more cells than the hint says");
        row += mask->ne[0];
    }
}

// The tensors are f32, on a host, and of the sizes that the kernel assumes. All of this is constant in a context, so the
// graphs that are reserved are those that are computed.
static bool has_plain_states(const espalier_gdn_cells & cells, int64_t n_values) {
    const ggml_tensor * states = cells.states;
    return states->type == GGML_TYPE_F32 && ggml_is_contiguous(states) && states->ne[0] == n_values &&
        states->ne[1] == (int64_t) cells.n_cells * cells.n_planes && states->buffer && ggml_backend_buffer_is_host(states->buffer);
}

static bool may_be_in_place(const espalier_gdn_cells & cells, int64_t size, int64_t n_heads, int64_t n_seqs) {
    static const bool only_cpu = has_only_cpu_devices();
    const espalier_gdn_functions * kernel = espalier_gdn_get_functions();

    espalier_gdn problem = {};
    problem.size      = (uint32_t) size;
    problem.gate_size = 1;
    problem.heads     = (uint32_t) n_heads;
    problem.key_heads = 1; // the heads of every model are a multiple of its key heads
    problem.batch.tokens = 1;
    problem.batch.seqs   = (uint32_t) n_seqs;
    problem.batch.first  = cells.first;
    problem.batch.moved  = (uint32_t) cells.sources->ne[0];
    problem.batch.cells  = cells.n_cells;
    problem.batch.planes = cells.n_planes;

    return only_cpu && kernel && kernel->is_supported(&problem) && has_plain_states(cells, size * size * n_heads);
}

ggml_tensor * espalier_view_gdn_states(ggml_context * ctx, ggml_cgraph * gf, const espalier_gdn_cells & cells, int64_t size, int64_t n_heads, int64_t n_seqs) {
    ggml_tensor * states = cells.states;
    if (!may_be_in_place(cells, size, n_heads, n_seqs)) {
        return nullptr;
    }
    // As in build_rs(): an empty view if no row is zeroed, so that the graph has the same nodes.
    const bool is_zeroed = cells.zeroed >= 0;
    ggml_tensor * zeroed = ggml_view_1d(ctx, states, is_zeroed ? states->ne[0] : 0, is_zeroed ? cells.zeroed * states->nb[1] : 0);
    ggml_build_forward_expand(gf, ggml_fill_inplace(ctx, zeroed, 0.0f));

    const size_t row = ggml_row_size(states->type, size);
    return ggml_view_4d(ctx, states, size, size, n_heads, n_seqs, row, row * size, states->nb[1], cells.first * states->nb[1]);
}

void espalier_set_gdn_states(ggml_tensor * node, const espalier_gdn_cells & cells) {
    const ggml_tensor * q = node->src[0];
    const ggml_tensor * k = node->src[1];
    const ggml_tensor * v = node->src[2];
    GGML_ASSERT(node->op == GGML_OP_GATED_DELTA_NET && !node->src[ESPALIER_SRC_GDN_STATES] && !node->src[ESPALIER_SRC_GDN_SOURCES]);
    GGML_ASSERT(q->ne[0] == v->ne[0] && q->ne[1] == k->ne[1] && v->ne[1] % q->ne[1] == 0);
    GGML_ASSERT(q->ne[3] == v->ne[3] && k->ne[3] == v->ne[3] && node->op_params[ESPALIER_PARAM_GDN_PLANES] == (int32_t) cells.n_planes);

    // The output has no states.
    node->ne[1] = v->ne[2] * v->ne[3];
    node->nb[2] = node->nb[1] * node->ne[1];
    node->nb[3] = node->nb[2];
    node->src[ESPALIER_SRC_GDN_STATES]  = cells.states;
    node->src[ESPALIER_SRC_GDN_SOURCES] = cells.sources;
    node->op_params[ESPALIER_PARAM_GDN_FIRST] = (int32_t) cells.first;
    node->op_params[ESPALIER_PARAM_GDN_CELLS] = (int32_t) cells.n_cells;
}
