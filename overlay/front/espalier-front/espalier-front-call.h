// Requests of the transport in Rust, as the queue of results sees them: a result wakes the stream of its request, which
// has no thread that waits.

#pragma once

#include <cstdint>

struct server_response_reader;

// A request that the front runs. Its fields change only in functions that the front calls one at a time.
struct espalier_front_call {
    uint64_t                 token  = 0;       // of its stream
    server_response_reader * reader = nullptr; // of the tasks that it has posted, as long as there is one
};

// The request whose handler this thread runs, or nullptr.
extern thread_local espalier_front_call * espalier_front_current;

// Binds the reader, which has just registered its tasks, to the request of this thread, if there is one.
void espalier_front_bind(server_response_reader & reader);

// The reader is destroyed.
void espalier_front_unbind(const server_response_reader & reader);

// The function that wakes a stream by its token. Set before the first request; it must neither block nor call back.
void espalier_front_set_waker(void (*waker)(uint64_t token));

void espalier_front_wake_stream(uint64_t token);
