#include "sched/sched.h"

#include <stdio.h>
#include <string.h>

const rp_sched_kind *rp_sched_find(const char *name) {
    for (const rp_sched_kind *const *kind = rp_sched_kinds; *kind; kind++) {
        if (strcmp((*kind)->name, name) == 0) {
            return *kind;
        }
    }
    return NULL;
}

const char *rp_op_letter(rp_op_kind kind) {
    static const char *const letters[RP_OP_KINDS] = {"F", "B", "B", "W", "U"};
    RP_ASSERT((unsigned)kind < RP_OP_KINDS);
    return letters[kind];
}

uint32_t rp_sched_in_flight_max(const rp_sched_shape *shape) {
    const uint32_t behind = shape->stages - 1 - shape->stage;
    return 1 + behind + behind * shape->advance;
}

uint64_t rp_sched_epoch_steps(const rp_sched_shape *shape) {
    return (shape->epoch_samples - 1) / shape->batch + 1;
}

uint32_t rp_sched_step_samples(const rp_sched_shape *shape, uint64_t step) {
    const uint64_t first = step % rp_sched_epoch_steps(shape) * shape->batch;
    const uint64_t rest = shape->epoch_samples - first;
    return rest < shape->batch ? (uint32_t)rest : shape->batch;
}

uint32_t rp_sched_micro_count(const rp_sched_shape *shape, uint64_t step) {
    return (rp_sched_step_samples(shape, step) - 1) / shape->micro + 1;
}

rp_range rp_sched_micro_range(const rp_sched_shape *shape, uint64_t step, uint32_t micro) {
    RP_ASSERT(micro < rp_sched_micro_count(shape, step));
    const uint32_t first = micro * shape->micro;
    const uint32_t rest = rp_sched_step_samples(shape, step) - first;
    return (rp_range){first, rest < shape->micro ? rest : shape->micro};
}

void rp_sched_start(rp_sched_state *state, const rp_sched_shape *shape) {
    RP_ASSERT(shape->stage < shape->stages);
    RP_ASSERT(shape->epoch_samples > 0 && shape->batch > 0 && shape->micro > 0);
    RP_ASSERT(shape->step_first <= shape->step_end);
    *state =
        (rp_sched_state){.shape = *shape, .step = shape->step_first, .f_step = shape->step_first};
}

rp_op rp_sched_micro_op(const rp_sched_state *state, rp_op_kind kind, uint64_t step,
                        uint64_t micro) {
    return (rp_op){.kind = kind,
                   .step = step,
                   .samples = rp_sched_micro_range(&state->shape, step, (uint32_t)micro),
                   .micro = (uint32_t)micro};
}

rp_op rp_sched_end_step(rp_sched_state *state) {
    const rp_op op = {.kind = RP_OP_UPDATE,
                      .step = state->step,
                      .samples = {0, rp_sched_step_samples(&state->shape, state->step)}};
    state->f = state->b = state->w = 0;
    state->step++;
    return op;
}

/* ---- replay ---------------------------------------------------------------------------------- */

/* Samples that something was done to and that wait for what comes next. */
typedef struct piece {
    struct piece *next;
    uint64_t step;
    rp_range samples;
    double time;      /* usable from here on */
    uint64_t version; /* own updates when it was made */
} piece;

typedef struct {
    piece *first; /* oldest first */
    uint32_t count;
} ledger;

typedef struct {
    rp_sched_state state;
    rp_op op; /* the next one */
    bool over, ready;
    double start; /* of `op` when ready */
    double free;  /* end of the last op */
    double activation_link_free, gradient_link_free;
    uint64_t updates;
    ledger activations; /* arrived from the stage before */
    ledger gradients;   /* arrived from the stage after */
    ledger held;        /* own forwards, backward to come */
    ledger owed;        /* own input gradients, weight gradient to come */
} runner;

typedef struct {
    rp_arena arena; /* pieces and runners, gone at the end */
    piece *spare;
    const rp_sched_kind *kind;
    const rp_sched_costs *costs;
    uint32_t stages;
    runner *runner;
    rp_sched_facts *facts;
} replay;

static rp_err insert(replay *r, ledger *to, piece **link, const piece *content) {
    rp_err err = RP_OK;
    if (!r->spare) {
        enum { PIECES = 64 };
        piece *more;
        RP_TRY(RP_ARENA_NEW(&r->arena, PIECES, &more));
        for (uint32_t i = 0; i < PIECES; i++) {
            more[i].next = r->spare;
            r->spare = &more[i];
        }
    }
    piece *added = r->spare;
    r->spare = added->next;
    *added = *content;
    added->next = *link;
    *link = added;
    to->count++;
fail:
    return err;
}

static rp_err append(replay *r, ledger *to, const piece *content) {
    piece **end = &to->first;
    while (*end) {
        end = &(*end)->next;
    }
    return insert(r, to, end, content);
}

static rp_range common_part(const piece *p, uint64_t step, rp_range samples) {
    const uint32_t p_end = p->samples.first + p->samples.count;
    const uint32_t s_end = samples.first + samples.count;
    const uint32_t first = p->samples.first > samples.first ? p->samples.first : samples.first;
    const uint32_t end = p_end < s_end ? p_end : s_end;
    return (rp_range){first, p->step == step && end > first ? end - first : 0};
}

/* Are all samples of the op there? Then *time is no earlier than the last of them. */
static bool covers(const ledger *from, const rp_op *op, double *time) {
    uint32_t count = 0;
    for (const piece *p = from->first; p; p = p->next) {
        const uint32_t part = common_part(p, op->step, op->samples).count;
        if (part > 0 && p->time > *time) {
            *time = p->time;
        }
        count += part;
    }
    return count >= op->samples.count;
}

/* Takes the op's samples out; *version (may be NULL) becomes the oldest among them. */
static rp_err take(replay *r, ledger *from, const rp_op *op, uint64_t *version) {
    rp_err err = RP_OK;
    piece **link = &from->first;
    while (*link) {
        piece *p = *link;
        const rp_range part = common_part(p, op->step, op->samples);
        if (part.count == 0) {
            link = &p->next;
            continue;
        }
        if (version && p->version < *version) {
            *version = p->version;
        }
        const uint32_t part_end = part.first + part.count;
        const uint32_t left = part.first - p->samples.first;
        const uint32_t right = p->samples.first + p->samples.count - part_end;
        if (left > 0 && right > 0) {
            piece tail = *p;
            tail.samples = (rp_range){part_end, right};
            RP_TRY(insert(r, from, &p->next, &tail));
        }
        if (left > 0) {
            p->samples.count = left;
            link = &p->next;
        } else if (right > 0) {
            p->samples = (rp_range){part_end, right};
            link = &p->next;
        } else {
            *link = p->next;
            p->next = r->spare;
            r->spare = p;
            from->count--;
        }
    }
fail:
    return err;
}

/* What the stage's next op waits for, or NULL with the time when it can start. */
static const char *missing(const replay *r, uint32_t stage, double *start) {
    const runner *n = &r->runner[stage];
    *start = n->free;
    switch (n->op.kind) {
    case RP_OP_FORWARD:
        return stage == 0 || covers(&n->activations, &n->op, start) ? NULL : "an activation";
    case RP_OP_BACKWARD:
    case RP_OP_BACKWARD_INPUT:
        if (!covers(&n->held, &n->op, start)) {
            return "its own forward";
        }
        return stage + 1 == r->stages || covers(&n->gradients, &n->op, start) ? NULL : "a gradient";
    case RP_OP_BACKWARD_WEIGHT:
        return covers(&n->owed, &n->op, start) ? NULL : "its input gradient";
    default:
        return NULL;
    }
}

static void refresh(replay *r, uint32_t stage) {
    runner *n = &r->runner[stage];
    n->ready = !n->over && !missing(r, stage, &n->start);
}

static double one(const double *costs, uint32_t stage, double otherwise) {
    return costs ? costs[stage] : otherwise;
}

static double duration(const replay *r, uint32_t stage, const rp_op *op) {
    const rp_sched_costs *c = r->costs;
    const double scale = (double)op->samples.count / r->runner[stage].state.shape.micro;
    const double input = one(c->backward_input, stage, 0.5);
    const double weight = one(c->backward_weight, stage, 0.5);
    switch (op->kind) {
    case RP_OP_FORWARD:
        return scale * one(c->forward, stage, 1);
    case RP_OP_BACKWARD:
        return scale * (input + weight);
    case RP_OP_BACKWARD_INPUT:
        return scale * input;
    case RP_OP_BACKWARD_WEIGHT:
        return scale * weight;
    case RP_OP_UPDATE:
        return one(c->update, stage, 0);
    default:
        return 0;
    }
}

/* The op's result leaves over one of the stage's links and arrives as *content in `to`. */
static rp_err deliver(replay *r, uint32_t stage, double *link_free, ledger *to, piece *content) {
    const uint32_t micro = r->runner[stage].state.shape.micro;
    const double begin = content->time > *link_free ? content->time : *link_free;
    *link_free = begin + one(r->costs->send, stage, 0) * (double)content->samples.count / micro;
    content->time = *link_free + one(r->costs->delay, stage, 0);
    return append(r, to, content);
}

static void grow(uint32_t *max, uint32_t value) {
    *max = value > *max ? value : *max;
}

/* The held forwards stand in the order of their versions. */
static uint32_t count_versions(const runner *n) {
    uint32_t count = 1;
    uint64_t last = n->updates;
    for (const piece *p = n->held.first; p; p = p->next) {
        if (p->version != n->updates && p->version != last) {
            count++;
        }
        last = p->version;
    }
    return count;
}

static rp_err finish_forward(replay *r, uint32_t stage, piece done) {
    rp_err err = RP_OK;
    runner *n = &r->runner[stage];
    rp_sched_stage_facts *facts = &r->facts->stage[stage];
    if (stage > 0) {
        RP_TRY(take(r, &n->activations, &n->op, NULL));
    }
    RP_TRY(append(r, &n->held, &done));
    grow(&facts->in_flight_max, n->held.count);
    grow(&facts->stash_max, n->held.count + n->owed.count);
    grow(&facts->versions_max, count_versions(n));
    if (stage + 1 < r->stages) {
        RP_TRY(deliver(r, stage, &n->activation_link_free, &n[1].activations, &done));
    }
fail:
    return err;
}

static rp_err finish_backward(replay *r, uint32_t stage, piece done) {
    rp_err err = RP_OK;
    runner *n = &r->runner[stage];
    rp_sched_stage_facts *facts = &r->facts->stage[stage];
    uint64_t version = n->updates;
    RP_TRY(take(r, &n->held, &n->op, &version));
    grow(&facts->gap_max, (uint32_t)(n->updates - version));
    if (stage + 1 < r->stages) {
        RP_TRY(take(r, &n->gradients, &n->op, NULL));
    }
    if (n->op.kind == RP_OP_BACKWARD_INPUT) {
        RP_TRY(append(r, &n->owed, &done));
        grow(&facts->weight_debt_max, n->owed.count);
        grow(&facts->stash_max, n->held.count + n->owed.count);
    }
    if (stage > 0) {
        RP_TRY(deliver(r, stage, &n->gradient_link_free, &n[-1].gradients, &done));
    }
fail:
    return err;
}

static rp_err run_op(replay *r, uint32_t stage, rp_sched_slot *slot) {
    runner *n = &r->runner[stage];
    rp_sched_stage_facts *facts = &r->facts->stage[stage];
    const double cost = duration(r, stage, &n->op);
    n->free = n->start + cost;
    *slot = (rp_sched_slot){.stage = stage, .op = n->op, .start = n->start, .end = n->free};
    facts->busy += cost;
    facts->end = n->free;
    const piece done = {
        .step = n->op.step, .samples = n->op.samples, .time = n->free, .version = n->updates};
    switch (n->op.kind) {
    case RP_OP_FORWARD:
        return finish_forward(r, stage, done);
    case RP_OP_BACKWARD:
    case RP_OP_BACKWARD_INPUT:
        return finish_backward(r, stage, done);
    case RP_OP_BACKWARD_WEIGHT:
        return take(r, &n->owed, &n->op, NULL);
    case RP_OP_UPDATE:
        n->updates++;
        grow(&facts->versions_max, count_versions(n));
        return RP_OK;
    default:
        return RP_OK;
    }
}

static rp_err fail_deadlock(const replay *r) {
    char text[1000] = "";
    size_t used = 0;
    for (uint32_t k = 0; k < r->stages && used < sizeof text; k++) {
        const runner *n = &r->runner[k];
        double start;
        const int bytes = n->over
                              ? snprintf(text + used, sizeof text - used, "; stage %u is done", k)
                              : snprintf(text + used, sizeof text - used,
                                         "; stage %u at %s%u of step %llu waits for %s", k,
                                         rp_op_letter(n->op.kind), n->op.micro,
                                         (unsigned long long)n->op.step, missing(r, k, &start));
        used += bytes > 0 ? (size_t)bytes : 0;
    }
    return rp_fail(RP_ERR_FAULT, "schedule %s: deadlock%s", r->kind->name, text);
}

static rp_err run_all(replay *r, void (*visit)(void *context, const rp_sched_slot *slot),
                      void *context) {
    rp_err err = RP_OK;
    for (;;) {
        uint32_t running = 0;
        uint32_t next = r->stages;
        for (uint32_t k = 0; k < r->stages; k++) {
            const runner *n = &r->runner[k];
            running += !n->over;
            if (n->ready && (next == r->stages || n->start < r->runner[next].start)) {
                next = k;
            }
        }
        if (running == 0) {
            return RP_OK;
        }
        if (next == r->stages) {
            return fail_deadlock(r);
        }
        rp_sched_slot slot;
        RP_TRY(run_op(r, next, &slot));
        if (visit) {
            visit(context, &slot);
        }
        runner *n = &r->runner[next];
        n->over = !r->kind->next(&n->state, &n->op);
        for (uint32_t k = next > 0 ? next - 1 : 0; k < r->stages && k <= next + 1; k++) {
            refresh(r, k); /* an op moves only its own stage and its neighbours */
        }
    }
fail:
    return err;
}

static rp_err check_empty(const replay *r) {
    for (uint32_t k = 0; k < r->stages; k++) {
        const runner *n = &r->runner[k];
        if (n->activations.count || n->gradients.count || n->held.count || n->owed.count) {
            return rp_fail(RP_ERR_FAULT,
                           "schedule %s: stage %u ends with %u activations, %u gradients, %u "
                           "forwards and %u weight gradients left",
                           r->kind->name, k, n->activations.count, n->gradients.count,
                           n->held.count, n->owed.count);
        }
    }
    return RP_OK;
}

static void sum_up(const replay *r) {
    rp_sched_facts *facts = r->facts;
    double busy = 0;
    for (uint32_t k = 0; k < r->stages; k++) {
        busy += facts->stage[k].busy;
        if (facts->stage[k].end > facts->makespan) {
            facts->makespan = facts->stage[k].end;
        }
    }
    facts->bubble = facts->makespan > 0 ? 1 - busy / (r->stages * facts->makespan) : 0;
}

rp_err rp_sched_replay(rp_arena *arena, const rp_sched_kind *kind, const rp_sched_shape *shape,
                       const rp_sched_costs *costs,
                       void (*visit)(void *context, const rp_sched_slot *slot), void *context,
                       rp_sched_facts *out) {
    rp_err err = RP_OK;
    const rp_sched_costs unit = {0};
    rp_sched_facts facts = {0};
    replay r = {
        .kind = kind, .costs = costs ? costs : &unit, .stages = shape->stages, .facts = &facts};
    rp_arena_init(&r.arena, "replay", 0);
    RP_TRY(RP_ARENA_NEW(arena, shape->stages, &facts.stage));
    RP_TRY(RP_ARENA_NEW(&r.arena, shape->stages, &r.runner));
    for (uint32_t k = 0; k < r.stages; k++) {
        rp_sched_shape own = *shape;
        own.stage = k;
        rp_sched_start(&r.runner[k].state, &own);
        r.runner[k].over = !kind->next(&r.runner[k].state, &r.runner[k].op);
        facts.stage[k].versions_max = 1;
        refresh(&r, k);
    }
    RP_TRY(run_all(&r, visit, context));
    RP_TRY(check_empty(&r));
    sum_up(&r);
    *out = facts;
fail:
    rp_arena_finish(&r.arena);
    return err;
}
