#include "view/log_totals.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs/tail.h"

enum { BLOCK_BYTES = 65536 };
/* Most bytes that one call reads, so that a long log holds up readers for less time. */
static const uint64_t CALL_BYTES = UINT64_C(16) << 20;

/* ---- lines ----------------------------------------------------------------------------------- */

void rp_view_log_begin(rp_view_log_totals *totals) {
    *totals = (rp_view_log_totals){.loss = (double)NAN,
                                   .learning_rate = (double)NAN,
                                   .samples_per_s = (double)NAN,
                                   .time_s = (double)NAN};
}

static bool begins_with(const char *line, size_t length, const char *begin) {
    return length >= strlen(begin) && memcmp(line, begin, strlen(begin)) == 0;
}

bool rp_view_log_is_event(const char *line, size_t length) {
    return begins_with(line, length, "{\"event\"");
}

static double real_of(const json_t *line, const char *key) {
    const json_t *value = json_object_get(line, key);
    const double number = json_number_value(value);
    return json_is_number(value) && isfinite(number) ? number : (double)NAN;
}

static void copy_word(char to[RP_VIEW_WORD], const char *from) {
    (void)snprintf(to, RP_VIEW_WORD, "%s", from ? from : "");
}

static void take_score(rp_view_log_totals *totals, const json_t *line) {
    const char *split = json_string_value(json_object_get(line, "split"));
    uint32_t at = 0;
    if (!split) {
        return;
    }
    while (at < totals->score_count &&
           strncmp(totals->score[at].split, split, RP_VIEW_WORD - 1) != 0) {
        at++;
    }
    if (at == RP_VIEW_SPLITS) {
        return;
    }
    totals->score_count += at == totals->score_count;
    rp_view_score *score = &totals->score[at];
    copy_word(score->split, split);
    score->loss = real_of(line, "loss");
    score->accuracy = real_of(line, "accuracy");
}

static void count_recovery(rp_view_log_totals *totals) {
    const char *cause = totals->cause[0] ? totals->cause : "unknown";
    uint32_t at = 0;
    while (at < totals->recovery_count && strcmp(totals->recovery[at].cause, cause) != 0) {
        at++;
    }
    if (at < RP_VIEW_CAUSES) {
        totals->recovery_count += at == totals->recovery_count;
        copy_word(totals->recovery[at].cause, cause);
        totals->recovery[at].count++;
    }
}

static void take_event(rp_view_log_totals *totals, const json_t *line, const char *event) {
    if (strcmp(event, "eval") == 0) {
        take_score(totals, line);
    } else if (strcmp(event, "fault") == 0) {
        copy_word(totals->cause, json_string_value(json_object_get(line, "fault_class")));
    } else if (strcmp(event, "recovered") == 0) {
        count_recovery(totals);
    }
}

static void take_step(rp_view_log_totals *totals, const json_t *line) {
    const json_int_t step = json_integer_value(json_object_get(line, "step"));
    const json_int_t epoch = json_integer_value(json_object_get(line, "epoch"));
    if (step > 0) {
        totals->step = (uint64_t)step;
        totals->epoch = epoch > 0 ? (uint64_t)epoch : 0;
        totals->loss = real_of(line, "loss");
        totals->learning_rate = real_of(line, "lr");
        totals->samples_per_s = real_of(line, "samples_per_s");
        totals->time_s = real_of(line, "time_s");
    }
}

void rp_view_log_take(rp_view_log_totals *totals, const char *line, size_t length) {
    json_t *root = json_loadb(line, length, 0, NULL);
    const char *event = json_string_value(json_object_get(root, "event"));
    totals->lines++;
    if (event) {
        take_event(totals, root, event);
    } else if (json_is_object(root)) {
        take_step(totals, root);
    }
    json_decref(root);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Steps are only counted, but for the last one of a block: of a long log most lines are steps. */
static void take_lines(rp_view_log_totals *totals, const char *block, size_t bytes) {
    const char *step = NULL;
    size_t step_length = 0;
    for (size_t at = 0; at < bytes;) {
        const char *line = block + at;
        const char *end = memchr(line, '\n', bytes - at);
        const size_t length = (size_t)(end - line);
        if (begins_with(line, length, "{\"step\"")) {
            totals->lines++;
            step = line;
            step_length = length;
        } else {
            rp_view_log_take(totals, line, length);
        }
        at += length + 1;
    }
    if (step) {
        totals->lines--; /* it is counted by the next call */
        rp_view_log_take(totals, step, step_length);
    }
}

/* Bytes up to the last newline. */
static size_t whole_lines(const char *block, size_t bytes) {
    while (bytes > 0 && block[bytes - 1] != '\n') {
        bytes--;
    }
    return bytes;
}

static bool read_added(rp_view_log *log, int fd) {
    static char block[BLOCK_BYTES];
    bool any = false;
    uint64_t done = 0;
    while (done < CALL_BYTES) {
        const ssize_t got = pread(fd, block, sizeof block, (off_t)log->offset);
        if (got <= 0) {
            break;
        }
        size_t bytes = whole_lines(block, (size_t)got);
        if (bytes == 0 && got < (ssize_t)sizeof block) {
            break; /* a line that is being written */
        }
        if (bytes == 0) { /* longer than any valid line: skipped */
            bytes = (size_t)got;
        } else {
            take_lines(&log->totals, block, bytes);
        }
        log->offset += bytes;
        done += bytes;
        any = true;
    }
    log->more = done >= CALL_BYTES;
    return any;
}

bool rp_view_log_update(rp_view_log *log, const char *path) {
    struct stat facts;
    const int fd = rp_tail_open(path);
    if (fd < 0 || fstat(fd, &facts) != 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return false;
    }
    const bool same = log->known && log->device == facts.st_dev && log->inode == facts.st_ino &&
                      (uint64_t)facts.st_size >= log->offset;
    if (!same) {
        log->generation += log->known;
        log->known = true;
        log->device = facts.st_dev;
        log->inode = facts.st_ino;
        log->offset = 0;
        rp_view_log_begin(&log->totals);
    }
    log->changed_ns = facts.st_mtim.tv_sec * INT64_C(1000000000) + facts.st_mtim.tv_nsec;
    const bool added = read_added(log, fd);
    (void)close(fd);
    return added || !same;
}
