/* What of a run is saved, and how it comes back: a checkpoint is loaded into the boards, their
 * state is saved, and failed writes of the run folder are tried again. `copies.h`: copies that
 * boards keep of each other; `adoption.h`: what boards hold that have lost their controller.
 *
 * The controller decides when something begins, and steps it. Nothing here blocks, and nothing
 * here leaves a state of the controller: an outcome says what has become of it. */
#ifndef RP_KEEP_KEEP_H
#define RP_KEEP_KEEP_H

#include "checkpoint/checkpoint.h"
#include "folder/folder.h"
#include "ring/ring.h"

typedef struct rp_keep rp_keep;

/* Borrowed for the life of the room. */
typedef struct {
    const rp_runfile *run;
    rp_ring *ring;
    const rp_folder *folder; /* its record is open before anything is loaded or saved */
    const char *executor;    /* what the boards compute with; NULL: opencl */
    bool resumes;            /* a training run that is resumed: boards may still hold its state */
} rp_keep_needs;

/* How a step of a load, a save or a rescue ended. Each function lists those that it gives. */
typedef enum {
    RP_KEEP_WAITS,   /* for boards, for room in their links, or for the disk: step it again */
    RP_KEEP_OFFERED, /* the boards have their tensors, and the gains were read: the boards have to
                        hear them; then step it again */
    RP_KEEP_WHOLE,   /* everything that the boards were asked for is here: commit it */
    RP_KEEP_AGAIN,   /* the disk has failed: begin again once rp_keep_disk_rests() is false */
    RP_KEEP_DONE,
    RP_KEEP_DAMAGED, /* what the boards hold is lost, or not finite: there is no checkpoint of it */
    RP_KEEP_OVER     /* with the error IO: the disk has failed for too long, so the run stops */
} rp_keep_outcome;

/* Lives in `arena`. errors MEMORY */
rp_err rp_keep_open(rp_arena *arena, const rp_keep_needs *needs, rp_keep **out) RP_MUST_CHECK;
/* Frees copies and what adoption has read. Loads and saves were abandoned. */
void rp_keep_close(rp_keep *keep);

/* ---- what is saved --------------------------------------------------------------------------- */

/* The boards hold something that no checkpoint has. */
bool rp_keep_is_unsaved(const rp_keep *keep);
void rp_keep_note_unsaved(rp_keep *keep, bool is_unsaved);
/* Step of the newest checkpoint; 0: none. */
uint64_t rp_keep_saved_step(const rp_keep *keep);
/* The run begins here, at the checkpoint of `step`, or at step 0 without one. */
void rp_keep_note_start(rp_keep *keep, uint64_t step);
/* The run goes back to `step`: histograms of earlier steps stay. */
void rp_keep_note_return(rp_keep *keep, uint64_t step);
/* rp_checkpoint_find() in the run folder; rp_keep_damage() then says why the checkpoint is not the
 * newest. errors of rp_checkpoint_find() */
rp_err rp_keep_find(rp_keep *keep, rp_arena *arena, char **path,
                    rp_position *position) RP_MUST_CHECK;
/* A run can only go back to the checkpoint that was the newest one. errors FORMAT: `step`, of the
 * checkpoint that is found, is another one */
rp_err rp_keep_check_step(const rp_keep *keep, uint64_t step) RP_MUST_CHECK;
const char *rp_keep_damage(const rp_keep *keep); /* ""; or the newest checkpoint is damaged */
/* Says in the log that the run goes on from the checkpoint of `step`, where the newest one is
 * damaged. errors IO */
rp_err rp_keep_say_damage(const rp_keep *keep, uint64_t step) RP_MUST_CHECK;

/* ---- updates done ---------------------------------------------------------------------------- */

/* How many counts of updates a board reports: one for each replica of its only stage, or one for
 * each of its stages. */
uint32_t rp_keep_applied_count(const rp_plan *plan, uint32_t board);

/* ---- the disk -------------------------------------------------------------------------------- */

/* A write failed less than a second ago: it is too early to try again. */
bool rp_keep_disk_rests(const rp_keep *keep);
/* When the next try is due; INT64_MAX: none is waiting. */
int64_t rp_keep_disk_deadline_ns(const rp_keep *keep);
/* Call it after a write that failed with IO, whose text is rp_err_message(). `step`: where the run
 * stands. AGAIN, or OVER with errors IO: it has failed for ring.wait and 10 times, or ring.wait is
 * 0. errors IO */
rp_err rp_keep_disk_failed(rp_keep *keep, uint64_t step, rp_keep_outcome *out) RP_MUST_CHECK;
/* Tries to write identity.json, with what it has. */
bool rp_keep_disk_is_writable(const rp_keep *keep);

/* ---- loading --------------------------------------------------------------------------------- */

typedef enum {
    RP_KEEP_CHECKPOINT, /* weights, states, and what was in flight */
    RP_KEEP_WEIGHTS,    /* a weights file */
    RP_KEEP_INIT        /* what train.init takes from its file */
} rp_keep_source;

/* What the next load takes; `path` is borrowed, NULL: the boards' own weights by the seed. */
void rp_keep_load_from(rp_keep *keep, const char *path, rp_keep_source source);
/* .. what the run begins with: by the seed, or by train.init. The path is in `arena`. errors
 * MEMORY */
rp_err rp_keep_load_first(rp_keep *keep, rp_arena *arena) RP_MUST_CHECK;

/* Borrowed until the load is done or abandoned. */
typedef struct {
    const rp_plan *plan;          /* of the assignment */
    const rp_cut *cut;            /* of that plan */
    const rp_position *position;  /* of the checkpoint */
    rp_gain_estimator *estimator; /* gets the checkpoint's gains; NULL: no gains are measured */
    bool is_first;                /* no boards were loaded before in this life of the run */
} rp_keep_load_order;

/* errors of rp_checkpoint_open_reader() and rp_checkpoint_open_start() */
rp_err rp_keep_begin_load(rp_keep *keep, const rp_keep_load_order *order) RP_MUST_CHECK;
/* Sends what the links take. *fill_step: where the pipes were filled, once DONE. WAITS, OFFERED
 * (with an estimator), DONE. errors FORMAT, IO of the file; of the ring */
rp_err rp_keep_step_load(rp_keep *keep, uint64_t *fill_step, rp_keep_outcome *out) RP_MUST_CHECK;
/* Files are closed, memory is freed; also when it is done. Accepts one that never began. */
void rp_keep_abandon_load(rp_keep *keep);
/* Names the board that takes no message. errors TIMEOUT */
rp_err rp_keep_load_is_late(const rp_keep *keep) RP_MUST_CHECK;

/* ---- saving ---------------------------------------------------------------------------------- */

/* `plan` is borrowed until the save is abandoned, the rest until begin returns. */
typedef struct {
    const rp_plan *plan;
    const rp_position *position;
    const rp_gain_estimator *estimator; /* NULL: no gains are measured */
    bool is_result;                     /* the weights file is written, too */
} rp_keep_save_order;

/* Opens the files and asks the boards. WAITS; AGAIN: the files cannot be opened; OVER. While the
 * disk rests, and after AGAIN, no board is asked, and the first step gives AGAIN. errors MEMORY;
 * those of the ring; IO */
rp_err rp_keep_begin_save(rp_keep *keep, const rp_keep_save_order *order,
                          rp_keep_outcome *out) RP_MUST_CHECK;
/* WAITS, WHOLE, AGAIN. *not_finite: with WHOLE, a tensor with values that are not finite; or NULL.
 * errors PEER: another controller goes on with the run; FORMAT, IO */
rp_err rp_keep_step_save(rp_keep *keep, const char **not_finite,
                         rp_keep_outcome *out) RP_MUST_CHECK;
/* After WHOLE: the files appear. DONE, also with errors IO: the record failed after that; DAMAGED;
 * AGAIN, OVER. */
rp_err rp_keep_commit_save(rp_keep *keep, rp_keep_outcome *out) RP_MUST_CHECK;
/* Files that were not committed are gone; also when it is done. */
void rp_keep_abandon_save(rp_keep *keep);
/* Says how many boards are awaited. `waited_ns`: since something came. errors TIMEOUT */
rp_err rp_keep_save_is_late(const rp_keep *keep, int64_t waited_ns) RP_MUST_CHECK;

/* A board's messages in a save or a rescue. WAITS; AGAIN: the files are lost, what still comes is
 * taken and dropped; OVER. errors PEER: it sent something else than what it was asked for, or after
 * its end; LIMIT: more than the tensor has; IO */
rp_err rp_keep_on_tensor(rp_keep *keep, uint32_t board, const rp_message *message,
                         rp_keep_outcome *out) RP_MUST_CHECK;
rp_err rp_keep_on_in_flight(rp_keep *keep, uint32_t board, const rp_message *message,
                            rp_keep_outcome *out) RP_MUST_CHECK;
rp_err rp_keep_on_end(rp_keep *keep, uint32_t board) RP_MUST_CHECK;

#endif
