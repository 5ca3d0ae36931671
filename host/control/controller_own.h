/* The controller's struct, for the files of this room. */
#ifndef RP_CONTROL_CONTROLLER_OWN_H
#define RP_CONTROL_CONTROLLER_OWN_H

#include "control/controller.h"
#include "control/machine.h"
#include "control/now_counts.h"
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

/* A change of method in progress: a new advance (advance: auto) or new codecs or a new cut. */
typedef struct {
    enum {
        RP_FOLLOW_NONE,
        RP_FOLLOW_DRAIN,  /* decided; the pipes drain and a checkpoint is written */
        RP_FOLLOW_ASSIGN, /* the boards get new stages, then load that checkpoint */
        RP_FOLLOW_SAVE    /* the same checkpoint is written again with the new method */
    } phase;
    bool of_advance; /* the advance changes; else cut or codecs, which `setup` has already */
    rp_advance_choice choice;
    uint32_t before; /* the advance before the change */
} rp_follow;

/* Facts about the change from one plan to the next. */
typedef struct {
    bool reassigning; /* the boards have had stages before */
    rp_follow follow;
    rp_arena follow_arena;  /* memory of the latest assignment */
    bool looked_at;         /* links were measured at this pause */
    uint64_t look_step;     /* step of an extra pause to measure links; 0: none */
    uint32_t advance_least; /* smallest advance that ASSIGN may reduce to */
} rp_plan_way;

struct rp_controller {
    rp_controller_env env;
    rp_controller_options options;
    rp_arena arena;
    const rp_runfile *run; /* the run file in effect, borrowed from `setup` */
    rp_machine machine;
    rp_recovery recovery;
    rp_ring ring;
    rp_arrangement *setup;
    rp_plan_way way;
    rp_measure *measure;
    rp_position position; /* of the run: advanced by `train`, saved and loaded by `keep` */
    rp_train *train;
    rp_keep *keep;
    rp_folder *folder;
    rp_now_counts now;
    rp_warm *warm; /* NULL: not `boards warm` */
};

#endif
