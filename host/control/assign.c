/* The state `assign`: boards receive and build their stages, then connect to each other. */
#include "control/controller_own.h"
#include "ring/building.h"
#include "ring/connect.h"
#include "setup/assignment.h"
#include "setup/show.h"

/* Maximum number of boards that build concurrently; only their orders are queued in links. */
enum { BUILDING_MAX = RP_RING_BOARDS_MAX };

static const char BUILDING[] = "building kernels and planning memory on every board";

rp_err rp_assign_again(rp_controller *c) {
    rp_err err;
    rp_ring_end_assignment(&c->ring);
    RP_TRY(rp_machine_begin_term(&c->machine, &c->ring, c->folder, c->env.run_id));
    c->way.reassigning = true;
    rp_machine_enter(&c->machine, RP_CONTROL_HELLO);
fail:
    return err;
}

rp_err rp_assign_enter(rp_controller *c) {
    rp_err err;
    rp_drift_note_assign(c->measure);
    if (c->recovery.is_on) {
        c->recovery.assign_ns = c->ring.now_ns;
    }
    if (c->way.reassigning) {
        c->machine.timeout_ns = rp_ring_build_limit_ns(&c->ring);
    } else {
        rp_record_phase(rp_folder_record(c->folder), BUILDING);
    }
    rp_machine_limit(&c->machine, rp_warm_begin_ns(c->warm));
    /* Boards answer pings while they build, so a restarted board is noticed. */
    rp_ring_watch_boards(&c->ring, true);
    rp_machine_forget_asked(&c->ring);
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].machine.asked = rp_warm_rests(c->warm, k);
        rp_ring_expect_ready(&c->ring, k, !rp_warm_rests(c->warm, k));
    }
    rp_transfers_forget(rp_folder_transfers(c->folder));
    rp_keep_forget_copies(c->keep);
    rp_arrangement_set_lines(c->setup, rp_ring_lines_age_s(&c->ring));
    RP_TRY(rp_arrangement_make_plan(c->setup));
    RP_TRY(rp_train_open_plan(c->train, rp_arrangement_plan(c->setup)));
    RP_TRY(c->way.reassigning ? RP_OK : rp_arrangement_check_memory(c->setup));
    RP_TRY(rp_keep_check_plan(c->keep, rp_arrangement_plan(c->setup)));
fail:
    return err;
}

static rp_err begin_training(rp_controller *c) {
    char text[256];
    rp_err err;
    RP_TRY(rp_keep_say_damage(c->keep, c->position.step));
    RP_TRY(rp_arrangement_say_codecs(c->setup));
    RP_TRY(rp_arrangement_has_advance(c->setup) ? rp_arrangement_say_advance(c->setup, 0) : RP_OK);
    rp_ring_describe_ready(&c->ring, text, sizeof text);
    rp_record_phase(rp_folder_record(c->folder), text);
    RP_TRY(rp_arrangement_remark(c->setup));
    RP_TRY(rp_show_write_folder(c->setup, c->options.command));
    RP_TRY(rp_train_open_gains(c->train, &c->arena));
fail:
    return err;
}

/* Returns AGAIN when the board's link has no room. `within_s`: deadline for the board; 0: none. */
static rp_err offer_assignment(rp_ring *ring, uint32_t board, rp_arrangement *setup,
                               uint32_t within_s) {
    rp_board_order order;
    rp_err err;
    RP_TRY(rp_board_order_assign(setup, board, within_s, &order));
    RP_TRY(rp_ring_offer(ring, board, &order.frame, order.part, order.part_count));
    ring->board[board].machine.asked = true;
fail:
    rp_board_order_finish(&order);
    return err;
}

static rp_err offer_assignments(rp_ring *ring, rp_arrangement *setup, const rp_warm *warm) {
    rp_err err = RP_OK;
    uint32_t building = 0;
    for (uint32_t k = 0; k < ring->count && building < BUILDING_MAX; k++) {
        const rp_board_state *board = &ring->board[k];
        if (!board->machine.asked) {
            err = offer_assignment(ring, k, setup, rp_warm_order_s(warm));
            RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
        }
        building += board->machine.asked && !board->ready;
    }
    err = RP_OK;
fail:
    return err;
}

rp_err rp_assign_step(rp_controller *c) {
    rp_warm_outcome outcome;
    rp_sink_part part;
    rp_err err;
    RP_TRY(offer_assignments(&c->ring, c->setup, c->warm));
    if (!rp_machine_all_done(&c->machine, &c->ring, c->measure)) {
        rp_ring_tell_building(&c->ring, BUILDING, &part);
        rp_record_part(c->way.reassigning ? NULL : rp_folder_record(c->folder), &part);
        rp_warm_say(c->warm);
        return RP_OK;
    }
    RP_TRY(rp_keep_check_memory(c->keep, rp_arrangement_plan(c->setup)));
    if (c->options.purpose == RP_PURPOSE_WARM) { /* the boards are not connected to each other */
        RP_TRY(rp_warm_end_round(c->warm, &outcome));
        return rp_warming_go_on(c, outcome);
    }
    RP_TRY(rp_ring_connect_boards(&c->ring, rp_arrangement_plan(c->setup)));
    if (c->options.purpose == RP_PURPOSE_PLAN) {
        const rp_show_order order = {false, c->options.out, c->env.result, c->options.format};
        RP_TRY(rp_show_result(c->setup, &order));
        if (c->options.step_s) {
            *c->options.step_s = rp_arrangement_plan(c->setup)->predicted_step_s;
        }
        rp_machine_enter(&c->machine, RP_CONTROL_CLOSE);
        return RP_OK;
    }
    if (c->options.purpose == RP_PURPOSE_TRAIN && c->machine.begun) {
        err = rp_show_write_folder(c->setup, c->options.command);
        RP_TRY(rp_machine_disk_fault(&c->machine, err));
    } else if (c->options.purpose == RP_PURPOSE_TRAIN) {
        RP_TRY(begin_training(c));
    }
    rp_machine_enter(&c->machine, RP_CONTROL_LOAD);
fail:
    return err;
}
