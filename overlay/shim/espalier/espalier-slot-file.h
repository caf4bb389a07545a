// Whose a saved slot is: written beside the file, in one that no request can name.

#pragma once

#include "espalier-owner.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

class espalier_slot_file {
public:
    // `origin` is what computes here, as espalier_origin() says it; empty: it is not known.
    espalier_slot_file(const std::string & path, const std::string & origin) : path(path), origin(origin) {}

    // Names that clients may not give to a file: they could write themselves an owner.
    bool is_reserved() const {
        std::string lower = path;
        std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
        return lower.size() >= suffix().size() && lower.compare(lower.size() - suffix().size(), std::string::npos, suffix()) == 0;
    }

    bool exists() const { return std::ifstream(path).good(); }

    // Nothing: it was saved by a server that wrote no owner, or what is there cannot be read. Not certain: something else
    // computed it.
    std::optional<espalier_owner> owner() const {
        std::ifstream  file(path + suffix());
        std::string    head, tenant, salt, adapters, computed_by;
        if (!std::getline(file, head) || head != header() || !std::getline(file, tenant) || !std::getline(file, salt) ||
            !std::getline(file, adapters) || !std::getline(file, computed_by)) {
            return {};
        }
        return espalier_owner{ tenant, salt, adapters, !origin.empty() && computed_by == origin };
    }

    // What owner() reads, as it is.
    std::string owner_text() const {
        std::ifstream file(path + suffix());
        return std::string(std::istreambuf_iterator<char>(file), {});
    }

    std::string text_of(const espalier_owner & owner) const {
        return header() + "\n" + owner.tenant + "\n" + owner.salt + "\n" + owner.adapters + "\n" +
            (owner.is_certain ? origin : "") + "\n";
    }

    void set_owner_text(const std::string & text) const {
        std::ofstream(path + suffix(), std::ios::trunc) << text;
    }

    void forget_owner() const {
        std::error_code ignored;
        std::filesystem::remove(path + suffix(), ignored);
    }

    // Another one after the file was written.
    std::pair<uintmax_t, std::filesystem::file_time_type> stamp() const {
        std::error_code ignored;
        const auto size = std::filesystem::file_size(path, ignored);
        return { size, std::filesystem::last_write_time(path, ignored) };
    }

private:
    static const std::string & suffix() {
        static const std::string text = ".espalier-owner";
        return text;
    }

    static const std::string & header() {
        static const std::string text = "espalier slot owner 2";
        return text;
    }

    std::string path;
    std::string origin;
};

// While a slot is being saved its file has no owner, so that no crash leaves one tenant's text with the name of another.
// Afterwards it has the new one if it was written, else the old one.
class espalier_saving {
public:
    espalier_saving(espalier_slot_file file, espalier_owner owner) :
        file(std::move(file)), owner(std::move(owner)), text_before(this->file.owner_text()), stamp_before(this->file.stamp()) {
        this->file.forget_owner();
    }

    ~espalier_saving() {
        if (file.stamp() != stamp_before) {
            file.set_owner_text(file.text_of(owner));
        } else if (!text_before.empty()) {
            file.set_owner_text(text_before);
        }
    }

    espalier_saving(const espalier_saving &)             = delete;
    espalier_saving & operator=(const espalier_saving &) = delete;

private:
    espalier_slot_file            file;
    espalier_owner                owner;
    std::string                   text_before;
    std::pair<uintmax_t, std::filesystem::file_time_type> stamp_before;
};
