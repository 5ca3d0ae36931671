/* A node's view of the world: its clock, and lines that faults change. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/cluster_own.h"

/* A line without faults. */
static const rp_link_profile calm_line = {.delay_ms = 0.3, .jitter_ms = 0.1};

/* ---- networks -------------------------------------------------------------------------------- */

static void wake_node(void *context) {
    const rp_sim_network *network = context;
    rp_world_wake_node(network->cluster->world, network->node);
}

rp_err rp_sim_network_open(rp_cluster *cluster, uint32_t node, rp_arena *arena,
                           const rp_clock *clock, const rp_keypair *keys, uint64_t seed,
                           rp_sim_network *out) {
    const rp_transport_options inner = {
        .clock = clock, .keys = keys, .hub = cluster->hub, .wake = wake_node, .wake_context = out};
    rp_err err;
    *out = (rp_sim_network){.cluster = cluster, .node = node, .calm = calm_line};
    RP_TRY(rp_transport_start(arena, "inproc", &inner, &out->inproc));
    const rp_transport_options outer = {
        .clock = clock, .inner = out->inproc, .profile = &out->calm, .seed = seed};
    RP_TRY(rp_transport_start(arena, "emulate", &outer, &out->line));
fail:
    return err;
}

void rp_sim_network_close(rp_sim_network *network) {
    rp_transport_finish(&network->line);
    rp_transport_finish(&network->inproc);
}

/* Whether the endpoint is on the board's host; its data ports differ from the one in `listen`. */
static bool has_port(const rp_sim_board *board, const char *endpoint) {
    const char *own = strrchr(board->listen, ':');
    const char *colon = strrchr(endpoint, ':');
    const size_t host = own ? (size_t)(own - board->listen) : 0;
    return colon && (size_t)(colon - endpoint) == host && host > 0 &&
           strncmp(endpoint, board->listen, host) == 0;
}

/* A bound port is matched by the one key that it accepts, a dialling port by its endpoint. */
uint32_t rp_sim_far_end(const rp_cluster *cluster, const rp_port *port) {
    for (uint32_t k = 0; k < cluster->options.boards; k++) {
        const rp_sim_board *board = &cluster->board[k];
        const bool is_it = port->bound ? port->has_one_key && memcmp(port->allowed[0], board->key,
                                                                     sizeof board->key) == 0
                                       : has_port(board, port->endpoint);
        if (is_it) {
            return k;
        }
    }
    return RP_SIM_HOST;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static int64_t read_clock(const rp_clock *clock) {
    const rp_sim_clock *own = (const rp_sim_clock *)(const void *)clock;
    const int64_t now_ns = rp_clock_now_ns(own->world);
    return now_ns + own->ahead_ns + (int64_t)((double)(now_ns - own->fast_from_ns) * own->fast);
}

void rp_sim_clock_start(rp_sim_clock *clock, const rp_cluster *cluster) {
    *clock = (rp_sim_clock){.clock = {.now = read_clock}, .world = rp_world_clock(cluster->world)};
}

void rp_sim_clock_set_fast(rp_sim_clock *clock, double share) {
    const int64_t now_ns = rp_clock_now_ns(clock->world);
    clock->ahead_ns = read_clock(&clock->clock) - now_ns;
    clock->fast_from_ns = now_ns;
    clock->fast = share;
}

int64_t rp_sim_clock_to_world_ns(const rp_sim_clock *clock, int64_t at_ns) {
    const int64_t from_ns = clock->fast_from_ns;
    if (at_ns == INT64_MAX || clock->fast <= 0) {
        return at_ns == INT64_MAX ? RP_WORLD_NEVER : at_ns - clock->ahead_ns;
    }
    const double rest_ns = (double)(at_ns - clock->ahead_ns - from_ns) / (1 + clock->fast);
    return from_ns + (int64_t)rest_ns + 1;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void add_to_line(rp_link_profile *line, const rp_sim_fault *fault) {
    switch (fault->kind) {
    case RP_SIM_FAULT_DELAY:
        line->delay_ms += fault->amount / 2;
        line->jitter_ms += fault->amount / 2;
        break;
    case RP_SIM_FAULT_LOSS:
        line->loss = larger(line->loss, fault->amount);
        break;
    case RP_SIM_FAULT_DUPLICATE:
        line->duplicate = larger(line->duplicate, fault->amount);
        break;
    case RP_SIM_FAULT_REORDER:
        line->reorder = larger(line->reorder, fault->amount);
        break;
    case RP_SIM_FAULT_CORRUPT:
        line->corrupt = larger(line->corrupt, fault->amount);
        break;
    case RP_SIM_FAULT_CLOG:
        line->hold = true;
        break;
    case RP_SIM_FAULT_MTU:
        line->mtu_bytes = (uint32_t)fault->amount;
        break;
    case RP_SIM_FAULT_PARTITION:
        line->cut = true;
        break;
    default:
        break;
    }
}

/* Compares the fields that add_to_line() changes. */
static bool has_same_faults(const rp_link_profile *a, const rp_link_profile *b) {
    return a->delay_ms == b->delay_ms && a->jitter_ms == b->jitter_ms && a->loss == b->loss &&
           a->duplicate == b->duplicate && a->reorder == b->reorder && a->corrupt == b->corrupt &&
           a->hold == b->hold && a->cut == b->cut && a->mtu_bytes == b->mtu_bytes;
}

/* Called after each step of a node, because ports come and go while faults last. */
void rp_sim_lines_set(rp_cluster *cluster, const rp_sim_network *network) {
    const rp_sim_faults *faults = cluster->options.faults;
    rp_sim_trouble *trouble = &cluster->trouble;
    const uint32_t from = network->node == rp_sim_host_node(cluster) ? RP_SIM_HOST : network->node;
    if (!trouble->lines || !network->line) {
        return;
    }
    for (rp_port *port = rp_emulate_next(network->line, NULL); port;
         port = rp_emulate_next(network->line, port)) {
        rp_link_profile line = network->calm;
        const uint32_t to = rp_sim_far_end(cluster, port);
        for (uint32_t i = 0; i < faults->count; i++) {
            const rp_sim_fault *fault = &faults->fault[i];
            if (trouble->active[i] && fault->from == from && fault->to == to) {
                add_to_line(&line, fault);
            }
        }
        if (!has_same_faults(&line, rp_emulate_profile(port))) {
            char stream[48];
            (void)snprintf(stream, sizeof stream, "sim/line/%" PRIu64, trouble->streams++);
            rp_emulate_set(port, &line, rp_rng_named(cluster->options.seed, stream));
        }
    }
}
