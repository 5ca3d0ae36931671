/* What the choice of the next setup (next_setup.h) is made from, and what it says. */
#ifndef RP_SETUP_FACTS_H
#define RP_SETUP_FACTS_H

#include "base/clock.h"
#include "planning/profile.h"
#include "run/setup.h"

/* All pointers are borrowed. */
typedef struct {
    const char *const *name;   /* [boards] in the order of the ring */
    const rp_profile *profile; /* its places do not matter; NULL: nothing is measured */
    double delay_s;            /* of a wire whose latency is unknown */
    const rp_clock *clock; /* bounds searches by plan.seconds; NULL is allowed without a bound */
    const rp_cut *then;    /* cut of the checkpoint at hand; stage_count 0: there is none */
    bool is_given;         /* a person gives the plan; the setup has its cut */
    bool evaluates;        /* the run is one evaluation */
    bool has_begun;        /* boards have been loaded: they and their order stay */
} rp_setup_facts;

/* Why the next setup differs, for people. The texts are in the arena of the call. */
enum { RP_SETUP_EVENTS_MAX = 12 };
typedef struct {
    uint32_t count;
    struct {
        const char *name, *text;
    } event[RP_SETUP_EVENTS_MAX]; /* in the order in which things were chosen */
    const char *boards;           /* a few lines about boards and order; NULL: not chosen */
    const char *schedule;         /* a sentence about the schedule; NULL: not chosen */
} rp_setup_why;

/* What the resolved run file gets of choices that hold for the whole run. */
enum { RP_SETUP_SETTLED_MAX = 8 };
typedef struct {
    uint32_t count;
    char *set[RP_SETUP_SETTLED_MAX]; /* "train.microbatch=4" */
} rp_setup_settled;

#endif
