#include "espalier-gdn.h"

#include "espalier.h"

#include "ggml.h"

static espalier_gdn_batch batch_of(const ggml_tensor * node) {
    const ggml_tensor * v       = node->src[2];
    const ggml_tensor * sources = node->src[ESPALIER_SRC_GDN_SOURCES];

    espalier_gdn_batch batch = {};

    batch.sources = (const int32_t *) sources->data;
    batch.moved   = (uint32_t) sources->ne[0];
    batch.tokens  = (uint32_t) v->ne[2];
    batch.seqs    = (uint32_t) v->ne[3];
    batch.first   = (uint32_t) node->op_params[ESPALIER_PARAM_GDN_FIRST];
    batch.cells   = (uint32_t) node->op_params[ESPALIER_PARAM_GDN_CELLS];
    batch.planes  = (uint32_t) node->op_params[ESPALIER_PARAM_GDN_PLANES];

    return batch;
}

static espalier_gdn problem_of(const ggml_tensor * node) {
    const ggml_tensor * q    = node->src[0];
    const ggml_tensor * k    = node->src[1];
    const ggml_tensor * v    = node->src[2];
    const ggml_tensor * gate = node->src[3];
    const ggml_tensor * beta = node->src[4];

    espalier_gdn problem = {};

    problem.q      = q->data;
    problem.k      = k->data;
    problem.v      = v->data;
    problem.gate   = (const float *) gate->data;
    problem.beta   = (const float *) beta->data;
    problem.states = (float *) node->src[ESPALIER_SRC_GDN_STATES]->data;
    problem.out    = (float *) node->data;
    problem.batch  = batch_of(node);
    problem.q_head  = q->nb[1];
    problem.q_token = q->nb[2];
    problem.q_seq   = q->nb[3];
    problem.k_head  = k->nb[1];
    problem.k_token = k->nb[2];
    problem.k_seq   = k->nb[3];
    problem.v_head  = v->nb[1];
    problem.v_token = v->nb[2];
    problem.v_seq   = v->nb[3];
    problem.size      = (uint32_t) v->ne[0];
    problem.gate_size = (uint32_t) gate->ne[0];
    problem.heads     = (uint32_t) v->ne[1];
    problem.key_heads = (uint32_t) q->ne[1];

    return problem;
}

bool espalier_gdn_compute_node(const ggml_tensor * node, int ith, int nth) {
    const espalier_gdn_functions * kernel = espalier_gdn_get_functions();
    const espalier_gdn problem = problem_of(node);
    return kernel && kernel->compute(&problem, (uint32_t) ith, (uint32_t) nth) != 0;
}
