/* Private to the room. */
#ifndef RP_CHECKPOINT_CHECKPOINT_OWN_H
#define RP_CHECKPOINT_CHECKPOINT_OWN_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/position_own.h"

typedef struct {
    rp_st_entry *entry;
    uint32_t *param;           /* by entry: index of the parameter in the model */
    uint32_t count, evaluated; /* all entries; those of the evaluated model, which come first */
} rp_checkpoint_list;

/* tensors.c: lists the tensors of the evaluated model in model order; with `states` also those of
 * the method and the optimiser. */
rp_err rp_checkpoint_make_list(rp_arena *arena, const rp_runfile *run, bool states,
                               rp_checkpoint_list *list) RP_MUST_CHECK;

struct rp_checkpoint_reader {
    const rp_method *method;
    const rp_model *model;
    uint32_t replicas; /* of the method when the checkpoint was made */
    rp_st_reader *file;
    rp_checkpoint_list list;
    const char *const
        *source;      /* by entry: name in a file of start weights; NULL: not such a file */
    uint64_t updates; /* rp_checkpoint_start_updates() */
    uint32_t next;
};

/* find.c: removes all checkpoints but the last two. */
void rp_checkpoint_remove_old(const char *folder);

/* sidecar.c: create sidecar files under unused names, so that files of an earlier save of the same
 * step are not touched. *end: end of the name. *out NULL and *end "": there is nothing to save. */
rp_err rp_checkpoint_create_in_flight(rp_arena *arena, const rp_checkpoint_content *content,
                                      const char *checkpoint, const char **end,
                                      rp_st_writer **out) RP_MUST_CHECK;
rp_err rp_checkpoint_create_gains(rp_arena *arena, const rp_gain_estimator *estimator,
                                  const char *checkpoint, const char **end,
                                  rp_st_writer **out) RP_MUST_CHECK;
/* Removes all sidecar files of this checkpoint's step that belong to earlier saves. */
void rp_checkpoint_remove_other_sidecars(const char *checkpoint,
                                         const rp_checkpoint_sidecars *sidecars);
/* errors FORMAT: a sidecar file of the checkpoint is missing */
rp_err rp_checkpoint_check_sidecars(rp_arena *arena, const rp_st_reader *reader,
                                    const char *checkpoint) RP_MUST_CHECK;

#endif
