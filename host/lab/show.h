/* Progress on standard error: a terminal has one line that is redrawn; otherwise a line is printed
 * when a run begins, when it ends, and every half minute. */
#ifndef RP_LAB_SHOW_H
#define RP_LAB_SHOW_H

#include "base/log.h"
#include "lab/job.h"

typedef struct {
    const rp_lab_plan *plan;
    const rp_clock *clock;
    bool quiet; /* print nothing */
    bool live;  /* standard error is a terminal */
    bool drawn; /* the line is on the screen */
    int64_t drawn_ns;
    rp_log_hook hook; /* clears the line before a log line */
} rp_lab_show;

/* *show must not move until it is closed. */
void rp_lab_show_open(rp_lab_show *show, const rp_lab_plan *plan, const rp_clock *clock,
                      bool quiet);
void rp_lab_show_begin(rp_lab_show *show, const rp_lab_job *job);
void rp_lab_show_end(rp_lab_show *show, const rp_lab_run *run);
void rp_lab_show_update(rp_lab_show *show, const rp_lab_job *job, uint32_t jobs);
void rp_lab_show_close(rp_lab_show *show); /* accepts a zeroed one */

#endif
