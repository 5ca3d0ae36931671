/* `ringpipe boards warm`: the ring is brought up as for a run, as far as its kernels. Boards
 * measure what a plan needs, build what their stages need, keep that in their caches, and forget
 * the rest. After the ring's own boards, spares stand in their places, others in each round, and
 * build what is needed there; the boards of the other places rest meanwhile. All of it has one
 * deadline, which the boards know: each gives up by itself, and says in what. */
#ifndef RP_WARM_WARM_H
#define RP_WARM_WARM_H

#include <stdio.h>

#include "ring/ring.h"

typedef struct rp_warm rp_warm;

/* Borrowed as long as the room lives. */
typedef struct {
    const rp_runfile *run;
    const rp_ring *ring;
    uint32_t within_s; /* that the boards have, 1 at least */
    FILE *progress;    /* what a person watches; NULL: nothing is shown */
    FILE *result;      /* NULL: it is not wanted */
    bool as_json;      /* the result is JSON; else text */
} rp_warm_needs;
/* Everything lives in `arena`. errors MEMORY */
rp_err rp_warm_open(rp_arena *arena, const rp_warm_needs *needs, rp_warm **out) RP_MUST_CHECK;

/* ---- time: each of these accepts NULL, where the ring is not warmed -------------------------- */

/* Boards build from now on; the first call begins the time that they have. Returns how long they
 * may take, with a moment for those whose software does not know the deadline; 0: not limited
 * here. */
int64_t rp_warm_begin_ns(rp_warm *warm);
/* What is left for an order, in seconds, at least 1; 0: the order is not for warming. */
uint32_t rp_warm_order_s(const rp_warm *warm);
/* How long a lost board may take to come, from its first greeting on; 0: none was lost. */
int64_t rp_warm_patience_ns(const rp_warm *warm);
/* Says how many kernels are ready, now and then. */
void rp_warm_say(rp_warm *warm);
/* The board of this place has nothing to do in this round. */
bool rp_warm_rests(const rp_warm *warm, uint32_t place);

/* ---- rounds ---------------------------------------------------------------------------------- */

typedef enum {
    RP_WARM_ROUND, /* another round: boards are placed as rp_warm_place_of() says, and greeted */
    RP_WARM_OVER   /* rp_warm_finish() */
} rp_warm_outcome;
/* All boards are ready. errors MEMORY */
rp_err rp_warm_end_round(rp_warm *warm, rp_warm_outcome *out) RP_MUST_CHECK;

/* The board that stands at a place in this round. */
typedef struct {
    const char *name;
    const rp_roster_entry *entry; /* NULL: an agent of this machine */
    rp_board_building built;      /* what it has built before */
    const char *instead_of;       /* of a spare: the ring's own board there; else NULL */
} rp_warm_place;
rp_warm_place rp_warm_place_of(const rp_warm *warm, uint32_t place);
uint32_t rp_warm_places(const rp_warm *warm); /* that a round has */

/* Shows the result. *incomplete: RP_OK, or FAULT naming a spare that is not warm, and why.
 * errors FORMAT, IO */
rp_err rp_warm_finish(const rp_warm *warm, rp_err *incomplete) RP_MUST_CHECK;

/* ---- faults ---------------------------------------------------------------------------------- */

typedef struct {
    rp_err err; /* RP_OK: there is none */
    const char *text;
    uint32_t board;      /* RP_NO_BOARD: of no board in particular */
    bool is_lost;        /* the board is, as far as its link tells */
    bool while_greeting; /* else while boards build */
    bool interrupted;    /* by a person */
} rp_warm_fault;

/* A board was lost while there is time left: it is waited for, and warming goes on. What a board
 * says itself would come again. Accepts NULL. */
bool rp_warm_may_wait(const rp_warm *warm, const rp_warm_fault *fault);
void rp_warm_wait(rp_warm *warm, const rp_warm_fault *fault);
/* The fault ends the part of some spares, and not more. Accepts NULL. */
bool rp_warm_may_leave(const rp_warm *warm, const rp_warm_fault *fault);
/* They are left out from here on. errors MEMORY */
rp_err rp_warm_leave(rp_warm *warm, const rp_warm_fault *fault, rp_warm_outcome *out) RP_MUST_CHECK;

#endif
