#include "espalier-front-call.h"

#include "server-queue.h"

#include <algorithm>
#include <atomic>

thread_local espalier_front_call * espalier_front_current = nullptr;

static std::atomic<void (*)(uint64_t)> front_waker{nullptr};

void espalier_front_set_waker(void (*waker)(uint64_t token)) {
    front_waker.store(waker);
}

void espalier_front_wake_stream(uint64_t token) {
    if (auto * waker = front_waker.load()) {
        waker(token);
    }
}

void espalier_front_bind(server_response_reader & reader) {
    espalier_front_call * call = espalier_front_current;
    if (call == nullptr) {
        return;
    }
    call->reader      = &reader;
    reader.front_call = call;
    reader.queue_results.set_token(reader.id_tasks, call->token);
}

void espalier_front_unbind(const server_response_reader & reader) {
    if (reader.front_call != nullptr && reader.front_call->reader == &reader) {
        reader.front_call->reader = nullptr;
    }
}

void espalier_front_count(const server_response_reader & reader, const server_task_result & result) {
    espalier_front_call * call = reader.front_call;
    if (call == nullptr) {
        return;
    }
    espalier_front_call::counted now;
    if (const auto * part = dynamic_cast<const server_task_result_cmpl_partial *>(&result)) {
        now = { (uint64_t) part->n_prompt_tokens, (uint64_t) part->n_decoded };
    } else if (const auto * final = dynamic_cast<const server_task_result_cmpl_final *>(&result)) {
        now = { (uint64_t) final->n_prompt_tokens, (uint64_t) final->n_decoded };
    } else if (const auto * embedding = dynamic_cast<const server_task_result_embd *>(&result)) {
        now = { (uint64_t) embedding->n_tokens, 0 };
    } else if (const auto * rank = dynamic_cast<const server_task_result_rerank *>(&result)) {
        now = { (uint64_t) rank->n_tokens, 0 };
    }
    // the numbers of a task only grow
    espalier_front_call::counted & before = call->tasks[result.id];
    call->n_prompt    += std::max(now.n_prompt, before.n_prompt) - before.n_prompt;
    call->n_generated += std::max(now.n_generated, before.n_generated) - before.n_generated;
    before = { std::max(now.n_prompt, before.n_prompt), std::max(now.n_generated, before.n_generated) };
}

void espalier_front_count_rest(const server_response_reader & reader) {
    if (reader.front_call == nullptr) {
        return;
    }
    while (const server_task_result_ptr result = reader.queue_results.take(reader.id_tasks)) {
        espalier_front_count(reader, *result);
    }
}

//
// server_response
//

void server_response::set_token(const std::unordered_set<int> & id_tasks, uint64_t token) {
    mailbox->set_token(id_tasks, token);
}

server_task_result_ptr server_response::take(const std::unordered_set<int> & id_tasks) {
    return mailbox->receive(id_tasks, std::chrono::steady_clock::now());
}

bool server_response::has_result(const std::unordered_set<int> & id_tasks) {
    // that a task waits for a slot is not a result: the reader would go on to wait
    return mailbox->is_ready(id_tasks, [](const server_task_result_ptr & result) {
        return dynamic_cast<server_task_result_waiting *>(result.get()) == nullptr;
    });
}
