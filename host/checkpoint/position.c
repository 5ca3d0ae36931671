/* Position of a run: metadata of a checkpoint, and notes of the last evaluations. */
#include "checkpoint/position_own.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/replace.h"
#include "base/safetensors.h"

enum { PATH_BYTES = 512 };

/* Writes updates done by replica, stage by stage: "a,b;c,d". */
static rp_err write_applied(rp_arena *arena, const rp_method *method, const rp_applied *applied,
                            char **out) {
    enum { NUMBER = 21 };
    const size_t bytes = (size_t)applied->stages * RP_REPLICAS_MAX * NUMBER + 1;
    rp_err err = RP_ARENA_NEW(arena, bytes, out);
    size_t used = 0;
    for (uint32_t k = 0; err == RP_OK && k < applied->stages; k++) {
        const uint32_t replicas = rp_method_replicas(method, applied->stages, k);
        for (uint32_t r = 0; r < replicas; r++) {
            const int more = snprintf(*out + used, bytes - used, "%s%" PRIu64,
                                      r   ? ","
                                      : k ? ";"
                                          : "",
                                      applied->of[k][r]);
            used += more > 0 ? (size_t)more : 0;
        }
    }
    return err;
}

bool rp_checkpoint_number(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

/* Reads a number up to `most` that is followed by `end`. */
static bool take_number(const char **at, char end, uint64_t most, uint64_t *out) {
    const char *first = *at;
    char *stop;
    errno = 0;
    *out = strtoull(first, &stop, 10);
    *at = stop + (*stop != '\0');
    return first[0] >= '0' && first[0] <= '9' && errno == 0 && *stop == end && *out <= most;
}

rp_err rp_checkpoint_read_applied(rp_arena *arena, const char *text, const char *path,
                                  const rp_method *method, uint64_t step, rp_applied *out) {
    const char *at = text;
    rp_err err;
    *out = (rp_applied){.stages = 1};
    while ((at = strchr(at, ';'))) {
        out->stages++;
        at++;
    }
    at = text;
    bool good = out->stages <= RP_CUT_STAGES_MAX;
    RP_TRY(RP_ARENA_NEW(arena, good ? out->stages : 1, &out->of));
    for (uint32_t k = 0; good && k < out->stages; k++) {
        const uint32_t replicas = rp_method_replicas(method, out->stages, k);
        for (uint32_t r = 0; good && r < replicas; r++) {
            const char end = r + 1 < replicas ? ',' : k + 1 < out->stages ? ';' : '\0';
            good = take_number(&at, end, step, &out->of[k][r]);
        }
    }
    if (!good) {
        err = rp_fail(RP_ERR_FORMAT,
                      "%s: `applied` is '%.40s', expected the number of updates of each replica of "
                      "each stage, up to %" PRIu64,
                      path, text, step);
    }
fail:
    return err;
}

rp_err rp_checkpoint_cut_text(rp_arena *arena, const rp_plan *plan, char **out) {
    rp_err err = rp_arena_string(arena, "", out);
    for (uint32_t k = 0; err == RP_OK && k < plan->stage_count; k++) {
        err = rp_arena_printf(arena, out, "%s%s%s", *out, k ? "," : "", plan->stage[k].layer[0]);
    }
    return err;
}

/* ---- the setup ------------------------------------------------------------------------------- */

/* Codecs of each boundary. Those of the run file precede those of the plan, which may be replaced
 * by a new plan soon. */
static rp_err take_codecs(rp_arena *arena, const rp_runfile *run, const rp_plan *plan,
                          rp_setup *out) {
    const bool is_own = run->codec_auto && run->codec && run->stages == plan->stage_count;
    rp_codec(*codec)[2];
    rp_err err = RP_OK;
    out->codec = NULL;
    out->codec_stages = 0;
    if (plan->stage_count < 2) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, plan->stage_count - 1, &codec));
    for (uint32_t k = 0; k + 1 < plan->stage_count; k++) {
        rp_codec at[2][2];
        rp_plan_codecs_of(plan, k, at);
        memcpy(codec[k], is_own ? run->codec[k] : at[1], sizeof codec[k]);
    }
    out->codec = (const rp_codec(*)[2])codec;
    out->codec_stages = plan->stage_count;
fail:
    return err;
}

/* Sizes of microbatches, if the schedule has them. A backward of whole forwards has their size. */
static rp_err take_sizes(rp_arena *arena, const rp_plan *plan, rp_setup *out) {
    uint32_t(*size)[2];
    rp_err err = RP_OK;
    out->size = NULL;
    out->size_stages = 0;
    if (!rp_plan_has_sizes(plan)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, plan->stage_count, &size));
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        size[k][0] = plan->stage[k].micro_forward;
        size[k][1] = plan->stage[k].micro_backward;
    }
    out->size = (const uint32_t(*)[2])size;
    out->size_stages = plan->stage_count;
fail:
    return err;
}

/* Do only adjacent boards share stages, with one hold each? A plan made by the user may differ. */
static bool has_groups(const rp_plan *plan, uint32_t boards) {
    bool valid = plan->hold_count == boards && plan->node_count == boards;
    bool shared = false;
    uint32_t stage = 0;
    for (uint32_t k = 0; valid && k < boards; k++) {
        const rp_plan_hold *hold = &plan->hold[plan->node[k].hold_first];
        valid = hold->stage == stage || (k > 0 && hold->stage == stage + 1);
        shared = shared || hold->share[1] - hold->share[0] < 1;
        stage = hold->stage;
    }
    return valid && shared && stage + 1 == plan->stage_count;
}

static rp_err take_groups(rp_arena *arena, const rp_plan *plan, rp_setup *out) {
    uint32_t *group;
    double *share;
    rp_err err;
    if (!has_groups(plan, out->boards)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)plan->stage_count + 1, &group));
    RP_TRY(RP_ARENA_NEW(arena, plan->node_count, &share));
    for (uint32_t k = 0; k < plan->node_count; k++) {
        const rp_plan_hold *hold = &plan->hold[plan->node[k].hold_first];
        group[hold->stage + 1] = k + 1;
        share[k] = hold->share[1];
    }
    out->group = group;
    out->share = share;
fail:
    return err;
}

rp_err rp_position_setup(rp_arena *arena, const rp_runfile *run, const rp_plan *plan,
                         rp_setup *out) {
    rp_err err;
    *out = rp_setup_of(run);
    out->stages = plan->stage_count;
    RP_TRY(rp_plan_cut(arena, plan, run->model, &out->cut));
    RP_TRY(take_codecs(arena, run, plan, out));
    RP_TRY(take_sizes(arena, plan, out));
    RP_TRY(take_groups(arena, plan, out));
fail:
    return err;
}

/* ---- setup in checkpoints of older versions, which store its parts separately ---------------- */

static rp_err read_old_codecs(rp_arena *arena, const char *text, const char *path, rp_setup *out) {
    const uint32_t stages = out->cut.stage_count;
    rp_codec(*codec)[2];
    rp_err err = RP_OK;
    if (!text || stages < 2) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, stages - 1, &codec));
    if (!rp_setup_read_codecs(text, stages, codec)) {
        return rp_fail(
            RP_ERR_FORMAT,
            "%s: `codec` is '%.40s', expected two codecs for each boundary, as in f16/int8", path,
            text);
    }
    out->codec = (const rp_codec(*)[2])codec;
    out->codec_stages = stages;
fail:
    return err;
}

static rp_err read_old_sizes(rp_arena *arena, const char *text, const char *path, uint32_t batch,
                             rp_setup *out) {
    const uint32_t stages = out->cut.stage_count;
    uint32_t(*size)[2];
    rp_err err = RP_OK;
    if (!text || !text[0] || stages == 0) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, stages, &size));
    if (!rp_setup_read_sizes(text, stages, batch, size)) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: `sizes` is '%.40s', expected samples forward/backward for each of %u "
                       "stages, up to %u",
                       path, text, stages, batch);
    }
    out->size = (const uint32_t(*)[2])size;
    out->size_stages = stages;
fail:
    return err;
}

static rp_err read_old_advance(const char *text, const char *path, rp_setup *out) {
    uint64_t advance;
    if (!text || !rp_checkpoint_number(text, &advance) || advance > RP_ADVANCE_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: `advance` is '%.40s', expected a number up to %d", path,
                       text ? text : "", RP_ADVANCE_MAX);
    }
    out->advance = (uint32_t)advance;
    return RP_OK;
}

/* Reads `ahead` from the text of the method. */
static rp_err read_old_ahead(const char *text, const char *path, const rp_runfile *run,
                             rp_setup *out) {
    rp_method method = run->method;
    if (!text || !rp_method_take_ahead(&method, text)) {
        return rp_fail(RP_ERR_FORMAT, "%s: `method` is '%.200s', expected it to contain `ahead`",
                       path, text ? text : "");
    }
    out->ahead_count = method.ahead_count;
    memcpy(out->ahead, method.ahead, sizeof out->ahead);
    out->ahead_auto = false;
    return RP_OK;
}

static rp_err read_old_setup(rp_arena *arena, const rp_st_reader *reader, const rp_runfile *run,
                             const char *path, rp_setup *out) {
    rp_err err;
    *out = rp_setup_of(run);
    out->codec = NULL;
    out->size = NULL;
    out->codec_stages = out->size_stages = 0;
    RP_TRY(rp_setup_read_cut(arena, run->model, rp_st_meta(reader, "cut"), &out->cut));
    RP_TRY(read_old_codecs(arena, rp_st_meta(reader, "codec"), path, out));
    RP_TRY(read_old_sizes(arena, rp_st_meta(reader, "sizes"), path, run->batch, out));
    if (run->method.advance_auto) {
        RP_TRY(read_old_advance(rp_st_meta(reader, "advance"), path, out));
    }
    if (run->method.ahead_measured) {
        RP_TRY(read_old_ahead(rp_st_meta(reader, "method"), path, run, out));
    }
fail:
    return err;
}

static rp_err read_setup(rp_arena *arena, const rp_st_reader *reader, const rp_runfile *run,
                         const char *path, rp_setup *out) {
    const char *text = rp_st_meta(reader, "setup");
    return text ? rp_setup_read(arena, text, run, path, out)
                : read_old_setup(arena, reader, run, path, out);
}

/* With `advance: auto` or `ahead: measured`: the run with the values of the checkpoint. */
static void run_then(const rp_runfile *run, const rp_setup *then, rp_runfile *out) {
    rp_setup setup = rp_setup_of(run);
    if (run->method.advance_auto) {
        rp_setup_take_advance(&setup, then->advance);
    }
    if (run->method.ahead_measured) {
        setup.ahead_count = then->ahead_count;
        memcpy(setup.ahead, then->ahead, sizeof setup.ahead);
        setup.ahead_auto = then->ahead_auto;
    }
    rp_setup_run(run, &setup, out);
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Properties that must be equal in checkpoint and run file. Of the method, only the choice of split
 * stages may differ. */
enum { IDENTITY = 7 };
static rp_err identity_of(rp_arena *arena, const rp_runfile *run, const char *pair[IDENTITY][2]) {
    char method[RP_METHOD_TEXT_BYTES];
    char *text[4];
    rp_err err;
    rp_method_text(&run->method, method, sizeof method);
    RP_TRY(rp_arena_string(arena, method, &text[0]));
    RP_TRY(rp_arena_printf(arena, &text[1], "%" PRIu64, run->seed));
    RP_TRY(rp_arena_printf(arena, &text[2], "%u/%u", run->batch, run->micro));
    RP_TRY(rp_arena_printf(arena, &text[3], "%u", run->data.count[RP_SPLIT_TRAIN]));
    const char *const own[IDENTITY][2] = {{"seed", text[1]},
                                          {"batch", text[2]},
                                          {"model", run->model_name},
                                          {"schedule", run->method.kind->name},
                                          {"method", text[0]},
                                          {"samples", text[3]}, /* samples of an epoch */
                                          {"storage", rp_dtype_name(run->storage)}};
    memcpy(pair, own, sizeof own);
fail:
    return err;
}

rp_err rp_checkpoint_make_meta(rp_arena *arena, const rp_runfile *run, const rp_plan *plan,
                               const rp_position *position, const rp_applied *own_applied,
                               const rp_checkpoint_sidecars *sidecars,
                               const char *meta[RP_CHECKPOINT_META]) {
    const char *pair[IDENTITY][2];
    char *step;
    char *applied;
    char *totals;
    rp_setup by_plan;
    char *setup;
    char *digest;
    char *ledger;
    char *round;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &round, "%" PRIu64, position->round));
    RP_TRY(identity_of(arena, run, pair));
    RP_TRY(rp_arena_printf(arena, &ledger, "%016" PRIx64 " %" PRIu64, position->ledger.digest,
                           position->ledger.samples));
    RP_TRY(rp_arena_printf(arena, &digest, "%016" PRIx64, rp_plan_digest(plan)));
    RP_TRY(rp_position_setup(arena, run, plan, &by_plan));
    RP_TRY(rp_setup_text(arena, &by_plan, run, &setup));
    RP_TRY(rp_arena_printf(arena, &step, "%" PRIu64, position->step));
    RP_TRY(write_applied(arena, &run->method, own_applied, &applied));
    RP_TRY(rp_arena_printf(arena, &totals, "%" PRIu64 " %" PRIu64 " %.17g %.17g %.17g %" PRIu64,
                           position->samples, position->epoch_samples, position->epoch_loss,
                           position->seconds, position->segment_s, position->epoch_counted));
    const char *const own[] = {"format",  "pt",
                               "step",    step,
                               "applied", applied,
                               "totals",  totals,
                               "setup",   setup,
                               "flight",  sidecars->in_flight,
                               "steer",   sidecars->gains,
                               "plan",    digest,
                               "round",   round,
                               "ledger",  ledger};
    _Static_assert(sizeof own / sizeof *own + 2 * IDENTITY + 1 == RP_CHECKPOINT_META, "all of it");
    memcpy(meta, own, sizeof own);
    memcpy(meta + sizeof own / sizeof *own, pair, sizeof pair);
    meta[RP_CHECKPOINT_META - 1] = NULL;
fail:
    return err;
}

static rp_err check_same_run(rp_arena *arena, const rp_st_reader *reader, const rp_runfile *run,
                             const char *path) {
    const char *own[IDENTITY][2];
    rp_err err;
    RP_TRY(identity_of(arena, run, own));
    for (size_t i = 0; i < IDENTITY; i++) {
        const char *was = rp_st_meta(reader, own[i][0]);
        if (!was && strcmp(own[i][0], "samples") == 0) {
            continue; /* older versions did not write it */
        }
        if (!was && strcmp(own[i][0], "storage") == 0) {
            was = rp_dtype_name(RP_F32); /* older versions had no other */
        }
        const bool same =
            was && (strcmp(own[i][0], "method") == 0 ? rp_method_text_goes_on(was, own[i][1])
                                                     : strcmp(was, own[i][1]) == 0);
        if (!same) {
            return rp_fail(
                RP_ERR_USAGE,
                "%s: was made with %s %s, but the run file has %s; resume with the former "
                "value, or start a new run",
                path, own[i][0], was ? was : "unknown", own[i][1]);
        }
    }
fail:
    return err;
}

/* text NULL: an older version did not write it. */
static rp_err read_ledger(const char *text, const char *path, rp_run_ledger *out) {
    *out = (rp_run_ledger){0};
    if (text && sscanf(text, "%16" SCNx64 " %" SCNu64, &out->digest, &out->samples) != 2) {
        return rp_fail(RP_ERR_FORMAT, "%s: `ledger` is '%.40s', expected a digest and a number",
                       path, text);
    }
    return RP_OK;
}

/* Older versions wrote five numbers, when each sample had one target. */
static bool read_totals(const char *text, rp_position *out) {
    const int count = sscanf(text, "%" SCNu64 " %" SCNu64 " %lf %lf %lf %" SCNu64, &out->samples,
                             &out->epoch_samples, &out->epoch_loss, &out->seconds, &out->segment_s,
                             &out->epoch_counted);
    if (count == 5) {
        out->epoch_counted = out->epoch_samples;
    }
    return count >= 5;
}

rp_err rp_checkpoint_read_position(rp_arena *arena, const rp_st_reader *reader,
                                   const rp_runfile *run, const char *path, rp_position *position) {
    const char *step = rp_st_meta(reader, "step");
    const char *applied = rp_st_meta(reader, "applied");
    const char *totals = rp_st_meta(reader, "totals");
    rp_runfile then;
    rp_err err;
    if (!step || !rp_checkpoint_number(step, &position->step) || !applied || !totals ||
        !read_totals(totals, position)) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: not a checkpoint: `step`, `applied` or `totals` is missing or invalid",
                       path);
    }
    const char *digest = rp_st_meta(reader, "plan");
    const char *round = rp_st_meta(reader, "round");
    RP_TRY(read_ledger(rp_st_meta(reader, "ledger"), path, &position->ledger));
    RP_TRY(read_setup(arena, reader, run, path, &position->setup));
    position->plan = digest ? strtoull(digest, NULL, 16) : 0;
    if (round && !rp_checkpoint_number(round, &position->round)) { /* not in older checkpoints */
        return rp_fail(RP_ERR_FORMAT, "%s: `round` is '%.40s', expected a number", path, round);
    }
    if (position->step > run->steps) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: is at step %" PRIu64 ", but the run ends at step %" PRIu64
                       " (train.epochs, train.steps)",
                       path, position->step, run->steps);
    }
    run_then(run, &position->setup, &then);
    RP_TRY(check_same_run(arena, reader, &then, path));
    /* states of `train.init` may have seen updates of earlier runs */
    RP_TRY(rp_checkpoint_read_applied(
        arena, applied, path, &then.method,
        position->step + (run->init ? RP_CHECKPOINT_START_UPDATES_MAX : 0), &position->applied));
    position->setup.advance = then.method.advance;
    position->setup.ahead_count = then.method.ahead_count;
    memcpy(position->setup.ahead, then.method.ahead, sizeof position->setup.ahead);
    position->replicas = then.method.kind->average != RP_AVERAGE_NONE ? then.method.replicas : 0;
fail:
    return err;
}

/* ---- the note of the last evaluation --------------------------------------------------------- */

static void evaluated_path(const char *folder, rp_split split, char *out, size_t bytes) {
    const char *name = split == RP_SPLIT_VALIDATION ? "validated" : "evaluated";
    (void)snprintf(out, bytes, "%s/%s", folder, name);
}

rp_err rp_checkpoint_mark_evaluated(const char *folder, rp_split split, uint64_t step,
                                    const rp_position_score *score) {
    char path[PATH_BYTES];
    evaluated_path(folder, split, path, sizeof path);
    FILE *file = rp_replace_begin(path);
    const bool good =
        file &&
        fprintf(file, "%" PRIu64 " %.17g %" PRIu64 " %" PRIu64 " %" PRIu64 " %.17g\n", step,
                score->loss, score->samples, score->correct, score->counted, score->mean_iou) > 0;
    return rp_replace_end(file, path, good);
}

void rp_checkpoint_read_evaluated(const char *folder, rp_split split, rp_position *position) {
    char path[PATH_BYTES];
    char line[192] = "";
    uint64_t step;
    rp_position_score *score = rp_position_score_of(position, split);
    evaluated_path(folder, split, path, sizeof path);
    FILE *file = fopen(path, "r");
    const int values = file && fgets(line, sizeof line, file)
                           ? sscanf(line, "%" SCNu64 " %lf %" SCNu64 " %" SCNu64 " %" SCNu64 " %lf",
                                    &step, &score->loss, &score->samples, &score->correct,
                                    &score->counted, &score->mean_iou)
                           : 0;
    score->counted = values == 4 ? score->samples : score->counted; /* of former versions */
    score->mean_iou = values < 6 ? (double)NAN : score->mean_iou;
    if (file) {
        (void)fclose(file);
    }
    score->done = values >= 4 && score->counted > 0 && step == position->step && score->samples > 0;
}
