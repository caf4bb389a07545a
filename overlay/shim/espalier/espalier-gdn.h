/*
 * Entry point for GGML_OP_GATED_DELTA_NET in ggml's CPU backend. C99 and C++.
 *
 * Compiled into the CPU backend: under #ifdef ESPALIER, as espalier.h says.
 */
#ifndef ESPALIER_GDN_H
#define ESPALIER_GDN_H

#include <stdbool.h>

struct ggml_tensor;

#ifdef __cplusplus
extern "C" {
#endif

/* Sources that upstream's node does not have; NULL: upstream's code computes it. espalier_set_gdn_states() sets them.
 * STATES: the cache of the layer, F32 [values of a state, rows]. The states are read and written there, and the output
 * has none. SOURCES: I32, for each row from the first one on, the row whose state it gets before the first token. */
#define ESPALIER_SRC_GDN_STATES  6
#define ESPALIER_SRC_GDN_SOURCES 7

/* Parameters of such a node; upstream's node has the first one only.
 * PLANES: number of states of a sequence, the newest first. FIRST: row of the first sequence. CELLS: rows of a plane. */
#define ESPALIER_PARAM_GDN_PLANES 0
#define ESPALIER_PARAM_GDN_FIRST  1
#define ESPALIER_PARAM_GDN_CELLS  2

/* Computes the share of one of nth threads, without a barrier. Returns false, on all threads and before anything is
 * written, if a source is not a row of the cache. */
bool espalier_gdn_compute_node(const struct ggml_tensor * node, int ith, int nth);

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_GDN_H */
