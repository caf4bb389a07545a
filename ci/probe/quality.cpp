// Cost of a KV cache type: runs the same model with an f16 cache and with the requested one, on the same tokens.
//
// It uses only the public llama.h.
//
//   c++ -std=c++17 -O2 ci/probe/quality.cpp -o quality -I"$TREE/include" -I"$TREE/ggml/include"
//       -L"$BUILD/bin" -lllama -lggml -lggml-base -Wl,-rpath,"$BUILD/bin"
//   ./quality --model m.gguf --text words.txt --keys q8_0 --values turbo4 --context 2048 --chunks 8 --threads 2
//
// The text is cut into chunks of --context tokens. The predictions after each token of the second half of a chunk are
// compared, as in upstream's llama-perplexity: the Kullback-Leibler divergence from the f16 cache's probabilities,
// whether both have the same most likely token, and the perplexity of each. Then come needles: facts among other text,
// one in each sixteenth of the context, with questions about them at its end. A needle is found if each token of its
// answer is the most likely one.
//
// With --decode 0 nothing is timed: there is no warm-up, and both rates are 0.
//
// Writes lines `progress DONE TOTAL`, in tokens, to stderr, and one JSON line to stdout. Rates are tokens per second of
// both caches, measured alternately. Bytes are those of one token in all layers. Exit code: 0 done, 1 failed, 2 usage.

#include "common.h"

#include <cmath>
#include <fstream>
#include <sstream>

struct quality_options {
    std::string model;
    std::string text;
    std::string keys   = "f16";
    std::string values = "f16";
    int context = 512;
    int chunks  = 8;
    int scenes  = 3;
    int decode  = 32;
    int threads = 1;
};

using tokens = std::vector<llama_token>;

// Names and their answers. Each haystack uses all of them, one for each place, and rotates the answers by its index.
static const char * const names[]   = { "value", "table", "result", "string", "branch", "window", "message", "object",
                                        "number", "system", "module", "server", "memory", "library", "version", "program" };
static const char * const answers[] = { "first", "using", "other", "after", "common", "simple", "default", "current",
                                        "local", "public", "second", "single", "empty", "special", "remote", "standard" };
static const int places = sizeof(names) / sizeof(names[0]);

static ggml_type type_named(const std::string & name) {
    for (int type = 0; type < GGML_TYPE_COUNT; type++) {
        const char * found = ggml_type_name(ggml_type(type));
        if (found && name == found) {
            return ggml_type(type);
        }
    }
    throw usage_error("there is no type '" + name + "'");
}

// A context of the model with one pair of KV cache types.
class cache {
  public:
    cache(llama_model * model, const quality_options & options, ggml_type keys, ggml_type values)
        : n_vocab(llama_vocab_n_tokens(llama_model_get_vocab(model))), batch(step),
          context(new_context(model, params(options, keys, values))) {}

    void forget() { llama_memory_clear(llama_get_memory(context.get()), true); }

    // Removes everything from this position on.
    void forget_from(int position) { llama_memory_seq_rm(llama_get_memory(context.get()), 0, position, -1); }

    // Decodes `count` tokens of `some`, at most `step`, from `position` on. Returns the seconds that it took.
    double decode(const llama_token * some, int count, int position, bool with_logits) {
        batch.clear();
        for (int i = 0; i < count; i++) {
            batch.add(some[i], position + i, 0, with_logits || i + 1 == count);
        }
        return decode_seconds(context.get(), batch.batch);
    }

    const float * logits(int i) const { return llama_get_logits_ith(context.get(), i); }

    // Bytes by which a saved sequence grows with one more token.
    size_t grows_by() {
        forget();
        const llama_token token = 1;
        size_t sizes[2];
        for (int position = 0; position < 2; position++) {
            decode(&token, 1, position, false);
            sizes[position] = llama_state_seq_get_size(context.get(), 0);
        }
        forget();
        return sizes[1] - sizes[0];
    }

    // Number of tokens that are decoded at once.
    static const int step = 512;
    const int n_vocab;

  private:
    static llama_context_params params(const quality_options & options, ggml_type keys, ggml_type values) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx           = (options.context + options.decode + 255) / 256 * 256;
        params.n_batch         = step;
        params.n_ubatch        = step;
        params.n_threads       = options.threads;
        params.n_threads_batch = options.threads;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        params.type_k          = keys;
        params.type_v          = values;
        return params;
    }

    probe_batch batch;
    context_ptr context;
};

static int most_likely(const float * logits, int n_vocab) {
    return int(std::max_element(logits, logits + n_vocab) - logits);
}

// Natural logarithm of the softmax denominator (log-sum-exp of the logits).
static double log_of_sum(const float * logits, int n_vocab) {
    const double largest = *std::max_element(logits, logits + n_vocab);
    double sum = 0.0;
    for (int i = 0; i < n_vocab; i++) {
        sum += std::exp(logits[i] - largest);
    }
    return largest + std::log(sum);
}

static double divergence(const float * from, double from_sum, const float * to, double to_sum, int n_vocab) {
    double sum = 0.0;
    for (int i = 0; i < n_vocab; i++) {
        const double log_from = from[i] - from_sum;
        sum += std::exp(log_from) * (log_from - (to[i] - to_sum));
    }
    // Rounding can make the divergence of equal distributions slightly negative.
    return std::max(0.0, sum);
}

struct side {
    double seconds_of_prompts = 0.0;
    double seconds_of_decode  = 0.0;
    double surprise = 0.0; // sum of -log(probability of the next token)
    int    needles  = 0;
};

struct comparison {
    side base;
    side asked;
    std::vector<double> divergences;
    int same = 0; // number of equal most likely tokens
    int prompt_tokens = 0;
    int decode_tokens = 0;
};

class quality {
  public:
    explicit quality(const quality_options & options)
        : options(options), model(load_model(options.model)), vocab(llama_model_get_vocab(model.get())), text(tokens_of(read_text())),
          base(model.get(), options, GGML_TYPE_F16, GGML_TYPE_F16),
          asked(model.get(), options, type_named(options.keys), type_named(options.values)), n_vocab(base.n_vocab) {
        if (text.size() < size_t(options.context) + 1) {
            throw usage_error("the text has " + std::to_string(text.size()) + " tokens, which is less than --context");
        }
    }

    comparison run() {
        comparison found;
        const int chunks = std::min(options.chunks, int((text.size() - 1) / options.context));
        expect_tokens(chunks);
        if (options.decode > 0) {
            warm_up();
        }
        for (int chunk = 0; chunk < chunks; chunk++) {
            compare_chunk(found, text.data() + size_t(chunk) * options.context);
        }
        compare_decode(found);
        for (int scene = 0; scene < options.scenes; scene++) {
            look_for_needles(found, scene);
        }
        return found;
    }

    size_t bytes_of_base()  { return base.grows_by()  - bytes_of_a_cell(); }
    size_t bytes_of_asked() { return asked.grows_by() - bytes_of_a_cell(); }

  private:
    // Sets the number of tokens that will be decoded, without the questions about the needles.
    void expect_tokens(int chunks) {
        const int warm_up = options.decode > 0 ? std::min(cache::step, options.context) : 0;
        tokens_expected = 2 * (size_t(options.context) * (chunks + options.scenes) + warm_up + options.decode);
    }

    // Adds tokens that one of the caches has decoded, and reports the progress.
    void advance(int count) {
        tokens_done += count;
        fprintf(stderr, "progress %zu %zu\n", std::min(tokens_done, tokens_expected), tokens_expected);
    }

    std::string read_text() const {
        std::ifstream file(options.text, std::ios::binary);
        if (!file) {
            throw std::runtime_error("cannot read " + options.text);
        }
        std::stringstream all;
        all << file.rdbuf();
        return all.str();
    }

    tokens tokens_of(const std::string & words) const {
        tokens found(words.size() + 1);
        const int count = llama_tokenize(vocab, words.data(), int(words.size()), found.data(), int(found.size()), false, false);
        if (count < 0) {
            throw std::runtime_error("cannot turn the text into tokens");
        }
        found.resize(count);
        return found;
    }

    // The first batch of a context allocates memory, which must not be part of a rate.
    void warm_up() {
        for (cache * one : { &base, &asked }) {
            const int count = std::min(cache::step, options.context);
            one->decode(text.data(), count, 0, true);
            one->forget();
            advance(count);
        }
    }

    void compare_chunk(comparison & found, const llama_token * chunk) {
        base.forget();
        asked.forget();
        for (int at = 0; at < options.context; at += cache::step) {
            const int  count  = std::min(cache::step, options.context - at);
            const bool judged = at + count > options.context / 2;
            found.base.seconds_of_prompts  += base.decode(chunk + at, count, at, judged);
            found.asked.seconds_of_prompts += asked.decode(chunk + at, count, at, judged);
            found.prompt_tokens += count;
            advance(2 * count);
            for (int i = std::max(0, options.context / 2 - at); judged && i < count; i++) {
                compare_logits(found, base.logits(i), asked.logits(i), chunk[at + i + 1]);
            }
        }
    }

    void compare_logits(comparison & found, const float * from, const float * to, llama_token next) {
        const double from_sum = log_of_sum(from, n_vocab);
        const double to_sum   = log_of_sum(to, n_vocab);
        found.divergences.push_back(divergence(from, from_sum, to, to_sum, n_vocab));
        found.same += most_likely(from, n_vocab) == most_likely(to, n_vocab);
        found.base.surprise  += from_sum - from[next];
        found.asked.surprise += to_sum - to[next];
    }

    // Decodes one token at a time, after the last chunk.
    void compare_decode(comparison & found) {
        for (int i = 0; i < options.decode; i++) {
            found.base.seconds_of_decode  += base.decode(&text[i], 1, options.context + i, true);
            found.asked.seconds_of_decode += asked.decode(&text[i], 1, options.context + i, true);
        }
        found.decode_tokens = options.decode;
        advance(2 * options.decode);
    }

    // Decodes facts with text between them, then asks one question after the other.
    void look_for_needles(comparison & found, int scene) {
        const tokens hay = haystack(scene);
        for (cache * one : { &base, &asked }) {
            one->forget();
            for (int at = 0; at < int(hay.size()); at += cache::step) {
                const int count = std::min(cache::step, int(hay.size()) - at);
                one->decode(hay.data() + at, count, at, false);
                advance(count);
            }
        }
        for (int place = 0; place < places; place++) {
            found.base.needles  += answers_right(base, int(hay.size()), scene, place);
            found.asked.needles += answers_right(asked, int(hay.size()), scene, place);
        }
    }

    static const char * answer(int scene, int place) { return answers[(place + scene) % places]; }

    tokens question(int place) const { return tokens_of(std::string("\nnote: ") + names[place]); }

    tokens response(int scene, int place) const { return tokens_of(std::string(" ") + answer(scene, place)); }

    tokens haystack(int scene) const {
        tokens facts[places];
        int    room = options.context - 32; // the question and its answer
        for (int place = 0; place < places; place++) {
            facts[place] = question(place);
            for (llama_token token : response(scene, place)) { facts[place].push_back(token); }
            for (llama_token token : tokens_of(".")) { facts[place].push_back(token); }
            room -= int(facts[place].size());
        }
        const int piece = room / places;
        if (piece < 1) {
            throw usage_error("--context has no room for " + std::to_string(places) + " needles");
        }
        tokens hay;
        for (int place = 0; place < places; place++) {
            const size_t from = (size_t(scene) * options.context + size_t(place) * piece) % (text.size() - piece);
            hay.insert(hay.end(), text.begin() + from, text.begin() + from + piece);
            hay.insert(hay.end(), facts[place].begin(), facts[place].end());
        }
        return hay;
    }

    bool answers_right(cache & one, int position, int scene, int place) const {
        const tokens asked_for = question(place);
        const tokens expected  = response(scene, place);
        tokens said = asked_for;
        said.insert(said.end(), expected.begin(), expected.end());
        one.decode(said.data(), int(said.size()), position, true);
        bool right = true;
        for (size_t i = 0; i < expected.size(); i++) {
            right = right && most_likely(one.logits(int(asked_for.size() + i) - 1), n_vocab) == expected[i];
        }
        one.forget_from(position);
        return right;
    }

    // A saved cell has its position besides K and V. Computed by comparing with values of twice the size (f32), whose
    // cells have an equal position.
    size_t bytes_of_a_cell() {
        cache wide(model.get(), options, GGML_TYPE_F32, GGML_TYPE_F32);
        return 2 * base.grows_by() - wide.grows_by();
    }

    const quality_options options;
    model_ptr model;
    const llama_vocab * vocab;
    const tokens text;
    cache base;
    cache asked;
    const int n_vocab;
    size_t tokens_done     = 0;
    size_t tokens_expected = 0;
};

static double mean_of(const std::vector<double> & values) {
    double sum = 0.0;
    for (double value : values) {
        sum += value;
    }
    return values.empty() ? 0.0 : sum / double(values.size());
}

static double part_of(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0.0 : values[std::min(values.size() - 1, size_t(part * double(values.size())))];
}

static double rate(bool is_timed, int tokens, double seconds) { return is_timed ? tokens / seconds : 0.0; }

static void print_side(const char * name, const comparison & found, const side & one, size_t bytes) {
    const bool   is_timed = found.decode_tokens > 0;
    const double judged = double(std::max<size_t>(1, found.divergences.size()));
    printf("\"%s\":{\"perplexity\":%.6g,\"prompt_rate\":%.6g,\"decode_rate\":%.6g,\"needles\":%d,\"bytes\":%zu}", name,
           std::exp(one.surprise / judged), rate(is_timed, found.prompt_tokens, one.seconds_of_prompts),
           rate(is_timed, found.decode_tokens, one.seconds_of_decode), one.needles, bytes);
}

static void print_found(const quality_options & options, const comparison & found, size_t bytes_of_base, size_t bytes_of_asked) {
    printf("{\"keys\":\"%s\",\"values\":\"%s\",\"context\":%d,\"threads\":%d,\"judged\":%zu,\"needles\":%d,"
           "\"mean\":%.6g,\"median\":%.6g,\"p99\":%.6g,\"same\":%.6g,",
           options.keys.c_str(), options.values.c_str(), options.context, options.threads, found.divergences.size(),
           options.scenes * places, mean_of(found.divergences), median_of(found.divergences),
           part_of(found.divergences, 0.99), found.same / double(std::max<size_t>(1, found.divergences.size())));
    print_side("base", found, found.base, bytes_of_base);
    printf(",");
    print_side("asked", found, found.asked, bytes_of_asked);
    printf("}\n");
}

static void set_option(quality_options & options, const std::string & name, const char * value) {
    if      (name == "--model")   { options.model   = value; }
    else if (name == "--text")    { options.text    = value; }
    else if (name == "--keys")    { options.keys    = value; }
    else if (name == "--values")  { options.values  = value; }
    else if (name == "--context") { options.context = parse_number(name, value, 256); }
    else if (name == "--chunks")  { options.chunks  = parse_number(name, value, 1); }
    else if (name == "--scenes")  { options.scenes  = parse_number(name, value, 0); }
    else if (name == "--decode")  { options.decode  = parse_number(name, value, 0); }
    else if (name == "--threads") { options.threads = parse_number(name, value, 1); }
    else                          { throw usage_error("unknown option " + name); }
}

static quality_options parse_options(int argc, char ** argv) {
    quality_options options;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            throw usage_error(std::string(argv[i]) + " is unknown or wants a value");
        }
        set_option(options, argv[i], argv[i + 1]);
    }
    if (options.model.empty() || options.text.empty()) {
        throw usage_error("--model FILE and --text FILE are required");
    }
    return options;
}

static int run(const quality_options & options) {
    llama_log_set(log_warnings, nullptr);
    ggml_backend_load_all();
    llama_backend_init();
    {
        quality one(options);
        const comparison found = one.run();
        const size_t bytes_of_base = one.bytes_of_base();
        print_found(options, found, bytes_of_base, one.bytes_of_asked());
    }
    llama_backend_free();
    return 0;
}

int main(int argc, char ** argv) {
    try {
        return run(parse_options(argc, argv));
    } catch (const usage_error & error) {
        fprintf(stderr, "quality: %s\n", error.what());
        return 2;
    } catch (const std::exception & error) {
        fprintf(stderr, "quality: %s\n", error.what());
        return 1;
    }
}
