#include "planners/problem.h"

#include <math.h>
#include <string.h>

static const char *const way_name[RP_WAYS] = {"forward", "backward"};

static void list_sizes(rp_problem *p) {
    uint32_t found = 0;
    for (uint32_t size = p->samples; size > 0 && found < RP_PLANNERS_SIZES_MAX; size--) {
        if (p->samples % size == 0 || (size & (size - 1)) == 0) {
            p->size[found++] = size;
        }
    }
    for (uint32_t i = 0; i < found / 2; i++) {
        const uint32_t other = p->size[i];
        p->size[i] = p->size[found - 1 - i];
        p->size[found - 1 - i] = other;
    }
    p->size_count = found;
}

rp_err rp_problem_open(rp_arena *arena, uint32_t stages, uint32_t samples, rp_problem *out) {
    rp_err err;
    *out = (rp_problem){.stages = stages, .samples = samples};
    if (stages == 0 || stages > RP_PLANNERS_STAGES_MAX) {
        return rp_fail(RP_ERR_USAGE, "planner: %u stages, expected 1 to %d", stages,
                       RP_PLANNERS_STAGES_MAX);
    }
    if (samples == 0 || samples > RP_PLANNERS_SAMPLES_MAX) {
        return rp_fail(RP_ERR_USAGE, "planner: a step of %u samples, expected 1 to %d", samples,
                       RP_PLANNERS_SAMPLES_MAX);
    }
    const size_t cells = (size_t)stages * (samples + 1);
    for (int way = 0; way < RP_WAYS; way++) {
        RP_TRY(RP_ARENA_NEW(arena, cells, &out->pass[way]));
        RP_TRY(RP_ARENA_NEW(arena, cells, &out->send[way]));
        RP_TRY(RP_ARENA_NEW(arena, stages, &out->latency[way]));
    }
    RP_TRY(RP_ARENA_NEW(arena, stages, &out->update));
    RP_TRY(RP_ARENA_NEW(arena, stages, &out->memory));
    RP_TRY(RP_ARENA_NEW(arena, stages, &out->held));
    memset(out->held, RP_PLANNERS_FREE, stages);
    list_sizes(out);
fail:
    return err;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_cost(double seconds) {
    return isfinite(seconds) && seconds >= 0;
}

static rp_err check_costs(const rp_problem *p, uint32_t stage, int way) {
    const size_t row = (size_t)stage * (p->samples + 1);
    for (uint32_t b = 0; b <= p->samples; b++) {
        if (!is_cost(p->pass[way][row + b]) || !is_cost(p->send[way][row + b])) {
            return rp_fail(RP_ERR_USAGE,
                           "planner: stage %u, %s of %u samples: %g s of compute, %g s on the "
                           "wire, expected finite and not negative",
                           stage, way_name[way], b, p->pass[way][row + b], p->send[way][row + b]);
        }
    }
    if (!is_cost(p->latency[way][stage]) || !is_cost(p->update[stage])) {
        return rp_fail(RP_ERR_USAGE,
                       "planner: stage %u: latency %g s, update %g s, expected finite and not "
                       "negative",
                       stage, p->latency[way][stage], p->update[stage]);
    }
    return RP_OK;
}

static rp_err check_sizes(const rp_problem *p) {
    if (p->size_count == 0 || p->size_count > RP_PLANNERS_SIZES_MAX || p->size[0] == 0 ||
        p->size[p->size_count - 1] != p->samples) {
        return rp_fail(RP_ERR_USAGE, "planner: expected 1 to %d sizes, the last of %u samples",
                       RP_PLANNERS_SIZES_MAX, p->samples);
    }
    for (uint32_t i = 1; i < p->size_count; i++) {
        if (p->size[i] <= p->size[i - 1]) {
            return rp_fail(RP_ERR_USAGE, "planner: size %u after size %u, expected a larger one",
                           p->size[i], p->size[i - 1]);
        }
    }
    for (uint32_t k = 0; k < p->stages; k++) {
        if (p->held[k] == RP_PLANNERS_FREE) {
            continue;
        }
        if (p->held[k] >= p->size_count || p->samples % p->size[p->held[k]] != 0) {
            return rp_fail(RP_ERR_USAGE,
                           "planner: stage %u is held at size %u of %u, expected one that divides "
                           "the step of %u samples",
                           k, p->held[k], p->size_count, p->samples);
        }
    }
    return RP_OK;
}

rp_err rp_problem_check(const rp_problem *p) {
    const rp_genome least = rp_problem_even(p, 0);
    rp_err err;
    RP_TRY(check_sizes(p));
    for (uint32_t k = 0; k < p->stages; k++) {
        for (int way = 0; way < RP_WAYS; way++) {
            RP_TRY(check_costs(p, k, way));
        }
        if (!rp_problem_fits_at(p, &least, k)) {
            return rp_fail(RP_ERR_LIMIT,
                           "planner: stage %u needs %llu bytes with the smallest microbatches, it "
                           "has %llu",
                           k, (unsigned long long)rp_problem_bytes(p, &least, k),
                           (unsigned long long)p->memory[k].limit_bytes);
        }
    }
fail:
    return err;
}

/* ---- genomes --------------------------------------------------------------------------------- */

void rp_problem_hold(const rp_problem *p, rp_genome *genome) {
    for (uint32_t k = 0; k < p->stages; k++) {
        if (p->held[k] != RP_PLANNERS_FREE) {
            genome->gene[RP_WAY_FORWARD][k] = genome->gene[RP_WAY_BACKWARD][k] = p->held[k];
        }
    }
}

rp_genome rp_problem_even(const rp_problem *p, uint8_t size) {
    rp_genome out = {0};
    for (uint32_t k = 0; k < p->stages; k++) {
        out.gene[RP_WAY_FORWARD][k] = out.gene[RP_WAY_BACKWARD][k] = size;
    }
    rp_problem_hold(p, &out);
    return out;
}

uint64_t rp_problem_bytes(const rp_problem *p, const rp_genome *genome, uint32_t stage) {
    const rp_problem_memory *m = &p->memory[stage];
    const uint8_t *forward = genome->gene[RP_WAY_FORWARD];
    const uint8_t *backward = genome->gene[RP_WAY_BACKWARD];
    const uint8_t larger = forward[stage] > backward[stage] ? forward[stage] : backward[stage];
    uint64_t bytes = m->fixed_bytes + p->samples * m->stash_bytes + p->size[larger] * m->work_bytes;
    if (stage > 0) {
        bytes += p->size[forward[stage - 1]] * m->arrive_bytes[RP_WAY_FORWARD];
    }
    if (stage + 1 < p->stages) {
        bytes += p->size[backward[stage + 1]] * m->arrive_bytes[RP_WAY_BACKWARD];
    }
    return bytes;
}

bool rp_problem_fits_at(const rp_problem *p, const rp_genome *genome, uint32_t stage) {
    const uint64_t limit = p->memory[stage].limit_bytes;
    return limit == 0 || rp_problem_bytes(p, genome, stage) <= limit;
}

bool rp_problem_fits(const rp_problem *p, const rp_genome *genome) {
    for (uint32_t k = 0; k < p->stages; k++) {
        if (!rp_problem_fits_at(p, genome, k)) {
            return false;
        }
    }
    return true;
}
