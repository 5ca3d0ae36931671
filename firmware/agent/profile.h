/* Measures every layer of a model on this board: the costs by which a planner cuts.
 *
 * Nothing is taken from device queries, because boards report wrong values (BOARDS.md 0.4). */
#ifndef RP_AGENT_PROFILE_H
#define RP_AGENT_PROFILE_H

#include "device/builder.h"
#include "stage/stage.h"

/* Measures each layer as a separate stage, with the job's microbatch.
 * seconds[2 * i] and [2 * i + 1] are forward and backward of layer i for one microbatch. Takes
 * seconds; runs on a builder's thread.
 * errors  as rp_stage_prepare; INTERRUPTED when the builder is cancelled */
rp_err rp_profile_layers(rp_device_builder *builder, const rp_executor_kind *kind,
                         const rp_site *site, const rp_job *job, double *seconds) RP_MUST_CHECK;

/* The job with only layer `index` in the middle of up to three stages, whose cut is `first`. */
rp_job rp_profile_job(const rp_job *job, uint32_t index, uint32_t first[4]);
/* errors INTERRUPTED when the builder is cancelled */
rp_err rp_profile_refuse_cancelled(const rp_device_builder *builder) RP_MUST_CHECK;

/* Builds the kernels of every layer and measures nothing. Processes of one machine that do so at
 * the same time share the work through their cache: a layer that another process is building is
 * postponed. errors as above */
rp_err rp_profile_build(rp_device_builder *builder, const rp_executor_kind *kind,
                        const rp_site *site, const rp_job *job) RP_MUST_CHECK;

#endif
