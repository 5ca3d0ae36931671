/* The way from one plan to the next: the state `plan`, and what follows. */
#ifndef RP_CONTROL_OWN_PLAN_H
#define RP_CONTROL_OWN_PLAN_H

#include "checkpoint/checkpoint.h"
#include "setup/arrangement.h"

typedef struct rp_controller rp_controller;

/* advance: auto, when links have changed: what the run goes on with, and where that stands. */
typedef struct {
    enum {
        RP_FOLLOW_NONE,
        RP_FOLLOW_DRAIN,  /* decided; the pipes drain and a checkpoint is written */
        RP_FOLLOW_ASSIGN, /* the boards get their new stages, and the checkpoint back */
        RP_FOLLOW_SAVE    /* the same checkpoint once more, of the new method */
    } phase;
    bool of_advance; /* else the boards get other codecs, which the setup has already */
    rp_advance_choice choice;
    uint32_t before; /* the advance that was in effect */
} rp_follow;

typedef struct {
    bool reassigning; /* boards have had stages before */
    rp_follow follow;
    rp_arena follow_arena;  /* of a new assignment */
    bool looked_at;         /* links have been measured at this pause */
    uint64_t look_step;     /* of a pause for that, where no other one is sooner; 0: not wanted */
    uint32_t advance_least; /* that an assignment may fall back to */
} rp_plan_way;

/* plan.c */
rp_err rp_plan_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_plan_step(rp_controller *c) RP_MUST_CHECK;
/* At the end of a segment: where too much was lost, and the pipes are empty, milder codecs are in
 * effect, and the boards get their stages again behind the checkpoint. */
void rp_controller_follow_losses(rp_controller *c);
/* Milder codecs wait for empty pipes. */
bool rp_controller_wants_milder(const rp_controller *c);
/* Whether links are to be measured at this pause. */
bool rp_controller_follows_links(const rp_controller *c);

#endif
