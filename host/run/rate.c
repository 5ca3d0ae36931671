#include "run/rate.h"

#include <math.h>

typedef struct {
    rp_lr_schedule schedule;
    double lr;
    uint64_t steps, epoch_steps;
} rate;

static double rate_at(const rate *of, uint64_t step) {
    return rp_lr_at(&of->schedule, of->lr, step, of->steps, of->epoch_steps);
}

/* If the batch differs, epoch_steps is recomputed from the present number of samples. */
static rp_err read_rate(rp_node *root, const rp_runfile *now, rate *out) {
    rp_node *train = rp_node_find(root, "train");
    const uint64_t samples = (now->epoch_steps - 1) * now->batch + 1;
    uint32_t batch = now->batch;
    uint64_t epochs = 0;
    rp_optim optim;
    rp_err err;
    *out = (rate){.epoch_steps = now->epoch_steps};
    RP_TRY(train && rp_node_is_map(train) ? RP_OK : RP_ERR_USAGE);
    RP_TRY(rp_node_u64(train, "epochs", 0, UINT32_MAX, &epochs));
    RP_TRY(rp_node_u64(train, "steps", 0, UINT64_MAX, &out->steps));
    RP_TRY(rp_node_u32(train, "batch", 1, UINT32_MAX, &batch));
    RP_TRY(rp_lr_parse(&out->schedule, rp_node_find(root, "lr_schedule")));
    RP_TRY(rp_optim_parse(&optim, rp_node_find(root, "optimizer")));
    out->lr = optim.lr;
    if (batch != now->batch) {
        out->epoch_steps = (samples - 1) / batch + 1;
    }
    if (out->steps == 0 || (epochs > 0 && epochs * out->epoch_steps < out->steps)) {
        out->steps = epochs * out->epoch_steps;
    }
fail:
    return err;
}

bool rp_runfile_rate_change(rp_node *before, const rp_runfile *now, uint64_t step,
                            rp_rate_change *out) {
    const rate is = {now->lr, now->optim.lr, now->steps, now->epoch_steps};
    const bool ends = is.schedule.kind == RP_LR_COSINE || is.schedule.kind == RP_LR_POLY;
    rate was;
    if (step == 0 || read_rate(before, now, &was) != RP_OK) {
        return false;
    }
    const double would = rate_at(&was, step);
    const double next = rate_at(&is, step);
    if (fabs(next - would) <= 1e-9 * fmax(fabs(next), fabs(would))) {
        return false;
    }
    *out = (rp_rate_change){.before = rate_at(&was, step - 1), .now = next};
    if (ends && is.steps != was.steps) {
        out->curve = rp_lr_kinds[is.schedule.kind];
        out->steps = is.steps;
        out->steps_before = was.steps;
    }
    return true;
}
