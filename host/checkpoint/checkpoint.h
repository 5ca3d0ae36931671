/* Checkpoints and weights: one safetensors file of the whole model, names independent of the cut.
 *
 *   checkpoint/step-0000000123.safetensors   weights, "optim.<state>.<name>", the method's sets
 *                                            ("replica.0.<name>", "older.<name>"), and metadata
 *   checkpoint/step-0000000123.flight        in-flight state for the same cut, so that a resumed
 *                                            run equals a run that was never stopped
 *   checkpoint/step-0000000123.steer         prediction gains, with `horizon: measured`
 *   checkpoint/evaluated, validated          last step that was scored on test or validation
 *   weights.safetensors                      weights only
 * The suffixes `.flight` and `.steer` are part of the format. Metadata of a checkpoint contains the
 * ends of the names of its sidecar files (`flight`, `steer`; "" for no file), so that a missing
 * file is noticed; a checkpoint without these keys uses the files that exist. Every file appears
 * complete or not at all, sidecar files before their checkpoint. The last two checkpoints are kept.
 * This room handles files only: data from boards are passed to a writer in pieces, data for boards
 * are taken from a reader. */
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
    const uint64_t *in_flight_bytes;    /* [rp_plan_parts()] sizes of in-flight state */
    const rp_gain_estimator *estimator; /* NULL: no gains are measured */
    const char *folder;                 /* of the checkpoints; it is made if missing */
    const char *weights;                /* path of the weights file; NULL: no weights file */
} rp_checkpoint_content;

/* Creates temporary files; existing files are not changed. errors IO: disk full, folder not
 * writable */
rp_err rp_checkpoint_open_writer(rp_arena *arena, const rp_checkpoint_content *content,
                                 rp_checkpoint_writer **out) RP_MUST_CHECK;
/* Writes values of one tensor from element `first` on, sent by `stage`.
 * errors  PEER: unknown tensor, or values after its end; IO */
rp_err rp_checkpoint_write_tensor(rp_checkpoint_writer *writer, uint32_t stage, const char *name,
                                  uint64_t first, const void *data, size_t bytes) RP_MUST_CHECK;
/* Writes in-flight state of a part of the ring (rp_plan_part_of), from byte `first` on. errors
 * PEER: more than was announced; IO */
rp_err rp_checkpoint_write_in_flight(rp_checkpoint_writer *writer, uint32_t part, uint64_t first,
                                     const void *data, size_t bytes) RP_MUST_CHECK;
/* Name of the first tensor with a value that is not finite; NULL: all values are finite. */
const char *rp_checkpoint_not_finite(const rp_checkpoint_writer *writer);
/* Makes the files appear, and removes all but the last two checkpoints. If a value is not finite
 * only the weights file appears, because no run could resume from the checkpoint; earlier ones are
 * kept. errors IO */
rp_err rp_checkpoint_commit(rp_checkpoint_writer **writer) RP_MUST_CHECK;
/* Deletes the temporary files; accepts NULL inside. */
void rp_checkpoint_abandon(rp_checkpoint_writer **writer);

/* ---- reading --------------------------------------------------------------------------------- */

/* Checks that every tensor exists, has the right shape and is finite; with `states` also that every
 * sidecar file exists. errors FORMAT naming file and tensor */
rp_err rp_checkpoint_check(const rp_runfile *run, const char *path, bool states) RP_MUST_CHECK;

/* A file of start weights with this key in its metadata also gives states of the optimiser, unless
 * `run->init` takes only a part of it. The value is the number of updates that they have seen. A
 * state that the file does not have starts as zeros. */
#define RP_CHECKPOINT_START_UPDATES "start_updates"

/* Checks that the file of `run->init` has all tensors that `run->init` takes. errors USAGE with the
 * run file's line: a name or pattern that matches nothing; FORMAT, IO */
rp_err rp_checkpoint_check_start(const rp_runfile *run) RP_MUST_CHECK;

enum { RP_CHECKPOINT_DAMAGE = 400 };

/* Finds the newest checkpoint of a folder of checkpoints that is complete and valid by checksums,
 * including its sidecar files. *path NULL: there is no checkpoint yet. `damaged`: why a newer one
 * is not used, or "". errors  FORMAT, IO: all checkpoints are damaged; USAGE: it was made with a
 * different seed, batch, model or schedule, or its step is after the end of the run */
rp_err rp_checkpoint_find(rp_arena *arena, const rp_runfile *run, const char *folder, char **path,
                          rp_position *position, char damaged[RP_CHECKPOINT_DAMAGE]) RP_MUST_CHECK;

/* Reads the position of the newest checkpoint from its header, which has its own checksum; tensors
 * and sidecar files may be damaged. For boards that hold this state, or newer state, themselves.
 * errors as rp_checkpoint_find(); FORMAT also if there is no checkpoint */
rp_err rp_checkpoint_find_place(rp_arena *arena, const rp_runfile *run, const char *folder,
                                rp_position *position) RP_MUST_CHECK;

typedef struct rp_checkpoint_reader rp_checkpoint_reader;

/* Opens a reader in `arena`. `position`: of the checkpoint; NULL: `path` is a weights file. errors
 * FORMAT, IO, MEMORY */
rp_err rp_checkpoint_open_reader(rp_arena *arena, const rp_runfile *run, const char *path,
                                 const rp_position *position,
                                 rp_checkpoint_reader **out) RP_MUST_CHECK;
/* Opens a reader of the start weights: the tensors that `run->init` takes from its file. */
rp_err rp_checkpoint_open_start(rp_arena *arena, const rp_runfile *run,
                                rp_checkpoint_reader **out) RP_MUST_CHECK;
/* Updates that the states of the start have seen; 0 for another file, or without states. */
uint64_t rp_checkpoint_start_updates(const rp_checkpoint_reader *reader);
void rp_checkpoint_close_reader(rp_checkpoint_reader **reader); /* accepts NULL inside */

/* A tensor for the boards that hold a layer with it; borrowed from the reader. */
typedef struct {
    const char *name;
    uint32_t param; /* of the model */
    const float *values;
    size_t count;
    bool is_evaluated; /* weights of the evaluated model; false: state of optimiser or method */
} rp_checkpoint_tensor;
/* Reads the next tensor; *more false: there are no further ones.
 * errors FORMAT naming file and tensor: missing, wrong shape, not finite */
rp_err rp_checkpoint_next(rp_checkpoint_reader *reader, rp_checkpoint_tensor *out,
                          bool *more) RP_MUST_CHECK;

/* ---- the best model -------------------------------------------------------------------------- */

/* The note `checkpoint/best`: "STEP VALUE LAST SINCE END". All zeros: no evaluation yet. */
typedef struct {
    uint64_t step;  /* number of steps done at the best evaluation */
    double value;   /* its accuracy or loss */
    uint64_t last;  /* step of the last evaluation */
    uint32_t since; /* consecutive evaluations without improvement, up to the last */
    uint64_t end;   /* step at which the run ends for that reason; 0: it continues */
} rp_checkpoint_best;
rp_err rp_checkpoint_mark_best(const char *folder, const rp_checkpoint_best *best) RP_MUST_CHECK;
/* Zeros if the note is missing or damaged. */
void rp_checkpoint_read_best(const char *folder, rp_checkpoint_best *out);
/* Copies the weights of the checkpoint of `step` to a weights file. errors IO, FORMAT */
rp_err rp_checkpoint_keep_best(const rp_runfile *run, const char *folder, uint64_t step,
                               const char *path) RP_MUST_CHECK;

/* ---- sidecar files --------------------------------------------------------------------------- */

typedef struct {
    const void *data;
    size_t bytes;
} rp_checkpoint_bytes;

/* Content of a `.flight` file, borrowed from its reader. */
typedef struct {
    bool here;                 /* made on this cut; false: all further fields are empty */
    uint64_t fill_step;        /* step at which the pipes were filled */
    uint64_t end;              /* last step of the run when it was made; 0: unknown */
    rp_checkpoint_bytes *part; /* by part of the ring (rp_plan_part_of) */
} rp_in_flight;

/* Reads a `.flight` file. `cut`: names of the stages' first layers; `parts`: rp_plan_parts() of
 * this ring. errors FORMAT naming `path` and the problem */
rp_err rp_checkpoint_read_in_flight(rp_arena *arena, const rp_st_reader *reader, const char *path,
                                    const char *cut, uint32_t parts, uint64_t step,
                                    rp_in_flight *out) RP_MUST_CHECK;
/* Opens the in-flight state of the checkpoint `path`. *usable: it exists, was made on this cut, and
 * neither the former nor the present end of the run is so near that the set of microbatches in
 * flight differs. If it is not usable these microbatches are forwarded again. *out borrows from
 * *reader, which the caller closes. errors as rp_checkpoint_read_in_flight() */
rp_err rp_checkpoint_open_in_flight(rp_arena *arena, const rp_plan *plan, const char *path,
                                    uint64_t step, rp_st_reader **reader, rp_in_flight *out,
                                    bool *usable) RP_MUST_CHECK;

/* Reads a `.steer` file. errors FORMAT: of a different model, or invalid gains */
rp_err rp_checkpoint_read_gains(rp_arena *arena, const rp_st_reader *reader, const char *path,
                                rp_gain_estimator *estimator) RP_MUST_CHECK;
/* Reads the prediction gains of the checkpoint `path`. errors as rp_checkpoint_read_gains() */
rp_err rp_checkpoint_load_gains(const char *path, rp_gain_estimator *estimator) RP_MUST_CHECK;

#endif
