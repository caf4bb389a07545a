// The server's part of the paged KV cache, and chunked prefill.
//
// Included by tools/server/server-context.cpp after its server_slot; the patches only call it. `server_t` is that
// file's server_context_impl, of which espalier_server is a friend; everything runs on the thread that decodes.

#pragma once

#include "espalier-admission.h"
#include "espalier-server-class.h"
#include "espalier-step.h"
#include "espalier-tenancy.h"
#include "espalier-window-size.h"

#include <cinttypes>
#include <type_traits>
#include <utility>

template <typename server_t>
bool espalier_server::size_pool(server_t & server) {
    common_params & params  = server.params_base;
    const bool      is_auto = params.n_ctx == ESPALIER_CTX_AUTO;
    if (!params.kv_paged || (params.n_ctx != 0 && !is_auto)) {
        return true;
    }
    espalier_pool_size size = { 0, "" };
    try {
        size = espalier_size_pool(params);
    } catch (const std::exception & error) {
        if (is_auto) {
            SRV_ERR("-c auto: %s; set the size with -c N\n", error.what());
            return false;
        }
        SRV_WRN("--kv-paged without -c: the size of the KV cache cannot be estimated: %s; set it with -c\n", error.what());
        return true;
    }
    params.n_ctx = size.n_ctx;
    const auto & limit = size.limit;
    if (limit.device.empty()) {
        SRV_INF("%s: the KV cache has %u tokens: %s\n", is_auto ? "-c auto" : "--kv-paged without -c", size.n_ctx, size.reason.c_str());
        return true;
    }
    SRV_INF("-c auto: the KV cache has %u tokens (%u blocks): %s; of %.1f MiB that %s has free, the server takes %.1f MiB and has to leave %.1f MiB\n",
            size.n_ctx, size.n_ctx / espalier_kv::block_size, size.reason.c_str(), espalier_mib(limit.free), limit.device.c_str(), espalier_mib(limit.used), espalier_mib(limit.kept));
    if (size.on_device && !params.kv_gather) {
        SRV_WRN("-c auto without --kv-gather: attention on %s reads the KV cache up to its highest used cell, so steps take longer as the pool fills\n", limit.device.c_str());
    }
    server.espalier.limit = limit;
    params.kv_snapshots   = size.snapshots >= 0 ? size.snapshots : params.kv_snapshots;
    // It fits with all layers where they are. Upstream's fit would measure again, and move some if a bit less is free.
    params.fit_params = false;
    return true;
}

template <typename server_t>
void espalier_server::init(server_t & server) {
    auto & paged = server.espalier;
    if (server.params_base.kv_paged) {
        open_pool(server);
    }
    report_gather(server);
    const espalier_cache_facts facts = describe_cache(server);
    const auto before = std::atomic_load(&paged.metrics);
    const auto after  = std::make_shared<espalier_metrics>(paged.kv ? paged.kv->shared_pool() : nullptr, facts, server.params_base.max_queued > 0);
    if (paged.kv) {
        after->snapshots       = paged.kv->shared_counts();
        after->snapshot_budget = paged.kv->bytes_for_snapshots();
    }
    if (before) {
        after->continue_from(*before);
    }
    std::atomic_store(&paged.metrics, after);
    if (facts.is_worth_logging) {
        SRV_INF("%s\n", facts.to_text(paged.kv ? paged.kv->statistics().block_count : 0, espalier_kv::block_size).c_str());
    }
}

// Reports the types that the layers actually have, which may differ from the requested ones (espalier_cache_type).
template <typename server_t>
espalier_cache_facts espalier_server::describe_cache(const server_t & server) {
    const auto & params  = server.params_base;
    const auto & options = params.cache_options;
    espalier_cache_facts facts;
    facts.type_k  = espalier_describe_cache_types(server.model_tgt, true,  params.cache_type_k, options.rules());
    facts.type_v  = espalier_describe_cache_types(server.model_tgt, false, params.cache_type_v, options.rules());
    facts.quality = options.quality ? options.quality->name : "";
    facts.recent  = options.get(ESPALIER_KV_RECENT);
    facts.sinks   = options.get(ESPALIER_KV_SINKS);
    facts.limit   = server.espalier.limit;
    facts.bytes   = espalier_bytes_of_context(server.ctx_tgt) + (server.ctx_dft ? espalier_bytes_of_context(server.ctx_dft) : 0);
    facts.is_worth_logging = params.kv_paged || params.cache_type_k != GGML_TYPE_F16 || params.cache_type_v != GGML_TYPE_F16 || !facts.quality.empty();
    return facts;
}

template <typename server_t>
void espalier_server::open_pool(server_t & server) {
    auto & paged = server.espalier;
    std::string why_not = refuse_drafts(server);
    const uint64_t bytes_of_one = espalier_snapshots::bytes_of_one(server.ctx_tgt, server.ctx_dft);
    if (why_not.empty()) {
        const uint64_t budget = espalier_snapshot_budget(server.params_base.kv_snapshots, bytes_of_one, server.params_base.n_parallel, espalier_free_of_cpu());
        const bool gathers = server.params_base.kv_gather && refuse_gather(server).empty();
        espalier_kv_options options = { (uint32_t) server.params_base.n_parallel, budget, server.mctx != nullptr, gathers, find_drafts(server) };
        paged.kv = espalier_kv::create(server.ctx_tgt, server.ctx_dft, std::move(options), why_not);
    }
    if (!paged.kv) {
        SRV_WRN("--kv-paged: the KV cache runs unpaged, because %s\n", why_not.c_str());
        report_window(server);
        return;
    }
    paged.considered = {};
    report_snapshots(server, bytes_of_one);
    report_rows(server);
    report_windows(server);
    set_up_slots(server);
    if (server.params_base.ctx_shift) {
        SRV_WRN("%s", "--context-shift is not supported by a paged KV cache, disabling\n");
        server.params_base.ctx_shift = false;
    }
    if (server.params_base.cache_ram_mib != 0) {
        SRV_INF("%s", "--cache-ram is off with --kv-paged: computed blocks stay cached in the KV cache, whose size is -c\n");
        server.params_base.cache_ram_mib = 0;
    }
    server.params_base.cache_idle_slots = false;
    // Upstream would cut batches for checkpoints of sliding windows and states, and find none of them again: they
    // belong to tokens that a paged slot gives away when its request ends.
    server.params_base.n_ctx_checkpoints = 0;
}

// The reason why the drafts of the server make it run unpaged, as the end of a sentence; empty: they do not.
template <typename server_t>
std::string espalier_server::refuse_drafts(const server_t & server) {
    if (server.ctx_dft && server.mctx && mtmd_decode_use_mrope(server.mctx)) {
        return "the tokens of an image share a position (M-RoPE), which the draft model's do not";
    }
    // Upstream restores both at a rejected draft if the model has such a state, and none of them if it has not.
    const auto has_full = [](common_context_seq_rm_type type) { return type == COMMON_CONTEXT_SEQ_RM_TYPE_FULL; };
    if (server.ctx_dft && has_full(server.ctx_dft_seq_rm_type) && !has_full(server.ctx_tgt_seq_rm_type)) {
        return "the draft model has a recurrent state that is not rolled back together with this model";
    }
    return server.ctx_dft ? espalier_refuse_drafts(server.params_base) : "";
}

// The reason why --kv-gather has no effect on a paged KV cache, as the end of a sentence; empty: it may have one. The
// devices are those that hold a part of a KV cache, since their backends compute attention over it.
template <typename server_t>
std::string espalier_server::refuse_gather(const server_t & server) {
    if (server.params_base.flash_attn_type == LLAMA_FLASH_ATTN_TYPE_DISABLED) {
        return "flash attention is off";
    }
    const espalier_kv_gather_functions * functions = espalier_kv_gather_get_functions();
    for (const llama_context * ctx : { (const llama_context *) server.ctx_tgt, (const llama_context *) server.ctx_dft }) {
        if (!ctx || !functions) {
            continue;
        }
        for (const auto & [buft, memory] : llama_get_memory_breakdown(ctx)) {
            // Memory of the CPU has no device in ggml, so its backend has no name here, as in espalier_set_kv_blocks().
            ggml_backend_dev_t device = ggml_backend_buft_get_device(buft);
            const char * backend = device ? ggml_backend_reg_name(ggml_backend_dev_backend_reg(device)) : "";
            if (memory.context > 0 && functions->has_backend(backend)) {
                return "";
            }
        }
    }
    return "no device of the KV cache has a backend that gathers cells";
}

template <typename server_t>
void espalier_server::report_gather(const server_t & server) {
    if (!server.params_base.kv_gather) {
        return;
    }
    const std::string why_not = server.espalier.kv ? refuse_gather(server) : "the KV cache is not paged";
    if (!why_not.empty()) {
        SRV_WRN("--kv-gather has no effect: %s\n", why_not.c_str());
    }
}

template <typename server_t>
espalier_drafts espalier_server::find_drafts(const server_t & server) {
    common_speculative * spec = server.spec.get();
    espalier_drafts drafts;
    if (!server.ctx_dft || !spec) {
        return drafts;
    }
    drafts.traits  = espalier_describe_drafts(server.params_base);
    drafts.get_row = [spec](llama_seq_id seq_id, llama_pos pos, std::vector<float> & row) {
        return common_speculative_get_row(spec, seq_id, pos, row);
    };
    drafts.set_row = [spec](llama_seq_id seq_id, llama_pos pos, const std::vector<float> & row) {
        common_speculative_set_row(spec, seq_id, pos, row);
    };
    return drafts;
}

template <typename server_t>
void espalier_server::set_up_slots(server_t & server) {
    const int n_slots = server.slots.size();
    const int n_batch = std::max((int) llama_n_batch(server.ctx_tgt), n_slots);
    const bool computes_all = server.ctx_dft && espalier_describe_drafts(server.params_base).reads_states;
    for (auto & slot : server.slots) {
        slot.paged.kv             = server.espalier.kv.get();
        slot.paged.most_drafts    = n_batch / n_slots - 1;
        slot.paged.drafts_at_once = computes_all ? common_speculative_n_max(server.spec.get()) : 0;
        slot.paged.n_ctx          = slot.n_ctx;
        slot.paged.all            = &server.slots;
        slot.paged.retains          = !server.params_base.slot_save_path.empty(); // a retained sequence is what can be saved
    }
}

template <typename server_t>
void espalier_server::report_snapshots(const server_t & server, uint64_t bytes_of_one) {
    const espalier_kv & kv = *server.espalier.kv;
    const auto mib = [](uint64_t bytes) { return bytes / (1024.0 * 1024.0); };
    if (kv.takes_snapshots()) {
        SRV_INF("--kv-snapshots: prefix caching with up to %" PRIu64 " snapshots of the recurrent state, %.2f MiB each, %.2f MiB in all\n",
                kv.bytes_for_snapshots() / bytes_of_one, mib(bytes_of_one), mib(kv.bytes_for_snapshots()));
    } else if (kv.has_state()) {
        SRV_WRN("--kv-snapshots: prefix caching is off: a snapshot of the recurrent state takes %.2f MiB, and the memory for snapshots is smaller\n",
                mib(bytes_of_one));
    } else if (server.params_base.kv_snapshots >= 0) {
        SRV_INF("%s", "--kv-snapshots has no effect: the model has no recurrent state\n");
    }
}

// The size of a cache is decided before it is known whether it can be paged.
template <typename server_t>
void espalier_server::report_window(const server_t & server) {
    const llama_memory_t mem = llama_get_memory(server.ctx_tgt);
    const bool has_window = llama_memory_get_kind(mem) == LLAMA_MEMORY_KIND_SLIDING_WINDOW;
    if (has_window && !(llama_memory_get_parts(mem) & LLAMA_MEMORY_PART_WINDOW) && !server.params_base.swa_full) {
        SRV_WRN("%s", "--kv-paged: the layers with a sliding window have a cache of the full size; without --kv-paged it is smaller\n");
    }
}

// The reason why the layers with a sliding window have cells for all tokens, as the end of a sentence.
template <typename server_t>
std::string espalier_server::refuse_windows(const server_t & server) {
    if (llama_memory_get_kind(llama_get_memory(server.ctx_tgt)) != LLAMA_MEMORY_KIND_SLIDING_WINDOW) {
        return "the model does not mix sliding-window and full-attention layers";
    }
    if (server.params_base.swa_full) {
        return "of --swa-full";
    }
    const uint32_t n_windows = espalier_count_windows(server.params_base);
    if (n_windows == 0) {
        return "of the draft model";
    }
    return espalier_size_windows(server.model_tgt, n_windows, llama_n_batch(server.ctx_tgt), llama_n_ctx(server.ctx_tgt)).why_not;
}

template <typename server_t>
void espalier_server::report_windows(const server_t & server) {
    const struct espalier_pool_statistics now = server.espalier.kv->statistics();
    const bool has_window = llama_memory_get_kind(llama_get_memory(server.ctx_tgt)) == LLAMA_MEMORY_KIND_SLIDING_WINDOW;
    if (now.window_block_count == 0 && espalier_windows_of_environment().value_or(0) > 0) {
        SRV_WRN("ESPALIER_KV_WINDOWS has no effect, because %s\n", refuse_windows(server).c_str());
    } else if (now.window_block_count == 0 && has_window) {
        SRV_INF("--kv-paged: all layers have a cache of %" PRIu64 " tokens, also those with a sliding window of %d tokens, so that every cached prefix is found\n",
                now.block_count * now.block_size, llama_model_n_swa(server.model_tgt));
    }
    if (now.window_block_count > 0) {
        SRV_INF("--kv-paged: the layers with a sliding window of %d tokens have a cache of %" PRIu64 " tokens, the others one of %" PRIu64 "; "
                "with --swa-full all have that\n", llama_model_n_swa(server.model_tgt), now.window_block_count * now.block_size, now.block_count * now.block_size);
    }
}

template <typename server_t>
void espalier_server::report_rows(const server_t & server) {
    if (server.ctx_dft && espalier_describe_drafts(server.params_base).has_rows) {
        const int64_t bytes = espalier_kv::bytes_of_rows(llama_n_ctx(server.ctx_tgt), llama_model_n_embd(llama_get_model(server.ctx_dft)));
        SRV_INF("--kv-paged: the hidden states from which drafts continue take up to %.2f MiB of host memory, one for each block\n", bytes / (1024.0 * 1024.0));
    }
}

template <typename server_t>
void espalier_server::destroy(server_t & server) {
    for (auto & slot : server.slots) {
        slot.paged = {};
    }
    server.espalier.kv.reset(); // the metrics remain: a sleeping server still reports them
}

//
// In a batch
//

template <typename server_t>
bool espalier_server::resume(server_t & server, server_slot & slot, int32_t n_batch) {
    if (!compute_media(server, slot)) {
        return true;
    }
    auto &       now    = slot.paged.now;
    const auto & tokens = std::as_const(now.preempted);
    const int    n_stop = find_stop(slot);
    while (slot.prompt.n_tokens() < (int) tokens.size()) {
        if (slot.prompt.n_tokens() == n_stop) {
            return true; // continues in the next step, after its state is saved
        }
        const llama_token token = tokens[slot.prompt.n_tokens()];
        if (token == LLAMA_TOKEN_NULL) {
            return true; // continues in the next step, after the tokens before it are computed
        }
        // Not counted as a prompt, since the client has already received tokens: the timings are those of generation.
        if (server.batch.size() >= n_batch || !server.batch.add(slot.id, token, slot.prompt.tokens.pos_next(), false, false)) {
            return false;
        }
        slot.prompt.tokens.push_back(token);
    }
    now.preempted.clear();
    slot.state = SLOT_STATE_GENERATING;
    return true;
}

inline void espalier_server::prepare_media(server_slot & slot) {
    if (!slot.paged.kv) {
        return;
    }
    common_set_adapter_lora(slot.ctx_tgt, slot.lora);
    const auto & chunk = slot.task->tokens.find_chunk(slot.prompt.n_tokens());
    const size_t n_tokens = mtmd_input_chunk_get_n_tokens(chunk.get());
    while (!slot.paged.kv->has_window_blocks_for(n_tokens) && evict_longest_idle(*slot.paged.all)) {}
}

inline void espalier_server::forget(server_slot & slot) {
    if (slot.paged.now.is_admitted) { // one that waits has computed nothing, and may have a retained sequence
        slot.prompt_clear();
    }
    if (!slot.paged.kv || !slot.paged.kv->has_state()) {
        return;
    }
    // Before a batch is computed, the memory assigns states to other cells; the graph then moves them. If it was not
    // run, the cell of an idle sequence has the state of another one, maybe another tenant's.
    for (server_slot & other : *slot.paged.all) {
        other.paged.evict_retained();
    }
}

inline void espalier_server::distrust(server_slot & slot) {
    if (slot.paged.kv) {
        slot.paged.kv->distrust(slot.id, slot.paged.now.n_matched);
    }
}

template <typename server_t>
bool espalier_server::compute_media(server_t & server, server_slot & slot) {
    const auto & preempted = std::as_const(slot.paged.now.preempted);
    const auto is_next = [&]() {
        return slot.prompt.n_tokens() < (int) preempted.size() && preempted[slot.prompt.n_tokens()] == LLAMA_TOKEN_NULL;
    };
    while (is_next()) {
        const size_t first = slot.prompt.n_tokens();
        size_t  n_tokens = 0;
        int32_t status   = 0;
        prepare_media(slot);
        server.queue_tasks.yield_to_queue([&]() { status = process_mtmd_chunk(slot, slot.mbatch, first, n_tokens); });
        if (status != 0) {
            // Not a case for forget(): this batch has one sequence, so the memory has moved no state of another one.
            server.send_error(slot, "failed to process mtmd chunk", ERROR_TYPE_SERVER);
            slot.release();
            return false;
        }
        slot.prompt.tokens.push_back_placeholder(slot.task->tokens.find_chunk(first).get());
        cache_media_blocks(slot);
    }
    return true;
}

// Whether the end of the prompt has to be in one step: the options of a decision. Upstream trees without decision models
// have no such tasks.
template <typename task_t, typename = void>
struct espalier_has_decision : std::false_type {};
template <typename task_t>
struct espalier_has_decision<task_t, std::void_t<decltype(std::declval<const task_t &>().decision.pos_first())>> : std::true_type {};

// The first token of the part of the prompt that has to be in one step; INT64_MAX: there is none.
template <typename task_t>
int64_t espalier_first_of_end(const task_t & task) {
    if constexpr (espalier_has_decision<task_t>::value) {
        return task.decision.pos_first() >= 0 ? (int64_t) task.decision.pos_first() : INT64_MAX;
    } else {
        return INT64_MAX;
    }
}

template <typename task_t>
bool espalier_ends_at_once(const task_t & task) {
    return espalier_first_of_end(task) < INT64_MAX;
}

inline int32_t espalier_server::find_stop(server_slot & slot) {
    auto & stops_at = slot.paged.now.stops_at;
    stops_at = 0;
    if (slot.paged.kv) {
        const int64_t n_stop = slot.paged.kv->next_stop(slot.id, slot.prompt.n_tokens());
        stops_at = n_stop <= espalier_first_of_end(*slot.task) ? (int32_t) n_stop : 0;
    }
    return stops_at > 0 ? stops_at : INT32_MAX;
}

template <typename server_t>
int32_t espalier_server::limit_prompts(const server_t & server, int32_t n_batch) {
    const int64_t n_generated = server.batch.size();
    const int64_t budget      = server.params_base.prefill_budget;
    // Decoding requests of another batch key have no token in this step and wait until it is over, so prompts are
    // limited for them too. A prompt that cannot be split, or whose end cannot (the options of a decision), takes one
    // step, however long it is.
    const bool others_wait = server.espalier.kv && std::any_of(server.slots.begin(), server.slots.end(), [](const server_slot & slot) {
        return runs(slot) && generates(slot) && !slot.paged.now.is_in_step;
    });
    const bool can_split = std::none_of(server.slots.begin(), server.slots.end(), [](const server_slot & slot) {
        return runs(slot) && slot.paged.now.is_in_step && (!slot.can_split() || espalier_ends_at_once(*slot.task));
    });
    const bool is_limited = n_generated > 0 || (others_wait && can_split);
    return budget > 0 && is_limited ? std::min<int64_t>(n_batch, n_generated + budget) : n_batch;
}

template <typename server_t>
void espalier_server::note_token(server_t & server, server_slot & slot) {
    if (!server.espalier.kv) {
        return;
    }
    auto &        metrics = *server.espalier.metrics;
    auto &        last    = slot.paged.now.t_last_token;
    const int64_t now     = ggml_time_us();
    if (slot.stats.n_gen <= 1) {
        metrics.to_first_token.add(now - slot.task->params.t_arrival);
    } else {
        metrics.between_tokens.add(now - last);
    }
    last = now;
}

//
// Idle slots and arriving tasks
//

template <typename server_t>
server_slot * espalier_server::find_retained(server_t & server, const server_task & task) {
    if (!server.espalier.kv || task.need_embd() || !task.params.cache_prompt || server.slot_prompt_similarity == 0.0f) {
        return nullptr;
    }
    const auto loras = task.params.lora.empty() ? server.params_base.lora_adapters : server.construct_lora_list(task.params.lora);
    const espalier_owner owner = { task.params.kv_tenant, task.params.kv_salt, server.espalier.adapters->key(loras) };
    server_slot * best   = nullptr;
    float         best_similarity = server.slot_prompt_similarity;
    for (server_slot & slot : server.slots) {
        if (slot.is_processing() || !slot.paged.retained || !(slot.paged.retained->owner() == owner)) {
            continue;
        }
        const float similarity = float(slot.paged.retained->tokens().get_common_prefix(task.tokens)) / task.tokens.size();
        if (similarity > best_similarity) {
            best_similarity = similarity;
            best   = &slot;
        }
    }
    return best;
}

template <typename server_t>
bool espalier_server::evict_retained(server_t & server) {
    return evict_longest_idle(server.slots);
}

inline bool espalier_server::evict_longest_idle(std::vector<server_slot> & slots) {
    server_slot * longest_idle = nullptr;
    for (server_slot & slot : slots) {
        if (slot.paged.retained && !slot.is_processing() && (!longest_idle || slot.t_last_used < longest_idle->t_last_used)) {
            longest_idle = &slot;
        }
    }
    if (longest_idle) {
        longest_idle->paged.evict_retained();
    }
    return longest_idle != nullptr;
}

template <typename server_t>
bool espalier_server::has_slot(server_t & server, server_task & task) {
    if (!espalier_gives_slots_in_order(server.params_base) || std::exchange(task.params.has_slot, false)) {
        return true;
    }
    const int id_task    = task.id;
    const int id_request = task.params.id_request;
    server.queue_tasks.defer(std::move(task));
    give_slots(server);
    if (limit_queue(server, id_task, id_request)) {
        server.send_waiting(id_task);
    }
    return false;
}

template <typename server_t>
bool espalier_server::give_slots(server_t & server) {
    if (!espalier_gives_slots_in_order(server.params_base)) {
        return false;
    }
    if (server.queue_tasks.queue_tasks_deferred_size() == 0) {
        return true; // as in nearly every step
    }
    limit_actions(server);
    std::set<int> idle;
    for (const server_slot & slot : server.slots) {
        if (!slot.is_processing()) {
            idle.insert(slot.id);
        }
    }
    server.queue_tasks.give_slots({ std::move(idle), (int) server.slots.size() });
    return true;
}

//
// Metrics and properties
//

// For /metrics. Without the metrics of the pool if the KV cache is not paged.
inline void espalier_add_metrics(std::string & to, const std::shared_ptr<espalier_metrics> & metrics) {
    if (metrics) {
        to += metrics->to_metrics();
    }
}

// For /props. Without the pool if the KV cache is not paged. The prefix-cache hits are left out if there are several
// API keys: they would reveal that another tenant sends the same prompts.
inline void espalier_add_pool(json & to, const std::shared_ptr<espalier_metrics> & metrics, size_t n_keys) {
    if (!metrics) {
        return;
    }
    const espalier_cache_facts & facts = metrics->facts;
    if (facts.is_worth_logging) {
        to["kv_cache"] = {
            { "type_k",     facts.type_k                      },
            { "type_v",     facts.type_v                      },
            { "kv_quality", facts.quality.empty() ? json() : json(facts.quality) },
            { "kv_recent",  facts.recent                      },
            { "kv_sinks",   facts.sinks                       },
            { "mib",        facts.bytes / (1024.0 * 1024.0)   },
        };
    }
    if (!metrics->has_pool()) {
        return;
    }
    const auto now = metrics->of_pool();
    if (metrics->snapshots) {
        to["kv_snapshots"] = {
            { "count",     now.snapshots             },
            { "bytes",     now.snapshot_bytes        },
            { "max_bytes", metrics->snapshot_budget  },
            { "evicted",   now.evicted_snapshots     },
        };
        if (n_keys <= 1) {
            to["kv_snapshots"]["hits"] = now.snapshot_hits;
        }
    }
    to["kv_pool"] = {
        { "block_count",      now.block_count      },
        { "block_size",       now.block_size       },
        { "blocks_used",      now.blocks_used      },
        { "blocks_used_peak", now.blocks_used_peak },
        { "blocks_retained",  now.blocks_evictable },
        { "blocks_empty",     now.blocks_empty     },
        { "evicted_blocks",   now.evicted_blocks   },
        { "mib",              facts.bytes / (1024.0 * 1024.0) },
    };
    if (!facts.limit.device.empty()) {
        to["kv_pool"]["auto"] = {
            { "device",   facts.limit.device             },
            { "free_mib", espalier_mib(facts.limit.free) },
            { "used_mib", espalier_mib(facts.limit.used) },
            { "kept_mib", espalier_mib(facts.limit.kept) },
        };
    }
    if (now.window_block_count > 0) {
        to["kv_pool"]["window_block_count"]      = now.window_block_count;
        to["kv_pool"]["window_blocks_used"]      = now.window_blocks_used;
        to["kv_pool"]["window_blocks_used_peak"] = now.window_blocks_used_peak;
        to["kv_pool"]["window_blocks_retained"]  = now.window_blocks_evictable;
    }
    if (n_keys <= 1) {
        to["kv_pool"]["queried_tokens"] = metrics->queried_tokens.load();
        to["kv_pool"]["hit_tokens"]     = metrics->hit_tokens.load();
    }
}
