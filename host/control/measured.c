/* What boards measure of themselves: who is asked, what they answer, what is kept of it for other
 * runs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/replace.h"
#include "control/controller_own.h"

/* A board may take about so long; a large model on a slow board has fewer repeats, then. */
enum { MEASURE_S = 60, PROBE_S = 2, PROBE_LAYERS = 4, PATH_BYTES = 4096 };
/* What was measured in a former run holds as long as its costliest layers take the same within
 * this share: repeats of one run differ by less than 20 %, and machines are never quite alike. */
static const double HOLDS = 0.3;

/* Of "tcp://HOST:PORT". */
static size_t host_bytes(const char *endpoint) {
    const char *colon = strrchr(endpoint, ':');
    return colon ? (size_t)(colon - endpoint) : strlen(endpoint);
}

/* Boards of one machine: started here, or at one address. They would disturb each other. */
static bool share_machine(const rp_controller *c, uint32_t a, uint32_t b) {
    const rp_board_state *left = &c->ring.board[a];
    const rp_board_state *right = &c->ring.board[b];
    const size_t bytes = host_bytes(left->endpoint);
    const bool at_one_address = !left->dials && !right->dials &&
                                bytes == host_bytes(right->endpoint) &&
                                strncmp(left->endpoint, right->endpoint, bytes) == 0;
    return c->ring.spawned || at_one_address;
}

/* One is measured for both: on one machine, on the same device with as many threads. Two boards of
 * a kind with a cooler and a power supply each are not alike. */
static bool are_alike(const rp_controller *c, uint32_t a, uint32_t b) {
    const rp_board_state *left = &c->ring.board[a];
    const rp_board_state *right = &c->ring.board[b];
    const uint32_t *threads = c->ring.spawned ? c->run.board_threads : NULL;
    return share_machine(c, a, b) && left->device && right->device &&
           strcmp(left->device, right->device) == 0 && strcmp(left->kind, right->kind) == 0 &&
           left->gemm == right->gemm && (!threads || threads[a] == threads[b]);
}

uint32_t rp_measured_for(const rp_controller *c, uint32_t board) {
    uint32_t other = 0;
    while (other < board && !are_alike(c, other, board)) {
        other++;
    }
    return other;
}

static uint32_t count_kinds(const rp_controller *c) {
    uint32_t kinds = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        kinds += rp_measured_for(c, k) == k;
    }
    return kinds;
}

bool rp_measured_may_begin(const rp_controller *c, uint32_t board) {
    bool free = true;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *other = &c->ring.board[k];
        free =
            free && !(k != board && other->asked && !other->profiled && share_machine(c, k, board));
    }
    return free && rp_measured_for(c, board) == board;
}

/* ---- profiles of former runs ----------------------------------------------------------------- */

/* FNV-1a, by G. Fowler, L. C. Noll, K.-P. Vo */
static uint64_t add_bytes(uint64_t key, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        key = (key ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return key;
}

/* Of the codecs that boundaries may have, those that boards measure: all for PROFILE; in a run, its
 * own or, with `auto`, those that may be chosen. */
static uint32_t list_codecs(const rp_controller *c, uint32_t out[RP_MEASURED_CODECS]) {
    const rp_runfile *run = &c->run;
    uint32_t count = 0;
    for (uint32_t codec = RP_CODEC_F32 + 1; codec < RP_CODECS; codec++) {
        bool wanted = c->options.purpose == RP_PURPOSE_PROFILE ||
                      (run->codec_auto && rp_cost_may_choose((rp_codec)codec));
        for (uint32_t k = 0; run->codec && k + 1 < run->stages; k++) {
            wanted = wanted || run->codec[k][0] == codec || run->codec[k][1] == codec;
        }
        if (wanted && codec != RP_CODEC_UINT8) {
            out[count++] = codec;
        }
    }
    return count;
}

/* By the model, the board's device with its driver and tuning, the version, the sizes, and what
 * ops cost besides. */
static void path_of(const rp_controller *c, uint32_t board, char *out) {
    static const char version[] = RP_VERSION;
    const char *kind = c->ring.board[board].kind;
    uint32_t codec[RP_MEASURED_CODECS];
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    key = add_bytes(key, kind, strlen(kind) + 1);
    key = add_bytes(key, version, sizeof version);
    key = add_bytes(key, c->measure.profile.sizes,
                    c->measure.profile.size_count * sizeof *c->measure.profile.sizes);
    key = add_bytes(key, c->run.optim.kind->name, strlen(c->run.optim.kind->name) + 1);
    key = add_bytes(key, c->run.method.kind->name, strlen(c->run.method.kind->name) + 1);
    key = add_bytes(key, &c->run.method.weights, sizeof c->run.method.weights);
    for (uint32_t i = 1; i < c->run.schedules.count; i++) {
        const rp_method *other = &c->run.schedules.at[i].method;
        key = add_bytes(key, other->kind->name, strlen(other->kind->name) + 1);
        key = add_bytes(key, &other->weights, sizeof other->weights);
    }
    key = add_bytes(key, codec, list_codecs(c, codec) * sizeof *codec);
    (void)snprintf(out, PATH_BYTES, "%s/%s-%016" PRIx64 ".json", c->options.profiles,
                   c->measure.profile.digest, key);
}

static bool may_keep(const rp_controller *c, uint32_t board) {
    return c->options.profiles && c->ring.board[board].kind[0] &&
           (c->ring.features & RP_WIRE_FEATURE_SIZES);
}

/* A file that can not be read is as good as none, and replaced. */
static rp_err look_up(rp_controller *c, uint32_t board) {
    char path[PATH_BYTES];
    rp_profile found;
    c->ring.board[board].probed = true;
    if (!may_keep(c, board) || c->options.purpose == RP_PURPOSE_PROFILE ||
        rp_measured_for(c, board) != board) {
        return RP_OK;
    }
    path_of(c, board, path);
    if (access(path, R_OK) != 0) {
        return RP_OK;
    }
    if (rp_profile_read(&c->measure.arena, path, &c->run, &found) != RP_OK) {
        rp_log_warn("controller: a profile of former runs is not used: %s", rp_err_message());
        return RP_OK;
    }
    c->measure.kept.board[board] = found.board[0];
    c->measure.kept.board[board].name = c->measure.kept.board[board].like =
        c->ring.board[board].name;
    c->ring.board[board].probed = false;
    return RP_OK;
}

/* What can not be kept is measured again by the next run. */
static void keep(const rp_controller *c, uint32_t board) {
    char path[PATH_BYTES];
    rp_profile own = c->measure.profile;
    if (!may_keep(c, board) || rp_folders_make(c->options.profiles, 0700) != RP_OK) {
        return;
    }
    own.board = &c->measure.profile.board[board];
    own.board_count = 1;
    own.wire = NULL; /* of this ring */
    path_of(c, board, path);
    FILE *file = rp_replace_begin(path);
    const rp_err written = file ? rp_profile_write(file, &c->run, &own) : RP_ERR_IO;
    const rp_err ended = rp_replace_end(file, path, written == RP_OK);
    if (written != RP_OK || ended != RP_OK) {
        rp_log_warn("controller: the profile of board %s is not kept for other runs",
                    c->ring.board[board].name);
    }
}

rp_err rp_measured_open(rp_controller *c) {
    const uint32_t most = c->run.boards + c->run.spares;
    const uint32_t known = most > c->ring.count ? most : c->ring.count;
    rp_err err;
    rp_arena_finish(&c->measure.arena); /* boards may be lost while they are measured */
    rp_arena_init(&c->measure.arena, "profile", 0);
    RP_TRY(rp_profile_open(&c->measure.arena, &c->run, known, &c->measure.profile));
    RP_TRY(rp_profile_open(&c->measure.arena, &c->run, known, &c->measure.kept));
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *state = &c->ring.board[k];
        c->measure.profile.board[k].name = c->measure.profile.board[k].like = state->name;
        c->measure.profile.board[k].device = state->device;
        c->measure.profile.board[k].memory_bytes = state->memory_bytes;
        c->measure.profile.board[k].device_memory = state->device_memory;
        RP_TRY(look_up(c, k));
    }
fail:
    return err;
}

bool rp_measured_is_kept(const rp_controller *c) {
    bool all = true;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        all = all && (rp_measured_for(c, k) != k || c->measure.kept.board[k].known);
    }
    return all;
}

/* ---- probes ---------------------------------------------------------------------------------- */

static bool is_probe(const rp_controller *c, uint32_t board) {
    return c->measure.kept.board[board].known && !c->ring.board[board].probed;
}

static double kept_s(const rp_controller *c, uint32_t board, uint32_t layer) {
    const rp_profile_layer *own = &c->measure.kept.board[board].layer[layer];
    return rp_curve_at(&own->pass[RP_MEASURED_FORWARD], c->measure.profile.micro) +
           rp_curve_at(&own->pass[RP_MEASURED_BACKWARD], c->measure.profile.micro);
}

/* The costliest layer that is not taken yet. */
static bool take_costliest(const rp_controller *c, uint32_t board, bool *taken, uint32_t *out) {
    bool any = false;
    for (uint32_t i = 0; i < c->measure.profile.layer_count; i++) {
        if (!taken[i] && (!any || kept_s(c, board, i) > kept_s(c, board, *out))) {
            *out = i;
            any = true;
        }
    }
    if (any) {
        taken[*out] = true;
    }
    return any;
}

static rp_err order_probe(const rp_controller *c, uint32_t board, rp_Profile *out) {
    bool *taken;
    uint32_t layer = 0;
    uint32_t left = PROBE_LAYERS;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "probe", 0);
    RP_TRY(RP_ARENA_NEW(&arena, c->measure.profile.layer_count, &taken));
    while (left > 0 && take_costliest(c, board, taken, &layer)) {
        left--;
    }
    for (uint32_t i = 0; i < c->measure.profile.layer_count; i++) { /* rising */
        if (taken[i]) {
            out->layer[out->layer_count++] = i;
        }
    }
    out->samples_count = 1;
    out->samples[0] = c->measure.profile.micro;
    out->seconds = PROBE_S;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Measured by kept, summed over the layers that were probed; NaN: the answer is none. */
static double compare(const rp_controller *c, uint32_t board, const double *values, size_t count) {
    const size_t layers = c->measure.profile.layer_count;
    double sum[2] = {0, 0};
    if (count != rp_measured_count(layers, 1)) {
        return (double)NAN;
    }
    for (uint32_t i = 0; i < layers; i++) {
        const double *forward = &values[rp_measured_at(layers, 0, i, RP_MEASURED_FORWARD)];
        const double *backward = &values[rp_measured_at(layers, 0, i, RP_MEASURED_BACKWARD)];
        if (forward[1] >= 0 && backward[1] >= 0) {
            sum[0] += forward[0] + backward[0];
            sum[1] += kept_s(c, board, i);
        }
    }
    return sum[1] > 0 ? sum[0] / sum[1] : (double)NAN;
}

static void say(const rp_controller *c, const char *text) {
    if (!rp_folder_record(c->folder) && c->env.progress) { /* PLAN and PROFILE have no record */
        rp_print(c->env.progress, "%s\n", text);
        (void)fflush(c->env.progress);
    }
    rp_record_phase(rp_folder_record(c->folder), text);
}

/* *holds: the former profile is the board's. errors PEER: the answer is none of a probe */
static rp_err take_probe(rp_controller *c, uint32_t board, const double *values, size_t count,
                         bool *holds) {
    const double ratio = compare(c, board, values, count);
    const char *name = c->ring.board[board].name;
    char text[200];
    if (!isfinite(ratio) || ratio < 0) {
        return rp_fail(RP_ERR_PEER,
                       "board %s: its answer to a probe of %u layers has %zu values, "
                       "or no times",
                       name, PROBE_LAYERS, count);
    }
    *holds = fabs(ratio - 1) <= HOLDS;
    c->ring.board[board].probed = true;
    if (*holds) {
        rp_profile_board *own = &c->measure.profile.board[board];
        const rp_profile_board named = *own;
        *own = c->measure.kept.board[board];
        own->name = own->like = named.name;
        own->device = named.device;
        own->memory_bytes = named.memory_bytes;
        own->device_memory = named.device_memory;
        return RP_OK;
    }
    (void)snprintf(text, sizeof text,
                   "board %s takes %.2f times as long as in a former run: it is measured again",
                   name, ratio);
    say(c, text);
    return RP_OK;
}

/* ---- orders and answers ---------------------------------------------------------------------- */

static uint32_t average_of(const rp_method *method) {
    const rp_average_rule rule = method->kind->average;
    return rule == RP_AVERAGE_NONE        ? RP_MEASURED_NO_AVERAGE
           : rule == RP_AVERAGE_REFERENCE ? RP_MEASURED_REFERENCE
           : method->before               ? RP_MEASURED_HALVES
                                          : RP_MEASURED_ELASTIC;
}

/* With plan.schedules of all that may be; an average of the first that has one. */
static void order_weights(const rp_runfile *run, rp_Profile *out) {
    out->predicts = rp_method_predicts(&run->method);
    out->average = average_of(&run->method);
    for (uint32_t i = 0; i < run->schedules.count; i++) {
        const rp_method *other = &run->schedules.at[i].method;
        out->predicts = out->predicts || rp_method_predicts(other);
        if (out->average == RP_MEASURED_NO_AVERAGE) {
            out->average = average_of(other);
        }
    }
}

/* Boards of before answer for the run's microbatch only. */
rp_err rp_measured_order(const rp_controller *c, uint32_t board, rp_Profile *out) {
    if (!(c->ring.features & RP_WIRE_FEATURE_SIZES)) {
        return RP_OK;
    }
    if (is_probe(c, board)) {
        return order_probe(c, board, out);
    }
    out->samples_count = (pb_size_t)c->measure.profile.size_count;
    memcpy(out->samples, c->measure.profile.sizes,
           c->measure.profile.size_count * sizeof *c->measure.profile.sizes);
    out->seconds = MEASURE_S;
    if (c->ring.features & RP_WIRE_FEATURE_BESIDES) {
        uint32_t codec[RP_MEASURED_CODECS];
        out->besides = true;
        order_weights(&c->run, out);
        out->codec_count = (pb_size_t)list_codecs(c, codec);
        memcpy(out->codec, codec, out->codec_count * sizeof *codec);
    }
    return RP_OK;
}

static rp_err take_values(rp_controller *c, uint32_t board, const double *values, size_t count) {
    rp_err err = rp_profile_take(&c->measure.arena, &c->measure.profile, board, values, count);
    if (err == RP_ERR_PEER) {
        err = rp_fail(RP_ERR_PEER, "board %s: the profile does not fit: %s",
                      c->ring.board[board].name, rp_err_message());
    }
    if (err == RP_OK) {
        keep(c, board);
    }
    return err;
}

rp_err rp_measured_take(rp_controller *c, uint32_t board, const rp_part *part, bool *again) {
    const size_t count = part->bytes / sizeof(double);
    bool holds = true;
    rp_arena arena;
    double *values; /* aligned */
    rp_err err;
    rp_arena_init(&arena, "measured", 0);
    RP_TRY(RP_ARENA_NEW(&arena, count + 1, &values));
    memcpy(values, part->data, count * sizeof *values);
    RP_TRY(is_probe(c, board) ? take_probe(c, board, values, count, &holds)
                              : take_values(c, board, values, count));
    *again = !holds;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* "profiling: measuring board 2, 2 of 3 that differ" */
void rp_measured_say(const rp_controller *c, uint32_t board) {
    char text[160];
    uint32_t at = 0;
    for (uint32_t k = 0; k <= board; k++) {
        at += rp_measured_for(c, k) == k;
    }
    const uint32_t kinds = count_kinds(c);
    (void)snprintf(text, sizeof text, "profiling: %s board %s, %u of %u%s",
                   is_probe(c, board) ? "probing" : "measuring", c->ring.board[board].name, at,
                   kinds, kinds == c->ring.count ? "" : " that differ");
    say(c, text);
}

void rp_measured_end(rp_controller *c) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const uint32_t other = rp_measured_for(c, k);
        if (other != k) {
            rp_profile_take_like(&c->measure.profile, k, other);
        }
    }
    rp_profile_seconds_of(&c->measure.profile, 0, c->measure.layer_seconds);
    c->measure.has_profile = true;
}

void rp_measured_place(rp_controller *c) {
    const char *name[RP_CUT_STAGES_MAX];
    const uint32_t count = c->ring.count < RP_CUT_STAGES_MAX ? c->ring.count : RP_CUT_STAGES_MAX;
    for (uint32_t k = 0; k < count; k++) {
        name[k] = c->ring.board[k].name;
    }
    rp_profile_place(&c->measure.profile, name, count);
}

rp_split_ask rp_measured_split_ask(rp_controller *c) {
    rp_measured_place(c);
    return (rp_split_ask){.run = &c->run,
                          .profile = &c->measure.profile,
                          .delay_s = c->measure.link_delay_s,
                          .clock = c->env.clock,
                          .limit_ns = (int64_t)(c->run.plan_seconds * (double)RP_NS_PER_S)};
}

rp_joint_ask rp_measured_ask(rp_controller *c) {
    rp_measured_place(c);
    return (rp_joint_ask){.run = &c->run,
                          .profile = &c->measure.profile,
                          .delay_s = c->measure.link_delay_s,
                          .boards_open = true,
                          .codecs_open =
                              c->run.codec_auto && c->setup.codecs.stages != c->run.stages,
                          .share_most = c->run.plan_share,
                          .micro_open = c->run.micro_auto,
                          .schedules_open = c->run.schedule_auto,
                          .clock = c->env.clock,
                          .limit_ns = (int64_t)(c->run.plan_seconds * (double)RP_NS_PER_S)};
}
