/* The states of the controller, and a row of their table (states.c). */
#ifndef RP_CONTROL_STATE_H
#define RP_CONTROL_STATE_H

#include "ring/ring.h"

typedef struct rp_controller rp_controller;

typedef enum {
    RP_CONTROL_START,      /* local agents start */
    RP_CONTROL_ADOPT,      /* boards that lost their host report which state they hold */
    RP_CONTROL_HELLO,      /* every board is greeted */
    RP_CONTROL_PROFILE,    /* boards measure every layer; equal boards are measured once */
    RP_CONTROL_PLAN,       /* links are measured; the cut and the advance are chosen */
    RP_CONTROL_ASSIGN,     /* every board builds its stage */
    RP_CONTROL_LOAD,       /* tensors are sent to the boards */
    RP_CONTROL_TRAIN,      /* trains a segment */
    RP_CONTROL_EVALUATE,   /* scores a split */
    RP_CONTROL_STATISTICS, /* renews batch statistics */
    RP_CONTROL_SAVE,       /* boards send their tensors for a checkpoint */
    RP_CONTROL_ROUND,      /* a lane's checkpoint is averaged with those of all lanes */
    RP_CONTROL_VERIFY,     /* other boards recompute a microbatch */
    RP_CONTROL_DRAIN,      /* trains a segment that ends with empty pipes */
    RP_CONTROL_COPY,       /* boards copy their state, for themselves and for a neighbour */
    RP_CONTROL_RESTART,    /* lost local agents are started again */
    RP_CONTROL_RESCUE,     /* the state of lost boards is fetched from copies */
    RP_CONTROL_RECOVER,    /* the response to a fault is chosen and started */
    RP_CONTROL_CLOSE,      /* says goodbye to the boards and gives them a moment to end */
    RP_CONTROL_ENDED,
    RP_CONTROL_STATES
} rp_control_state_id;

/* What every board must have done before a state is left. */
typedef enum {
    RP_DONE_NONE, /* the state does not wait for boards one by one */
    RP_DONE_GREETED,
    RP_DONE_PROFILED,
    RP_DONE_ANSWERED, /* the ping of this pause */
    RP_DONE_READY,
    RP_DONE_FINISHED,
    RP_DONE_COPIED,
    RP_DONE_SAVED
} rp_control_done;

/* What a state owns, and a fault in it has to release. */
typedef enum {
    RP_HOLDS_NOTHING,
    RP_HOLDS_LOAD,
    RP_HOLDS_SEGMENT,
    RP_HOLDS_RECORDS, /* boards' records of a microbatch that is verified */
    RP_HOLDS_SAVE,
    RP_HOLDS_RESCUE
} rp_control_holds;

/* Which error a timeout of the state raises. */
typedef enum {
    RP_LATE_BOARD,   /* names the first board that is not done */
    RP_LATE_AGENTS,  /* the agents did not start */
    RP_LATE_HELD,    /* boards did not report what they hold */
    RP_LATE_HELLO,   /* names a board that has not greeted, and the cause */
    RP_LATE_PROFILE, /* names the first board without its measurement */
    RP_LATE_LOAD,    /* names the board with a full link */
    RP_LATE_REPORTS, /* no board reports anything */
    RP_LATE_SAVE,    /* counts the boards that have not sent everything */
    RP_LATE_RECORDS, /* names what is missing for the verification */
    RP_LATE_LANES    /* some lanes did not finish the round */
} rp_control_late;

typedef struct {
    const char *name;
    const char *waits_for; /* what must arrive before the state is left */
    int64_t timeout_ns;    /* time without progress; 0: no timeout */
    uint32_t next;         /* set of states (1 << id) that may follow; RECOVER always may */
    /* Fault text of an interrupt in this state; NULL: the state first goes on to its end. */
    const char *interrupted;
    rp_err (*enter)(rp_controller *c);
    /* Sends what the links can take, and leaves the state when all that it waits for has
     * arrived. */
    rp_err (*step)(rp_controller *c);
    rp_control_holds holds;
    rp_control_done done;
    rp_control_late late;
} rp_control_state;

extern const rp_control_state rp_control_states[RP_CONTROL_STATES];

#endif
