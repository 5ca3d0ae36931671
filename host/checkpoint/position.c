/* Where a run stands: what a checkpoint says of itself, and the note of the last evaluation. */
#include "checkpoint/position_own.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/replace.h"
#include "base/safetensors.h"

enum { PATH_BYTES = 512 };

/* ---- metadata -------------------------------------------------------------------------------- */

/* "a,b;c,d": updates done by replica, stage by stage. */
static rp_err applied_text(rp_arena *arena, const rp_method *method, const rp_applied *applied,
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

/* A number up to `most` and, behind it, `end`. */
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
                      "%s: `applied` is '%.40s', expected the updates of each replica of each "
                      "stage, up to %" PRIu64,
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

/* "batch/microbatch"; where stages differ, "batch/a,b,c". A schedule with sizes may go on with
 * others: they change the order of sums only. */
static rp_err batch_text(rp_arena *arena, const rp_runfile *run, const rp_plan *plan, char **out) {
    bool alike = true;
    rp_err err;
    for (uint32_t k = 0; plan && k < plan->stage_count && !plan->method.kind->sizes; k++) {
        alike &= plan->stage[k].micro_forward == run->micro;
    }
    RP_TRY(rp_arena_printf(arena, out, "%u/", run->batch));
    for (uint32_t k = 0; k < (alike ? 1 : plan->stage_count); k++) {
        const uint32_t micro = alike ? run->micro : plan->stage[k].micro_forward;
        RP_TRY(rp_arena_printf(arena, out, "%s%s%u", *out, k ? "," : "", micro));
    }
fail:
    return err;
}

/* The cut by the names of the stages' first layers; stage_count 0 when they are not this model's.
 */
static rp_err read_cut(rp_arena *arena, const rp_model *model, const char *names, rp_cut *out) {
    uint32_t *first;
    uint32_t count = 0;
    rp_err err;
    *out = (rp_cut){0};
    RP_TRY(RP_ARENA_NEW(arena, (size_t)model->layer_count + 1, &first));
    for (const char *at = names; at && *at;) {
        const size_t length = strcspn(at, ",");
        uint32_t layer = 0;
        while (layer < model->layer_count && (strncmp(model->layer[layer].name, at, length) != 0 ||
                                              model->layer[layer].name[length] != '\0')) {
            layer++;
        }
        const bool in_order = count == 0 ? layer == 0 : layer > first[count - 1];
        if (layer == model->layer_count || !in_order) {
            return RP_OK;
        }
        first[count++] = layer;
        at += length + (at[length] == ',');
    }
    first[count] = model->layer_count;
    *out = (rp_cut){.stage_count = count, .first = first};
fail:
    return err;
}

/* How activations and gradients go on from here through each boundary: "int8/f16,f32/f32". What the
 * run says comes before the plan: it may be another's that is about to be made. */
static rp_err codecs_text(rp_arena *arena, const rp_runfile *run, const rp_plan *plan, char **out) {
    rp_err err;
    RP_TRY(rp_arena_string(arena, "", out));
    for (uint32_t k = 0; k + 1 < plan->stage_count; k++) {
        rp_codec at[2][2];
        rp_plan_codecs_of(plan, k, at);
        const rp_codec *own = run->codec_auto && run->codec && run->stages == plan->stage_count
                                  ? run->codec[k]
                                  : at[1];
        RP_TRY(rp_arena_printf(arena, out, "%s%s%s/%s", *out, k ? "," : "", rp_codec_name(own[0]),
                               rp_codec_name(own[1])));
    }
fail:
    return err;
}

/* One name, up to `end`; behind it *at. */
static bool take_codec(const char **at, char end, bool gradients, rp_codec *out) {
    char name[16];
    const size_t length = strcspn(*at, "/,");
    if (length >= sizeof name || (*at)[length] != end) {
        return false;
    }
    memcpy(name, *at, length);
    name[length] = '\0';
    *at += length + (end != '\0');
    *out = rp_codec_find(name);
    return *out < RP_CODECS && *out != RP_CODEC_UINT8 /* which is for inputs */ &&
           (gradients || rp_codec_kept(*out) == 0);
}

/* Older programs did not write it. */
static rp_err read_codecs(rp_arena *arena, const char *text, const char *path, uint32_t stages,
                          const rp_codec (**out)[2]) {
    const char *at = text;
    rp_codec(*codec)[2];
    bool good = true;
    rp_err err = RP_OK;
    if (!text || stages < 2) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, stages - 1, &codec));
    for (uint32_t k = 0; good && k + 1 < stages; k++) {
        good = take_codec(&at, '/', false, &codec[k][0]) &&
               take_codec(&at, k + 2 < stages ? ',' : '\0', true, &codec[k][1]);
    }
    if (!good) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: `codec` is '%.40s', expected two codecs a boundary, as in f16/int8",
                       path, text);
    }
    *out = (const rp_codec(*)[2])codec;
fail:
    return err;
}

/* Where the schedule has sizes, by stage: "8/16,4/4". A backward that takes what its forward took
 * has that size. */
static rp_err sizes_text(rp_arena *arena, const rp_plan *plan, char **out) {
    rp_err err = rp_arena_string(arena, "", out);
    for (uint32_t k = 0; err == RP_OK && plan->method.kind->sizes && k < plan->stage_count; k++) {
        const rp_plan_stage *stage = &plan->stage[k];
        err = rp_arena_printf(arena, out, "%s%s%u/%u", *out, k ? "," : "", stage->micro_forward,
                              stage->micro_backward);
    }
    return err;
}

/* Older programs did not write it. */
static rp_err read_sizes(rp_arena *arena, const char *text, const char *path, uint32_t stages,
                         uint32_t batch, const uint32_t (**out)[2]) {
    const char *at = text;
    uint32_t(*size)[2];
    bool good = true;
    rp_err err = RP_OK;
    if (!text || !text[0] || stages == 0) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, stages, &size));
    for (uint32_t i = 0; good && i < 2 * stages; i++) {
        uint64_t number = 0;
        const char end = i % 2 == 0 ? '/' : i / 2 + 1 < stages ? ',' : '\0';
        good = take_number(&at, end, batch, &number) && number > 0;
        size[i / 2][i % 2] = (uint32_t)number;
    }
    if (!good) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: `sizes` is '%.40s', expected samples forward/backward of each of %u "
                       "stages, up to %u",
                       path, text, stages, batch);
    }
    *out = (const uint32_t(*)[2])size;
fail:
    return err;
}

/* What has to be the same, or a run would go on as something that is neither; of the method all but
 * which stages are split. */
enum { IDENTITY = 6 };
static rp_err identity_of(rp_arena *arena, const rp_runfile *run, const rp_plan *plan,
                          const char *pair[IDENTITY][2]) {
    char method[RP_METHOD_TEXT_BYTES];
    char *text[4];
    rp_err err;
    rp_method_text(&run->method, method, sizeof method);
    RP_TRY(rp_arena_string(arena, method, &text[0]));
    RP_TRY(rp_arena_printf(arena, &text[1], "%" PRIu64, run->seed));
    RP_TRY(batch_text(arena, run, plan, &text[2]));
    RP_TRY(rp_arena_printf(arena, &text[3], "%u", run->data.count[RP_SPLIT_TRAIN]));
    const char *const own[IDENTITY][2] = {
        {"seed", text[1]},          {"batch", text[2]},
        {"model", run->model_name}, {"schedule", run->method.kind->name},
        {"method", text[0]},        {"samples", text[3]}}; /* of an epoch */
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
    char *cut_names;
    char *advance;
    char *codecs;
    char *sizes;
    char *digest;
    char *ledger;
    char *round;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &round, "%" PRIu64, position->round));
    RP_TRY(identity_of(arena, run, plan, pair));
    RP_TRY(rp_arena_printf(arena, &ledger, "%016" PRIx64 " %" PRIu64, position->ledger.digest,
                           position->ledger.samples));
    RP_TRY(rp_arena_printf(arena, &digest, "%016" PRIx64, rp_plan_digest(plan)));
    RP_TRY(rp_arena_printf(arena, &advance, "%u", run->method.advance));
    RP_TRY(codecs_text(arena, run, plan, &codecs));
    RP_TRY(sizes_text(arena, plan, &sizes));
    RP_TRY(rp_arena_printf(arena, &step, "%" PRIu64, position->step));
    RP_TRY(applied_text(arena, &run->method, own_applied, &applied));
    RP_TRY(rp_arena_printf(arena, &totals, "%" PRIu64 " %" PRIu64 " %.17g %.17g %.17g",
                           position->samples, position->epoch_samples, position->epoch_loss,
                           position->seconds, position->segment_s));
    RP_TRY(rp_checkpoint_cut_text(arena, plan, &cut_names));
    const char *const own[] = {"format",  "pt",
                               "step",    step,
                               "applied", applied,
                               "totals",  totals,
                               "cut",     cut_names,
                               "advance", advance,
                               "codec",   codecs,
                               "sizes",   sizes,
                               "flight",  sidecars->in_flight,
                               "steer",   sidecars->gains,
                               "plan",    digest,
                               "round",   round,
                               "trial",   position->trial ? position->trial : "",
                               "ledger",  ledger};
    _Static_assert(sizeof own / sizeof *own + 2 * IDENTITY + 1 == RP_CHECKPOINT_META, "all of it");
    memcpy(meta, own, sizeof own);
    memcpy(meta + sizeof own / sizeof *own, pair, sizeof pair);
    meta[RP_CHECKPOINT_META - 1] = NULL;
fail:
    return err;
}

static rp_err check_same_run(rp_arena *arena, const rp_st_reader *reader, const rp_runfile *run,
                             const rp_plan *plan, const char *path) {
    const char *own[IDENTITY][2];
    rp_err err;
    RP_TRY(identity_of(arena, run, plan, own));
    for (size_t i = 0; i < IDENTITY; i++) {
        const char *was = rp_st_meta(reader, own[i][0]);
        if (!was && strcmp(own[i][0], "samples") == 0) {
            continue; /* older programs did not write it */
        }
        const bool same =
            was && (strcmp(own[i][0], "method") == 0 ? rp_method_text_goes_on(was, own[i][1])
                                                     : strcmp(was, own[i][1]) == 0);
        if (!same) {
            return rp_fail(RP_ERR_USAGE, "%s: was made with %s %s, the run file says %s", path,
                           own[i][0], was ? was : "unknown", own[i][1]);
        }
    }
fail:
    return err;
}

/* advance: auto: the run as it was when the checkpoint was made. */
static rp_err read_advance(const rp_st_reader *reader, const char *path, rp_runfile *run) {
    const char *text = rp_st_meta(reader, "advance");
    uint64_t advance;
    if (!text || !rp_checkpoint_number(text, &advance) || advance > RP_ADVANCE_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: `advance` is '%.40s', expected a number up to %d", path,
                       text ? text : "", RP_ADVANCE_MAX);
    }
    rp_method_set_advance(&run->method, run->stages, (uint32_t)advance);
    return RP_OK;
}

/* ahead: measured: the same. */
static rp_err read_ahead(const rp_st_reader *reader, const char *path, rp_runfile *run) {
    const char *text = rp_st_meta(reader, "method");
    return text && rp_method_take_ahead(&run->method, text)
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT,
                         "%s: `method` is '%.200s', expected how far forwards run ahead", path,
                         text ? text : "");
}

/* Older programs did not write it. */
static rp_err read_ledger(const char *text, const char *path, rp_run_ledger *out) {
    *out = (rp_run_ledger){0};
    if (text && sscanf(text, "%16" SCNx64 " %" SCNu64, &out->digest, &out->samples) != 2) {
        return rp_fail(RP_ERR_FORMAT, "%s: `ledger` is '%.40s', expected a digest and a number",
                       path, text);
    }
    return RP_OK;
}

rp_err rp_checkpoint_read_position(rp_arena *arena, const rp_st_reader *reader,
                                   const rp_runfile *run, const rp_plan *plan, const char *path,
                                   rp_position *position) {
    const char *step = rp_st_meta(reader, "step");
    const char *applied = rp_st_meta(reader, "applied");
    const char *totals = rp_st_meta(reader, "totals");
    rp_err err;
    if (!step || !rp_checkpoint_number(step, &position->step) || !applied || !totals ||
        sscanf(totals, "%" SCNu64 " %" SCNu64 " %lf %lf %lf", &position->samples,
               &position->epoch_samples, &position->epoch_loss, &position->seconds,
               &position->segment_s) != 5) {
        return rp_fail(RP_ERR_FORMAT, "%s: not a checkpoint: no `step`, `applied`, `totals`", path);
    }
    const char *digest = rp_st_meta(reader, "plan");
    const char *round = rp_st_meta(reader, "round");
    RP_TRY(read_ledger(rp_st_meta(reader, "ledger"), path, &position->ledger));
    RP_TRY(read_cut(arena, run->model, rp_st_meta(reader, "cut"), &position->cut));
    RP_TRY(read_codecs(arena, rp_st_meta(reader, "codec"), path, position->cut.stage_count,
                       &position->codec));
    RP_TRY(read_sizes(arena, rp_st_meta(reader, "sizes"), path, position->cut.stage_count,
                      run->batch, &position->size));
    const char *trial = rp_st_meta(reader, "trial"); /* older programs have none */
    if (trial && trial[0]) {
        char *copy;
        RP_TRY(rp_arena_string(arena, trial, &copy));
        position->trial = copy;
    }
    position->plan = digest ? strtoull(digest, NULL, 16) : 0;
    if (round && !rp_checkpoint_number(round, &position->round)) { /* older programs have none */
        return rp_fail(RP_ERR_FORMAT, "%s: `round` is '%.40s', expected a number", path, round);
    }
    if (position->step > run->steps) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: is at step %" PRIu64 ", but the run ends at step %" PRIu64, path,
                       position->step, run->steps);
    }
    rp_runfile then = *run;
    RP_TRY(then.method.advance_auto ? read_advance(reader, path, &then) : RP_OK);
    RP_TRY(then.method.ahead_measured ? read_ahead(reader, path, &then) : RP_OK);
    RP_TRY(check_same_run(arena, reader, &then, plan, path));
    RP_TRY(rp_checkpoint_read_applied(arena, applied, path, &then.method, position->step,
                                      &position->applied));
    position->advance = then.method.advance;
    position->ahead_count = then.method.ahead_count;
    memcpy(position->ahead, then.method.ahead, sizeof position->ahead);
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
    const bool good = file && fprintf(file, "%" PRIu64 " %.17g %" PRIu64 " %" PRIu64 "\n", step,
                                      score->loss, score->samples, score->correct) > 0;
    return rp_replace_end(file, path, good);
}

/* Whether the evaluation at the position's step has been done, and what it gave. */
void rp_checkpoint_read_evaluated(const char *folder, rp_split split, rp_position *position) {
    char path[PATH_BYTES];
    char line[128] = "";
    uint64_t step;
    rp_position_score *score = rp_position_score_of(position, split);
    evaluated_path(folder, split, path, sizeof path);
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, sizeof line, file) &&
                sscanf(line, "%" SCNu64 " %lf %" SCNu64 " %" SCNu64, &step, &score->loss,
                       &score->samples, &score->correct) == 4;
    if (file) {
        (void)fclose(file);
    }
    score->done = read && step == position->step && score->samples > 0;
}
