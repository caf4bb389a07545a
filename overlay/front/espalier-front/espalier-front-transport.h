// The transport in Rust (front/), behind server_http_context: it takes the place of cpp-httplib's listeners with --front.

#pragma once

#include "server-http.h"

#include <memory>
#include <string>
#include <vector>

struct common_params;

class espalier_front_transport {
public:
    struct impl;

    ~espalier_front_transport();

    // nullptr = failed, which is logged. Both arguments must outlive the transport.
    static std::unique_ptr<espalier_front_transport> open(const server_http_context & http, const common_params & params);

    // only before listen()
    void route(const char * method, const std::string & path, const server_http_context::handler_t & handler);

    // sets `port` to the port that was bound, and appends the addresses
    bool listen(int & port, std::vector<std::string> & addresses);

    void drain(int timeout_ms) const;
    void stop() const;

    // waits for the end of stop() if it listens, then closes
    void join();

private:
    std::unique_ptr<impl> pimpl;

    explicit espalier_front_transport(std::unique_ptr<impl> pimpl);

    void close();
};
