/* `ringpipe boards warm`: brings a ring up as for a run, up to its kernels. Boards measure what a
 * plan needs, build what their stages need, keep the kernels in their caches, and forget everything
 * else. After the ring's own boards, spares take their places, different ones in each round, and
 * build what is needed there; boards of other places rest meanwhile. There is one deadline, which
 * the boards know: each stops by itself and reports what is missing. */
#ifndef RP_WARM_WARM_H
#define RP_WARM_WARM_H

#include <stdio.h>

#include "ring/ring.h"

typedef struct rp_warm rp_warm;

/* All pointers are borrowed for the lifetime of rp_warm. */
typedef struct {
    const rp_runfile *run;
    const rp_ring *ring;
    uint32_t within_s; /* seconds that the boards have, at least 1 */
    FILE *progress;    /* progress for the user; NULL: not shown */
    FILE *result;      /* receives the result; NULL: none wanted */
    bool as_json;      /* the result is JSON; else text */
} rp_warm_needs;
/* Everything is allocated in `arena`. errors MEMORY */
rp_err rp_warm_open(rp_arena *arena, const rp_warm_needs *needs, rp_warm **out) RP_MUST_CHECK;

/* ---- time: each of these accepts NULL, where the ring is not warmed -------------------------- */

/* Boards build from now on; the first call starts the deadline. Returns the time left, plus a
 * moment for boards whose software does not know the deadline; 0: unlimited. */
int64_t rp_warm_begin_ns(rp_warm *warm);
/* Seconds left for an order, at least 1; 0: not `boards warm`. */
uint32_t rp_warm_order_s(const rp_warm *warm);
/* How long a lost board may take to come back, counted from its first greeting; 0: none was
 * lost. */
int64_t rp_warm_patience_ns(const rp_warm *warm);
/* Shows from time to time how many kernels are ready. */
void rp_warm_say(rp_warm *warm);
/* The board of this place has nothing to do in this round. */
bool rp_warm_rests(const rp_warm *warm, uint32_t place);

/* ---- rounds ---------------------------------------------------------------------------------- */

typedef enum {
    RP_WARM_ROUND, /* another round: place boards as rp_warm_place_of() says, and greet them */
    RP_WARM_OVER   /* finished: call rp_warm_finish() */
} rp_warm_outcome;
/* All boards of the round are ready. errors MEMORY */
rp_err rp_warm_end_round(rp_warm *warm, rp_warm_outcome *out) RP_MUST_CHECK;

/* The board at a place in this round. */
typedef struct {
    const char *name;
    const rp_roster_entry *entry; /* NULL: a local agent */
    rp_board_building built;      /* what it has built before */
    const char *instead_of;       /* for a spare: the ring's own board there; else NULL */
} rp_warm_place;
rp_warm_place rp_warm_place_of(const rp_warm *warm, uint32_t place);
uint32_t rp_warm_places(const rp_warm *warm); /* number of places */

/* Shows the result. *incomplete: RP_OK, or FAULT naming a spare that is not warm, and why.
 * errors FORMAT, IO */
rp_err rp_warm_finish(const rp_warm *warm, rp_err *incomplete) RP_MUST_CHECK;

/* ---- faults ---------------------------------------------------------------------------------- */

typedef struct {
    rp_err err; /* RP_OK: no fault */
    const char *text;
    uint32_t board;      /* RP_NO_BOARD: no particular board */
    bool is_lost;        /* the board is lost, according to its link */
    bool while_greeting; /* else while boards build */
    bool interrupted;    /* by the user */
} rp_warm_fault;

/* A board was lost while time is left: the run waits for it and goes on. Faults that a board
 * reports itself would recur. Accepts NULL. */
bool rp_warm_may_wait(const rp_warm *warm, const rp_warm_fault *fault);
void rp_warm_wait(rp_warm *warm, const rp_warm_fault *fault);
/* The fault only concerns some spares, so warming goes on without them. Accepts NULL. */
bool rp_warm_may_leave(const rp_warm *warm, const rp_warm_fault *fault);
/* Leaves those spares out from now on. errors MEMORY */
rp_err rp_warm_leave(rp_warm *warm, const rp_warm_fault *fault, rp_warm_outcome *out) RP_MUST_CHECK;

#endif
