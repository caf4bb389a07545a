// Scheduling between two steps: prepares requests, describes them to the scheduler of the kernels, and carries out its
// actions. This is the part of the server that knows the contents of a slot's request. Included only by
// espalier-server.h.

#pragma once

#include "espalier-admission.h"

//
// Contents of a slot's request
//

template <typename server_t>
bool espalier_server::is_scheduled(const server_t & server, const server_slot & slot) {
    return !server.espalier.kv || (slot.paged.now.is_in_step && (runs(slot) || is_refused_by_the_server(slot)));
}

// The tokens to compute before anything is sampled.
inline const server_tokens & espalier_server::tokens_of(const server_slot & slot) {
    return slot.state == SLOT_STATE_PREEMPTED ? slot.paged.now.preempted : slot.task->tokens;
}

template <typename server_t>
std::vector<server_slot *> espalier_server::in_order(server_t & server) {
    std::vector<server_slot *>           slots;
    std::vector<espalier_schedule_place> places;
    for (server_slot & slot : server.slots) {
        if (slot.task) {
            slots.push_back(&slot);
            places.push_back(espalier_place_of(*slot.task, slot.id));
        }
    }
    std::vector<server_slot *> ordered;
    for (const uint32_t index : espalier_order(places)) {
        ordered.push_back(slots[index]);
    }
    return ordered;
}

// The id of an image is the SHA-256 of its file. Its index among the media distinguishes the slices of one file.
inline std::vector<espalier_server::media_in_prompt> espalier_server::find_media(const server_tokens & tokens) {
    std::vector<media_in_prompt> media;
    for (size_t i = 0; i < tokens.size();) {
        if (tokens[i] != LLAMA_TOKEN_NULL) {
            i++;
            continue;
        }
        const auto & chunk = tokens.find_chunk(i);
        const char * id    = mtmd_input_chunk_get_id(chunk.get());
        media.push_back({ i, mtmd_input_chunk_get_n_tokens(chunk.get()), string_format("%s %zu", id ? id : "", media.size()), id && *id });
        i += media.back().n_tokens;
    }
    return media;
}

// Whether other requests may share the blocks that it computes. They may not if cache_prompt is false, or if not every
// token is computed in the same way from what the pool hashes: embedding tasks, activated LoRAs, embeddings as input,
// media without an id.
inline bool espalier_server::is_shared(const server_slot & slot, const std::vector<media_in_prompt> & media) {
    const bool are_known = std::all_of(media.begin(), media.end(), [](const media_in_prompt & one) { return one.has_id; });
    return slot.task->params.cache_prompt && !slot.task->need_embd() && !lora_all_alora(slot.lora) && slot.inp_embd.empty() && are_known;
}

// The tokens of a chat before the first message of a user; 0: it is not known to be a chat, or has no such message.
inline size_t espalier_server::count_system_tokens(const server_task & task) {
    const auto & spans = task.params.message_spans.spans;
    const auto   first = std::find_if(spans.begin(), spans.end(), [](const common_chat_msg_span & span) { return span.role == COMMON_CHAT_ROLE_USER; });
    return first == spans.end() ? 0 : first->pos;
}

// The position of the last of the first n_tokens, which are text and whole images; -1: there is none. With M-RoPE that of
// an image depends on the model: often all of its tokens have the position of its first one.
inline llama_pos espalier_server::last_position(const server_slot & slot, const server_tokens & tokens, size_t n_tokens) {
    const llama_pos next = n_tokens == tokens.size() ? tokens.pos_next() : tokens.pos_next(n_tokens);
    if (n_tokens == 0 || tokens[n_tokens - 1] != LLAMA_TOKEN_NULL || !mtmd_decode_use_mrope(slot.mctx)) {
        return next - 1;
    }
    for (const auto & one : find_media(tokens)) {
        const mtmd_input_chunk * chunk = tokens.find_chunk(one.first).get();
        if (one.first + one.n_tokens == n_tokens && mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_IMAGE) {
            const llama_pos first = next - mtmd_input_chunk_get_n_pos(chunk);
            return (llama_pos) mtmd_image_tokens_get_decoder_pos(mtmd_input_chunk_get_tokens_image(chunk), first, one.n_tokens - 1).t;
        }
    }
    return next - 1;
}

template <typename server_t>
void espalier_server::begin(const server_t & server, server_slot & slot, const std::vector<media_in_prompt> & media, size_t n_held) {
    std::vector<espalier_pool_extra> extras;
    for (const auto & one : media) {
        extras.push_back({ (uint32_t) one.first, (uint32_t) one.n_tokens, (const uint8_t *) one.key.data(), one.key.size() });
    }
    const auto &      tokens = tokens_of(slot);
    const auto &      owner  = slot.paged.now.owner;
    const std::string scope  = owner.scope();
    slot.paged.kv->begin(slot.id, { &tokens[0], tokens.size(), n_held, scope, owner.adapters, extras, count_system_tokens(*slot.task),
            end_of(slot), count_further_choices(server, slot) });
}

// Runs once each time a request starts to wait: does all copying, hashing and comparing for it.
template <typename server_t>
void espalier_server::prepare_request(const server_t & server, server_slot & slot) {
    const auto & tokens = tokens_of(slot);
    const auto   media  = find_media(tokens);
    auto &       now    = slot.paged.now;
    auto &       retained = slot.paged.retained;
    const auto & params = slot.task->params;
    now.is_prepared = true;
    now.is_shared   = is_shared(slot, media);
    now.owner       = { params.kv_tenant, params.kv_salt, server.espalier.adapters->key(slot.lora) };
    if (retained) {
        const size_t n_common = std::min(retained->tokens().get_common_prefix(tokens), tokens.size() - 1);
        // Continue from the retained sequence if it covers at least half of the prompt, which is more than cached
        // blocks are likely to cover. The last token of a prompt is always computed.
        const bool is_likely = now.is_shared && retained->owner() == now.owner && 2*n_common >= tokens.size() && tokens[n_common] != LLAMA_TOKEN_NULL;
        if (is_likely && slot.paged.kv->can_continue(slot.id, retained->tokens().size(), n_common)) {
            retained->cut(n_common);
        } else {
            retained.reset();
        }
    }
    // Of a sequence of uncertain origin nothing is shared.
    if (now.is_shared && (!retained || retained->owner().is_certain)) {
        begin(server, slot, media, retained ? retained->tokens().size() : 0);
    }
}

//
// A step
//

template <typename server_t>
void espalier_server::prepare_step(server_t & server) {
    auto & paged = server.espalier;
    if (!paged.kv) {
        return;
    }
    cache_full_blocks(server);
    prepare_requests(server);
    schedule(server);
    choose_batch_key(server);
}

template <typename server_t>
void espalier_server::schedule(server_t & server) {
    auto & paged = server.espalier;
    std::vector<uint32_t> why;
    while (true) {
        const scheduler_input input    = make_scheduler_input(server);
        const scheduler_state now      = look(server);
        const bool            consider = !(now == paged.considered);
        espalier_schedule_step step = {};
        if (!paged.kv->schedule(input.requests, input.retained, consider, why, step)) {
            fail(server);
            return;
        }
        if (step.action == ESPALIER_SCHEDULE_NOTHING) {
            if (consider) {
                note_waiting(server, input, why);
                limit_newcomers(server, input);
                paged.considered = now;
            }
            return;
        }
        carry_out(server, input, step);
    }
}

// Requests with the same batch key, which are those that upstream puts into one batch, are computed together. The keys
// take turns: each step goes to the key of the request that was computed longest ago, so that no request waits until a
// stream with another key ends.
template <typename server_t>
void espalier_server::choose_batch_key(server_t & server) {
    // Refused requests take part, since upstream refuses a request only when it would add it to the batch.
    const auto takes_part = [](const server_slot & slot) {
        return slot.is_processing() && slot.state != SLOT_STATE_WAIT_OTHER && (runs(slot) || is_refused_by_the_server(slot));
    };
    server_slot * next = nullptr;
    for (server_slot * slot : in_order(server)) {
        if (takes_part(*slot) && (!next || slot->paged.now.last_step < next->paged.now.last_step)) {
            next = slot;
        }
    }
    server.espalier.n_steps++;
    for (server_slot & slot : server.slots) {
        auto & now = slot.paged.now;
        // a joint decision can be batched with no request, not even with itself
        now.is_in_step = takes_part(slot) && (&slot == next || slot.can_batch_with(*next));
        if (now.is_in_step) {
            now.last_step = server.espalier.n_steps;
        }
    }
}

template <typename server_t>
void espalier_server::cache_full_blocks(server_t & server) {
    for (server_slot & slot : server.slots) {
        if (!runs(slot) || slot.prompt.tokens.empty()) {
            continue;
        }
        if (!slot.inp_embd.empty()) {
            slot.paged.kv->end(slot.id); // from here on its input is embeddings, which the pool does not hash
        }
        cache_computed_blocks(slot);
    }
}

inline void espalier_server::cache_computed_blocks(const server_slot & slot) {
    const server_tokens & tokens = slot.prompt.tokens;
    const size_t n_tokens = tokens.size();
    slot.paged.kv->cache_blocks(slot.id, { &tokens[0], n_tokens, last_position(slot, tokens, n_tokens) }, slot.state == SLOT_STATE_GENERATING);
    slot.paged.kv->slide(slot.id, n_tokens);
}

// Media are computed on their own, before other tokens of the slot enter a batch: so the sequence is at rest behind each
// of them, where another question about it begins.
inline void espalier_server::cache_media_blocks(const server_slot & slot) {
    if (slot.paged.kv) {
        cache_computed_blocks(slot);
    }
}

template <typename server_t>
void espalier_server::prepare_requests(server_t & server) {
    for (server_slot & slot : server.slots) {
        auto & now = slot.paged.now;
        if (slot.state == SLOT_STATE_WAIT_OTHER) {
            slot.paged.evict_retained(); // its parent's cells will be copied to this sequence
            now.awaits_parent = true;
        } else if (now.awaits_parent) {
            now.awaits_parent = false; // copied; its parent was admitted with the blocks for it
            now.is_admitted   = true;
            now.last_step     = server.espalier.n_steps;
            slot.paged.kv->slide(slot.id, slot.prompt.tokens.size()); // as its parent has done
        } else if (waits(slot) && !slot.paged.now.is_prepared) {
            prepare_request(server, slot);
        }
    }
}

// The state on which scheduling depends: the change counter of the pool, and the state of the slots, which the pool
// does not have.
template <typename server_t>
espalier_server::scheduler_state espalier_server::look(server_t & server) {
    scheduler_state now;
    now.n_changes = server.espalier.kv->n_changes();
    for (const server_slot & slot : server.slots) {
        now.slots.push_back({ slot.task ? slot.task->id : -1, slot.state, slot.paged.now.is_admitted, slot.paged.retained != nullptr });
    }
    return now;
}

template <typename server_t>
espalier_server::scheduler_input espalier_server::make_scheduler_input(server_t & server) {
    scheduler_input input;
    for (server_slot * slot : in_order(server)) {
        if (runs(*slot) || waits(*slot)) {
            input.slots.push_back(slot);
            input.requests.push_back(describe(server, *slot));
        }
    }
    // Eviction order: idle slots first, least recently used first; then waiting ones, the last in the queue first.
    for (server_slot & slot : server.slots) {
        if (slot.paged.retained && !slot.is_processing()) {
            input.retained_slots.push_back(&slot);
        }
    }
    std::sort(input.retained_slots.begin(), input.retained_slots.end(), [](const server_slot * one, const server_slot * other) {
        return one->t_last_used < other->t_last_used;
    });
    std::for_each(input.slots.rbegin(), input.slots.rend(), [&](server_slot * slot) {
        if (slot->paged.retained) {
            input.retained_slots.push_back(slot);
        }
    });
    for (const server_slot * slot : input.retained_slots) {
        input.retained.push_back(slot->id);
    }
    return input;
}

template <typename server_t>
espalier_schedule_request espalier_server::describe(const server_t & server, const server_slot & slot) {
    const auto & retained = slot.paged.retained;
    espalier_schedule_request request = {};
    request.arrival         = slot.task->id;
    request.priority        = slot.task->params.priority;
    request.sequence        = slot.id;
    request.stage           = runs(slot) ? ESPALIER_SCHEDULE_RUNS : ESPALIER_SCHEDULE_WAITS;
    request.preemptible     = slot.inp_embd.empty(); // else its input cannot be reproduced
    request.first           = retained ? retained->tokens().size() : slot.prompt.tokens.size();
    request.end             = std::max<uint64_t>(request.first, end_of(slot));
    request.further_choices = count_further_choices(server, slot);
    return request;
}

// One past the last position that it needs blocks for: its prompt and the first generated token, or the next token and
// the drafts after it.
inline size_t espalier_server::end_of(const server_slot & slot) {
    if (slot.task->need_embd()) {
        return slot.task->n_tokens();
    }
    const size_t n_tokens = slot.state == SLOT_STATE_PREEMPTED ? slot.paged.now.preempted.size() : slot.prompt.tokens.size();
    const int    n_draft  = generates(slot) ? count_drafts(slot) : 0;
    const size_t end      = generates(slot) ? n_tokens + 1 + n_draft : slot.task->n_tokens() + 1;
    return std::min<size_t>(end, slot.n_ctx);
}

// The most draft tokens that get cells in the next step.
inline int espalier_server::count_drafts(const server_slot & slot) {
    const int n_draft = slot.can_speculate() ? std::min(slot.get_n_draft_max(), common_speculative_n_max(slot.spec)) : 0;
    return n_draft > 0 ? std::max(n_draft, slot.paged.drafts_at_once) : 0;
}

template <typename server_t>
uint64_t espalier_server::count_further_choices(const server_t & server, const server_slot & slot) {
    return std::count_if(server.slots.begin(), server.slots.end(), [&](const server_slot & other) {
        return other.state == SLOT_STATE_WAIT_OTHER && other.task->id_parent == slot.task->id;
    });
}

template <typename server_t>
void espalier_server::carry_out(server_t & server, const scheduler_input & input, const espalier_schedule_step & step) {
    switch (step.action) {
        case ESPALIER_SCHEDULE_ADMIT:
            admit(server, *input.slots[step.index], step.tokens);
            break;
        case ESPALIER_SCHEDULE_PREEMPT:
            preempt(server, *input.slots[step.index]);
            break;
        case ESPALIER_SCHEDULE_REFUSE:
            refuse(server, *input.slots[step.index], step.blocks);
            break;
        case ESPALIER_SCHEDULE_EVICT:
            input.retained_slots[step.index]->paged.evict_retained();
            prepare_requests(server); // a request of its slot has to look up blocks before it is considered again
            break;
    }
}

template <typename server_t>
void espalier_server::admit(server_t & server, server_slot & slot, size_t n_tokens) {
    auto & now = slot.paged.now;
    now.is_admitted = true;
    now.last_step   = server.espalier.n_steps;
    now.waits_for   = ESPALIER_SCHEDULE_FOR_NOTHING;
    if (slot.paged.retained) {
        now.owner          = slot.paged.retained->owner();
        slot.prompt.tokens = slot.paged.retained->take();
        slot.paged.retained.reset();
        slot.paged.kv->resume(slot.id, n_tokens);
    } else {
        if (!slot.paged.kv->match_prefix(slot.id, n_tokens, last_position(slot, tokens_of(slot), n_tokens))) {
            SLT_WRN(slot, "the state after %zu tokens could not be restored, computing them again\n", n_tokens);
            n_tokens = 0;
        }
        slot.prompt.tokens = espalier_retained_sequence::copy_first(tokens_of(slot), n_tokens);
        slot.mem.seq_rm(slot.id, slot.prompt.tokens.pos_next(), -1);
    }
    if (slot.state == SLOT_STATE_PROCESSING_PROMPT) {
        // A preempted prompt: it may have computed the blocks that it matches now itself.
        slot.stats.n_prompt_cached    = std::min<uint64_t>(slot.stats.n_prompt_cached, n_tokens);
        slot.stats.n_prompt_processed = n_tokens - slot.stats.n_prompt_cached;
    }
    now.n_matched = std::min(now.n_matched, n_tokens);
    const bool is_first = !std::exchange(now.was_admitted, true);
    note_admitted(server, slot.task->params.id_request);
    if (is_first && now.is_shared) { // other requests do not look up cached blocks
        server.espalier.metrics->queried_tokens += tokens_of(slot).size();
        server.espalier.metrics->hit_tokens     += n_tokens;
    }
}

// The blocks of the layers with a sliding window, or how many of them are used, as the end of a sentence about the
// others; empty: these layers have no blocks of their own.
inline std::string espalier_server::describe_windows(const struct espalier_pool_statistics & pool, bool are_used) {
    const std::string used = are_used ? string_format("%d of ", (int) pool.window_blocks_used) : "";
    return pool.window_block_count == 0 ? "" :
        string_format(", and %s%d of the layers with a sliding window", used.c_str(), (int) pool.window_block_count);
}

template <typename server_t>
void espalier_server::preempt(server_t & server, server_slot & slot) {
    const auto pool = slot.paged.kv->statistics();
    SLT_WRN(slot, "preempted with %d %stokens: %d of %d KV blocks are in use%s\n", slot.prompt.n_tokens(), generates(slot) ? "" : "prompt ",
            (int) pool.blocks_used, (int) pool.block_count, describe_windows(pool, true).c_str());
    auto & now = slot.paged.now;
    if (slot.state == SLOT_STATE_GENERATING) {
        now.preempted = slot.prompt.tokens.clone();
        slot.state    = SLOT_STATE_PREEMPTED;
    }
    now.is_admitted = false;
    now.is_prepared = false;
    slot.paged.kv->end(slot.id);
    slot.prompt_clear();
    server.espalier.metrics->preemptions++;
}

template <typename server_t>
void espalier_server::refuse(server_t & server, server_slot & slot, uint64_t n_needed) {
    const auto pool     = slot.paged.kv->statistics();
    const int  n_blocks = pool.block_count;
    const int  n_choices = 1 + count_further_choices(server, slot);
    server.espalier.metrics->refusals++;
    if (slot.paged.now.was_admitted) {
        server.send_error(slot, string_format("the request has grown to %d tokens and needs more KV blocks than the pool has for it (%d in all%s)",
                slot.prompt.n_tokens(), n_blocks, describe_windows(pool, false).c_str()), ERROR_TYPE_UNAVAILABLE);
    } else {
        // No later try can succeed.
        server.send_error(slot, string_format("the request needs %d KV blocks for the %d tokens of its prompt and %d answers, and the pool has %d in all; "
                "ask for fewer answers (\"n\") or with a shorter prompt, or start the server with a larger -c",
                (int) n_needed, slot.task->n_tokens(), n_choices, n_blocks), ERROR_TYPE_INVALID_REQUEST);
    }
    slot.release();
}

// The pool is poisoned by an internal failure: fail all requests and rebuild it.
template <typename server_t>
void espalier_server::fail(server_t & server) {
    SRV_ERR("%s", "KV block pool: internal error, resetting the cache\n");
    server.abort_all_slots("internal error of the KV block pool: the KV cache was reset, please try again");
    for (server_slot & slot : server.slots) {
        slot.prompt_clear();
    }
    server.espalier.kv->clear();
}

// Counts each wait once, however many steps it takes.
template <typename server_t>
void espalier_server::note_waiting(server_t & server, const scheduler_input & input, const std::vector<uint32_t> & waits) {
    auto & metrics = *server.espalier.metrics;
    const auto is_for_blocks = [](uint32_t why) { return why == ESPALIER_SCHEDULE_FOR_BLOCKS || why == ESPALIER_SCHEDULE_FOR_QUEUE; };
    for (size_t i = 0; i < input.slots.size(); i++) {
        uint32_t & before = input.slots[i]->paged.now.waits_for;
        metrics.prefix_waits += waits[i] == ESPALIER_SCHEDULE_FOR_PREFIX && before != waits[i];
        metrics.queue_waits  += is_for_blocks(waits[i]) && !is_for_blocks(before);
        before = waits[i];
    }
}
