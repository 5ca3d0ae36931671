/* A stage: the bookkeeping of the layers of one board, over an executor that computes.
 *
 * Runs one op of a schedule at a time: says which version of the weights it sees, which slot its
 * microbatch lies in, what is copied, predicted or averaged around it, and issues the commands.
 * Nothing here waits for the executor; the caller takes a mark behind an op. Knows no device and no
 * socket. */
#ifndef RP_STAGE_STAGE_H
#define RP_STAGE_STAGE_H

#include "stage/executor.h"

typedef struct rp_stage rp_stage;

/* Has the executor plan and take all memory, warms it up (one dry step) and starts the weights from
 * the seed. May take seconds where kernels must be built. `site` is borrowed.
 * errors  as the executor's prepare */
rp_err rp_stage_prepare(rp_arena *arena, const rp_executor_kind *kind, const rp_site *site,
                        const rp_job *job, rp_stage **out) RP_MUST_CHECK;
void rp_stage_destroy(rp_stage **stage); /* drains the executor first */
const rp_layout *rp_stage_layout(const rp_stage *stage);
rp_executor *rp_stage_executor(rp_stage *stage);
rp_executor_facts rp_stage_facts(const rp_stage *stage);

/* A mark behind all ops issued so far. Host memory that an op was given is borrowed until the mark
 * has passed. Every mark must be released. end_ns: when it passed, by the executor's clock. */
rp_err rp_stage_mark(rp_stage *stage, rp_mark *out) RP_MUST_CHECK;
rp_err rp_stage_poll(rp_stage *stage, const rp_mark *mark, bool *done,
                     int64_t *end_ns) RP_MUST_CHECK;
void rp_stage_release(rp_stage *stage, rp_mark *mark);
rp_err rp_stage_drain(rp_stage *stage) RP_MUST_CHECK;

/* Begins at `step` with empty pipes. Prepare does it with the job's first step. */
void rp_stage_start(rp_stage *stage, uint64_t step);
/* Pipes drain in front of `step`, which has had no forward here. */
void rp_stage_end(rp_stage *stage, uint64_t step);

/* Forward of op->samples into a free slot. Training ops come in the order of the schedule, and see
 * the weights that the job's method says. in: parcels that together have every sample of the op
 * once, with the tensors of the lower boundary; out[i]: host memory for all of the op's samples of
 * tensor i of the upper one. Both borrowed until the mark. errors PEER when the pieces do not fit
 */
rp_err rp_stage_forward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                        uint32_t in_count, void *const *out) RP_MUST_CHECK;
/* The same with the model that is evaluated, between training ops; `training`: as in training, to
 * renew batch statistics: step 0 begins them anew. */
rp_err rp_stage_forward_only(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                             uint32_t in_count, void *const *out, bool training) RP_MUST_CHECK;

/* Last stage: loss of the samples that the last forward of this range computed; no gradient. Frees
 * the slot. Part 0 of the pieces: targets, int32 classes or f32 rows. */
rp_err rp_stage_evaluate(rp_stage *stage, const rp_op *op, uint32_t step_samples,
                         const rp_stage_piece *target, uint32_t target_count) RP_MUST_CHECK;
/* Other stages: frees the slot of an evaluation's forward. */
void rp_stage_forget(rp_stage *stage, const rp_op *op);

/* BACKWARD, BACKWARD_INPUT or BACKWARD_WEIGHT of a range whose forward has run. in: parts are the
 * gradients of the upper boundary (those tensors that want one), on the last stage part 0 is the
 * targets; none for BACKWARD_WEIGHT. out[i]: host memory for the gradients of the lower boundary.
 * errors as rp_stage_forward() */
rp_err rp_stage_backward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                         uint32_t in_count, void *const *out) RP_MUST_CHECK;

/* A backward or an update ended a probe: its sums of squares, of the error, of the stale error and
 * of the prediction, each by trained parameter, into host floats (RP_PROBE_NORMS * norm_count,
 * borrowed until the mark). */
typedef struct {
    uint64_t step;             /* whose forward it was */
    uint32_t staleness, ahead; /* own updates that lay between, updates that were predicted */
    uint64_t effect;           /* the first step whose forward uses the gain from this probe */
} rp_stage_probe;
bool rp_stage_probe_done(const rp_stage *stage);
/* A probe whose backward has run waits for a later update. */
bool rp_stage_probe_waits(const rp_stage *stage);
rp_err rp_stage_probe_read(rp_stage *stage, float *out, rp_stage_probe *about) RP_MUST_CHECK;

/* horizon: measured. The share of its prediction that each trained parameter gets, in effect from
 * the forward of `step` on; 1 before the first. errors PEER when the count is wrong */
rp_err rp_stage_set_gain(rp_stage *stage, uint64_t step, const double *gain,
                         size_t count) RP_MUST_CHECK;
/* Whether the op's forward must wait: the gain from the probe before the last has not come. */
bool rp_stage_gain_missing(const rp_stage *stage, const rp_op *op);

/* After the step's last backward: sum of squares of every trained parameter's gradient, in the
 * order of the model, into host floats (borrowed until the mark). */
uint32_t rp_stage_norm_count(const rp_stage *stage);
rp_err rp_stage_norms(rp_stage *stage, float *out) RP_MUST_CHECK;

/* Between the boards of a split stage (job->role). Behind a forward: what it has saved leaves its
 * slot. Ahead of a backward: it comes into one. rp_stage_stash_bytes() each. Behind an update: what
 * it publishes, the newest weights, or these moved to where the backwards of the forwards that see
 * them will find them (METHODS 12.5); ahead of the first of these forwards it comes:
 * layout->gradient_bytes. Memory is borrowed until the mark. */
size_t rp_stage_stash_bytes(const rp_stage *stage);
rp_err rp_stage_read_stash(rp_stage *stage, const rp_op *op, void *out) RP_MUST_CHECK;
rp_err rp_stage_write_stash(rp_stage *stage, const rp_op *op, const void *from) RP_MUST_CHECK;
rp_err rp_stage_read_newest(rp_stage *stage, void *out) RP_MUST_CHECK;
rp_err rp_stage_read_published(rp_stage *stage, void *out) RP_MUST_CHECK;
rp_err rp_stage_write_newest(rp_stage *stage, const void *from) RP_MUST_CHECK;

/* Between boards that share the stage, behind a step's last backward here: this board's gradient to
 * host memory (layout->gradient_bytes), and then the sum of those of all boards in its place, added
 * from first to last. Memory is borrowed until the mark, but not the row of pointers. */
rp_err rp_stage_read_gradient(rp_stage *stage, void *out) RP_MUST_CHECK;
rp_err rp_stage_sum_gradients(rp_stage *stage, const void *const *gradient,
                              uint32_t count) RP_MUST_CHECK;

/* Optimiser step of an UPDATE op with gradients times grad_scale, and the average behind it;
 * `skip`: the step changes nothing: gradients are dropped, running statistics are restored. */
rp_err rp_stage_update(rp_stage *stage, const rp_op *op, float grad_scale, bool skip) RP_MUST_CHECK;

/* Per-sample (loss, correct) pairs of the step, into host floats (2 * samples). */
rp_err rp_stage_results(rp_stage *stage, float *out, uint32_t samples) RP_MUST_CHECK;

/* Mean time of the stage's layers for an op over `repeats` runs of it, without the copies to and
 * from the host; `samples` of a microbatch at most. From the host's start to the executor's end, or
 * as the executor says without having worked for so long. Halves of a backward only where the
 * schedule splits them. Blocks; leaves weights and gradients as garbage. */
rp_err rp_stage_time_op(rp_stage *stage, rp_op_kind kind, uint32_t samples, uint32_t repeats,
                        double *seconds) RP_MUST_CHECK;
/* Issues the same once; the caller takes a mark behind it. */
rp_err rp_stage_try_op(rp_stage *stage, rp_op_kind kind, uint32_t samples) RP_MUST_CHECK;
/* Mean time of the stage's layers over `repeats` runs of a full microbatch, without the copies to
 * and from the host: the planner's costs. Blocks; leaves weights and gradients as garbage. */
rp_err rp_stage_time(rp_stage *stage, uint32_t repeats, double *forward_s,
                     double *backward_s) RP_MUST_CHECK;

/* Optimiser steps applied by replica (skipped ones not counted): Adam's t; part of a checkpoint. */
uint32_t rp_stage_replicas(const rp_stage *stage);
uint64_t rp_stage_applied(const rp_stage *stage, uint32_t replica);
void rp_stage_set_applied(rp_stage *stage, uint32_t replica, uint64_t applied);

/* What microbatches in flight need besides the exported tensors, as a run of bytes (a multiple of
 * 4) that fits this job on this cut only. Blocking, between segments. */
size_t rp_stage_in_flight_bytes(const rp_stage *stage);
rp_err rp_stage_in_flight_read(rp_stage *stage, size_t first, size_t count,
                               void *out) RP_MUST_CHECK;
rp_err rp_stage_in_flight_write(rp_stage *stage, size_t first, size_t count,
                                const void *bytes) RP_MUST_CHECK;
/* The bookkeeping as it is behind the update before `step` in a run whose pipes were filled at step
 * `fill_step`. */
void rp_stage_resume(rp_stage *stage, uint64_t fill_step, uint64_t step);

/* Most own updates between a forward and its backward so far. */
uint32_t rp_stage_staleness_max(const rp_stage *stage);

/* What the codecs of activations [0] and gradients [1] have lost of what this stage sent in
 * training, of some of its samples, since the last call. Blocking, between segments. */
rp_err rp_stage_take_losses(rp_stage *stage, rp_codec_loss out[2]) RP_MUST_CHECK;

/* Exported tensors: "<layer>.weight", ... of the model that is evaluated; with `states` also what
 * a checkpoint needs: "<set prefix><layer>.weight" (sched/method.h) and, behind the prefix of a
 * replica if there is one, "optim.<state>.<layer>.weight". Blocking copies, between segments. */
uint32_t rp_stage_tensor_count(const rp_stage *stage, bool states);
/* Of a stage whose forward and backward are on two boards each tensor is saved by one of them:
 * running statistics where the forward is, all else where the update is. */
bool rp_stage_tensor_is_saved(const rp_stage *stage, uint32_t index);
rp_err rp_stage_tensor_at(const rp_stage *stage, uint32_t index, char *name, size_t name_bytes,
                          rp_shape *shape) RP_MUST_CHECK;
rp_err rp_stage_tensor_read(rp_stage *stage, uint32_t index, size_t first, size_t count,
                            float *out) RP_MUST_CHECK;
/* errors USAGE: no such tensor here; SHAPE: outside it */
rp_err rp_stage_tensor_write(rp_stage *stage, const char *name, size_t first, size_t count,
                             const float *values) RP_MUST_CHECK;

#endif
