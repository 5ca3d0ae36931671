#include "control/next_state.h"

rp_control_state_id rp_next_after_hello(const rp_next_greeted *f) {
    return f->copies_wanted   ? RP_CONTROL_RESCUE
           : f->keeps_cut     ? RP_CONTROL_ASSIGN
           : f->lacks_profile ? RP_CONTROL_PROFILE
                              : RP_CONTROL_PLAN;
}

rp_next_way rp_next_after_fault(const rp_next_fault *f) {
    return f->disk_fails        ? RP_NEXT_WAIT
           : f->leaves_adoption ? RP_NEXT_LEAVE_ADOPTION
           : f->warm_waits      ? RP_NEXT_WARM_AGAIN
           : f->warm_leaves     ? RP_NEXT_WARM_WITHOUT
           : f->faulty          ? RP_NEXT_MEND
                                : RP_NEXT_RETURN;
}

/* ---- at a pause ------------------------------------------------------------------------------ */

static rp_next_answer answer_enter(rp_control_state_id state) {
    return (rp_next_answer){RP_NEXT_ENTER, state};
}

static rp_next_answer answer_step(rp_next_step step) {
    return (rp_next_answer){step, RP_CONTROL_STATES};
}

/* New steps are verified before they are saved, and saved before anything else. */
static rp_next_answer choose_save(const rp_next_pause *f) {
    if (f->verify_due) {
        return answer_enter(RP_CONTROL_VERIFY);
    }
    if (f->verify_alone && !f->interrupted) {
        return answer_enter(RP_CONTROL_TRAIN);
    }
    if (f->adopted) { /* RECOVER continues from the checkpoint just made */
        return answer_enter(RP_CONTROL_RECOVER);
    }
    if (f->copies_suffice) {
        return answer_enter(f->state == RP_CONTROL_COPY ? RP_CONTROL_TRAIN : RP_CONTROL_COPY);
    }
    return answer_enter(f->statistics_due ? RP_CONTROL_STATISTICS : RP_CONTROL_SAVE);
}

/* All steps are saved, and the setup stays as it is. */
static rp_next_answer choose_work(const rp_next_pause *f) {
    if (f->ends_early) {
        return answer_enter(RP_CONTROL_DRAIN);
    }
    if (f->is_over &&
        f->weights_missing) { /* the run was resumed at its last step, without a weights file */
        return answer_enter(RP_CONTROL_SAVE);
    }
    if (f->evaluation_due) {
        return answer_enter(RP_CONTROL_EVALUATE);
    }
    if (f->is_over) {
        return answer_step(RP_NEXT_FINISH);
    }
    if (!f->none_joins) {
        return answer_step(RP_NEXT_JOIN);
    }
    return answer_enter(f->codecs_wanted ? RP_CONTROL_DRAIN
                        : f->links_due   ? RP_CONTROL_PLAN
                                         : RP_CONTROL_TRAIN);
}

/* A cut is chosen only at a pause with a checkpoint. After LOAD the measurements are from before:
 * of other boards, or of a fault. */
static bool may_replan(const rp_next_pause *f) {
    return !f->replanned && !f->ends_early && !f->is_over && f->kept_here &&
           f->state != RP_CONTROL_LOAD;
}

rp_next_answer rp_next_at_pause(const rp_next_pause *f) {
    if (!f->trains) {
        return answer_enter(f->state == RP_CONTROL_EVALUATE ? RP_CONTROL_CLOSE
                                                            : RP_CONTROL_EVALUATE);
    }
    if (f->verify_due || (f->verify_alone && !f->interrupted) || f->adopted || f->unsaved) {
        return choose_save(f);
    }
    if (f->new_method_saved) {
        return answer_step(RP_NEXT_SAY_METHOD);
    }
    if (f->interrupted) {
        return answer_step(RP_NEXT_INTERRUPT);
    }
    if (f->round_due) {
        return answer_enter(RP_CONTROL_ROUND);
    }
    if (f->replan_pays) {
        return f->is_drained ? answer_step(RP_NEXT_REASSIGN) : answer_enter(RP_CONTROL_DRAIN);
    }
    if (f->method_drains) {
        return answer_step(RP_NEXT_REASSIGN);
    }
    return may_replan(f) ? answer_step(RP_NEXT_REPLAN) : choose_work(f);
}
