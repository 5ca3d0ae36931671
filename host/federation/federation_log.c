/* The log of a federated run (log.jsonl), and its progress for the user. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_values.h"
#include "base/log.h"
#include "base/printable.h"
#include "federation/federation_own.h"
#include "runs/story.h"
#include "runs/tail.h"

static const int64_t SHOW_EVERY_NS = 10 * RP_NS_PER_S; /* if progress goes to no terminal */
enum { TAIL_BYTES = 4 << 20, LOSS_BYTES = 32 };

double rp_federation_seconds(const rp_federation *f) {
    return f->seconds + (double)(f->now_ns - f->start_ns) * 1e-9;
}

double rp_federation_left_s(const rp_federation *f) {
    return f->closed > 0 ? (double)(f->now_ns - f->start_ns) * 1e-9 / f->closed *
                               (double)(f->keys.rounds - f->round)
                         : (double)NAN;
}

uint64_t rp_federation_samples(const rp_federation *f) {
    uint64_t samples = 0;
    for (uint32_t i = 0; i < f->sites; i++) {
        samples += f->site[i].samples;
    }
    return samples;
}

uint32_t rp_federation_count(const rp_federation *f, rp_site_condition condition) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->sites; i++) {
        count += f->site[i].condition == condition;
    }
    return count;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* On a full disk whole lines are lost, which is reported once. */
static void put_line(rp_federation *f, const json_t *object) {
    struct stat before = {0};
    const bool known = fstat(fileno(f->log), &before) == 0;
    const bool good = object &&
                      json_dumpf(object, f->log, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 &&
                      fputc('\n', f->log) != EOF && fflush(f->log) == 0;
    if (!good && !f->log_failed) {
        rp_log_warn("%s: could not be written; the run goes on without", f->log_path);
        f->log_failed = true;
    }
    if (!good && known) {
        clearerr(f->log);
        (void)!ftruncate(fileno(f->log), before.st_size);
    }
}

rp_err rp_federation_open_log(rp_federation *f) {
    rp_arena arena;
    char *text;
    uint64_t end;
    int64_t changed_ns;
    rp_err err;
    rp_arena_init(&arena, "log", 0);
    RP_TRY(rp_tail_read(&arena, f->log_path, TAIL_BYTES, &text, &end, &changed_ns));
    f->log = fopen(f->log_path, "ae");
    if (!f->log || ftruncate(fileno(f->log), (off_t)end) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: %s", f->log_path, strerror(errno));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_federation_log_event(rp_federation *f, const rp_run_event *event) {
    char text[RP_WORDS_BYTES];
    rp_words_write(event, text, sizeof text);
    json_t *object =
        json_pack("{s:s, s:I, s:s, s:f}", "event", rp_event_rows[event->kind].event, "step",
                  (json_int_t)f->round, "text", text, "time_s", rp_federation_seconds(f));
    if (object) {
        rp_words_put_facts(event, object);
    }
    rp_print(f->options.progress, "%s\n", text);
    put_line(f, object);
    json_decref(object);
    return RP_OK;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static const char *status_of(const rp_site *site) {
    switch (site->condition) {
    case RP_SITE_DONE:
        return site->answer.partial ? "partial" : "finished";
    case RP_SITE_GIVEN_UP:
        return "failed";
    default:
        return "late";
    }
}

/* A line about a site. */
static json_t *json_of_site(const rp_federation *f, const rp_site *site, bool *good) {
    const rp_site_answer *answer = &site->answer;
    json_t *object = json_object();
    rp_json_put(object, "event", json_string("site"), good);
    rp_json_put(object, "step", rp_json_of_whole(f->round), good);
    rp_json_put(object, "round", rp_json_of_whole(f->round), good);
    rp_json_put(object, "site", json_string(site->name), good);
    rp_json_put(object, "status", json_string(status_of(site)), good);
    rp_json_put(object, "late", rp_json_of_whole(site->late), good);
    if (site->condition != RP_SITE_DONE) {
        return object;
    }
    rp_json_put(object, "steps", rp_json_of_whole(answer->steps), good);
    rp_json_put(object, "samples", rp_json_of_whole(answer->samples), good);
    rp_json_put(object, "held", rp_json_of_whole(answer->held), good);
    rp_json_put(object, "loss", rp_json_of_real(answer->loss), good);
    rp_json_put(object, "delta_norm", rp_json_of_real(answer->delta_norm), good);
    rp_json_put(object, "seconds", rp_json_of_real(answer->seconds), good);
    rp_json_put(object, "up_bytes", rp_json_of_whole(answer->bytes), good);
    if (f->keys.options.clip > 0) {
        rp_json_put(object, "clipped", json_boolean(answer->clipped), good);
    }
    if (isfinite(answer->before_loss)) {
        rp_json_put(object, "before_loss", json_real(answer->before_loss), good);
    }
    if (isfinite(answer->accuracy)) {
        rp_json_put(object, "before_accuracy", json_real(answer->accuracy), good);
    }
    return object;
}

static double samples_per_s(const rp_federation *f) {
    uint64_t samples = 0;
    for (uint32_t i = 0; i < f->sites; i++) {
        samples += f->site[i].condition == RP_SITE_DONE ? f->site[i].answer.samples : 0;
    }
    return f->now_ns > f->round_ns ? (double)samples / ((double)(f->now_ns - f->round_ns) * 1e-9)
                                   : (double)NAN;
}

static json_t *json_of_round(const rp_federation *f, bool *good) {
    json_t *row = json_object();
    rp_json_put(row, "step", rp_json_of_whole(f->round), good);
    rp_json_put(row, "epoch", rp_json_of_whole(f->round - 1), good);
    rp_json_put(row, "loss", rp_json_of_real(f->loss), good);
    rp_json_put(row, "samples_per_s", rp_json_of_real(samples_per_s(f)), good);
    rp_json_put(row, "round", rp_json_of_whole(f->round), good);
    rp_json_put(row, "sites", rp_json_of_whole(rp_federation_count(f, RP_SITE_DONE)), good);
    rp_json_put(row, "asked", rp_json_of_whole(f->asked), good);
    rp_json_put(row, "digest", json_string(f->digest), good);
    rp_json_put(row, "time_s", rp_json_of_real(rp_federation_seconds(f)), good);
    return row;
}

rp_err rp_federation_make_rows(rp_federation *f) {
    bool good = true;
    json_t *rows = json_array();
    for (uint32_t i = 0; i < f->sites; i++) {
        if (f->site[i].condition != RP_SITE_IDLE) {
            good = json_array_append_new(rows, json_of_site(f, &f->site[i], &good)) == 0 && good;
        }
    }
    good = json_array_append_new(rows, json_of_round(f, &good)) == 0 && good;
    json_decref(f->rows);
    f->rows = rows;
    return good ? RP_OK
                : rp_fail(RP_ERR_MEMORY, "no memory for the log of round %" PRIu64, f->round);
}

static void show_round(rp_federation *f) {
    FILE *file = f->options.progress;
    const bool seen = file && isatty(fileno(file));
    const bool last = f->round == f->keys.rounds;
    char loss[LOSS_BYTES];
    char left[RP_STORY_TIME_BYTES];
    if (!file || (!seen && !last && f->shown_ns > 0 && f->now_ns - f->shown_ns < SHOW_EVERY_NS)) {
        return;
    }
    f->shown_ns = f->now_ns;
    (void)snprintf(loss, sizeof loss, isfinite(f->loss) ? "%.4f" : "not finite", f->loss);
    (void)fprintf(file, "%sround %" PRIu64 "/%u  %u of %u sites  loss %s", seen ? "\r\033[K" : "",
                  f->round, f->keys.rounds, rp_federation_count(f, RP_SITE_DONE), f->asked, loss);
    if (!last && f->closed > 0) {
        rp_story_time(rp_federation_left_s(f), left);
        (void)fprintf(file, "  %s left", left);
    }
    (void)fputs(seen && !last ? "" : "\n", file);
    (void)fflush(file);
}

/* Looks for the lines of the newest round at the end of the log. *at: where the first of them is,
 * or the end. Returns whether they are complete: the line of the round is the last one. */
static bool find_rows(const rp_federation *f, rp_arena *arena, uint64_t *at) {
    char *text = NULL;
    uint64_t end = 0;
    int64_t changed_ns;
    bool first = true;
    bool whole = false;
    if (rp_tail_read(arena, f->log_path, TAIL_BYTES, &text, &end, &changed_ns) != RP_OK) {
        return true; /* it is left as it is */
    }
    const size_t bytes = strlen(text);
    *at = end;
    for (size_t done = 0; done < bytes;) {
        const size_t length = strcspn(text + done, "\n");
        json_t *line = json_loadb(text + done, length, 0, NULL);
        const char *event = json_string_value(json_object_get(line, "event"));
        const bool is_row = !event || strcmp(event, "site") == 0;
        if (is_row && json_integer_value(json_object_get(line, "round")) == (json_int_t)f->round) {
            *at = first ? end - bytes + done : *at;
            first = false;
            whole = whole || !event;
        }
        json_decref(line);
        done += length + 1;
    }
    return whole;
}

/* After a kill between the journal and the log, or within these lines, the resume logs them. */
void rp_federation_mend_log(rp_federation *f) {
    rp_arena arena;
    uint64_t at;
    rp_arena_init(&arena, "log", 0);
    if (f->rows && !find_rows(f, &arena, &at) && ftruncate(fileno(f->log), (off_t)at) == 0) {
        rp_federation_log_rows(f);
    }
    rp_arena_finish(&arena);
}

void rp_federation_log_rows(rp_federation *f) {
    size_t i;
    const json_t *row;
    json_array_foreach(f->rows, i, row) {
        put_line(f, row);
    }
    if (f->closed > 0) {
        show_round(f);
    }
}

void rp_federation_log_score(rp_federation *f) {
    json_t *line = json_pack("{s:s, s:I, s:I}", "event", "eval", "step", (json_int_t)f->scored,
                             "round", (json_int_t)f->scored);
    if (line) {
        (void)json_object_update_missing(line, f->score);
        (void)json_object_set_new(line, "time_s", rp_json_of_real(rp_federation_seconds(f)));
        (void)json_object_set_new(line, "split", json_string("test"));
    }
    put_line(f, line);
    json_decref(line);
}
