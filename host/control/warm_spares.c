/* Warming of spares: once the ring's boards are ready, spares stand in their places, another one in
 * each round, and build what is needed there. The boards of the other places rest meanwhile. A
 * spare that can not do it costs its own part only; the deadline is that of all. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/controller_own.h"
#include "ring/identity.h"

/* ---- who stands where ------------------------------------------------------------------------ */

static uint32_t count_rounds(const rp_warm *warm) {
    return (warm->spares + warm->places - 1) / warm->places * warm->places;
}

/* The spare of this place in this round; NULL: the ring's own board. */
static rp_warm_row *spare_at(const rp_warm *warm, uint32_t place) {
    const uint32_t shift = warm->round % warm->places;
    const uint32_t first = warm->round - shift; /* of as many spares as there are places */
    const uint32_t i = first + (place + warm->places - shift) % warm->places;
    rp_warm_row *row = i < warm->spares ? &warm->row[warm->places + i] : NULL;
    return row && !row->missing ? row : NULL;
}

static bool has_spares(const rp_warm *warm) {
    for (uint32_t k = 0; k < warm->places; k++) {
        if (spare_at(warm, k)) {
            return true;
        }
    }
    return false;
}

bool rp_warm_rests(const rp_controller *c, uint32_t board) {
    return c->warm.row && !spare_at(&c->warm, board);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static rp_err open_rows(rp_controller *c) {
    rp_warm *warm = &c->warm;
    const uint32_t count = c->ring.count + c->run.spares;
    rp_err err;
    warm->places = c->ring.count;
    warm->spares = c->run.spares;
    RP_TRY(RP_ARENA_NEW(&c->arena, count, &warm->row));
    RP_TRY(RP_ARENA_NEW(&c->arena, count, &warm->roster));
    for (uint32_t i = 0; i < count; i++) {
        rp_warm_row *row = &warm->row[i];
        if (i < warm->places) {
            row->name = c->ring.board[i].name;
            row->built = c->ring.board[i].built;
        } else {
            row->name = c->run.roster[i].name;
            RP_TRY(RP_ARENA_NEW(&c->arena, warm->places, &row->took));
        }
        if (!c->run.local) {
            warm->roster[i] = c->run.roster[i];
        }
    }
fail:
    return err;
}

static void note_round(rp_controller *c) {
    for (uint32_t k = 0; k < c->warm.places; k++) {
        rp_warm_row *spare = spare_at(&c->warm, k);
        if (spare) {
            spare->built = c->ring.board[k].built;
            spare->took[k] = 1;
        }
    }
}

/* The board of a place is another one from now on. What it had built before is counted on. */
static void place_board(rp_controller *c, uint32_t k) {
    const rp_warm *warm = &c->warm;
    const rp_warm_row *spare = spare_at(warm, k);
    const rp_warm_row *row = spare ? spare : &warm->row[k];
    if (c->ring.board[k].name == row->name) {
        return;
    }
    rp_setup_place_board(c, k, &warm->roster[row - warm->row]);
    rp_ring_take_entry(&c->ring, k);
    c->ring.board[k].built = row->built;
    c->ring.board[k].building = (rp_board_building){0};
}

/* The boards are greeted, and get what they are to build. */
static rp_err begin_again(rp_controller *c) {
    rp_err err;
    RP_TRY(rp_identity_begin_term(rp_folder_paths_of(c->folder)->folder, c->env.run_id,
                                  &c->ring.identity));
    c->setup.reassigning = c->setup.plan != NULL;
    c->ring.greeted_ns = 0;
    rp_controller_enter(c, RP_CONTROL_RESTART);
fail:
    return err;
}

static rp_err begin_round(rp_controller *c) {
    rp_err err;
    rp_ring_reset(&c->ring, RP_FAULT_NO_BOARD, c->ring.now_ns);
    for (uint32_t k = 0; k < c->warm.places; k++) {
        place_board(c, k);
        if (spare_at(&c->warm, k)) {
            rp_controller_print(c, "the spare board %s builds what %s has\n", c->ring.board[k].name,
                                c->warm.row[k].name);
        }
    }
    RP_TRY(begin_again(c));
fail:
    return err;
}

rp_err rp_warm_go_again(rp_controller *c) {
    rp_err err;
    rp_log_warn("%s; warming goes on, for %u s at most", c->machine.fault.text, rp_warm_order_s(c));
    rp_ring_reset(&c->ring, c->machine.fault.board, c->ring.now_ns);
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].profiled = rp_measure_has_profile(c->measure);
    }
    c->warm.again = true;
    rp_controller_forget_fault(c);
    RP_TRY(begin_again(c));
fail:
    return err;
}

static rp_err end_with_result(rp_controller *c) {
    uint32_t missing = 0;
    rp_err err;
    for (uint32_t i = 0; i < c->warm.spares; i++) {
        const rp_warm_row *row = &c->warm.row[c->warm.places + i];
        if (row->missing && missing++ == 0) {
            c->machine.result =
                rp_fail(RP_ERR_FAULT, "the ring is warm, the spare board %s is not: %s", row->name,
                        row->missing);
        }
    }
    RP_TRY(rp_warm_show(c));
    rp_controller_enter(c, RP_CONTROL_CLOSE);
fail:
    return err;
}

static rp_err begin_or_end(rp_controller *c) {
    while (c->warm.round < count_rounds(&c->warm) && !has_spares(&c->warm)) {
        c->warm.round++;
    }
    return c->warm.round < count_rounds(&c->warm) ? begin_round(c) : end_with_result(c);
}

rp_err rp_warm_go_on(rp_controller *c) {
    rp_err err = RP_OK;
    if (c->warm.row) {
        note_round(c);
        c->warm.round++;
    } else {
        RP_TRY(open_rows(c));
    }
    RP_TRY(begin_or_end(c));
fail:
    return err;
}

/* ---- a spare that can not -------------------------------------------------------------------- */

bool rp_warm_may_leave(const rp_controller *c) {
    return c->warm.row && c->machine.fault.err != RP_OK && c->machine.interrupts == 0 &&
           c->machine.fault.err != RP_ERR_INTERRUPTED;
}

/* Whose fault it is: of one spare, of those that are not done, or not of a spare at all. */
static bool is_blamed(const rp_controller *c, const rp_warm_row *row) {
    for (uint32_t k = 0; k < c->warm.places; k++) {
        const rp_board_state *board = &c->ring.board[k];
        if (row == spare_at(&c->warm, k)) {
            const bool is_done =
                c->machine.failed == RP_CONTROL_HELLO ? board->hello : board->ready;
            return c->machine.fault.board == RP_FAULT_NO_BOARD ? !is_done
                                                               : c->machine.fault.board == k;
        }
    }
    return false;
}

static bool is_of_a_spare(const rp_controller *c) {
    for (uint32_t i = 0; i < c->warm.spares; i++) {
        if (is_blamed(c, &c->warm.row[c->warm.places + i])) {
            return true;
        }
    }
    return false;
}

rp_err rp_warm_leave(rp_controller *c) {
    rp_warm *warm = &c->warm;
    const bool all = !is_of_a_spare(c);
    bool blamed[RP_RING_BOARDS_MAX] = {false};
    char *why;
    rp_err err;
    RP_TRY(rp_arena_string(&c->arena, c->machine.fault.text, &why));
    for (uint32_t i = 0; i < warm->spares && i < RP_RING_BOARDS_MAX; i++) {
        blamed[i] = is_blamed(c, &warm->row[warm->places + i]);
    }
    for (uint32_t i = 0; i < warm->spares; i++) {
        rp_warm_row *row = &warm->row[warm->places + i];
        const bool is_left = all ? memchr(row->took, 0, warm->places) != NULL : blamed[i];
        row->missing = !row->missing && is_left ? why : row->missing;
    }
    rp_controller_forget_fault(c);
    RP_TRY(begin_or_end(c));
fail:
    return err;
}
