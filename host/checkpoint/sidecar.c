/* Sidecar files of a checkpoint: microbatches in flight, prediction gains. */
#include "checkpoint/checkpoint_own.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- names ----------------------------------------------------------------------------------- */

/* A sidecar file is `step-N.KEY`, or `step-N.1.KEY` to `step-N.9.KEY` after an earlier save of the
 * same step. KEY of the checkpoint's metadata has the end of the name. */
typedef struct {
    const char *key, *what;
} sidecar_kind;
static const sidecar_kind in_flight_kind = {"flight", "the microbatches in flight"};
static const sidecar_kind gains_kind = {"steer", "the prediction gains"};
enum { ENDS = 10, END_BYTES = 16 };

static void write_end(const sidecar_kind *kind, uint32_t number, char out[END_BYTES]) {
    if (number == 0) {
        (void)snprintf(out, END_BYTES, ".%s", kind->key);
    } else {
        (void)snprintf(out, END_BYTES, ".%u.%s", number, kind->key);
    }
}

static rp_err sidecar_path(rp_arena *arena, const char *checkpoint, const char *end, char **out) {
    const size_t stem = strlen(checkpoint) - strlen(".safetensors");
    return rp_arena_printf(arena, out, "%.*s%s", (int)stem, checkpoint, end);
}

/* Finds the first unused name. */
static rp_err choose_name(rp_arena *arena, const char *checkpoint, const sidecar_kind *kind,
                          const char **end, char **path) {
    char text[END_BYTES];
    char *own;
    rp_err err;
    for (uint32_t n = 0; n < ENDS; n++) {
        write_end(kind, n, text);
        RP_TRY(sidecar_path(arena, checkpoint, text, path));
        if (access(*path, F_OK) != 0) {
            RP_TRY(rp_arena_string(arena, text, &own));
            *end = own;
            return RP_OK;
        }
    }
    err = rp_fail(RP_ERR_IO, "%s: there are %d files with %s of this step already; remove them",
                  *path, ENDS, kind->what);
fail:
    return err;
}

void rp_checkpoint_remove_other_sidecars(const char *checkpoint,
                                         const rp_checkpoint_sidecars *sidecars) {
    const sidecar_kind *const kind[] = {&in_flight_kind, &gains_kind};
    const char *const own[] = {sidecars->in_flight, sidecars->gains};
    const int stem = (int)(strlen(checkpoint) - strlen(".safetensors"));
    for (uint32_t i = 0; i < 2 * ENDS; i++) {
        char end[END_BYTES];
        char path[512];
        write_end(kind[i / ENDS], i % ENDS, end);
        const int used = snprintf(path, sizeof path, "%.*s%s", stem, checkpoint, end);
        if (strcmp(end, own[i / ENDS]) != 0 && used < (int)sizeof path) {
            (void)unlink(path);
        }
    }
}

static bool is_end(const sidecar_kind *kind, const char *text) {
    char end[END_BYTES];
    bool found = false;
    for (uint32_t n = 0; n < ENDS && !found; n++) {
        write_end(kind, n, end);
        found = strcmp(text, end) == 0;
    }
    return found;
}

/* Finds the sidecar file of the checkpoint; *out NULL: it has none. A checkpoint of an older
 * version does not name it, but uses the existing file. errors FORMAT: the named file is missing */
static rp_err find_sidecar(rp_arena *arena, const rp_st_reader *reader, const char *checkpoint,
                           const sidecar_kind *kind, char **out) {
    const char *named = rp_st_meta(reader, kind->key);
    char end[END_BYTES];
    rp_err err = RP_OK;
    *out = NULL;
    if (named && !named[0]) {
        return RP_OK;
    }
    if (named && !is_end(kind, named)) {
        return rp_fail(RP_ERR_FORMAT, "%s: `%s` is '%.40s', expected the end of a file name",
                       checkpoint, kind->key, named);
    }
    write_end(kind, 0, end);
    RP_TRY(sidecar_path(arena, checkpoint, named ? named : end, out));
    if (access(*out, F_OK) == 0) {
        return RP_OK;
    }
    if (named) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: the file is missing, which has %s of its checkpoint; restore it, or "
                       "remove %s to resume from the checkpoint before it",
                       *out, kind->what, checkpoint);
    }
    *out = NULL;
fail:
    return err;
}

rp_err rp_checkpoint_check_sidecars(rp_arena *arena, const rp_st_reader *reader,
                                    const char *checkpoint) {
    const sidecar_kind *const kind[] = {&in_flight_kind, &gains_kind};
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        rp_st_reader *sidecar = NULL;
        char *path;
        RP_TRY(find_sidecar(arena, reader, checkpoint, kind[i], &path));
        RP_TRY(path ? rp_st_open(arena, path, &sidecar) : RP_OK);
        err = sidecar ? rp_st_check_sums(sidecar) : RP_OK;
        rp_st_close(&sidecar);
        RP_TRY(err);
    }
fail:
    return err;
}

/* Opens the sidecar file of the checkpoint; *out NULL: it has none. *path is in `arena`. */
static rp_err open_sidecar(rp_arena *arena, const char *checkpoint, const sidecar_kind *kind,
                           char **path, rp_st_reader **out) {
    rp_st_reader *reader = NULL;
    rp_err err;
    RP_TRY(rp_st_open(arena, checkpoint, &reader));
    RP_TRY(find_sidecar(arena, reader, checkpoint, kind, path));
    RP_TRY(*path ? rp_st_open(arena, *path, out) : RP_OK);
fail:
    rp_st_close(&reader);
    return err;
}

/* ---- prediction gains -------------------------------------------------------------------- */

rp_err rp_checkpoint_create_gains(rp_arena *arena, const rp_gain_estimator *estimator,
                                  const char *checkpoint, const char **end, rp_st_writer **out) {
    *end = "";
    if (!estimator) {
        return RP_OK;
    }
    const size_t count = rp_gain_estimator_size(estimator);
    const rp_st_entry entry = {.name = "steer",
                               .type = RP_ST_F64,
                               .dims = 1,
                               .dim = {count},
                               .bytes = count * sizeof(double)};
    const char *const none[] = {NULL};
    double *values;
    char *path;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, count, &values));
    rp_gain_estimator_pack(estimator, values);
    RP_TRY(choose_name(arena, checkpoint, &gains_kind, end, &path));
    RP_TRY(rp_st_create(arena, path, &entry, 1, none, true, out));
    RP_TRY(rp_st_write(*out, 0, 0, values, count * sizeof *values));
fail:
    return err;
}

rp_err rp_checkpoint_read_gains(rp_arena *arena, const rp_st_reader *reader, const char *path,
                                rp_gain_estimator *estimator) {
    const rp_st_entry *entry = rp_st_find(reader, "steer");
    const size_t bytes = rp_gain_estimator_size(estimator) * sizeof(double);
    double *values;
    rp_err err;
    if (!entry || entry->type != RP_ST_F64 || entry->bytes != bytes) {
        return rp_fail(RP_ERR_FORMAT, "%s: expected prediction gains of this model", path);
    }
    RP_TRY(RP_ARENA_NEW(arena, rp_gain_estimator_size(estimator), &values));
    memcpy(values, rp_st_data(reader, entry), bytes); /* because they may not be aligned */
    RP_TRY(rp_gain_estimator_unpack(estimator, path, values));
fail:
    return err;
}

rp_err rp_checkpoint_load_gains(const char *path, rp_gain_estimator *estimator) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    char *sidecar;
    rp_err err;
    rp_arena_init(&arena, "gain", 0);
    RP_TRY(open_sidecar(&arena, path, &gains_kind, &sidecar, &reader));
    if (!reader) {
        err = rp_fail(RP_ERR_FORMAT, "%s: the checkpoint has no file with prediction gains", path);
        goto fail;
    }
    RP_TRY(rp_checkpoint_read_gains(&arena, reader, sidecar, estimator));
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}

/* ---- in flight ------------------------------------------------------------------------------- */

/* Text of everything on which the in-flight state depends: the cut; if any boundary has a codec,
 * the codecs by stage; if stages are split, which ones. */
static rp_err made_for_text(rp_arena *arena, const rp_plan *plan, char **out) {
    rp_err err;
    RP_TRY(rp_checkpoint_cut_text(arena, plan, out));
    for (uint32_t k = 0; rp_plan_has_codec(plan) && k < plan->stage_count; k++) {
        rp_codec codec[2][2];
        rp_plan_codecs_of(plan, k, codec);
        RP_TRY(rp_arena_printf(arena, out, "%s;%s/%s", *out, rp_codec_name(codec[0][0]),
                               rp_codec_name(codec[1][1])));
    }
    for (uint32_t k = 0; plan->method.whole && k < plan->stage_count; k++) {
        RP_TRY(rp_arena_printf(arena, out, "%s;%s", *out,
                               rp_method_is_split(&plan->method, k) ? "split" : "whole"));
    }
fail:
    return err;
}

/* One entry of bytes for each part: `stage.K`; if D stages are split, a forward's is `stage.D+K`.
 */
rp_err rp_checkpoint_create_in_flight(rp_arena *arena, const rp_checkpoint_content *content,
                                      const char *checkpoint, const char **name_end,
                                      rp_st_writer **out) {
    const uint32_t parts = rp_plan_parts(content->plan);
    rp_st_entry *entry;
    uint64_t bytes = 0;
    char *path;
    char *made_for;
    char *fill;
    char *end;
    rp_err err;
    *name_end = "";
    RP_TRY(RP_ARENA_NEW(arena, parts, &entry));
    for (uint32_t k = 0; k < parts; k++) {
        const uint64_t own = content->in_flight_bytes[k];
        char *name;
        RP_TRY(rp_arena_printf(arena, &name, "stage.%u", k));
        entry[k] =
            (rp_st_entry){.name = name, .type = RP_ST_U8, .dims = 1, .dim = {own}, .bytes = own};
        bytes += own;
    }
    if (bytes == 0) {
        return RP_OK;
    }
    RP_TRY(choose_name(arena, checkpoint, &in_flight_kind, name_end, &path));
    RP_TRY(made_for_text(arena, content->plan, &made_for));
    RP_TRY(rp_arena_printf(arena, &fill, "%" PRIu64, content->position->fill_step));
    RP_TRY(rp_arena_printf(arena, &end, "%" PRIu64, content->run->steps));
    const char *const meta[] = {"cut", made_for, "fill", fill, "end", end, NULL};
    RP_TRY(rp_st_create(arena, path, entry, parts, meta, true, out));
fail:
    return err;
}

rp_err rp_checkpoint_read_in_flight(rp_arena *arena, const rp_st_reader *reader, const char *path,
                                    const char *cut, uint32_t parts, uint64_t step,
                                    rp_in_flight *out) {
    const char *made_for = rp_st_meta(reader, "cut");
    const char *fill = rp_st_meta(reader, "fill");
    const char *end = rp_st_meta(reader, "end");
    rp_err err;
    *out = (rp_in_flight){0};
    if (!made_for || !fill) {
        return rp_fail(RP_ERR_FORMAT, "%s: the metadata `cut` and `fill` are missing", path);
    }
    if (strcmp(made_for, cut) != 0) {
        return RP_OK;
    }
    if (!rp_checkpoint_number(fill, &out->fill_step) || out->fill_step > step) {
        return rp_fail(RP_ERR_FORMAT, "%s: `fill` is '%.40s', expected a step up to %" PRIu64, path,
                       fill, step);
    }
    if (end && (!rp_checkpoint_number(end, &out->end) || out->end < step)) {
        return rp_fail(RP_ERR_FORMAT, "%s: `end` is '%.40s', expected a step from %" PRIu64, path,
                       end, step);
    }
    RP_TRY(RP_ARENA_NEW(arena, parts, &out->part));
    for (uint32_t k = 0; k < parts; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "stage.%u", k);
        const rp_st_entry *entry = rp_st_find(reader, name);
        if (!entry || entry->type != RP_ST_U8 || entry->bytes % sizeof(float)) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: %s: is missing, or not an array of bytes in whole floats", path,
                           name);
        }
        out->part[k] = (rp_checkpoint_bytes){rp_st_data(reader, entry), entry->bytes};
    }
    out->here = true;
fail:
    return err;
}

/* Is the set of microbatches in flight at `step` equal for both ends of the run? Yes, unless the
 * nearer end prevents some from being sent. */
static bool same_in_flight(const rp_plan *plan, uint64_t step, uint64_t end) {
    const rp_sched_shape shape = rp_plan_stage_shape(plan, 0, 0);
    const uint64_t after = step + rp_sched_in_flight(plan->method.kind, &shape);
    return end == 0 || end == plan->steps || (after <= end && after <= plan->steps);
}

rp_err rp_checkpoint_open_in_flight(rp_arena *arena, const rp_plan *plan, const char *path,
                                    uint64_t step, rp_st_reader **reader, rp_in_flight *out,
                                    bool *usable) {
    char *sidecar;
    char *own;
    rp_err err;
    *usable = false;
    RP_TRY(open_sidecar(arena, path, &in_flight_kind, &sidecar, reader));
    if (!*reader) {
        return RP_OK;
    }
    RP_TRY(made_for_text(arena, plan, &own));
    RP_TRY(
        rp_checkpoint_read_in_flight(arena, *reader, sidecar, own, rp_plan_parts(plan), step, out));
    *usable = out->here && same_in_flight(plan, step, out->end);
fail:
    return err;
}
