// The results of tasks, in a box for each reader: a result is found by a hash look-up, and wakes only the reader that
// waits for it. Upstream has one list of results with one condition variable: each result wakes all readers, and each
// of them searches the list.

#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

// `Result` is a pointer, null if there is none.
template <typename Result>
class espalier_mailbox {
public:
    using id_set     = std::unordered_set<int>;
    using time_point = std::chrono::steady_clock::time_point;

    // `wake` wakes the stream that has a token. It must neither block nor call back.
    explicit espalier_mailbox(void (*wake)(uint64_t token)) : wake(wake) {}

    // Opens one box for the results of these tasks, which have one reader.
    void open(const id_set & ids) {
        auto opened = std::make_shared<box>();
        std::lock_guard<std::mutex> lock(mutex);
        opened->is_terminated = is_terminated;
        for (const int id : ids) {
            boxes.emplace(id, opened);
        }
    }

    // Drops the results of these tasks, also those that are sent from now on.
    void close(const id_set & ids) {
        std::lock_guard<std::mutex> lock(mutex);
        for (const int id : ids) {
            const auto found = boxes.find(id);
            if (found != boxes.end()) {
                found->second->drop(id);
                boxes.erase(found);
            }
        }
    }

    // Sends the result of a task to its box; without one it is dropped.
    void send(int id, Result && result) {
        std::unique_lock<std::mutex> lock(mutex);
        const auto found = boxes.find(id);
        if (found == boxes.end()) {
            return;
        }
        const std::shared_ptr<box> to = found->second;
        const auto token = to->put(id, std::move(result));
        lock.unlock();
        notify(*to, token);
    }

    // Sends to each task what `make` returns for its id.
    template <typename Make>
    void broadcast(Make && make) {
        std::lock_guard<std::mutex> lock(mutex);
        for (const auto & [id, to] : boxes) {
            notify(*to, to->put(id, make(id)));
        }
    }

    // Waits for the next result of these tasks, which share a box. Returns null at the deadline, which wake-ups do not
    // move, and once the mailbox is terminated and the box is empty.
    Result receive(const id_set & ids, const std::optional<time_point> & deadline = {}) {
        const auto from    = find(ids);
        const auto is_over = [&from] { return !from->results.empty() || from->is_terminated; };

        std::unique_lock<std::mutex> lock(from->mutex);
        if (deadline) {
            from->condition.wait_until(lock, *deadline, is_over);
        } else {
            from->condition.wait(lock, is_over);
        }
        if (from->results.empty()) {
            return Result();
        }
        Result result = std::move(from->results.front().second);
        from->results.pop_front();
        return result;
    }

    // Results of these tasks wake the stream that has this token, too.
    void set_token(const id_set & ids, uint64_t token) {
        const auto of = find(ids);
        std::lock_guard<std::mutex> lock(of->mutex);
        of->token = token;
    }

    // Whether the reader of these tasks need not wait: a result satisfies `is_wanted`, or the mailbox is terminated.
    template <typename Predicate>
    bool is_ready(const id_set & ids, Predicate && is_wanted) {
        const auto of = find(ids);
        std::lock_guard<std::mutex> lock(of->mutex);
        return of->is_terminated || std::any_of(of->results.begin(), of->results.end(), [&](const auto & entry) {
            return is_wanted(entry.second);
        });
    }

    // Wakes all readers; from now on none waits.
    void terminate() {
        std::lock_guard<std::mutex> lock(mutex);
        is_terminated = true;
        notify(*closed, closed->terminate());
        for (const auto & entry : boxes) {
            notify(*entry.second, entry.second->terminate());
        }
    }

private:
    struct box {
        std::mutex              mutex;
        std::condition_variable condition;

        std::deque<std::pair<int, Result>> results; // with the ids of their tasks
        std::optional<uint64_t> token;
        bool is_terminated = false;

        // Both return the token of the stream to wake.
        std::optional<uint64_t> put(int id, Result && result) {
            std::lock_guard<std::mutex> lock(mutex);
            results.emplace_back(id, std::move(result));
            return token;
        }

        std::optional<uint64_t> terminate() {
            std::lock_guard<std::mutex> lock(mutex);
            is_terminated = true;
            return token;
        }

        void drop(int id) {
            std::lock_guard<std::mutex> lock(mutex);
            const auto is_of_task = [id](const auto & entry) { return entry.first == id; };
            results.erase(std::remove_if(results.begin(), results.end(), is_of_task), results.end());
        }
    };

    void (*const wake)(uint64_t token);

    std::mutex mutex; // locked before that of a box, if both are
    std::unordered_map<int, std::shared_ptr<box>> boxes; // by the ids of their tasks
    bool is_terminated = false;

    // Of tasks that have no box: nothing is sent to it.
    const std::shared_ptr<box> closed = std::make_shared<box>();

    std::shared_ptr<box> find(const id_set & ids) {
        std::lock_guard<std::mutex> lock(mutex);
        for (const int id : ids) {
            const auto found = boxes.find(id);
            if (found != boxes.end()) {
                return found->second;
            }
        }
        return closed;
    }

    void notify(box & of, const std::optional<uint64_t> & token) const {
        of.condition.notify_all();
        if (token) {
            wake(*token);
        }
    }
};

struct server_task_result;

using espalier_mailbox_ptr = std::unique_ptr<espalier_mailbox<std::unique_ptr<server_task_result>>>;

// Whether queues of results that are made from now on have a mailbox.
void espalier_mailbox_enable(bool is_enabled);

// nullptr = not enabled
espalier_mailbox_ptr espalier_mailbox_make();
