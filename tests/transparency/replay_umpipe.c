/* METHODS 14 once more: a step of umpipe, stage by stage, on tensors of all of its samples. Sizes
 * and ranges are written here a second time, without firmware/sched. */
#include <string.h>

#include "replay.h"

/* Of a stage: samples of a microbatch, as the run file says; whole: a layer has statistics of it.
 */
typedef struct {
    uint32_t forward, backward;
    bool whole;
} sizes;

static sizes sizes_of(const replay *r, uint32_t k) {
    const rp_runfile *run = &r->run;
    sizes out = {run->micro, run->micro, false};
    if (run->sizes.at) {
        out.forward = run->sizes.at[k][0];
        out.backward = run->sizes.at[k][1];
    }
    for (uint32_t i = run->cut.first[k]; i < run->cut.first[k + 1]; i++) {
        out.whole |= run->model->plan[i].whole;
    }
    return out;
}

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* The samples of a step of `count`: what stands in front of `done`, from the first one on. */
static rp_range forward_range(const sizes *s, uint32_t count, uint32_t done) {
    return (rp_range){done, smaller(s->forward, count - done)};
}

/* `left` samples have no backward yet: they go from the last to the first, the remainder at the
 * end; where a microbatch has statistics, as the forward has cut them. */
static rp_range backward_range(const sizes *s, uint32_t left) {
    const uint32_t cut = s->whole ? (left - 1) % s->forward + 1 : smaller(s->backward, left);
    return (rp_range){left - cut, cut};
}

/* Tensors of all samples of a step. */
static rp_err new_tensors(replay *r, const rp_boundary_tensors *boundary, uint32_t count,
                          parcel out) {
    rp_err err = RP_OK;
    memset(out, 0, sizeof(parcel));
    for (uint32_t i = 0; err == RP_OK && i < boundary->count; i++) {
        const size_t floats = rp_shape_count(&boundary->sample[i]) * count;
        err = rp_arena_alloc(&r->arena, floats, sizeof(float), &out[i]);
    }
    return err;
}

/* Where the tensors have the range. */
static void part_of(const rp_boundary_tensors *boundary, const parcel all, rp_range range,
                    parcel out) {
    for (uint32_t i = 0; i < boundary->count; i++) {
        out[i] = (char *)all[i] + range.first * boundary->bytes[i];
    }
}

static rp_err run_op(replay *r, board *b, rp_op_kind kind, uint32_t step, rp_range range,
                     const rp_stage_piece *in, void *const *out) {
    const rp_op op = {.kind = kind, .step = step, .samples = range};
    rp_err err = kind == RP_OP_FORWARD ? rp_stage_run_forward(b->stage, &op, in, 1, out,
                                                              (rp_stage_mode){.training = true})
                                       : rp_stage_run_backward(b->stage, &op, in, 1, out);
    return err == RP_OK ? rp_device_drain(r->device) : err;
}

/* `in`: all samples of the step, as the stage below has made them; *out of this one. */
static rp_err forward_stage(replay *r, board *b, uint32_t n, uint32_t count, const void *const *in,
                            parcel out) {
    const rp_boundary_tensors upper =
        rp_layout_boundary_at(rp_stage_layout(b->stage), r->time[r->micro[n].step], true, false);
    const rp_stage_piece whole = {
        .samples = {0, count}, .part = in, .time = r->time[r->micro[n].step]};
    const sizes s = sizes_of(r, b->k);
    weight_view view = {.version = r->micro[n].step};
    rp_err err;
    if (b->k == r->slip) {
        slip_version(b, &view);
    }
    RP_TRY(choose_weights(r, b, n, &view, 0));
    RP_TRY(new_tensors(r, &upper, count, out));
    for (uint32_t done = 0; done < count;) {
        const rp_range range = forward_range(&s, count, done);
        parcel part = {NULL};
        part_of(&upper, out, range, part);
        RP_TRY(run_op(r, b, RP_OP_FORWARD, r->micro[n].step, range, &whole, part));
        done += range.count;
    }
fail:
    return err;
}

static rp_err backward_stage(replay *r, board *b, uint32_t n, uint32_t count, const void *const *in,
                             parcel out) {
    const rp_boundary_tensors lower =
        rp_layout_boundary_at(rp_stage_layout(b->stage), r->time[r->micro[n].step], false, true);
    const rp_stage_piece whole = {
        .samples = {0, count}, .part = in, .time = r->time[r->micro[n].step]};
    const weight_view view = {.version = r->micro[n].step};
    const sizes s = sizes_of(r, b->k);
    rp_err err;
    RP_TRY(choose_weights(r, b, n, &view, 1));
    RP_TRY(new_tensors(r, &lower, count, out));
    for (uint32_t left = count; left > 0;) {
        const rp_range range = backward_range(&s, left);
        parcel part = {NULL};
        part_of(&lower, out, range, part);
        RP_TRY(run_op(r, b, RP_OP_BACKWARD, r->micro[n].step, range, &whole, part));
        left -= range.count;
    }
fail:
    return err;
}

/* The step whose first microbatch is n. */
static rp_err run_step(replay *r, uint32_t n, uint32_t count) {
    const uint32_t step = r->micro[n].step;
    const void *in[RP_CUT_TENSORS_MAX] = {r->x[step]};
    parcel out;
    rp_err err;
    for (uint32_t k = 0; k < r->stages; k++) {
        RP_TRY(forward_stage(r, &r->board[k], n, count, in, out));
        memcpy(in, out, sizeof in);
    }
    in[0] = r->target[step];
    for (uint32_t k = r->stages; k-- > 0;) {
        RP_TRY(backward_stage(r, &r->board[k], n, count, in, out));
        memcpy(in, out, sizeof in);
    }
    for (uint32_t k = 0; k < r->stages; k++) {
        RP_TRY(run_update(r, &r->board[k], n));
    }
fail:
    return err;
}

rp_err train_umpipe(replay *r) {
    rp_err err = RP_OK;
    for (uint32_t n = 0; err == RP_OK && n < r->micro_count;) {
        const uint32_t first = n;
        uint32_t count = 0;
        for (bool last = false; !last; n++) {
            count += r->micro[n].samples.count;
            last = r->micro[n].last;
        }
        err = run_step(r, first, count);
    }
    return err;
}
