/* `ringpipe draw`: a schedule as a picture, and all of them as a table; measured by replay. */
#ifndef RP_CLI_DRAW_H
#define RP_CLI_DRAW_H

#include <stdio.h>

#include "sched/replay.h"

enum { RP_DRAW_STAGES_MAX = 64, RP_DRAW_MICRO_MAX = 512 };

/* One step of a flushed schedule, or a run of `micro` one-microbatch steps of another. As text
 * every F, B and W takes one column; as SVG an undivided backward takes two, as its halves do.
 * errors  USAGE for sizes outside 1..max; MEMORY, FAULT. The caller checks `out` for errors of
 * writing (base/process.h does it for standard output) */
rp_err rp_draw_schedule(FILE *out, const rp_sched_kind *kind, uint32_t stages, uint32_t micro,
                        bool svg) RP_MUST_CHECK;

/* The same on `nodes` boards of `chunks` stages each, a lane a board; a letter behind an op says
 * which of the board's stages it is of. Of a kind that splits stages: `nodes` stages, on two boards
 * each. errors  USAGE also where the schedule has one stage a board */
rp_err rp_draw_chunks(FILE *out, const rp_sched_kind *kind, uint32_t nodes, uint32_t chunks,
                      uint32_t micro, bool svg) RP_MUST_CHECK;

/* The same of a kind that splits stages, but for those that `whole` names, which have one board:
 * bit k: stage k (sched/split.h). errors  USAGE also for any other kind */
rp_err rp_draw_some_split(FILE *out, const rp_sched_kind *kind, uint32_t stages, uint32_t whole,
                          uint32_t micro, bool steady, bool svg) RP_MUST_CHECK;

/* A schedule without a flush, as long as it goes on: from one start of the first stage to the one
 * `micro` microbatches later, with the bubble of that time. The filling and the draining that a run
 * has once are left out; what is said behind the lanes is of the whole run.
 * errors  as above; USAGE also for a flushed schedule */
rp_err rp_draw_steady(FILE *out, const rp_sched_kind *kind, uint32_t stages, uint32_t micro,
                      bool svg) RP_MUST_CHECK;

/* Markdown: every schedule at a few sizes.
 * errors  MEMORY, FAULT */
rp_err rp_draw_table(FILE *out) RP_MUST_CHECK;

#endif
