// What a server can be asked about its paged KV cache, and what it has to know for it: the declarations of
// espalier-admission.h, espalier-server.h and espalier-step.h. After the file's server_slot, like these.

#pragma once

#include "espalier-kv.h"
#include "espalier-numbers.h"
#include "espalier-origin.h"
#include "espalier-pool-size.h"
#include "espalier-request.h"
#include "espalier-slot-file.h"
#include "espalier-slot.h"
#include "espalier-types.h"
#include "espalier-tenant.h"

#include "mtmd.h"

struct espalier_server {
    // Replaced by the thread that loads the model, read by those that answer requests; empty: not paged.
    std::shared_ptr<espalier_numbers> numbers;

    std::unique_ptr<espalier_kv>       kv;
    std::unique_ptr<espalier_adapters> adapters;
    std::string                        origin; // for files of slots
    uint64_t                           n_steps = 0;
    int                                refused = -1;      // the last request that was answered 429
    std::set<int>                      admitted = {};     // with --max-queued: requests that have tasks left, of which one was computed

    // In every mode: what tells owners apart.
    template <typename server_t> static void init_owners(server_t & server);

    template <typename server_t> static void init(server_t & server);
    template <typename server_t> static void destroy(server_t & server);

    // With --kv-paged and no -c: how large the pool is. Before the context is made.
    static void size_pool(common_params & params);

    // Between two steps: what is computed can be shared, each running slot has room for the next step, and of those
    // that wait the ones that may go on have their turn.
    template <typename server_t> static void prepare_step(server_t & server);

    // The slots in the order in which their requests go; as they are if the cache is not paged.
    template <typename server_t> static std::vector<server_slot *> in_order(server_t & server);

    // false: the slot's request waits, or requests of another batch key are computed in this step
    template <typename server_t> static bool has_turn(const server_t & server, const server_slot & slot);

    // A preempted slot computes again what it had, as a prompt, but nothing is sampled at its end: the next
    // token is known already. false: the batch is full
    template <typename server_t> static bool resume(server_t & server, server_slot & slot, int32_t n_batch);

    // Media are decoded by themselves, before the adapters of the batch are set: these are the slot's own.
    static void prepare_media(server_slot & slot);

    // The batch size up to which prompts may be added to a batch that has these tokens of generating slots.
    template <typename server_t> static int32_t limit_prompts(const server_t & server, int32_t n_batch);

    template <typename server_t> static void note_token(server_t & server, server_slot & slot);

    // The idle slot that keeps the most of the task's prompt, of the texts that its request may go on with: which slot
    // it gets tells nobody what others asked. NULL: there is none
    template <typename server_t> static server_slot * find_kept(server_t & server, const server_task & task);

    // A kept text that nobody computes with is given up. false: there is none
    template <typename server_t> static bool drop_kept(server_t & server);

    // false: it has to wait for a slot like all others, or was refused since too many do
    template <typename server_t> static bool has_slot(server_t & server, server_task & task);

    // Requests that run and requests that wait, each counted once, however many tasks it is made of.
    template <typename server_t> static void count_requests(server_t & server, int & n_running, int & n_waiting);

    // Gives the slots that are free to those that wait for one. false: they are given as in stock
    template <typename server_t> static bool give_slots(server_t & server);

    // Whose a task's text is.
    template <typename server_t> static espalier_owner owner_of(const server_t & server, const server_task & task);

    // Whose text a draft may be learned from: with "cache_prompt": false the request's alone.
    template <typename server_t> static std::string draft_owner_of(const server_t & server, const server_task & task);

    // What an unpaged slot left after its last request: only a request of the same owner may go on from it, or is compared
    // with it. A paged slot leaves nothing there (espalier_slot).
    template <typename server_t> static bool may_reuse(const server_t & server, const server_slot & slot, const server_task & task);

    // The slot is the task's now. What it left belongs to the same owner, or is cleared.
    template <typename server_t> static void take_over(server_t & server, server_slot & slot, const server_task & task);

    // Of a slot, in /slots: what another tenant asks or has asked is not shown.
    static void hide_from(const std::string & tenant, const server_slot & slot, json & shown);

    // A copy of the sequence of an idle slot.
    struct held_sequence {
        espalier_owner       owner;
        server_prompt        prompt;
        std::vector<uint8_t> state;
    };

    // An action on an idle slot. While it lives, a slot's kept text is its prompt, as the actions expect it.
    class open_slot {
    public:
        open_slot(server_slot & slot, espalier_owner owner) : slot(slot), owner(std::move(owner)) {
            if (slot.paged.kept) {
                slot.prompt.tokens = slot.paged.kept->take();
                slot.paged.kept.reset();
            }
        }

        ~open_slot() {
            if (!slot.paged.kv) {
                slot.prompt.owner = owner;
            } else if (slot.prompt.n_tokens() > 0) {
                slot.paged.keep(slot.mem, slot.id, slot.prompt, owner);
            }
        }

        open_slot(const open_slot &)             = delete;
        open_slot & operator=(const open_slot &) = delete;

        // Of a slot that is being saved.
        std::unique_ptr<espalier_saving> saving;

        // Of a file that is being restored.
        void take_record(const std::string & path, std::vector<llama_token> & tokens, size_t n_read) const {
            espalier_slot_file(path, "").take_record(restored, tokens, n_read);
        }

        espalier_slot_file::content restored;
        std::string why_not_read() const;

        // The slot's sequence before a restore. roll_back() puts it back if the file is refused; the slot must be empty then.
        std::optional<held_sequence> before;
        void roll_back();

    private:
        server_slot &  slot;
        espalier_owner owner;
    };

    // For an action on an idle slot. Empty: it is refused, and the client was told why
    template <typename server_t> static std::unique_ptr<open_slot> open_idle_slot(server_t & server, server_slot & slot, const server_task & task);

private:
    template <typename server_t> static std::optional<held_sequence> copy_held(server_t & server, const server_slot & slot, const espalier_owner & owner);
    template <typename server_t> static std::pair<std::string, error_type> make_room(server_t & server, size_t n_tokens);
    template <typename server_t> static std::string read_file(server_t & server, const server_slot & slot, const server_task & task, const espalier_slot_file & file, espalier_slot_file::content & content);
    template <typename server_t> static void open_pool(server_t & server);
    template <typename server_t> static espalier_cache_facts describe_cache(const server_t & server);

    struct media_in_prompt {
        size_t      first;
        size_t      n_tokens;
        std::string key;
        bool        has_id; // false: what it is like is not known
    };

    // Who asks, or runs; what the scheduler is told of them is in the same order.
    struct line {
        std::vector<server_slot *>             slots;
        std::vector<espalier_schedule_request> requests;
        std::vector<server_slot *>             keepers; // in the order in which they give up what they keep
        std::vector<llama_seq_id>              kept;
    };

    // What the line looked like when who waits was asked last: nothing changed, nobody needs to be asked.
    struct snapshot {
        uint64_t n_changes = 0;
        std::vector<std::array<int, 4>> slots;

        bool operator==(const snapshot & other) const { return n_changes == other.n_changes && slots == other.slots; }
    };
    snapshot asked;

    // For --max-queued: the ids of the requests that were asked and not admitted, for want of a slot or of blocks.
    template <typename server_t> static std::set<int> find_queued(const server_t & server, const espalier_tasks & deferred, const espalier_tasks & queue);
    template <typename server_t> static bool limit_queue(server_t & server, int id_task, int id_request);
    template <typename server_t> static void limit_actions(server_t & server);
    template <typename server_t> static void limit_newcomers(server_t & server, const line & those);
    template <typename server_t> static std::string describe_full_queue(server_t & server, int id_request, size_t n_waiting);
    static bool is_queued(const server_slot & slot);
    static std::set<int> find_deferred(const espalier_tasks & deferred);
    template <typename server_t> static void note_admitted(server_t & server, int id_request);

    static bool drafts_from_tokens_alone(const common_params & params);
    static std::vector<media_in_prompt> find_media(const server_tokens & tokens);
    static bool is_refused_by_the_server(const server_slot & slot);
    static bool waits(const server_slot & slot);
    static bool runs(const server_slot & slot);
    static const server_tokens & text_of(const server_slot & slot);
    static bool generates(const server_slot & slot);
    static std::pair<int32_t, int> place_of(const server_slot & slot);

    template <typename server_t> static void publish(server_t & server);
    template <typename server_t> static void prepare_requests(server_t & server);
    static void prepare_request(const espalier_adapters & adapters, server_slot & slot);
    static bool is_shared(const server_slot & slot, const std::vector<media_in_prompt> & media);
    static void begin(server_slot & slot, const std::vector<media_in_prompt> & media, size_t n_held);

    template <typename server_t> static line line_up(server_t & server);
    template <typename server_t> static espalier_schedule_request describe(const server_t & server, const server_slot & slot);
    template <typename server_t> static uint64_t count_siblings(const server_t & server, const server_slot & slot);
    static size_t end_of(const server_slot & slot);
    template <typename server_t> static void schedule(server_t & server);
    template <typename server_t> static void choose_batch_key(server_t & server);
    template <typename server_t> static snapshot look(server_t & server);

    template <typename server_t> static void carry_out(server_t & server, const line & those, const espalier_schedule_step & step);
    template <typename server_t> static void admit(server_t & server, server_slot & slot, size_t n_tokens);
    template <typename server_t> static void preempt(server_t & server, server_slot & slot);
    template <typename server_t> static void refuse(server_t & server, server_slot & slot);
    template <typename server_t> static void fail(server_t & server);
    template <typename server_t> static void note_waiting(server_t & server, const line & those, const std::vector<uint32_t> & waits);

    // The media that come next in a preempted slot's prompt. false: refused
    template <typename server_t> static bool compute_media(server_t & server, server_slot & slot);
};
