/* `recompute:`, which stages keep what enters each of their groups of layers only, and compute the
 * forward of a group again for its backward: T. Chen et al., "Training Deep Nets with Sublinear
 * Memory Cost", arXiv 1604.06174. With the weights, batch statistics and random numbers of the
 * first forward, so gradients are those of a run that keeps everything, bit for bit. */
#ifndef RP_NN_AGAIN_H
#define RP_NN_AGAIN_H

#include "nn/cut.h"

/* Reads `recompute` of `root`: none (the default), all, auto (*is_auto; none so far), or a list of
 * stages by number, each one group, and of layers by name, each of which begins a group in its
 * stage. stage: [stages]; begins: [layers]; both false before. errors USAGE with file, line and key
 */
rp_err rp_again_read(rp_node *root, const rp_model *model, const rp_cut *cut, bool *stage,
                     bool *begins, bool *is_auto) RP_MUST_CHECK;

/* Reads `offload` of `root`: none (the default), host for all stages, or a list of stages by number
 * whose stashes lie with the host while they wait. stage: [stages]; false before. errors USAGE */
rp_err rp_offload_read(rp_node *root, uint32_t stages, bool *stage) RP_MUST_CHECK;

#endif
