/* The controller as its own files see it: one member for each owner. */
#ifndef RP_CONTROL_CONTROLLER_OWN_H
#define RP_CONTROL_CONTROLLER_OWN_H

#include "control/controller.h"
#include "control/own_keep.h"
#include "control/own_machine.h"
#include "control/own_plan.h"
#include "control/own_train.h"
#include "control/own_views.h"
#include "control/show.h"
#include "control/telemetry.h"
#include "folder/folder.h"
#include "measure/drift.h"
#include "measure/losses.h"
#include "measure/measure.h"
#include "planning/cost.h"
#include "planning/halves.h"
#include "ring/away.h"
#include "ring/kept_out.h"
#include "ring/ring.h"
#include "warm/warm.h"

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
