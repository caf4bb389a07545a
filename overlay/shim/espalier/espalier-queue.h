// Assigns free slots to waiting tasks in the order of priority and arrival, for all of them at once from the slots that
// are free now. So it does not matter how a slot became free, or what happened to the task that it was meant for.
//
// Upstream dequeues one task for each slot that is released. If that task is then refused or cancelled, or is an action
// on the slot, the slot stays free while other tasks wait for it; a task that has to wait again goes to the back of the
// queue; and a task that needs a certain slot can be dequeued for another one.

#pragma once

#include "espalier-pool.h"

#include "server-task.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <numeric>
#include <set>
#include <vector>

using espalier_tasks = std::deque<server_task>;

// Whether the task saves, restores or erases a slot. Such actions run one at a time, whatever else is queued, and
// compute nothing.
inline bool espalier_is_slot_action(const server_task & task) {
    return task.type == SERVER_TASK_TYPE_SLOT_SAVE || task.type == SERVER_TASK_TYPE_SLOT_RESTORE || task.type == SERVER_TASK_TYPE_SLOT_ERASE;
}

// Gives all tasks of an HTTP request, and those of its further choices (`n`), the same request id.
inline void espalier_name_request(std::vector<server_task> & tasks) {
    for (server_task & task : tasks) {
        task.params.id_request = tasks.front().id;
        for (server_task & child : task.child_tasks) {
            child.params.id_request = tasks.front().id;
        }
    }
}

// The place of a task's request in the queue; `sequence` is its slot's, 0 without a slot.
inline espalier_schedule_place espalier_place_of(const server_task & task, int32_t sequence) {
    return { task.params.priority, (uint64_t) task.id, sequence };
}

// The indexes of the places in the order of the queue. The kernels have the rule; if they are of another build, the
// places stay as they are, since every feature is off then.
inline std::vector<uint32_t> espalier_order(const std::vector<espalier_schedule_place> & places) {
    std::vector<uint32_t> indexes(places.size());
    std::iota(indexes.begin(), indexes.end(), 0);
    if (const auto * functions = espalier_pool_get_functions()) {
        functions->order(places.data(), places.size(), indexes.data());
    }
    return indexes;
}

inline void espalier_sort_tasks(espalier_tasks & tasks) {
    std::vector<espalier_schedule_place> places;
    for (const server_task & task : tasks) {
        places.push_back(espalier_place_of(task, 0));
    }
    const std::vector<uint32_t> indexes = espalier_order(places);
    if (std::is_sorted(indexes.begin(), indexes.end())) {
        return;
    }
    espalier_tasks sorted;
    for (const uint32_t index : indexes) {
        sorted.push_back(std::move(tasks[index]));
    }
    tasks = std::move(sorted);
}

// Slots that are idle and not assigned to a task yet.
class espalier_free_slots {
public:
    espalier_free_slots(std::set<int> idle, int n_slots) : ids(std::move(idle)), n_free((int) ids.size()), n_slots(n_slots) {}

    // Whether the slot that this task needs is busy, or assigned to another task.
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
    int           n_free; // can be less than ids.size(): the slot of a task that can have any is chosen later
    int           n_slots;

    // The slot that a task requires, as get_slot_by_id finds it; -1: any. Requests with an id that no slot has were
    // refused earlier (espalier_get_id_slot, espalier_refuse_slot).
    int needed_by(const server_task & task) const {
        const bool is_action = espalier_is_slot_action(task);
        const int  id_slot   = is_action ? task.slot_action.id_slot : task.id_slot;
        return id_slot == -1 && !is_action ? -1 : (int) ((size_t) id_slot % (size_t) n_slots);
    }

    static int count_of(const server_task & task) { return 1 + (int) task.child_tasks.size(); }
};

// Moves the tasks that get a slot to the front of the queue, in their order. Returns whether there were any.
inline bool espalier_give_slots(std::deque<server_task> & deferred, std::deque<server_task> & queue, espalier_free_slots free_slots) {
    for (const server_task & task : queue) {
        if (task.params.has_slot) {
            free_slots.give(task);
        }
    }
    if (free_slots.are_none()) {
        return false; // waiting tasks cost a step nothing
    }
    espalier_sort_tasks(deferred);
    std::vector<server_task> given;
    for (auto task = deferred.begin(); task != deferred.end();) {
        if (free_slots.is_taken_from(*task)) {
            task++; // its slot is not free, so tasks that are assigned now do not take it away
            continue;
        }
        if (!free_slots.are_enough_for(*task)) {
            break; // no bypass
        }
        free_slots.give(*task);
        task->params.has_slot = true;
        given.push_back(std::move(*task));
        task = deferred.erase(task);
    }
    queue.insert(queue.begin(), std::make_move_iterator(given.begin()), std::make_move_iterator(given.end()));
    return !given.empty();
}
