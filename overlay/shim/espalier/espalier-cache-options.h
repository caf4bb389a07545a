// The options of a KV cache besides the types of K and V. A member of common_params, as those types are, so that each
// context has its own.

#pragma once

#include "espalier-types.h"

#include <array>
#include <cctype>
#include <cstdint>
#include <stdexcept>
#include <string>

// Bytes of a size in MiB, or with one of the suffixes K, M and G. Throws std::invalid_argument.
inline int64_t espalier_bytes_of_size(const char * option, const std::string & size) {
    const std::string suffixes = "KMG";
    const size_t      suffix   = size.empty() ? std::string::npos : suffixes.find((char) std::toupper((unsigned char) size.back()));
    const std::string digits   = size.substr(0, size.size() - (suffix != std::string::npos));
    const bool        is_size  = !digits.empty() && digits.size() <= 9 && digits.find_first_not_of("0123456789") == std::string::npos;
    if (!is_size) {
        throw std::invalid_argument(std::string(option) + " is a size in MiB, or one with K, M or G, not \"" + size + "\"");
    }
    return std::stoll(digits) << (suffix == std::string::npos ? 20 : 10 * (suffix + 1));
}

// common_params::n_ctx with -c auto, until the size of the pool is known.
constexpr int32_t ESPALIER_CTX_AUTO = INT32_MIN;

// Throws std::invalid_argument if -c auto is combined with options that it contradicts.
inline void espalier_check_context_size(int32_t n_ctx, bool is_paged, bool is_fit, bool splits_tensors) {
    const char * why_not = !is_paged      ? "needs --kv-paged"
                         : !is_fit        ? "measures free memory, which -fit off turns off"
                         : splits_tensors ? "does not support --split-mode tensor"
                         :                  nullptr;
    if (n_ctx == ESPALIER_CTX_AUTO && why_not) {
        throw std::invalid_argument(std::string("-c auto ") + why_not + "; set the size with -c N");
    }
}

struct espalier_cache_options {
    // An explicit type takes precedence over --kv-quality regardless of their order: variables and presets are read in
    // an arbitrary order.
    bool is_type_k_given = false;
    bool is_type_v_given = false;

    const espalier_kv_quality * quality = nullptr; // --kv-quality; NULL: not given

    // Returns the settings of the name. The caller sets the types that were not given.
    const espalier_kv_quality & set_quality(const std::string & name) {
        quality = espalier_kv_quality_of_name(name.c_str());
        if (!quality) {
            throw std::invalid_argument("--kv-quality is safe, balanced or small");
        }
        return *quality;
    }

    void set(espalier_kv_setting setting, const char * option, int value) {
        if (value < 0) {
            throw std::invalid_argument(std::string(option) + " cannot be negative");
        }
        given[setting] = espalier_kv_clamp(setting, value);
    }

    // The option, or else its environment variable, or else what --kv-quality implies.
    int get(espalier_kv_setting setting) const {
        const int implied = quality && setting == ESPALIER_KV_RECENT ? quality->recent : 0;
        return given[setting] >= 0 ? given[setting] : espalier_kv_variable(setting, implied);
    }

    espalier_cache_rules rules() const {
        return { get(ESPALIER_KV_EDGE_LAYERS), quality && !is_type_k_given };
    }

    // The options of a draft model's context. Its types are options of its own (-ctkd, -ctvd), which --kv-quality does
    // not choose; the other settings are the target's, for a cache of one of our types.
    espalier_cache_options of_draft(int type_k, int type_v) const {
        espalier_cache_options draft = *this;
        draft.is_type_k_given = draft.is_type_v_given = true;
        if (!espalier_is_own_type(type_k) && !espalier_is_own_type(type_v)) {
            draft.given.fill(0);
        }
        return draft;
    }

private:
    std::array<int, ESPALIER_KV_SETTINGS> given = { -1, -1, -1 }; // by setting; -1: not given
};
