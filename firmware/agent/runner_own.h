/* Inside of a runner; only for runner.c and the files named below. */
#ifndef RP_AGENT_RUNNER_OWN_H
#define RP_AGENT_RUNNER_OWN_H

#include "agent/runner.h"

/* One stage of this node. Ports that its edges do not need are NULL. */
typedef struct {
    const rp_job *job;
    rp_stage *stage;
    rp_port_in *in;       /* inputs or activations: what a forward reads */
    rp_port_in *gradient; /* what a backward reads where there is a stage behind */
    rp_port_in *label;    /* what the loss reads */
    rp_port_in *summands; /* where other boards share the stage: gradients to add up, own too */
    rp_port_in *stashes;  /* of forwards elsewhere: what a backward here needs */
    rp_port_in *weights;  /* of updates elsewhere: what forwards here see */
    rp_port_out *forward, *backward, *summand, *stash, *weight;
    rp_port_local own_summand;
    uint32_t own_edge; /* of `summand`: to `summands` */
    char name[6][40];  /* of the ports that receive */
    float *norms;
    float clip_scale; /* of the step in work, by the stage's own norm; 1 where nothing clips */

    uint64_t account_step; /* that `own` and `all` are of */
    rp_contributions own;  /* gradients taken here since the last update */
    rp_contributions all;  /* of all boards that share the stage, when they are added up */
    rp_run_ledger ledger;  /* up to the last update; its samples: of this segment */
} runner_stage;

/* What a link brings; a message that its port has no room for waits as `head`. */
typedef struct {
    rp_link *link;
    rp_message *head;
} runner_source;

/* Where an edge of the plan ends here, and how it leaves. */
typedef struct {
    uint32_t edge; /* of the plan */
    rp_kind carries;
    rp_link *link;
    rp_port_in *port;             /* where it ends, or NULL */
    uint32_t source;              /* of that port */
    uint32_t out;                 /* its number at the port where it begins */
    uint32_t stage;               /* of the end that sends */
    rp_codec codec;               /* as the plan says */
    rp_boundary_tensors boundary; /* outgoing: shapes for the wire */
    rp_port_local local;
} runner_edge;

typedef struct {
    rp_op op;
    runner_stage *stage;
    rp_mark mark;
    int64_t issued_ns;
    rp_port_in *from;   /* whose pieces the stage reads until the mark; NULL: none */
    rp_port_in *labels; /* of these, too */
    rp_port_in *rows;   /* and of these: a stash, or weights */
    rp_port_pieces input, target, row;
    rp_port_slot *output, *stash;
    bool results; /* the step's losses are in the results memory */
    bool probe;   /* a probe's norms are in the probe memory */
    rp_stage_probe about;
    bool norms;           /* the step's norms are in the norms memory of every stage here */
    bool updates;         /* changes the weights */
    rp_contributions sum; /* those that it adds up, of all boards that share the stage */
    bool exchanges; /* only moves gradients between the boards of a stage, ahead of an update */
} running_op;

struct rp_runner {
    rp_arena *arena;
    rp_runner_options at;
    rp_plan plan;       /* at.plan's, but for where this runner's pipes were filled */
    runner_stage *held; /* [at.held_count] */
    runner_edge *edge;  /* [at.edge_count] */
    runner_source *source;
    uint32_t source_count;

    bool active, evaluating, ops_over;
    rp_sched_state sched;  /* behind `next` when there is one */
    rp_sched_state before; /* ahead of it */
    uint64_t pause;        /* no op is asked for behind the update of the step before it */
    bool at_update;        /* the last op issued was an update, or there was none yet */
    bool eval_training;
    uint64_t eval_step, eval_samples;
    uint64_t eval_position; /* in the order of the step's forwards */
    rp_op next;
    bool have_next;
    rp_transfer *transfer; /* of `next`, as the plan has them: room for one an edge */
    uint32_t transfer_count;

    running_op running[RP_RUNNER_DEPTH]; /* in turn, the oldest at running_first */
    uint32_t running_first, running_count;
    int64_t last_done_ns;
    int64_t began_ns;   /* the segment */
    int64_t longest_ns; /* as in rp_runner_wait */
    int64_t at_work_ns; /* how long the oldest op had run at looked_ns */
    int64_t looked_ns;

    bool sent_gradient, summed; /* of the stage whose update is next, where boards share it */
    bool updating; /* an update of the step in work has begun: its results have been read */
    bool waiting_decision, skip;
    float grad_scale;
    uint64_t decided_end; /* behind the step that these are of */

    float *results, *probe;
    double *sumsq;

    uint64_t fill_step;      /* where the pipes were filled: the step that sched began at */
    rp_sched_state above;    /* the list of the stage before, at the last pause */
    uint64_t forwards_above; /* of that list, and own ones, since the fill */
    uint64_t forwards;
    uint32_t in_flight;
    size_t in_flight_due, in_flight_got; /* a checkpoint's in-flight bytes: expected, received */
    char *restored;                      /* its waiting microbatches, or NULL */
    float *own_weights;  /* room for those of a board that only does forwards; else NULL */
    bool keeps_weights;  /* they are there, and the stage has others, for an evaluation */
    uint64_t (*told)[2]; /* by step modulo RP_RUNNER_TOLD_MAX; NULL: no stage here has labels */
    uint64_t told_end;   /* behind the last of them */
    uint32_t told_count;
    rp_runner_facts facts;
    uint8_t *trace;
    uint32_t trace_count;
};

/* order.c: all lists as they are where the pipes are filled at `step`. */
void rp_runner_start_order(rp_runner *runner, uint64_t step);
/* An op has been issued, or has been in a run that goes on: moves `in_flight`. */
void rp_runner_count_in_flight(rp_runner *runner, const rp_op *op);
/* Walks the list of the stage before to the pause. */
void rp_runner_count_above(rp_runner *runner, uint64_t pause);
/* Samples of a step of the segment under way. */
uint32_t rp_runner_step_samples(const rp_runner *runner, uint64_t step);
/* Puts the segment's next op into runner->next; false: there is none left. */
bool rp_runner_next_op(rp_runner *runner);
/* `index` 0 is the oldest. */
running_op *rp_runner_running(rp_runner *runner, uint32_t index);

/* decision.c: the controller or the stage itself decides on every step. */
bool rp_runner_asks(const rp_runner *runner);

/* report.c: what the host hears. It must never find the control link full: see may_report.
 * errors: those of rp_link_send() */
bool rp_runner_may_report(const rp_runner *runner);
rp_err rp_runner_report_results(rp_runner *runner, const runner_stage *stage,
                                const rp_op *op) RP_MUST_CHECK;
rp_err rp_runner_report_norms(rp_runner *runner, runner_stage *stage,
                              const rp_op *op) RP_MUST_CHECK;
rp_err rp_runner_report_probe(rp_runner *runner, const running_op *op) RP_MUST_CHECK;
/* Into the trace, which goes out when it is full or flushed. */
rp_err rp_runner_record_op(rp_runner *runner, const rp_op *op, int64_t start_ns,
                           int64_t end_ns) RP_MUST_CHECK;
rp_err rp_runner_flush_trace(rp_runner *runner) RP_MUST_CHECK;

/* account.c: the ledger. errors PEER: an update has other samples than its step */
rp_err rp_runner_account_gradient(runner_stage *stage, const rp_op *op) RP_MUST_CHECK;
rp_err rp_runner_account_forward(const rp_runner *runner, runner_stage *stage,
                                 const rp_op *op) RP_MUST_CHECK;
rp_err rp_runner_account_update(const rp_runner *runner, runner_stage *stage,
                                const rp_op *op) RP_MUST_CHECK;

/* edges.c: ports, and what moves between them and the links. */
rp_err rp_runner_open_edges(rp_runner *runner) RP_MUST_CHECK;
void rp_runner_close_edges(rp_runner *runner);
void rp_runner_begin_edges(rp_runner *runner); /* a new segment */
/* Every message that has come goes to its port, as far as there is room. errors PEER */
rp_err rp_runner_receive(rp_runner *runner) RP_MUST_CHECK;
rp_err rp_runner_send(rp_runner *runner) RP_MUST_CHECK;
bool rp_runner_is_quiet(const rp_runner *runner); /* everything sent has been acknowledged */

/* The edge that a transfer goes over. */
const runner_edge *rp_runner_edge_of(const rp_runner *runner, const rp_transfer *transfer);

/* own_weights.c: of a board that only does forwards; of others 0 bytes, and nothing is done. errors
 * of the device */
size_t rp_runner_own_weights_bytes(const rp_runner *runner);
rp_err rp_runner_open_own_weights(rp_runner *runner) RP_MUST_CHECK;
/* Ahead of an evaluation's weights, and behind the evaluation. */
rp_err rp_runner_keep_weights(rp_runner *runner) RP_MUST_CHECK;
rp_err rp_runner_return_weights(rp_runner *runner) RP_MUST_CHECK;
/* Between segments: to and from runner->own_weights. The first blocks. */
rp_err rp_runner_read_own_weights(rp_runner *runner) RP_MUST_CHECK;
rp_err rp_runner_write_own_weights(rp_runner *runner) RP_MUST_CHECK;

/* issue.c: asks for the next op and gives it to the device, when all it needs is there. */
rp_err rp_runner_issue(rp_runner *runner) RP_MUST_CHECK;

/* finished.c: takes finished ops out of running[], oldest first, and reports what they gave. */
rp_err rp_runner_collect(rp_runner *runner) RP_MUST_CHECK;
#endif
