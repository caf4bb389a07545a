/* Part of ../ffi.c: attention, gated delta nets and matrix products, of sizes whose results can be computed by hand. */
#include "espalier_kernels.h"
#include "espalier_mul_mat.h"

#include <stdio.h>

/* One token of one head that sees two cells alike: the result is the mean of their values. */
static void print_attention(void) {
    const float q = 1, k[2] = { 2, 2 }, v[2] = { 3, 5 };
    float out = 0;
    char memory[1 << 20];
    struct espalier_attention problem = { 0 };
    problem.q = &q;
    problem.out = &out;
    problem.cells[0].k = k;
    problem.cells[0].v = v;
    problem.cells[0].k_cell = problem.cells[0].v_cell = sizeof(float);
    problem.cells[0].count = 2;
    problem.key_size = problem.value_size = problem.tokens = problem.heads = problem.kv_heads = 1;
    problem.streams = problem.kv_streams = 1;
    problem.scale = 1;
    const size_t bytes = espalier_attention_work_size(&problem, 1);
    printf("attention.fits %d\n", bytes > 0 && bytes <= sizeof(memory));
    if (bytes > 0 && bytes <= sizeof(memory)) {
        espalier_attention_compute(&problem, 0, 1, memory);
        espalier_attention_merge(&problem, 0, 1, memory);
    }
    printf("attention.mean %g\n", out);
    espalier_attention_compute(NULL, 0, 1, memory);
    espalier_attention_merge(&problem, 1, 1, memory);
    const uint32_t blocks = 1;
    problem.cells[0].blocks = &blocks;
    printf("attention.paged %d\n", espalier_attention_work_size(&problem, 1) > 0);
    problem.cells[0].key_type = 12;
    printf("attention.unknown_type %zu\n", espalier_attention_work_size(&problem, 1));
    printf("attention.null %zu\n", espalier_attention_work_size(NULL, 1));
}

/* One token that reads what it has just written: beta is 1, and q is k. The state of cell 1 moves to cell 0; its first
 * column is decayed to a half, then replaced. */
static void print_gdn(void) {
    float k[16] = { 1 }, v[16], state[2 * 256], out[16] = { 0 };
    const float gate = -0.6931472f, beta = 1;
    int32_t source = 1;
    struct espalier_gdn problem = { 0 };
    for (int i = 0; i < 16; i++) {
        v[i] = (float) i;
    }
    for (int i = 0; i < 512; i++) {
        state[i] = i < 256 ? 7.0f : 2.0f;
    }
    problem.q = problem.k = k;
    problem.v = v;
    problem.gate = &gate;
    problem.beta = &beta;
    problem.states = state;
    problem.batch.sources = &source;
    problem.out = out;
    problem.size = 16;
    problem.gate_size = problem.heads = problem.key_heads = 1;
    problem.batch.cells = 2;
    problem.batch.tokens = problem.batch.seqs = problem.batch.moved = problem.batch.planes = 1;
    printf("gdn.is_supported %d\n", (int) espalier_gdn_is_supported(&problem));
    printf("gdn.computed %d\n", (int) espalier_gdn_compute(&problem, 0, 1));
    printf("gdn.out %.4g %.4g\n", out[0], out[15]);
    printf("gdn.state %.4g %.4g %.4g\n", state[15 * 16], state[15 * 16 + 1], state[256]);
    printf("gdn.unknown_thread %d\n", (int) espalier_gdn_compute(&problem, 1, 1));
    source = 2;
    printf("gdn.unknown_source %d\n", (int) espalier_gdn_compute(&problem, 0, 1));
    problem.size = 8;
    printf("gdn.unknown_size %d\n", (int) espalier_gdn_is_supported(&problem));
    printf("gdn.null %d\n", (int) espalier_gdn_is_supported(NULL));
    printf("gdn.null_compute %d\n", (int) espalier_gdn_compute(NULL, 0, 1));
}

/* One token whose output is the difference to the one before, which is large: the activation keeps it. */
static void print_gdn_convolution(void) {
    float x[16], kernel[32], state[16], out[16] = { 0 };
    struct espalier_gdn_convolution problem = { 0 };
    for (int i = 0; i < 16; i++) {
        x[i] = (float) (100 + i);
        state[i] = 50.0f;
        kernel[2 * i] = -1.0f;
        kernel[2 * i + 1] = 1.0f;
    }
    problem.x = x;
    problem.kernel = kernel;
    problem.states = state;
    problem.out = out;
    problem.channels = 16;
    problem.taps = 2;
    problem.batch.cells = problem.batch.moved = problem.batch.planes = 1;
    problem.batch.tokens = problem.batch.seqs = 1;
    printf("gdn_conv.is_supported %d\n", (int) espalier_gdn_convolution_is_supported(&problem));
    printf("gdn_conv.computed %d\n", (int) espalier_gdn_convolution_compute(&problem, 0, 1));
    printf("gdn_conv.out %.4g %.4g\n", out[0], out[15]);
    printf("gdn_conv.state %.4g %.4g\n", state[0], state[15]);
    printf("gdn_conv.unknown_thread %d\n", (int) espalier_gdn_convolution_compute(&problem, 1, 1));
    problem.taps = 1;
    printf("gdn_conv.unknown_taps %d\n", (int) espalier_gdn_convolution_is_supported(&problem));
    printf("gdn_conv.null %d\n", (int) espalier_gdn_convolution_is_supported(NULL));
    printf("gdn_conv.null_compute %d\n", (int) espalier_gdn_convolution_compute(NULL, 0, 1));
}

/* Two rows times two tokens: the scale of a block is 1, then the bytes of its values. */
static void print_mul_mat(void) {
    uint8_t weights[2][34] = { { 0, 0x3c, 1, 2 }, { 0, 0x3c, 0xff } }, tokens[2][34] = { { 0, 0x3c, 3, 5 }, { 0, 0x40, 7 } };
    float out[4] = { 0 };
    struct espalier_mul_mat problem = { 0 };
    problem.weights = weights;
    problem.activations = tokens;
    problem.out = out;
    problem.weights_row = problem.activations_token = 34;
    problem.out_token = 8;
    problem.size = 32;
    problem.rows = problem.tokens = 2;
    printf("mul_mat.computed %d\n", (int) espalier_mul_mat_compute(&problem, 0, 1));
    printf("mul_mat.out %g %g %g %g\n", out[0], out[1], out[2], out[3]);
    printf("mul_mat.unknown_thread %d\n", (int) espalier_mul_mat_compute(&problem, 1, 1));
    problem.size = 33;
    printf("mul_mat.unknown_size %d\n", (int) espalier_mul_mat_compute(&problem, 0, 1));
    printf("mul_mat.null %d\n", (int) espalier_mul_mat_compute(NULL, 0, 1));
}
