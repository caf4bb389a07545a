// Admission control: classifies requests as running, waiting or queued, and limits the queued ones (--max-queued).
// Included only by espalier-server.h and espalier-step.h.

#pragma once

#include "espalier-server-class.h"

//
// State of a slot's request
//

// Requests that upstream answers as soon as it processes the slot, without computing anything: the prompt is empty, too
// long for the context, or too long for a ubatch and cannot be split.
inline bool espalier_server::is_refused_by_the_server(const server_slot & slot) {
    const int32_t n_tokens = slot.task->n_tokens();
    return slot.state == SLOT_STATE_STARTED &&
           (n_tokens == 0 || n_tokens >= slot.n_ctx || (!slot.can_split() && n_tokens > (int32_t) llama_n_ubatch(slot.ctx_tgt)));
}

inline bool espalier_server::runs(const server_slot & slot) {
    return slot.is_processing() && slot.state != SLOT_STATE_WAIT_OTHER && (!slot.paged.kv || slot.paged.now.is_admitted);
}

// Further choices (`n`) count as a part of their parent request until its prompt is computed.
inline bool espalier_server::waits(const server_slot & slot) {
    return slot.is_processing() && slot.state != SLOT_STATE_WAIT_OTHER && !runs(slot) && !is_refused_by_the_server(slot);
}

inline bool espalier_server::generates(const server_slot & slot) {
    return slot.state == SLOT_STATE_GENERATING || slot.state == SLOT_STATE_DONE_PROMPT || slot.state == SLOT_STATE_PREEMPTED;
}

//
// Queued requests
//

// Whether the request waits for free blocks, or behind the queue head, and was never admitted. Not queued are a request
// whose prefix is in flight (it is in the pool already), a slot that was just launched (the scheduler has not
// considered it yet), and a preempted request (it was admitted before).
inline bool espalier_server::is_queued(const server_slot & slot) {
    const uint32_t why = slot.paged.now.waits_for;
    const bool is_without_blocks = why == ESPALIER_SCHEDULE_FOR_BLOCKS || why == ESPALIER_SCHEDULE_FOR_QUEUE;
    return slot.paged.kv && waits(slot) && is_without_blocks && !slot.paged.now.was_admitted;
}

// The requests with tasks that have no slot. Slot actions (save, restore, erase) are left out, since they compute
// nothing.
inline std::set<int> espalier_server::find_deferred(const espalier_tasks & deferred) {
    std::set<int> found;
    for (const server_task & task : deferred) {
        if (!espalier_is_slot_action(task)) {
            found.insert(task.params.id_request);
        }
    }
    return found;
}

// Ids of the queued requests. A request with several tasks is not queued if one of them was admitted, or has a slot
// that the scheduler has not considered yet.
template <typename server_t>
std::set<int> espalier_server::find_queued(const server_t & server, const espalier_tasks & deferred, const espalier_tasks & queue) {
    std::set<int> queued = find_deferred(deferred);
    for (const int id_request : server.espalier.admitted) {
        queued.erase(id_request);
    }
    for (const server_slot & slot : server.slots) {
        if (is_queued(slot)) {
            queued.insert(slot.task->params.id_request);
        }
    }
    for (const server_slot & slot : server.slots) {
        if (slot.is_processing() && slot.state != SLOT_STATE_WAIT_OTHER && !is_queued(slot)) {
            queued.erase(slot.task->params.id_request);
        }
    }
    for (const server_task & task : queue) {
        if (task.params.has_slot) {
            queued.erase(task.params.id_request);
        }
    }
    return queued;
}

// Records that the request was admitted. It counts as admitted until all of its tasks have finished, even while none of
// them has a slot.
template <typename server_t>
void espalier_server::note_admitted(server_t & server, int id_request) {
    std::set<int> & admitted = server.espalier.admitted;
    if (server.params_base.max_queued == 0 || !admitted.insert(id_request).second) {
        return;
    }
    std::set<int> left;
    server.queue_tasks.look_at_deferred([&](espalier_tasks & deferred, const espalier_tasks & queue) {
        left = find_deferred(deferred);
        for (const server_task & task : queue) {
            left.insert(task.params.id_request);
        }
    });
    for (const server_slot & slot : server.slots) {
        if (slot.is_processing()) {
            left.insert(slot.task->params.id_request);
        }
    }
    left.insert(id_request); // its slot is about to start
    for (auto id = admitted.begin(); id != admitted.end();) {
        id = left.count(*id) > 0 ? std::next(id) : admitted.erase(id);
    }
}

// Lets a task that has just arrived and got no slot wait, or refuses it with HTTP 429. Returns whether it waits.
template <typename server_t>
bool espalier_server::limit_queue(server_t & server, int id_task, int id_request) {
    const size_t most = server.params_base.max_queued;
    size_t n_others   = 0;
    bool   is_waiting = false;
    bool   is_refused = false;
    server.queue_tasks.look_at_deferred([&](espalier_tasks & deferred, const espalier_tasks & queue) {
        const auto mine = std::find_if(deferred.begin(), deferred.end(), [&](const server_task & task) { return task.id == id_task; });
        is_waiting = mine != deferred.end();
        if (!is_waiting || most == 0) {
            return;
        }
        const std::set<int> queued = find_queued(server, deferred, queue);
        n_others   = queued.size() - queued.count(id_request);
        is_refused = queued.count(id_request) > 0 && n_others >= most;
        if (is_refused) {
            deferred.erase(mine);
        } else {
            mine->params.may_wait = true;
        }
    });
    if (is_refused) {
        server.send_error(id_task, describe_full_queue(server, id_request, n_others), ERROR_TYPE_RATE_LIMIT);
    }
    return is_waiting && !is_refused;
}

// Time after which an action that waits for a busy slot is refused with HTTP 503.
constexpr int64_t espalier_most_wait_of_action_us = 5 * 1000 * 1000;

template <typename server_t>
void espalier_server::limit_actions(server_t & server) {
    const int64_t now = ggml_time_us();
    std::vector<server_task> refused;
    server.queue_tasks.look_at_deferred([&](espalier_tasks & deferred, const espalier_tasks &) {
        for (auto task = deferred.begin(); task != deferred.end();) {
            if (espalier_is_slot_action(*task) && now - task->params.t_arrival > espalier_most_wait_of_action_us) {
                refused.push_back(std::move(*task));
                task = deferred.erase(task);
            } else {
                task++;
            }
        }
    });
    for (const server_task & task : refused) {
        server.send_error(task, string_format("slot %d has been busy for %d s; try again later", task.slot_action.id_slot,
                (int) (espalier_most_wait_of_action_us / 1000000)), ERROR_TYPE_BUSY);
    }
}

// Applies the limit to requests that got a slot, and that the scheduler then considered for the first time and did not
// admit. The last in the queue are refused first.
template <typename server_t>
void espalier_server::limit_newcomers(server_t & server, const scheduler_input & input) {
    const size_t most = server.params_base.max_queued;
    std::set<int> queued;
    if (most > 0) {
        server.queue_tasks.look_at_deferred([&](espalier_tasks & deferred, const espalier_tasks & queue) {
            queued = find_queued(server, deferred, queue);
        });
    }
    std::set<int> refused;
    std::for_each(input.slots.rbegin(), input.slots.rend(), [&](server_slot * slot) {
        if (!waits(*slot) || slot->task->params.may_wait || std::exchange(slot->paged.now.is_considered, true)) {
            return;
        }
        const int id_request = slot->task->params.id_request;
        if (most > 0 && is_queued(*slot) && queued.size() > most && queued.erase(id_request) > 0) {
            refused.insert(id_request);
        }
        if (is_queued(*slot) && refused.count(id_request) > 0) {
            server.send_error(*slot, describe_full_queue(server, id_request, queued.size()), ERROR_TYPE_RATE_LIMIT);
            slot->release();
        } else {
            server.send_waiting(slot->task->id);
        }
    });
}

template <typename server_t>
std::string espalier_server::describe_full_queue(server_t & server, int id_request, size_t n_waiting) {
    if (std::exchange(server.espalier.refused, id_request) != id_request) {
        server.espalier.metrics->rate_limited_requests++;
    }
    return string_format("the queue is full: %zu requests are queued and --max-queued is %d; try again later", n_waiting, server.params_base.max_queued);
}

template <typename server_t>
void espalier_server::count_requests(server_t & server, int & n_running, int & n_waiting) {
    if (!espalier_gives_slots_in_order(server.params_base)) {
        return;
    }
    std::set<int> running;
    std::set<int> waiting;
    server.queue_tasks.look_at_deferred([&](espalier_tasks & deferred, const espalier_tasks &) {
        waiting = find_deferred(deferred);
    });
    for (const server_slot & slot : server.slots) {
        if (slot.is_processing() && slot.state != SLOT_STATE_WAIT_OTHER) {
            (waits(slot) ? waiting : running).insert(slot.task->params.id_request);
        }
    }
    n_running = running.size();
    n_waiting = std::count_if(waiting.begin(), waiting.end(), [&](int id) { return running.count(id) == 0; });
}
