/* Everything that a controller takes from outside is an argument: time, links, the processes of
 * local boards, batches, the terminal. So one process can hold several controllers, and a test or a
 * simulation gives its own. Signals are events: see rp_controller_interrupt(). */
#ifndef RP_CONTROL_ENV_H
#define RP_CONTROL_ENV_H

#include <stdio.h>

#include "data/data.h"
#include "link/link.h"
#include "ring/spawner.h"
#include "run/cause.h"
#include "run/entry.h"

/* Of a lane: the run that it is a part of averages the checkpoints of its lanes (run/lanes.h). */
typedef struct {
    uint64_t step, samples; /* trained by this lane */
    double loss;            /* mean since the last report; NAN: not known */
} rp_lane_report;
typedef struct {
    /* The checkpoint of this step is written. errors IO */
    rp_err (*reach)(void *self, const rp_lane_report *report);
    /* *yes: in its place there is now what the run has made of it.
     * errors  INTERRUPTED: the run has gone */
    rp_err (*answered)(void *self, uint64_t step, bool *yes);
    int (*fd)(void *self); /* readable when there may be an answer */
} rp_lane_end_kind;
typedef struct {
    const rp_lane_end_kind *kind; /* NULL: the ring is no lane */
    void *self;
} rp_lane_end;

typedef struct {
    const rp_clock *clock; /* borrowed, and everywhere the same */
    /* Links of this ring are opened here, with these keys. NULL: over the network, with keys that
     * are made for local boards and read from the keys' folder for a roster. */
    rp_links *links;
    const rp_keypair *keys;
    const rp_media *media; /* of emulated lines, also of boards that are started; NULL: none */
    rp_spawner spawner;    /* for `ring: local`; kind NULL: there is none */
    rp_lane_end lane;
    rp_feeder_mode feeder;
    uint64_t run_id;    /* of a run folder that has none yet; 0: random */
    FILE *progress;     /* what a person watches; NULL: nothing is shown */
    FILE *result;       /* gets the result; NULL: it is not wanted */
    const char *origin; /* this machine's name, which boards tell to other hosts; NULL: none */
    /* Why a board of a roster does not answer: what is known so far, or NULL; does not block.
     * NULL: it is not found out. */
    const rp_cause *(*find_cause)(void *self, const rp_roster_entry *board, const rp_keypair *keys);
    void *find_self;
    /* Told of every state that is entered, by name: for an event log, a trace. May be NULL. */
    void (*on_state)(void *context, const char *state);
    /* Told what is done about a fault (fault_remedy.h) that ended a state. May be NULL. */
    void (*on_remedy)(void *context, const char *failed, const char *remedy);
    /* Told when boards that were away have joined the ring again. May be NULL. */
    void (*on_joined)(void *context);
    void *context;
} rp_controller_env;

#endif
