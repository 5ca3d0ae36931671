#include "run/tracefile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/input.h"

enum { LINE_BYTES = 256, COLUMNS = 4, PACKET_BITS = 12000, SLOT_MS = 20 };

static const char *const column_names[COLUMNS] = {"time_s", "rate_mbit", "delay_ms", "loss"};

typedef struct {
    rp_arena *arena;
    const char *path;
    FILE *file;
    char text[LINE_BYTES]; /* without its end */
    uint64_t line;
    rp_link_trace *trace;
    rp_trace_point *point; /* of the trace; [RP_TRACE_POINTS_MAX] */
    uint64_t *at_line;     /* line of each point */
    uint32_t column[COLUMNS], columns;
} reader;

/* ---- lines ----------------------------------------------------------------------------------- */

static rp_err fail_at(const reader *r, uint64_t line, const char *expected) {
    return rp_fail(RP_ERR_USAGE, "%s:%" PRIu64 ": %s", r->path, line, expected);
}

static rp_err fail_text(const reader *r, const char *expected) {
    return rp_fail(RP_ERR_USAGE, "%s:%" PRIu64 ": expected %s, found '%.60s'", r->path, r->line,
                   expected, r->text);
}

/* Reads the next line that is neither empty nor a comment; *there false: end of file. */
static rp_err next_line(reader *r, bool *there) {
    while (fgets(r->text, sizeof r->text, r->file)) {
        const size_t length = strcspn(r->text, "\n");
        r->line++;
        if (!r->text[length] && !feof(r->file)) {
            return fail_at(r, r->line, "expected lines of at most 254 bytes, without zero bytes");
        }
        r->text[length] = '\0';
        const size_t end = strcspn(r->text, "\r");
        r->text[end] = '\0';
        if (r->line == 1 && strncmp(r->text, "\xef\xbb\xbf", 3) == 0) { /* byte order mark */
            memmove(r->text, r->text + 3, strlen(r->text + 3) + 1);
        }
        const char *first = r->text + strspn(r->text, " \t");
        if (*first && *first != '#') {
            *there = true;
            return RP_OK;
        }
    }
    *there = false;
    return ferror(r->file) ? rp_fail(RP_ERR_IO, "%s: %s", r->path, strerror(errno)) : RP_OK;
}

/* Reads a number with optional blanks, then `,` or the end of the line. */
static bool take_number(const char **at, double *out) {
    char *end;
    *out = strtod(*at, &end);
    if (end == *at || !isfinite(*out)) {
        return false;
    }
    end += strspn(end, " \t");
    if (*end && *end != ',') {
        return false;
    }
    *at = end + (*end == ',');
    return *end == '\0' || **at != '\0'; /* a comma at the end is invalid */
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static bool has_column(const reader *r, uint32_t which) {
    for (uint32_t i = 0; i < r->columns; i++) {
        if (r->column[i] == which) {
            return true;
        }
    }
    return false;
}

static rp_err read_names(reader *r) {
    static const char expected[] =
        "names of columns: time_s and some of rate_mbit, delay_ms, loss, each once";
    for (char *at = r->text; *at;) {
        at += strspn(at, " \t");
        const size_t whole = strcspn(at, ",");
        size_t length = whole;
        while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t')) {
            length--;
        }
        uint32_t which = 0;
        while (which < COLUMNS && (strlen(column_names[which]) != length ||
                                   strncmp(column_names[which], at, length) != 0)) {
            which++;
        }
        if (which == COLUMNS || has_column(r, which)) {
            return fail_text(r, expected);
        }
        r->column[r->columns++] = which;
        at += whole + (at[whole] == ',');
    }
    return has_column(r, 0) && r->columns > 1 ? RP_OK : fail_text(r, expected);
}

static void count_columns(reader *r) {
    r->columns = 1;
    for (const char *at = r->text; *at; at++) {
        r->columns += *at == ',';
    }
    r->columns = r->columns < COLUMNS + 1 ? r->columns : COLUMNS;
    for (uint32_t i = 0; i < r->columns; i++) {
        r->column[i] = i;
    }
}

static rp_err read_point(reader *r) {
    double value[COLUMNS] = {0};
    const char *at = r->text;
    uint32_t i = 0;
    while (i < r->columns && *at && take_number(&at, &value[r->column[i]])) {
        i++;
    }
    if (i < r->columns || *at) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "%u numbers with commas between them",
                       r->columns);
        return fail_text(r, expected);
    }
    const double first_s = r->trace->count ? r->point[0].at_s : value[0];
    const rp_trace_point *last = r->trace->count ? &r->point[r->trace->count - 1] : NULL;
    if (last && !(value[0] > last->at_s)) {
        return fail_text(r, "times that ascend");
    }
    if (!(value[0] - first_s <= RP_TRACE_PERIOD_MAX_S)) {
        return fail_text(r, "a trace of at most a day");
    }
    if (r->trace->count == RP_TRACE_POINTS_MAX) {
        return fail_text(r, "at most 16384 points");
    }
    r->at_line[r->trace->count] = r->line;
    r->point[r->trace->count++] = (rp_trace_point){value[0], value[1], value[2], value[3]};
    return RP_OK;
}

/* Makes times relative to the first one, and sets the period. */
static void shift_times(reader *r) {
    rp_link_trace *trace = r->trace;
    const uint32_t count = trace->count;
    const double first_s = r->point[0].at_s;
    for (uint32_t i = 0; i < count; i++) {
        r->point[i].at_s -= first_s;
    }
    const double hold_s = count > 1 ? r->point[count - 1].at_s - r->point[count - 2].at_s : 1;
    trace->period_s = r->point[count - 1].at_s + hold_s;
}

static rp_err read_csv(reader *r) {
    bool there = true;
    rp_err err = RP_OK;
    const char *first = r->text + strspn(r->text, " \t");
    if (strchr("+-.0123456789", *first)) {
        count_columns(r);
    } else {
        RP_TRY(read_names(r));
        RP_TRY(next_line(r, &there));
    }
    while (there) {
        RP_TRY(read_point(r));
        RP_TRY(next_line(r, &there));
    }
    if (r->trace->count == 0) {
        return fail_at(r, r->line, "expected a line of numbers after the names of columns");
    }
    r->trace->has_rate = has_column(r, 1);
    r->trace->has_delay = has_column(r, 2);
    r->trace->has_loss = has_column(r, 3);
    shift_times(r);
fail:
    return err;
}

/* ---- Mahimahi -------------------------------------------------------------------------------- */

static rp_err take_millisecond(reader *r, uint64_t last, uint64_t *out) {
    const char *at = r->text + strspn(r->text, " \t");
    const size_t digits = strspn(at, "0123456789");
    const size_t rest = digits + strspn(at + digits, " \t");
    if (digits == 0 || digits > 12 || at[rest]) {
        return fail_text(r, "a whole number of milliseconds");
    }
    *out = strtoull(at, NULL, 10);
    if (*out < last) {
        return fail_text(r, "times that do not go back");
    }
    return *out > (uint64_t)RP_TRACE_PERIOD_MAX_S * 1000 ? fail_text(r, "a trace of at most a day")
                                                         : RP_OK;
}

/* *last: the last time, which is the length of the trace. */
static rp_err measure_mahimahi(reader *r, uint64_t *last) {
    bool there = true;
    rp_err err = RP_OK;
    *last = 0;
    while (there) {
        RP_TRY(take_millisecond(r, *last, last));
        RP_TRY(next_line(r, &there));
    }
    if (*last == 0) {
        return fail_at(r, r->line, "expected a last time above 0, after which the trace repeats");
    }
fail:
    return err;
}

/* Adds a point if the rate differs from that of the slot before. */
static void add_slot(reader *r, double at_s, double rate_mbit) {
    rp_link_trace *trace = r->trace;
    const double before = trace->count ? r->point[trace->count - 1].rate_mbit : -1;
    if (before < rate_mbit || before > rate_mbit) {
        r->at_line[trace->count] = r->line;
        r->point[trace->count++] = (rp_trace_point){.at_s = at_s, .rate_mbit = rate_mbit};
    }
}

/* A packet at the end of a slot belongs to the next slot; one at the end of the trace belongs to
 * the last slot. */
static rp_err read_mahimahi(reader *r) {
    uint64_t last;
    uint64_t at = 0;
    bool there = true;
    rp_err err;
    RP_TRY(measure_mahimahi(r, &last));
    rewind(r->file);
    r->line = 0;
    RP_TRY(next_line(r, &there));
    RP_TRY(there ? take_millisecond(r, 0, &at) : RP_OK);
    const uint64_t least = (last - 1) / (RP_TRACE_POINTS_MAX - 1) + 1;
    const uint64_t slot = least > SLOT_MS ? least : SLOT_MS;
    for (uint64_t from = 0; from < last; from += slot) {
        const uint64_t end = from + slot < last ? from + slot : last + 1;
        const uint64_t length = from + slot < last ? slot : last - from;
        uint64_t packets = 0;
        while (there && at < end) {
            packets++;
            RP_TRY(next_line(r, &there));
            RP_TRY(there ? take_millisecond(r, at, &at) : RP_OK);
        }
        add_slot(r, (double)from * 1e-3, (double)packets * PACKET_BITS / 1e3 / (double)length);
    }
    r->trace->has_rate = true;
    r->trace->period_s = (double)last * 1e-3;
fail:
    return err;
}

/* ---- files ----------------------------------------------------------------------------------- */

static rp_err open_file(reader *r) {
    const char *why;
    struct stat facts;
    r->file = rp_input_fopen(r->path, &why);
    if (!r->file) {
        return rp_fail(RP_ERR_USAGE, "%s: %s", r->path, why);
    }
    if (fstat(fileno(r->file), &facts) != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: %s", r->path, strerror(errno));
    }
    return (uint64_t)facts.st_size <= RP_TRACEFILE_BYTES_MAX
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: has %" PRIu64 " bytes, expected a trace of at most %" PRIu64, r->path,
                         (uint64_t)facts.st_size, RP_TRACEFILE_BYTES_MAX);
}

static rp_err read_trace(reader *r) {
    bool there;
    uint32_t index;
    rp_err err;
    RP_TRY(open_file(r));
    RP_TRY(RP_ARENA_NEW(r->arena, RP_TRACE_POINTS_MAX, &r->at_line));
    RP_TRY(RP_ARENA_NEW(r->arena, RP_TRACE_POINTS_MAX, &r->point));
    RP_TRY(next_line(r, &there));
    if (!there) {
        return rp_fail(
            RP_ERR_USAGE,
            "%s: the trace is empty; expected times and rates (CSV), or the milliseconds "
            "in which a packet may leave (Mahimahi)",
            r->path);
    }
    const char *first = r->text + strspn(r->text, " \t");
    RP_TRY(first[strspn(first, "0123456789 \t")] ? read_csv(r) : read_mahimahi(r));
    r->trace->point = r->point;
    const char *wrong = rp_link_trace_wrong(r->trace, &index);
    if (wrong) {
        return fail_at(r, r->at_line[index < r->trace->count ? index : 0], wrong);
    }
fail:
    return err;
}

rp_err rp_tracefile_read(rp_arena *arena, const char *path, const rp_link_trace **out) {
    reader r = {.path = path};
    rp_link_trace *trace;
    rp_trace_point *point;
    rp_arena scratch;
    rp_err err;
    rp_arena_init(&scratch, "trace", 0);
    r.arena = &scratch;
    RP_TRY(RP_ARENA_NEW(arena, 1, &trace));
    r.trace = trace;
    RP_TRY(read_trace(&r));
    RP_TRY(RP_ARENA_NEW(arena, trace->count, &point));
    memcpy(point, r.point, trace->count * sizeof *point);
    trace->point = point;
    *out = trace;
fail:
    if (r.file) {
        (void)fclose(r.file);
    }
    rp_arena_finish(&scratch);
    return err;
}
