#include "planning/cost.h"

#include "planning/balance.h"
#include "planning/sums.h"

#include <math.h>

/* Rate of an encrypted link on one core: `build/bin/bench_link` gave 195 to 262 MB/s. */
static const double CURVE_BYTES_PER_S = 200e6;

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Wires of the ring on this medium, at least 1. No board sends on two at a time. */
static uint32_t count_sharing(const rp_runfile *run, uint64_t medium) {
    uint32_t count = 0;
    for (uint32_t k = 0; medium && k + 1 < run->boards; k++) {
        count += rp_link_profile_of(&run->link, &run->hops, k, k + 1).medium == medium;
        count += rp_link_profile_of(&run->link, &run->hops, k + 1, k).medium == medium;
    }
    return count > 1 ? count : 1;
}

uint64_t rp_cost_medium(const rp_runfile *run, uint32_t from, uint32_t to) {
    return run->emulate ? rp_link_profile_of(&run->link, &run->hops, from, to).medium : 0;
}

uint32_t rp_cost_pairs_on(const rp_runfile *run, uint64_t medium) {
    uint32_t count = 0;
    for (uint32_t k = 0; k + 1 < run->boards; k++) {
        count += rp_cost_medium(run, k, k + 1) == medium || rp_cost_medium(run, k + 1, k) == medium;
    }
    return count;
}

uint64_t rp_cost_common_medium(const rp_runfile *run) {
    uint64_t found = 0;
    uint32_t most = 1;
    for (uint32_t i = 0; run->emulate && i < 2 * (run->boards - 1); i++) {
        const uint64_t own = rp_cost_medium(run, i / 2 + i % 2, i / 2 + !(i % 2));
        const uint32_t pairs = own > 0 ? rp_cost_pairs_on(run, own) : 0;
        if (pairs > most) {
            most = pairs;
            found = own;
        }
    }
    return found;
}

/* Bytes per second of a wire that shares its medium's rate with `sharing` - 1 others. */
static double shared_rate(const rp_link_profile *line, uint32_t sharing) {
    const double emulated = rp_link_profile_rate_mbit(line) * 1e6 / 8 / sharing;
    return emulated > 0 && emulated < CURVE_BYTES_PER_S ? emulated : CURVE_BYTES_PER_S;
}

static double rate_of(const rp_runfile *run, uint32_t from, uint32_t to) {
    const rp_link_profile line = rp_link_profile_of(&run->link, &run->hops, from, to);
    return shared_rate(&line, count_sharing(run, line.medium));
}

static double delay_of(const rp_runfile *run, uint32_t from, uint32_t to) {
    const rp_link_profile line = rp_link_profile_of(&run->link, &run->hops, from, to);
    return (rp_link_profile_delay_ms(&line) + line.jitter_ms) * 1e-3;
}

static uint32_t board_of(const rp_runfile *run, uint32_t stage, bool backward) {
    return backward ? rp_runfile_backward_place(run, stage) : rp_runfile_forward_place(run, stage);
}

double rp_cost_link_delay_s(const rp_runfile *run) {
    double longest = 0;
    for (uint32_t k = 0; k + 1 < run->stages; k++) {
        const uint32_t on = board_of(run, k, false);
        const uint32_t back = board_of(run, k, true);
        longest = larger(longest, larger(delay_of(run, on, board_of(run, k + 1, false)),
                                         delay_of(run, board_of(run, k + 1, true), back)));
    }
    return longest;
}

/* Bytes of a microbatch at the boundary before `layer`; infinite: too many tensors cross. Samples
 * of the data set are not encoded. */
static double boundary_bytes(const rp_runfile *run, uint32_t layer, rp_codec codec) {
    rp_boundary boundary;
    size_t bytes = 0;
    if (rp_cut_boundary_at(run->model, layer, &boundary) != RP_OK) {
        return (double)INFINITY;
    }
    for (uint32_t i = 0; i < boundary.count; i++) {
        const uint32_t producer = boundary.producer[i];
        const size_t count = rp_shape_count(rp_model_shape(run->model, producer));
        bytes += rp_codec_bytes(producer == RP_LAYER_DATA ? RP_CODEC_F32 : codec, count);
    }
    return (double)bytes * run->micro;
}

double rp_cost_boundary_bytes(const rp_runfile *run, uint32_t layer) {
    return boundary_bytes(run, layer, run->codec ? run->codec[0][0] : RP_CODEC_F32);
}

/* Bytes per second of the wire of boundary `k` in one direction. */
static double wire_rate(const rp_runfile *run, uint32_t k, bool gradients, const double *measured) {
    const uint32_t from = board_of(run, k + gradients, gradients);
    const uint32_t to = board_of(run, k + !gradients, gradients);
    const double seen = measured ? measured[from * run->boards + to] : 0;
    return seen > 0 ? seen : rate_of(run, from, to);
}

static double boundary_s(const rp_runfile *run, uint32_t layer, uint32_t k, bool gradients,
                         const double *measured) {
    const rp_codec codec = run->codec ? run->codec[k][gradients] : RP_CODEC_F32;
    return boundary_bytes(run, layer, codec) / wire_rate(run, k, gradients, measured);
}

static const rp_profile_wire *slower_of(const rp_profile_wire *a, const rp_profile_wire *b) {
    const bool b_is_slower = !a || a->is_assumed || b->bytes_per_s < a->bytes_per_s;
    return b->is_assumed || !b_is_slower ? a : b;
}

/* The slowest measured wire of either board, for boards that are not neighbours in the roster,
 * because a board has one network card. NULL: no wire was measured. */
static const rp_profile_wire *wire_like(const rp_profile *profile, uint32_t from, uint32_t to) {
    const rp_profile_wire *slowest = NULL;
    for (uint32_t k = 0; k < profile->board_count; k++) {
        slowest = k != from ? slower_of(slowest, rp_profile_wire_at(profile, from, k)) : slowest;
        slowest = k != to ? slower_of(slowest, rp_profile_wire_at(profile, k, to)) : slowest;
    }
    return slowest;
}

/* NULL: neither this wire nor one like it was measured, or links are emulated. */
static const rp_profile_wire *measured_wire(const rp_runfile *run, const rp_profile *profile,
                                            uint32_t from, uint32_t to) {
    const bool known = profile && !run->emulate && from < profile->board_count &&
                       to < profile->board_count && from != to;
    const rp_profile_wire *wire = known ? rp_profile_wire_at(profile, from, to) : NULL;
    return wire && wire->is_assumed ? wire_like(profile, from, to) : wire;
}

static double parcel_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                       double bytes, double rate) {
    const rp_profile_wire *wire = measured_wire(run, profile, from, to);
    const bool known = profile && from < profile->board_count && to < profile->board_count;
    const double slower = known ? rp_profile_wire_slower(profile, from, to) : 1;
    return slower * (wire && isfinite(bytes) ? rp_profile_wire_s(wire, bytes) : bytes / rate);
}

double rp_cost_wire_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                      double bytes) {
    return parcel_s(run, profile, from, to, bytes, rate_of(run, from, to));
}

double rp_cost_turn_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                      double bytes) {
    const rp_link_profile line = rp_link_profile_of(&run->link, &run->hops, from, to);
    return parcel_s(run, profile, from, to, bytes, shared_rate(&line, 1));
}

double rp_cost_delay_s(const rp_runfile *run, const rp_profile *profile, uint32_t from, uint32_t to,
                       double otherwise_s) {
    const rp_profile_wire *wire = measured_wire(run, profile, from, to);
    return run->emulate ? delay_of(run, from, to) : wire ? wire->latency_s : otherwise_s;
}

double rp_cost_feed_s(const rp_runfile *run, const rp_profile *profile, uint32_t to, double bytes) {
    const rp_link_profile line = rp_link_profile_of(&run->link, &run->hops, RP_LINK_HOST, to);
    if (run->emulate) {
        const double rate = rp_link_profile_rate_mbit(&line) * 1e6 / 8;
        return rate > 0 ? bytes / rate : 0;
    }
    return profile && to < profile->board_count
               ? rp_profile_wire_s(rp_profile_feed_at(profile, to, false), bytes)
               : 0;
}

double rp_cost_parcel_s(const rp_runfile *run, const rp_profile *profile, uint32_t layer,
                        uint32_t k, bool gradients, uint32_t samples) {
    const rp_codec codec = run->codec ? run->codec[k][gradients] : RP_CODEC_F32;
    const double bytes = boundary_bytes(run, layer, codec) / run->micro * samples;
    return rp_cost_wire_s(run, profile, board_of(run, k + gradients, gradients),
                          board_of(run, k + !gradients, gradients), bytes);
}

static double crossing_s(const rp_runfile *run, const rp_profile *profile, uint32_t layer,
                         uint32_t k, bool gradients) {
    return rp_cost_parcel_s(run, profile, layer, k, gradients, run->micro);
}

double rp_cost_boundary_s(const rp_runfile *run, const rp_profile *profile, uint32_t layer) {
    double worst = 0;
    for (uint32_t k = 0; k + 1 < run->stages; k++) {
        worst = larger(worst, crossing_s(run, profile, layer, k, false) +
                                  crossing_s(run, profile, layer, k, true));
    }
    return worst;
}

void rp_cost_rates(const rp_runfile *run, const rp_profile *profile, double *rate) {
    for (uint32_t i = 0; i < run->boards * run->boards; i++) {
        const rp_profile_wire *wire = measured_wire(run, profile, i / run->boards, i % run->boards);
        rate[i] = wire ? wire->bytes_per_s / (wire->slower > 0 ? wire->slower : 1) : 0;
    }
}

/* ---- boards that differ ---------------------------------------------------------------------- */

/* Least seconds of an op that ring.throttle sets for the board at a place; 0: none. */
static double throttle_s(const rp_runfile *run, uint32_t place, uint32_t first, uint32_t end,
                         rp_op_kind kind, uint32_t samples) {
    const rp_throttled_op op = {.kind = kind,
                                .samples = samples,
                                .micro = run->micro,
                                .flops = {rp_model_flops_forward(run->model, first, end),
                                          rp_model_flops_backward(run->model, first, end)}};
    return rp_throttle_s(rp_runfile_throttle_of(run, place), &op);
}

double rp_cost_op_s(const rp_runfile *run, const rp_profile *profile, uint32_t place,
                    uint32_t first, uint32_t end, rp_op_kind kind, uint32_t samples) {
    const double own = rp_profile_op_s(profile, place, first, end, kind, samples);
    return rp_profile_slower(profile, place) *
           larger(own, throttle_s(run, place, first, end, kind, samples));
}

/* Elements of a sample at the boundary before `layer`, without samples of the data set, which have
 * no codec and no gradient; 0: too many tensors cross. */
static double boundary_floats(const rp_runfile *run, uint32_t layer) {
    rp_boundary boundary;
    double count = 0;
    if (rp_cut_boundary_at(run->model, layer, &boundary) != RP_OK) {
        return 0;
    }
    for (uint32_t i = 0; i < boundary.count; i++) {
        const bool data = boundary.producer[i] == RP_LAYER_DATA;
        count +=
            data ? 0 : (double)rp_shape_count(rp_model_shape(run->model, boundary.producer[i]));
    }
    return count;
}

static rp_codec codec_of(const rp_runfile *run, uint32_t boundary, bool gradients) {
    return run->codec ? run->codec[boundary][gradients] : RP_CODEC_F32;
}

/* A forward decodes the lower boundary's activations and encodes the upper one's; a backward
 * decodes the upper boundary's gradients and encodes the lower one's. */
static double codecs_s(const rp_runfile *run, const rp_profile *profile, const rp_cost_stage *at,
                       bool backward, uint32_t samples) {
    double sum = 0;
    for (uint32_t upper = 0; upper < 2; upper++) {
        if (!(upper ? at->upper : at->lower)) {
            continue;
        }
        const bool comes = backward == (upper > 0);
        const rp_codec codec = codec_of(run, upper ? at->stage : at->stage - 1, backward);
        const double floats = samples * boundary_floats(run, upper ? at->end : at->first);
        sum += rp_profile_codec_s(profile, at->place, codec, comes, floats);
    }
    return sum;
}

/* Seconds to predict the weights of an op. Some rules predict them also for the backward. xpipe
 * predicts once a step, for its first microbatch. The last stage needs no prediction. */
static double prediction_s(const rp_runfile *run, const rp_profile *profile,
                           const rp_cost_stage *at, bool backward, double floats) {
    const rp_weights_rule rule = run->method.weights;
    const bool both = rule == RP_WEIGHTS_SPECTRAIN || rule == RP_WEIGHTS_XPIPE;
    const uint32_t micros = rule == RP_WEIGHTS_XPIPE ? (run->batch - 1) / run->micro + 1 : 1;
    return rp_method_predicts(&run->method) && at->stage + 1 < at->stages && (both || !backward)
               ? rp_profile_prediction_s(profile, at->place, floats) / micros
               : 0;
}

double rp_cost_whole_op_s(const rp_runfile *run, const rp_profile *profile, const rp_cost_stage *at,
                          rp_op_kind kind, uint32_t samples) {
    const double floats =
        (double)rp_model_param_count(run->model, RP_PARAM_TRAINED, at->first, at->end);
    const bool backward = kind != RP_OP_FORWARD;
    double own = rp_profile_op_s(profile, at->place, at->first, at->end, kind, samples);
    if (kind == RP_OP_UPDATE) {
        own += run->method.kind->average != RP_AVERAGE_NONE
                   ? rp_profile_average_s(profile, at->place, floats) /
                         (run->method.period > 0 ? run->method.period : 1)
                   : 0;
    } else if (kind != RP_OP_BACKWARD_WEIGHT) {
        own += codecs_s(run, profile, at, backward, samples) +
               prediction_s(run, profile, at, backward, floats);
    }
    return rp_profile_slower(profile, at->place) *
           larger(own, throttle_s(run, at->place, at->first, at->end, kind, samples));
}

typedef struct {
    const rp_runfile *run;
    const rp_sums *sums;
    const double *boundary; /* [layers]: seconds of the boundary before each */
} board_costs;

/* Weight of measured times in the cost of throttled boards: of cuts that the throttle makes equal,
 * the one with fewer layers on the board is better if the throttle ends. */
static const double BELOW = 1e-3;

static double stage_s(const void *context, uint32_t stage, uint32_t first, uint32_t end) {
    const board_costs *c = context;
    const uint32_t place = board_of(c->run, stage, false);
    double sum = c->boundary[first] + (end < c->run->model->layer_count ? c->boundary[end] : 0);
    for (uint32_t back = 0; back < 2; back++) {
        sum += rp_sums_op_s(c->sums, place, first, end, back) +
               BELOW * rp_sums_pass_s(c->sums, place, first, end, back);
    }
    return sum;
}

static bool is_uneven(const rp_runfile *run, const rp_profile *profile) {
    return run->throttle.count > 0 || run->throttle.all.gflops > 0 ||
           rp_profile_is_uneven(profile, run->boards);
}

static rp_err choose_even_cut(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                              const double *layer_seconds, rp_cut *out) {
    const uint32_t layers = run->model->layer_count;
    double *cost;
    double *boundary; /* [layers]: seconds at the boundary before the layer */
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, layers, &cost));
    RP_TRY(RP_ARENA_NEW(arena, layers, &boundary));
    for (uint32_t i = 0; i < layers; i++) {
        cost[i] = layer_seconds[2 * (size_t)i] + layer_seconds[2 * (size_t)i + 1];
        boundary[i] = i == 0 ? 0 : rp_cost_boundary_s(run, profile, i);
    }
    RP_TRY(rp_cut_balance(arena, cost, boundary, layers, run->stages, out));
fail:
    return err;
}

rp_err rp_cost_choose_cut_by_board(rp_arena *arena, const rp_runfile *run,
                                   const rp_profile *profile, rp_cut *out) {
    const uint32_t layers = run->model->layer_count;
    double *boundary;
    double *seconds;
    rp_sums sums;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, layers, &boundary));
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)layers, &seconds));
    if (!is_uneven(run, profile)) {
        rp_profile_seconds_of(profile, 0, seconds);
        return choose_even_cut(arena, run, profile, seconds, out);
    }
    for (uint32_t i = 1; i < layers; i++) {
        boundary[i] = rp_cost_boundary_s(run, profile, i);
    }
    RP_TRY(rp_sums_open(arena, run, profile, &sums));
    const board_costs costs = {run, &sums, boundary};
    RP_TRY(rp_balance(arena, stage_s, &costs, layers, run->stages, out));
fail:
    return err;
}

rp_err rp_cost_choose_cut(rp_arena *arena, const rp_runfile *run, const double *layer_seconds,
                          rp_cut *out) {
    return choose_even_cut(arena, run, NULL, layer_seconds, out);
}

static double throttle_micro_s(const rp_runfile *run, const rp_cut *cut, uint32_t stage,
                               rp_op_kind kind) {
    return throttle_s(run, board_of(run, stage, kind != RP_OP_FORWARD), cut->first[stage],
                      cut->first[stage + 1], kind, run->micro);
}

static void add_stage_costs(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                            const double *measured, double *forward, double *backward, double *send,
                            double *send_back) {
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        const uint32_t end = cut->first[k + 1];
        const bool last = k + 1 == cut->stage_count;
        for (uint32_t i = cut->first[k]; i < end; i++) {
            forward[k] += layer_seconds[2 * (size_t)i];
            backward[k] += layer_seconds[2 * (size_t)i + 1];
        }
        forward[k] = larger(forward[k], throttle_micro_s(run, cut, k, RP_OP_FORWARD));
        backward[k] = larger(backward[k], throttle_micro_s(run, cut, k, RP_OP_BACKWARD));
        send[k] = last ? 0 : boundary_s(run, end, k, false, measured);
        send_back[k] = k == 0 ? 0 : boundary_s(run, cut->first[k], k - 1, true, measured);
    }
}

static double feed_s(const rp_runfile *run) {
    const size_t sample = rp_shape_count(&run->data.sample);
    return (double)(rp_codec_bytes(run->input_codec, sample) * run->micro) /
           rate_of(run, RP_LINK_HOST, 0);
}

/* ---- links.codec: auto ----------------------------------------------------------------------- */

/* Codecs of activations and of gradients, from mild to strong. f16 has more digits, bf16 also has
 * the small values of gradients. */
static const rp_codec ladder[][2] = {{RP_CODEC_F32, RP_CODEC_F32},
                                     {RP_CODEC_F16, RP_CODEC_BF16},
                                     {RP_CODEC_INT8, RP_CODEC_INT8},
                                     {RP_CODEC_INT4, RP_CODEC_INT4}};
enum { RUNGS = sizeof ladder / sizeof *ladder };
/* Least relative L2 error of each rung on values of usual networks. A codec that the first pause
 * would replace is not chosen. */
static const double usual_error[RUNGS] = {0, 0.002, 0.003, 0.06};

bool rp_cost_may_choose(rp_codec codec) {
    bool found = false;
    for (uint32_t rung = 0; rung < RUNGS; rung++) {
        found = found || ladder[rung][0] == codec || ladder[rung][1] == codec;
    }
    return found;
}

static uint32_t strongest_rung(const rp_runfile *run) {
    uint32_t rung = 0;
    while (rung + 1 < RUNGS && usual_error[rung + 1] <= run->codec_max_error) {
        rung++;
    }
    return rung;
}

rp_codec rp_cost_strongest(const rp_runfile *run, bool gradients) {
    return ladder[strongest_rung(run)][gradients];
}

rp_codec rp_cost_stronger(const rp_runfile *run, rp_codec codec, bool gradients) {
    const uint32_t most = strongest_rung(run);
    uint32_t rung = 0;
    while (rung < most && ladder[rung][gradients] != codec) {
        rung++;
    }
    return ladder[rung < most ? rung + 1 : most][gradients];
}

rp_codec rp_cost_milder(rp_codec codec, bool gradients) {
    uint32_t rung = RUNGS - 1;
    while (rung > 0 && ladder[rung][gradients] != codec) {
        rung--;
    }
    return ladder[rung > 0 ? rung - 1 : 0][gradients];
}

/* A boundary in one direction, with its wire. */
typedef struct {
    uint64_t medium; /* 0: it shares none */
    uint32_t from, to;
    double rate; /* bytes per second when it has its medium alone */
    uint32_t rung;
} slot;

static slot slot_of(const rp_runfile *run, uint32_t index, const double *measured) {
    const uint32_t k = index / 2;
    const bool gradients = index % 2 > 0;
    slot out = {.from = board_of(run, k + gradients, gradients),
                .to = board_of(run, k + !gradients, gradients)};
    const rp_link_profile line = rp_link_profile_of(&run->link, &run->hops, out.from, out.to);
    const double seen = measured ? measured[out.from * run->boards + out.to] : 0;
    out.medium = seen > 0 ? 0 : line.medium;
    out.rate = seen > 0 ? seen : shared_rate(&line, 1);
    return out;
}

static bool share_wire(const slot *a, const slot *b) {
    return a->medium > 0 || b->medium > 0 ? a->medium == b->medium
                                          : a->from == b->from && a->to == b->to;
}

/* Seconds of a microbatch on the slowest board, or of its inputs on their wire if that is longer.
 */
static rp_err find_slowest_s(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                             double *out) {
    double *pass[4];
    double *board;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "costs", 0);
    RP_TRY(RP_ARENA_NEW(&arena, run->boards, &board));
    for (uint32_t i = 0; i < 4; i++) {
        RP_TRY(RP_ARENA_NEW(&arena, cut->stage_count, &pass[i]));
    }
    add_stage_costs(run, cut, layer_seconds, NULL, pass[0], pass[1], pass[2], pass[3]);
    *out = feed_s(run);
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        board[board_of(run, k, false)] += pass[0][k];
        board[board_of(run, k, true)] += pass[1][k];
    }
    for (uint32_t b = 0; b < run->boards; b++) {
        *out = larger(*out, board[b]);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

typedef struct {
    const rp_runfile *run;
    const rp_cut *cut;
    slot *at;
    uint32_t count;
} slots;

static double slot_s(const slots *all, uint32_t i, uint32_t rung) {
    return boundary_bytes(all->run, all->cut->first[i / 2 + 1], ladder[rung][i % 2]) /
           all->at[i].rate;
}

/* Seconds of a microbatch for which the wire or medium of slot `own` is occupied. */
static double busy_s(const slots *all, uint32_t own) {
    double sum = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        sum += share_wire(&all->at[own], &all->at[i]) ? slot_s(all, i, all->at[i].rung) : 0;
    }
    return sum;
}

/* The slot on the wire or medium of `own` that saves most with the next stronger codec; `count`:
 * all have the strongest. */
static uint32_t find_best_saving(const slots *all, uint32_t own) {
    const uint32_t last = strongest_rung(all->run);
    uint32_t found = all->count;
    double most = -1;
    for (uint32_t i = 0; i < all->count; i++) {
        const uint32_t rung = all->at[i].rung;
        if (rung < last && share_wire(&all->at[own], &all->at[i])) {
            const double saved = slot_s(all, i, rung) - slot_s(all, i, rung + 1);
            found = saved > most ? i : found;
            most = saved > most ? saved : most;
        }
    }
    return found;
}

rp_err rp_cost_choose_codecs(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                             const double *measured, rp_codec (*out)[2]) {
    slots all = {.run = run, .cut = cut, .count = 2 * (cut->stage_count - 1)};
    double room_s;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "codecs", 0);
    RP_TRY(RP_ARENA_NEW(&arena, all.count + 1, &all.at));
    RP_TRY(find_slowest_s(run, cut, layer_seconds, &room_s));
    for (uint32_t i = 0; i < all.count; i++) {
        all.at[i] = slot_of(run, i, measured);
    }
    for (uint32_t i = 0; i < all.count; i++) {
        uint32_t next = 0;
        while (next < all.count && busy_s(&all, i) > room_s) {
            next = find_best_saving(&all, i);
            if (next < all.count) {
                all.at[next].rung++;
            }
        }
    }
    for (uint32_t i = 0; i < all.count; i++) {
        out[i / 2][i % 2] = ladder[all.at[i].rung][i % 2];
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- ring.copy_steps: auto ------------------------------------------------------------------- */

/* Most time of copies, as a fraction of the steps between them. */
static const double COPIES_MAY_COST = 0.02;

uint32_t rp_cost_choose_copy_steps(double step_s, double copy_s) {
    const double steps = ceil(copy_s / (COPIES_MAY_COST * step_s));
    return steps >= RP_COPY_STEPS_MAX ? RP_COPY_STEPS_MAX : steps >= 1 ? (uint32_t)steps : 1;
}

/* ---- advance: auto --------------------------------------------------------------------------- */

/* The longest latency from a stage to its neighbours. */
static double longest_delay_from(const rp_runfile *run, uint32_t stage) {
    const uint32_t own = board_of(run, stage, false);
    const double on =
        stage + 1 < run->stages ? delay_of(run, own, board_of(run, stage + 1, false)) : 0;
    return stage > 0 ? larger(on, delay_of(run, own, board_of(run, stage - 1, false))) : on;
}

rp_err rp_cost_choose_advance(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                              double link_delay_s, const double *measured, uint32_t advance_max,
                              rp_advance_choice *out) {
    double *costs[5];
    double *none;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "costs", 0);
    RP_TRY(RP_ARENA_NEW(&arena, cut->stage_count, &none));
    for (uint32_t i = 0; i < 5; i++) {
        RP_TRY(RP_ARENA_NEW(&arena, cut->stage_count, &costs[i]));
    }
    add_stage_costs(run, cut, layer_seconds, measured, costs[0], costs[1], costs[2], costs[3]);
    for (uint32_t k = 0; k < run->stages; k++) {
        costs[4][k] = run->emulate ? longest_delay_from(run, k) : link_delay_s;
    }
    const rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    const rp_sched_costs seconds = {.forward = costs[0],
                                    .backward_input = costs[1],
                                    .backward_weight = none,
                                    .send = costs[2],
                                    .send_back = costs[3],
                                    .delay = costs[4]};
    RP_TRY(rp_advance_choose(&run->method, &shape, &seconds, feed_s(run), out));
    out->advance = out->advance < advance_max ? out->advance : advance_max;
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_cost_compare_micro(const rp_runfile *run, uint32_t *micro, double *busy, double *better) {
    rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    rp_err err;
    RP_TRY(rp_advance_busy(&run->method, &shape, NULL, busy));
    *micro = shape.micro = (run->batch + run->boards - 1) / run->boards;
    RP_TRY(rp_advance_busy(&run->method, &shape, NULL, better));
fail:
    return err;
}
