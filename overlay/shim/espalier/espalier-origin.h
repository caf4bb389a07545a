// The origin of saved sequences: the model, options and release that their KV depends on. A restored sequence remains
// certain (espalier_owner::is_certain) only if its file has the origin of this server.

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

// Digest of the names, types, sizes and offsets of a GGUF file's tensors, and of a page out of the middle of each.
// Another training run changes nearly all values of every tensor, so reading the rest is not worth the time. Empty: the
// file cannot be read.
inline std::string espalier_digest_of_tensors(const std::string & path) {
    const size_t page = 4096;
    const gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), { /*.no_alloc =*/ true, /*.ctx =*/ nullptr }));
    std::ifstream file(path, std::ios::binary);
    if (!gguf || !file) {
        return "";
    }
    std::string text;
    for (int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); i++) {
        const size_t size = gguf_get_tensor_size(gguf.get(), i);
        const size_t at   = gguf_get_tensor_offset(gguf.get(), i);
        std::string  piece(std::min(size, page), '\0');
        file.seekg(gguf_get_data_offset(gguf.get()) + at + (size - piece.size()) / 2);
        if (!file.read(&piece[0], piece.size())) {
            return "";
        }
        text += string_format("%s %d %zu %zu ", gguf_get_tensor_name(gguf.get(), i), (int) gguf_get_tensor_type(gguf.get(), i), at, size);
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
inline std::string espalier_digest_of_tensors(const std::vector<std::string> & files) {
    std::string text;
    for (const std::string & file : files) {
        const std::string digest = espalier_digest_of_tensors(file);
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

// Empty: a file of the model cannot be read.
inline std::string espalier_origin(const common_params & params, const llama_context * ctx) {
    const std::string model  = espalier_digest_of_tensors(espalier_files_of_model(params.model.path));
    const std::string mmproj = params.mmproj.path.empty() ? "none" : espalier_digest_of_tensors(params.mmproj.path);
    if (model.empty() || mmproj.empty()) {
        return "";
    }
    const char * no_rotation = getenv("LLAMA_ATTN_ROT_DISABLE");
    const auto types = [&](bool is_k, ggml_type asked) {
        std::string text = espalier_describe_cache_types(llama_get_model(ctx), is_k, asked, params.cache_options.rules());
        text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
        return text;
    };
    return espalier_join_origin({
        { "writer",                        espalier_writer() },
        { "model",                         model },
        { "mmproj",                        mmproj },
        { "-ctk",                          types(true,  params.cache_type_k) },
        { "-ctv",                          types(false, params.cache_type_v) },
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
    });
}

// Returns no parts for an empty origin, or for one that an earlier version wrote (a single digest).
inline std::map<std::string, std::string> espalier_split_origin(const std::string & origin) {
    std::map<std::string, std::string> parts;
    std::istringstream words(origin);
    for (std::string word; words >> word;) {
        const size_t colon = word.find(':');
        if (colon != std::string::npos) {
            parts[word.substr(0, colon)] = word.substr(colon + 1);
        }
    }
    return parts;
}

// The differences between a file's origin and this server's, as the end of a sentence. Empty if none is known. The
// context length is not compared: few models compute differently with another one, and tokens that follow such a file
// are not shared.
inline std::string espalier_name_difference(const std::string & of_file, const std::string & here) {
    const auto theirs = espalier_split_origin(of_file);
    std::string text;
    for (const auto & [name, value] : espalier_split_origin(here)) {
        const auto found = theirs.find(name);
        if (found == theirs.end() || found->second == value || name == "n_ctx_seq") {
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
