// Whose a text is, and what computed it.

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

// In pieces, for a file can be larger than what is free.
inline std::string espalier_digest_of_file(const std::string & path) {
    std::ifstream file(path, std::ios::binary);
    std::string   piece(1 << 20, '\0');
    std::string   digest;
    while (file.read(&piece[0], piece.size()) || file.gcount() > 0) {
        digest = espalier_digest(digest + piece.substr(0, file.gcount()));
    }
    return digest.empty() ? espalier_digest("not read: " + path) : digest;
}

// Two texts may be gone on with, or share blocks, only if all of this is equal.
struct espalier_owner {
    std::string tenant;   // who was authenticated, hashed; empty: nobody was
    std::string salt;     // what the request brought as cache_salt, hashed; empty: nothing
    std::string adapters; // what besides the model computes it

    // false: a file that does not say what computed it, or names something else. Who goes on from it shares nothing; not a
    // part of who it is.
    bool is_certain = true;

    bool operator==(const espalier_owner & other) const {
        return tenant == other.tenant && salt == other.salt && adapters == other.adapters;
    }

    // Who may share: what enters the hash of the first block. One text for one meaning, since both parts are as long
    // always, or empty.
    std::string scope() const {
        return tenant.empty() && salt.empty() ? "" : tenant + ":" + salt;
    }
};
