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

static rp_next_answer enter(rp_control_state_id state) {
    return (rp_next_answer){RP_NEXT_ENTER, state};
}

static rp_next_answer carry_out(rp_next_step step) {
    return (rp_next_answer){step, RP_CONTROL_STATES};
}

/* What was trained is verified before anything of it is saved, and saved before anything else. */
static rp_next_answer save_first(const rp_next_pause *f) {
    if (f->verify_due) {
        return enter(RP_CONTROL_VERIFY);
    }
    if (f->verify_alone && !f->interrupted) {
        return enter(RP_CONTROL_TRAIN);
    }
    if (f->adopted) { /* on from the checkpoint that there is now */
        return enter(RP_CONTROL_RECOVER);
    }
    if (f->copies_suffice) {
        return enter(f->state == RP_CONTROL_COPY ? RP_CONTROL_TRAIN : RP_CONTROL_COPY);
    }
    return enter(f->statistics_due ? RP_CONTROL_STATISTICS : RP_CONTROL_SAVE);
}

/* Everything is saved, and the ring goes on with what it has. */
static rp_next_answer go_on(const rp_next_pause *f) {
    if (f->ends_early) {
        return enter(RP_CONTROL_DRAIN);
    }
    if (f->is_over && f->weights_missing) { /* resumed at its end without a weights file */
        return enter(RP_CONTROL_SAVE);
    }
    if (f->evaluation_due) {
        return enter(RP_CONTROL_EVALUATE);
    }
    if (f->is_over) {
        return carry_out(RP_NEXT_FINISH);
    }
    if (!f->none_joins) {
        return carry_out(RP_NEXT_JOIN);
    }
    return enter(f->codecs_wanted ? RP_CONTROL_DRAIN
                 : f->links_due   ? RP_CONTROL_PLAN
                                  : RP_CONTROL_TRAIN);
}

/* A cut is chosen only where this pause has a checkpoint. What was measured before the boards were
 * loaded is of other boards, or of a fault. */
static bool may_replan(const rp_next_pause *f) {
    return !f->replanned && !f->ends_early && !f->is_over && f->kept_here &&
           f->state != RP_CONTROL_LOAD;
}

rp_next_answer rp_next_at_pause(const rp_next_pause *f) {
    if (!f->trains) {
        return enter(f->state == RP_CONTROL_EVALUATE ? RP_CONTROL_CLOSE : RP_CONTROL_EVALUATE);
    }
    if (f->verify_due || (f->verify_alone && !f->interrupted) || f->adopted || f->unsaved) {
        return save_first(f);
    }
    if (f->new_method_saved) {
        return carry_out(RP_NEXT_SAY_METHOD);
    }
    if (f->interrupted) {
        return carry_out(RP_NEXT_INTERRUPT);
    }
    if (f->round_due) {
        return enter(RP_CONTROL_ROUND);
    }
    if (f->replan_pays) {
        return f->is_drained ? carry_out(RP_NEXT_REASSIGN) : enter(RP_CONTROL_DRAIN);
    }
    if (f->method_drains) {
        return carry_out(RP_NEXT_REASSIGN);
    }
    return may_replan(f) ? carry_out(RP_NEXT_REPLAN) : go_on(f);
}
