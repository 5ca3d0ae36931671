/* The links of this node: one to the node before it, which dials, one to the node behind, one to
 * the host. All edges between two nodes share a link. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_own.h"

/* ---- what the stages here need --------------------------------------------------------------- */

static const rp_job *job_of(const agent_run *run) {
    return &run->held[0].job;
}

static uint32_t node_count(const agent_run *run) {
    return job_of(run)->cut.stage_count / job_of(run)->method.chunks;
}

static bool is_first(const agent_run *run, uint32_t held) {
    return run->held[held].job.stage == 0;
}

static bool is_last(const agent_run *run, uint32_t held) {
    return rp_job_is_last(&run->held[held].job);
}

/* Stages here with another one in front (or behind) on another node. */
static uint32_t count_edges(const agent_run *run, bool lower) {
    uint32_t count = 0;
    for (uint32_t h = 0; node_count(run) > 1 && h < run->held_count; h++) {
        count += !(lower ? is_first(run, h) : is_last(run, h));
    }
    return count;
}

bool rp_agent_has_next(const agent_run *run) {
    return count_edges(run, false) > 0;
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

/* `edges` share the link in each direction. */
static rp_link_options data_options(const agent_run *run, const char *name, const char *key,
                                    uint32_t edges) {
    const uint32_t window = edges * run->window;
    return (rp_link_options){
        .name = name,
        .peer_public = key,
        .window = window < RP_LINK_WINDOW_MAX ? window : RP_LINK_WINDOW_MAX,
        .send_window = edges * RP_RUNNER_SLOTS,
        .part_bytes_max = part_max(run),
        .emulate = run->emulate,
        .run = run->identity,
        .wire = run->wire,
    };
}

static rp_err bind_data(rp_agent *agent, const char *name, uint32_t plus, const char *key,
                        uint32_t edges, rp_link **out) {
    agent_run *run = agent->run;
    char endpoint[160];
    rp_agent_bind_text(agent, plus, endpoint, sizeof endpoint);
    rp_link_options options = data_options(run, name, key, edges);
    options.bind = endpoint;
    return rp_link_open(run->links, &options, out);
}

/* Its lines are a function of the run's seed and this stage. */
static uint64_t seed_of_lines(const agent_run *run) {
    return job_of(run)->seed * RP_CUT_STAGES_MAX + job_of(run)->stage;
}

static rp_err read_emulation(rp_agent *agent) {
    rp_node *emulate = rp_node_find(agent->run->assignment, "link");
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
    rp_node *root = run->assignment;
    rp_node *peers = rp_node_find(root, "peers");
    const uint32_t lower = count_edges(run, true);
    const char *host = NULL;
    const char *before = NULL;
    rp_err err;
    if (!peers) {
        return rp_node_fail(root, "peers: is missing");
    }
    RP_TRY(rp_node_string(peers, "host", &host));
    RP_TRY(rp_node_string(peers, "before", &before));
    if ((lower > 0 && !before) || !host) {
        return rp_node_fail(peers, "expected the keys `host` and, where a stage is in front, "
                                   "`before`");
    }
    RP_TRY(read_emulation(agent));
    RP_TRY(rp_runner_window(job_of(run), &run->window));
    const rp_links_options links = {.clock = agent->clock,
                                    .seed = seed_of_lines(run),
                                    .keys = &agent->options.keys,
                                    .transport = agent->options.transport,
                                    .sessions = agent->options.sessions};
    RP_TRY(rp_links_open(&run->arena, &links, &run->links));
    if (lower > 0) {
        RP_TRY(bind_data(agent, "hop", 1, before, lower, &run->in));
    }
    if (is_first(run, 0) || is_last(run, run->held_count - 1)) {
        RP_TRY(bind_data(agent, "feed", 2, host, 1, &run->feed));
    }
fail:
    return err;
}

rp_err rp_agent_connect_next(rp_agent *agent, const char *endpoint, const char *key) {
    agent_run *run = agent->run;
    rp_link_options options = data_options(run, "next", key, count_edges(run, false));
    options.connect = endpoint;
    run->connected_ns = rp_clock_now_ns(agent->clock);
    return rp_link_open(run->links, &options, &run->out);
}

rp_err rp_agent_open_runner(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_runner_options options = {.clock = agent->clock,
                                 .control = agent->control,
                                 .held_count = run->held_count,
                                 .window = run->window};
    for (uint32_t h = 0; h < run->held_count; h++) {
        options.held[h] = (rp_runner_held){&run->held[h].job, run->held[h].stage};
    }
    rp_runner_connect(&options, run->in, run->out, run->feed);
    return rp_runner_open(&run->arena, &options, &run->runner);
}
