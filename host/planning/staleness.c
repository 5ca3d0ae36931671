#include "planning/staleness.h"

#include <math.h>

static const double MOMENTUM = 0.5; /* least momentum that matters */
enum { STALENESS = 3 };

/* Keys of the optimiser that switch momentum off. */
static const char *remedy_of(const rp_optim *optim) {
    static const char *const remedies[2][2] = {
        {"momentum: 0, staleness_power: 1", "momentum: 0"},
        {"betas: [0, 0.99], staleness_power: 1", "betas: [0, 0.99]"}};
    return remedies[optim->beta1 > 0][optim->staleness_power > 0];
}

bool rp_staleness_is_costly(const rp_runfile *run, rp_staleness *out) {
    const rp_optim *optim = &run->optim;
    const double momentum = rp_optim_momentum(optim);
    const rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    const uint32_t staleness = rp_method_staleness(&run->method, &shape);
    if (staleness < STALENESS || !(momentum >= MOMENTUM)) {
        return false;
    }
    *out = (rp_staleness){.staleness = staleness,
                          .key = optim->beta1 > 0 ? "beta1" : "momentum",
                          .momentum = momentum,
                          .updates = momentum < 1 ? momentum / (1 - momentum) : (double)INFINITY,
                          .advice = remedy_of(optim)};
    return true;
}
