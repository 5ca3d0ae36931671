#include "predict/translate.h"

#include <string.h>

struct rp_translator {
    rp_network *network;
    const rp_vocab *vocab;
    uint32_t time, batch, outputs; /* outputs: for a token of the target */
    rp_beam **beam;                /* [batch] */
    int32_t *x;                    /* [batch * width][2 time]: one sample for each hypothesis */
    float *row; /* [batch * width][outputs]: what the net says of its next token */
    float *y;   /* [micro][time][outputs] */
};

rp_err rp_translator_open(rp_arena *arena, rp_network *network, const rp_vocab *vocab,
                          uint32_t time, uint32_t beam, rp_translator **out) {
    const uint32_t micro = rp_network_micro(network);
    const uint32_t outputs = rp_network_outputs(network) / time;
    const uint32_t batch = micro > beam ? micro / beam : 1;
    const uint32_t tokens = vocab->count < outputs ? vocab->count : outputs;
    rp_translator *t;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &t));
    *t = (rp_translator){
        .network = network, .vocab = vocab, .time = time, .batch = batch, .outputs = outputs};
    RP_TRY(RP_ARENA_NEW(arena, batch, &t->beam));
    for (uint32_t i = 0; i < batch; i++) {
        RP_TRY(rp_beam_open(arena, beam, time, tokens, outputs, &t->beam[i]));
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)batch * beam * 2 * time, &t->x));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)batch * beam * outputs, &t->row));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)micro * rp_network_outputs(network), &t->y));
    *out = t;
fail:
    return err;
}

uint32_t rp_translator_batch(const rp_translator *translator) {
    return translator->batch;
}

/* A sample of the net: the source, <begin>, and a target so far. */
static void fill_sample(const rp_translator *t, const int32_t *source, const int32_t *target,
                        uint32_t length, int32_t *x) {
    memset(x, 0, 2 * (size_t)t->time * sizeof *x);
    memcpy(x, source, t->time * sizeof *x);
    x[t->time] = RP_TOKEN_BEGIN;
    memcpy(x + t->time + 1, target, length * sizeof *x);
}

/* A sample for each hypothesis of all searches. Returns their number. */
static uint32_t fill_samples(const rp_translator *t, const int32_t *source, uint32_t count) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < rp_beam_live(t->beam[i]); k++) {
            uint32_t length;
            const int32_t *target = rp_beam_target(t->beam[i], k, &length);
            fill_sample(t, source + (size_t)i * t->time, target, length,
                        t->x + 2 * (size_t)t->time * n++);
        }
    }
    return n;
}

/* Runs the net on n samples, and keeps of each the outputs of one token. */
static rp_err run_samples(rp_translator *t, uint32_t n, uint32_t token) {
    const uint32_t micro = rp_network_micro(t->network);
    const size_t each = (size_t)t->time * t->outputs;
    rp_err err = RP_OK;
    for (uint32_t first = 0; first < n; first += micro) {
        const uint32_t some = n - first < micro ? n - first : micro;
        RP_TRY(rp_network_run(t->network, 0, t->x + 2 * (size_t)t->time * first, some, t->y));
        for (uint32_t i = 0; i < some; i++) {
            memcpy(t->row + (size_t)(first + i) * t->outputs,
                   t->y + i * each + (size_t)token * t->outputs, t->outputs * sizeof *t->row);
        }
    }
fail:
    return err;
}

/* Adds token `token` to all searches that are not over. */
static rp_err advance(rp_translator *t, const int32_t *source, uint32_t count, uint32_t token,
                      bool *more) {
    const uint32_t n = fill_samples(t, source, count);
    const float *row = t->row;
    rp_err err;
    *more = n > 0;
    RP_TRY(run_samples(t, n, token));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t live = rp_beam_live(t->beam[i]);
        RP_TRY(rp_beam_advance(t->beam[i], row));
        row += (size_t)live * t->outputs;
    }
fail:
    return err;
}

/* The text of a target; words have a blank before each, also before the first. */
static rp_err decode(const rp_translator *t, rp_arena *arena, rp_beam *beam, rp_text *out) {
    const bool blank =
        t->vocab->rules.kind == RP_TOKENS_WORDS || (t->vocab->bpe && t->vocab->bpe->prefix_space);
    uint32_t length;
    const int32_t *target = rp_beam_best(beam, &length);
    rp_err err = rp_text_decode(arena, t->vocab, target, length, out);
    if (err == RP_OK && blank && out->at[0] == ' ') {
        out->at++;
        out->bytes--;
    }
    return err;
}

rp_err rp_translate(rp_translator *t, rp_arena *arena, const int32_t *source, uint32_t count,
                    rp_text *text) {
    bool more = true;
    rp_err err = RP_OK;
    RP_ASSERT(count >= 1 && count <= t->batch);
    for (uint32_t i = 0; i < count; i++) {
        rp_beam_begin(t->beam[i]);
    }
    for (uint32_t token = 0; more && token < t->time; token++) {
        RP_TRY(advance(t, source, count, token, &more));
    }
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(decode(t, arena, t->beam[i], &text[i]));
    }
fail:
    return err;
}
