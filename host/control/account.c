/* The ledger of a run: which samples contributed to which step, as every board counted it, against
 * the plan. Compared whenever all boards pause; a checkpoint has it, so that a run that goes back
 * or is resumed goes on from there. */
#include <inttypes.h>

#include "control/controller_own.h"

static bool keeps_ledger(const rp_controller *c) {
    return (c->ring.features & RP_WIRE_FEATURE_LEDGER) != 0;
}

void rp_account_begin(rp_controller *c, rp_Start *order) {
    c->train.account.step = c->train.position.step;
    order->ledger = c->train.position.ledger.digest;
}

/* Of a board that is wrong: how many samples fewer or more than the plan has. */
static rp_err refuse(rp_controller *c, const rp_board_state *board, uint64_t due) {
    const uint64_t found = board->ledger.samples;
    c->train.account.lost = due > found ? due - found : 0;
    c->train.account.repeated = found > due ? found - due : 0;
    return rp_fail(RP_ERR_PEER,
                   "board %s: its ledger of steps %" PRIu64 " to %" PRIu64
                   " is not the plan's: gradients of %" PRIu64 " samples, expected %" PRIu64
                   ", each once in its step",
                   board->name, c->train.account.step + 1, c->train.position.step, found, due);
}

rp_err rp_account_check(rp_controller *c) {
    const rp_sched_shape shape = rp_runfile_sched_shape(&c->run, 0);
    rp_run_ledger due = {.digest = c->train.position.ledger.digest};
    if (!keeps_ledger(c)) {
        return RP_OK;
    }
    rp_run_ledger_add_steps(&due, &shape, c->train.account.step, c->train.position.step);
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *board = &c->ring.board[k];
        if (board->ledger.digest != due.digest || board->ledger.samples != due.samples) {
            return refuse(c, board, due.samples);
        }
    }
    c->train.position.ledger.digest = due.digest;
    c->train.position.ledger.samples += due.samples;
    c->train.account.step = c->train.position.step;
    return RP_OK;
}

rp_summary_ledger rp_account_told(const rp_controller *c) {
    return (rp_summary_ledger){.known = c->machine.begun && keeps_ledger(c),
                               .samples = c->train.position.ledger.samples,
                               .digest = c->train.position.ledger.digest,
                               .lost = c->train.account.lost,
                               .repeated = c->train.account.repeated};
}
