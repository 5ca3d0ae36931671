#include "planning/profile.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The run's microbatch, 4 and 16 times smaller and larger, within 1 and the batch. */
static void choose_sizes(const rp_runfile *run, rp_profile *out) {
    static const int32_t steps[] = {-4, -2, 0, 2, 4}; /* exponents of two */
    out->micro = run->micro;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const uint64_t samples =
            steps[i] < 0 ? run->micro >> -steps[i] : (uint64_t)run->micro << steps[i];
        const uint32_t size = samples < 1            ? 1
                              : samples > run->batch ? run->batch
                                                     : (uint32_t)samples;
        if (out->size_count == 0 || out->sizes[out->size_count - 1] < size) {
            out->sizes[out->size_count++] = size;
        }
    }
}

/* ---- the model ------------------------------------------------------------------------------- */

/* FNV-1a, by G. Fowler, L. C. Noll, K.-P. Vo */
static uint64_t add_bytes(uint64_t key, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        key = (key ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return key;
}

rp_err rp_profile_digest(const rp_runfile *run, char out[RP_PROFILE_DIGEST]) {
    const rp_model *model = run->model;
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    rp_arena arena;
    char *text;
    rp_err err;
    rp_arena_init(&arena, "digest", 0);
    RP_TRY(rp_config_text(&arena, run->model_root, &text));
    key = add_bytes(key, text, strlen(text));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const rp_shape *shape = &model->plan[i].out;
        key = add_bytes(key, shape->dim, shape->dims * sizeof *shape->dim);
    }
    (void)snprintf(out, RP_PROFILE_DIGEST, "%016" PRIx64, key);
fail:
    rp_arena_finish(&arena);
    return err;
}

static rp_profile_wire wire_between(const rp_runfile *run, uint32_t from, uint32_t to) {
    const rp_link_profile line = rp_link_profile_of(&run->link, &run->hops, from, to);
    const double rate = run->emulate ? rp_link_profile_rate_mbit(&line) * 1e6 / 8 : 0;
    return (rp_profile_wire){
        .latency_s = run->emulate ? (rp_link_profile_delay_ms(&line) + line.jitter_ms) * 1e-3 : 0,
        .bytes_per_s = rate > 0 ? rate : 0,
        .shared = run->emulate && line.medium,
        .is_assumed = !run->emulate || !(rate > 0)};
}

rp_err rp_profile_open(rp_arena *arena, const rp_runfile *run, uint32_t boards, rp_profile *out) {
    const uint32_t ends = boards + 1;
    rp_err err;
    *out = (rp_profile){
        .model = run->model_name, .layer_count = run->model->layer_count, .board_count = boards};
    choose_sizes(run, out);
    RP_TRY(rp_profile_digest(run, out->digest));
    RP_TRY(RP_ARENA_NEW(arena, boards, &out->board));
    RP_TRY(RP_ARENA_NEW(arena, boards, &out->place));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)ends * ends, &out->wire));
    for (uint32_t k = 0; k < boards; k++) {
        out->place[k] = k;
    }
    for (uint32_t i = 0; i < ends * ends; i++) {
        const uint32_t from = i / ends < boards ? i / ends : RP_LINK_HOST;
        const uint32_t to = i % ends < boards ? i % ends : RP_LINK_HOST;
        if (from != to) {
            out->wire[i] = wire_between(run, from, to);
        }
    }
fail:
    return err;
}

/* ---- values from boards ---------------------------------------------------------------------- */

static bool is_time(double value) {
    return isfinite(value) && value >= 0;
}

/* The curve of one pass of a layer, from the sizes that were measured. errors PEER */
static rp_err take_pass(const rp_profile *profile, uint32_t layer, uint32_t pass,
                        const double *values, rp_curve *out) {
    rp_curve_point point[RP_MEASURED_SIZES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->size_count; i++) {
        const double *at = &values[rp_measured_at(profile->layer_count, i, layer, pass)];
        if (!is_time(at[0]) || !isfinite(at[1])) {
            return rp_fail(RP_ERR_PEER,
                           "layer %u, %u samples: %g s with spread %g, expected a finite time of 0 "
                           "or more and a finite spread",
                           layer, profile->sizes[i], at[0], at[1]);
        }
        if (at[1] >= 0) {
            point[count++] = (rp_curve_point){profile->sizes[i], at[0], at[1]};
        }
    }
    return count > 0 ? rp_curve_fit(point, count, out)
                     : rp_fail(RP_ERR_PEER, "layer %u: no size was measured", layer);
}

static rp_err take_sizes(const rp_profile *profile, rp_profile_board *board, const double *values) {
    const uint32_t layers = profile->layer_count;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < layers; i++) {
        rp_profile_layer *layer = &board->layer[i];
        for (uint32_t p = 0; p < RP_MEASURED_PASSES; p++) {
            RP_TRY(take_pass(profile, i, p, values, &layer->pass[p]));
        }
        layer->update_s = values[rp_measured_update_at(layers, profile->size_count, i)];
        if (!is_time(layer->update_s)) {
            return rp_fail(RP_ERR_PEER,
                           "layer %u: an update takes %g s, expected finite and not negative", i,
                           layer->update_s);
        }
    }
    for (uint32_t i = 0; i < RP_MEASURED_COPIES; i++) {
        const double seconds = values[rp_measured_copy_at(layers, profile->size_count, i)];
        board->copy_s[i / 2][i % 2] = seconds;
        if (!is_time(seconds)) {
            return rp_fail(
                RP_ERR_PEER,
                "a copy to or from the device takes %g s, expected finite and not negative",
                seconds);
        }
    }
fail:
    return err;
}

static rp_err take_additional(const rp_profile *profile, rp_profile_board *board,
                              const double *values) {
    for (size_t i = 0; i < RP_BESIDES; i++) {
        const double *at =
            &values[rp_measured_besides_at(profile->layer_count, profile->size_count, i)];
        if (!is_time(at[0]) || !is_time(at[1])) {
            return rp_fail(RP_ERR_PEER,
                           "additional cost of ops number %zu: %g s with spread %g, expected "
                           "finite and not negative",
                           i, at[0], at[1]);
        }
        board->besides_s[i] = at[0];
        board->handling_spread = i == RP_BESIDES_HANDLING ? at[1] : board->handling_spread;
    }
    board->has_besides = true;
    return RP_OK;
}

/* Values for the run's microbatch only. The input and the weight half of a backward each count as
 * half of it. */
static rp_err take_one_size(const rp_profile *profile, rp_profile_board *board,
                            const double *values) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < profile->layer_count * RP_MEASURED_PASSES; i++) {
        const uint32_t pass = i % RP_MEASURED_PASSES;
        const double part = pass >= RP_MEASURED_BACKWARD_INPUT ? 0.5 : 1;
        const double seconds = values[2 * (i / RP_MEASURED_PASSES) + (pass > 0)];
        const rp_curve_point point = {profile->micro, part * seconds, 1};
        if (!is_time(seconds)) {
            return rp_fail(RP_ERR_PEER, "layer %u: %g s, expected finite and not negative",
                           i / RP_MEASURED_PASSES, seconds);
        }
        RP_TRY(rp_curve_fit(&point, 1, &board->layer[i / RP_MEASURED_PASSES].pass[pass]));
    }
fail:
    return err;
}

rp_err rp_profile_take(rp_arena *arena, rp_profile *profile, uint32_t board, const double *values,
                       size_t count) {
    const size_t layers = profile->layer_count;
    rp_profile_board own = profile->board[board];
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, layers, &own.layer));
    const bool besides = count == rp_measured_all(layers, profile->size_count);
    if (besides || count == rp_measured_count(layers, profile->size_count)) {
        RP_TRY(take_sizes(profile, &own, values));
        RP_TRY(besides ? take_additional(profile, &own, values) : RP_OK);
    } else if (count == 2 * layers) {
        RP_TRY(take_one_size(profile, &own, values));
    } else {
        return rp_fail(RP_ERR_PEER, "%zu times for %zu layers, an unexpected number", count,
                       layers);
    }
    own.like = own.name;
    own.known = true;
    profile->board[board] = own;
fail:
    return err;
}

void rp_profile_take_flash(rp_profile *profile, uint32_t board, double write_rate,
                           double read_rate) {
    double *own = profile->board[board].flash_rate;
    const bool known =
        isfinite(write_rate) && isfinite(read_rate) && write_rate > 0 && read_rate > 0;
    own[0] = known ? write_rate : 0;
    own[1] = known ? read_rate : 0;
}

void rp_profile_take_like(rp_profile *profile, uint32_t board, uint32_t other) {
    rp_profile_board *own = &profile->board[board];
    const rp_profile_board *measured = &profile->board[other];
    own->layer = measured->layer;
    memcpy(own->copy_s, measured->copy_s, sizeof own->copy_s);
    memcpy(own->besides_s, measured->besides_s, sizeof own->besides_s);
    own->has_besides = measured->has_besides;
    own->handling_spread = measured->handling_spread;
    memcpy(own->flash_rate, measured->flash_rate, sizeof own->flash_rate);
    own->like = measured->like;
    own->known = measured->known;
}

/* ---- wires ----------------------------------------------------------------------------------- */

static rp_profile_wire *wire_of(const rp_profile *profile, uint32_t from, uint32_t to) {
    RP_ASSERT(from <= profile->board_count && to <= profile->board_count);
    return &profile->wire[(size_t)from * (profile->board_count + 1) + to];
}

rp_err rp_profile_take_wire(rp_profile *profile, uint32_t from, uint32_t to,
                            const rp_curve_point *point, uint32_t count) {
    rp_curve trip;
    rp_err err;
    if (count < 2) {
        return rp_fail(RP_ERR_USAGE, "a wire needs times for two sizes or more, found %u", count);
    }
    RP_TRY(rp_curve_fit(point, count, &trip));
    const double least_s = trip.point[0].seconds;
    const rp_curve_point last = trip.point[count - 1];
    rp_profile_wire wire = {.latency_s = least_s / 2, .busy = {.count = count - 1}};
    for (uint32_t i = 1; i < count; i++) {
        wire.busy.point[i - 1] = trip.point[i];
        wire.busy.point[i - 1].seconds -= least_s;
    }
    wire.bytes_per_s = last.seconds > least_s ? last.samples / (last.seconds - least_s) : 0;
    wire.is_assumed = !(wire.bytes_per_s > 0);
    *wire_of(profile, from, to) = wire;
fail:
    return err;
}

void rp_profile_take_shared(rp_profile *profile, uint32_t a, uint32_t b, bool shared) {
    wire_of(profile, a, b)->shared = shared;
    wire_of(profile, b, a)->shared = shared;
}

const rp_profile_wire *rp_profile_wire_at(const rp_profile *profile, uint32_t from, uint32_t to) {
    RP_ASSERT(from < profile->board_count && to < profile->board_count);
    return wire_of(profile, profile->place[from], profile->place[to]);
}

const rp_profile_wire *rp_profile_feed_at(const rp_profile *profile, uint32_t place, bool back) {
    RP_ASSERT(place < profile->board_count);
    const uint32_t board = profile->place[place];
    return back ? wire_of(profile, board, profile->board_count)
                : wire_of(profile, profile->board_count, board);
}

void rp_profile_slow_wire(rp_profile *profile, uint32_t from, uint32_t to, double factor) {
    RP_ASSERT(from < profile->board_count && to < profile->board_count && factor > 0);
    wire_of(profile, profile->place[from], profile->place[to])->slower =
        rp_profile_wire_slower(profile, from, to) * factor;
}

double rp_profile_wire_slower(const rp_profile *profile, uint32_t from, uint32_t to) {
    const double slower = rp_profile_wire_at(profile, from, to)->slower;
    return slower > 0 ? slower : 1;
}

double rp_profile_wire_s(const rp_profile_wire *wire, double bytes) {
    return wire->busy.count > 0    ? rp_curve_at(&wire->busy, bytes)
           : wire->bytes_per_s > 0 ? bytes / wire->bytes_per_s
                                   : 0;
}

/* ---- boards by place ------------------------------------------------------------------------- */

void rp_profile_place(rp_profile *profile, const char *const *name, uint32_t count) {
    for (uint32_t k = 0; k < count && k < profile->board_count; k++) {
        profile->place[k] = 0;
        for (uint32_t i = 0; i < profile->board_count; i++) {
            const char *known = profile->board[i].name;
            if (profile->board[i].known && known && strcmp(known, name[k]) == 0) {
                profile->place[k] = i;
            }
        }
    }
}

const rp_profile_board *rp_profile_board_at(const rp_profile *profile, uint32_t place) {
    RP_ASSERT(place < profile->board_count);
    return &profile->board[profile->place[place]];
}

/* The value at `size` on the line through two points; the line is flat if it would fall. At least
 * 0. */
static double interpolate(const double seconds[2], double few, double many, double size) {
    const double slope = seconds[1] > seconds[0] ? (seconds[1] - seconds[0]) / (many - few) : 0;
    const double found = seconds[0] + slope * (size - few);
    return found > 0 ? found : 0;
}

double rp_profile_copy_s(const rp_profile *profile, uint32_t place, bool from_device,
                         double bytes) {
    return interpolate(rp_profile_board_at(profile, place)->copy_s[from_device],
                       (double)RP_MEASURED_COPY_BYTES[0], (double)RP_MEASURED_COPY_BYTES[1], bytes);
}

static double besides_s(const rp_profile *profile, uint32_t place, size_t which, double floats) {
    const double *seconds = &rp_profile_board_at(profile, place)->besides_s[which];
    return floats > 0 ? interpolate(seconds, RP_BESIDES_FLOATS[0], RP_BESIDES_FLOATS[1], floats)
                      : 0;
}

double rp_profile_handling_s(const rp_profile *profile, uint32_t place) {
    return rp_profile_board_at(profile, place)->besides_s[RP_BESIDES_HANDLING];
}

double rp_profile_prediction_s(const rp_profile *profile, uint32_t place, double floats) {
    return besides_s(profile, place, RP_BESIDES_PREDICTION, floats);
}

double rp_profile_average_s(const rp_profile *profile, uint32_t place, double floats) {
    return besides_s(profile, place, RP_BESIDES_AVERAGE, floats);
}

double rp_profile_codec_s(const rp_profile *profile, uint32_t place, rp_codec codec, bool decode,
                          double floats) {
    return (uint32_t)codec < RP_MEASURED_CODECS
               ? besides_s(profile, place, rp_besides_codec(codec, decode, 0), floats)
               : 0;
}

void rp_profile_slow_down(rp_profile *profile, uint32_t place, double factor) {
    RP_ASSERT(place < profile->board_count && factor > 0);
    profile->board[profile->place[place]].slower = rp_profile_slower(profile, place) * factor;
}

double rp_profile_slower(const rp_profile *profile, uint32_t place) {
    const double slower = rp_profile_board_at(profile, place)->slower;
    return slower > 0 ? slower : 1;
}

/* ---- costs of ops ---------------------------------------------------------------------------- */

double rp_profile_pass_s(const rp_profile *profile, uint32_t place, uint32_t first, uint32_t end,
                         rp_measured_pass pass, double samples) {
    const rp_profile_board *board = rp_profile_board_at(profile, place);
    double sum = 0;
    for (uint32_t i = first; board->known && i < end; i++) {
        sum += rp_curve_at(&board->layer[i].pass[pass], samples);
    }
    return sum;
}

static const rp_measured_pass pass_of[RP_OP_KINDS] = {
    [RP_OP_FORWARD] = RP_MEASURED_FORWARD,
    [RP_OP_BACKWARD] = RP_MEASURED_BACKWARD,
    [RP_OP_BACKWARD_INPUT] = RP_MEASURED_BACKWARD_INPUT,
    [RP_OP_BACKWARD_WEIGHT] = RP_MEASURED_BACKWARD_WEIGHT,
};

static double update_s(const rp_profile *profile, uint32_t place, uint32_t first, uint32_t end) {
    const rp_profile_board *board = rp_profile_board_at(profile, place);
    double sum = 0;
    for (uint32_t i = first; board->known && i < end; i++) {
        sum += board->layer[i].update_s;
    }
    return sum;
}

double rp_profile_op_s(const rp_profile *profile, uint32_t place, uint32_t first, uint32_t end,
                       rp_op_kind kind, double samples) {
    return kind == RP_OP_UPDATE
               ? update_s(profile, place, first, end)
               : rp_profile_pass_s(profile, place, first, end, pass_of[kind], samples);
}

static void set_seconds(const rp_profile *profile, const uint32_t place[2], uint32_t layer,
                        double *out) {
    static const rp_measured_pass passes[] = {RP_MEASURED_FORWARD, RP_MEASURED_BACKWARD};
    for (uint32_t i = 0; i < 2; i++) {
        out[2 * (size_t)layer + i] =
            rp_profile_slower(profile, place[i]) *
            rp_profile_pass_s(profile, place[i], layer, layer + 1, passes[i], profile->micro);
    }
}

void rp_profile_seconds_of(const rp_profile *profile, uint32_t place, double *out) {
    const uint32_t both[2] = {place, place};
    for (uint32_t i = 0; i < profile->layer_count; i++) {
        set_seconds(profile, both, i, out);
    }
}

void rp_profile_seconds(const rp_profile *profile, const rp_runfile *run, const rp_cut *cut,
                        double *out) {
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        const uint32_t place[2] = {rp_runfile_forward_place(run, k),
                                   rp_runfile_backward_place(run, k)};
        for (uint32_t i = cut->first[k]; i < cut->first[k + 1]; i++) {
            set_seconds(profile, place, i, out);
        }
    }
}

bool rp_profile_is_uneven(const rp_profile *profile, uint32_t boards) {
    const rp_profile_layer *first = rp_profile_board_at(profile, 0)->layer;
    bool uneven = false;
    for (uint32_t k = 1; k < boards && k < profile->board_count; k++) {
        uneven = uneven || rp_profile_board_at(profile, k)->layer != first ||
                 rp_profile_slower(profile, k) != rp_profile_slower(profile, 0);
    }
    return uneven;
}
