/* Microbatches in flight, for checkpoints of schedules that do not flush. */
#include <string.h>

#include "agent/runner_own.h"

static size_t parcel_bytes(const rp_runner *r) {
    return r->activation.crossing.sample_bytes * r->at.job->micro;
}

/* Parcels that the stage before has sent and no op here has taken. */
static uint64_t waiting(const rp_runner *r) {
    return r->at.in ? r->forwards_above - r->forwards : 0;
}

/* The list has ended before the run: who goes on begins with empty pipes. */
static bool is_drained(const rp_runner *r) {
    const uint64_t end = r->sched.shape.step_end;
    return r->sched.step == end && end < r->at.job->steps;
}

static bool has_flight(const rp_runner *r) {
    return !is_drained(r) &&
           (r->in_flight > 0 || waiting(r) > 0 || rp_stage_probe_waits(r->at.stage));
}

size_t rp_runner_flight_bytes(const rp_runner *r) {
    return has_flight(r) ? rp_stage_flight_bytes(r->at.stage) + waiting(r) * parcel_bytes(r) : 0;
}

uint64_t rp_runner_fill_step(const rp_runner *r) {
    return r->fill;
}

/* [first, first + count) of the waiting parcels, each with its parts at their largest. */
static void move_parcels(rp_runner *r, size_t first, size_t count, const char *in, char *out) {
    const rp_crossing *crossing = &r->activation.crossing;
    size_t begin = 0;
    for (uint32_t m = 0; m < r->activation.aside_count; m++) {
        const rp_message *message = r->activation.aside[m];
        for (uint32_t i = 0; i < crossing->count; i++) {
            const size_t room =
                rp_shape_count(&crossing->sample[i]) * r->at.job->micro * sizeof(float);
            const size_t bytes = message->part[i].bytes < room ? message->part[i].bytes : room;
            const size_t from = first > begin ? first - begin : 0;
            const size_t end =
                first + count > begin ? first + count - begin : 0; /* of what is asked for */
            const size_t stop = end < bytes ? end : bytes;
            if (from < stop && in) {
                memcpy((char *)(uintptr_t)message->part[i].data + from, in + begin + from - first,
                       stop - from);
            } else if (from < stop) {
                memcpy(out + begin + from - first, (const char *)message->part[i].data + from,
                       stop - from);
            }
            begin += room;
        }
    }
}

static rp_err move(rp_runner *r, size_t first, size_t count, const char *in, char *out) {
    const size_t stage_bytes = rp_stage_flight_bytes(r->at.stage);
    const size_t here = first < stage_bytes ? stage_bytes - first : 0;
    const size_t of_stage = count < here ? count : here;
    rp_err err = RP_OK;
    if (of_stage > 0) {
        RP_TRY(in ? rp_stage_flight_write(r->at.stage, first, of_stage, in)
                  : rp_stage_flight_read(r->at.stage, first, of_stage, out));
    }
    if (count > of_stage) {
        move_parcels(r, first + of_stage - stage_bytes, count - of_stage, in ? in + of_stage : NULL,
                     out ? out + of_stage : NULL);
    }
fail:
    return err;
}

rp_err rp_runner_flight_read(rp_runner *r, size_t first, size_t count, void *out) {
    rp_err err = RP_OK;
    if (first == 0 && r->at.in) {
        RP_TRY(rp_inlet_put_aside(&r->activation));
    }
    if (r->at.in && r->activation.aside_count != waiting(r)) {
        return rp_fail(RP_ERR_FAULT, "%u parcels wait here, %llu were sent",
                       r->activation.aside_count, (unsigned long long)waiting(r));
    }
    memset(out, 0, count); /* short parcels leave gaps */
    RP_TRY(move(r, first, count, NULL, out));
fail:
    return err;
}

rp_err rp_runner_flight_write(rp_runner *r, size_t first, size_t count, const void *bytes) {
    rp_err err;
    const size_t left = r->flight_due - r->flight_got;
    if (first != r->flight_got || count > left) {
        return rp_fail(RP_ERR_PEER,
                       "what was in flight has %zu bytes, %zu have come: [%zu, +%zu) is not next",
                       r->flight_due, r->flight_got, first, count);
    }
    RP_TRY(move(r, first, count, bytes, NULL));
    r->flight_got += count;
fail:
    return err;
}

/* Headers of the parcels that wait: the next forwards of this stage's list. */
static void name_parcels(rp_runner *r) {
    rp_sched_state list = r->sched;
    rp_op op;
    for (uint32_t m = 0; m < r->activation.aside_count;) {
        if (!r->at.job->method.kind->next(&list, &op)) {
            return;
        }
        if (op.kind != RP_OP_FORWARD) {
            continue;
        }
        rp_message *message = r->activation.aside[m++];
        message->header.kind = RP_KIND_ACTIVATION;
        message->header.step = op.step;
        message->header.first = op.samples.first;
        message->header.count = op.samples.count;
        for (uint32_t i = 0; i < message->part_count; i++) {
            message->part[i].bytes = rp_shape_count(&r->activation.crossing.sample[i]) *
                                     op.samples.count * sizeof(float);
        }
    }
}

rp_err rp_runner_resume(rp_runner *r, uint64_t fill, size_t bytes) {
    const rp_job *job = r->at.job;
    rp_op op;
    rp_err err = RP_OK;
    if (r->active || fill > job->step_first || r->sched.step != job->step_first) {
        return rp_fail(RP_ERR_PEER, "nothing in flight can be taken over now");
    }
    rp_runner_fill(r, fill);
    while (r->sched.step < job->step_first && job->method.kind->next(&r->sched, &op)) {
        r->forwards += op.kind == RP_OP_FORWARD;
        r->in_flight += op.kind == RP_OP_FORWARD;
        r->in_flight -= op.kind == RP_OP_BACKWARD;
    }
    rp_runner_count_above(r, job->step_first);
    rp_stage_resume(r->at.stage, fill, job->step_first);
    if (rp_runner_flight_bytes(r) != bytes) {
        return rp_fail(RP_ERR_PEER, "the checkpoint holds %zu bytes in flight, due are %zu", bytes,
                       rp_runner_flight_bytes(r));
    }
    if (r->at.in) {
        RP_TRY(rp_inlet_restore(r->arena, &r->activation, (uint32_t)waiting(r), job->micro));
        name_parcels(r);
    }
    r->flight_due = bytes;
    r->flight_got = 0;
fail:
    return err;
}
