/* Which state follows HELLO, a pause of the run, or a fault: pure functions of known facts.
 * start.c, pause.c and recover_state.c collect the facts and carry out the answers. */
#ifndef RP_CONTROL_NEXT_STATE_H
#define RP_CONTROL_NEXT_STATE_H

#include "control/state.h"

/* ---- after HELLO ----------------------------------------------------------------------------- */

typedef struct {
    bool copies_wanted; /* the run goes back to copies, which boards hold */
    bool keeps_cut;     /* the boards had stages before, and the cut fits their number */
    bool lacks_profile; /* an open choice needs a profile, and no profile is known */
} rp_next_greeted;

rp_control_state_id rp_next_after_hello(const rp_next_greeted *facts);

/* ---- at a pause ------------------------------------------------------------------------------ */

typedef enum {
    RP_NEXT_ENTER,      /* enter `state` */
    RP_NEXT_SAY_METHOD, /* the new method is in effect and saved: log it, then ask again */
    RP_NEXT_INTERRUPT,  /* the user interrupted the run: it ends here */
    RP_NEXT_REASSIGN,   /* the pipes are empty: assign stages by the new method */
    RP_NEXT_REPLAN,     /* choose another cut if that pays, then ask again */
    RP_NEXT_JOIN,       /* let boards rejoin; if none does, ask again */
    RP_NEXT_FINISH      /* the run has finished */
} rp_next_step;

/* Some facts are expensive. An answer that says "ask again" requests one of them; the caller
 * obtains it and asks again with the added fact. */
typedef struct {
    rp_control_state_id state; /* the current state, which ends */
    bool trains;               /* false: the run is a single evaluation, and no other fact counts */
    bool interrupted;
    /* the current step */
    bool verify_due;      /* a microbatch of it is to be recomputed by other boards */
    bool verify_alone;    /* the segment ended only for that verification */
    bool adopted;         /* a checkpoint was made from state that boards held without a host */
    bool unsaved;         /* steps were trained since the last checkpoint */
    bool copies_suffice;  /* copies are due and nothing else */
    bool statistics_due;  /* batch statistics are to be renewed before the checkpoint */
    bool round_due;       /* a lane's checkpoint is to be averaged with those of all lanes */
    bool kept_here;       /* the newest checkpoint is of this step */
    bool is_over;         /* the last step is trained */
    bool weights_missing; /* the last step is trained, but the weights file is missing */
    bool evaluation_due;
    bool ends_early; /* the run stops for lack of gain at a later step, when the pipes are empty */
    bool is_drained; /* nothing is in flight */
    /* the next setup */
    bool new_method_saved; /* the checkpoint after a change of the method is written */
    bool method_drains;    /* a change was decided, and the pipes were drained for it */
    bool replanned;        /* RP_NEXT_REPLAN was carried out at this pause */
    bool replan_pays;      /* and another cut was chosen */
    bool none_joins;       /* RP_NEXT_JOIN was carried out at this pause, and no board joined */
    bool codecs_wanted;    /* other codecs are chosen but not in effect: the current ones lost too
                              much, or a wire was full */
    bool links_due;        /* links are to be measured */
} rp_next_pause;

typedef struct {
    rp_next_step step;
    rp_control_state_id state; /* with RP_NEXT_ENTER */
} rp_next_answer;

rp_next_answer rp_next_at_pause(const rp_next_pause *facts);

/* ---- after a fault --------------------------------------------------------------------------- */

typedef enum {
    RP_NEXT_WAIT,           /* wait for the disk */
    RP_NEXT_LEAVE_ADOPTION, /* continue from a checkpoint in a new term */
    RP_NEXT_WARM_AGAIN,     /* `boards warm` waits for the lost board */
    RP_NEXT_WARM_WITHOUT,   /* `boards warm` goes on without the failed spares */
    RP_NEXT_RETURN,         /* no fault: boards are rejoining the ring */
    RP_NEXT_MEND            /* choose and carry out a remedy (fault_remedy.h) */
} rp_next_way;

typedef struct {
    bool faulty;          /* there is a fault; else boards are rejoining */
    bool disk_fails;      /* the recovery writes to the run folder, which rejects writes */
    bool leaves_adoption; /* an adoption was under way, and the run goes on without it */
    bool warm_waits;      /* `boards warm` has time left for the lost board */
    bool warm_leaves;     /* `boards warm` may go on without spares */
} rp_next_fault;

rp_next_way rp_next_after_fault(const rp_next_fault *facts);

#endif
