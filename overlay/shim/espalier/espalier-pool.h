// The KV block pool of the kernels, as functions that other libraries may call.
//
// The kernels are linked into the espalier library alone, which does not export their symbols. This
// table gives other libraries access to the pool. espalier_kernels.h documents the functions.

#pragma once

#include "espalier.h"

struct espalier_pool_functions {
    decltype(&::espalier_pool_new)               create;
    decltype(&::espalier_pool_free)              destroy;
    decltype(&::espalier_pool_blocks_of_windows) blocks_of_windows;
    decltype(&::espalier_pool_reserve)           reserve;
    decltype(&::espalier_pool_share)             share;
    decltype(&::espalier_pool_remove)            remove;
    decltype(&::espalier_pool_slide)             slide;
    decltype(&::espalier_pool_clear)             clear;
    decltype(&::espalier_pool_begin)             begin;
    decltype(&::espalier_pool_match_prefix)      match_prefix;
    decltype(&::espalier_pool_cache_blocks)      cache_blocks;
    decltype(&::espalier_pool_end)               end;
    decltype(&::espalier_pool_statistics)        statistics;
    decltype(&::espalier_pool_held)              held;
    decltype(&::espalier_pool_changes)           changes;
    decltype(&::espalier_pool_schedule)          schedule;
    decltype(&::espalier_pool_block_of)          block_of;
    decltype(&::espalier_pool_next_stop)         next_stop;
    decltype(&::espalier_pool_snapshot_begin)    snapshot_begin;
    decltype(&::espalier_pool_snapshot_end)      snapshot_end;
    decltype(&::espalier_pool_restored)          restored;
    decltype(&::espalier_pool_distrust)          distrust;
    decltype(&::espalier_schedule_order)         order;
    decltype(&::espalier_sha256)                 sha256;
};

// Returns NULL if the kernels are of another build than this header; then there is no pool.
ESPALIER_API const espalier_pool_functions * espalier_pool_get_functions();
