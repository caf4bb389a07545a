// Shared by the modes of the probe: options, owning pointers, batches, tokens.
#pragma once

#include "llama.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct probe_options {
    std::string model;
    std::string out;
    int  seqs    = 8;
    int  prompt  = 16;
    int  steps   = 16;
    int  threads = 1;
    int  repeat  = 1;
    int  shared_prefix = 0;
    int  first_seq = 0;
    bool ragged    = false;
    bool reference = false;
    bool buffer_types = false;
};

struct model_deleter   { void operator()(llama_model * model)     const { llama_model_free(model); } };
struct context_deleter { void operator()(llama_context * context) const { llama_free(context); } };
struct file_closer     { void operator()(FILE * file)             const { fclose(file); } };

using model_ptr   = std::unique_ptr<llama_model, model_deleter>;
using context_ptr = std::unique_ptr<llama_context, context_deleter>;
using file_ptr    = std::unique_ptr<FILE, file_closer>;

struct usage_error : std::runtime_error { using std::runtime_error::runtime_error; };

// Tokens are a fixed function of sequence and position and never sampled: a difference in one logit must not change the
// tokens that follow.
inline llama_token token_at(int seq, int pos, int n_vocab) {
    uint64_t x = (uint64_t(seq) << 32 | uint64_t(pos)) + 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return llama_token((x ^ (x >> 31)) % uint64_t(n_vocab));
}

class probe_batch {
  public:
    explicit probe_batch(int capacity) : batch(llama_batch_init(capacity, 0, 1)) {}
    ~probe_batch() { llama_batch_free(batch); }
    probe_batch(const probe_batch &) = delete;
    probe_batch & operator=(const probe_batch &) = delete;

    void clear() { batch.n_tokens = 0; }

    void add(llama_token token, int pos, int seq, bool wants_logits) {
        const int i = batch.n_tokens++;
        batch.token[i]     = token;
        batch.pos[i]       = pos;
        batch.n_seq_id[i]  = 1;
        batch.seq_id[i][0] = seq;
        batch.logits[i]    = wants_logits;
    }

    llama_batch batch;
};

inline model_ptr load_model(const std::string & file) {
    model_ptr model(llama_model_load_from_file(file.c_str(), llama_model_default_params()));
    if (!model) {
        throw std::runtime_error("cannot load the model " + file);
    }
    return model;
}

inline context_ptr new_context(llama_model * model, const llama_context_params & params) {
    context_ptr context(llama_init_from_model(model, params));
    if (!context) {
        throw std::runtime_error("cannot make a context");
    }
    return context;
}

// Decodes the batch and returns the seconds that it took.
inline double decode_seconds(llama_context * context, const llama_batch & batch) {
    const auto start = std::chrono::steady_clock::now();
    if (llama_decode(context, batch) != 0) {
        throw std::runtime_error("llama_decode failed");
    }
    llama_synchronize(context);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return elapsed.count();
}

inline double median_of(std::vector<double> values) {
    if (values.empty()) {
        return 0.0;
    }
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline double smallest_of(const std::vector<double> & values) {
    return values.empty() ? 0.0 : *std::min_element(values.begin(), values.end());
}

inline int parse_number(const std::string & name, const char * text, int at_least) {
    char * end = nullptr;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < at_least || value > 1 << 20) {
        throw usage_error(name + " wants a number from " + std::to_string(at_least) + ", not '" + text + "'");
    }
    return int(value);
}

inline void log_warnings(ggml_log_level level, const char * text, void *) {
    // A continuation line has no level of its own; the line that it continues is usually informational.
    if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}
