// The sender of a request, as the transport in Rust has found it: handed down with the request, and found nowhere else.

#pragma once

#include <memory>
#include <set>
#include <string>

struct server_http_req;
struct server_http_res;

struct espalier_caller {
    std::string           tenant; // hashed; empty: none
    std::set<std::string> models; // the only ones that the key may use; empty: all
};

// The answer to a request whose key may use none of the models; nullptr: it may. A model can have several names.
std::unique_ptr<server_http_res> espalier_refuse_models(const server_http_req & req, const std::set<std::string> & models);
