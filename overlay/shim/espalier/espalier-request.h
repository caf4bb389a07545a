// The fields of a request that the paged KV cache and the queue use: its sender, sharing scope and priority; and the
// inputs that the KV of its prompt depends on.

#pragma once

#include "espalier-owner.h"
#include "espalier-tenant.h"

#include "server-common.h"
#include "server-http.h"
#include "server-task.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

//
// Inputs of the KV of a prompt
//

// Every field of a request. The KV of a block depends on the tokens up to its end, and in addition on
//   * lora: the adapters and their scales; they enter the key of every block (espalier_adapters)
//   * kv_tenant, kv_salt: they do not affect the KV, but only equal ones may share (espalier_owner::scope)
//   * cache_prompt: false matches no cached blocks and caches none
// The other fields control stopping, sampling and the format of the answer; none of them reaches llama_decode. Options
// that are constant for the life of a context (control vectors, RoPE, pooling, types of the cache) need not be
// distinguished in a pool, which lives as long; a slot file records them (espalier_origin). Images and audio are
// distinguished by their digests (espalier_server::find_media).
//
// The fields for the format of the answer differ between upstream trees, so they are an argument. The last field,
// embd_normalize, is not in this list: no comma may follow the last name of a structured binding.
#define ESPALIER_REQUEST_FIELDS(field, format_fields) \
    field(stream) field(include_usage) field(cache_prompt) field(return_tokens) field(return_progress) \
    field(sse_ping_interval) field(n_keep) field(n_discard) field(n_predict) field(n_indent) field(n_cmpl) \
    field(kv_tenant) field(kv_salt) field(priority) field(id_request) field(has_slot) field(may_wait) field(t_arrival) field(n_cache_reuse) \
    field(t_max_prompt_ms) field(t_max_predict_ms) field(lora) field(antiprompt) field(stop_sequences) field(response_fields) \
    field(timings_per_token) field(post_sampling_probs) field(n_answer_probs) field(sampling) field(speculative) field(verbose) \
    field(res_type) field(oaicompat_model) field(oaicompat_cmpl_id) field(control_action) field(control_cmpl_id) \
    format_fields field(message_spans)

template <typename params_t, typename = void>
struct espalier_has_chat_parser : std::false_type {};
template <typename params_t>
struct espalier_has_chat_parser<params_t, std::void_t<decltype(params_t::chat_parser_params)>> : std::true_type {};

// Fails to compile when upstream adds a field to a request: whoever moves the pin, or adds a generation, must state
// above whether the KV of a prompt depends on it. It is a template because `if constexpr` discards a branch only in one.
template <typename params_t>
void espalier_check_fields_of(const params_t & params) {
#define ESPALIER_NAME(field) field,
#define ESPALIER_IS_IN_ITS_PLACE(field) \
    static_assert(std::is_same<decltype(params_t::field), std::remove_const_t<std::remove_reference_t<decltype(field)>>>::value, #field);
    if constexpr (espalier_has_chat_parser<params_t>::value) {
        const auto & [ESPALIER_REQUEST_FIELDS(ESPALIER_NAME, ESPALIER_NAME(chat_parser_params)) embd_normalize] = params;
        ESPALIER_REQUEST_FIELDS(ESPALIER_IS_IN_ITS_PLACE, ESPALIER_IS_IN_ITS_PLACE(chat_parser_params))
        ESPALIER_IS_IN_ITS_PLACE(embd_normalize)
    } else {
        const auto & [ESPALIER_REQUEST_FIELDS(ESPALIER_NAME, ESPALIER_NAME(chat_format) ESPALIER_NAME(reasoning_format)) embd_normalize] = params;
        ESPALIER_REQUEST_FIELDS(ESPALIER_IS_IN_ITS_PLACE, ESPALIER_IS_IN_ITS_PLACE(chat_format) ESPALIER_IS_IN_ITS_PLACE(reasoning_format))
        ESPALIER_IS_IN_ITS_PLACE(embd_normalize)
    }
#undef ESPALIER_IS_IN_ITS_PLACE
#undef ESPALIER_NAME
}

inline void espalier_check_request_fields(const task_params & params) {
    espalier_check_fields_of(params); // instantiates the check
}

// Identifies adapters by the content of their files, so that another server recognizes a sequence that was saved to a
// file.
class espalier_adapters {
public:
    // Reads each file once.
    explicit espalier_adapters(const std::vector<common_adapter_lora_info> & adapters) {
        for (const auto & adapter : adapters) {
            digests.push_back(espalier_digest_of_file(adapter.path));
        }
    }

    // The key of all adapters with a scale other than 0; negative scales count too. Empty: no adapters.
    std::string key(const std::vector<common_adapter_lora_info> & adapters) const {
        std::string names;
        for (size_t i = 0; i < adapters.size(); i++) {
            if (adapters[i].scale != 0.0f) {
                names += string_format("%s %a,", i < digests.size() ? digests[i].c_str() : std::to_string(i).c_str(), adapters[i].scale);
            }
        }
        return names;
    }

private:
    std::vector<std::string> digests;
};

//
// Sender
//

// The tenant of a request. A server without keys uses the one in the request unchecked: either it is a router's child,
// and the router has checked the key, or the key can only isolate its sender further.
inline std::string espalier_get_tenant(const common_params & params, const server_http_req & req) {
    const auto & keys = params.api_keys;
    // If a request has several key headers, cpp-httplib's middleware checks one, which need not be the one found here.
    if (!espalier_found_tenant(req) && !keys.empty() && std::find(keys.begin(), keys.end(), espalier_find_key(req.headers)) == keys.end()) {
        throw std::invalid_argument("the request has several API keys, and one of them is unknown");
    }
    return espalier_tenant_of(req);
}

// The fields of a request body as the client sent them. Some APIs are converted, and the conversion drops fields that
// it does not know; the body is then parsed again, once for all fields and for all prompts of a request. Must not
// outlive the request and its data.
class espalier_fields {
public:
    espalier_fields(const server_http_req & req, const json & data) : data(data), req(req) {}

    // Returns null if there is no such field.
    json find(const std::string & name) {
        if (data.is_object() && data.contains(name)) {
            return data.at(name);
        }
        // A JSON key can contain escapes, so its name need not occur literally in the body.
        if (req.body.find('"' + name + '"') == std::string::npos && req.body.find("\\u") == std::string::npos) {
            return {};
        }
        if (!body) {
            body = std::make_unique<json>(json::parse_no_throw(req.body));
        }
        return body->is_object() && body->contains(name) ? body->at(name) : json();
    }

    const json & data; // after the API's conversion

private:
    const server_http_req & req;
    std::unique_ptr<json>   body; // parsed at the first use
};

// The client's cache_salt, hashed; empty: none. A wrong type is an error: a client that asks for isolation must not
// share because of a mistake.
inline std::string espalier_get_salt(espalier_fields & fields) {
    const json salt = fields.find("cache_salt");
    if (!salt.is_null() && !salt.is_string()) {
        throw std::invalid_argument("\"cache_salt\" must be a string");
    }
    const std::string text = salt.is_null() ? "" : salt.get<std::string>();
    return text.empty() ? "" : espalier_digest("salt " + text);
}

// Adds Retry-After to a refusal because the queue is full, or a slot or the pool is busy. The time that the requests
// before it take is not known, and a request that is refused again costs nothing.
inline void espalier_add_headers(const json & error, std::map<std::string, std::string> & headers) {
    const std::string type = json_value(error, "type", std::string());
    if (type == "rate_limit_error" || type == "busy_error") {
        headers["Retry-After"] = "1";
    }
}

// Returns the integer value of a field, or throws with a message for the client. Every integer that the queue or the
// scheduler relies on is read here.
inline int32_t espalier_get_integer(const json & value, const std::string & name, int32_t min, int32_t max, const std::string & meaning) {
    try {
        const int number = value.get<int>();
        if (number >= min && number <= max) {
            return number;
        }
    } catch (const common_json_error &) {
        // not an integer of 32 bits; the message below has the range
    }
    throw std::invalid_argument(string_format("\"%s\" is %s, but must be an integer from %d to %d (%s)", name.c_str(), value.dump().c_str(), min, max, meaning.c_str()));
}

// Whether slots are assigned in the order of the queue, and not as in stock.
inline bool espalier_gives_slots_in_order(const common_params & params) {
    return params.kv_paged || params.allow_priority || params.max_queued > 0;
}

// The slot that a completion asks for; -1: any.
inline int32_t espalier_get_id_slot(const common_params & params, espalier_fields & fields) {
    if (!espalier_gives_slots_in_order(params)) {
        return json_value(fields.data, "id_slot", -1);
    }
    const json id_slot = fields.find("id_slot");
    return id_slot.is_null() ? -1 : espalier_get_integer(id_slot, "id_slot", -1, params.n_parallel - 1, "-1 is any slot");
}

// The reason why the slot id in the path of an action is invalid. Empty: it is valid.
inline std::string espalier_refuse_slot(const common_params & params, const std::string & id_slot) {
    if (!espalier_gives_slots_in_order(params)) {
        return "";
    }
    const bool is_number = !id_slot.empty() && id_slot.size() < 10 && std::all_of(id_slot.begin(), id_slot.end(), [](unsigned char c) { return std::isdigit(c); });
    if (is_number && std::stoi(id_slot) < params.n_parallel) {
        return "";
    }
    return string_format("Invalid slot ID \"%s\": this server has slots 0 to %d", id_slot.c_str(), params.n_parallel - 1);
}

// Checks the number of choices (`n`) of a request: each takes one slot, all at the same time.
inline void espalier_check_choices(const common_params & params, espalier_fields & fields) {
    if (!espalier_gives_slots_in_order(params)) {
        return;
    }
    for (const char * name : { "n", "n_cmpl" }) {
        const json choices = fields.find(name);
        if (!choices.is_null()) {
            espalier_get_integer(choices, name, 1, params.n_parallel, "each answer takes one of the slots of -np");
        }
    }
}

// Without keys, salts and --kv-paged all requests have the same owner, and slots are used as in stock.
inline bool espalier_has_owners(const common_params & params, const espalier_owner & owner) {
    return params.kv_paged || !owner.scope().empty();
}

// Reads cache_prompt from the original body: some conversions drop it, and the request would share. A wrong type is an
// error as with cache_salt. Without owners the field is read as in stock.
inline bool espalier_shares(bool has_owners, espalier_fields & fields) {
    const json cache_prompt = has_owners ? fields.find("cache_prompt") : json();
    if (!cache_prompt.is_null() && !cache_prompt.is_boolean()) {
        throw std::invalid_argument("\"cache_prompt\" must be true or false");
    }
    return cache_prompt.is_null() || cache_prompt.get<bool>();
}

inline int32_t espalier_get_priority(const common_params & params, espalier_fields & fields) {
    const json priority = fields.find("priority");
    if (priority.is_null()) {
        return 0;
    }
    const int32_t place = espalier_get_integer(priority, "priority", INT32_MIN, INT32_MAX, "the smallest value is admitted first");
    if (place != 0 && !params.allow_priority) {
        throw std::invalid_argument("\"priority\" is not allowed here; start the server with --allow-priority");
    }
    return place;
}

// Reads these fields of every request that computes something or acts on a slot.
inline void espalier_read_request(const common_params & params, const server_http_req & req, espalier_fields & fields, task_params & to) {
    to.kv_tenant = espalier_get_tenant(params, req);
    to.kv_salt   = espalier_get_salt(fields);
    to.priority  = espalier_get_priority(params, fields);
    espalier_check_choices(params, fields);
    const espalier_owner owner = { to.kv_tenant, to.kv_salt, "" };
    to.cache_prompt = espalier_shares(espalier_has_owners(params, owner), fields) && to.cache_prompt;
}

// The same for a request that is a single task.
inline void espalier_read_request(const common_params & params, const server_http_req & req, const json & data, task_params & to) {
    espalier_fields fields(req, data);
    espalier_read_request(params, req, fields, to);
    to.t_arrival = ggml_time_us();
}

// Checks the fields of a request before a sleeping server loads the model for it. These are the checks that are made
// when its tasks are created.
inline void espalier_check_request(const common_params & params, const server_http_req & req, const json & data, bool has_slot) {
    task_params ignored;
    espalier_fields fields(req, data);
    espalier_read_request(params, req, fields, ignored);
    if (has_slot) {
        espalier_get_id_slot(params, fields);
    }
}
