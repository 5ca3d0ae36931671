/* The log of a run of lanes (log.jsonl), and its progress for the user. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_values.h"
#include "base/log.h"
#include "base/printable.h"
#include "lanes/lanes_own.h"

static const int64_t SHOW_EVERY_NS = 10 * RP_NS_PER_S; /* if progress goes to no terminal */

double rp_lanes_seconds(const rp_lanes *lanes) {
    return lanes->seconds + (double)(lanes->now_ns - lanes->start_ns) * 1e-9;
}

uint64_t rp_lanes_samples(const rp_lanes *lanes) {
    uint64_t samples = 0;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        samples += lanes->lane[k].samples;
    }
    return samples;
}

uint64_t rp_lanes_at(const rp_lanes *lanes) {
    uint64_t step = 0;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        step = lanes->lane[k].averaged > step ? lanes->lane[k].averaged : step;
    }
    return step;
}

double rp_lanes_speed(const rp_lanes *lanes) {
    int64_t first_ns = INT64_MAX;
    uint64_t first = 0;
    for (uint32_t i = 0; i < RP_LANES_SPEEDS; i++) {
        if (lanes->speed[i].at_ns > 0 && lanes->speed[i].at_ns < first_ns) {
            first_ns = lanes->speed[i].at_ns;
            first = lanes->speed[i].samples;
        }
    }
    return first_ns < lanes->now_ns ? (double)(rp_lanes_samples(lanes) - first) /
                                          ((double)(lanes->now_ns - first_ns) * 1e-9)
                                    : (double)NAN;
}

const char *rp_lanes_loss_text(double loss, char text[RP_LANES_LOSS]) {
    (void)snprintf(text, RP_LANES_LOSS, isfinite(loss) ? "%.4f" : "not finite", loss);
    return text;
}

/* On a full disk whole lines are lost, which is reported once. */
static rp_err put_line(rp_lanes *lanes, json_t *object) {
    struct stat before = {0};
    const bool known = fstat(fileno(lanes->log), &before) == 0;
    const bool good = object &&
                      json_dumpf(object, lanes->log, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 &&
                      fputc('\n', lanes->log) != EOF && fflush(lanes->log) == 0;
    json_decref(object);
    if (!good && !lanes->log_failed) {
        rp_log_warn("%s: could not be written; the run goes on without", lanes->log_path);
        lanes->log_failed = true;
    }
    if (!good && known) {
        clearerr(lanes->log);
        (void)!ftruncate(fileno(lanes->log), before.st_size);
    }
    return RP_OK;
}

rp_err rp_lanes_log_event(rp_lanes *lanes, const rp_run_event *event) {
    char text[RP_WORDS_BYTES];
    rp_words_write(event, text, sizeof text);
    json_t *object =
        json_pack("{s:s, s:I, s:s, s:f}", "event", rp_event_rows[event->kind].event, "step",
                  (json_int_t)rp_lanes_at(lanes), "text", text, "time_s", rp_lanes_seconds(lanes));
    if (object) {
        rp_words_put_facts(event, object);
    }
    if (lanes->options.progress) {
        rp_print(lanes->options.progress, "%s\n", text);
    }
    return put_line(lanes, object);
}

static void show_round(rp_lanes *lanes, uint32_t members) {
    FILE *file = lanes->options.progress;
    const bool seen = file && isatty(fileno(file));
    const double speed = rp_lanes_speed(lanes);
    char loss[RP_LANES_LOSS];
    char text[160];
    if (!file || (!seen && lanes->shown_ns > 0 && lanes->last_steps == 0 &&
                  lanes->now_ns - lanes->shown_ns < SHOW_EVERY_NS)) {
        return;
    }
    lanes->shown_ns = lanes->now_ns;
    int used = snprintf(text, sizeof text,
                        "round %" PRIu64 "  step %" PRIu64 "/%" PRIu64 "  %u of %u lanes  loss %s",
                        lanes->round, rp_lanes_at(lanes), lanes->steps, members, lanes->keys.count,
                        rp_lanes_loss_text(lanes->loss, loss));
    if (isfinite(speed)) {
        (void)snprintf(text + used, sizeof text - (size_t)used, "  %.0f samples/s", speed);
    }
    (void)fprintf(file, seen ? "\r\033[K%s" : "%s\n", text);
    if (seen && lanes->last_steps > 0) {
        (void)fputc('\n', file);
    }
    (void)fflush(file);
}

rp_err rp_lanes_log_round(rp_lanes *lanes, const double *alpha, const uint32_t *lag) {
    json_t *members = json_array();
    json_t *lags = json_array();
    json_t *alphas = json_array();
    const uint64_t step = rp_lanes_at(lanes);
    uint32_t count = 0;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        if (alpha[k] > 0) {
            (void)!json_array_append_new(members, json_integer(k));
            (void)!json_array_append_new(lags, json_integer(lag[k]));
            (void)!json_array_append_new(alphas, json_real(alpha[k]));
            count++;
        }
    }
    show_round(lanes, count);
    return put_line(
        lanes, json_pack("{s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:s, s:f}", "step",
                         (json_int_t)step, "epoch", (json_int_t)((step - 1) / lanes->epoch_steps),
                         "loss", rp_json_of_real(lanes->loss), "samples_per_s",
                         rp_json_of_real(rp_lanes_speed(lanes)), "round", (json_int_t)lanes->round,
                         "lanes", members, "lags", lags, "alphas", alphas, "digest", lanes->digest,
                         "time_s", rp_lanes_seconds(lanes)));
}
