/* Measures the costs of ops in addition to their layers: predictions, averages, codecs, and the
 * submission of an op to the device. */
#ifndef RP_AGENT_MEASURE_OVERHEAD_H
#define RP_AGENT_MEASURE_OVERHEAD_H

#include "agent/measure_order.h"
#include "stage/stage.h"

/* `out`: [2 * RP_BESIDES], seconds and spread of each, zeroed by the caller. The repeats of all
 * alternate, and a point whose repeats spread by more than 20 % is repeated more often, within
 * `seconds`. Omits what the job does not use; without a device it measures only the handling of an
 * op. errors as rp_stage_prepare; DEVICE */
rp_err rp_measure_overhead(const rp_executor_kind *kind, const rp_site *site, const rp_job *job,
                           const rp_measure_order *order, double seconds,
                           double *out) RP_MUST_CHECK;

#endif
