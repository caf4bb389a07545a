// The state and functions of a server's paged KV cache: the declarations of espalier-admission.h, espalier-server.h,
// espalier-step.h and espalier-tenancy.h. Like these, included after server_slot in tools/server/server-context.cpp.

#pragma once

#include "espalier-kv.h"
#include "espalier-metrics.h"
#include "espalier-origin.h"
#include "espalier-placement.h"
#include "espalier-pool-size.h"
#include "espalier-request.h"
#include "espalier-slot-file.h"
#include "espalier-slot.h"
#include "espalier-types.h"
#include "espalier-tenant.h"

#include "mtmd.h"

struct espalier_server {
    // Replaced by the thread that loads the model, read by those that answer requests; null until a model is loaded.
    std::shared_ptr<espalier_metrics> metrics;

    std::unique_ptr<espalier_kv>       kv;
    std::unique_ptr<espalier_adapters> adapters;
    std::string                        origin; // of this server, for slot files
    espalier_pool_limit                limit;  // of a pool whose size is -c auto
    uint64_t                           n_steps = 0;
    int                                refused = -1;      // the last request that was answered with HTTP 429
    std::set<int>                      admitted = {};     // --max-queued: unfinished requests with an admitted task

    // Reads what distinguishes owners: the adapters, and the origin for slot files. Called in every mode.
    template <typename server_t> static void init_owners(server_t & server);

    template <typename server_t> static void init(server_t & server);
    template <typename server_t> static void destroy(server_t & server);

    // Sets the size of the pool with --kv-paged and without a size (-c). Must be called before the context is created.
    // Returns false if the server cannot start: with -c auto, nothing fits into free memory.
    template <typename server_t> static bool size_pool(server_t & server);

    // Runs between two steps: caches complete blocks, makes sure that each running slot has blocks for the next step
    // (preempting others if necessary), admits waiting requests that fit, and chooses the batch key of the step.
    template <typename server_t> static void prepare_step(server_t & server);

    // The slots that have a request, in the order of its priority and arrival.
    template <typename server_t> static std::vector<server_slot *> in_order(server_t & server);

    // Whether the slot takes part in this step. false: its request waits, or the step is for another batch key.
    template <typename server_t> static bool is_scheduled(const server_t & server, const server_slot & slot);

    // Recomputes the tokens of a preempted slot as a prompt, without sampling at its end: the next token is known
    // already. Returns false if the batch is full.
    template <typename server_t> static bool resume(server_t & server, server_slot & slot, int32_t n_batch);

    // The number of tokens at which the next batch of the slot's prompt should end, so that its state can be saved;
    // INT32_MAX: it need not end anywhere.
    static int32_t find_stop(server_slot & slot);

    // Sets the slot's own adapters for decoding its media, which happens separately, before the adapters of the batch
    // are set. Evicts retained sequences if the next image or audio, which may be larger than a batch, lacks blocks in
    // layers with a sliding window.
    static void prepare_media(server_slot & slot);

    // Caches the slot's blocks up to the end of an image or audio that was just computed, and saves its state there if
    // other requests need it.
    static void cache_media_blocks(const server_slot & slot);

    // Chunked prefill: the batch size up to which prompt tokens may be added to a batch that has these tokens of
    // decoding slots.
    template <typename server_t> static int32_t limit_prompts(const server_t & server, int32_t n_batch);

    // For a slot whose batch has failed: what its memory has is unknown, so nothing of it is cached or retained when the
    // slot is released. If sequences have a state, no slot retains one any more, since the batch may have moved those of
    // all others.
    static void forget(server_slot & slot);

    // For a slot whose output is not finite: what it has cached is not used again. Call it before its cells are freed.
    static void distrust(server_slot & slot);

    template <typename server_t> static void note_token(server_t & server, server_slot & slot);

    // The idle slot whose retained sequence shares the longest prefix with the task's prompt, among the sequences of
    // the same owner: so the choice of the slot reveals nothing about the prompts of others. NULL: there is none.
    template <typename server_t> static server_slot * find_retained(server_t & server, const server_task & task);

    // Evicts the retained sequence of the slot that has been idle longest. Returns false if there is none.
    template <typename server_t> static bool evict_retained(server_t & server);

    // Returns false if the task has to wait for a slot like all others, or was refused because the queue is full.
    template <typename server_t> static bool has_slot(server_t & server, server_task & task);

    // Counts the running and the waiting requests, each once, however many tasks it has.
    template <typename server_t> static void count_requests(server_t & server, int & n_running, int & n_waiting);

    // Assigns the free slots to waiting tasks. Returns false if slots are assigned as in stock.
    template <typename server_t> static bool give_slots(server_t & server);

    // The owner of a task's tokens.
    template <typename server_t> static espalier_owner owner_of(const server_t & server, const server_task & task);

    // The owner from whose sequences drafts may be learned; with "cache_prompt": false only the request itself.
    template <typename server_t> static std::string draft_owner_of(const server_t & server, const server_task & task);

    // Whether the task may reuse, or be compared with, the tokens that an unpaged slot has kept from its last request:
    // only a request of the same owner may. A paged slot keeps none there (espalier_slot).
    template <typename server_t> static bool may_reuse(const server_t & server, const server_slot & slot, const server_task & task);

    // Assigns an unpaged slot to the task, and clears the tokens that it has kept unless they have the same owner.
    template <typename server_t> static void take_over(server_t & server, server_slot & slot, const server_task & task);

    // Removes the fields of a slot in /slots that would show another tenant's current or last request.
    static void hide_from(const std::string & tenant, const server_slot & slot, json & shown);

    // A copy of the sequence of an idle slot.
    struct held_sequence {
        espalier_owner       owner;
        server_prompt        prompt;
        std::vector<uint8_t> state;
    };

    // An action on an idle slot. During its lifetime the slot's retained sequence is its prompt, as the actions expect
    // it.
    class open_slot {
    public:
        open_slot(server_slot & slot, espalier_owner owner) : slot(slot), owner(std::move(owner)) {
            if (slot.paged.retained) {
                slot.prompt.tokens = slot.paged.retained->take();
                slot.paged.retained.reset();
            }
        }

        ~open_slot() {
            if (!slot.paged.kv) {
                slot.prompt.owner = owner;
            } else if (slot.prompt.n_tokens() > 0) {
                slot.paged.retain(slot.mem, slot.id, slot.prompt, owner);
            }
        }

        open_slot(const open_slot &)             = delete;
        open_slot & operator=(const open_slot &) = delete;

        // The save in progress, if the action saves the slot.
        std::unique_ptr<espalier_saving> saving;

        // Removes the record from the tokens of the file that is being restored.
        void take_record(const std::string & path, std::vector<llama_token> & tokens, size_t n_read) const {
            espalier_slot_file(path, "").take_record(restored, tokens, n_read);
        }

        espalier_slot_file::content restored;
        std::string why_not_read() const;

        // The number of bytes of the file beside those that upstream writes or reads: its digest.
        size_t n_bytes_beside() const {
            return saving || restored.is == espalier_slot_file::OURS ? espalier_slot_file::n_trailer() : 0;
        }

        // The slot's sequence before a restore. roll_back() puts it back if the file is refused; the slot must be empty
        // then.
        std::optional<held_sequence> before;
        void roll_back();

    private:
        server_slot &  slot;
        espalier_owner owner;
    };

    // Opens an idle slot for an action. Null: the action is refused, and the error was sent to the client.
    template <typename server_t> static std::unique_ptr<open_slot> open_idle_slot(server_t & server, server_slot & slot, const server_task & task);

private:
    static bool evict_longest_idle(std::vector<server_slot> & slots);
    template <typename server_t> static std::optional<held_sequence> copy_held(server_t & server, const server_slot & slot, const espalier_owner & owner);
    template <typename server_t> static std::pair<std::string, error_type> free_blocks_for(server_t & server, size_t n_tokens);
    template <typename server_t> static bool has_unknown_adapters(const server_t & server, const espalier_slot_file::content & content);
    template <typename server_t> static std::string read_file(server_t & server, const server_slot & slot, const server_task & task, const espalier_slot_file & file, espalier_slot_file::content & content);
    template <typename server_t> static void open_pool(server_t & server);
    template <typename server_t> static std::string refuse_drafts(const server_t & server);
    template <typename server_t> static std::string refuse_gather(const server_t & server);
    template <typename server_t> static void report_gather(const server_t & server);
    template <typename server_t> static espalier_drafts find_drafts(const server_t & server);
    template <typename server_t> static void set_up_slots(server_t & server);
    template <typename server_t> static void report_snapshots(const server_t & server, uint64_t bytes_of_one);
    template <typename server_t> static void report_window(const server_t & server);
    template <typename server_t> static std::string refuse_windows(const server_t & server);
    template <typename server_t> static void report_windows(const server_t & server);
    template <typename server_t> static void report_rows(const server_t & server);
    template <typename server_t> static espalier_cache_facts describe_cache(const server_t & server);

    struct media_in_prompt {
        size_t      first;
        size_t      n_tokens;
        std::string key;
        bool        has_id; // false: its content is not identified
    };

    // The running and the waiting requests in the order of the queue; `slots` and `requests` have the same order.
    struct scheduler_input {
        std::vector<server_slot *>             slots;
        std::vector<espalier_schedule_request> requests;
        std::vector<server_slot *>             retained_slots; // slots with a retained sequence, in eviction order
        std::vector<llama_seq_id>              retained;
    };

    // The state in which the scheduler last considered the waiting requests. While it is unchanged, they need not be
    // considered again.
    struct scheduler_state {
        uint64_t n_changes = 0;
        std::vector<std::array<int, 4>> slots;

        bool operator==(const scheduler_state & other) const { return n_changes == other.n_changes && slots == other.slots; }
    };
    scheduler_state considered;

    // For --max-queued: the ids of the requests that were considered and not admitted, because no slot or not enough
    // blocks were free.
    template <typename server_t> static std::set<int> find_queued(const server_t & server, const espalier_tasks & deferred, const espalier_tasks & queue);
    template <typename server_t> static bool limit_queue(server_t & server, int id_task, int id_request);
    template <typename server_t> static void limit_actions(server_t & server);
    template <typename server_t> static void limit_newcomers(server_t & server, const scheduler_input & input);
    template <typename server_t> static std::string describe_full_queue(server_t & server, int id_request, size_t n_waiting);
    static bool is_queued(const server_slot & slot);
    static std::set<int> find_deferred(const espalier_tasks & deferred);
    template <typename server_t> static void note_admitted(server_t & server, int id_request);

    static std::vector<media_in_prompt> find_media(const server_tokens & tokens);
    static llama_pos last_position(const server_slot & slot, const server_tokens & tokens, size_t n_tokens);
    static bool is_refused_by_the_server(const server_slot & slot);
    static bool waits(const server_slot & slot);
    static bool runs(const server_slot & slot);
    static const server_tokens & tokens_of(const server_slot & slot);
    static bool generates(const server_slot & slot);

    template <typename server_t> static void cache_full_blocks(server_t & server);
    static void cache_computed_blocks(const server_slot & slot);
    template <typename server_t> static void prepare_requests(server_t & server);
    template <typename server_t> static void prepare_request(const server_t & server, server_slot & slot);
    static bool is_shared(const server_slot & slot, const std::vector<media_in_prompt> & media);
    static size_t count_system_tokens(const server_task & task);
    template <typename server_t> static void begin(const server_t & server, server_slot & slot, const std::vector<media_in_prompt> & media, size_t n_held);

    template <typename server_t> static scheduler_input make_scheduler_input(server_t & server);
    template <typename server_t> static espalier_schedule_request describe(const server_t & server, const server_slot & slot);
    template <typename server_t> static uint64_t count_further_choices(const server_t & server, const server_slot & slot);
    static size_t end_of(const server_slot & slot);
    static int count_drafts(const server_slot & slot);
    template <typename server_t> static void schedule(server_t & server);
    template <typename server_t> static void choose_batch_key(server_t & server);
    template <typename server_t> static scheduler_state look(server_t & server);

    template <typename server_t> static void carry_out(server_t & server, const scheduler_input & input, const espalier_schedule_step & step);
    template <typename server_t> static void admit(server_t & server, server_slot & slot, size_t n_tokens);
    static std::string describe_windows(const struct espalier_pool_statistics & pool, bool are_used);
    template <typename server_t> static void preempt(server_t & server, server_slot & slot);
    template <typename server_t> static void refuse(server_t & server, server_slot & slot, uint64_t n_needed);
    template <typename server_t> static void fail(server_t & server);
    template <typename server_t> static void note_waiting(server_t & server, const scheduler_input & input, const std::vector<uint32_t> & waits);

    // Recomputes the media that come next in the prompt of a preempted slot. Returns false if the request was refused.
    template <typename server_t> static bool compute_media(server_t & server, server_slot & slot);
};
