#include "espalier-kv.h"

#include "log.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

static const char * name_of_kind(llama_memory_kind kind) {
    switch (kind) {
        case LLAMA_MEMORY_KIND_NONE:           return "no memory";
        case LLAMA_MEMORY_KIND_ATTENTION:      return "full attention";
        case LLAMA_MEMORY_KIND_SLIDING_WINDOW: return "a sliding-window memory";
        case LLAMA_MEMORY_KIND_RECURRENT:      return "a recurrent memory";
        case LLAMA_MEMORY_KIND_HYBRID:         return "a hybrid memory";
        default:                               return "state other than a KV cache";
    }
}

// The layers of a memory with a sliding window that have cells of their own; NULL: there are none.
static llama_memory_t window_of(llama_memory_t mem) {
    return (llama_memory_get_parts(mem) & LLAMA_MEMORY_PART_WINDOW) ? llama_memory_get_window(mem) : nullptr;
}

// The reason why the memory cannot be paged, as the end of a sentence; empty: it can.
static std::string unsupported_reason(llama_memory_t mem, uint32_t n_seq, bool may_have_window) {
    const bool     has_window = may_have_window && window_of(mem) != nullptr;
    const uint32_t parts      = llama_memory_get_parts(mem) & ~(has_window ? (uint32_t) LLAMA_MEMORY_PART_WINDOW : 0u);
    if (parts & LLAMA_MEMORY_PART_WINDOW) {
        return "has a sliding window with a KV cache of its own size";
    }
    if ((parts | LLAMA_MEMORY_PART_STATE) != (LLAMA_MEMORY_PART_CELLS | LLAMA_MEMORY_PART_STATE)) {
        return std::string("has ") + name_of_kind(llama_memory_get_kind(mem)) + ", which cannot be paged";
    }
    if (llama_memory_n_cells(mem) < 0) {
        return "has a separate buffer for each sequence (--no-kv-unified)";
    }
    if ((llama_seq_id) n_seq > llama_memory_seq_cached(mem)) {
        return "has no sequence id left for retained blocks (--parallel " + std::to_string(n_seq) + ")";
    }
    return "";
}

// Parts of a sequence for the pool, which has the same values.
static uint32_t parts_of(llama_context * ctx, llama_context * ctx_dft) {
    static_assert((int) ESPALIER_POOL_PART_CELLS == (int) LLAMA_MEMORY_PART_CELLS, "the kernels and llama.h must agree");
    static_assert((int) ESPALIER_POOL_PART_WINDOW == (int) LLAMA_MEMORY_PART_WINDOW, "the kernels and llama.h must agree");
    static_assert((int) ESPALIER_POOL_PART_STATE == (int) LLAMA_MEMORY_PART_STATE, "the kernels and llama.h must agree");
    const uint32_t of_draft = ctx_dft ? llama_memory_get_parts(llama_get_memory(ctx_dft)) : 0;
    return (llama_memory_get_parts(llama_get_memory(ctx)) | of_draft) & (ESPALIER_POOL_PART_CELLS | ESPALIER_POOL_PART_WINDOW | ESPALIER_POOL_PART_STATE);
}

std::unique_ptr<espalier_kv> espalier_kv::create(llama_context * ctx, llama_context * ctx_dft, espalier_kv_options options, std::string & why_not) {
    const llama_memory_t mem       = llama_get_memory(ctx);
    const auto *         functions = espalier_pool_get_functions();

    if (functions == nullptr) {
        why_not = "the kernels library is of another build";
        return nullptr;
    }
    why_not = unsupported_reason(mem, options.n_seq, true);
    if (!why_not.empty()) {
        why_not = "this model " + why_not;
        return nullptr;
    }
    const llama_memory_t mem_window = window_of(mem);
    espalier_pool_options dimensions = {};
    dimensions.block_count       = (uint32_t) llama_memory_n_cells(mem) / block_size;
    dimensions.block_size        = block_size;
    dimensions.sequence_count    = options.n_seq;
    dimensions.parts             = parts_of(ctx, ctx_dft);
    dimensions.snapshot_interval = snapshot_interval;
    dimensions.snapshot_bytes    = options.snapshot_bytes;
    dimensions.closes_blocks     = options.has_media ? 1 : 0;
    if (mem_window) {
        dimensions.snapshot_interval  = 0; // the windows that a long prompt has at intervals would evict those of others
        dimensions.window             = (uint32_t) llama_model_n_swa(llama_get_model(ctx));
        dimensions.window_block_count = (uint32_t) std::max(0, llama_memory_n_cells(mem_window)) / block_size;
        dimensions.batch_tokens       = llama_n_batch(ctx);
        // As many as stock gives them are too few: each batch would have to be halved.
        if (dimensions.window_block_count < functions->blocks_of_windows(dimensions.window, block_size, options.n_seq, dimensions.batch_tokens)) {
            why_not = "this model has a sliding window with a KV cache of its own size";
            return nullptr;
        }
    }
    std::shared_ptr<espalier_pool> pool(functions->create(&dimensions), functions->destroy);
    if (!pool) {
        why_not = "a pool of " + std::to_string(dimensions.block_count) + " blocks" +
            (mem_window ? ", and " + std::to_string(dimensions.window_block_count) + " of layers with a sliding window," : "") + " cannot be created";
        return nullptr;
    }
    std::unique_ptr<espalier_kv> kv(new espalier_kv(ctx, *functions, std::move(pool), std::move(options)));
    const llama_memory_placement placement = { kv.get(), on_place, on_seq_rm, on_seq_cp, on_clear, on_mark_blocks, kv->gathers };
    if (!llama_memory_set_placement(mem, &placement) || (mem_window && !kv->place_window(mem_window))) {
        why_not = "the memory is not empty";
        return nullptr;
    }
    if (ctx_dft && !kv->follow(ctx_dft, why_not)) {
        return nullptr;
    }
    return kv;
}

bool espalier_kv::follow(llama_context * ctx_dft, std::string & why_not) {
    const llama_memory_t mem_dft = llama_get_memory(ctx_dft);
    why_not = unsupported_reason(mem_dft, sequences.size(), false);
    if (why_not.empty() && llama_memory_n_cells(mem_dft) < llama_memory_n_cells(mems[0])) {
        why_not = "has fewer cells (" + std::to_string(llama_memory_n_cells(mem_dft)) + ") than the model";
    }
    // Removals, copies and clears need no callback here: the target's memory has the same ones, and has reported them
    // to the pool already.
    const llama_memory_placement placement = {
        this,
        drafts.traits.has_successor ? on_place_with_successor : on_place,
        [](void *, llama_seq_id, llama_pos, llama_pos) {},
        [](void *, llama_seq_id, llama_seq_id, llama_pos, llama_pos) {},
        [](void *) {},
        on_mark_blocks,
        gathers,
    };
    if (why_not.empty() && !llama_memory_set_placement(mem_dft, &placement)) {
        why_not = "has a memory that is not empty";
    }
    if (!why_not.empty()) {
        why_not = "the draft model " + why_not;
        return false;
    }
    mems.push_back(mem_dft);
    snapshots.add(ctx_dft);
    return true;
}

espalier_kv::espalier_kv(llama_context * ctx, const espalier_pool_functions & functions, std::shared_ptr<espalier_pool> pool, espalier_kv_options options) :
    mems({ llama_get_memory(ctx) }), window_size((uint32_t) llama_model_n_swa(llama_get_model(ctx))), snapshot_budget(options.snapshot_bytes),
    gathers(options.gathers), drafts(std::move(options.drafts)), functions(functions), pool(std::move(pool)), sequences(options.n_seq) {
    blocks[full].resize(llama_memory_n_cells(mems[0]) / block_size);
    snapshots.add(ctx);
}

espalier_kv::~espalier_kv() {
    for (llama_memory_t mem : mems) {
        llama_memory_clear(mem, false);
        llama_memory_set_placement(mem, nullptr);
    }
    for (llama_memory_t mem : window_mems) { // emptied as a part of the model's
        llama_memory_set_placement(mem, nullptr);
    }
}

uint64_t espalier_kv::n_blocks(size_t n_tokens) {
    return (n_tokens + block_size - 1) / block_size;
}

void espalier_kv::cache_cells(uint32_t group, const std::vector<uint32_t> & of) {
    for (llama_memory_t mem : mems_of(group)) {
        llama_memory_cells_seq_add(mem, llama_memory_seq_cached(mem), of.data(), of.size());
    }
}

size_t espalier_kv::add_cells(llama_seq_id seq_id, const std::vector<uint32_t> & of) {
    for (llama_memory_t mem : mems) {
        llama_memory_cells_seq_add(mem, seq_id, of.data(), of.size());
    }
    size_t n_tokens = 0;
    for (size_t i = 0; i < of.size(); i += block_size) {
        const size_t first = n_tokens;
        n_tokens = block_of(seq_id, first).second;
        // Behind an image it can lie in two of the ranges by which blocks are marked.
        sequences[seq_id].blocks.add((llama_pos) first,          of[i] / block_size);
        sequences[seq_id].blocks.add((llama_pos) (n_tokens - 1), of[i] / block_size);
    }
    return n_tokens;
}

void espalier_kv::empty(llama_seq_id seq_id) {
    for (llama_memory_t mem : mems) {
        llama_memory_seq_rm(mem, seq_id, -1, -1);
    }
}

void espalier_kv::evict_cells(uint32_t group, const std::vector<uint32_t> & of) {
    for (llama_memory_t mem : mems_of(group)) {
        llama_memory_cells_seq_rm(mem, llama_memory_seq_cached(mem), of.data(), of.size());
    }
}

espalier_kv::group_blocks espalier_kv::space_for_blocks() {
    group_blocks space = {};
    for (size_t group = 0; group < space.size(); group++) {
        space[group].first_cells = blocks[group].data();
        space[group].capacity    = blocks[group].size();
    }
    return space;
}

const std::vector<uint32_t> & espalier_kv::cells_of(uint32_t group, size_t n) {
    cells.clear();
    for (size_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < block_size; j++) {
            cells.push_back(blocks[group][i] + j);
        }
    }
    return cells;
}

//
// The memory's placement
//

bool espalier_kv::place(uint32_t group, const llama_seq_id * seq_ids, const llama_pos * pos, size_t n, uint32_t * cells) {
    std::vector<uint32_t> fresh(n);
    size_t                n_fresh = 0;
    if (functions.reserve(pool.get(), group, seq_ids, pos, n, cells, fresh.data(), &n_fresh) != ESPALIER_POOL_OK) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        marks_of(group, seq_ids[i]).add(pos[i], cells[i] / block_size);
    }
    // The previous content of the fresh blocks was cached and unused; evict it.
    for (size_t i = 0; i < n_fresh; i++) {
        blocks[group][0] = fresh[i];
        evict_cells(group, cells_of(group, 1));
        if (group == full) {
            rows.drop(fresh[i] / block_size);
        }
    }
    return true;
}

bool espalier_kv::on_place(void * user_data, const llama_seq_id * seq_ids, const llama_pos * pos, size_t n, uint32_t * cells) {
    return ((espalier_kv *) user_data)->place(full, seq_ids, pos, n, cells);
}

bool espalier_kv::on_place_with_successor(void * user_data, const llama_seq_id * seq_ids, const llama_pos * pos, size_t n, uint32_t * cells) {
    std::vector<llama_pos> next(pos, pos + n);
    for (llama_pos & one : next) {
        one++;
    }
    return on_place(user_data, seq_ids, next.data(), n, cells);
}

void espalier_kv::on_seq_rm(void * user_data, llama_seq_id seq_id, llama_pos p0, llama_pos p1) {
    auto & kv = *(espalier_kv *) user_data;

    if (seq_id >= 0) {
        kv.remove_positions(seq_id, p0, p1);
        return;
    }
    on_clear(user_data);
}

void espalier_kv::remove_positions(llama_seq_id seq_id, llama_pos p0, llama_pos p1) {
    if (!knows(seq_id)) {
        return;
    }
    functions.remove(pool.get(), full, seq_id, p0, p1);
    auto & sequence = sequences[seq_id];
    sequence.n_settled = std::min(sequence.n_settled, (size_t) std::max(p0, 0));
    sequence.blocks.remove(p0, p1);
    if (p0 <= 0) {
        sequence.lacks_drafts = false;
        continue_drafts(seq_id, 0);
    } else {
        cut_drafts(seq_id, p0);
    }
}

void espalier_kv::share(uint32_t group, llama_seq_id from, llama_seq_id to, llama_pos p0, llama_pos p1) {
    if (functions.share(pool.get(), group, from, to, p0, p1) != ESPALIER_POOL_OK) {
        // The memory refuses to overwrite cells that are in use, so this costs requests, never answers.
        LOG_ERR("espalier: sequence %d has cells of sequence %d, whose blocks it could not share\n", to, from);
    }
    if (from != to) {
        marks_of(group, to).add(marks_of(group, from));
    }
}

void espalier_kv::on_seq_cp(void * user_data, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0, llama_pos p1) {
    auto & kv = *(espalier_kv *) user_data;

    if (!kv.knows(seq_id_src) || !kv.knows(seq_id_dst)) {
        return;
    }
    kv.share(full, seq_id_src, seq_id_dst, p0, p1);
    if (seq_id_src != seq_id_dst) {
        kv.copy_row(seq_id_src, seq_id_dst);
    }
}

void espalier_kv::on_mark_blocks(void * user_data, llama_seq_id seq_id, llama_pos p0, uint32_t * blocks, size_t n_blocks) {
    const auto & kv = *(const espalier_kv *) user_data;

    if (kv.knows(seq_id)) {
        kv.sequences[seq_id].blocks.mark(p0, blocks, n_blocks / 32);
    }
}

void espalier_kv::on_clear(void * user_data) {
    auto & kv = *(espalier_kv *) user_data;

    kv.functions.clear(kv.pool.get());
    kv.snapshots.clear();
    kv.rows.clear();
    std::fill(kv.sequences.begin(), kv.sequences.end(), sequence{});
}

//
// Prompts
//

void espalier_kv::begin(llama_seq_id seq_id, const espalier_kv_prompt & prompt) {
    auto & sequence = sequences[seq_id];
    sequence.begun = false;
    // A slot file has nothing of the draft model. What that computes from here on misses the tokens before, and so does
    // all that follows until the sequence is removed.
    sequence.lacks_drafts = sequence.lacks_drafts || n_in_drafts(seq_id) < prompt.n_held;
    // The block in which a sequence continues would be cached with cells that it does not have, except in layers that
    // have only the window of it anyway.
    const bool has_cells = prompt.n_held == 0 || (has_window() ? has_cells_of_window(seq_id, prompt.n_held) : has_all_cells(seq_id));
    if (!shares() || !has_cells || (prompt.n_held > 0 && sequence.lacks_drafts)) {
        return;
    }
    espalier_pool_request request = {};
    request.tokens          = prompt.tokens;
    request.token_count     = prompt.n_tokens;
    request.held_count      = prompt.n_held;
    request.salt            = (const uint8_t *) prompt.scope.data();
    request.salt_length     = prompt.scope.size();
    request.adapters        = (const uint8_t *) prompt.adapters.data();
    request.adapters_length = prompt.adapters.size();
    request.extras          = prompt.media.data();
    request.extra_count     = prompt.media.size();
    request.system_length   = prompt.n_system;
    request.end             = prompt.end;
    request.further_choices = prompt.further_choices;
    sequence.begun     = functions.begin(pool.get(), seq_id, &request) == ESPALIER_POOL_OK;
    sequence.n_settled = block_of(seq_id, prompt.n_held).first;
}

bool espalier_kv::can_continue(llama_seq_id seq_id, size_t n_held, size_t n_tokens) const {
    if (has_state()) {
        return n_tokens == n_held; // the memory would refuse to remove tokens from a state
    }
    if (has_window()) {
        return has_cells_of_window(seq_id, n_tokens);
    }
    // The window of the last token is there in any case, whether that token stays or is computed again.
    return n_tokens + 1 >= n_held || has_all_cells(seq_id);
}

std::pair<size_t, size_t> espalier_kv::block_of(llama_seq_id seq_id, size_t token) const {
    uint64_t first = token;
    uint64_t end   = token + 1;
    functions.block_of(pool.get(), seq_id, token, &first, &end); // fails only together with the pool
    return { first, end };
}

bool espalier_kv::match_prefix(llama_seq_id seq_id, size_t n_tokens, llama_pos last) {
    auto & sequence = sequences[seq_id];
    if (!sequence.begun) {
        return true; // nothing was offered
    }
    auto     matched  = space_for_blocks();
    uint32_t snapshot = 0;
    if (functions.match_prefix(pool.get(), seq_id, n_tokens, matched.data(), &snapshot) == ESPALIER_POOL_INVALID) {
        return false;
    }
    const size_t n_matched = add_cells(seq_id, cells_of(full, matched[full].count));
    add_window_cells(seq_id, cells_of(window, matched[window].count), n_matched);
    sequence.n_settled = n_matched;
    if (snapshot != 0 && !restore(seq_id, snapshot, last)) {
        return false;
    }
    if (n_matched < n_tokens) {
        empty(seq_id); // blocks that were offered are gone
        return false;
    }
    continue_drafts(seq_id, n_tokens);
    return true;
}

void espalier_kv::resume(llama_seq_id seq_id, size_t n_tokens) {
    if (sequences[seq_id].begun) {
        auto     none     = space_for_blocks();
        uint32_t snapshot = 0;
        functions.match_prefix(pool.get(), seq_id, 0, none.data(), &snapshot);
    }
    continue_drafts(seq_id, n_tokens);
}

// Adds the duration of its scope to a counter.
class espalier_stopwatch {
public:
    explicit espalier_stopwatch(std::atomic<uint64_t> & microseconds) : microseconds(microseconds) {}

    ~espalier_stopwatch() {
        microseconds += std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
    }

private:
    std::atomic<uint64_t> &                     microseconds;
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

// Cells without their state are of no use, so the sequence becomes empty if the state cannot be restored.
bool espalier_kv::restore(llama_seq_id seq_id, uint32_t snapshot, llama_pos last) {
    const espalier_stopwatch stopwatch(counts->microseconds);
    const bool is_restored = snapshots.put(snapshot, seq_id, last);
    functions.restored(pool.get(), seq_id, snapshot, is_restored);
    if (is_restored) {
        return true;
    }
    snapshots.drop(snapshot);
    counts->restore_failures++;
    empty(seq_id);
    return false;
}

void espalier_kv::cache_blocks(llama_seq_id seq_id, const espalier_kv_text & text, bool is_answer) {
    auto & sequence = sequences[seq_id];
    if (!sequence.begun) {
        return;
    }
    const size_t n_whole = block_of(seq_id, std::min(text.n_tokens, n_in_drafts(seq_id))).first;
    if (n_whole <= sequence.n_settled) {
        return;
    }
    auto cached = space_for_blocks();
    functions.cache_blocks(pool.get(), seq_id, text.tokens, n_whole, cached.data());
    cache_cells(full,   cells_of(full,   cached[full].count));
    cache_cells(window, cells_of(window, cached[window].count));
    keep_rows(seq_id, sequence.n_settled, n_whole);
    sequence.n_settled = n_whole;
    if (takes_snapshots() && n_whole == text.n_tokens) {
        save_at_stop(seq_id, text, is_answer);
    }
}

size_t espalier_kv::next_stop(llama_seq_id seq_id, size_t n_tokens) const {
    espalier_pool_stop stop = {};
    if (takes_snapshots(seq_id)) {
        functions.next_stop(pool.get(), seq_id, n_tokens, &stop);
    }
    return stop.tokens;
}

void espalier_kv::save_at_stop(llama_seq_id seq_id, const espalier_kv_text & text, bool is_answer) {
    espalier_pool_stop stop = {};
    functions.next_stop(pool.get(), seq_id, text.n_tokens - 1, &stop);
    const bool is_at_stop = stop.tokens == text.n_tokens;
    if ((is_at_stop || is_answer) && snapshots.are_at(seq_id, text.last)) {
        save(seq_id, text, is_at_stop ? stop.reason : (uint32_t) ESPALIER_POOL_REASON_TAIL);
    }
}

void espalier_kv::save(llama_seq_id seq_id, const espalier_kv_text & text, uint32_t reason) {
    const espalier_stopwatch stopwatch(counts->microseconds);
    std::vector<uint32_t> evicted(snapshots.count() + 1);
    size_t   n_evicted = 0;
    uint32_t snapshot  = 0;
    if (functions.snapshot_begin(pool.get(), seq_id, text.tokens, text.n_tokens, snapshots.size_of(seq_id), reason, &snapshot, evicted.data(),
                evicted.size(), &n_evicted) != ESPALIER_POOL_OK) {
        return; // it exists, or the budget is too small: nothing was changed
    }
    // Their memory is free before more is allocated.
    std::for_each(evicted.begin(), evicted.begin() + n_evicted, [&](uint32_t id) { snapshots.drop(id); });
    const bool is_saved = snapshots.take(snapshot, seq_id);
    functions.snapshot_end(pool.get(), snapshot, is_saved);
    if (is_saved) {
        counts->taken[reason]++;
    } else {
        counts->save_failures++;
    }
}

void espalier_kv::end(llama_seq_id seq_id) {
    functions.end(pool.get(), seq_id);
    sequences[seq_id].begun = false;
}

void espalier_kv::distrust(llama_seq_id seq_id, size_t n_matched) {
    std::vector<uint32_t> removed(snapshots.count() + 1);
    auto   uncached  = space_for_blocks();
    size_t n_removed = 0;
    sequences[seq_id].begun = false;
    if (functions.distrust(pool.get(), seq_id, n_matched, uncached.data(), removed.data(), removed.size(), &n_removed) != ESPALIER_POOL_OK) {
        return; // it has no request: it began none, or end() was called, and what it had cached before stays
    }
    evict_cells(full,   cells_of(full,   uncached[full].count));
    evict_cells(window, cells_of(window, uncached[window].count));
    std::for_each(blocks[full].begin(), blocks[full].begin() + uncached[full].count, [&](uint32_t first_cell) { rows.drop(first_cell / block_size); });
    std::for_each(removed.begin(), removed.begin() + n_removed, [&](uint32_t id) { snapshots.drop(id); });
}

//
// Drafts
//

size_t espalier_kv::n_in_drafts(llama_seq_id seq_id) const {
    if (mems.size() < 2) {
        return SIZE_MAX;
    }
    const llama_pos next = llama_memory_seq_pos_max(mems[1], seq_id) + 1;
    return (size_t) next + (drafts.traits.has_successor ? 1 : 0);
}

void espalier_kv::keep_rows(llama_seq_id seq_id, size_t begin, size_t end) {
    if (!drafts.traits.has_rows) {
        return;
    }
    // There are no images, so all blocks are full.
    for (size_t index = begin / block_size; index < end / block_size; index++) {
        std::vector<float> row;
        uint32_t block = 0;
        const auto last = (llama_pos) ((index + 1) * block_size - 1);
        if (sequences[seq_id].blocks.find_only(index, block) && drafts.get_row(seq_id, last, row)) {
            rows.set(block, std::move(row));
        }
    }
}

// The hidden state after the first n_tokens of the sequence, which is not empty. Empty: unknown.
std::vector<float> espalier_kv::find_row(llama_seq_id seq_id, size_t n_tokens) const {
    std::vector<float> row;
    uint32_t block = 0;
    if (drafts.get_row(seq_id, (llama_pos) n_tokens - 1, row)) {
        return row;
    }
    const bool ends_here = n_tokens % block_size == 0 && sequences[seq_id].blocks.find_only(n_tokens / block_size - 1, block);
    return ends_here ? rows.get(block) : row;
}

void espalier_kv::continue_drafts(llama_seq_id seq_id, size_t n_tokens) {
    if (drafts.traits.has_rows) {
        drafts.set_row(seq_id, (llama_pos) n_tokens - 1, n_tokens > 0 ? find_row(seq_id, n_tokens) : std::vector<float>());
    }
}

void espalier_kv::copy_row(llama_seq_id from, llama_seq_id to) {
    if (!drafts.traits.has_rows) {
        return;
    }
    std::vector<float> row;
    const llama_pos last = last_position(from);
    drafts.get_row(from, last, row);
    drafts.set_row(to, last, row);
}

// If the hidden state before p0 is not known, a cell in a block that the sequence keeps is the best there is.
void espalier_kv::cut_drafts(llama_seq_id seq_id, llama_pos p0) {
    if (!drafts.traits.has_successor || mems.size() < 2 || llama_memory_seq_pos_max(mems[1], seq_id) < p0 - 1) {
        return;
    }
    const std::vector<float> row = find_row(seq_id, p0);
    if (!row.empty() || block_of(seq_id, p0).first == (size_t) p0) {
        llama_memory_seq_rm(mems[1], seq_id, p0 - 1, -1);
        drafts.set_row(seq_id, p0 - 1, row);
    }
}

bool espalier_kv::schedule(const std::vector<espalier_schedule_request> & requests, const std::vector<llama_seq_id> & retained, bool try_waiting,
        std::vector<uint32_t> & waits, espalier_schedule_step & step) const {
    waits.assign(requests.size() + 1, ESPALIER_SCHEDULE_FOR_NOTHING);
    return functions.schedule(pool.get(), requests.data(), requests.size(), retained.data(), retained.size(), try_waiting, waits.data(), &step) == ESPALIER_POOL_OK;
}

void espalier_kv::clear() {
    for (llama_memory_t mem : mems) {
        llama_memory_clear(mem, false);
    }
}

struct espalier_pool_statistics espalier_kv::statistics() const {
    struct espalier_pool_statistics now = {};
    functions.statistics(pool.get(), &now);
    return now;
}
