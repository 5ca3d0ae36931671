/* The steps at which a run pauses. */
#include "control/controller_own.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Half as far with every way back that no checkpoint has followed: a ring that often meets faults
 * gets on all the same. Where it pauses changes no number. */
static uint64_t sooner(const rp_controller *c, uint64_t end) {
    const uint32_t ways = c->recovery.in_a_row;
    const uint64_t steps = ways < 64 ? (end - c->train.position.step) >> ways : 0;
    return c->train.position.step + (steps > 0 ? steps : 1);
}

static uint64_t round_steps(const rp_controller *c) {
    return c->env.lane.kind ? c->run.lanes.every : 0;
}

/* The first multiple of any of `every` behind the run's position; 0 has none. */
static uint64_t next_of(const rp_controller *c, const uint64_t *every, size_t count) {
    const uint64_t step = c->train.position.step;
    uint64_t end = c->run.steps;
    for (size_t i = 0; i < count; i++) {
        end = every[i] ? smaller(end, (step / every[i] + 1) * every[i]) : end;
    }
    return end;
}

/* Segments end at epochs' ends, where an evaluation, a checkpoint, a histogram, a round or copies
 * are due, and where links are looked at first. */
static uint64_t next_save(rp_controller *c) {
    const uint64_t every[] = {c->run.epoch_steps, c->run.checkpoint_steps, c->run.histogram_steps,
                              c->run.eval_steps, round_steps(c)};
    const bool looks = c->train.position.step == 0 && c->setup.look_step > 0;
    uint64_t end = next_of(c, every, sizeof every / sizeof *every);
    end = looks ? smaller(end, c->setup.look_step) : end;
    end = smaller(end, rp_trials_next(c));
    return sooner(c, smaller(end, rp_copy_pace_next(c)));
}

bool rp_controller_copies_suffice(const rp_controller *c) {
    const uint64_t step = c->train.position.step;
    const uint64_t saved[] = {c->run.epoch_steps, c->run.checkpoint_steps, c->run.histogram_steps,
                              c->run.eval_steps, round_steps(c)};
    bool is_saved = step == c->run.steps || c->train.stop_step > 0 || c->machine.interrupts > 0 ||
                    c->recovery.in_a_row > 0 || c->setup.follow.phase != RP_FOLLOW_NONE ||
                    rp_trials_is_due(c);
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        is_saved |= saved[i] && step % saved[i] == 0;
    }
    return !is_saved && rp_copy_pace_is_due(c);
}

/* Where the pipes are empty if nothing goes in any more: behind what stage 0 has in flight. */
uint64_t rp_controller_drained_at(const rp_controller *c) {
    return c->run.method.kind->flushed ? c->train.position.step
                                       : c->train.fed.list.f_step + (c->train.fed.list.f > 0);
}

/* One step of `every`, by the seed. */
static uint64_t step_to_verify(const rp_controller *c, uint64_t every, uint64_t turn) {
    rp_rng rng = rp_rng_named(c->run.seed, "verify/step");
    return turn * every + rp_rng_word_at(&rng, turn) % every;
}

/* Behind the next step to verify, where one lies in the segment that would end at `end`. */
static uint64_t choose_verify(rp_controller *c, uint64_t end) {
    rp_verify *verify = &c->train.verify;
    const rp_sched_shape shape = rp_runfile_sched_shape(&c->run, 0);
    const uint32_t micros = (c->run.batch - 1) / c->run.micro + 1;
    const uint64_t every = c->run.verify > micros ? c->run.verify / micros : 1;
    const uint64_t turn = c->train.position.step / every;
    const uint64_t whole = rp_controller_drained_at(c); /* no forward of it has begun */
    uint64_t step = step_to_verify(c, every, turn);
    step = step >= c->train.position.step ? step : step_to_verify(c, every, turn + 1);
    step = step > whole ? step : whole;
    verify->is_due = c->run.verify > 0 && c->ring.count > 1 && step < end;
    verify->alone = verify->is_due && step + 1 < end;
    if (!verify->is_due) {
        return end;
    }
    rp_rng rng = rp_rng_named(c->run.seed, "verify/microbatch");
    verify->step = step;
    verify->micro = rp_rng_word_at(&rng, step) % (c->run.method.kind->sizes
                                                      ? rp_sched_step_samples(&shape, step)
                                                      : rp_sched_micro_count(&shape, step));
    return step + 1;
}

uint64_t rp_controller_next_boundary(rp_controller *c) {
    return choose_verify(c, next_save(c));
}

uint64_t rp_controller_next_evaluation(const rp_controller *c) {
    const uint64_t every[] = {c->run.eval_epochs * c->run.epoch_steps, c->run.eval_steps};
    const bool any = c->run.data.count[rp_data_scored(&c->run.data)] > 0;
    return any ? next_of(c, every, 2) : c->run.steps;
}
