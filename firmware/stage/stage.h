/* A stage: the bookkeeping for the layers of one board, on top of an executor that computes.
 *
 * A stage runs one op of a schedule at a time. It determines which version of the weights the op
 * sees and which slot holds its microbatch, and it issues commands to the executor: copies,
 * predictions, the layers, averages. Nothing here waits for the executor, unless a function says
 * "blocks"; the caller takes a mark after an op and polls it. This room knows no device and no
 * socket. */
#ifndef RP_STAGE_STAGE_H
#define RP_STAGE_STAGE_H

#include "stage/executor.h"

typedef struct rp_stage rp_stage;

/* Opens a stage: the executor plans and allocates all memory and runs one dry step, which builds
 * its kernels; then the weights are initialised from the job's seed. Blocks, for seconds if kernels
 * must be compiled. `site` is borrowed until rp_stage_destroy(). errors  those of the executor's
 * prepare */
rp_err rp_stage_prepare(rp_arena *arena, const rp_executor_kind *kind, const rp_site *site,
                        const rp_job *job, rp_stage **out) RP_MUST_CHECK;
void rp_stage_destroy(rp_stage **stage); /* drains the executor first */
const rp_layout *rp_stage_layout(const rp_stage *stage);
rp_executor *rp_stage_executor(rp_stage *stage);
rp_executor_facts rp_stage_facts(const rp_stage *stage);

/* A mark is a point after all ops issued so far. Host memory that is given to an op is borrowed
 * until a mark after the op has passed. Every mark must be released. *end_ns: when it passed, by
 * the executor's clock. */
rp_err rp_stage_mark(rp_stage *stage, rp_mark *out) RP_MUST_CHECK;
rp_err rp_stage_poll(rp_stage *stage, const rp_mark *mark, bool *done,
                     int64_t *end_ns) RP_MUST_CHECK;
void rp_stage_release(rp_stage *stage, rp_mark *mark);
rp_err rp_stage_drain(rp_stage *stage) RP_MUST_CHECK;

/* Starts at `step` with empty pipes. Prepare does this for the job's first step. */
void rp_stage_start(rp_stage *stage, uint64_t step);
/* Ends the op list before `step`, so that the pipes drain; no forward of `step` may have run here.
 */
void rp_stage_end(rp_stage *stage, uint64_t step);

/* Forward of op->samples into a free slot. Training ops must come in the schedule's order; each
 * sees the weights that the job's method prescribes.
 *   in      parcels with the tensors of the lower boundary; together they contain every sample of
 *           the op exactly once
 *   out[i]  host memory for tensor i of the upper boundary, all samples of the op
 * Both are borrowed until the mark. errors PEER if a sample is missing or repeated */
rp_err rp_stage_forward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                        uint32_t in_count, void *const *out) RP_MUST_CHECK;
/* Forward between training ops, with the weights that are evaluated. training: layers behave as in
 * training, to recompute batch statistics from data; microbatch 0 of step 0 resets them. */
rp_err rp_stage_forward_only(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                             uint32_t in_count, void *const *out, bool training) RP_MUST_CHECK;

/* Last stage: loss of the samples of an rp_stage_forward_only(), without gradients; frees its slot.
 * Part 0 of each piece holds the targets: int32 classes, or rows of f32. */
rp_err rp_stage_evaluate(rp_stage *stage, const rp_op *op, uint32_t step_samples,
                         const rp_stage_piece *target, uint32_t target_count) RP_MUST_CHECK;
/* Other stages: frees the slot of an rp_stage_forward_only(). */
void rp_stage_forget(rp_stage *stage, const rp_op *op);

/* BACKWARD, BACKWARD_INPUT or BACKWARD_WEIGHT of a range whose forward has run.
 *   in      parts are the gradients of the upper boundary, of those tensors that need one; on the
 *           last stage part 0 holds the targets; unused for BACKWARD_WEIGHT
 *   out[i]  host memory for the gradients of the lower boundary
 * errors  as rp_stage_forward(); USAGE if the op has only a part of its forward's samples and a
 * layer needs all of them */
rp_err rp_stage_backward(rp_stage *stage, const rp_op *op, const rp_stage_piece *in,
                         uint32_t in_count, void *const *out) RP_MUST_CHECK;

/* Tokens of a sample in the step of an op whose forward has run, and whose slot is in use; see
 * rp_model_view. */
uint32_t rp_stage_time_of(const rp_stage *stage, const rp_op *op);

/* A prediction-error sample ("probe") that a backward or an update has completed.
 * rp_stage_probe_read() writes three rows of sums of squares (prediction error, stale error,
 * prediction; stage/probe.c) with one value for each trained parameter: RP_PROBE_NORMS *
 * rp_stage_norm_count() floats in host memory, borrowed until the mark. */
typedef struct {
    uint64_t step; /* the step whose forward was sampled */
    /* own updates between that forward and its backward; updates that were predicted */
    uint32_t staleness, ahead;
    uint64_t effect; /* the first step whose forward uses the gains that result from this sample */
} rp_stage_probe;
bool rp_stage_probe_done(const rp_stage *stage);
/* Whether a sample whose backward has run still waits for an update. */
bool rp_stage_probe_waits(const rp_stage *stage);
rp_err rp_stage_probe_read(rp_stage *stage, float *out, rp_stage_probe *about) RP_MUST_CHECK;

/* `horizon: measured`: sets the prediction gain of each trained parameter, a factor from 0 to 1,
 * from the forward of `step` on. All gains are 1 before the first call. Values outside 0..1 and NaN
 * become 0. errors PEER if `count` is not the number of trained parameters */
rp_err rp_stage_set_gain(rp_stage *stage, uint64_t step, const double *gain,
                         size_t count) RP_MUST_CHECK;
/* Whether the op's forward must wait, because the gains that take effect at its step have not
 * arrived. */
bool rp_stage_gain_missing(const rp_stage *stage, const rp_op *op);

/* After the last backward of a step: the sum of squares of every trained parameter's gradient, in
 * the order of the model, into rp_stage_norm_count() host floats, borrowed until the mark. */
uint32_t rp_stage_norm_count(const rp_stage *stage);
rp_err rp_stage_norms(rp_stage *stage, float *out) RP_MUST_CHECK;

/* Exchange between the two boards of a split stage (job->role). All memory is borrowed until the
 * mark.
 *   read_stash      after a forward: copies what it saved to the host and frees its slot
 *   write_stash     before a backward: copies that into a slot; both have rp_stage_stash_bytes().
 *                   time: tokens of a sample, see rp_model_view
 *   read_newest     the newest weights, layout->gradient_bytes as the next two
 *   read_published  after an update: the weights to publish. They are the newest, moved to where
 *                   the backwards of the forwards that see them will find them (METHODS 12.5)
 *   write_newest    before the first forward that sees them: stores published weights */
size_t rp_stage_stash_bytes(const rp_stage *stage);
rp_err rp_stage_read_stash(rp_stage *stage, const rp_op *op, void *out) RP_MUST_CHECK;
rp_err rp_stage_write_stash(rp_stage *stage, const rp_op *op, uint32_t time,
                            const void *from) RP_MUST_CHECK;
rp_err rp_stage_read_newest(rp_stage *stage, void *out) RP_MUST_CHECK;
rp_err rp_stage_read_published(rp_stage *stage, void *out) RP_MUST_CHECK;
rp_err rp_stage_write_newest(rp_stage *stage, const void *from) RP_MUST_CHECK;

/* Exchange between boards that share the stage, after the last backward of a step here. The first
 * function copies this board's gradient to host memory (layout->gradient_bytes). The second one
 * replaces it by the sum of the gradients of all boards, added from first to last. Memory is
 * borrowed until the mark, but the array of pointers only during the call. */
rp_err rp_stage_read_gradient(rp_stage *stage, void *out) RP_MUST_CHECK;
rp_err rp_stage_sum_gradients(rp_stage *stage, const void *const *gradient,
                              uint32_t count) RP_MUST_CHECK;

/* Tied weights (nn/ties.h), after the last backward of a step here, and after the sum of a shared
 * stage. The first function copies the row for other stages to host memory, layout->tie_row_bytes.
 * The second one adds up the gradients of all uses; `row` has a row of every other stage with a use
 * of a tensor of this one. Memory is borrowed as above. If layout->tie_waits is false, norms
 * and the update do this themselves. */
rp_err rp_stage_read_row(rp_stage *stage, void *out) RP_MUST_CHECK;
rp_err rp_stage_tie(rp_stage *stage, const rp_tie_row *row, uint32_t count) RP_MUST_CHECK;
/* Without a flush: the values that the last forward has seen, as a row for other stages, after that
 * forward; and, before a forward, rows of values of the stages that own tensors of this one. The
 * array is read by that forward. */
rp_err rp_stage_read_values(rp_stage *stage, void *out) RP_MUST_CHECK;
void rp_stage_set_values(rp_stage *stage, const rp_tie_row *row, uint32_t count);
/* Whether the norm of trained parameter `index` counts for the norm of the stage's gradient: that
 * of a tied tensor counts once. */
bool rp_stage_norm_counts(const rp_stage *stage, uint32_t index);

/* Optimiser step of an UPDATE op with gradients times grad_scale, followed by the method's average.
 * skip: the gradients are dropped and running statistics are restored, so the step changes
 * nothing. */
rp_err rp_stage_update(rp_stage *stage, const rp_op *op, float grad_scale, bool skip) RP_MUST_CHECK;

/* (loss, correct) of every sample of the step, into 2 * samples host floats, borrowed until the
 * mark. */
rp_err rp_stage_results(rp_stage *stage, float *out, uint32_t samples) RP_MUST_CHECK;
/* Counts of the classes of every sample of an evaluated step, as rp_loss_call.overlap, into 2 *
 * rp_layout_overlap_classes() * samples numbers, borrowed until the mark. */
rp_err rp_stage_overlap(rp_stage *stage, uint32_t *out, uint32_t samples) RP_MUST_CHECK;

/* Mean seconds of the stage's layers for an op of `samples` (at most those of a microbatch) over
 * `repeats` runs, without copies to and from the host. The time is measured, except where the
 * executor only calculates it. Halves of a backward are allowed only if the schedule splits
 * backwards. Blocks; weights and gradients are undefined afterwards. */
rp_err rp_stage_time_op(rp_stage *stage, rp_op_kind kind, uint32_t samples, uint32_t repeats,
                        double *seconds) RP_MUST_CHECK;
/* Issues such an op once without waiting; the caller takes a mark after it. */
rp_err rp_stage_try_op(rp_stage *stage, rp_op_kind kind, uint32_t samples) RP_MUST_CHECK;
/* Mean seconds of a full microbatch, as the planner's costs: rp_stage_time_op() for both
 * directions. */
rp_err rp_stage_time(rp_stage *stage, uint32_t repeats, double *forward_s,
                     double *backward_s) RP_MUST_CHECK;

/* Optimiser steps applied by a replica, without skipped ones: Adam's t. Part of a checkpoint. */
uint32_t rp_stage_replicas(const rp_stage *stage);
uint64_t rp_stage_applied(const rp_stage *stage, uint32_t replica);
void rp_stage_set_applied(rp_stage *stage, uint32_t replica, uint64_t applied);

/* State of microbatches in flight that the exported tensors do not contain: bytes (a multiple of 4)
 * that are valid only for this job with this cut. Blocks; only between segments. */
size_t rp_stage_in_flight_bytes(const rp_stage *stage);
rp_err rp_stage_in_flight_read(rp_stage *stage, size_t first, size_t count,
                               void *out) RP_MUST_CHECK;
rp_err rp_stage_in_flight_write(rp_stage *stage, size_t first, size_t count,
                                const void *bytes) RP_MUST_CHECK;
/* Restores the bookkeeping to its state before `step`. fill_step: where the run's pipes were
 * filled. */
void rp_stage_resume(rp_stage *stage, uint64_t fill_step, uint64_t step);

/* The most own updates between a forward and its backward so far. */
uint32_t rp_stage_staleness_max(const rp_stage *stage);

/* Losses of the codecs for activations [0] and gradients [1] in what this stage has sent while
 * training, measured on some of the samples since the last call. Blocks; only between segments. */
rp_err rp_stage_take_losses(rp_stage *stage, rp_codec_loss out[2]) RP_MUST_CHECK;

/* Exported tensors: "<layer>.weight" and so on of the model that is evaluated. With `states` also
 * what a checkpoint needs: "<set prefix><layer>.weight" (sched/method.h), and
 * "optim.<state>.<layer>.weight" after the prefix of the replica, if there are several. Copies
 * block; only between segments. */
uint32_t rp_stage_tensor_count(const rp_stage *stage, bool states);
/* Whether this board saves the tensor. A tied tensor is saved by its first use. Of a split stage
 * the half with the forwards saves the running statistics, and the half with the updates everything
 * else. */
bool rp_stage_tensor_is_saved(const rp_stage *stage, uint32_t index);
rp_err rp_stage_tensor_at(const rp_stage *stage, uint32_t index, char *name, size_t name_bytes,
                          rp_shape *shape) RP_MUST_CHECK;
rp_err rp_stage_tensor_read(rp_stage *stage, uint32_t index, size_t first, size_t count,
                            float *out) RP_MUST_CHECK;
/* errors USAGE: unknown tensor; SHAPE: the elements are out of range */
rp_err rp_stage_tensor_write(rp_stage *stage, const char *name, size_t first, size_t count,
                             const float *values) RP_MUST_CHECK;

#endif
