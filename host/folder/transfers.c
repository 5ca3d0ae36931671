#include "folder/transfers.h"

#include <string.h>

enum { OPEN_MAX = 8192, PROBES = 16 };

/* One end of a parcel that waits for its other end. */
typedef struct {
    bool used, sent; /* at the end of an op that sent it; else at the start of one that used it */
    bool evaluation;
    uint32_t edge;
    uint64_t step;
    rp_range samples;
    int64_t ns;
    uint64_t age;
} open_end;

struct rp_transfers {
    rp_arena plan_arena;
    const rp_plan *plan; /* plan to which the next arrays belong */
    rp_transfer *scratch;
    uint64_t *sample_bytes; /* by edge; 0: unknown */
    uint64_t ends;          /* counter: age of the next end */
    open_end end[OPEN_MAX];
};

rp_err rp_transfers_open(rp_arena *arena, rp_transfers **out) {
    const rp_err err = RP_ARENA_NEW(arena, 1, out);
    if (err == RP_OK) {
        rp_arena_init(&(*out)->plan_arena, "transfers", 0);
    }
    return err;
}

void rp_transfers_close(rp_transfers **transfers) {
    if (*transfers) {
        rp_arena_finish(&(*transfers)->plan_arena);
    }
    *transfers = NULL;
}

void rp_transfers_forget(rp_transfers *transfers) {
    if (transfers) {
        memset(transfers->end, 0, sizeof transfers->end);
        transfers->plan = NULL;
    }
}

static rp_err take_plan(rp_transfers *t, const rp_plan *plan, const rp_model *model) {
    rp_err err;
    rp_transfers_forget(t);
    rp_arena_finish(&t->plan_arena);
    rp_arena_init(&t->plan_arena, "transfers", 0);
    RP_TRY(RP_ARENA_NEW(&t->plan_arena, (size_t)plan->edge_count + 1, &t->scratch));
    RP_TRY(RP_ARENA_NEW(&t->plan_arena, (size_t)plan->edge_count + 1, &t->sample_bytes));
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_carries carries = plan->edge[e].carries;
        const bool by_sample = carries == RP_CARRIES_ACTIVATION || carries == RP_CARRIES_GRADIENT;
        t->sample_bytes[e] = by_sample ? rp_plan_sample_bytes(&plan->edge[e], model) : 0;
    }
    t->plan = plan;
fail:
    return err;
}

static uint64_t hash_of(uint32_t edge, uint64_t step, uint32_t first) {
    uint64_t value = (step * 1000003u + first) * 1000003u + edge;
    value ^= value >> 29;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    return value ^ value >> 32;
}

static bool is_other_end(const open_end *end, const open_end *of) {
    return end->used && end->sent != of->sent && end->evaluation == of->evaluation &&
           end->edge == of->edge && end->step == of->step &&
           end->samples.first == of->samples.first && end->samples.count == of->samples.count;
}

/* Returns the matching end, which is then closed; or NULL, and stores this one. */
static const open_end *match_end(rp_transfers *t, const open_end *own) {
    const uint64_t at = hash_of(own->edge, own->step, own->samples.first);
    open_end *place = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        open_end *end = &t->end[(at + i) % OPEN_MAX];
        if (is_other_end(end, own)) {
            end->used = false;
            return end;
        }
        if (!place || (place->used && (!end->used || end->age < place->age))) {
            place = end;
        }
    }
    *place = *own;
    return NULL;
}

static rp_err take_end(rp_transfers *t, const rp_transfer *transfer, const rp_sink_op *op,
                       rp_record *record) {
    const rp_plan_edge *edge = &t->plan->edge[transfer->edge];
    const bool sent = transfer->send;
    const open_end own = {.used = true,
                          .sent = sent,
                          .evaluation = op->evaluation,
                          .edge = transfer->edge,
                          .step = transfer->step,
                          .samples = transfer->samples,
                          .ns = sent ? op->end_ns : op->start_ns,
                          .age = t->ends++};
    if (edge->from == RP_PLAN_HOST || edge->from == edge->to) {
        return RP_OK;
    }
    const open_end *other = match_end(t, &own);
    if (!other) {
        return RP_OK;
    }
    const int64_t start_ns = sent ? own.ns : other->ns;
    const int64_t end_ns = sent ? other->ns : own.ns;
    const rp_sink_transfer whole = {
        .from = edge->from,
        .to = edge->to,
        .carries = rp_carries_name(edge->carries),
        .evaluation = op->evaluation,
        .step = transfer->step,
        .samples = transfer->samples,
        .bytes = t->sample_bytes[transfer->edge] * transfer->samples.count,
        /* board clocks agree only roughly: no parcel may arrive before it was sent */
        .start_ns = start_ns < end_ns ? start_ns : end_ns,
        .end_ns = end_ns,
    };
    return rp_record_transfer(record, &whole);
}

rp_err rp_transfers_take(rp_transfers *t, const rp_plan *plan, const rp_model *model,
                         uint32_t batch, const rp_sink_op *op, rp_record *record) {
    const rp_plan_hold *hold = rp_plan_find_hold(plan, op->stage, op->part);
    rp_err err = RP_OK;
    if (!hold || op->samples.count == 0) {
        return RP_OK;
    }
    RP_TRY(t->plan == plan ? RP_OK : take_plan(t, plan, model));
    const uint32_t micro = plan->stage[op->part].micro_forward;
    const rp_op own = {.kind = op->kind,
                       .stage = op->part,
                       .role = hold->role,
                       .step = op->step,
                       .samples = op->samples,
                       .micro = micro ? op->samples.first / micro : 0};
    const uint32_t count =
        rp_plan_transfers(plan, op->stage, &own, op->evaluation ? batch : 0, t->scratch);
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(take_end(t, &t->scratch[i], op, record));
    }
fail:
    return err;
}
