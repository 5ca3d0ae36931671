/* `ringpipe train` as a child process in its own process group; it never outlives this process. */
#ifndef RP_LAB_JOB_H
#define RP_LAB_JOB_H

#include <stdbool.h>

#include "base/child.h"
#include "base/clock.h"
#include "lab/plan.h"

typedef struct {
    rp_lab_run *run; /* NULL: no process */
    rp_child child;
    int64_t start_ns;
    uint64_t step_first, step; /* steps made before this process, and by now */
    double loss;               /* of the latest step */
} rp_lab_job;

/* Starts the run, or resumes it if its folder exists; its standard error goes to run->log. */
rp_err rp_lab_job_start(rp_lab_job *job, rp_lab_run *run, const char *keys,
                        int64_t now_ns) RP_MUST_CHECK;

/* Asks the process to end; with each further call more forcefully, at last with SIGKILL. */
void rp_lab_job_interrupt(rp_lab_job *job, int64_t now_ns);

/* True when the process has ended; run->log notes a signal that killed it. Interrupts it again when
 * it does not end in time. */
bool rp_lab_job_poll(rp_lab_job *job, int64_t now_ns);

/* Reads step and loss from the end of log.jsonl. */
void rp_lab_job_read_progress(rp_lab_job *job);

/* Ends the process and waits for it; accepts a job without one. */
void rp_lab_job_close(rp_lab_job *job, const rp_clock *clock);

#endif
