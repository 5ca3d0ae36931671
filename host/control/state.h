/* The states of the controller, and what a row of their table (states.c) says of one. */
#ifndef RP_CONTROL_STATE_H
#define RP_CONTROL_STATE_H

#include "ring/ring.h"

typedef struct rp_controller rp_controller;

typedef enum {
    RP_CONTROL_START,      /* boards of this machine come up */
    RP_CONTROL_ADOPT,      /* boards that have lost their host are asked what they hold */
    RP_CONTROL_HELLO,      /* every board is greeted */
    RP_CONTROL_PROFILE,    /* every layer is measured, on boards that differ */
    RP_CONTROL_PLAN,       /* links are measured, cut and forwards in flight are chosen */
    RP_CONTROL_ASSIGN,     /* every board builds its stage */
    RP_CONTROL_LOAD,       /* tensors go to the boards */
    RP_CONTROL_TRAIN,      /* a segment */
    RP_CONTROL_EVALUATE,   /* a pass over a split */
    RP_CONTROL_STATISTICS, /* a pass that renews batch statistics */
    RP_CONTROL_SAVE,       /* tensors come from the boards */
    RP_CONTROL_ROUND,      /* a lane's checkpoint is averaged with those of the others */
    RP_CONTROL_VERIFY,     /* a microbatch is computed again on other boards */
    RP_CONTROL_DRAIN,      /* a segment that leaves nothing in flight */
    RP_CONTROL_COPY,       /* boards copy what they hold, for each other */
    RP_CONTROL_RESTART,    /* boards that were lost come up again */
    RP_CONTROL_RESCUE,     /* what lost boards held comes from such copies */
    RP_CONTROL_RECOVER,    /* something went wrong: what now? */
    RP_CONTROL_CLOSE,      /* goodbye, and a moment for the boards to end */
    RP_CONTROL_ENDED,
    RP_CONTROL_STATES
} rp_control_state_id;

/* What each board has to have done before a state is left. */
typedef enum {
    RP_DONE_NONE, /* the state does not wait for boards one by one */
    RP_DONE_GREETED,
    RP_DONE_PROFILED,
    RP_DONE_ANSWERED, /* a ping of this pause */
    RP_DONE_READY,
    RP_DONE_FINISHED,
    RP_DONE_COPIED,
    RP_DONE_SAVED
} rp_control_done;

/* What only the state holds, and is released when a fault ends it. */
typedef enum {
    RP_HOLDS_NOTHING,
    RP_HOLDS_LOAD,
    RP_HOLDS_SEGMENT,
    RP_HOLDS_RECORDS, /* what boards have recorded of a microbatch that is verified */
    RP_HOLDS_SAVE,
    RP_HOLDS_RESCUE
} rp_control_holds;

/* Which error a time-out is. */
typedef enum {
    RP_LATE_BOARD,   /* the first board that is not done */
    RP_LATE_AGENTS,  /* they have not come up */
    RP_LATE_HELD,    /* boards do not say what they hold */
    RP_LATE_HELLO,   /* a board that has not greeted, and why */
    RP_LATE_PROFILE, /* the first board that has not measured what it was asked for */
    RP_LATE_LOAD,    /* the board that takes no message */
    RP_LATE_REPORTS, /* no board reports anything */
    RP_LATE_SAVE,    /* how many boards have not sent all */
    RP_LATE_RECORDS, /* what is missing of a microbatch that is verified */
    RP_LATE_LANES    /* the other lanes */
} rp_control_late;

typedef struct {
    const char *name;
    const char *waits_for; /* what must come before the state is left */
    int64_t timeout_ns;    /* without progress; 0: the state does not wait */
    uint32_t next;         /* set of states (1 << id) that may follow; RECOVER may always */
    /* What an interrupt means here, as the fault's text; NULL: the state goes on to its end. */
    const char *interrupted;
    rp_err (*enter)(rp_controller *c);
    /* Sends what there is room for, and leaves the state when what it waits for is there. */
    rp_err (*step)(rp_controller *c);
    rp_control_holds holds;
    rp_control_done done;
    rp_control_late late;
} rp_control_state;

extern const rp_control_state rp_control_states[RP_CONTROL_STATES];

#endif
