#include "simsites/reference_site.h"

#include <math.h>
#include <string.h>

#include "sites/state.h"

/* After a round: [values] each. */
typedef struct {
    float *y;        /* weights */
    float *momentum; /* of the optimiser */
    float *drift;    /* during the round */
    float *error;    /* of the coded difference */
} kept;

struct rp_reference_sites {
    const rp_sim_sites_subject *subject;
    const rp_sim_from *from; /* NULL: nothing is kept */
    rp_arena *arena;
    kept *kept; /* [sites][rounds + 1] */
    kept now;
    float *result;
    uint8_t *code; /* of a tensor */
};

static rp_err make_kept(rp_reference_sites *r, kept *out) {
    const size_t values = (size_t)r->subject->standin.values + 1;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(r->arena, values, &out->y));
    RP_TRY(RP_ARENA_NEW(r->arena, values, &out->momentum));
    RP_TRY(RP_ARENA_NEW(r->arena, values, &out->drift));
    RP_TRY(RP_ARENA_NEW(r->arena, values, &out->error));
fail:
    return err;
}

rp_err rp_reference_open(rp_arena *arena, const rp_sim_sites_subject *subject,
                         const rp_sim_from *from, rp_reference_sites **out) {
    const rp_delta *delta = &subject->rules.delta;
    const size_t code =
        delta->kind == RP_DELTA_NONE ? 0 : rp_delta_bytes(delta, subject->standin.values);
    const size_t all = from ? (size_t)subject->list.sites * ((size_t)from->rounds + 1) : 0;
    rp_reference_sites *r;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &r));
    *r = (rp_reference_sites){.subject = subject, .from = from, .arena = arena};
    RP_TRY(RP_ARENA_NEW(arena, all + 1, &r->kept));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)subject->standin.values + 1, &r->result));
    RP_TRY(RP_ARENA_NEW(arena, code + 1, &r->code));
    RP_TRY(make_kept(r, &r->now));
    *out = r;
fail:
    return err;
}

static size_t place_of(const rp_reference_sites *r, uint32_t site, uint64_t round) {
    return site * ((size_t)r->from->rounds + 1) + (size_t)round;
}

/* The state with which the round begins; NULL: none. */
static const kept *find_state(const rp_reference_sites *r, uint32_t site, uint64_t round,
                              bool *is_last) {
    const uint64_t from = r->from ? r->from->of[place_of(r, site, round)] : RP_SITE_NO_ROUND;
    *is_last = from != RP_SITE_NO_ROUND && from + 1 == round;
    return from != RP_SITE_NO_ROUND ? &r->kept[place_of(r, site, from)] : NULL;
}

/* What a tensor begins the round with. */
static void begin_tensor(rp_reference_sites *r, const rp_standin_tensor *tensor, const kept *state,
                         bool is_last, uint64_t steps, const float *given) {
    const rp_round_rules *rules = &r->subject->rules;
    const bool keeps = rp_site_keeps(rules, tensor->name);
    for (uint32_t j = tensor->first; j < tensor->first + tensor->count; j++) {
        const bool drifts = state && is_last && rules->drift && !keeps && !tensor->is_statistic;
        const bool codes = state && rules->delta.kind != RP_DELTA_NONE && !keeps;
        r->now.y[j] = state && keeps ? state->y[j] : given[j];
        r->now.momentum[j] = state && rules->keeps_optimizer ? state->momentum[j] : 0;
        r->now.error[j] = codes && !tensor->is_statistic ? state->error[j] : 0;
        r->now.drift[j] =
            drifts ? (float)((double)state->drift[j] +
                             ((double)given[j] - (double)state->y[j]) / rp_standin_rates(steps))
                   : 0;
    }
}

/* How much of the difference leaves the site with sites.clip. */
static double find_scale(const rp_reference_sites *r, const float *given) {
    const rp_round_rules *rules = &r->subject->rules;
    double squares = 0;
    for (uint32_t t = 0; t < r->subject->standin.tensors; t++) {
        const rp_standin_tensor *tensor = &r->subject->standin.tensor[t];
        for (uint32_t j = 0; j < tensor->count && !rp_site_keeps(rules, tensor->name); j++) {
            const double d = (double)r->now.y[tensor->first + j] - (double)given[tensor->first + j];
            squares += d * d;
        }
    }
    const double norm = sqrt(squares);
    return rules->clip > 0 && norm > rules->clip ? rules->clip / norm : 1;
}

/* The receiver adds what the code says to the given weights; the rest waits for the next round. */
static void code_tensor(rp_reference_sites *r, const rp_standin_tensor *tensor,
                        const float *given) {
    const rp_delta *delta = &r->subject->rules.delta;
    float sum[RP_STANDIN_VALUES_MAX];
    float sent[RP_STANDIN_VALUES_MAX];
    const uint32_t first = tensor->first;
    for (uint32_t j = 0; j < tensor->count; j++) {
        sum[j] = (float)((double)r->now.error[first + j] +
                         ((double)r->now.y[first + j] - (double)given[first + j]));
    }
    rp_delta_encode(delta, sum, tensor->count, r->code);
    const char *wrong = rp_delta_decode(delta, r->code, tensor->count, sent);
    RP_ASSERT(!wrong);
    for (uint32_t j = 0; j < tensor->count; j++) {
        r->now.error[first + j] = (float)((double)sum[j] - (double)sent[j]);
        r->result[first + j] = (float)((double)given[first + j] + (double)sent[j]);
    }
}

static void send_tensor(rp_reference_sites *r, const rp_standin_tensor *tensor, double scale,
                        const float *given) {
    const rp_round_rules *rules = &r->subject->rules;
    const bool keeps = rp_site_keeps(rules, tensor->name);
    if (rules->delta.kind != RP_DELTA_NONE && !keeps && !tensor->is_statistic) {
        code_tensor(r, tensor, given);
        return;
    }
    for (uint32_t j = tensor->first; j < tensor->first + tensor->count; j++) {
        const double x = (double)given[j];
        const float scaled = (float)(x + scale * ((double)r->now.y[j] - x));
        r->result[j] = keeps ? given[j] : scale < 1 ? scaled : r->now.y[j];
    }
}

static rp_err keep_state(rp_reference_sites *r, uint32_t site, uint64_t round) {
    const size_t bytes = r->subject->standin.values * sizeof(float);
    kept *to = &r->kept[place_of(r, site, round)];
    const rp_err err = make_kept(r, to);
    if (err == RP_OK) {
        memcpy(to->y, r->now.y, bytes);
        memcpy(to->momentum, r->now.momentum, bytes);
        memcpy(to->drift, r->now.drift, bytes);
        memcpy(to->error, r->now.error, bytes);
    }
    return err;
}

rp_err rp_reference_train(rp_reference_sites *r, uint32_t site, uint64_t round, const float *given,
                          const float **result) {
    const rp_sim_sites_subject *s = r->subject;
    const uint64_t steps = s->time[site].steps;
    const rp_standin_state state = {
        .values = r->now.y,
        .momentum = s->rules.keeps_optimizer ? r->now.momentum : NULL,
        .drift = s->rules.drift ? r->now.drift : NULL,
    };
    bool is_last;
    const kept *before = find_state(r, site, round, &is_last);
    for (uint32_t t = 0; t < s->standin.tensors; t++) {
        begin_tensor(r, &s->standin.tensor[t], before, is_last, steps, given);
    }
    rp_standin_train(&s->standin, s->list.site[site].name, round, steps, &state);
    const double scale = find_scale(r, given);
    for (uint32_t t = 0; t < s->standin.tensors; t++) {
        send_tensor(r, &s->standin.tensor[t], scale, given);
    }
    *result = r->result;
    return r->from ? keep_state(r, site, round) : RP_OK;
}
