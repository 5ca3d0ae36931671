#include "planners/recurrence.h"

#include <math.h>

static void fill_costs(const rp_tables *t, const double *table, rp_chunk_s *out) {
    const rp_problem *p = t->problem;
    for (uint32_t k = 0; k < t->stages; k++) {
        const double *row = table + (size_t)k * (t->samples + 1);
        for (uint32_t i = 0; i < t->size_count; i++) {
            const uint32_t rest = t->samples - (t->count[i] - 1) * p->size[i];
            out[k * t->size_count + i] = (rp_chunk_s){row[p->size[i]], row[rest]};
        }
    }
}

static rp_err open_sources(rp_arena *arena, rp_tables *t) {
    const uint32_t *size = t->problem->size;
    size_t cells = 0;
    uint16_t *next;
    rp_err err;
    for (uint32_t to = 0; to < t->size_count; to++) {
        cells += t->count[to];
    }
    RP_TRY(RP_ARENA_NEW(arena, cells * t->size_count, &next));
    for (uint32_t from = 0; from < t->size_count; from++) {
        for (uint32_t to = 0; to < t->size_count; to++) {
            t->source[from][to] = next;
            for (uint32_t i = 0; i < t->count[to]; i++) {
                const uint32_t whole = (i + 1) * size[to];
                const uint32_t prefix = whole < t->samples ? whole : t->samples;
                *next++ = (uint16_t)((prefix - 1) / size[from]);
            }
        }
    }
fail:
    return err;
}

rp_err rp_tables_open(rp_arena *arena, const rp_problem *problem, rp_tables *out) {
    const size_t cells = (size_t)problem->stages * problem->size_count;
    rp_err err;
    *out = (rp_tables){.problem = problem,
                       .stages = problem->stages,
                       .samples = problem->samples,
                       .size_count = problem->size_count};
    for (uint32_t i = 0; i < problem->size_count; i++) {
        out->count[i] = (problem->samples + problem->size[i] - 1) / problem->size[i];
    }
    for (int way = 0; way < RP_WAYS; way++) {
        RP_TRY(RP_ARENA_NEW(arena, cells, &out->pass[way]));
        RP_TRY(RP_ARENA_NEW(arena, cells, &out->send[way]));
        fill_costs(out, problem->pass[way], out->pass[way]);
        fill_costs(out, problem->send[way], out->send[way]);
    }
    RP_TRY(open_sources(arena, out));
fail:
    return err;
}

rp_err rp_recurrence_open(rp_arena *arena, const rp_tables *tables, rp_recurrence_room *out) {
    rp_err err;
    *out = (rp_recurrence_room){.arrival = {0}};
    RP_TRY(RP_ARENA_NEW(arena, tables->samples, &out->arrival[0]));
    RP_TRY(RP_ARENA_NEW(arena, tables->samples, &out->arrival[1]));
fail:
    return err;
}

static inline double later(double a, double b) {
    return a > b ? a : b;
}

double rp_recurrence_stage(const rp_tables *t, rp_way way, uint32_t stage, uint8_t from,
                           uint8_t size, const double *arrival, double start, double *out) {
    const uint32_t last = t->count[size] - 1;
    const uint16_t *source = t->source[from][size];
    const rp_chunk_s pass = t->pass[way][stage * t->size_count + size];
    const rp_chunk_s send = t->send[way][stage * t->size_count + size];
    const double latency = t->problem->latency[way][stage];
    double end = start; /* of the previous microbatch */
    double sent = 0;    /* when the wire is free */
    for (uint32_t i = 0; i < last; i++) {
        end = later(end, arrival[source[i]]) + pass.full;
        sent = later(end, sent) + send.full;
        out[i] = sent + latency;
    }
    end = later(end, arrival[source[last]]) + pass.last;
    out[last] = later(end, sent) + send.last + latency;
    return end;
}

double rp_recurrence_makespan(const rp_tables *t, const rp_genome *genome,
                              rp_recurrence_room *room) {
    const uint8_t whole = (uint8_t)(t->size_count - 1);
    double *in = room->arrival[0];
    double *out = room->arrival[1];
    double makespan = 0;
    if (!rp_problem_fits(t->problem, genome)) {
        return (double)INFINITY;
    }
    for (int way = 0; way < RP_WAYS; way++) {
        uint8_t from = whole;
        in[0] = 0;
        for (uint32_t p = 0; p < t->stages; p++) {
            const bool forward = way == RP_WAY_FORWARD;
            const uint32_t stage = forward ? p : t->stages - 1 - p;
            const uint8_t size = genome->gene[way][stage];
            const double end = rp_recurrence_stage(t, (rp_way)way, stage, from, size, in,
                                                   forward ? 0 : room->start[stage], out);
            room->start[stage] = end;
            double *other = in;
            in = out;
            out = other;
            from = size;
        }
    }
    for (uint32_t k = 0; k < t->stages; k++) {
        makespan = later(makespan, room->start[k] + t->problem->update[k]);
    }
    return makespan;
}
