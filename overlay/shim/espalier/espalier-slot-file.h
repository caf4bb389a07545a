// A saved slot: upstream's sequence file, with a record of the sequence's owner and origin, and a digest of everything.
// Every server with Espalier writes both, also without keys and with an unpaged cache.
//
//     head | record | tokens | state | checkpoints | trailer
//
// Head, tokens, state and checkpoints, if there are any, are as upstream writes them. The record is at the beginning of
// upstream's list of tokens, under a version that upstream does not have, so that a stock server refuses the file. The
// trailer is the digest of everything before it. A file that has only one of record and trailer is damaged, so neither a
// flipped bit nor truncation turns one of our files into one that looks like a stock file.

#pragma once

#include "espalier-owner.h"

#include "llama.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef _WIN32
#include <io.h>
#else
#include <fcntl.h>
#include <unistd.h>
#endif

// The record at the beginning of upstream's list of tokens: two marks, the length of the text in bytes, and the text.
struct espalier_slot_record {
    static constexpr llama_token marks[2]   = { -1, 0x31505345 }; // upstream's LLAMA_TOKEN_NULL, and "ESP1" as a version
    static constexpr size_t      n_head     = 3;                  // marks and the number of bytes
    static constexpr size_t      most_bytes = 1 << 20;

    // Instead of the adapters' digest: the server had adapters, and did not note which of them a sequence used.
    static constexpr const char * unknown_adapters = "unknown";

    std::string text;

    static espalier_slot_record of(const espalier_owner & owner, const std::string & origin) {
        return { owner.tenant + "\n" + owner.salt + "\n" + owner.adapters + "\n" + (owner.is_certain ? origin : "") + "\n" };
    }

    size_t n_words() const { return n_head + (text.size() + sizeof(llama_token) - 1) / sizeof(llama_token); }

    std::vector<char> to_bytes() const {
        const llama_token head[n_head] = { marks[0], marks[1], (llama_token) text.size() };
        std::vector<char> bytes((const char *) head, (const char *) (head + n_head));
        bytes.insert(bytes.end(), text.begin(), text.end());
        bytes.resize(n_words() * sizeof(llama_token));
        return bytes;
    }

    // The lines of the record; a valid one has four.
    std::vector<std::string> lines() const {
        std::vector<std::string> found;
        for (size_t from = 0, to; (to = text.find('\n', from)) != std::string::npos; from = to + 1) {
            found.push_back(text.substr(from, to - from));
        }
        return found;
    }
};

class espalier_slot_file {
public:
    // `origin` is the origin of this server, as returned by espalier_origin(); empty: unknown.
    espalier_slot_file(const std::string & path, const std::string & origin) : path(path), origin(origin) {}

    enum kind {
        MISSING,
        STOCK,   // without a record, as a stock server saves it
        OURS,
        DAMAGED, // not as it was written: truncated or changed
        UNFIT,   // intact, but not usable by this server
    };

    struct content {
        kind                 is = MISSING;
        espalier_slot_record record = {};
        espalier_owner       owner  = {}; // only for OURS; not certain: its origin is not that of this server
        std::string          origin = {}; // only for OURS; empty: unknown
        size_t               n_tokens = 0; // only if they were counted (count_cells)
    };

    // Whether clients may not use this file name: names of files that are being written, and of files in which older
    // versions stored the owner.
    bool is_reserved() const {
        std::string name = std::filesystem::path(path).filename().string();
        std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
        const std::string old_suffix = ".espalier-owner";
        return name.rfind(prefix_of_parts(), 0) == 0 ||
            (name.size() >= old_suffix.size() && name.compare(name.size() - old_suffix.size(), std::string::npos, old_suffix) == 0);
    }

    // Reads the record without checking the digest. The result must not be trusted before verify().
    content look() const {
        std::ifstream file(path, std::ios::binary);
        if (!file) {
            return {};
        }
        content found;
        const bool has_record  = read_record(file, found.record);
        const bool has_trailer = read_trailer().rfind(trailer_mark(), 0) == 0;
        if (!has_record && !has_trailer) {
            // No server saves less than that: it is what is left of a file of any kind.
            found.is = n_file_bytes() < n_least ? DAMAGED : STOCK;
            return found;
        }
        const auto lines = found.record.lines();
        if (!has_record || !has_trailer || lines.size() != 4) {
            found.is = DAMAGED;
            return found;
        }
        found.is    = OURS;
        found.owner = { lines[0], lines[1], lines[2], !origin.empty() && lines[3] == origin };
        found.origin = lines[3];
        return found;
    }

    // The same, after the whole file was read and compared with its digest.
    content verify() const {
        content found = look();
        if (found.is == OURS && read_trailer() != make_trailer(path, n_file_bytes() - n_trailer())) {
            found.is = DAMAGED;
        }
        return found;
    }

    // The number of tokens, if the file has exactly one cell for each of its tokens, at positions 0, 1, 2 and so on.
    // For a memory with one stream whose state begins with the cells of all tokens. In models with M-RoPE, and in those
    // that look up earlier tokens, a cell has three more words.
    std::optional<size_t> count_cells(const espalier_slot_record & record) const {
        const std::optional<size_t> n_tokens = count_cells(record, 0);
        return n_tokens ? n_tokens : count_cells(record, 3);
    }

    // Removes the record from the tokens that upstream has read. Throws if the file is not the one that was verified,
    // or if something else than upstream's context checkpoints follows what upstream has read.
    void take_record(const content & verified, std::vector<llama_token> & tokens, size_t n_read) const {
        const size_t n_beside = verified.is == OURS ? n_trailer() : 0;
        if (n_read + n_beside != n_file_bytes() && !has_checkpoints(n_read)) {
            throw std::runtime_error("the slot file has trailing data");
        }
        if (verified.is != OURS) {
            return;
        }
        const auto bytes = verified.record.to_bytes();
        if (tokens.size() * sizeof(llama_token) < bytes.size() || memcmp(tokens.data(), bytes.data(), bytes.size()) != 0) {
            throw std::runtime_error("the slot file was replaced while it was read, try again");
        }
        tokens.erase(tokens.begin(), tokens.begin() + verified.record.n_words());
    }

    const std::string & where() const { return path; }

    // A path next to the file, on the same file system; different for each call.
    std::string path_of_part() const {
        std::random_device random;
        const uint64_t number = (uint64_t) random() << 32 | random();
        return (std::filesystem::path(path).parent_path() / (prefix_of_parts() + "-" + std::to_string(number))).string();
    }

    static size_t n_trailer() { return trailer_mark().size() + 64; }

    static std::string make_trailer(const std::string & path, uint64_t n_bytes) {
        return trailer_mark() + digest_of_first(path, n_bytes);
    }

private:
    static const std::string & prefix_of_parts() {
        static const std::string text = ".espalier-part";
        return text;
    }

    static const std::string & trailer_mark() {
        static const std::string text = "espalier slot digest 1 ";
        return text;
    }

    uint64_t n_file_bytes() const {
        std::error_code error;
        const auto bytes = std::filesystem::file_size(path, error);
        return error ? 0 : bytes;
    }

    static bool read_exactly(std::ifstream & file, void * to, size_t n) {
        return n == 0 || (bool) file.read((char *) to, n);
    }

    // Upstream's magic, version and count, and the head of a record.
    static constexpr size_t n_words_of_head = 3 + espalier_slot_record::n_head;
    static constexpr size_t n_least = n_words_of_head * sizeof(llama_token);

    // Returns false if there is no record. The text of a truncated record is empty.
    static bool read_record(std::ifstream & file, espalier_slot_record & record) {
        llama_token words[n_words_of_head] = {};
        if (!read_exactly(file, words, sizeof(words)) || memcmp(words + 3, espalier_slot_record::marks, sizeof(espalier_slot_record::marks)) != 0) {
            return false;
        }
        const uint32_t n_bytes = words[5];
        if (n_bytes <= espalier_slot_record::most_bytes) {
            record.text.resize(n_bytes);
            if (!read_exactly(file, &record.text[0], n_bytes)) {
                record.text.clear();
            }
        }
        return true;
    }

    // count_cells() for cells of this many more words, which are before the sequence.
    std::optional<size_t> count_cells(const espalier_slot_record & record, size_t n_more) const {
        std::ifstream file(path, std::ios::binary);
        const uint64_t n_file = n_file_bytes();
        uint32_t head[3] = {};
        if (!read_exactly(file, head, sizeof(head)) || head[2] > n_file / sizeof(llama_token)) {
            return {};
        }
        const size_t n_skip = record.text.empty() ? 0 : record.n_words();
        if (head[2] < n_skip) {
            return {};
        }
        file.seekg(n_skip * sizeof(llama_token), std::ios::cur);
        std::vector<llama_token> packed(head[2] - n_skip);
        uint32_t counts[2] = {}; // streams, cells
        if (!read_exactly(file, packed.data(), packed.size() * sizeof(llama_token)) || !read_exactly(file, counts, sizeof(counts))) {
            return {};
        }
        // A packed list of tokens begins with a mark, a version and its length; an older one has only the tokens.
        const bool     is_packed = packed.size() >= 3 && packed[0] == -1;
        const uint64_t n_tokens  = is_packed ? (uint32_t) packed[2] : packed.size();
        if (counts[0] != 1 || counts[1] != n_tokens || n_tokens > n_file / (3 * sizeof(uint32_t))) {
            return {};
        }
        std::vector<bool> is_there(n_tokens);
        for (uint64_t i = 0; i < n_tokens; i++) {
            int32_t cell[6] = {}; // position, number of sequences, sequence
            if (!read_exactly(file, cell, (3 + n_more) * sizeof(cell[0])) || cell[0] < 0 || (uint64_t) cell[0] >= n_tokens || is_there[cell[0]]) {
                return {};
            }
            is_there[cell[0]] = true;
        }
        return n_tokens;
    }

    std::string read_trailer() const {
        std::ifstream file(path, std::ios::binary);
        std::string   text(n_trailer(), '\0');
        const uint64_t n_file = n_file_bytes();
        if (n_file < text.size() || !file.seekg(n_file - text.size()) || !read_exactly(file, &text[0], text.size())) {
            return "";
        }
        return text;
    }

    // Upstream appends the checkpoints to the state, and reads them after it; they begin with its SLOT_CKPT_MAGIC.
    bool has_checkpoints(uint64_t at) const {
        std::ifstream file(path, std::ios::binary);
        uint32_t magic = 0;
        return file.seekg(at) && read_exactly(file, &magic, sizeof(magic)) && magic == 0x504b4353;
    }

    // Reads the file in pieces, since it can be larger than the free memory. Empty: the file is shorter than n_bytes.
    static std::string digest_of_first(const std::string & path, uint64_t n_bytes) {
        std::ifstream file(path, std::ios::binary);
        std::string   digest;
        std::string   piece;
        for (uint64_t at = 0; at < n_bytes; at += piece.size()) {
            piece.resize(std::min<uint64_t>(n_bytes - at, 1 << 20));
            if (!read_exactly(file, &piece[0], piece.size())) {
                return "";
            }
            digest = espalier_digest(digest + piece);
        }
        return digest;
    }

    std::string path;
    std::string origin;
};

// An atomic save of a slot. It is written next to the target file, and replaces it only when all of it is on the disk;
// otherwise the partial file is removed, and the target file is unchanged.
class espalier_saving {
public:
    espalier_saving(espalier_slot_file file, espalier_slot_record record) :
        file(std::move(file)), part(this->file.path_of_part()), record(std::move(record)) {
    }

    ~espalier_saving() { remove_part(); }

    espalier_saving(const espalier_saving &)             = delete;
    espalier_saving & operator=(const espalier_saving &) = delete;

    // The path that upstream writes to.
    const std::string & path() const { return part; }

    // The bytes that upstream writes as the list of tokens.
    std::vector<char> with_record(const std::vector<char> & packed) const {
        std::vector<char> bytes = record.to_bytes();
        bytes.insert(bytes.end(), packed.begin(), packed.end());
        return bytes;
    }

    // Completes the save after upstream has reported that it wrote `n_written` bytes. Empty: the file is in place; else
    // the reason why it is not, and nothing is left of it when the client reads the reason.
    std::string finish(size_t n_written) const {
        const std::string why_not = try_to_finish(n_written);
        if (!why_not.empty()) {
            remove_part();
        }
        return why_not;
    }

private:
    std::string try_to_finish(size_t n_written) const {
        std::error_code error;
        if (n_written == 0 || std::filesystem::file_size(part, error) != n_written || error) {
            return "incomplete write; is the disk full?";
        }
        if (!append(part, espalier_slot_file::make_trailer(part, n_written))) {
            return std::string("it could not be written: ") + strerror(errno);
        }
        std::filesystem::rename(part, file.where(), error);
        if (error) {
            return "it could not be given its name: " + error.message();
        }
        sync_folder();
        return "";
    }

    void remove_part() const {
        std::error_code ignored;
        std::filesystem::remove(part, ignored);
    }

    static bool append(const std::string & path, const std::string & text) {
        FILE * file = fopen(path.c_str(), "ab");
        if (!file) {
            return false;
        }
        bool is_written = fwrite(text.data(), 1, text.size(), file) == text.size() && fflush(file) == 0;
#ifdef _WIN32
        is_written = is_written && _commit(_fileno(file)) == 0;
#else
        is_written = is_written && fsync(fileno(file)) == 0;
#endif
        return fclose(file) == 0 && is_written;
    }

    // Syncs the folder, so that the rename survives a power failure. The file is complete under either name, so an
    // error here does not fail the save.
    void sync_folder() const {
#ifndef _WIN32
        const auto folder = std::filesystem::path(file.where()).parent_path();
        const int  opened = open(folder.empty() ? "." : folder.c_str(), O_RDONLY);
        if (opened >= 0) {
            fsync(opened);
            close(opened);
        }
#endif
    }

    espalier_slot_file   file;
    std::string          part;
    espalier_slot_record record;
};
