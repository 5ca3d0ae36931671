#include "planners/arrays.h"

#include <math.h>
#include <string.h>

enum { LANES = RP_ARRAYS_LANES, MANY = 64 }; /* MANY: samples from which on lanes are faster */

/* The loader picks the version for its processor; the arithmetic is the same. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) &&                        \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define VECTORS
#endif

/* One number of each genome. gcc and clang map it to the processor's vectors. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t masks __attribute__((vector_size(LANES * sizeof(double))));

/* Raises `to` to `by` in each lane. It is a macro because vectors are not passed to functions in
 * the same way on all processors of a kind. */
#define RAISE(to, by)                                                                              \
    do {                                                                                           \
        const masks up = (by) > (to);                                                              \
        (to) = (lanes)((up & (masks)(by)) | (~up & (masks)(to)));                                  \
    } while (0)

static rp_err open_meeting(rp_arena *arena, const rp_tables *t, uint8_t from, uint8_t to,
                           rp_meeting *out) {
    const uint32_t count = t->count[to];
    const uint32_t most = count < t->count[from] ? count : t->count[from];
    const uint16_t *source = t->source[from][to];
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, most, &out->waits));
    RP_TRY(RP_ARENA_NEW(arena, most, &out->makes));
    RP_TRY(RP_ARENA_NEW(arena, count, &out->passed));
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || source[i] != source[i - 1]) {
            out->waits[out->count] = i;
            out->makes[out->count++] = source[i];
            out->before_last += i + 1 < count;
        }
        out->passed[i] = (uint16_t)(out->count - 1);
    }
fail:
    return err;
}

static void fill_costs(const rp_tables *t, rp_way way, rp_genome_arrays_cost *out) {
    for (uint32_t k = 0; k < t->stages; k++) {
        for (uint32_t i = 0; i < t->size_count; i++) {
            const rp_chunk_s pass = t->pass[way][k * t->size_count + i];
            const rp_chunk_s send = t->send[way][k * t->size_count + i];
            out[k * t->size_count + i] =
                (rp_genome_arrays_cost){.pass = pass.full,
                                        .slower = fmax(pass.full, send.full),
                                        .faster = fmin(pass.full, send.full),
                                        .last_pass = pass.last,
                                        .last_send = send.last,
                                        .latency = t->problem->latency[way][k],
                                        .last = t->count[i] - 1};
        }
    }
}

rp_err rp_genome_arrays_open(rp_arena *arena, const rp_tables *tables, rp_genome_arrays *out) {
    const size_t sizes = tables->size_count;
    const size_t points = (size_t)LANES * tables->samples;
    rp_err err;
    *out = (rp_genome_arrays){.tables = tables};
    RP_TRY(RP_ARENA_NEW(arena, sizes * sizes, &out->meeting));
    for (uint8_t from = 0; from < sizes; from++) {
        for (uint8_t to = 0; to < sizes; to++) {
            RP_TRY(open_meeting(arena, tables, from, to, &out->meeting[from * sizes + to]));
        }
    }
    for (int way = 0; way < RP_WAYS; way++) {
        RP_TRY(RP_ARENA_NEW(arena, points, &out->arrival[way]));
        RP_TRY(RP_ARENA_NEW(arena, tables->stages * sizes, &out->cost[way]));
        fill_costs(tables, (rp_way)way, out->cost[way]);
    }
    RP_TRY(rp_recurrence_open(arena, tables, &out->room));
    RP_TRY(RP_ARENA_NEW(arena, points, &out->peak));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)LANES * tables->stages, &out->start));
fail:
    return err;
}

static inline double later(double a, double b) {
    return a > b ? a : b;
}

/* One stage of all lanes. */
typedef struct {
    const rp_meeting *in[LANES], *out[LANES];
    const rp_genome_arrays_cost *cost[LANES];
    bool alike_in, alike_out;       /* all lanes have the same `in` and `cost`; the same `out` */
    double own[LANES], most[LANES]; /* latest start: the maximum in E_i, and in C_i */
    const double *arrival;
    double *peak, *sent;
} work;

/* ---- waiting: running maxima over the points ------------------------------------------------- */

VECTORS static void wait_alike(work *k) {
    const lanes *restrict arrival = (const lanes *)k->arrival;
    lanes *restrict peak = (lanes *)k->peak;
    const rp_meeting *in = k->in[0];
    const double d = k->cost[0]->slower;
    const double pass = k->cost[0]->pass;
    lanes most;
    lanes own;
    memcpy(&most, k->most, sizeof most);
    own = most;
    if (d > pass) {
        for (uint32_t i = 0; i < in->before_last; i++) {
            const lanes slow = arrival[i] - in->waits[i] * d;
            const lanes fast = arrival[i] - in->waits[i] * pass;
            RAISE(most, slow);
            RAISE(own, fast);
            peak[i] = most;
        }
    } else {
        for (uint32_t i = 0; i < in->before_last; i++) {
            const lanes slow = arrival[i] - in->waits[i] * d;
            RAISE(most, slow);
            peak[i] = most;
        }
        own = most;
    }
    memcpy(k->most, &most, sizeof most);
    memcpy(k->own, &own, sizeof own);
}

static void wait_lane(work *k, uint32_t q) {
    const double *arrival = k->arrival + q;
    const rp_meeting *in = k->in[q];
    const double d = k->cost[q]->slower;
    const double pass = k->cost[q]->pass;
    double *peak = k->peak + q;
    double most = k->most[q];
    double own = most;
    for (uint32_t i = 0; i < in->before_last; i++) {
        own = later(own, arrival[i * LANES] - in->waits[i] * pass);
        most = later(most, arrival[i * LANES] - in->waits[i] * d);
        peak[i * LANES] = most;
    }
    k->most[q] = most;
    k->own[q] = own;
}

/* ---- sending: arrivals at the next stage, before its last point ------------------------------ */

VECTORS static void send_alike(work *k) {
    const lanes *restrict peak = (const lanes *)k->peak;
    lanes *restrict sent = (lanes *)k->sent;
    const rp_meeting *out = k->out[0];
    const uint16_t *passed = k->in[0]->passed;
    const double d = k->cost[0]->slower;
    const double lead = k->cost[0]->faster + k->cost[0]->latency;
    for (uint32_t i = 0; i + 1 < out->count; i++) {
        const uint16_t made = out->makes[i];
        sent[i] = peak[passed[made]] + ((made + 1) * d + lead);
    }
}

static void send_lane(const work *k, uint32_t q) {
    const double *peak = k->peak + q;
    const rp_meeting *out = k->out[q];
    const double d = k->cost[q]->slower;
    const double lead = k->cost[q]->faster + k->cost[q]->latency;
    double *sent = k->sent + q;
    for (uint32_t i = 0; i + 1 < out->count; i++) {
        const uint16_t made = out->makes[i];
        sent[i * LANES] = peak[(uint32_t)k->in[q]->passed[made] * LANES] + ((made + 1) * d + lead);
    }
}

/* Adds the step's last microbatch; returns its end. */
static double finish_lane(const work *k, uint32_t q) {
    const rp_genome_arrays_cost *c = k->cost[q];
    const double before = k->own[q] + c->last * c->pass;
    const double wire = c->last > 0 ? k->most[q] + c->last * c->slower + c->faster : 0;
    const double arrived = k->arrival[(k->in[q]->count - 1) * LANES + q];
    const double end = later(before, arrived) + c->last_pass;
    k->sent[(k->out[q]->count - 1) * LANES + q] = later(end, wire) + c->last_send + c->latency;
    return end;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static void fill_work(const rp_genome_arrays *a, rp_way way, uint32_t position,
                      const rp_genome *const *genome, work *k) {
    const rp_tables *t = a->tables;
    const bool forward = way == RP_WAY_FORWARD;
    const bool is_first = position == 0;
    const bool is_last = position + 1 == t->stages;
    const uint32_t stage = forward ? position : t->stages - 1 - position;
    const uint32_t below = is_first ? stage : forward ? stage - 1 : stage + 1;
    const uint32_t above = is_last ? stage : forward ? stage + 1 : stage - 1;
    const uint32_t sizes = t->size_count;
    k->alike_in = k->alike_out = true;
    for (uint32_t q = 0; q < LANES; q++) {
        const uint8_t *gene = genome[q]->gene[way];
        const uint32_t size = gene[stage];
        const uint32_t from = is_first ? sizes - 1 : gene[below];
        const uint32_t to = is_last ? sizes - 1 : gene[above];
        k->cost[q] = &a->cost[way][stage * sizes + size];
        k->in[q] = &a->meeting[from * sizes + size];
        k->out[q] = &a->meeting[size * sizes + to];
        k->alike_in = k->alike_in && k->in[q] == k->in[0];
        k->alike_out = k->alike_out && k->out[q] == k->out[0];
        k->most[q] = forward ? 0 : a->start[stage * LANES + q];
    }
    k->alike_out = k->alike_out && k->alike_in;
    k->arrival = a->arrival[position % 2];
    k->sent = a->arrival[(position + 1) % 2];
    k->peak = a->peak;
}

static void walk_stage(rp_genome_arrays *a, rp_way way, uint32_t position,
                       const rp_genome *const *genome) {
    const uint32_t stage = way == RP_WAY_FORWARD ? position : a->tables->stages - 1 - position;
    work k;
    fill_work(a, way, position, genome, &k);
    if (k.alike_in) {
        wait_alike(&k);
    }
    if (k.alike_out) {
        send_alike(&k);
    }
    for (uint32_t q = 0; q < LANES; q++) {
        if (!k.alike_in) {
            wait_lane(&k, q);
        }
        if (!k.alike_out) {
            send_lane(&k, q);
        }
        a->start[stage * LANES + q] = finish_lane(&k, q);
    }
}

static double last_end(const rp_genome_arrays *a, uint32_t q) {
    const rp_problem *p = a->tables->problem;
    double makespan = 0;
    for (uint32_t k = 0; k < p->stages; k++) {
        makespan = later(makespan, a->start[k * LANES + q] + p->update[k]);
    }
    return makespan;
}

/* Few microbatches of genomes with few equal sizes are faster one by one. */
static bool is_faster_in_lanes(const rp_genome_arrays *a, const rp_genome *const *lane) {
    const uint32_t stages = a->tables->stages;
    uint32_t differ = 0;
    if (a->tables->samples >= MANY) {
        return true;
    }
    for (uint32_t q = 1; q < LANES; q++) {
        for (uint32_t k = 0; k < stages; k++) {
            differ += lane[q]->gene[RP_WAY_FORWARD][k] != lane[0]->gene[RP_WAY_FORWARD][k];
            differ += lane[q]->gene[RP_WAY_BACKWARD][k] != lane[0]->gene[RP_WAY_BACKWARD][k];
        }
    }
    return differ * 4 < RP_WAYS * stages * (LANES - 1);
}

static void walk_lanes(rp_genome_arrays *a, const rp_genome *const *lane) {
    for (int way = 0; way < RP_WAYS; way++) {
        memset(a->arrival[0], 0, LANES * sizeof *a->arrival[0]);
        for (uint32_t position = 0; position < a->tables->stages; position++) {
            walk_stage(a, (rp_way)way, position, lane);
        }
    }
}

void rp_genome_arrays_makespans(rp_genome_arrays *a, const rp_genome *genome, uint32_t count,
                                double *out) {
    const rp_tables *t = a->tables;
    for (uint32_t first = 0; first < count; first += LANES) {
        const rp_genome *lane[LANES];
        for (uint32_t q = 0; q < LANES; q++) { /* unused lanes repeat the last genome */
            lane[q] = &genome[first + q < count ? first + q : count - 1];
        }
        const bool together = is_faster_in_lanes(a, lane);
        if (together) {
            walk_lanes(a, lane);
        }
        for (uint32_t q = 0; q < LANES && first + q < count; q++) {
            const bool fits = together && rp_problem_fits(t->problem, lane[q]);
            out[first + q] = !together ? rp_recurrence_makespan(t, lane[q], &a->room)
                             : fits    ? last_end(a, q)
                                       : (double)INFINITY;
        }
    }
}
