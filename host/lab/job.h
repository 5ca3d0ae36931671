/* `ringpipe train` as a child process: it leads a process group of its own, and never outlives
 * this process. */
#ifndef RP_LAB_JOB_H
#define RP_LAB_JOB_H

#include <stdbool.h>

#include "base/child.h"
#include "base/clock.h"
#include "lab/plan.h"

typedef struct {
    rp_lab_run *run; /* NULL: free */
    rp_child child;
    int64_t start_ns;
    uint64_t step_first, step; /* made before this process, made by now */
    double loss;               /* of the newest step */
} rp_lab_job;

/* Starts the run, or goes on with it, when its folder holds one; what it says goes to run->log. */
rp_err rp_lab_job_start(rp_lab_job *job, rp_lab_run *run, const char *keys,
                        int64_t now_ns) RP_MUST_CHECK;

/* Tells it to end: at first in an orderly way, then at once, then without asking. */
void rp_lab_job_interrupt(rp_lab_job *job, int64_t now_ns);

/* True when it has ended; that it was killed is noted in run->log. Presses on when it was told to
 * end a while ago. */
bool rp_lab_job_poll(rp_lab_job *job, int64_t now_ns);

/* Step and loss from the end of its log.jsonl. */
void rp_lab_job_read_progress(rp_lab_job *job);

/* Ends it and waits; accepts a free one. */
void rp_lab_job_close(rp_lab_job *job, const rp_clock *clock);

#endif
