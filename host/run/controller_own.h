/* Inside of the controller: one run from its run file to its end. Only for controller.c, folder.c,
 * bringup.c, follow.c, segment.c, reports.c and telemetry.c. */
#ifndef RP_RUN_CONTROLLER_OWN_H
#define RP_RUN_CONTROLLER_OWN_H

#include "run/advance.h"
#include "run/controller.h"
#include "run/feed.h"
#include "run/steer.h"

/* Stage 0's op list at a pause, and the inputs that it has asked for by then. */
typedef struct {
    rp_sched_state list;
    rp_feed_limit limit;
} feed_plan;

typedef struct {
    rp_arena arena;
    rp_runfile run;
    rp_ring ring;
    rp_record *record;
    rp_cut cut;
    const char *folder; /* NULL for eval */
    char *checkpoints, *weights, *run_yaml;
    bool has_statistics; /* the model has layers with running statistics */
    rp_position position;

    /* of the segment under way */
    uint64_t segment_end;
    feed_plan fed, feeding; /* at the pause before this segment, and at the one behind it */
    int64_t heard_ns;
    rp_feed *feed;
    rp_arena feed_arena;
    double eval_loss;
    uint64_t eval_samples, eval_correct;

    /* norms of the step that waits for its verdict */
    uint32_t norms_got;
    uint64_t norms_step;
    rp_steer steer;              /* horizon: measured */
    double *trust;               /* of the stage that is told */
    const double *layer_seconds; /* of the profile, when there was one */
    bool forwards_only;          /* eval: nothing waits for its backward */
    bool advance_chosen;
    rp_advance_choice advance; /* advance: auto */
    double link_delay_s;       /* from board to board, as measured last */
    uint32_t advance_max;      /* that the boards have memory for, as far as is known */
    double *sumsq;             /* by parameter of the model; 0 for those without a gradient */
} rp_controller;

/* folder.c: chooses, checks and makes the run folder. errors USAGE: it holds another run, or none
 * to resume */
rp_err rp_controller_choose_folder(rp_controller *c, const rp_train_options *options) RP_MUST_CHECK;
/* run.yaml with every --set, and plan.json. */
rp_err rp_controller_write_folder(rp_controller *c) RP_MUST_CHECK;
/* The plan or the profile at `path`; NULL: to standard output. */
rp_err rp_controller_write_json(const rp_controller *c, const char *path,
                                bool profile) RP_MUST_CHECK;

/* bringup.c: starts or reaches the boards. */
rp_err rp_controller_reach_boards(rp_controller *c, const char *keys_folder,
                                  int signal_fd) RP_MUST_CHECK;
rp_err rp_controller_measure(rp_controller *c) RP_MUST_CHECK;
/* Seconds that a cut in front of `layer` costs a microbatch: activations one way, gradients the
 * other. Infinite where more tensors cross than a parcel has parts. */
double rp_controller_crossing_s(const rp_controller *c, uint32_t layer);
/* Reaches the boards, chooses the cut and the forwards in flight, and gives each board its stage.
 */
rp_err rp_controller_bring_up(rp_controller *c, const char *keys_folder,
                              int signal_fd) RP_MUST_CHECK;

/* follow.c: advance: auto, where a run begins: measures the layers too. */
rp_err rp_controller_choose_advance(rp_controller *c) RP_MUST_CHECK;
/* The boards get their stages; with advance: auto as many forwards in flight as they can hold. */
rp_err rp_controller_assign(rp_controller *c) RP_MUST_CHECK;
/* And at a pause: goes a few steps on when it changes. */
rp_err rp_controller_follow_links(rp_controller *c) RP_MUST_CHECK;

/* controller.c: the step in front of which an evaluation is due, or the run's end. */
uint64_t rp_controller_next_evaluation(const rp_controller *c);
rp_err rp_controller_save(rp_controller *c) RP_MUST_CHECK;
/* The boards have their stages: fills them from `start` (NULL: as the seed has it), with `states`
 * from a checkpoint, and opens the feed. */
rp_err rp_controller_go_on(rp_controller *c, const char *start, bool states) RP_MUST_CHECK;

/* telemetry.c: the record gets plain facts. Opens it for the position where the run stands. */
rp_err rp_controller_open_record(rp_controller *c, rp_format format) RP_MUST_CHECK;
/* What the record has counted goes into the position, for a checkpoint. */
void rp_controller_read_totals(rp_controller *c);
/* Packed records of ops that a stage has run (agent/runner.h). errors  PEER */
rp_err rp_controller_record_ops(rp_controller *c, uint32_t stage,
                                const rp_part *part) RP_MUST_CHECK;
rp_err rp_controller_close_record(rp_controller *c, const char *status,
                                  const char *note) RP_MUST_CHECK;

/* segment.c: from position.step to `end`, or to where an interrupt stops it. With `drain` nothing
 * is in flight then, and an interrupt waits: that is short. */
rp_err rp_controller_train_segment(rp_controller *c, uint64_t end, bool drain) RP_MUST_CHECK;
/* Leaves its sums in eval_loss, eval_samples, eval_correct. */
rp_err rp_controller_eval_segment(rp_controller *c, rp_split split) RP_MUST_CHECK;
rp_err rp_controller_statistics_segment(rp_controller *c) RP_MUST_CHECK;
/* Before a training segment on new stages: position.step and position.fill are where it begins. */
rp_err rp_controller_open_feed(rp_controller *c) RP_MUST_CHECK;
void rp_controller_close_feed(rp_controller *c);

/* reports.c: what the boards send while a segment runs; `context` is the controller. */
rp_err rp_controller_on_message(void *context, uint32_t stage,
                                const rp_message *message) RP_MUST_CHECK;
/* The boards of a resumed run hear again what is in effect and what is to come. */
rp_err rp_controller_repeat_trust(rp_controller *c) RP_MUST_CHECK;

#endif
