/* `ringpipe draw`: a schedule as a picture, or a table of all schedules; measured by replay. */
#ifndef RP_CLI_DRAW_H
#define RP_CLI_DRAW_H

#include <stdio.h>

#include "sched/replay.h"

enum { RP_DRAW_STAGES_MAX = 64, RP_DRAW_MICRO_MAX = 512 };

typedef struct {
    const rp_sched_kind *kind;
    uint32_t stages; /* boards, if a board has several chunks */
    uint32_t chunks; /* stages of a board; 0 means 1. A letter after an op names the chunk */
    uint32_t whole; /* of a kind that splits stages: bit k: stage k has one board (sched/split.h) */
    uint32_t micro;
    /* Only for a schedule without a flush: draw its steady state, a window of `micro` microbatches
     * on the first stage, with the bubble of this window. Filling and draining of the pipe are left
     * out; the texts next to the lanes describe the whole run. */
    bool steady;
    bool svg;
} rp_draw_options;

/* Draws one lane for each board: one step of a flushed schedule, else a run of `micro` steps of one
 * microbatch. As text every F, B and W takes one column; as SVG an undivided backward takes two,
 * like its halves together. errors  USAGE: sizes outside 1..max, chunks of a schedule with one
 * stage on each board, steady state of a flushed schedule; MEMORY, FAULT. The caller checks `out`
 * for write errors (base/process.h does it for standard output) */
rp_err rp_draw_schedule(FILE *out, const rp_draw_options *options) RP_MUST_CHECK;

/* Writes a table in Markdown: every schedule at a few sizes. errors  MEMORY, FAULT */
rp_err rp_draw_table(FILE *out) RP_MUST_CHECK;

#endif
