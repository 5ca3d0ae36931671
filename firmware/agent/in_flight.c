/* Microbatches in flight, for checkpoints of schedules that do not flush. Such a schedule has one
 * stage a node: held[0]. In this order: the stage's own bytes, the weights of a board that only
 * does forwards, what waits. */
#include <string.h>

#include "agent/runner_own.h"
#include "sched/split.h"

/* Microbatches that the previous stage has sent and no op here has taken. None after a flush, where
 * the two stages may have divided a step differently. */
static uint64_t pending_microbatches(const rp_runner *r) {
    const bool waits = !r->held[0].job->method.kind->flushed && r->held[0].in;
    return waits && r->held[0].job->stage > 0 ? r->forwards_above - r->forwards : 0;
}

/* Rows of tied weights that were sent and that no op here has taken, over all edges. */
static uint64_t pending_rows(const rp_runner *r) {
    uint64_t count = 0;
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        count += rp_runner_pending_far(r, e);
    }
    return count;
}

/* Whether the list has ended before the run, so that the next segment begins with empty pipes. */
static bool is_drained(const rp_runner *r) {
    const uint64_t end = r->sched.shape.step_end;
    return r->sched.step == end && end < r->held[0].job->steps;
}

/* Whether the weights for the next forward must be stored: the board with the updates may not have
 * them any more. Not needed in a run that has not begun or is over. */
static bool has_own_weights(const rp_runner *r) {
    return r->own_weights && r->sched.step > r->fill_step &&
           r->sched.step < r->sched.shape.step_end;
}

static bool has_in_flight(const rp_runner *r) {
    return has_own_weights(r) ||
           (!is_drained(r) && (r->in_flight > 0 || pending_microbatches(r) > 0 ||
                               pending_rows(r) > 0 || rp_stage_probe_waits(r->held[0].stage)));
}

static size_t stage_bytes(const rp_runner *r) {
    return rp_stage_in_flight_bytes(r->held[0].stage);
}

/* Bytes before the waiting parcels. */
static size_t own_bytes(const rp_runner *r) {
    return stage_bytes(r) + rp_runner_own_weights_bytes(r);
}

/* ---- waiting parcels ------------------------------------------------------------------------- */

/* Walks over parcels that have arrived and that no op has taken, in the order in which ops will
 * take them: activations; if stages are split, the weights for the next forward, or the stashes of
 * forwards in progress; then rows of tied weights, edge by edge. */
typedef struct {
    rp_sched_state list;
    uint64_t activations, stashes;
    bool weights;
    rp_sched_state row_list;
    uint32_t row_edge;
    uint64_t rows; /* of row_edge, taken */
} waiting_walk;

typedef struct {
    rp_port_in *port;
    rp_port_want want;
    size_t bytes; /* at its largest */
} waiting_parcel;

/* If steps have several lengths, a parcel's tensors are followed by its own, as a u32. */
static size_t time_bytes(const rp_runner *r) {
    return r->held[0].job->model->view_count > 0 ? sizeof(uint32_t) : 0;
}

static waiting_walk start_waiting(const rp_runner *r) {
    const rp_role role = r->held[0].job->role;
    return (waiting_walk){.list = r->sched,
                          .row_list = r->sched,
                          .activations = pending_microbatches(r),
                          .stashes = role == RP_ROLE_BACKWARD ? r->in_flight : 0,
                          .weights = role == RP_ROLE_FORWARD && r->held[0].weights};
}

/* The next op of the kind in a list; false: no op is left. */
static bool next_of_kind(const rp_runner *r, rp_sched_state *list, rp_op_kind kind, rp_op *op) {
    while (r->held[0].job->method.kind->next(list, op)) {
        if (op->kind == kind) {
            return true;
        }
    }
    return false;
}

static waiting_parcel parcel_of(const rp_runner *r, rp_port_in *port, uint64_t step,
                                rp_range samples) {
    const rp_port_form *form = rp_port_in_form(port);
    waiting_parcel out = {
        .port = port, .want = {.step = step, .samples = samples}, .bytes = time_bytes(r)};
    for (uint32_t i = 0; i < form->tensor_count; i++) {
        out.bytes += rp_port_bytes(form, i, r->held[0].job->micro);
    }
    return out;
}

static bool next_row(const rp_runner *r, waiting_walk *w, waiting_parcel *out) {
    rp_op op;
    while (w->row_edge < r->at.edge_count && w->rows == rp_runner_pending_far(r, w->row_edge)) {
        w->row_edge++;
        w->rows = 0;
        w->row_list = r->sched;
    }
    if (w->row_edge == r->at.edge_count || !next_of_kind(r, &w->row_list, RP_OP_FORWARD, &op)) {
        return false;
    }
    w->rows++;
    *out = parcel_of(r, r->edge[w->row_edge].port, op.step, op.samples);
    return true;
}

static bool next_waiting(const rp_runner *r, waiting_walk *w, waiting_parcel *out) {
    const runner_stage *s = &r->held[0];
    rp_op op;
    if (w->weights) {
        rp_sched_state list = r->sched;
        w->weights = false;
        if (next_of_kind(r, &list, RP_OP_FORWARD, &op) && op.micro == 0 &&
            rp_sched_split_takes(&list.shape, op.step) &&
            rp_sched_split_version(&list.shape, op.step) <= r->sched.step) {
            *out = parcel_of(r, s->weights, op.step,
                             (rp_range){0, rp_runner_step_samples(r, op.step)});
            return true;
        }
    }
    if (w->activations > 0 && next_of_kind(r, &w->list, RP_OP_FORWARD, &op)) {
        w->activations--;
        *out = parcel_of(r, s->in, op.step, op.samples);
        return true;
    }
    if (w->stashes > 0 && s->stashes && next_of_kind(r, &w->list, RP_OP_BACKWARD, &op)) {
        w->stashes--;
        *out = parcel_of(r, s->stashes, op.step, op.samples);
        return true;
    }
    return next_row(r, w, out);
}

/* Rounded up to whole floats, because encoded samples may have any number of bytes. */
static size_t waiting_bytes(const rp_runner *r) {
    waiting_walk walk = start_waiting(r);
    waiting_parcel parcel;
    size_t bytes = 0;
    while (next_waiting(r, &walk, &parcel)) {
        bytes += parcel.bytes;
    }
    return (bytes + sizeof(float) - 1) / sizeof(float) * sizeof(float);
}

size_t rp_runner_in_flight_bytes(const rp_runner *r) {
    return has_in_flight(r) ? own_bytes(r) + waiting_bytes(r) : 0;
}

uint64_t rp_runner_fill_step(const rp_runner *r) {
    return r->fill_step;
}

/* ---- waiting microbatches -------------------------------------------------------------------- */

/* Copies the overlap of [first, first + count) with `bytes` bytes at `begin`. */
static void copy_part(size_t first, size_t count, size_t begin, const void *from, size_t bytes,
                      char *out) {
    const size_t end = begin + bytes < first + count ? begin + bytes : first + count;
    const size_t start = begin > first ? begin : first;
    if (start < end) {
        memcpy(out + start - first, (const char *)from + (start - begin), end - start);
    }
}

static void put_time(uint32_t time, unsigned char out[sizeof(uint32_t)]) {
    for (uint32_t i = 0; i < sizeof time; i++) {
        out[i] = (unsigned char)(time >> 8 * i);
    }
}

static uint32_t take_time(const char *from) {
    uint32_t time = 0;
    for (uint32_t i = 0; i < sizeof time; i++) {
        time |= (uint32_t)(unsigned char)from[i] << 8 * i;
    }
    return time;
}

/* Reads [first, first + count) of the waiting parcels from their pieces. */
static rp_err read_waiting(rp_runner *r, size_t first, size_t count, char *out) {
    waiting_walk walk = start_waiting(r);
    waiting_parcel parcel;
    size_t begin = 0;
    for (uint64_t m = 0; next_waiting(r, &walk, &parcel); m++) {
        const rp_port_form *form = rp_port_in_form(parcel.port);
        rp_port_pieces pieces;
        bool ready;
        rp_err err = rp_port_in_find(parcel.port, &parcel.want, &pieces, &ready);
        if (err == RP_OK && !ready) {
            err = rp_fail(RP_ERR_FAULT, "pending parcel number %llu is missing (step %llu)",
                          (unsigned long long)m, (unsigned long long)parcel.want.step);
        }
        if (err != RP_OK) {
            return err;
        }
        size_t at = begin;
        for (uint32_t i = 0; i < form->tensor_count; i++) {
            for (uint32_t p = 0; p < pieces.count; p++) {
                const rp_port_piece *piece = &pieces.piece[p];
                const uint32_t skipped = piece->samples.first - parcel.want.samples.first;
                const size_t before = skipped ? rp_port_bytes_at(form, piece->time, i, skipped) : 0;
                copy_part(first, count, at + before, piece->part[i],
                          rp_port_bytes_at(form, piece->time, i, piece->samples.count), out);
            }
            at += rp_port_bytes(form, i, r->held[0].job->micro);
        }
        unsigned char time[sizeof(uint32_t)];
        put_time(pieces.piece[0].time, time);
        copy_part(first, count, at, time, time_bytes(r), out);
        begin += parcel.bytes;
    }
    return RP_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The part of [first, first + count) within [0, end). */
static size_t part_before(size_t first, size_t count, size_t end) {
    const size_t here = first < end ? end - first : 0;
    return count < here ? count : here;
}

rp_err rp_runner_in_flight_read(rp_runner *r, size_t first, size_t count, void *out) {
    const size_t own = own_bytes(r);
    const size_t of_stage = part_before(first, count, stage_bytes(r));
    rp_err err = RP_OK;
    if (first == 0) {
        RP_TRY(rp_runner_receive(r));
        RP_TRY(rp_runner_read_own_weights(r));
        if (pending_microbatches(r) > 0 &&
            rp_port_in_pending(r->held[0].in) != pending_microbatches(r)) {
            return rp_fail(RP_ERR_FAULT, "%u parcels are pending on this board, but %llu were sent",
                           rp_port_in_pending(r->held[0].in),
                           (unsigned long long)pending_microbatches(r));
        }
    }
    memset(out, 0, count); /* short microbatches leave gaps */
    if (of_stage > 0) {
        RP_TRY(rp_stage_in_flight_read(r->held[0].stage, first, of_stage, out));
    }
    copy_part(first, count, stage_bytes(r), r->own_weights, own - stage_bytes(r), out);
    const size_t here = part_before(first, count, own);
    if (count > here) {
        RP_TRY(read_waiting(r, first + here - own, count - here, (char *)out + here));
    }
fail:
    return err;
}

/* ---- taking over ----------------------------------------------------------------------------- */

/* Gives the waiting parcels, whose memory has been written, to their ports. */
static rp_err restore_waiting(rp_runner *r) {
    waiting_walk walk = start_waiting(r);
    waiting_parcel waiting;
    rp_err err = RP_OK;
    for (char *at = r->restored; next_waiting(r, &walk, &waiting); at += waiting.bytes) {
        const rp_port_form *form = rp_port_in_form(waiting.port);
        rp_parcel parcel = {.step = waiting.want.step,
                            .samples = waiting.want.samples,
                            .part_count = form->tensor_count};
        size_t begin = 0;
        parcel.time = time_bytes(r) > 0 ? take_time(at + waiting.bytes - time_bytes(r)) : 0;
        for (uint32_t i = 0; i < form->tensor_count && rp_port_has_time(form, parcel.time); i++) {
            parcel.part[i] = rp_part_of_bytes(
                at + begin, rp_port_bytes_at(form, parcel.time, i, parcel.samples.count));
            parcel.part[i].dtype = form->dtype[i];
            begin += rp_port_bytes(form, i, r->held[0].job->micro);
        }
        err = rp_port_in_push(waiting.port, &parcel);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN
                       ? rp_fail(RP_ERR_LIMIT,
                                 "no room for the pending parcels of the checkpoint, %zu bytes",
                                 waiting_bytes(r))
                       : err;
        }
    }
    return err;
}

rp_err rp_runner_in_flight_write(rp_runner *r, size_t first, size_t count, const void *bytes) {
    const size_t left = r->in_flight_due - r->in_flight_got;
    const size_t own = own_bytes(r);
    const size_t of_stage = part_before(first, count, stage_bytes(r));
    const size_t here = part_before(first, count, own);
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
    if (here > of_stage) {
        memcpy((char *)r->own_weights + first + of_stage - stage_bytes(r),
               (const char *)bytes + of_stage, here - of_stage);
    }
    if (count > here) {
        memcpy(r->restored + first + here - own, (const char *)bytes + here, count - here);
    }
    r->in_flight_got += count;
    if (r->in_flight_got == r->in_flight_due) {
        RP_TRY(rp_runner_write_own_weights(r));
        RP_TRY(r->restored ? restore_waiting(r) : RP_OK);
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
        return rp_fail(RP_ERR_PEER, "in-flight state can only be restored before training begins");
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
    if (bytes > 0 && waiting_bytes(r) > 0) {
        RP_TRY(RP_ARENA_NEW(r->arena, waiting_bytes(r), &r->restored));
    }
    r->in_flight_due = bytes;
    r->in_flight_got = 0;
fail:
    return err;
}
