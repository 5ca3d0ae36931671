/* `recompute:`: stages that keep only the inputs of each of their groups of layers and recompute a
 * group's forward for its backward: T. Chen et al., "Training Deep Nets with Sublinear Memory
 * Cost", arXiv 1604.06174. Recomputation uses the weights, batch statistics and random numbers of
 * the first forward, so gradients are bit-identical to those of a run that keeps everything. */
#ifndef RP_NN_RECOMPUTE_H
#define RP_NN_RECOMPUTE_H

#include "nn/cut.h"

/* Reads `recompute` of `root`: none (the default), all, blocks (all stages, with a group for each
 * residual unit or recurrent layer), auto (*is_auto; none is chosen yet), or a list of stages by
 * number, each one group, and of layers by name, each of which begins a group in its stage. stage:
 * [stages]; begins: [layers]; both initialised to false by the caller. errors  USAGE with file,
 * line and key */
rp_err rp_recompute_read(rp_node *root, const rp_model *model, const rp_cut *cut, bool *stage,
                         bool *begins, bool *is_auto) RP_MUST_CHECK;

/* Where a stage's waiting stashes are stored, except those on the device. */
typedef enum {
    RP_OFFLOAD_NONE, /* all are on the device */
    RP_OFFLOAD_HOST, /* in the memory of the board's processor */
    RP_OFFLOAD_FLASH,
    RP_OFFLOAD_AUTO, /* in a run file: the cheapest, where memory is short */
    RP_OFFLOADS
} rp_offload;
const char *rp_offload_name(rp_offload offload);
/* RP_OFFLOADS if unknown. */
rp_offload rp_offload_find(const char *name);

/* Reads `offload` of `root`: one of the words above, for all stages; a list of stages by number,
 * which get host; or a map from stage to word, {0: flash}, where missing stages get none. Absent:
 * auto. stage: [stages]. errors USAGE */
rp_err rp_offload_read(rp_node *root, uint32_t stages, rp_offload *stage) RP_MUST_CHECK;

#endif
