#include "runs/story.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/attributes.h"

void rp_story_time(double seconds, char out[RP_STORY_TIME_BYTES]) {
    const uint64_t s = seconds > 0 && seconds < 1e9 ? (uint64_t)(seconds + 0.5) : 0;
    if (s >= 3600) {
        (void)snprintf(out, RP_STORY_TIME_BYTES, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600,
                       s / 60 % 60, s % 60);
    } else {
        (void)snprintf(out, RP_STORY_TIME_BYTES, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
    }
}

static void add(rp_story *out, const char *format, ...) RP_PRINTF(2, 3);

static void add(rp_story *out, const char *format, ...) {
    const size_t used = strlen(out->text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out->text + used, sizeof out->text - used, format, args);
    va_end(args);
}

static double number_of(const json_t *line, const char *key) {
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void add_loss(rp_story *out, double loss) {
    if (isfinite(loss)) {
        add(out, fabs(loss) < 1000 ? "loss %.4f" : "loss %.4g", loss);
    } else {
        add(out, "loss not finite");
    }
}

/* The steps of a federated run are its rounds. */
static const char *unit_of(const json_t *line) {
    return json_object_get(line, "round") ? "round" : "step";
}

static void tell_step(const json_t *line, rp_story *out) {
    const double speed = number_of(line, "samples_per_s");
    const double sites = number_of(line, "sites");
    out->kind = RP_STORY_STEP;
    add(out, "%s %" PRIu64 "  ", unit_of(line), out->step);
    if (sites >= 0) {
        add(out, "%.0f of %.0f sites  ", sites, number_of(line, "asked"));
    } else if (json_is_integer(json_object_get(line, "epoch"))) {
        add(out, "epoch %" PRId64 "  ",
            (int64_t)json_integer_value(json_object_get(line, "epoch")) + 1);
    }
    add_loss(out, number_of(line, "loss"));
    if (speed > 0) {
        add(out, speed < 100 ? "  %.1f samples/s" : "  %.0f samples/s", speed);
    }
}

static void tell_evaluation(const json_t *line, rp_story *out) {
    const char *split = json_string_value(json_object_get(line, "split"));
    const double accuracy = number_of(line, "accuracy");
    const double mean_iou = number_of(line, "mean_iou");
    out->kind = RP_STORY_EVENT;
    add(out, "%s %" PRIu64 ": %s ", unit_of(line), out->step, split ? split : "evaluation");
    add_loss(out, number_of(line, "loss"));
    if (accuracy >= 0) {
        add(out, ", accuracy %.2f %%", 100 * accuracy);
    }
    if (mean_iou >= 0) {
        add(out, ", mean IoU %.2f %%", 100 * mean_iou);
    }
}

void rp_story_read(const char *line, size_t length, rp_story *out) {
    char time[RP_STORY_TIME_BYTES];
    *out = (rp_story){.kind = RP_STORY_NOTHING};
    json_t *root = json_loadb(line, length, 0, NULL);
    const json_t *step = json_object_get(root, "step");
    const char *event = json_string_value(json_object_get(root, "event"));
    const char *text = json_string_value(json_object_get(root, "text"));
    const double time_s = number_of(root, "time_s");
    if (json_is_integer(step) && json_integer_value(step) >= 0) {
        out->step = (uint64_t)json_integer_value(step);
        out->time_s = isfinite(time_s) ? time_s : 0;
        rp_story_time(out->time_s, time);
        add(out, "%8s  ", time);
        if (!event) {
            tell_step(root, out);
        } else if (strcmp(event, "eval") == 0) {
            tell_evaluation(root, out);
        } else if (text) {
            out->kind = RP_STORY_EVENT;
            add(out, "%s %" PRIu64 ": %s", unit_of(root), out->step, text);
        }
    }
    for (char *at = out->text; *at; at++) { /* removes control characters for a terminal */
        *at = (unsigned char)*at < ' ' || *at == 127 ? '?' : *at;
    }
    json_decref(root);
}
