/* A run of lanes: each lane is a controller of its own in a child process, with a ring and a run
 * folder of its own. Every so many steps their weights are averaged elastically with a centre,
 * which is the run's result. A lane that is away is not waited for; it joins again, less the later
 * it is.
 *
 *   OUT/run.yaml, model.yaml, data.json   the run
 *   OUT/lane-<k>/, lane-<k>.log           the lanes, and what they said
 *   OUT/center.safetensors, lanes.json    the centre, and the last round: what a resumed run needs
 *
 *   rp_lanes_open(&env, &options, &lanes)
 *   while (!rp_lanes_have_ended(lanes)) {
 *       wait for rp_lanes_fds() until rp_lanes_step(lanes, now); hand in signals;
 *   }
 *   err = rp_lanes_close(&lanes);
 */
#ifndef RP_LANES_LANES_H
#define RP_LANES_LANES_H

#include <stdio.h>

#include "base/clock.h"
#include "run/lanes.h"

/* Borrowed as long as the run lives. */
typedef struct {
    const char *run_path; /* a run file, or the folder of a run that goes on */
    const char *const *set;
    uint32_t set_count;
    const char *out;  /* run folder; NULL: runs/<time>-<model>-lanes */
    bool resume;      /* run_path is the folder */
    const char *keys; /* folder, or NULL */
    const char *program;
    bool json;      /* the result on `result` as JSON, not text */
    FILE *progress; /* NULL: nobody watches */
    FILE *result;
} rp_lanes_options;

typedef struct rp_lanes rp_lanes;

/* Whether the run file, or that of the folder, has lanes.
 * errors  those of rp_config_read_file(), of rp_config_set() and of the key `lanes` */
rp_err rp_lanes_are_asked_for(const char *path, const char *const *set, uint32_t set_count,
                              bool *yes) RP_MUST_CHECK;

/* Reads and checks the run file as each lane will; starts nothing.
 * errors  USAGE, SHAPE, IO, FORMAT: exit code 2 */
rp_err rp_lanes_open(const rp_clock *clock, const rp_lanes_options *options,
                     rp_lanes **out) RP_MUST_CHECK;
/* Does what is due; returns when it has to be called again at the latest. */
int64_t rp_lanes_step(rp_lanes *lanes, int64_t now_ns);
bool rp_lanes_have_ended(const rp_lanes *lanes);
/* Readable when there is something to do: at most RP_LANES_MAX, how many. */
uint32_t rp_lanes_fds(const rp_lanes *lanes, int fd[RP_LANES_MAX]);
/* The first ends the run in an orderly way, the second at once. */
void rp_lanes_interrupt(rp_lanes *lanes);
/* What the run came to, as its exit code says. */
rp_err rp_lanes_close(rp_lanes **lanes);

#endif
