#include "espalier-window-size.h"

#include "espalier.h"

#include "llama-hparams.h"
#include "llama-impl.h"
#include "llama-model.h"

espalier_window_size espalier_size_windows(const llama_model * model, uint32_t n_windows, uint32_t n_batch, uint32_t n_ctx) {
    const llama_hparams & hparams = model->hparams;
    // Positions have to be indices of tokens.
    if (hparams.n_pos_per_embd() != 1) {
        return { 0, "the tokens of an image share a position (M-RoPE)" };
    }
    // Fewer prompts are found in cells of their own, so these have to be much fewer.
    const uint32_t n_cells = espalier_cells_of_windows(hparams.n_swa, n_windows, n_batch);
    if (n_cells > n_ctx / 2) {
        return { 0, format("%u windows and a batch would take %u tokens of KV cache, more than half of the %u of the context; fewer slots (-np), "
                "fewer windows, a smaller batch (-b) or a larger context (-c) make them fit", n_windows, n_cells, n_ctx) };
    }
    // Nothing may look ahead of its batch. A saved sequence has the cells of the last chunk only, if a window is a chunk:
    // no whole window.
    if (hparams.swa_type != LLAMA_SWA_TYPE_STANDARD) {
        return { 0, "the windows of the model are not those of the last tokens" };
    }
    return { n_cells, "" };
}
