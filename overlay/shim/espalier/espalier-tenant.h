// The tenant of a request. One rule for every mode of the server, and for everything that outlives a request: slots,
// the prompt cache, slot files, drafts, resumable streams, and the output of /slots (SECURITY.md has the table).

#pragma once

#include "espalier-owner.h"
#include "common.h"
#include "server-http.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

// The API key of a request, found as the server's middleware finds it. Empty: the request has none.
inline std::string espalier_find_key(const std::map<std::string, std::string> & headers) {
    std::string authorization;
    std::string x_api_key;
    for (const auto & [name, value] : headers) {
        std::string lower = name;
        std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
        if (lower == "authorization") {
            authorization = value;
        } else if (lower == "x-api-key") {
            x_api_key = value;
        }
    }
    const std::string key = authorization.empty() ? x_api_key : authorization;
    return key.rfind("Bearer ", 0) == 0 ? key.substr(7) : key;
}

// Number of API keys. A router passes its number of keys to its children (LLAMA_SERVER_ROUTER_KEYS), which need not
// have the keys themselves.
inline size_t espalier_count_keys(const common_params & params) {
#ifdef ESPALIER_FRONT
    if (!params.front_keys.empty()) {
        return 2; // or more: the file can get another one at any time
    }
#endif
    const char * of_router = std::getenv("LLAMA_SERVER_ROUTER_KEYS");
    return of_router ? (size_t) std::strtoull(of_router, nullptr, 10) : params.api_keys.size();
}

// Hashed, because it is written into slot files. Empty: no key.
inline std::string espalier_tenant_of_key(const std::string & key) {
    return key.empty() ? "" : espalier_digest("tenant " + key);
}

// The tenant that the transport in Rust has found, and hands down with the request. nullptr: cpp-httplib's finds none.
inline const std::string * espalier_found_tenant(const server_http_req & req) {
#ifdef ESPALIER_FRONT
    return req.caller ? &req.caller->tenant : nullptr;
#else
    (void) req;
    return nullptr;
#endif
}

// The tenant of a request. Unless the transport has found it, it is derived from the headers, here and nowhere else.
inline std::string espalier_tenant_of(const server_http_req & req) {
    const std::string * found = espalier_found_tenant(req);
    return found ? *found : espalier_tenant_of_key(espalier_find_key(req.headers));
}

// The key under which a conversation's stream is stored. A tenant never contains a newline, so the first one separates
// the parts and no conversation id can name another tenant's stream.
inline std::string espalier_stream_key(const server_http_req & req, const std::string & conversation_id) {
    return conversation_id.empty() ? "" : espalier_tenant_of(req) + "\n" + conversation_id;
}

// The arguments of a child that GET /models of a router shows: none if there are several keys, since not every tenant
// is the operator, and never a token.
inline std::vector<std::string> espalier_args_shown(size_t n_keys, const std::vector<std::string> & args) {
    if (n_keys > 1) {
        return {};
    }
    std::vector<std::string> shown = args;
    for (size_t i = 1; i < shown.size(); i++) {
        if (args[i - 1] == "--hf-token" || args[i - 1] == "-hft") {
            shown[i] = "***";
        }
    }
    return shown;
}

// Adds the router's keys to the environment of a child, so that the child's port refuses requests without a key. A
// command line could be read by other users. A key with a comma or a quote (possible in a key file) cannot be passed in
// this list; then none is passed.
inline void espalier_pass_keys(std::vector<std::string> & variables, const std::vector<std::string> & keys) {
    const std::string name = "LLAMA_API_KEY=";
    std::string value;
    for (const std::string & key : keys) {
        if (key.find_first_of(",\"") != std::string::npos) {
            return;
        }
        value += (value.empty() ? "" : ",") + key;
    }
    if (value.empty()) {
        return;
    }
    variables.erase(std::remove_if(variables.begin(), variables.end(), [&](const std::string & variable) {
        return variable.rfind(name, 0) == 0;
    }), variables.end());
    variables.push_back(name + value);
}

// The headers that pass the client's API key to a router's child.
inline std::multimap<std::string, std::string> espalier_key_headers(const std::map<std::string, std::string> & headers) {
    const std::string key = espalier_find_key(headers);
    if (key.empty()) {
        return {};
    }
    return { { "Authorization", "Bearer " + key } };
}
