#include "planning/offload.h"

#include <math.h>

static double larger(double a, double b) {
    return a > b ? a : b;
}

double rp_offload_cost_s(const rp_offload_cost *of) {
    if (!(of->write_rate > 0) || !(of->read_rate > 0)) {
        return (double)INFINITY;
    }
    const double out_s = of->stash_bytes / of->write_rate;
    const double in_s = of->stash_bytes / of->read_rate;
    const double moves_s = of->both_ways ? larger(out_s, in_s) : out_s + in_s;
    return larger(0, moves_s - (of->forward_s + of->backward_s)) + of->copy_s;
}

double rp_split_period_s(const rp_split_cost *stage, uint32_t count) {
    double most_s = 0;
    for (uint32_t k = 0; k < count; k++) {
        most_s = larger(most_s, larger(stage[k].forward_s, stage[k].backward_s));
    }
    return most_s;
}

rp_err rp_split_check(const rp_split_cost *stage, uint32_t count, const char *const (*board)[2]) {
    const double period_s = rp_split_period_s(stage, count);
    uint32_t worst = 0;
    for (uint32_t k = 1; k < count; k++) {
        worst = stage[k].stash_s > stage[worst].stash_s ? k : worst;
    }
    return stage[worst].stash_s <= period_s
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "plan: stage %u: a stash takes %.4g ms on the wire from board %s to board "
                         "%s, and no board computes longer than %.4g ms for a microbatch: the ring "
                         "would wait for it. Expected a faster wire, a cut with smaller "
                         "activations there, or a schedule that does not split stages",
                         worst, 1e3 * stage[worst].stash_s, board[worst][0], board[worst][1],
                         1e3 * period_s);
}
