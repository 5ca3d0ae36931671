/* Microbatches in flight, for checkpoints of schedules that do not flush, or what a stage remembers
 * of samples where a codec does. Such a schedule, or codec, has one stage a node: held[0]. */
#include <string.h>

#include "agent/runner_own.h"

/* One waiting microbatch: its tensors, each at its largest. */
static size_t parcel_bytes(const rp_runner *r) {
    const rp_port_form *form = rp_port_in_form(r->held[0].in);
    size_t bytes = 0;
    for (uint32_t i = 0; i < form->tensor_count; i++) {
        bytes += form->sample_bytes[i];
    }
    return bytes * r->held[0].job->micro;
}

/* Microbatches that the stage before has sent and no op here has taken: none behind a flush, where
 * the two stages may have cut a step in other ways. */
static uint64_t pending_microbatches(const rp_runner *r) {
    const bool waits = !r->held[0].job->method.kind->flushed && r->held[0].in;
    return waits && r->held[0].job->stage > 0 ? r->forwards_above - r->forwards : 0;
}

/* The list has ended before the run: who goes on begins with empty pipes. */
static bool is_drained(const rp_runner *r) {
    const uint64_t end = r->sched.shape.step_end;
    return r->sched.step == end && end < r->held[0].job->steps;
}

static bool has_in_flight(const rp_runner *r) {
    if (rp_stage_facts(r->held[0].stage).remembers) {
        return true;
    }
    return !is_drained(r) && (r->in_flight > 0 || pending_microbatches(r) > 0 ||
                              rp_stage_probe_waits(r->held[0].stage));
}

static size_t stage_bytes(const rp_runner *r) {
    return rp_stage_in_flight_bytes(r->held[0].stage);
}

size_t rp_runner_in_flight_bytes(const rp_runner *r) {
    const uint64_t parcels = pending_microbatches(r);
    return has_in_flight(r) ? stage_bytes(r) + (parcels ? parcels * parcel_bytes(r) : 0) : 0;
}

uint64_t rp_runner_fill_step(const rp_runner *r) {
    return r->fill_step;
}

/* ---- waiting microbatches -------------------------------------------------------------------- */

/* The next forward of a list; false: there is none. */
static bool next_forward(const rp_runner *r, rp_sched_state *list, rp_op *op) {
    while (r->held[0].job->method.kind->next(list, op)) {
        if (op->kind == RP_OP_FORWARD) {
            return true;
        }
    }
    return false;
}

/* Where [first, first + count) of all bytes meets `bytes` of them at `begin`: copies that part. */
static void copy_part(size_t first, size_t count, size_t begin, const void *from, size_t bytes,
                      char *out) {
    const size_t end = begin + bytes < first + count ? begin + bytes : first + count;
    const size_t start = begin > first ? begin : first;
    if (start < end) {
        memcpy(out + start - first, (const char *)from + (start - begin), end - start);
    }
}

/* [first, first + count) of what the next `waiting` forwards need, as it lies in the pieces. */
static rp_err read_waiting(rp_runner *r, size_t first, size_t count, char *out) {
    const rp_port_form *form = rp_port_in_form(r->held[0].in);
    const uint32_t micro = r->held[0].job->micro;
    rp_sched_state list = r->sched;
    rp_op op;
    size_t begin = 0;
    for (uint64_t m = 0; m < pending_microbatches(r) && next_forward(r, &list, &op); m++) {
        const rp_port_want want = {.step = op.step, .samples = op.samples};
        rp_port_pieces pieces;
        bool ready;
        rp_err err = rp_port_in_find(r->held[0].in, &want, &pieces, &ready);
        if (err == RP_OK && !ready) {
            err = rp_fail(RP_ERR_FAULT,
                          "%llu microbatches are pending here, but number %llu of them is missing",
                          (unsigned long long)pending_microbatches(r), (unsigned long long)m);
        }
        if (err != RP_OK) {
            return err;
        }
        for (uint32_t i = 0; i < form->tensor_count; i++) {
            for (uint32_t p = 0; p < pieces.count; p++) {
                const rp_port_piece *piece = &pieces.piece[p];
                const size_t skipped = piece->samples.first - op.samples.first;
                copy_part(first, count, begin + skipped * form->sample_bytes[i], piece->part[i],
                          piece->samples.count * form->sample_bytes[i], out);
            }
            begin += form->sample_bytes[i] * micro;
        }
    }
    return RP_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

rp_err rp_runner_in_flight_read(rp_runner *r, size_t first, size_t count, void *out) {
    const size_t own = stage_bytes(r);
    const size_t here = first < own ? own - first : 0;
    const size_t of_stage = count < here ? count : here;
    rp_err err = RP_OK;
    if (first == 0) {
        RP_TRY(rp_runner_receive(r));
        if (pending_microbatches(r) > 0 &&
            rp_port_in_pending(r->held[0].in) != pending_microbatches(r)) {
            return rp_fail(RP_ERR_FAULT, "%u parcels are pending here, but %llu were sent",
                           rp_port_in_pending(r->held[0].in),
                           (unsigned long long)pending_microbatches(r));
        }
    }
    memset(out, 0, count); /* short microbatches leave gaps */
    if (of_stage > 0) {
        RP_TRY(rp_stage_in_flight_read(r->held[0].stage, first, of_stage, out));
    }
    if (count > of_stage) {
        RP_TRY(read_waiting(r, first + of_stage - own, count - of_stage, (char *)out + of_stage));
    }
fail:
    return err;
}

/* ---- taking over ----------------------------------------------------------------------------- */

rp_err rp_runner_in_flight_write(rp_runner *r, size_t first, size_t count, const void *bytes) {
    const size_t left = r->in_flight_due - r->in_flight_got;
    const size_t own = stage_bytes(r);
    const size_t here = first < own ? own - first : 0;
    const size_t of_stage = count < here ? count : here;
    rp_err err = RP_OK;
    if (first != r->in_flight_got || count > left) {
        return rp_fail(RP_ERR_PEER,
                       "in-flight state of %zu bytes, of which %zu were received: [%zu, +%zu) is "
                       "not the next piece",
                       r->in_flight_due, r->in_flight_got, first, count);
    }
    if (of_stage > 0) {
        RP_TRY(rp_stage_in_flight_write(r->held[0].stage, first, of_stage, bytes));
    }
    if (count > of_stage) {
        memcpy(r->restored + first + of_stage - own, (const char *)bytes + of_stage,
               count - of_stage);
    }
    r->in_flight_got += count;
fail:
    return err;
}

/* The waiting microbatches as parcels of the next forwards, in memory of their own; it is written
 * later. */
static rp_err restore_waiting(rp_runner *r) {
    const rp_port_form *form = rp_port_in_form(r->held[0].in);
    const uint32_t micro = r->held[0].job->micro;
    rp_sched_state list = r->sched;
    rp_op op;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(r->arena, pending_microbatches(r) * parcel_bytes(r), &r->restored));
    char *at = r->restored;
    for (uint64_t m = 0; m < pending_microbatches(r) && next_forward(r, &list, &op); m++) {
        rp_parcel parcel = {
            .step = op.step, .samples = op.samples, .part_count = form->tensor_count};
        for (uint32_t i = 0; i < form->tensor_count; i++) {
            parcel.part[i] = rp_part_of_bytes(at, form->sample_bytes[i] * op.samples.count);
            parcel.part[i].dtype = form->dtype[i];
            at += form->sample_bytes[i] * micro;
        }
        err = rp_port_in_push(r->held[0].in, &parcel);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN
                       ? rp_fail(RP_ERR_LIMIT,
                                 "no room for the %llu pending microbatches of the checkpoint",
                                 (unsigned long long)pending_microbatches(r))
                       : err;
        }
    }
fail:
    return err;
}

rp_err rp_runner_resume(rp_runner *r, uint64_t fill_step, size_t bytes) {
    const rp_job *job = r->held[0].job;
    rp_op op;
    rp_err err = RP_OK;
    if (r->active || fill_step > job->step_first || r->sched.step != job->step_first ||
        r->restored) {
        return rp_fail(RP_ERR_PEER, "in-flight state can be restored before training begins only");
    }
    rp_runner_start_order(r, fill_step);
    while (r->sched.step < job->step_first && job->method.kind->next(&r->sched, &op)) {
        r->forwards += op.kind == RP_OP_FORWARD;
        rp_runner_count_in_flight(r, &op);
    }
    rp_runner_count_above(r, job->step_first);
    rp_stage_resume(r->held[0].stage, fill_step, job->step_first);
    if (rp_runner_in_flight_bytes(r) != bytes) {
        return rp_fail(RP_ERR_PEER,
                       "the checkpoint holds %zu bytes of in-flight state, expected %zu", bytes,
                       rp_runner_in_flight_bytes(r));
    }
    if (pending_microbatches(r) > 0) {
        RP_TRY(restore_waiting(r));
    }
    r->in_flight_due = bytes;
    r->in_flight_got = 0;
fail:
    return err;
}
