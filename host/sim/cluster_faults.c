/* What faults do to a cluster. A fault begins and ends as an event of the world. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/cluster_own.h"

static int64_t end_ns(const rp_sim_fault *fault) {
    return fault->at_ns + fault->for_ns;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void set_all_lines(rp_cluster *cluster) {
    cluster->trouble.lines = true;
    for (uint32_t k = 0; k < cluster->options.boards; k++) {
        rp_sim_lines_set(cluster, &cluster->board[k].network);
    }
    rp_sim_lines_set(cluster, &cluster->host_network);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void slow_board(rp_sim_board *board, double factor) {
    for (uint32_t i = 0; board->seconds && i < 2 * board->cluster->options.layer_count; i++) {
        board->seconds[i] *= factor;
    }
}

static void replay_frames(rp_cluster *cluster, double amount) {
    const uint32_t there = rp_hub_remembered(cluster->hub);
    for (uint32_t i = 0; there > 0 && i < (uint32_t)amount; i++) {
        const rp_err err = rp_hub_replay(cluster->hub, rp_rng_below(&cluster->trouble.rng, there));
        RP_ASSERT(err == RP_OK || err == RP_ERR_AGAIN);
    }
}

static void begin_at_node(rp_cluster *cluster, const rp_sim_fault *fault) {
    rp_sim_board *board = &cluster->board[fault->from];
    switch (fault->kind) {
    case RP_SIM_FAULT_STALE:
        replay_frames(cluster, fault->amount);
        break;
    case RP_SIM_FAULT_CRASH:
    case RP_SIM_FAULT_MOVE:
        board->moves |= fault->kind == RP_SIM_FAULT_MOVE;
        rp_sim_board_crash(board, end_ns(fault));
        break;
    case RP_SIM_FAULT_SLOW:
        slow_board(board, fault->amount);
        break;
    default: /* RP_SIM_FAULT_CLOCK */
        board->clock.ahead_ns += (int64_t)(fault->amount * 1e9);
        break;
    }
    rp_world_wake_node(cluster->world, fault->from);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void begin_fault(rp_cluster *cluster, uint32_t index) {
    const rp_sim_fault *fault = &cluster->options.faults->fault[index];
    cluster->trouble.active[index] = true;
    cluster->trouble.effective++;
    if (rp_sim_fault_target(fault->kind) == RP_SIM_TARGET_EDGE) {
        set_all_lines(cluster);
    } else if (rp_sim_fault_target(fault->kind) == RP_SIM_TARGET_NODE) {
        begin_at_node(cluster, fault);
    } else if (fault->kind == RP_SIM_FAULT_HOST_CRASH) {
        cluster->host_crashed = cluster->controller != NULL;
    } else {
        cluster->disk_full = true;
    }
}

static void end_fault(rp_cluster *cluster, uint32_t index) {
    const rp_sim_fault *fault = &cluster->options.faults->fault[index];
    cluster->trouble.active[index] = false;
    if (rp_sim_fault_target(fault->kind) == RP_SIM_TARGET_EDGE) {
        set_all_lines(cluster);
    } else if (fault->kind == RP_SIM_FAULT_SLOW) {
        slow_board(&cluster->board[fault->from], 1 / fault->amount);
    } else if (fault->kind == RP_SIM_FAULT_DISK_FULL) {
        cluster->disk_full = false;
    }
}

static void log_fault(rp_cluster *cluster, int64_t now_ns, const char *what, uint32_t index) {
    char text[160];
    rp_sim_fault_text(&cluster->options.faults->fault[index], text, sizeof text);
    rp_eventlog_add(&cluster->log, now_ns, "fault", "%s: %s", what, text);
}

/* The next event after now. */
static int64_t step_faults(void *context, int64_t now_ns) {
    rp_cluster *cluster = context;
    const rp_sim_faults *faults = cluster->options.faults;
    rp_sim_trouble *trouble = &cluster->trouble;
    int64_t next_ns = RP_WORLD_NEVER;
    for (uint32_t i = 0; i < faults->count; i++) {
        const rp_sim_fault *fault = &faults->fault[i];
        if (i == trouble->begun && fault->at_ns <= now_ns) {
            trouble->begun++;
            log_fault(cluster, now_ns, "begins", i);
            begin_fault(cluster, i);
        }
        if (trouble->active[i] && end_ns(fault) <= now_ns) {
            log_fault(cluster, now_ns, "ends", i);
            end_fault(cluster, i);
        }
        const int64_t at_ns = i >= trouble->begun  ? fault->at_ns
                              : trouble->active[i] ? end_ns(fault)
                                                   : RP_WORLD_NEVER;
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return next_ns;
}

void rp_sim_faults_start(rp_cluster *cluster) {
    cluster->trouble.rng = rp_rng_named(cluster->options.seed, "sim/trouble");
    if (cluster->options.faults && cluster->options.faults->count > 0) {
        rp_world_put_node(cluster->world, rp_sim_fault_node(cluster), step_faults, cluster, 0);
    }
}
