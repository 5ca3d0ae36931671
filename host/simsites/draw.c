#include "simsites/draw.h"

#include <stdlib.h>

#include "base/clock.h"

enum { LEAST = 4, MORE = 5 }; /* faults of a run */

static const struct {
    rp_sim_fault_kind kind;
    bool needs_least; /* only if a round may close without a site */
} drawn[] = {
    {RP_SIM_FAULT_CRASH, false},      {RP_SIM_FAULT_SUSPEND, false},
    {RP_SIM_FAULT_SLOW, false},       {RP_SIM_FAULT_PARTITION, false},
    {RP_SIM_FAULT_HOST_CRASH, false}, {RP_SIM_FAULT_SAVE_CRASH, false},
    {RP_SIM_FAULT_HOST_STILL, false}, {RP_SIM_FAULT_INTERRUPT, false},
    {RP_SIM_FAULT_GONE, true},        {RP_SIM_FAULT_WRONG, true},
};

enum { KINDS = sizeof drawn / sizeof *drawn };

static double draw_share(rp_rng *rng) {
    return (double)rp_rng_uniform(rng);
}

/* Most faults are short. One of eight lasts longer than a site is started again. */
static double draw_duration_s(rp_rng *rng, double round_s) {
    const bool is_long = rp_rng_below(rng, 8) == 0;
    return is_long ? 10 + 20 * draw_share(rng) : 2 * round_s * draw_share(rng);
}

static void place_fault(rp_rng *rng, uint32_t sites, rp_sim_fault *fault) {
    const rp_sim_target target = rp_sim_fault_target(fault->kind);
    const uint32_t site = rp_rng_below(rng, sites);
    const bool down = rp_rng_below(rng, 2) == 0;
    fault->from =
        target == RP_SIM_TARGET_HOST || (target == RP_SIM_TARGET_EDGE && down) ? RP_SIM_HOST : site;
    fault->to = target == RP_SIM_TARGET_HOST || (target == RP_SIM_TARGET_EDGE && !down)
                    ? RP_SIM_HOST
                    : site;
}

static int by_time(const void *left, const void *right) {
    const int64_t a = ((const rp_sim_fault *)left)->at_ns;
    const int64_t b = ((const rp_sim_fault *)right)->at_ns;
    return (a > b) - (a < b);
}

void rp_sim_sites_draw(rp_rng *rng, const rp_sim_sites_subject *subject, rp_sim_faults *out) {
    const double run_s = subject->round_s * subject->run.federated.rounds;
    const bool spares = subject->run.federated.least > 0;
    const uint32_t count = LEAST + rp_rng_below(rng, MORE + 1);
    bool used[KINDS];
    uint32_t usable = 0;
    for (size_t k = 0; k < KINDS; k++) {
        used[k] = (!drawn[k].needs_least || spares) && rp_rng_below(rng, 2) == 0;
        usable += used[k];
    }
    used[0] = used[0] || usable == 0;
    *out = (rp_sim_faults){.count = count};
    for (uint32_t i = 0; i < count; i++) {
        rp_sim_fault *fault = &out->fault[i];
        uint32_t kind = rp_rng_below(rng, KINDS);
        while (!used[kind]) {
            kind = (kind + 1) % KINDS;
        }
        *fault = (rp_sim_fault){.kind = drawn[kind].kind, .in = RP_CONTROL_STATES};
        place_fault(rng, subject->list.sites, fault);
        fault->at_ns = (int64_t)(run_s * draw_share(rng) * 1e9);
        fault->for_ns = (int64_t)(draw_duration_s(rng, subject->round_s) * 1e9);
        fault->amount = fault->kind == RP_SIM_FAULT_SLOW ? 1 + 9 * draw_share(rng) : 0;
        fault->amount = fault->kind == RP_SIM_FAULT_WRONG ? 1 : fault->amount;
    }
    qsort(out->fault, count, sizeof *out->fault, by_time);
}
