// The owner of a sequence, and what its KV was computed with.

#pragma once

#include "espalier-pool.h"

#include <fstream>
#include <string>

// As 64 hexadecimal digits.
inline std::string espalier_digest(const std::string & bytes) {
    uint8_t digest[32] = {};
    espalier_pool_get_functions()->sha256((const uint8_t *) bytes.data(), bytes.size(), digest);
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (uint8_t byte : digest) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

// Reads the file in pieces, since it can be larger than the free memory.
inline std::string espalier_digest_of_file(const std::string & path) {
    std::ifstream file(path, std::ios::binary);
    std::string   piece(1 << 20, '\0');
    std::string   digest;
    while (file.read(&piece[0], piece.size()) || file.gcount() > 0) {
        digest = espalier_digest(digest + piece.substr(0, file.gcount()));
    }
    return digest.empty() ? espalier_digest("not read: " + path) : digest;
}

// Sequences may be continued or shared only if every field matches, except is_certain.
struct espalier_owner {
    std::string tenant;   // the authenticated API key, hashed; empty: none
    std::string salt;     // cache_salt of the request, hashed; empty: none
    std::string adapters; // the LoRA adapters with their scales; empty: none

    // false: restored from a file that does not record its origin, or that has another one. A request that continues it
    // shares nothing. Not a part of the owner's identity.
    bool is_certain = true;

    bool operator==(const espalier_owner & other) const {
        return tenant == other.tenant && salt == other.salt && adapters == other.adapters;
    }

    // The sharing scope, which enters the hash of the first block. Unambiguous, since each part is either empty or of
    // fixed length.
    std::string scope() const {
        return tenant.empty() && salt.empty() ? "" : tenant + ":" + salt;
    }
};
