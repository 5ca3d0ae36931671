/* Private to reach.c and trials.c. */
#ifndef RP_REACH_REACH_OWN_H
#define RP_REACH_REACH_OWN_H

#include "reach/reach.h"

typedef struct {
    rp_link *control;
    uint64_t features;
    bool said_hello, busy;
    bool tried; /* `done` has come since the last TRIAL */
    rp_TrialDone done;
} reach_end;

typedef struct {
    const rp_reach_options *options;
    rp_reach *out;
    rp_links *links;
    reach_end *end; /* one a board */
} reach_work;

/* A round of all links, and a sleep of at most 50 ms. errors of a link */
rp_err reach_round(reach_work *work) RP_MUST_CHECK;
/* trials.c */
rp_err reach_try_pairs(reach_work *work) RP_MUST_CHECK;

#endif
