/* Measures every layer of a model on this board at several sizes, for planners.
 *
 * Nothing is taken from device queries, because boards report wrong values (BOARDS.md 0.4). */
#ifndef RP_AGENT_MEASURE_H
#define RP_AGENT_MEASURE_H

#include "agent/measure_order.h"
#include "device/builder.h"
#include "stage/stage.h"

/* Measures each layer as a separate stage; `values`: [rp_measured_count()], or
 * [rp_measured_all()] if the order has `besides`. The repeats of all sizes and passes alternate, so
 * that a temporary slowdown affects all of them; a point whose repeats spread by more than 20 % is
 * repeated more often. When the time is over, or a size needs too much memory, larger sizes are
 * omitted. Runs on a builder's thread.
 * errors  as rp_stage_prepare; INTERRUPTED when the builder is cancelled */
rp_err rp_measure_layers(rp_device_builder *builder, const rp_executor_kind *kind,
                         const rp_site *site, const rp_job *job, const rp_measure_order *order,
                         double *values) RP_MUST_CHECK;

/* What this board's times depend on, apart from the model: device, driver, tuning, threads. */
void rp_measure_kind(const rp_device *device, char *out, size_t bytes);

#endif
