/* Replay: the op lists of all nodes run against each other, with costs or without. Drawings, the
 * time of a step, memory (what is in flight), room on the edges and deadlocks are measured.
 *
 * A net says who runs which list, and which transfers belong to an op; a transfer is an op of its
 * edge, with a start and an end. What travels is matched by step and sample, never by the ranges in
 * which it was sent: both ends of an edge may cut a step differently. */
#ifndef RP_SCHED_REPLAY_H
#define RP_SCHED_REPLAY_H

#include "sched/sched.h"

enum { RP_NO_NODE = UINT32_MAX };

/* A node holds a stage. */
typedef struct {
    uint32_t node, stage;
    rp_role role;
} rp_sched_hold;

typedef struct {
    uint32_t from, to;   /* nodes */
    uint32_t window;     /* parcels sent and not yet taken, at most; 0 = any number */
    const char *carries; /* "an activation", for messages */
} rp_sched_edge;

/* What an op receives or sends over one edge. */
typedef struct {
    uint32_t edge;
    bool send;
    bool before; /* the op: a receive, which it waits for; or what earlier ops have made, which
                    leaves as soon as the node has come to this op, window or not */
    uint64_t step;
    rp_range samples;
} rp_transfer;

typedef struct rp_sched_net rp_sched_net;
struct rp_sched_net {
    const char *name;             /* of the schedule, in messages */
    const char *a_node;           /* what a node is called: "stage", "node" */
    const char *const *node_name; /* in place of numbers; NULL: none */
    uint32_t node_count, hold_count, edge_count;
    const rp_sched_hold *hold; /* a node may have none: it only sends (the host) */
    const rp_sched_edge *edge;
    const void *context;

    /* The node's first state, and its next op. */
    void (*start)(const rp_sched_net *net, uint32_t node, rp_sched_state *state);
    bool (*next)(const rp_sched_net *net, uint32_t node, rp_sched_state *state, rp_op *op);
    /* Fills out[], at most one a edge of the node; returns how many. */
    uint32_t (*transfers)(const rp_sched_net *net, uint32_t node, const rp_op *op,
                          rp_transfer *out);
};

/* Costs in any one unit; arrays by hold (in a net of a shape: by stage). send[h]: what hold h sends
 * to another node, overlapping compute; one parcel at a time from one node to another;
 * send_back[h]: the same of its gradients, NULL: as send. delay[h]: how long what is sent is on its
 * way besides, while the link takes the next one. A NULL array: forward 1, backward 1 (input and
 * weight 1/2 each), update 0, send 0, delay 0. Costs are per full microbatch, of a backward and
 * what it sends per one of its own size, and scaled by count / size, except an update's and a
 * delay. edge[e], where it is given, stands in place of send and send_back: a full microbatch over
 * edge e, or what an update sends over it, which is not scaled; what the host sends, too.
 * medium[e], where it is given: edges with the same number above 0 take turns, a parcel at a time,
 * in the order in which parcels are ready, of those at the same time by their edges; 0: only with
 * edges between the same two nodes. */
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

/* Of a hold. */
typedef struct {
    uint32_t in_flight_max;        /* forwards not yet followed by their (input) backward */
    uint32_t deferred_weights_max; /* input gradients whose weight gradient is still to come */
    uint32_t stash_max;     /* both together: what was saved by forward and is still needed */
    uint32_t staleness_max; /* own updates between forward and backward of a microbatch */
    uint32_t versions_max;  /* weight versions alive when forward's are kept for backward */
    /* Of a hold with the backward only: of forwards elsewhere, from their end on. */
    double busy, end;
} rp_sched_stage_facts;

/* Of a node, over all that it holds. */
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

/* Sees every op, and every transfer, in order of its start (transfers: of the op that sends). */
typedef struct {
    void (*op)(void *context, const rp_sched_slot *slot);
    void (*transfer)(void *context, const rp_sched_transfer_slot *slot);
    void *context;
} rp_sched_visitor;

/* Runs all nodes of the net. `costs` and `visit` may be NULL; out's arrays lie in `arena`.
 *
 * An op starts when the node's last one has ended, what it receives has arrived, and the edges that
 * it sends over have room. A stash of which the middle was taken counts as two.
 *
 * lazy    RP_NO_NODE; or a node that does an op only when no other node can: then waiting_max of
 *         the edges to it is a bound that holds whatever the speeds of boards and links are, for no
 *         node can be further ahead of it than all others run as far as they get
 * source  METHODS 10: compute and serial, duplex links; gives (M+D-1)(tF+tB) for GPipe
 * errors  FAULT on deadlock, naming each node's waiting op and whom it waits for, and when anything
 *         is left behind; MEMORY
 */
rp_err rp_sched_replay_net(rp_arena *arena, const rp_sched_net *net, const rp_sched_costs *costs,
                           const rp_sched_visitor *visit, uint32_t lazy,
                           rp_sched_facts *out) RP_MUST_CHECK;

/* The same for a shape: all its stages in a row, on nodes of `chunks` stages each. shape->stage is
 * ignored, `visit` may be NULL. A kind that splits stages has two nodes and two holds for each:
 * forward on node and hold k, backward on 2 D - 1 - k. */
rp_err rp_sched_replay(rp_arena *arena, const rp_sched_kind *kind, const rp_sched_shape *shape,
                       const rp_sched_costs *costs,
                       void (*visit)(void *context, const rp_sched_slot *slot), void *context,
                       rp_sched_facts *out) RP_MUST_CHECK;

#endif
