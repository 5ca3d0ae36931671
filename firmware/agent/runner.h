/* The runner executes one segment of a job on the stages of one node: it asks the schedule for the
 * next op, waits until the op's inputs have arrived, submits it to its stage, and sends the
 * results.
 *
 * It never blocks: rp_runner_step() does what can be done now. At most RP_RUNNER_DEPTH ops are in
 * the executor's queue. rp_plan_transfers() says what an op receives and sends; each edge of the
 * plan ends at a port of a stage (port_in.h, port_out.h).
 *
 * Parcels: INPUT and LABEL from the host (one LABEL parcel a step, before its inputs), ACTIVATION
 * from the previous stage, GRADIENT from the next stage, WEIGHT_GRADIENT from boards that share the
 * stage, before its update. */
#ifndef RP_AGENT_RUNNER_H
#define RP_AGENT_RUNNER_H

#include "agent/port_out.h"
#include "link/link.h"
#include "plan/plan.h"
#include "sched/contributions.h"
#include "stage/record.h"

enum {
    /* steps whose results are kept, because a new host may not know them */
    RP_RUNNER_TOLD_MAX = 4096,
    RP_RUNNER_DEPTH = 2,
    RP_TRACE_MAX = 512,
    RP_RUNNER_STAGES_MAX = RP_CHUNKS_MAX,
    RP_RUNNER_EDGES_MAX = 64
};

typedef struct rp_runner rp_runner;

/* One edge of the plan, seen from this node. */
typedef struct {
    uint32_t edge;   /* of the plan */
    rp_kind carries; /* a data kind */
    bool outgoing;
    rp_link *link;   /* NULL: both ends are stages of this node; such an edge counts as outgoing */
    uint32_t sender; /* index of the stage here whose ops send over it */
    uint32_t taker;  /* index of the stage here whose ops take from it */
    uint32_t window; /* parcels: outgoing, in slots here; incoming, that may wait here */
} rp_runner_edge;

typedef struct {
    const rp_job *job; /* of any stage here; the node's jobs differ only in their stage */
    rp_stage *stage;
} rp_runner_held;

typedef struct {
    const rp_clock *clock;
    rp_link *control; /* for results, norms, trace */
    /* what the trace says of the board's sensors, at the time of sending; NULL: nothing */
    const rp_Trace *sensors;
    /* Handles a neighbour's message that is not a parcel. NULL: no such messages are expected. */
    rp_err (*take_other)(void *context, rp_link *link, const rp_message *message);
    void *context;
    uint32_t held_count;
    rp_runner_held held[RP_RUNNER_STAGES_MAX]; /* in the order of their stages */
    const rp_plan *plan;                       /* determines what an op receives and sends */
    uint32_t node;                             /* of the plan: this node */
    /* rp_runner_connect() fills in everything from `plan` on */
    uint32_t edge_count;
    rp_runner_edge edge[RP_RUNNER_EDGES_MAX];
} rp_runner_options;

/* `options` is copied; what it points to is borrowed until close. errors MEMORY */
rp_err rp_runner_open(rp_arena *arena, const rp_runner_options *options,
                      rp_runner **out) RP_MUST_CHECK;
/* Waits for the device and releases messages; the links may be closed after it. */
void rp_runner_close(rp_runner **runner);

/* Continues at step `step` and pauses after the last update before `pause`. A schedule that does
 * not flush pauses with microbatches in flight: their parcels that have arrived stay in the pending
 * queues for a later segment. `drain`: this is the last segment, after which the pipes are empty.
 * errors  PEER when the runner is not at `step`, or more is in flight */
rp_err rp_runner_train(rp_runner *runner, uint64_t step, uint64_t pause, bool drain) RP_MUST_CHECK;
/* Sets the ledger from which the segment continues: of all steps before it. Call it before the
 * segment's first round. */
void rp_runner_begin_account(rp_runner *runner, uint64_t digest);
/* The ledger now; `samples`: of this segment. errors PEER: the stages here have different ones */
rp_err rp_runner_ledger(const rp_runner *runner, rp_run_ledger *out) RP_MUST_CHECK;
/* Between two segments. `training`: forwards in training mode, without a loss, so that batch
 * statistics become those of the evaluated model. */
rp_err rp_runner_evaluate(rp_runner *runner, const rp_Evaluate *order) RP_MUST_CHECK;
/* Pauses earlier, at `step`. errors PEER when that step has already begun */
rp_err rp_runner_stop(rp_runner *runner, uint64_t step) RP_MUST_CHECK;
/* Applies the host's answer to NORMS. errors PEER when it does not belong to the waiting step */
rp_err rp_runner_decide_step(rp_runner *runner, uint64_t step, float grad_scale,
                             bool skip) RP_MUST_CHECK;

/* *active: a segment is running. Errors end the segment: PEER, DEVICE, ... */
rp_err rp_runner_step(rp_runner *runner, bool *active) RP_MUST_CHECK;

/* Between two segments: size of the in-flight state, which is the stage's part and the parcels that
 * wait here; 0 if nothing is in flight. Read it from byte 0 on. `fill_step`: the step at which the
 * pipes were filled. */
size_t rp_runner_in_flight_bytes(const rp_runner *runner);
uint64_t rp_runner_fill_step(const rp_runner *runner);
rp_err rp_runner_in_flight_read(rp_runner *runner, size_t first, size_t count,
                                void *out) RP_MUST_CHECK;
/* Before the first segment: takes over what was in flight at the job's first step. All bytes must
 * then be written, in order, or rp_runner_train() refuses. errors PEER when `bytes` does not fit */
rp_err rp_runner_resume(rp_runner *runner, uint64_t fill_step, size_t bytes) RP_MUST_CHECK;
rp_err rp_runner_in_flight_write(rp_runner *runner, size_t first, size_t count,
                                 const void *bytes) RP_MUST_CHECK;

/* Progress of its stages, for a host that takes over. */
typedef struct {
    uint64_t step; /* all earlier updates have been issued */
    uint64_t ops;  /* completed since open */
    bool settled;  /* no op is running, and everything sent has been acknowledged */
    bool paused;   /* between two segments */
    bool clean;    /* nothing has been trained since the last update */
    bool waits;    /* for a decision on `step` */
    /* The last decision received: */
    uint64_t decided_end; /* step after it; 0: none was received */
    float scale;
    bool skip;
} rp_runner_place;
rp_runner_place rp_runner_place_of(const rp_runner *runner);
/* Results of the last steps, at most RP_RUNNER_TOLD_MAX: bits of the sum of the losses, samples.
 * Returns the count; *first: the first of these steps. */
uint32_t rp_runner_told(const rp_runner *runner, uint64_t *first, uint64_t (*out)[2]);

/* Longest time that the caller may sleep, because no event signals the end of a throttled op. */
int64_t rp_runner_sleep_ns(const rp_runner *runner, int64_t most_ns);

/* What the next op waits for; nothing without a segment or right after an op began. */
typedef struct {
    rp_waiting_for what;
    uint32_t peer; /* node of the plan */
    rp_op op;      /* zeros after the last op */
    int64_t since_ns;
    int64_t longest_ns; /* longest op since open, by rp_op_longest_ns(); 0: none has ended */
} rp_runner_wait;
rp_runner_wait rp_runner_wait_of(rp_runner *runner);
/* Whether an op has exceeded the limit of sched/op_limit.h on the device, as of the last round. */
bool rp_runner_hangs(const rp_runner *runner);

typedef struct {
    int64_t busy_ns;
    uint64_t ops, trace_dropped;
    uint64_t microbatches; /* gradients computed: each sample once a step */
    uint32_t in_flight_max;
    uint64_t skipped; /* updates omitted by the stage's own step decision */
} rp_runner_facts;
rp_runner_facts rp_runner_facts_of(const rp_runner *runner); /* since open */

#endif
