// Whose a saved slot is: written beside the file, in one that no request can name.

#pragma once

#include "espalier-owner.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>
#include <string>

class espalier_slot_file {
public:
    explicit espalier_slot_file(const std::string & path) : path(path) {}

    // Names that clients may not give to a file: they could write themselves an owner.
    bool is_reserved() const {
        std::string lower = path;
        std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
        return lower.size() >= suffix().size() && lower.compare(lower.size() - suffix().size(), std::string::npos, suffix()) == 0;
    }

    bool exists() const { return std::ifstream(path).good(); }

    // Nothing: it was saved by a server that wrote no owner, or what is there cannot be read.
    std::optional<espalier_owner> owner() const {
        std::ifstream  file(path + suffix());
        std::string    head, tenant, salt, adapters;
        if (!std::getline(file, head) || head != header() || !std::getline(file, tenant) || !std::getline(file, salt) || !std::getline(file, adapters)) {
            return {};
        }
        return espalier_owner{ tenant, salt, adapters };
    }

    // Before the file itself, so that no file of a tenant is ever without its owner. false: it could not be written
    bool set_owner(const espalier_owner & owner) const {
        std::ofstream file(path + suffix(), std::ios::trunc);
        file << header() << "\n" << owner.tenant << "\n" << owner.salt << "\n" << owner.adapters << "\n";
        file.close();
        return !file.fail();
    }

private:
    static const std::string & suffix() {
        static const std::string text = ".espalier-owner";
        return text;
    }

    static const std::string & header() {
        static const std::string text = "espalier slot owner 1";
        return text;
    }

    std::string path;
};
