#include "espalier-front-transport.h"

#include "espalier-front-call.h"
#include "espalier_front.h"

#include "common.h"
#include "espalier-tenant.h"
#include "http.h"
#include "server-common.h"
#include "server-queue.h"
#include "server-stream.h"

#include <cpp-httplib/httplib.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#if !defined(_WIN32)
#include <sys/resource.h>
#endif

static espalier_front_text to_text(const std::string & text) {
    return { text.data(), text.size() };
}

static std::string to_string(const espalier_front_text & text) {
    return text.size == 0 ? std::string() : std::string(text.data, text.size);
}

static std::unique_ptr<server_http_res> make_error(const std::string & message, error_type type) {
    const json error = format_error_response(message, type);
    auto res = std::make_unique<server_http_res>();
    res->status = json_value(error, "code", 500);
    res->data   = safe_json_to_str(json {{"error", error}});
    return res;
}

namespace {

struct front_route {
    server_http_context::handler_t handler;
    bool is_post      = false;
    bool is_monitor   = false; // answers questions about the server
    bool is_of_router = false; // loads, unloads or deletes a model
    bool is_anthropic = false; // errors have the format of the Messages API
};

// A request. It is used by one thread at a time, except for `cancelled`.
struct front_call : espalier_front_call {
    const front_route & route;

    std::atomic<bool> cancelled{false};
    // note: `req` refers to it. Once it returned true it does so for good, which handlers rely on.
    const std::function<bool()> should_stop = [this] { return cancelled.load(); };

    server_http_req     req{ {}, {}, {}, {}, {}, {}, should_stop };
    server_http_res_ptr res;

    bool is_form = false;

    // what the front has borrowed
    std::string chunk;
    std::vector<espalier_front_pair> headers;

    explicit front_call(const front_route & route) : route(route) {}

    void set_error(const std::string & message, error_type type) {
        res = make_error(message, type);
    }

    // as server_http_context::post does it before its handlers: what recurses over a JSON value must not run out of stack
    bool is_refused() {
        const std::string refusal = route.is_post && !is_form ? server_limits::refuse_json(req.body) : "";
        if (!refusal.empty()) {
            set_error(refusal, ERROR_TYPE_INVALID_REQUEST);
        }
        return !refusal.empty();
    }

    void run() {
        if (is_refused()) {
            return;
        }
        res = route.handler(req);
        if (res == nullptr) {
            set_error("empty response from the handler", ERROR_TYPE_SERVER);
        }
    }

    // whether res->next() returns at once
    bool is_ready() const {
        if (!res->data.empty()) {
            return true; // the first chunk
        }
        // a stream that survives its client can be ended by another request
        auto * stream = dynamic_cast<server_res_spipe *>(res.get());
        return (stream != nullptr && stream->should_stop()) || !reader->has_next() || reader->queue_results.has_result(reader->id_tasks);
    }
};

} // namespace

struct espalier_front_transport::impl {
    const server_http_context & http;
    const common_params &       params;

    espalier_front * front = nullptr;
    uint32_t max_calls = 0;
    std::vector<std::unique_ptr<front_route>> routes; // by the number of the front

    bool is_tls       = false;
    bool is_listening = false;

    std::mutex              mutex;
    std::condition_variable stopped;
    bool is_stopped = false; // guarded by the mutex

    impl(const server_http_context & http, const common_params & params) : http(http), params(params) {}

    bool open();
    std::unique_ptr<server_http_res> refuse_key(const front_call & call) const;
    std::unique_ptr<front_call> make_call(const espalier_front_request & request) const;
};

//
// the core
//

// The text fields of a form as a JSON object, those that are repeated as arrays, and its files.
static void read_form(const espalier_front_request & request, server_http_req & req) {
    json fields = json::object();
    for (size_t i = 0; i < request.n_parts; i++) {
        const espalier_front_part & part = request.parts[i];
        const std::string name = to_string(part.name);
        if (part.is_file) {
            const auto * data = reinterpret_cast<const uint8_t *>(part.data.data);
            req.files[name] = uploaded_file {
                part.data.size == 0 ? raw_buffer() : raw_buffer(data, data + part.data.size),
                to_string(part.filename),
                to_string(part.content_type),
            };
        } else if (!fields.contains(name)) {
            fields[name] = to_string(part.data);
        } else {
            if (!fields[name].is_array()) {
                json existing = fields[name];
                fields[name] = json::array({existing});
            }
            fields[name].push_back(to_string(part.data));
        }
    }
    req.body = fields.dump(); // throws if they are not UTF-8
}

// A tenant that the file of keys names is not one that has a key for its name.
static espalier_caller read_caller(const espalier_front_request & request) {
    espalier_caller caller;
    const std::string tenant = to_string(request.tenant);
    caller.tenant = tenant.empty() ? espalier_tenant_of_key(to_string(request.key)) : espalier_digest("named tenant " + tenant);
    for (size_t i = 0; i < request.n_models; i++) {
        caller.models.insert(to_string(request.models[i]));
    }
    return caller;
}

std::unique_ptr<server_http_res> espalier_refuse_models(const server_http_req & req, const std::set<std::string> & models) {
    const auto may_use = [&](const std::string & model) { return req.caller->models.count(model) != 0; };
    if (!req.caller || req.caller->models.empty() || std::any_of(models.begin(), models.end(), may_use)) {
        return nullptr;
    }
    return make_error("The API key may not use this model", ERROR_TYPE_PERMISSION);
}

static bool is_router(const common_params & params) {
    return params.model.path.empty() && params.model.hf_repo.empty() && params.model.docker_repo.empty();
}

// as server_child finds it
static bool is_child() {
    return std::getenv("LLAMA_SERVER_ROUTER_PORT") != nullptr;
}

// The models of a router are checked where its proxies know them, and again in the child.
std::unique_ptr<server_http_res> espalier_front_transport::impl::refuse_key(const front_call & call) const {
    if (is_router(params)) {
        return call.route.is_of_router ? espalier_refuse_models(call.req, {}) : nullptr;
    }
    return call.route.is_monitor ? nullptr : espalier_refuse_models(call.req, params.model_alias);
}

std::unique_ptr<front_call> espalier_front_transport::impl::make_call(const espalier_front_request & request) const {
    auto call = std::make_unique<front_call>(*routes.at(request.route));
    call->token   = request.token;
    call->is_form = request.is_form != 0;

    server_http_req & req = call->req;
    req.path   = to_string(request.path);
    req.caller = read_caller(request);

    // sorted by name, as cpp-httplib passes them
    std::multimap<std::string, std::string> query;
    for (size_t i = 0; i < request.n_query; i++) {
        query.emplace(to_string(request.query[i].name), to_string(request.query[i].value));
    }
    for (const auto & [name, value] : query) {
        if (!req.query_string.empty()) {
            req.query_string += '&';
        }
        req.query_string += httplib::encode_query_component(name) + "=" + httplib::encode_query_component(value);
        req.params[name] = value;
    }
    for (size_t i = 0; i < request.n_params; i++) {
        req.params[to_string(request.params[i].name)] = to_string(request.params[i].value);
    }
    for (size_t i = 0; i < request.n_headers; i++) {
        req.headers[to_string(request.headers[i].name)] = to_string(request.headers[i].value);
    }

    call->res = refuse_key(*call);
    if (!call->is_form) {
        req.body = to_string(request.body);
        return call;
    }
    try {
        read_form(request, req);
    } catch (const std::exception & e) {
        call->set_error(std::string("the fields of the form cannot be read: ") + e.what(), ERROR_TYPE_INVALID_REQUEST);
    }
    return call;
}

static void * core_call_new(void * core, const espalier_front_request * request) {
    try {
        return static_cast<const espalier_front_transport::impl *>(core)->make_call(*request).release();
    } catch (const std::exception & e) {
        SRV_ERR("failed to read a request: %s\n", e.what());
        return nullptr;
    }
}

static front_call & to_call(void * call) {
    return *static_cast<front_call *>(call);
}

static void core_call_start(void * pointer) {
    front_call & call = to_call(pointer);
    if (call.res != nullptr) {
        return; // refused already
    }
    espalier_front_current = &call;
    try {
        call.run();
    } catch (const std::exception & e) {
        // this is fail-safe; exceptions are handled by `ex_wrapper`
        SRV_ERR("got exception: %s\n", e.what());
        call.set_error("Internal Server Error", ERROR_TYPE_SERVER);
    } catch (...) {
        SRV_ERR("%s", "got an unknown exception\n");
        call.set_error("Internal Server Error", ERROR_TYPE_SERVER);
    }
    espalier_front_current = nullptr;
}

// Errors of the Messages API have another format, whatever they are.
static void format_error(front_call & call) {
    server_http_res & res = *call.res;
    if (!call.route.is_anthropic || res.status < 400 || res.is_stream()) {
        return;
    }
    const json body = json::parse_no_throw(res.data);
    if (body.is_object() && body.contains("error") && body.at("error").is_object() && !body.contains("type")) {
        res.data         = safe_json_to_str(format_anthropic_error(body.at("error")));
        res.content_type = "application/json; charset=utf-8";
    }
}

static void core_call_head(void * pointer, espalier_front_head * head) {
    front_call & call = to_call(pointer);
    server_http_res & res = *call.res;
    try {
        format_error(call);
        if (res.is_stream()) {
            res.headers["X-Accel-Buffering"] = "no"; // for nginx
        }
        for (const auto & [name, value] : res.headers) {
            call.headers.push_back({ to_text(name), to_text(value) });
        }
    } catch (const std::exception & e) {
        SRV_ERR("failed to format a response: %s\n", e.what());
    }
    head->status       = res.status;
    head->is_stream    = res.is_stream();
    head->content_type = to_text(res.content_type);
    head->headers      = call.headers.data();
    head->n_headers    = call.headers.size();
    if (!res.is_stream()) {
        head->body = to_text(res.data);
    } else if (call.reader != nullptr && res.sse_ping_interval > 0) {
        // the others wait in res.next(), which knows about pings
        head->ping_ms = (uint32_t) std::min<int64_t>((int64_t) res.sse_ping_interval * 1000, UINT32_MAX);
    }
}

static int32_t core_call_next(void * pointer, uint32_t may_block, espalier_front_text * chunk) {
    front_call & call = to_call(pointer);
    try {
        if (call.cancelled.load()) {
            return ESPALIER_FRONT_END;
        }
        if (!may_block) {
            if (call.reader == nullptr) {
                return ESPALIER_FRONT_BLOCKS;
            }
            if (!call.is_ready()) {
                return ESPALIER_FRONT_PENDING;
            }
        }
        call.chunk.clear();
        const bool has_next = call.res->next(call.chunk);
        *chunk = to_text(call.chunk);
        return has_next ? ESPALIER_FRONT_MORE : ESPALIER_FRONT_END;
    } catch (const std::exception & e) {
        SRV_ERR("stream aborted by an exception: %s\n", e.what());
    } catch (...) {
        SRV_ERR("%s", "stream aborted by an unknown exception\n");
    }
    return ESPALIER_FRONT_END;
}

static void core_call_cancel(void * pointer) {
    to_call(pointer).cancelled.store(true);
}

static void core_call_usage(void * pointer, espalier_front_usage * usage) {
    const front_call & call = to_call(pointer);
    *usage = { call.n_prompt.load(), call.n_generated.load() };
}

static void core_call_free(void * pointer, espalier_front_usage * usage) {
    const std::unique_ptr<front_call> call(&to_call(pointer));
    try {
        if (call->res != nullptr) {
            call->res->on_complete();
        }
    } catch (const std::exception & e) {
        SRV_ERR("failed to complete a request: %s\n", e.what());
    } catch (...) {
        SRV_ERR("%s", "failed to complete a request: unknown exception\n");
    }
    call->res.reset(); // before what its functions refer to
    core_call_usage(pointer, usage);
}

static int32_t core_state(void * core) {
    const server_http_context & http = static_cast<const espalier_front_transport::impl *>(core)->http;
    if (http.is_stopping.load()) {
        return ESPALIER_FRONT_STOPPING;
    }
    return http.is_ready.load() ? ESPALIER_FRONT_READY : ESPALIER_FRONT_LOADING;
}

static void core_log(void *, int32_t level, espalier_front_text message) {
    const std::string text = to_string(message);
    if (level == ESPALIER_FRONT_ERROR) {
        SRV_ERR("front: %s\n", text.c_str());
    } else if (level == ESPALIER_FRONT_WARNING) {
        SRV_WRN("front: %s\n", text.c_str());
    } else {
        SRV_INF("front: %s\n", text.c_str());
    }
}

static const espalier_front_core core_table = {
    core_call_new, core_call_start, core_call_head, core_call_next,
    core_call_cancel, core_call_usage, core_call_free, core_state, core_log,
};

//
// options
//

static constexpr int max_header_s = 30;  // until the headers are complete, unless --timeout is shorter
static constexpr int max_body_s   = 120; // until the body is complete, unless --timeout is shorter

static uint32_t to_ms(int seconds) {
    return (uint32_t) std::min<int64_t>((int64_t) std::max(seconds, 1) * 1000, UINT32_MAX);
}

// without a free file descriptor no connection is accepted, and in a router a request has one more to the child
static uint32_t max_connections() {
#if !defined(_WIN32)
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        return (uint32_t) std::min<rlim_t>(std::max<rlim_t>(limit.rlim_cur / 2, 1), UINT32_MAX);
    }
#endif
    return 4096;
}

static uint32_t max_calls(const common_params & params) {
    static constexpr int most = 1024;
    const int by_default = is_router(params) ? most : params.n_parallel + 64;
    return (uint32_t) std::max(1, std::min(most, params.front_requests > 0 ? params.front_requests : by_default));
}

static std::vector<espalier_front_text> to_texts(const std::vector<std::string> & texts) {
    std::vector<espalier_front_text> result;
    for (const std::string & text : texts) {
        result.push_back(to_text(text));
    }
    return result;
}

bool espalier_front_transport::impl::open() {
    if (espalier_front_abi() != ESPALIER_FRONT_ABI) {
        SRV_ERR("transport library has ABI version %u, expected %d\n", espalier_front_abi(), ESPALIER_FRONT_ABI);
        return false;
    }
    if (!params.front_keys.empty() && !params.api_keys.empty()) {
        SRV_ERR("%s", "--front-keys and --api-key cannot be combined\n");
        return false;
    }
    if (params.ui) {
        SRV_WRN("%s", "the web UI is not served with --front\n");
    }

    const auto hosts   = to_texts(params.hostnames);
    const auto keys    = to_texts(params.api_keys);
    const int  timeout = params.timeout_read > 0 ? params.timeout_read : max_body_s;
    max_calls = ::max_calls(params);

    espalier_front_options options = {};
    options.hosts            = hosts.data();
    options.n_hosts          = hosts.size();
    options.keys             = keys.data();
    options.n_keys           = keys.size();
    options.key_file         = to_text(params.front_keys);
    options.access_log       = to_text(params.front_log);
    options.prefix           = to_text(http.path_prefix);
    options.cors_origins     = to_text(params.cors_origins);
    options.cors_methods     = to_text(params.cors_methods);
    options.cors_headers     = to_text(params.cors_headers);
    options.cors_credentials = params.cors_credentials;
    options.max_body         = CPPHTTPLIB_PAYLOAD_MAX_LENGTH;
    options.port             = http.port;
    options.reuse_port       = params.reuse_port;
    options.counts_tokens    = !is_router(params); // its children do, each on its own
    options.header_ms        = to_ms(std::min(timeout, max_header_s));
    options.body_ms          = to_ms(std::min(timeout, max_body_s));
    options.write_ms         = to_ms(params.timeout_write);
    options.max_calls        = max_calls;
    options.max_connections  = max_connections();
    if (!is_child()) { // its router connects without TLS, and passes on the environment
        options.certificate = to_text(params.ssl_file_cert);
        options.private_key = to_text(params.ssl_file_key);
        options.client_ca   = to_text(params.front_client_ca);
        is_tls              = options.certificate.size > 0;
    }

    espalier_front_set_waker(espalier_front_wake);
    front = espalier_front_open(&options, &core_table, this);
    return front != nullptr;
}

//
// espalier_front_transport
//

espalier_front_transport::espalier_front_transport(std::unique_ptr<impl> pimpl) : pimpl(std::move(pimpl)) {}

espalier_front_transport::~espalier_front_transport() {
    close();
}

std::unique_ptr<espalier_front_transport> espalier_front_transport::open(const server_http_context & http, const common_params & params) {
    auto pimpl = std::make_unique<impl>(http, params);
    if (!pimpl->open()) {
        return nullptr;
    }
    return std::unique_ptr<espalier_front_transport>(new espalier_front_transport(std::move(pimpl)));
}

// as register_gcp_compat reads it
static std::string gcp_path(const char * name, const std::string & by_default) {
    const char * value = std::getenv(name);
    if (value == nullptr || value[0] == '\0') {
        return by_default;
    }
    return (value[0] == '/' ? "" : "/") + std::string(value);
}

void espalier_front_transport::route(const char * method, const std::string & path, const server_http_context::handler_t & handler) {
    static const std::set<std::string> monitors  = { "/metrics", "/props", "/slots", "/models", "/v1/models" };
    static const std::set<std::string> of_router = { "/models", "/models/load", "/models/unload" };

    // they stop work, or find it
    static const std::set<std::string> stops = { "DELETE /v1/stream", "POST /v1/streams/lookup", "POST /v1/chat/completions/control" };

    const std::string name = method;
    const bool is_get      = name == "GET";
    const bool is_health   = path == "/health" || path == "/v1/health" || path == gcp_path("AIP_HEALTH_ROUTE", "/health");
    const bool is_dispatch = name == "POST" && path == gcp_path("AIP_PREDICT_ROUTE", "/predict");

    auto route = std::make_unique<front_route>();
    route->handler      = handler;
    route->is_post      = name == "POST";
    route->is_monitor   = is_get && monitors.count(path) != 0;
    route->is_of_router = !is_get && of_router.count(path) != 0;
    route->is_anthropic = path == "/v1/messages" || path == "/v1/messages/count_tokens";

    uint32_t flags = 0;
    flags |= is_get && is_health ? ESPALIER_FRONT_HEALTH : 0;
    flags |= route->is_monitor || stops.count(name + " " + path) != 0 ? ESPALIER_FRONT_MONITOR : 0;
    flags |= is_dispatch ? ESPALIER_FRONT_DISPATCH : 0;
    flags |= route->is_anthropic ? ESPALIER_FRONT_ANTHROPIC : 0;
    // a router proxies it to a child, which has appended its own
    flags |= is_get && path == "/metrics" && !is_router(pimpl->params) ? ESPALIER_FRONT_METRICS : 0;

    const uint32_t number = espalier_front_route(pimpl->front, to_text(name), to_text(path), flags);
    GGML_ASSERT(number == pimpl->routes.size() && "routes are registered before the server listens");
    pimpl->routes.push_back(std::move(route));
}

bool espalier_front_transport::listen(int & port, std::vector<std::string> & addresses) {
    uint32_t bound = 0;
    if (espalier_front_listen(pimpl->front, &bound) != 0) {
        return false;
    }
    pimpl->is_listening = true;
    // the others are for requests that have a client
    server_stream_limit_detached((int) (pimpl->max_calls / 2));
    for (const std::string & host : pimpl->params.hostnames) {
        if (string_ends_with(host, ".sock")) {
            addresses.push_back(string_format("unix://%s", host.c_str()));
        } else {
            port = (int) bound;
            const char * scheme = pimpl->is_tls ? "https" : "http";
            addresses.push_back(string_format("%s://%s:%d", scheme, common_http_format_host(host).c_str(), port));
        }
    }
    return true;
}

void espalier_front_transport::drain(int timeout_ms) const {
    espalier_front_drain(pimpl->front, (uint32_t) std::max(timeout_ms, 0));
}

void espalier_front_transport::stop() const {
    espalier_front_stop(pimpl->front);
    std::lock_guard<std::mutex> lock(pimpl->mutex);
    pimpl->is_stopped = true;
    pimpl->stopped.notify_all();
}

void espalier_front_transport::join() {
    {
        std::unique_lock<std::mutex> lock(pimpl->mutex);
        pimpl->stopped.wait(lock, [this] { return pimpl->is_stopped || !pimpl->is_listening; });
    }
    close();
}

void espalier_front_transport::close() {
    espalier_front_close(pimpl->front);
    pimpl->front = nullptr;
}
