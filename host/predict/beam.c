#include "predict/beam.h"

#include <math.h>
#include <string.h>

#include "data/vocab.h"
#include "predict/score.h"

typedef struct {
    int32_t *id; /* [time] */
    uint32_t length;
    double score; /* sum of the logarithms of probabilities; of a complete one: with the penalty */
} hypothesis;

/* A token that continues a hypothesis. */
typedef struct {
    uint32_t of, id;
    double score;
} candidate;

struct rp_beam {
    uint32_t width, time, tokens, outputs;
    hypothesis *live; /* [width], the best one first */
    hypothesis *next; /* [width] */
    uint32_t live_count;
    uint32_t ended;       /* complete hypotheses so far */
    hypothesis best;      /* of these, if there are some */
    candidate *candidate; /* [width * (width + 1)] */
    uint32_t *top;        /* [width + 1] */
};

static rp_err make_hypotheses(rp_arena *arena, uint32_t count, uint32_t time, hypothesis **out) {
    rp_err err = RP_ARENA_NEW(arena, count, out);
    for (uint32_t i = 0; err == RP_OK && i < count; i++) {
        err = RP_ARENA_NEW(arena, time, &(*out)[i].id);
    }
    return err;
}

rp_err rp_beam_open(rp_arena *arena, uint32_t width, uint32_t time, uint32_t tokens,
                    uint32_t outputs, rp_beam **out) {
    rp_beam *beam;
    rp_err err;
    RP_ASSERT(width >= 1 && width <= RP_BEAM_MAX && time >= 1 && tokens <= outputs);
    if (tokens <= RP_TOKEN_END) {
        return rp_fail(RP_ERR_SHAPE,
                       "the net has %u outputs for each token of a translation, expected at least "
                       "%d: those of padding, unknown, begin and end come first",
                       tokens, RP_TOKENS_SPECIAL);
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, &beam));
    *beam = (rp_beam){.width = width, .time = time, .tokens = tokens, .outputs = outputs};
    RP_TRY(make_hypotheses(arena, width, time, &beam->live));
    RP_TRY(make_hypotheses(arena, width, time, &beam->next));
    RP_TRY(RP_ARENA_NEW(arena, time, &beam->best.id));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)width * (width + 1), &beam->candidate));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)width + 1, &beam->top));
    *out = beam;
fail:
    return err;
}

void rp_beam_begin(rp_beam *beam) {
    beam->live_count = 1;
    beam->live[0].length = 0;
    beam->live[0].score = 0;
    beam->ended = 0;
    beam->best.length = 0;
    beam->best.score = -INFINITY;
}

uint32_t rp_beam_live(const rp_beam *beam) {
    return beam->live_count;
}

const int32_t *rp_beam_target(const rp_beam *beam, uint32_t index, uint32_t *length) {
    RP_ASSERT(index < beam->live_count);
    *length = beam->live[index].length;
    return beam->live[index].id;
}

static void copy_hypothesis(hypothesis *to, const hypothesis *from) {
    memcpy(to->id, from->id, from->length * sizeof *to->id);
    to->length = from->length;
    to->score = from->score;
}

/* Adds the likeliest tokens after hypothesis `of`, whose outputs are y. Padding, unknown tokens and
 * the begin, which come before the end, are no part of a translation. */
static rp_err add_candidates(rp_beam *beam, uint32_t of, const float *y, uint32_t *count) {
    const uint32_t allowed = beam->tokens - RP_TOKEN_END;
    const uint32_t wanted = beam->width + 1 < allowed ? beam->width + 1 : allowed;
    double level;
    if (!rp_score_log_sum(y, beam->outputs, &level)) {
        return rp_fail(RP_ERR_NUMERIC, "an output of the net is not finite");
    }
    rp_score_top(y + RP_TOKEN_END, allowed, wanted, beam->top);
    for (uint32_t i = 0; i < wanted; i++) {
        const uint32_t id = RP_TOKEN_END + beam->top[i];
        const double score = beam->live[of].score + ((double)y[id] - level);
        beam->candidate[(*count)++] = (candidate){of, id, score};
    }
    return RP_OK;
}

/* Keeps a complete hypothesis if it is the best so far. `length`: with the token that ends it. */
static void end_hypothesis(rp_beam *beam, const hypothesis *of, double score, uint32_t length) {
    const double own = score / pow((5.0 + length) / 6.0, 0.6);
    beam->ended++;
    if (own > beam->best.score) {
        copy_hypothesis(&beam->best, of);
        beam->best.score = own;
    }
}

/* Takes the best candidate out of the list; of equal ones the first. */
static candidate take_best(candidate *all, uint32_t *count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < *count; i++) {
        best = all[i].score > all[best].score ? i : best;
    }
    const candidate taken = all[best];
    memmove(all + best, all + best + 1, (*count - best - 1) * sizeof *all);
    (*count)--;
    return taken;
}

/* The best candidates become the hypotheses; those that end do not take a place of the beam. The
 * search is over when as many have ended as the beam is wide. */
static void choose_hypotheses(rp_beam *beam, uint32_t count) {
    uint32_t kept = 0;
    while (count > 0 && kept < beam->width && beam->ended < beam->width) {
        const candidate chosen = take_best(beam->candidate, &count);
        const hypothesis *of = &beam->live[chosen.of];
        if (chosen.id == RP_TOKEN_END) {
            end_hypothesis(beam, of, chosen.score, of->length + 1);
            continue;
        }
        hypothesis *longer = &beam->next[kept++];
        copy_hypothesis(longer, of);
        longer->id[longer->length++] = (int32_t)chosen.id;
        longer->score = chosen.score;
    }
    beam->live_count = beam->ended < beam->width ? kept : 0;
    hypothesis *before = beam->live;
    beam->live = beam->next;
    beam->next = before;
}

/* Ends what is as long as a sentence can be. */
static void end_long(rp_beam *beam) {
    for (uint32_t i = 0; i < beam->live_count; i++) {
        end_hypothesis(beam, &beam->live[i], beam->live[i].score, beam->live[i].length);
    }
    beam->live_count = 0;
}

rp_err rp_beam_advance(rp_beam *beam, const float *y) {
    uint32_t count = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < beam->live_count; i++) {
        RP_TRY(add_candidates(beam, i, y + (size_t)i * beam->outputs, &count));
    }
    choose_hypotheses(beam, count);
    if (beam->live_count > 0 && beam->live[0].length == beam->time) {
        end_long(beam);
    }
fail:
    return err;
}

const int32_t *rp_beam_best(rp_beam *beam, uint32_t *length) {
    end_long(beam);
    *length = beam->best.length;
    return beam->best.id;
}
