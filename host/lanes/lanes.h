/* A run of lanes: each lane is a controller in its own child process, with its own ring and run
 * folder. After a number of steps the lanes' weights are averaged elastically with a centre, which
 * is the run's result. The run does not wait for a lane that is away; when it comes back, it counts
 * the less the more rounds it has missed.
 *
 *   OUT/run.yaml, model.yaml, data.json   the run
 *   OUT/lane-<k>/, lane-<k>.log           the lanes and their output
 *   OUT/center.safetensors, lanes.json    the centre and the last round, for a resume
 *
 *   rp_lanes_open(&env, &options, &lanes)
 *   while (!rp_lanes_have_ended(lanes)) {
 *       wait for rp_lanes_fds() until rp_lanes_step(lanes, now); hand in signals;
 *   }
 *   err = rp_lanes_close(&lanes); */
#ifndef RP_LANES_LANES_H
#define RP_LANES_LANES_H

#include <stdio.h>

#include "base/clock.h"
#include "run/lanes.h"

/* All pointers are borrowed until rp_lanes_close(). */
typedef struct {
    const char *run_path; /* a run file, or the folder of a run to resume */
    const char *const *set;
    uint32_t set_count;
    const char *out;  /* run folder; NULL: runs/<time>-<model>-lanes */
    bool resume;      /* run_path is the folder */
    const char *keys; /* folder of keys; NULL: none given */
    const char *program;
    bool json;      /* `result` gets JSON instead of text */
    FILE *progress; /* NULL: not shown */
    FILE *result;
} rp_lanes_options;

typedef struct rp_lanes rp_lanes;

/* Reads and checks the run file as each lane will; starts nothing.
 * errors USAGE, SHAPE, IO, FORMAT: exit code 2 */
rp_err rp_lanes_open(const rp_clock *clock, const rp_lanes_options *options,
                     rp_lanes **out) RP_MUST_CHECK;
/* Runs one step; returns the latest time of the next call. */
int64_t rp_lanes_step(rp_lanes *lanes, int64_t now_ns);
bool rp_lanes_have_ended(const rp_lanes *lanes);
/* Lists descriptors that become readable when there is something to do; at most RP_LANES_MAX.
 * Returns how many. */
uint32_t rp_lanes_fds(const rp_lanes *lanes, int fd[RP_LANES_MAX]);
/* The first interrupt ends the run in an orderly way, the second at once. */
void rp_lanes_interrupt(rp_lanes *lanes);
/* Returns the result of the run, from which the exit code follows. */
rp_err rp_lanes_close(rp_lanes **lanes);

#endif
