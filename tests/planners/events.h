/* A step of a ring, event by event: stages that have a list of ops, wires that have a queue,
 * samples that arrive. It shares no formula with the recurrence: only the problem and the genome.
 */
#ifndef RP_TESTS_PLANNERS_EVENTS_H
#define RP_TESTS_PLANNERS_EVENTS_H

#include <math.h>
#include <stdbool.h>

#include "planners/problem.h"

enum { EVENTS_STAGES = 16, EVENTS_SAMPLES = 128, EVENTS_MAX = 8192 };

typedef enum { EVENT_OP_ENDS, EVENT_WIRE_IS_FREE, EVENT_ARRIVES } event_kind;

typedef struct {
    double time;
    event_kind kind;
    int way;
    uint32_t stage; /* that computes, sends, or receives */
    uint32_t first, count;
} event;

typedef struct {
    uint32_t first, count;
} event_parcel;

typedef struct {
    event_parcel queue[EVENTS_SAMPLES];
    uint32_t head, tail;
    bool busy;
} event_wire;

typedef struct {
    bool there[RP_WAYS][EVENTS_SAMPLES]; /* inputs, gradients */
    event_wire wire[RP_WAYS];            /* that it sends over */
    uint32_t done[RP_WAYS];              /* samples */
    bool busy;
    double end;
} event_stage;

typedef struct {
    const rp_problem *problem;
    const rp_genome *genome;
    event_stage stage[EVENTS_STAGES];
    event pending[EVENTS_MAX];
    uint32_t count;
} event_ring;

static inline void event_add(event_ring *r, event e) {
    assert_true(r->count < EVENTS_MAX);
    r->pending[r->count++] = e;
}

static inline event event_take(event_ring *r) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < r->count; i++) {
        first = r->pending[i].time < r->pending[first].time ? i : first;
    }
    const event out = r->pending[first];
    r->pending[first] = r->pending[--r->count];
    return out;
}

/* The next op of a stage, where it is idle and all samples are there. */
static inline void event_try_op(event_ring *r, uint32_t k, double now) {
    const rp_problem *p = r->problem;
    event_stage *s = &r->stage[k];
    const int way = s->done[RP_WAY_FORWARD] < p->samples ? RP_WAY_FORWARD : RP_WAY_BACKWARD;
    const uint32_t left = p->samples - s->done[way];
    const uint32_t size = p->size[r->genome->gene[way][k]];
    const uint32_t count = left < size ? left : size;
    const uint32_t first = way == RP_WAY_FORWARD ? s->done[way] : left - count;
    if (s->busy || left == 0) {
        return;
    }
    for (uint32_t i = first; i < first + count; i++) {
        if (!s->there[way][i]) {
            return;
        }
    }
    s->busy = true;
    event_add(r, (event){.time = now + p->pass[way][k * (p->samples + 1) + count],
                         .kind = EVENT_OP_ENDS,
                         .way = way,
                         .stage = k,
                         .first = first,
                         .count = count});
}

static inline void event_try_wire(event_ring *r, int way, uint32_t k, double now) {
    const rp_problem *p = r->problem;
    event_wire *w = &r->stage[k].wire[way];
    if (w->busy || w->head == w->tail) {
        return;
    }
    const event_parcel parcel = w->queue[w->head++];
    const double free = now + p->send[way][k * (p->samples + 1) + parcel.count];
    w->busy = true;
    event_add(r, (event){.time = free, .kind = EVENT_WIRE_IS_FREE, .way = way, .stage = k});
    event_add(r, (event){.time = free + p->latency[way][k],
                         .kind = EVENT_ARRIVES,
                         .way = way,
                         .stage = way == RP_WAY_FORWARD ? k + 1 : k - 1,
                         .first = parcel.first,
                         .count = parcel.count});
}

static inline void event_happens(event_ring *r, const event *e) {
    event_stage *s = &r->stage[e->stage];
    const uint32_t last = r->problem->stages - 1;
    switch (e->kind) {
    case EVENT_OP_ENDS:
        s->busy = false;
        s->done[e->way] += e->count;
        s->end = e->time;
        if (e->stage != (e->way == RP_WAY_FORWARD ? last : 0)) {
            s->wire[e->way].queue[s->wire[e->way].tail++] = (event_parcel){e->first, e->count};
        }
        break;
    case EVENT_WIRE_IS_FREE:
        s->wire[e->way].busy = false;
        break;
    case EVENT_ARRIVES:
        for (uint32_t i = e->first; i < e->first + e->count; i++) {
            s->there[e->way][i] = true;
        }
        break;
    }
}

/* The end of the step's last update. */
static inline double event_makespan(const rp_problem *p, const rp_genome *genome) {
    static event_ring r;
    double makespan = 0;
    assert_true(p->stages <= EVENTS_STAGES && p->samples <= EVENTS_SAMPLES);
    memset(&r, 0, sizeof r);
    r.problem = p;
    r.genome = genome;
    for (uint32_t i = 0; i < p->samples; i++) {
        r.stage[0].there[RP_WAY_FORWARD][i] = true;
        r.stage[p->stages - 1].there[RP_WAY_BACKWARD][i] = true; /* it has the loss */
    }
    event_try_op(&r, 0, 0);
    while (r.count > 0) {
        const event e = event_take(&r);
        event_happens(&r, &e);
        for (uint32_t k = 0; k < p->stages; k++) {
            event_try_op(&r, k, e.time);
            event_try_wire(&r, RP_WAY_FORWARD, k, e.time);
            event_try_wire(&r, RP_WAY_BACKWARD, k, e.time);
        }
    }
    for (uint32_t k = 0; k < p->stages; k++) {
        assert_int_equal(r.stage[k].done[RP_WAY_BACKWARD], p->samples);
        makespan = fmax(makespan, r.stage[k].end + p->update[k]);
    }
    return makespan;
}

#endif
