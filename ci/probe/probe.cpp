// The gate's probe: decodes fixed tokens with a model and writes down every logit.
//
// It uses the public llama.h only, so that one source compiles against a stock build and against
// ours. Two builds agree if `cmp` finds their --out files equal.
//
//   c++ -std=c++17 -O2 ci/probe/probe.cpp -o probe -I"$TREE/include" -I"$TREE/ggml/include"
//       -L"$BUILD/bin" -lllama -lggml -lggml-base -Wl,-rpath,"$BUILD/bin"
//
//   ./probe --model m.gguf --seqs 8 --prompt 16 --steps 16 --threads 1 --out logits.bin
//   ./probe --model m.gguf --seqs 8 --prompt 64 --steps 32 --threads 1 --repeat 5
//
// --out FILE   f32 logits, native byte order: per prompt and per decode batch, one row of
//              n_vocab for each token, in batch order. First repeat only.
// --ragged     sequence s gets a prompt shorter by s % 3 tokens: odd shapes, for comparing.
//
// On stdout comes one JSON line: tokens per second over all sequences, best and median of the
// repeats; and milliseconds of one decode batch, best and median of them all. On a busy machine
// compare the best batch. With --out every prompt token has logits, without it the last of each
// sequence: for the speed of prompts leave --out away. Exit code: 0 done, 1 failed, 2 usage.

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
    bool ragged  = false;
};

struct probe_times {
    std::vector<double> prompt_rates; // tokens per second, one entry a repeat
    std::vector<double> decode_rates;
    std::vector<double> step_millis;  // one entry a decode batch, of all repeats
};

struct model_deleter   { void operator()(llama_model * model)     const { llama_model_free(model); } };
struct context_deleter { void operator()(llama_context * context) const { llama_free(context); } };
struct file_closer     { void operator()(FILE * file)             const { fclose(file); } };

using model_ptr   = std::unique_ptr<llama_model, model_deleter>;
using context_ptr = std::unique_ptr<llama_context, context_deleter>;
using file_ptr    = std::unique_ptr<FILE, file_closer>;

struct usage_error : std::runtime_error { using std::runtime_error::runtime_error; };

// Tokens are a fixed function of sequence and position, never sampled: a difference in one logit
// must not change what is computed after it.
static llama_token token_at(int seq, int pos, int n_vocab) {
    uint64_t x = (uint64_t(seq) << 32 | uint64_t(pos)) + 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return llama_token((x ^ (x >> 31)) % uint64_t(n_vocab));
}

static int prompt_length(const probe_options & options, int seq) {
    return options.ragged ? std::max(1, options.prompt - seq % 3) : options.prompt;
}

// Each sequence has a cache of its own, and llama.cpp wants its length in steps of 256.
static int padded_length(const probe_options & options) {
    return (options.prompt + options.steps + 255) / 256 * 256;
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

class probe {
  public:
    explicit probe(const probe_options & options)
        : options(options), model(load_model(options)), context(make_context(options, model.get())),
          n_vocab(llama_vocab_n_tokens(llama_model_get_vocab(model.get()))),
          batch(options.seqs * std::max(1, options.prompt)) {}

    probe_times run() {
        probe_times times;
        for (int i = 0; i < options.repeat; i++) {
            file_ptr file = i == 0 ? open_out() : nullptr;
            llama_memory_clear(llama_get_memory(context.get()), true);
            times.prompt_rates.push_back(run_prompt(file.get()));
            times.decode_rates.push_back(run_decode(file.get(), times.step_millis));
            finish(std::move(file));
        }
        return times;
    }

  private:
    static model_ptr load_model(const probe_options & options) {
        model_ptr model(llama_model_load_from_file(options.model.c_str(), llama_model_default_params()));
        if (!model) {
            throw std::runtime_error("cannot load the model " + options.model);
        }
        return model;
    }

    static context_ptr make_context(const probe_options & options, llama_model * model) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx           = options.seqs * padded_length(options);
        params.n_batch         = options.seqs * std::max(1, options.prompt);
        params.n_ubatch        = params.n_batch;
        params.n_seq_max       = options.seqs;
        params.n_threads       = options.threads;
        params.n_threads_batch = options.threads;
        context_ptr context(llama_init_from_model(model, params));
        if (!context) {
            throw std::runtime_error("cannot make a context");
        }
        return context;
    }

    double run_prompt(FILE * file) {
        batch.clear();
        for (int seq = 0; seq < options.seqs; seq++) {
            const int length = prompt_length(options, seq);
            for (int pos = 0; pos < length; pos++) {
                batch.add(token_at(seq, pos, n_vocab), pos, seq, file || pos + 1 == length);
            }
        }
        return batch.batch.n_tokens / decode(file);
    }

    double run_decode(FILE * file, std::vector<double> & step_millis) {
        double seconds = 0.0;
        for (int step = 0; step < options.steps; step++) {
            batch.clear();
            for (int seq = 0; seq < options.seqs; seq++) {
                const int pos = prompt_length(options, seq) + step;
                batch.add(token_at(seq, pos, n_vocab), pos, seq, true);
            }
            const double step_seconds = decode(file);
            step_millis.push_back(1000.0 * step_seconds);
            seconds += step_seconds;
        }
        return options.steps > 0 ? options.steps * options.seqs / seconds : 0.0;
    }

    // Seconds that the batch took. Writing its logits is not in them.
    double decode(FILE * file) {
        const auto start = std::chrono::steady_clock::now();
        if (llama_decode(context.get(), batch.batch) != 0) {
            throw std::runtime_error("llama_decode failed");
        }
        llama_synchronize(context.get());
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        if (file) {
            write_logits(file);
        }
        return elapsed.count();
    }

    void write_logits(FILE * file) {
        for (int i = 0; i < batch.batch.n_tokens; i++) {
            const float * row = batch.batch.logits[i] ? llama_get_logits_ith(context.get(), i) : nullptr;
            if (row && fwrite(row, sizeof(float), n_vocab, file) != size_t(n_vocab)) {
                throw std::runtime_error("cannot write " + options.out);
            }
        }
    }

    file_ptr open_out() {
        if (options.out.empty()) {
            return nullptr;
        }
        file_ptr file(fopen(options.out.c_str(), "wb"));
        if (!file) {
            throw std::runtime_error("cannot open " + options.out);
        }
        return file;
    }

    // A full disk often shows only when the buffer is flushed.
    void finish(file_ptr file) {
        if (file && fclose(file.release()) != 0) {
            throw std::runtime_error("cannot write " + options.out);
        }
    }

    const probe_options options;
    model_ptr   model;
    context_ptr context;
    const int   n_vocab;
    probe_batch batch;
};

static double median_of(std::vector<double> values) {
    if (values.empty()) {
        return 0.0;
    }
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

static double largest_of(const std::vector<double> & values) {
    return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
}

static double smallest_of(const std::vector<double> & values) {
    return values.empty() ? 0.0 : *std::min_element(values.begin(), values.end());
}

static void print_times(const probe_options & options, const probe_times & times) {
    printf("{\"seqs\":%d,\"prompt\":%d,\"steps\":%d,\"threads\":%d,\"repeat\":%d,"
           "\"prompt_tps_best\":%.3f,\"prompt_tps_median\":%.3f,"
           "\"decode_tps_best\":%.3f,\"decode_tps_median\":%.3f,"
           "\"step_ms_best\":%.4f,\"step_ms_median\":%.4f}\n",
           options.seqs, options.prompt, options.steps, options.threads, options.repeat,
           largest_of(times.prompt_rates), median_of(times.prompt_rates),
           largest_of(times.decode_rates), median_of(times.decode_rates),
           smallest_of(times.step_millis), median_of(times.step_millis));
}

static int parse_number(const std::string & name, const char * text, int at_least) {
    char * end = nullptr;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < at_least || value > 1 << 20) {
        throw usage_error(name + " wants a number from " + std::to_string(at_least) + ", not '" + text + "'");
    }
    return int(value);
}

static void set_option(probe_options & options, const std::string & name, const char * value) {
    if      (name == "--model")   { options.model   = value; }
    else if (name == "--out")     { options.out     = value; }
    else if (name == "--seqs")    { options.seqs    = parse_number(name, value, 1); }
    else if (name == "--prompt")  { options.prompt  = parse_number(name, value, 1); }
    else if (name == "--steps")   { options.steps   = parse_number(name, value, 0); }
    else if (name == "--threads") { options.threads = parse_number(name, value, 1); }
    else if (name == "--repeat")  { options.repeat  = parse_number(name, value, 1); }
    else                          { throw usage_error("unknown option " + name); }
}

static probe_options parse_options(int argc, char ** argv) {
    probe_options options;
    for (int i = 1; i < argc; i++) {
        const std::string name = argv[i];
        if (name == "--ragged") {
            options.ragged = true;
        } else if (i + 1 < argc) {
            set_option(options, name, argv[++i]);
        } else {
            throw usage_error(name + " is unknown or wants a value");
        }
    }
    if (options.model.empty()) {
        throw usage_error("--model FILE is required");
    }
    return options;
}

static void log_warnings(ggml_log_level level, const char * text, void *) {
    // A continuation has no level of its own; what it continues is mostly information.
    if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

static int run_probe(const probe_options & options) {
    llama_log_set(log_warnings, nullptr);
    ggml_backend_load_all();
    llama_backend_init();
    print_times(options, probe(options).run());
    llama_backend_free();
    return 0;
}

int main(int argc, char ** argv) {
    try {
        return run_probe(parse_options(argc, argv));
    } catch (const usage_error & error) {
        fprintf(stderr, "probe: %s\n", error.what());
        return 2;
    } catch (const std::exception & error) {
        fprintf(stderr, "probe: %s\n", error.what());
        return 1;
    }
}
