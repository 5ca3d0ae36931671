/* What a person sees while the runs are made: on a terminal one line that is drawn again, elsewhere
 * a line when a run begins, one when it ends, and one every half minute. On standard error. */
#ifndef RP_LAB_SHOW_H
#define RP_LAB_SHOW_H

#include "base/log.h"
#include "lab/job.h"

typedef struct {
    const rp_lab_plan *plan;
    const rp_clock *clock;
    bool quiet; /* nobody looks */
    bool live;  /* a terminal */
    bool drawn; /* the line stands there */
    int64_t drawn_ns;
    rp_log_hook hook; /* a log line clears it */
} rp_lab_show;

/* The show stays where it is until it is closed. */
void rp_lab_show_open(rp_lab_show *show, const rp_lab_plan *plan, const rp_clock *clock,
                      bool quiet);
void rp_lab_show_begin(rp_lab_show *show, const rp_lab_job *job);
void rp_lab_show_end(rp_lab_show *show, const rp_lab_run *run);
void rp_lab_show_update(rp_lab_show *show, const rp_lab_job *job, uint32_t jobs);
void rp_lab_show_close(rp_lab_show *show); /* accepts a zeroed one */

#endif
