#include "record/sink_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quote.h"
#include "base/replace.h"
#include "record/sink.h"
#include "record/trace_keep.h"

enum {
    BUFFER_BYTES = 64 * 1024,
    LINE_BYTES = 512,
    NAME_BYTES = 96,
    OPS_OPEN_MAX = 512, /* forwards of a board without their backward yet */
    STAGES_MAX = 4096,
    LINKS_MAX = 256,
    ON_WAY_MAX = 64
};

/* A forward without its backward yet. */
typedef struct {
    uint32_t part, left; /* samples without backward; 0: the entry is free */
    rp_range samples;
    uint64_t step, updates; /* updates of its stage when it read the weights */
} open_forward;

typedef struct {
    uint32_t in_flight; /* number of entries in use */
    open_forward forward[OPS_OPEN_MAX];
} board_counts;

/* Parcels of one kind between two boards: times at which those on the way arrive, in order. */
typedef struct {
    uint32_t from, to, lane;
    const char *carries;
    uint32_t count;
    int64_t end_ns[ON_WAY_MAX];
    uint64_t step[ON_WAY_MAX];
} link_counts;

struct rp_trace {
    const char *path;
    int fd;
    int64_t origin_ns;  /* time 0, on the host's clock */
    uint64_t bytes_max; /* limit of the file */
    uint64_t bytes;     /* present size of the file */
    bool bounded;
    uint64_t marked; /* last step with a mark, plus 1; 0: none yet */
    uint32_t board_count, link_count;
    board_counts *board; /* NULL: used without the sink */
    uint64_t *updates;   /* by stage: number of updated steps */
    link_counts *link;
    size_t used;
    char buffer[BUFFER_BYTES];
};

/* Removes the older half of the file. If there is no disk space for that, the file starts empty. */
static rp_err make_room(rp_trace *trace) {
    uint64_t bytes;
    int fd;
    const rp_err err = rp_trace_keep_newest(trace->path, trace->bytes_max / 2, &fd, &bytes);
    if (err != RP_OK) {
        trace->bytes = 2;
        (void)!ftruncate(trace->fd, 0);
        (void)lseek(trace->fd, 0, SEEK_SET);
        return write(trace->fd, "[\n", 2) == 2 ? err : rp_replace_unwritten(trace->path);
    }
    (void)close(trace->fd);
    trace->fd = fd;
    trace->bytes = bytes;
    return RP_OK;
}

/* If the disk is full a partial write is removed, so that later lines stay valid. */
rp_err rp_trace_flush(rp_trace *trace) {
    const char *from = trace->buffer;
    const uint64_t more = trace->used;
    const rp_err made =
        trace->bounded && trace->bytes + more > trace->bytes_max ? make_room(trace) : RP_OK;
    if (made != RP_OK) {
        trace->used = 0;
        return made;
    }
    struct stat facts;
    const bool known = fstat(trace->fd, &facts) == 0 && S_ISREG(facts.st_mode);
    while (trace->used > 0) {
        ssize_t wrote = write(trace->fd, from, trace->used);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            const int code = errno;
            trace->used = 0;
            if (known && from > trace->buffer) {
                (void)!ftruncate(trace->fd, facts.st_size);
                (void)lseek(trace->fd, facts.st_size, SEEK_SET);
            }
            errno = code;
            return rp_replace_unwritten(trace->path);
        }
        from += wrote;
        trace->used -= (size_t)wrote;
    }
    trace->bytes += more;
    return RP_OK;
}

/* Whole lines only, so that a killed run leaves a file that opens. */
static rp_err add_line(rp_trace *trace, const char *line, size_t bytes) {
    if (bytes > BUFFER_BYTES - trace->used) {
        rp_err err = rp_trace_flush(trace);
        if (err != RP_OK) {
            return err;
        }
    }
    memcpy(trace->buffer + trace->used, line, bytes);
    trace->used += bytes;
    return RP_OK;
}

/* Finds the number after `key` in a line of the trace. */
static bool find_number(const char *line, const char *key, double *out) {
    const char *at = strstr(line, key);
    char *end;
    if (!at) {
        return false;
    }
    at += strlen(key);
    *out = strtod(at, &end);
    return end != at;
}

/* Copies the events of steps before `step_end`; *end_us: end of the last one. */
static rp_err copy_events(rp_trace *to, FILE *from, uint64_t step_end, double *end_us) {
    char line[LINE_BYTES];
    while (fgets(line, sizeof line, from)) {
        double step;
        double start;
        double duration;
        if (!strchr(line, '\n') || !find_number(line, "\"step\":", &step) ||
            !find_number(line, "\"ts\":", &start) || step >= (double)step_end) {
            continue;
        }
        if (!find_number(line, "\"dur\":", &duration)) { /* an arrow, a counter, a mark */
            duration = 0;
        }
        if (start + duration > *end_us) {
            *end_us = start + duration;
        }
        rp_err err = add_line(to, line, strlen(line));
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

static rp_err open_file(rp_trace *trace, const char *path) {
    trace->fd = rp_replace_open(path, O_WRONLY | O_TRUNC);
    if (trace->fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    return add_line(trace, "[\n", 2);
}

/* Writes the kept events to a new file, which replaces the old one. */
static rp_err drop_later_records(rp_arena *arena, rp_trace *trace, FILE *from, uint64_t step_end) {
    rp_err err = RP_OK;
    char *temporary;
    double end_us = 0;
    RP_TRY(rp_arena_printf(arena, &temporary, "%s.tmp", trace->path));
    RP_TRY(open_file(trace, temporary));
    RP_TRY(copy_events(trace, from, step_end, &end_us));
    err = rp_trace_flush(trace);
    if (err != RP_OK || fsync(trace->fd) != 0 || rename(temporary, trace->path) != 0) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be written: %s", trace->path, strerror(errno));
    }
    trace->origin_ns -= (int64_t)(end_us * 1e3);
fail:
    return err;
}

/* Finds the present size; a device has no limit. */
static void measure_file(rp_trace *trace) {
    struct stat facts;
    trace->bounded = fstat(trace->fd, &facts) == 0 && S_ISREG(facts.st_mode);
    trace->bytes = trace->bounded ? (uint64_t)facts.st_size : 0;
}

rp_err rp_trace_open(rp_arena *arena, const char *path, int64_t origin_ns, uint64_t step_first,
                     uint64_t bytes_max, rp_trace **out) {
    rp_err err = RP_OK;
    rp_trace *trace = NULL;
    FILE *from = NULL;
    char *copy;
    RP_TRY(RP_ARENA_NEW(arena, 1, &trace));
    trace->fd = -1;
    trace->origin_ns = origin_ns;
    trace->bytes_max = bytes_max > RP_TRACE_BYTES_MIN ? bytes_max : RP_TRACE_BYTES_MIN;
    RP_TRY(rp_arena_string(arena, path, &copy));
    trace->path = copy;
    from = step_first > 0 ? fopen(path, "re") : NULL;
    if (from) {
        RP_TRY(drop_later_records(arena, trace, from, step_first));
    } else {
        RP_TRY(open_file(trace, path));
    }
    measure_file(trace);
    *out = trace;
    trace = NULL;
fail:
    if (from) {
        (void)fclose(from);
    }
    if (trace && trace->fd >= 0) {
        (void)close(trace->fd);
    }
    return err;
}

static rp_err name_it(rp_trace *trace, const char *kind, uint32_t stage, uint32_t lane,
                      const char *name) {
    char line[LINE_BYTES];
    char quoted[NAME_BYTES];
    const int bytes = snprintf(line, sizeof line,
                               "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
                               ",\"args\":{\"name\":%s}},\n",
                               kind, stage, lane, rp_quote_fit(name, quoted, sizeof quoted));
    RP_ASSERT(bytes > 0 && bytes < LINE_BYTES);
    return add_line(trace, line, (size_t)bytes);
}

rp_err rp_trace_name_stage(rp_trace *trace, uint32_t stage, const char *name) {
    return name_it(trace, "process_name", stage, 0, name);
}

rp_err rp_trace_name_lane(rp_trace *trace, uint32_t stage, uint32_t lane, const char *name) {
    return name_it(trace, "thread_name", stage, lane, name);
}

rp_err rp_trace_add(rp_trace *trace, const rp_trace_event *event) {
    char line[LINE_BYTES];
    char name[NAME_BYTES];
    char category[NAME_BYTES];
    /* Clocks of boards differ by some microseconds. */
    const int64_t since = event->start_ns - trace->origin_ns;
    const uint64_t start = since > 0 ? (uint64_t)since : 0;
    const uint64_t duration = event->duration_ns > 0 ? (uint64_t)event->duration_ns : 0;
    const int bytes =
        snprintf(line, sizeof line,
                 "{\"ph\":\"X\",\"name\":%s,\"cat\":%s,\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
                 ",\"ts\":%" PRIu64 ".%03" PRIu64 ",\"dur\":%" PRIu64 ".%03" PRIu64
                 ",\"args\":{\"step\":%" PRIu64 ",\"first\":%" PRIu32 ",\"count\":%" PRIu32 "}},\n",
                 rp_quote_fit(event->name, name, sizeof name),
                 rp_quote_fit(event->category, category, sizeof category), event->stage,
                 event->lane, start / 1000, start % 1000, duration / 1000, duration % 1000,
                 event->step, event->first, event->count);
    RP_ASSERT(bytes > 0 && bytes < LINE_BYTES);
    return add_line(trace, line, (size_t)bytes);
}

/* Adds an event of any further kind; `rest`: JSON after the time and the step. */
static rp_err add_event(rp_trace *trace, const char *kind, const char *name, uint32_t stage,
                        uint32_t lane, int64_t ns, uint64_t step, const char *rest) {
    char line[LINE_BYTES];
    char quoted[NAME_BYTES];
    const int64_t since = ns - trace->origin_ns;
    const uint64_t at = since > 0 ? (uint64_t)since : 0;
    const int bytes = snprintf(line, sizeof line,
                               "{\"ph\":\"%s\",\"name\":%s,\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
                               ",\"ts\":%" PRIu64 ".%03" PRIu64 ",\"step\":%" PRIu64 "%s},\n",
                               kind, rp_quote_fit(name, quoted, sizeof quoted), stage, lane,
                               at / 1000, at % 1000, step, rest);
    RP_ASSERT(bytes > 0 && bytes < LINE_BYTES);
    return add_line(trace, line, (size_t)bytes);
}

rp_err rp_trace_count(rp_trace *trace, uint32_t stage, const char *name, const char *unit,
                      uint64_t value, int64_t ns, uint64_t step) {
    char rest[128];
    (void)snprintf(rest, sizeof rest, ",\"args\":{\"%s\":%" PRIu64 "}", unit, value);
    return add_event(trace, "C", name, stage, 0, ns, step, rest);
}

rp_err rp_trace_mark(rp_trace *trace, const char *name, int64_t ns, uint64_t step) {
    return add_event(trace, "i", name, 0, 0, ns, step, ",\"s\":\"g\"");
}

rp_err rp_trace_transfer(rp_trace *trace, uint32_t lane, const rp_sink_transfer *t) {
    char name[NAME_BYTES];
    char id[96];
    char rest[256];
    rp_err err;
    (void)snprintf(name, sizeof name, "%s %u to %u", t->carries, t->from, t->to);
    (void)snprintf(id, sizeof id, "%u.%u.%u.%" PRIu64 ".%" PRIu32 ".%" PRId64, t->from, t->to, lane,
                   t->step, t->samples.first, t->start_ns);
    (void)snprintf(rest, sizeof rest,
                   ",\"cat\":\"transfer\",\"id\":\"%s\",\"args\":{\"first\":%" PRIu32
                   ",\"count\":%" PRIu32 ",\"bytes\":%" PRIu64 "}",
                   id, t->samples.first, t->samples.count, t->bytes);
    RP_TRY(add_event(trace, "b", name, t->from, lane, t->start_ns, t->step, rest));
    (void)snprintf(rest, sizeof rest, ",\"cat\":\"transfer\",\"id\":\"%s\"", id);
    RP_TRY(add_event(trace, "e", name, t->from, lane, t->end_ns, t->step, rest));
    /* An arrow from op to op; its tail is in the last nanosecond of the sender's op. */
    (void)snprintf(rest, sizeof rest, ",\"cat\":\"flow\",\"id\":\"%s\"", id);
    RP_TRY(add_event(trace, "s", name, t->from, 0, t->start_ns - 1, t->step, rest));
    (void)snprintf(rest, sizeof rest, ",\"bp\":\"e\",\"cat\":\"flow\",\"id\":\"%s\"", id);
    RP_TRY(add_event(trace, "f", name, t->to, 0, t->end_ns, t->step, rest));
fail:
    return err;
}

rp_err rp_trace_close(rp_trace **taken) {
    /* Ends the list; every event before has a comma at its end. */
    static const char end[] = "{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"tid\":0}\n]\n";
    rp_trace *trace = *taken;
    *taken = NULL;
    if (!trace) {
        return RP_OK;
    }
    rp_err err = RP_OK;
    RP_TRY(add_line(trace, end, sizeof end - 1));
    err = rp_trace_flush(trace);
fail:
    if (close(trace->fd) != 0 && err == RP_OK) {
        err = rp_fail(RP_ERR_IO, "%s: cannot be written: %s", trace->path, strerror(errno));
    }
    return err;
}

/* ---- the sink -------------------------------------------------------------------------------- */

static rp_err name_stages(rp_trace *trace, uint32_t stages) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < stages; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "board %u", k);
        RP_TRY(rp_trace_name_stage(trace, k, name));
        RP_TRY(rp_trace_name_lane(trace, k, 0, "device"));
    }
fail:
    return err;
}

static rp_err open_sink(rp_arena *arena, const rp_sink_run *run, void **sink) {
    rp_trace *trace = NULL;
    char *path;
    rp_err err = RP_OK;
    if (!run->folder || run->trace_bytes == 0) {
        return RP_OK;
    }
    RP_TRY(rp_arena_printf(arena, &path, "%s/trace.json", run->folder));
    RP_TRY(rp_trace_open(arena, path, run->start_ns, run->step_first, run->trace_bytes, &trace));
    *sink = trace;
    trace->board_count = run->stages;
    RP_TRY(RP_ARENA_NEW(arena, run->stages, &trace->board));
    RP_TRY(RP_ARENA_NEW(arena, STAGES_MAX, &trace->updates));
    RP_TRY(RP_ARENA_NEW(arena, LINKS_MAX, &trace->link));
    RP_TRY(name_stages(trace, run->stages));
    err = rp_trace_flush(trace); /* so that the begin of the list is never lost */
    if (err != RP_OK) {
        (void)rp_fail(err, "%s: cannot be written: %s", path, strerror(errno));
    }
fail:
    return err;
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Number of samples of an open forward that the op has; 0: the op is not its backward. */
static uint32_t samples_in(const open_forward *at, const rp_sink_op *op) {
    const bool same = at->left > 0 && at->part == op->part && at->step == op->step;
    return same ? rp_range_common(at->samples, op->samples).count : 0;
}

static void open_forward_of(board_counts *board, const rp_sink_op *op, uint64_t updates) {
    uint32_t free = OPS_OPEN_MAX;
    uint32_t i = 0;
    for (; i < OPS_OPEN_MAX && samples_in(&board->forward[i], op) == 0; i++) {
        free = free == OPS_OPEN_MAX && board->forward[i].left == 0 ? i : free;
    }
    const bool again = i < OPS_OPEN_MAX; /* the forward is repeated after a fault */
    const uint32_t to = again ? i : free;
    if (to < OPS_OPEN_MAX) {
        board->in_flight += !again;
        board->forward[to] = (open_forward){.part = op->part,
                                            .step = op->step,
                                            .samples = op->samples,
                                            .left = op->samples.count,
                                            .updates = updates};
    }
}

/* Removes the samples of a backward from their open forwards, of which there may be several if
 * sizes differ. Returns the number of forwards; *updates: of the first of them. */
static uint32_t close_forwards_of(board_counts *board, const rp_sink_op *op, uint64_t *updates) {
    uint32_t met = 0;
    for (uint32_t i = 0; i < OPS_OPEN_MAX; i++) {
        open_forward *at = &board->forward[i];
        const uint32_t taken = samples_in(at, op);
        *updates = taken > 0 && met == 0 ? at->updates : *updates;
        met += taken > 0;
        at->left -= taken < at->left ? taken : at->left;
        board->in_flight -= taken > 0 && at->left == 0;
    }
    return met;
}

/* Updates the counters: a microbatch is in flight from its forward to its backward; its staleness
 * is the number of updates of its stage in between. */
static rp_err count_op(rp_trace *trace, const rp_sink_op *op) {
    board_counts *board = &trace->board[op->stage];
    uint64_t *updates = &trace->updates[op->part];
    uint64_t before = 0;
    rp_err err = RP_OK;
    if (op->kind == RP_OP_FORWARD) {
        open_forward_of(board, op, *updates);
        err = rp_trace_count(trace, op->stage, "in flight", "microbatches", board->in_flight,
                             op->start_ns, op->step);
    } else if (op->kind == RP_OP_BACKWARD || op->kind == RP_OP_BACKWARD_INPUT) {
        if (close_forwards_of(board, op, &before) == 0) {
            return RP_OK;
        }
        RP_TRY(rp_trace_count(trace, op->stage, "staleness", "updates", *updates - before,
                              op->start_ns, op->step));
        RP_TRY(rp_trace_count(trace, op->stage, "in flight", "microbatches", board->in_flight,
                              op->end_ns, op->step));
    } else if (op->kind == RP_OP_UPDATE) {
        *updates = op->step + 1; /* assigned, because an update may consist of several ops */
    }
fail:
    return err;
}

/* Marks a step when the first board has updated its weights. */
static rp_err mark_step(rp_trace *trace, const rp_sink_op *op) {
    char name[48];
    if (op->kind != RP_OP_UPDATE || op->stage != 0 || op->step < trace->marked) {
        return RP_OK;
    }
    trace->marked = op->step + 1;
    (void)snprintf(name, sizeof name, "step %" PRIu64, op->step);
    return rp_trace_mark(trace, name, op->end_ns, op->step);
}

static link_counts *find_link(rp_trace *trace, const rp_sink_transfer *t) {
    for (uint32_t i = 0; i < trace->link_count; i++) {
        link_counts *link = &trace->link[i];
        if (link->from == t->from && link->to == t->to && strcmp(link->carries, t->carries) == 0) {
            return link;
        }
    }
    if (trace->link_count == LINKS_MAX) {
        return NULL;
    }
    link_counts *link = &trace->link[trace->link_count++];
    *link = (link_counts){
        .from = t->from, .to = t->to, .lane = trace->link_count, .carries = t->carries};
    return link;
}

/* Removes parcels that have arrived before `ns` from the link. */
static rp_err count_arrivals(rp_trace *trace, link_counts *link, const char *name, int64_t ns) {
    rp_err err = RP_OK;
    uint32_t gone = 0;
    while (gone < link->count && link->end_ns[gone] <= ns) {
        const uint32_t left = link->count - gone - 1;
        RP_TRY(rp_trace_count(trace, link->from, name, "parcels", left, link->end_ns[gone],
                              link->step[gone]));
        gone++;
    }
fail:
    link->count -= gone;
    memmove(link->end_ns, link->end_ns + gone, link->count * sizeof *link->end_ns);
    memmove(link->step, link->step + gone, link->count * sizeof *link->step);
    return err;
}

/* Parcels of one kind are sent in sequence, so they arrive in the order of their starts. */
static rp_err count_transfer(rp_trace *trace, link_counts *link, const rp_sink_transfer *t) {
    char name[NAME_BYTES];
    rp_err err;
    (void)snprintf(name, sizeof name, "%s on the way to %u", t->carries, t->to);
    RP_TRY(count_arrivals(trace, link, name, t->start_ns));
    if (link->count < ON_WAY_MAX) {
        link->step[link->count] = t->step;
        link->end_ns[link->count++] = t->end_ns;
    }
    RP_TRY(rp_trace_count(trace, link->from, name, "parcels", link->count, t->start_ns, t->step));
fail:
    return err;
}

static rp_err on_transfer(void *sink, const rp_sink_transfer *transfer) {
    rp_trace *trace = sink;
    link_counts *link;
    rp_err err = RP_OK;
    link = find_link(trace, transfer);
    if (link) {
        RP_TRY(rp_trace_transfer(trace, link->lane, transfer));
        RP_TRY(count_transfer(trace, link, transfer));
    }
fail:
    return err;
}

static rp_err on_op(void *sink, const rp_sink_op *op) {
    static const char *const names[RP_OP_KINDS] = {"forward", "backward", "backward input",
                                                   "backward weight", "update"};
    rp_trace *trace = sink;
    const rp_trace_event event = {
        .stage = op->stage,
        .name = op->evaluation ? "evaluate" : names[op->kind],
        .category = op->evaluation ? "evaluation" : "training",
        .start_ns = op->start_ns,
        .duration_ns = op->end_ns - op->start_ns,
        .step = op->step,
        .first = op->samples.first,
        .count = op->samples.count,
    };
    rp_err err;
    RP_TRY(rp_trace_add(trace, &event));
    if (!op->evaluation && op->part < STAGES_MAX && op->stage < trace->board_count) {
        RP_TRY(count_op(trace, op));
        RP_TRY(mark_step(trace, op));
    }
fail:
    return err;
}

/* The trace keeps ops of steps that are repeated, but forgets their open forwards. */
static rp_err rewind_sink(void *sink, uint64_t step) {
    rp_trace *trace = sink;
    memset(trace->board, 0, trace->board_count * sizeof *trace->board);
    memset(trace->link, 0, LINKS_MAX * sizeof *trace->link);
    memset(trace->updates, 0, STAGES_MAX * sizeof *trace->updates);
    trace->link_count = 0;
    trace->marked = trace->marked > step ? step : trace->marked;
    return RP_OK;
}

static rp_err close_sink(void *sink, const rp_summary *summary) {
    rp_trace *trace = sink;
    (void)summary;
    return rp_trace_close(&trace);
}

const rp_sink_kind rp_sink_trace = {.name = "trace",
                                    .spared = true,
                                    .open = open_sink,
                                    .on_op = on_op,
                                    .on_transfer = on_transfer,
                                    .rewind = rewind_sink,
                                    .close = close_sink};
