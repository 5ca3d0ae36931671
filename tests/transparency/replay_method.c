/* METHODS once more: the order of a stage's ops, and the weights that each of them sees. */
#include <math.h>
#include <string.h>

#include "replay.h"

static bool is_split(const replay *r) {
    return strcmp(r->run.method.kind->name, "pipefb") == 0;
}

/* METHODS 12: what is said, or 2 (D - k). */
static uint32_t ahead_of(const replay *r, uint32_t k) {
    const rp_method *method = &r->run.method;
    uint32_t boards = 0; /* of the stages from this one on: METHODS 12.2 */
    for (uint32_t j = k; j < r->stages; j++) {
        boards += rp_method_is_split(method, j) ? 2 : 1;
    }
    return method->ahead_count == 0   ? boards
           : method->ahead_count == 1 ? method->ahead[0]
                                      : method->ahead[k];
}

/* METHODS 1: forwards ahead of the first backward; `advance` more per hop as in AvgPipe's figure
 * (METHODS 8: warm-ups 7, 5, 3, 1 of four stages, the last one being of the steady pair). */
uint32_t warm_up_of(const replay *r, uint32_t k) {
    if (is_split(r)) { /* METHODS 12: so many steps, however many microbatches they have */
        return r->micro_count;
    }
    return (r->stages - 1 - k) * (1 + r->run.method.advance);
}

/* METHODS 9; lean: R_k = D - k. */
uint32_t replicas_of(const replay *r, uint32_t k) {
    const rp_method *method = &r->run.method;
    return method->lean && r->stages - k < method->replicas ? r->stages - k : method->replicas;
}

/* Steps that may be begun and not updated: two versions (2BW), or a replica each (METHODS 9: x_r
 * is unchanged between F_n and B_n). */
uint32_t steps_open_of(const replay *r, uint32_t k) {
    const rp_method *method = &r->run.method;
    if (is_split(r)) {
        return ahead_of(r, k);
    }
    if (method->kind->flushed) {
        return 1;
    }
    if (strcmp(method->kind->name, "pipedream-2bw") == 0 || method->weights == RP_WEIGHTS_DOUBLE) {
        return 2;
    }
    const bool averages = method->kind->average != RP_AVERAGE_NONE;
    return averages && method->weights == RP_WEIGHTS_CURRENT ? replicas_of(r, k) : UINT32_MAX;
}

/* GPipe: all forwards of a step, then its backwards from the last microbatch to the first. */
static void write_gpipe(replay *r, board *b) {
    for (uint32_t n = 0, first = 0; n < r->micro_count; n++) {
        b->list[b->list_count++] = (entry){FORWARD, n};
        if (r->micro[n].last) {
            for (uint32_t left = n + 1; left > first; left--) {
                b->list[b->list_count++] = (entry){BACKWARD, left - 1};
            }
            b->list[b->list_count++] = (entry){UPDATE, n};
            first = n + 1;
        }
    }
}

/* METHODS 1: the warm-up's forwards, then {F, B, U} until forwards run out, then {B, U}; U behind
 * the last microbatch of a step only. */
rp_err write_list(replay *r, board *b) {
    const microbatch *m = r->micro;
    uint32_t f = 0;
    rp_err err = RP_ARENA_NEW(&r->arena, 2 * r->micro_count + r->run.steps, &b->list);
    if (err == RP_OK && strcmp(r->run.method.kind->name, "gpipe") == 0) {
        write_gpipe(r, b);
        return RP_OK;
    }
    for (uint32_t n = 0; err == RP_OK && n < r->micro_count; n++) {
        while (f < r->micro_count && f <= n + b->warm_up &&
               m[f].first_of_fill == m[n].first_of_fill && m[f].step - m[n].step < b->steps_open) {
            b->list[b->list_count++] = (entry){FORWARD, f++};
        }
        b->list[b->list_count++] = (entry){BACKWARD, n};
        if (m[n].last) {
            b->list[b->list_count++] = (entry){UPDATE, n};
        }
    }
    return err;
}

/* Updates that are over when microbatch n goes forward, on a stage with so long a warm-up: those of
 * all steps before the microbatch whose backward is next. */
uint32_t updates_at_forward(const replay *r, uint32_t n, uint32_t warm_up, uint32_t open) {
    const uint32_t filled = r->micro[n].first_of_fill;
    const uint32_t step = r->micro[n].step;
    const uint32_t next = n - filled > warm_up ? n - warm_up : filled;
    const uint32_t done = r->micro[next].step;
    return step - done < open ? done : step - open + 1;
}

/* METHODS 5.1, 5.4, 5.3: D - 1 - k; min(n, D - 1 - k); D - k. With several microbatches a step, or
 * replicas, the same by its meaning: own updates between F and B, in the steady state or in fact.
 */
static uint32_t pipeoptim_ahead(const replay *r, const board *b, uint32_t n) {
    const rp_horizon horizon = r->run.method.horizon;
    const uint32_t micro = r->micro[n].micro;
    uint32_t staleness = r->micro[n].step - updates_at_forward(r, n, b->warm_up, b->steps_open);
    if (horizon == RP_HORIZON_PAPER || horizon == RP_HORIZON_RELEASED) {
        staleness = b->warm_up > micro ? (b->warm_up - micro + r->full - 1) / r->full : 0;
        staleness = staleness < b->steps_open ? staleness : b->steps_open - 1;
    }
    return staleness / b->replicas + (horizon == RP_HORIZON_RELEASED);
}

/* METHODS 6. The paper does not say how halves are rounded: to even, as Python does. */
static uint32_t xpipe_ahead(const replay *r, const board *b, bool backward) {
    const double t = r->full;
    const double half = backward ? floor(b->k / 2.0) : b->k / 2.0;
    const double s = backward ? (t + half - 1) / t : (r->stages + t - half - 2) / t;
    return s > 0 ? (uint32_t)nearbyint(s) : 0;
}

/* METHODS 4: floor(k / 2) pairs of a forward and a backward pass here while the step's last
 * gradient goes on to stage 0; ahead of a forward lies its first microbatch's staleness as well.
 * With one microbatch a step: floor(k / 2), and D - 1 - k more. */
static uint32_t spectrain_ahead(const replay *r, const board *b, bool backward) {
    const uint32_t staleness = (b->warm_up + r->full - 1) / r->full;
    const uint32_t most = b->steps_open - 1;
    const uint32_t rest = (r->full - 1 + b->k / 2) / r->full;
    return backward ? rest : rest + (staleness < most ? staleness : most);
}

/* The version that the next update of a replica starts from. */
uint32_t newest(const board *b, uint32_t step) {
    uint32_t s = b->updates;
    while (s > 0 && (s - 1) % b->replicas != step % b->replicas) {
        s--;
    }
    return s;
}

/* METHODS 13, column W_fwd. */
weight_view forward_view(const replay *r, const board *b, uint32_t n) {
    const uint32_t step = r->micro[n].step;
    weight_view out = {.version = newest(b, step)};
    if (is_split(r)) { /* METHODS 12.1: max(0, n - ahead + 1) updates, as far as published */
        const uint32_t ahead = ahead_of(r, b->k);
        const uint32_t seen = step + 1 > ahead ? step + 1 - ahead : 0;
        out.version = seen - seen % r->run.method.publish;
        if (r->run.method.weights == RP_WEIGHTS_PIPEOPTIM && out.version > 0) { /* METHODS 12.5 */
            out.ahead = ahead - 1 + (r->run.method.horizon == RP_HORIZON_RELEASED);
        }
        return out;
    }
    switch (r->run.method.weights) {
    case RP_WEIGHTS_ENTRY: /* METHODS 2: what was the latest on stage 0: max(n - (D - 1), 0) */
        out.version = updates_at_forward(r, n, warm_up_of(r, 0), b->steps_open);
        break;
    case RP_WEIGHTS_DOUBLE: /* METHODS 2: W^(max(b - 1, 0)) on every stage */
        out.version = step > 0 ? step - 1 : 0;
        break;
    case RP_WEIGHTS_PIPEOPTIM:
        out.ahead = pipeoptim_ahead(r, b, n);
        break;
    case RP_WEIGHTS_SPECTRAIN: /* METHODS 4 */
        out.ahead = spectrain_ahead(r, b, false);
        break;
    case RP_WEIGHTS_XPIPE:
        out.ahead = xpipe_ahead(r, b, false);
        break;
    default:
        break;
    }
    return out;
}

/* METHODS 13, column W_bwd. */
weight_view backward_view(const replay *r, const board *b, uint32_t n) {
    weight_view out = {.version = newest(b, r->micro[n].step)};
    switch (r->run.method.weights) {
    case RP_WEIGHTS_STASH:
    case RP_WEIGHTS_ENTRY:
    case RP_WEIGHTS_DOUBLE:
        out.version = b->kept[n];
        break;
    case RP_WEIGHTS_SPECTRAIN:
        out.ahead = spectrain_ahead(r, b, true);
        break;
    case RP_WEIGHTS_XPIPE:
        out.ahead = xpipe_ahead(r, b, true);
        break;
    default:
        break;
    }
    return out;
}
