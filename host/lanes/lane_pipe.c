#include "lanes/lane_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_values.h"

/* Lines are shorter than a pipe writes atomically, and fit into it if the run reads now and
 * then. */
static rp_err write_line(const rp_lane_pipe *pipe, json_t *object) {
    char text[256];
    const size_t used = object ? json_dumpb(object, text, sizeof text - 1, JSON_COMPACT) : 0;
    json_decref(object);
    if (used == 0 || used >= sizeof text) {
        return rp_fail(RP_ERR_MEMORY, "no memory for a lane's report");
    }
    text[used] = '\n';
    return write(pipe->out, text, used + 1) == (ssize_t)used + 1
               ? RP_OK
               : rp_fail(RP_ERR_IO, "a lane's report cannot be sent: %s", strerror(errno));
}

static rp_err reach(void *self, const rp_lane_report *report) {
    return write_line(self, json_pack("{s:I, s:I, s:o}", "round", (json_int_t)report->step,
                                      "samples", (json_int_t)report->samples, "loss",
                                      rp_json_of_real(report->loss)));
}

static void take_line(rp_lane_pipe *pipe, size_t length) {
    json_t *object = json_loadb(pipe->line, length, 0, NULL);
    const json_t *step = json_object_get(object, "go");
    if (json_is_integer(step) && json_integer_value(step) > 0) {
        pipe->answered = (uint64_t)json_integer_value(step);
    }
    json_decref(object);
}

static rp_err read_lines(rp_lane_pipe *pipe) {
    for (;;) {
        const ssize_t got = read(pipe->in, pipe->line + pipe->used, sizeof pipe->line - pipe->used);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return RP_OK;
        }
        if (got <= 0) {
            return rp_fail(RP_ERR_INTERRUPTED, "the run that this lane is a part of has ended");
        }
        pipe->used += (size_t)got;
        char *end;
        while ((end = memchr(pipe->line, '\n', pipe->used))) {
            const size_t length = (size_t)(end - pipe->line);
            take_line(pipe, length);
            pipe->used -= length + 1;
            memmove(pipe->line, end + 1, pipe->used);
        }
        if (pipe->used == sizeof pipe->line) {
            return rp_fail(RP_ERR_FORMAT, "the run sent its lane an invalid line");
        }
    }
}

static rp_err answered(void *self, uint64_t step, bool *yes) {
    rp_lane_pipe *pipe = self;
    rp_err err = pipe->answered == step ? RP_OK : read_lines(pipe);
    *yes = pipe->answered == step;
    return *yes ? RP_OK : err;
}

static int fd_of(void *self) {
    return ((rp_lane_pipe *)self)->in;
}

rp_err rp_lane_open(rp_lane_pipe *pipe, int in, int out) {
    *pipe = (rp_lane_pipe){.in = in, .out = out};
    const int flags = fcntl(in, F_GETFL);
    return flags >= 0 && fcntl(in, F_SETFL, flags | O_NONBLOCK) == 0
               ? RP_OK
               : rp_fail(RP_ERR_IO, "a lane's input: %s", strerror(errno));
}

rp_lane_end rp_lane_end_of(rp_lane_pipe *pipe) {
    static const rp_lane_end_kind kind = {.reach = reach, .answered = answered, .fd = fd_of};
    return (rp_lane_end){&kind, pipe};
}

void rp_lane_note_state(void *context, const char *state) {
    rp_lane_pipe *pipe = context;
    const bool away = strcmp(state, "recover") == 0;
    if ((away && !pipe->away) || (pipe->away && strcmp(state, "train") == 0)) {
        pipe->away = away;
        (void)!write_line(pipe, json_pack("{s:b}", "away", away));
    }
}

void rp_lane_note_end(rp_lane_pipe *pipe, rp_err result) {
    if (result == RP_ERR_DATA) {
        (void)!write_line(pipe, json_pack("{s:b}", "damaged", 1));
    }
}
