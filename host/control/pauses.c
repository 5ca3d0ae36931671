/* The steps at which a run pauses. */
#include "control/controller_own.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Half as far with every way back that no checkpoint has followed: a ring that often meets faults
 * gets on all the same. Where it pauses changes no number. */
static uint64_t sooner(const rp_controller *c, uint64_t end) {
    const uint32_t ways = c->recovery.in_a_row;
    const uint64_t steps = ways < 64 ? (end - c->position.step) >> ways : 0;
    return c->position.step + (steps > 0 ? steps : 1);
}

static uint64_t round_steps(const rp_controller *c) {
    return c->env.lane.kind ? c->run->lanes.every : 0;
}

/* The first multiple of any of `every` behind the run's position; 0 has none. */
static uint64_t next_of(const rp_controller *c, const uint64_t *every, size_t count) {
    const uint64_t step = c->position.step;
    uint64_t end = c->run->steps;
    for (size_t i = 0; i < count; i++) {
        end = every[i] ? smaller(end, (step / every[i] + 1) * every[i]) : end;
    }
    return end;
}

/* Segments end at epochs' ends, where an evaluation, a checkpoint, a histogram, a round or copies
 * are due, and where links are looked at first. */
uint64_t rp_controller_next_boundary(rp_controller *c) {
    const uint64_t every[] = {c->run->epoch_steps, c->run->checkpoint_steps,
                              c->run->record.histogram_steps, c->run->score.eval_steps,
                              round_steps(c)};
    const bool looks = c->position.step == 0 && c->way.look_step > 0;
    uint64_t end = next_of(c, every, sizeof every / sizeof *every);
    end = looks ? smaller(end, c->way.look_step) : end;
    end = smaller(end, rp_trials_next(c->setup));
    return sooner(c, smaller(end, rp_keep_next_copies(c->keep, c->position.step)));
}

bool rp_controller_copies_suffice(const rp_controller *c) {
    const uint64_t step = c->position.step;
    const uint64_t saved[] = {c->run->epoch_steps, c->run->checkpoint_steps,
                              c->run->record.histogram_steps, c->run->score.eval_steps,
                              round_steps(c)};
    bool is_saved = step == c->run->steps || rp_train_stop_step(c->train) > 0 ||
                    c->machine.interrupts > 0 || c->recovery.in_a_row > 0 ||
                    c->way.follow.phase != RP_FOLLOW_NONE || rp_trials_is_due(c->setup);
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        is_saved |= saved[i] && step % saved[i] == 0;
    }
    return !is_saved && rp_keep_copies_are_due(c->keep, step);
}

uint64_t rp_controller_next_evaluation(const rp_controller *c) {
    const uint64_t every[] = {c->run->score.eval_epochs * c->run->epoch_steps,
                              c->run->score.eval_steps};
    const bool any = c->run->data.count[rp_data_scored(&c->run->data)] > 0;
    return any ? next_of(c, every, 2) : c->run->steps;
}
