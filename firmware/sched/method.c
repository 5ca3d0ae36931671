#include "sched/method.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/split.h"

const char *const rp_weights_rules[] = {"current",   "stash",     "entry", "double",
                                        "pipeoptim", "spectrain", "xpipe", NULL};
static const char *const horizon_words[] = {"paper", "released", "exact", "measured", NULL};
static const char *const order_words[] = {"after", "before", NULL};
static const char *const evaluate_words[] = {"centre", "mean", "latest", NULL};

static rp_err unknown_kind(const rp_node *node, const char *name) {
    char known[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; rp_sched_kinds[i] && used < sizeof known; i++) {
        const int more =
            snprintf(known + used, sizeof known - used, " %s", rp_sched_kinds[i]->name);
        used += more > 0 ? (size_t)more : 0;
    }
    return rp_node_fail(node, "no schedule '%s'; there are:%s", name, known);
}

/* A word is allowed instead of a map with `kind`; *map is then NULL. */
static rp_err find_kind(rp_node *parent, rp_node **map, rp_method *out) {
    rp_node *node = rp_node_find(parent, "schedule");
    const char *name;
    rp_err err;
    *map = NULL;
    if (!node) {
        return rp_node_fail(parent, "schedule: is missing");
    }
    RP_TRY(rp_node_section(parent, "schedule", rp_node_is_scalar(node) ? "" : NULL, &node));
    if (rp_node_is_scalar(node)) {
        name = rp_node_text(node);
    } else if (rp_node_is_map(node)) {
        *map = node;
        RP_TRY(rp_node_need(node, "kind"));
        RP_TRY(rp_node_string(node, "kind", &name));
    } else {
        return rp_node_fail(node, "expected a word or a map with `kind`");
    }
    out->kind = rp_sched_find(name);
    return out->kind ? RP_OK : unknown_kind(node, name);
fail:
    return err;
}

static rp_err read_weights(rp_node *map, rp_method *out) {
    uint32_t word = (uint32_t)out->kind->weights;
    bool vertical = false;
    rp_err err = RP_OK;
    if (out->kind->weights == RP_WEIGHTS_STASH) {
        RP_TRY(rp_node_bool(map, "vertical_sync", &vertical));
        if (vertical && rp_node_find(map, "weights")) {
            return rp_node_fail(map, "`vertical_sync` and `weights` exclude each other");
        }
    }
    if (!vertical && (!out->kind->flushed || rp_node_find(map, "weights"))) {
        RP_TRY(rp_node_word(map, "weights", rp_weights_rules, &word));
    }
    out->weights = vertical ? RP_WEIGHTS_ENTRY : (rp_weights_rule)word;
    word = RP_HORIZON_PAPER;
    if (out->weights == RP_WEIGHTS_PIPEOPTIM) {
        RP_TRY(rp_node_word(map, "horizon", horizon_words, &word));
        RP_TRY(rp_node_bool(map, "decay", &out->decay));
    }
    out->horizon = (rp_horizon)word;
fail:
    return err;
}

/* Whether the key has a number; false if it is absent or `auto`. */
static bool is_given(rp_node *map, const char *key) {
    const rp_node *node = rp_node_find(map, key);
    return node && !(rp_node_is_scalar(node) && strcmp(rp_node_text(node), "auto") == 0);
}

/* Notes the defaults that follow from `advance`, as far as it is known: with `advance: auto` the
 * host must measure the links first. */
static rp_err note_average(rp_node *map, rp_method *m) {
    rp_err err = RP_OK;
    if (m->advance_auto) {
        RP_TRY(rp_node_default(map, "replicas", "auto"));
        RP_TRY(rp_node_default(map, "alpha", "auto"));
        return RP_OK;
    }
    if (!rp_node_find(map, "replicas")) {
        RP_TRY(rp_node_u32(map, "replicas", 1, RP_REPLICAS_MAX, &m->replicas));
    }
    if (!rp_node_find(map, "alpha")) {
        RP_TRY(rp_node_f64(map, "alpha", 0.0, 1.0, &m->alpha));
    }
fail:
    return err;
}

static rp_err read_average(rp_node *map, rp_method *out) {
    const bool elastic = out->kind->average == RP_AVERAGE_ELASTIC;
    uint32_t order = 0;
    uint32_t evaluate = RP_EVALUATE_CENTRE;
    rp_err err = RP_OK;
    out->replicas = 1;
    out->period = 1;
    if (out->kind->average == RP_AVERAGE_NONE) {
        return RP_OK;
    }
    out->replicas_given = is_given(map, "replicas");
    out->alpha_given = is_given(map, "alpha");
    if (out->replicas_given) {
        RP_TRY(rp_node_u32(map, "replicas", 1, RP_REPLICAS_MAX, &out->replicas));
    }
    if (out->alpha_given) {
        RP_TRY(rp_node_f64(map, "alpha", 0.0, 1.0, &out->alpha));
    }
    RP_TRY(rp_node_word(map, "evaluate", evaluate_words, &evaluate));
    if (elastic) {
        RP_TRY(rp_node_u32(map, "period", 1, 1u << 20, &out->period));
        RP_TRY(rp_node_word(map, "order", order_words, &order));
        RP_TRY(rp_node_bool(map, "lean", &out->lean));
    }
    out->before = order == 1;
    out->evaluate = (rp_evaluate)evaluate;
fail:
    return err;
}

static uint32_t in_flight(uint32_t stages, uint32_t advance) {
    const rp_sched_shape entry = {.stages = stages, .advance = advance};
    return rp_sched_in_flight_max(&entry);
}

void rp_method_set_advance(rp_method *m, uint32_t stages, uint32_t advance) {
    const bool elastic = m->kind->average == RP_AVERAGE_ELASTIC;
    m->advance = advance;
    if (m->kind->average == RP_AVERAGE_NONE) {
        return;
    }
    if (!m->replicas_given) {
        /* R = D: no update of a replica between a forward and its backward (METHODS 9) */
        const uint32_t flying = in_flight(stages, advance);
        m->replicas = !elastic ? 2 : flying < RP_REPLICAS_MAX ? flying : RP_REPLICAS_MAX;
    }
    if (!m->alpha_given) {
        m->alpha = (elastic ? 0.9 : 1.0) / m->replicas; /* EASGD's beta = 0.9; AvgPipe's 1/P */
    }
}

/* `auto`, or a map with the limit: uses the default until the host has measured the links. */
static rp_err read_advance(rp_node *map, uint32_t stages, rp_method *out) {
    rp_node *node = rp_node_find(map, "advance");
    const char *word = node && rp_node_is_scalar(node) ? rp_node_text(node) : "";
    /* the value of AvgPipe's figure */
    uint32_t advance = out->kind->average == RP_AVERAGE_REFERENCE ? 1 : 0;
    rp_err err = RP_OK;
    out->age_given = node && rp_node_is_map(node);
    out->advance_auto = out->age_given || strcmp(word, "auto") == 0;
    if (!out->advance_auto && word[0] >= 'A') {
        return rp_node_fail(node,
                            "expected auto, {max_staleness: N} or a whole number from 0 to %d, "
                            "found '%s'",
                            RP_ADVANCE_MAX, word);
    }
    if (out->age_given) {
        RP_TRY(rp_node_need(node, "max_staleness"));
        RP_TRY(rp_node_u32(node, "max_staleness", 0, 100000, &out->age_max));
        RP_TRY(rp_node_done(node));
    } else if (!out->advance_auto) {
        RP_TRY(rp_node_u32(map, "advance", 0, RP_ADVANCE_MAX, &advance));
    }
    rp_method_set_advance(out, stages, advance);
    if (out->kind->average != RP_AVERAGE_NONE) {
        RP_TRY(note_average(map, out));
    }
fail:
    return err;
}

bool rp_method_replicas_fit(const rp_method *m, uint32_t stages) {
    return m->kind->average == RP_AVERAGE_NONE || m->weights == RP_WEIGHTS_CURRENT ||
           (stages > 1 && m->replicas < in_flight(stages, m->advance));
}

static rp_err fit_replicas(const rp_node *node, uint32_t stages, const rp_method *m) {
    const char *rule = rp_weights_rules[m->weights];
    if (rp_method_replicas_fit(m, stages)) {
        return RP_OK;
    }
    if (stages == 1) {
        return rp_node_fail(node,
                            "weights: %s: on one board there is no update between a forward and "
                            "its backward; drop `weights`",
                            rule);
    }
    return rp_node_fail(node,
                        "weights: %s: with %u replicas on %u stages no replica is updated "
                        "between a forward and its backward; use fewer replicas",
                        rule, m->replicas, stages);
}

/* Combinations that make no sense are refused with the reason. */
static rp_err check_combination(const rp_node *node, uint32_t stages, const rp_method *m) {
    const char *rule = rp_weights_rules[m->weights];
    if (m->kind->flushed && m->weights != RP_WEIGHTS_CURRENT) {
        return rp_node_fail(node,
                            "weights: %s: schedule %s flushes, so forward and backward see the "
                            "same weights anyway",
                            rule, m->kind->name);
    }
    if (m->kind->average == RP_AVERAGE_NONE) {
        return RP_OK;
    }
    if (m->weights == RP_WEIGHTS_ENTRY || m->weights == RP_WEIGHTS_DOUBLE ||
        m->weights == RP_WEIGHTS_SPECTRAIN || m->weights == RP_WEIGHTS_XPIPE) {
        return rp_node_fail(node,
                            "weights: %s: needs versions of one model, but %s has replicas; "
                            "expected current, stash or pipeoptim",
                            rule, m->kind->name);
    }
    if (m->kind->average == RP_AVERAGE_REFERENCE && m->replicas == 1 && !m->alpha_given) {
        return rp_node_fail(
            node, "replicas: 1: with `alpha` 1 / replicas the only model would become the "
                  "reference of the previous update; use more replicas, or give `alpha`");
    }
    if (stages == 1 && fit_replicas(node, stages, m) != RP_OK) {
        return RP_ERR_USAGE; /* before advice that applies to more boards */
    }
    if (m->weights != RP_WEIGHTS_CURRENT && m->lean) {
        return rp_node_fail(node,
                            "weights: %s: with `lean` no replica of a stage is updated between a "
                            "forward and its backward; drop one of the two",
                            rule);
    }
    if (m->weights != RP_WEIGHTS_CURRENT && m->advance_auto) {
        return rp_node_fail(node,
                            "weights: %s: inside replicas needs a known number of minibatches in "
                            "flight; expected a number as `advance`",
                            rule);
    }
    if (m->lean && (m->advance > 0 || m->advance_auto)) {
        return rp_node_fail(node, "lean: keeps only the replicas that are in flight without "
                                  "`advance`; drop one of the two");
    }
    return fit_replicas(node, stages, m);
}

/* One number for all stages, or a list with one for each; `out` NULL: only checks. */
static rp_err read_sizes(rp_node *map, const char *key, uint32_t stages, uint32_t direction,
                         uint32_t (*out)[2]) {
    const rp_node *node = map && rp_node_is_map(map) ? rp_node_find(map, key) : NULL;
    const bool list = node && rp_node_is_list(node);
    uint32_t size = 0;
    rp_err err = RP_OK;
    if (list && rp_node_count(node) != stages) {
        return rp_node_fail(
            node, "has %u sizes for %u stages; expected one for each stage, or one number for all",
            rp_node_count(node), stages);
    }
    if (node && !list) {
        RP_TRY(rp_node_u32(map, key, 1, INT32_MAX, &size));
    }
    for (uint32_t k = 0; node && k < stages; k++) {
        if (list) {
            RP_TRY(rp_node_item_u32(node, k, 1, INT32_MAX, &size));
        }
        if (out) {
            out[k][direction] = size;
        }
    }
fail:
    return err;
}

static rp_err read_both_sizes(rp_node *parent, uint32_t stages, uint32_t (*out)[2]) {
    rp_node *map = rp_node_find(parent, "schedule");
    const rp_err err = read_sizes(map, "forward", stages, 0, out);
    return err == RP_OK ? read_sizes(map, "backward", stages, 1, out) : err;
}

rp_err rp_method_sizes(rp_arena *arena, const rp_method *method, rp_node *parent, uint32_t stages,
                       uint32_t micro, uint32_t (**out)[2]) {
    rp_err err;
    *out = NULL;
    if (!method->kind->sizes) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, stages, out));
    for (uint32_t k = 0; k < stages; k++) {
        (*out)[k][0] = (*out)[k][1] = micro;
    }
    RP_TRY(read_both_sizes(parent, stages, *out));
fail:
    return err;
}

static rp_err read_ahead_item(const rp_node *node, uint32_t k, rp_method *out) {
    uint32_t ahead;
    const rp_err err = rp_node_item_u32(node, k, 1, RP_AHEAD_MAX, &ahead);
    if (err == RP_OK && k > 0 && ahead > out->ahead[k - 1]) {
        return rp_node_fail(node,
                            "ahead: stage %u has %u, but the previous stage %u has %u; expected "
                            "numbers that do not grow from stage to stage",
                            k, ahead, k - 1, out->ahead[k - 1]);
    }
    out->ahead[k] = err == RP_OK ? (uint16_t)ahead : 0;
    return err;
}

/* The node that updates a stage publishes the weights for its forwards: unchanged, or predicted for
 * the version of their backwards. */
static rp_err check_split_weights(rp_node *map, const rp_method *m) {
    const rp_node *given = rp_node_find(map, "weights");
    const rp_node *node = given ? given : map; /* `vertical_sync` also gives weights */
    if (m->weights != RP_WEIGHTS_STASH && m->weights != RP_WEIGHTS_CURRENT &&
        m->weights != RP_WEIGHTS_PIPEOPTIM) {
        return rp_node_fail(node, "schedule %s: weights: %s: expected stash, current or pipeoptim",
                            m->kind->name, rp_weights_rules[m->weights]);
    }
    if (m->horizon == RP_HORIZON_MEASURED) {
        return rp_node_fail(
            node,
            "schedule %s: horizon: measured: no board has both the weights that a forward saw and "
            "those at its backward; expected paper, exact or released",
            m->kind->name);
    }
    return m->weights == RP_WEIGHTS_PIPEOPTIM && m->publish > 1
               ? rp_node_fail(
                     node,
                     "schedule %s: weights: pipeoptim: weights are predicted for one minibatch, "
                     "but with publish: %u that many see them; expected publish: 1",
                     m->kind->name, m->publish)
               : RP_OK;
}

/* For kinds that split stages: a list of true or false; absent: all stages are split. */
static rp_err read_split(rp_node *map, rp_method *out) {
    const rp_node *node = rp_node_find(map, "split");
    rp_err err = RP_OK;
    if (!node) {
        return RP_OK;
    }
    const uint32_t count = rp_node_is_list(node) ? rp_node_count(node) : 0;
    if (count < 1 || count > RP_SPLIT_STAGES_MAX) {
        return rp_node_fail(
            node, "split: expected a list of true or false, one for each of 1 to %d stages",
            RP_SPLIT_STAGES_MAX);
    }
    for (uint32_t k = 0; k < count; k++) {
        bool splits = true;
        RP_TRY(rp_node_item_bool(node, k, &splits));
        out->whole |= splits ? 0 : UINT32_C(1) << k;
    }
    out->split_count = count;
fail:
    return err;
}

static rp_err read_ahead(rp_node *map, rp_method *out) {
    const rp_node *node = rp_node_find(map, "ahead");
    const bool is_word = node && rp_node_is_scalar(node);
    uint32_t ahead = 0;
    rp_err err = RP_OK;
    out->publish = 1;
    if (node && rp_node_is_list(node)) {
        const uint32_t count = rp_node_count(node);
        if (count < 1 || count > RP_SPLIT_STAGES_MAX) {
            return rp_node_fail(node,
                                "ahead: has %u numbers; expected one for each of 1 to %d stages",
                                count, RP_SPLIT_STAGES_MAX);
        }
        for (uint32_t k = 0; k < count; k++) {
            RP_TRY(read_ahead_item(node, k, out));
        }
        out->ahead_count = count;
    } else if (is_word && strcmp(rp_node_text(node), "measured") == 0) {
        out->ahead_measured = true;
    } else if (is_given(map, "ahead")) {
        RP_TRY(rp_node_u32(map, "ahead", 1, RP_AHEAD_MAX, &ahead));
        out->ahead[0] = (uint16_t)ahead;
        out->ahead_count = 1;
    } else {
        RP_TRY(rp_node_default(map, "ahead", "auto"));
    }
    RP_TRY(rp_node_u32(map, "publish", 1, RP_AHEAD_MAX, &out->publish));
    RP_TRY(read_split(map, out));
    RP_TRY(check_split_weights(map, out));
fail:
    return err;
}

rp_err rp_method_parse(rp_node *parent, uint32_t stages, rp_method *out) {
    *out = (rp_method){0};
    rp_node *map;
    rp_err err;
    RP_TRY(find_kind(parent, &map, out));
    RP_TRY(read_weights(map, out));
    RP_TRY(read_average(map, out));
    out->chunks = out->kind->interleaves ? 2 : 1;
    if (out->kind->interleaves) {
        RP_TRY(rp_node_u32(map, "chunks", 2, RP_CHUNKS_MAX, &out->chunks));
    }
    if (out->kind->splits) {
        RP_TRY(read_ahead(map, out));
    } else if (!out->kind->flushed) {
        RP_TRY(read_advance(map, stages, out));
        RP_TRY(rp_node_bool(map, "drain", &out->drain));
        out->probe = out->horizon == RP_HORIZON_MEASURED ? 10 : 0;
        RP_TRY(rp_node_u32(map, "probe", out->probe ? 1 : 0, 1000000, &out->probe));
    }
    if (out->kind->sizes) {
        const char *planner = NULL; /* only marked as known here; the host reads it */
        RP_TRY(read_both_sizes(parent, stages, NULL));
        RP_TRY(rp_node_string(map, "planner", &planner));
    }
    RP_TRY(check_combination(rp_node_find(parent, "schedule"), stages, out));
    return map ? rp_node_done(map) : RP_OK;
fail:
    return err;
}

uint32_t rp_method_replicas(const rp_method *method, uint32_t stages, uint32_t stage) {
    const uint32_t lean = stages - stage;
    return method->lean && lean < method->replicas ? lean : method->replicas;
}

uint32_t rp_method_stages(const rp_method *method, uint32_t boards) {
    return method->split_count > 0 ? method->split_count
           : method->kind->splits  ? boards / 2
                                   : boards * method->chunks;
}

uint32_t rp_method_boards(const rp_method *method, uint32_t stages) {
    return method->kind->splits ? rp_sched_split_nodes(stages, method->whole)
                                : stages / method->chunks;
}

bool rp_method_is_row(const rp_method *method) {
    return method->chunks == 1 && !method->kind->splits;
}

bool rp_method_is_plain(const rp_method *method) {
    return rp_method_is_row(method) && !method->kind->sizes;
}

bool rp_method_wire(const rp_method *method, uint32_t boards, uint32_t stages, uint32_t at,
                    uint32_t out[2]) {
    uint32_t wire[RP_SPLIT_WIRES_MAX][2];
    const bool is_round = boards > 2 && stages > boards;
    RP_ASSERT(boards > 0);
    if (method->kind->splits) {
        const bool is_there = at < rp_sched_split_wires(stages, method->whole, wire);
        out[0] = is_there ? wire[at][0] : 0;
        out[1] = is_there ? wire[at][1] : 0;
        return is_there;
    }
    out[0] = at;
    out[1] = (at + 1) % boards;
    return at + !is_round < boards;
}

bool rp_method_is_split(const rp_method *method, uint32_t stage) {
    return method->kind->splits && rp_sched_is_split(method->whole, stage);
}

uint32_t rp_method_backward_node(const rp_method *method, uint32_t stages, uint32_t stage) {
    return method->kind->splits ? rp_sched_split_backward(stages, method->whole, stage)
                                : stage % (stages / method->chunks);
}

rp_err rp_method_fit_boards(const rp_method *method, uint32_t boards, const rp_node *node) {
    if (!method->kind->splits) {
        return RP_OK;
    }
    if (method->split_count > 0) {
        const uint32_t expected = rp_method_boards(method, method->split_count);
        return expected == boards
                   ? RP_OK
                   : rp_node_fail(node,
                                  "split: has %u stages, %u of them on two boards: expected %u "
                                  "boards, found %u",
                                  method->split_count, expected - method->split_count, expected,
                                  boards);
    }
    return boards % 2 == 0 ? RP_OK
                           : rp_node_fail(node,
                                          "schedule %s: has two boards for each stage: expected an "
                                          "even number of boards, found %u",
                                          method->kind->name, boards);
}

rp_err rp_method_fit_stages(const rp_method *method, uint32_t stages, const rp_node *node) {
    if (!method->kind->splits) {
        return RP_OK;
    }
    if (stages < 1 || stages > RP_SPLIT_STAGES_MAX) {
        return rp_node_fail(node,
                            "schedule %s: has two boards for each stage: expected 1 to %d stages, "
                            "found %u",
                            method->kind->name, RP_SPLIT_STAGES_MAX, stages);
    }
    if (method->split_count > 0 && method->split_count != stages) {
        return rp_node_fail(node,
                            "split: has %u entries for %u stages; expected one for each stage",
                            method->split_count, stages);
    }
    return method->ahead_count < 2 || method->ahead_count == stages
               ? RP_OK
               : rp_node_fail(node,
                              "ahead: has %u numbers for %u stages; expected one for each stage, "
                              "or one number for all",
                              method->ahead_count, stages);
}

bool rp_method_predicts(const rp_method *method) {
    return method->weights >= RP_WEIGHTS_PIPEOPTIM;
}

static void order_split(const rp_method *method, rp_sched_shape *shape) {
    if (!method->kind->splits) {
        return;
    }
    shape->publish = method->publish;
    shape->whole = method->whole;
    rp_sched_split_default(shape);
    for (uint32_t k = 0; method->ahead_count > 0 && k < shape->stages && k < RP_SPLIT_STAGES_MAX;
         k++) {
        const uint32_t at = k < method->ahead_count ? k : method->ahead_count - 1;
        shape->ahead[k] = method->ahead[at];
    }
}

const char *rp_method_whose(const rp_method *method, uint32_t stage,
                            char out[RP_METHOD_WHOSE_BYTES]) {
    if (rp_method_is_split(method, stage)) {
        (void)snprintf(out, RP_METHOD_WHOSE_BYTES, "stage %u of schedule %.32s, which is split",
                       stage, method->kind->name);
    } else {
        (void)snprintf(out, RP_METHOD_WHOSE_BYTES, "schedule %.32s", method->kind->name);
    }
    return out;
}

const char *rp_method_refuses_again(const rp_method *method, uint32_t stage, bool parts) {
    if (rp_method_predicts(method)) {
        return "its forwards see predicted weights, which no longer exist at the backward";
    }
    if (rp_method_is_split(method, stage)) {
        return "its backwards are on another board than its forwards";
    }
    return parts ? "its backwards have other samples than its forwards" : NULL;
}

void rp_method_order(const rp_method *method, rp_sched_shape *shape) {
    const bool doubled =
        method->weights == RP_WEIGHTS_DOUBLE || method->kind->weights == RP_WEIGHTS_DOUBLE;
    shape->advance = method->advance;
    shape->drain = method->drain;
    shape->chunks = method->chunks;
    order_split(method, shape);
    shape->steps_open = doubled ? 2 : 0;
    if (method->kind->average != RP_AVERAGE_NONE && method->weights == RP_WEIGHTS_CURRENT) {
        shape->steps_open = rp_method_replicas(method, shape->stages, shape->stage);
    }
}

uint32_t rp_method_age(const rp_method *method, const rp_sched_shape *shape, uint32_t advance) {
    rp_method tried = *method;
    rp_sched_shape first = *shape;
    first.stage = 0;
    rp_method_set_advance(&tried, shape->stages, advance);
    const bool brings = method->kind->average == RP_AVERAGE_ELASTIC && !method->replicas_given;
    return brings ? tried.replicas - 1 : rp_method_staleness(&tried, &first);
}

uint32_t rp_method_advance_most(const rp_method *method, const rp_sched_shape *shape) {
    const uint32_t age_max = method->age_given ? method->age_max : RP_STALENESS_AUTO;
    /* age counts replicas, which cost nothing */
    const bool averages = method->kind->average != RP_AVERAGE_NONE;
    uint32_t most = 0;
    while (most < RP_ADVANCE_MAX && rp_method_age(method, shape, most + 1) <= age_max) {
        most++;
    }
    const uint32_t least = method->age_given ? 0 : RP_ADVANCE_AUTO;
    return most < least || (averages && !method->age_given) ? least : most;
}

uint32_t rp_method_staleness(const rp_method *method, const rp_sched_shape *shape) {
    rp_sched_shape run = *shape;
    rp_method_order(method, &run);
    return method->kind->flushed
               ? 0
               : rp_sched_steady_staleness(method->kind, &run, 0,
                                           rp_method_replicas(method, shape->stages, shape->stage));
}

typedef struct {
    char *out;
    size_t bytes, used;
} text;

static void put_text(text *t, const char *format, ...) RP_PRINTF(2, 3);
static void put_text(text *t, const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (t->used < t->bytes) {
        const int more = vsnprintf(t->out + t->used, t->bytes - t->used, format, values);
        t->used += more > 0 ? (size_t)more : 0;
    }
    va_end(values);
}

static void put_ahead(text *t, const rp_method *m) {
    for (uint32_t k = 0; k < m->ahead_count; k++) {
        put_text(t, "%s%u", k > 0 ? ", " : "", m->ahead[k]);
    }
}

static void put_split(text *t, const rp_method *m) {
    for (uint32_t k = 0; k < m->split_count; k++) {
        put_text(t, "%s%s", k > 0 ? ", " : "", rp_sched_is_split(m->whole, k) ? "true" : "false");
    }
}

static const char split_word[] = " split ["; /* begins the last part of a text */

void rp_method_text(const rp_method *m, char *out, size_t bytes) {
    text t = {.out = out, .bytes = bytes};
    put_text(&t,
             "%s weights %s horizon %s decay %d probe %u replicas %u alpha %.9g period %u "
             "order %s lean %d advance %u drain %d%s%s",
             m->kind->name, rp_weights_rules[m->weights], horizon_words[m->horizon], m->decay,
             m->probe, m->replicas, m->alpha, m->period, order_words[m->before], m->lean,
             m->advance, m->drain, m->evaluate ? " evaluate " : "",
             m->evaluate ? evaluate_words[m->evaluate] : "");
    if (m->kind->splits) {
        put_text(&t, " ahead [");
        put_ahead(&t, m);
        put_text(&t, "] publish %u", m->publish);
    }
    if (m->whole) { /* omitted otherwise, as in former versions */
        put_text(&t, "%s", split_word);
        put_split(&t, m);
        put_text(&t, "]");
    }
}

bool rp_method_text_goes_on(const char *a, const char *b) {
    const char *end[2] = {strstr(a, split_word), strstr(b, split_word)};
    const size_t bytes[2] = {end[0] ? (size_t)(end[0] - a) : strlen(a),
                             end[1] ? (size_t)(end[1] - b) : strlen(b)};
    return bytes[0] == bytes[1] && memcmp(a, b, bytes[0]) == 0;
}

/* Rejects an `ahead` that rises with the stage. */
bool rp_method_take_ahead(rp_method *m, const char *line) {
    const char *at = strstr(line, " ahead [");
    uint16_t ahead[RP_SPLIT_STAGES_MAX];
    uint32_t count = 0;
    bool more = at != NULL;
    at = at ? at + strlen(" ahead [") : "";
    while (more && count < RP_SPLIT_STAGES_MAX) {
        char *end;
        const unsigned long value = strtoul(at, &end, 10);
        if (end == at || value < 1 || value > RP_AHEAD_MAX ||
            (count > 0 && value > ahead[count - 1])) {
            return false;
        }
        ahead[count++] = (uint16_t)value;
        more = *end == ',';
        at = more ? end + 1 : end;
    }
    if (count == 0 || *at != ']') {
        return false;
    }
    memcpy(m->ahead, ahead, count * sizeof *ahead);
    m->ahead_count = count;
    m->ahead_measured = false;
    return true;
}

rp_err rp_method_write(const rp_method *m, char *out, size_t bytes) {
    text t = {.out = out, .bytes = bytes};
    put_text(&t, "{\"kind\": \"%s\", \"weights\": \"%s\"", m->kind->name,
             rp_weights_rules[m->weights]);
    if (m->weights == RP_WEIGHTS_PIPEOPTIM) {
        put_text(&t, ", \"horizon\": \"%s\", \"decay\": %s", horizon_words[m->horizon],
                 m->decay ? "true" : "false");
    }
    if (m->kind->average != RP_AVERAGE_NONE) {
        put_text(&t, ", \"replicas\": %u, \"alpha\": %.17g, \"evaluate\": \"%s\"", m->replicas,
                 m->alpha, evaluate_words[m->evaluate]);
    }
    if (m->kind->average == RP_AVERAGE_ELASTIC) {
        put_text(&t, ", \"period\": %u, \"order\": \"%s\", \"lean\": %s", m->period,
                 order_words[m->before], m->lean ? "true" : "false");
    }
    if (m->kind->splits && m->ahead_count > 0) {
        put_text(&t, ", \"ahead\": [");
        put_ahead(&t, m);
        put_text(&t, "]");
    }
    if (m->split_count > 0) {
        put_text(&t, ", \"split\": [");
        put_split(&t, m);
        put_text(&t, "]");
    }
    if (m->kind->splits) {
        put_text(&t, ", \"publish\": %u", m->publish);
    } else if (!m->kind->flushed) {
        put_text(&t, ", \"advance\": %u, \"drain\": %s", m->advance, m->drain ? "true" : "false");
        if (m->probe > 0) {
            put_text(&t, ", \"probe\": %u", m->probe);
        }
    }
    if (m->kind->interleaves && m->chunks > 1) {
        put_text(&t, ", \"chunks\": %u", m->chunks);
    }
    put_text(&t, "}");
    return t.used < bytes ? RP_OK
                          : rp_fail(RP_ERR_LIMIT, "schedule %s: its text is longer than %zu bytes",
                                    m->kind->name, bytes);
}

uint32_t rp_method_set_count(const rp_method *method) {
    if (method->kind->average != RP_AVERAGE_NONE) {
        return method->replicas + (method->evaluate != RP_EVALUATE_CENTRE);
    }
    return method->weights == RP_WEIGHTS_DOUBLE ? 1 : 0;
}

uint32_t rp_method_optimisers(const rp_method *method) {
    return method->kind->average != RP_AVERAGE_NONE ? method->replicas : 0;
}

void rp_method_set_prefix(const rp_method *method, uint32_t set, char *out, size_t bytes) {
    if (method->weights == RP_WEIGHTS_DOUBLE) {
        (void)snprintf(out, bytes, "older.");
    } else if (set == method->replicas) {
        (void)snprintf(out, bytes, "centre.");
    } else {
        (void)snprintf(out, bytes, "replica.%u.", set);
    }
}
