#include "record/summary.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

enum { DIGITS = 10 };

/* JSON has no NaN. */
static json_t *real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *whole(uint64_t value) {
    return json_integer((json_int_t)value);
}

/* Sets key after key; `*good` turns false when one can not be set (a text that is not UTF-8). */
static void put(json_t *object, const char *key, json_t *value, bool *good) {
    *good = json_object_set_new(object, key, value) == 0 && *good;
}

static json_t *stage_of(const rp_summary_stage *stage, bool *good) {
    json_t *object = json_object();
    json_t *layers = json_array();
    for (uint32_t i = 0; i < stage->layer_count; i++) {
        *good = json_array_append_new(layers, json_string(stage->layers[i])) == 0 && *good;
    }
    put(object, "board", json_string(stage->board), good);
    put(object, "layers", layers, good);
    put(object, "busy_s", real(stage->busy_s), good);
    put(object, "idle_s", real(stage->idle_s), good);
    put(object, "weight_bytes", whole(stage->weight_bytes), good);
    put(object, "device_bytes_max", whole(stage->device_bytes_max), good);
    put(object, "weight_versions_max", whole(stage->weight_versions_max), good);
    put(object, "probe_copies", whole(stage->probe_copies), good);
    put(object, "in_flight_max", whole(stage->in_flight_max), good);
    put(object, "gap_max", whole(stage->gap_max), good);
    return object;
}

static json_t *link_of(const rp_summary_link *link, bool *good) {
    json_t *object = json_object();
    put(object, "from", whole(link->from), good);
    put(object, "to", whole(link->to), good);
    put(object, "bytes", whole(link->bytes), good);
    put(object, "busy_s", real(link->busy_s), good);
    put(object, "utilisation", real(link->utilisation), good);
    return object;
}

static json_t *recovery_of(const rp_summary_recovery *recovery, bool *good) {
    json_t *object = json_object();
    put(object, "board", whole(recovery->board), good);
    put(object, "detect_s", real(recovery->detect_s), good);
    put(object, "replan_s", real(recovery->replan_s), good);
    put(object, "restore_s", real(recovery->restore_s), good);
    put(object, "replay_microbatches", whole(recovery->replay_microbatches), good);
    return object;
}

static void put_results(const rp_summary *s, json_t *object, bool *good) {
    json_t *train = json_object();
    put(train, "loss", real(s->train_loss), good);
    put(object, "train", train, good);
    if (s->evaluated) {
        json_t *eval = json_object();
        put(eval, "loss", real(s->eval_loss), good);
        if (s->classes) {
            put(eval, "accuracy", real(s->eval_accuracy), good);
        }
        put(eval, "samples", whole(s->eval_samples), good);
        put(object, "eval", eval, good);
    }
    put(object, "samples_per_s", real(s->samples_per_s), good);
}

static void put_ring(const rp_summary *s, json_t *object, bool *good) {
    json_t *stages = json_array();
    json_t *links = json_array();
    json_t *recoveries = json_array();
    json_t *ledger = json_object();
    for (uint32_t i = 0; i < s->stage_count; i++) {
        *good = json_array_append_new(stages, stage_of(&s->stage[i], good)) == 0 && *good;
    }
    for (uint32_t i = 0; i < s->link_count; i++) {
        *good = json_array_append_new(links, link_of(&s->link[i], good)) == 0 && *good;
    }
    for (uint32_t i = 0; i < s->recovery_count; i++) {
        *good = json_array_append_new(recoveries, recovery_of(&s->recovery[i], good)) == 0 && *good;
    }
    put(ledger, "microbatches", whole(s->microbatches), good);
    put(ledger, "lost", whole(s->lost), good);
    put(ledger, "repeated", whole(s->repeated), good);
    put(object, "stage", stages, good);
    put(object, "link", links, good);
    put(object, "bubble", real(s->bubble), good);
    put(object, "ledger", ledger, good);
    put(object, "recovery", recoveries, good);
}

static rp_err make_object(const rp_summary *s, json_t **out) {
    json_t *object = json_object();
    bool good = object != NULL;
    put(object, "version", whole(1), &good);
    put(object, "status", json_string(s->status), &good);
    if (s->note && s->note[0]) {
        put(object, "note", json_string(s->note), &good);
    }
    put(object, "model", json_string(s->model), &good);
    put(object, "schedule", json_string(s->schedule), &good);
    put(object, "stages", whole(s->stages), &good);
    put(object, "epochs", whole(s->epochs), &good);
    put(object, "steps", whole(s->steps), &good);
    put(object, "samples", whole(s->samples), &good);
    put(object, "seconds", real(s->seconds), &good);
    put_results(s, object, &good);
    put_ring(s, object, &good);
    if (!good) {
        json_decref(object);
        return rp_fail(RP_ERR_FORMAT, "the summary can not be made: is every name UTF-8?");
    }
    *out = object;
    return RP_OK;
}

static bool dump(const json_t *object, FILE *file, size_t flags) {
    return json_dumpf(object, file, flags | JSON_REAL_PRECISION(DIGITS)) == 0 &&
           putc('\n', file) != EOF && fflush(file) == 0;
}

rp_err rp_summary_print(const rp_summary *summary, FILE *file) {
    json_t *object = NULL;
    rp_err err = make_object(summary, &object);
    if (err != RP_OK) {
        return err;
    }
    const bool good = dump(object, file, 0);
    json_decref(object);
    return good ? RP_OK : rp_fail(RP_ERR_IO, "the summary can not be written: %s", strerror(errno));
}

static rp_err replace_file(const json_t *object, const char *path) {
    char temporary[4096];
    const int length = snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return rp_fail(RP_ERR_USAGE, "%s: the name is too long", path);
    }
    FILE *file = fopen(temporary, "we");
    bool good = file != NULL;
    good = good && dump(object, file, JSON_INDENT(1)) && fsync(fileno(file)) == 0;
    if (file) {
        good = fclose(file) == 0 && good;
    }
    if (!good || rename(temporary, path) != 0) {
        rp_err err = rp_fail(RP_ERR_IO, "%s: can not be written: %s", path, strerror(errno));
        (void)unlink(temporary);
        return err;
    }
    return RP_OK;
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
