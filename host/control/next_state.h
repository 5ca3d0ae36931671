/* What comes next after HELLO, at a pause of the run, and after a fault: pure functions of what is
 * known. start.c, pause.c and recover_state.c collect the facts and carry the answers out. */
#ifndef RP_CONTROL_NEXT_STATE_H
#define RP_CONTROL_NEXT_STATE_H

#include "control/state.h"

/* ---- after HELLO ----------------------------------------------------------------------------- */

typedef struct {
    bool copies_wanted; /* the run has gone back to copies, which boards have */
    bool keeps_cut;     /* boards have had stages before, and the cut fits their number */
    bool lacks_profile; /* something that is to be chosen needs a profile, and none is there */
} rp_next_greeted;

rp_control_state_id rp_next_after_hello(const rp_next_greeted *facts);

/* ---- at a pause ------------------------------------------------------------------------------ */

typedef enum {
    RP_NEXT_ENTER,      /* the state of the answer */
    RP_NEXT_SAY_METHOD, /* the new method is in effect and saved: say so, then ask again */
    RP_NEXT_INTERRUPT,  /* the run ends here because a person has interrupted it */
    RP_NEXT_REASSIGN,   /* the pipes are empty: the boards get the stages of the new method */
    RP_NEXT_REPLAN,     /* choose another cut where that pays, then ask again */
    RP_NEXT_JOIN,       /* let boards join that have come back; ask again if none does */
    RP_NEXT_FINISH      /* the run is over */
} rp_next_step;

/* An answer that says "ask again" is about facts that cost something: they are fetched only when
 * they matter. */
typedef struct {
    rp_control_state_id state; /* that ends */
    bool trains;               /* else the run is one evaluation, and no other fact counts */
    bool interrupted;
    /* the step at hand */
    bool verify_due;      /* a microbatch of it is to be computed again */
    bool verify_alone;    /* the segment ended only so that it can be computed again */
    bool adopted;         /* a checkpoint was made of what boards held that had lost their host */
    bool unsaved;         /* trained since the last checkpoint */
    bool copies_suffice;  /* copies are all that is due */
    bool statistics_due;  /* batch statistics are to be renewed before the checkpoint */
    bool round_due;       /* of a lane: its checkpoint is averaged with those of the others */
    bool kept_here;       /* the newest checkpoint is of this step */
    bool is_over;         /* the last step is trained */
    bool weights_missing; /* the last step is trained, and there is no weights file */
    bool evaluation_due;
    bool ends_early; /* the run ends for lack of gain at a later step, once the pipes drain */
    bool is_drained; /* nothing is in flight */
    /* what the ring is to run with */
    bool new_method_saved; /* the checkpoint after a change of the method is written */
    bool method_drains;    /* a change is decided, and the pipes were drained for it */
    bool replanned;        /* RP_NEXT_REPLAN was carried out at this pause */
    bool replan_pays;      /* another cut was chosen then */
    bool none_joins;       /* RP_NEXT_JOIN was carried out at this pause, and no board joined */
    bool codecs_wanted;    /* other codecs are chosen, and are not in effect yet: the old ones lost
                              too much, or wires were full */
    bool links_due;        /* links are to be measured */
} rp_next_pause;

typedef struct {
    rp_next_step step;
    rp_control_state_id state; /* of RP_NEXT_ENTER */
} rp_next_answer;

rp_next_answer rp_next_at_pause(const rp_next_pause *facts);

/* ---- after a fault --------------------------------------------------------------------------- */

typedef enum {
    RP_NEXT_WAIT,           /* for the disk */
    RP_NEXT_LEAVE_ADOPTION, /* on from a checkpoint, with a new term */
    RP_NEXT_WARM_AGAIN,     /* warming waits for the lost board */
    RP_NEXT_WARM_WITHOUT,   /* warming goes on without the spares that failed */
    RP_NEXT_RETURN,         /* no fault: boards have joined the ring */
    RP_NEXT_MEND            /* fault_remedy.h decides how */
} rp_next_way;

typedef struct {
    bool faulty;          /* there is a fault; else boards have joined */
    bool disk_fails;      /* the way on writes into the run folder, which rejects writes */
    bool leaves_adoption; /* boards were being adopted, and the run goes on without that */
    bool warm_waits;      /* warming has time left for the lost board */
    bool warm_leaves;     /* warming may go on without spares */
} rp_next_fault;

rp_next_way rp_next_after_fault(const rp_next_fault *facts);

#endif
