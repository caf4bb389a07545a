/*
 * Compiled against the header and the static library by tests/header.rs. Calls every function
 * and prints what Rust has to agree with, as `name value` lines.
 */
#include "espalier_kernels.h"

#include <stdio.h>

#define FACT_OFFSET(field) \
    printf("offset." #field " %zu\n", offsetof(struct espalier_gdn_output_facts, field))

static void print_layout(void) {
    printf("constant.abi_version %u\n", ESPALIER_KERNELS_ABI_VERSION);
    printf("constant.gdn_flat_output %d\n", (int) ESPALIER_FEATURE_GDN_FLAT_OUTPUT);
    printf("size.enum %zu\n", sizeof(enum espalier_feature));
    printf("size.facts %zu\n", sizeof(struct espalier_gdn_output_facts));
    FACT_OFFSET(weight_type);
    FACT_OFFSET(weight_in_cpu_memory);
    FACT_OFFSET(only_cpu_devices);
    FACT_OFFSET(cpu_kernels_use_avx2);
    FACT_OFFSET(adapter_covers_weight);
}

static void print_calls(void) {
    const struct espalier_gdn_output_facts q8_0 = { 8, 1, 1, 1, 0 };
    const struct espalier_gdn_output_facts f16  = { 1, 1, 1, 1, 0 };
    char names[64];
    const size_t length = espalier_features(names, sizeof(names));

    printf("call.abi_version %u\n", (unsigned) espalier_kernels_abi_version());
    printf("call.enabled %d\n", (int) espalier_feature_enabled(ESPALIER_FEATURE_GDN_FLAT_OUTPUT));
    printf("call.features_length %zu\n", length);
    printf("call.features [%s]\n", names);
    printf("call.flat_q8_0 %d\n", (int) espalier_gdn_output_is_flat(&q8_0));
    printf("call.flat_f16 %d\n", (int) espalier_gdn_output_is_flat(&f16));
    printf("call.flat_null %d\n", (int) espalier_gdn_output_is_flat(NULL));
}

int main(void) {
    print_layout();
    print_calls();
    return 0;
}
