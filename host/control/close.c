/* The state `close`: writes the summary, says goodbye to the boards and gives them a moment to
 * end. */
#include "control/controller_own.h"

/* Time for goodbyes to be sent, because closing a link drops what is queued. */
static const int64_t GOODBYE_NS = 50 * RP_NS_PER_MS;

static const char *status_of(rp_err err) {
    return err == RP_OK ? "finished" : err == RP_ERR_INTERRUPTED ? "interrupted" : "failed";
}

rp_err rp_close_record(const rp_controller *c, const char *status) {
    const rp_plan *plan = rp_arrangement_plan(c->setup);
    rp_record_end end = {.status = status,
                         .note = c->machine.note,
                         .best = rp_train_tell_best(c->train),
                         .ledger = rp_train_tell_ledger(c->train),
                         .verify = rp_verify_tell(c->train),
                         .recovery = c->recovery.done,
                         .recovery_count = c->recovery.done_count,
                         .boards_left = c->ring.rejoin.left,
                         .boards_joined = c->ring.rejoin.joined};
    rp_arena arena;
    rp_err err;
    end.ledger.known = end.ledger.known && c->machine.begun;
    rp_arena_init(&arena, "summary", 0);
    RP_TRY(rp_drift_tell(c->measure, plan, &arena, &end.prediction));
    RP_TRY(rp_measure_tell(c->measure, plan, &arena, &end));
fail:;
    const rp_err closed = rp_folder_close_record(c->folder, &end);
    rp_arena_finish(&arena);
    return err != RP_OK ? err : closed;
}

rp_err rp_close_enter(rp_controller *c) {
    if (rp_folder_record(c->folder)) {
        rp_present_end(c);
        const bool resumable = rp_err_exit_code(c->machine.result) > 2;
        const rp_err closed = rp_close_record(c, status_of(c->machine.result));
        if (c->machine.result == RP_OK && closed != RP_OK) { /* the run itself succeeded */
            c->machine.result = rp_fault_result(closed, true);
        }
        if (resumable && !c->options.executor) { /* a simulated executor leaves nothing to resume */
            rp_folder_print_resume(c->folder, c->env.progress, c->options.program,
                                   c->options.keys_folder);
        }
    }
    rp_ring_watch_boards(&c->ring, false);
    rp_ring_say_bye(&c->ring);
    return RP_OK;
}

static bool has_said_goodbye(const rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_link_stats stats = {0};
        if (ring->board[k].control && ring->board[k].hello) {
            rp_link_stats_of(ring->board[k].control, &stats);
        }
        if (stats.unacked > 0) {
            return false;
        }
    }
    return true;
}

rp_err rp_close_step(rp_controller *c) {
    if (c->ring.links) {
        if (!has_said_goodbye(&c->ring) && c->ring.now_ns - c->machine.since_ns < GOODBYE_NS) {
            return RP_OK;
        }
        rp_rejoin_close(&c->ring);
        rp_ring_disconnect(&c->ring);
        rp_train_close_feeds(c->train);
    }
    if (rp_ring_end_spawned(&c->ring)) {
        rp_close_rooms(c);
        rp_machine_enter(&c->machine, RP_CONTROL_ENDED);
    }
    return RP_OK;
}

/* Links are closed first, because their parcels may borrow batches of `train`. */
void rp_close_rooms(rp_controller *c) {
    rp_rejoin_close(&c->ring);
    rp_ring_disconnect(&c->ring);
    rp_train_close(c->train);
    rp_arena_finish(&c->way.follow_arena);
    rp_measure_close(c->measure);
    rp_arrangement_release(c->setup);
    rp_keep_close(c->keep);
    rp_folder_close_transfers(c->folder);
    rp_present_close(c);
    rp_ring_close_spawned(&c->ring);
}
