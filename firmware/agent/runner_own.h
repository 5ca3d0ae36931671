/* Private to runner.c and the files named below. */
#ifndef RP_AGENT_RUNNER_OWN_H
#define RP_AGENT_RUNNER_OWN_H

#include "agent/runner.h"

/* One stage of this node. Ports that its edges do not need are NULL. */
typedef struct {
    const rp_job *job;
    rp_stage *stage;
    rp_port_in *in;       /* inputs or activations for a forward */
    rp_port_in *gradient; /* gradients for a backward, unless it is the last stage */
    rp_port_in *label;    /* labels for the loss */
    rp_port_in *summands; /* if boards share the stage: gradients to add up, including our own */
    rp_port_in *stashes;  /* stashes of forwards elsewhere, for backwards here */
    rp_port_in *weights;  /* weights of updates elsewhere, for forwards here */
    rp_port_out *forward, *backward, *summand, *stash, *weight;
    rp_port_out *row;    /* gradients of tied tensors that other stages also use */
    rp_port_out *values; /* without a flush: values of such tensors, for stages with later uses */
    bool sends_row;      /* this board sends `row`: the first board of a stage that has one */
    rp_port_local own_summand;
    uint32_t own_edge; /* edge number of `summand` that leads to `summands` */
    char name[6][40];  /* names of the receive ports */
    float *norms;
    float clip_scale; /* of the current step, by the stage's own norm; 1 without clipping */

    uint64_t account_step; /* the step of `own` and `all` */
    rp_contributions own;  /* gradients computed here since the last update */
    rp_contributions all;  /* of all boards that share the stage, once added up */
    rp_run_ledger ledger;  /* up to the last update; its samples: of this segment */
} runner_stage;

/* An incoming link; a message for which its port has no room waits as `head`. */
typedef struct {
    rp_link *link;
    rp_message *head;
} runner_source;

/* Where an edge of the plan ends here, and how it leaves. */
typedef struct {
    uint32_t edge; /* of the plan */
    rp_kind carries;
    rp_link *link;
    rp_port_in *port;           /* where it ends, or NULL */
    uint32_t source;            /* of that port */
    uint32_t out;               /* its number at the port where it begins */
    uint32_t stage;             /* of the end that sends */
    rp_codec codec;             /* as the plan says */
    const runner_stage *sender; /* outgoing: the stage here */
    rp_port_local local;
    /* The edge brings rows of tied gradients or tied weights to a port of its own:
     * [RP_RUNNER_DEPTH], the piece that the op with this index in `running` reads until its mark.
     * NULL: any other edge. */
    rp_port_pieces *row;
    /* With tied weights: the sending stage's list at the last pause, and its forwards since the
     * fill. */
    rp_sched_state far;
    uint64_t far_forwards;
} runner_edge;

typedef struct {
    rp_op op;
    runner_stage *stage;
    rp_mark mark;
    int64_t issued_ns;
    rp_port_in *from;   /* port whose pieces the stage reads until the mark; NULL: none */
    rp_port_in *labels; /* also reads from this one */
    rp_port_in *rows;   /* and from this one: a stash, or weights; not rows of tied tensors */
    rp_port_pieces input, target, row;
    uint32_t time; /* tokens of a sample, of a forward or a backward; see rp_model_view */
    rp_port_slot *output, *stash;
    bool results; /* the step's losses are in the results memory */
    bool probe;   /* a probe's norms are in the probe memory */
    rp_stage_probe about;
    bool norms;           /* the step's norms of every stage here are in the norms memory */
    bool updates;         /* changes the weights */
    rp_contributions sum; /* the contributions it adds up, of all boards that share the stage */
    /* Only exchanges gradients between boards that share a stage or a tensor, before an update. */
    bool exchanges;
    bool rows_read;       /* also reads rows of tied gradients or tied weights, from their edges */
    rp_port_slot *values; /* without a flush: values of tied tensors that a forward sends */
} running_op;

struct rp_runner {
    rp_arena *arena;
    rp_runner_options at;
    rp_plan plan;       /* at.plan's, except where this runner's pipes were filled */
    runner_stage *held; /* [at.held_count] */
    runner_edge *edge;  /* [at.edge_count] */
    runner_source *source;
    uint32_t source_count;

    bool active, evaluating, ops_over;
    rp_sched_state sched;  /* position after `next`, if there is one */
    rp_sched_state before; /* position before it */
    uint64_t pause;        /* no op is issued after the last update before this step */
    bool at_update;        /* the last op issued was an update, or no op was issued yet */
    bool eval_training, eval_overlap;
    uint64_t eval_step, eval_samples;
    uint64_t eval_position; /* index in the order of the step's forwards */
    rp_op next;
    bool have_next;
    rp_transfer *transfer; /* of `next`, by the plan: room for one for each edge */
    uint32_t transfer_count;

    running_op running[RP_RUNNER_DEPTH]; /* ring, the oldest at running_first */
    uint32_t running_first, running_count;
    int64_t last_done_ns;
    int64_t began_ns;   /* start of the segment */
    int64_t longest_ns; /* as in rp_runner_wait */
    int64_t at_work_ns; /* how long the oldest op had run at looked_ns */
    int64_t looked_ns;

    /* For the next update, of a stage that several boards share: its own gradient was sent; those
     * of all boards were added up. */
    bool sent_gradient, summed;
    uint32_t row_count; /* edges that bring rows of tied gradients */
    /* For the first update of a step: all stages here before this index have sent their rows or
     * send none; the rows of other stages were added. */
    uint32_t rows_sent;
    bool tied;
    bool updating; /* an update of the current step has begun: its results have been read */
    bool waiting_decision, skip;
    float grad_scale;
    uint64_t decided_end; /* step after the one that these belong to */

    float *results, *probe;
    double *sumsq;
    /* The counts of each sample in an evaluation whose targets are pixels (rp_loss_call.overlap),
     * and their sums; NULL: the targets are not pixels. */
    uint32_t *overlap;
    double *overlap_sum;

    uint64_t fill_step;      /* step at which the pipes were filled and `sched` began */
    rp_sched_state above;    /* position in the previous stage's list at the last pause */
    uint64_t forwards_above; /* forwards in that list, and here, since the fill */
    uint64_t forwards;
    uint32_t in_flight;
    /* bytes of a checkpoint's in-flight state: expected, received */
    size_t in_flight_due, in_flight_got;
    char *restored;     /* its waiting microbatches, or NULL */
    float *own_weights; /* room for the weights of a board with only forwards; else NULL */
    bool keeps_weights; /* stored there while the stage has others for an evaluation */
    /* indexed by step modulo RP_RUNNER_TOLD_MAX; NULL: no stage here has labels */
    uint64_t (*told)[2];
    uint64_t told_end; /* step after the last of them */
    uint32_t told_count;
    rp_runner_facts facts;
    uint8_t *trace;
    uint32_t trace_count;
};

/* order.c: sets all lists to the state where the pipes are filled at `step`. */
void rp_runner_start_order(rp_runner *runner, uint64_t step);
/* Updates `in_flight` for an op that was issued, or had been issued in a run that continues. */
void rp_runner_count_in_flight(rp_runner *runner, const rp_op *op);
/* Advances the previous stage's list to the pause. */
void rp_runner_count_above(rp_runner *runner, uint64_t pause);
/* Samples of a step of the current segment. */
uint32_t rp_runner_step_samples(const rp_runner *runner, uint64_t step);
/* Puts the segment's next op into runner->next; false: none is left. */
bool rp_runner_next_op(rp_runner *runner);
/* `index` 0 is the oldest. */
running_op *rp_runner_running(rp_runner *runner, uint32_t index);

/* decision.c: whether the controller, or the stage itself, decides on every step. */
bool rp_runner_asks(const rp_runner *runner);

/* report.c: reports to the host. They must never find the control link full: see may_report.
 * errors  those of rp_link_send() */
bool rp_runner_may_report(const rp_runner *runner);
rp_err rp_runner_report_results(rp_runner *runner, const runner_stage *stage,
                                const rp_op *op) RP_MUST_CHECK;
rp_err rp_runner_report_norms(rp_runner *runner, runner_stage *stage,
                              const rp_op *op) RP_MUST_CHECK;
rp_err rp_runner_report_probe(rp_runner *runner, const running_op *op) RP_MUST_CHECK;
/* Appends to the trace, which is sent when it is full or flushed. */
rp_err rp_runner_record_op(rp_runner *runner, const rp_op *op, int64_t start_ns,
                           int64_t end_ns) RP_MUST_CHECK;
rp_err rp_runner_flush_trace(rp_runner *runner) RP_MUST_CHECK;

/* ledger.c: the ledger. errors PEER: an update has other samples than its step */
rp_err rp_runner_account_gradient(runner_stage *stage, const rp_op *op) RP_MUST_CHECK;
rp_err rp_runner_account_forward(const rp_runner *runner, runner_stage *stage,
                                 const rp_op *op) RP_MUST_CHECK;
rp_err rp_runner_account_update(const rp_runner *runner, runner_stage *stage,
                                const rp_op *op) RP_MUST_CHECK;

/* edges.c: ports, and the traffic between them and the links. */
rp_err rp_runner_open_edges(rp_runner *runner) RP_MUST_CHECK;
void rp_runner_close_edges(rp_runner *runner);
void rp_runner_begin_edges(rp_runner *runner); /* a new segment */
/* Passes every received message to its port while there is room. errors PEER */
rp_err rp_runner_receive(rp_runner *runner) RP_MUST_CHECK;
rp_err rp_runner_send(rp_runner *runner) RP_MUST_CHECK;
bool rp_runner_is_quiet(const rp_runner *runner); /* everything sent has been acknowledged */

/* The edge of a transfer. */
const runner_edge *rp_runner_edge_of(const rp_runner *runner, const rp_transfer *transfer);

/* own_weights.c: for a board with only forwards; on other boards 0 bytes, and the functions do
 * nothing. errors of the device */
size_t rp_runner_own_weights_bytes(const rp_runner *runner);
rp_err rp_runner_open_own_weights(rp_runner *runner) RP_MUST_CHECK;
/* Before an evaluation's weights, and after the evaluation. */
rp_err rp_runner_keep_weights(rp_runner *runner) RP_MUST_CHECK;
rp_err rp_runner_return_weights(rp_runner *runner) RP_MUST_CHECK;
/* Between segments: to and from runner->own_weights. The first blocks. */
rp_err rp_runner_read_own_weights(rp_runner *runner) RP_MUST_CHECK;
rp_err rp_runner_write_own_weights(rp_runner *runner) RP_MUST_CHECK;

/* Commits a part of the next op; the rest follows. */
rp_err rp_runner_commit_part(rp_runner *runner, running_op *op) RP_MUST_CHECK;

/* rows.c: ports for rows of tied gradients and tied weights. */
rp_err rp_runner_open_rows(rp_runner *runner) RP_MUST_CHECK;
void rp_runner_begin_rows(rp_runner *runner);
void rp_runner_close_rows(rp_runner *runner);
/* The op has ended: returns the rows that it read. */
void rp_runner_return_rows(rp_runner *runner, running_op *op);
/* The lists of stages that send tied weights: start at `step`; advance to the pause. */
void rp_runner_start_far(rp_runner *runner, uint64_t step);
void rp_runner_count_far(rp_runner *runner, uint64_t pause);
/* Microbatches whose tied weights such an edge has brought, or will, and no op has taken; 0: none,
 * or another edge. */
uint64_t rp_runner_pending_far(const rp_runner *runner, uint32_t edge);
/* ties.c: before the first update of a step. *over: every stage here has the gradients of all uses
 * of the tied tensors that it updates; without a flush, those that it owns. */
rp_err rp_runner_exchange_rows(rp_runner *runner, running_op *op, bool *over) RP_MUST_CHECK;
/* A forward without a flush: gathers the values of tensors of other stages; gives them to the
 * stage, `row` is read by its forward; then sends those that other stages use. */
rp_err rp_runner_gather_values(rp_runner *runner, const running_op *op, bool *ready) RP_MUST_CHECK;
void rp_runner_take_values(rp_runner *runner, running_op *op, rp_tie_row row[RP_RUNNER_EDGES_MAX]);
rp_err rp_runner_send_values(rp_runner *runner, running_op *op) RP_MUST_CHECK;

/* issue.c: submits the next op to the device when all it needs is present. */
rp_err rp_runner_issue(rp_runner *runner) RP_MUST_CHECK;

/* finished_ops.c: removes finished ops from running[], oldest first, and reports their results. */
rp_err rp_runner_collect(rp_runner *runner) RP_MUST_CHECK;
#endif
