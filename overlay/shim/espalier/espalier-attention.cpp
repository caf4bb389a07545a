#include "espalier-attention.h"

#include "espalier.h"

#include "ggml.h"

#include <cstring>

// The layout of K, V and their mask that the kernel requires. Every graph that llama builds has it.
static bool has_plain_cells(const ggml_tensor * k, const ggml_tensor * v, const ggml_tensor * mask) {
    const bool rows  = k->nb[0] == ggml_type_size(k->type) && v->nb[0] == ggml_type_size(v->type);
    const bool alike = k->ne[1] == v->ne[1] && k->ne[2] == v->ne[2] && k->ne[3] == v->ne[3];
    const bool masks = !mask || (mask->type == GGML_TYPE_F16 && mask->nb[0] == sizeof(ggml_fp16_t) && mask->ne[2] == 1);

    return rows && alike && masks;
}

static bool has_plain_layout(const ggml_tensor * node) {
    const ggml_tensor * q = node->src[0];
    const ggml_tensor * const * residual = node->src + ESPALIER_SRC_RESIDUAL_K;

    return q->type == GGML_TYPE_F32 && q->nb[0] == sizeof(float) && ggml_is_contiguous(node) &&
        has_plain_cells(node->src[1], node->src[2], node->src[3]) && (!residual[0] || has_plain_cells(residual[0], residual[1], residual[2]));
}

static float parameter(const ggml_tensor * node, int i) {
    float value;
    memcpy(&value, node->op_params + i, sizeof(value));
    return value;
}

static espalier_attention_cells cells_of(const ggml_tensor * k, const ggml_tensor * v, const ggml_tensor * mask, const ggml_tensor * blocks) {
    espalier_attention_cells cells = {};

    cells.k = k->data;
    cells.v = v->data;
    cells.k_cell   = k->nb[1];
    cells.k_head   = k->nb[2];
    cells.k_stream = k->nb[3];
    cells.v_cell   = v->nb[1];
    cells.v_head   = v->nb[2];
    cells.v_stream = v->nb[3];
    cells.key_type   = k->type;
    cells.value_type = v->type;
    cells.count      = (uint32_t) k->ne[1];

    if (mask) {
        cells.mask         = mask->data;
        cells.mask_token   = mask->nb[1];
        cells.mask_stream  = mask->nb[3];
        cells.mask_streams = (uint32_t) mask->ne[3];
    }
    if (blocks) {
        cells.blocks       = (const uint32_t *) blocks->data;
        cells.blocks_token = blocks->nb[1];
    }

    return cells;
}

static espalier_attention problem_of(const ggml_tensor * node) {
    const ggml_tensor * q = node->src[0];
    const ggml_tensor * k = node->src[1];
    const ggml_tensor * v = node->src[2];
    const ggml_tensor * sinks = node->src[4];
    const ggml_tensor * const * residual = node->src + ESPALIER_SRC_RESIDUAL_K;

    espalier_attention problem = {};

    problem.q   = q->data;
    problem.out = (float *) node->data;
    problem.q_token  = q->nb[1];
    problem.q_head   = q->nb[2];
    problem.q_stream = q->nb[3];
    problem.key_size   = (uint32_t) k->ne[0];
    problem.value_size = (uint32_t) v->ne[0];
    problem.tokens     = (uint32_t) q->ne[1];
    problem.heads      = (uint32_t) q->ne[2];
    problem.streams    = (uint32_t) q->ne[3];
    problem.kv_heads   = (uint32_t) k->ne[2];
    problem.kv_streams = (uint32_t) k->ne[3];
    problem.scale    = parameter(node, 0);
    problem.max_bias = parameter(node, 1);
    problem.softcap  = parameter(node, 2);

    problem.cells[0] = cells_of(k, v, node->src[3], node->src[ESPALIER_SRC_BLOCKS]);
    if (residual[0]) {
        problem.cells[1] = cells_of(residual[0], residual[1], residual[2], nullptr);
    }
    if (sinks) {
        problem.sinks = (const float *) sinks->data;
    }

    return problem;
}

size_t espalier_flash_attn_ext_work_size(const ggml_tensor * node, int n_threads) {
    if (!has_plain_layout(node)) {
        return 0;
    }
    const espalier_attention_functions * kernel = espalier_attention_get_functions();
    const espalier_attention problem = problem_of(node);
    return kernel ? kernel->work_size(&problem, (uint32_t) n_threads) : 0;
}

void espalier_flash_attn_ext_compute(const ggml_tensor * node, int ith, int nth, void * work) {
    const espalier_attention problem = problem_of(node);
    espalier_attention_get_functions()->compute(&problem, (uint32_t) ith, (uint32_t) nth, work);
}

void espalier_flash_attn_ext_merge(const ggml_tensor * node, int ith, int nth, void * work) {
    const espalier_attention problem = problem_of(node);
    espalier_attention_get_functions()->merge(&problem, (uint32_t) ith, (uint32_t) nth, work);
}
