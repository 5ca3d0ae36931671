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

/* Where the stashes of a stage lie while they wait for their backward, but for those on the device.
 */
typedef enum {
    RP_OFFLOAD_NONE, /* all are on the device */
    RP_OFFLOAD_HOST, /* in the memory of the board's processor */
    RP_OFFLOAD_FLASH,
    RP_OFFLOAD_AUTO, /* in a run file: whatever is cheapest where memory is short */
    RP_OFFLOADS
} rp_offload;
const char *rp_offload_name(rp_offload offload);
/* RP_OFFLOADS when unknown. */
rp_offload rp_offload_find(const char *name);

/* Reads `offload` of `root`: one of the words above, for all stages; a list of stages by number,
 * which is host for them; or a word by stage, {0: flash}, none for the others. Absent: auto.
 * stage: [stages]. errors USAGE */
rp_err rp_offload_read(rp_node *root, uint32_t stages, rp_offload *stage) RP_MUST_CHECK;

#endif
