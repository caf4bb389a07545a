// The gate's second probe: the error of flash attention on the CPU against the same sums in double precision.
//
// It uses only the public ggml.h, so that one source compiles against a stock build and against ours. Each case is one
// operation on random values. Its reference is computed from the dequantized K and V, so the error does not include the
// cost of quantizing K and V, but does include that of quantizing Q or of summing in half precision.
//
//   c++ -std=c++17 -O2 ci/probe/attention.cpp -o attention -I"$TREE/ggml/include"
//       -L"$BUILD/bin" -lggml -lggml-base -Wl,-rpath,"$BUILD/bin"
//   ./attention
//
// Writes one JSON line for each case to stdout: types, values in a row of K and of V, tokens; "error", the root of the
// mean squared difference over the root of the mean squared reference; and "bits", a hash of the result. Exit code: 0
// done, 1 failed.

#include "ggml-backend.h"
#include "ggml.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

static const int heads    = 4;
static const int kv_heads = 2;
// Not a multiple of any kernel's tile size.
static const int cells    = 437;

struct attention_case {
    ggml_type keys;
    ggml_type values;
    int key_size;
    int value_size;
    int tokens;
};

// Upstream has one path for few tokens and one for many.
static const int token_counts[] = { 1, 5, 70 };

static const int head_sizes[][2] = {
    { 40, 40 },   { 64, 64 },   { 72, 72 },   { 80, 80 },   { 96, 96 },   { 112, 112 }, { 128, 128 },
    { 192, 128 }, { 192, 192 }, { 256, 256 }, { 320, 256 }, { 512, 512 }, { 576, 512 },
};

static const ggml_type types[][2] = {
    { GGML_TYPE_F32,  GGML_TYPE_F32  }, { GGML_TYPE_F16,  GGML_TYPE_F16  }, { GGML_TYPE_BF16,   GGML_TYPE_BF16   },
    { GGML_TYPE_Q8_0, GGML_TYPE_Q8_0 }, { GGML_TYPE_Q4_0, GGML_TYPE_Q4_0 }, { GGML_TYPE_Q4_1,   GGML_TYPE_Q4_1   },
    { GGML_TYPE_Q5_0, GGML_TYPE_Q5_0 }, { GGML_TYPE_Q5_1, GGML_TYPE_Q5_1 }, { GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_NL },
    { GGML_TYPE_Q8_0, GGML_TYPE_F16  }, { GGML_TYPE_F16,  GGML_TYPE_Q8_0 }, { GGML_TYPE_Q8_0,   GGML_TYPE_Q4_0   },
    { GGML_TYPE_F32,  GGML_TYPE_Q8_0 },
};

struct context_deleter { void operator()(ggml_context * context) const { ggml_free(context); } };
struct backend_deleter { void operator()(ggml_backend_t backend) const { ggml_backend_free(backend); } };
struct buffer_deleter  { void operator()(ggml_backend_buffer_t buffer) const { ggml_backend_buffer_free(buffer); } };

using context_ptr = std::unique_ptr<ggml_context, context_deleter>;
using backend_ptr = std::unique_ptr<ggml_backend, backend_deleter>;
using buffer_ptr  = std::unique_ptr<ggml_backend_buffer, buffer_deleter>;

// Generates the same values everywhere: std::normal_distribution differs between standard libraries.
class random_numbers {
  public:
    explicit random_numbers(uint32_t seed) : bits(seed) {}

    std::vector<float> gaussian(size_t count) {
        std::vector<float> numbers(count);
        for (float & number : numbers) {
            const double radius = std::sqrt(-2.0 * std::log((bits() + 1.0) / 4294967297.0));
            number = float(radius * std::cos(2.0 * 3.14159265358979323846 * bits() / 4294967296.0));
        }
        return numbers;
    }

  private:
    std::mt19937 bits;
};

static void set(ggml_tensor * tensor, const std::vector<uint8_t> & bytes) {
    ggml_backend_tensor_set(tensor, bytes.data(), 0, bytes.size());
}

// Encodes rows in the type's format.
static std::vector<uint8_t> encoded(ggml_type type, const std::vector<float> & numbers, int row) {
    std::vector<uint8_t> bytes(ggml_row_size(type, row) * (numbers.size() / row));
    ggml_quantize_chunk(type, numbers.data(), bytes.data(), 0, numbers.size() / row, row, nullptr);
    return bytes;
}

static std::vector<float> decoded(ggml_type type, const std::vector<uint8_t> & bytes, size_t count) {
    std::vector<float> numbers(count);
    if (type == GGML_TYPE_F32) {
        memcpy(numbers.data(), bytes.data(), bytes.size());
    } else {
        ggml_get_type_traits(type)->to_float(bytes.data(), numbers.data(), count);
    }
    return numbers;
}

// Q, K, V and mask of a case, as the operation reads them (bytes) and as the reference does (floats).
struct problem {
    explicit problem(const attention_case & c)
        : c(c), random(c.key_size * 1000 + c.tokens), q(random.gaussian(size_t(c.key_size) * c.tokens * heads)),
          k_bytes(encoded(c.keys, random.gaussian(size_t(c.key_size) * cells * kv_heads), c.key_size)),
          v_bytes(encoded(c.values, random.gaussian(size_t(c.value_size) * cells * kv_heads), c.value_size)),
          k(decoded(c.keys, k_bytes, size_t(c.key_size) * cells * kv_heads)),
          v(decoded(c.values, v_bytes, size_t(c.value_size) * cells * kv_heads)) {}

    // The last token attends to every cell, and each token before it to one less.
    int seen_by(int token) const { return cells - (c.tokens - 1 - token); }

    float scale() const { return 1.0f / std::sqrt(float(c.key_size)); }

    const attention_case c;
    random_numbers random;
    const std::vector<float>   q;
    const std::vector<uint8_t> k_bytes;
    const std::vector<uint8_t> v_bytes;
    const std::vector<float>   k;
    const std::vector<float>   v;
};

// One row of the result in double precision, not yet divided by the sum of its weights, which is returned.
static double weighted_sum(const problem & p, int token, int head, std::vector<double> & row) {
    const int     kv_head = head / (heads / kv_heads);
    const float * q       = &p.q[(size_t(head) * p.c.tokens + token) * p.c.key_size];
    double        sum     = 0.0;
    for (int cell = 0; cell < p.seen_by(token); cell++) {
        const float * k = &p.k[(size_t(kv_head) * cells + cell) * p.c.key_size];
        const float * v = &p.v[(size_t(kv_head) * cells + cell) * p.c.value_size];
        double score = 0.0;
        for (int i = 0; i < p.c.key_size; i++) {
            score += double(q[i]) * double(k[i]);
        }
        // Scores of these inputs are far below the overflow of exp, so no maximum is subtracted.
        const double weight = std::exp(score * double(p.scale()));
        sum += weight;
        for (int i = 0; i < p.c.value_size; i++) {
            row[i] += weight * double(v[i]);
        }
    }
    return sum;
}

// The values are in the order of the operation's result: values of a row, heads, tokens.
static std::vector<double> reference(const problem & p) {
    std::vector<double> result;
    std::vector<double> row(p.c.value_size);
    for (int token = 0; token < p.c.tokens; token++) {
        for (int head = 0; head < heads; head++) {
            std::fill(row.begin(), row.end(), 0.0);
            const double sum = weighted_sum(p, token, head, row);
            for (const double value : row) {
                result.push_back(value / sum);
            }
        }
    }
    return result;
}

static std::vector<uint8_t> mask_of(const problem & p) {
    std::vector<float> mask(size_t(cells) * p.c.tokens, 0.0f);
    for (int token = 0; token < p.c.tokens; token++) {
        std::fill(&mask[size_t(cells) * token] + p.seen_by(token), &mask[size_t(cells) * token] + cells, -INFINITY);
    }
    return encoded(GGML_TYPE_F16, mask, cells);
}

static std::vector<uint8_t> bytes_of(const std::vector<float> & numbers) {
    std::vector<uint8_t> bytes(numbers.size() * sizeof(float));
    memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
}

static context_ptr new_context() {
    const ggml_init_params params = { 16 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true };
    context_ptr context(ggml_init(params));
    if (!context) {
        throw std::runtime_error("no memory");
    }
    return context;
}

static std::vector<float> computed(ggml_backend_t backend, const problem & p) {
    const context_ptr owner   = new_context();
    ggml_context *    context = owner.get();
    ggml_tensor *     q       = ggml_new_tensor_3d(context, GGML_TYPE_F32, p.c.key_size, p.c.tokens, heads);
    ggml_tensor *     k       = ggml_new_tensor_3d(context, p.c.keys, p.c.key_size, cells, kv_heads);
    ggml_tensor *     v       = ggml_new_tensor_3d(context, p.c.values, p.c.value_size, cells, kv_heads);
    ggml_tensor *     mask    = ggml_new_tensor_2d(context, GGML_TYPE_F16, cells, p.c.tokens);
    ggml_tensor *     result  = ggml_flash_attn_ext(context, q, k, v, mask, p.scale(), 0.0f, 0.0f);
    ggml_prec_set_acc(result, GGML_PREC_F32);
    ggml_cgraph * graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, result);
    const buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(context, backend));

    set(q, bytes_of(p.q));
    set(k, p.k_bytes);
    set(v, p.v_bytes);
    set(mask, mask_of(p));
    if (ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS) {
        throw std::runtime_error("the operation failed");
    }
    std::vector<float> numbers(ggml_nelements(result));
    ggml_backend_tensor_get(result, numbers.data(), 0, ggml_nbytes(result));
    return numbers;
}

static double error_of(const std::vector<float> & numbers, const std::vector<double> & expected) {
    double apart = 0.0;
    double size  = 0.0;
    for (size_t i = 0; i < expected.size(); i++) {
        apart += (numbers[i] - expected[i]) * (numbers[i] - expected[i]);
        size  += expected[i] * expected[i];
    }
    return std::sqrt(apart / size);
}

// FNV-1a.
static uint64_t hash_of(const std::vector<float> & numbers) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (const uint8_t byte : bytes_of(numbers)) {
        hash = (hash ^ byte) * 0x100000001b3ull;
    }
    return hash;
}

static void print_case(ggml_backend_t backend, const attention_case & c) {
    const problem            p(c);
    const std::vector<float> numbers = computed(backend, p);
    printf("{\"keys\":\"%s\",\"values\":\"%s\",\"key_size\":%d,\"value_size\":%d,\"tokens\":%d,"
           "\"error\":%.6e,\"bits\":\"%016llx\"}\n",
           ggml_type_name(c.keys), ggml_type_name(c.values), c.key_size, c.value_size, c.tokens,
           error_of(numbers, reference(p)), (unsigned long long) hash_of(numbers));
}

static bool has_whole_blocks(const attention_case & c) {
    return c.key_size % ggml_blck_size(c.keys) == 0 && c.value_size % ggml_blck_size(c.values) == 0;
}

static void print_cases_of(ggml_backend_t backend, ggml_type keys, ggml_type values) {
    for (const auto & size : head_sizes) {
        for (const int tokens : token_counts) {
            const attention_case c = { keys, values, size[0], size[1], tokens };
            if (has_whole_blocks(c)) {
                print_case(backend, c);
            }
        }
    }
}

// After upstream's types come those that one build may have and the other not.
static const int first_other_type = GGML_TYPE_Q2_0 + 1;

static void print_cases(ggml_backend_t backend) {
    for (const auto & type : types) {
        print_cases_of(backend, type[0], type[1]);
    }
    for (int type = first_other_type; type < GGML_TYPE_COUNT; type++) {
        if (ggml_blck_size(ggml_type(type)) > 0) {
            print_cases_of(backend, ggml_type(type), ggml_type(type));
            print_cases_of(backend, GGML_TYPE_Q8_0, ggml_type(type));
        }
    }
}

int main() {
    try {
        ggml_backend_load_all();
        const backend_ptr backend(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
        if (!backend) {
            throw std::runtime_error("there is no backend for the processor");
        }
        print_cases(backend.get());
        return 0;
    } catch (const std::exception & error) {
        fprintf(stderr, "attention: %s\n", error.what());
        return 1;
    }
}
