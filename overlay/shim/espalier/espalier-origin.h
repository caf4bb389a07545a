// What computes here, as far as a saved text depends on it: a file goes on to be certain only where the same does.

#pragma once

#include "espalier-owner.h"

#include "common.h"
#include "ggml-cpp.h"
#include "gguf.h"
#include "llama.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

// Names, types, sizes and places of a GGUF file's tensors, and a page out of the middle of each. Another training changes every
// tensor nearly everywhere, so nobody waits for the rest to be read. Empty: it cannot be read.
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

// A model's files: one, or the parts that its name counts.
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

// What is not in the files and changes what they compute.
inline std::string espalier_describe_context(const common_params & params, const llama_context * ctx) {
    const char * no_rotation = getenv("LLAMA_ATTN_ROT_DISABLE");
    std::string text = string_format("%d %a %a %a %a %a %a %d %u %d\n", (int) params.rope_scaling_type, params.rope_freq_base,
            params.rope_freq_scale, params.yarn_ext_factor, params.yarn_attn_factor, params.yarn_beta_fast, params.yarn_beta_slow,
            params.yarn_orig_ctx, llama_n_ctx_seq(ctx), no_rotation ? atoi(no_rotation) : 0);
    for (const auto & control : params.control_vectors) {
        text += string_format("%a %d %d ", control.strength, params.control_vector_layer_start, params.control_vector_layer_end);
        text += espalier_digest_of_file(control.fname) + "\n";
    }
    for (const auto & change : params.kv_overrides) {
        const bool is_text = change.tag == LLAMA_KV_OVERRIDE_TYPE_STR;
        const bool is_bool = change.tag == LLAMA_KV_OVERRIDE_TYPE_BOOL;
        text += string_format("%d %s ", (int) change.tag, change.key);
        text += is_text ? change.val_str : std::to_string(is_bool ? change.val_bool : change.val_i64);
        text += "\n";
    }
    return text;
}

// Empty: a file of the model cannot be read.
inline std::string espalier_origin(const common_params & params, const llama_context * ctx) {
    std::vector<std::string> files = espalier_files_of_model(params.model.path);
    if (!params.mmproj.path.empty()) {
        files.push_back(params.mmproj.path);
    }
    std::string text = espalier_describe_context(params, ctx);
    for (const std::string & file : files) {
        const std::string digest = espalier_digest_of_tensors(file);
        if (digest.empty()) {
            return "";
        }
        text += digest + "\n";
    }
    return espalier_digest(text);
}
