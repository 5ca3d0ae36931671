/* What is measured of boards, of the wires between them, and of the plan in force. */
#ifndef RP_CONTROL_OWN_MEASURE_H
#define RP_CONTROL_OWN_MEASURE_H

#include "link/wire_rate.h"
#include "plan/plan.h"
#include "planning/cost.h"
#include "planning/joint.h"
#include "planning/predict.h"
#include "planning/split_choice.h"

typedef struct rp_controller rp_controller;

/* drift.c: of this assignment, predicted and measured. */
typedef struct {
    double seconds;
    uint64_t count;
} rp_drift_op;

typedef struct {
    bool is_known;                  /* there is a prediction */
    rp_prediction predicted;        /* in plan_arena, as op */
    rp_drift_op (*op)[RP_OP_KINDS]; /* by hold of the plan: of full microbatches */
    double steps_s;                 /* of so many steps */
    uint64_t steps;
    int64_t step_ns;   /* when the last one of the segment was done; 0: none yet */
    int64_t assign_ns; /* since when the boards get stages; 0: they have them */
    double setup_s;    /* that this took last */
    uint32_t cuts;     /* that others were chosen */
} rp_drift;

/* wires.c: which wire is being measured, and how far that is. */
typedef struct {
    uint32_t at, count; /* of wires */
    enum {
        RP_WIRES_NEXT,
        RP_WIRES_LISTEN, /* end 1 lets end 0 connect */
        RP_WIRES_FORTH,  /* .. which dials, and measures */
        RP_WIRES_BACK,   /* end 1 measures */
        RP_WIRES_BOTH    /* both at once */
    } phase;
    uint32_t end[2]; /* boards */
    int64_t since_ns;
    double alone_s[2];   /* of the largest size, by the end that sends */
    uint32_t largest[2]; /* bytes */
} rp_wires;

/* feed_wires.c: of which board the wires to and from the host are measured. */
typedef struct {
    uint32_t at, count; /* of boards */
    enum { RP_FEED_WIRES_NEXT, RP_FEED_WIRES_FORTH, RP_FEED_WIRES_BACK } phase;
    int64_t since_ns;
    rp_wire_rate rate;
} rp_feed_wires;

/* losses.c: of what a board sends from a stage that it holds: of activations, of gradients. */
typedef struct {
    rp_codec_loss segment[2], total[2];
} rp_hold_losses;

typedef struct {
    rp_arena arena;        /* of `kept`, and of `profile` when it is measured */
    rp_profile kept;       /* of boards, by former runs; to be probed */
    rp_profile profile;    /* valid when has_profile: measured, or given */
    double *layer_seconds; /* forward, backward by layer, each on the board that has it */
    uint32_t builders;     /* boards that build the layers' kernels before they are measured; 0:
                              none */
    bool has_profile;
    rp_wires wires;
    rp_feed_wires feed_wires;
    uint32_t trips;         /* round trips measured in this state */
    double link_delay_s;    /* from board to board, as measured last */
    bool looked_at;         /* links have been measured at this pause */
    uint64_t look_step;     /* of a pause for that, where none is sooner; 0: of none */
    rp_drift drift;         /* of the plan in force */
    rp_hold_losses *losses; /* by hold of the plan */
} rp_measure;

/* What a board's clock may show: within 73 years of its zero, so that its difference to the host's
 * fits, and a time of it moved by that difference. */
static inline bool rp_control_is_clock_time(int64_t ns) {
    return ns >= -(INT64_C(1) << 61) && ns <= INT64_C(1) << 61;
}
/* drift.c: for the plan at hand. errors MEMORY */
rp_err rp_drift_open(rp_controller *c) RP_MUST_CHECK;
void rp_drift_note_assign(rp_controller *c);
void rp_drift_begin_segment(rp_controller *c);
void rp_drift_note_op(rp_controller *c, const rp_sink_op *op);
void rp_drift_note_step(rp_controller *c);
/* For the summary; op lies in `arena`. errors MEMORY */
rp_err rp_drift_tell(const rp_controller *c, rp_arena *arena,
                     rp_summary_prediction *out) RP_MUST_CHECK;
/* Measured by predicted, over the passes of all stages of a board; 1: too little is known. */
double rp_drift_factor(const rp_controller *c, uint32_t board);
/* The same of the wire from board to board, by the parcels of the last segment; 1 also: it is no
 * matter to a step, or it takes turns on an emulated medium. */
double rp_drift_wire_factor(const rp_controller *c, uint32_t from, uint32_t to);
/* wires.c: once all boards are measured. errors: of the ring, and MEMORY */
void rp_wires_begin(rp_controller *c);
rp_err rp_wires_step(rp_controller *c, bool *all) RP_MUST_CHECK;
/* feed_wires.c: behind them; `wanted`: no wire is emulated. End it behind the links. */
void rp_feed_wires_begin(rp_controller *c, bool wanted);
rp_err rp_feed_wires_step(rp_controller *c, bool *all) RP_MUST_CHECK;
void rp_feed_wires_end(rp_controller *c);
rp_err rp_wires_on_trial(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
/* measured.c: what boards measure. errors MEMORY; PEER: what a board says can not be */
rp_err rp_measured_open(rp_controller *c) RP_MUST_CHECK;
/* The board that is measured for this one: itself, or one of its machine that is alike. */
uint32_t rp_measured_for(const rp_controller *c, uint32_t board);
/* It is to be measured, and nobody else on its machine is at it. */
bool rp_measured_may_begin(const rp_controller *c, uint32_t board);
rp_err rp_measured_order(const rp_controller *c, uint32_t board, rp_Profile *out) RP_MUST_CHECK;
/* All that are to be measured have a profile of former runs, which only needs a probe. */
bool rp_measured_is_kept(const rp_controller *c);
/* *again: what a former run has kept does not hold, the board has to measure all. */
rp_err rp_measured_take(rp_controller *c, uint32_t board, const rp_part *part,
                        bool *again) RP_MUST_CHECK;
/* What the board does now. */
void rp_measured_say(const rp_controller *c, uint32_t board);
/* All have answered. */
void rp_measured_end(rp_controller *c);
/* The ring has other boards, or others places, than before. */
void rp_measured_place(rp_controller *c);
/* What the planner is asked with any boards and order, within plan.seconds; places the profile. */
rp_joint_ask rp_measured_ask(rp_controller *c);
rp_split_ask rp_measured_split_ask(rp_controller *c);
/* For the plan at hand: nothing has been lost yet. errors MEMORY */
rp_err rp_losses_open(rp_controller *c) RP_MUST_CHECK;
/* What a board says that its codecs have lost. errors PEER: of a stage that it does not hold */
rp_err rp_losses_take(rp_controller *c, uint32_t board, const rp_Finished *report) RP_MUST_CHECK;
/* Relative L2 error of what went from board to board since they have their stages; NAN: nothing
 * that was encoded. */
double rp_losses_of_wire(const rp_controller *c, uint32_t from, uint32_t to);
/* All boards have paused: the errors of the segment go to the record. links.codec: auto: where they
 * are above the limit a milder codec is to be next. */
rp_err rp_losses_note(rp_controller *c) RP_MUST_CHECK;

#endif
