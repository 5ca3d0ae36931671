/* Measuring every layer of a model on this board: the costs a planner cuts by.
 *
 * Never from device queries: on boards they lie (BOARDS.md 0.4). */
#ifndef RP_AGENT_PROFILE_H
#define RP_AGENT_PROFILE_H

#include "stage/stage.h"

/* Each layer as a stage of its own, one after the other, with the job's microbatch. seconds[2 * i]
 * and [2 * i + 1] are forward and backward of layer i for one microbatch. Blocks for seconds.
 * errors  as rp_stage_prepare */
rp_err rp_profile_layers(rp_device *device, const rp_job *job, double *seconds) RP_MUST_CHECK;

#endif
