/* A lane of a run: `ringpipe train` or `resume` as a child process, with its own process group. It
 * does not outlive this process. */
#ifndef RP_LANES_CHILD_H
#define RP_LANES_CHILD_H

#include "base/child.h"
#include "base/clock.h"
#include "lanes/round.h"

enum { RP_LANE_PATH_BYTES = 4096, RP_LANE_TRIES_MAX = 6 };

typedef struct {
    uint32_t index;
    char folder[RP_LANE_PATH_BYTES]; /* OUT/lane-0 */
    char log[RP_LANE_PATH_BYTES];    /* output of the child: OUT/lane-0.log */
    rp_lane_condition condition;

    rp_child child;
    int fd; /* its input and output; -1: none */
    char line[512];
    size_t used;
    int64_t start_ns;  /* when it is restarted; 0: no restart is due */
    uint32_t tries;    /* consecutive starts without a round */
    uint32_t restarts; /* in total */
    int exit_code;     /* of its last end */

    /* as reported by the lane */
    uint64_t step, samples;
    double loss;
    bool reached; /* it waits at a pause, since: */
    int64_t reached_ns;
    /* as decided by the run */
    uint64_t joined;                      /* the last round in which it took part; 0: none */
    uint64_t averaged;                    /* its step in that round */
    uint32_t rounds, late;                /* rounds in which it took part; of these with a lag */
    int64_t delay_ns[RP_ROUND_TIMES_MAX]; /* ring buffer: delays after a round's first lane */
    uint32_t delays;
} rp_lane_child;

/* How lanes are started; borrowed. */
typedef struct {
    const char *run_yaml;   /* for a lane that has no run.yaml yet */
    const char *const *set; /* for a lane that has one */
    uint32_t set_count;
    const char *keys; /* NULL: none given */
} rp_lane_order;

void rp_lane_init(rp_lane_child *lane, uint32_t index, const char *folder);
/* errors IO */
rp_err rp_lane_start(rp_lane_child *lane, const rp_lane_order *order) RP_MUST_CHECK;
/* Takes the lane's next report. RP_LANE_SAYS_NOTHING: no report. RP_LANE_SAYS_ROUND: the lane
 * waits at a pause. */
typedef enum {
    RP_LANE_SAYS_NOTHING,
    RP_LANE_SAYS_ROUND,
    RP_LANE_SAYS_AWAY,
    RP_LANE_SAYS_BACK,
    RP_LANE_SAYS_DATA /* it ends because a sample is damaged */
} rp_lane_word;
rp_lane_word rp_lane_listen(rp_lane_child *lane);
/* Tells the lane that its checkpoint of `step` has been averaged. */
void rp_lane_release(rp_lane_child *lane, uint64_t step);
/* True if it has ended since the last call: exit_code is its code, or 128 + signal. */
bool rp_lane_reap(rp_lane_child *lane);
/* Kills it at once, if it still runs. */
void rp_lane_kill(rp_lane_child *lane);

/* Runs `ringpipe` with these words (NULL at the end) instead of a lane; its standard output goes to
 * the file `out`. errors IO */
rp_err rp_lane_run(rp_lane_child *lane, const char *const *words, const char *out) RP_MUST_CHECK;

#endif
