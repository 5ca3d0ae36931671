#include "record/summary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json_print.h"
#include "base/replace.h"

enum { DIGITS = 10 };

/* JSON has no NaN. */
static json_t *json_of_real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_of_whole(uint64_t value) {
    return json_integer((json_int_t)value);
}

/* Sets key after key; `*good` turns false when one can not be set (a text that is not UTF-8). */
static void put_value(json_t *object, const char *key, json_t *value, bool *good) {
    *good = json_object_set_new(object, key, value) == 0 && *good;
}

/* `stages` is left out where board i holds stage i and no other. */
static json_t *stage_of(const rp_summary_stage *stage, uint32_t index, bool *good) {
    json_t *object = json_object();
    json_t *layers = json_array();
    for (uint32_t i = 0; i < stage->layer_count; i++) {
        *good = json_array_append_new(layers, json_string(stage->layers[i])) == 0 && *good;
    }
    put_value(object, "board", json_string(stage->board), good);
    put_value(object, "layers", layers, good);
    if (stage->stage_count > 1 || (stage->stage_count == 1 && stage->stages[0] != index)) {
        json_t *stages = json_array();
        for (uint32_t i = 0; i < stage->stage_count; i++) {
            *good = json_array_append_new(stages, json_of_whole(stage->stages[i])) == 0 && *good;
        }
        put_value(object, "stages", stages, good);
    }
    if (stage->role) {
        put_value(object, "role", json_string(stage->role), good);
    }
    put_value(object, "busy_s", json_of_real(stage->busy_s), good);
    put_value(object, "idle_s", json_of_real(stage->idle_s), good);
    put_value(object, "weight_bytes", json_of_whole(stage->weight_bytes), good);
    put_value(object, "device_bytes_max", json_of_whole(stage->device_bytes_max), good);
    put_value(object, "flash_bytes", json_of_whole(stage->flash_bytes), good);
    put_value(object, "weight_versions_max", json_of_whole(stage->weight_versions_max), good);
    put_value(object, "probe_copies", json_of_whole(stage->probe_copies), good);
    put_value(object, "in_flight_max", json_of_whole(stage->in_flight_max), good);
    put_value(object, "gap_max", json_of_whole(stage->gap_max), good);
    return object;
}

static json_t *link_of(const rp_summary_link *link, bool *good) {
    json_t *object = json_object();
    put_value(object, "from", json_of_whole(link->from), good);
    put_value(object, "to", json_of_whole(link->to), good);
    put_value(object, "bytes", json_of_whole(link->bytes), good);
    put_value(object, "busy_s", json_of_real(link->busy_s), good);
    put_value(object, "utilisation", json_of_real(link->utilisation), good);
    if (link->codec) {
        put_value(object, "codec", json_string(link->codec), good);
    }
    return object;
}

static json_t *end_of(uint32_t board) {
    return board == UINT32_MAX ? json_string("host") : json_of_whole(board);
}

static json_t *delay_of(double ms) {
    return ms > 0 ? json_of_real(ms) : json_null();
}

static json_t *wire_of(const rp_summary_wire *wire, bool *good) {
    json_t *object = json_object();
    put_value(object, "kind", json_string(wire->kind), good);
    put_value(object, "from", end_of(wire->from), good);
    put_value(object, "to", end_of(wire->to), good);
    put_value(object, "bytes", json_of_whole(wire->bytes), good);
    put_value(object, "rate_mbit", json_of_real(wire->rate_mbit), good);
    put_value(object, "busy_s", json_of_real(wire->busy_s), good);
    put_value(object, "utilisation", json_of_real(wire->utilisation), good);
    put_value(object, "delay_p50_ms", delay_of(wire->delay_ms[0]), good);
    put_value(object, "delay_p95_ms", delay_of(wire->delay_ms[1]), good);
    put_value(object, "resent", json_of_whole(wire->resent), good);
    put_value(object, "resets", json_of_whole(wire->resets), good);
    if (wire->codec) {
        put_value(object, "codec", json_string(wire->codec), good);
    }
    if (isfinite(wire->l2_error)) {
        put_value(object, "l2_error", json_of_real(wire->l2_error), good);
    }
    return object;
}

static json_t *recovery_of(const rp_summary_recovery *recovery, bool *good) {
    json_t *object = json_object();
    put_value(object, "board", json_of_whole(recovery->board), good);
    put_value(object, "detect_s", json_of_real(recovery->detect_s), good);
    put_value(object, "replan_s", json_of_real(recovery->replan_s), good);
    put_value(object, "restore_s", json_of_real(recovery->restore_s), good);
    put_value(object, "replay_microbatches", json_of_whole(recovery->replay_microbatches), good);
    return object;
}

static void put_score(const rp_summary *s, const char *key, const rp_summary_score *score,
                      const char *split, json_t *object, bool *good) {
    json_t *eval = json_object();
    put_value(eval, "loss", json_of_real(s->without_losses ? NAN : score->loss), good);
    if (s->classes) {
        put_value(eval, "accuracy", json_of_real(s->without_losses ? NAN : score->accuracy), good);
    }
    put_value(eval, "samples", json_of_whole(score->samples), good);
    if (split && strcmp(split, "test") != 0) {
        put_value(eval, "split", json_string(split), good);
    }
    put_value(object, key, eval, good);
}

static void put_best(const rp_summary_best *best, json_t *object, bool *good) {
    json_t *entry = json_object();
    put_value(entry, "step", json_of_whole(best->step), good);
    put_value(entry, "metric", json_string(best->metric), good);
    put_value(entry, "split", json_string(best->split), good);
    put_value(entry, "value", json_of_real(best->value), good);
    put_value(entry, "path", best->path ? json_string(best->path) : json_null(), good);
    put_value(object, "best", entry, good);
}

static void put_results(const rp_summary *s, json_t *object, bool *good) {
    json_t *train = json_object();
    put_value(train, "loss", json_of_real(s->without_losses ? NAN : s->train_loss), good);
    if (s->left_out > 0) {
        put_value(train, "left_out", json_of_whole(s->left_out), good);
    }
    put_value(object, "train", train, good);
    if (s->eval.known) {
        put_score(s, "eval", &s->eval, s->eval_split, object, good);
    }
    if (s->validation.known) {
        put_score(s, "validation", &s->validation, NULL, object, good);
    }
    if (s->best.step > 0) {
        put_best(&s->best, object, good);
    }
    put_value(object, "samples_per_s", json_of_real(s->samples_per_s), good);
}

static void put_prediction(const rp_summary_prediction *prediction, json_t *object, bool *good) {
    json_t *entry = json_object();
    json_t *ops = json_array();
    for (uint32_t i = 0; i < prediction->op_count; i++) {
        const rp_summary_op *op = &prediction->op[i];
        json_t *row = json_object();
        put_value(row, "stage", json_of_whole(op->stage), good);
        put_value(row, "kind", json_string(op->kind), good);
        put_value(row, "count", json_of_whole(op->count), good);
        put_value(row, "predicted_s", json_of_real(op->predicted_s), good);
        put_value(row, "measured_s", json_of_real(op->measured_s), good);
        *good = json_array_append_new(ops, row) == 0 && *good;
    }
    put_value(entry, "step_s", json_of_real(prediction->step_s), good);
    put_value(entry, "measured_step_s", json_of_real(prediction->measured_step_s), good);
    put_value(entry, "limits", json_string(prediction->limits), good);
    put_value(entry, "op", ops, good);
    put_value(entry, "cuts", json_of_whole(prediction->cuts), good);
    put_value(object, "prediction", entry, good);
}

static void put_ring(const rp_summary *s, json_t *object, bool *good) {
    json_t *stages = json_array();
    json_t *links = json_array();
    json_t *wires = json_array();
    json_t *recoveries = json_array();
    json_t *ledger = json_object();
    for (uint32_t i = 0; i < s->stage_count; i++) {
        *good = json_array_append_new(stages, stage_of(&s->stage[i], i, good)) == 0 && *good;
    }
    for (uint32_t i = 0; i < s->link_count; i++) {
        *good = json_array_append_new(links, link_of(&s->link[i], good)) == 0 && *good;
    }
    for (uint32_t i = 0; i < s->recovery_count; i++) {
        *good = json_array_append_new(recoveries, recovery_of(&s->recovery[i], good)) == 0 && *good;
    }
    put_value(ledger, "microbatches", json_of_whole(s->microbatches), good);
    put_value(ledger, "lost", json_of_whole(s->lost), good);
    put_value(ledger, "repeated", json_of_whole(s->repeated), good);
    if (s->ledger.known) {
        char digest[24];
        (void)snprintf(digest, sizeof digest, "%016" PRIx64, s->ledger.digest);
        put_value(ledger, "samples", json_of_whole(s->ledger.samples), good);
        put_value(ledger, "digest", json_string(digest), good);
    }
    put_value(object, "stage", stages, good);
    for (uint32_t i = 0; i < s->wire_count; i++) {
        *good = json_array_append_new(wires, wire_of(&s->wire[i], good)) == 0 && *good;
    }
    put_value(object, "link", links, good);
    put_value(object, "wire", wires, good);
    put_value(object, "bubble", json_of_real(s->bubble), good);
    put_value(object, "ledger", ledger, good);
    if (s->verify.known) {
        json_t *verify = json_object();
        put_value(verify, "microbatches", json_of_whole(s->verify.microbatches), good);
        put_value(verify, "stages", json_of_whole(s->verify.stages), good);
        put_value(verify, "wrong", json_of_whole(s->verify.wrong), good);
        put_value(object, "verify", verify, good);
    }
    if (s->prediction.step_s > 0) {
        put_prediction(&s->prediction, object, good);
    }
    put_value(object, "recovery", recoveries, good);
    put_value(object, "boards_left", json_of_whole(s->boards_left), good);
    put_value(object, "boards_joined", json_of_whole(s->boards_joined), good);
}

static rp_err make_object(const rp_summary *s, json_t **out) {
    json_t *object = json_object();
    bool good = object != NULL;
    put_value(object, "version", json_of_whole(1), &good);
    put_value(object, "status", json_string(s->status), &good);
    if (s->note && s->note[0]) {
        put_value(object, "note", json_string(s->note), &good);
    }
    put_value(object, "model", json_string(s->model), &good);
    put_value(object, "schedule", json_string(s->schedule), &good);
    if (s->executor) {
        put_value(object, "executor", json_string(s->executor), &good);
    }
    put_value(object, "stages", json_of_whole(s->stages), &good);
    if (s->boards > 0 && s->boards != s->stages) {
        put_value(object, "boards", json_of_whole(s->boards), &good);
    }
    put_value(object, "epochs", json_of_whole(s->epochs), &good);
    put_value(object, "steps", json_of_whole(s->steps), &good);
    put_value(object, "samples", json_of_whole(s->samples), &good);
    put_value(object, "seconds", json_of_real(s->seconds), &good);
    put_results(s, object, &good);
    put_ring(s, object, &good);
    if (!good) {
        json_decref(object);
        return rp_fail(RP_ERR_FORMAT, "the summary can not be made: is every name UTF-8?");
    }
    *out = object;
    return RP_OK;
}

static bool dump_json(const json_t *object, FILE *file, size_t flags) {
    return json_dumpf(object, file, flags | JSON_REAL_PRECISION(DIGITS)) == 0 &&
           putc('\n', file) != EOF && fflush(file) == 0;
}

rp_err rp_summary_print(const rp_summary *summary, FILE *file) {
    json_t *object = NULL;
    rp_err err = make_object(summary, &object);
    if (err != RP_OK) {
        return err;
    }
    return rp_json_print(object, JSON_REAL_PRECISION(DIGITS), file);
}

static rp_err replace_file(const json_t *object, const char *path) {
    FILE *file = rp_replace_begin(path);
    return rp_replace_end(file, path, file && dump_json(object, file, JSON_INDENT(1)));
}

rp_err rp_summary_write(const rp_summary *summary, const char *path) {
    json_t *object = NULL;
    rp_err err = make_object(summary, &object);
    if (err == RP_OK) {
        err = replace_file(object, path);
        json_decref(object);
    }
    return err;
}
