#include "espalier-mul-mat.h"

#include "espalier.h"

#include "ggml.h"

#include <cstdint>

// One matrix of weights for all tokens, whose output is contiguous.
static bool has_plain_layout(const ggml_tensor * node) {
    const ggml_tensor * weights = node->src[0];
    const ggml_tensor * input   = node->src[1];

    const bool types  = weights->type == GGML_TYPE_Q8_0 && input->type == GGML_TYPE_F32;
    const bool matrix = weights->ne[2] == 1 && weights->ne[3] == 1 && ggml_is_contiguous(node);
    const bool fits   = weights->ne[0] <= UINT32_MAX && weights->ne[1] <= UINT32_MAX && ggml_nrows(node) <= UINT32_MAX;

    return types && matrix && fits;
}

static espalier_mul_mat problem_of(const ggml_tensor * node, const void * activations) {
    const ggml_tensor * weights = node->src[0];

    espalier_mul_mat problem = {};

    problem.weights           = weights->data;
    problem.activations       = activations;
    problem.out               = (float *) node->data;
    problem.weights_row       = weights->nb[1];
    problem.activations_token = ggml_row_size(GGML_TYPE_Q8_0, weights->ne[0]);
    problem.out_token         = node->ne[0] * sizeof(float);
    problem.size   = (uint32_t) weights->ne[0];
    problem.rows   = (uint32_t) weights->ne[1];
    problem.tokens = (uint32_t) ggml_nrows(node);

    return problem;
}

bool espalier_mul_mat_compute_node(const ggml_tensor * node, const void * activations, int ith, int nth) {
    static const espalier_mul_mat_function compute = espalier_mul_mat_get_function();
    if (!compute || !has_plain_layout(node)) {
        return false;
    }
    const espalier_mul_mat problem = problem_of(node, activations);
    return compute(&problem, (uint32_t) ith, (uint32_t) nth) != 0;
}
