/* summary.json of a run of lanes: sums over the lanes' summaries, and the score of the centre. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_print.h"
#include "base/json_values.h"
#include "base/replace.h"
#include "lanes/lanes_own.h"

/* Copies the entries of a list of a lane's summary, with the lane's number added, because boards
 * count from 0 in each lane. */
static void take_list(const json_t *from, const char *key, uint32_t lane, json_t *to) {
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(from, key), i, entry) {
        (void)!json_object_set_new(entry, "lane", json_integer(lane));
        (void)!json_array_append(to, entry);
    }
}

static void add_counts(const json_t *from, json_t *to) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)from, key, value) {
        if (json_is_integer(value)) {
            const json_int_t sum = json_integer_value(json_object_get(to, key));
            (void)!json_object_set_new(to, key, json_integer(sum + json_integer_value(value)));
        }
    }
}

static json_t *part_of(const rp_lane_child *lane, const json_t *summary) {
    const char *status = json_string_value(json_object_get(summary, "status"));
    return json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I}", "lane", (json_int_t)lane->index,
                     "status", status ? status : "failed", "steps", (json_int_t)lane->step,
                     "samples", (json_int_t)lane->samples, "rounds", (json_int_t)lane->rounds,
                     "late", (json_int_t)lane->late, "restarts", (json_int_t)lane->restarts);
}

static void put_lanes(const rp_lanes *lanes, json_t *out) {
    static const char *const lists[] = {"stage", "link", "wire", "recovery"};
    json_t *list[4] = {json_array(), json_array(), json_array(), json_array()};
    json_t *parts = json_array();
    json_t *ledger = json_pack("{s:i, s:i, s:i}", "microbatches", 0, "lost", 0, "repeated", 0);
    json_t *moves = json_pack("{s:i, s:i}", "boards_left", 0, "boards_joined", 0);
    double bubble = 0;
    uint32_t told = 0; /* number of lanes that know theirs */
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        char path[RP_LANE_PATH_BYTES + 16];
        (void)snprintf(path, sizeof path, "%s/summary.json", lanes->lane[k].folder);
        json_t *summary = json_load_file(path, 0, NULL);
        for (size_t i = 0; i < 4; i++) {
            take_list(summary, lists[i], k, list[i]);
        }
        add_counts(json_object_get(summary, "ledger"), ledger);
        json_t *own =
            json_pack("{s:O*, s:O*}", "boards_left", json_object_get(summary, "boards_left"),
                      "boards_joined", json_object_get(summary, "boards_joined"));
        add_counts(own, moves);
        json_decref(own);
        const json_t *own_bubble = json_object_get(summary, "bubble");
        bubble += json_number_value(own_bubble);
        told += json_is_number(own_bubble);
        (void)!json_array_append_new(parts, part_of(&lanes->lane[k], summary));
        json_decref(summary);
    }
    (void)!json_object_set_new(out, "boards", json_integer((json_int_t)json_array_size(list[0])));
    for (size_t i = 0; i < 4; i++) {
        (void)!json_object_set_new(out, lists[i], list[i]);
    }
    (void)!json_object_set_new(out, "bubble", told > 0 ? json_real(bubble / told) : json_null());
    (void)!json_object_set_new(out, "ledger", ledger);
    (void)!json_object_update_missing(out, moves);
    (void)!json_object_set_new(out, "lanes", parts);
    json_decref(moves);
}

static json_t *make_summary(const rp_lanes *lanes, const char *status) {
    json_t *scores = json_load_file(lanes->scores, 0, NULL);
    json_t *eval = json_object_get(scores, "eval");
    const double seconds = rp_lanes_seconds(lanes);
    json_t *out = json_pack(
        "{s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:{s:o}, s:o}", "version", 1, "status",
        status, "model", lanes->model, "schedule", lanes->schedule, "stages",
        (json_int_t)lanes->stages, "epochs", (json_int_t)lanes->epochs, "steps",
        (json_int_t)rp_lanes_at(lanes), "samples", (json_int_t)rp_lanes_samples(lanes), "seconds",
        seconds, "train", "loss", rp_json_of_real(lanes->loss), "samples_per_s",
        rp_json_of_real(seconds > 0 ? (double)rp_lanes_samples(lanes) / seconds : (double)NAN));
    if (out && lanes->note[0]) {
        (void)!json_object_set_new(out, "note", json_string(lanes->note));
    }
    if (out && eval) {
        (void)!json_object_set(out, "eval", eval);
    }
    if (out) {
        put_lanes(lanes, out);
        (void)!json_object_set_new(
            out, "center",
            json_pack("{s:I, s:s}", "rounds", (json_int_t)lanes->round, "digest", lanes->digest));
    }
    json_decref(scores);
    return out;
}

static void print_text(const rp_lanes *lanes, const json_t *summary, FILE *file) {
    const json_t *eval = json_object_get(summary, "eval");
    const json_t *accuracy = json_object_get(eval, "accuracy");
    char text[RP_LANES_LOSS];
    (void)fprintf(file, "%s: %u lanes, %llu rounds, %llu samples in %.1f s, %.0f samples/s\n",
                  json_string_value(json_object_get(summary, "status")), lanes->keys.count,
                  (unsigned long long)lanes->round, (unsigned long long)rp_lanes_samples(lanes),
                  rp_lanes_seconds(lanes),
                  json_number_value(json_object_get(summary, "samples_per_s")));
    if (eval) {
        const json_t *loss = json_object_get(eval, "loss");
        (void)fprintf(
            file, "test loss %s",
            rp_lanes_loss_text(json_is_number(loss) ? json_number_value(loss) : (double)NAN, text));
    }
    if (accuracy) {
        (void)fprintf(file, ", accuracy %.2f %%", 100 * json_number_value(accuracy));
    }
    (void)fprintf(file, "%s%s\n", eval ? "\n" : "", lanes->folder);
}

rp_err rp_lanes_summarise(rp_lanes *lanes, const char *status) {
    json_t *summary = make_summary(lanes, status);
    FILE *file = summary ? rp_replace_begin(lanes->summary) : NULL;
    const size_t flags = JSON_REAL_PRECISION(10);
    const bool good =
        file && json_dumpf(summary, file, flags | JSON_INDENT(1)) == 0 && fputc('\n', file) != EOF;
    const rp_err err = rp_replace_end(file, lanes->summary, good);
    FILE *result = lanes->options.result;
    if (summary && result && lanes->options.json) {
        (void)!rp_json_print(json_incref(summary), flags, result);
    } else if (summary && result) {
        print_text(lanes, summary, result);
    }
    json_decref(summary);
    (void)unlink(lanes->scores);
    return err;
}
