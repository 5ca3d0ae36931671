/* The replay simulates the op lists of all nodes against each other, with or without costs. It
 * measures the drawing, the time of a step, memory (microbatches in flight), room on the edges, and
 * deadlocks.
 *
 * A net says which node runs which list, and which transfers belong to an op; a transfer is an op
 * of its edge, with a start and an end. Transfers are matched by step and sample, never by the
 * ranges in which they were sent, because the two ends of an edge may divide a step differently. */
#ifndef RP_SCHED_REPLAY_H
#define RP_SCHED_REPLAY_H

#include "sched/sched.h"

enum { RP_NO_NODE = UINT32_MAX };

/* A stage held by a node. */
typedef struct {
    uint32_t node, stage;
    rp_role role;
} rp_sched_hold;

typedef struct {
    uint32_t from, to;   /* nodes */
    uint32_t window;     /* most parcels sent and not yet taken; 0 = unlimited */
    const char *carries; /* for messages, such as "an activation" */
} rp_sched_edge;

/* A receive or a send of an op over one edge. */
typedef struct {
    uint32_t edge;
    bool send;
    /* for a receive: the op waits for it; for a send: earlier ops have made it, so it is sent as
     * soon as the node reaches this op, without waiting for room */
    bool before;
    uint64_t step;
    rp_range samples;
} rp_transfer;

typedef struct rp_sched_net rp_sched_net;
struct rp_sched_net {
    const char *name;             /* name of the schedule, for messages */
    const char *a_node;           /* word for a node in messages: "stage", "node" */
    const char *const *node_name; /* used instead of numbers; NULL: none */
    uint32_t node_count, hold_count, edge_count;
    const rp_sched_hold *hold; /* a node without holds only sends (the host) */
    const rp_sched_edge *edge;
    const void *context;

    /* The node's initial state, and its next op. */
    void (*start)(const rp_sched_net *net, uint32_t node, rp_sched_state *state);
    bool (*next)(const rp_sched_net *net, uint32_t node, rp_sched_state *state, rp_op *op);
    /* Fills out[], at most one transfer for each edge of the node; returns the count. */
    uint32_t (*transfers)(const rp_sched_net *net, uint32_t node, const rp_op *op,
                          rp_transfer *out);
};

/* Costs in any one unit. Arrays are indexed by hold (in a net of a shape: by stage). A NULL array
 * means: forward 1, backward 1 (input and weight 1/2 each), update 0, send 0, delay 0.
 *
 * Costs are per full microbatch and scaled by count / size, except those of an update and a delay.
 * Those of a backward, and of what it sends, refer to the backward's own microbatch size.
 *
 *   send[h]       what hold h sends to another node; overlaps compute; one parcel at a time
 *                 between two nodes
 *   send_back[h]  the same for its gradients; NULL: as send
 *   delay[h]      additional time until arrival; the link already takes the next parcel
 *   edge[e]       if not NULL, replaces send and send_back, also for the host: a full microbatch
 *                 over edge e, or what an update sends over it, which is not scaled
 *   medium[e]     if not NULL, edges with the same number above 0 take turns, one parcel at a
 *                 time, in the order in which parcels are ready, then by edge index; with 0 an
 *                 edge shares only with edges between the same two nodes */
typedef struct {
    const double *forward, *backward_input, *backward_weight, *update, *send, *send_back, *delay;
    const double *edge;
    const uint32_t *medium;
} rp_sched_costs;

typedef struct {
    uint32_t node, stage;
    rp_op op;
    double start, end;
} rp_sched_slot;

/* From the start of sending to the arrival. */
typedef struct {
    uint32_t edge;
    uint64_t step;
    rp_range samples;
    double start, end;
} rp_sched_transfer_slot;

/* Results for a hold. */
typedef struct {
    uint32_t in_flight_max;        /* most forwards whose (input) backward has not run yet */
    uint32_t deferred_weights_max; /* input gradients whose weight gradient is still to come */
    uint32_t stash_max;     /* both together: what was saved by forward and is still needed */
    uint32_t staleness_max; /* own updates between forward and backward of a microbatch */
    uint32_t versions_max;  /* weight versions alive when forward's are kept for backward */
    /* For a hold with only the backward: busy and end of its forwards on other nodes. */
    double busy, end;
} rp_sched_stage_facts;

/* Results for a node, over all stages that it holds. */
typedef struct {
    uint32_t in_flight_max, stash_max;
    double busy, end;
} rp_sched_node_facts;

typedef struct {
    uint64_t parcels;
    uint32_t waiting_max; /* parcels sent and not yet taken, in this replay */
    uint32_t taken_max;   /* parcels that one op takes */
    double busy;          /* sending, without the delay */
} rp_sched_edge_facts;

typedef struct {
    double makespan;
    double bubble;               /* 1 - sum of busy / (nodes with a stage * makespan) */
    rp_sched_stage_facts *stage; /* by hold */
    rp_sched_node_facts *node;
    rp_sched_edge_facts *edge;
} rp_sched_facts;

/* Called for every op and transfer, ordered by start (transfers: of the sending op). */
typedef struct {
    void (*op)(void *context, const rp_sched_slot *slot);
    void (*transfer)(void *context, const rp_sched_transfer_slot *slot);
    void *context;
} rp_sched_visitor;

/* Runs all nodes of the net. `costs` and `visit` may be NULL; out's arrays are allocated in
 * `arena`.
 *
 * An op starts when the node's previous op has ended, everything it receives has arrived, and the
 * edges that it sends over have room. A stash from whose middle samples were taken counts as two.
 *
 * lazy    RP_NO_NODE, or a node that runs an op only when no other node can. waiting_max of the
 *         edges to it is then a bound for all speeds of boards and links
 *
 * source  METHODS 10: compute and serial, duplex links; gives (M+D-1)(tF+tB) for GPipe
 * errors  FAULT on deadlock, naming each node's waiting op and the node it waits for, and when
 *         anything is left over; MEMORY */
rp_err rp_sched_replay_net(rp_arena *arena, const rp_sched_net *net, const rp_sched_costs *costs,
                           const rp_sched_visitor *visit, uint32_t lazy,
                           rp_sched_facts *out) RP_MUST_CHECK;

/* Like rp_sched_replay_net(), for a shape: all its stages in a row, on nodes of `chunks` stages
 * each. shape->stage is ignored, `visit` may be NULL. A kind that splits stages has two nodes and
 * two holds for each split stage: forward on node and hold k, backward on 2 D - 1 - k. */
rp_err rp_sched_replay(rp_arena *arena, const rp_sched_kind *kind, const rp_sched_shape *shape,
                       const rp_sched_costs *costs,
                       void (*visit)(void *context, const rp_sched_slot *slot), void *context,
                       rp_sched_facts *out) RP_MUST_CHECK;

#endif
