/* Effects of faults on a cluster. A node of the world begins and ends them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ring/ring.h"
#include "sim/cluster_own.h"

/* Interval at which a fault is retried while its target is away and it would have no effect. */
static const int64_t RETRY_NS = 5 * RP_NS_PER_MS;

/* Limit for the sum of clock jumps: a clock without a battery jumps from 1970 to 2033 at most. */
static const int64_t CLOCK_AHEAD_MAX_NS = 2000 * INT64_C(1000000) * RP_NS_PER_S;

static uint32_t count_lost(const rp_cluster *cluster) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < cluster->options.boards; k++) {
        count += cluster->board[k].lost;
    }
    return count;
}

/* Whether enough boards are left, so that the run must go on. Before the first training segment a
 * lost board may end it, because the model is not cut again for fewer boards yet. */
static bool is_enough_left(const rp_cluster *cluster) {
    const uint32_t lost = count_lost(cluster);
    uint32_t wrong = 0; /* boards that compute wrong; two of them cannot be told from right ones */
    for (uint32_t k = 0; k < cluster->options.boards; k++) {
        wrong += cluster->board[k].wrong_every > 0;
    }
    if (wrong > 1) {
        return false;
    }
    return lost == 0 || (cluster->host_trains && lost <= cluster->options.may_lose);
}

/* A device, memory or disk that fails before the first step ends the run: a retry would not help.
 */
static bool may_stop(const rp_cluster *cluster, const rp_sim_fault *fault) {
    const bool is_weak = fault->kind == RP_SIM_FAULT_DEVICE || fault->kind == RP_SIM_FAULT_MEMORY ||
                         fault->kind == RP_SIM_FAULT_DISK_FULL;
    return rp_sim_fault_may_stop(fault, cluster->options.wait_ns) ||
           (is_weak && !cluster->host_trains);
}

/* A roster's board that listens at another address is lost: the controller does not look there. */
static bool loses_board(const rp_cluster *cluster, const rp_sim_fault *fault) {
    return rp_sim_fault_loses_board(fault, cluster->options.wait_ns) ||
           (fault->kind == RP_SIM_FAULT_MOVE && cluster->options.roster &&
            !cluster->options.roster[fault->from].dials);
}

static int64_t max_ns(int64_t a_ns, int64_t b_ns) {
    return a_ns > b_ns ? a_ns : b_ns;
}

static int64_t end_ns(const rp_cluster *cluster, uint32_t index) {
    return cluster->trouble.at_ns[index] + cluster->options.faults->fault[index].for_ns;
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
    board->slow *= factor;
    for (uint32_t i = 0; board->seconds && i < 2 * board->cluster->options.layer_count; i++) {
        board->seconds[i] *= factor;
    }
}

/* A late `stale` fault waits for a later life of the controller, to replay frames of an earlier. */
static bool is_later_life(const rp_cluster *cluster, const rp_sim_fault *fault) {
    const int64_t since_ns = rp_world_now_ns(cluster->world) - cluster->host_since_ns;
    return cluster->host_lives > 1 && cluster->controller && since_ns >= fault->at_ns / 4;
}

static bool is_in_state(const rp_cluster *cluster, rp_control_state_id state) {
    return state == RP_CONTROL_STATES ||
           (cluster->controller && cluster->host_state &&
            strcmp(cluster->host_state, rp_control_states[state].name) == 0);
}

static bool is_there(const rp_cluster *cluster, const rp_sim_fault *fault) {
    if (!is_in_state(cluster, fault->in)) {
        return false;
    }
    switch (fault->kind) {
    case RP_SIM_FAULT_CRASH:
    case RP_SIM_FAULT_MOVE:
    case RP_SIM_FAULT_EMPTY:
    case RP_SIM_FAULT_GONE:
    case RP_SIM_FAULT_WRONG:
    case RP_SIM_FAULT_DEVICE:
    case RP_SIM_FAULT_HANG:
    case RP_SIM_FAULT_MEMORY:
    case RP_SIM_FAULT_CLOCK:
    case RP_SIM_FAULT_DRIFT:
    case RP_SIM_FAULT_SUSPEND:
    case RP_SIM_FAULT_RESET:
        return cluster->board[fault->from].agent != NULL;
    case RP_SIM_FAULT_TWIN:
        return cluster->board[fault->from].agent && !cluster->twin[fault->from].agent;
    case RP_SIM_FAULT_STALE:
        return rp_hub_remembered(cluster->hub) > 0 &&
               (fault->at_ns < cluster->options.stale_from_ns || is_later_life(cluster, fault));
    case RP_SIM_FAULT_TORN:
    case RP_SIM_FAULT_MISPLACED:
    case RP_SIM_FAULT_ROTTEN:
        return cluster->controller != NULL && !cluster->host_crashed &&
               rp_sim_disk_has_checkpoint(cluster);
    case RP_SIM_FAULT_HOST_CRASH:
    case RP_SIM_FAULT_HOST_STILL:
    case RP_SIM_FAULT_INTERRUPT:
    case RP_SIM_FAULT_LIED:
        return cluster->controller != NULL && !cluster->host_crashed;
    case RP_SIM_FAULT_STALL:
    case RP_SIM_FAULT_SAVE_CRASH: /* rp_sim_faults_look() checks at each change */
        return !cluster->host_crashed && is_in_state(cluster, RP_CONTROL_SAVE);
    default:
        return true;
    }
}

static void replay_frames(rp_cluster *cluster, double amount) {
    const uint32_t there = rp_hub_remembered(cluster->hub);
    for (uint32_t i = 0; there > 0 && i < (uint32_t)amount; i++) {
        const rp_err err = rp_hub_replay(cluster->hub, rp_rng_below(&cluster->trouble.rng, there));
        RP_ASSERT(err == RP_OK || err == RP_ERR_AGAIN);
    }
}

/* A board that is away already keeps its restart time. */
static void crash_board(rp_sim_board *board, uint32_t index) {
    const rp_cluster *cluster = board->cluster;
    const rp_sim_fault *fault = &cluster->options.faults->fault[index];
    if (board->agent) {
        board->moves |= fault->kind == RP_SIM_FAULT_MOVE;
        board->empties |= fault->kind == RP_SIM_FAULT_EMPTY;
        board->lost |= loses_board(cluster, fault);
        rp_sim_board_crash(board, fault->kind == RP_SIM_FAULT_GONE ? RP_WORLD_NEVER
                                                                   : end_ns(cluster, index));
        rp_world_wake_node(cluster->world, board->index);
    }
}

static void begin_at_node(rp_cluster *cluster, uint32_t index) {
    const rp_sim_fault *fault = &cluster->options.faults->fault[index];
    rp_sim_board *board = &cluster->board[fault->from];
    switch (fault->kind) {
    case RP_SIM_FAULT_STALE:
        replay_frames(cluster, fault->amount);
        break;
    case RP_SIM_FAULT_CRASH:
    case RP_SIM_FAULT_MOVE:
    case RP_SIM_FAULT_EMPTY:
    case RP_SIM_FAULT_GONE:
        crash_board(board, index);
        break;
    case RP_SIM_FAULT_TWIN:
        rp_sim_twin_begin(board);
        break;
    case RP_SIM_FAULT_WRONG:
        board->lost = true; /* as soon as it is detected */
        board->wrong_every = (uint32_t)fault->amount;
        break;
    case RP_SIM_FAULT_DEVICE:
        board->fails = true;
        break;
    case RP_SIM_FAULT_HANG:
        board->hangs = true;
        break;
    case RP_SIM_FAULT_MEMORY:
        board->allocations = (uint32_t)fault->amount;
        break;
    case RP_SIM_FAULT_RESET:
        for (uint32_t k = fault->from; k < fault->from + (uint32_t)fault->amount; k++) {
            crash_board(&cluster->board[k % cluster->options.boards], index);
        }
        break;
    case RP_SIM_FAULT_SUSPEND:
        board->lost |= loses_board(cluster, fault);
        board->still_ns = max_ns(board->still_ns, end_ns(cluster, index));
        break;
    case RP_SIM_FAULT_DRIFT:
        rp_sim_clock_set_fast(&board->clock, fault->amount / 100);
        break;
    case RP_SIM_FAULT_SLOW:
        slow_board(board, fault->amount);
        break;
    default: /* RP_SIM_FAULT_CLOCK */
        board->clock.ahead_ns += (int64_t)(fault->amount * 1e9);
        if (board->clock.ahead_ns > CLOCK_AHEAD_MAX_NS) {
            board->clock.ahead_ns = CLOCK_AHEAD_MAX_NS;
        }
        break;
    }
    rp_world_wake_node(cluster->world, fault->from);
}

static void begin_at_host(rp_cluster *cluster, uint32_t index) {
    switch (cluster->options.faults->fault[index].kind) {
    case RP_SIM_FAULT_DISK_FULL:
        cluster->disk_full = true;
        break;
    case RP_SIM_FAULT_LIED:
        rp_sim_disk_keep(cluster);
        break;
    case RP_SIM_FAULT_INTERRUPT:
        rp_controller_interrupt(cluster->controller);
        rp_world_wake_node(cluster->world, rp_sim_host_node(cluster));
        break;
    case RP_SIM_FAULT_STALL:
    case RP_SIM_FAULT_HOST_STILL:
        cluster->host_still_ns = max_ns(cluster->host_still_ns, end_ns(cluster, index));
        break;
    case RP_SIM_FAULT_TORN:
    case RP_SIM_FAULT_MISPLACED:
    case RP_SIM_FAULT_ROTTEN:
        cluster->disk_fault = &cluster->options.faults->fault[index];
        cluster->host_crashed = true;
        break;
    default:
        cluster->host_crashed = true;
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static void begin_fault(rp_cluster *cluster, uint32_t index) {
    const rp_sim_fault *fault = &cluster->options.faults->fault[index];
    cluster->trouble.begun[index] = cluster->trouble.active[index] = true;
    cluster->trouble.effective++;
    cluster->trouble.marks.kind[fault->kind]++;
    if (rp_sim_fault_target(fault->kind) == RP_SIM_TARGET_EDGE) {
        set_all_lines(cluster);
    } else if (rp_sim_fault_target(fault->kind) == RP_SIM_TARGET_NODE) {
        begin_at_node(cluster, index);
    } else {
        begin_at_host(cluster, index);
    }
    cluster->trouble.may_stop |= may_stop(cluster, fault) || !is_enough_left(cluster);
    cluster->trouble.calm_ns =
        max_ns(cluster->trouble.calm_ns, loses_board(cluster, fault) ? cluster->trouble.at_ns[index]
                                                                     : end_ns(cluster, index));
}

/* Cuts the host's power, which also ends the controller. */
static void lose_power(rp_cluster *cluster) {
    if (cluster->controller) {
        cluster->disk_returns = cluster->host_crashed = true;
    } else {
        rp_sim_disk_return(cluster);
    }
}

static void end_fault(rp_cluster *cluster, uint32_t index) {
    const rp_sim_fault *fault = &cluster->options.faults->fault[index];
    cluster->trouble.active[index] = false;
    if (rp_sim_fault_target(fault->kind) == RP_SIM_TARGET_EDGE) {
        set_all_lines(cluster);
    } else if (fault->kind == RP_SIM_FAULT_SLOW) {
        slow_board(&cluster->board[fault->from], 1 / fault->amount);
    } else if (fault->kind == RP_SIM_FAULT_DRIFT) {
        rp_sim_clock_set_fast(&cluster->board[fault->from].clock, 0);
    } else if (fault->kind == RP_SIM_FAULT_TWIN) {
        rp_sim_twin_end(&cluster->board[fault->from]);
    } else if (fault->kind == RP_SIM_FAULT_DISK_FULL) {
        cluster->disk_full = false;
    } else if (fault->kind == RP_SIM_FAULT_WRONG) {
        cluster->board[fault->from].wrong_every = 0;
    } else if (fault->kind == RP_SIM_FAULT_DEVICE) {
        cluster->board[fault->from].fails = false;
    } else if (fault->kind == RP_SIM_FAULT_HANG) {
        cluster->board[fault->from].hangs = false;
    } else if (fault->kind == RP_SIM_FAULT_MEMORY) {
        cluster->board[fault->from].allocations = 0;
    } else if (fault->kind == RP_SIM_FAULT_LIED) {
        lose_power(cluster);
    }
}

static void log_fault(rp_cluster *cluster, int64_t now_ns, const char *what, uint32_t index) {
    char text[160];
    rp_sim_fault_text(&cluster->options.faults->fault[index], text, sizeof text);
    rp_eventlog_add(&cluster->log, now_ns, "fault", "%s: %s", what, text);
}

/* Whether the fault begins now. */
static bool is_due(const rp_cluster *cluster, uint32_t index, int64_t now_ns) {
    const rp_sim_trouble *trouble = &cluster->trouble;
    if (trouble->begun[index] || trouble->at_ns[index] > now_ns) {
        return false;
    }
    return is_there(cluster, &cluster->options.faults->fault[index]);
}

static int64_t next_look_ns(const rp_cluster *cluster, uint32_t index, int64_t now_ns) {
    const rp_sim_trouble *trouble = &cluster->trouble;
    if (!trouble->begun[index]) {
        return trouble->at_ns[index] > now_ns ? trouble->at_ns[index] : now_ns + RETRY_NS;
    }
    return trouble->active[index] ? end_ns(cluster, index) : RP_WORLD_NEVER;
}

/* Begins and ends faults; returns the time of the next event. */
static int64_t step_faults(void *context, int64_t now_ns) {
    rp_cluster *cluster = context;
    rp_sim_trouble *trouble = &cluster->trouble;
    int64_t next_ns = RP_WORLD_NEVER;
    for (uint32_t i = 0; i < cluster->options.faults->count; i++) {
        if (is_due(cluster, i, now_ns)) {
            trouble->at_ns[i] = now_ns;
            log_fault(cluster, now_ns, "begins", i);
            begin_fault(cluster, i);
        }
        if (trouble->active[i] && end_ns(cluster, i) <= now_ns) {
            log_fault(cluster, now_ns, "ends", i);
            end_fault(cluster, i);
        }
        const int64_t at_ns = next_look_ns(cluster, i, now_ns);
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return next_ns;
}

void rp_sim_faults_look(rp_cluster *cluster) {
    if (cluster->options.faults && cluster->options.faults->count > 0) {
        rp_world_wake_node(cluster->world, rp_sim_fault_node(cluster));
    }
}

/* How long boards may be away when a controller starts: as long as ring.wait allows if it resumes
 * an undamaged checkpoint; otherwise at most its start timeout. */
static int64_t borne_at_start_ns(const rp_cluster *cluster) {
    const int64_t first_ns = rp_sim_fault_borne_ns(RP_RING_HELLO_NS);
    const int64_t wait_ns = cluster->options.wait_ns;
    const int64_t borne_ns = wait_ns > 0 ? rp_sim_fault_borne_ns(wait_ns) : first_ns;
    const bool goes_on = cluster->damages == 0 && rp_sim_disk_has_checkpoint(cluster);
    return goes_on || borne_ns < first_ns ? borne_ns : first_ns;
}

void rp_sim_faults_new_life(rp_cluster *cluster) {
    const int64_t borne_ns = borne_at_start_ns(cluster);
    rp_sim_trouble *trouble = &cluster->trouble;
    trouble->may_stop = !is_enough_left(cluster);
    trouble->before = trouble->effective;
    for (uint32_t i = 0; cluster->options.faults && i < cluster->options.faults->count; i++) {
        const rp_sim_fault *fault = &cluster->options.faults->fault[i];
        trouble->may_stop |= trouble->active[i] && may_stop(cluster, fault);
    }
    for (uint32_t k = 0; k < cluster->options.boards; k++) {
        const rp_sim_board *board = &cluster->board[k];
        const int64_t back_ns = board->agent ? board->still_ns : board->restart_ns;
        trouble->may_stop |= back_ns - rp_world_now_ns(cluster->world) > borne_ns;
    }
}

/* Justified if each recovery had a fault of its own. */
void rp_sim_faults_note_give_up(rp_cluster *cluster) {
    rp_sim_trouble *trouble = &cluster->trouble;
    trouble->may_stop |= trouble->effective - trouble->before > RP_REMEDY_IN_A_ROW_MAX;
}

void rp_sim_faults_start(rp_cluster *cluster) {
    cluster->trouble.rng = rp_rng_named(cluster->options.seed, "sim/trouble");
    for (uint32_t i = 0; cluster->options.faults && i < cluster->options.faults->count; i++) {
        cluster->trouble.at_ns[i] = cluster->options.faults->fault[i].at_ns;
    }
    if (cluster->options.faults && cluster->options.faults->count > 0) {
        rp_world_put_node(cluster->world, rp_sim_fault_node(cluster), step_faults, cluster, 0);
    }
}
