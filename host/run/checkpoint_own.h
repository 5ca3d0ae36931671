/* Inside of checkpoints; only for checkpoint.c, saving.c, beside.c and position.c. */
#ifndef RP_RUN_CHECKPOINT_OWN_H
#define RP_RUN_CHECKPOINT_OWN_H

#include "run/checkpoint.h"

typedef struct {
    rp_st_entry *entry;
    uint32_t *param; /* of the model, by entry */
    uint32_t count;
} rp_tensor_list;

struct rp_saving {
    rp_tensor_list list;
    uint32_t weight_count; /* the first so many are weights */
    rp_st_writer *checkpoint, *weights, *flight;
    uint64_t fill; /* of what is in flight */
    uint32_t boards_left;
    bool ended[RP_CUT_STAGES_MAX];
};

/* checkpoint.c: the evaluated model in model order; with `states` also what the method and the
 * optimiser hold. */
rp_err rp_checkpoint_list(rp_arena *arena, const rp_runfile *run, bool states,
                          rp_tensor_list *list) RP_MUST_CHECK;
/* What was in flight to a board, in pieces; also when it is nothing. */
rp_err rp_checkpoint_send_in_flight(rp_ring *ring, uint32_t stage, uint64_t fill,
                                    const rp_part *all) RP_MUST_CHECK;

/* beside.c: opens the file of what is in flight, unless that is nothing. It is written before the
 * checkpoint that it belongs to. */
rp_err rp_checkpoint_open_flight(rp_arena *arena, rp_saving *saving, const rp_ring *ring,
                                 const rp_cut *cut, const char *checkpoint) RP_MUST_CHECK;
rp_err rp_checkpoint_save_flight(rp_saving *saving, uint32_t stage,
                                 const rp_message *message) RP_MUST_CHECK;
rp_err rp_checkpoint_save_steer(rp_arena *arena, const rp_steer *steer,
                                const char *checkpoint) RP_MUST_CHECK;

/* position.c: the metadata of a checkpoint, keys and values, NULL at the end. */
enum { RP_CHECKPOINT_META = 23 };
rp_err rp_checkpoint_meta(rp_arena *arena, const rp_ring *ring, const rp_cut *cut,
                          const rp_position *position,
                          const char *meta[RP_CHECKPOINT_META]) RP_MUST_CHECK;
/* Names of the stages' first layers: the cut that bytes in flight belong to. */
rp_err rp_checkpoint_cut_text(rp_arena *arena, const rp_model *model, const rp_cut *cut,
                              char **out) RP_MUST_CHECK;
/* Decimal digits and nothing else. */
bool rp_checkpoint_number(const char *text, uint64_t *out);
/* All but the checkpoints that are kept. */
void rp_checkpoint_remove_old(const char *folder);

#endif
