/* profile.json: writing and reading it. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "planning/profile.h"

enum { VERSION = 2, LINE_BYTES = 200 };

static const char *const pass_name[RP_MEASURED_PASSES] = {
    [RP_MEASURED_FORWARD] = "forward",
    [RP_MEASURED_BACKWARD] = "backward",
    [RP_MEASURED_BACKWARD_INPUT] = "backward_input",
    [RP_MEASURED_BACKWARD_WEIGHT] = "backward_weight",
};

/* ---- writing --------------------------------------------------------------------------------- */

/* `key`: the name of a point's size, "samples" or "bytes". */
static json_t *curve_json(const rp_curve *curve, const char *key) {
    json_t *points = json_array();
    for (uint32_t i = 0; i < curve->count; i++) {
        const rp_curve_point *p = &curve->point[i];
        (void)json_array_append_new(points, json_pack("{s:f, s:f, s:f}", key, p->samples, "seconds",
                                                      p->seconds, "spread", p->spread));
    }
    return points;
}

static json_t *pair_json(const double *seconds) {
    return json_pack("[f, f]", seconds[0], seconds[1]);
}

/* The additional costs of ops. */
static json_t *besides_json(const rp_profile_board *board) {
    json_t *codecs = json_array();
    for (uint32_t codec = 0; codec < RP_CODECS; codec++) {
        const double *encode_s = &board->besides_s[rp_besides_codec(codec, 0, 0)];
        if (encode_s[1] > 0) {
            (void)json_array_append_new(
                codecs, json_pack("{s:s, s:o, s:o}", "codec", rp_codec_name((rp_codec)codec),
                                  "encode_s", pair_json(encode_s), "decode_s",
                                  pair_json(&board->besides_s[rp_besides_codec(codec, 1, 0)])));
        }
    }
    return json_pack("{s:f, s:f, s:o, s:o, s:o}", "handling_s",
                     board->besides_s[RP_BESIDES_HANDLING], "handling_spread",
                     board->handling_spread, "prediction_s",
                     pair_json(&board->besides_s[RP_BESIDES_PREDICTION]), "average_s",
                     pair_json(&board->besides_s[RP_BESIDES_AVERAGE]), "codecs", codecs);
}

static json_t *board_json(const rp_runfile *run, const rp_profile *profile,
                          const rp_profile_board *board) {
    json_t *layers = json_array();
    for (uint32_t i = 0; board->known && i < profile->layer_count; i++) {
        json_t *layer = json_pack("{s:s, s:f}", "name", run->model->layer[i].name, "update_s",
                                  board->layer[i].update_s);
        for (uint32_t p = 0; p < RP_MEASURED_PASSES; p++) {
            (void)json_object_set_new(layer, pass_name[p],
                                      curve_json(&board->layer[i].pass[p], "samples"));
        }
        (void)json_array_append_new(layers, layer);
    }
    return json_pack("{s:s, s:s?, s:s?, s:I, s:i, s:[f,f], s:[f,f], s:[f,f], s:o?, s:o}", "name",
                     board->name, "device", board->device, "like", board->like, "memory_bytes",
                     (json_int_t)board->memory_bytes, "device_memory", (int)board->device_memory,
                     "to_device_s", board->copy_s[0][0], board->copy_s[0][1], "from_device_s",
                     board->copy_s[1][0], board->copy_s[1][1], "flash_bytes_per_s",
                     board->flash_rate[0], board->flash_rate[1], "besides",
                     board->has_besides ? besides_json(board) : NULL, "layers", layers);
}

static const char *end_name(const rp_profile *profile, uint32_t end) {
    return end < profile->board_count ? profile->board[end].name : "host";
}

/* A wire of neighbours in the ring, or between the host and a board. */
static bool is_used(const rp_profile *profile, uint32_t from, uint32_t to) {
    const uint32_t boards = profile->board_count;
    const bool known = (from == boards || profile->board[from].known) &&
                       (to == boards || profile->board[to].known);
    const bool ring = from < boards && to < boards && from != to &&
                      ((from + 1) % boards == to || (to + 1) % boards == from);
    return known && (ring || (from == boards) != (to == boards));
}

static json_t *wires_json(const rp_profile *profile) {
    json_t *wires = json_array();
    const uint32_t ends = profile->board_count + 1;
    for (uint32_t i = 0; profile->wire && i < ends * ends; i++) {
        const rp_profile_wire *wire = &profile->wire[i];
        if (is_used(profile, i / ends, i % ends)) {
            (void)json_array_append_new(
                wires, json_pack("{s:s, s:s, s:f, s:f, s:b, s:b, s:o}", "from",
                                 end_name(profile, i / ends), "to", end_name(profile, i % ends),
                                 "latency_s", wire->latency_s, "bytes_per_s", wire->bytes_per_s,
                                 "shared", wire->shared, "assumed", wire->is_assumed, "sizes",
                                 curve_json(&wire->busy, "bytes")));
        }
    }
    return wires;
}

/* `layers` of version 1, for older readers: the first board at the run's microbatch. */
static json_t *first_json(const rp_runfile *run, const rp_profile *profile) {
    json_t *layers = json_array();
    for (uint32_t i = 0; i < profile->layer_count; i++) {
        const rp_layer *layer = &run->model->layer[i];
        (void)json_array_append_new(
            layers,
            json_pack(
                "{s:s, s:s, s:f, s:f}", "name", layer->name, "kind", layer->kind->name, "forward_s",
                rp_profile_pass_s(profile, 0, i, i + 1, RP_MEASURED_FORWARD, profile->micro),
                "backward_s",
                rp_profile_pass_s(profile, 0, i, i + 1, RP_MEASURED_BACKWARD, profile->micro)));
    }
    return layers;
}

rp_err rp_profile_write(FILE *file, const rp_runfile *run, const rp_profile *profile) {
    json_t *boards = json_array();
    for (uint32_t k = 0; k < profile->board_count && profile->board[k].name; k++) {
        (void)json_array_append_new(boards, board_json(run, profile, &profile->board[k]));
    }
    json_t *root =
        json_pack("{s:i, s:s, s:s, s:i, s:s?, s:o, s:o, s:o}", "version", VERSION, "model",
                  profile->model, "model_digest", profile->digest, "microbatch",
                  (int)profile->micro, "board", profile->board[0].device, "layers",
                  first_json(run, profile), "boards", boards, "wires", wires_json(profile));
    const bool failed =
        !root || json_dumpf(root, file, JSON_INDENT(2)) != 0 || fputc('\n', file) == EOF;
    const int code = errno;
    json_decref(root);
    return failed ? rp_fail(RP_ERR_IO, "the profile could not be written: %s", strerror(code))
                  : RP_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct {
    rp_arena *arena;
    const char *path;
    const rp_runfile *run;
    rp_profile *out;
} reading;

static rp_err refuse(const reading *r, const char *format, ...) RP_PRINTF(2, 3);
static rp_err refuse(const reading *r, const char *format, ...) {
    char text[LINE_BYTES];
    va_list words;
    va_start(words, format);
    (void)vsnprintf(text, sizeof text, format, words);
    va_end(words);
    return rp_fail(RP_ERR_USAGE, "%s: %s", r->path, text);
}

static rp_err read_curve(const reading *r, const char *where, const json_t *points, rp_curve *out) {
    rp_curve_point point[RP_CURVE_POINTS_MAX];
    const size_t count = json_array_size(points);
    if (count == 0 || count > RP_CURVE_POINTS_MAX) {
        return refuse(r, "%s: expected 1 to %d points {samples, seconds, spread}", where,
                      RP_CURVE_POINTS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *at = json_array_get(points, i);
        const json_t *spread = json_object_get(at, "spread");
        if (!json_is_number(json_object_get(at, "samples")) ||
            !json_is_number(json_object_get(at, "seconds"))) {
            return refuse(r, "%s[%zu]: expected {samples, seconds, spread}", where, i);
        }
        point[i] = (rp_curve_point){json_number_value(json_object_get(at, "samples")),
                                    json_number_value(json_object_get(at, "seconds")),
                                    spread ? json_number_value(spread) : 1};
    }
    return rp_curve_fit(point, (uint32_t)count, out) == RP_OK
               ? RP_OK
               : refuse(r, "%s: %s", where, rp_err_message());
}

static rp_err read_layer(const reading *r, const char *board, uint32_t index, const json_t *from,
                         rp_profile_layer *out) {
    const char *name = json_string_value(json_object_get(from, "name"));
    const char *want = r->run->model->layer[index].name;
    const json_t *update = json_object_get(from, "update_s");
    char where[LINE_BYTES];
    rp_err err = RP_OK;
    if (!name || strcmp(name, want) != 0) {
        return refuse(r, "board %s: layers[%u]: expected layer '%s', found '%s'", board, index,
                      want, name ? name : "nothing");
    }
    out->update_s = json_number_value(update);
    if (!json_is_number(update) || !(out->update_s >= 0)) {
        return refuse(r, "board %s: %s.update_s: expected seconds", board, name);
    }
    for (uint32_t p = 0; p < RP_MEASURED_PASSES; p++) {
        (void)snprintf(where, sizeof where, "board %.40s: %.60s.%s", board, name, pass_name[p]);
        RP_TRY(read_curve(r, where, json_object_get(from, pass_name[p]), &out->pass[p]));
    }
fail:
    return err;
}

static void read_copies(const json_t *from, const char *key, double out[2]) {
    for (size_t i = 0; i < 2; i++) {
        const double seconds = json_number_value(json_array_get(json_object_get(from, key), i));
        out[i] = seconds > 0 ? seconds : 0;
    }
}

static rp_err read_pair(const reading *r, const char *board, const json_t *from, const char *key,
                        double out[2]) {
    const json_t *pair = json_object_get(from, key);
    for (size_t i = 0; i < 2; i++) {
        const json_t *at = json_array_get(pair, i);
        out[i] = json_number_value(at);
        if (!json_is_number(at) || !isfinite(out[i]) || out[i] < 0) {
            return refuse(r, "board %.40s: besides.%s: expected two times, of %u and %u values",
                          board, key, RP_BESIDES_FLOATS[0], RP_BESIDES_FLOATS[1]);
        }
    }
    return RP_OK;
}

/* Unknown codecs are ignored. */
static rp_err read_besides(const reading *r, const json_t *from, rp_profile_board *out) {
    const json_t *codecs = json_object_get(from, "codecs");
    const json_t *handling = json_object_get(from, "handling_s");
    rp_err err = RP_OK;
    out->has_besides = from != NULL && !json_is_null(from);
    if (!out->has_besides) {
        return RP_OK;
    }
    double *handling_s = &out->besides_s[RP_BESIDES_HANDLING];
    *handling_s = json_number_value(handling);
    if (!json_is_number(handling) || !isfinite(*handling_s) || *handling_s < 0) {
        return refuse(r, "board %.40s: besides.handling_s: expected seconds", out->name);
    }
    const double spread = json_number_value(json_object_get(from, "handling_spread"));
    out->handling_spread = spread > 0 && isfinite(spread) ? spread : 0;
    RP_TRY(read_pair(r, out->name, from, "prediction_s", &out->besides_s[RP_BESIDES_PREDICTION]));
    RP_TRY(read_pair(r, out->name, from, "average_s", &out->besides_s[RP_BESIDES_AVERAGE]));
    for (size_t i = 0; i < json_array_size(codecs); i++) {
        const json_t *own = json_array_get(codecs, i);
        const char *name = json_string_value(json_object_get(own, "codec"));
        const rp_codec codec = name ? rp_codec_find(name) : RP_CODECS;
        for (size_t decode = 0; decode < 2 && codec < RP_CODECS; decode++) {
            RP_TRY(read_pair(r, out->name, own, decode ? "decode_s" : "encode_s",
                             &out->besides_s[rp_besides_codec(codec, decode, 0)]));
        }
    }
fail:
    return err;
}

static rp_err copy_text(const reading *r, const json_t *from, const char **out) {
    const char *text = json_string_value(from);
    char *copy = NULL;
    const rp_err err = text ? rp_arena_text(r->arena, text, strlen(text), &copy) : RP_OK;
    *out = copy;
    return err;
}

static rp_err read_board(const reading *r, const json_t *from, rp_profile_board *out) {
    const json_t *layers = json_object_get(from, "layers");
    const uint32_t count = r->out->layer_count;
    const char *name = json_string_value(json_object_get(from, "name"));
    rp_err err;
    if (!name || json_array_size(layers) != count) {
        return refuse(r, "boards: board %s: expected a name and %u layers", name ? name : "?",
                      count);
    }
    RP_TRY(copy_text(r, json_object_get(from, "name"), &out->name));
    RP_TRY(copy_text(r, json_object_get(from, "device"), &out->device));
    RP_TRY(copy_text(r, json_object_get(from, "like"), &out->like));
    RP_TRY(RP_ARENA_NEW(r->arena, count, &out->layer));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(read_layer(r, name, i, json_array_get(layers, i), &out->layer[i]));
    }
    const json_int_t memory = json_integer_value(json_object_get(from, "memory_bytes"));
    const json_int_t kind = json_integer_value(json_object_get(from, "device_memory"));
    out->memory_bytes = memory > 0 ? (uint64_t)memory : 0;
    out->device_memory = kind > 0 && kind <= RP_DEVICE_MEMORY_SHARED ? (rp_device_memory)kind
                                                                     : RP_DEVICE_MEMORY_UNKNOWN;
    read_copies(from, "to_device_s", out->copy_s[0]);
    read_copies(from, "from_device_s", out->copy_s[1]);
    read_copies(from, "flash_bytes_per_s", out->flash_rate);
    RP_TRY(read_besides(r, json_object_get(from, "besides"), out));
    out->known = true;
fail:
    return err;
}

/* ---- wires ---- */

static rp_err read_number(const reading *r, const char *where, const json_t *from, const char *key,
                          double *out) {
    const json_t *number = json_object_get(from, key);
    *out = json_number_value(number);
    return json_is_number(number) && isfinite(*out) && *out >= 0
               ? RP_OK
               : refuse(r, "%s.%s: expected a finite number of 0 or more", where, key);
}

static rp_err read_sizes(const reading *r, const char *where, const json_t *sizes, rp_curve *out) {
    rp_curve_point point[RP_CURVE_POINTS_MAX];
    const size_t count = json_array_size(sizes);
    rp_err err = RP_OK;
    if (count > RP_CURVE_POINTS_MAX) {
        return refuse(r, "%s.sizes: %zu points, expected at most %d", where, count,
                      RP_CURVE_POINTS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *at = json_array_get(sizes, i);
        RP_TRY(read_number(r, where, at, "bytes", &point[i].samples));
        RP_TRY(read_number(r, where, at, "seconds", &point[i].seconds));
        RP_TRY(read_number(r, where, at, "spread", &point[i].spread));
    }
    if (count > 0 && rp_curve_fit(point, (uint32_t)count, out) != RP_OK) {
        return refuse(r, "%s.sizes: %s", where, rp_err_message());
    }
fail:
    return err;
}

/* Index of a board, or of the host, by name; UINT32_MAX: unknown. */
static uint32_t find_end(const reading *r, const json_t *name, size_t boards) {
    const char *text = json_string_value(name);
    uint32_t i = 0;
    if (!text) {
        return UINT32_MAX;
    }
    while (i < boards && strcmp(r->out->board[i].name, text) != 0) {
        i++;
    }
    return i < boards ? i : strcmp(text, "host") == 0 ? r->out->board_count : UINT32_MAX;
}

static rp_err read_wire(const reading *r, size_t index, const json_t *from, size_t boards) {
    const uint32_t near = find_end(r, json_object_get(from, "from"), boards);
    const uint32_t far = find_end(r, json_object_get(from, "to"), boards);
    rp_profile_wire wire = {.shared = json_is_true(json_object_get(from, "shared")),
                            .is_assumed = json_is_true(json_object_get(from, "assumed"))};
    char where[40];
    rp_err err;
    (void)snprintf(where, sizeof where, "wires[%zu]", index);
    if (near == UINT32_MAX || far == UINT32_MAX || near == far) {
        return refuse(r, "%s: expected `from` and `to`, names of two boards or \"host\"", where);
    }
    RP_TRY(read_number(r, where, from, "latency_s", &wire.latency_s));
    RP_TRY(read_number(r, where, from, "bytes_per_s", &wire.bytes_per_s));
    RP_TRY(read_sizes(r, where, json_object_get(from, "sizes"), &wire.busy));
    r->out->wire[(size_t)near * (r->out->board_count + 1) + far] = wire;
fail:
    return err;
}

/* Not if links are emulated, because then the run file says their times. */
static rp_err read_wires(const reading *r, const json_t *wires, size_t boards) {
    rp_err err = RP_OK;
    for (size_t i = 0; i < json_array_size(wires) && !r->run->emulate; i++) {
        RP_TRY(read_wire(r, i, json_array_get(wires, i), boards));
    }
fail:
    return err;
}

static rp_err check_root(const reading *r, const json_t *root) {
    const char *digest = json_string_value(json_object_get(root, "model_digest"));
    const char *model = json_string_value(json_object_get(root, "model"));
    const json_int_t version = json_integer_value(json_object_get(root, "version"));
    if (version != VERSION) {
        return refuse(r, "version: expected %d, found %lld: measure again with `ringpipe profile`",
                      VERSION, (long long)version);
    }
    if (!digest || strcmp(digest, r->out->digest) != 0) {
        return refuse(r,
                      "model_digest: it is a profile of another model ('%.60s', %.16s) than the "
                      "run's ('%.60s', %s): measure again with `ringpipe profile`",
                      model ? model : "?", digest ? digest : "no digest", r->out->model,
                      r->out->digest);
    }
    return RP_OK;
}

static rp_err read_root(reading *r, const json_t *root) {
    const json_t *boards = json_object_get(root, "boards");
    const size_t count = json_array_size(boards);
    rp_err err;
    if (count == 0 || count > RP_CUT_STAGES_MAX) {
        return refuse(r, "boards: expected 1 to %d", RP_CUT_STAGES_MAX);
    }
    const uint32_t places = r->run->boards + r->run->spares;
    RP_TRY(rp_profile_open(r->arena, r->run, count > places ? (uint32_t)count : places, r->out));
    RP_TRY(check_root(r, root));
    for (size_t k = 0; k < count; k++) {
        RP_TRY(read_board(r, json_array_get(boards, k), &r->out->board[k]));
    }
    RP_TRY(read_wires(r, json_object_get(root, "wires"), count));
fail:
    return err;
}

rp_err rp_profile_read(rp_arena *arena, const char *path, const rp_runfile *run, rp_profile *out) {
    reading r = {.arena = arena, .path = path, .run = run, .out = out};
    json_t *root;
    rp_err err = rp_json_read(path, &root);
    err = err == RP_OK ? read_root(&r, root) : err;
    json_decref(root);
    return err;
}

rp_err rp_profile_check_boards(const char *path, const rp_runfile *run, const rp_profile *profile) {
    for (uint32_t k = 0; k < run->boards; k++) {
        char place[16];
        (void)snprintf(place, sizeof place, "%u", k);
        const char *name = run->roster ? run->roster[k].name : place;
        uint32_t i = 0;
        while (i < profile->board_count &&
               !(profile->board[i].name && strcmp(profile->board[i].name, name) == 0)) {
            i++;
        }
        if (i == profile->board_count) {
            return rp_fail(
                RP_ERR_USAGE,
                "%s: boards: has no board '%s' of this run, because it is of another ring: "
                "measure again with `ringpipe profile`",
                path, name);
        }
    }
    return RP_OK;
}
