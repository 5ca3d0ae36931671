/* Inside of checkpoints; only for the files of this room. */
#ifndef RP_CHECKPOINT_CHECKPOINT_OWN_H
#define RP_CHECKPOINT_CHECKPOINT_OWN_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/position_own.h"

typedef struct {
    rp_st_entry *entry;
    uint32_t *param; /* of the model, by entry */
    uint32_t count;
} rp_checkpoint_list;

/* tensors.c: the evaluated model in model order; with `states` also what the method and the
 * optimiser hold. */
rp_err rp_checkpoint_make_list(rp_arena *arena, const rp_runfile *run, bool states,
                               rp_checkpoint_list *list) RP_MUST_CHECK;

/* sidecar.c: opens the file of what is in flight; *out stays NULL when that is nothing. It is
 * written before the checkpoint that it belongs to. */
rp_err rp_checkpoint_create_in_flight(rp_arena *arena, const rp_checkpoint_content *content,
                                      const char *checkpoint, rp_st_writer **out) RP_MUST_CHECK;
rp_err rp_checkpoint_save_gains(rp_arena *arena, const rp_gain_estimator *estimator,
                                const char *checkpoint) RP_MUST_CHECK;

#endif
