/* Part of ../ffi.c: sparse attention over a paged cache. */
#include "espalier_kv_gather.h"

#include <stdio.h>

#define GATHER_OFFSET(field) \
    printf("offset.kv_gather_node." #field " %zu\n", offsetof(struct espalier_kv_gather_node, field))

static void print_kv_gather_layout(void) {
    printf("size.kv_gather_node %zu\n", sizeof(struct espalier_kv_gather_node));
    GATHER_OFFSET(key_type);
    GATHER_OFFSET(value_type);
    GATHER_OFFSET(key_size);
    GATHER_OFFSET(value_size);
    GATHER_OFFSET(heads);
    GATHER_OFFSET(kv_heads);
    GATHER_OFFSET(tokens);
    GATHER_OFFSET(cells);
    GATHER_OFFSET(is_biased);
}

/* A token that sees three blocks of 64 cells, in a cache of 4,096 cells and in one of 512. */
static void print_kv_gather(void) {
    const uint32_t blocks[2] = { 5, 1 };
    const struct espalier_kv_gather_node node = { 1, 1, 128, 128, 8, 2, 1, 4096, 0 };
    const uint32_t cells = espalier_kv_gather_cells(blocks, 2);

    printf("kv_gather.cells %u\n", (unsigned) cells);
    printf("kv_gather.cells_of_none %u\n", (unsigned) espalier_kv_gather_cells(blocks, 0));
    printf("kv_gather.cells_of_null %u\n", (unsigned) espalier_kv_gather_cells(NULL, 2));
    printf("kv_gather.hint %u\n", (unsigned) espalier_kv_gather_hint(cells, 4096, 1));
    printf("kv_gather.hint_small %u\n", (unsigned) espalier_kv_gather_hint(cells, 512, 1));
    printf("kv_gather.used %d\n", (int) espalier_kv_gather_is_used("Vulkan", &node, 256));
    printf("kv_gather.used_on_cpu %d\n", (int) espalier_kv_gather_is_used("CPU", &node, 256));
    printf("kv_gather.used_null %d\n", (int) espalier_kv_gather_is_used("Vulkan", NULL, 256));
    printf("kv_gather.used_nameless %d\n", (int) espalier_kv_gather_is_used(NULL, &node, 256));
    printf("kv_gather.backend %d\n", (int) espalier_kv_gather_has_backend("Vulkan"));
    printf("kv_gather.backend_cpu %d\n", (int) espalier_kv_gather_has_backend("CPU"));
    printf("kv_gather.backend_null %d\n", (int) espalier_kv_gather_has_backend(NULL));
}
