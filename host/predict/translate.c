#include "predict/translate.h"

#include <math.h>
#include <string.h>

#include "data/encode.h"
#include "predict/score.h"

/* A target that is not complete, or the best complete one of its source. */
typedef struct {
    int32_t *id; /* [time] */
    uint32_t length;
    double score; /* sum of the logarithms of probabilities; of a complete one: with the penalty */
} hypothesis;

/* A source and its hypotheses. */
typedef struct {
    const int32_t *source;
    hypothesis *live;           /* [beam], the best one first */
    uint32_t live_count, ended; /* ended: complete ones so far */
    hypothesis best;            /* of the complete ones, if there are some */
} search;

/* A token that continues a hypothesis. */
typedef struct {
    uint32_t of, id;
    double score;
} candidate;

struct rp_translator {
    rp_network *network;
    const rp_vocab *vocab;
    uint32_t time, beam, batch;
    uint32_t tokens, outputs; /* that can be chosen; of a target */
    search *search;           /* [batch] */
    hypothesis *next;         /* [beam] */
    candidate *candidate;     /* [beam * (beam + 1)] */
    uint32_t *top;            /* [beam + 1] */
    int32_t *x;               /* [micro][2 time] */
    float *y;                 /* [micro][time][outputs] */
};

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err make_hypotheses(rp_arena *arena, uint32_t count, uint32_t time, hypothesis **out) {
    rp_err err = RP_ARENA_NEW(arena, count, out);
    for (uint32_t i = 0; err == RP_OK && i < count; i++) {
        err = RP_ARENA_NEW(arena, time, &(*out)[i].id);
    }
    return err;
}

static rp_err make_searches(rp_arena *arena, rp_translator *t) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, t->batch, &t->search));
    for (uint32_t i = 0; i < t->batch; i++) {
        RP_TRY(make_hypotheses(arena, t->beam, t->time, &t->search[i].live));
        RP_TRY(RP_ARENA_NEW(arena, t->time, &t->search[i].best.id));
    }
    RP_TRY(make_hypotheses(arena, t->beam, t->time, &t->next));
fail:
    return err;
}

rp_err rp_translator_open(rp_arena *arena, rp_network *network, const rp_vocab *vocab,
                          uint32_t time, uint32_t beam, rp_translator **out) {
    const uint32_t micro = rp_network_micro(network);
    const uint32_t outputs = rp_network_outputs(network) / time;
    rp_translator *t;
    rp_err err;
    RP_ASSERT(beam >= 1 && beam <= RP_BEAM_MAX);
    if (beam > micro) {
        return rp_fail(RP_ERR_USAGE, "--beam: this net runs at most %u samples at once, found %u",
                       micro, beam);
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, &t));
    *t = (rp_translator){.network = network,
                         .vocab = vocab,
                         .time = time,
                         .beam = beam,
                         .batch = micro / beam,
                         .outputs = outputs,
                         .tokens = vocab->count < outputs ? vocab->count : outputs};
    RP_TRY(make_searches(arena, t));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)beam * (beam + 1), &t->candidate));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)beam + 1, &t->top));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)micro * 2 * time, &t->x));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)micro * rp_network_outputs(network), &t->y));
    *out = t;
fail:
    return err;
}

uint32_t rp_translator_batch(const rp_translator *translator) {
    return translator->batch;
}

/* ---- searching ------------------------------------------------------------------------------- */

static void begin_search(search *s, const int32_t *source) {
    s->source = source;
    s->live_count = 1;
    s->ended = 0;
    s->live[0].length = 0;
    s->live[0].score = 0;
    s->best.length = 0;
    s->best.score = -INFINITY;
}

static void copy_hypothesis(hypothesis *to, const hypothesis *from) {
    memcpy(to->id, from->id, from->length * sizeof *to->id);
    to->length = from->length;
    to->score = from->score;
}

/* A sample of the net: the source, <begin>, and the target so far. */
static void fill_sample(const rp_translator *t, const search *s, const hypothesis *of, int32_t *x) {
    memset(x, 0, 2 * (size_t)t->time * sizeof *x);
    memcpy(x, s->source, t->time * sizeof *x);
    x[t->time] = RP_TOKEN_BEGIN;
    memcpy(x + t->time + 1, of->id, of->length * sizeof *x);
}

/* <padding>, <unknown> and <begin> are no part of a translation. */
static bool is_chosen(uint32_t id) {
    return id >= RP_TOKEN_END;
}

/* Adds the likeliest tokens after hypothesis `of`, whose outputs are y. */
static rp_err add_candidates(rp_translator *t, const search *s, uint32_t of, const float *y,
                             uint32_t *count) {
    const uint32_t wanted =
        t->beam + 1 < t->tokens - RP_TOKEN_END ? t->beam + 1 : t->tokens - RP_TOKEN_END;
    double sum = 0;
    if (!rp_score_softmax(y, t->outputs, NULL)) {
        return rp_fail(RP_ERR_NUMERIC, "an output of the net is not finite");
    }
    rp_score_top(y + RP_TOKEN_END, t->tokens - RP_TOKEN_END, wanted, t->top);
    const double most = (double)y[RP_TOKEN_END + t->top[0]];
    for (uint32_t i = 0; i < t->outputs; i++) {
        sum += exp((double)y[i] - most);
    }
    for (uint32_t i = 0; i < wanted; i++) {
        const uint32_t id = RP_TOKEN_END + t->top[i];
        RP_ASSERT(is_chosen(id));
        t->candidate[(*count)++] =
            (candidate){of, id, s->live[of].score + (double)y[id] - most - log(sum)};
    }
    return RP_OK;
}

static double penalise(double score, uint32_t length) {
    return score / pow((5.0 + length) / 6.0, 0.6);
}

/* Keeps a complete target if it is the best so far. `length`: with <end>. */
static void end_hypothesis(search *s, const hypothesis *of, double score, uint32_t length) {
    const double own = penalise(score, length);
    s->ended++;
    if (own > s->best.score) {
        copy_hypothesis(&s->best, of);
        s->best.score = own;
    }
}

static uint32_t find_best(const candidate *all, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        best = all[i].score > all[best].score ? i : best;
    }
    return best;
}

/* The best candidates become the hypotheses; those that end do not take a place of the beam. */
static void choose_hypotheses(rp_translator *t, search *s, uint32_t count) {
    uint32_t kept = 0;
    while (count > 0 && kept < t->beam && s->ended < t->beam) {
        const uint32_t at = find_best(t->candidate, count);
        const candidate chosen = t->candidate[at];
        const hypothesis *of = &s->live[chosen.of];
        memmove(t->candidate + at, t->candidate + at + 1, (count - at - 1) * sizeof chosen);
        count--;
        if (chosen.id == RP_TOKEN_END) {
            end_hypothesis(s, of, chosen.score, of->length + 1);
            continue;
        }
        copy_hypothesis(&t->next[kept], of);
        t->next[kept].id[t->next[kept].length++] = (int32_t)chosen.id;
        t->next[kept++].score = chosen.score;
    }
    s->live_count = s->ended < t->beam ? kept : 0;
    for (uint32_t i = 0; i < s->live_count; i++) {
        copy_hypothesis(&s->live[i], &t->next[i]);
    }
}

/* One more token of all searches that go on. *more: at least one did. */
static rp_err advance(rp_translator *t, uint32_t count, uint32_t step, bool *more) {
    uint32_t n = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < t->search[i].live_count; k++) {
            fill_sample(t, &t->search[i], &t->search[i].live[k], t->x + 2 * (size_t)t->time * n++);
        }
    }
    *more = n > 0;
    if (n == 0) {
        return RP_OK;
    }
    RP_TRY(rp_network_run(t->network, t->x, n, t->y));
    const float *y = t->y + (size_t)step * t->outputs;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t candidates = 0;
        for (uint32_t k = 0; k < t->search[i].live_count; k++) {
            RP_TRY(add_candidates(t, &t->search[i], k, y, &candidates));
            y += (size_t)t->time * t->outputs;
        }
        if (candidates > 0) {
            choose_hypotheses(t, &t->search[i], candidates);
        }
    }
fail:
    return err;
}

rp_err rp_translate(rp_translator *t, const int32_t *source, uint32_t count, int32_t *target,
                    uint32_t *length) {
    bool more = true;
    rp_err err = RP_OK;
    RP_ASSERT(count >= 1 && count <= t->batch);
    for (uint32_t i = 0; i < count; i++) {
        begin_search(&t->search[i], source + (size_t)i * t->time);
    }
    for (uint32_t step = 0; more && step < t->time; step++) {
        RP_TRY(advance(t, count, step, &more));
    }
    for (uint32_t i = 0; i < count; i++) {
        search *s = &t->search[i];
        for (uint32_t k = 0; k < s->live_count; k++) { /* as long as a target can be */
            end_hypothesis(s, &s->live[k], s->live[k].score, s->live[k].length);
        }
        memcpy(target + (size_t)i * t->time, s->best.id, s->best.length * sizeof *target);
        length[i] = s->best.length;
    }
fail:
    return err;
}

/* ---- texts ----------------------------------------------------------------------------------- */

rp_err rp_translator_decode(const rp_translator *t, rp_arena *arena, const int32_t *target,
                            uint32_t length, char **out) {
    rp_err err = rp_text_decode(arena, t->vocab, target, length, out);
    if (err == RP_OK && (*out)[0] == ' ') {
        (*out)++; /* before the first word */
    }
    return err;
}
