/* The plan of a run: which node holds which stage, in which role and for which samples; how a step
 * is cut on each stage; what travels between whom. Controller, agent, `draw`, replay, simulator and
 * checkpoints read this one object; `plan.json` is its text.
 *
 *   node     a board. It holds stages: one in today's topology, several with interleaved schedules.
 *   hold     a stage on a node: a role, and a share [a, b) of every step's samples. The shares of a
 *            stage cover all samples once for the forward and once for the backward. Where several
 *            nodes update a stage, their gradients are summed in the order of their samples.
 *   edge     what one node sends to another for one stage there: n nodes below and m above a
 *            boundary make up to n times m edges, each for the samples that both ends share.
 *   op       of a node's list: (stage, role, kind, step, samples), as the schedule issues it.
 *   transfer an op received or sent over an edge: rp_plan_transfers() lists those of an op, and
 *            nobody else decides who talks to whom.
 *
 * A plan is built by rp_plan_make(), or by hand (nodes, holds and stages, then rp_plan_connect()
 * and rp_plan_measure()), or read from its text. Everything lives in the arena; the model's names
 * are copied. */
#ifndef RP_PLAN_PLAN_H
#define RP_PLAN_PLAN_H

#include <stdio.h>

#include "codec/codec.h"
#include "nn/cut.h"
#include "sched/method.h"
#include "sched/replay.h"

enum {
    RP_PLAN_NODES_MAX = 4096,
    RP_PLAN_STAGES_MAX = 4096,
    RP_PLAN_EDGES_MAX = 65536,
    RP_PLAN_NEIGHBOURS_MAX = 16, /* of a node that boards train: its links to other boards */
    RP_PLAN_PIECES_MAX = 64,     /* parcels that an op of a board takes its samples from */
    RP_PLAN_INPUT_WINDOW = 2,    /* inputs that wait on a node: the next op's, and one to come */
    RP_PLAN_WINDOW_SLACK = 4,
    RP_PLAN_PATH_BYTES =
        4 << 20, /* a window covers so much rate x delay, 160 Mbit/s and 200 ms, .. */
    RP_PLAN_PATH_PARCELS = 256,     /* .. in so many parcels at most */
    RP_PLAN_PATH_SHARE = 64,        /* .. and that part of a node's memory, where it is known */
    RP_PLAN_LAZY_NODES_MAX = 12,    /* of a row: for as many a replay each is made */
    RP_PLAN_LINK_WINDOW_MAX = 4096, /* parcels of all edges from one node to another, .. */
    RP_PLAN_LINK_SLACK = 4          /* .. and so many more: credit is on its way back meanwhile */
};

/* In place of a node: the host, where inputs and labels come from. */
#define RP_PLAN_HOST UINT32_MAX

typedef enum {
    RP_CARRIES_INPUT,           /* host to the first stage's forward */
    RP_CARRIES_LABEL,           /* host to the last stage's backward: one parcel a step */
    RP_CARRIES_ACTIVATION,      /* forward of stage - 1 to forward of stage */
    RP_CARRIES_GRADIENT,        /* backward of stage + 1 to backward of stage */
    RP_CARRIES_WEIGHT_GRADIENT, /* between nodes that update the same stage, before the update */
    RP_CARRIES_STASH,           /* what backward needs of a forward on another node */
    RP_CARRIES_WEIGHT,          /* an update, to nodes that only do the forward, or an average */
    RP_CARRIES
} rp_carries;
const char *rp_carries_name(rp_carries carries); /* "weight_gradient" */
const char *rp_role_name(rp_role role);          /* "both", "forward", "backward", "average" */

typedef struct {
    uint32_t node, stage;
    rp_role role;
    double share[2]; /* of every step's samples, [first, end) within [0, 1] */
    uint32_t slots;  /* microbatches whose stash is held at once, counted in the list of ops */
} rp_plan_hold;

typedef struct {
    const char *name;
    const char *executor;  /* "opencl" */
    uint64_t memory_bytes; /* that it may use; 0 = what the device has */
    bool dials;            /* nobody can dial it: it dials the host and every neighbour */
    uint32_t hold_first, hold_count;
} rp_plan_node;

/* What was measured of a stage on its board; zeros and NULL = not known. Seconds are of one full
 * microbatch. */
typedef struct {
    const char *board;
    uint64_t slots, weight_copies, device_bytes, weight_bytes, resident_bytes;
    bool has_seconds;
    double forward_s, backward_s;
    uint64_t forward_bytes; /* where the stage is split: of the device, on the board with the
                               forward; the others are of the other board (not in the text) */
} rp_plan_measured;

typedef struct {
    uint32_t layer_count;
    const char **layer;                     /* names, in order */
    uint32_t micro_forward, micro_backward; /* samples of a microbatch */
    bool as_forward;                        /* kinds with sizes: the backward's microbatches are the
                                               forward's, for a layer has statistics of each */
    bool recompute;         /* forwards are computed again for the backward: nn/again.h */
    uint32_t group_count;   /* layers at which further groups of them begin, in order */
    const char **group;     /* their names; NULL where there are none */
    const char *memory_why; /* what chose, of memory; NULL: nothing did (not in the text) */
    const char *offload;    /* "none", "host", "flash" */
    uint32_t leave_tensors; /* of a stash, those that wait longest, which it offloads; 0: all */
    uint64_t stay_bytes;    /* of a stash, the others; 0: none, or not known (not in the text) */
    uint64_t offload_bytes; /* that a step writes there, at most; 0: not known (not in the text) */
    rp_plan_measured measured;
} rp_plan_stage;

typedef struct {
    uint32_t from, to; /* nodes, or RP_PLAN_HOST as `from` */
    uint32_t stage;    /* that receives */
    rp_carries carries;
    uint32_t tensor_count; /* of activations and gradients: names of the layers that made them */
    const char **tensor;   /* "data" is the model's input */
    rp_codec codec;        /* of its tensors but "data" */
    uint32_t window;       /* parcels sent and not yet taken, at most; >= 1 */
    uint64_t parcel_bytes; /* of a full microbatch; 0 = not known (not in the text) */
} rp_plan_edge;

typedef struct {
    const char *source;    /* for messages: the name of its text; "plan" where it was made */
    const char *model;     /* name, as in the run file */
    uint64_t model_digest; /* of layers, shapes and parameters: rp_plan_model_digest() */
    rp_method method;
    uint32_t batch, micro;  /* micro: as in the run file; each stage has its own */
    uint64_t epoch_samples; /* the last step of an epoch may be short */
    uint64_t step_first, steps;
    uint64_t fill_step; /* where pipes were filled: step_first, or before it where a run goes on
                           with what was in flight (not in the text) */
    uint32_t node_count, hold_count, stage_count, edge_count;
    rp_plan_node *node;
    rp_plan_hold *hold; /* in the order of nodes, then stages */
    rp_plan_stage *stage;
    rp_plan_edge *edge;
    uint32_t *node_edge_first; /* [node_count + 2]: edges at each node, then at the host ... */
    uint32_t *node_edge;       /* ... as indices: made by rp_plan_connect() and the parser */

    double predicted_step_s;      /* 0 = not predicted */
    const char *predicted_limits; /* what the step waits for most, or NULL */
    bool has_advance;             /* `advance: auto` chose */
    uint32_t advance_tried;       /* from 0 on: numbers in .. */
    double advance_busy[RP_ADVANCE_MAX + 1];
    uint64_t agent_program_bytes; /* 0 = not known */
} rp_plan;

/* ---- making ---------------------------------------------------------------------------------- */

typedef struct {
    const char *model_name;
    const rp_model *model;     /* NULL: stages without layers, for drawings and tests */
    const rp_cut *cut;         /* stages = nodes * method->chunks; node k holds k, k + nodes, ..;
                                  kinds that split stages: nodes = 2 * stages */
    const rp_method *method;   /* copied */
    const char *const *boards; /* names of the nodes; NULL: board0, board1, .. */
    /* Boards that share stages: the first node of each stage, [stages + 1], the last is the nodes';
     * and where the samples of each end, by node, [0, 1], those of a stage in order. NULL: none do
     */
    const uint32_t *group;
    const double *share;
    const uint64_t *memory_bytes; /* by node; 0 = what the device has; NULL = all do */
    uint32_t batch, micro;
    const uint32_t (*size)[2]; /* kinds with sizes: by stage, of a microbatch forward and backward;
                                  NULL = micro */
    uint64_t epoch_samples;
    uint64_t step_first, steps;
    /* By boundary, [stages - 1]: of activations, of gradients; NULL = f32 */
    const rp_codec (*codec)[2];
    rp_codec input_codec;
} rp_plan_options;

/* Today's topology: every stage on one node, all samples, both directions, or on several nodes next
 * to each other, each with a share of the samples; of a kind that splits
 * stages, its forward on node k of stage k and its backward on node 2 D - 1 - k.
 * errors  USAGE: stages that the chunks do not divide, or more than may be split; sizes of a stage
 * with batch statistics; those of connect and measure */
rp_err rp_plan_make(rp_arena *arena, const rp_plan_options *options, rp_plan **out) RP_MUST_CHECK;

/* Makes plan->edge from nodes, holds and stages: every edge that the roles and shares ask for, in
 * the order of receiving stages. `model` and `cut` (both may be NULL) give the tensors.
 * errors MEMORY, LIMIT */
rp_err rp_plan_connect(rp_arena *arena, const rp_model *model, const rp_cut *cut,
                       rp_plan *plan) RP_MUST_CHECK;

/* Counts slots in the lists, and sets each edge's window to the most parcels that can ever wait on
 * it, whatever boards and links do (replay with a lazy node). With a flush they are stages + 3 and
 * the parcels of one op at most, or as many as RP_PLAN_PATH_BYTES hold: from there on a full window
 * holds the sender back (not for stashes, which a backward may take in another order than they were
 * sent). In a row of too many nodes for a replay each, a window is what a node has in flight at
 * most, and 4. Of inputs as many may be on their way as those bytes hold, 2 where the bytes of a
 * parcel are not known; the host sends as far ahead as it needs (train/feed_pace.h).
 * errors  those of rp_plan_replay() */
rp_err rp_plan_measure(rp_plan *plan) RP_MUST_CHECK;

/* Gives the edges of every boundary their codec, as in rp_plan_options, but where all of them stay
 * on one node; the bytes of a parcel follow (`model` NULL: not known). Ahead of rp_plan_measure().
 */
void rp_plan_set_codecs(rp_plan *plan, const rp_model *model, const rp_codec (*codec)[2]);
/* The same for inputs. */
void rp_plan_set_input_codec(rp_plan *plan, const rp_model *model, rp_codec codec);

/* Lets the plan run to step `steps` in place of plan->steps. A longer run may have more in flight
 * than a short one: slots become as many as it needs; windows stay. */
void rp_plan_set_steps(rp_plan *plan, uint64_t steps);

uint64_t rp_plan_model_digest(const rp_model *model);
/* Of what decides where an op is executed, and with which numbers: method, sizes, stages, nodes'
 * holds, codecs. Windows, names and what was measured do not count. */
uint64_t rp_plan_digest(const rp_plan *plan);

/* ---- checking -------------------------------------------------------------------------------- */

/* Every stage is covered once for every sample in both directions; every edge that is needed is
 * there once and no other; sizes; the order of ops runs to its end within the windows.
 * `model` (may be NULL): digest and layers are compared, too.
 * errors  USAGE naming the plan's source and the key: "plan.json: nodes[1].executor: ..."; FAULT: a
 *         deadlock, naming who waits for whom; MEMORY */
rp_err rp_plan_check(const rp_plan *plan, const rp_model *model) RP_MUST_CHECK;

/* What a checkpoint has of the ring comes in parts: one for each stage, of the first node that
 * holds it; where a stage's forward and backward are apart, one of each, those of forwards behind
 * all others. The part that a node has, or would have if it were the first with these holds. */
uint32_t rp_plan_parts(const rp_plan *plan);
uint32_t rp_plan_part_of(const rp_plan *plan, uint32_t node);
bool rp_plan_saves(const rp_plan *plan, uint32_t node); /* it is that first node */

/* Neighbours are nodes with edges between them. They have one link, which all these edges share,
 * and so do the host and a board; on it, parcels are told apart by what they carry and by the stage
 * that sends. Of two neighbours the one with the lower number dials, or the one that can only dial.
 */
uint32_t rp_plan_far_end(const rp_plan_edge *edge, uint32_t node); /* `node` itself: no link */
/* In ascending order, and how many; rp_plan_check_training() has said that the room suffices. */
uint32_t rp_plan_neighbours(const rp_plan *plan, uint32_t node,
                            uint32_t out[RP_PLAN_NEIGHBOURS_MAX]);
/* The neighbour that keeps a copy of what a node holds: the next one round the ring that the node
 * sends anything to; RP_PLAN_HOST: there is none. */
uint32_t rp_plan_keeper(const rp_plan *plan, uint32_t node);
static inline bool rp_plan_dials(const rp_plan *plan, uint32_t node, uint32_t neighbour) {
    const bool own = plan->node[node].dials;
    return own != plan->node[neighbour].dials ? own : node < neighbour;
}

/* Can boards train it? A plan that has passed rp_plan_check() may say more than they do so far:
 * they hold stages in both directions, or in one where the schedule splits stages; several boards
 * share the samples of a stage where each of them holds one stage and no layer there has batch
 * statistics; a board has at most
 * RP_PLAN_NEIGHBOURS_MAX neighbours, and a link takes RP_PLAN_LINK_WINDOW_MAX parcels; of two
 * neighbours one can be dialled. `model` (may be NULL): its layers are looked at.
 * errors  USAGE naming the node, what the plan says of it, and what boards do */
rp_err rp_plan_check_training(const rp_plan *plan, const rp_model *model) RP_MUST_CHECK;

/* Do both say the same? NaN is not equal to anything. */
bool rp_plan_same(const rp_plan *a, const rp_plan *b);

/* ---- text ------------------------------------------------------------------------------------ */

/* As JSON, a line end behind it. errors IO, MEMORY */
rp_err rp_plan_write(const rp_plan *plan, FILE *file) RP_MUST_CHECK;
/* The same, in the arena. errors MEMORY */
rp_err rp_plan_text(rp_arena *arena, const rp_plan *plan, char **out) RP_MUST_CHECK;

/* Reads what rp_plan_write() writes, strictly: an unknown key is an error. `name` stands in the
 * messages: "plan.json: nodes[1].holds[0].role: expected both, forward, backward or average". The
 * plan is well formed; whether it makes sense is rp_plan_check()'s. errors FORMAT, MEMORY */
rp_err rp_plan_parse(rp_arena *arena, const char *text, size_t bytes, const char *name,
                     rp_plan **out) RP_MUST_CHECK;
rp_err rp_plan_read(rp_arena *arena, const char *path, rp_plan **out) RP_MUST_CHECK;

/* The cut of the model, in `arena`. errors USAGE: the layers are not the model's */
rp_err rp_plan_cut(rp_arena *arena, const rp_plan *plan, const rp_model *model,
                   rp_cut *out) RP_MUST_CHECK;

/* ---- reading --------------------------------------------------------------------------------- */

uint32_t rp_plan_find_node(const rp_plan *plan, const char *name); /* or node_count */
const char *rp_plan_node_name(const rp_plan *plan, uint32_t node); /* "host" too */
/* The hold of a stage on a node, or NULL. */
const rp_plan_hold *rp_plan_find_hold(const rp_plan *plan, uint32_t node, uint32_t stage);
/* Edges that begin or end at a node (or RP_PLAN_HOST); *count of them. */
const uint32_t *rp_plan_node_edges(const rp_plan *plan, uint32_t node, uint32_t *count);
uint32_t rp_plan_step_samples(const rp_plan *plan, uint64_t step);

/* What the schedule asks of a stage, from `step_first` on, as of one node with all samples. */
rp_sched_shape rp_plan_stage_shape(const rp_plan *plan, uint32_t stage, uint64_t step_first);

/* By stage: samples of a microbatch forward and backward, backward 0 where it takes those of the
 * forward; NULL for a schedule that has one size. errors MEMORY */
rp_err rp_plan_sizes(rp_arena *arena, const rp_plan *plan, const uint32_t (**out)[2]) RP_MUST_CHECK;

/* The list of one node's ops, from plan->step_first to plan->steps. A copy is a position. */
typedef struct {
    const rp_plan *plan;
    uint32_t node;
    rp_sched_state state;
} rp_plan_list;
void rp_plan_list_start(const rp_plan *plan, uint32_t node, rp_plan_list *out);
bool rp_plan_list_next(rp_plan_list *list, rp_op *op);

/* The transfers of an op of `node`, receives first; fills out[], which has room for as many as
 * the node has edges, and returns how many. Over one edge goes what the op's samples and the shares
 * at both ends have in common. Before an update go the sums of gradients: first each sends its own,
 * then it takes those of the others. `eval_samples`: 0 in training; in an evaluation, which has
 * forwards only and whose last stage takes its labels with them, the samples of the op's step.
 * Ahead of an evaluation a node that only updates sends its newest weights to the one with the
 * forwards: its only op there is an update of step 0. */
uint32_t rp_plan_transfers(const rp_plan *plan, uint32_t node, const rp_op *op,
                           uint32_t eval_samples, rp_transfer *out);
/* The host has a list for each node that gets inputs, its feed, so that none waits for another; 1
 * if there is none. An op is a forward of the first stage on that node: its input is one parcel.
 * With the first op of a step go labels: the node's own, and in feed 0 those of all nodes without a
 * feed.
 */
uint32_t rp_plan_feeds(const rp_plan *plan);
/* Op `micro` of a step of so many samples; false: the step has no more. It has one at least,
 * without samples where the node's share has none. */
bool rp_plan_feed_op(const rp_plan *plan, uint32_t feed, uint64_t step, uint32_t step_samples,
                     uint32_t micro, rp_op *out);
/* What the host sends for it, labels first: as rp_plan_transfers(). */
uint32_t rp_plan_feed_transfers(const rp_plan *plan, uint32_t feed, const rp_op *op,
                                uint32_t eval_samples, rp_transfer *out);
/* The stage whose op sends over an edge; of the host: 0. */
uint32_t rp_plan_sending_stage(const rp_plan_edge *edge);
/* Samples of a full parcel, by who sends it; inputs have the first stage's size. */
static inline uint32_t rp_plan_parcel_samples(const rp_plan *plan, const rp_plan_edge *edge) {
    const rp_plan_stage *from = &plan->stage[rp_plan_sending_stage(edge)];
    return edge->carries == RP_CARRIES_GRADIENT ? from->micro_backward : from->micro_forward;
}
/* Of inputs, activations and gradients: one sample as it travels. */
uint64_t rp_plan_sample_bytes(const rp_plan_edge *edge, const rp_model *model);
/* The same where its codec has nothing remembered yet: in the first epoch, and in evaluations. */
uint64_t rp_plan_whole_bytes(const rp_plan_edge *edge, const rp_model *model);
/* Sets parcel_bytes of such edges, which the text does not say. */
void rp_plan_note_bytes(rp_plan *plan, const rp_model *model);
/* At the boundaries of a stage: [upper][of gradients]; f32 where there is none. Inputs are what
 * comes through the lower one of stage 0. */
void rp_plan_codecs_of(const rp_plan *plan, uint32_t stage, rp_codec out[2][2]);
bool rp_plan_has_codec(const rp_plan *plan); /* any but f32 */
rp_codec rp_plan_input_codec(const rp_plan *plan);

/* The plan as a net to replay; the nodes from `node_count` on are the host's feeds. `windows`:
 * senders wait for room. costs are by hold. errors FAULT: deadlock, or work left; MEMORY */
rp_err rp_plan_replay(rp_arena *arena, const rp_plan *plan, const rp_sched_costs *costs,
                      bool windows, const rp_sched_visitor *visit, uint32_t lazy,
                      rp_sched_facts *out) RP_MUST_CHECK;

#endif
