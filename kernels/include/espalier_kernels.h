/*
 * The C border of Espalier's Rust kernels. C99 and C++.
 *
 * Written by hand; kernels/tests/header.rs checks that it declares exactly what the library
 * exports, with the same numbers and layouts.
 *
 * Every function may be called from any thread. None throws, none aborts: a failure inside is
 * reported on stderr and the neutral value ("off") comes back.
 */
#ifndef ESPALIER_KERNELS_H
#define ESPALIER_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a signature, a number or a layout below changes. */
#define ESPALIER_KERNELS_ABI_VERSION 1u

/* The ABI version the library was built with; differs from the constant if header and library
 * are of different builds. */
uint32_t espalier_kernels_abi_version(void);

/* What Espalier does differently from stock llama.cpp. Everything is off until the environment
 * variable ESPALIER_ENABLE, a comma-separated list read once per process, names it. */
enum espalier_feature {
    ESPALIER_FEATURE_GDN_FLAT_OUTPUT = 0, /* "gdn-flat-output" */
};

/* 1 if the feature is on in this process, else 0; 0 for a number that no feature has. */
int32_t espalier_feature_enabled(enum espalier_feature feature);

/* Writes the comma-separated names of the enabled features, cut to fit `length` bytes and ended
 * by a NUL, to `buffer` (nothing if `length` is 0). Returns the length of the whole list in
 * bytes, without the NUL; 0 means that no feature is on. */
size_t espalier_features(char * buffer, size_t length);

/* What is known about one output projection of a gated delta net layer. Booleans are 0 or 1. */
struct espalier_gdn_output_facts {
    int32_t weight_type;           /* enum ggml_type of the weight */
    int32_t weight_in_cpu_memory;  /* the weight is in ggml's plain or repacked CPU memory */
    int32_t only_cpu_devices;      /* every device of the process is a CPU */
    int32_t cpu_kernels_use_avx2;  /* ggml's CPU kernels were built with AVX2, FMA and F16C */
    int32_t adapter_covers_weight; /* an active LoRA adapter has a pair for this weight */
};

/* 1 if gdn-flat-output is on and flattening this projection's input keeps every bit of its
 * output, else 0 (also for NULL). The first refusal for each reason is said on stderr. */
int32_t espalier_gdn_output_is_flat(const struct espalier_gdn_output_facts * facts);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_KERNELS_H */
