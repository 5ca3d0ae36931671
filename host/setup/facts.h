/* The facts from which the next setup is chosen (next_setup.h), and the reasons for the choice. */
#ifndef RP_SETUP_FACTS_H
#define RP_SETUP_FACTS_H

#include "base/clock.h"
#include "planning/profile.h"
#include "record/words.h"
#include "run/setup.h"

/* All pointers are borrowed. */
typedef struct {
    const char *const *name;   /* [boards], in ring order */
    const rp_profile *profile; /* places are ignored; NULL: nothing measured */
    double delay_s;            /* latency of a wire, where unknown */
    const rp_clock *clock;     /* limits searches to plan.seconds; may be NULL without a limit */
    const rp_cut *then;        /* cut of the checkpoint; stage_count 0: none */
    bool is_given;             /* the user gave the plan; the setup has its cut */
    bool evaluates;            /* the run is a single evaluation */
    bool has_begun;            /* boards have been loaded: boards and order are fixed */
} rp_setup_facts;

/* Why the next setup differs, for the user. The texts are in the caller's arena. */
enum { RP_SETUP_EVENTS_MAX = 12 };
typedef struct {
    uint32_t count;
    rp_run_event event[RP_SETUP_EVENTS_MAX]; /* in the order of the choices; `step` is not set */
    const char *boards;                      /* some lines on boards and order; NULL: not chosen */
    const char *schedule;                    /* a sentence on the schedule; NULL: not chosen */
} rp_setup_why;

/* Keys that the resolved run file gets, for choices that hold for the whole run. */
enum { RP_SETUP_SETTLED_MAX = 8 };
typedef struct {
    uint32_t count;
    char *set[RP_SETUP_SETTLED_MAX]; /* "train.microbatch=4" */
} rp_setup_settled;

#endif
