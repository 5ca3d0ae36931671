/* The present state of the run for now.json: collected and written once a second, and never in a
 * simulation. */
#include <math.h>

#include "control/controller_own.h"

static const int64_t EVERY_NS = RP_NS_PER_S;
static const int64_t SILENT_NS = 3 * RP_NS_PER_S;
static const int64_t STALE_NS = 10 * RP_NS_PER_S; /* of a board's sensors */

/* ---- boards ---------------------------------------------------------------------------------- */

static const char *state_of(const rp_controller *c, uint32_t k) {
    const rp_board_state *board = &c->ring.board[k];
    const rp_control_state_id state = c->machine.state;
    if (!board->control || !board->hello) {
        return "away";
    }
    if (rp_ring_silence_ns(&c->ring, k) > SILENT_NS) {
        return "silent";
    }
    if (state == RP_CONTROL_PROFILE) {
        return board->measure.profiled ? "ready" : "measuring";
    }
    if (state == RP_CONTROL_ASSIGN) {
        return board->ready ? "ready" : "building";
    }
    return state == RP_CONTROL_TRAIN || state == RP_CONTROL_DRAIN           ? "training"
           : state == RP_CONTROL_EVALUATE || state == RP_CONTROL_STATISTICS ? "evaluating"
                                                                            : "ready";
}

static const char *op_name(rp_op_kind kind) {
    return kind == RP_OP_KINDS ? NULL : rp_now_op_name(rp_now_counts_column(kind));
}

/* NAN: unknown, or said too long ago. */
static double present_of(const rp_controller *c, const rp_board_state *board, double value) {
    const rp_board_sensors *sensors = &board->sensors;
    const bool fresh = sensors->told_ns != 0 && c->ring.now_ns - sensors->told_ns < STALE_NS;
    return fresh && value != 0 ? value : (double)NAN;
}

static void describe_board(rp_controller *c, uint32_t k, const rp_record_end *told,
                           int64_t window_ns, rp_now_board *out) {
    const rp_board_state *board = &c->ring.board[k];
    const bool counts = rp_ring_energy_board(&c->ring, k) == k;
    rp_now_counts_board *own = rp_now_counts_of(&c->now, board->name);
    *out = (rp_now_board){
        .name = board->name,
        .state = state_of(c, k),
        .busy = NAN,
        .idle_s = NAN,
        .memory_bytes = board->memory.device_bytes,
        .heat_c = present_of(c, board, board->sensors.heat_c),
        .power_w = counts ? present_of(c, board, board->sensors.power_w) : (double)NAN,
        .energy_j = counts ? board->facts.energy_j : 0,
        .silent_s = board->control ? 1e-9 * (double)rp_ring_silence_ns(&c->ring, k) : (double)NAN,
        .staleness = NAN};
    if (k < told->stage_count) {
        const rp_summary_stage *stage = &told->stage[k];
        out->staleness = stage->gap_max;
        out->memory_bytes = stage->device_bytes_max > out->memory_bytes ? stage->device_bytes_max
                                                                        : out->memory_bytes;
    }
    if (own) {
        int64_t sum_ns = 0;
        for (uint32_t i = 0; i < RP_NOW_OPS; i++) {
            out->op_s[i] = 1e-9 * (double)own->op_ns[i];
            sum_ns += own->op_ns[i];
        }
        const int64_t idle_ns = c->now.active_ns - sum_ns;
        own->idle_ns = idle_ns > own->idle_ns ? idle_ns : own->idle_ns;
        out->idle_s = 1e-9 * (double)own->idle_ns;
        out->op = op_name(own->last);
        out->busy =
            window_ns > 0 ? fmin(1, (double)own->recent_ns / (double)window_ns) : (double)NAN;
        own->recent_ns = 0;
    }
}

/* ---- wires ----------------------------------------------------------------------------------- */

static const char *name_end(const rp_ring *ring, uint32_t end) {
    return end < ring->count ? ring->board[end].name : "host";
}

/* Messages of the host that wait, or that the board has not acknowledged; NAN: unknown. */
static double queue_to(const rp_board_state *board, bool feed) {
    const rp_link *link = feed ? board->feed : board->control;
    rp_link_stats stats;
    if (!link) {
        return (double)NAN;
    }
    rp_link_stats_of(link, &stats);
    return (double)stats.unacked + (feed ? 0 : (double)board->queue.count);
}

static void describe_wire(const rp_controller *c, const rp_summary_wire *wire, rp_now_wire *out) {
    const rp_ring *ring = &c->ring;
    const double time_s = 1e-9 * (double)c->now.reported_ns;
    const bool from_host = wire->from >= ring->count && wire->to < ring->count;
    *out = (rp_now_wire){
        .kind = wire->kind,
        .from = name_end(ring, wire->from),
        .to = name_end(ring, wire->to),
        .bytes = wire->bytes,
        .rate_bytes_s = 1.25e5 * wire->rate_mbit,
        .use = time_s > 0 && wire->busy_s >= 0 ? fmin(1, wire->busy_s / time_s) : (double)NAN,
        .busy_s = wire->busy_s,
        .queue = from_host ? queue_to(&ring->board[wire->to], strcmp(wire->kind, "feed") == 0)
                           : (double)NAN,
        .resent = wire->resent,
        .resets = wire->resets,
        .delay_s = {wire->delay_ms[0] > 0 ? 1e-3 * wire->delay_ms[0] : (double)NAN,
                    wire->delay_ms[1] > 0 ? 1e-3 * wire->delay_ms[1] : (double)NAN}};
}

/* Boards report at the end of a segment, so the use of a wire refers to the time up to then. */
static void note_report(rp_now_counts *counts, const rp_record_end *told) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < told->wire_count; i++) {
        bytes += told->wire[i].bytes;
    }
    if (bytes != counts->reported_bytes) {
        counts->reported_bytes = bytes;
        counts->reported_ns = counts->active_ns;
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

static void describe_run(const rp_controller *c, rp_now *out) {
    const rp_record *record = rp_folder_record(c->folder);
    const rp_sink_step *step = record ? rp_record_newest_step(record) : NULL;
    const uint64_t steps = rp_train_end(c->train);
    const int64_t usual_ns = rp_train_usual_step_ns(c->train);
    const bool knows_left = usual_ns > 0 && steps >= c->position.step;
    rp_record_totals totals = {0};
    if (record) {
        rp_record_read_totals(record, &totals);
    }
    *out = (rp_now){
        .state = rp_control_states[c->machine.state].name,
        .step = c->position.step,
        .steps = steps,
        .samples = totals.samples,
        .loss = step ? step->loss : (double)NAN,
        .learning_rate = step ? step->lr : (double)NAN,
        .samples_per_s = step && step->samples_per_s > 0 ? step->samples_per_s : (double)NAN,
        .left_s = knows_left ? 1e-9 * (double)usual_ns * (double)(steps - c->position.step)
                             : (double)NAN};
}

/* errors MEMORY */
static rp_err describe_all(rp_controller *c, rp_arena *arena, rp_now *out) {
    rp_record_end told = {0};
    rp_now_board *boards;
    rp_now_wire *wires;
    rp_err err;
    const int64_t window_ns = c->ring.now_ns - c->now.written_ns;
    RP_TRY(rp_measure_tell(c->measure, rp_arrangement_plan(c->setup), arena, &told));
    note_report(&c->now, &told);
    RP_TRY(RP_ARENA_NEW(arena, c->ring.count + 1, &boards));
    RP_TRY(RP_ARENA_NEW(arena, told.wire_count + 1, &wires));
    describe_run(c, out);
    for (uint32_t k = 0; k < c->ring.count; k++) {
        describe_board(c, k, &told, c->now.written_ns ? window_ns : 0, &boards[k]);
    }
    for (uint32_t i = 0; i < told.wire_count; i++) {
        describe_wire(c, &told.wire[i], &wires[i]);
    }
    out->board = boards;
    out->board_count = c->ring.count;
    out->wire = wires;
    out->wire_count = told.wire_count;
fail:
    return err;
}

/* errors MEMORY */
static rp_err open_file(rp_controller *c) {
    rp_now_counts *counts = &c->now;
    const rp_folder_paths *paths = rp_folder_paths_of(c->folder);
    rp_err err;
    counts->board_max = c->run->boards + c->run->spares;
    rp_arena_init(&counts->arena, "now", 0);
    RP_TRY(RP_ARENA_NEW(&counts->arena, counts->board_max, &counts->board));
    RP_TRY(rp_now_open(&counts->arena, paths->folder, c->ring.identity.id, &counts->file));
fail:
    return err;
}

static bool is_wanted(const rp_controller *c) {
    return !c->now.is_off && c->options.purpose == RP_PURPOSE_TRAIN && !c->options.temporary &&
           !c->env.links && rp_folder_paths_of(c->folder)->folder && c->ring.board &&
           c->ring.identity.id != 0;
}

void rp_present_look(rp_controller *c) {
    rp_now_counts *counts = &c->now;
    const int64_t now_ns = c->ring.now_ns;
    rp_arena arena;
    rp_now now;
    if (counts->round_ns > 0 && rp_train_segment_start_ns(c->train) != 0) {
        counts->active_ns += now_ns - counts->round_ns;
    }
    counts->round_ns = now_ns;
    if ((counts->written_ns != 0 && now_ns - counts->written_ns < EVERY_NS) || !is_wanted(c)) {
        return;
    }
    if (!counts->file && open_file(c) != RP_OK) {
        counts->is_off = true;
        return;
    }
    rp_arena_init(&arena, "now", 0);
    if (describe_all(c, &arena, &now) == RP_OK) {
        rp_now_write(counts->file, &now);
    }
    rp_arena_finish(&arena);
    counts->written_ns = now_ns;
}

void rp_present_end(rp_controller *c) {
    rp_arena arena;
    rp_now now;
    if (!c->now.file || c->now.is_off || !c->ring.board) {
        return;
    }
    rp_arena_init(&arena, "now", 0);
    const bool is_known = describe_all(c, &arena, &now) == RP_OK;
    now.state = "ended";
    rp_now_end(c->now.file, is_known ? &now : NULL);
    c->now.is_off = true; /* the boards may take some time to end */
    rp_arena_finish(&arena);
}

void rp_present_close(rp_controller *c) {
    rp_arena_finish(&c->now.arena);
    c->now = (rp_now_counts){.is_off = true};
}
