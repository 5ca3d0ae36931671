/* What ops cost besides their layers: predictions, averages, codecs, and that an op is given to the
 * device at all. */
#ifndef RP_AGENT_MEASURE_BESIDES_H
#define RP_AGENT_MEASURE_BESIDES_H

#include "agent/measure_order.h"
#include "stage/stage.h"

/* `out`: [2 * RP_BESIDES], seconds and spread of each, zeros so far. Repeats of all take turns, and
 * a point whose repeats spread by more than 20 % gets more of them, within `seconds`. What the job
 * has none of is left out; so is all but the handling of an op without a device.
 * errors  as rp_stage_prepare; DEVICE */
rp_err rp_measure_besides(const rp_executor_kind *kind, const rp_site *site, const rp_job *job,
                          const rp_measure_order *order, double seconds, double *out) RP_MUST_CHECK;

#endif
