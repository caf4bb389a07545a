/*
 * The C ABI of Espalier's Rust kernels. C99 and C++.
 *
 * Written by hand; kernels/tests/header.rs checks that it declares exactly what the library
 * exports, with the same values and layouts.
 *
 * Every function may be called from any thread. None throws or aborts: an internal failure is
 * reported on stderr, and the neutral value ("off") is returned.
 */
#ifndef ESPALIER_KERNELS_H
#define ESPALIER_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a signature, a value or a layout below changes. */
#define ESPALIER_KERNELS_ABI_VERSION 14u

/* The ABI version the library was built with; differs from the constant if header and library
 * are of different builds. */
uint32_t espalier_kernels_abi_version(void);

/* Behaviours that differ from stock llama.cpp. Everything is off until the environment variable
 * ESPALIER_ENABLE, a comma-separated list read once per process, names it; attention is also on for
 * a paged cache. ESPALIER_DISABLE lists features that stay off. */
enum espalier_feature {
    ESPALIER_FEATURE_GDN_FLAT_OUTPUT = 0, /* "gdn-flat-output" */
    ESPALIER_FEATURE_ATTENTION       = 1, /* "attention" */
    ESPALIER_FEATURE_GDN_RECURRENCE  = 2, /* "gdn-recurrence" */
    ESPALIER_FEATURE_MUL_MAT         = 3, /* "mul-mat" */
};

/* 1 if the feature is on in this process, else 0; 0 for an unknown feature. */
int32_t espalier_feature_enabled(enum espalier_feature feature);

/* Writes the comma-separated names of the enabled features, cut to fit `length` bytes and ended
 * by a NUL, to `buffer` (nothing if `length` is 0). Returns the length of the whole list in
 * bytes, without the NUL; 0 means that no feature is on. */
size_t espalier_features(char * buffer, size_t length);

/* Properties of one output projection of a gated delta net layer. Booleans are 0 or 1. */
struct espalier_gdn_output_facts {
    int32_t weight_type;           /* enum ggml_type of the weight */
    int32_t weight_in_cpu_memory;  /* the weight is in ggml's plain or repacked CPU memory */
    int32_t only_cpu_devices;      /* every device of the process is a CPU */
    int32_t cpu_kernels_use_avx2;  /* ggml's CPU kernels were built with AVX2, FMA and F16C */
    int32_t adapter_covers_weight; /* an active LoRA adapter has a pair for this weight */
};

/* 1 if gdn-flat-output is on and flattening this projection's input keeps every bit of its output,
 * else 0 (also for NULL). The first refusal for each reason is logged on stderr. */
int32_t espalier_gdn_output_is_flat(const struct espalier_gdn_output_facts * facts);

/* The bytes that this process may still allocate by the limits of the control groups that it is in, its own and those
 * around it; page cache that can be dropped at once counts as free. INT64_MAX without a limit. Linux only. */
int64_t espalier_free_of_groups(void);

/* Writes a warning to stderr for each environment variable that nothing reads: one with the prefix ESPALIER_ that is
 * unknown, or one that resembles LLAMA_ARG_<FLAG> of an option that upstream does not have. */
void espalier_warn_of_variables(void);

/* The SHA-256 of `length` bytes (NULL only if that is 0), to `digest`. */
void espalier_sha256(const uint8_t * bytes, size_t length, uint8_t digest[32]);

/* ---- The KV block pool ---- */

/* A pool of KV cells in blocks of equal size, with the block tables of sequences. A block is free, held by one or more
 * sequences, or cached and evictable: free, but its content is known by a hash and can be matched by a prompt until the
 * block is allocated for something else. Position p of a sequence is token p of its request: not its position in the
 * model, if tokens of an image share one.
 *
 * If a sequence has a state besides its cells (recurrent and convolution states), a prompt can be matched only at
 * boundaries, between two blocks, of which a snapshot of the state exists. The pool decides which snapshots are taken
 * and evicted; the caller holds their bytes, by id. An id is not 0, and is not used again.
 *
 * If some layers have a sliding window, their tokens have cells of their own, of which a sequence has the last ones
 * only: the layers are in two groups, each with blocks, block tables and a free list of its own, and cells are counted
 * from 0 in each. A prompt can be matched at a boundary only if the blocks of the window before it are cached too.
 * The scheduler admits and preempts by the blocks of both groups.
 *
 * After an internal failure the pool's tables cannot be trusted: every function returns INVALID (and next_event 0),
 * until espalier_pool_clear() rebuilds them. */
struct espalier_pool;

/* Parts of a sequence's memory, with the values of enum llama_memory_part. */
enum espalier_pool_part {
    ESPALIER_POOL_PART_CELLS  = 1, /* one cell for each token */
    ESPALIER_POOL_PART_WINDOW = 2, /* one cell for each of the last tokens, in the layers with a window */
    ESPALIER_POOL_PART_STATE  = 4, /* one state for each sequence */
};

/* Groups of layers. */
enum espalier_pool_group {
    ESPALIER_POOL_GROUP_FULL   = 0, /* attend to all tokens; without windows: all layers */
    ESPALIER_POOL_GROUP_WINDOW = 1, /* attend to the last tokens of a sequence */
};

struct espalier_pool_options {
    uint32_t block_count;    /* number of blocks, at least 1, and fewer than 2^31 cells in all; the cells of block b
                              * (0-based) are b*block_size .. (b+1)*block_size - 1 */
    uint32_t block_size;     /* cells, a power of two, 1 .. 4096 */
    uint32_t sequence_count; /* sequences are 0 .. sequence_count - 1; 1 .. 65536 */
    uint32_t event_capacity; /* events kept until they are read, the oldest is dropped; 0: none is recorded */
    uint32_t parts;          /* enum espalier_pool_part, combined by OR; 0: cells only */
    uint32_t snapshot_interval; /* distance in tokens of the snapshots for which there is no better reason; 0: none of
                                 * them are taken */
    uint64_t snapshot_bytes; /* budget of all snapshots together; 0: none are taken, so that with a state nothing is
                              * matched */
    uint32_t window;         /* a token attends to itself and the window - 1 tokens before it; 0 exactly if `parts` has
                              * no window */
    uint32_t window_block_count; /* blocks of the group WINDOW: at least espalier_pool_blocks_of_windows() of all
                                  * sequences and one batch, and more for what is to be kept of ended sequences; fewer
                                  * than 2^31 cells in all. 0 exactly if `parts` has no window */
    uint32_t closes_blocks; /* 1: a block ends where an extra of a request ends, and the token after it begins a block,
                             * so that a prompt can be matched there; positions are indexes of tokens. A request fills
                             * its blocks if it, or a window of it, does not fit into the pool like that. 0: always */
    uint32_t batch_tokens;  /* tokens in a batch at most; not used without a window */
};

/* Number of blocks that the sequences take in layers with a window, beside a batch of up to batch_tokens tokens.
 * block_size is not 0. */
uint64_t espalier_pool_blocks_of_windows(uint32_t window, uint32_t block_size, uint32_t sequences,
                                         uint32_t batch_tokens);

enum espalier_pool_status {
    ESPALIER_POOL_OK      = 0,
    ESPALIER_POOL_SHORT   = 1, /* not enough free blocks, or bytes for a snapshot; nothing was changed */
    ESPALIER_POOL_WAIT    = 2, /* another sequence is computing the next block */
    ESPALIER_POOL_INVALID = 3, /* invalid arguments (NULL, unknown sequence, ...); nothing was changed */
    ESPALIER_POOL_EXISTS  = 4, /* there is a snapshot of this content already; nothing was changed */
};

/* Returns NULL if the options are out of range, or if there is not enough memory. */
struct espalier_pool * espalier_pool_new(const struct espalier_pool_options * options);

/* NULL is allowed. The pool must not be used afterwards. */
void espalier_pool_free(struct espalier_pool * pool);

/* Allocates cells in a group (enum espalier_pool_group) for tokens, which need cells in each group: token i of
 * `sequences[i]` at `positions[i]` gets cell cells[i]. Allocates the blocks that are missing, all or none. Calling it
 * again returns the same cells. A position in a block that the sequence may not write to (matched, shared, cached) goes
 * to a new block. fresh_blocks (space for `count`) gets the first cells of the blocks that were allocated: the old
 * content of their cells is obsolete. INVALID: also a position that occurs twice in a sequence, since both tokens would
 * get one cell; and a group that the pool does not have, here and in the functions below. */
int32_t espalier_pool_reserve(struct espalier_pool * pool, uint32_t group, const int32_t * sequences,
                              const int32_t * positions, size_t count, uint32_t * cells, uint32_t * fresh_blocks,
                              size_t * fresh_count);

/* Adds to `to`, besides the blocks it has in the group, every block of `from` with a position in [p0, p1). It never
 * writes to a block that it did not allocate itself. As in llama.cpp a negative p0 is the beginning and a negative p1
 * (or INT32_MAX) the end; here and in espalier_pool_remove. */
int32_t espalier_pool_share(struct espalier_pool * pool, uint32_t group, int32_t from, int32_t to, int32_t p0,
                            int32_t p1);

/* Removes the positions in [p0, p1) of a group from the sequence; the caller removes them from each group. Blocks that
 * lie entirely in that range are released. A block that lies in it partly stays; the sequence appends to it only if no
 * other sequence holds it and it was never cached, else the next position there goes to a new block. The output of a
 * request from p0 on may differ afterwards from the cached one; its prompt may not. */
int32_t espalier_pool_remove(struct espalier_pool * pool, uint32_t group, int32_t sequence, int32_t p0, int32_t p1);

/* Releases the blocks of the group WINDOW that lie before the window of the last boundary of the sequence's first
 * `computed` tokens, which are all computed and cached. Called between two batches, never while one is placed or
 * computed. `first` gets the first position of which the sequence still has a cell: the caller removes the sequence
 * from the cells of that group before it. */
int32_t espalier_pool_slide(struct espalier_pool * pool, int32_t sequence, uint64_t computed, uint64_t * first);

/* Removes all sequences, requests, cached blocks and snapshots: the caller frees the bytes of all snapshots. */
void espalier_pool_clear(struct espalier_pool * pool);

/* An input besides the tokens that the KV of positions first .. first + length - 1 depends on: an
 * image's hash. */
struct espalier_pool_extra {
    uint32_t        first;
    uint32_t        length;     /* at least 1 */
    const uint8_t * key;
    size_t          key_length; /* bytes */
};

/* Everything that decides whether two prompts have the same KV. */
struct espalier_pool_request {
    const int32_t * tokens;          /* the whole prompt */
    size_t          token_count;
    size_t          held_count;      /* tokens at its beginning whose KV the sequence holds; if not 0, it
                                      * matches no cached blocks, and caches those that it computes from
                                      * there on */
    const uint8_t * salt;            /* sharing scope: enters the first block's hash, and by the chain
                                      * all others */
    size_t          salt_length;     /* bytes; 0: none */
    const uint8_t * adapters;        /* enters every block's hash: LoRA adapters with their scales */
    size_t          adapters_length; /* bytes; 0: none */
    const struct espalier_pool_extra * extras; /* sorted by `first`, not overlapping */
    size_t          extra_count;
    size_t          system_length;   /* tokens before the first message of a user, which other prompts
                                      * are expected to begin with; 0: unknown */
    uint64_t        end;             /* one past the last position that it needs blocks for when it is admitted, and */
    uint64_t        further_choices; /* its further choices, as in espalier_schedule_request: if the pool has too few
                                      * blocks for these when some are closed, none is closed */
};

/* Starts a request of the sequence, which must hold held_count tokens and nothing else. It waits: nothing of it is in
 * flight before espalier_pool_match_prefix(). Copies what it needs. An earlier request of the sequence ends. */
int32_t espalier_pool_begin(struct espalier_pool * pool, int32_t sequence,
                            const struct espalier_pool_request * request);

/* Space for the blocks of one group that a function returns. `blocks` in the functions below has one for each group, in
 * the order of enum espalier_pool_group; in a pool without windows the second one gets no blocks. */
struct espalier_pool_blocks {
    uint32_t * first_cells; /* space for `capacity`, NULL only if that is 0; gets the first cell of each block */
    size_t     capacity;
    size_t     count;       /* gets the number of blocks, even if that is more than `capacity` */
};

/* Adds the cached blocks that come next in the request's prompt, as far as there are any, to the sequence (a
 * prefix-cache hit), but none beyond the block in which the first `tokens` of the prompt end: those that
 * espalier_pool_schedule offered, or UINT64_MAX. At least one token of the prompt is left to be computed. The tokens of
 * each block are compared, not only the hash. May be called repeatedly while the sequence has only matched blocks.
 * WAIT: the next block is in flight in another sequence, call again when it is cached; OK: the sequence computes the
 * rest, and other sequences that need the same blocks get WAIT. The sequence may have matched blocks in both cases. A
 * request with held_count tokens gets no blocks, and OK.
 *
 * If a sequence has a state, the blocks end where a snapshot of it exists, and `snapshot` gets its id: restore it, then
 * call espalier_pool_restored(); it is not evicted before that. 0: no block was added, or there is no state. */
int32_t espalier_pool_match_prefix(struct espalier_pool * pool, int32_t sequence, uint64_t tokens,
                                   struct espalier_pool_blocks * blocks, uint32_t * snapshot);

/* Reports that the sequence has restored the snapshot that espalier_pool_match_prefix returned for it (1), or could not
 * (0): then the snapshot is removed, and the caller frees its bytes and removes everything from the sequence. INVALID:
 * the sequence is not restoring it. */
int32_t espalier_pool_restored(struct espalier_pool * pool, int32_t sequence, uint32_t snapshot, int32_t is_restored);

/* Caches each block of the sequence that is full and not cached yet; the KV of the first token_count of `tokens`
 * (prompt, then accepted output) must be in the sequence's cells. `blocks` gets those that this call cached. A block
 * that cannot be cached is left out: the sequence did not allocate it itself, or holds several blocks for the same
 * positions. INVALID: the tokens are not the request's, or the sequence does not hold them. */
int32_t espalier_pool_cache_blocks(struct espalier_pool * pool, int32_t sequence, const int32_t * tokens,
                                   size_t token_count, struct espalier_pool_blocks * blocks);

/* Writes the tokens of the block in which this token of the sequence lies, or is going to lie: the index of the first
 * one, and one past the last one that it has space for. After n tokens a sequence is at a boundary if the block of
 * token n begins with it. INVALID: an unknown sequence, or a token that no sequence can have. */
int32_t espalier_pool_block_of(const struct espalier_pool * pool, int32_t sequence, uint64_t token, uint64_t * first,
                               uint64_t * end);

/* Reason for a snapshot. */
enum espalier_pool_reason {
    ESPALIER_POOL_REASON_AWAITED       = 0, /* a request that has not begun to compute can match there */
    ESPALIER_POOL_REASON_BRANCH        = 1, /* prompts branch there */
    ESPALIER_POOL_REASON_SYSTEM_PROMPT = 2, /* the system prompt ends there */
    ESPALIER_POOL_REASON_PROMPT_END    = 3, /* the last boundary of a long prompt */
    ESPALIER_POOL_REASON_TAIL          = 4, /* the last boundary of an answer; never the reason of a stop */
    ESPALIER_POOL_REASON_INTERVAL      = 5, /* one of the boundaries at regular intervals */
};

/* A boundary at which a sequence should stop computing, so that a snapshot can be taken. */
struct espalier_pool_stop {
    uint64_t tokens; /* number of tokens before it; 0: the sequence need not stop */
    uint32_t reason; /* enum espalier_pool_reason */
};

/* Writes the first boundary after `computed` tokens of the sequence's request at which it should stop. The sequence is
 * at a stop with n tokens if the answer for n - 1 is n. Depends on the other requests and on the snapshots, so it is
 * asked again before each batch. */
int32_t espalier_pool_next_stop(const struct espalier_pool * pool, int32_t sequence, uint64_t computed,
                                struct espalier_pool_stop * stop);

/* Begins a snapshot of the sequence's state after exactly these tokens, whole blocks of its prompt and accepted output
 * that were cached before. `snapshot` gets its id. `evicted` gets the ids of the snapshots that were removed for it,
 * and `evicted_count` their number: the caller frees their bytes, saves the state, and calls
 * espalier_pool_snapshot_end(). `capacity` has to be at least the number of snapshots that exist. A tail replaces the
 * one before it in the same answer, unless that one was hit. EXISTS: there is one of this content; SHORT: the budget is
 * too small, or the others are being restored; INVALID: also tokens that end within a block or an image. */
int32_t espalier_pool_snapshot_begin(struct espalier_pool * pool, int32_t sequence, const int32_t * tokens,
                                     size_t token_count, uint64_t bytes, uint32_t reason, uint32_t * snapshot,
                                     uint32_t * evicted, size_t capacity, size_t * evicted_count);

/* Ends a snapshot: it was written (1) and can be matched from here on, or it was not (0) and is removed. INVALID: it is
 * not being written. */
int32_t espalier_pool_snapshot_end(struct espalier_pool * pool, uint32_t snapshot, int32_t is_written);

/* Ends the request of the sequence, whose output is not finite, and removes from the cache what it may have computed
 * wrongly: all blocks with the contents of its tokens behind the first `matched`, which it has not computed, also not
 * before it was preempted; in a pool with a state all blocks with contents of its tokens, and the snapshots of states
 * after them. The sequence still holds its blocks. `blocks` gets those that are not cached any more. `snapshots` gets
 * the ids of the snapshots, whose bytes the caller frees, and `snapshot_count` their number; `capacity` has to be at
 * least the number of snapshots that exist. INVALID: the sequence has no request. */
int32_t espalier_pool_distrust(struct espalier_pool * pool, int32_t sequence, uint64_t matched,
                               struct espalier_pool_blocks * blocks, uint32_t * snapshots, size_t capacity,
                               size_t * snapshot_count);

/* Ends the request of the sequence, if it has one; none of its blocks is in flight any more. The
 * sequence keeps its blocks until they are removed. */
int32_t espalier_pool_end(struct espalier_pool * pool, int32_t sequence);

/* Number of blocks that the sequence holds. May be called from any thread while another one
 * decodes. */
uint64_t espalier_pool_held(const struct espalier_pool * pool, int32_t sequence);

/* A counter that increases whenever a waiting request may be able to continue: a block became free or was cached, an
 * in-flight block was cancelled, or a snapshot was written. */
uint64_t espalier_pool_changes(const struct espalier_pool * pool);

enum espalier_schedule_stage {
    ESPALIER_SCHEDULE_WAITS = 0, /* waiting: computes nothing, and holds at most a retained sequence */
    ESPALIER_SCHEDULE_RUNS  = 1, /* admitted */
};

/* The place of a request in the queue. Places are compared field by field in this order: the
 * smallest goes first. */
struct espalier_schedule_place {
    int32_t  priority;
    uint64_t arrival;
    int32_t  sequence; /* 0 if the request has none yet */
};

/* Writes the indexes of the places in the order of the queue to `indexes` (space for `count`); equal
 * places keep their order. INVALID: NULL; nothing was written. */
int32_t espalier_schedule_order(const struct espalier_schedule_place * places, size_t count, uint32_t * indexes);

/* A request as the server describes it. `priority`, `arrival` and `sequence` are its place. */
struct espalier_schedule_request {
    uint64_t arrival;
    uint64_t first;           /* the first position whose KV it does not have */
    uint64_t end;             /* one past the last position that it needs blocks for now */
    uint64_t further_choices; /* further choices (`n`) that continue where it ends, each in its own block */
    int32_t  priority;
    int32_t  sequence;
    uint32_t stage;           /* enum espalier_schedule_stage */
    uint32_t preemptible;     /* 1 if it can be preempted (its KV can be recomputed), else 0 */
};

enum espalier_schedule_action {
    ESPALIER_SCHEDULE_NOTHING = 0, /* nothing, until blocks are freed or a request arrives */
    ESPALIER_SCHEDULE_ADMIT   = 1, /* admit the request: match the first `tokens` of its prompt */
    ESPALIER_SCHEDULE_PREEMPT = 2, /* preempt the request: it frees its blocks, and waits */
    ESPALIER_SCHEDULE_REFUSE  = 3, /* refuse the request: it can never get the blocks that it needs */
    ESPALIER_SCHEDULE_EVICT   = 4, /* evict the retained sequence */
};

struct espalier_schedule_step {
    uint64_t tokens; /* ADMIT: number of positions of its prompt that the request has afterwards */
    uint64_t blocks; /* REFUSE: number of blocks that it needs */
    uint32_t action; /* enum espalier_schedule_action */
    uint32_t index;  /* index of the request; EVICT: of the retained sequence in `retained` */
};

enum espalier_schedule_wait {
    ESPALIER_SCHEDULE_FOR_NOTHING = 0, /* it runs, or was not considered */
    ESPALIER_SCHEDULE_FOR_PREFIX  = 1, /* another request computes the blocks that it needs next */
    ESPALIER_SCHEDULE_FOR_BLOCKS  = 2, /* it is the queue head: the first request that does not fit */
    ESPALIER_SCHEDULE_FOR_QUEUE   = 4, /* it is in the queue behind the first that does not fit */
};

/* Decides the next action, to be carried out before the next call. Has no side effects. `retained` names the retained
 * sequences of idle slots, in the order in which they are evicted. try_waiting is 0 if no block was freed and no
 * request arrived since the waiting requests were last considered. `waits` (space for request_count) gets the reason
 * why each request waits: enum espalier_schedule_wait. */
int32_t espalier_pool_schedule(const struct espalier_pool * pool, const struct espalier_schedule_request * requests,
                               size_t request_count, const int32_t * retained, size_t retained_count,
                               int32_t try_waiting, uint32_t * waits, struct espalier_schedule_step * step);

struct espalier_pool_statistics {
    uint64_t block_count;      /* of the group FULL, and the next four */
    uint64_t block_size;
    uint64_t blocks_used;      /* held by a sequence */
    uint64_t blocks_evictable; /* cached, evictable: free, content known */
    uint64_t blocks_empty;     /* free, content unknown */
    uint64_t blocks_used_peak;
    uint64_t cached_blocks;    /* in all groups */
    uint64_t evicted_blocks;   /* cached, then allocated for other content; not those behind a window */
    uint64_t refused_reserves; /* calls of espalier_pool_reserve that returned SHORT, in all groups */
    uint64_t refused_matches;  /* equal hash, different tokens: a collision */
    uint64_t snapshots;        /* that exist */
    uint64_t snapshot_bytes;   /* of all of them */
    uint64_t snapshot_hits;    /* restored */
    uint64_t evicted_snapshots; /* removed for another one, except tails that a later one replaced */
    uint64_t refused_snapshots; /* calls of espalier_pool_snapshot_begin that returned SHORT */
    uint64_t window_block_count; /* of the group WINDOW, and the next three */
    uint64_t window_blocks_used;
    uint64_t window_blocks_evictable;
    uint64_t window_blocks_used_peak;
};

/* The counters and gauges as they are now. Counters are not reset by espalier_pool_clear. */
int32_t espalier_pool_statistics(const struct espalier_pool * pool, struct espalier_pool_statistics * statistics);

enum espalier_pool_event_kind {
    ESPALIER_POOL_EVENT_STORED  = 0, /* a block was cached */
    ESPALIER_POOL_EVENT_REMOVED = 1, /* a cached block was allocated for other content */
    ESPALIER_POOL_EVENT_CLEARED = 2, /* no block is cached any more */
};

/* An event of a cached block. Fields that a kind does not use are 0. */
struct espalier_pool_event {
    uint64_t number;       /* sequence number, from 0; a gap: events were dropped unread */
    uint32_t kind;         /* enum espalier_pool_event_kind */
    uint32_t block;        /* STORED, REMOVED: its first cell */
    uint32_t block_index;  /* STORED: index of the block in its prompt, from 0 */
    uint32_t token_count;  /* STORED: number of tokens in it */
    uint32_t has_parent;   /* STORED: 1 if a block precedes it in its prompt */
    uint32_t has_adapters; /* STORED: 1 if its KV depends on adapters */
    uint32_t group;        /* STORED, REMOVED: enum espalier_pool_group */
    uint8_t  hash[32];     /* STORED, REMOVED: SHA-256 of the block and all before it */
    uint8_t  parent[32];   /* STORED: the hash of the block before it */
};

/* Removes the oldest unread event: 1, or 0 if there is none. */
int32_t espalier_pool_next_event(struct espalier_pool * pool, struct espalier_pool_event * event);

/* ---- Attention ----------------------------------------------------------------------------- */

/* Number of cells in a block of the paged cache: those of one bit of `blocks`. */
#define ESPALIER_KV_BLOCK_SIZE 64

/* softmax(scale * Q K^T + mask) V for each token and head, over the cells of a cache. Types are ids
 * of `enum ggml_type`, strides are in bytes. The heads of Q that share a KV head are adjacent. */
struct espalier_attention_cells {
    const void * k; /* keys: rows of key_size values of key_type */
    const void * v; /* values: rows of value_size values of value_type */
    const void * mask; /* added to the scores, in half precision, `count` values for each token; NULL for none */
    const uint32_t * blocks; /* bitmap of the blocks of ESPALIER_KV_BLOCK_SIZE cells a token may attend to; NULL for
                              * all */
    uint64_t k_cell; /* stride between cells */
    uint64_t k_head; /* stride between heads */
    uint64_t k_stream; /* stride between streams */
    uint64_t v_cell; /* stride between cells */
    uint64_t v_head; /* stride between heads */
    uint64_t v_stream; /* stride between streams */
    uint64_t mask_token; /* stride between tokens */
    uint64_t mask_stream; /* stride between streams; stream s reads mask s % mask_streams */
    uint64_t blocks_token; /* stride between tokens */
    int32_t key_type; /* enum ggml_type of K */
    int32_t value_type; /* enum ggml_type of V */
    uint32_t count; /* number of cells in a stream of K and V */
    uint32_t mask_streams; /* number of streams of the mask */
};

struct espalier_attention {
    const void * q; /* queries: rows of key_size f32 values */
    const float * sinks; /* attention sinks: an extra score for each head without a value; NULL for none */
    float * out; /* the output: rows of value_size f32 values, by head, then by token, then by stream, contiguous */
    uint64_t q_token; /* stride between tokens */
    uint64_t q_head; /* stride between heads */
    uint64_t q_stream; /* stride between streams */
    struct espalier_attention_cells cells[2]; /* the cache, and the residual window (copies of some of its cells);
                                               * usually empty */
    uint32_t key_size; /* values in a row of Q and K */
    uint32_t value_size; /* values in a row of V */
    uint32_t tokens; /* number of tokens in a stream */
    uint32_t heads; /* number of heads of Q */
    uint32_t kv_heads; /* number of heads of K and of V */
    uint32_t streams; /* number of streams of Q */
    uint32_t kv_streams; /* number of streams of K and of V */
    float scale; /* factor of the scores */
    float max_bias; /* ALiBi: the largest slope's exponent; 0 for a mask that is added unscaled */
    float softcap; /* scores become softcap * tanh(score / softcap); 0 for no softcap */
};

/* Bytes of work memory that `threads` threads need together; 0 if the problem is not supported, or the
 * feature is off. Pointers are not dereferenced; only whether they are NULL matters. */
size_t espalier_attention_work_size(const struct espalier_attention * problem, uint32_t threads);

/* Each of `threads` threads calls compute with its index and the same `work` memory, and merge once
 * all have returned. The result does not depend on the number of threads. */
void espalier_attention_compute(const struct espalier_attention * problem, uint32_t thread, uint32_t threads,
                                void * work);
void espalier_attention_merge(const struct espalier_attention * problem, uint32_t thread, uint32_t threads,
                              void * work);

/* ---- Gated delta nets ---------------------------------------------------------------------- */

/* The sequences of a batch, in the cache of a layer: planes of `cells` cells, each with a state of a sequence; that of
 * sequence s is in the cell first + s. The planes after the first have rollback states, for rejected drafts. */
struct espalier_gdn_batch {
    const int32_t * sources; /* for each of the cells first .. first + moved - 1: index, over all planes, of the cell
                              * whose state it gets before the first token; NULL if all keep theirs */
    uint32_t tokens; /* number of tokens in a sequence */
    uint32_t seqs; /* number of sequences */
    uint32_t first; /* the cell of the first sequence */
    uint32_t moved; /* number of cells that get the state of a source: of the sequences, and idle ones after them */
    uint32_t cells; /* number of cells in a plane */
    uint32_t planes; /* number of planes; plane n gets the state n tokens before the last one */
};

/* The recurrence of a layer, for each sequence and head one token after the other:
 *
 *     S   = S * exp(gate)
 *     d   = beta * (v - S k)
 *     S   = S + d k^T
 *     out = S q / sqrt(size)
 *
 * on states in the cells of a cache, in place. All values are f32, strides are in bytes, sizes in
 * values. The output and the cache must not overlap the other tensors. A plane that would get a state
 * from before the batch is not written. */
struct espalier_gdn {
    const void * q; /* rows of `size` values for each of key_heads */
    const void * k; /* as q */
    const void * v; /* rows of `size` values for each of heads */
    const float * gate; /* logarithm of the decay: gate_size values by head, then by token, then by sequence,
                         * contiguous */
    const float * beta; /* a value by head, then by token, then by sequence, contiguous */
    float * states; /* for each cell and head a matrix of `size` rows, one for each value of v, of `size` columns, one
                     * for each value of k; contiguous */
    float * out; /* rows of `size` values by head, then by token, then by sequence, contiguous */
    struct espalier_gdn_batch batch;
    uint64_t q_head; /* stride between heads */
    uint64_t q_token; /* stride between tokens */
    uint64_t q_seq; /* stride between sequences */
    uint64_t k_head; /* stride between heads */
    uint64_t k_token; /* stride between tokens */
    uint64_t k_seq; /* stride between sequences */
    uint64_t v_head; /* stride between heads */
    uint64_t v_token; /* stride between tokens */
    uint64_t v_seq; /* stride between sequences */
    uint32_t size; /* values in a row of Q, K, V and of a state: a multiple of 16, at most 256 */
    uint32_t gate_size; /* 1: a decay of the whole state; `size`: one of each column */
    uint32_t heads; /* number of heads of V, of a state and of the output, a multiple of key_heads */
    uint32_t key_heads; /* number of heads of Q and K; head h of V reads head h % key_heads */
};

/* 1 if gdn-recurrence is on and the sizes are supported, else 0 (also for NULL). Pointers are not dereferenced. */
int32_t espalier_gdn_is_supported(const struct espalier_gdn * problem);

/* Each of `threads` threads calls it with its index, without a barrier. Returns 1; or 0, on all threads and before
 * anything is written, if the sizes are not supported or a source is not a cell of the cache, and on a thread that
 * failed internally. No other code computes states in place, so ggml aborts then. The result depends neither on the
 * number of threads, nor on other sequences, nor on the number of tokens in a call. */
int32_t espalier_gdn_compute(const struct espalier_gdn * problem, uint32_t thread, uint32_t threads);

/* The convolution before the recurrence, with its activation, for each channel. No graph calls it yet.
 *
 *     out[t] = silu(sum of kernel[i] * x[t - taps + 1 + i] over the taps)
 *
 * where x has the inputs of the batch, and before them those in the sequence's cell, which then gets
 * the last ones. All values are f32, strides are in bytes. A plane that would get a state from before
 * the batch gets the one before the first token. */
struct espalier_gdn_convolution {
    const void * x; /* for each token a row of `channels` values */
    const float * kernel; /* for each channel `taps` values, that of the oldest token first; contiguous */
    float * states; /* for each cell and channel the last taps - 1 inputs, the oldest first; contiguous */
    float * out; /* rows of `channels` values by token, then by sequence, contiguous */
    struct espalier_gdn_batch batch;
    uint64_t x_token; /* stride between tokens */
    uint64_t x_seq; /* stride between sequences */
    uint32_t channels; /* number of channels, a multiple of 16 */
    uint32_t taps; /* number of tokens that an output depends on, 2 .. 8 */
};

/* As espalier_gdn_is_supported and espalier_gdn_compute. */
int32_t espalier_gdn_convolution_is_supported(const struct espalier_gdn_convolution * problem);
int32_t espalier_gdn_convolution_compute(const struct espalier_gdn_convolution * problem, uint32_t thread,
                                         uint32_t threads);

/* ---- Types of a KV cache ------------------------------------------------------------------- */

/* Our KV cache types: their private ids in `enum ggml_type`, from ESPALIER_KV_TYPE_FIRST on. For
 * each X(id, name, values in a block, bytes of a block). */
#define ESPALIER_KV_TYPE_FIRST 200
#define ESPALIER_KV_TYPES(X)        \
    X(200, "turbo2",    128, 34)    \
    X(201, "turbo2_64",  64, 18)    \
    X(202, "turbo3",    128, 50)    \
    X(203, "turbo3_64",  64, 26)    \
    X(204, "turbo4",    128, 66)    \
    X(205, "turbo4_64",  64, 34)    \
    X(206, "tcq2",      128, 34)    \
    X(207, "tcq2_64",    64, 18)    \
    X(208, "tcq3",      128, 50)    \
    X(209, "tcq3_64",    64, 26)

/* Counts are of values, a multiple of the block size. For other types nothing is written, and the
 * functions that return a value return NaN or 0. */
void  espalier_kv_encode(int32_t type, const float * from, void * to, size_t count);
void  espalier_kv_decode(int32_t type, const void * from, float * to, size_t count);
float espalier_kv_dot(int32_t type, const void * from, const float * with, size_t count);

/* 1 if all values of the blocks are finite, else 0. */
int32_t espalier_kv_is_finite(int32_t type, const void * from, size_t count);

/* A type's fingerprint: two builds with the same fingerprint can read each other's blocks. */
uint64_t espalier_kv_fingerprint(int32_t type);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_KERNELS_H */
