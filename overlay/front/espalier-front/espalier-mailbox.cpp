#include "server-queue.h"

#include <atomic>

static std::atomic<bool> mailbox_is_enabled{false};

void espalier_mailbox_enable(bool is_enabled) {
    mailbox_is_enabled.store(is_enabled);
}

espalier_mailbox_ptr espalier_mailbox_make() {
    if (!mailbox_is_enabled.load()) {
        return nullptr;
    }
    return std::make_unique<espalier_mailbox<server_task_result_ptr>>(espalier_front_wake_stream);
}

//
// server_response
//

server_task_result_ptr server_response::receive(const std::unordered_set<int> & id_tasks, const std::optional<std::chrono::steady_clock::time_point> & deadline) {
    server_task_result_ptr result = mailbox->receive(id_tasks, deadline);
    if (result == nullptr) {
        std::unique_lock<std::mutex> lock(mutex_results);
        result = pop_result(id_tasks); // an error, once terminated
    }
    return result;
}
