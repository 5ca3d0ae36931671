/* The links of this node, as the plan's edges ask for them. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_own.h"

static const rp_job *job_of(const agent_run *run) {
    return &run->held[0].job;
}

static rp_runner_use use_of(const agent_run *run, rp_plan_side side) {
    return rp_runner_use_of(run->plan, run->node, side);
}

bool rp_agent_has_next(const agent_run *run) {
    return use_of(run, RP_PLAN_BEHIND).edges > 0;
}

/* ---- links ----------------------------------------------------------------------------------- */

static uint32_t port_of(const rp_link *link) {
    const char *colon = link ? strrchr(rp_link_endpoint(link), ':') : NULL;
    return colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

uint32_t rp_agent_hop_port(const agent_run *run) {
    return port_of(run->in);
}

uint32_t rp_agent_feed_port(const agent_run *run) {
    return port_of(run->feed);
}

/* Largest part of a data parcel of these stages. */
static size_t part_max(const agent_run *run) {
    size_t bytes = 0;
    for (uint32_t h = 0; h < run->held_count; h++) {
        const size_t own = rp_layout_part_max(rp_stage_layout(run->held[h].stage), job_of(run));
        bytes = own > bytes ? own : bytes;
    }
    return bytes;
}

static rp_link_options data_options(const agent_run *run, const char *name, const char *key,
                                    rp_plan_side side) {
    const rp_runner_use use = use_of(run, side);
    return (rp_link_options){
        .name = name,
        .peer_public = key,
        .window = use.window,
        .send_window = use.send_window,
        .part_bytes_max = part_max(run),
        .emulate = run->emulate,
        .run = run->identity,
        .wire = run->wire,
    };
}

static rp_err bind_data(rp_agent *agent, const char *name, uint32_t plus, const char *key,
                        rp_plan_side side, rp_link **out) {
    agent_run *run = agent->run;
    char endpoint[160];
    rp_agent_bind_text(agent, plus, endpoint, sizeof endpoint);
    rp_link_options options = data_options(run, name, key, side);
    options.bind = endpoint;
    return rp_link_open(run->links, &options, out);
}

/* Its lines are a function of the run's seed and this stage. */
static uint64_t seed_of_lines(const agent_run *run) {
    return job_of(run)->seed * RP_CUT_STAGES_MAX + job_of(run)->stage;
}

static rp_err read_emulation(rp_agent *agent) {
    rp_node *emulate = rp_node_find(agent->run->reading.root, "link");
    rp_err err = RP_OK;
    if (emulate) {
        RP_TRY(rp_link_profile_parse(&agent->run->emulate, emulate));
        if (agent->run->emulate.control) {
            rp_links_set_seed(agent->links, seed_of_lines(agent->run));
            RP_TRY(rp_link_emulate(agent->control, &agent->run->emulate));
        }
    }
fail:
    return err;
}

/* Sockets for who may connect here: the node before, and the host at both ends of the model. */
rp_err rp_agent_open_links(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_node *root = run->reading.own;
    rp_node *peers = rp_node_find(root, "peers");
    const bool has_before = use_of(run, RP_PLAN_BEFORE).edges > 0;
    const char *host = NULL;
    const char *before = NULL;
    rp_err err;
    if (!peers) {
        return rp_node_fail(root, "peers: is missing");
    }
    RP_TRY(rp_node_string(peers, "host", &host));
    RP_TRY(rp_node_string(peers, "before", &before));
    if ((has_before && !before) || !host) {
        return rp_node_fail(peers, "expected the keys `host` and, where a stage is in front, "
                                   "`before`");
    }
    RP_TRY(read_emulation(agent));
    const rp_links_options links = {.clock = agent->clock,
                                    .seed = seed_of_lines(run),
                                    .keys = &agent->options.keys,
                                    .transport = agent->options.transport,
                                    .sessions = agent->options.sessions,
                                    .loop = agent->options.loop};
    RP_TRY(rp_links_open(&run->arena, &links, &run->links));
    if (has_before) {
        RP_TRY(bind_data(agent, "hop", 1, before, RP_PLAN_BEFORE, &run->in));
    }
    if (use_of(run, RP_PLAN_AT_HOST).edges > 0) {
        RP_TRY(bind_data(agent, "feed", 2, host, RP_PLAN_AT_HOST, &run->feed));
    }
fail:
    return err;
}

rp_err rp_agent_connect_next(rp_agent *agent, const char *endpoint, const char *key) {
    agent_run *run = agent->run;
    rp_link_options options = data_options(run, "next", key, RP_PLAN_BEHIND);
    options.connect = endpoint;
    return rp_link_open(run->links, &options, &run->out);
}

rp_err rp_agent_open_runner(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_runner_options options = {
        .clock = agent->clock, .control = agent->control, .held_count = run->held_count};
    for (uint32_t h = 0; h < run->held_count; h++) {
        options.held[h] = (rp_runner_held){&run->held[h].job, run->held[h].stage};
    }
    rp_link *const link[RP_PLAN_SIDES] = {
        [RP_PLAN_BEFORE] = run->in, [RP_PLAN_BEHIND] = run->out, [RP_PLAN_AT_HOST] = run->feed};
    rp_err err;
    RP_TRY(rp_runner_connect(&options, run->plan, run->node, link));
    RP_TRY(rp_runner_open(&run->arena, &options, &run->runner));
fail:
    return err;
}
