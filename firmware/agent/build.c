/* Building: what takes seconds or minutes runs on the device room's builder thread while this board
 * keeps answering. A run that ends while it is built is abandoned: the builder is told to stop, and
 * the run is freed after that. */
#include <inttypes.h>

#include "agent/agent_own.h"
#include "agent/profile.h"
#include "device/flash.h"
#include "device/ready.h"

/* The memory limit applies to all of a node's stages together. */
static rp_err limit_memory(rp_device *device, const rp_job *first, rp_job *job) {
    if (!device) {
        return RP_OK; /* this executor allocates no memory */
    }
    const uint64_t used = rp_device_used_bytes(device);
    const uint64_t all =
        first->memory_bytes ? first->memory_bytes : rp_device_facts_of(device)->memory_bytes;
    if (all <= used) {
        return rp_fail(RP_ERR_LIMIT,
                       "stage %u: no memory left, because the stages before it have used %" PRIu64
                       " MiB, the board's whole limit",
                       job->stage, used >> 20);
    }
    job->memory_bytes = all - used;
    return RP_OK;
}

/* Takes each pass from a given profile; each half of a backward gets half of its time. */
static void take_sizes(const agent_run *run, uint32_t layers, double *values) {
    const double *seconds = run->site.seconds;
    const uint32_t sizes = run->order.sizes;
    for (uint32_t i = 0; i < sizes * layers * RP_MEASURED_PASSES; i++) {
        const uint32_t pass = i % RP_MEASURED_PASSES;
        const uint32_t layer = i / RP_MEASURED_PASSES % layers;
        const uint32_t samples = run->order.samples[i / RP_MEASURED_PASSES / layers];
        const double part = pass >= RP_MEASURED_BACKWARD_INPUT ? 0.5 : 1;
        values[2 * i] = part * samples * seconds[2 * layer + (pass != RP_MEASURED_FORWARD)];
    }
    for (uint32_t i = 0; i < layers; i++) {
        values[rp_measured_update_at(layers, sizes, i)] = run->site.update_s / layers;
    }
}

/* Takes costs that are not proportional to their samples. */
static void take_costs(const agent_run *run, uint32_t layers, double *values) {
    static const rp_op_kind kinds[RP_MEASURED_PASSES] = {
        [RP_MEASURED_FORWARD] = RP_OP_FORWARD,
        [RP_MEASURED_BACKWARD] = RP_OP_BACKWARD,
        [RP_MEASURED_BACKWARD_INPUT] = RP_OP_BACKWARD_INPUT,
        [RP_MEASURED_BACKWARD_WEIGHT] = RP_OP_BACKWARD_WEIGHT,
    };
    const rp_site_costs *costs = run->site.costs;
    const uint32_t sizes = run->order.sizes;
    for (uint32_t i = 0; i < sizes * layers * RP_MEASURED_PASSES; i++) {
        const uint32_t layer = i / RP_MEASURED_PASSES % layers;
        const uint32_t samples = run->order.samples[i / RP_MEASURED_PASSES / layers];
        values[2 * i] =
            costs->op_s(costs->self, layer, layer + 1, kinds[i % RP_MEASURED_PASSES], samples);
    }
    for (uint32_t i = 0; i < layers; i++) {
        values[rp_measured_update_at(layers, sizes, i)] =
            costs->op_s(costs->self, i, i + 1, RP_OP_UPDATE, 0);
    }
}

/* Takes everything from a given profile, so that nothing is measured. */
static void take_profile(agent_run *run) {
    const uint32_t layers = run->held[0].job.model->layer_count;
    if (run->site.costs && run->order.sizes > 0) {
        take_costs(run, layers, run->layer_seconds);
        return;
    }
    if (run->site.seconds && run->order.sizes > 0) {
        take_sizes(run, layers, run->layer_seconds);
        return;
    }
    for (uint32_t i = 0; run->site.seconds && i < 2 * layers; i++) {
        run->layer_seconds[i] = run->site.seconds[i] * run->held[0].job.micro;
    }
}

/* Builds a stage for this one record. */
static rp_err recompute_record(agent_run *run) {
    agent_recompute *recompute = &run->recompute;
    rp_err err;
    RP_TRY(limit_memory(run->site.device, &run->held[0].job, &recompute->job));
    RP_TRY(rp_stage_prepare(&recompute->arena, run->executor, &run->site, &recompute->job,
                            &recompute->stage));
    RP_TRY(rp_stage_recompute(recompute->stage, recompute->bytes, recompute->count,
                              &recompute->digests));
fail:
    return err;
}

/* A board without flash cannot offload to it, which is not a fault. */
static void measure_flash(agent_run *run) {
    if (run->site.device && run->order.layers == 0 &&
        rp_flash_measure(rp_flash_folder(), &run->flash_rate[0], &run->flash_rate[1]) != RP_OK) {
        run->flash_rate[0] = run->flash_rate[1] = 0;
    }
}

/* Runs on the builder's thread, which then owns the run and the device. */
static rp_err build_run(rp_device_builder *builder, void *context) {
    agent_run *run = context;
    rp_err err = RP_OK;
    if (run->recompute.bytes) {
        return recompute_record(run);
    }
    if (run->layer_seconds && !builder) {
        take_profile(run);
        return RP_OK;
    }
    if (run->layer_seconds && run->builds_only) {
        return rp_profile_build(builder, run->executor, &run->site, &run->held[0].job);
    }
    if (run->layer_seconds && run->order.sizes > 0) {
        measure_flash(run);
        return rp_measure_layers(builder, run->executor, &run->site, &run->held[0].job, &run->order,
                                 run->layer_seconds);
    }
    if (run->layer_seconds) {
        return rp_profile_layers(builder, run->executor, &run->site, &run->held[0].job,
                                 run->layer_seconds);
    }
    for (uint32_t h = 0; h < run->held_count; h++) {
        agent_held *held = &run->held[h];
        RP_TRY(h ? limit_memory(run->site.device, &run->held[0].job, &held->job) : RP_OK);
        RP_TRY(rp_stage_prepare(&run->arena, run->executor, &run->site, &held->job, &held->stage));
    }
fail:
    return err;
}

rp_err rp_agent_start_build(rp_agent *agent) {
    RP_ASSERT(!rp_agent_builds(agent));
    agent->run->executor = agent->executor;
    agent->run->site = agent->options.site;
    agent->run->site.device = agent->device;
    agent->run->site.clock = agent->clock;
    agent->run->build_start_ns = rp_clock_now_ns(agent->clock);
    agent->state = agent->run->warm_s ? RP_AGENT_WARMING : RP_AGENT_BUILDING;
    if (agent->builder) {
        return rp_device_builder_start(agent->builder, build_run, agent->run);
    }
    agent->run->built_here = true;
    return build_run(NULL, agent->run);
}

rp_err rp_agent_finish_build(rp_agent *agent, bool *is_built) {
    rp_err err = RP_OK;
    *is_built = false;
    if (agent->run->built_here) {
        agent->run->built_here = false;
    } else if (!rp_agent_builds(agent) || !rp_device_builder_is_done(agent->builder)) {
        return RP_OK;
    } else {
        err = rp_device_builder_join(agent->builder);
    }
    if (agent->abandoned) {
        rp_agent_free_run(agent->abandoned);
        agent->abandoned = NULL;
        return RP_OK; /* the result is not needed */
    }
    *is_built = err == RP_OK;
    return err;
}

/* ---- warming --------------------------------------------------------------------------------- */

int64_t rp_agent_warm_left_ns(const rp_agent *agent) {
    const int64_t end_ns = agent->run->build_start_ns + agent->run->warm_s * RP_NS_PER_S;
    const int64_t left_ns = end_ns - rp_clock_now_ns(agent->clock);
    return left_ns > 0 ? left_ns : 0;
}

/* If a driver hangs in a kernel, only the builder's thread waits for it, and the host is told which
 * kernel. What is built stays in the cache. */
void rp_agent_watch_warming(rp_agent *agent) {
    const char *what = "a kernel";
    char begun[96] = "";
    rp_build_count count = {0};
    if (agent->state != RP_AGENT_WARMING || rp_agent_warm_left_ns(agent) > 0) {
        return;
    }
    if (agent->device) {
        rp_device_building(agent->device, begun, sizeof begun);
        count = rp_device_build_count(agent->device);
        what = begun[0] ? begun : what;
    }
    rp_agent_report_fault(agent, rp_fail(RP_ERR_TIMEOUT,
                                         "the time limit of %u s for warming is over: %u of %u "
                                         "kernels are ready and kept; the last one begun is %s",
                                         agent->run->warm_s, count.ready, count.kernels, what));
}
