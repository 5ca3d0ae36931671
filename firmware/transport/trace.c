#include "transport/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { POINT_BYTES = 4 * 26, HEAD_BYTES = 64 };

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_within(double value, double least, double most) {
    return value >= least && value <= most; /* false for NaN */
}

static const char *wrong_point(const rp_link_trace *trace, uint32_t i) {
    const rp_trace_point *p = &trace->point[i];
    const double end_s = i + 1 < trace->count ? trace->point[i + 1].at_s : trace->period_s;
    if (i == 0 && !is_within(p->at_s, 0, 0)) {
        return "the first time is not 0";
    }
    if (!(end_s >= p->at_s + 0.999 * RP_TRACE_HOLD_MIN_S)) {
        return "the times do not ascend by 0.001 s at least";
    }
    if (!is_within(p->rate_mbit, 0, 1e6)) {
        return "the rate is not from 0 to 1000000 Mbit/s";
    }
    if (!is_within(p->delay_ms, 0, 60000)) {
        return "the delay is not from 0 to 60000 ms";
    }
    return is_within(p->loss, 0, 0.9) ? NULL : "the loss is not from 0 to 0.9";
}

const char *rp_link_trace_wrong(const rp_link_trace *trace, uint32_t *index) {
    bool moves = !trace->has_rate;
    *index = 0;
    if (trace->count < 1 || trace->count > RP_TRACE_POINTS_MAX) {
        return "it has no points, or more than 16384";
    }
    for (uint32_t i = 0; i < trace->count; i++) {
        const char *wrong = wrong_point(trace, i);
        moves = moves || trace->point[i].rate_mbit > 0;
        if (wrong) {
            *index = i;
            return wrong;
        }
    }
    *index = trace->count - 1;
    if (!is_within(trace->period_s, 0, RP_TRACE_PERIOD_MAX_S)) {
        return "it is longer than a day";
    }
    return moves ? NULL : "its rate is never above 0";
}

/* ---- times ----------------------------------------------------------------------------------- */

static double hold_s(const rp_link_trace *trace, uint32_t i) {
    const double end_s = i + 1 < trace->count ? trace->point[i + 1].at_s : trace->period_s;
    return end_s - trace->point[i].at_s;
}

/* Seconds into the period; less than the period. */
static double phase_s(const rp_link_trace *trace, int64_t since_ns) {
    const double since_s = since_ns > 0 ? (double)since_ns / (double)RP_NS_PER_S : 0;
    const double phase = fmod(since_s, trace->period_s);
    return phase < trace->period_s ? phase : 0;
}

static uint32_t index_at(const rp_link_trace *trace, double at_s) {
    uint32_t first = 0;
    uint32_t end = trace->count;
    while (end - first > 1) {
        const uint32_t middle = first + (end - first) / 2;
        if (trace->point[middle].at_s <= at_s) {
            first = middle;
        } else {
            end = middle;
        }
    }
    return first;
}

const rp_trace_point *rp_link_trace_at(const rp_link_trace *trace, int64_t since_ns) {
    return &trace->point[index_at(trace, phase_s(trace, since_ns))];
}

double rp_link_trace_mean_mbit(const rp_link_trace *trace) {
    double mbit = 0;
    for (uint32_t i = 0; i < trace->count; i++) {
        mbit += trace->point[i].rate_mbit * hold_s(trace, i);
    }
    return trace->has_rate ? mbit / trace->period_s : 0;
}

double rp_link_trace_mean_delay_ms(const rp_link_trace *trace) {
    double sum = 0;
    for (uint32_t i = 0; i < trace->count; i++) {
        sum += trace->point[i].delay_ms * hold_s(trace, i);
    }
    return sum / trace->period_s;
}

double rp_link_trace_longest_s(const rp_link_trace *trace, double most_mbit) {
    double longest_s = 0;
    double own_s = 0;
    /* twice, because it may span the period's end */
    for (uint32_t i = 0; trace->has_rate && i < 2 * trace->count; i++) {
        const uint32_t at = i % trace->count;
        own_s = trace->point[at].rate_mbit > most_mbit ? 0 : own_s + hold_s(trace, at);
        longest_s = own_s > longest_s ? own_s : longest_s;
    }
    return longest_s < trace->period_s ? longest_s : trace->period_s;
}

int64_t rp_link_trace_end_ns(const rp_link_trace *trace, int64_t since_ns, double bits) {
    const uint32_t round = trace->count + 1; /* begins and ends in the same point */
    double left = bits;
    double took_s = 0;
    double at_s = phase_s(trace, since_ns);
    uint32_t i = index_at(trace, at_s);
    for (uint32_t n = 0; left > 0 && n < 3 * round; n++) {
        /* skip whole periods, which carry the same number of bits wherever they begin */
        if (n == round) {
            const double period_bits = rp_link_trace_mean_mbit(trace) * 1e6 * trace->period_s;
            const double whole = floor(left / period_bits);
            left -= whole * period_bits;
            took_s += whole * trace->period_s;
        }
        const double room_s = trace->point[i].at_s + hold_s(trace, i) - at_s;
        const double rate = trace->point[i].rate_mbit * 1e6;
        const double needed_s = rate > 0 ? left / rate : (double)INFINITY;
        took_s += needed_s < room_s ? needed_s : room_s;
        left = needed_s <= room_s ? 0 : left - rate * room_s;
        i = (i + 1) % trace->count;
        at_s = trace->point[i].at_s;
    }
    return since_ns + (int64_t)(took_s * (double)RP_NS_PER_S);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Writes the shortest form that reads back equal. */
static int put_number(char *at, size_t room, const char *before, double value) {
    const int used = snprintf(at, room, "%s%.9g", before, value);
    const double back = strtod(at + strlen(before), NULL);
    return memcmp(&back, &value, sizeof value) == 0 ? used
                                                    : snprintf(at, room, "%s%.17g", before, value);
}

rp_err rp_link_trace_text(const rp_link_trace *trace, rp_arena *arena, char **out) {
    const size_t room = HEAD_BYTES + (size_t)trace->count * POINT_BYTES;
    char *text;
    rp_err err = RP_ARENA_NEW(arena, room, &text);
    if (err != RP_OK) {
        return err;
    }
    int used = put_number(text, room, "", trace->period_s);
    used += snprintf(text + used, room - (size_t)used, " %s%s%s", trace->has_rate ? "r" : "",
                     trace->has_delay ? "d" : "", trace->has_loss ? "l" : "");
    for (uint32_t i = 0; i < trace->count; i++) {
        const rp_trace_point *p = &trace->point[i];
        const double values[] = {p->rate_mbit, p->delay_ms, p->loss};
        const bool has[] = {trace->has_rate, trace->has_delay, trace->has_loss};
        used += put_number(text + used, room - (size_t)used, " ", p->at_s);
        for (size_t k = 0; k < 3; k++) {
            used += has[k] ? put_number(text + used, room - (size_t)used, ",", values[k]) : 0;
        }
    }
    *out = text;
    return RP_OK;
}

/* Reads a number and the following character `end`; a space may also be the end of the text. */
static bool read_number(const char **at, char end, double *out) {
    char *behind;
    *out = strtod(*at, &behind);
    const bool good = behind != *at && (*behind == end || (end == ' ' && !*behind));
    *at = good && *behind ? behind + 1 : behind;
    return good;
}

static bool read_points(const char *at, rp_link_trace *trace, rp_trace_point *point, size_t room) {
    const bool has[] = {trace->has_rate, trace->has_delay, trace->has_loss};
    const uint32_t last = has[2] ? 3 : has[1] ? 2 : 1;
    for (trace->count = 0; *at; trace->count++) {
        if (trace->count == room) {
            return false;
        }
        rp_trace_point *p = &point[trace->count];
        double *const values[] = {&p->at_s, &p->rate_mbit, &p->delay_ms, &p->loss};
        for (uint32_t k = 0; k <= last; k++) {
            if ((k == 0 || has[k - 1]) && !read_number(&at, k == last ? ' ' : ',', values[k])) {
                return false;
            }
        }
    }
    return true;
}

static bool read_columns(const char **at, rp_link_trace *trace) {
    static const char names[] = "rdl";
    bool *const has[] = {&trace->has_rate, &trace->has_delay, &trace->has_loss};
    for (size_t i = 0; i < 3; i++) {
        *has[i] = **at == names[i];
        *at += *has[i];
    }
    return *(*at)++ == ' ' && (trace->has_rate || trace->has_delay || trace->has_loss);
}

rp_err rp_link_trace_parse(rp_arena *arena, const char *text, const rp_link_trace **out) {
    const char *wrong = "it does not have the form of rp_link_trace_text()";
    rp_link_trace *trace;
    rp_trace_point *point;
    uint32_t index;
    size_t words = 1;
    rp_err err;
    for (const char *c = text; *c && words < RP_TRACE_POINTS_MAX; c++) {
        words += *c == ' ';
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, &trace));
    RP_TRY(RP_ARENA_NEW(arena, words, &point));
    trace->point = point;
    if (read_number(&text, ' ', &trace->period_s) && *text && read_columns(&text, trace) &&
        read_points(text, trace, point, words)) {
        wrong = rp_link_trace_wrong(trace, &index);
    }
    if (wrong) {
        return rp_fail(RP_ERR_FORMAT, "a trace of a line: %s", wrong);
    }
    *out = trace;
fail:
    return err;
}
