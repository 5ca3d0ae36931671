#include "stage/throttle.h"

#include <stddef.h>

static const double MOST = 1e6; /* ms, GFLOP/s */

static const struct {
    const char *key;
    size_t at;
} keys[] = {
    {"forward_ms", offsetof(rp_throttle, forward_ms)},
    {"backward_ms", offsetof(rp_throttle, backward_ms)},
    {"forward_op_ms", offsetof(rp_throttle, forward_op_ms)},
    {"backward_op_ms", offsetof(rp_throttle, backward_op_ms)},
    {"forward_sample_ms", offsetof(rp_throttle, forward_sample_ms)},
    {"backward_sample_ms", offsetof(rp_throttle, backward_sample_ms)},
    {"update_ms", offsetof(rp_throttle, update_ms)},
    {"gflops", offsetof(rp_throttle, gflops)},
};
enum { KEYS = sizeof keys / sizeof *keys };

static double value_of(const rp_throttle *throttle, size_t key) {
    return *(const double *)(const void *)((const char *)throttle + keys[key].at);
}

static double *place_of(rp_throttle *throttle, size_t key) {
    return (double *)(void *)((char *)throttle + keys[key].at);
}

bool rp_throttle_is_set(const rp_throttle *throttle) {
    bool any = false;
    for (size_t i = 0; i < KEYS; i++) {
        any = any || value_of(throttle, i) > 0;
    }
    return any;
}

double rp_throttle_s(const rp_throttle *t, const rp_throttled_op *op) {
    const bool forward = op->kind == RP_OP_FORWARD;
    const bool half = op->kind == RP_OP_BACKWARD_INPUT || op->kind == RP_OP_BACKWARD_WEIGHT;
    if (op->kind == RP_OP_UPDATE) {
        return t->update_ms * 1e-3;
    }
    const double full_ms = forward ? t->forward_ms : t->backward_ms;
    const double op_ms = forward ? t->forward_op_ms : t->backward_op_ms;
    const double sample_ms = (forward ? t->forward_sample_ms : t->backward_sample_ms) +
                             (op->micro > 0 ? full_ms / op->micro : 0) +
                             (t->gflops > 0 ? op->flops[!forward] / t->gflops * 1e-6 : 0);
    return (half ? 0.5 : 1) * (op_ms + sample_ms * op->samples) * 1e-3;
}

rp_err rp_throttle_find(rp_node *parent, rp_node **out) {
    rp_err err;
    RP_TRY(rp_node_find_renamed(parent, "throttle", "pace", out));
    if (!*out) {
        RP_TRY(rp_node_section(parent, "throttle", NULL, out));
    }
    if (*out && !rp_node_is_map(*out)) {
        return rp_node_fail(*out, "expected a map, e.g. {forward_ms: 10, backward_ms: 20}");
    }
fail:
    return err;
}

rp_err rp_throttle_read(rp_node *map, rp_throttle *out) {
    rp_err err = RP_OK;
    for (size_t i = 0; i < KEYS; i++) {
        RP_TRY(rp_node_f64(map, keys[i].key, 0, MOST, place_of(out, i)));
    }
fail:
    return err;
}

rp_err rp_throttle_parse(rp_node *parent, rp_throttle *out) {
    rp_node *throttle;
    rp_err err;
    *out = (rp_throttle){0};
    RP_TRY(rp_throttle_find(parent, &throttle));
    if (throttle) {
        RP_TRY(rp_throttle_read(throttle, out));
        RP_TRY(rp_node_done(throttle));
    }
fail:
    return err;
}

void rp_throttle_put(FILE *file, const rp_throttle *throttle) {
    const char *before = "throttle: {";
    for (size_t i = 0; i < KEYS; i++) {
        if (value_of(throttle, i) > 0) {
            (void)fprintf(file, "%s%s: %.17g", before, keys[i].key, value_of(throttle, i));
            before = ", ";
        }
    }
    (void)fprintf(file, "%s}\n", before[0] == 't' ? before : "");
}
