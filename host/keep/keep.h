/* Saves and restores a run: loads a checkpoint into the boards, saves their state, and retries
 * failed writes to the run folder. `copies.h`: copies that boards keep for each other;
 * `adoption.h`: state of boards that have lost their controller.
 *
 * The controller decides when something begins, and steps it. Nothing here blocks or changes a
 * state of the controller; outcomes tell it what happened. */
#ifndef RP_KEEP_KEEP_H
#define RP_KEEP_KEEP_H

#include "checkpoint/checkpoint.h"
#include "folder/folder.h"
#include "ring/ring.h"

typedef struct rp_keep rp_keep;

/* All pointers are borrowed until rp_keep_close(). */
typedef struct {
    const rp_runfile *run;
    rp_ring *ring;
    const rp_folder *folder; /* its record is opened before the first load or save */
    const char *executor;    /* executor of the boards; NULL: opencl */
    bool resumes;            /* a training run is resumed, so boards may still hold its state */
} rp_keep_needs;

/* Outcome of a step of a load, save or rescue. Each function lists those that it returns. */
typedef enum {
    RP_KEEP_WAITS,   /* waiting for boards, for room in links, or for the disk: step it again */
    RP_KEEP_OFFERED, /* the boards have their tensors, and gains were read: send them the gains,
                        then step it again */
    RP_KEEP_WHOLE,   /* everything requested from the boards has arrived: commit it */
    RP_KEEP_AGAIN,   /* the disk has failed: restart once rp_keep_disk_rests() is false */
    RP_KEEP_DONE,
    RP_KEEP_DAMAGED, /* the boards' state is lost or not finite: no checkpoint is made */
    RP_KEEP_OVER     /* with error IO: the disk has failed for too long, so the run stops */
} rp_keep_outcome;

/* Allocates the room in `arena`. errors MEMORY */
rp_err rp_keep_open(rp_arena *arena, const rp_keep_needs *needs, rp_keep **out) RP_MUST_CHECK;
/* Frees copies and the state of an adoption. Loads and saves must be finished or abandoned. */
void rp_keep_close(rp_keep *keep);

/* ---- what is saved --------------------------------------------------------------------------- */

/* The boards have a state that is in no checkpoint. */
bool rp_keep_is_unsaved(const rp_keep *keep);
void rp_keep_note_unsaved(rp_keep *keep, bool is_unsaved);
/* Step of the newest checkpoint; 0: none. */
uint64_t rp_keep_saved_step(const rp_keep *keep);
/* The run starts at the checkpoint of `step`, or at step 0 without one. */
void rp_keep_note_start(rp_keep *keep, uint64_t step);
/* The run goes back to `step`; earlier histograms stay valid. */
void rp_keep_note_return(rp_keep *keep, uint64_t step);
/* rp_checkpoint_find() in the run folder; rp_keep_damage() then tells why it is not the newest
 * checkpoint. errors of rp_checkpoint_find() */
rp_err rp_keep_find(rp_keep *keep, rp_arena *arena, char **path,
                    rp_position *position) RP_MUST_CHECK;
/* A run can only go back to its newest checkpoint. errors FORMAT: the checkpoint that was found, of
 * `step`, is a different one */
rp_err rp_keep_check_step(const rp_keep *keep, uint64_t step) RP_MUST_CHECK;
const char *rp_keep_damage(const rp_keep *keep); /* why the newest checkpoint is damaged, or "" */
/* Logs that the run continues from the checkpoint of `step` because the newest one is damaged.
 * errors IO */
rp_err rp_keep_say_damage(const rp_keep *keep, uint64_t step) RP_MUST_CHECK;

/* ---- updates done ---------------------------------------------------------------------------- */

/* Number of update counts that a board reports: one for each replica of its only stage, or one for
 * each of its stages. */
uint32_t rp_keep_applied_count(const rp_plan *plan, uint32_t board);

/* ---- the disk -------------------------------------------------------------------------------- */

/* A write has just failed, so it is too early for a retry. */
bool rp_keep_disk_rests(const rp_keep *keep);
/* When the next retry is due; INT64_MAX: no retry is pending. */
int64_t rp_keep_disk_deadline_ns(const rp_keep *keep);
/* Call it after a write failed with IO; its text is rp_err_message(). `step`: current step of the
 * run. AGAIN; or OVER with errors IO: writes have failed for ring.wait and 10 times, or ring.wait
 * is 0. errors IO */
rp_err rp_keep_disk_failed(rp_keep *keep, uint64_t step, rp_keep_outcome *out) RP_MUST_CHECK;
/* Tests whether the disk is writable, by rewriting identity.json unchanged. */
bool rp_keep_disk_is_writable(const rp_keep *keep);

/* ---- loading --------------------------------------------------------------------------------- */

typedef enum {
    RP_KEEP_CHECKPOINT, /* weights, optimiser states, in-flight microbatches */
    RP_KEEP_WEIGHTS,    /* a weights file */
    RP_KEEP_INIT        /* the tensors that train.init takes from its file */
} rp_keep_source;

/* Sets what the next load reads; `path` is borrowed, NULL: boards initialise their weights by the
 * seed. */
void rp_keep_load_from(rp_keep *keep, const char *path, rp_keep_source source);
/* Like _load_from, with the start of the run: the seed, or train.init. The path is in `arena`.
 * errors MEMORY */
rp_err rp_keep_load_first(rp_keep *keep, rp_arena *arena) RP_MUST_CHECK;

/* Borrowed until the load is done or abandoned. */
typedef struct {
    const rp_plan *plan;          /* plan of the assignment */
    const rp_cut *cut;            /* cut of that plan */
    const rp_position *position;  /* position of the checkpoint */
    rp_gain_estimator *estimator; /* receives the checkpoint's gains; NULL: none are measured */
    bool is_first;                /* no boards were loaded before in this life of the run */
} rp_keep_load_order;

/* errors of rp_checkpoint_open_reader() and rp_checkpoint_open_start() */
rp_err rp_keep_begin_load(rp_keep *keep, const rp_keep_load_order *order) RP_MUST_CHECK;
/* Sends what the links take. *fill_step: step at which the pipes were filled, with DONE. WAITS,
 * OFFERED (with an estimator), DONE. errors FORMAT, IO of the file; of the ring */
rp_err rp_keep_step_load(rp_keep *keep, uint64_t *fill_step, rp_keep_outcome *out) RP_MUST_CHECK;
/* Closes files and frees memory; call it also after DONE. Does nothing if no load began. */
void rp_keep_abandon_load(rp_keep *keep);
/* Names the board with a full link. errors TIMEOUT */
rp_err rp_keep_load_is_late(const rp_keep *keep) RP_MUST_CHECK;

/* ---- saving ---------------------------------------------------------------------------------- */

/* `plan` is borrowed until the save is abandoned, other members only until rp_keep_begin_save()
 * returns. */
typedef struct {
    const rp_plan *plan;
    const rp_position *position;
    const rp_gain_estimator *estimator; /* NULL: no gains are measured */
    bool is_result;                     /* also write the weights file */
} rp_keep_save_order;

/* Opens the files and asks the boards for their tensors. WAITS; AGAIN: the files cannot be opened;
 * OVER. While the disk rests, and after AGAIN, no board is asked, and the first step returns AGAIN.
 * errors MEMORY; of the ring; IO */
rp_err rp_keep_begin_save(rp_keep *keep, const rp_keep_save_order *order,
                          rp_keep_outcome *out) RP_MUST_CHECK;
/* WAITS, WHOLE, AGAIN. *not_finite: with WHOLE, a tensor with values that are not finite, or NULL.
 * errors PEER: another controller has taken over the run; FORMAT, IO */
rp_err rp_keep_step_save(rp_keep *keep, const char **not_finite,
                         rp_keep_outcome *out) RP_MUST_CHECK;
/* After WHOLE: makes the files visible. DONE, also with errors IO of the record; DAMAGED; AGAIN,
 * OVER. */
rp_err rp_keep_commit_save(rp_keep *keep, rp_keep_outcome *out) RP_MUST_CHECK;
/* Removes files that were not committed; call it also after DONE. */
void rp_keep_abandon_save(rp_keep *keep);
/* Reports how many boards have not sent everything. `waited_ns`: since the last message. errors
 * TIMEOUT */
rp_err rp_keep_save_is_late(const rp_keep *keep, int64_t waited_ns) RP_MUST_CHECK;

/* Takes a board's messages during a save or a rescue. WAITS; AGAIN: the files are lost, and later
 * messages are dropped; OVER. errors PEER: an unexpected message, or one after the end; LIMIT: more
 * data than the tensor has; IO */
rp_err rp_keep_on_tensor(rp_keep *keep, uint32_t board, const rp_message *message,
                         rp_keep_outcome *out) RP_MUST_CHECK;
rp_err rp_keep_on_in_flight(rp_keep *keep, uint32_t board, const rp_message *message,
                            rp_keep_outcome *out) RP_MUST_CHECK;
rp_err rp_keep_on_end(rp_keep *keep, uint32_t board) RP_MUST_CHECK;

#endif
