/* Checkpoints and weights: one safetensors file of the whole model, names independent of the cut.
 *
 *   checkpoint/step-0000000123.safetensors   weights, "optim.<state>.<name>", the method's sets
 *                                            ("replica.0.<name>", "older.<name>"), and metadata
 *   checkpoint/step-0000000123.flight        what is in flight there, for the same cut: so a run
 *                                            that resumes is the run that was never stopped
 *   checkpoint/step-0000000123.steer         horizon: measured: the prediction gains
 *   checkpoint/evaluated, validated          the step whose test or validation part was scored last
 *   weights.safetensors                      weights only
 * The suffixes `.flight` and `.steer` are part of the format: older programs wrote them. Metadata
 * of a checkpoint names its sidecar files (`flight`, `steer`: how the name ends, "" for none), so
 * that one which is missing is noticed; a checkpoint without these keys has the files that are
 * there. Every file appears whole or not at all, sidecar files before the checkpoint that names
 * them; the last two checkpoints are kept. Files only: what comes
 * from boards is handed to a writer piece by piece, what goes to them is asked of a reader. */
#ifndef RP_CHECKPOINT_CHECKPOINT_H
#define RP_CHECKPOINT_CHECKPOINT_H

#include "base/safetensors.h"
#include "checkpoint/position.h"
#include "planning/gain_estimator.h"

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct rp_checkpoint_writer rp_checkpoint_writer;

/* Everything is borrowed until open returns. */
typedef struct {
    const rp_runfile *run;
    const rp_plan *plan;
    const rp_position *position;
    const rp_applied *applied;          /* updates done, by stage of this plan */
    const uint64_t *in_flight_bytes;    /* [rp_plan_parts()]: of microbatches in flight */
    const rp_gain_estimator *estimator; /* NULL: no gains are measured */
    const char *folder;                 /* of the checkpoints; made when it is not there */
    const char *weights;                /* path of the weights file; NULL: no such file */
} rp_checkpoint_content;

/* errors IO: disk full, folder not writable: the old files are untouched */
rp_err rp_checkpoint_open_writer(rp_arena *arena, const rp_checkpoint_content *content,
                                 rp_checkpoint_writer **out) RP_MUST_CHECK;
/* Values of one tensor from element `first` on, sent by `stage`.
 * errors  PEER: the model has no such tensor, or it ends before; IO */
rp_err rp_checkpoint_write_tensor(rp_checkpoint_writer *writer, uint32_t stage, const char *name,
                                  uint64_t first, const void *data, size_t bytes) RP_MUST_CHECK;
/* Bytes of what a part of the ring (rp_plan_part_of) has in flight, from byte `first` on. errors
 * PEER: more than it said; IO */
rp_err rp_checkpoint_write_in_flight(rp_checkpoint_writer *writer, uint32_t part, uint64_t first,
                                     const void *data, size_t bytes) RP_MUST_CHECK;
/* The first tensor that a value of has come which is not finite; NULL: none. */
const char *rp_checkpoint_not_finite(const rp_checkpoint_writer *writer);
/* Now the files appear; older checkpoints than the last two go. With a value that is not finite
 * only the weights file does: such a checkpoint could not be resumed from, those that are there
 * can. errors IO */
rp_err rp_checkpoint_commit(rp_checkpoint_writer **writer) RP_MUST_CHECK;
/* What was written is gone; accepts NULL inside. */
void rp_checkpoint_abandon(rp_checkpoint_writer **writer);

/* ---- reading --------------------------------------------------------------------------------- */

/* Before anything is started: every tensor is there, of the right shape and finite; with `states`
 * every sidecar file is there, too. errors FORMAT naming file and tensor */
rp_err rp_checkpoint_check(const rp_runfile *run, const char *path, bool states) RP_MUST_CHECK;

/* The same for the file of `run->init`: what it takes is there. errors USAGE with the run file's
 * line: a name or pattern that fits nothing; FORMAT, IO */
rp_err rp_checkpoint_check_start(const rp_runfile *run) RP_MUST_CHECK;

enum { RP_CHECKPOINT_DAMAGE = 400 };

/* The newest checkpoint of a run folder that is whole: with its sidecar files, by their checksums;
 * *path NULL: there is none yet. `damaged`: why it is not the newest of all, or "". errors  FORMAT,
 * IO: there are some, and none is whole; USAGE when it was made with another seed, batch, model or
 * schedule, or lies behind the run's end */
rp_err rp_checkpoint_find(rp_arena *arena, const rp_runfile *run, const char *folder, char **path,
                          rp_position *position, char damaged[RP_CHECKPOINT_DAMAGE]) RP_MUST_CHECK;

/* Where the newest checkpoint stands, by its header, which has a checksum of its own: tensors and
 * sidecar files may be damaged. For boards that hold what it says, or newer. errors as above;
 * FORMAT also where there is none */
rp_err rp_checkpoint_find_place(rp_arena *arena, const rp_runfile *run, const char *folder,
                                rp_position *position) RP_MUST_CHECK;

typedef struct rp_checkpoint_reader rp_checkpoint_reader;

/* `position`: where the checkpoint was found; NULL: `path` is a weights file. Lives in `arena`. */
rp_err rp_checkpoint_open_reader(rp_arena *arena, const rp_runfile *run, const char *path,
                                 const rp_position *position,
                                 rp_checkpoint_reader **out) RP_MUST_CHECK;
/* The start weights: what `run->init` takes from its file. */
rp_err rp_checkpoint_open_start(rp_arena *arena, const rp_runfile *run,
                                rp_checkpoint_reader **out) RP_MUST_CHECK;
void rp_checkpoint_close_reader(rp_checkpoint_reader **reader); /* accepts NULL inside */

/* A tensor that a board is to hold; borrowed from the reader. */
typedef struct {
    const char *name;
    uint32_t layer; /* of the model: the stage that has it holds the tensor */
    const float *values;
    size_t count;
    bool is_evaluated; /* of the evaluated model: no state, and of no set of the method's */
} rp_checkpoint_tensor;
/* The next one, in the order of the file's list; *more false: that were all.
 * errors FORMAT naming file and tensor: missing, of another shape, not finite */
rp_err rp_checkpoint_next(rp_checkpoint_reader *reader, rp_checkpoint_tensor *out,
                          bool *more) RP_MUST_CHECK;

/* ---- the best model -------------------------------------------------------------------------- */

/* `checkpoint/best`: "STEP VALUE LAST SINCE END". Zeros: nothing was scored yet. */
typedef struct {
    uint64_t step; /* behind which the best evaluation was; its value */
    double value;
    uint64_t last;  /* the step of the last evaluation that counted */
    uint32_t since; /* evaluations without gain, up to that one */
    uint64_t end;   /* the step at which the run therefore ends; 0: it goes on */
} rp_checkpoint_best;
rp_err rp_checkpoint_mark_best(const char *folder, const rp_checkpoint_best *best) RP_MUST_CHECK;
/* Zeros where there is none, or it is damaged. */
void rp_checkpoint_read_best(const char *folder, rp_checkpoint_best *out);
/* The weights of the checkpoint of `step` as a weights file. errors IO, FORMAT */
rp_err rp_checkpoint_keep_best(const rp_runfile *run, const char *folder, uint64_t step,
                               const char *path) RP_MUST_CHECK;

/* ---- sidecar files --------------------------------------------------------------------------- */

typedef struct {
    const void *data;
    size_t bytes;
} rp_checkpoint_bytes;

/* Of a `.flight` file: borrowed from its reader. */
typedef struct {
    bool here;                 /* made on this cut; otherwise the rest is empty */
    uint64_t fill_step;        /* the step at which the pipes were filled */
    uint64_t end;              /* of the run as it was then; 0: the file does not say */
    rp_checkpoint_bytes *part; /* as rp_plan_part_of() has them */
} rp_in_flight;

/* `cut`: names of the stages' first layers; `parts`: of a ring like this (rp_plan_parts). errors
 * FORMAT naming `path` and what is wrong */
rp_err rp_checkpoint_read_in_flight(rp_arena *arena, const rp_st_reader *reader, const char *path,
                                    const char *cut, uint32_t parts, uint64_t step,
                                    rp_in_flight *out) RP_MUST_CHECK;
/* The in-flight state in the sidecar file of the checkpoint `path`. *usable: it has one, was made
 * on this cut, and the run's end, then or now, is not so near that other microbatches are in
 * flight. Otherwise the microbatches that were in flight are forwarded anew. `reader` lends the
 * bytes; close it. errors as rp_checkpoint_read_in_flight */
rp_err rp_checkpoint_open_in_flight(rp_arena *arena, const rp_plan *plan, const char *path,
                                    uint64_t step, rp_st_reader **reader, rp_in_flight *out,
                                    bool *usable) RP_MUST_CHECK;

/* errors FORMAT when it is not this model's, or holds gains that no estimator makes */
rp_err rp_checkpoint_read_gains(rp_arena *arena, const rp_st_reader *reader, const char *path,
                                rp_gain_estimator *estimator) RP_MUST_CHECK;
/* The prediction gains in the sidecar file of the checkpoint `path`. errors as
 * rp_checkpoint_read_gains */
rp_err rp_checkpoint_load_gains(const char *path, rp_gain_estimator *estimator) RP_MUST_CHECK;

#endif
