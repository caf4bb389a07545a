// Who of those that wait for a slot gets one: in the order of priority and arrival, decided for all at once from what is
// free now. So it does not matter how a slot became free, or what became of the task that was to have it.
//
// Upstream takes one task out for each slot that is released. If that task is then refused or cancelled, or is an action
// on the slot, the slot stays free while others wait for it; one that has to wait again goes behind all others; and one
// that needs a certain slot can be taken out for another.

#pragma once

#include "server-task.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>
#include <tuple>
#include <vector>

using espalier_tasks = std::deque<server_task>;

// Slots are saved, restored and erased one at a time, whatever else is queued, and nothing is computed.
inline bool espalier_is_slot_action(const server_task & task) {
    return task.type == SERVER_TASK_TYPE_SLOT_SAVE || task.type == SERVER_TASK_TYPE_SLOT_RESTORE || task.type == SERVER_TASK_TYPE_SLOT_ERASE;
}

// The tasks of one HTTP request, and those of its further choices, know that they are one.
inline void espalier_name_request(std::vector<server_task> & tasks) {
    for (server_task & task : tasks) {
        task.params.id_request = tasks.front().id;
        for (server_task & child : task.child_tasks) {
            child.params.id_request = tasks.front().id;
        }
    }
}

// Slots that compute nothing and that nobody was given.
class espalier_free_slots {
public:
    espalier_free_slots(std::set<int> idle, int n_slots) : ids(std::move(idle)), n_free((int) ids.size()), n_slots(n_slots) {}

    // Another task has the very slot that this one needs.
    bool is_taken_from(const server_task & task) const {
        const int needed = needed_by(task);
        return needed >= 0 && ids.count(needed) == 0;
    }

    bool are_none() const { return n_free <= 0; }

    bool are_enough_for(const server_task & task) const { return count_of(task) <= n_free; }

    void give(const server_task & task) {
        ids.erase(needed_by(task));
        n_free -= count_of(task);
    }

private:
    std::set<int> ids;
    int           n_free; // less than there are ids: which slot a task gets that can have any is not known yet
    int           n_slots;

    // The slot that a task has to have, as get_slot_by_id finds it; -1: any. Requests with an id that no slot has were
    // refused before they came here (espalier_get_id_slot, espalier_refuse_slot).
    int needed_by(const server_task & task) const {
        const bool is_action = espalier_is_slot_action(task);
        const int  id_slot   = is_action ? task.slot_action.id_slot : task.id_slot;
        return id_slot == -1 && !is_action ? -1 : (int) ((size_t) id_slot % (size_t) n_slots);
    }

    static int count_of(const server_task & task) { return 1 + (int) task.child_tasks.size(); }
};

// Moves those who get a slot to the front of the queue, in their order. true: somebody did.
inline bool espalier_give_slots(std::deque<server_task> & deferred, std::deque<server_task> & queue, espalier_free_slots free_slots) {
    for (const server_task & task : queue) {
        if (task.params.has_slot) {
            free_slots.give(task);
        }
    }
    if (free_slots.are_none()) {
        return false; // who waits costs a step nothing
    }
    const auto goes_before = [](const server_task & a, const server_task & b) {
        return std::tie(a.params.priority, a.id) < std::tie(b.params.priority, b.id);
    };
    if (!std::is_sorted(deferred.begin(), deferred.end(), goes_before)) {
        std::sort(deferred.begin(), deferred.end(), goes_before);
    }
    std::vector<server_task> given;
    for (auto task = deferred.begin(); task != deferred.end();) {
        if (free_slots.is_taken_from(*task)) {
            task++; // nobody who goes now has what it waits for
            continue;
        }
        if (!free_slots.are_enough_for(*task)) {
            break; // nobody overtakes it
        }
        free_slots.give(*task);
        task->params.has_slot = true;
        given.push_back(std::move(*task));
        task = deferred.erase(task);
    }
    queue.insert(queue.begin(), std::make_move_iterator(given.begin()), std::make_move_iterator(given.end()));
    return !given.empty();
}
