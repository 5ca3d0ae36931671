#include "sim/cluster_own.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { REMEMBERED_PACKETS = 256, REMEMBERED_BEGINNINGS = 128 };

/* Virtual time of one round of the controller: a constant, and a part for each board's link. */
static const int64_t ROUND_NS = 20000;
static const int64_t ROUND_OF_BOARD_NS = 2000;

/* ---- the host -------------------------------------------------------------------------------- */

/* A full disk is simulated by a file size limit of 0, at which no file can grow. */
static int64_t step_controller(rp_cluster *cluster) {
    const int64_t now_ns = rp_clock_now_ns(&cluster->host_clock.clock);
    struct rlimit before;
    const bool full = cluster->disk_full && getrlimit(RLIMIT_FSIZE, &before) == 0;
    if (full) {
        const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
        (void)setrlimit(RLIMIT_FSIZE, &none);
    }
    const int64_t deadline_ns = rp_controller_step(cluster->controller, now_ns);
    if (full) {
        (void)setrlimit(RLIMIT_FSIZE, &before);
    }
    return deadline_ns;
}

static int64_t step_host(void *context, int64_t now_ns) {
    rp_cluster *cluster = context;
    rp_controller_waiting why;
    if (now_ns < cluster->host_still_ns) {
        return cluster->host_still_ns;
    }
    if (!cluster->controller || rp_controller_has_ended(cluster->controller)) {
        return RP_WORLD_NEVER;
    }
    int64_t deadline_ns = step_controller(cluster);
    const int64_t own_ns = rp_clock_now_ns(&cluster->host_clock.clock);
    rp_controller_waiting_of(cluster->controller, &why);
    if (why.state != cluster->host_state) {
        rp_eventlog_add(&cluster->log, now_ns, "host", "%s", why.state);
        cluster->host_state = why.state;
        cluster->host_trains |= strcmp(why.state, "train") == 0;
        rp_sim_faults_look(cluster);
    }
    const int64_t link_ns = rp_controller_before_wait(cluster->controller, own_ns);
    deadline_ns = link_ns < deadline_ns ? link_ns : deadline_ns;
    rp_sim_lines_set(cluster, &cluster->host_network);
    return rp_sim_clock_to_world_ns(&cluster->host_clock, deadline_ns);
}

/* Unlike step_host(), also sees states that are left within the same round. */
static void note_state(void *context, const char *state) {
    rp_cluster *cluster = context;
    cluster->host_returns &= strcmp(state, "train") != 0;
    if (cluster->host_returns) {
        rp_sim_marks_pass(&cluster->trouble.marks, state);
    }
}

static void note_remedy(void *context, const char *failed, const char *remedy) {
    rp_cluster *cluster = context;
    rp_sim_marks_note(&cluster->trouble.marks, failed, remedy);
    if (strcmp(remedy, rp_remedy_name(RP_REMEDY_GIVE_UP)) == 0) {
        rp_sim_faults_note_give_up(cluster);
    }
    cluster->host_returns = true;
    rp_eventlog_add(&cluster->log, rp_world_now_ns(cluster->world), "host", "fault in %s: %s",
                    failed, remedy);
}

static void note_joined(void *context) {
    rp_cluster *cluster = context;
    cluster->trouble.marks.rejoined++;
    rp_eventlog_add(&cluster->log, rp_world_now_ns(cluster->world), "host", "boards join again");
}

/* A life that does not resume is a new run, with a new id. An id of 0 would mean a random one. */
static uint64_t fresh_run_id(const rp_cluster *cluster) {
    return cluster->options.seed + 1 + ((uint64_t)cluster->host_lives << 40);
}

static rp_err open_host(rp_cluster *cluster, bool resume) {
    const rp_cluster_options *options = &cluster->options;
    rp_err err;
    rp_sim_clock_start(&cluster->host_clock, cluster);
    RP_TRY(rp_sim_network_open(cluster, rp_sim_host_node(cluster), &cluster->host_arena,
                               &cluster->host_clock.clock, &cluster->host_keys,
                               options->seed + 1000 * (uint64_t)cluster->host_lives,
                               &cluster->host_network));
    const rp_links_options links = {.clock = &cluster->host_clock.clock,
                                    .seed = options->seed,
                                    .keys = &cluster->host_keys,
                                    .transport = cluster->host_network.line,
                                    .media = cluster->media,
                                    .sessions = &cluster->host_sessions};
    RP_TRY(rp_links_open(&cluster->host_arena, &links, &cluster->host_links));
    const rp_controller_env env = {.clock = &cluster->host_clock.clock,
                                   .links = cluster->host_links,
                                   .keys = &cluster->host_keys,
                                   .spawner = rp_sim_spawner(cluster),
                                   .feeder = RP_FEEDER_DIRECT,
                                   .run_id = fresh_run_id(cluster),
                                   .progress = options->progress,
                                   .result = options->result,
                                   .on_state = note_state,
                                   .on_remedy = note_remedy,
                                   .on_joined = note_joined,
                                   .context = cluster};
    const rp_controller_options controller = {.purpose = RP_PURPOSE_TRAIN,
                                              .run_path = options->run_path,
                                              .set = options->set,
                                              .set_count = options->set_count,
                                              .out = resume ? NULL : options->folder,
                                              .resume = resume ? options->folder : NULL,
                                              .plan = options->plan,
                                              .executor = options->executor,
                                              .temporary = options->temporary,
                                              .format = options->format};
    RP_TRY(rp_controller_open(&env, &controller, &cluster->controller));
fail:
    return err;
}

/* A crashed controller writes and sends nothing more. Its links belong to the world and are closed;
 * its memory is not released before the process ends. */
static void leave_host(rp_cluster *cluster, rp_err *result) {
    if (cluster->host_crashed) {
        rp_controller_crash(&cluster->controller);
    } else {
        *result = rp_controller_close(&cluster->controller);
    }
    rp_world_remove_node(cluster->world, rp_sim_host_node(cluster));
    rp_links_close(&cluster->host_links);
    rp_sim_network_close(&cluster->host_network);
    if (!cluster->host_crashed) {
        rp_arena_finish(&cluster->host_arena);
    }
}

rp_cluster_end rp_cluster_run_life(rp_cluster *cluster, bool resume, rp_err *result) {
    rp_world *world = cluster->world;
    bool in_time = true;
    cluster->host_lives++;
    cluster->host_crashed = false;
    cluster->host_state = NULL;
    cluster->host_trains = false;
    cluster->host_returns = resume;
    cluster->host_still_ns = 0;
    cluster->host_since_ns = rp_world_now_ns(world);
    rp_sim_faults_new_life(cluster);
    rp_arena_init(&cluster->host_arena, "host", 0);
    rp_eventlog_add(&cluster->log, rp_world_now_ns(world), "host", "begins life %" PRIu32 "%s",
                    cluster->host_lives, resume ? ", resumes" : "");
    *result = open_host(cluster, resume);
    if (*result == RP_OK) {
        rp_world_put_node(world, rp_sim_host_node(cluster), step_host, cluster,
                          ROUND_NS + ROUND_OF_BOARD_NS * (int64_t)cluster->options.boards);
        while (in_time && !cluster->host_crashed && !rp_controller_has_ended(cluster->controller)) {
            in_time = rp_world_step_next(world, cluster->options.limit_ns);
        }
        leave_host(cluster, result);
    } else {
        rp_links_close(&cluster->host_links);
        rp_sim_network_close(&cluster->host_network);
        rp_arena_finish(&cluster->host_arena);
    }
    if (cluster->disk_fault) {
        rp_sim_disk_damage(cluster, cluster->disk_fault);
        cluster->disk_fault = NULL;
    }
    if (cluster->disk_returns) {
        rp_sim_disk_return(cluster);
        cluster->disk_returns = false;
    }
    rp_eventlog_add(&cluster->log, rp_world_now_ns(world), "host", "ends: %s",
                    cluster->host_crashed ? "crashed" : rp_err_text(*result));
    if (!in_time) {
        return RP_CLUSTER_LIMIT;
    }
    return *result == RP_OK && !cluster->host_crashed ? RP_CLUSTER_FINISHED : RP_CLUSTER_STOPPED;
}

/* Restarts the board with the key and at the address of its roster entry. */
static void repair_board(rp_sim_board *board) {
    const rp_roster_entry *entry = &board->cluster->options.roster[board->index];
    rp_sim_board_crash(board, 0);
    (void)snprintf(board->listen, sizeof board->listen, "%s", entry->endpoint);
    const rp_err err = rp_sim_board_make_known(board);
    RP_ASSERT(err == RP_OK); /* succeeded when the cluster was opened */
}

void rp_cluster_repair(rp_cluster *cluster) {
    for (uint32_t k = 0; k < cluster->options.boards; k++) {
        rp_sim_board *board = &cluster->board[k];
        if (board->lost && cluster->options.roster) {
            board->empties = false;
            repair_board(board);
        } else if (board->restart_ns == RP_WORLD_NEVER) {
            board->restart_ns = 0;
        }
        board->lost = board->moves = false;
        rp_world_wake_node(cluster->world, k);
    }
}

void rp_cluster_rest(rp_cluster *cluster, int64_t for_ns) {
    const int64_t until_ns = rp_world_now_ns(cluster->world) + for_ns;
    while (rp_world_step_next(cluster->world, until_ns)) {
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

rp_err rp_cluster_open(rp_arena *arena, const rp_cluster_options *options, rp_cluster **out) {
    rp_cluster *cluster = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &cluster));
    cluster->arena = arena;
    cluster->options = *options;
    cluster->host_sessions = rp_rng_named(options->seed, "sim/sessions/host");
    rp_eventlog_open(&cluster->log, options->trace);
    (void)signal(SIGXFSZ, SIG_IGN); /* a full disk is an error of write() */
    RP_TRY(rp_world_open(arena, 2 * options->boards + 2, options->seed, &cluster->world));
    RP_TRY(rp_hub_new(arena, REMEMBERED_PACKETS, &cluster->hub));
    rp_hub_let_twins(cluster->hub);
    RP_TRY(rp_hub_remember_beginnings(cluster->hub, arena, REMEMBERED_BEGINNINGS));
    RP_TRY(rp_agent_library_open(arena, &cluster->library));
    RP_TRY(rp_media_new(arena, rp_world_clock(cluster->world), &cluster->media));
    RP_TRY(rp_keys_make(&cluster->host_keys));
    RP_TRY(RP_ARENA_NEW(arena, options->boards, &cluster->board));
    RP_TRY(RP_ARENA_NEW(arena, options->boards, &cluster->twin));
    for (uint32_t k = 0; k < options->boards; k++) {
        RP_TRY(rp_sim_board_open(cluster, k));
    }
    rp_sim_faults_start(cluster);
    *out = cluster;
    return RP_OK;
fail:
    if (cluster) {
        rp_cluster_close(&cluster);
    }
    return err;
}

void rp_cluster_close(rp_cluster **taken) {
    rp_cluster *cluster = *taken;
    *taken = NULL;
    if (!cluster) {
        return;
    }
    rp_sim_disk_forget(cluster);
    for (uint32_t k = 0; cluster->board && k < cluster->options.boards; k++) {
        rp_sim_board_close(&cluster->board[k]);
        if (cluster->twin) {
            rp_sim_board_close(&cluster->twin[k]);
        }
    }
    rp_hub_finish(&cluster->hub);
    rp_agent_library_close(&cluster->library);
}

int64_t rp_cluster_calm_ns(const rp_cluster *cluster) {
    return cluster->trouble.calm_ns;
}

bool rp_cluster_had_reason(const rp_cluster *cluster) {
    return cluster->trouble.may_stop;
}

bool rp_cluster_has_forgotten(const rp_cluster *cluster) {
    return cluster->disk_forgot;
}

void rp_cluster_note(rp_cluster *cluster, const char *text) {
    rp_eventlog_add(&cluster->log, rp_world_now_ns(cluster->world), "verdict", "%s", text);
}

uint32_t rp_cluster_faults_applied(const rp_cluster *cluster) {
    return cluster->trouble.effective;
}

const rp_sim_marks *rp_cluster_marks(const rp_cluster *cluster) {
    return &cluster->trouble.marks;
}

const rp_eventlog *rp_cluster_events(const rp_cluster *cluster) {
    return &cluster->log;
}

int64_t rp_cluster_now_ns(const rp_cluster *cluster) {
    return rp_world_now_ns(cluster->world);
}
