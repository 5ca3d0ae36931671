/* How long an executor that computes nothing is busy, by a profile and on a given clock. Commands
 * follow each other without pauses, as in a device's queue. */
#ifndef RP_STAGE_BUSY_H
#define RP_STAGE_BUSY_H

#include "stage/executor.h"

typedef struct {
    const rp_clock *clock;
    rp_clock real; /* used if the site has no clock */
    /* From rp_site: seconds of each layer, alternately forward and backward, or NULL. */
    const double *seconds;
    uint32_t seconds_samples; /* samples to which `seconds` refer */
    double update_s;
    const rp_site_costs *costs; /* used instead of the three fields above; NULL: unused */
    const bool *hangs;          /* from rp_site, or NULL */
    const rp_model *model;
    uint32_t first, end; /* layers of the stage */
    bool recomputes;     /* a backward first recomputes its forward */
    int64_t until_ns;    /* the time when all commands issued so far will have ended */
} rp_busy;

/* The first member of such an executor. Its memory belongs to the arena. A mark passes at a known
 * time. */
typedef struct {
    rp_executor base;
    rp_busy busy;
} rp_busy_executor;

void rp_busy_open(rp_busy *busy, const rp_site *site, const rp_job *job, const rp_layout *layout);
void rp_busy_spend(rp_busy *busy, const rp_command *command);
/* A mark after all commands issued so far, with its end_ns. */
rp_mark rp_busy_mark(const rp_busy *busy);
bool rp_busy_passed(const rp_busy *busy, const rp_mark *mark);

/* Functions for the table of such an executor. */
void rp_busy_executor_destroy(rp_executor **executor);
rp_err rp_busy_executor_mark(rp_executor *executor, rp_mark *out) RP_MUST_CHECK;
rp_err rp_busy_executor_poll(rp_executor *executor, const rp_mark *mark, bool *done,
                             int64_t *end_ns) RP_MUST_CHECK;
void rp_busy_executor_release(rp_executor *executor, rp_mark *mark);
rp_err rp_busy_executor_drain(rp_executor *executor) RP_MUST_CHECK;

#endif
