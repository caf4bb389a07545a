// Tests of espalier-mailbox.h. Ends with 1 and the line of a condition that does not hold, with 0 and one line for each
// test that has passed otherwise.

#include "espalier-mailbox.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sys/resource.h>
#endif
#if !defined(_WIN32)
#include <unistd.h>
#endif

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            std::printf("line %d does not hold: %s\n", __LINE__, #condition); \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)

using namespace std::chrono_literals;

using number  = std::unique_ptr<int>;
using mailbox = espalier_mailbox<number>;

static std::atomic<int>      wakes{0};
static std::atomic<uint64_t> last_token{0};

static void wake(uint64_t token) {
    wakes++;
    last_token = token;
}

static mailbox::time_point in(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
}

// The value of the next result; -1 if there is none now.
static int take(mailbox & box, const mailbox::id_set & ids) {
    const number result = box.receive(ids, in(0ms));
    return result ? *result : -1;
}

static void send(mailbox & box, int id, int value) {
    box.send(id, std::make_unique<int>(value));
}

static void results_are_delivered_to_their_box_in_order() {
    mailbox box(wake);
    box.open({1, 2});
    box.open({3});
    send(box, 2, 20);
    send(box, 3, 30);
    send(box, 1, 10);
    CHECK(take(box, {3}) == 30 && take(box, {3}) == -1);
    CHECK(take(box, {1, 2}) == 20 && take(box, {1, 2}) == 10 && take(box, {1, 2}) == -1);
}

static void results_of_tasks_without_a_box_are_dropped() {
    mailbox box(wake);
    send(box, 1, 10);
    box.open({1, 2});
    send(box, 1, 11);
    send(box, 2, 21);
    box.close({1});
    send(box, 1, 12);
    CHECK(take(box, {1, 2}) == 21 && take(box, {1, 2}) == -1);
    box.close({1, 2});
    send(box, 2, 22);
    CHECK(take(box, {1, 2}) == -1);
    box.open({1});
    CHECK(take(box, {1}) == -1);
}

static void a_broadcast_reaches_each_task() {
    mailbox box(wake);
    box.open({1});
    box.open({2});
    box.broadcast([](int id) { return std::make_unique<int>(100 + id); });
    CHECK(take(box, {1}) == 101 && take(box, {2}) == 102 && take(box, {1}) == -1);
}

// Context switches of this thread that it caused by waiting.
static long waits_of_this_thread() {
#if defined(__linux__)
    rusage usage = {};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
#else
    return 0;
#endif
}

static void a_reader_waits_to_its_deadline_and_is_not_woken_by_results_of_others() {
    mailbox box(wake);
    box.open({1});
    box.open({2});
    std::atomic<bool> is_over{false};
    std::thread sender([&] {
        while (!is_over) {
            send(box, 2, 0);
            std::this_thread::sleep_for(1ms);
        }
    });
    const auto begin  = std::chrono::steady_clock::now();
    const long before = waits_of_this_thread();
    CHECK(box.receive({1}, in(300ms)) == nullptr);
    const long waits = waits_of_this_thread() - before;
    const auto time  = std::chrono::steady_clock::now() - begin;
    is_over = true;
    sender.join();
    CHECK(time >= 300ms);
    // a busy machine may be late, by far less than a deadline that each of the results moves
    CHECK(time < 10s);
    CHECK(waits < 10);
}

static void a_result_wakes_its_reader() {
    mailbox box(wake);
    box.open({1});
    std::atomic<int> received{0};
    std::thread reader([&] {
        received = *box.receive({1});
        received = *box.receive({1}, in(60s));
    });
    send(box, 1, 7);
    while (received != 7) {
        std::this_thread::yield();
    }
    std::this_thread::sleep_for(20ms);
    send(box, 1, 8);
    reader.join();
    CHECK(received == 8);
}

static void termination_wakes_all_readers_after_their_last_results() {
    mailbox box(wake);
    box.open({1});
    box.open({2});
    std::vector<std::thread> readers;
    readers.emplace_back([&] { CHECK(box.receive({1}) == nullptr); });
    readers.emplace_back([&] { CHECK(box.receive({9}) == nullptr); }); // has no box
    std::this_thread::sleep_for(20ms);
    send(box, 2, 20);
    box.terminate();
    for (auto & reader : readers) {
        reader.join();
    }
    send(box, 2, 21);
    CHECK(*box.receive({2}) == 20 && *box.receive({2}) == 21 && box.receive({2}) == nullptr);
    box.open({3});
    CHECK(box.receive({3}) == nullptr);
}

static void a_stream_is_woken_by_its_token() {
    mailbox box(wake);
    const auto is_even = [](const number & result) { return *result % 2 == 0; };
    box.open({1, 2});
    box.open({3});
    box.set_token({1, 2}, 77);
    wakes = 0;
    send(box, 3, 0);
    CHECK(wakes == 0 && !box.is_ready({1, 2}, is_even));
    send(box, 2, 1);
    CHECK(wakes == 1 && last_token == 77 && !box.is_ready({1, 2}, is_even));
    send(box, 1, 2);
    CHECK(wakes == 2 && box.is_ready({1, 2}, is_even) && !box.is_ready({9}, is_even));
    box.terminate();
    const int at_the_end = wakes;
    CHECK(at_the_end > 2 && box.is_ready({9}, is_even));
    box.close({1, 2});
    send(box, 1, 4);
    CHECK(wakes == at_the_end);
}

// Several senders and many readers, some of which leave before their last result.
static void each_result_is_received_once_and_in_order() {
    constexpr int n_senders = 4;
    constexpr int n_readers = 48; // a multiple of the senders
    constexpr int n_results = 500;

    mailbox box(wake);
    for (int id = 0; id < n_readers; id++) {
        box.open({id});
    }
    std::vector<std::thread> threads;
    for (int id = 0; id < n_readers; id++) {
        threads.emplace_back([&box, id] {
            const int wanted = id % 3 == 0 ? n_results / 2 : n_results;
            for (int value = 0; value < wanted; value++) {
                number result;
                while (result == nullptr) {
                    result = box.receive({id}, in(5ms));
                }
                CHECK(*result == value);
            }
            box.close({id});
            CHECK(take(box, {id}) == -1);
        });
    }
    for (int sender = 0; sender < n_senders; sender++) {
        threads.emplace_back([&box, sender] {
            for (int value = 0; value < n_results; value++) {
                for (int id = sender; id < n_readers; id += n_senders) {
                    send(box, id, value);
                }
            }
        });
    }
    for (auto & thread : threads) {
        thread.join();
    }
}

#define RUN(test)                 \
    do {                          \
        test();                   \
        std::printf("%s\n", #test); \
    } while (0)

int main() {
#if !defined(_WIN32)
    alarm(120); // a reader that is not woken must not wait for ever
#endif
    RUN(results_are_delivered_to_their_box_in_order);
    RUN(results_of_tasks_without_a_box_are_dropped);
    RUN(a_broadcast_reaches_each_task);
    RUN(a_reader_waits_to_its_deadline_and_is_not_woken_by_results_of_others);
    RUN(a_result_wakes_its_reader);
    RUN(termination_wakes_all_readers_after_their_last_results);
    RUN(a_stream_is_woken_by_its_token);
    RUN(each_result_is_received_once_and_in_order);
    return 0;
}
