#include "planning/staleness.h"

#include <math.h>
#include <stdio.h>

static const double MOMENTUM = 0.5; /* least momentum that matters */
enum { STALENESS = 3 };

/* Keys of the optimiser that switch momentum off. */
static const char *remedy_of(const rp_optim *optim) {
    return optim->beta1 > 0 ? "betas: [0, 0.99]" : "momentum: 0";
}

bool rp_staleness_hint(const rp_runfile *run, char *text, size_t bytes) {
    const rp_optim *optim = &run->optim;
    const double momentum = rp_optim_momentum(optim);
    const rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    const uint32_t staleness = rp_method_staleness(&run->method, &shape);
    if (staleness < STALENESS || !(momentum >= MOMENTUM)) {
        return false;
    }
    (void)snprintf(
        text, bytes,
        "gradients are up to %u updates old, and %s %g lets each act for %.3g more updates: "
        "this costs accuracy; try optimizer {%s%s} and another lr",
        staleness, optim->beta1 > 0 ? "beta1" : "momentum", momentum,
        momentum < 1 ? momentum / (1 - momentum) : INFINITY, remedy_of(optim),
        optim->staleness_power > 0 ? "" : ", staleness_power: 1");
    return true;
}
