// Which tenant may see, continue, save, restore or erase the sequence of a slot: one rule for a paged and an unpaged
// server. Included only by espalier-server.h.

#pragma once

#include "espalier-server-class.h"

template <typename server_t>
void espalier_server::init_owners(server_t & server) {
    auto & own = server.espalier;
    own.adapters = std::make_unique<espalier_adapters>(server.params_base.lora_adapters);
    if (!server.params_base.slot_save_path.empty()) {
        own.origin = espalier_origin(server.params_base, server.ctx_tgt);
    }
}

template <typename server_t>
espalier_owner espalier_server::owner_of(const server_t & server, const server_task & task) {
    const auto & params = task.params;
    espalier_owner owner = { params.kv_tenant, params.kv_salt, "" };
    if (espalier_has_owners(server.params_base, owner)) {
        owner.adapters = server.espalier.adapters->key(
            params.lora.empty() ? server.params_base.lora_adapters : server.construct_lora_list(params.lora));
    }
    return owner;
}

template <typename server_t>
std::string espalier_server::draft_owner_of(const server_t & server, const server_task & task) {
    const espalier_owner owner = owner_of(server, task);
    const bool is_alone = espalier_has_owners(server.params_base, owner) && !task.params.cache_prompt;
    return is_alone ? owner.scope() + "\nrequest " + std::to_string(task.params.id_request) : owner.scope();
}

template <typename server_t>
bool espalier_server::may_reuse(const server_t & server, const server_slot & slot, const server_task & task) {
    return slot.paged.kv || slot.prompt.tokens.empty() || slot.prompt.owner == owner_of(server, task);
}

template <typename server_t>
void espalier_server::take_over(server_t & server, server_slot & slot, const server_task & task) {
    if (slot.paged.kv) {
        return;
    }
    note_admitted(server, task.params.id_request);
    if (!may_reuse(server, slot, task)) {
        slot.prompt_clear();
    }
    slot.prompt.owner = owner_of(server, task);
}

// The sequence of a slot can belong to another tenant than the slot's last request, if it was restored since. The load
// stays visible: whether the slot is busy, and how large it is.
inline void espalier_server::hide_from(const std::string & tenant, const server_slot & slot, json & shown) {
    const auto & task = slot.task ? slot.task : slot.task_prev;
    const bool is_asker = !task || task->params.kv_tenant == tenant;
    bool is_holder = is_asker;
    if (slot.paged.retained) {
        is_holder = slot.paged.retained->owner().tenant == tenant;
    } else if (!slot.is_processing() && !slot.paged.kv && !slot.prompt.tokens.empty()) {
        is_holder = slot.prompt.owner.tenant == tenant;
    }
    json seen;
    for (const auto & [name, value] : shown.items()) {
        const bool is_load = name == "id" || name == "n_ctx" || name == "speculative" || name == "is_processing";
        const bool is_held = name == "kv_blocks" || name == "n_prompt_tokens";
        if (is_load || (is_held ? is_holder : is_asker)) {
            seen[name] = value;
        }
    }
    shown = std::move(seen);
}

// Whether the file may have been computed with adapters that it does not state: a stock server's, where this server has
// adapters, or one of a server that had adapters and one owner.
template <typename server_t>
bool espalier_server::has_unknown_adapters(const server_t & server, const espalier_slot_file::content & content) {
    return content.is == espalier_slot_file::STOCK
        ? !server.params_base.lora_adapters.empty()
        : content.owner.adapters == espalier_slot_record::unknown_adapters;
}

// Checks whether the file may be restored into the slot. Empty: it may. Else the reason why not: `content` is missing,
// damaged or unfit, or it belongs to another tenant.
template <typename server_t>
std::string espalier_server::read_file(server_t & server, const server_slot & slot, const server_task & task, const espalier_slot_file & file, espalier_slot_file::content & content) {
    content = file.verify();
    const std::string name = "the slot file \"" + task.slot_action.filename + "\"";
    const std::string & tenant = task.params.kv_tenant;
    if (content.is == espalier_slot_file::MISSING) {
        return name + " does not exist; save a slot under that name first";
    }
    if (content.is == espalier_slot_file::DAMAGED) {
        return name + " is damaged: its digest does not match; save the slot again";
    }
    // A file without a record states neither its owner nor its origin nor its adapters.
    if (content.is == espalier_slot_file::STOCK && !tenant.empty() && espalier_count_keys(server.params_base) > 1) {
        return "the file has no owner, and this server has more than one API key";
    }
    if (content.is == espalier_slot_file::OURS && content.owner.tenant != tenant) {
        return "the file belongs to another API key";
    }
    // Where all requests have the same owner, the adapters of a sequence are not noted: only such a server with adapters can
    // continue it.
    const bool needs_adapters = espalier_has_owners(server.params_base, owner_of(server, task)) || (content.is == espalier_slot_file::OURS && server.params_base.lora_adapters.empty());
    if (needs_adapters && has_unknown_adapters(server, content)) {
        content.is = espalier_slot_file::UNFIT;
        return name + " does not state the LoRA adapters that it was computed with; save the slot again with this server";
    }
    const std::string difference = espalier_name_difference(content.origin, server.espalier.origin);
    if (!difference.empty()) {
        content.is = espalier_slot_file::UNFIT;
        return name + " was saved " + difference + "; restore it with a server that has the same, or save the slot again";
    }
    const auto n_tokens = slot.paged.kv ? file.count_cells(content.record) : 0;
    if (!n_tokens) {
        content.is = espalier_slot_file::UNFIT;
        return name + " cannot be restored into a paged KV cache: it needs one cell for each token, at positions from 0";
    }
    content.n_tokens = *n_tokens;
    return "";
}

// Evicts the retained sequences of idle slots, the least recently used first, until the tokens fit. Empty: they fit, or
// the cache is not paged; else the reason why not, and an error type that says whether a retry can succeed.
template <typename server_t>
std::pair<std::string, error_type> espalier_server::free_blocks_for(server_t & server, size_t n_tokens) {
    if (!server.espalier.kv) {
        return { "", ERROR_TYPE_INVALID_REQUEST };
    }
    const auto     now      = [&] { return server.espalier.kv->statistics(); };
    const uint64_t n_needed = espalier_kv::n_blocks(n_tokens);
    const uint64_t n_all    = now().block_count;
    if (n_needed > n_all) {
        return { string_format("the file has %zu tokens, which need %d KV blocks, and the pool has %d in all; start the server with a larger -c",
                n_tokens, (int) n_needed, (int) n_all), ERROR_TYPE_INVALID_REQUEST };
    }
    const auto     lacks    = [&] { return n_all - now().blocks_used < n_needed || !server.espalier.kv->has_window_blocks_for_file(n_tokens); };
    while (lacks() && evict_retained(server)) {}
    if (lacks()) {
        return { string_format("the file has %zu tokens, which need %d KV blocks, and running requests hold %d of %d%s; try again later",
                n_tokens, (int) n_needed, (int) now().blocks_used, (int) n_all, describe_windows(now(), true).c_str()), ERROR_TYPE_BUSY };
    }
    return { "", ERROR_TYPE_INVALID_REQUEST };
}

// The reason why the context cannot read a file that is intact.
inline std::string espalier_server::open_slot::why_not_read() const {
    if (restored.is == espalier_slot_file::OURS && !restored.owner.is_certain) {
        return "the file was saved with another model, type of the KV cache (-ctk, -ctv) or adapter than this server has; "
               "start it with those, or save the slot again";
    }
    return "the file does not fit into the KV cache of this server: it was saved with another model or type of the cache (-ctk, -ctv), or -c is too small for it";
}

// Reading a file overwrites the slot's state, and may fail after that, so the state is copied first.
template <typename server_t>
std::optional<espalier_server::held_sequence> espalier_server::copy_held(server_t & server, const server_slot & slot, const espalier_owner & owner) {
    const server_tokens & tokens = slot.paged.retained ? slot.paged.retained->tokens() : slot.prompt.tokens;
    if (tokens.empty()) {
        return {};
    }
    held_sequence held;
    held.owner = owner;
    if (slot.paged.retained) {
        held.prompt.tokens = tokens.clone();
    } else {
        held.prompt = slot.prompt.clone();
    }
    held.state.resize(llama_state_seq_get_size(server.ctx_tgt, slot.id));
    if (llama_state_seq_get_data(server.ctx_tgt, held.state.data(), held.state.size(), slot.id) == 0) {
        return {};
    }
    return held;
}

// The state of the target model only: a draft model recomputes its own, as after a restore.
inline void espalier_server::open_slot::roll_back() {
    if (!before) {
        return;
    }
    if (llama_state_seq_set_data(slot.ctx_tgt, before->state.data(), before->state.size(), slot.id) == 0) {
        SLT_WRN(slot, "%s", "a refused restore lost the sequence of the slot: no free cells are left for it\n");
        slot.prompt_clear();
    } else {
        slot.prompt = std::move(before->prompt);
        owner       = before->owner;
    }
    before.reset();
}

template <typename server_t>
std::unique_ptr<espalier_server::open_slot> espalier_server::open_idle_slot(server_t & server, server_slot & slot, const server_task & task) {
    const auto & tenant = task.params.kv_tenant;
    const auto & retained = slot.paged.retained;
    const bool   is_unpaged_sequence = !slot.paged.kv && !slot.prompt.tokens.empty();
    espalier_owner owner = retained ? retained->owner() : is_unpaged_sequence ? slot.prompt.owner : espalier_owner{ tenant, task.params.kv_salt, "" };
    const auto refuse = [&](const std::string & why, error_type type) {
        server.send_error(task, why, type);
        return nullptr;
    };
    if (owner.tenant != tenant) {
        return refuse(string_format("slot %d holds the sequence of another API key", slot.id), ERROR_TYPE_PERMISSION);
    }
    if (task.type == SERVER_TASK_TYPE_SLOT_ERASE) {
        return std::make_unique<open_slot>(slot, owner);
    }
    const std::string &      origin = server.espalier.origin;
    const espalier_slot_file file(task.slot_action.filepath, origin);
    if (file.is_reserved()) {
        return refuse("Invalid filename", ERROR_TYPE_INVALID_REQUEST);
    }
    if (task.type == SERVER_TASK_TYPE_SLOT_RESTORE) {
        espalier_slot_file::content content;
        const std::string why = read_file(server, slot, task, file, content);
        if (!why.empty()) {
            const bool is_readable = content.is == espalier_slot_file::STOCK || content.is == espalier_slot_file::OURS;
            return refuse(why, is_readable ? ERROR_TYPE_PERMISSION : ERROR_TYPE_INVALID_REQUEST);
        }
        auto before = copy_held(server, slot, owner);
        owner = content.is == espalier_slot_file::OURS ? content.owner : owner_of(server, task);
        owner.is_certain = content.is == espalier_slot_file::OURS && content.owner.is_certain;
        if (has_unknown_adapters(server, content)) {
            owner.adapters = owner_of(server, task).adapters;
        }
        slot.prompt_clear(); // in both models, before the state of one of them is read
        auto opened = std::make_unique<open_slot>(slot, owner);
        opened->before = std::move(before);
        if (const auto [why_no_blocks, type] = free_blocks_for(server, content.n_tokens); !why_no_blocks.empty()) {
            opened->roll_back();
            return refuse(why_no_blocks, type);
        }
        opened->restored = std::move(content);
        return opened;
    }
    // A damaged file does not state its owner; if there are several keys, it could be any tenant's.
    const espalier_slot_file::content before = file.look();
    const bool is_of_another = before.is == espalier_slot_file::OURS && before.owner.tenant != tenant;
    const bool is_of_unknown = before.is == espalier_slot_file::DAMAGED && espalier_count_keys(server.params_base) > 1;
    if (is_of_another) {
        return refuse("the file belongs to another API key", ERROR_TYPE_PERMISSION);
    }
    if (is_of_unknown) {
        return refuse("the file is damaged and does not state its API key; save the slot under another name", ERROR_TYPE_PERMISSION);
    }
    // Where there is one owner, the adapters of a sequence are not noted.
    const bool knows_adapters = espalier_has_owners(server.params_base, owner) || server.params_base.lora_adapters.empty();
    espalier_owner recorded = owner;
    recorded.adapters = knows_adapters ? owner.adapters : espalier_slot_record::unknown_adapters;
    auto opened = std::make_unique<open_slot>(slot, owner);
    opened->saving = std::make_unique<espalier_saving>(file, espalier_slot_record::of(recorded, origin));
    return opened;
}
