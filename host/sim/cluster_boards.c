/* The boards of a cluster: agents that boot, crash and restart. */
#include "sim/cluster_own.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_PORT = 20000, PORTS_A_LIFE = 100 };

/* Virtual time of one round of an agent: a board's CPU time for a few messages. */
static const int64_t ROUND_NS = 20000;

/* With a memory fault, one allocation of this round may fail; which one is drawn each time. */
static rp_err step_agent(rp_sim_board *board, bool *over) {
    if (board->allocations > 0) {
        rp_rng *rng = &board->cluster->trouble.rng;
        rp_arena_fail_at(1 + (long)rp_rng_below(rng, board->allocations));
    }
    const rp_err err = rp_agent_step(board->agent, over);
    if (board->allocations > 0) {
        board->allocations = rp_arena_has_failed() ? 0 : board->allocations;
        rp_arena_fail_at(0);
    }
    return err;
}

static int64_t step_board(void *context, int64_t now_ns) {
    rp_sim_board *board = context;
    rp_cluster *cluster = board->cluster;
    if (now_ns < board->still_ns) {
        return board->still_ns;
    }
    if (!board->agent) {
        if (now_ns < board->restart_ns) {
            return board->restart_ns;
        }
        if (rp_sim_board_boot(board) != RP_OK) {
            rp_eventlog_add(&cluster->log, now_ns, board->name, "cannot start: %s",
                            rp_err_message());
            board->restart_ns = now_ns + RP_NS_PER_S; /* like a service manager */
            return board->restart_ns;
        }
    }
    bool over;
    const rp_err err = step_agent(board, &over);
    if (err != RP_OK || over) {
        rp_eventlog_add(&cluster->log, now_ns, board->name, "ends: %s", rp_err_message());
        rp_sim_board_crash(board, now_ns + RP_NS_PER_S);
        return board->restart_ns;
    }
    const rp_agent_state state = rp_agent_state_of(board->agent);
    if (state != board->state) {
        rp_eventlog_add(&cluster->log, now_ns, board->name, "%s", rp_agent_state_name(state));
        board->state = state;
    }
    rp_sim_lines_set(cluster, &board->network);
    return rp_sim_clock_to_world_ns(&board->clock, rp_agent_deadline_ns(board->agent));
}

/* The roster's address for the first life of a board in it, or a new port; "" if the board dials.
 */
static void choose_address(rp_sim_board *board) {
    const rp_roster_entry *roster = board->cluster->options.roster;
    if (roster && roster[board->index].dials) {
        board->listen[0] = '\0';
    } else if (roster && board->lives == 1) {
        (void)snprintf(board->listen, sizeof board->listen, "%s", roster[board->index].endpoint);
    } else {
        (void)snprintf(board->listen, sizeof board->listen, "tcp://board%" PRIu32 ":%" PRIu32,
                       board->index, FIRST_PORT + PORTS_A_LIFE * board->lives);
    }
}

rp_err rp_sim_board_make_known(rp_sim_board *board) {
    const rp_roster_entry *roster = board->cluster->options.roster;
    const rp_roster_entry *entry = roster ? &roster[board->index] : NULL;
    rp_err err = RP_OK;
    RP_TRY(rp_keys_make(&board->keys));
    if (entry && !board->empties) { /* no secret is needed where nothing is encrypted */
        (void)snprintf(board->keys.public_text, sizeof board->keys.public_text, "%s",
                       entry->public_text);
    }
    if (entry) {
        (void)snprintf(board->name, sizeof board->name, "%s", entry->name);
    } else {
        (void)snprintf(board->name, sizeof board->name, "board%" PRIu32, board->index);
    }
    board->empties = false;
    RP_TRY(rp_key_decode(board->keys.public_text, board->key));
fail:
    return err;
}

static double op_s(const void *self, uint32_t first, uint32_t end, rp_op_kind kind,
                   uint32_t samples) {
    const rp_sim_board *board = self;
    return board->slow * rp_profile_op_s(board->cluster->options.profile, board->index, first, end,
                                         kind, samples);
}

rp_err rp_sim_board_open(rp_cluster *cluster, uint32_t index) {
    rp_sim_board *board = &cluster->board[index];
    const uint32_t layers = cluster->options.layer_count;
    char stream[32];
    rp_err err;
    board->cluster = cluster;
    board->index = board->node = index;
    board->moves = true;
    (void)snprintf(stream, sizeof stream, "sim/sessions/%" PRIu32, index);
    board->sessions = rp_rng_named(cluster->options.seed, stream);
    RP_TRY(rp_sim_board_make_known(board));
    board->slow = 1;
    if (cluster->options.profile) {
        const rp_profile_board *own = rp_profile_board_at(cluster->options.profile, index);
        board->costs = (rp_site_costs){board, op_s, own->like ? own->like : own->name};
    }
    if (cluster->options.layer_seconds) {
        RP_TRY(RP_ARENA_NEW(cluster->arena, 2 * (size_t)layers, &board->seconds));
        memcpy(board->seconds, cluster->options.layer_seconds,
               2 * (size_t)layers * sizeof *board->seconds);
    }
    RP_TRY(rp_sim_board_boot(board));
    rp_world_put_node(cluster->world, index, step_board, board, ROUND_NS);
fail:
    return err;
}

static uint32_t memory_mib(const rp_cluster *cluster, uint32_t index) {
    const uint64_t *bytes = cluster->options.memory_bytes;
    return bytes ? (uint32_t)(bytes[index] >> 20) : 0;
}

rp_err rp_sim_board_boot(rp_sim_board *board) {
    rp_cluster *cluster = board->cluster;
    const int64_t now_ns = rp_world_now_ns(cluster->world);
    const char *const trusted[] = {cluster->host_keys.public_text};
    rp_err err;
    RP_ASSERT(!board->agent);
    board->lives++;
    if (board->moves) {
        board->moves = false;
        choose_address(board);
    }
    RP_TRY(board->empties ? rp_sim_board_make_known(board) : RP_OK);
    rp_arena_init(&board->arena, "board", 0);
    rp_sim_clock_start(&board->clock, cluster);
    /* a restarted board has no battery: its clock starts at 0 */
    board->clock.ahead_ns = board->lives > 1 ? -now_ns : 0;
    RP_TRY(rp_sim_network_open(cluster, board->node, &board->arena, &board->clock.clock,
                               &board->keys, cluster->options.seed + board->lives,
                               &board->network));
    const rp_agent_options options = {
        .name = board->name,
        .listen = board->listen[0] ? board->listen : NULL,
        .dial = board->listen[0] ? NULL : cluster->options.listen,
        .host_public = cluster->host_keys.public_text,
        .keys = board->keys,
        .trusted = trusted,
        .trusted_count = 1,
        .memory_mib = memory_mib(cluster, board->index),
        .transport = board->network.line,
        .media = cluster->media,
        .sessions = &board->sessions,
        .library = cluster->library,
        .executor = rp_executor_find(cluster->options.executor),
        .site = {.clock = &board->clock.clock,
                 .seconds = board->seconds,
                 .costs = board->costs.op_s ? &board->costs : NULL,
                 .fails = &board->fails,
                 .hangs = &board->hangs,
                 .wrong_every = &board->wrong_every},
    };
    RP_TRY(rp_agent_open(&board->arena, NULL, &board->clock.clock, &options, &board->agent));
    board->state = rp_agent_state_of(board->agent);
    rp_eventlog_add(&cluster->log, now_ns, board->name, "begins life %" PRIu32 " at %s",
                    board->lives, board->listen[0] ? board->listen : "no address: it dials");
fail:
    if (err != RP_OK) {
        rp_sim_network_close(&board->network);
        rp_arena_finish(&board->arena);
    }
    return err;
}

void rp_sim_board_crash(rp_sim_board *board, int64_t restart_ns) {
    if (board->agent) {
        rp_agent_close(&board->agent);
        rp_sim_network_close(&board->network);
        rp_arena_finish(&board->arena);
    }
    board->restart_ns = restart_ns;
    board->still_ns = 0;
    board->fails = board->hangs = false;
    board->wrong_every = 0;
    board->allocations = 0;
}

void rp_sim_board_close(rp_sim_board *board) {
    rp_sim_board_crash(board, INT64_MAX);
}

/* ---- twins ----------------------------------------------------------------------------------- */

enum { LIVES_OF_TWINS = 1000 }; /* numbered apart from the lives of boards */

void rp_sim_twin_begin(rp_sim_board *board) {
    rp_cluster *cluster = board->cluster;
    rp_sim_board *twin = &cluster->twin[board->index];
    const uint32_t node = rp_sim_fault_node(cluster) + 1 + board->index;
    char stream[32];
    const uint32_t lives = twin->lives ? twin->lives : LIVES_OF_TWINS;
    *twin = (rp_sim_board){.cluster = cluster,
                           .index = board->index,
                           .node = node,
                           .keys = board->keys,
                           .lives = lives,
                           .costs = board->costs,
                           .slow = 1,
                           .seconds = board->seconds,
                           .restart_ns = RP_WORLD_NEVER};
    (void)snprintf(stream, sizeof stream, "sim/twins/%" PRIu32 "/%" PRIu32, board->index, lives);
    twin->sessions = rp_rng_named(cluster->options.seed, stream);
    twin->costs.self = twin;
    memcpy(twin->key, board->key, sizeof twin->key);
    memcpy(twin->listen, board->listen, sizeof twin->listen);
    (void)snprintf(twin->name, sizeof twin->name, "%.50s-twin", board->name);
    const rp_err err = rp_sim_board_boot(twin);
    RP_ASSERT(err == RP_OK); /* the board itself has booted in the same process */
    rp_world_put_node(cluster->world, node, step_board, twin, ROUND_NS);
    if (board->listen[0]) {
        rp_hub_end_connections(cluster->hub, board->listen);
    }
}

void rp_sim_twin_end(rp_sim_board *board) {
    rp_sim_board *twin = &board->cluster->twin[board->index];
    rp_sim_board_crash(twin, RP_WORLD_NEVER);
    rp_world_remove_node(board->cluster->world, twin->node);
}

/* ---- as the controller sees them ------------------------------------------------------------- */

static rp_err start_boards(void *self, const rp_spawn_order *order) {
    const rp_cluster *cluster = self;
    return order->count == cluster->options.boards
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "the simulation has %" PRIu32 " boards, the ring %" PRIu32,
                         cluster->options.boards, order->count);
}

/* Crashed boards restart without the controller. */
static rp_err restart_no_board(void *self, const rp_spawn_order *order) {
    (void)self;
    (void)order;
    return RP_OK;
}

static rp_err step_boards(void *self, bool *up) {
    (void)self;
    *up = true;
    return RP_OK;
}

static void tell_address(void *self, uint32_t board, const char **endpoint,
                         const char **public_text) {
    const rp_cluster *cluster = self;
    *endpoint = cluster->board[board].listen;
    *public_text = cluster->board[board].keys.public_text;
}

static int no_descriptor(void *self) {
    (void)self;
    return -1;
}

static rp_err reap_no_board(void *self, uint32_t *board) {
    *board = ((const rp_cluster *)self)->options.boards;
    return RP_OK;
}

/* Boards outlive the controller; the next one greets them again. */
static bool end_no_board(void *self, int64_t now_ns) {
    (void)self;
    (void)now_ns;
    return true;
}

static void close_nothing(void *self) {
    (void)self;
}

rp_spawner rp_sim_spawner(rp_cluster *cluster) {
    static const rp_spawner_kind kind = {
        .name = "simulated",
        .start = start_boards,
        .restart = restart_no_board,
        .step = step_boards,
        .address = tell_address,
        .fd = no_descriptor,
        .reap = reap_no_board,
        .end = end_no_board,
        .close = close_nothing,
    };
    return (rp_spawner){.kind = &kind, .self = cluster};
}
