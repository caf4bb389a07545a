#include "espalier-residual-window.h"

#include "llama-batch.h"
#include "llama-cparams.h"
#include "llama-hparams.h"
#include "llama-impl.h"
#include "llama-kv-cache.h"

#include "espalier-attention.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>

static const ggml_type copy_type = GGML_TYPE_F16;

// Whether our kernel supports a layer's attention; upstream's code cannot read copies.
static bool kernel_supports(const llama_hparams & hparams, uint32_t layer) {
    const espalier_attention_functions * kernel = espalier_attention_get_functions();
    espalier_attention problem = {};
    problem.key_size   = hparams.n_embd_head_k(layer);
    problem.value_size = hparams.n_embd_head_v(layer);
    problem.heads      = hparams.n_head(layer);
    problem.kv_heads   = hparams.n_head_kv(layer);
    problem.tokens = problem.streams = problem.kv_streams = 1;
    for (auto & cells : problem.cells) {
        cells.key_type = cells.value_type = copy_type;
        cells.count    = 1;
    }
    return kernel && kernel->work_size(&problem, 1) > 0;
}

// The reason why copies are not supported; empty: they are.
static std::string unsupported_reason(const llama_kv_cache & kv, const llama_hparams & hparams, const llama_cparams & cparams) {
    if (!cparams.flash_attn) {
        return "flash attention is off";
    }
    if (kv.get_n_stream() > 1) {
        return "each sequence has a buffer of its own (--no-kv-unified)";
    }
    if (kv.get_kind() != LLAMA_MEMORY_KIND_ATTENTION || hparams.is_mla() || hparams.n_rel_attn_bkts > 0) {
        return "they are for full attention only";
    }
    for (uint32_t layer : kv.get_layer_ids()) {
        if (!kernel_supports(hparams, layer)) {
            return "attention is not espalier's (ESPALIER_DISABLE), or a layer is not for it";
        }
    }
    return "";
}

std::shared_ptr<espalier_residual_window> espalier_residual_window::create(const llama_kv_cache & kv, const espalier_residual_window_size & size, const llama_hparams & hparams, const llama_cparams & cparams) {
    const std::string reason = unsupported_reason(kv, hparams, cparams);
    if (!reason.empty()) {
        LLAMA_LOG_WARN("espalier: no residual window or attention sinks in %s (--kv-recent, --kv-sinks): %s\n", ggml_type_name(copy_type), reason.c_str());
        return nullptr;
    }
    // The rows that all sequences need at once, those that a batch adds, and the row that is always masked.
    const int64_t of_sequences = (int64_t) cparams.n_seq_max * (size.recent + size.sinks);
    const int64_t n_rows       = GGML_PAD(std::min<int64_t>(of_sequences, kv.get_size()) + cparams.n_ubatch + 1, ESPALIER_KV_BLOCK_SIZE);

    std::shared_ptr<espalier_residual_window> residual_window(new espalier_residual_window(kv, size, cparams.n_seq_max, n_rows));
    residual_window->allocate(hparams);
    LLAMA_LOG_INFO("espalier: residual window of %d tokens and %d attention sinks for each sequence in %s: %.2f MiB\n",
            size.recent, size.sinks, ggml_type_name(copy_type), residual_window->bytes() / 1024.0 / 1024.0);
    return residual_window;
}

espalier_residual_window::espalier_residual_window(const llama_kv_cache & kv, const espalier_residual_window_size & size, uint32_t n_seq, int64_t n_rows) :
    kv(kv), size(size), n_seq(n_seq), n_rows(n_rows), cell_of_row(n_rows - 1, none), row_of_cell(kv.get_size(), -1), run_of_seq(n_seq, -1) {
}

void espalier_residual_window::allocate(const llama_hparams & hparams) {
    const std::vector<uint32_t> ids = kv.get_layer_ids();
    ctx.reset(ggml_init({ 2 * ids.size() * ggml_tensor_overhead(), nullptr, true }));
    for (uint32_t id : ids) {
        ggml_tensor * k = ggml_new_tensor_2d(ctx.get(), copy_type, hparams.n_embd_k_gqa(id), n_rows);
        ggml_tensor * v = ggml_new_tensor_2d(ctx.get(), copy_type, hparams.n_embd_v_gqa(id), n_rows);
        ggml_format_name(k, "cache_copies_k_l%u", id);
        ggml_format_name(v, "cache_copies_v_l%u", id);
        layers[(int32_t) id] = { k, v };
    }
    ggml_backend_buffer_type_t type = ggml_backend_cpu_buffer_type();
    if (hparams.no_alloc) {
        // As in upstream's caches, when only sizes are measured.
        buffer.reset(ggml_backend_buft_alloc_buffer(type, 0));
        for (ggml_tensor * t = ggml_get_first_tensor(ctx.get()); t; t = ggml_get_next_tensor(ctx.get(), t)) {
            t->buffer = buffer.get();
        }
        return;
    }
    buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(ctx.get(), type));
    if (!buffer) {
        throw std::runtime_error("failed to allocate the residual window of the KV cache (--kv-recent, --kv-sinks)");
    }
    ggml_backend_buffer_clear(buffer.get(), 0);
}

size_t espalier_residual_window::bytes() const {
    size_t sum = 0;
    for (const auto & layer : layers) {
        sum += ggml_nbytes(layer.second.k) + ggml_nbytes(layer.second.v);
    }
    return sum;
}

void espalier_residual_window::forget() {
    std::fill(cell_of_row.begin(), cell_of_row.end(), none);
    std::fill(row_of_cell.begin(), row_of_cell.end(), -1);
}

void espalier_residual_window::forget(const std::vector<uint32_t> & cells) {
    for (uint32_t cell : cells) {
        forget_cell(cell);
    }
}

void espalier_residual_window::forget_shifted() {
    const auto & cells = kv.get_cells(0);
    for (uint32_t cell : cell_of_row) {
        if (cell != none && !cells.is_empty(cell) && cells.get_shift(cell) != 0) {
            forget_cell(cell);
        }
    }
}

void espalier_residual_window::forget_cell(uint32_t cell) {
    int64_t & row = row_of_cell[cell];
    if (row >= 0) {
        cell_of_row[row] = none;
        row = -1;
    }
}

//
// Graphs
//

std::shared_ptr<espalier_residual_window_input> espalier_residual_window::build_input(ggml_context * ctx, int64_t n_tokens) {
    ggml_tensor * rows = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, n_tokens);
    ggml_tensor * mask = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n_rows, n_tokens);
    ggml_set_input(rows);
    ggml_set_input(mask);
    ggml_set_name(rows, "attn_inp_copies_rows");
    ggml_set_name(mask, "attn_inp_copies_mask");
    return std::shared_ptr<espalier_residual_window_input>(new espalier_residual_window_input{ *this, rows, mask });
}

static ggml_tensor * store_rows(ggml_context * ctx, ggml_tensor * to, ggml_tensor * from, ggml_tensor * rows) {
    GGML_ASSERT(ggml_row_size(from->type, from->ne[0]) == from->nb[1] && from->ne[0] * from->ne[1] == to->ne[0]);
    return ggml_set_rows(ctx, to, ggml_view_2d(ctx, from, to->ne[0], from->ne[2], from->nb[2], 0), rows);
}

void espalier_residual_window::store(ggml_context * ctx, ggml_cgraph * gf, const espalier_residual_window_input & input, ggml_tensor * k, ggml_tensor * v, int32_t layer) const {
    const of_layer & to = layers.at(layer);
    ggml_build_forward_expand(gf, store_rows(ctx, to.k, k, input.rows));
    ggml_build_forward_expand(gf, store_rows(ctx, to.v, v, input.rows));
}

// A view of the rows by head, with the layout of the cache's K and V in the attention node.
static ggml_tensor * by_heads(ggml_context * ctx, ggml_tensor * rows, const ggml_tensor * cache) {
    const int64_t head = cache->ne[0], heads = cache->ne[2];
    GGML_ASSERT(head * heads == rows->ne[0]);
    return ggml_view_3d(ctx, rows, head, rows->ne[1], heads, rows->nb[1], ggml_row_size(rows->type, head), 0);
}

void espalier_residual_window::attach(ggml_context * ctx, const espalier_residual_window_input & input, ggml_tensor * attention, int32_t layer) const {
    const of_layer & of = layers.at(layer);
    attention->src[ESPALIER_SRC_RESIDUAL_K]    = by_heads(ctx, of.k, attention->src[1]);
    attention->src[ESPALIER_SRC_RESIDUAL_V]    = by_heads(ctx, of.v, attention->src[2]);
    attention->src[ESPALIER_SRC_RESIDUAL_MASK] = input.mask;
}

//
// Rows
//

bool espalier_residual_window::is_near(int32_t pos_token, int32_t pos_cell) const {
    return pos_cell < size.sinks || std::abs(pos_token - pos_cell) < size.recent;
}

std::vector<int32_t> espalier_residual_window::next_positions(const llama_ubatch & ubatch) const {
    std::vector<int32_t> next(n_seq);
    for (uint32_t seq = 0; seq < n_seq; seq++) {
        next[seq] = kv.seq_pos_max((llama_seq_id) seq) + 1;
    }
    for (uint32_t i = 0; i < ubatch.n_tokens; i++) {
        for (int32_t j = 0; j < ubatch.n_seq_id[i]; j++) {
            const auto seq = (uint32_t) ubatch.seq_id[i][j];
            if (seq < n_seq) {
                next[seq] = std::min(next[seq], ubatch.pos[i]);
            }
        }
    }
    return next;
}

bool espalier_residual_window::is_empty(int64_t row) const {
    return cell_of_row[row] == none || kv.get_cells(0).is_empty(cell_of_row[row]);
}

bool espalier_residual_window::is_needed(int64_t row, const std::vector<int32_t> & next) const {
    const auto &   cells = kv.get_cells(0);
    const uint32_t cell  = cell_of_row[row];
    for (uint32_t seq = 0; seq < n_seq; seq++) {
        if (cells.seq_has(cell, (llama_seq_id) seq) && is_near(std::max(next[seq], cells.pos_get(cell)), cells.pos_get(cell))) {
            return true;
        }
    }
    return false;
}

template <typename predicate> int64_t espalier_residual_window::row_in(int64_t run, const predicate & is_free) const {
    const int64_t end = std::min<int64_t>((run + 1) * rows_of_run, cell_of_row.size());
    for (int64_t row = std::max<int64_t>(run * rows_of_run, 0); row < end; row++) {
        if (is_free(row)) {
            return row;
        }
    }
    return -1;
}

int64_t espalier_residual_window::find_row(int64_t run, const std::vector<int32_t> & next) const {
    const int64_t n_runs    = n_rows / rows_of_run;
    const auto    empty     = [&](int64_t row) { return is_empty(row); };
    const auto    not_empty = [&](int64_t row) { return !is_empty(row); };
    const auto    needless  = [&](int64_t row) { return is_empty(row) || !is_needed(row, next); };

    // Copies that another sequence may share later are kept as long as there are empty rows.
    int64_t row = row_in(run, empty);
    for (int64_t other = 0; row < 0 && other < n_runs; other++) {
        row = row_in(other, not_empty) < 0 ? row_in(other, empty) : -1;
    }
    if (row < 0) {
        row = row_in(run, needless);
    }
    for (int64_t other = 0; row < 0 && other < n_runs; other++) {
        row = row_in(other, needless);
    }
    return row;
}

int64_t espalier_residual_window::take_row(uint32_t cell, uint32_t seq, const std::vector<int32_t> & next) {
    const int64_t row = find_row(run_of_seq[seq], next);
    if (row < 0) {
        return n_rows - 1;
    }
    if (cell_of_row[row] != none) {
        row_of_cell[cell_of_row[row]] = -1;
    }
    cell_of_row[row]  = cell;
    row_of_cell[cell] = row;
    run_of_seq[seq]   = row / rows_of_run;
    return row;
}

void espalier_residual_window::set_input(const espalier_residual_window_input & input, const ggml_tensor * k_idxs, ggml_tensor * kq_mask, const llama_ubatch & ubatch) {
    if (!input.rows->buffer || !input.mask->buffer) {
        forget();
        return;
    }
    GGML_ASSERT(ggml_backend_buffer_is_host(input.rows->buffer) && ggml_backend_buffer_is_host(input.mask->buffer));
    const auto * cells = (const int64_t *) k_idxs->data;
    auto *       rows  = (int64_t *) input.rows->data;
    // The previous content of these cells is overwritten.
    for (uint32_t i = 0; i < ubatch.n_tokens; i++) {
        forget_cell((uint32_t) cells[i]);
    }
    const std::vector<int32_t> next = next_positions(ubatch);
    for (uint32_t i = 0; i < ubatch.n_tokens; i++) {
        // Two tokens of a batch must not write to the same row, unless it is the last one, which is never read.
        const auto seq     = (uint32_t) ubatch.seq_id[i][0];
        const bool is_read = seq < n_seq && is_near(ubatch.pos[i], ubatch.pos[i]);
        rows[i] = is_read ? take_row((uint32_t) cells[i], seq, next) : n_rows - 1;
    }
    divide(input, kq_mask, ubatch);
}

void espalier_residual_window::divide(const espalier_residual_window_input & input, ggml_tensor * kq_mask, const llama_ubatch & ubatch) const {
    GGML_ASSERT(kq_mask->type == GGML_TYPE_F16 && kq_mask->ne[1] == (int64_t) ubatch.n_tokens);
    const auto &      cells  = kv.get_cells(0);
    const ggml_fp16_t hidden = ggml_fp32_to_fp16(-INFINITY);
    for (uint32_t i = 0; i < ubatch.n_tokens; i++) {
        auto * of_cells = (ggml_fp16_t *) ((char *) kq_mask->data + i * kq_mask->nb[1]);
        auto * of_rows  = (ggml_fp16_t *) ((char *) input.mask->data + i * input.mask->nb[1]);
        std::fill(of_rows, of_rows + n_rows, hidden);
        for (size_t row = 0; row < cell_of_row.size(); row++) {
            const uint32_t cell = cell_of_row[row];
            if (!is_empty((int64_t) row) && cell < kq_mask->ne[0] && is_near(ubatch.pos[i], cells.pos_get(cell))) {
                std::swap(of_rows[row], of_cells[cell]);
            }
        }
    }
}

void espalier_create_residual_window(llama_memory_i * memory, const llama_hparams & hparams, const llama_cparams & cparams, const llama_context_params & params) {
    const espalier_residual_window_size size = { espalier_kv_clamp(ESPALIER_KV_RECENT, params.kv_recent), espalier_kv_clamp(ESPALIER_KV_SINKS, params.kv_sinks) };
    if (memory == nullptr || (size.recent == 0 && size.sinks == 0)) {
        return;
    }
    if (!espalier_is_own_type(params.type_k) && !espalier_is_own_type(params.type_v)) {
        LLAMA_LOG_WARN("espalier: --kv-recent and --kv-sinks are for caches of turbo2 to tcq3; this one has %s and %s\n", ggml_type_name(params.type_k), ggml_type_name(params.type_v));
        return;
    }
    auto * kv = dynamic_cast<llama_kv_cache *>(memory);
    if (kv == nullptr) {
        LLAMA_LOG_WARN("espalier: --kv-recent and --kv-sinks need full attention in every layer, which this model does not have: ignored\n");
        return;
    }
    kv->residual_window = espalier_residual_window::create(*kv, size, hparams, cparams);
}
