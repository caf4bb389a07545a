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
// The f16 cache's results are the same beside every other cache. --write-base FILE also writes them to a file, and
// --read-base FILE takes them from there: then the f16 cache decodes only the last eighth of the chunks, for the rates,
// and with --decode 0 nothing. Such a file is refused where its inputs are not those of this run; --digests names the
// model and the text:
//
//   ./quality --model m.gguf --text words.txt --digests "model 1a2b, text 3c4d" --values turbo4 --read-base f16
//
// Writes lines `progress DONE TOTAL`, in tokens, to stderr, and one JSON line to stdout. Rates are tokens per second of
// both caches, measured alternately. Bytes are those of one token in all layers. Exit code: 0 done, 1 failed, 2 usage.

#include "base_file.h"
#include "comparison.h"
#include "decoding.h"

#include <cmath>
#include <fstream>
#include <sstream>

struct quality_options {
    std::string model;
    std::string text;
    std::string keys   = "f16";
    std::string values = "f16";
    std::string write_base;
    std::string read_base;
    std::string digests;
    int context   = 512;
    int chunks    = 8;
    int haystacks = 3;
    int decode    = 32;
    int threads   = 1;
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
        : batch(step), context(new_context(model, params(options, keys, values))) {}

    void forget() { llama_memory_clear(llama_get_memory(context.get()), true); }

    // Removes everything from this position on.
    void forget_from(int position) { llama_memory_seq_rm(llama_get_memory(context.get()), 0, position, -1); }

    // Decodes `count` tokens of `some`, at most `step`, from `position` on. Those from `logits_from` on get logits, and
    // the last one in any case. Returns the seconds that it took.
    double decode(const llama_token * some, int count, int position, int logits_from) {
        batch.clear();
        for (int i = 0; i < count; i++) {
            batch.add(some[i], position + i, 0, i >= logits_from || i + 1 == count);
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
            decode(&token, 1, position, 0);
            sizes[position] = llama_state_seq_get_size(context.get(), 0);
        }
        forget();
        return sizes[1] - sizes[0];
    }

    // Number of tokens that are decoded at once.
    static constexpr int step = 512;

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

class quality {
  public:
    explicit quality(const quality_options & options)
        : options(options), model(load_model(options.model)), vocab(llama_model_get_vocab(model.get())),
          n_vocab(llama_vocab_n_tokens(vocab)), text(tokens_of(read_text())), chunks(count_chunks()), file(open_file()),
          row(n_vocab), base(needs_base() ? new_cache(GGML_TYPE_F16, GGML_TYPE_F16) : nullptr),
          asked(new_cache(type_named(options.keys), type_named(options.values))) {}

    comparison run() {
        comparison found;
        expect_tokens();
        if (options.decode > 0) {
            warm_up();
        }
        for (int chunk = 0; chunk < chunks; chunk++) {
            compare_chunk(found, chunk);
        }
        compare_decode(found);
        for (int number = 0; number < options.haystacks; number++) {
            look_for_needles(found, number);
        }
        count_bytes(found);
        return found;
    }

  private:
    int count_chunks() const {
        if (text.size() < size_t(options.context) + 1) {
            throw usage_error("the text has " + std::to_string(text.size()) + " tokens, which is less than --context");
        }
        return std::min(options.chunks, int((text.size() - 1) / options.context));
    }

    bool reads() const { return !options.read_base.empty(); }

    bool needs_base() const { return !reads() || options.decode > 0; }

    // The first chunk that both caches decode.
    int first_of_both() const {
        if (!reads()) {
            return 0;
        }
        return options.decode > 0 ? chunks - std::max(1, chunks / 8) : chunks;
    }

    std::unique_ptr<cache> new_cache(ggml_type keys, ggml_type values) const {
        return std::make_unique<cache>(model.get(), options, keys, values);
    }

    std::unique_ptr<base_file> open_file() const {
        const bool writes = !options.write_base.empty();
        if (!writes && !reads()) {
            return nullptr;
        }
        return std::make_unique<base_file>(writes ? options.write_base : options.read_base, inputs(), writes);
    }

    // Everything that the f16 cache's results depend on.
    std::string inputs() const {
        return "quality of f16, " + options.digests + ", vocabulary " + std::to_string(n_vocab) + ", context " +
               std::to_string(options.context) + ", chunks " + std::to_string(chunks) + ", haystacks " +
               std::to_string(options.haystacks) + ", threads " + std::to_string(options.threads);
    }

    // Sets the number of tokens that will be decoded, without the questions about the needles.
    void expect_tokens() {
        const size_t once     = options.decode > 0 ? std::min(cache::step, options.context) + options.decode : 0;
        const size_t of_asked = size_t(options.context) * (chunks + options.haystacks) + once;
        const size_t of_base  = reads() ? size_t(options.context) * (chunks - first_of_both()) + once : of_asked;
        tokens_expected = of_asked + of_base;
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
        const int count = llama_tokenize(vocab, words.data(), int(words.size()), found.data(), int(found.size()),
                                         false, false);
        if (count < 0) {
            throw std::runtime_error("cannot turn the text into tokens");
        }
        found.resize(count);
        return found;
    }

    // The first batch of a context allocates memory, which must not be part of a rate.
    void warm_up() {
        for (cache * one : { base.get(), asked.get() }) {
            const int count = std::min(cache::step, options.context);
            one->decode(text.data(), count, 0, 0);
            one->forget();
            advance(count);
        }
    }

    void compare_chunk(comparison & found, int index) {
        const llama_token * chunk = text.data() + size_t(index) * options.context;
        const bool both = index >= first_of_both();
        if (both) {
            base->forget();
        }
        asked->forget();
        for (int at = 0; at < options.context; at += cache::step) {
            const int count  = std::min(cache::step, options.context - at);
            const int judged = std::min(std::max(0, options.context / 2 - at), count); // the first one of the batch
            if (both) {
                found.base.seconds_of_prompts += base->decode(chunk + at, count, at, judged);
                advance(count);
            }
            const double seconds = asked->decode(chunk + at, count, at, judged);
            advance(count);
            if (both) {
                found.asked.seconds_of_prompts += seconds;
                found.prompt_tokens += count;
            }
            for (int i = judged; i < count; i++) {
                compare_logits(found, prediction_of_base(i), asked->logits(i), chunk[at + i + 1]);
            }
        }
    }

    // The f16 cache's next prediction: the one after token `i` of the batch. From the file also where the cache decodes
    // the chunk for the rates, so that the position in the file stays right.
    prediction prediction_of_base(int i) {
        prediction found = { row.data(), 0.0 };
        if (reads()) {
            file->read(&found.sum, sizeof(found.sum));
            file->read(row.data(), row.size() * sizeof(float));
            return found;
        }
        found.logits = base->logits(i);
        found.sum    = log_of_sum(found.logits, n_vocab);
        if (file) {
            file->write(&found.sum, sizeof(found.sum));
            file->write(found.logits, row.size() * sizeof(float));
        }
        return found;
    }

    void compare_logits(comparison & found, const prediction & from, const float * to, llama_token next) {
        const double to_sum = log_of_sum(to, n_vocab);
        found.divergences.push_back(divergence(from.logits, from.sum, to, to_sum, n_vocab));
        found.same += most_likely(from.logits, n_vocab) == most_likely(to, n_vocab);
        found.base.surprise  += from.sum - from.logits[next];
        found.asked.surprise += to_sum - to[next];
    }

    // Decodes one token at a time, after the last chunk.
    void compare_decode(comparison & found) {
        for (int i = 0; i < options.decode; i++) {
            found.base.seconds_of_decode  += base->decode(&text[i], 1, options.context + i, 0);
            found.asked.seconds_of_decode += asked->decode(&text[i], 1, options.context + i, 0);
        }
        found.decode_tokens = options.decode;
        advance(2 * options.decode);
    }

    void look_for_needles(comparison & found, int number) {
        const tokens hay = haystack(number);
        if (!reads()) {
            found.base.needles += needles_found(*base, hay, number);
        }
        found.asked.needles += needles_found(*asked, hay, number);
    }

    // Decodes facts with text between them, then asks one question after the other.
    int needles_found(cache & one, const tokens & hay, int number) {
        one.forget();
        for (int at = 0; at < int(hay.size()); at += cache::step) {
            const int count = std::min(cache::step, int(hay.size()) - at);
            one.decode(hay.data() + at, count, at, count);
            advance(count);
        }
        int right = 0;
        for (int place = 0; place < places; place++) {
            right += answers_right(one, int(hay.size()), number, place);
        }
        return right;
    }

    static const char * answer(int number, int place) { return answers[(place + number) % places]; }

    tokens question(int place) const { return tokens_of(std::string("\nnote: ") + names[place]); }

    tokens response(int number, int place) const { return tokens_of(std::string(" ") + answer(number, place)); }

    tokens haystack(int number) const {
        tokens facts[places];
        int    room = options.context - 32; // the question and its answer
        for (int place = 0; place < places; place++) {
            facts[place] = question(place);
            for (llama_token token : response(number, place)) { facts[place].push_back(token); }
            for (llama_token token : tokens_of(".")) { facts[place].push_back(token); }
            room -= int(facts[place].size());
        }
        const int piece = room / places;
        if (piece < 1) {
            throw usage_error("--context has no room for " + std::to_string(places) + " needles");
        }
        tokens hay;
        for (int place = 0; place < places; place++) {
            const size_t from = (size_t(number) * options.context + size_t(place) * piece) % (text.size() - piece);
            hay.insert(hay.end(), text.begin() + from, text.begin() + from + piece);
            hay.insert(hay.end(), facts[place].begin(), facts[place].end());
        }
        return hay;
    }

    bool answers_right(cache & one, int position, int number, int place) const {
        const tokens asked_for = question(place);
        const tokens expected  = response(number, place);
        tokens said = asked_for;
        said.insert(said.end(), expected.begin(), expected.end());
        one.decode(said.data(), int(said.size()), position, 0);
        bool right = true;
        for (size_t i = 0; i < expected.size(); i++) {
            right = right && most_likely(one.logits(int(asked_for.size() + i) - 1), n_vocab) == expected[i];
        }
        one.forget_from(position);
        return right;
    }

    // Counts the bytes of one token in each cache. The file ends with those of the f16 cache, and its needles.
    void count_bytes(comparison & found) {
        base_end end = end_of_base(found.base.needles);
        if (file && !reads()) {
            file->write(&end, sizeof(end));
            file->finish();
        }
        found.base.needles = int(end.needles);
        found.base.bytes   = size_t(end.bytes);
        found.asked.bytes  = asked->grows_by() - size_t(end.bytes_of_a_cell);
    }

    // A saved cell has its position besides K and V. Computed by comparing with values of twice the size (f32), whose
    // cells have an equal position.
    base_end end_of_base(int needles) {
        base_end end = {};
        if (reads()) {
            file->read(&end, sizeof(end));
            return end;
        }
        const std::unique_ptr<cache> wide = new_cache(GGML_TYPE_F32, GGML_TYPE_F32);
        const size_t grown  = base->grows_by();
        end.needles         = uint64_t(needles);
        end.bytes_of_a_cell = 2 * grown - wide->grows_by();
        end.bytes           = grown - end.bytes_of_a_cell;
        return end;
    }

    const quality_options options;
    model_ptr model;
    const llama_vocab * vocab;
    const int n_vocab;
    const tokens text;
    const int chunks;
    std::unique_ptr<base_file> file;
    std::vector<float> row; // of logits that were read from the file
    std::unique_ptr<cache> base; // null where nothing of it is computed
    std::unique_ptr<cache> asked;
    size_t tokens_done     = 0;
    size_t tokens_expected = 0;
};

static double rate(bool is_timed, int tokens, double seconds) { return is_timed ? tokens / seconds : 0.0; }

static void print_side(const char * name, const comparison & found, const side & one) {
    const bool   is_timed = found.decode_tokens > 0;
    const double judged = double(std::max<size_t>(1, found.divergences.size()));
    printf("\"%s\":{\"perplexity\":%.6g,\"prompt_rate\":%.6g,\"decode_rate\":%.6g,\"needles\":%d,\"bytes\":%zu}", name,
           std::exp(one.surprise / judged), rate(is_timed, found.prompt_tokens, one.seconds_of_prompts),
           rate(is_timed, found.decode_tokens, one.seconds_of_decode), one.needles, one.bytes);
}

static void print_found(const quality_options & options, const comparison & found) {
    printf("{\"keys\":\"%s\",\"values\":\"%s\",\"context\":%d,\"threads\":%d,\"judged\":%zu,\"needles\":%d,"
           "\"mean\":%.6g,\"median\":%.6g,\"p99\":%.6g,\"same\":%.6g,",
           options.keys.c_str(), options.values.c_str(), options.context, options.threads, found.divergences.size(),
           options.haystacks * places, mean_of(found.divergences), median_of(found.divergences),
           part_of(found.divergences, 0.99), found.same / double(std::max<size_t>(1, found.divergences.size())));
    print_side("base", found, found.base);
    printf(",");
    print_side("asked", found, found.asked);
    printf("}\n");
}

static void set_option(quality_options & options, const std::string & name, const char * value) {
    if      (name == "--model")      { options.model      = value; }
    else if (name == "--text")       { options.text       = value; }
    else if (name == "--keys")       { options.keys       = value; }
    else if (name == "--values")     { options.values     = value; }
    else if (name == "--write-base") { options.write_base = value; }
    else if (name == "--read-base")  { options.read_base  = value; }
    else if (name == "--digests")    { options.digests    = value; }
    else if (name == "--context")    { options.context    = parse_number(name, value, 256); }
    else if (name == "--chunks")     { options.chunks     = parse_number(name, value, 1); }
    else if (name == "--haystacks")  { options.haystacks  = parse_number(name, value, 0); }
    else if (name == "--decode")     { options.decode     = parse_number(name, value, 0); }
    else if (name == "--threads")    { options.threads    = parse_number(name, value, 1); }
    else                             { throw usage_error("unknown option " + name); }
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
    if (!options.write_base.empty() && !options.read_base.empty()) {
        throw usage_error("--write-base and --read-base cannot be used together");
    }
    if ((!options.write_base.empty() || !options.read_base.empty()) && options.digests.empty()) {
        throw usage_error("a file of the f16 cache's results needs --digests of the model and the text");
    }
    return options;
}

static int run(const quality_options & options) {
    llama_log_set(log_warnings, nullptr);
    ggml_backend_load_all();
    llama_backend_init();
    {
        quality one(options);
        print_found(options, one.run());
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
