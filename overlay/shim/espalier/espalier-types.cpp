#include "espalier-types.h"

#include <cstdio>
#include <cstring>

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
        fprintf(stderr, "ggml_validate_row_data: a block of type %d has a scale that is no number\n", type);
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
