#include "espalier-types.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define ESPALIER_DEFINE_TYPE(number, name, block, bytes)                                             \
    void espalier_type_##number##_to_float(const void * x, float * y, int64_t k) {                   \
        espalier_kv_decode(number, x, y, (size_t) k);                                                \
    }                                                                                                \
    void espalier_type_##number##_from_float(const float * x, void * y, int64_t k) {                 \
        espalier_kv_encode(number, x, y, (size_t) k);                                                \
    }                                                                                                \
    void espalier_type_##number##_vec_dot(int n, float * s, size_t, const void * x, size_t, const void * y, size_t, int) { \
        *s = espalier_kv_dot(number, x, (const float *) y, (size_t) n);                              \
    }
ESPALIER_KV_TYPES(ESPALIER_DEFINE_TYPE)

static size_t values_of(int type, size_t nbytes) {
    switch (type) {
#define ESPALIER_VALUES_OF(number, name, block, bytes) case number: return nbytes / (bytes) * (block);
        ESPALIER_KV_TYPES(ESPALIER_VALUES_OF)
        default: return 0;
    }
}

bool espalier_type_validate(int type, const void * rows, size_t nbytes) {
    const bool is_valid = espalier_kv_is_finite(type, rows, values_of(type, nbytes)) != 0;
    if (!is_valid) {
        fprintf(stderr, "ggml_validate_row_data: a block of type %d has a scale that is NaN or infinite\n", type);
    }
    return is_valid;
}

uint64_t espalier_type_fingerprint(int type) {
    return espalier_kv_fingerprint(type);
}

int espalier_type_of_name(const char * name) {
    static const struct { const char * name; int number; } types[] = {
#define ESPALIER_NAMED_TYPE(number, name, block, bytes) { name, number },
        ESPALIER_KV_TYPES(ESPALIER_NAMED_TYPE)
        { "turbo2_tcq", 206 },
        { "turbo3_tcq", 208 },
    };
    for (const auto & type : types) {
        if (strcmp(type.name, name) == 0) {
            return type.number;
        }
    }
    return -1;
}

// An integer setting from 0 to `most`: the value of an environment variable, until a caller sets another.
class setting {
public:
    setting(const char * variable, long most) : most(most), value(0), was_given(false) {
        const char * asked = getenv(variable);
        if (asked == nullptr) {
            return;
        }
        char *     end    = nullptr;
        const long number = strtol(asked, &end, 10);
        if (end == asked || *end != 0 || number < 0 || number > most) {
            fprintf(stderr, "%s is `%s`, not an integer from 0 to %ld: ignored\n", variable, asked, most);
            return;
        }
        set(number);
    }

    void set(long asked) {
        value     = (int) std::min(std::max(asked, 0l), most);
        was_given = true;
    }

    // Sets the value unless it was set before.
    void suggest(int asked) { value = was_given ? value.load() : asked; }

    int get() const { return value; }

private:
    const long        most;
    std::atomic<int>  value;
    std::atomic<bool> was_given;
};

static setting & edge_layers() {
    static setting layers("ESPALIER_KV_EDGE_LAYERS", 1024);
    return layers;
}

static setting & recent_cells() {
    static setting cells("ESPALIER_KV_RECENT", 65536);
    return cells;
}

static setting & sink_cells() {
    static setting cells("ESPALIER_KV_SINKS", 1024);
    return cells;
}

int espalier_edge_layers(void) {
    return edge_layers().get();
}

void espalier_keep_edge_layers(int layers) {
    edge_layers().set(layers);
}

struct espalier_kv_exact_cells espalier_kv_exact(void) {
    return { recent_cells().get(), sink_cells().get() };
}

void espalier_keep_recent(int cells) {
    recent_cells().set(cells);
}

void espalier_keep_sinks(int cells) {
    sink_cells().set(cells);
}

static const struct espalier_kv_quality qualities[] = {
    { "safe",     "q8_0",   "turbo4", 32 },
    { "balanced", "turbo4", "tcq3",   32 },
    { "small",    "turbo4", "tcq2",   32 }, // fewer bits cost far more quality in K than in V
};

const struct espalier_kv_quality * espalier_kv_quality_of_name(const char * name) {
    for (const auto & quality : qualities) {
        if (strcmp(quality.name, name) == 0) {
            return &quality;
        }
    }
    return nullptr;
}

static std::atomic<const struct espalier_kv_quality *> quality_given{ nullptr };

void espalier_keep_kv_quality(const struct espalier_kv_quality * quality) {
    quality_given = quality;
    recent_cells().suggest(quality->recent);
}

const char * espalier_kv_quality_given(void) {
    const struct espalier_kv_quality * quality = quality_given;
    return quality ? quality->name : "";
}

bool espalier_quality_chose_k(const char * type) {
    const struct espalier_kv_quality * quality = quality_given;
    return quality && !espalier_cache_type_was_given('K') && strcmp(quality->type_k, type) == 0;
}

static const struct { const char * old_name; const char * name; } renamed_variables[] = {
    { "LLAMA_KV_PAGED",       "LLAMA_ARG_KV_PAGED"       },
    { "LLAMA_PREFILL_BUDGET", "LLAMA_ARG_PREFILL_BUDGET" },
    { "LLAMA_MAX_QUEUED",     "LLAMA_ARG_MAX_QUEUED"     },
    { "LLAMA_ALLOW_PRIORITY", "LLAMA_ARG_ALLOW_PRIORITY" },
};

static void set_variable(const char * name, const char * value) {
#ifdef _WIN32
    _putenv_s(name, value);
#else
    setenv(name, value, 1);
#endif
}

void espalier_accept_old_variables(void) {
    static std::atomic<bool> was_done(false);
    if (was_done.exchange(true)) {
        return;
    }
    for (const auto & variable : renamed_variables) {
        const char * value = getenv(variable.old_name);
        if (value == nullptr) {
            continue;
        }
        fprintf(stderr, "warning: %s is deprecated and will be removed in a later release; use %s\n", variable.old_name, variable.name);
        if (getenv(variable.name) == nullptr) {
            set_variable(variable.name, value);
        }
    }
}

static std::atomic<bool> & cache_type_was_given(char what) {
    static std::atomic<bool> of_k(false), of_v(false);
    return what == 'K' ? of_k : of_v;
}

void espalier_note_cache_type(char what) {
    cache_type_was_given(what) = true;
}

bool espalier_cache_type_was_given(char what) {
    return cache_type_was_given(what);
}

static std::string describe_qualities() {
    std::string help = "KV cache types that were measured together, on CPUs:";
    for (const auto & quality : qualities) {
        help += std::string("\n- ") + quality.name + ": -ctk " + quality.type_k + " -ctv " + quality.type_v +
                " --kv-recent " + std::to_string(quality.recent);
    }
    return help + "\neach of these options overrides it when given (default: none, i.e. f16)";
}

const char * espalier_kv_quality_help(void) {
    static const std::string help = describe_qualities();
    return help.c_str();
}
