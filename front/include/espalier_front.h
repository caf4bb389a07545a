/* Espalier's HTTP transport: the C ABI between the patched llama-server and the Rust library.
 *
 * The server opens a front with its options and a table of functions (the core), registers its
 * routes and listens. For each request the front then makes a call: call_new, call_start,
 * call_head, call_next until the end if it is a stream, and call_free.
 *
 * A text is a pointer and a size, not terminated by a zero; an empty one may have a null pointer.
 * No exception and no panic crosses this boundary. */
#ifndef ESPALIER_FRONT_H
#define ESPALIER_FRONT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every incompatible change of this header. */
#define ESPALIER_FRONT_ABI 4

typedef struct espalier_front_text {
    const char * data;
    size_t       size;
} espalier_front_text;

typedef struct espalier_front_pair {
    espalier_front_text name;
    espalier_front_text value;
} espalier_front_pair;

/* A part of a multipart form. Without a file name it is a field. */
typedef struct espalier_front_part {
    espalier_front_text name;
    espalier_front_text filename;
    espalier_front_text content_type;
    espalier_front_text data;
    uint32_t            is_file;
} espalier_front_part;

typedef struct espalier_front_request {
    uint32_t                    route;   /* as espalier_front_route returned it */
    uint32_t                    is_form; /* multipart/form-data: `parts` has the body */
    uint64_t                    token;   /* for espalier_front_wake */
    espalier_front_text         path;    /* decoded */
    espalier_front_text         key;     /* API key of the sender, checked if any is required; empty = none */
    espalier_front_text         tenant;  /* name that the file of keys has for its tenant; empty = the key is its own */
    const espalier_front_text * models;  /* the only ones that the key may use */
    size_t                      n_models; /* 0 = it may use all */
    espalier_front_text         body;
    const espalier_front_pair * query;   /* decoded, in the order of the request */
    size_t                      n_query;
    const espalier_front_pair * params;  /* of the path, decoded */
    size_t                      n_params;
    const espalier_front_pair * headers; /* names in lower case */
    size_t                      n_headers;
    const espalier_front_part * parts;
    size_t                      n_parts;
} espalier_front_request;

typedef struct espalier_front_head {
    uint32_t                    status;
    uint32_t                    is_stream; /* otherwise `body` is the whole body */
    uint32_t                    ping_ms;   /* a stream without data for so long gets an SSE comment; 0 = never */
    espalier_front_text         content_type;
    espalier_front_text         body;
    const espalier_front_pair * headers;
    size_t                      n_headers;
} espalier_front_head;

/* The tokens of a call. */
typedef struct espalier_front_usage {
    uint64_t prompt;    /* cached ones included */
    uint64_t generated;
} espalier_front_usage;

/* Results of call_next. */
enum {
    ESPALIER_FRONT_MORE    = 0, /* `chunk`, which may be empty, is not the last one */
    ESPALIER_FRONT_END     = 1, /* `chunk`, which may be empty, is the last one */
    ESPALIER_FRONT_PENDING = 2, /* espalier_front_wake(token) is called when there is more */
    ESPALIER_FRONT_BLOCKS  = 3  /* only a blocking call can tell */
};

/* States of the core. */
enum {
    ESPALIER_FRONT_LOADING  = 0,
    ESPALIER_FRONT_READY    = 1,
    ESPALIER_FRONT_STOPPING = 2
};

/* Properties of a route, combined by `|`. */
enum {
    ESPALIER_FRONT_HEALTH    = 1, /* answered by the front, without a key */
    ESPALIER_FRONT_MONITOR   = 2, /* short, and not counted among the running requests */
    ESPALIER_FRONT_ANTHROPIC = 4, /* errors in the format of the Messages API */
    ESPALIER_FRONT_METRICS   = 8, /* the metrics of the transport are appended to an answer with status 200 */
    ESPALIER_FRONT_DISPATCH  = 16 /* runs other routes: answered with 403 if the key has limits or models */
};

/* Levels of core_log. */
enum {
    ESPALIER_FRONT_ERROR   = 0,
    ESPALIER_FRONT_WARNING = 1,
    ESPALIER_FRONT_INFO    = 2
};

typedef struct espalier_front_core {
    /* Copies what it keeps of the request. NULL = out of memory. */
    void * (*call_new)(void * core, const espalier_front_request * request);
    /* Runs the handler: blocks. */
    void (*call_start)(void * call);
    /* After call_start. The texts are valid until call_free or the first call_next. */
    void (*call_head)(void * call, espalier_front_head * head);
    /* One thread at a time. The chunk is valid until the next call. Without `may_block` it returns at
     * once, and never blocks. */
    int32_t (*call_next)(void * call, uint32_t may_block, espalier_front_text * chunk);
    /* The client is gone. From any thread, at any time before call_free, any number of times. */
    void (*call_cancel)(void * call);
    /* The tokens so far. From any thread, at any time before call_free. Returns at once. */
    void (*call_usage)(void * call, espalier_front_usage * usage);
    /* After all other functions of this call returned: may block, and tokens may be generated meanwhile. `usage` receives
     * the tokens at the end. */
    void (*call_free)(void * call, espalier_front_usage * usage);
    /* From any thread. Returns at once. */
    int32_t (*core_state)(void * core);
    void (*core_log)(void * core, int32_t level, espalier_front_text message);
} espalier_front_core;

typedef struct espalier_front_options {
    const espalier_front_text * hosts; /* addresses, names, or paths of unix sockets that end in .sock */
    size_t                      n_hosts;
    const espalier_front_text * keys;  /* API keys; none = no key is required */
    size_t                      n_keys;
    espalier_front_text         key_file; /* of hashed keys, in the place of `keys`; empty = none */
    espalier_front_text         access_log; /* file of JSON lines; empty = none */
    espalier_front_text         certificate; /* file for TLS on TCP; empty = no TLS */
    espalier_front_text         private_key; /* file of its key */
    espalier_front_text         client_ca;   /* file of the issuers of client certificates; empty = clients need none */
    espalier_front_text         prefix; /* of all paths, as --api-prefix */
    espalier_front_text         cors_origins;
    espalier_front_text         cors_methods;
    espalier_front_text         cors_headers;
    uint64_t                    max_body;        /* bytes */
    uint32_t                    cors_credentials;
    uint32_t                    port;            /* 0 = any */
    uint32_t                    reuse_port;
    uint32_t                    counts_tokens;   /* 0 = call_usage knows none: a key_file that limits them is refused */
    uint32_t                    header_ms;       /* until the headers of a request are complete */
    uint32_t                    body_ms;         /* until its body is complete */
    uint32_t                    write_ms;        /* until a client takes more of an answer */
    uint32_t                    max_calls;       /* running and waiting requests; one more is answered with 429 */
    uint32_t                    max_connections; /* further ones are not accepted until one closes */
} espalier_front_options;

typedef struct espalier_front espalier_front;

/* ESPALIER_FRONT_ABI of the library. To be compared before anything else is called. */
uint32_t espalier_front_abi(void);

/* Copies options and table; `core` must outlive the front. NULL = failed, the reason is logged. */
espalier_front * espalier_front_open(const espalier_front_options * options, const espalier_front_core * table, void * core);

/* Adds a route, only before espalier_front_listen. A segment `:name` matches any segment. Returns the
 * number by which a request names it, or UINT32_MAX. */
uint32_t espalier_front_route(espalier_front * front, espalier_front_text method, espalier_front_text path, uint32_t flags);

/* Binds all addresses, then serves. Returns 0, or -1 if one of them cannot be bound: the reason is
 * logged, and none is served. `port` receives the port of the TCP addresses. */
int32_t espalier_front_listen(espalier_front * front, uint32_t * port);

/* There may be more for the stream that has this token. Never blocks, from any thread; unknown tokens
 * are ignored. */
void espalier_front_wake(uint64_t token);

/* Closes idle connections, lets the others finish their request, and waits until all are closed, at
 * most for the given time. New connections are still accepted, and answered. */
void espalier_front_drain(espalier_front * front, uint32_t timeout_ms);

/* Closes the listeners and all connections, and cancels all calls. Does not wait. */
void espalier_front_stop(espalier_front * front);

/* Stops, waits until all calls are freed, and frees the front. */
void espalier_front_close(espalier_front * front);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_FRONT_H */
