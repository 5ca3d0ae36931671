/* What of the controller files get that do not know it as a whole. */
#include "control/controller_own.h"

rp_run_view rp_controller_view(const rp_controller *c) {
    return (rp_run_view){.env = &c->env,
                         .options = &c->options,
                         .run = c->run,
                         .ring = &c->ring,
                         .setup = c->setup,
                         .measure = c->measure,
                         .folder = c->folder,
                         .train = c->train,
                         .position = &c->position,
                         .recoveries = c->recovery.done,
                         .recovery_count = c->recovery.done_count,
                         .has_begun = c->machine.begun};
}

bool rp_controller_is_return(const rp_controller *c) {
    return c->recovery.is_on ||
           (c->run->safety.wait_s > 0 && rp_machine_had_boards(&c->machine, c->position.step));
}

rp_missing rp_controller_missing(const rp_controller *c) {
    return (rp_missing){.env = &c->env,
                        .run = c->run,
                        .ring = &c->ring,
                        .spares = rp_recovery_spares(&c->recovery, c->run),
                        .is_return = rp_controller_is_return(c),
                        .warms = c->options.purpose == RP_PURPOSE_WARM};
}

rp_pauses rp_controller_pauses(const rp_controller *c) {
    const rp_runfile *run = c->run;
    const bool scores = run->data.count[rp_data_scored(&run->data)] > 0;
    return (rp_pauses){
        .step = c->position.step,
        .end = run->steps,
        .save_every = {run->epoch_steps, run->checkpoint_steps, run->record.histogram_steps,
                       run->score.eval_steps, c->env.lane.kind ? run->lanes.every : 0},
        .score_every = {scores ? run->score.eval_epochs * run->epoch_steps : 0,
                        scores ? run->score.eval_steps : 0},
        .look = c->way.look_step,
        .returns = c->recovery.in_a_row,
        .must_save = rp_train_stop_step(c->train) > 0 || c->machine.interrupts > 0 ||
                     c->recovery.in_a_row > 0 || c->way.follow.phase != RP_FOLLOW_NONE};
}

bool rp_controller_may_drain(const rp_controller *c) {
    const rp_pauses pauses = rp_controller_pauses(c);
    return rp_train_drained_at(c->train) < rp_pauses_next_score(&pauses);
}
