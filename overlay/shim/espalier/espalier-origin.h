// The origin of saved sequences: the model with its metadata, the options and the release that their KV depends on. A
// restored sequence remains certain (espalier_owner::is_certain) only if its file has the origin of this server.

#pragma once

#include "espalier-cache-types.h"
#include "espalier-owner.h"
#include "espalier.h"

#include "common.h"
#include "ggml-cpp.h"
#include "gguf.h"
#include "llama.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// Whether a key of a GGUF file's metadata cannot change the KV of given tokens: names, authors, sources and defaults of
// sampling (general.*; the types of the tensors are in their table), and the chat template, which is applied before
// there are tokens.
inline bool espalier_is_description(const std::string & key) {
    const auto begins_with = [&](const char * prefix) { return key.rfind(prefix, 0) == 0; };
    return (begins_with("general.") && key != "general.architecture") || begins_with("tokenizer.chat_template");
}

// The metadata without descriptions, and the names, types, shapes and offsets of the tensors, as the file has them.
// Removes the descriptions from `gguf`.
inline std::string espalier_take_metadata(gguf_context * gguf) {
    std::vector<std::string> descriptions;
    for (int64_t i = 0; i < gguf_get_n_kv(gguf); i++) {
        if (espalier_is_description(gguf_get_key(gguf, i))) {
            descriptions.push_back(gguf_get_key(gguf, i));
        }
    }
    for (const std::string & key : descriptions) {
        gguf_remove_key(gguf, key.c_str());
    }
    std::string bytes(gguf_get_meta_size(gguf), '\0');
    gguf_get_meta_data(gguf, &bytes[0]);
    return bytes;
}

// Digest of a GGUF file's metadata (RoPE, windows, norms, vocabulary and so on), and of a page out of the middle of
// each tensor. Another training run changes nearly all values of every tensor, so reading the rest is not worth the
// time. Empty: the file cannot be read.
inline std::string espalier_digest_of_gguf(const std::string & path) {
    const size_t page = 4096;
    const gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), { /*.no_alloc =*/ true, /*.ctx =*/ nullptr }));
    std::ifstream file(path, std::ios::binary);
    if (!gguf || !file) {
        return "";
    }
    std::string text = espalier_digest(espalier_take_metadata(gguf.get())) + "\n";
    for (int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); i++) {
        const size_t size = gguf_get_tensor_size(gguf.get(), i);
        const size_t at   = gguf_get_tensor_offset(gguf.get(), i);
        std::string  piece(std::min(size, page), '\0');
        file.seekg(gguf_get_data_offset(gguf.get()) + at + (size - piece.size()) / 2);
        if (!file.read(&piece[0], piece.size())) {
            return "";
        }
        text += espalier_digest(piece) + "\n";
    }
    return espalier_digest(text);
}

// The files of a model: one, or all parts of a split model.
inline std::vector<std::string> espalier_files_of_model(const std::string & path) {
    const gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), { /*.no_alloc =*/ true, /*.ctx =*/ nullptr }));
    const int64_t key   = gguf ? gguf_find_key(gguf.get(), "split.count") : -1;
    const int     count = key >= 0 && gguf_get_kv_type(gguf.get(), key) == GGUF_TYPE_UINT16 ? gguf_get_val_u16(gguf.get(), key) : 0;
    std::string   prefix(path.size() + 1, '\0');
    if (count < 2 || llama_split_prefix(&prefix[0], prefix.size(), path.c_str(), 0, count) <= 0) {
        return { path };
    }
    std::vector<std::string> files;
    for (int part = 0; part < count; part++) {
        std::string file(path.size() + 1, '\0');
        llama_split_path(&file[0], file.size(), prefix.c_str(), part, count);
        files.push_back(file.c_str());
    }
    return files;
}

// The origin of a sequence (model, context, release) as "name:value" pairs separated by blanks;
// espalier_name_difference compares two.
using espalier_origin_parts = std::vector<std::pair<std::string, std::string>>;

inline std::string espalier_join_origin(const espalier_origin_parts & parts) {
    std::string text;
    for (const auto & [name, value] : parts) {
        text += (text.empty() ? "" : " ") + name + ":" + value;
    }
    return text;
}

// A digest, because the strings of overrides can contain blanks.
inline std::string espalier_digest_of_overrides(const common_params & params) {
    std::string text;
    for (const auto & change : params.kv_overrides) {
        const bool is_text = change.tag == LLAMA_KV_OVERRIDE_TYPE_STR;
        const bool is_bool = change.tag == LLAMA_KV_OVERRIDE_TYPE_BOOL;
        text += string_format("%d %s ", (int) change.tag, change.key);
        text += is_text ? change.val_str : std::to_string(is_bool ? change.val_bool : change.val_i64);
        text += "\n";
    }
    return espalier_digest(text);
}

inline std::string espalier_digest_of_control_vectors(const common_params & params) {
    std::string text;
    for (const auto & control : params.control_vectors) {
        text += string_format("%a %d %d ", control.strength, params.control_vector_layer_start, params.control_vector_layer_end);
        text += espalier_digest_of_file(control.fname) + "\n";
    }
    return espalier_digest(text);
}

// Empty: a file of the model cannot be read.
inline std::string espalier_digest_of_model(const std::vector<std::string> & files) {
    std::string text;
    for (const std::string & file : files) {
        const std::string digest = espalier_digest_of_gguf(file);
        if (digest.empty()) {
            return "";
        }
        text += digest + "\n";
    }
    return espalier_digest(text);
}

// The llama.cpp release of this build. Another release may compute the KV differently.
inline std::string espalier_writer() {
    const std::string identity = espalier_identity();
    const size_t from = identity.find("pin ");
    return from == std::string::npos ? "unknown" : identity.substr(from + 4, identity.find_first_of(", ", from + 4) - from - 4);
}

inline std::string espalier_name_of(llama_attention_type type) {
    switch (type) {
        case LLAMA_ATTENTION_TYPE_CAUSAL:     return "causal";
        case LLAMA_ATTENTION_TYPE_NON_CAUSAL: return "non-causal";
        default:                              return "unspecified";
    }
}

// The version of the parts. A file with another one is of unknown origin: the first version had digests of the tensors
// alone, and not all options.
inline const char * const espalier_origin_version = "2";

// Empty: a file of the model cannot be read.
inline std::string espalier_origin(const common_params & params, const llama_context * ctx) {
    const std::string model  = espalier_digest_of_model(espalier_files_of_model(params.model.path));
    const std::string mmproj = params.mmproj.path.empty() ? "none" : espalier_digest_of_gguf(params.mmproj.path);
    if (model.empty() || mmproj.empty()) {
        return "";
    }
    const char * no_rotation = getenv("LLAMA_ATTN_ROT_DISABLE");
    const auto types = [&](bool is_k, ggml_type asked) {
        std::string text = espalier_describe_cache_types(llama_get_model(ctx), is_k, asked, params.cache_options.rules());
        text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
        return text;
    };
    const bool has_own_type = espalier_is_own_type(params.cache_type_k) || espalier_is_own_type(params.cache_type_v);
    const auto f16_tokens = [&](espalier_kv_setting setting) {
        return std::to_string(has_own_type ? params.cache_options.get(setting) : 0);
    };
    return espalier_join_origin({
        { "origin",                        espalier_origin_version },
        { "writer",                        espalier_writer() },
        { "model",                         model },
        { "mmproj",                        mmproj },
        { "-ctk",                          types(true,  params.cache_type_k) },
        { "-ctv",                          types(false, params.cache_type_v) },
        { "--kv-recent",                   f16_tokens(ESPALIER_KV_RECENT) },
        { "--kv-sinks",                    f16_tokens(ESPALIER_KV_SINKS) },
        // auto is on wherever the model and the device have flash attention, which is the same in the next server.
        { "-fa",                           params.flash_attn_type == LLAMA_FLASH_ATTN_TYPE_DISABLED ? "off" : "on" },
        { "--swa-full",                    params.swa_full && llama_model_n_swa(llama_get_model(ctx)) > 0 ? "on" : "off" },
        { "--attention",                   espalier_name_of(params.attention_type) },
        { "--image-min-tokens",            std::to_string(params.mmproj.path.empty() ? -1 : params.image_min_tokens) },
        { "--image-max-tokens",            std::to_string(params.mmproj.path.empty() ? -1 : params.image_max_tokens) },
        { "--rope-scaling",                std::to_string((int) params.rope_scaling_type) },
        { "--rope-freq-base",              string_format("%.9g", params.rope_freq_base) },
        { "--rope-freq-scale",             string_format("%.9g", params.rope_freq_scale) },
        { "--yarn-ext-factor",             string_format("%.9g", params.yarn_ext_factor) },
        { "--yarn-attn-factor",            string_format("%.9g", params.yarn_attn_factor) },
        { "--yarn-beta-fast",              string_format("%.9g", params.yarn_beta_fast) },
        { "--yarn-beta-slow",              string_format("%.9g", params.yarn_beta_slow) },
        { "--yarn-orig-ctx",               std::to_string(params.yarn_orig_ctx) },
        { "--control-vector",              espalier_digest_of_control_vectors(params) },
        { "--override-kv",                 espalier_digest_of_overrides(params) },
        { "LLAMA_ATTN_ROT_DISABLE",        std::to_string(no_rotation ? atoi(no_rotation) : 0) },
        { "n_ctx_seq",                     std::to_string(llama_n_ctx_seq(ctx)) },
        { "--kv-paged",                    params.kv_paged ? "on" : "off" },
    });
}

// Whether a difference in this part leaves a file usable, though tokens that follow it are not shared: few models
// compute differently with another context length, and cells of an unpaged cache may have been shifted
// (--context-shift, --cache-reuse, n_cache_reuse).
inline bool espalier_may_differ(const std::string & name) {
    return name == "n_ctx_seq" || name == "--kv-paged";
}

// Returns no parts for an empty origin, or for one of another version.
inline std::map<std::string, std::string> espalier_split_origin(const std::string & origin) {
    std::map<std::string, std::string> parts;
    std::istringstream words(origin);
    for (std::string word; words >> word;) {
        const size_t colon = word.find(':');
        if (colon != std::string::npos) {
            parts[word.substr(0, colon)] = word.substr(colon + 1);
        }
    }
    const auto version = parts.find("origin");
    if (version == parts.end() || version->second != espalier_origin_version) {
        parts.clear();
    }
    return parts;
}

// The differences between a file's origin and this server's, as the end of a sentence. Empty if none is known.
inline std::string espalier_name_difference(const std::string & of_file, const std::string & here) {
    const auto theirs = espalier_split_origin(of_file);
    std::string text;
    for (const auto & [name, value] : espalier_split_origin(here)) {
        const auto found = theirs.find(name);
        if (found == theirs.end() || found->second == value || espalier_may_differ(name)) {
            continue;
        }
        const bool is_digest = value.size() == 64 || found->second.size() == 64;
        text += text.empty() ? "" : ", ";
        if (name == "writer") {
            text += "by llama.cpp " + found->second + ", and this server is of " + value;
        } else if (is_digest) {
            text += "with another " + name;
        } else {
            text += "with " + name + " " + found->second + ", and this server has " + value;
        }
    }
    return text;
}
