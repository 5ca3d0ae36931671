/* Everything that a controller takes from outside is an argument: time, links, processes of local
 * boards, batches, the terminal. So one process can hold several controllers, and tests and
 * simulations supply their own. Signals are events: see rp_controller_interrupt(). */
#ifndef RP_CONTROL_ENV_H
#define RP_CONTROL_ENV_H

#include <stdio.h>

#include "data/data.h"
#include "link/link.h"
#include "ring/spawner.h"
#include "run/cause.h"
#include "run/entry.h"

/* The connection of a lane to its run, which averages the checkpoints of its lanes
 * (run/lanes.h). */
typedef struct {
    uint64_t step, samples; /* trained by this lane */
    double loss;            /* mean since the last report; NAN: not known */
} rp_lane_report;
typedef struct {
    /* Reports that the checkpoint of report->step is written. errors IO */
    rp_err (*reach)(void *self, const rp_lane_report *report);
    /* *yes: the run has replaced that checkpoint with the averaged one. errors INTERRUPTED: the run
     * has ended */
    rp_err (*answered)(void *self, uint64_t step, bool *yes);
    int (*fd)(void *self); /* readable when there may be an answer */
} rp_lane_end_kind;
typedef struct {
    const rp_lane_end_kind *kind; /* NULL: the ring is not a lane */
    void *self;
} rp_lane_end;

typedef struct {
    const rp_clock *clock; /* borrowed; the same for all links and rooms */
    /* The network of this ring, with `keys` as the host's. NULL: real sockets, with keys made for
     * local boards or read from the keys' folder for a roster. */
    rp_links *links;
    const rp_keypair *keys;
    const rp_media *media; /* emulated lines, also for local boards; NULL: none */
    rp_spawner spawner;    /* starts the boards of `ring: local`; kind NULL: not possible */
    rp_lane_end lane;
    rp_feeder_mode feeder;
    uint64_t run_id;    /* id for a run folder that has none yet; 0: random */
    FILE *progress;     /* progress for the user; NULL: not shown */
    FILE *result;       /* receives the result; NULL: none wanted */
    const char *origin; /* name of this machine, which boards report to other hosts; NULL: none */
    /* Returns why a board of a roster does not answer, as far as known, or NULL. Does not block.
     * NULL: causes are not looked up. */
    const rp_cause *(*find_cause)(void *self, const rp_roster_entry *board, const rp_keypair *keys);
    void *find_self;
    /* Called with the name of every state that is entered, for event logs and traces. May be
     * NULL. */
    void (*on_state)(void *context, const char *state);
    /* Called with the remedy (fault_remedy.h) chosen for a fault that ended state `failed`. May be
     * NULL. */
    void (*on_remedy)(void *context, const char *failed, const char *remedy);
    /* Called when boards have rejoined the ring. May be NULL. */
    void (*on_joined)(void *context);
    void *context;
} rp_controller_env;

#endif
