/* lanes.json, the journal of the last round. It is written before the round's files are moved into
 * place, and after all of them exist. If a run is killed in between, the resume moves them. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/replace.h"
#include "base/safetensors.h"
#include "lanes/lanes_own.h"

enum { NAME_ROOM = 64 };

void rp_lanes_name_made(const rp_lane_child *lane, char out[RP_LANE_PATH_BYTES]) {
    (void)snprintf(out, RP_LANE_PATH_BYTES, "%.*s/averaged.safetensors",
                   RP_LANE_PATH_BYTES - NAME_ROOM, lane->folder);
}

void rp_lanes_name_checkpoint(const rp_lane_child *lane, uint64_t step,
                              char out[RP_LANE_PATH_BYTES]) {
    (void)snprintf(out, RP_LANE_PATH_BYTES, "%.*s/checkpoint/step-%010" PRIu64 ".safetensors",
                   RP_LANE_PATH_BYTES - NAME_ROOM, lane->folder, step);
}

static json_t *json_of_lane(const rp_lane_child *lane) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "step", (json_int_t)lane->step,
                     "samples", (json_int_t)lane->samples, "joined", (json_int_t)lane->joined,
                     "averaged", (json_int_t)lane->averaged, "rounds", (json_int_t)lane->rounds,
                     "late", (json_int_t)lane->late, "restarts", (json_int_t)lane->restarts);
}

rp_err rp_lanes_write_journal(const rp_lanes *lanes) {
    json_t *list = json_array();
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        (void)!json_array_append_new(list, json_of_lane(&lanes->lane[k]));
    }
    json_t *root = json_pack("{s:i, s:s, s:s, s:I, s:I, s:s, s:f, s:I, s:o}", "version", 1, "model",
                             lanes->model, "schedule", lanes->schedule, "steps",
                             (json_int_t)lanes->steps, "round", (json_int_t)lanes->round, "digest",
                             lanes->digest, "seconds", rp_lanes_seconds(lanes), "last_steps",
                             (json_int_t)lanes->last_steps, "lanes", list);
    FILE *file = root ? rp_replace_begin(lanes->journal) : NULL;
    const bool good = file && json_dumpf(root, file, JSON_INDENT(1)) == 0;
    json_decref(root);
    return rp_replace_end(file, lanes->journal, good && fputc('\n', file) != EOF);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool take_number(const json_t *object, const char *key, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool take_lane(const json_t *object, rp_lane_child *lane) {
    uint64_t count[3];
    const bool good = take_number(object, "step", &lane->step) &&
                      take_number(object, "samples", &lane->samples) &&
                      take_number(object, "joined", &lane->joined) &&
                      take_number(object, "averaged", &lane->averaged) &&
                      take_number(object, "rounds", &count[0]) &&
                      take_number(object, "late", &count[1]) &&
                      take_number(object, "restarts", &count[2]);
    lane->rounds = (uint32_t)(good ? count[0] : 0);
    lane->late = (uint32_t)(good ? count[1] : 0);
    lane->restarts = (uint32_t)(good ? count[2] : 0);
    return good;
}

static bool take_journal(const json_t *root, rp_lanes *lanes) {
    const json_t *list = json_object_get(root, "lanes");
    const char *digest = json_string_value(json_object_get(root, "digest"));
    bool good = digest && strlen(digest) < sizeof lanes->digest &&
                take_number(root, "round", &lanes->round) &&
                take_number(root, "last_steps", &lanes->last_steps) &&
                json_array_size(list) == lanes->keys.count;
    for (uint32_t k = 0; good && k < lanes->keys.count; k++) {
        good = take_lane(json_array_get(list, k), &lanes->lane[k]);
    }
    if (good) {
        (void)snprintf(lanes->digest, sizeof lanes->digest, "%s", digest);
        lanes->seconds = json_number_value(json_object_get(root, "seconds"));
    }
    return good;
}

rp_err rp_lanes_read_journal(rp_lanes *lanes) {
    json_error_t why;
    if (access(lanes->journal, F_OK) != 0) {
        return RP_OK; /* no round has been closed */
    }
    json_t *root = json_load_file(lanes->journal, 0, &why);
    const bool good = root && take_journal(root, lanes);
    json_decref(root);
    return good
               ? rp_lanes_place_files(lanes)
               : rp_fail(RP_ERR_FORMAT, "%s: is not the journal of a run with %u lanes%s%s",
                         lanes->journal, lanes->keys.count, root ? "" : ": ", root ? "" : why.text);
}

/* ---- the files of a round -------------------------------------------------------------------- */

/* The round for which a file was made; 0: none. */
static uint64_t round_of(const char *path) {
    rp_arena arena;
    rp_st_reader *reader = NULL;
    uint64_t round = 0;
    rp_arena_init(&arena, "round", 0);
    if (access(path, F_OK) == 0 && rp_st_open(&arena, path, &reader) == RP_OK) {
        const char *text = rp_st_meta(reader, "round");
        round = text && sscanf(text, "%" SCNu64, &round) == 1 ? round : 0;
    }
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return round;
}

/* Moves a file into place; removes it if its round was never closed. */
static rp_err place_file(const rp_lanes *lanes, const char *made, const char *to) {
    if (access(made, F_OK) != 0) {
        return RP_OK;
    }
    if (round_of(made) != lanes->round) {
        (void)unlink(made);
        return RP_OK;
    }
    return rename(made, to) == 0 ? rp_replace_sync_folder(to)
                                 : rp_fail(RP_ERR_IO, "%s: %s", to, strerror(errno));
}

rp_err rp_lanes_place_files(rp_lanes *lanes) {
    char made[RP_LANE_PATH_BYTES];
    char to[RP_LANE_PATH_BYTES];
    rp_err err;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        const rp_lane_child *lane = &lanes->lane[k];
        rp_lanes_name_made(lane, made);
        rp_lanes_name_checkpoint(lane, lane->averaged, to);
        RP_TRY(place_file(lanes, made, to));
    }
    err = place_file(lanes, lanes->next_center, lanes->center);
fail:
    return err;
}
