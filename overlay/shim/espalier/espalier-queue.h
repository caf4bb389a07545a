// The order of tasks that wait for a slot: that of their arrival, also for those that need a certain one.
//
// Upstream puts a task that has to wait again behind all others, and one that needs a certain slot can be taken out for
// another slot that became free: under load it may never meet its own.

#pragma once

#include "server-task.h"

#include <algorithm>
#include <deque>

// The slot that a task has to have, which wraps around; -1: any.
inline int espalier_slot_of(const server_task & task, int n_slots) {
    const bool is_action = task.type == SERVER_TASK_TYPE_SLOT_SAVE || task.type == SERVER_TASK_TYPE_SLOT_RESTORE || task.type == SERVER_TASK_TYPE_SLOT_ERASE;
    const int  id_slot   = is_action ? task.slot_action.id_slot : task.id_slot;
    return id_slot < 0 ? -1 : id_slot % n_slots;
}

// Who has to wait again keeps its place.
inline void espalier_defer(std::deque<server_task> & deferred, server_task && task) {
    const auto later = std::find_if(deferred.begin(), deferred.end(), [&](const server_task & other) { return other.id > task.id; });
    deferred.insert(later, std::move(task));
}

// Of those that can have the slot the first with the smallest priority goes back to the queue: before those that came
// after it, and whoever needs this very slot before all that can have any.
inline void espalier_pop_deferred(std::deque<server_task> & deferred, std::deque<server_task> & queue, int id_slot, int n_slots) {
    auto next = deferred.end();
    for (auto task = deferred.begin(); task != deferred.end(); task++) {
        const int  needs   = espalier_slot_of(*task, n_slots);
        const bool can_run = needs == -1 || needs == id_slot;
        if (can_run && (next == deferred.end() || task->params.priority < next->params.priority)) {
            next = task;
        }
    }
    if (next == deferred.end()) {
        return;
    }
    const bool needs_it = espalier_slot_of(*next, n_slots) != -1;
    const auto place = std::find_if(queue.begin(), queue.end(), [&](const server_task & other) {
        return needs_it || (espalier_slot_of(other, n_slots) == -1 && other.id > next->id);
    });
    queue.insert(place, std::move(*next));
    deferred.erase(next);
}
