/* What the files that tell about a run get of the controller: nothing of it can be steered here. */
#ifndef RP_CONTROL_VIEW_H
#define RP_CONTROL_VIEW_H

#include "control/env.h"
#include "control/options.h"
#include "measure/measure.h"
#include "setup/arrangement.h"
#include "train/train.h"

/* All pointers are borrowed for one call. */
typedef struct {
    const rp_controller_env *env;
    const rp_controller_options *options;
    const rp_runfile *run;
    const rp_ring *ring;
    rp_arrangement *setup;
    rp_measure *measure;
    rp_folder *folder;
    const rp_train *train;
    const rp_position *position;           /* of the run */
    const rp_summary_recovery *recoveries; /* [recovery_count] that have led back to work */
    uint32_t recovery_count;
    bool has_begun; /* the boards have been loaded */
} rp_run_view;

#endif
