/* An assignment: the stage is built, its links are opened, and with the last link the runner. */
#include "agent/agent_own.h"
#include "agent/parcels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the job --------------------------------------------------------------------------------- */

/* Plan and job must agree; otherwise an op would wait for samples that never arrive. */
static rp_err check_agreement(const rp_plan *plan, const rp_job *job) {
    uint32_t layer = 0;
    bool same = plan->stage_count == job->cut.stage_count && plan->batch == job->batch &&
                plan->micro == job->micro && plan->epoch_samples == job->epoch_samples &&
                plan->method.kind == job->method.kind;
    for (uint32_t k = 0; same && k < plan->stage_count; k++) {
        same = job->cut.first[k] == layer;
        layer += plan->stage[k].layer_count;
    }
    return same ? RP_OK
                : rp_fail(RP_ERR_USAGE,
                          "assignment: plan and job differ: the plan has %u stages, schedule %s, "
                          "batch %u/%u, %llu samples an epoch; the job has %u stages, %s, %u/%u, "
                          "%llu, or other layers in a stage",
                          plan->stage_count, plan->method.kind->name, plan->batch, plan->micro,
                          (unsigned long long)plan->epoch_samples, job->cut.stage_count,
                          job->method.kind->name, job->batch, job->micro,
                          (unsigned long long)job->epoch_samples);
}

/* The plan's recomputed groups, and its offload setting. */
static rp_err take_groups(agent_run *run, const rp_plan_stage *stage, rp_job *job) {
    bool *begins;
    rp_err err = RP_OK;
    job->recompute = stage->recompute;
    job->offload = rp_offload_find(stage->offload); /* rp_plan_check() has checked it */
    job->leave_tensors = stage->leave_tensors;
    job->group_begins = NULL;
    if (stage->recompute && stage->group_count > 0) {
        RP_TRY(RP_ARENA_NEW(&run->arena, job->model->layer_count, &begins));
        for (uint32_t g = 0; g < stage->group_count; g++) {
            /* rp_plan_check() has checked it */
            begins[rp_model_find(job->model, stage->group[g])] = true;
        }
        job->group_begins = begins;
    }
fail:
    return err;
}

/* Takes from the plan the stages of this node. */
static rp_err hold_stages(agent_run *run, uint32_t node, rp_job *job) {
    run->plan = run->reading.plan;
    run->node = node;
    if (run->node >= run->plan->node_count) {
        return rp_fail(RP_ERR_USAGE, "plan: has no node %u, only %u nodes", run->node,
                       run->plan->node_count);
    }
    rp_err err = check_agreement(run->plan, job);
    err = err == RP_OK ? rp_plan_sizes(&run->arena, run->plan, &job->size) : err;
    const rp_plan_node *own = &run->plan->node[run->node];
    run->held_count = err == RP_OK ? own->hold_count : 0;
    for (uint32_t h = 0; h < run->held_count; h++) {
        const rp_plan_hold *hold = &run->plan->hold[own->hold_first + h];
        run->held[h].job = *job;
        run->held[h].job.stage = hold->stage;
        run->held[h].job.role = hold->role;
        memcpy(run->held[h].job.share, hold->share, sizeof hold->share);
        RP_TRY(take_groups(run, &run->plan->stage[hold->stage], &run->held[h].job));
        rp_plan_codecs_of(run->plan, hold->stage, run->held[h].job.codec);
        if (hold->stage == 0 && run->held[h].job.codec[0][0] == RP_CODEC_UINT8 &&
            job->pixels.groups == 0) {
            return rp_fail(
                RP_ERR_USAGE,
                "assignment: inputs are sent as uint8, so `normalise` is needed, but missing");
        }
    }
fail:
    return err;
}

static rp_err read_job(rp_agent *agent, const rp_message *message) {
    agent_run *run = agent->run;
    const bool assigns = rp_frame_kind(&message->frame) == RP_KIND_ASSIGN;
    rp_err err;
    RP_TRY(rp_agent_read(&run->arena, agent->options.library, message->part, assigns ? 3 : 2,
                         &run->reading));
    rp_job job = run->reading.job;
    /* a run may lower the limit, not raise it */
    const uint64_t own = (uint64_t)agent->options.memory_mib << 20;
    if (own && (job.memory_bytes == 0 || job.memory_bytes > own)) {
        job.memory_bytes = own;
    }
    if (assigns) {
        RP_TRY(hold_stages(run, message->frame.body.assign.node, &job));
    } else {
        run->held_count = 1;
        run->held[0].job = job;
    }
fail:
    return err;
}

/* ---- messages -------------------------------------------------------------------------------- */

uint64_t rp_agent_resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    char line[128] = "";
    if (file) {
        (void)!fgets(line, sizeof line, file);
        (void)fclose(file);
    }
    const char *space = strchr(line, ' ');
    return space ? strtoull(space, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Ends a previous run, because the host has a new one. */
static rp_err begin_run(rp_agent *agent, const rp_message *message, const char *name) {
    rp_agent_end_run(agent, "the host has sent another assignment");
    agent_run *run = agent->run;
    if (agent->device) {
        rp_device_reset_used_bytes_max(agent->device);
    }
    rp_arena_init(&run->arena, name, 0);
    const bool assigns = rp_frame_kind(&message->frame) == RP_KIND_ASSIGN;
    run->warm_s = assigns ? message->frame.body.assign.warm_s : message->frame.body.profile.warm_s;
    agent->state = run->warm_s ? RP_AGENT_WARMING : RP_AGENT_BUILDING;
    run->identity = (rp_run_identity){message->frame.run_id, message->frame.term};
    run->wire = agent->wire;
    rp_link_set_run(agent->control, run->identity);
    return read_job(agent, message);
}

/* How long an orphan keeps its run if the host does not say. */
static const int64_t ORPHAN_NS = 60 * RP_NS_PER_S;

/* From here on this end sends in the ring's version of the wire, which all its boards have. */
static rp_err take_wire(rp_agent *agent, const rp_Assign *assign) {
    if (assign->wire < RP_WIRE_MIN || assign->wire > RP_WIRE_MAX) {
        return rp_fail(RP_ERR_PEER,
                       "the ring uses wire version %u, this board has versions %d to %d: update "
                       "the older ringpipe",
                       assign->wire, RP_WIRE_MIN, RP_WIRE_MAX);
    }
    agent->run->wire = assign->wire;
    agent->run->meet_ns = assign->meet_s * RP_NS_PER_S;
    agent->run->orphan_ns = assign->orphan_s ? assign->orphan_s * RP_NS_PER_S : ORPHAN_NS;
    rp_link_set_wire(agent->control, assign->wire);
    return RP_OK;
}

/* Refuses a host that was built before plans were sent. */
static rp_err check_plan_is_there(const rp_agent *agent, const rp_message *message) {
    if (message->part_count == 3) {
        return RP_OK;
    }
    const bool knows = agent->host_software[0] != '\0';
    return rp_fail(RP_ERR_PEER,
                   "the assignment has no plan: the host's ringpipe (%s) is older than this "
                   "board's (%s): update ringpipe on the host",
                   knows ? agent->host_software : "unknown", RP_VERSION);
}

rp_err rp_agent_on_assign(rp_agent *agent, const rp_message *message) {
    rp_err err;
    RP_TRY(check_plan_is_there(agent, message));
    RP_TRY(begin_run(agent, message, "run"));
    RP_TRY(take_wire(agent, &message->frame.body.assign));
    RP_TRY(rp_agent_start_build(agent));
fail:
    return err;
}

static uint32_t larger_of(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Parcels and offloaded stashes are stored in the processor's memory. If the device shares it, they
 * must fit next to the stages into our part of it, even if the run allows the stages less. If the
 * device has its own memory, they may use our part of the processor's. */
static rp_err check_parcels(const rp_agent *agent, rp_Ready *ready) {
    const agent_run *run = agent->run;
    const bool apart = agent->device && !rp_device_facts_of(agent->device)->unified;
    const uint32_t limit_mib = apart ? agent->options.processor_mib : agent->options.memory_mib;
    const rp_parcel_memory parcels = rp_parcel_memory_of(run->plan, run->node, &run->held[0].job);
    rp_parcel_room room = {.apart = apart, .limit_bytes = (uint64_t)limit_mib << 20};
    room.stage_bytes = agent->device && !apart ? rp_device_used_bytes(agent->device) : 0;
    ready->stash_bytes = 0;
    for (uint32_t h = 0; h < run->held_count; h++) {
        const rp_stage *stage = run->held[h].stage;
        ready->stash_bytes += rp_layout_offloaded_bytes(rp_stage_layout(stage));
        room.stage_bytes += agent->device ? 0 : rp_stage_facts(stage).used_bytes;
    }
    room.stage_bytes += ready->stash_bytes;
    ready->parcel_bytes = parcels.bytes;
    ready->own_memory = apart;
    ready->limit_bytes = room.limit_bytes;
    return room.limit_bytes == 0 ? RP_OK
                                 : rp_parcel_memory_check(run->plan, run->node, &parcels, &room);
}

rp_err rp_agent_report_ready(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_Frame frame = {.which_body = RP_KIND_READY};
    rp_Ready *ready = &frame.body.ready;
    rp_err err;
    RP_TRY(check_parcels(agent, ready));
    RP_TRY(run->warm_s ? RP_OK : rp_agent_open_links(agent));
    ready->build_ns = rp_clock_now_ns(agent->clock) - run->build_start_ns;
    ready->resident_bytes = rp_agent_resident_bytes();
    rp_agent_tell_ports(run, ready);
    for (uint32_t h = 0; h < run->held_count; h++) {
        const rp_layout *layout = rp_stage_layout(run->held[h].stage);
        const rp_executor_facts facts = rp_stage_facts(run->held[h].stage);
        ready->device_bytes = facts.used_bytes; /* of the device, so for all stages here */
        ready->weight_bytes += layout->weight_bytes + layout->running_bytes;
        ready->slots += layout->slots;
        ready->weight_copies = larger_of(ready->weight_copies, facts.weight_copies);
        ready->probe_copies = larger_of(ready->probe_copies, facts.probe_copies);
    }
    ready->copy_bytes = rp_agent_copy_bytes(run);
    RP_TRY(rp_agent_answer(agent, &frame, NULL, 0));
    rp_agent_note_ready(agent, ready->device_bytes);
    if (run->warm_s) {
        rp_agent_end_run(agent, "its kernels are ready for a later run");
        return RP_OK;
    }
    agent->state = RP_AGENT_ASSIGNED;
fail:
    return err;
}

/* Where a neighbour listens. The last one completes the run and opens the runner. */
rp_err rp_agent_on_connect(rp_agent *agent, const rp_message *message) {
    agent_run *run = agent->run;
    rp_err err;
    if (!rp_agent_is_connected(run)) {
        RP_TRY(rp_agent_dial(agent, &message->frame.body.connect));
    }
    if (!rp_agent_is_connected(run)) {
        return RP_OK; /* more neighbours will follow */
    }
    RP_TRY(RP_ARENA_NEW(&run->arena, RP_AGENT_PIECE_FLOATS, &run->piece));
    RP_TRY(rp_agent_open_runner(agent));
    agent->state = RP_AGENT_READY;
fail:
    return err;
}

/* errors  PEER: invalid sizes */
static rp_err take_order(agent_run *run, const rp_Profile *profile) {
    run->order = (rp_measure_order){.sizes = profile->samples_count, .seconds = profile->seconds};
    for (uint32_t i = 0; i < run->order.sizes; i++) {
        const uint32_t before = i > 0 ? profile->samples[i - 1] : 0;
        if (profile->samples[i] <= before || profile->samples[i] > RP_BATCH_MAX) {
            return rp_fail(
                RP_ERR_PEER,
                "profile: sizes[%u] is %u after %u; expected ascending sizes, at most %d", i,
                profile->samples[i], before, RP_BATCH_MAX);
        }
        run->order.samples[i] = profile->samples[i];
    }
    run->order.layers = profile->layer_count;
    for (uint32_t i = 0; i < run->order.layers; i++) {
        const uint32_t layers = run->held[0].job.model->layer_count;
        if (profile->layer[i] >= layers || (i > 0 && profile->layer[i] <= profile->layer[i - 1])) {
            return rp_fail(RP_ERR_PEER,
                           "profile: layers[%u] is %u; expected ascending indices below %u", i,
                           profile->layer[i], layers);
        }
        run->order.layer[i] = profile->layer[i];
    }
    run->order.besides = profile->besides && run->order.sizes > 0;
    run->order.predicts = profile->predicts;
    run->order.average = profile->average <= RP_MEASURED_REFERENCE
                             ? (rp_measured_average)profile->average
                             : RP_MEASURED_NO_AVERAGE;
    run->order.codecs = profile->codec_count;
    for (uint32_t i = 0; i < run->order.codecs; i++) { /* omits codecs of a newer host */
        run->order.codec[i] = profile->codec[i];
        if (i > 0 && profile->codec[i] <= profile->codec[i - 1]) {
            return rp_fail(RP_ERR_PEER,
                           "profile: codecs[%u] is %u after %u; expected ascending numbers", i,
                           profile->codec[i], profile->codec[i - 1]);
        }
    }
    return run->order.seconds <= RP_MEASURED_SECONDS_MAX
               ? RP_OK
               : rp_fail(RP_ERR_PEER, "profile: a time limit of %u s; expected at most %d",
                         run->order.seconds, RP_MEASURED_SECONDS_MAX);
}

/* Number of values in the answer. */
static size_t count_values(const agent_run *run) {
    const size_t layers = run->held[0].job.model->layer_count;
    return run->order.besides     ? rp_measured_all(layers, run->order.sizes)
           : run->order.sizes > 0 ? rp_measured_count(layers, run->order.sizes)
                                  : 2 * layers;
}

rp_err rp_agent_on_profile(rp_agent *agent, const rp_message *message) {
    agent_run *run;
    rp_err err;
    RP_TRY(begin_run(agent, message, "profile"));
    run = agent->run;
    run->builds_only = message->frame.body.profile.build_only && agent->device;
    RP_TRY(take_order(run, &message->frame.body.profile));
    RP_TRY(RP_ARENA_NEW(&run->arena, count_values(run), &run->layer_seconds));
    RP_TRY(rp_agent_start_build(agent));
fail:
    return err;
}

rp_err rp_agent_report_profile(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_Frame frame = {.which_body = RP_KIND_PROFILE_DONE,
                      .body.profile_done = {.flash_write = (float)run->flash_rate[0],
                                            .flash_read = (float)run->flash_rate[1]}};
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, run->layer_seconds, count_values(run));
    rp_err err;
    RP_TRY(rp_agent_answer(agent, &frame, &part, 1));
    rp_agent_end_run(agent, run->builds_only ? "the kernels of its layers are ready"
                                             : "its layers are measured");
fail:
    return err;
}
