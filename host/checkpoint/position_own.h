/* What the other files of this room ask of position.c. */
#ifndef RP_CHECKPOINT_POSITION_OWN_H
#define RP_CHECKPOINT_POSITION_OWN_H

#include "base/safetensors.h"
#include "checkpoint/position.h"

/* How the names of a checkpoint's sidecar files end; "": there is none. Its metadata has them. */
typedef struct {
    const char *in_flight, *gains;
} rp_checkpoint_sidecars;

/* The metadata of a checkpoint, keys and values, NULL at the end. `applied`: updates done by stage
 * of the plan. */
enum { RP_CHECKPOINT_META = 33 };
rp_err rp_checkpoint_make_meta(rp_arena *arena, const rp_runfile *run, const rp_plan *plan,
                               const rp_position *position, const rp_applied *applied,
                               const rp_checkpoint_sidecars *sidecars,
                               const char *meta[RP_CHECKPOINT_META]) RP_MUST_CHECK;
/* Names of the stages' first layers: the cut that bytes in flight belong to. */
rp_err rp_checkpoint_cut_text(rp_arena *arena, const rp_plan *plan, char **out) RP_MUST_CHECK;
/* Decimal digits and nothing else. */
bool rp_checkpoint_number(const char *text, uint64_t *out);
/* Of a checkpoint that is open. errors  FORMAT; USAGE: it is of another run */
rp_err rp_checkpoint_read_position(rp_arena *arena, const rp_st_reader *reader,
                                   const rp_runfile *run, const char *path,
                                   rp_position *position) RP_MUST_CHECK;
/* Whether the evaluation at the position's step has been done, and what it gave. */
void rp_checkpoint_read_evaluated(const char *folder, rp_split split, rp_position *position);

#endif
