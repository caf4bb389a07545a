// The lower bound of a burst: the least time in which prompts with one shared prefix can be
// computed.
//
// The prefix is decoded once, in batches of the server's size; all other sequences get its cells by
// llama_memory_seq_cp, in one unified cache; then come one batch with the remaining tokens of all
// prompts, and the decode steps. No HTTP, no sampling, no queueing: a server cannot be faster.
#pragma once

#include "decoding.h"

class burst_lower_bound {
  public:
    explicit burst_lower_bound(const probe_options & options)
        : options(options), model(load_model(options.model)), context(make_context(options, model.get())),
          n_vocab(llama_vocab_n_tokens(llama_model_get_vocab(model.get()))), batch(batch_size(options)) {}

    // Returns milliseconds, one entry for each repeat.
    std::vector<double> run() {
        warm_up();
        std::vector<double> millis;
        for (int i = 0; i < options.repeat; i++) {
            llama_memory_clear(llama_get_memory(context.get()), true);
            millis.push_back(1000.0 * (run_prefix() + run_ends() + run_steps()));
        }
        return millis;
    }

  private:
    // The server's defaults, so that the matrices have the same shapes as in the server.
    static constexpr int SERVER_BATCH  = 2048;
    static constexpr int SERVER_UBATCH = 512;

    static int batch_size(const probe_options & options) {
        return std::max(SERVER_BATCH, options.seqs * options.prompt);
    }

    static context_ptr make_context(const probe_options & options, llama_model * model) {
        llama_context_params params = llama_context_default_params();
        const int cells = options.shared_prefix + options.seqs * (options.prompt + options.steps);
        params.n_ctx           = (cells + 255) / 256 * 256;
        params.n_batch         = batch_size(options);
        params.n_ubatch        = SERVER_UBATCH;
        params.n_seq_max       = options.seqs;
        params.n_threads       = options.threads;
        params.n_threads_batch = options.threads;
        params.kv_unified      = true;
        return new_context(model, params);
    }

    // Loads the weights into memory before the clock starts, as they are once a server reports that
    // it is ready.
    void warm_up() {
        batch.clear();
        batch.add(token_at(0, 0, n_vocab), 0, 0, true);
        decode_seconds(context.get(), batch.batch);
    }

    double run_prefix() {
        double seconds = 0.0;
        for (int begin = 0; begin < options.shared_prefix; begin += SERVER_BATCH) {
            batch.clear();
            const int end = std::min(begin + SERVER_BATCH, options.shared_prefix);
            for (int pos = begin; pos < end; pos++) {
                batch.add(token_at(0, pos, n_vocab), pos, 0, false);
            }
            seconds += decode_seconds(context.get(), batch.batch);
        }
        return seconds;
    }

    double run_ends() {
        llama_memory_t memory = llama_get_memory(context.get());
        batch.clear();
        for (int seq = 0; seq < options.seqs; seq++) {
            if (seq > 0) {
                llama_memory_seq_cp(memory, 0, seq, -1, -1);
            }
            for (int i = 0; i < options.prompt; i++) {
                const int pos = options.shared_prefix + i;
                batch.add(token_at(seq, pos, n_vocab), pos, seq, i + 1 == options.prompt);
            }
        }
        return decode_seconds(context.get(), batch.batch);
    }

    double run_steps() {
        double seconds = 0.0;
        for (int step = 0; step < options.steps; step++) {
            const int pos = options.shared_prefix + options.prompt + step;
            batch.clear();
            for (int seq = 0; seq < options.seqs; seq++) {
                batch.add(token_at(seq, pos, n_vocab), pos, seq, true);
            }
            seconds += decode_seconds(context.get(), batch.batch);
        }
        return seconds;
    }

    const probe_options options;
    model_ptr   model;
    context_ptr context;
    const int   n_vocab;
    probe_batch batch;
};

inline void print_lower_bound(const probe_options & options, const std::vector<double> & millis) {
    printf("{\"seqs\":%d,\"shared_prefix\":%d,\"prompt\":%d,\"steps\":%d,\"threads\":%d,\"repeat\":%d,"
           "\"lower_bound_ms_best\":%.3f,\"lower_bound_ms_median\":%.3f}\n",
           options.seqs, options.shared_prefix, options.prompt, options.steps, options.threads, options.repeat,
           smallest_of(millis), median_of(millis));
}
