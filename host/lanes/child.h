/* A lane of a run: `ringpipe train` or `resume` as a child process, that leads a process group of
 * its own and does not outlive this one. */
#ifndef RP_LANES_CHILD_H
#define RP_LANES_CHILD_H

#include "base/child.h"
#include "base/clock.h"
#include "lanes/round.h"

enum { RP_LANE_PATH_BYTES = 4096, RP_LANE_TRIES_MAX = 6 };

typedef struct {
    uint32_t index;
    char folder[RP_LANE_PATH_BYTES]; /* OUT/lane-0 */
    char log[RP_LANE_PATH_BYTES];    /* what it says: OUT/lane-0.log */
    rp_lane_condition condition;

    rp_child child;
    int fd; /* its input and output; -1 */
    char line[512];
    size_t used;
    int64_t start_ns;  /* when it is started again; 0: it is not waiting for that */
    uint32_t tries;    /* in a row that ended before a round */
    uint32_t restarts; /* in all */
    int exit_code;     /* of its last end */

    /* as it has said */
    uint64_t step, samples;
    double loss;
    bool reached; /* it is at a pause, since: */
    int64_t reached_ns;
    /* as the run has decided */
    uint64_t joined;                      /* the last round that it took part in; 0: none yet */
    uint64_t averaged;                    /* its step in that */
    uint32_t rounds, late;                /* that it took part in; of them, with a lag */
    int64_t delay_ns[RP_ROUND_TIMES_MAX]; /* of its last arrivals */
    uint32_t delays;
} rp_lane_child;

/* What all lanes are started with. Borrowed. */
typedef struct {
    const char *run_yaml;   /* for a lane that has none yet */
    const char *const *set; /* for one that has */
    uint32_t set_count;
    const char *keys; /* NULL: none were given */
} rp_lane_order;

void rp_lane_init(rp_lane_child *lane, uint32_t index, const char *folder);
/* errors IO */
rp_err rp_lane_start(rp_lane_child *lane, const rp_lane_order *order) RP_MUST_CHECK;
/* Takes what it has said; false: there is no more of it now. *step: it has come to a pause
 * there. */
typedef enum {
    RP_LANE_SAYS_NOTHING,
    RP_LANE_SAYS_ROUND,
    RP_LANE_SAYS_AWAY,
    RP_LANE_SAYS_BACK,
    RP_LANE_SAYS_DATA /* it ends, because a sample is damaged */
} rp_lane_word;
rp_lane_word rp_lane_listen(rp_lane_child *lane);
/* Its checkpoint of `step` has been averaged. */
void rp_lane_let_go(rp_lane_child *lane, uint64_t step);
/* True when it has ended since the last call: exit_code is its code, or 128 + signal. */
bool rp_lane_reap(rp_lane_child *lane);
/* Ends what is left at once. */
void rp_lane_kill(rp_lane_child *lane);

/* Runs `ringpipe` with these words (NULL at the end) in place of a lane's: what it says on standard
 * output goes to `out`. errors IO */
rp_err rp_lane_run(rp_lane_child *lane, const char *const *words, const char *out) RP_MUST_CHECK;

#endif
