// Requests of the transport in Rust, as the queue of results sees them: a result wakes the stream of its request, which
// has no thread that waits.

#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>

struct server_response_reader;
struct server_task_result;

// A request that the front runs. Its fields change only in functions that the front calls one at a time.
struct espalier_front_call {
    uint64_t                 token  = 0;       // of its stream
    server_response_reader * reader = nullptr; // of the tasks that it has posted, as long as there is one

    // of all tasks so far; read by any thread
    std::atomic<uint64_t> n_prompt{0};
    std::atomic<uint64_t> n_generated{0};

    struct counted {
        uint64_t n_prompt    = 0;
        uint64_t n_generated = 0;
    };
    std::unordered_map<int, counted> tasks; // by id
};

// The request whose handler this thread runs, or nullptr.
extern thread_local espalier_front_call * espalier_front_current;

// Binds the reader, which has just registered its tasks, to the request of this thread, if there is one.
void espalier_front_bind(server_response_reader & reader);

// The reader is destroyed.
void espalier_front_unbind(const server_response_reader & reader);

// Counts the tokens of a result that the reader returns.
void espalier_front_count(const server_response_reader & reader, const server_task_result & result);

// Counts the tokens of results that the reader has not returned, and drops them: it stops.
void espalier_front_count_rest(const server_response_reader & reader);

// The function that wakes a stream by its token. Set before the first request; it must neither block nor call back.
void espalier_front_set_waker(void (*waker)(uint64_t token));

void espalier_front_wake_stream(uint64_t token);
