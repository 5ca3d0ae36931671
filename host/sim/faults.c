#include "sim/faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ring/ring.h"

static const struct {
    const char *name;
    rp_sim_target target;
    const char *unit;
    double most;
    bool stops;
} kinds[RP_SIM_FAULT_KINDS] = {
#define X(name, text, target, unit, most, stops, about)                                            \
    {text, RP_SIM_TARGET_##target, unit, most, stops},
    RP_SIM_FAULT_LIST(X)
#undef X
};

#define KEYS_EDGE "from, to"
#define KEYS_NODE "node"
#define KEYS_HOST ""
static const rp_sim_fault_facts facts[RP_SIM_FAULT_KINDS] = {
#define X(name, text, target, unit, most, stops, about) {text, about, KEYS_##target, unit, most},
    RP_SIM_FAULT_LIST(X)
#undef X
};

const rp_sim_fault_facts *rp_sim_fault_facts_at(uint32_t kind) {
    return kind < RP_SIM_FAULT_KINDS ? &facts[kind] : NULL;
}

rp_sim_target rp_sim_fault_target(rp_sim_fault_kind kind) {
    return kinds[kind].target;
}

/* UNWAITED_NS: without ring.wait, a board that is missed for longer ends the run. BRIEF_NS: every
 * run survives a shorter fault, because no peer has tried a second time yet. */
static const int64_t UNWAITED_NS = 5 * RP_NS_PER_S, BRIEF_NS = RP_NS_PER_S / 2;

int64_t rp_sim_fault_borne_ns(int64_t wait_ns) {
    const int64_t borne_ns = wait_ns == 0 ? UNWAITED_NS : wait_ns - rp_ring_greet_ns(wait_ns);
    return borne_ns > BRIEF_NS ? borne_ns : BRIEF_NS;
}

/* A frame sent just before a delay fault ends is still late by the delay. */
static int64_t effect_ns(const rp_sim_fault *fault) {
    const bool is_late = fault->kind == RP_SIM_FAULT_DELAY;
    return fault->for_ns + (is_late ? (int64_t)(fault->amount * RP_NS_PER_MS) : 0);
}

static bool is_brief(const rp_sim_fault *fault, int64_t wait_ns) {
    return effect_ns(fault) <= rp_sim_fault_borne_ns(wait_ns);
}

/* Whether a board with the fault is missed, its timeouts expire early, or a write is retried. */
static bool loses_time(rp_sim_fault_kind kind) {
    return kind == RP_SIM_FAULT_CRASH || kind == RP_SIM_FAULT_MOVE || kind == RP_SIM_FAULT_CLOCK ||
           kind == RP_SIM_FAULT_RESET || kind == RP_SIM_FAULT_GONE || kind == RP_SIM_FAULT_EMPTY ||
           kind == RP_SIM_FAULT_DEVICE || kind == RP_SIM_FAULT_MEMORY ||
           kind == RP_SIM_FAULT_TWIN || kind == RP_SIM_FAULT_DISK_FULL;
}

/* A board with another key does not belong to the roster, so it is lost as well. */
static bool is_lost_for_good(rp_sim_fault_kind kind) {
    return kind == RP_SIM_FAULT_GONE || kind == RP_SIM_FAULT_WRONG || kind == RP_SIM_FAULT_EMPTY;
}

bool rp_sim_fault_loses_board(const rp_sim_fault *fault, int64_t wait_ns) {
    const bool ends = fault->kind == RP_SIM_FAULT_CRASH || fault->kind == RP_SIM_FAULT_MOVE ||
                      fault->kind == RP_SIM_FAULT_EMPTY || fault->kind == RP_SIM_FAULT_RESET ||
                      fault->kind == RP_SIM_FAULT_SUSPEND;
    return is_lost_for_good(fault->kind) || (ends && !is_brief(fault, wait_ns));
}

bool rp_sim_fault_may_stop(const rp_sim_fault *fault, int64_t wait_ns) {
    const bool is_missed = wait_ns == 0 && (loses_time(fault->kind) || !is_brief(fault, wait_ns));
    return kinds[fault->kind].stops || is_missed ||
           (fault->kind != RP_SIM_FAULT_HANG && !rp_sim_fault_loses_board(fault, wait_ns) &&
            !is_brief(fault, wait_ns)); /* a board that hangs is missed and restarts */
}

/* Absence of a board that is longer than any run waits. */
static const int64_t GONE_NS = 90 * RP_NS_PER_S;
/* Outages between these are noticed, but the board is not given up. */
static const int64_t NOTICED_NS = 5 * RP_NS_PER_S, BORNE_NS = 25 * RP_NS_PER_S;
/* An agent gives up a hanging device after 30 s, or after 300 s if no op has finished yet. */
static const int64_t HUNG_NS = 320 * RP_NS_PER_S;

/* ---- drawing --------------------------------------------------------------------------------- */

static double draw_between(rp_rng *rng, double low, double high) {
    return low + (high - low) * (double)rp_rng_uniform(rng);
}

/* How many of a run's faults may end it: none, so that the run must make progress; one, so that no
 * second one hides it; or any number. */
typedef enum { NONE_STOPS, ONE_STOPS, ANY_STOPS, MODES } draw_mode;

typedef struct {
    bool in[RP_SIM_FAULT_KINDS];
    bool any_stops;    /* faults that may end the run may still be drawn */
    uint32_t may_lose; /* boards that may still be lost without ending the run */
} draw_subset;

/* Whether the kind may end a run that needs every board. */
static bool ends_run(uint32_t kind) {
    return kinds[kind].stops || is_lost_for_good((rp_sim_fault_kind)kind);
}

/* Each kind is in with probability 1/2; at least one kind that ends no run is in. */
static draw_subset choose_subset(rp_rng *rng, draw_mode mode, bool is_verified) {
    draw_subset out = {.any_stops = mode != NONE_STOPS};
    bool calm = false;
    for (uint32_t k = 0; k < RP_SIM_FAULT_DRAWN; k++) {
        out.in[k] = rp_rng_below(rng, 2) == 1;
        calm |= out.in[k] && !ends_run(k);
    }
    while (!calm) {
        const uint32_t k = rp_rng_below(rng, RP_SIM_FAULT_DRAWN);
        out.in[k] |= !ends_run(k);
        calm = out.in[k] && !ends_run(k);
    }
    out.in[RP_SIM_FAULT_WRONG] &= is_verified;
    return out;
}

static rp_sim_fault_kind draw_kind(rp_rng *rng, const draw_subset *subset) {
    for (;;) {
        const uint32_t k = rp_rng_below(rng, RP_SIM_FAULT_DRAWN);
        const bool stops = subset->may_lose > 0 ? kinds[k].stops : ends_run(k);
        if (subset->in[k] && (subset->any_stops || !stops)) {
            return (rp_sim_fault_kind)k;
        }
    }
}

/* Amounts spread over orders of magnitude: a rate of 0.001 finds other bugs than one of 0.5. */
static double draw_amount(rp_rng *rng, rp_sim_fault_kind kind) {
    const double most = kinds[kind].most;
    if (most <= 0) {
        return 0;
    }
    if (most < 1) {
        const double share = rp_rng_below(rng, 2) ? 0.02 : 0.5; /* before draw_between() draws */
        return most * share * draw_between(rng, 0.1, 1);
    }
    static const double shares[] = {0.001, 0.01, 0.1, 1};
    const double share = shares[rp_rng_below(rng, 4)];
    const double amount = most * share * draw_between(rng, 0.2, 1);
    return amount < 1 ? 1 : amount;
}

/* `loses`: the fault may cost a board. */
static int64_t draw_length_ns(rp_rng *rng, rp_sim_fault_kind kind, int64_t phase_ns, bool loses) {
    const bool ends = kind == RP_SIM_FAULT_CRASH || kind == RP_SIM_FAULT_MOVE;
    const bool holds = kind == RP_SIM_FAULT_SUSPEND || kind == RP_SIM_FAULT_HOST_STILL ||
                       kind == RP_SIM_FAULT_PARTITION || kind == RP_SIM_FAULT_CLOG ||
                       kind == RP_SIM_FAULT_STALL;
    const bool is_long = rp_rng_below(rng, 4) == 0;
    if (is_long && ends && loses) {
        return GONE_NS;
    }
    if (is_long && kind == RP_SIM_FAULT_HANG) {
        return (int64_t)draw_between(rng, (double)BORNE_NS, (double)HUNG_NS);
    }
    return (int64_t)(is_long && holds ? draw_between(rng, (double)NOTICED_NS, (double)BORNE_NS)
                                      : (double)phase_ns * draw_between(rng, 0.01, 0.5));
}

/* One fault in four begins in a given state of the controller: one that every run enters often, or
 * with `any` also one of a recovery. */
static rp_control_state_id draw_state(rp_rng *rng, bool any) {
    static const rp_control_state_id states[] = {
        RP_CONTROL_TRAIN,  RP_CONTROL_SAVE,   RP_CONTROL_EVALUATE, RP_CONTROL_HELLO,
        RP_CONTROL_ASSIGN, RP_CONTROL_ASSIGN, RP_CONTROL_ASSIGN,   RP_CONTROL_LOAD};
    const uint32_t which = rp_rng_below(rng, any ? 8 : 3);
    return rp_rng_below(rng, 4) == 0 ? states[which] : RP_CONTROL_STATES;
}

/* Whether the node has a fault already; with `of_lost`, one that loses it. A crash of at least
 * away_ns counts as a loss. */
static bool has_fault(const rp_sim_faults *faults, uint32_t node, bool of_lost, int64_t away_ns) {
    for (uint32_t f = 0; f < faults->count; f++) {
        const rp_sim_fault *fault = &faults->fault[f];
        const bool is_away = fault->kind == RP_SIM_FAULT_CRASH && fault->for_ns >= away_ns;
        const bool is_lost = fault->kind == RP_SIM_FAULT_GONE || is_away ||
                             fault->kind == RP_SIM_FAULT_EMPTY || fault->for_ns == GONE_NS;
        if (fault->from == node && (is_lost || !of_lost)) {
            return true;
        }
    }
    return false;
}

/* Avoids lost boards, on which a fault has no effect; `gone` avoids boards with any fault, and an
 * early fault those that are away for the whole phase. Gives up after TRIES draws. All `wrong`
 * faults hit the same board, because two boards cannot outvote two. */
static uint32_t draw_node(rp_rng *rng, rp_sim_fault_kind kind, const rp_sim_field *field,
                          const rp_sim_faults *before, bool early) {
    enum { TRIES = 8 };
    uint32_t node = 0;
    bool is_free = false;
    for (uint32_t f = 0; kind == RP_SIM_FAULT_WRONG && f < before->count; f++) {
        if (before->fault[f].kind == kind) {
            return before->fault[f].from;
        }
    }
    for (uint32_t i = 0; i < TRIES && !is_free; i++) {
        node = rp_rng_below(rng, field->nodes);
        is_free = !has_fault(before, node, kind != RP_SIM_FAULT_GONE,
                             early ? field->phase_ns : INT64_MAX);
    }
    return node;
}

static rp_sim_fault draw_fault(rp_rng *rng, rp_sim_fault_kind kind, const rp_sim_field *field,
                               const rp_sim_faults *before, bool early, bool loses) {
    rp_sim_fault fault = {.kind = kind, .from = RP_SIM_HOST, .to = RP_SIM_HOST};
    if (kinds[kind].target == RP_SIM_TARGET_EDGE) {
        const uint32_t e = rp_rng_below(rng, field->edge_count);
        fault.from = field->edges[e][0];
        fault.to = field->edges[e][1];
    } else if (kinds[kind].target == RP_SIM_TARGET_NODE) {
        fault.from = fault.to = draw_node(rng, kind, field, before, early);
    }
    fault.at_ns =
        (int64_t)((double)(early ? field->early_ns : field->phase_ns) * draw_between(rng, 0, 1));
    loses = loses && !has_fault(before, fault.from, false, INT64_MAX);
    fault.for_ns = draw_length_ns(rng, kind, field->phase_ns, loses);
    fault.amount = draw_amount(rng, kind);
    fault.in = draw_state(rng, !early);
    fault.in = kind == RP_SIM_FAULT_SAVE_CRASH || kind == RP_SIM_FAULT_STALL ? RP_CONTROL_STATES
                                                                             : fault.in;
    return fault;
}

static void add_fault(rp_sim_faults *to, const rp_sim_fault *fault) {
    uint32_t at = to->count++;
    for (; at > 0 && to->fault[at - 1].at_ns > fault->at_ns; at--) {
        to->fault[at] = to->fault[at - 1];
    }
    to->fault[at] = *fault;
}

/* A crash about as long as the ring waits for the board. If the ring has gone on without the board
 * when it is back, it has to join again. */
static rp_sim_fault draw_return(rp_rng *rng, const rp_sim_field *field) {
    const uint32_t node = rp_rng_below(rng, field->nodes);
    const double at = draw_between(rng, 0, 1);
    const double lasts = draw_between(rng, 0.2, 1.2);
    return (rp_sim_fault){.kind = RP_SIM_FAULT_CRASH,
                          .from = node,
                          .to = node,
                          .at_ns = (int64_t)((double)field->early_ns * at),
                          .for_ns = (int64_t)((double)field->back_ns * lasts),
                          .in = RP_CONTROL_STATES};
}

void rp_sim_faults_draw(rp_rng *rng, const rp_sim_field *field, rp_sim_faults *out) {
    const uint32_t least = field->least;
    RP_ASSERT(field->nodes > 0 && field->edge_count > 0 && least <= RP_SIM_FAULTS_MAX / 4);
    RP_ASSERT(field->early_ns > 0 && field->early_ns <= field->phase_ns);
    *out = (rp_sim_faults){0};
    const bool comes_back = field->back_ns > 0 && field->may_lose > 0;
    const draw_mode mode = comes_back ? NONE_STOPS : (draw_mode)rp_rng_below(rng, MODES);
    draw_subset subset = choose_subset(rng, mode, field->is_verified);
    subset.may_lose = field->may_lose;
    if (comes_back) {
        const rp_sim_fault back = draw_return(rng, field);
        add_fault(out, &back);
        subset.may_lose = 0; /* no second fault may end the run or change the ring meanwhile */
    }
    const uint32_t more = rp_rng_below(rng, 4) == 0 ? 3 * least : least;
    const uint32_t count = least + rp_rng_below(rng, more + 1);
    for (uint32_t i = 0; i < count; i++) {
        const rp_sim_fault_kind kind = draw_kind(rng, &subset);
        const rp_sim_fault fault =
            draw_fault(rng, kind, field, out, i < least, subset.any_stops || subset.may_lose > 0);
        const bool loses = is_lost_for_good(kind) || fault.for_ns == GONE_NS;
        const bool stops = kinds[kind].stops || (loses && subset.may_lose == 0);
        subset.any_stops &= mode == ANY_STOPS || !stops;
        subset.may_lose -= loses && subset.may_lose > 0;
        add_fault(out, &fault);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static rp_err read_end(rp_node *node, const char *key, uint32_t nodes, uint32_t *out) {
    rp_node *value = rp_node_find(node, key);
    if (!value || !rp_node_is_scalar(value)) {
        return rp_node_fail(node, "%s: expected the number of a board, or host", key);
    }
    if (strcmp(rp_node_text(value), "host") == 0) {
        *out = RP_SIM_HOST;
        return RP_OK;
    }
    return rp_node_u32(node, key, 0, nodes - 1, out);
}

static rp_err read_kind(rp_node *node, rp_sim_fault *fault) {
    const char *words[RP_SIM_FAULT_KINDS + 1] = {NULL};
    uint32_t word = 0;
    rp_err err;
    for (uint32_t k = 0; k < RP_SIM_FAULT_KINDS; k++) {
        words[k] = kinds[k].name;
    }
    RP_TRY(rp_node_need(node, "kind"));
    RP_TRY(rp_node_word(node, "kind", words, &word));
    fault->kind = (rp_sim_fault_kind)word;
fail:
    return err;
}

static rp_err read_state(rp_node *node, rp_sim_fault *fault) {
    const char *words[RP_CONTROL_STATES + 1] = {NULL};
    uint32_t word = RP_CONTROL_STATES;
    for (uint32_t s = 0; s < RP_CONTROL_STATES; s++) {
        words[s] = rp_control_states[s].name;
    }
    const rp_err err = rp_node_word(node, "in", words, &word);
    fault->in = (rp_control_state_id)word;
    return err;
}

static rp_err read_fault(rp_node *node, uint32_t nodes, rp_sim_fault *fault) {
    double at_s = 0;
    double for_s = 0;
    rp_err err;
    *fault = (rp_sim_fault){.from = RP_SIM_HOST, .to = RP_SIM_HOST};
    if (!rp_node_is_map(node)) {
        return rp_node_fail(node, "expected a map, e.g. {kind: crash, node: 1, at_s: 0.2}");
    }
    RP_TRY(read_kind(node, fault));
    RP_TRY(read_state(node, fault));
    if (kinds[fault->kind].target == RP_SIM_TARGET_EDGE) {
        RP_TRY(read_end(node, "from", nodes, &fault->from));
        RP_TRY(read_end(node, "to", nodes, &fault->to));
    } else if (kinds[fault->kind].target == RP_SIM_TARGET_NODE) {
        RP_TRY(rp_node_need(node, "node"));
        RP_TRY(rp_node_u32(node, "node", 0, nodes - 1, &fault->from));
        fault->to = fault->from;
    }
    RP_TRY(rp_node_need(node, "at_s"));
    RP_TRY(rp_node_f64(node, "at_s", 0, 1e6, &at_s));
    RP_TRY(rp_node_f64(node, "for_s", 0, 1e6, &for_s));
    if (kinds[fault->kind].most > 0) {
        RP_TRY(rp_node_need(node, "amount"));
        RP_TRY(rp_node_f64(node, "amount", 0, kinds[fault->kind].most, &fault->amount));
    }
    fault->at_ns = (int64_t)(at_s * 1e9 + 0.5);
    fault->for_ns = (int64_t)(for_s * 1e9 + 0.5);
    RP_TRY(rp_node_done(node));
fail:
    return err;
}

rp_err rp_sim_faults_read(rp_arena *arena, const char *path, uint32_t nodes, rp_sim_faults *out) {
    rp_node *root;
    rp_err err;
    *out = (rp_sim_faults){0};
    RP_TRY(rp_config_read_file(arena, path, &root));
    RP_TRY(rp_node_need(root, "faults"));
    rp_node *list = rp_node_find(root, "faults");
    if (!rp_node_is_list(list) || rp_node_count(list) > RP_SIM_FAULTS_MAX) {
        return rp_node_fail(list, "expected a list of at most %d faults", RP_SIM_FAULTS_MAX);
    }
    for (uint32_t i = 0; i < rp_node_count(list); i++) {
        rp_sim_fault fault;
        RP_TRY(read_fault(rp_node_item(list, i), nodes, &fault));
        add_fault(out, &fault);
    }
    RP_TRY(rp_node_done(root));
fail:
    return err;
}

static void write_end(uint32_t end, char *out, size_t bytes) {
    if (end == RP_SIM_HOST) {
        (void)snprintf(out, bytes, "host");
    } else {
        (void)snprintf(out, bytes, "%" PRIu32, end);
    }
}

void rp_sim_faults_write(const rp_sim_faults *faults, FILE *file) {
    (void)fprintf(file, faults->count > 0 ? "faults:\n" : "faults: []\n");
    for (uint32_t i = 0; i < faults->count; i++) {
        const rp_sim_fault *f = &faults->fault[i];
        char from[16];
        char to[16];
        write_end(f->from, from, sizeof from);
        write_end(f->to, to, sizeof to);
        (void)fprintf(file, "  - {kind: %s", kinds[f->kind].name);
        if (kinds[f->kind].target == RP_SIM_TARGET_EDGE) {
            (void)fprintf(file, ", from: %s, to: %s", from, to);
        } else if (kinds[f->kind].target == RP_SIM_TARGET_NODE) {
            (void)fprintf(file, ", node: %s", from);
        }
        (void)fprintf(file, ", at_s: %.9f, for_s: %.9f", (double)f->at_ns * 1e-9,
                      (double)f->for_ns * 1e-9);
        if (kinds[f->kind].most > 0) {
            (void)fprintf(file, ", amount: %.17g", f->amount);
        }
        if (f->in < RP_CONTROL_STATES) {
            (void)fprintf(file, ", in: %s", rp_control_states[f->in].name);
        }
        (void)fprintf(file, "}\n");
    }
}

void rp_sim_fault_text(const rp_sim_fault *fault, char *out, size_t bytes) {
    char from[16];
    char to[16];
    char where[48] = "";
    char amount[48] = "";
    write_end(fault->from, from, sizeof from);
    write_end(fault->to, to, sizeof to);
    if (kinds[fault->kind].target == RP_SIM_TARGET_EDGE) {
        (void)snprintf(where, sizeof where, " %s -> %s", from, to);
    } else if (kinds[fault->kind].target == RP_SIM_TARGET_NODE) {
        (void)snprintf(where, sizeof where, " node %s", from);
    }
    if (kinds[fault->kind].most > 0) {
        (void)snprintf(amount, sizeof amount, ", %.3g %s", fault->amount, kinds[fault->kind].unit);
    }
    (void)snprintf(out, bytes, "%s%s at %.3f s for %.3f s%s", kinds[fault->kind].name, where,
                   (double)fault->at_ns * 1e-9, (double)fault->for_ns * 1e-9, amount);
}
