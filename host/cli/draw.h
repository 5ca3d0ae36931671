/* `ringpipe draw`: a schedule as a picture, and all of them as a table; measured by replay. */
#ifndef RP_CLI_DRAW_H
#define RP_CLI_DRAW_H

#include <stdio.h>

#include "sched/replay.h"

enum { RP_DRAW_STAGES_MAX = 64, RP_DRAW_MICRO_MAX = 512 };

typedef struct {
    const rp_sched_kind *kind;
    uint32_t stages; /* boards, where a board has several chunks */
    uint32_t chunks; /* stages of a board; 0: one. A letter after an op says which */
    uint32_t whole; /* of a kind that splits stages, bit k: stage k has one board (sched/split.h) */
    uint32_t micro;
    /* Of a schedule without a flush, as long as it goes on: from one start of the first stage to
     * the one `micro` microbatches later, with the bubble of that time. The filling and the
     * draining that a run has once are left out; the text at the lanes is of the whole run. */
    bool steady;
    bool svg;
} rp_draw_options;

/* A lane a board: one step of a flushed schedule, or a run of `micro` one-microbatch steps of
 * another. As text every F, B and W takes one column; as SVG an undivided backward takes two, as
 * its halves do.
 * errors  USAGE for sizes outside 1..max, chunks of a schedule that has one stage a board, a steady
 * state of a flushed one; MEMORY, FAULT. The caller checks `out` for errors of writing
 * (base/process.h does it for standard output) */
rp_err rp_draw_schedule(FILE *out, const rp_draw_options *options) RP_MUST_CHECK;

/* Markdown: every schedule at a few sizes.
 * errors  MEMORY, FAULT */
rp_err rp_draw_table(FILE *out) RP_MUST_CHECK;

#endif
