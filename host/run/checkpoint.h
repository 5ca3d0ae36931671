/* Checkpoints and weights: one safetensors file of the whole model, names independent of the cut.
 *
 *   checkpoint/step-0000000123.safetensors   weights, "optim.<state>.<name>", the method's sets
 *                                            ("replica.0.<name>", "older.<name>"), and metadata
 *   checkpoint/step-0000000123.flight        what is in flight there, for the same cut: so a run
 *                                            that resumes is the run that was never stopped
 *   checkpoint/step-0000000123.steer         horizon: measured: the trust in predictions
 *   checkpoint/evaluated                     the step that was evaluated last
 *   weights.safetensors                      weights only
 * Both appear whole or not at all; the last two checkpoints are kept. */
#ifndef RP_RUN_CHECKPOINT_H
#define RP_RUN_CHECKPOINT_H

#include "base/safetensors.h"
#include "run/ring.h"
#include "run/steer.h"

/* Fetches every tensor from the ring and writes a checkpoint, and the weights unless their path is
 * NULL. `steer` may be NULL. errors IO: disk full, folder not writable: the old files are untouched
 */
rp_err rp_checkpoint_save(rp_ring *ring, const rp_cut *cut, const rp_steer *steer,
                          const rp_position *position, const char *checkpoint_folder,
                          const char *weights_path) RP_MUST_CHECK;
/* One message of a save; the controller hands TENSOR and TENSORS_END on. */
rp_err rp_checkpoint_message(rp_ring *ring, uint32_t stage,
                             const rp_message *message) RP_MUST_CHECK;

/* The newest checkpoint of a run folder; *path NULL: there is none yet.
 * errors  FORMAT; USAGE when it was made with another seed, batch, model or schedule, or lies
 *         behind the run's end */
rp_err rp_checkpoint_find(rp_arena *arena, const rp_runfile *run, const char *folder, char **path,
                          rp_position *position) RP_MUST_CHECK;
/* Notes beside the checkpoints the evaluation done at position->step, and what it gave. */
rp_err rp_checkpoint_mark_evaluated(const char *folder, const rp_position *position) RP_MUST_CHECK;

/* The metadata `applied` of the checkpoint `path` at `step`: "a,b;c,d", updates by replica, stage
 * by stage. errors FORMAT when no run of this method can have written it */
rp_err rp_checkpoint_read_applied(const char *text, const char *path, const rp_method *method,
                                  uint64_t step, rp_applied *out) RP_MUST_CHECK;

/* ---- what lies beside a checkpoint ----------------------------------------------------------- */

/* Of a `.flight` file: borrowed from its reader. */
typedef struct {
    bool here;     /* made on this cut; otherwise the rest is empty */
    uint64_t fill; /* the step at which the pipes were filled */
    uint64_t end;  /* of the run as it was then; 0: the file does not say */
    rp_part stage[RP_CUT_STAGES_MAX];
} rp_flight;

/* `cut`: names of the `stages` stages' first layers. errors FORMAT naming `path` and what is wrong
 */
rp_err rp_checkpoint_read_flight(const rp_st_reader *reader, const char *path, const char *cut,
                                 uint32_t stages, uint64_t step, rp_flight *out) RP_MUST_CHECK;
/* errors FORMAT when it is not this model's, or no trust that steering could have made */
rp_err rp_checkpoint_read_steer(rp_arena *arena, const rp_st_reader *reader, const char *path,
                                rp_steer *steer) RP_MUST_CHECK;

/* The trust in predictions beside the checkpoint `path`. errors as rp_checkpoint_read_steer */
rp_err rp_checkpoint_load_steer(const char *path, rp_steer *steer) RP_MUST_CHECK;
/* Sends what was in flight beside the checkpoint `path`, when it was made on this cut and the run's
 * end, then or now, is not so near that other microbatches are in flight: *fill is then the step at
 * which those pipes were filled. Otherwise, and when there is none, *fill = `step`, and the
 * microbatches that were in flight are forwarded anew. errors as rp_checkpoint_read_flight */
rp_err rp_checkpoint_load_flight(rp_ring *ring, const rp_cut *cut, const char *path, uint64_t step,
                                 uint64_t *fill) RP_MUST_CHECK;
/* Sends the tensors of a checkpoint, found at `position`, to the boards that hold them; NULL: those
 * of a weights file. errors FORMAT naming file and tensor: missing, of another shape, not finite */
rp_err rp_checkpoint_load(rp_ring *ring, const rp_cut *cut, const char *path,
                          const rp_position *position) RP_MUST_CHECK;
/* The same check without a ring, before anything is started. */
rp_err rp_checkpoint_check(const rp_runfile *run, const char *path, bool states) RP_MUST_CHECK;

#endif
