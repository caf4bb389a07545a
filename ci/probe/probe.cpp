// The gate's probe: decodes fixed tokens with a model and writes every logit to a file.
//
// It uses only the public llama.h, so that one source compiles against a stock build and against
// ours. Two builds agree if `cmp` finds their --out files equal.
//
//   c++ -std=c++17 -O2 ci/probe/probe.cpp -o probe -I"$TREE/include" -I"$TREE/ggml/include"
//       -L"$BUILD/bin" -lllama -lggml -lggml-base -Wl,-rpath,"$BUILD/bin"
//
//   ./probe --model m.gguf --seqs 8 --prompt 16 --steps 16 --threads 1 --out logits.bin
//   ./probe --model m.gguf --seqs 8 --prompt 64 --steps 32 --threads 1 --repeat 5
//
// --out FILE   f32 logits, native byte order: for each prompt and each decode batch, one row of
//              n_vocab values for each token, in batch order. First repeat only.
// --ragged     the prompt of sequence s is s % 3 tokens shorter: odd shapes, for comparisons.
// --first-seq S  the sequences are S, S + 1, ...: their tokens do not depend on which others are
//              decoded, so that a sequence can be compared with itself decoded alone.
// --reference  K and V in f32, without flash attention. With weights in f32 this is the least
//              rounding that llama.h offers.
//
//   ./probe --model m.gguf --seqs 16 --prompt 16 --steps 7 --threads 2 --shared-prefix 1600
//
// --shared-prefix P   the other mode, lower_bound.h: sequences that share their first P tokens.
//
//   ./probe --buffer-types
//
// --buffer-types   the third mode: writes {"buffer_types":[...]} to stdout: the types of buffers
//              that this build offers for weights on this CPU beside plain memory, such as AMX and
//              CPU_REPACK. Each has kernels of its own.
//
// The other modes write one JSON line to stdout: tokens per second over all sequences, best and
// median of the repeats; and milliseconds of one decode batch, best and median. On a busy
// machine compare the best batch. With --out every prompt token has logits, without it only the
// last one of each sequence: omit --out to measure prompt speed. Exit code: 0 done, 1 failed,
// 2 usage.

#include "decoding.h"
#include "lower_bound.h"

struct probe_times {
    std::vector<double> prompt_rates; // tokens per second, one entry for each repeat
    std::vector<double> decode_rates;
    std::vector<double> step_millis;  // one entry for each decode batch of all repeats
};

static int prompt_length(const probe_options & options, int seq) {
    return options.ragged ? std::max(1, options.prompt - (options.first_seq + seq) % 3) : options.prompt;
}

// Each sequence has its own cache, whose length llama.cpp requires in multiples of 256.
static int padded_length(const probe_options & options) {
    return (options.prompt + options.steps + 255) / 256 * 256;
}

class probe {
  public:
    explicit probe(const probe_options & options)
        : options(options), model(load_model(options.model)), context(make_context(options, model.get())),
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
    static context_ptr make_context(const probe_options & options, llama_model * model) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx           = options.seqs * padded_length(options);
        params.n_batch         = options.seqs * std::max(1, options.prompt);
        params.n_ubatch        = params.n_batch;
        params.n_seq_max       = options.seqs;
        params.n_threads       = options.threads;
        params.n_threads_batch = options.threads;
        if (options.reference) {
            params.type_k          = GGML_TYPE_F32;
            params.type_v          = GGML_TYPE_F32;
            params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        }
        return new_context(model, params);
    }

    double run_prompt(FILE * file) {
        batch.clear();
        for (int seq = 0; seq < options.seqs; seq++) {
            const int length = prompt_length(options, seq);
            for (int pos = 0; pos < length; pos++) {
                batch.add(token_at(options.first_seq + seq, pos, n_vocab), pos, seq, file || pos + 1 == length);
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
                batch.add(token_at(options.first_seq + seq, pos, n_vocab), pos, seq, true);
            }
            const double step_seconds = decode(file);
            step_millis.push_back(1000.0 * step_seconds);
            seconds += step_seconds;
        }
        return options.steps > 0 ? options.steps * options.seqs / seconds : 0.0;
    }

    // Returns the seconds that the batch took, without the time to write its logits.
    double decode(FILE * file) {
        const double seconds = decode_seconds(context.get(), batch.batch);
        if (file) {
            write_logits(file);
        }
        return seconds;
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

static double largest_of(const std::vector<double> & values) {
    return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
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

// Compiled-in instruction sets do not suffice: the operating system can refuse AMX to a process.
static void print_buffer_types() {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!device) {
        throw std::runtime_error("there is no CPU backend");
    }
    const auto types_of = (ggml_backend_dev_get_extra_bufts_t) ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts");
    const char * separator = "";
    printf("{\"buffer_types\":[");
    for (ggml_backend_buffer_type_t * type = types_of ? types_of(device) : nullptr; type && *type; type++) {
        printf("%s\"%s\"", separator, ggml_backend_buft_name(*type));
        separator = ",";
    }
    printf("]}\n");
}

static void set_option(probe_options & options, const std::string & name, const char * value) {
    if      (name == "--model")   { options.model   = value; }
    else if (name == "--out")     { options.out     = value; }
    else if (name == "--seqs")    { options.seqs    = parse_number(name, value, 1); }
    else if (name == "--prompt")  { options.prompt  = parse_number(name, value, 1); }
    else if (name == "--steps")   { options.steps   = parse_number(name, value, 0); }
    else if (name == "--threads") { options.threads = parse_number(name, value, 1); }
    else if (name == "--repeat")  { options.repeat  = parse_number(name, value, 1); }
    else if (name == "--first-seq")     { options.first_seq     = parse_number(name, value, 0); }
    else if (name == "--shared-prefix") { options.shared_prefix = parse_number(name, value, 1); }
    else                          { throw usage_error("unknown option " + name); }
}

static probe_options parse_options(int argc, char ** argv) {
    probe_options options;
    for (int i = 1; i < argc; i++) {
        const std::string name = argv[i];
        if (name == "--ragged") {
            options.ragged = true;
        } else if (name == "--reference") {
            options.reference = true;
        } else if (name == "--buffer-types") {
            options.buffer_types = true;
        } else if (i + 1 < argc) {
            set_option(options, name, argv[++i]);
        } else {
            throw usage_error(name + " is unknown or wants a value");
        }
    }
    if (options.model.empty() && !options.buffer_types) {
        throw usage_error("--model FILE is required");
    }
    return options;
}

static int run_probe(const probe_options & options) {
    llama_log_set(log_warnings, nullptr);
    ggml_backend_load_all();
    llama_backend_init();
    if (options.buffer_types) {
        print_buffer_types();
    } else if (options.shared_prefix > 0) {
        print_lower_bound(options, burst_lower_bound(options).run());
    } else {
        print_times(options, probe(options).run());
    }
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
