#include "stage/digest.h"

#include <string.h>

#include "optim/optim.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(rp_digest) == RP_DIGEST_BYTES, "a digest has no padding");

/* Operands of a hash: a tag, numbers, digests. Every word is stored as a value, so all
 * little-endian hosts (which the wire format requires) get the same digest. */
enum { WORDS_MAX = 8 + 2 * (RP_LAYER_INPUTS_MAX + 6) };
typedef struct {
    uint64_t word[WORDS_MAX];
    uint32_t count;
} operands;

static operands begin_digest(const char *tag) {
    operands o = {.count = 1};
    memcpy(&o.word[0], tag, strlen(tag));
    return o;
}

static void add_word(operands *o, uint64_t word) {
    RP_ASSERT(o->count < WORDS_MAX);
    o->word[o->count++] = word;
}

static void add_float(operands *o, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_word(o, bits);
}

static void add_digest(operands *o, rp_digest digest) {
    add_word(o, digest.low);
    add_word(o, digest.high);
}

static rp_digest finish_digest(const operands *o) {
    return rp_digest_of_bytes(o->word, o->count * sizeof o->word[0]);
}

rp_digest rp_digest_of_bytes(const void *bytes, size_t count) {
    const XXH128_hash_t hash = XXH3_128bits(bytes, count);
    return (rp_digest){hash.low64, hash.high64};
}

rp_digest rp_digest_add(rp_digest a, rp_digest b) {
    const uint64_t low = a.low + b.low;
    return (rp_digest){low, a.high + b.high + (low < a.low)};
}

bool rp_digest_equal(rp_digest a, rp_digest b) {
    return a.low == b.low && a.high == b.high;
}

/* A float without bit 30, the highest of its exponent, is finite. */
rp_digest rp_digest_fit(rp_digest digest, const rp_model_param *param) {
    const uint64_t finite = UINT64_C(0xbfffffffbfffffff);
    const size_t bytes = param->count * sizeof(float);
    const rp_digest masked = {digest.low & finite, digest.high & finite};
    rp_digest out = {0};
    memcpy(&out, &masked, bytes < sizeof out ? bytes : sizeof out);
    return out;
}

rp_digest rp_digest_init(const rp_model_param *param, uint64_t seed) {
    operands o = begin_digest("init");
    add_word(&o, seed);
    add_digest(&o, rp_digest_of_bytes(param->name, strlen(param->name)));
    return rp_digest_fit(finish_digest(&o), param);
}

float rp_digest_number(rp_digest digest) {
    return (float)((digest.low >> 40) + 1) * 0x1p-24f;
}

rp_digest rp_digest_input(uint64_t number, rp_digest bytes) {
    operands o = begin_digest("x");
    add_word(&o, number);
    add_digest(&o, bytes);
    return finish_digest(&o);
}

/* ---- layers ---------------------------------------------------------------------------------- */

rp_digest rp_digest_weights(const rp_digest *param, uint32_t count) {
    return rp_digest_of_bytes(param, count * sizeof *param);
}

rp_digest rp_digest_statistic(uint32_t layer, rp_digest x) {
    operands o = begin_digest("S");
    add_word(&o, layer);
    add_digest(&o, x);
    return finish_digest(&o);
}

rp_digest rp_digest_statistics(uint32_t layer, rp_digest sum, uint32_t n) {
    operands o = begin_digest("M");
    add_word(&o, layer);
    add_word(&o, n);
    add_digest(&o, sum);
    return finish_digest(&o);
}

rp_digest rp_digest_running(rp_digest running, rp_digest statistics, uint32_t renewal) {
    operands o = begin_digest("R");
    add_word(&o, renewal);
    add_digest(&o, renewal == 1 ? (rp_digest){0} : running);
    add_digest(&o, statistics);
    return finish_digest(&o);
}

static void add_layer(operands *o, const rp_digest_layer *layer, const rp_digest *x,
                      uint64_t number) {
    add_word(o, layer->layer);
    add_digest(o, layer->weights);
    add_digest(o, layer->statistics);
    for (uint32_t i = 0; i < layer->input_count; i++) {
        add_digest(o, x[i]);
    }
    if (layer->draws) {
        add_word(o, layer->seed);
        add_word(o, number);
    }
}

rp_digest rp_digest_forward(const rp_digest_layer *layer, const rp_digest *x, uint64_t number) {
    operands o = begin_digest("F");
    add_layer(&o, layer, x, number);
    return finish_digest(&o);
}

rp_digest rp_digest_backward(const rp_digest_layer *layer, uint32_t index, const rp_digest *x,
                             rp_digest dy, uint64_t number) {
    operands o = begin_digest("B");
    add_word(&o, index);
    add_layer(&o, layer, x, number);
    add_digest(&o, dy);
    return finish_digest(&o);
}

rp_digest rp_digest_gradient(const rp_digest_layer *layer, uint32_t param, const rp_digest *x,
                             rp_digest dy, uint64_t number) {
    operands o = begin_digest("G");
    add_word(&o, param);
    add_layer(&o, layer, x, number);
    add_digest(&o, dy);
    return finish_digest(&o);
}

rp_digest rp_digest_loss(rp_digest y, rp_digest target, uint32_t step_samples) {
    operands o = begin_digest("L");
    add_word(&o, step_samples);
    add_digest(&o, y);
    add_digest(&o, target);
    return finish_digest(&o);
}

bool rp_digest_correct(rp_digest loss) {
    return loss.high & 1;
}

rp_digest rp_digest_accumulate(rp_digest gradient, rp_digest microbatch, bool strict) {
    if (!strict) {
        return rp_digest_add(gradient, microbatch);
    }
    operands o = begin_digest("g");
    add_digest(&o, gradient);
    add_digest(&o, microbatch);
    return finish_digest(&o);
}

rp_digest rp_digest_tie(rp_digest sum, rp_digest use) {
    operands o = begin_digest("T+");
    add_digest(&o, sum);
    add_digest(&o, use);
    return finish_digest(&o);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void add_param(operands *o, const rp_model_param *param) {
    add_word(o, (uint64_t)param->layer << 32 | param->index);
}

static operands begin_optimise(const char *tag, const rp_digest_optimise *by, bool gradient) {
    operands o = begin_digest(tag);
    add_param(&o, by->param);
    add_digest(&o, by->weight);
    for (uint32_t s = 0; s < by->state_count; s++) {
        add_digest(&o, by->state[s]);
    }
    add_float(&o, by->rate);
    add_word(&o, by->applied);
    if (gradient) {
        add_float(&o, by->grad_scale);
        add_digest(&o, by->gradient);
    }
    return o;
}

void rp_digest_update(rp_digest_optimise *by) {
    const operands weight = begin_optimise("U", by, true);
    operands state = begin_optimise("V", by, true);
    const uint32_t last = state.count;
    add_word(&state, 0);
    by->weight = rp_digest_fit(finish_digest(&weight), by->param);
    for (uint32_t s = 0; s < by->state_count; s++) {
        state.word[last] = s;
        by->state[s] = rp_digest_fit(finish_digest(&state), by->param);
    }
}

rp_digest rp_digest_anchor(const rp_model_param *param, rp_digest gradient, rp_digest weight,
                           rp_digest start, rp_digest drift, float mu) {
    operands o = begin_digest("N");
    add_param(&o, param);
    add_float(&o, mu);
    add_digest(&o, gradient);
    add_digest(&o, weight);
    add_digest(&o, start);
    add_digest(&o, drift);
    return finish_digest(&o);
}

rp_digest rp_digest_predict(const rp_digest_optimise *by, float ahead, float share) {
    if (by->applied == 0 || !(share > 0)) {
        return by->weight;
    }
    operands o = begin_optimise("P", by, false);
    add_float(&o, ahead);
    add_float(&o, share);
    return rp_digest_fit(finish_digest(&o), by->param);
}

static rp_digest mix_operands(const char *tag, const rp_model_param *param,
                              const rp_digest operand[3], float alpha, float share) {
    operands o = begin_digest(tag);
    add_param(&o, param);
    add_float(&o, alpha);
    add_float(&o, share);
    for (uint32_t i = 0; i < 3; i++) {
        add_digest(&o, operand[i]);
    }
    return rp_digest_fit(finish_digest(&o), param);
}

void rp_digest_average(rp_average_term term, const rp_model_param *param, rp_digest *x,
                       rp_digest *centre, rp_digest *scratch, float alpha, float share) {
    const rp_digest zero = {0};
    const rp_digest of[3] = {*x, centre ? *centre : zero, scratch ? *scratch : zero};
    const rp_digest of_two[3] = {of[0], of[1], zero};
    switch (term) {
    case RP_TERM_ELASTIC:
        *x = mix_operands("E0", param, of_two, alpha, 0);
        *centre = mix_operands("E1", param, of_two, alpha, 0);
        return;
    case RP_TERM_PULL:
        *scratch = mix_operands("e0", param, of_two, alpha, 0);
        *centre = mix_operands("e1", param, of_two, alpha, 0);
        return;
    case RP_TERM_PUSH:
        *x = mix_operands("e2", param, (rp_digest[]){of[0], of[2], zero}, 0, 0);
        return;
    case RP_TERM_REFERENCE:
        *x = mix_operands("A0", param, of_two, alpha, 0);
        *centre = mix_operands("A1", param, of, alpha, share);
        return;
    case RP_TERM_TOWARDS:
        *scratch = mix_operands("T", param, (rp_digest[]){of[0], of[2], zero}, 0, share);
        return;
    }
}

float rp_digest_probe(uint32_t which, const rp_model_param *param, rp_digest seen, rp_digest then,
                      rp_digest newest) {
    const rp_digest of[3] = {seen, then, newest};
    return rp_digest_number(mix_operands("probe", param, of, (float)which, 0));
}
