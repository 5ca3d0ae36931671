/* The steps at which a run pauses. */
#include "control/controller_own.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Half as far with every way back that no checkpoint has followed: a ring that often meets faults
 * gets on all the same. Where it pauses changes no number. */
static uint64_t sooner(const rp_controller *c, uint64_t end) {
    const uint64_t steps = (end - c->position.step) >> c->recovery.in_a_row;
    return c->position.step + (steps > 0 ? steps : 1);
}

/* Segments end at epochs' ends and where a checkpoint or a histogram is due. */
uint64_t rp_controller_next_boundary(const rp_controller *c) {
    const uint64_t step = c->position.step;
    uint64_t end = smaller(c->run.steps, (step / c->run.epoch_steps + 1) * c->run.epoch_steps);
    if (c->run.checkpoint_steps) {
        end = smaller(end, (step / c->run.checkpoint_steps + 1) * c->run.checkpoint_steps);
    }
    if (c->run.histogram_steps) {
        end = smaller(end, (step / c->run.histogram_steps + 1) * c->run.histogram_steps);
    }
    return sooner(c, end);
}

uint64_t rp_controller_next_evaluation(const rp_controller *c) {
    const uint64_t every = c->run.eval_epochs * c->run.epoch_steps;
    const bool any = every > 0 && c->run.data.count[rp_data_scored(&c->run.data)] > 0;
    return any ? smaller(c->run.steps, (c->position.step / every + 1) * every) : c->run.steps;
}

/* Where the pipes are empty if nothing goes in any more: behind what stage 0 has in flight. */
uint64_t rp_controller_drained_at(const rp_controller *c) {
    return c->run.method.kind->flushed ? c->position.step
                                       : c->fed.list.f_step + (c->fed.list.f > 0);
}
