/* Compares the ledger of every board, which samples contributed to which step, with the plan
 * whenever all boards pause. A checkpoint contains the ledger, so a run that goes back or is
 * resumed continues it. */
#include <inttypes.h>

#include "train/train_own.h"

static bool keeps_ledger(const rp_train *train) {
    return (train->ring->features & RP_WIRE_FEATURE_LEDGER) != 0;
}

void rp_ledger_check_begin(rp_train *train, rp_Start *order) {
    RP_ASSERT(order->step_first == train->position->step);
    train->ledger_check.step = train->position->step;
    order->ledger = train->position->ledger.digest;
}

/* Notes how many samples a board lacks or counted twice. */
static rp_err refuse_ledger(rp_train *train, const rp_board_state *board, uint64_t due) {
    const uint64_t found = board->train.ledger.samples;
    train->ledger_check.lost = due > found ? due - found : 0;
    train->ledger_check.repeated = found > due ? found - due : 0;
    return rp_fail(RP_ERR_PEER,
                   "board %s: its ledger of steps %" PRIu64 " to %" PRIu64
                   " is not the plan's: gradients of %" PRIu64 " samples, expected %" PRIu64
                   ", each once in its step",
                   board->name, train->ledger_check.step + 1, train->position->step, found, due);
}

rp_err rp_ledger_check_boards(rp_train *train) {
    const rp_sched_shape shape = rp_runfile_sched_shape(train->run, 0);
    rp_run_ledger due = {.digest = train->position->ledger.digest};
    if (!keeps_ledger(train)) {
        return RP_OK;
    }
    rp_run_ledger_add_steps(&due, &shape, train->ledger_check.step, train->position->step);
    RP_ASSERT(train->ledger_check.step <= train->position->step);
    for (uint32_t k = 0; k < train->ring->count; k++) {
        const rp_board_state *board = &train->ring->board[k];
        if (board->train.ledger.digest != due.digest ||
            board->train.ledger.samples != due.samples) {
            return refuse_ledger(train, board, due.samples);
        }
    }
    train->position->ledger.digest = due.digest;
    train->position->ledger.samples += due.samples;
    train->ledger_check.step = train->position->step;
    return RP_OK;
}

rp_summary_ledger rp_train_tell_ledger(const rp_train *train) {
    return (rp_summary_ledger){.known = keeps_ledger(train),
                               .samples = train->position->ledger.samples,
                               .digest = train->position->ledger.digest,
                               .lost = train->ledger_check.lost,
                               .repeated = train->ledger_check.repeated};
}
