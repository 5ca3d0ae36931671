/* Building: what takes seconds or minutes runs on the device room's builder thread, and this board
 * goes on answering meanwhile. A run that ends while it is built is abandoned: the builder is told
 * to stop, and the run is freed once it has. */
#include <inttypes.h>

#include "agent/agent_own.h"
#include "agent/profile.h"

/* What a node's stages may take of its memory is for all of them together. */
static rp_err limit_memory(rp_device *device, const rp_job *first, rp_job *job) {
    const uint64_t mib = 1 << 20;
    if (!device) {
        return RP_OK; /* nothing is held anywhere */
    }
    const uint64_t used = rp_device_used_bytes(device);
    const uint64_t all =
        first->memory_mib ? first->memory_mib * mib : rp_device_facts_of(device)->memory_bytes;
    if (all < used + mib) {
        return rp_fail(RP_ERR_LIMIT,
                       "stage %u: the stages before it have used %" PRIu64 " MiB, all "
                       "that this board may",
                       job->stage, used / mib);
    }
    job->memory_mib = (uint32_t)((all - used) / mib);
    return RP_OK;
}

/* What a given profile says: there is nothing to measure. */
static void take_profile(const rp_site *site, const rp_job *job, double *layer_seconds) {
    for (uint32_t i = 0; site->seconds && i < 2 * job->model->layer_count; i++) {
        layer_seconds[i] = site->seconds[i] * job->micro;
    }
}

/* A stage for this one record. */
static rp_err compute_again(agent_run *run) {
    agent_again *again = &run->again;
    rp_err err;
    RP_TRY(limit_memory(run->site.device, &run->held[0].job, &again->job));
    RP_TRY(rp_stage_prepare(&again->arena, run->executor, &run->site, &again->job, &again->stage));
    RP_TRY(rp_stage_recompute(again->stage, again->bytes, again->count, &again->digests));
fail:
    return err;
}

/* On the builder's thread: the run and the device are its own. */
static rp_err build_run(rp_device_builder *builder, void *context) {
    agent_run *run = context;
    rp_err err = RP_OK;
    if (run->again.bytes) {
        return compute_again(run);
    }
    if (run->layer_seconds && !builder) {
        take_profile(&run->site, &run->held[0].job, run->layer_seconds);
        return RP_OK;
    }
    if (run->layer_seconds && run->builds_only) {
        return rp_profile_build(builder, run->executor, &run->site, &run->held[0].job);
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
    agent->state = RP_AGENT_BUILDING;
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
        return RP_OK; /* nobody waits for it */
    }
    *is_built = err == RP_OK;
    return err;
}
