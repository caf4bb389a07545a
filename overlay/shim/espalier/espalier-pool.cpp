#include "espalier-pool.h"

const espalier_pool_functions * espalier_pool_get_functions() {
    static const espalier_pool_functions functions = {
        espalier_pool_new,
        espalier_pool_free,
        espalier_pool_blocks_of_windows,
        espalier_pool_reserve,
        espalier_pool_share,
        espalier_pool_remove,
        espalier_pool_slide,
        espalier_pool_clear,
        espalier_pool_begin,
        espalier_pool_match_prefix,
        espalier_pool_cache_blocks,
        espalier_pool_end,
        espalier_pool_statistics,
        espalier_pool_held,
        espalier_pool_changes,
        espalier_pool_schedule,
        espalier_pool_block_of,
        espalier_pool_next_stop,
        espalier_pool_snapshot_begin,
        espalier_pool_snapshot_end,
        espalier_pool_restored,
        espalier_pool_distrust,
        espalier_schedule_order,
        espalier_sha256,
    };
    return espalier_kernels_match() ? &functions : nullptr;
}
