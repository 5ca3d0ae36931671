/* `ringpipe boards warm`: carries out the decisions of the room `warm`. */
#include "base/printable.h"
#include "control/controller_own.h"

rp_warm_fault rp_warming_fault(const rp_machine *machine) {
    const rp_controller_fault *fault = &machine->fault;
    return (rp_warm_fault){.err = fault->err,
                           .text = fault->text,
                           .board = fault->board,
                           .is_lost = fault->fault_class == RP_FAULT_BOARD,
                           .while_greeting = machine->failed == RP_CONTROL_HELLO,
                           .interrupted = machine->interrupts > 0};
}

/* Starts a new term: boards are greeted, then get their next orders. */
static rp_err greet_again(rp_controller *c) {
    rp_err err;
    RP_TRY(rp_ring_begin_term(&c->ring, rp_folder_paths_of(c->folder)->folder, c->env.run_id));
    c->way.reassigning = rp_arrangement_plan(c->setup) != NULL;
    rp_ring_end_greeting(&c->ring);
    rp_machine_enter(&c->machine, RP_CONTROL_RESTART);
fail:
    return err;
}

/* Another board takes place k; what it has built before still counts. */
static void place_board(rp_ring *ring, rp_arrangement *setup, uint32_t k,
                        const rp_warm_place *place) {
    if (ring->board[k].name != place->name) {
        rp_arrangement_place_board(setup, k, place->entry);
        rp_ring_take_entry(ring, k);
        rp_ring_take_built(ring, k, &place->built);
    }
}

rp_err rp_warming_go_on(rp_controller *c, rp_warm_outcome outcome) {
    rp_err incomplete;
    rp_err err;
    if (outcome == RP_WARM_OVER) {
        RP_TRY(rp_warm_finish(c->warm, &incomplete));
        c->machine.result = incomplete;
        rp_machine_enter(&c->machine, RP_CONTROL_CLOSE);
        return RP_OK;
    }
    rp_ring_reset(&c->ring, RP_NO_BOARD);
    for (uint32_t k = 0; k < rp_warm_places(c->warm); k++) {
        const rp_warm_place place = rp_warm_place_of(c->warm, k);
        place_board(&c->ring, c->setup, k, &place);
        if (place.instead_of) {
            rp_print(c->env.progress, "the spare board %s builds the stages of %s\n", place.name,
                     place.instead_of);
        }
    }
    RP_TRY(greet_again(c));
fail:
    return err;
}

rp_err rp_warming_wait(rp_controller *c) {
    const rp_warm_fault fault = rp_warming_fault(&c->machine);
    rp_warm_wait(c->warm, &fault);
    rp_ring_reset(&c->ring, c->machine.fault.board);
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].measure.profiled = rp_measure_has_profile(c->measure);
    }
    rp_machine_forget_fault(&c->machine);
    return greet_again(c);
}

rp_err rp_warming_leave(rp_controller *c) {
    const rp_warm_fault fault = rp_warming_fault(&c->machine);
    rp_warm_outcome outcome;
    rp_err err;
    RP_TRY(rp_warm_leave(c->warm, &fault, &outcome));
    rp_machine_forget_fault(&c->machine);
    RP_TRY(rp_warming_go_on(c, outcome));
fail:
    return err;
}
