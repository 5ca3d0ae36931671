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
