// What a server does with its paged KV cache, and with prompts while others are generating.
//
// Included by tools/server/server-context.cpp after its server_slot: a patch only calls this. `server_t` is that
// file's server_context_impl, a friend; everything runs on the thread that decodes.

#pragma once

#include "espalier-kv.h"
#include "espalier-numbers.h"

#include "mtmd.h"

struct espalier_server {
    // Replaced by the thread that loads the model, read by those that answer requests; empty: not paged.
    std::shared_ptr<espalier_numbers> numbers;

    std::unique_ptr<espalier_kv> kv;

    template <typename server_t> static void init(server_t & server);
    template <typename server_t> static void destroy(server_t & server);

    // Between two steps: what is computed can be shared, and each running slot has room for the next step.
    template <typename server_t> static void prepare_step(server_t & server);

    // true: the slot computes the rest of `tokens`, its prompt holds what others have computed of it
    // false: it waits for blocks that another slot computes or for room, or it was refused
    template <typename server_t> static bool take_turn(server_t & server, server_slot & slot, const server_tokens & tokens);

    // A preempted slot computes again what it had, as a prompt, but nothing is sampled at its end: the next
    // token is known already. false: the batch is full
    template <typename server_t> static bool resume(server_t & server, server_slot & slot, int32_t n_batch);

    // The batch size up to which prompts may be added to a batch that has these tokens of generating slots.
    template <typename server_t> static int32_t limit_prompts(const server_t & server, int32_t n_batch);

    template <typename server_t> static void note_token(server_t & server, server_slot & slot);

    struct media_in_prompt {
        size_t      first;
        size_t      n_tokens;
        std::string key;
        bool        has_id; // false: what it is like is not known
    };

private:
    static bool drafts_from_tokens_alone(const common_params & params);
    static bool is_private(const server_slot & slot);
    static std::vector<media_in_prompt> find_media(const server_tokens & tokens);
    static size_t end_before_cut_media(const std::vector<media_in_prompt> & media, size_t n_held);
    static void copy_first(server_tokens & to, const server_tokens & tokens, size_t n);
    static std::string name_adapters(const server_slot & slot);

    template <typename server_t> static uint64_t count_for_generating(const server_t & server);
    template <typename server_t> static uint64_t count_needed(const server_t & server);
    template <typename server_t> static bool give_way(server_t & server);
    static bool can_be_preempted(const server_slot & slot);
    template <typename server_t> static void preempt(server_t & server, server_slot & slot);

    // The media that come next in a preempted slot's prompt; they are decoded by themselves. false: refused
    template <typename server_t> static bool compute_media(server_t & server, server_slot & slot);
};

template <typename server_t>
void espalier_server::init(server_t & server) {
    auto & paged = server.espalier;
    std::string why_not = "this kind of draft model keeps more of a prompt than keys and values";
    if (!server.ctx_dft || drafts_from_tokens_alone(server.params_base)) {
        paged.kv = espalier_kv::create(server.ctx_tgt, server.ctx_dft, server.params_base.n_parallel, why_not);
    }
    if (!paged.kv) {
        std::atomic_store(&paged.numbers, {});
        SRV_WRN("--kv-paged: the KV cache runs unpaged, because %s\n", why_not.c_str());
        return;
    }
    std::atomic_store(&paged.numbers, std::make_shared<espalier_numbers>(paged.kv->shared_pool()));
    SRV_INF("the KV cache is paged: %d blocks of %d cells\n", (int) paged.kv->statistics().block_count, (int) espalier_kv::block_size);

    for (auto & slot : server.slots) {
        slot.kv               = paged.kv.get();
        slot.kv_keep_released = !server.params_base.slot_save_path.empty(); // there must be something to save
    }
    if (server.params_base.ctx_shift) {
        SRV_WRN("%s", "--context-shift is not supported by a paged KV cache, disabling\n");
        server.params_base.ctx_shift = false;
    }
    // The pool keeps what was computed.
    server.params_base.cache_ram_mib    = 0;
    server.params_base.cache_idle_slots = false;
}

template <typename server_t>
void espalier_server::destroy(server_t & server) {
    server.espalier.kv.reset(); // a server that sleeps goes on to say its numbers
}

// The others continue from what the model itself computed for earlier tokens, which nobody keeps.
inline bool espalier_server::drafts_from_tokens_alone(const common_params & params) {
    const auto & types = params.speculative.types;
    return std::none_of(types.begin(), types.end(), [](common_speculative_type type) {
        return type == COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3 || type == COMMON_SPECULATIVE_TYPE_DRAFT_MTP ||
               type == COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH || type == COMMON_SPECULATIVE_TYPE_DRAFT_DSPARK;
    });
}

// Nobody else may use what it computes: not every token of it is computed alike.
inline bool espalier_server::is_private(const server_slot & slot) {
    return !slot.task->params.cache_prompt || slot.task->need_embd() || lora_all_alora(slot.lora);
}

// The id of an image is the SHA-256 of its file. Its number among the media tells the slices of one file apart.
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

// An image is computed whole or not at all.
inline size_t espalier_server::end_before_cut_media(const std::vector<media_in_prompt> & media, size_t n_held) {
    for (const auto & one : media) {
        if (one.first < n_held && n_held < one.first + one.n_tokens) {
            return one.first;
        }
    }
    return n_held;
}

// Images without their pixels. Not server_tokens::keep_first, which cannot cut between two images.
inline void espalier_server::copy_first(server_tokens & to, const server_tokens & tokens, size_t n) {
    to.clear();
    while (to.size() < n) {
        if (tokens[to.size()] == LLAMA_TOKEN_NULL) {
            to.push_back_placeholder(tokens.find_chunk(to.size()).get());
        } else {
            to.push_back(tokens[to.size()]);
        }
    }
}

inline std::string espalier_server::name_adapters(const server_slot & slot) {
    std::string names;
    for (size_t i : lora_get_enabled_ids(slot.lora)) {
        names += string_format("%zu %a,", i, slot.lora[i].scale);
    }
    return names;
}

template <typename server_t>
bool espalier_server::take_turn(server_t & server, server_slot & slot, const server_tokens & tokens) {
    if (tokens.empty() || (int) tokens.size() >= slot.n_ctx) {
        return true; // refused by the server itself
    }
    // Kept or restored, and more of it than blocks of others are likely to give.
    const bool holds_enough = !slot.prompt.tokens.empty() && slot.kv->may_go_on(slot.id, slot.task->params.kv_salt) &&
                              2*slot.prompt.tokens.get_common_prefix(tokens) >= tokens.size();
    if (!slot.prompt.tokens.empty() && !holds_enough && !slot.kv->has_begun(slot.id)) {
        slot.prompt_clear();
    }
    const std::vector<media_in_prompt> media = find_media(tokens);
    const bool          are_known = std::all_of(media.begin(), media.end(), [](const media_in_prompt & one) { return one.has_id; });
    const llama_token * shared    = is_private(slot) || !are_known ? nullptr : &tokens[0];
    const std::string   adapters  = name_adapters(slot);

    std::vector<espalier_pool_extra> extras;
    for (const auto & one : media) {
        extras.push_back({ (uint32_t) one.first, (uint32_t) one.n_tokens, (const uint8_t *) one.key.data(), one.key.size() });
    }
    size_t n_held = 0;
    switch (slot.kv->take_turn(slot.id, { shared, tokens.size(), slot.task->params.kv_salt, adapters, extras }, count_for_generating(server), n_held)) {
        case espalier_kv::turn::compute:
            break;
        case espalier_kv::turn::wait:
            return false;
        case espalier_kv::turn::too_large:
            server.send_error(slot, string_format("the request needs %d KV blocks for its %d tokens, and the pool has %d",
                    (int) espalier_kv::n_blocks(tokens.size() + 1), (int) tokens.size(), (int) slot.kv->statistics().block_count), ERROR_TYPE_UNAVAILABLE);
            slot.release();
            return false;
    }
    server.espalier.numbers->queried_tokens += tokens.size();
    if (slot.kv->has_begun(slot.id)) {
        n_held = end_before_cut_media(media, n_held);
        copy_first(slot.prompt.tokens, tokens, n_held);
        slot.mem.seq_rm(slot.id, n_held, -1);
        server.espalier.numbers->hit_tokens += n_held;
    }
    return true;
}

template <typename server_t>
void espalier_server::prepare_step(server_t & server) {
    auto & kv = server.espalier.kv;
    if (!kv) {
        return;
    }
    for (const server_slot & slot : server.slots) {
        const bool computes = slot.state == SLOT_STATE_PROCESSING_PROMPT || slot.state == SLOT_STATE_GENERATING;
        if (computes && !slot.prompt.tokens.empty()) {
            kv->publish(slot.id, &slot.prompt.tokens[0], slot.prompt.tokens.size());
        }
    }
    while (count_needed(server) > kv->n_available() && give_way(server)) {
    }
}

// Blocks that generating slots take in the step that is being prepared.
template <typename server_t>
uint64_t espalier_server::count_for_generating(const server_t & server) {
    uint64_t needed = 0;
    for (const server_slot & slot : server.slots) {
        if (slot.state == SLOT_STATE_GENERATING) {
            const int n_draft = slot.can_speculate() ? std::min(slot.get_n_draft_max(), common_speculative_n_max(slot.spec)) : 0;
            // One more for who shares a block that is not full, and cannot write into it.
            needed += slot.kv->n_missing(slot.id, slot.prompt.n_tokens() + 1 + n_draft) + slot.task->is_child();
        }
    }
    return needed;
}

template <typename server_t>
uint64_t espalier_server::count_needed(const server_t & server) {
    return server.espalier.kv->n_promised() + count_for_generating(server);
}

// What it held can be computed again from its task's prompt and its tokens, and by it alone.
inline bool espalier_server::can_be_preempted(const server_slot & slot) {
    return !slot.task->is_parent() && !slot.task->is_child() && slot.inp_embd.empty();
}

// Who loses least gives its blocks away. false: nobody can
template <typename server_t>
bool espalier_server::give_way(server_t & server) {
    server_slot * latest      = nullptr; // of those that can be preempted
    server_slot * last_resort = nullptr; // of the others
    size_t        n_running   = 0;
    for (server_slot & slot : server.slots) {
        const bool waits = slot.state == SLOT_STATE_STARTED || (slot.state == SLOT_STATE_PREEMPTED && slot.prompt.tokens.empty());
        if (waits && slot.kv->n_held(slot.id) > 0) {
            slot.kv->end(slot.id);
            slot.prompt_clear();
            return true;
        }
        if (slot.state == SLOT_STATE_PROCESSING_PROMPT || slot.state == SLOT_STATE_GENERATING || slot.state == SLOT_STATE_PREEMPTED) {
            n_running += slot.kv->n_held(slot.id) > 0;
            server_slot *& of_its_kind = can_be_preempted(slot) ? latest : last_resort;
            if (slot.kv->n_held(slot.id) > 0 && (!of_its_kind || slot.task->id > of_its_kind->task->id)) {
                of_its_kind = &slot;
            }
        }
    }
    if (server.try_clear_idle_slots()) {
        return true;
    }
    if (latest && n_running > 1) {
        preempt(server, *latest);
        return true;
    }
    server_slot * too_large = latest ? latest : last_resort;
    if (!too_large) {
        return false;
    }
    server.send_error(*too_large, string_format("the request has grown to %d tokens and needs more KV blocks than the pool has for it (%d in all)",
            too_large->prompt.n_tokens(), (int) too_large->kv->statistics().block_count), ERROR_TYPE_UNAVAILABLE);
    too_large->release();
    return true;
}

template <typename server_t>
void espalier_server::preempt(server_t & server, server_slot & slot) {
    SLT_WRN(slot, "preempted with %d %stokens: %d KV blocks are needed, %d are available\n", slot.prompt.n_tokens(),
            slot.state == SLOT_STATE_GENERATING ? "" : "prompt ", (int) count_needed(server), (int) slot.kv->n_available());
    if (slot.state == SLOT_STATE_GENERATING) {
        slot.preempted = slot.prompt.tokens.clone();
        slot.state     = SLOT_STATE_PREEMPTED;
    } else if (slot.state == SLOT_STATE_PROCESSING_PROMPT) {
        slot.state = SLOT_STATE_STARTED;
        slot.stats = {}; // the server begins to count when it begins the prompt
    }
    slot.kv->end(slot.id);
    slot.prompt_clear();
}

template <typename server_t>
bool espalier_server::resume(server_t & server, server_slot & slot, int32_t n_batch) {
    if (slot.prompt.tokens.empty() && !take_turn(server, slot, slot.preempted)) {
        return true;
    }
    if (!compute_media(server, slot)) {
        return true;
    }
    const auto & tokens = std::as_const(slot.preempted);
    while (slot.prompt.n_tokens() < (int) tokens.size()) {
        const llama_token token = tokens[slot.prompt.n_tokens()];
        if (token == LLAMA_TOKEN_NULL) {
            return true; // in the next step, when what comes before it is computed
        }
        if (server.batch.size() >= n_batch || !server.batch.add(slot.id, token, slot.prompt.tokens.pos_next(), false, true)) {
            return false;
        }
        slot.prompt.tokens.push_back(token);
    }
    slot.preempted.clear();
    slot.state = SLOT_STATE_GENERATING;
    return true;
}

template <typename server_t>
bool espalier_server::compute_media(server_t & server, server_slot & slot) {
    const auto is_next = [&]() {
        return slot.prompt.n_tokens() < (int) slot.preempted.size() && std::as_const(slot.preempted)[slot.prompt.n_tokens()] == LLAMA_TOKEN_NULL;
    };
    while (is_next()) {
        const size_t first = slot.prompt.n_tokens();
        size_t  n_tokens = 0;
        int32_t status   = 0;
        server.queue_tasks.yield_to_queue([&]() { status = process_mtmd_chunk(slot, slot.mbatch, first, n_tokens); });
        if (status != 0) {
            server.send_error(slot, "failed to process mtmd chunk", ERROR_TYPE_SERVER);
            slot.release();
            return false;
        }
        slot.prompt.tokens.push_back_placeholder(slot.task->tokens.find_chunk(first).get());
    }
    return true;
}

template <typename server_t>
int32_t espalier_server::limit_prompts(const server_t & server, int32_t n_batch) {
    const int32_t n_generated = server.batch.size();
    const int32_t budget      = server.params_base.prefill_budget;
    return budget > 0 && n_generated > 0 ? std::min(n_batch, n_generated + budget) : n_batch;
}

template <typename server_t>
void espalier_server::note_token(server_t & server, server_slot & slot) {
    if (!server.espalier.numbers) {
        return;
    }
    auto &        numbers = *server.espalier.numbers;
    const int64_t now     = ggml_time_us();
    if (slot.stats.n_gen <= 1) {
        numbers.to_first_token.add(now - slot.task->params.t_arrival);
    } else {
        numbers.between_tokens.add(now - slot.t_last_token);
    }
    slot.t_last_token = now;
}

// For /metrics. Nothing if the KV cache is not paged.
inline void espalier_add_metrics(std::string & to, const std::shared_ptr<espalier_numbers> & numbers) {
    if (numbers) {
        to += numbers->to_metrics();
    }
}

// For /props. Likewise.
inline void espalier_add_pool(json & to, const std::shared_ptr<espalier_numbers> & numbers) {
    if (!numbers) {
        return;
    }
    const auto now = numbers->of_pool();
    to["kv_pool"] = {
        { "block_count",      now.block_count      },
        { "block_size",       now.block_size       },
        { "blocks_used",      now.blocks_used      },
        { "blocks_used_peak", now.blocks_used_peak },
        { "blocks_retained",  now.blocks_retained  },
        { "blocks_empty",     now.blocks_empty     },
        { "queried_tokens",   numbers->queried_tokens.load() },
        { "hit_tokens",       numbers->hit_tokens.load() },
        { "evicted_blocks",   now.evicted_blocks   },
    };
}

// What the client gave as cache_salt. A wrong type is an error: who asks not to share must not share by a mistake.
inline std::string espalier_get_cache_salt(const server_http_req & req, const json & data) {
    json salt = data.is_object() && data.contains("cache_salt") ? data.at("cache_salt") : json();
    // Some APIs are converted, and what the conversion does not know is lost.
    if (salt.is_null() && req.body.find("\"cache_salt\"") != std::string::npos) {
        const json body = json::parse(req.body); // it was parsed before
        salt = body.is_object() && body.contains("cache_salt") ? body.at("cache_salt") : json();
    }
    if (!salt.is_null() && !salt.is_string()) {
        throw std::invalid_argument("\"cache_salt\" must be a string");
    }
    return salt.is_null() ? std::string() : salt.get<std::string>();
}

// Who may share KV: the holder of the same API key, and of these only who sends the same cache_salt. The key is
// the one that the server has checked, found as it finds it.
inline std::string espalier_get_salt(const common_params & params, const server_http_req & req, const json & data) {
    std::string authorization;
    std::string x_api_key;
    for (const auto & [name, value] : req.headers) {
        std::string lower = name;
        std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
        if (lower == "authorization") {
            authorization = value;
        } else if (lower == "x-api-key") {
            x_api_key = value;
        }
    }
    std::string key = authorization.empty() ? x_api_key : authorization;
    if (key.rfind("Bearer ", 0) == 0) {
        key = key.substr(7);
    }
    const size_t tenant = std::find(params.api_keys.begin(), params.api_keys.end(), key) - params.api_keys.begin();
    return "tenant " + std::to_string(tenant) + ":" + espalier_get_cache_salt(req, data);
}
