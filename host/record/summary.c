#include "record/summary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json_print.h"
#include "base/json_values.h"
#include "base/replace.h"

enum { DIGITS = 10 };

/* Omits `stages` if board i holds only stage i. */
static json_t *stage_of(const rp_summary_stage *stage, uint32_t index, bool *good) {
    json_t *object = json_object();
    json_t *layers = json_array();
    for (uint32_t i = 0; i < stage->layer_count; i++) {
        *good = json_array_append_new(layers, json_string(stage->layers[i])) == 0 && *good;
    }
    rp_json_put(object, "board", json_string(stage->board), good);
    rp_json_put(object, "layers", layers, good);
    if (stage->stage_count > 1 || (stage->stage_count == 1 && stage->stages[0] != index)) {
        json_t *stages = json_array();
        for (uint32_t i = 0; i < stage->stage_count; i++) {
            *good = json_array_append_new(stages, rp_json_of_whole(stage->stages[i])) == 0 && *good;
        }
        rp_json_put(object, "stages", stages, good);
    }
    if (stage->role) {
        rp_json_put(object, "role", json_string(stage->role), good);
    }
    rp_json_put(object, "busy_s", rp_json_of_real(stage->busy_s), good);
    rp_json_put(object, "idle_s", rp_json_of_real(stage->idle_s), good);
    rp_json_put(object, "weight_bytes", rp_json_of_whole(stage->weight_bytes), good);
    rp_json_put(object, "device_bytes_max", rp_json_of_whole(stage->device_bytes_max), good);
    rp_json_put(object, "flash_bytes", rp_json_of_whole(stage->flash_bytes), good);
    if (stage->energy_j > 0) {
        rp_json_put(object, "energy_j", rp_json_of_real(stage->energy_j), good);
    }
    if (stage->energy_with > 0) {
        rp_json_put(object, "energy_with", rp_json_of_whole(stage->energy_with - 1), good);
    }
    rp_json_put(object, "weight_versions_max", rp_json_of_whole(stage->weight_versions_max), good);
    rp_json_put(object, "probe_copies", rp_json_of_whole(stage->probe_copies), good);
    rp_json_put(object, "in_flight_max", rp_json_of_whole(stage->in_flight_max), good);
    rp_json_put(object, "gap_max", rp_json_of_whole(stage->gap_max), good);
    return object;
}

static json_t *link_of(const rp_summary_link *link, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "from", rp_json_of_whole(link->from), good);
    rp_json_put(object, "to", rp_json_of_whole(link->to), good);
    rp_json_put(object, "bytes", rp_json_of_whole(link->bytes), good);
    rp_json_put(object, "busy_s", rp_json_of_real(link->busy_s), good);
    rp_json_put(object, "utilisation", rp_json_of_real(link->utilisation), good);
    if (link->codec) {
        rp_json_put(object, "codec", json_string(link->codec), good);
    }
    return object;
}

static json_t *end_of(uint32_t board) {
    return board == UINT32_MAX ? json_string("host") : rp_json_of_whole(board);
}

static json_t *delay_of(double ms) {
    return ms > 0 ? rp_json_of_real(ms) : json_null();
}

static json_t *wire_of(const rp_summary_wire *wire, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "kind", json_string(wire->kind), good);
    rp_json_put(object, "from", end_of(wire->from), good);
    rp_json_put(object, "to", end_of(wire->to), good);
    rp_json_put(object, "bytes", rp_json_of_whole(wire->bytes), good);
    rp_json_put(object, "rate_mbit", rp_json_of_real(wire->rate_mbit), good);
    rp_json_put(object, "busy_s", rp_json_of_real(wire->busy_s), good);
    rp_json_put(object, "utilisation", rp_json_of_real(wire->utilisation), good);
    rp_json_put(object, "delay_p50_ms", delay_of(wire->delay_ms[0]), good);
    rp_json_put(object, "delay_p95_ms", delay_of(wire->delay_ms[1]), good);
    rp_json_put(object, "resent", rp_json_of_whole(wire->resent), good);
    rp_json_put(object, "resets", rp_json_of_whole(wire->resets), good);
    if (wire->codec) {
        rp_json_put(object, "codec", json_string(wire->codec), good);
    }
    if (isfinite(wire->l2_error)) {
        rp_json_put(object, "l2_error", rp_json_of_real(wire->l2_error), good);
    }
    return object;
}

static json_t *recovery_of(const rp_summary_recovery *recovery, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "board", rp_json_of_whole(recovery->board), good);
    rp_json_put(object, "detect_s", rp_json_of_real(recovery->detect_s), good);
    rp_json_put(object, "replan_s", rp_json_of_real(recovery->replan_s), good);
    rp_json_put(object, "restore_s", rp_json_of_real(recovery->restore_s), good);
    rp_json_put(object, "replay_microbatches", rp_json_of_whole(recovery->replay_microbatches),
                good);
    return object;
}

static void put_score(const rp_summary *s, const char *key, const rp_summary_score *score,
                      const char *split, json_t *object, bool *good) {
    json_t *eval = json_object();
    rp_json_put(eval, "loss", rp_json_of_real(s->without_losses ? NAN : score->loss), good);
    if (s->classes) {
        rp_json_put(eval, "accuracy", rp_json_of_real(s->without_losses ? NAN : score->accuracy),
                    good);
    }
    if (s->targets == RP_TARGETS_PIXELS && isfinite(score->mean_iou) && !s->without_losses) {
        rp_json_put(eval, "mean_iou", rp_json_of_real(score->mean_iou), good);
    }
    rp_targets_put_loss(eval, s->targets, s->without_losses ? NAN : score->loss,
                        s->without_losses ? NAN : score->bits, good);
    rp_json_put(eval, "samples", rp_json_of_whole(score->samples), good);
    if (rp_targets_word(s->targets)) {
        rp_json_put(eval, rp_targets_word(s->targets), rp_json_of_whole(score->counted), good);
    }
    if (split && strcmp(split, "test") != 0) {
        rp_json_put(eval, "split", json_string(split), good);
    }
    rp_json_put(object, key, eval, good);
}

static void put_best(const rp_summary_best *best, json_t *object, bool *good) {
    json_t *entry = json_object();
    rp_json_put(entry, "step", rp_json_of_whole(best->step), good);
    rp_json_put(entry, "metric", json_string(best->metric), good);
    rp_json_put(entry, "split", json_string(best->split), good);
    rp_json_put(entry, "value", rp_json_of_real(best->value), good);
    rp_json_put(entry, "path", best->path ? json_string(best->path) : json_null(), good);
    rp_json_put(object, "best", entry, good);
}

static void put_results(const rp_summary *s, json_t *object, bool *good) {
    json_t *train = json_object();
    rp_json_put(train, "loss", rp_json_of_real(s->without_losses ? NAN : s->train_loss), good);
    rp_targets_put_loss(train, s->targets, s->without_losses ? NAN : s->train_loss,
                        s->without_losses ? NAN : s->train_bits, good);
    if (s->left_out > 0) {
        rp_json_put(train, "left_out", rp_json_of_whole(s->left_out), good);
    }
    rp_json_put(object, "train", train, good);
    if (s->eval.known) {
        put_score(s, "eval", &s->eval, s->eval_split, object, good);
    }
    if (s->validation.known) {
        put_score(s, "validation", &s->validation, NULL, object, good);
    }
    if (s->best.step > 0) {
        put_best(&s->best, object, good);
    }
    rp_json_put(object, "samples_per_s", rp_json_of_real(s->samples_per_s), good);
    if (s->energy_j_per_sample > 0) {
        rp_json_put(object, "energy_j_per_sample", rp_json_of_real(s->energy_j_per_sample), good);
    }
    if (rp_targets_are_tokens(s->targets)) {
        rp_json_put(object, "tokens_per_s", rp_json_of_real(s->tokens_per_s), good);
    }
}

static void put_prediction(const rp_summary_prediction *prediction, json_t *object, bool *good) {
    json_t *entry = json_object();
    json_t *ops = json_array();
    for (uint32_t i = 0; i < prediction->op_count; i++) {
        const rp_summary_op *op = &prediction->op[i];
        json_t *row = json_object();
        rp_json_put(row, "stage", rp_json_of_whole(op->stage), good);
        rp_json_put(row, "kind", json_string(op->kind), good);
        rp_json_put(row, "count", rp_json_of_whole(op->count), good);
        rp_json_put(row, "predicted_s", rp_json_of_real(op->predicted_s), good);
        rp_json_put(row, "measured_s", rp_json_of_real(op->measured_s), good);
        *good = json_array_append_new(ops, row) == 0 && *good;
    }
    rp_json_put(entry, "step_s", rp_json_of_real(prediction->step_s), good);
    rp_json_put(entry, "measured_step_s", rp_json_of_real(prediction->measured_step_s), good);
    rp_json_put(entry, "limits", json_string(prediction->limits), good);
    rp_json_put(entry, "op", ops, good);
    rp_json_put(entry, "cuts", rp_json_of_whole(prediction->cuts), good);
    rp_json_put(object, "prediction", entry, good);
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
    rp_json_put(ledger, "microbatches", rp_json_of_whole(s->microbatches), good);
    rp_json_put(ledger, "lost", rp_json_of_whole(s->lost), good);
    rp_json_put(ledger, "repeated", rp_json_of_whole(s->repeated), good);
    if (s->ledger.known) {
        char digest[24];
        (void)snprintf(digest, sizeof digest, "%016" PRIx64, s->ledger.digest);
        rp_json_put(ledger, "samples", rp_json_of_whole(s->ledger.samples), good);
        rp_json_put(ledger, "digest", json_string(digest), good);
    }
    rp_json_put(object, "stage", stages, good);
    for (uint32_t i = 0; i < s->wire_count; i++) {
        *good = json_array_append_new(wires, wire_of(&s->wire[i], good)) == 0 && *good;
    }
    rp_json_put(object, "link", links, good);
    rp_json_put(object, "wire", wires, good);
    rp_json_put(object, "bubble", rp_json_of_real(s->bubble), good);
    rp_json_put(object, "ledger", ledger, good);
    if (s->verify.known) {
        json_t *verify = json_object();
        rp_json_put(verify, "microbatches", rp_json_of_whole(s->verify.microbatches), good);
        rp_json_put(verify, "stages", rp_json_of_whole(s->verify.stages), good);
        rp_json_put(verify, "wrong", rp_json_of_whole(s->verify.wrong), good);
        rp_json_put(object, "verify", verify, good);
    }
    if (s->prediction.step_s > 0) {
        put_prediction(&s->prediction, object, good);
    }
    rp_json_put(object, "recovery", recoveries, good);
    rp_json_put(object, "boards_left", rp_json_of_whole(s->boards_left), good);
    rp_json_put(object, "boards_joined", rp_json_of_whole(s->boards_joined), good);
}

static rp_err make_object(const rp_summary *s, json_t **out) {
    json_t *object = json_object();
    bool good = object != NULL;
    rp_json_put(object, "version", rp_json_of_whole(1), &good);
    rp_json_put(object, "status", json_string(s->status), &good);
    if (s->note && s->note[0]) {
        rp_json_put(object, "note", json_string(s->note), &good);
    }
    rp_json_put(object, "model", json_string(s->model), &good);
    rp_json_put(object, "schedule", json_string(s->schedule), &good);
    if (s->executor) {
        rp_json_put(object, "executor", json_string(s->executor), &good);
    }
    rp_json_put(object, "stages", rp_json_of_whole(s->stages), &good);
    if (s->boards > 0 && s->boards != s->stages) {
        rp_json_put(object, "boards", rp_json_of_whole(s->boards), &good);
    }
    rp_json_put(object, "epochs", rp_json_of_whole(s->epochs), &good);
    rp_json_put(object, "steps", rp_json_of_whole(s->steps), &good);
    rp_json_put(object, "samples", rp_json_of_whole(s->samples), &good);
    rp_json_put(object, "seconds", rp_json_of_real(s->seconds), &good);
    put_results(s, object, &good);
    put_ring(s, object, &good);
    if (!good) {
        json_decref(object);
        return rp_fail(RP_ERR_FORMAT, "the summary cannot be made; expected all names in UTF-8");
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
