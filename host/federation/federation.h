/* A federated run: sites with private data train in rounds, and a rule averages their weights. A
 * round of a site is a child process, `ringpipe round`, whose result is a folder. So this process
 * may be killed at any time, and a resume gives the same bits.
 *
 *   OUT/run.yaml, model.yaml, data.json         the run
 *   OUT/sites/NAME.yaml, NAME.log               run files of the sites, and their output
 *   OUT/rounds/N/NAME/                          round N of a site
 *   OUT/center.safetensors, state.safetensors   the centre and the rule's state
 *   OUT/federation.json                         the last closed round, for a resume
 *
 *   rp_federation_open(&clock, &options, &federation)
 *   while (!rp_federation_has_ended(federation)) {
 *       wait for signals until rp_federation_step(federation, now);
 *   }
 *   err = rp_federation_close(&federation); */
#ifndef RP_FEDERATION_FEDERATION_H
#define RP_FEDERATION_FEDERATION_H

#include <stdio.h>

#include "base/clock.h"
#include "federation/engine.h"
#include "run/runfile.h"

/* All pointers are borrowed until rp_federation_close(). */
typedef struct {
    const char *run_path; /* a run file, or the folder of a run to resume */
    const char *const *set;
    uint32_t set_count;
    const char *out;  /* run folder; NULL: runs/<time>-<model>-sites */
    bool resume;      /* run_path is the folder */
    const char *keys; /* folder of keys; NULL: none given */
    const char *program;
    bool json;      /* `result` gets JSON instead of text */
    bool temporary; /* the folder is removed after the run: the result does not name it */
    FILE *progress; /* NULL: not shown */
    FILE *result;
    rp_site_engine engine; /* `kind` NULL: child processes */
} rp_federation_options;

typedef struct rp_federation rp_federation;

/* Bytes that a round moves, before it begins. */
typedef struct {
    uint32_t sites, members; /* of the split file; in a round */
    uint64_t weights_bytes;  /* of the centre: sent to a site */
    uint64_t update_bytes;   /* sent back: weights, or coded differences */
} rp_federation_cost;
/* Checks the split file and the trace too. errors  theirs; USAGE: the split file is of another data
 * set, or more sites would be in a round than allowed */
rp_err rp_federation_find_cost(rp_arena *arena, const rp_runfile *run,
                               rp_federation_cost *out) RP_MUST_CHECK;

/* Reads and checks the run file and those of the sites; starts nothing.
 * errors  USAGE, SHAPE, IO, FORMAT: exit code 2 */
rp_err rp_federation_open(const rp_clock *clock, const rp_federation_options *options,
                          rp_federation **out) RP_MUST_CHECK;
/* Runs one step; returns the latest time of the next call. */
int64_t rp_federation_step(rp_federation *federation, int64_t now_ns);
bool rp_federation_has_ended(const rp_federation *federation);
/* The first interrupt ends the run in an orderly way, the second at once. */
void rp_federation_interrupt(rp_federation *federation);
/* Returns the result of the run, from which the exit code follows. */
rp_err rp_federation_close(rp_federation **federation);

#endif
