/* Private to reach.c, trials.c and fleet.c. */
#ifndef RP_REACH_REACH_OWN_H
#define RP_REACH_REACH_OWN_H

#include "reach/reach.h"

#define REACH_NAP_NS (50 * RP_NS_PER_MS)

typedef struct {
    rp_link *control;
    uint64_t session; /* of the process that was greeted; 0: none was heard yet */
    uint64_t features;
    bool said_hello, busy;
    bool tried; /* `done` has come since the last TRIAL */
    rp_TrialDone done;
    int64_t connected_ns; /* of fleet.c: since when; 0 = it is not */
} reach_end;

typedef struct {
    const rp_reach_options *options;
    rp_reach *out;
    rp_links *links;
    reach_end *end; /* one a board */
} reach_work;

/* A link to a board, and a greeting in no run. errors of a link */
rp_err reach_open(reach_work *work, uint32_t k) RP_MUST_CHECK;
/* It has answered, or has been refused. */
bool reach_is_decided(const reach_end *end);
void reach_note_states(reach_work *work);
/* A round of all links, and a sleep of at most so long. errors of a link */
rp_err reach_round(reach_work *work, int64_t nap_ns) RP_MUST_CHECK;
/* trials.c */
rp_err reach_try_pairs(reach_work *work) RP_MUST_CHECK;

#endif
