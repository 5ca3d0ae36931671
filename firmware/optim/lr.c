/* Learning-rate schedules, a pure function of the step.
 *
 * source  torch.optim.lr_scheduler: StepLR, CosineAnnealingLR (T_max = steps without warm-up),
 *         PolynomialLR */
#include <math.h>
#include <string.h>

#include "optim/optim.h"

#define PI 3.14159265358979323846

const char *const rp_lr_kinds[] = {"constant", "step", "cosine", "poly", NULL};

static rp_err parse_word(rp_lr_schedule *schedule, const rp_node *node) {
    const char *text = rp_node_text(node);
    for (uint32_t i = 0; rp_lr_kinds[i]; i++) {
        if (strcmp(text, rp_lr_kinds[i]) == 0) {
            schedule->kind = (rp_lr_kind)i;
            return RP_OK;
        }
    }
    return rp_node_fail(node, "unknown schedule '%s', expected constant, step, cosine or poly",
                        text);
}

/* Reads only the keys of the kind; rp_node_done() rejects others. */
static rp_err parse_keys(rp_lr_schedule *schedule, rp_node *node) {
    rp_err err;
    RP_TRY(rp_node_u64(node, "warmup_steps", 0, UINT32_MAX, &schedule->warmup_steps));
    if (schedule->kind == RP_LR_STEP) {
        RP_TRY(rp_node_need(node, "step_size"));
        RP_TRY(rp_node_u64(node, "step_size", 1, UINT32_MAX, &schedule->step_size));
        RP_TRY(rp_node_f64(node, "gamma", 0.0, 1e6, &schedule->gamma));
    }
    if (schedule->kind == RP_LR_POLY) {
        RP_TRY(rp_node_f64(node, "power", 0.0, 1e3, &schedule->power));
    }
    if (schedule->kind == RP_LR_POLY || schedule->kind == RP_LR_COSINE) {
        RP_TRY(rp_node_f64(node, "min_lr", 0.0, 1e30, &schedule->min_lr));
    }
    RP_TRY(rp_node_done(node));
    return RP_OK;
fail:
    return err;
}

rp_err rp_lr_parse(rp_lr_schedule *schedule, rp_node *node) {
    uint32_t kind = RP_LR_CONSTANT;
    rp_err err;
    *schedule =
        (rp_lr_schedule){.kind = RP_LR_CONSTANT, .step_size = 1, .gamma = 0.1, .power = 1.0};
    if (!node) {
        return RP_OK;
    }
    if (rp_node_is_scalar(node)) {
        RP_TRY(parse_word(schedule, node));
        if (schedule->kind == RP_LR_STEP) {
            return rp_node_fail(node, "step needs step_size: {kind: step, step_size: EPOCHS}");
        }
        return RP_OK;
    }
    if (!rp_node_is_map(node)) {
        return rp_node_fail(node, "expected a word or a map, e.g. {kind: cosine}");
    }
    RP_TRY(rp_node_need(node, "kind"));
    RP_TRY(rp_node_word(node, "kind", rp_lr_kinds, &kind));
    schedule->kind = (rp_lr_kind)kind;
    RP_TRY(parse_keys(schedule, node));
    return RP_OK;
fail:
    return err;
}

double rp_lr_at(const rp_lr_schedule *schedule, double lr, uint64_t step, uint64_t steps,
                uint64_t steps_per_epoch) {
    const uint64_t warmup = schedule->warmup_steps;
    if (step < warmup) {
        return lr * (double)(step + 1) / (double)warmup;
    }
    /* Progress after the warm-up: 0 at its first step, 1 after its last. */
    double done = 0.0;
    if (steps > warmup) {
        done = step < steps ? (double)(step - warmup) / (double)(steps - warmup) : 1.0;
    }
    const double range = lr - schedule->min_lr;
    switch (schedule->kind) {
    case RP_LR_STEP: {
        const uint64_t epoch = steps_per_epoch ? step / steps_per_epoch : 0;
        return lr * pow(schedule->gamma, (double)(epoch / schedule->step_size));
    }
    case RP_LR_COSINE:
        return schedule->min_lr + range * (1.0 + cos(PI * done)) / 2.0;
    case RP_LR_POLY:
        return schedule->min_lr + range * pow(1.0 - done, schedule->power);
    case RP_LR_CONSTANT:
        break;
    }
    return lr;
}
