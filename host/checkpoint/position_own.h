/* position.c; private to the room. */
#ifndef RP_CHECKPOINT_POSITION_OWN_H
#define RP_CHECKPOINT_POSITION_OWN_H

#include "base/safetensors.h"
#include "checkpoint/position.h"

/* Ends of the names of a checkpoint's sidecar files, from its metadata; "": no file. */
typedef struct {
    const char *in_flight, *gains;
} rp_checkpoint_sidecars;

/* Makes the metadata of a checkpoint: keys and values, then NULL. `applied`: updates done by stage
 * of the plan. */
enum { RP_CHECKPOINT_META = 35 };
rp_err rp_checkpoint_make_meta(rp_arena *arena, const rp_runfile *run, const rp_plan *plan,
                               const rp_position *position, const rp_applied *applied,
                               const rp_checkpoint_sidecars *sidecars,
                               const char *meta[RP_CHECKPOINT_META]) RP_MUST_CHECK;
/* Names of the stages' first layers, separated by commas. */
rp_err rp_checkpoint_cut_text(rp_arena *arena, const rp_plan *plan, char **out) RP_MUST_CHECK;
/* Parses a number of decimal digits only; false: invalid. */
bool rp_checkpoint_number(const char *text, uint64_t *out);
/* Reads the position of an open checkpoint. errors  FORMAT; USAGE: it belongs to a different run */
rp_err rp_checkpoint_read_position(rp_arena *arena, const rp_st_reader *reader,
                                   const rp_runfile *run, const char *path,
                                   rp_position *position) RP_MUST_CHECK;
/* Reads the note of the evaluation at the position's step, if it was done. */
void rp_checkpoint_read_evaluated(const char *folder, rp_split split, rp_position *position);

#endif
