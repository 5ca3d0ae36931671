/* Inside of checkpoints; only for the files of this room. */
#ifndef RP_CHECKPOINT_CHECKPOINT_OWN_H
#define RP_CHECKPOINT_CHECKPOINT_OWN_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/position_own.h"

typedef struct {
    rp_st_entry *entry;
    uint32_t *param;           /* of the model, by entry */
    uint32_t count, evaluated; /* of all; of the evaluated model, which come first */
} rp_checkpoint_list;

/* tensors.c: the evaluated model in model order; with `states` also what the method and the
 * optimiser hold. */
rp_err rp_checkpoint_make_list(rp_arena *arena, const rp_runfile *run, bool states,
                               rp_checkpoint_list *list) RP_MUST_CHECK;

struct rp_checkpoint_reader {
    const rp_method *method;
    const rp_model *model;
    uint32_t replicas; /* of the method when the checkpoint was made */
    rp_st_reader *file;
    rp_checkpoint_list list;
    const char *const *source; /* names in a file of start weights, by entry; NULL: another file */
    uint32_t next;
};

/* find.c: all but the checkpoints that are kept. */
void rp_checkpoint_remove_old(const char *folder);

/* sidecar.c: files that no checkpoint has yet, under names that no file has: those of an earlier
 * save of the same step are not touched. *out stays NULL and *end "" when there is nothing to keep.
 */
rp_err rp_checkpoint_create_in_flight(rp_arena *arena, const rp_checkpoint_content *content,
                                      const char *checkpoint, const char **end,
                                      rp_st_writer **out) RP_MUST_CHECK;
rp_err rp_checkpoint_create_gains(rp_arena *arena, const rp_gain_estimator *estimator,
                                  const char *checkpoint, const char **end,
                                  rp_st_writer **out) RP_MUST_CHECK;
/* Of this checkpoint's step all sidecar files but its own. */
void rp_checkpoint_remove_other_sidecars(const char *checkpoint,
                                         const rp_checkpoint_sidecars *sidecars);
/* errors FORMAT: the checkpoint names a file that is not there */
rp_err rp_checkpoint_check_sidecars(rp_arena *arena, const rp_st_reader *reader,
                                    const char *checkpoint) RP_MUST_CHECK;

#endif
