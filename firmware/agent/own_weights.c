/* The weights of a board with only forwards. By the order of ops its next forward sees them, while
 * the board with the updates has newer ones (METHODS 12.1). So they are kept while an evaluation
 * uses the newest, and the in-flight state of a checkpoint contains them. */
#include "agent/runner_own.h"

size_t rp_runner_own_weights_bytes(const rp_runner *r) {
    const runner_stage *s = &r->held[0];
    return s->job->role == RP_ROLE_FORWARD ? rp_stage_layout(s->stage)->gradient_bytes : 0;
}

rp_err rp_runner_open_own_weights(rp_runner *r) {
    const size_t bytes = rp_runner_own_weights_bytes(r);
    return bytes > 0 ? RP_ARENA_NEW(r->arena, bytes / sizeof(float), &r->own_weights) : RP_OK;
}

/* In the device's queue, before the weights that replace them. */
rp_err rp_runner_keep_weights(rp_runner *r) {
    RP_ASSERT(!r->keeps_weights && r->own_weights);
    r->keeps_weights = true;
    return rp_stage_read_newest(r->held[0].stage, r->own_weights);
}

rp_err rp_runner_return_weights(rp_runner *r) {
    if (!r->keeps_weights) {
        return RP_OK;
    }
    r->keeps_weights = false;
    return rp_stage_write_newest(r->held[0].stage, r->own_weights);
}

rp_err rp_runner_read_own_weights(rp_runner *r) {
    rp_err err = RP_OK;
    if (r->own_weights) {
        RP_TRY(rp_stage_read_newest(r->held[0].stage, r->own_weights));
        RP_TRY(rp_stage_drain(r->held[0].stage));
    }
fail:
    return err;
}

rp_err rp_runner_write_own_weights(rp_runner *r) {
    return r->own_weights ? rp_stage_write_newest(r->held[0].stage, r->own_weights) : RP_OK;
}
