/* The controller as its own files see it: one member for each owner. */
#ifndef RP_CONTROL_CONTROLLER_OWN_H
#define RP_CONTROL_CONTROLLER_OWN_H

#include "control/controller.h"
#include "control/machine.h"
#include "control/recovery_progress.h"
#include "control/steps.h"
#include "keep/adoption.h"
#include "keep/copies.h"
#include "measure/drift.h"
#include "ring/rejoin.h"
#include "setup/arrangement.h"
#include "train/train.h"
#include "train/verify.h"
#include "warm/warm.h"

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

/* The way from one plan to the next. */
typedef struct {
    bool reassigning; /* boards have had stages before */
    rp_follow follow;
    rp_arena follow_arena;  /* of a new assignment */
    bool looked_at;         /* links have been measured at this pause */
    uint64_t look_step;     /* of a pause for that, where no other one is sooner; 0: not wanted */
    uint32_t advance_least; /* that an assignment may fall back to */
} rp_plan_way;

struct rp_controller {
    rp_controller_env env;
    rp_controller_options options;
    rp_arena arena;
    const rp_runfile *run; /* as it runs: borrowed from `setup` */
    rp_machine machine;
    rp_recovery recovery;
    rp_ring ring;
    rp_arrangement *setup;
    rp_plan_way way; /* to the next plan */
    rp_measure *measure;
    rp_position position; /* of the run: `train` moves it on, `keep` saves and loads it */
    rp_train *train;
    rp_keep *keep;
    rp_folder *folder;
    rp_warm *warm; /* NULL: the ring is not warmed */
};

#endif
