/* The plan of a run: which node holds which stage, in which role and for which samples; how a step
 * is divided on each stage; what is sent between nodes. Controller, agent, `draw`, replay,
 * simulator and checkpoints all read this object; `plan.json` is its text.
 *
 *   node      a board. It holds stages: usually one, several with interleaved schedules.
 *   hold      a stage on a node: a role, and a share [a, b) of each step's samples. The shares of
 *             a stage cover all samples once for the forward and once for the backward. If several
 *             nodes update a stage, their gradients are summed in the order of their samples.
 *   edge      what one node sends to another for one stage there: n nodes below and m above a
 *             boundary make up to n times m edges, each for the samples that both shares contain.
 *   op        of a node's list: (stage, role, kind, step, samples), as the schedule issues it.
 *   transfer  an op received or sent over an edge: rp_plan_transfers() lists those of an op. No
 *             other code decides which nodes communicate.
 *
 * A plan is built by rp_plan_make(), or by hand (nodes, holds and stages, then rp_plan_connect()
 * and rp_plan_measure()), or read from its text. Everything is allocated in the arena; the model's
 * names are copied. */
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
    RP_PLAN_NEIGHBOURS_MAX = 16, /* per node for training: its links to other boards */
    RP_PLAN_PIECES_MAX = 64,     /* parcels from which one op takes its samples */
    RP_PLAN_INPUT_WINDOW = 2,    /* inputs that wait on a node: for the next op and the one after */
    RP_PLAN_WINDOW_SLACK = 4,
    RP_PLAN_PATH_BYTES =
        4 << 20, /* most bytes of a window: rate x delay, such as 160 Mbit/s and 200 ms */
    RP_PLAN_PATH_PARCELS = 256, /* most parcels of such a window */
    RP_PLAN_PATH_SHARE = 64,    /* and at most 1/64 of a node's memory, if that is known */
    /* nodes of a row up to which windows are found by one replay for each node */
    RP_PLAN_LAZY_NODES_MAX = 12,
    RP_PLAN_LINK_WINDOW_MAX = 4096, /* parcels of all edges from one node to another */
    RP_PLAN_LINK_SLACK = 4          /* and additional ones, for credit that is on its way back */
};

/* Used instead of a node: the host, which sends inputs and labels. */
#define RP_PLAN_HOST UINT32_MAX

typedef enum {
    RP_CARRIES_INPUT,           /* host to the first stage's forward */
    RP_CARRIES_LABEL,           /* host to the last stage's backward: one parcel a step */
    RP_CARRIES_ACTIVATION,      /* forward of stage - 1 to forward of stage */
    RP_CARRIES_GRADIENT,        /* backward of stage + 1 to backward of stage */
    RP_CARRIES_WEIGHT_GRADIENT, /* between nodes that update the same stage, before the update */
    RP_CARRIES_STASH,           /* what the backward needs from a forward on another node */
    RP_CARRIES_WEIGHT,          /* an update, to nodes that only run the forward, or an average */
    /* From a stage with uses of tied tensors to every node that updates another stage with uses of
     * them, before its first update of a step; without a flush only to their owner. */
    RP_CARRIES_TIED_GRADIENT,
    /* without a flush: the values that a forward of the owner has seen, to forwards of other uses
     */
    RP_CARRIES_TIED_WEIGHT,
    RP_CARRIES
} rp_carries;
const char *rp_carries_name(rp_carries carries); /* "weight_gradient" */
const char *rp_role_name(rp_role role);          /* "both", "forward", "backward", "average" */

typedef struct {
    uint32_t node, stage;
    rp_role role;
    double share[2]; /* part of every step's samples, [first, end) within [0, 1] */
    uint32_t slots;  /* microbatches whose stash is held at once, counted in the list of ops */
} rp_plan_hold;

typedef struct {
    const char *name;
    const char *executor;  /* "opencl" */
    uint64_t memory_bytes; /* that the node may use; 0 = all the device has */
    bool dials;            /* cannot be dialled: it dials the host and every neighbour */
    uint32_t hold_first, hold_count;
} rp_plan_node;

/* Measured values of a stage; zeros and NULL = not known. Seconds: per full microbatch. */
typedef struct {
    const char *board;
    uint64_t slots, weight_copies, device_bytes, weight_bytes, resident_bytes;
    bool has_seconds;
    double forward_s, backward_s;
    /* split stage: device memory on the board with the forward, while all other values are for
     * the board with the backward (not in the text) */
    uint64_t forward_bytes;
} rp_plan_measured;

typedef struct {
    uint32_t layer_count;
    const char **layer;                     /* names, in order */
    uint32_t micro_forward, micro_backward; /* samples of a microbatch */
    /* kinds with sizes: the backward uses the forward's microbatches, because a layer has
     * statistics of each */
    bool as_forward;
    bool recompute; /* forwards are recomputed for the backward: nn/recompute.h */
    /* further groups of layers for that, each starting at a layer, in order */
    uint32_t group_count;
    const char **group; /* names of those layers; NULL: no layer */
    /* what made that choice for lack of memory; NULL: nothing did (not in the text) */
    const char *memory_why;
    const char *offload; /* "none", "host", "flash" */
    /* tensors of a stash that are offloaded, those that wait longest; 0: all */
    uint32_t leave_tensors;
    uint64_t stay_bytes; /* bytes of the tensors that stay; 0: not known (not in the text) */
    /* most bytes that a step writes there; 0: not known (not in the text) */
    uint64_t offload_bytes;
    rp_plan_measured measured;
} rp_plan_stage;

/* Stages that share a tensor: nn/ties.h; first < second. Without a flush `first` is the owner. */
typedef struct {
    uint32_t first, second;
} rp_plan_tie;

typedef struct {
    uint32_t from, to; /* nodes, or RP_PLAN_HOST as `from` */
    uint32_t stage;    /* the receiving stage; of tied gradients and weights the sending one */
    rp_carries carries;
    uint32_t tensor_count; /* for activations and gradients: names of the layers that made them */
    const char **tensor;   /* "data" is the model's input */
    rp_codec codec;        /* for its tensors except "data" */
    uint32_t window;       /* most parcels sent and not yet taken; >= 1 */
    uint64_t parcel_bytes; /* of a full microbatch; 0 = not known (not in the text) */
} rp_plan_edge;

typedef struct {
    /* for messages: the name of its text; "plan" if it was made by rp_plan_make() */
    const char *source;
    const char *model;     /* name, as in the run file */
    uint64_t model_digest; /* of layers, shapes and parameters: rp_plan_model_digest() */
    rp_method method;
    uint32_t batch, micro;  /* micro: as in the run file; each stage has its own size */
    uint64_t epoch_samples; /* the last step of an epoch may be short */
    uint64_t step_first, steps;
    /* step at which the pipes were filled: step_first, or earlier if a run continues with its
     * in-flight state (not in the text) */
    uint64_t fill_step;
    uint32_t node_count, hold_count, stage_count, edge_count, tie_count;
    rp_plan_node *node;
    rp_plan_hold *hold; /* ordered by node, then stage */
    rp_plan_stage *stage;
    rp_plan_edge *edge;
    rp_plan_tie *tie; /* ordered by first, then second; NULL: none */
    /* [node_count + 2]: first entry of each node, then of the host, in ... */
    uint32_t *node_edge_first;
    /* ... node_edge, indices of edges; filled in by rp_plan_connect() and the parser */
    uint32_t *node_edge;

    double predicted_step_s;      /* 0 = not predicted */
    const char *predicted_limits; /* what limits the step most, or NULL */
    bool has_advance;             /* `advance: auto` made a choice */
    uint32_t advance_tried;       /* advances that it compared, from 0 on */
    double advance_busy[RP_ADVANCE_MAX + 1];
    uint64_t agent_program_bytes; /* 0 = not known */
} rp_plan;

/* ---- making ---------------------------------------------------------------------------------- */

typedef struct {
    const char *model_name;
    const rp_model *model; /* NULL: stages without layers, for drawings and tests */
    /* stages = nodes * method->chunks; node k holds k, k + nodes, ...; kinds that split stages:
     * nodes = 2 * stages */
    const rp_cut *cut;
    const rp_method *method;   /* copied */
    const char *const *boards; /* names of the nodes; NULL: board0, board1, ... */
    /* Boards that share stages: the first node of each stage, [stages + 1], the last entry is the
     * number of nodes; and the end of each node's samples, in [0, 1], ascending within a stage.
     * NULL: no stage is shared */
    const uint32_t *group;
    const double *share;
    const uint64_t *memory_bytes; /* by node; 0 = all the device has; NULL = 0 for all */
    uint32_t batch, micro;
    /* kinds with sizes: by stage, size of a microbatch forward and backward; NULL = micro */
    const uint32_t (*size)[2];
    uint64_t epoch_samples;
    uint64_t step_first, steps;
    /* By boundary, [stages - 1]: for activations, for gradients; NULL = f32 */
    const rp_codec (*codec)[2];
    rp_codec input_codec;
} rp_plan_options;

/* Makes a plan of the usual topology: every stage on one node, all samples, both directions, or on
 * several adjacent nodes, each with a share of the samples. For a kind that splits stages, stage k
 * has its forward on node k and its backward on node 2 D - 1 - k.
 * errors  USAGE: stages that the chunks do not divide, or more than may be split; sizes of a stage
 *         with batch statistics; those of connect and measure */
rp_err rp_plan_make(rp_arena *arena, const rp_plan_options *options, rp_plan **out) RP_MUST_CHECK;

/* Fills plan->tie from the model, and plan->edge from nodes, holds and stages: every edge that the
 * roles and shares need, in the order of receiving stages. `model` and `cut` (both may be NULL)
 * give the tensors. errors  MEMORY, LIMIT */
rp_err rp_plan_connect(rp_arena *arena, const rp_model *model, const rp_cut *cut,
                       rp_plan *plan) RP_MUST_CHECK;

/* Counts slots in the lists, and sets each edge's window to the most parcels that can ever wait on
 * it, at any speed of boards and links (replay with a lazy node).
 *
 * With a flush a window is at most stages + 3 and the parcels of one op, or as many as
 * RP_PLAN_PATH_BYTES hold; a full window then holds the sender back. Stashes are exempt, because a
 * backward may take them in another order than they were sent. In a row with too many nodes for a
 * replay each, a window is the most that a node has in flight, plus 4.
 *
 * Inputs in flight may fill RP_PLAN_PATH_BYTES, or are 2 if the bytes of a parcel are not known;
 * the host sends as far ahead as it needs (train/feed_pace.h). errors those of rp_plan_replay() */
rp_err rp_plan_measure(rp_plan *plan) RP_MUST_CHECK;

/* Sets the codec of the edges of every boundary, as in rp_plan_options, unless all of them stay on
 * one node, and updates the bytes of a parcel (`model` NULL: not known). Call it before
 * rp_plan_measure(). */
void rp_plan_set_codecs(rp_plan *plan, const rp_model *model, const rp_codec (*codec)[2]);
/* Sets the codec of inputs in the same way. */
void rp_plan_set_input_codec(rp_plan *plan, const rp_model *model, rp_codec codec);

/* Sets plan->steps to `steps`. A longer run may have more in flight than a short one, so slots grow
 * as needed; windows stay. */
void rp_plan_set_steps(rp_plan *plan, uint64_t steps);

uint64_t rp_plan_model_digest(const rp_model *model);
/* Digest of what decides where an op is executed, and with which numbers: method, sizes, stages,
 * nodes' holds, codecs. Windows, names and measured values are not included. */
uint64_t rp_plan_digest(const rp_plan *plan);

/* ---- checking -------------------------------------------------------------------------------- */

/* Checks that every stage is covered once for every sample in both directions, that exactly the
 * required edges exist, the sizes, and that the order of ops runs to its end within the windows.
 * `model` (may be NULL): also compares digest and layers.
 * errors  USAGE naming the plan's source and the key: "plan.json: nodes[1].executor: ..."; FAULT: a
 *         deadlock, naming the waiting nodes; MEMORY */
rp_err rp_plan_check(const rp_plan *plan, const rp_model *model) RP_MUST_CHECK;

/* A checkpoint of the ring has parts: one for each stage, saved by the first node that holds it. If
 * a stage's forward and backward are on different nodes, each has a part, and those of forwards
 * come last. rp_plan_part_of() is the part of a node, also if another node with the same holds
 * saves it. */
uint32_t rp_plan_parts(const rp_plan *plan);
uint32_t rp_plan_part_of(const rp_plan *plan, uint32_t node);
bool rp_plan_saves(const rp_plan *plan, uint32_t node); /* whether it is that first node */

/* Neighbours are nodes with edges between them. They share one link for all these edges, and so do
 * the host and a board; on the link, parcels are told apart by what they carry and by the sending
 * stage. Of two neighbours the one with the lower number dials, or the one that cannot be
 * dialled. */
uint32_t rp_plan_far_end(const rp_plan_edge *edge, uint32_t node); /* `node` itself: no link */
/* The neighbours, ascending, and their number; rp_plan_check_training() ensures the room. */
uint32_t rp_plan_neighbours(const rp_plan *plan, uint32_t node,
                            uint32_t out[RP_PLAN_NEIGHBOURS_MAX]);
/* The neighbour that keeps a copy of a node's state: the next node in the ring that the node sends
 * anything to; RP_PLAN_HOST: no such node. */
uint32_t rp_plan_keeper(const rp_plan *plan, uint32_t node);
static inline bool rp_plan_dials(const rp_plan *plan, uint32_t node, uint32_t neighbour) {
    const bool own = plan->node[node].dials;
    return own != plan->node[neighbour].dials ? own : node < neighbour;
}

/* Whether boards can train the plan. A plan that passes rp_plan_check() may ask for more than
 * boards support. They hold stages in both directions, or in one if the schedule splits stages.
 * Microbatches have plan->micro samples, unless stages have sizes of their own. Several boards may
 * share the samples of a stage if each of them holds one stage and no layer there has batch
 * statistics. A board has at most RP_PLAN_NEIGHBOURS_MAX neighbours, and a link takes
 * RP_PLAN_LINK_WINDOW_MAX parcels. Of two neighbours one can be dialled. `model` (may be NULL): its
 * layers are checked.
 * errors  USAGE naming the node or stage, what the plan says of it, and what boards support */
rp_err rp_plan_check_training(const rp_plan *plan, const rp_model *model) RP_MUST_CHECK;

/* Whether both plans are equal. NaN is not equal to anything. */
bool rp_plan_same(const rp_plan *a, const rp_plan *b);

/* ---- text ------------------------------------------------------------------------------------ */

/* Writes JSON, ending with a newline. errors IO, MEMORY */
rp_err rp_plan_write(const rp_plan *plan, FILE *file) RP_MUST_CHECK;
/* Writes the same JSON as a text in the arena. errors MEMORY */
rp_err rp_plan_text(rp_arena *arena, const rp_plan *plan, char **out) RP_MUST_CHECK;

/* Reads the output of rp_plan_write(), strictly: an unknown key is an error. `name` is used in
 * messages: "plan.json: nodes[1].holds[0].role: expected both, forward, backward or average". The
 * result is well formed; rp_plan_check() decides whether it is consistent. errors FORMAT, MEMORY */
rp_err rp_plan_parse(rp_arena *arena, const char *text, size_t bytes, const char *name,
                     rp_plan **out) RP_MUST_CHECK;
rp_err rp_plan_read(rp_arena *arena, const char *path, rp_plan **out) RP_MUST_CHECK;

/* The cut of the model, in `arena`. errors USAGE: the layers are not the model's */
rp_err rp_plan_cut(rp_arena *arena, const rp_plan *plan, const rp_model *model,
                   rp_cut *out) RP_MUST_CHECK;

/* ---- reading --------------------------------------------------------------------------------- */

uint32_t rp_plan_find_node(const rp_plan *plan,
                           const char *name); /* node_count if no node matches */
const char *rp_plan_node_name(const rp_plan *plan, uint32_t node); /* also "host" */
/* The hold of a stage on a node, or NULL. */
const rp_plan_hold *rp_plan_find_hold(const rp_plan *plan, uint32_t node, uint32_t stage);
/* Edges that begin or end at a node (or RP_PLAN_HOST); *count is their number. */
const uint32_t *rp_plan_node_edges(const rp_plan *plan, uint32_t node, uint32_t *count);
uint32_t rp_plan_step_samples(const rp_plan *plan, uint64_t step);

/* The shape that the schedule sees, from `step_first` on, as for one node with all samples. */
rp_sched_shape rp_plan_stage_shape(const rp_plan *plan, uint32_t stage, uint64_t step_first);

/* Whether each stage has microbatch sizes of its own, by direction; else all have plan->micro. */
bool rp_plan_has_sizes(const rp_plan *plan);
/* Whether it has, and a backward of the stage may take other samples than its forward. */
bool rp_plan_takes_parts(const rp_plan *plan, uint32_t stage);
/* Microbatch sizes by stage: samples forward and backward; backward 0 if it uses the forward's;
 * NULL for a schedule with one size. errors MEMORY */
rp_err rp_plan_sizes(rp_arena *arena, const rp_plan *plan, const uint32_t (**out)[2]) RP_MUST_CHECK;

/* A position in the list of one node's ops, to plan->steps. It may be copied. */
typedef struct {
    const rp_plan *plan;
    uint32_t node;
    rp_sched_state state;
} rp_plan_list;
void rp_plan_list_start(const rp_plan *plan, uint32_t node, rp_plan_list *out);
bool rp_plan_list_next(rp_plan_list *list, rp_op *op);

/* The transfers of an op of `node`, receives first. Fills out[], which has room for as many as the
 * node has edges, and returns the count. An edge carries the samples that the op and the shares at
 * both ends have in common. Before an update the sums of gradients are exchanged: each node first
 * sends its own, then receives those of all other nodes.
 *
 * `eval_samples` is 0 in training. In an evaluation, which has only forwards and whose last stage
 * also receives its labels, it is the number of samples of the op's step. Before an evaluation a
 * node that only updates sends its newest weights to the node with the forwards: its only op there
 * is an update of step 0. */
uint32_t rp_plan_transfers(const rp_plan *plan, uint32_t node, const rp_op *op,
                           uint32_t eval_samples, rp_transfer *out);
/* The host has a list of ops for each node that gets inputs, called its feed, so that none waits
 * for another; 1 if no node gets inputs. An op is a forward of the first stage on that node, with
 * its input as one parcel. Labels are sent with the first op of a step: the node's own, and in feed
 * 0 those of all nodes without a feed. */
uint32_t rp_plan_feeds(const rp_plan *plan);
/* Op `micro` of a step of `step_samples`; false: the step has no more. It has at least one op,
 * without samples if the node's share is empty. */
bool rp_plan_feed_op(const rp_plan *plan, uint32_t feed, uint64_t step, uint32_t step_samples,
                     uint32_t micro, rp_op *out);
/* The transfers that the host sends for it, labels first; otherwise like rp_plan_transfers(). */
uint32_t rp_plan_feed_transfers(const rp_plan *plan, uint32_t feed, const rp_op *op,
                                uint32_t eval_samples, rp_transfer *out);
/* The stage whose op sends over an edge; 0 for the host. */
uint32_t rp_plan_sending_stage(const rp_plan_edge *edge);
/* Samples of a full parcel, which depend on the sender; inputs have the first stage's size. */
static inline uint32_t rp_plan_parcel_samples(const rp_plan *plan, const rp_plan_edge *edge) {
    const rp_plan_stage *from = &plan->stage[rp_plan_sending_stage(edge)];
    return edge->carries == RP_CARRIES_GRADIENT ? from->micro_backward : from->micro_forward;
}
/* Bytes of one sample as sent, for inputs, activations and gradients. */
uint64_t rp_plan_sample_bytes(const rp_plan_edge *edge, const rp_model *model);
/* Sets parcel_bytes of such edges, which the text does not contain. */
void rp_plan_note_bytes(rp_plan *plan, const rp_model *model);
/* Codecs at the boundaries of a stage: [upper][of gradients]; f32 if there is no boundary. Inputs
 * pass the lower boundary of stage 0. */
void rp_plan_codecs_of(const rp_plan *plan, uint32_t stage, rp_codec out[2][2]);
bool rp_plan_has_codec(const rp_plan *plan); /* whether any codec is not f32 */
rp_codec rp_plan_input_codec(const rp_plan *plan);

/* Replays the plan as a net; nodes from `node_count` on are the host's feeds. `windows`: senders
 * wait for room. Costs are indexed by hold. errors FAULT: deadlock, or work left; MEMORY */
rp_err rp_plan_replay(rp_arena *arena, const rp_plan *plan, const rp_sched_costs *costs,
                      bool windows, const rp_sched_visitor *visit, uint32_t lazy,
                      rp_sched_facts *out) RP_MUST_CHECK;

#endif
