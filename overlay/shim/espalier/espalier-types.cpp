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
    static const struct { const char * of_forks; const char * name; } renamed[] = {
        { "turbo2_tcq", "tcq2" },
        { "turbo3_tcq", "tcq3" },
    };
    static const struct { const char * name; int number; } types[] = {
#define ESPALIER_NAMED_TYPE(number, name, block, bytes) { name, number },
        ESPALIER_KV_TYPES(ESPALIER_NAMED_TYPE)
    };
    for (const auto & type : renamed) {
        if (strcmp(type.of_forks, name) == 0) {
            name = type.name;
        }
    }
    for (const auto & type : types) {
        if (strcmp(type.name, name) == 0) {
            return type.number;
        }
    }
    return -1;
}

static const struct { const char * variable; int most; } settings[] = {
    { "ESPALIER_KV_EDGE_LAYERS", 1024  },
    { "ESPALIER_KV_RECENT",      65536 },
    { "ESPALIER_KV_SINKS",       1024  },
};
static_assert(sizeof(settings)/sizeof(settings[0]) == ESPALIER_KV_SETTINGS, "by espalier_kv_setting");

// -1: not set, or out of range.
static int read_variable(enum espalier_kv_setting setting) {
    const auto & [variable, most] = settings[setting];
    const char * text = getenv(variable);
    if (text == nullptr) {
        return -1;
    }
    char *     end   = nullptr;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != 0 || value < 0 || value > most) {
        fprintf(stderr, "%s is `%s`, not an integer from 0 to %d: ignored\n", variable, text, most);
        return -1;
    }
    return (int) value;
}

int espalier_kv_variable(enum espalier_kv_setting setting, int otherwise) {
    static const int values[] = { read_variable(ESPALIER_KV_EDGE_LAYERS), read_variable(ESPALIER_KV_RECENT), read_variable(ESPALIER_KV_SINKS) };
    return values[setting] >= 0 ? values[setting] : otherwise;
}

int espalier_kv_clamp(enum espalier_kv_setting setting, int value) {
    return std::min(std::max(value, 0), settings[setting].most);
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

static void warn_of_old_name(const char * old_name, const char * name) {
    fprintf(stderr, "warning: %s is deprecated and will be removed in a later release; use %s\n", old_name, name);
}

void espalier_accept_old_variables(void) {
    static std::atomic<bool> was_done(false);
    if (was_done.exchange(true)) {
        return;
    }
    espalier_warn_of_variables();
    for (const auto & variable : renamed_variables) {
        const char * value = getenv(variable.old_name);
        if (value == nullptr) {
            continue;
        }
        warn_of_old_name(variable.old_name, variable.name);
        if (getenv(variable.name) == nullptr) {
            set_variable(variable.name, value);
        }
    }
}

const char * espalier_accept_old_key(const char * key) {
    for (const auto & variable : renamed_variables) {
        if (strcmp(variable.old_name, key) == 0) {
            warn_of_old_name(variable.old_name, variable.name);
            return variable.name;
        }
    }
    return key;
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
