#include "planning/sums.h"

rp_err rp_sums_open(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                    rp_sums *out) {
    const uint32_t layers = run->model->layer_count;
    const size_t row = (size_t)layers + 1;
    rp_err err;
    *out = (rp_sums){.run = run, .profile = profile, .layers = layers};
    for (uint32_t back = 0; back < 2; back++) {
        RP_TRY(RP_ARENA_NEW(arena, row * run->boards, &out->pass[back]));
        RP_TRY(RP_ARENA_NEW(arena, row, &out->flops[back]));
    }
    RP_TRY(RP_ARENA_NEW(arena, run->boards, &out->throttle));
    for (uint32_t k = 0; k < run->boards; k++) {
        const rp_throttle *throttle = rp_runfile_throttle_of(run, k);
        out->throttle[k] = throttle && rp_throttle_is_set(throttle) ? throttle : NULL;
    }
    for (uint32_t i = 0; i < layers; i++) {
        out->flops[0][i + 1] = out->flops[0][i] + rp_model_flops_forward(run->model, i, i + 1);
        out->flops[1][i + 1] = out->flops[1][i] + rp_model_flops_backward(run->model, i, i + 1);
        for (uint32_t at = 0; at < 2 * run->boards; at++) {
            double *sum = &out->pass[at % 2][at / 2 * row + i];
            sum[1] = sum[0] + rp_profile_pass_s(profile, at / 2, i, i + 1,
                                                at % 2 ? RP_MEASURED_BACKWARD : RP_MEASURED_FORWARD,
                                                run->micro);
        }
    }
fail:
    return err;
}

double rp_sums_pass_s(const rp_sums *sums, uint32_t place, uint32_t first, uint32_t end,
                      bool back) {
    const double *row = &sums->pass[back][(size_t)place * (sums->layers + 1)];
    return row[end] - row[first];
}

double rp_sums_op_s(const rp_sums *sums, uint32_t place, uint32_t first, uint32_t end, bool back) {
    const rp_runfile *run = sums->run;
    const double own = rp_sums_pass_s(sums, place, first, end, back);
    const double slower = rp_profile_slower(sums->profile, place);
    if (!sums->throttle[place]) {
        return slower * own;
    }
    const rp_throttled_op op = {.kind = back ? RP_OP_BACKWARD : RP_OP_FORWARD,
                                .samples = run->micro,
                                .micro = run->micro,
                                .flops = {sums->flops[0][end] - sums->flops[0][first],
                                          sums->flops[1][end] - sums->flops[1][first]}};
    const double least = rp_throttle_s(sums->throttle[place], &op);
    return slower * (own > least ? own : least);
}
