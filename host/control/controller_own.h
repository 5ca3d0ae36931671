/* Inside of the controller; only for the files of this room. Each file says which states or which
 * messages it has. */
#ifndef RP_CONTROL_CONTROLLER_OWN_H
#define RP_CONTROL_CONTROLLER_OWN_H

#include "checkpoint/checkpoint.h"
#include "control/about.h"
#include "control/controller.h"
#include "control/fault.h"
#include "control/feed.h"
#include "control/state.h"
#include "control/transfers.h"
#include "link/wire_rate.h"
#include "planning/choose_sizes.h"
#include "planning/cost.h"
#include "planning/halves.h"
#include "planning/joint.h"
#include "planning/predict.h"
#include "planning/split_choice.h"
#include "planning/trial.h"
#include "stage/record.h"

/* Recoveries that the summary has; more are only in the log. */
enum { RP_RECOVERIES_TOLD = 64 };

/* Stage 0's op list at a pause, and the inputs that it has asked for by then. */
typedef struct {
    rp_sched_state list;
    rp_feed_limit limit;
} rp_feed_plan;

/* advance: auto, when links have changed: what the run goes on with, and where that stands. */
typedef struct {
    enum {
        RP_FOLLOW_NONE,
        RP_FOLLOW_DRAIN,  /* decided; the pipes drain and a checkpoint is written */
        RP_FOLLOW_ASSIGN, /* the boards get their new stages, and the checkpoint back */
        RP_FOLLOW_SAVE    /* the same checkpoint once more, of the new method */
    } phase;
    bool of_advance; /* else the boards get other codecs, which run.codec has already */
    rp_advance_choice choice;
    uint32_t before; /* the advance that was in effect */
} rp_follow;

/* links.codec: auto, by boundary: what is in effect, and what is to be. */
typedef struct {
    rp_codec (*now)[2], (*next)[2];
    uint32_t stages; /* that they were chosen for; 0: not yet */
    bool differ;
    bool measured; /* wires that are not emulated have been looked at */
} rp_codec_choice;

/* recovery.c: the way back to work after a fault. */
typedef struct {
    bool is_on;
    rp_controller_fault fault;   /* that began it */
    int64_t since_ns;            /* when that was noticed */
    int64_t assign_ns;           /* when the boards could get their stages again; 0: not yet */
    uint64_t step, microbatches; /* where the run was, and what it does again */
    uint32_t spares_taken;       /* on this way: a board that has not come is not tried again */
    uint32_t on_the_way;         /* faults since it began */
    uint32_t ports_lacked;       /* of them: a board lacked a port, */
    int64_t port_since_ns;       /* first then; */
    int64_t not_before_ns;       /* the boards are asked again; 0: at once */
    uint32_t in_a_row;           /* ways back since the last checkpoint that was written here, */
    int64_t row_since_ns;        /* the first of which began then */
    rp_summary_recovery done[RP_RECOVERIES_TOLD]; /* that have led back to work */
    uint32_t done_count;
} rp_recovery;

/* away.c: boards that have left the ring. */
enum { RP_AWAY_MAX = 8 }; /* that are tried at a time */
typedef struct {
    const char *name;   /* of its roster entry; NULL: none is tried */
    rp_link *control;   /* NULL: not just now */
    int64_t greeted_ns; /* last; 0: never */
    bool answers;       /* it could join */
    bool was_refused;   /* which has been said */
} rp_away_board;
typedef struct {
    uint32_t boards;       /* that the ring had at first */
    uint32_t left, joined; /* how often, in all */
    int64_t not_before_ns; /* the ring does not grow */
    char names[200];       /* of those that have joined just now */
    rp_away_board board[RP_AWAY_MAX];
} rp_away;

/* What `schedule.split` said when the ring had all its boards. */
typedef struct {
    uint32_t stages; /* 0: nothing so far */
    uint32_t whole;
} rp_split_asked;

/* adopt.c: what boards say that have lost their host. */
typedef struct {
    bool has_answered, holds; /* the last question */
    rp_Held now, before;      /* and the one before it */
    uint64_t applied[RP_REPLICAS_MAX];
    uint32_t applied_count;
    uint64_t (*told)[2]; /* from now.told_first on: bits of the sum of losses, samples */
    uint64_t told_count;
} rp_adopt_board;
typedef struct {
    enum {
        RP_ADOPT_NONE,
        RP_ADOPT_ASK,  /* until the boards have come to rest */
        RP_ADOPT_STOP, /* they stay as they are */
        RP_ADOPT_SAVE  /* a checkpoint is made of it */
    } phase;
    bool tried;
    bool hopes; /* the newest checkpoint is damaged: `from` is where it stands */
    uint32_t rounds;
    int64_t asked_ns;
    uint64_t from; /* step of the newest checkpoint that was there */
    rp_arena arena;
    rp_plan *plan;         /* of plan.json */
    rp_adopt_board *board; /* [ring.count] */
} rp_adopt;

/* waiting.c: how long steps take, and whether it has been said that one takes too long. */
typedef struct {
    int64_t step_ns;  /* when the last one was done, or the segment began */
    int64_t usual_ns; /* that one takes; 0: not known yet */
    int64_t say_ns;   /* it is said again behind so long; 0: it is not said */
} rp_progress_watch;

/* load.c: what goes to the boards, in this order. */
typedef enum {
    RP_LOAD_TENSORS,
    RP_LOAD_APPLIED,
    RP_LOAD_GAINS,
    RP_LOAD_IN_FLIGHT,
    RP_LOAD_DONE
} rp_load_phase;

typedef struct {
    rp_arena arena;
    const char *path;
    bool states; /* a checkpoint, not a weights file */
    bool start;  /* else, what train.init takes from its file */
    rp_load_phase phase;
    rp_checkpoint_reader *reader;
    rp_checkpoint_tensor tensor;
    bool has_tensor;
    size_t first;   /* of the tensor or of what was in flight: sent before */
    uint32_t board; /* next to be told, or being told */
    uint32_t hold;  /* of the tensor's stage: the next that gets it */
    rp_st_reader *in_flight_file;
    rp_in_flight in_flight;
} rp_load;

typedef struct {
    rp_arena arena;
    rp_checkpoint_writer *writer;
    uint32_t boards_left;
    uint64_t kept_step;      /* of the newest checkpoint; 0: none is there */
    rp_histogram *histogram; /* by parameter of the model; NULL: none are asked for here */
    double *limit;           /* of their buckets */
    uint64_t drawn_step;     /* that histograms were recorded of last, or the run resumed at */
} rp_save;

/* disk.c: failed writes since the last checkpoint that was written. */
typedef struct {
    uint32_t tries;   /* their number */
    int64_t since_ns; /* time of the first */
    int64_t retry_ns; /* earliest time of the next try */
} rp_disk;

/* copies.c: copies of one step, that boards have or make, and where the run stood there. */
typedef struct {
    rp_arena arena;
    uint64_t step; /* 0: there are none */
    uint32_t term; /* of the assignment */
    rp_position position;
    rp_applied applied;
    uint64_t *in_flight_bytes;   /* by part: rp_plan_part_of() */
    rp_gain_estimator estimator; /* horizon: measured */
    uint8_t *said;               /* by node of the plan: who has said that it has its copy */
    uint32_t missing;            /* that have not */
    uint32_t *holder;            /* by node: a board that has it now; RP_PLAN_HOST: nobody */
} rp_copy_set;

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

/* shares.c: stages that boards share because the planner has chosen that. */
typedef struct {
    bool is_own;       /* `given` is one of ours */
    rp_arena arena[2]; /* of the one that boards have, and of the one before or behind it */
    uint32_t next;     /* that the next one lies in */
} rp_own_shares;

/* trials.c: the plans that are tried, and the steps of the one that is in force. */
typedef struct {
    rp_trial plans;
    double seconds[RP_PLAN_TRIAL_MAX];
    uint32_t count;   /* of them: the first of a segment is not among them */
    uint64_t trained; /* steps in all */
} rp_trials;

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

/* copy_pace.c: how often there are copies, and what the last ones have cost. */
typedef struct {
    uint32_t every, said; /* steps, and those that the log says; auto */
    uint64_t from, due;   /* step of the last copies, and where the next ones are made; auto */
    int64_t step_ns;      /* when the last step was done */
    int64_t ordered_ns, whole_ns; /* of the copies whose cost is not known yet; 0: none, not yet */
    bool is_pausing;              /* no step has been done since they were ordered */
    double pause_s;               /* that the first step behind them took longer */
    double cost_s[2];             /* of the last ones, and of those before them */
    uint32_t count;               /* whose cost is known */
} rp_copy_pace;

typedef struct {
    rp_copy_set set[2]; /* the newest that is whole, and the one that is under way */
    uint32_t newest;
    bool wanted; /* the run has gone back to it, and the boards are to be asked for it */
    rp_copy_pace pace;
} rp_control_copies;

/* account.c: the ledger, as far as it has been compared. */
typedef struct {
    uint64_t step;           /* it was compared up to here */
    uint64_t lost, repeated; /* samples, by the board whose ledger was wrong */
} rp_account;

/* losses.c: of what a board sends from a stage that it holds: of activations, of gradients. */
typedef struct {
    rp_codec_loss segment[2], total[2];
} rp_hold_losses;
/* verify.c: one stage's record, and what became of it. */
typedef enum {
    RP_CHECK_NONE,    /* the board has no such stage, or no record of it */
    RP_CHECK_ASKED,   /* the record is awaited */
    RP_CHECK_HERE,    /* it is to be sent to `judge` */
    RP_CHECK_SENT,    /* whose answer is awaited */
    RP_CHECK_DIFFERS, /* the first judge's was another one */
    RP_CHECK_DONE
} rp_check_phase;
typedef struct {
    rp_check_phase phase;
    uint32_t stage, judge;
    uint8_t *bytes;
    size_t total, got, sent;
    rp_record_digests digests[3]; /* of the run, of the first judge, of the second */
    uint32_t answers;             /* of them */
} rp_check;
typedef struct {
    bool is_due;            /* the segment has a microbatch that is recorded */
    bool alone;             /* and ends for its sake alone: nothing is saved */
    uint64_t step;          /* that it is of, the segment's last */
    uint32_t micro;         /* which one of it; with sizes by stage: a sample, of which each stage
                               has the microbatch recorded that it takes back */
    uint32_t round;         /* stage so many of every board */
    rp_arena arena;         /* of the checks of a round */
    rp_check *check;        /* by board */
    uint32_t wrong;         /* RP_FAULT_NO_BOARD, or a board that is to leave the ring */
    rp_summary_verify told; /* so far */
} rp_verify;

/* round.c: of the steps that this lane's run has not heard of. */
typedef struct {
    double loss; /* sum over the samples */
    uint64_t samples;
} rp_round_sums;

/* finite.c */
enum { RP_FINITE_TENSOR = 64, RP_FINITE_ADVICE = 120 };
typedef struct {
    uint32_t row;                  /* steps in a row, up to the newest, whose loss was not finite */
    bool any;                      /* a step since the start had a finite loss */
    char tensor[RP_FINITE_TENSOR]; /* tensor that was not finite at the last save, or "" */
} rp_finite_watch;

/* tally.c: results of the boards that share the last stage. */
typedef struct {
    bool is_here;
    double loss;
} rp_tally_part;
typedef struct {
    const rp_plan *plan;
    const rp_plan_hold **hold;   /* [count], of the last stage: boards with its backward */
    const rp_plan_hold **scorer; /* [scorers], .. and those with its forward, which evaluate */
    uint32_t count, scorers;
    uint32_t room;       /* steps */
    rp_tally_part *part; /* [room][count], by step modulo room */
    double *pass_loss;   /* [scorers] */
} rp_tally;

/* reports.c: squared norms of the gradients of the step that waits for its decision. */
typedef struct {
    uint32_t got; /* holds whose have come */
    uint64_t step;
    bool *of;      /* by hold of the plan: they have come */
    double *sumsq; /* by parameter of the model; 0 for those without a gradient */
} rp_step_norms;

/* A pass over a split. */
typedef struct {
    rp_arena arena;
    rp_split split; /* of an evaluation */
    rp_feed *feed;
    uint64_t steps;
    uint64_t samples, correct; /* reported so far; losses are in the tally */
    uint64_t scored;           /* to be reported */
    bool is_over;              /* evaluated; its score still has to be written */
} rp_eval_pass;

/* warm.c, warm_spares.c */
typedef struct {
    const char *name;
    rp_board_building built;
    uint8_t *took;       /* of a spare: by place, whether it has built what is needed there */
    const char *missing; /* of a spare: why it has not built all of that; NULL */
} rp_warm_row;
typedef struct {
    int64_t end_ns, said_ns; /* 0: not yet */
    uint64_t said_ready;
    rp_warm_row *row;        /* the ring's boards by place, then the spares; NULL: not yet */
    rp_roster_entry *roster; /* the same, as it was */
    uint32_t places, spares; /* how many */
    uint32_t round;          /* of spares in places */
    bool again;              /* a board was lost, and is waited for until end_ns */
} rp_warm;

struct rp_controller {
    rp_controller_env env;
    rp_controller_options options;
    rp_arena arena;
    rp_runfile run;
    rp_ring ring;
    rp_record *record;       /* NULL: PLAN, PROFILE and WARM leave no record */
    rp_transfers *transfers; /* NULL: nobody reads the trace */
    rp_cut cut;              /* chosen, for the next plan that is made here */
    uint32_t *cut_first;     /* of it */
    rp_plan *plan;           /* of the assignment; NULL before the first */
    rp_plan *given;          /* by somebody, or by shares.c: then no other is made */
    rp_own_shares shares;
    const char *folder; /* NULL but for TRAIN */
    int folder_fd;      /* holds the folder's lock; -1: none */
    bool owns_folder;   /* its controller.json names this process */
    /* paths in it */
    char *checkpoints, *weights, *run_yaml, *model_yaml, *best_weights, *plan_json, *data_json;
    bool has_statistics; /* the model has layers with running statistics */
    rp_position position;
    char damaged[RP_CHECKPOINT_DAMAGE]; /* why the newest checkpoint is not the one at hand; "" */

    /* the machine */
    rp_control_state_id state, next;
    bool entered;               /* the first state, too */
    rp_control_state_id failed; /* the state that the fault ended */
    int64_t now_ns, since_ns;
    int64_t progress_ns; /* of the state: its time-out counts from here */
    int64_t timeout_ns;
    rp_controller_fault fault;
    rp_FaultClass reported; /* by the board whose FAULT is being handled */
    rp_recovery recovery;
    rp_away away;
    rp_split_asked split_asked;
    rp_adopt adopt;
    bool begun; /* the boards have been loaded once: training has begun */
    bool spawned, boards_up;
    int64_t lines_ns;   /* when the time of emulated lines began; 0: not yet */
    int64_t greeted_ns; /* since when boards are greeted; 0: they are not */
    uint32_t interrupts;
    rp_err result;
    char note[RP_FAULT_TEXT]; /* in plain language why it did not finish */

    /* of profile and plan */
    rp_arena measured_arena; /* of `kept`, and of `profile` when it is measured */
    rp_profile kept;         /* of boards, by former runs; to be probed */
    rp_profile profile;      /* valid when has_profile: measured, or given */
    double *layer_seconds;   /* forward, backward by layer, each on the board that has it */
    uint32_t builders; /* boards that build the layers' kernels before they are measured; 0: none */
    bool has_profile;
    rp_warm warm; /* of WARM */
    rp_wires wires;
    rp_feed_wires feed_wires;
    rp_drift drift;
    rp_trials trial;
    uint32_t trips; /* round trips measured in this state */
    bool advance_chosen;
    rp_advance_choice advance; /* advance: auto */
    double link_delay_s;       /* from board to board, as measured last */
    uint32_t advance_max;      /* that the boards have memory for, as far as is known */
    uint32_t advance_least;    /* that an assignment may fall back to */
    bool reassigning;          /* boards have had stages before */
    rp_follow follow;
    rp_codec_choice codecs;
    struct {
        uint32_t at[RP_CUT_STAGES_MAX][2]; /* schedule.planner: forward and backward, by stage */
        uint32_t stages;                   /* that they were chosen for; 0: not yet */
    } sizes;
    rp_arena follow_arena;  /* of a new assignment */
    rp_arena plan_arena;    /* of `plan`, unless it is given, and of what is read off it: */
    uint32_t *stage_board;  /* the first that updates the stage */
    rp_hold_losses *losses; /* by hold of the plan */
    rp_tally tally;
    rp_cut plan_cut;
    char *schedule_words; /* why this schedule; or NULL */
    char *plan_words;     /* why these boards, where the planner chose them; or NULL */
    char *plan_text;      /* every board gets it, and: */
    char *model_text;

    /* of a pause */
    bool unsaved;       /* trained since the last checkpoint */
    bool renewed;       /* batch statistics are of this pause */
    bool looked_at;     /* links have been measured at this pause */
    uint64_t look_step; /* of a pause for that, where none is sooner; 0: of none */

    /* of a training segment */
    uint64_t segment_end;
    int64_t segment_start_ns;  /* 0: none is under way */
    rp_feed_plan fed, feeding; /* at the pause before this segment, and at the one behind it */
    rp_feed *feed;
    rp_arena feed_arena;
    bool stopping;
    rp_checkpoint_best best;
    uint64_t stop_step; /* step at which the run ends for lack of gain; 0: it goes on */
    rp_finite_watch finite;
    rp_progress_watch progress[2]; /* of training, of an evaluation */
    rp_account account;
    rp_verify verify;

    rp_round_sums round;

    rp_load load;
    rp_save save;
    rp_disk disk;
    rp_control_copies copies;
    struct {
        char key[RP_KEY_TEXT];
        int64_t said_ns; /* 0: never */
    } stranger;          /* that dialled, and was said last */
    rp_eval_pass pass;
    rp_step_norms norms;
    rp_gain_estimator estimator; /* horizon: measured */
    double *gain;                /* of the stage that is told */
};

/* ---- machine.c ------------------------------------------------------------------------------- */

/* Leaves the state at the end of this step. */
void rp_controller_enter(rp_controller *c, rp_control_state_id next);
/* Something came: the time-out counts from now. */
void rp_controller_note_progress(rp_controller *c);
/* Every board has done what the state waits for. */
bool rp_controller_all_done(const rp_controller *c);
void rp_controller_forget_asked(rp_controller *c);
/* Its boards have been at work before, in this life of the run or in the one that it resumes. */
bool rp_controller_had_boards(const rp_controller *c);

/* It has been dealt with. */
void rp_controller_forget_fault(rp_controller *c);

/* A fault that no new try would mend; its text is rp_err_message(). Returns `err`. */
rp_err rp_controller_final(rp_controller *c, rp_err err) RP_MUST_CHECK;

/* A line for a person who watches. */
void rp_controller_print(const rp_controller *c, const char *format, ...) RP_PRINTF(2, 3);

/* ---- memory.c -------------------------------------------------------------------------------- */

/* Called once the boards have reported their memory. errors USAGE: the net does not fit, whatever
 * the cut */
rp_err rp_memory_check_least(rp_controller *c) RP_MUST_CHECK;
/* Checks the first plan. errors USAGE: what boards need and have; MEMORY */
rp_err rp_memory_check_plan(rp_controller *c) RP_MUST_CHECK;

/* ---- finite.c -------------------------------------------------------------------------------- */

void rp_finite_note_loss(rp_controller *c, double loss_sum);
/* errors FAULT: as many steps in a row as train.stop_after.non_finite had no finite loss, or were
 * skipped */
rp_err rp_finite_check_step(rp_controller *c) RP_MUST_CHECK;
/* The boards have saved. `tensor` is not finite, or NULL. errors FAULT: the run needs what it saved
 */
rp_err rp_finite_note_saved(rp_controller *c, const char *tensor) RP_MUST_CHECK;
/* errors FAULT: the weights or their score are not finite; or the last losses are not, and the run
 * has no score or never had a finite loss. Never fails where train.stop_after.non_finite is 0 */
rp_err rp_finite_check_end(rp_controller *c) RP_MUST_CHECK;
/* Checks the score of an evaluation. errors NUMERIC */
rp_err rp_finite_check_score(rp_controller *c, const rp_position_score *score) RP_MUST_CHECK;

/* ---- topology.c ------------------------------------------------------------------------------ */

/* The plan of the assignment that begins, and its text: every board gets it.
 * errors those of planning; MEMORY; LIMIT */
rp_err rp_controller_make_plan(rp_controller *c) RP_MUST_CHECK;
/* The plan by which the boards run already; borrowed. errors MEMORY */
rp_err rp_controller_take_plan(rp_controller *c, rp_plan *plan) RP_MUST_CHECK;
/* What boards and profile have said so far goes into the plan. */
void rp_controller_note_boards(rp_controller *c);
/* Below: by the plan of the assignment. The stage that has a layer: */
uint32_t rp_controller_stage_of(const rp_controller *c, uint32_t layer);
uint32_t rp_controller_first_stage(const rp_controller *c, uint32_t board); /* that it holds */
/* The hold of a stage on the first board that updates it. */
const rp_plan_hold *rp_controller_first_hold(const rp_controller *c, uint32_t stage);
/* Numbers of `applied` that a board reports: replicas of its only stage, or its stages. */
uint32_t rp_controller_applied_count(const rp_controller *c, uint32_t board);
/* Those of one stage, on one of its boards; room for *count of them. */
uint64_t *rp_controller_applied_of(rp_controller *c, const rp_plan_hold *hold, uint32_t *count);
/* The neighbours that dial a board, in ascending order, and how many. */
uint32_t rp_controller_dialled_by(const rp_controller *c, uint32_t board,
                                  uint32_t out[RP_PLAN_NEIGHBOURS_MAX]);

/* ---- tally.c --------------------------------------------------------------------------------- */

/* errors MEMORY */
rp_err rp_tally_open(rp_arena *arena, const rp_plan *plan, rp_tally *out) RP_MUST_CHECK;
/* A board's part of a step; `due`: the step that is complete next.
 * errors PEER: another board, another step, or other samples than the plan says */
rp_err rp_tally_add_step(rp_tally *tally, uint32_t board, uint64_t due,
                         const rp_StepDone *done) RP_MUST_CHECK;
/* True: all parts of the step were there, and are gone; their losses are summed in the order of the
 * plan's holds. */
bool rp_tally_take_step(rp_tally *tally, uint64_t step, double *loss_sum) RP_MUST_CHECK;
/* The same of a pass without training. */
void rp_tally_begin_pass(rp_tally *tally);
rp_err rp_tally_add_pass(rp_tally *tally, uint32_t board, double loss_sum) RP_MUST_CHECK;
double rp_tally_pass_loss(const rp_tally *tally);

/* ---- states ---------------------------------------------------------------------------------- */

/* accept.c: what a board may report as times: finite, not negative. */
bool rp_control_are_times(const double *seconds, size_t count);
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
/* replan.c: at a pause. *leaves: c->cut, or the sizes, are others now, which the boards are to get.
 * errors IO, MEMORY; of the planner */
rp_err rp_replan_choose(rp_controller *c, bool *leaves) RP_MUST_CHECK;
/* trials.c: plan.trial. For the plan that was chosen just now, with others of the answer; of a
 * checkpoint; and for one that is made, in whose arena the text lies. errors MEMORY */
void rp_trials_open(rp_controller *c, const rp_joint_plan *first, const rp_joint_answer *answer);
void rp_trials_resume(rp_controller *c);
rp_err rp_trials_tell(const rp_controller *c, rp_arena *arena, rp_position *out) RP_MUST_CHECK;
/* The boards get stages; a step was done, and took so long, 0: it filled the pipes. */
void rp_trials_begin_plan(rp_controller *c);
void rp_trials_note_step(rp_controller *c, double seconds);
/* The step at which the plan in force has been tried; UINT64_MAX: none is. Is that here, with a
 * step trained since the boards have it? */
uint64_t rp_trials_next(const rp_controller *c);
bool rp_trials_is_due(const rp_controller *c);
/* At a pause. The plan that is to be in force from here on; NULL: the one that is. errors IO */
rp_err rp_trials_choose(rp_controller *c, const rp_trial_plan **plan) RP_MUST_CHECK;
/* The plan in force is not one that somebody else has given. */
static inline bool rp_shares_may_change(const rp_controller *c) {
    return !c->given || c->shares.is_own;
}
/* shares.c: what the planner is asked for the ring as it is, with stages that are shared where they
 * may */
rp_joint_ask rp_shares_ask(rp_controller *c);
/* .. the boards' next plan, of the ring as it is; borrowed until then. errors USAGE, MEMORY */
rp_err rp_shares_take(rp_controller *c, const rp_trial_plan *plan) RP_MUST_CHECK;
/* .. which plan.json the run begins with; NULL: with none. errors MEMORY */
rp_err rp_shares_read(rp_controller *c, const char **path) RP_MUST_CHECK;
void rp_shares_close(rp_controller *c);
/* arrange.c: boards and order, where the planner may choose them. errors MEMORY, USAGE, IO */
rp_err rp_arrange_ring(rp_controller *c) RP_MUST_CHECK;
/* .. the best cut of the ring as it is with a stage for each board, by the profile; `answer`: with
 * the next best ones. errors of rp_joint_search() */
rp_err rp_controller_find_cut(rp_controller *c, rp_arena *arena, rp_joint_answer *answer,
                              rp_cut *cut) RP_MUST_CHECK;
/* topology.c: what was measured of the boards, or at least what they have said of themselves, in
 * `bare`. errors MEMORY */
rp_err rp_controller_know_boards(rp_controller *c, rp_arena *arena, rp_profile *bare,
                                 const rp_profile **out) RP_MUST_CHECK;
/* schedule.c: plan.schedules, once in a run: the schedule of the answer, NULL: the run's own stays;
 * .. that of the plan that is given; .. that a run which is resumed had. errors MEMORY, IO */
rp_err rp_schedule_take(rp_controller *c, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_schedule_take_given(rp_controller *c) RP_MUST_CHECK;
rp_err rp_schedule_resume(rp_controller *c) RP_MUST_CHECK;
/* arrange.c: train.microbatch: auto, once in a run: the run file as it is resolved has the number.
 * NULL: nothing was asked. errors MEMORY, IO */
rp_err rp_controller_take_micro(rp_controller *c, const rp_joint_answer *answer) RP_MUST_CHECK;
/* shares.c: where each stage begins, in the next plan. errors MEMORY */
rp_err rp_controller_keep_cut(rp_controller *c, const rp_cut *cut) RP_MUST_CHECK;

/* ahead.c: of halves of stages, once a cut is there and boards are measured. errors MEMORY, IO */
bool rp_ahead_is_wanted(const rp_controller *c);
/* .. as a plan that is given has it, or the checkpoint at hand: others would be another run. With
 * another number of stages than the run's nothing is taken. errors MEMORY */
rp_err rp_ahead_take(rp_controller *c, const uint16_t *ahead, uint32_t count) RP_MUST_CHECK;
rp_err rp_ahead_choose(rp_controller *c) RP_MUST_CHECK;

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

/* bringup.c: start, restart, hello, profile, assign */
/* This host's: given, made for local boards, or read for a roster. */
rp_err rp_start_find_keys(const rp_controller *c, rp_keypair *out) RP_MUST_CHECK;
rp_err rp_start_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_restart_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_start_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_start_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_hello_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_hello_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_hello_late(const rp_controller *c) RP_MUST_CHECK;

/* missing.c */
const rp_cause *rp_missing_cause(const rp_controller *c, uint32_t board); /* NULL: not known */
bool rp_missing_ends_wait(const rp_controller *c);
/* A missing board for which waiting does not help, else `otherwise`. */
uint32_t rp_missing_first(const rp_controller *c, uint32_t otherwise);
void rp_missing_say(rp_controller *c, int64_t longest_ns);
/* The board has a cause. errors  REFUSED, TIMEOUT */
rp_err rp_missing_fail(const rp_controller *c, uint32_t board, int64_t waited_ns) RP_MUST_CHECK;
rp_err rp_profile_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_profile_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_profile_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_assign_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_assign_step(rp_controller *c) RP_MUST_CHECK;
/* Every board has greeted, and nothing has to be fetched from them. */
void rp_controller_leave_hello(rp_controller *c);
/* What the boards held is over: they are greeted and get their stages again. */
rp_err rp_controller_assign_again(rp_controller *c) RP_MUST_CHECK;

/* plan.c */
rp_err rp_plan_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_plan_step(rp_controller *c) RP_MUST_CHECK;
bool rp_plan_has_answered(const rp_board_state *board);
/* The state behind HELLO: what has to be measured before there can be a plan? */
bool rp_controller_needs_profile(const rp_controller *c);
/* Whether the cut is for as many stages as the ring has; boards may have left it. */
bool rp_controller_has_cut(const rp_controller *c);
void rp_controller_take_advance(rp_controller *c, const rp_advance_choice *choice);
/* Of the last step trained: a resumed run keeps what is said of it. */
rp_err rp_controller_log_advance(const rp_controller *c, const char *text) RP_MUST_CHECK;
/* Says what is in effect now, and why. `before`: what it is better than. */
rp_err rp_controller_say_advance(const rp_controller *c, uint32_t before) RP_MUST_CHECK;
/* codecs.c: links.codec: auto. They are to be chosen, once for a number of stages; .. those of the
 * answer, if it has any; .. by the cut and what was measured. errors MEMORY */
bool rp_codecs_are_wanted(const rp_controller *c);
rp_err rp_codecs_keep(rp_controller *c, const rp_joint_answer *answer) RP_MUST_CHECK;
rp_err rp_codecs_choose(rp_controller *c) RP_MUST_CHECK;
/* .. where each board has a stage again: as before, else these; NULL: chosen now. errors MEMORY */
rp_err rp_codecs_of_row(rp_controller *c, const rp_codec (*codec)[2]) RP_MUST_CHECK;
/* .. bytes a second from board to board, [boards^2], as far as somebody knows them; of all wires,
 * or of those that were full. */
void rp_codecs_find_rates(const rp_controller *c, bool full_only, double *rate);
/* .. those that a checkpoint was made with. errors MEMORY */
rp_err rp_controller_resume_codecs(rp_controller *c) RP_MUST_CHECK;
/* sizes.c: schedule.planner. They are to be chosen, once for a number of stages; .. by the cut and
 * what was measured, if so; .. these, [stages]; .. those with which a plan was found in which
 * boards share stages, before it is made, else none are chosen yet. The log says them. errors IO,
 * those of rp_choose_sizes() */
bool rp_sizes_are_wanted(const rp_controller *c);
rp_err rp_sizes_choose(rp_controller *c) RP_MUST_CHECK;
rp_err rp_sizes_keep(rp_controller *c, const uint32_t (*size)[2],
                     const rp_size_choice *choice) RP_MUST_CHECK;
rp_err rp_sizes_take(rp_controller *c, const rp_trial_plan *plan) RP_MUST_CHECK;
/* .. those that a checkpoint was made with. */
void rp_sizes_resume(rp_controller *c);
/* Says what was chosen for this start. */
rp_err rp_controller_say_codecs(const rp_controller *c) RP_MUST_CHECK;
/* At the end of the first segment: stronger codecs are next where wires that are not emulated were
 * full. errors MEMORY */
rp_err rp_controller_follow_wires(rp_controller *c) RP_MUST_CHECK;
/* At the end of a segment: where too much was lost, and the pipes are empty, milder codecs are in
 * effect, and the boards get their stages again behind the checkpoint. */
void rp_controller_follow_losses(rp_controller *c);
/* Milder codecs wait for empty pipes. */
bool rp_controller_wants_milder(const rp_controller *c);
/* Whether links are to be measured at this pause. */
bool rp_controller_follows_links(const rp_controller *c);

/* load.c, save.c */
enum { RP_LOAD_PIECE_BYTES = 262144 }; /* of what goes to a board */
/* AGAIN when the link has no room. */
rp_err rp_load_offer(rp_controller *c, uint32_t board, rp_Frame *frame,
                     const rp_part *part) RP_MUST_CHECK;
rp_err rp_load_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_load_step(rp_controller *c) RP_MUST_CHECK;
void rp_load_abandon(rp_controller *c);
rp_err rp_load_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_step(rp_controller *c) RP_MUST_CHECK;
void rp_save_abandon(rp_controller *c);
rp_err rp_save_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_on_tensor(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
rp_err rp_save_on_in_flight(rp_controller *c, uint32_t board,
                            const rp_message *message) RP_MUST_CHECK;
rp_err rp_save_on_end(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;

/* round.c */
bool rp_round_is_due(const rp_controller *c); /* of a lane, at a pause behind its checkpoint */
rp_err rp_round_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_round_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_round_late(const rp_controller *c) RP_MUST_CHECK;

/* verify.c: the records of a segment's last step */
rp_err rp_verify_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_verify_step(rp_controller *c) RP_MUST_CHECK;
void rp_verify_abandon(rp_controller *c);
rp_err rp_verify_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_verify_on_record(rp_controller *c, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
rp_err rp_verify_on_recomputed(rp_controller *c, uint32_t board,
                               const rp_message *message) RP_MUST_CHECK;
/* Updates done and bytes in flight, by stage, as the boards have reported them at this pause. */
rp_err rp_save_gather(rp_controller *c, rp_arena *arena, rp_applied *applied,
                      uint64_t **in_flight_bytes) RP_MUST_CHECK;

/* rescue.c: copy, rescue */
rp_err rp_copy_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_copy_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_rescue_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_rescue_step(rp_controller *c) RP_MUST_CHECK;
void rp_rescue_abandon(rp_controller *c);
/* copy_pace.c: what happens to copies, as it happens; */
void rp_copy_pace_ordered(rp_controller *c);
void rp_copy_pace_whole(rp_controller *c);     /* all boards have them, and their neighbours' */
void rp_copy_pace_note_step(rp_controller *c); /* one was done; before rp_waiting_note_step() */
void rp_copy_pace_forget(rp_controller *c);    /* those under way will never be whole */
/* .. and how often there are any: chosen anew at the begin of a segment. The step at which the next
 * are made; UINT64_MAX: never. Are they due at this pause? */
rp_err rp_copy_pace_choose(rp_controller *c) RP_MUST_CHECK;
uint64_t rp_copy_pace_next(rp_controller *c);
bool rp_copy_pace_is_due(const rp_controller *c);
/* copies.c: of the newest step that all boards have them of, and of the one under way; their step
 * is 0 where there are none. */
rp_copy_set *rp_copies_whole(rp_controller *c);
rp_copy_set *rp_copies_pending(rp_controller *c);
void rp_copies_drop_set(rp_copy_set *set);
rp_err rp_copies_on_copied(rp_controller *c, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
/* Whether the plan's boards can keep copies for each other, and have the memory.
 * errors  USAGE, LIMIT naming the board */
rp_err rp_copies_check_plan(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_copies_check_memory(const rp_controller *c) RP_MUST_CHECK;
/* Those to go back to: newer than the newest checkpoint; NULL: there are none. */
const rp_copy_set *rp_copies_newest(const rp_controller *c);
/* Of a board's facts: what they had counted at the newest copies. */
uint64_t rp_copies_microbatches(const rp_controller *c, uint32_t board);
void rp_copies_want(rp_controller *c);        /* the run goes back to the newest ones */
void rp_copies_begin_hello(rp_controller *c); /* who has them is asked anew */
void rp_copies_forget(rp_controller *c);      /* those of another plan are of no use */

/* histograms.c: of the weights that a save brings, where the run file asks for them. */
rp_err rp_histograms_begin(rp_controller *c) RP_MUST_CHECK; /* in the save's arena */
void rp_histograms_add(rp_controller *c, const char *name, const void *floats, size_t count);
rp_err rp_histograms_end(rp_controller *c) RP_MUST_CHECK; /* all of them to the record */

/* segment.c: train, drain, evaluate, statistics */
rp_err rp_train_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_drain_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_train_step(rp_controller *c) RP_MUST_CHECK;
void rp_train_abandon(rp_controller *c);
rp_err rp_evaluate_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_evaluate_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_statistics_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_statistics_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_segment_late(const rp_controller *c) RP_MUST_CHECK;
/* Before a training segment on new stages: position.step and position.fill_step are where it
 * begins. */
rp_err rp_controller_open_feed(rp_controller *c) RP_MUST_CHECK;
void rp_controller_close_feeds(rp_controller *c);

/* adopt.c */
bool rp_adopt_is_due(const rp_controller *c);
bool rp_adopt_may_come(const rp_controller *c); /* as far as it can be said before the start */
rp_err rp_adopt_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_on_hello(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
rp_err rp_adopt_on_held(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
/* Behind the save, or a fault on the way: the plan is let go. `why`: NULL: a checkpoint has been
 * made. errors IO */
rp_err rp_adopt_end(rp_controller *c, const char *why) RP_MUST_CHECK;

/* disk.c: what happens while the run folder rejects writes. */
/* Whether it failed a moment ago, so that it is too early to try again. */
bool rp_disk_rests(const rp_controller *c);
/* Time at which a try is due; INT64_MAX: no try is. */
int64_t rp_disk_deadline_ns(const rp_controller *c);
/* Call it after a write that has failed with IO; its text is rp_err_message(). RP_OK: try again
 * once rp_disk_rests() is false. errors  IO when that has gone on for too long: the run stops */
rp_err rp_disk_failed(rp_controller *c) RP_MUST_CHECK;
/* A checkpoint was written. */
rp_err rp_disk_worked(rp_controller *c) RP_MUST_CHECK;
/* Marks an IO error of a run that has begun as one that may pass, so that the run goes back to its
 * newest checkpoint. Returns `err`. */
rp_err rp_disk_fault(rp_controller *c, rp_err err) RP_MUST_CHECK;
bool rp_disk_is_writable(const rp_controller *c);
rp_err rp_disk_begin_term(rp_controller *c) RP_MUST_CHECK;

/* recover.c */
rp_err rp_recover_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_recover_step(rp_controller *c) RP_MUST_CHECK;
/* absent.c: boards that have not come in their time. Spares that have not been tried take their
 * places, or the ring goes on without them: c->plan and the cut are of fewer boards then. */
rp_err rp_absent_take_spares(rp_controller *c) RP_MUST_CHECK;
/* NULL: this run file lets boards leave; else what of it does not. */
const char *rp_absent_why_stay(const rp_controller *c);
rp_err rp_absent_leave(rp_controller *c) RP_MUST_CHECK;
/* Behind rp_away_join(): the ring gets its stages anew. */
rp_err rp_absent_return(rp_controller *c) RP_MUST_CHECK;
/* split_left.c: of a schedule that splits the stages that a list names (is_listed): may it go on
 * with so many boards? */
bool rp_split_is_listed(const rp_controller *c);
bool rp_split_may_be_on(const rp_controller *c, uint32_t boards);
/* Stages of the boards that there are now and, with such a list, which of them are split.
 * `by_price`: those with which what was measured says that a step is shortest; else the first of
 * the list. */
void rp_split_count_stages(rp_controller *c, bool by_price);
/* "; split are stages 0, 2" */
void rp_split_put_stages(const rp_controller *c, char *out, size_t bytes);
/* away.c: in each round, greets boards that have left the ring, and notes which answer. */
void rp_away_look(rp_controller *c, bool ping);
void rp_away_close(rp_controller *c);
void rp_away_note_left(rp_controller *c, uint32_t count);
/* At a pause that a checkpoint was written of: boards that answer are in the ring from now on,
 * which has no stages for them yet. False: there are none, or it is too early. */
bool rp_away_join(rp_controller *c) RP_MUST_CHECK;
/* restore.c: what to start from, and what to go back to.
 * errors  those of rp_checkpoint_find() and rp_checkpoint_check_start() */
rp_err rp_controller_find_start(rp_controller *c) RP_MUST_CHECK;
/* Everything is as it was at the newest checkpoint of this run or at newer copies, in a new term;
 * boards that are lost have no link any more. errors  FORMAT, IO; PEER: another controller goes on
 * with the run */
rp_err rp_controller_go_back(rp_controller *c) RP_MUST_CHECK;
/* The same on the way back, for no board in particular: it goes back further. */
rp_err rp_controller_go_back_alone(rp_controller *c) RP_MUST_CHECK;
/* What is loaded next: the newest checkpoint, or where the run begins. errors as _go_back */
rp_err rp_controller_find_kept(rp_controller *c) RP_MUST_CHECK;
/* recovery.c: of the way back from c->fault, at step `from`, once the position is the one to go on
 * from. */
void rp_recovery_begin(rp_controller *c, uint64_t from);
/* The boards hold the checkpoint's state: the run is at work again, if it was being recovered. */
rp_err rp_recovery_note_work(rp_controller *c) RP_MUST_CHECK;
/* A checkpoint has been written: what boards have counted so far is in it. */
void rp_recovery_note_checkpoint(rp_controller *c);
/* Boards that the run can not go on with: they have not come, or one of them computes wrong. */
/* The fault at hand: this board lacks a port, and on this way back boards did so for ring.wait. */
bool rp_recovery_is_portless(const rp_controller *c, uint32_t board);
bool rp_recovery_had_time_for_port(const rp_controller *c);
bool rp_recovery_lacks(const rp_controller *c, uint32_t board);
uint32_t rp_recovery_absent(const rp_controller *c);
uint32_t rp_recovery_spares(const rp_controller *c); /* that have not been tried on this way */
/* Boards are to come that the run has had: on a way back, but also where it has paused by itself,
 * or before it is resumed. */
bool rp_recovery_is_return(const rp_controller *c);
/* close.c */
rp_err rp_close_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_close_step(rp_controller *c) RP_MUST_CHECK;
/* Links, feeds and boards go at once, in the order in which they borrow from each other. */
void rp_controller_release(rp_controller *c);

/* ---- best.c ---------------------------------------------------------------------------------- */

uint64_t rp_controller_end(const rp_controller *c); /* the step behind which the run is over */
/* An evaluation at the position. */
rp_err rp_controller_note_best(rp_controller *c, rp_split split,
                               const rp_position_score *score) RP_MUST_CHECK;
void rp_controller_resume_best(rp_controller *c); /* what was noted before the run was resumed */

/* ---- the ledger: account.c --------------------------------------------------------------------
 */

/* The order for a segment that begins here. */
void rp_account_begin(rp_controller *c, rp_Start *order);
/* All boards have paused at the position's step. errors PEER: one has not the plan's samples */
rp_err rp_account_check(rp_controller *c) RP_MUST_CHECK;
rp_summary_ledger rp_account_told(const rp_controller *c);

/* ---- losses.c ---------------------------------------------------------------------------------
 */

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

/* ---- what comes next: due.c, pauses.c -------------------------------------------------------- */

/* At a pause: leaves for what is due. errors INTERRUPTED */
rp_err rp_controller_choose_next(rp_controller *c) RP_MUST_CHECK;
/* Where the training segment that begins now ends, and what c->verify has to do there. */
uint64_t rp_controller_next_boundary(rp_controller *c);
/* Copies are all that is due at this pause of a training segment. */
bool rp_controller_copies_suffice(const rp_controller *c);
/* An evaluation is due here, of *split. */
bool rp_controller_evaluation_due(const rp_controller *c, rp_split *split);
/* The step in front of which an evaluation is due, or the run's end. */
uint64_t rp_controller_next_evaluation(const rp_controller *c);
/* The step at which the pipes would be empty if no input went in from here on. */
uint64_t rp_controller_drained_at(const rp_controller *c);

/* ---- folder.c, telemetry.c, reports.c -------------------------------------------------------- */

/* Chooses, checks, makes and locks the run folder. errors USAGE: it holds another run, or none to
 * resume, or another controller has it */
rp_err rp_controller_choose_folder(rp_controller *c) RP_MUST_CHECK;
void rp_controller_unlock_folder(rp_controller *c);
/* The same at the end of an orderly life: nobody is named as its owner any more. */
void rp_controller_leave_folder(rp_controller *c);
/* run.yaml with every --set, and plan.json. */
rp_err rp_controller_write_folder(rp_controller *c) RP_MUST_CHECK;
/* Whether a plan or a profile may be written to --out. errors USAGE: another file is there */
rp_err rp_controller_check_out(const rp_controller *c) RP_MUST_CHECK;
/* In the log of a run that goes on: from where, and with which other settings than its run.yaml,
 * which is not written yet, has. errors IO */
rp_err rp_controller_note_resumed(rp_controller *c) RP_MUST_CHECK;
/* Such a setting that matters to what was trained before; "": there is none. errors MEMORY */
rp_err rp_controller_find_changes(rp_controller *c, char *text, size_t bytes) RP_MUST_CHECK;
/* train.microbatch: auto: the number that the run was begun with. errors MEMORY */
rp_err rp_controller_resume_micro(rp_controller *c) RP_MUST_CHECK;
/* data.json of before, or NULL; the comparison, behind the new one, takes it. errors IO */
void *rp_controller_read_data_json(const rp_controller *c);
rp_err rp_controller_compare_data(rp_controller *c, void *before) RP_MUST_CHECK;
/* warm.c: nothing of it but with WARM. The state is one in which boards build, until the deadline;
 * what of it is left for an order, 0: it is none ahead of a run; progress; the result. errors
 * FORMAT
 */
void rp_warm_begin(rp_controller *c);
uint32_t rp_warm_order_s(const rp_controller *c);
void rp_warm_say(rp_controller *c);
rp_err rp_warm_show(const rp_controller *c) RP_MUST_CHECK;
/* warm_spares.c: behind the ring, each spare builds what every place of the ring needs. All boards
 * are ready: the next round of that, or the result and the end. errors MEMORY, IO, FORMAT */
rp_err rp_warm_go_on(rp_controller *c) RP_MUST_CHECK;
/* This place is none of the round: its board has nothing to do. */
bool rp_warm_rests(const rp_controller *c, uint32_t board);
/* The fault at hand ends the part of some spares, and not more. */
bool rp_warm_may_leave(const rp_controller *c);
/* A board was lost while there is time left: it is waited for, and warming goes on. */
bool rp_warm_may_go_again(const rp_controller *c);
rp_err rp_warm_go_again(rp_controller *c) RP_MUST_CHECK;
/* How long a lost board may take, from its first greeting on; 0: none was lost. */
int64_t rp_warm_patience_ns(const rp_controller *c);
rp_err rp_warm_leave(rp_controller *c) RP_MUST_CHECK;

/* The plan or the profile to `path`; NULL: to env.result. */
rp_err rp_controller_write_json(rp_controller *c, const char *path, bool profile) RP_MUST_CHECK;
/* To the file that the options name, and to the result, in its format. */
rp_err rp_controller_show(rp_controller *c, bool profile) RP_MUST_CHECK;

/* The record gets plain facts. Opens it for the position where the run stands. */
rp_err rp_controller_open_record(rp_controller *c) RP_MUST_CHECK;
/* The record goes back to the position. */
rp_err rp_controller_rewind_record(rp_controller *c) RP_MUST_CHECK;
/* What the record has counted goes into the position, for a checkpoint. */
void rp_controller_read_totals(rp_controller *c);
/* Packed records of ops that a stage has run (wire/trace.h). errors  PEER */
rp_err rp_controller_record_ops(rp_controller *c, uint32_t stage,
                                const rp_part *part) RP_MUST_CHECK;
/* What the boards have said so far goes to the record. */
rp_err rp_controller_record_facts(rp_controller *c) RP_MUST_CHECK;
rp_err rp_controller_close_record(rp_controller *c, const char *status,
                                  const char *note) RP_MUST_CHECK;
/* What the boards report while a segment runs. */
rp_err rp_report_step(rp_controller *c, double loss_sum) RP_MUST_CHECK; /* at the position */
rp_err rp_report_on_step_done(rp_controller *c, uint32_t board,
                              const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_evaluated(rp_controller *c, uint32_t board,
                              const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_norms(rp_controller *c, uint32_t board,
                          const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_skipped(rp_controller *c, uint32_t board,
                            const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_prediction(rp_controller *c, uint32_t board,
                               const rp_message *message) RP_MUST_CHECK;
rp_err rp_report_on_trace(rp_controller *c, uint32_t board,
                          const rp_message *message) RP_MUST_CHECK;
/* waiting.c */
rp_err rp_report_on_waiting(rp_controller *c, uint32_t board,
                            const rp_message *message) RP_MUST_CHECK;
/* A segment begins; a step of it is done; once a round: is it overdue? errors IO */
void rp_waiting_begin(rp_controller *c);
rp_err rp_waiting_note_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_waiting_look(rp_controller *c) RP_MUST_CHECK;

/* hang.c: errors  FAULT: *board answers but makes no progress, and no other board can go on */
rp_err rp_hang_look(rp_controller *c, uint32_t *board) RP_MUST_CHECK;

/* strangers.c: says which keys dial that no board of the roster has. */
rp_err rp_strangers_look(rp_controller *c) RP_MUST_CHECK;

/* twins.c: says which boards that dial have the key of another one. */
rp_err rp_twins_look(rp_controller *c) RP_MUST_CHECK;
/* The boards of a resumed run hear again what is in effect and what is to come. */
rp_err rp_controller_repeat_gains(rp_controller *c) RP_MUST_CHECK;

#endif
