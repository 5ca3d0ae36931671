/* summary.json of a federated run. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_print.h"
#include "base/json_values.h"
#include "base/replace.h"
#include "federation/federation_own.h"
#include "federation/spread.h"

enum { MISSED_MAX = 10 };

static json_t *json_of_site(const rp_site *site, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "site", json_string(site->name), good);
    rp_json_put(object, "rounds", rp_json_of_whole(site->rounds), good);
    rp_json_put(object, "late", rp_json_of_whole(site->late), good);
    rp_json_put(object, "failed", rp_json_of_whole(site->failed), good);
    rp_json_put(object, "samples", rp_json_of_whole(site->samples), good);
    rp_json_put(object, "loss", rp_json_of_real(site->loss), good);
    rp_json_put(object, "seconds", rp_json_of_real(site->seconds), good);
    rp_json_put(object, "up_bytes", rp_json_of_whole(site->up_bytes), good);
    rp_json_put(object, "down_bytes", rp_json_of_whole(site->down_bytes), good);
    return object;
}

/* Adds how the sites' accuracies differ, each of the newest centre that the site has scored on its
 * own validation part. */
static rp_err put_spread(const rp_federation *f, json_t *out, bool *good) {
    rp_arena arena;
    double *value;
    rp_err err;
    rp_arena_init(&arena, "spread", 0);
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)f->sites + 1, &value));
    for (uint32_t i = 0; i < f->sites; i++) {
        value[i] = f->site[i].accuracy;
    }
    const rp_spread spread = rp_spread_of(value, f->sites);
    if (spread.count > 0) {
        rp_json_put(out, "site_accuracy",
                    json_pack("{s:I, s:f, s:f, s:f}", "sites", (json_int_t)spread.count, "mean",
                              spread.mean, "worst_decile", spread.worst_decile, "deviation",
                              spread.deviation),
                    good);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

static void put_sites(const rp_federation *f, json_t *out, bool *good) {
    json_t *list = json_array();
    uint64_t up = 0;
    uint64_t down = 0;
    for (uint32_t i = 0; i < f->sites; i++) {
        up += f->site[i].up_bytes;
        down += f->site[i].down_bytes;
        *good = json_array_append_new(list, json_of_site(&f->site[i], good)) == 0 && *good;
    }
    rp_json_put(out, "bytes",
                json_pack("{s:I, s:I}", "up", (json_int_t)up, "down", (json_int_t)down), good);
    rp_json_put(out, "sites", list, good);
}

static json_t *make_summary(const rp_federation *f, const char *status, bool *good) {
    const double seconds = rp_federation_seconds(f);
    const double samples = (double)rp_federation_samples(f);
    json_t *out = json_object();
    rp_json_put(out, "version", json_integer(1), good);
    rp_json_put(out, "status", json_string(status), good);
    rp_json_put(out, "model", json_string(f->model_name), good);
    rp_json_put(out, "schedule", json_string(f->schedule), good);
    rp_json_put(out, "stages", json_integer(f->stages), good);
    rp_json_put(out, "epochs", rp_json_of_whole(f->keys.rounds), good);
    rp_json_put(out, "steps", rp_json_of_whole(f->round), good);
    rp_json_put(out, "samples", rp_json_of_whole(rp_federation_samples(f)), good);
    rp_json_put(out, "seconds", rp_json_of_real(seconds), good);
    rp_json_put(out, "train", json_pack("{s:o}", "loss", rp_json_of_real(f->loss)), good);
    rp_json_put(out, "samples_per_s", rp_json_of_real(samples / seconds), good);
    if (f->note[0]) {
        rp_json_put(out, "note", json_string(f->note), good);
    }
    if (f->score && f->scored == f->round) {
        rp_json_put(out, "eval", json_incref(f->score), good);
    }
    rp_json_put(out, "rule", json_string(rp_rule_name(f->keys.rule.kind)), good);
    rp_json_put(out, "split", json_string(f->split_digest), good);
    rp_json_put(out, "center",
                json_pack("{s:I, s:s}", "rounds", (json_int_t)f->round, "digest", f->digest), good);
    put_sites(f, out, good);
    *good = put_spread(f, out, good) == RP_OK && *good;
    return out;
}

/* Sites that missed rounds, as many as the line has room for. */
static void print_missed(const rp_federation *f, FILE *file) {
    uint32_t named = 0;
    for (uint32_t i = 0; i < f->sites; i++) {
        const rp_site *site = &f->site[i];
        if (site->late + site->failed == 0) {
            continue;
        }
        if (named == MISSED_MAX) {
            (void)fputs(", ...", file);
            break;
        }
        (void)fprintf(file, "%s%s %llu late, %llu failed", named == 0 ? "missed rounds: " : "; ",
                      site->name, (unsigned long long)site->late, (unsigned long long)site->failed);
        named++;
    }
    (void)fputs(named > 0 ? "\n" : "", file);
}

static void print_text(const rp_federation *f, const json_t *summary, FILE *file) {
    const json_t *eval = json_object_get(summary, "eval");
    const json_t *loss = json_object_get(eval, "loss");
    const json_t *accuracy = json_object_get(eval, "accuracy");
    const json_t *bytes = json_object_get(summary, "bytes");
    (void)fprintf(file,
                  "%s: %u sites, %llu rounds, %llu samples in %.1f s, %.1f MB up, %.1f MB down\n",
                  json_string_value(json_object_get(summary, "status")), f->sites,
                  (unsigned long long)f->round, (unsigned long long)rp_federation_samples(f),
                  rp_federation_seconds(f), json_number_value(json_object_get(bytes, "up")) / 1e6,
                  json_number_value(json_object_get(bytes, "down")) / 1e6);
    if (json_is_number(loss)) {
        (void)fprintf(file, "test loss %.4f", json_number_value(loss));
    } else if (eval) {
        (void)fputs("test loss not finite", file);
    }
    if (accuracy) {
        (void)fprintf(file, ", accuracy %.2f %%", 100 * json_number_value(accuracy));
    }
    (void)fputs(eval ? "\n" : "", file);
    print_missed(f, file);
    if (!f->options.temporary) {
        (void)fprintf(file, "%s\n", f->folder);
    }
}

rp_err rp_federation_summarise(rp_federation *f, const char *status) {
    const size_t flags = JSON_REAL_PRECISION(10);
    bool good = true;
    json_t *summary = make_summary(f, status, &good);
    FILE *file = good ? rp_replace_begin(f->summary) : NULL;
    FILE *result = f->options.result;
    const bool whole =
        file && json_dumpf(summary, file, flags | JSON_INDENT(1)) == 0 && fputc('\n', file) != EOF;
    const rp_err err = rp_replace_end(file, f->summary, whole);
    if (good && result && f->options.json) {
        (void)!rp_json_print(json_incref(summary), flags, result);
    } else if (good && result) {
        print_text(f, summary, result);
    }
    json_decref(summary);
    (void)unlink(f->scores);
    return err;
}
