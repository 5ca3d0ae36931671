/* The links of this node that the plan's edges need. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_own.h"

static const rp_job *job_of(const agent_run *run) {
    return &run->held[0].job;
}

/* ---- ports ----------------------------------------------------------------------------------- */

static uint32_t port_of(const rp_link *link) {
    const char *colon = link ? strrchr(rp_link_endpoint(link), ':') : NULL;
    return colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

void rp_agent_tell_ports(const agent_run *run, rp_Ready *ready) {
    ready->feed_port = run->dials ? 0 : port_of(run->feed);
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        if (!rp_plan_dials(run->plan, run->node, run->neighbour[i].node)) {
            ready->hop_port[ready->hop_port_count++] = port_of(run->neighbour[i].link);
        }
    }
}

/* ---- links ----------------------------------------------------------------------------------- */

static size_t larger_of(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Largest part of a data parcel between these stages and another end: for boards that share a stage
 * it may be all gradients or weights of that stage, or a stash. */
static size_t part_max(const agent_run *run, const rp_runner_use *use) {
    size_t bytes = 0;
    for (uint32_t h = 0; h < run->held_count; h++) {
        const rp_layout *layout = rp_stage_layout(run->held[h].stage);
        const size_t own = rp_layout_part_max(layout, job_of(run));
        bytes = own > bytes ? own : bytes;
        if (use->weights && layout->gradient_bytes > bytes) {
            bytes = layout->gradient_bytes;
        }
        if (use->ties) {
            bytes = larger_of(bytes, larger_of(layout->tie_row_bytes, layout->tie_far_bytes));
        }
        if (use->stashes && rp_stage_stash_bytes(run->held[h].stage) > bytes) {
            bytes = rp_stage_stash_bytes(run->held[h].stage);
        }
    }
    return bytes;
}

_Static_assert(RP_LINK_HOST == RP_PLAN_HOST, "one name for the host");

/* Line profile of what this board sends to another end. If the run continues, so does the line's
 * time; at a run's beginning it starts with the first segment. */
static rp_link_profile line_to(const rp_agent *agent, uint32_t far) {
    const agent_run *run = agent->run;
    rp_link_profile line = rp_link_profile_of(&run->line, &run->hops, run->node, far);
    if (line.since_s > 0) {
        line.since_s += (double)(rp_clock_now_ns(agent->clock) - run->build_start_ns) * 1e-9;
    }
    return line;
}

void rp_agent_begin_lines(agent_run *run) {
    const bool begin = !run->lines_began && !(run->hops.since_s > 0);
    run->lines_began = true;
    for (uint32_t i = 0; begin && i < run->neighbour_count; i++) {
        rp_link_begin_line(run->neighbour[i].link);
    }
    if (begin && run->feed) {
        rp_link_begin_line(run->feed);
    }
}

/* `far`: a neighbour, or the host. */
static rp_link_options data_options(const rp_agent *agent, const char *name, const char *key,
                                    uint32_t far) {
    const agent_run *run = agent->run;
    const rp_runner_use use = rp_runner_use_of(run->plan, run->node, far);
    return (rp_link_options){
        .name = name,
        .peer_public = key,
        .window = use.window,
        .send_window = use.send_window,
        .part_bytes_max =
            larger_of(part_max(run, &use), job_of(run)->copies ? RP_COPY_PIECE_MAX : 0),
        .emulate = line_to(agent, far),
        .far = rp_link_profile_of(&run->line, &run->hops, far, run->node),
        .run = run->identity,
        .wire = run->wire,
    };
}

static rp_err bind_data(rp_agent *agent, const char *name, uint32_t plus, const char *key,
                        uint32_t far, rp_link **out) {
    agent_run *run = agent->run;
    char endpoint[160];
    rp_agent_bind_text(agent, plus, endpoint, sizeof endpoint);
    rp_link_options options = data_options(agent, name, key, far);
    options.bind = endpoint;
    return rp_link_open(run->links, &options, out);
}

/* The feed of a board that dials. */
static rp_err dial_feed(rp_agent *agent, const char *key) {
    agent_run *run = agent->run;
    char endpoint[160];
    rp_agent_dial_text(agent, 1, endpoint, sizeof endpoint);
    rp_link_options options = data_options(agent, "feed", key, RP_PLAN_HOST);
    options.connect = endpoint;
    return rp_link_open(run->links, &options, &run->feed);
}

/* The seed of its lines depends on the run's seed and this node. */
static uint64_t seed_of_lines(const agent_run *run) {
    return job_of(run)->seed * RP_PLAN_NODES_MAX + run->node;
}

static rp_err read_emulation(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_node *link = rp_node_find(run->reading.root, "link");
    const rp_link_ends ends = {.boards = run->plan->node_count,
                               .reader = rp_link_reader_plain(&run->arena)};
    rp_err err = RP_OK;
    if (link) {
        RP_TRY(rp_node_f64(link, "since_s", 0, 1e12, &run->hops.since_s));
        RP_TRY(rp_link_hops_parse(link, &ends, &run->line, &run->hops));
        const rp_link_profile control = line_to(agent, RP_PLAN_HOST);
        if (control.control) {
            rp_links_set_seed(agent->links, seed_of_lines(run));
            RP_TRY(rp_link_emulate(agent->control, &control));
        }
    }
fail:
    return err;
}

static void list_neighbours(agent_run *run) {
    uint32_t node[RP_PLAN_NEIGHBOURS_MAX];
    run->neighbour_count = rp_plan_neighbours(run->plan, run->node, node);
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        run->neighbour[i] = (agent_neighbour){.node = node[i]};
    }
}

/* `boards`: the keys of the neighbours that dial this board, in their order. The first gets the
 * port above the control link's, the host the next one, all further neighbours the ports after it.
 */
static rp_err bind_hops(rp_agent *agent, rp_node *peers) {
    agent_run *run = agent->run;
    rp_node *keys = rp_node_find(peers, "boards");
    uint32_t bound = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        agent_neighbour *at = &run->neighbour[i];
        if (rp_plan_dials(run->plan, run->node, at->node)) {
            continue;
        }
        if (run->dials) {
            return rp_fail(RP_ERR_USAGE,
                           "the plan lets board %s dial this board, which does not listen: the "
                           "host's roster must say `address: dials` for it",
                           rp_plan_node_name(run->plan, at->node));
        }
        const rp_node *key = keys && bound < rp_node_count(keys) ? rp_node_item(keys, bound) : NULL;
        if (!key || !rp_node_is_scalar(key)) {
            return rp_node_fail(peers,
                                "boards: the key of board %s, which dials this board, is missing",
                                rp_plan_node_name(run->plan, at->node));
        }
        RP_TRY(bind_data(agent, rp_plan_node_name(run->plan, at->node), bound ? bound + 2 : 1,
                         rp_node_text(key), at->node, &at->link));
        bound++;
    }
fail:
    return err;
}

/* Opens sockets for neighbours that dial, and for the host at the first and last stages. */
rp_err rp_agent_open_links(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_node *root = run->reading.own;
    rp_node *peers = rp_node_find(root, "peers");
    const char *host = NULL;
    rp_err err;
    if (!peers) {
        return rp_node_fail(root, "peers: missing, expected the keys of host and boards");
    }
    RP_TRY(rp_node_string(peers, "host", &host));
    if (!host) {
        return rp_node_fail(peers, "host: missing, expected the host's key");
    }
    run->dials = agent->options.dial != NULL;
    RP_TRY(read_emulation(agent));
    const rp_links_options links = {.clock = agent->clock,
                                    .seed = seed_of_lines(run),
                                    .keys = &agent->options.keys,
                                    .transport = agent->options.transport,
                                    .media = agent->options.media,
                                    .sessions = agent->options.sessions,
                                    .loop = agent->options.loop};
    RP_TRY(rp_links_open(&run->arena, &links, &run->links));
    list_neighbours(run);
    RP_TRY(bind_hops(agent, peers));
    if (rp_runner_use_of(run->plan, run->node, RP_PLAN_HOST).edges > 0) {
        RP_TRY(run->dials ? dial_feed(agent, host)
                          : bind_data(agent, "feed", 2, host, RP_PLAN_HOST, &run->feed));
    }
fail:
    return err;
}

bool rp_agent_is_connected(const agent_run *run) {
    uint32_t i = 0;
    while (i < run->neighbour_count && run->neighbour[i].link) {
        i++;
    }
    return i == run->neighbour_count;
}

rp_err rp_agent_dial(rp_agent *agent, const rp_Connect *to) {
    agent_run *run = agent->run;
    agent_neighbour *at = run->neighbour;
    while (at < run->neighbour + run->neighbour_count && at->node != to->node) {
        at++;
    }
    if (at == run->neighbour + run->neighbour_count ||
        !rp_plan_dials(run->plan, run->node, at->node) || at->link) {
        return rp_fail(RP_ERR_PEER,
                       "connect: node %u: this board does not dial it, or has already dialled it",
                       to->node);
    }
    if (!to->endpoint[0] || !to->public_key[0]) {
        return rp_fail(RP_ERR_PEER, "connect: the endpoint or the key of board %s is missing",
                       rp_plan_node_name(run->plan, at->node));
    }
    rp_link_options options =
        data_options(agent, rp_plan_node_name(run->plan, at->node), to->public_key, at->node);
    options.connect = to->endpoint;
    return rp_link_open(run->links, &options, &at->link);
}

rp_err rp_agent_open_runner(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_runner_options options = {.clock = agent->clock,
                                 .control = agent->control,
                                 .sensors = &agent->sensors,
                                 .take_other = job_of(run)->copies ? rp_agent_take_copying : NULL,
                                 .context = agent,
                                 .held_count = run->held_count};
    for (uint32_t h = 0; h < run->held_count; h++) {
        options.held[h] = (rp_runner_held){&run->held[h].job, run->held[h].stage};
    }
    rp_runner_far far[RP_PLAN_NEIGHBOURS_MAX + 1];
    uint32_t count = 0;
    rp_err err;
    for (; count < run->neighbour_count; count++) {
        far[count] = (rp_runner_far){run->neighbour[count].node, run->neighbour[count].link};
    }
    far[count++] = (rp_runner_far){RP_PLAN_HOST, run->feed};
    RP_TRY(rp_runner_connect(&options, run->plan, run->node, far, count));
    RP_TRY(rp_runner_open(&run->arena, &options, &run->runner));
fail:
    return err;
}
