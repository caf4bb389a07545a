/*
 * The C border of Espalier's Rust kernels. C99 and C++.
 *
 * Written by hand; kernels/tests/header.rs checks that it declares exactly what the library
 * exports, with the same numbers and layouts.
 *
 * Every function may be called from any thread. None throws, none aborts: a failure inside is
 * reported on stderr and the neutral value ("off") comes back.
 */
#ifndef ESPALIER_KERNELS_H
#define ESPALIER_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a signature, a number or a layout below changes. */
#define ESPALIER_KERNELS_ABI_VERSION 6u

/* The ABI version the library was built with; differs from the constant if header and library
 * are of different builds. */
uint32_t espalier_kernels_abi_version(void);

/* What Espalier does differently from stock llama.cpp. Everything is off until the environment
 * variable ESPALIER_ENABLE, a comma-separated list read once per process, names it; attention is
 * also on for a paged cache. What ESPALIER_DISABLE names stays off. */
enum espalier_feature {
    ESPALIER_FEATURE_GDN_FLAT_OUTPUT = 0, /* "gdn-flat-output" */
    ESPALIER_FEATURE_ATTENTION       = 1, /* "attention" */
};

/* 1 if the feature is on in this process, else 0; 0 for a number that no feature has. */
int32_t espalier_feature_enabled(enum espalier_feature feature);

/* Writes the comma-separated names of the enabled features, cut to fit `length` bytes and ended
 * by a NUL, to `buffer` (nothing if `length` is 0). Returns the length of the whole list in
 * bytes, without the NUL; 0 means that no feature is on. */
size_t espalier_features(char * buffer, size_t length);

/* What is known about one output projection of a gated delta net layer. Booleans are 0 or 1. */
struct espalier_gdn_output_facts {
    int32_t weight_type;           /* enum ggml_type of the weight */
    int32_t weight_in_cpu_memory;  /* the weight is in ggml's plain or repacked CPU memory */
    int32_t only_cpu_devices;      /* every device of the process is a CPU */
    int32_t cpu_kernels_use_avx2;  /* ggml's CPU kernels were built with AVX2, FMA and F16C */
    int32_t adapter_covers_weight; /* an active LoRA adapter has a pair for this weight */
};

/* 1 if gdn-flat-output is on and flattening this projection's input keeps every bit of its
 * output, else 0 (also for NULL). The first refusal for each reason is said on stderr. */
int32_t espalier_gdn_output_is_flat(const struct espalier_gdn_output_facts * facts);

/* The SHA-256 of `length` bytes (NULL only if that is 0), to `digest`. */
void espalier_sha256(const uint8_t * bytes, size_t length, uint8_t digest[32]);

/* ---- The KV block pool ---- */

/* A pool of KV cells in blocks of equal size, and which sequence holds which block. A block is
 * free, held by one or more sequences, or retained: free, but its content is known by a hash and
 * can be attached again until the block is taken for something else. Position p of a sequence is
 * token p of its request.
 *
 * A failure inside makes every function answer INVALID (and next_event 0), because nobody knows
 * then what the pool's tables say, until espalier_pool_clear() builds them anew. */
struct espalier_pool;

struct espalier_pool_options {
    uint32_t block_count;    /* blocks, at least 1, and fewer than 2^31 cells in all; the cells of
                              * block b (0-based) are b*block_size .. (b+1)*block_size - 1 */
    uint32_t block_size;     /* cells, a power of two, 1 .. 4096 */
    uint32_t sequence_count; /* sequences are 0 .. sequence_count - 1; 1 .. 65536 */
    uint32_t event_capacity; /* events kept until they are read, the oldest is dropped; 0: none is
                              * recorded */
};

enum espalier_pool_status {
    ESPALIER_POOL_OK      = 0,
    ESPALIER_POOL_SHORT   = 1, /* not enough free blocks; nothing was changed */
    ESPALIER_POOL_WAIT    = 2, /* another sequence is computing the next block */
    ESPALIER_POOL_INVALID = 3, /* the arguments make no sense (NULL, unknown sequence, ...); nothing
                                * was changed */
};

/* NULL: the options are refused, or there is not enough memory. */
struct espalier_pool * espalier_pool_new(const struct espalier_pool_options * options);

/* NULL is allowed. Nobody may use the pool any more. */
void espalier_pool_free(struct espalier_pool * pool);

/* Where the tokens go: token i of `sequences[i]` at `positions[i]` goes to cell cells[i]. Takes
 * the blocks that are missing, all or none. Asked again, it answers the same. A position in a
 * block that the sequence may not write into (attached, shared, published) goes to a new block.
 * fresh_blocks (room for `count`) gets the first cells of the blocks that were taken: what their
 * cells held is not wanted any more. A position of a sequence that comes twice is refused as
 * invalid, since both tokens would get one cell. */
int32_t espalier_pool_reserve(struct espalier_pool * pool, const int32_t * sequences,
                              const int32_t * positions, size_t count, uint32_t * cells,
                              uint32_t * fresh_blocks, size_t * fresh_count);

/* `to` holds from now on, besides what it has, every block of `from` with a position in [p0, p1).
 * It never writes into a block that it did not take itself. As in llama.cpp a negative p0 is the
 * beginning and a negative p1 (or INT32_MAX) the end; here and in espalier_pool_remove. */
int32_t espalier_pool_share(struct espalier_pool * pool, int32_t from, int32_t to, int32_t p0,
                            int32_t p1);

/* The sequence gives up its positions in [p0, p1). Blocks that lie in there whole are released. A
 * block that lies in there in part stays; the sequence writes on into it only if nobody else holds
 * it and it was never published, else the next position there goes to a new block. What a request
 * published of its output from p0 on may become something else; its prompt may not. */
int32_t espalier_pool_remove(struct espalier_pool * pool, int32_t sequence, int32_t p0, int32_t p1);

/* Every sequence gives up everything, every request ends, and nothing is retained. */
void espalier_pool_clear(struct espalier_pool * pool);

/* Something beside the tokens that the KV of positions first .. first + length - 1 depends on: an
 * image's hash. */
struct espalier_pool_extra {
    uint32_t        first;
    uint32_t        length;     /* at least 1 */
    const uint8_t * key;
    size_t          key_length; /* bytes */
};

/* What decides whether two prompts have the same KV. */
struct espalier_pool_request {
    const int32_t * tokens;          /* the whole prompt */
    size_t          token_count;
    size_t          held_count;      /* tokens at its beginning whose KV the sequence holds: it attaches
                                      * nothing then, and publishes what it computes from there on */
    const uint8_t * salt;            /* enters the first block's hash, and by the chain all others:
                                      * who may share */
    size_t          salt_length;     /* bytes; 0: none */
    const uint8_t * adapters;        /* enters every block's hash: LoRA adapters with their scales */
    size_t          adapters_length; /* bytes; 0: none */
    const struct espalier_pool_extra * extras; /* sorted by `first`, not overlapping */
    size_t          extra_count;
};

/* The sequence, which must hold held_count tokens and nothing else, begins to compute this prompt.
 * Copies what it needs. A request that the sequence had ends. */
int32_t espalier_pool_begin(struct espalier_pool * pool, int32_t sequence,
                            const struct espalier_pool_request * request);

/* Attaches the published blocks that come next in the request's prompt, as far as there are any;
 * at least one token of the prompt is left to be computed. `blocks` (room for `capacity`) gets
 * their first cells, and `block_count` how many there are, also if that is more than there was
 * room for. The tokens of each are compared, not only the hash. May be called again and again
 * while the sequence has only attached blocks. WAIT: the next block is being computed by another
 * sequence, ask again after its next publish; OK: the sequence computes the rest, and others that
 * need the same blocks are told to wait for it. Both may have attached blocks. */
int32_t espalier_pool_attach(struct espalier_pool * pool, int32_t sequence, uint32_t * blocks,
                             size_t capacity, size_t * block_count);

/* The KV of the first token_count of `tokens` (prompt, then accepted output) is in the sequence's
 * cells: each block that is full with them and not published yet is published. `blocks` (room for
 * `capacity`) gets the first cells of those that were published by this call, and `block_count`
 * how many there are, also if that is more than there was room for. A block that can't be
 * published is left out: the sequence did not take it itself, or holds several blocks for the same
 * positions. INVALID: the tokens are not the request's, or the sequence does not hold them. */
int32_t espalier_pool_publish(struct espalier_pool * pool, int32_t sequence, const int32_t * tokens,
                              size_t token_count, uint32_t * blocks, size_t capacity,
                              size_t * block_count);

/* The request of the sequence ends, if it has one: nobody waits for it any more. What it holds, it
 * holds until it is removed. */
int32_t espalier_pool_end(struct espalier_pool * pool, int32_t sequence);

/* Blocks that the sequence holds. Any thread may ask while another one decodes. */
uint64_t espalier_pool_held(const struct espalier_pool * pool, int32_t sequence);

/* Goes up whenever something happened that may let a request go on that could not: a block became
 * free or was published, or a promise was withdrawn. */
uint64_t espalier_pool_changes(const struct espalier_pool * pool);

enum espalier_schedule_stage {
    ESPALIER_SCHEDULE_WAITS = 0, /* it computes nothing, and holds at most a kept text */
    ESPALIER_SCHEDULE_RUNS  = 1, /* it was let in */
};

/* A request as the server knows it. */
struct espalier_schedule_request {
    uint64_t arrival;      /* of two the smaller goes first */
    uint64_t first;        /* the first position whose KV it has not */
    uint64_t end;          /* one past the last position that it needs room for now */
    uint64_t siblings;     /* sequences that will go on where it ends, each in a block of its own */
    int32_t  priority;     /* smaller goes first, before all that arrival says */
    int32_t  sequence;
    uint32_t stage;        /* enum espalier_schedule_stage */
    uint32_t may_give_way; /* 1 if what it holds can be computed again, else 0 */
};

enum espalier_schedule_action {
    ESPALIER_SCHEDULE_NOTHING  = 0, /* until something is freed or somebody comes */
    ESPALIER_SCHEDULE_ADMIT    = 1, /* the request is let in: attach, and keep the first `tokens` */
    ESPALIER_SCHEDULE_GIVE_WAY = 2, /* the request gives up what it holds, and waits */
    ESPALIER_SCHEDULE_REFUSE   = 3, /* the request can never have the room that it needs */
    ESPALIER_SCHEDULE_DROP     = 4, /* the kept text is given up */
};

struct espalier_schedule_step {
    uint64_t tokens; /* ADMIT: positions of its prompt that the request has then */
    uint32_t action; /* enum espalier_schedule_action */
    uint32_t index;  /* of the requests; DROP: of what is kept */
};

enum espalier_schedule_wait {
    ESPALIER_SCHEDULE_FOR_NOTHING = 0, /* it runs, or was not asked */
    ESPALIER_SCHEDULE_FOR_PREFIX  = 1, /* another request computes the blocks that it needs next */
    ESPALIER_SCHEDULE_FOR_ROOM    = 2, /* it is the first that there is no room for */
    ESPALIER_SCHEDULE_FOR_LINE    = 4, /* it comes after the first that there is no room for */
};

/* What to do next: one action, which is to be carried out before the next question. Changes
 * nothing. `kept` names sequences whose text nobody computes with, in the order in which they are
 * given up. ask_waiting is 0 if nothing was freed and nobody came since who waits was asked. `waits`
 * (room for request_count) gets why each request waits: enum espalier_schedule_wait. */
int32_t espalier_pool_schedule(const struct espalier_pool * pool,
                               const struct espalier_schedule_request * requests, size_t request_count,
                               const int32_t * kept, size_t kept_count, int32_t ask_waiting,
                               uint32_t * waits, struct espalier_schedule_step * step);

/* Forgets every retained block. SHORT: a block is in use, nothing was changed. */
int32_t espalier_pool_forget(struct espalier_pool * pool);

struct espalier_pool_statistics {
    uint64_t block_count;
    uint64_t block_size;
    uint64_t blocks_used;      /* held by a sequence */
    uint64_t blocks_retained;  /* free, content known */
    uint64_t blocks_empty;     /* free, content unknown */
    uint64_t blocks_used_peak;
    uint64_t waited_attaches;  /* calls that were answered WAIT */
    uint64_t published_blocks;
    uint64_t evicted_blocks;   /* retained, then taken for something else */
    uint64_t refused_reserves; /* answered SHORT */
    uint64_t refused_matches;  /* hash equal, content not: a collision */
};

/* A snapshot of the numbers. What is counted is not reset by espalier_pool_clear. */
int32_t espalier_pool_statistics(const struct espalier_pool * pool,
                                 struct espalier_pool_statistics * statistics);

enum espalier_pool_event_kind {
    ESPALIER_POOL_EVENT_STORED  = 0, /* a block was published */
    ESPALIER_POOL_EVENT_REMOVED = 1, /* a published block was taken for something else */
    ESPALIER_POOL_EVENT_CLEARED = 2, /* no block is published any more */
};

/* What happened to a published block. What a kind does not speak of is 0. */
struct espalier_pool_event {
    uint64_t number;       /* counts the pool's events from 0; a gap: some were dropped unread */
    uint32_t kind;         /* enum espalier_pool_event_kind */
    uint32_t block;        /* STORED, REMOVED: its first cell */
    uint32_t block_index;  /* STORED: its place in its prompt, in blocks from 0 */
    uint32_t token_count;  /* STORED: tokens in it */
    uint32_t has_parent;   /* STORED: 1 if a block comes before it in its prompt */
    uint32_t has_adapters; /* STORED: 1 if its KV depends on adapters */
    uint8_t  hash[32];     /* STORED, REMOVED: SHA-256 of it and all before it */
    uint8_t  parent[32];   /* STORED: the hash of the block before it */
};

/* Takes the oldest event that was not read yet: 1, or 0 if there is none. */
int32_t espalier_pool_next_event(struct espalier_pool * pool, struct espalier_pool_event * event);

/* ---- Attention ----------------------------------------------------------------------------- */

/* Cells that a bit of `tiles` stands for. */
#define ESPALIER_ATTENTION_TILE 64

/* softmax(scale * Q K^T + mask) V for each token and head, over the cells of a cache. Types are numbers of `enum ggml_type`,
 * strides are in bytes. Heads that read the same head of K and V lie side by side. */
struct espalier_attention_cells {
    const void * k; /* keys: rows of key_size values of key_type */
    const void * v; /* values: rows of value_size values of value_type */
    const void * mask; /* what is added to the scores, in half precision, count numbers a token; null for nothing */
    const uint32_t * tiles; /* bits: the runs of ESPALIER_ATTENTION_TILE cells that a token may see; null for all */
    uint64_t k_cell; /* from one cell's row to the next */
    uint64_t k_head; /* from one head's row to the next */
    uint64_t k_stream; /* from one stream to the next */
    uint64_t v_cell; /* from one cell's row to the next */
    uint64_t v_head; /* from one head's row to the next */
    uint64_t v_stream; /* from one stream to the next */
    uint64_t mask_token; /* from one token's row to the next */
    uint64_t mask_stream; /* from one stream's rows to the next; those of stream s are s % mask_streams */
    uint64_t tiles_token; /* from one token's bits to the next */
    int32_t key_type; /* enum ggml_type of K */
    int32_t value_type; /* enum ggml_type of V */
    uint32_t count; /* cells in a stream of K and V */
    uint32_t mask_streams; /* streams of the mask */
};

struct espalier_attention {
    const void * q; /* queries: rows of key_size numbers in single precision */
    const float * sinks; /* a score for each head of which nothing is read; null for none */
    float * out; /* the result: rows of value_size numbers, by head, then by token, then by stream, without gaps */
    uint64_t q_token; /* from one token's row to the next */
    uint64_t q_head; /* from one head's row to the next */
    uint64_t q_stream; /* from one stream to the next */
    struct espalier_attention_cells cells[2]; /* the cache, and copies of some of its cells; mostly none */
    uint32_t key_size; /* values in a row of Q and K */
    uint32_t value_size; /* values in a row of V */
    uint32_t tokens; /* tokens in a stream */
    uint32_t heads; /* heads of Q */
    uint32_t kv_heads; /* heads of K and of V */
    uint32_t streams; /* streams of Q */
    uint32_t kv_streams; /* streams of K and of V */
    float scale; /* what scores are multiplied by */
    float max_bias; /* ALiBi: the largest slope's exponent; 0 for a mask that is added as it is */
    float softcap; /* scores become softcap * tanh(score / softcap); 0 for scores as they are */
};

/* Bytes of memory that `threads` threads need together; 0 if the problem is not for this kernel, or the feature is off. Of the
 * pointers only which are NULL matters. */
size_t espalier_attention_work_bytes(const struct espalier_attention * problem, uint32_t threads);

/* Each of `threads` threads calls the first with its number and the same `memory`; once all have left it, the second. The result
 * does not depend on the number of threads. */
void espalier_attention_compute(const struct espalier_attention * problem, uint32_t thread, uint32_t threads, void * memory);
void espalier_attention_merge(const struct espalier_attention * problem, uint32_t thread, uint32_t threads, void * memory);

/* ---- Types of a KV cache ------------------------------------------------------------------- */

/* The types of a KV cache that are ours: their private numbers in `enum ggml_type`, from ESPALIER_KV_TYPE_FIRST on. For each
 * X(number, name, values in a block, bytes of a block). */
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

/* Counts are of values, a whole number of blocks; for other types nothing is written, and the others say nothing good. */
void  espalier_kv_encode(int32_t type, const float * from, void * to, size_t count);
void  espalier_kv_decode(int32_t type, const void * from, float * to, size_t count);
float espalier_kv_dot(int32_t type, const void * from, const float * with, size_t count);

/* 1 if all values of the blocks are numbers, else 0. */
int32_t espalier_kv_is_finite(int32_t type, const void * from, size_t count);

/* Two builds whose types have the same one read each other's blocks. */
uint64_t espalier_kv_fingerprint(int32_t type);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_KERNELS_H */
