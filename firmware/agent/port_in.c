#include "agent/port_in.h"

#include <string.h>

typedef struct {
    bool used;
    rp_parcel parcel;
    uint32_t taken; /* samples that ops have consumed */
    uint32_t lent;  /* pieces that the device still reads */
} pending;

struct rp_port_in {
    rp_port_in_options options;
    pending *queue; /* [pending_max], unordered */
    uint32_t used;
    bool any_wanted;   /* in this segment */
    rp_port_want last; /* last range taken in this segment */
};

/* ---- ranges ---------------------------------------------------------------------------------- */

static uint64_t end_of(rp_range range) {
    return (uint64_t)range.first + range.count;
}

static bool ranges_overlap(rp_range a, rp_range b) {
    return a.first < end_of(b) && b.first < end_of(a);
}

static bool range_contains(rp_range range, uint64_t sample) {
    return range.first <= sample && sample < end_of(range);
}

/* ---- lengths --------------------------------------------------------------------------------- */

static const rp_port_time *find_time(const rp_port_form *form, uint32_t time) {
    uint32_t k = 0;
    while (k < form->shorter_count && form->shorter[k].time != time) {
        k++;
    }
    return k < form->shorter_count ? &form->shorter[k] : NULL;
}

bool rp_port_has_time(const rp_port_form *form, uint32_t time) {
    return time == 0 || find_time(form, time);
}

size_t rp_port_bytes_at(const rp_port_form *form, uint32_t time, uint32_t i, uint32_t samples) {
    const rp_port_time *of = find_time(form, time);
    RP_ASSERT(of || time == 0);
    return time == 0 || form->is_sum ? rp_port_bytes(form, i, samples)
                                     : of->sample_bytes[i] * samples;
}

/* ---- opening --------------------------------------------------------------------------------- */

rp_err rp_port_in_open(rp_arena *arena, const rp_port_in_options *options, rp_port_in **out) {
    rp_err err;
    rp_port_in *port;
    RP_ASSERT(options->pending_max > 0 && options->form.tensor_count <= RP_PARTS_MAX);
    RP_ASSERT(options->source_count > 0 && options->source_count <= RP_PORT_SOURCES_MAX);
    RP_TRY(RP_ARENA_NEW(arena, 1, &port));
    RP_TRY(RP_ARENA_NEW(arena, options->pending_max, &port->queue));
    port->options = *options;
    *out = port;
fail:
    return err;
}

static void release_entry(rp_port_in *port, pending *entry) {
    rp_parcel *parcel = &entry->parcel;
    if (parcel->release) {
        parcel->release(parcel->owner, parcel->memory);
    }
    *entry = (pending){0};
    port->used--;
}

void rp_port_in_close(rp_port_in **port_pointer) {
    rp_port_in *port = *port_pointer;
    for (uint32_t i = 0; port && i < port->options.pending_max; i++) {
        if (port->queue[i].used) {
            release_entry(port, &port->queue[i]);
        }
    }
    *port_pointer = NULL;
}

const rp_port_form *rp_port_in_form(const rp_port_in *port) {
    return &port->options.form;
}

void rp_port_in_begin(rp_port_in *port) {
    port->any_wanted = false;
}

uint32_t rp_port_in_pending(const rp_port_in *port) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < port->options.pending_max; i++) {
        count += port->queue[i].used && !port->queue[i].parcel.evaluating;
    }
    return count;
}

/* ---- received parcels ------------------------------------------------------------------------ */

static rp_err fail_parcel(const rp_port_in *port, const rp_parcel *parcel, const char *why) {
    return rp_fail(RP_ERR_PEER, "%s: step %llu samples [%u, +%u): %s", port->options.name,
                   (unsigned long long)parcel->step, parcel->samples.first, parcel->samples.count,
                   why);
}

static rp_err check_form(const rp_port_in *port, const rp_parcel *parcel) {
    const rp_port_form *form = &port->options.form;
    if (parcel->samples.count == 0 || end_of(parcel->samples) > UINT32_MAX) {
        return fail_parcel(port, parcel, "the parcel has no samples");
    }
    if (parcel->part_count != form->tensor_count) {
        return rp_fail(RP_ERR_PEER, "%s: a parcel of step %llu has %u tensors, the plan says %u",
                       port->options.name, (unsigned long long)parcel->step, parcel->part_count,
                       form->tensor_count);
    }
    if (!rp_port_has_time(form, parcel->time)) {
        return rp_fail(RP_ERR_PEER,
                       "%s: step %llu has samples of %u tokens, which is no length of the run",
                       port->options.name, (unsigned long long)parcel->step, parcel->time);
    }
    for (uint32_t i = 0; i < form->tensor_count; i++) {
        const size_t want = rp_port_bytes_at(form, parcel->time, i, parcel->samples.count);
        if (parcel->part[i].dtype != form->dtype[i]) {
            return rp_fail(RP_ERR_PEER, "%s: tensor %u of step %llu has dtype %d, the plan says %d",
                           port->options.name, i, (unsigned long long)parcel->step,
                           (int)parcel->part[i].dtype, (int)form->dtype[i]);
        }
        if (parcel->part[i].bytes != want) {
            return rp_fail(RP_ERR_PEER,
                           "%s: tensor %u of step %llu samples [%u, +%u) has %zu bytes, the plan "
                           "says %zu",
                           port->options.name, i, (unsigned long long)parcel->step,
                           parcel->samples.first, parcel->samples.count, parcel->part[i].bytes,
                           want);
        }
    }
    return RP_OK;
}

static bool same_step(const pending *entry, bool evaluating, uint64_t step) {
    return entry->used && entry->parcel.evaluating == evaluating && entry->parcel.step == step;
}

rp_err rp_port_in_push(rp_port_in *port, const rp_parcel *parcel) {
    rp_err err;
    pending *free = NULL;
    RP_ASSERT(parcel->source < port->options.source_count);
    RP_TRY(check_form(port, parcel));
    if (port->any_wanted && port->last.evaluating == parcel->evaluating &&
        parcel->step < port->last.step) {
        return fail_parcel(port, parcel, "this step is over");
    }
    for (uint32_t i = 0; i < port->options.pending_max; i++) {
        pending *entry = &port->queue[i];
        if (same_step(entry, parcel->evaluating, parcel->step) &&
            ranges_overlap(entry->parcel.samples, parcel->samples)) {
            return fail_parcel(port, parcel, "some of these samples have already arrived");
        }
        free = entry->used ? free : entry;
    }
    if (!free) {
        return RP_ERR_AGAIN;
    }
    *free = (pending){.used = true, .parcel = *parcel};
    port->used++;
fail:
    return err;
}

bool rp_port_in_has_room(const rp_port_in *port) {
    return port->used < port->options.pending_max;
}

/* ---- ops that ask for samples ---------------------------------------------------------------- */

/* Checks that no waiting parcel was skipped by the ops or can never be asked for. */
static rp_err check_waiting(const rp_port_in *port, const rp_port_want *want) {
    for (uint32_t i = 0; i < port->options.pending_max; i++) {
        const pending *entry = &port->queue[i];
        const rp_parcel *parcel = &entry->parcel;
        if (!entry->used) {
            continue;
        }
        if (parcel->evaluating && !want->evaluating) {
            return fail_parcel(port, parcel, "a parcel of an evaluation arrived during training");
        }
        if (parcel->evaluating == want->evaluating && parcel->step < want->step &&
            entry->taken < parcel->samples.count) {
            return fail_parcel(port, parcel, "no op asks for these samples");
        }
    }
    return RP_OK;
}

/* A source sends its steps in order: after a later step it sends no more of this one. */
static bool is_passed_over(const rp_port_in *port, const rp_port_want *want) {
    bool later[RP_PORT_SOURCES_MAX] = {false};
    uint32_t sources = 0;
    for (uint32_t i = 0; i < port->options.pending_max; i++) {
        const pending *entry = &port->queue[i];
        const rp_parcel *parcel = &entry->parcel;
        if (entry->used && parcel->evaluating == want->evaluating && parcel->step > want->step) {
            sources += !later[parcel->source];
            later[parcel->source] = true;
        }
    }
    return sources == port->options.source_count;
}

static uint32_t find_sample(const rp_port_in *port, const rp_port_want *want, uint64_t sample) {
    uint32_t i = 0;
    while (i < port->options.pending_max &&
           !(same_step(&port->queue[i], want->evaluating, want->step) &&
             range_contains(port->queue[i].parcel.samples, sample))) {
        i++;
    }
    return i;
}

static void cut_piece(const rp_port_in *port, uint32_t index, uint64_t first, uint64_t end,
                      rp_port_piece *piece) {
    const rp_parcel *parcel = &port->queue[index].parcel;
    const rp_port_form *form = &port->options.form;
    const uint64_t stop = end_of(parcel->samples) < end ? end_of(parcel->samples) : end;
    piece->parcel = index;
    piece->time = parcel->time;
    piece->samples = (rp_range){(uint32_t)first, (uint32_t)(stop - first)};
    for (uint32_t t = 0; t < form->tensor_count; t++) {
        const uint32_t skipped = (uint32_t)(first - parcel->samples.first);
        piece->part[t] = (const char *)parcel->part[t].data +
                         (skipped ? rp_port_bytes_at(form, parcel->time, t, skipped) : 0);
    }
}

/* Whether the parcel is a sum that covers samples before `first` or from `end` on. */
static bool sum_exceeds(const rp_port_in *port, uint32_t index, uint64_t first, uint64_t end) {
    const rp_range *samples = &port->queue[index].parcel.samples;
    return port->options.form.is_sum && (samples->first < first || end_of(*samples) > end);
}

rp_err rp_port_in_find(const rp_port_in *port, const rp_port_want *want, rp_port_pieces *pieces,
                       bool *ready) {
    const uint64_t end = end_of(want->samples);
    *ready = false;
    pieces->count = 0;
    for (uint64_t sample = want->samples.first; sample < end;) {
        const uint32_t i = find_sample(port, want, sample);
        if (i == port->options.pending_max) {
            return RP_OK;
        }
        if (sum_exceeds(port, i, want->samples.first, end)) {
            return fail_parcel(port, &port->queue[i].parcel,
                               "no op asks for a sum of these samples");
        }
        if (pieces->count == RP_PORT_PIECES_MAX) {
            return rp_fail(RP_ERR_LIMIT, "%s: an op needs samples of more than %d parcels",
                           port->options.name, RP_PORT_PIECES_MAX);
        }
        rp_port_piece *piece = &pieces->piece[pieces->count++];
        cut_piece(port, i, sample, end, piece);
        sample += piece->samples.count;
    }
    *ready = true;
    return RP_OK;
}

rp_err rp_port_in_gather(rp_port_in *port, const rp_port_want *want, rp_port_pieces *pieces,
                         bool *ready) {
    rp_err err;
    *ready = false;
    RP_TRY(check_waiting(port, want));
    RP_TRY(rp_port_in_find(port, want, pieces, ready));
    if (!*ready && is_passed_over(port, want)) {
        return rp_fail(RP_ERR_PEER, "%s: samples of [%u, +%u) of step %llu were never sent",
                       port->options.name, want->samples.first, want->samples.count,
                       (unsigned long long)want->step);
    }
fail:
    return err;
}

rp_err rp_port_in_gather_one(rp_port_in *port, const rp_port_want *want, rp_port_pieces *pieces,
                             bool *ready) {
    rp_err err;
    RP_ASSERT(port->options.form.is_sum);
    RP_TRY(rp_port_in_gather(port, want, pieces, ready));
    if (*ready && pieces->count != 1) {
        *ready = false;
        return rp_fail(RP_ERR_PEER,
                       "%s: step %llu samples [%u, +%u) arrived in %u parcels, expected one",
                       port->options.name, (unsigned long long)want->step, want->samples.first,
                       want->samples.count, pieces->count);
    }
fail:
    return err;
}

void rp_port_in_take(rp_port_in *port, const rp_port_pieces *pieces) {
    for (uint32_t p = 0; p < pieces->count; p++) {
        pending *entry = &port->queue[pieces->piece[p].parcel];
        entry->taken += pieces->piece[p].samples.count;
        entry->lent++;
        RP_ASSERT(entry->taken <= entry->parcel.samples.count);
        port->last = (rp_port_want){.evaluating = entry->parcel.evaluating,
                                    .step = entry->parcel.step,
                                    .samples = pieces->piece[p].samples};
        port->any_wanted = true;
    }
}

void rp_port_in_return(rp_port_in *port, rp_port_pieces *pieces) {
    for (uint32_t p = 0; p < pieces->count; p++) {
        pending *entry = &port->queue[pieces->piece[p].parcel];
        entry->lent--;
        if (entry->lent == 0 && entry->taken == entry->parcel.samples.count) {
            release_entry(port, entry);
        }
    }
    pieces->count = 0;
}
