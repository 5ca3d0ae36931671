/* How long an executor that computes nothing would have been busy, by a profile, on a given clock:
 * commands follow each other without a pause, as on a device's one queue. */
#ifndef RP_STAGE_BUSY_H
#define RP_STAGE_BUSY_H

#include "stage/executor.h"

typedef struct {
    const rp_clock *clock;
    rp_clock real;            /* where the site gives none */
    const double *seconds;    /* the site's: of each layer, forward and backward in turn, or NULL */
    uint32_t seconds_samples; /* so many samples take them */
    double update_s;
    const rp_site_costs *costs; /* in place of all three; NULL: none */
    const bool *hangs;          /* the site's, or NULL */
    uint32_t first, end;        /* the stage's layers */
    bool again;                 /* a backward begins with its forward */
    int64_t until_ns;           /* everything issued so far has ended then */
} rp_busy;

/* Where an executor begins that computes nothing: its memory is the arena's, and a mark has passed
 * when its time has come. */
typedef struct {
    rp_executor base;
    rp_busy busy;
} rp_busy_executor;

void rp_busy_open(rp_busy *busy, const rp_site *site, const rp_job *job, const rp_layout *layout);
void rp_busy_spend(rp_busy *busy, const rp_command *command);
/* Behind everything so far; end_ns is known ahead. */
rp_mark rp_busy_mark(const rp_busy *busy);
bool rp_busy_passed(const rp_busy *busy, const rp_mark *mark);

/* Entries of the table of such an executor. */
void rp_busy_executor_destroy(rp_executor **executor);
rp_err rp_busy_executor_mark(rp_executor *executor, rp_mark *out) RP_MUST_CHECK;
rp_err rp_busy_executor_poll(rp_executor *executor, const rp_mark *mark, bool *done,
                             int64_t *end_ns) RP_MUST_CHECK;
void rp_busy_executor_release(rp_executor *executor, rp_mark *mark);
rp_err rp_busy_executor_drain(rp_executor *executor) RP_MUST_CHECK;

#endif
