/* An assignment: the stage is built, its links are opened, the runner with the last of them. */
#include "agent/agent_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/profile.h"

/* ---- the job --------------------------------------------------------------------------------- */

static rp_err read_job(rp_agent *agent, const rp_message *message, rp_node **root) {
    agent_run *run = &agent->run;
    rp_node *model;
    rp_err err;
    RP_TRY(rp_config_read_text(&run->arena, message->part[0].data, message->part[0].bytes,
                               "assignment", root));
    RP_TRY(rp_config_read_text(&run->arena, message->part[1].data, message->part[1].bytes, "model",
                               &model));
    RP_TRY(rp_job_parse(&run->arena, *root, model, &run->job));
    uint32_t own = agent->options.memory_mib; /* a run may ask for less, not for more */
    if (own && (run->job.memory_mib == 0 || run->job.memory_mib > own)) {
        run->job.memory_mib = own;
    }
fail:
    return err;
}

/* ---- links ----------------------------------------------------------------------------------- */

enum { SLOTS = 4 }; /* host memory for what a stage sends: microbatches */

static uint32_t port_of(const rp_link *link) {
    const char *colon = link ? strrchr(rp_link_endpoint(link), ':') : NULL;
    return colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

static rp_link_options data_options(const agent_run *run, const char *name, const char *key) {
    return (rp_link_options){
        .name = name,
        .peer_public = key,
        .window = rp_runner_window(&run->job),
        .send_window = SLOTS,
        .part_bytes_max = rp_layout_part_max(rp_stage_layout(run->stage), &run->job),
        .emulate = run->emulate,
        .run = run->identity,
        .wire = run->wire,
    };
}

static rp_err bind_data(rp_agent *agent, const char *name, uint32_t plus, const char *key,
                        rp_link **out) {
    agent_run *run = &agent->run;
    char endpoint[160];
    rp_agent_bind_text(agent, plus, endpoint, sizeof endpoint);
    rp_link_options options = data_options(run, name, key);
    options.bind = endpoint;
    return rp_link_open(run->links, &options, out);
}

/* Sockets for who may connect here: the stage before, and the host at both ends of the ring. */
static rp_err open_data(rp_agent *agent, rp_node *root) {
    agent_run *run = &agent->run;
    rp_node *peers = rp_node_find(root, "peers");
    const char *host = NULL;
    const char *before = NULL;
    rp_err err;
    if (!peers) {
        return rp_node_fail(root, "peers: is missing");
    }
    RP_TRY(rp_node_string(peers, "host", &host));
    RP_TRY(rp_node_string(peers, "before", &before));
    rp_node *emulate = rp_node_find(root, "link");
    if (emulate) {
        RP_TRY(rp_link_profile_parse(&run->emulate, emulate));
        if (run->emulate.control) {
            RP_TRY(rp_link_emulate(agent->control, &run->emulate));
        }
    }
    RP_TRY(rp_links_open(&run->arena, &agent->options.keys, agent->clock,
                         run->job.seed * RP_CUT_STAGES_MAX + run->job.stage, &run->links));
    bool first = run->job.stage == 0;
    bool last = run->job.stage + 1 == run->job.cut.stage_count;
    if ((!first && !before) || !host) {
        return rp_node_fail(peers, "expected the keys `host` and, behind stage 0, `before`");
    }
    if (!first) {
        RP_TRY(bind_data(agent, "hop", 1, before, &run->in));
    }
    if (first || last) {
        RP_TRY(bind_data(agent, "feed", 2, host, &run->feed));
    }
fail:
    return err;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* What this process holds of the board's memory; 0 when /proc does not say. */
static uint64_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    char line[128] = "";
    if (file) {
        (void)!fgets(line, sizeof line, file);
        (void)fclose(file);
    }
    const char *space = strchr(line, ' ');
    return space ? strtoull(space, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* A run that is still there is over: the host has another one. */
static rp_err begin_run(rp_agent *agent, const rp_message *message, const char *name,
                        rp_node **root) {
    agent_run *run = &agent->run;
    rp_agent_end_run(agent);
    rp_device_reset_used_bytes_max(agent->device);
    rp_arena_init(&run->arena, name, 0);
    run->assigned = true;
    run->identity = (rp_run_identity){message->frame.run_id, message->frame.term};
    run->wire = agent->wire;
    rp_link_set_run(agent->control, run->identity);
    return read_job(agent, message, root);
}

/* From here on this end sends in the version of the ring, which all its boards have. */
static rp_err take_wire(rp_agent *agent, const rp_Assign *assign) {
    if (assign->wire < RP_WIRE_MIN || assign->wire > RP_WIRE_MAX) {
        return rp_fail(RP_ERR_PEER, "the ring speaks wire version %u, this board %d to %d",
                       assign->wire, RP_WIRE_MIN, RP_WIRE_MAX);
    }
    agent->run.wire = assign->wire;
    rp_link_set_wire(agent->control, assign->wire);
    return RP_OK;
}

rp_err rp_agent_on_assign(rp_agent *agent, const rp_message *message) {
    agent_run *run = &agent->run;
    int64_t start_ns = rp_clock_now_ns(agent->clock);
    rp_node *root;
    rp_err err;
    RP_TRY(begin_run(agent, message, "run", &root));
    RP_TRY(take_wire(agent, &message->frame.body.assign));
    const rp_site site = {.device = agent->device, .clock = agent->clock};
    RP_TRY(
        rp_stage_prepare(&run->arena, rp_executor_find("opencl"), &site, &run->job, &run->stage));
    RP_TRY(open_data(agent, root));
    const rp_layout *layout = rp_stage_layout(run->stage);
    const rp_executor_facts facts = rp_stage_facts(run->stage);
    rp_Frame frame = {.which_body = RP_KIND_READY,
                      .body.ready = {.hop_port = port_of(run->in),
                                     .feed_port = port_of(run->feed),
                                     .device_bytes = facts.used_bytes,
                                     .weight_bytes = layout->weight_bytes + layout->running_bytes,
                                     .build_ns = rp_clock_now_ns(agent->clock) - start_ns,
                                     .slots = layout->slots,
                                     .weight_copies = facts.weight_copies,
                                     .probe_copies = facts.probe_copies,
                                     .resident_bytes = resident_bytes()}};
    RP_TRY(rp_agent_answer(agent, &frame, NULL, 0));
fail:
    return err;
}

static void add_edge(const agent_run *run, rp_runner_options *options, rp_kind carries,
                     rp_link *link, bool outgoing) {
    if (link) {
        options->edge[options->edge_count++] =
            (rp_runner_edge){.carries = carries,
                             .outgoing = outgoing,
                             .link = link,
                             .share = {0, 1},
                             .window = outgoing ? SLOTS : rp_runner_window(&run->job)};
    }
}

/* The edges of one stage of a chain. */
static rp_err open_runner(rp_agent *agent) {
    agent_run *run = &agent->run;
    const bool first = run->job.stage == 0;
    const bool last = rp_job_is_last(&run->job);
    rp_runner_options options = {.clock = agent->clock,
                                 .control = agent->control,
                                 .held_count = 1,
                                 .held = {{&run->job, run->stage}}};
    add_edge(run, &options, RP_KIND_INPUT, first ? run->feed : NULL, false);
    add_edge(run, &options, RP_KIND_LABEL, last ? run->feed : NULL, false);
    add_edge(run, &options, RP_KIND_ACTIVATION, run->in, false);
    add_edge(run, &options, RP_KIND_ACTIVATION, run->out, true);
    add_edge(run, &options, RP_KIND_GRADIENT, run->out, false);
    add_edge(run, &options, RP_KIND_GRADIENT, run->in, true);
    return rp_runner_open(&run->arena, &options, &run->runner);
}

/* Where the next stage listens. Then the run is complete and the runner opens. */
rp_err rp_agent_on_connect(rp_agent *agent, const rp_message *message) {
    agent_run *run = &agent->run;
    rp_err err;
    if (!run->stage || run->runner) {
        return rp_fail(RP_ERR_PEER, "connect before the assignment or twice");
    }
    bool last = run->job.stage + 1 == run->job.cut.stage_count;
    if (!last) {
        const rp_Connect *next = &message->frame.body.connect;
        if (!next->endpoint[0] || !next->public_key[0]) {
            return rp_fail(RP_ERR_PEER, "connect: the next stage's endpoint or key is missing");
        }
        rp_link_options options = data_options(run, "next", next->public_key);
        options.connect = next->endpoint;
        RP_TRY(rp_link_open(run->links, &options, &run->out));
        run->connected_ns = rp_clock_now_ns(agent->clock);
    }
    RP_TRY(open_runner(agent));
fail:
    return err;
}

rp_err rp_agent_on_profile(rp_agent *agent, const rp_message *message) {
    agent_run *run = &agent->run;
    rp_node *root;
    double *seconds;
    rp_err err;
    RP_TRY(begin_run(agent, message, "profile", &root));
    uint32_t layers = run->job.model->layer_count;
    RP_TRY(RP_ARENA_NEW(&run->arena, 2 * (size_t)layers, &seconds));
    RP_TRY(rp_profile_layers(agent->device, &run->job, seconds));
    rp_Frame frame = {.which_body = RP_KIND_PROFILE_DONE};
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, seconds, 2 * (size_t)layers);
    RP_TRY(rp_agent_answer(agent, &frame, &part, 1));
    rp_agent_end_run(agent);
fail:
    return err;
}
