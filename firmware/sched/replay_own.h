/* Private to replay*.c. */
#ifndef RP_SCHED_REPLAY_OWN_H
#define RP_SCHED_REPLAY_OWN_H

#include "sched/ledger.h"
#include "sched/replay.h"

typedef struct {
    uint64_t updates;
    rp_ledger held; /* forwards whose backward has not run yet */
    rp_ledger owed; /* input gradients whose weight gradient has not run yet */
} rp_replay_hold;

typedef struct {
    rp_ledger parcels; /* parcels sent and not yet taken */
    /* the first edge between the same two nodes, or on the same medium, whose time they share */
    uint32_t link;
    bool on_medium;
    uint32_t queued; /* parcels waiting for a turn on the link */
    double free;     /* time from which the link is free */
    double has_room; /* time since which there is room */
} rp_replay_route;

typedef struct {
    rp_sched_state state;
    rp_op op; /* the next op */
    bool over, ready;
    double start;          /* earliest start of `op`, when ready */
    double free;           /* end of the previous op */
    rp_transfer *transfer; /* transfers of `op` */
    uint32_t transfer_count;
    uint32_t *hold; /* indices of its holds */
    uint32_t hold_count;
    uint32_t *edge; /* indices of edges that begin or end here */
    uint32_t edge_count;
} rp_replay_node;

/* A parcel that waits for its link, from the time when it is ready. */
typedef struct rp_replay_turn {
    struct rp_replay_turn *next;
    uint32_t edge;
    uint64_t step;
    rp_range samples;
    double ready, busy, delay;
} rp_replay_turn;

typedef struct {
    rp_arena arena; /* for everything except the facts; freed at the end */
    rp_piece_pool pool;
    const rp_sched_net *net;
    const rp_sched_costs *costs;
    const rp_sched_visitor *visit;
    uint32_t lazy;
    rp_replay_node *runner;
    rp_replay_hold *holder; /* indexed by hold */
    rp_replay_route *route; /* indexed by edge */
    rp_replay_turn *turn;   /* list of waiting parcels, sorted */
    rp_replay_turn *spare;
    rp_sched_facts *facts;
} rp_replay;

/* ---- replay_turns.c ---------------------------------------------------------------------------
 */

/* Sends the parcel as soon as its link is free. errors MEMORY */
rp_err rp_replay_depart(rp_replay *r, const rp_replay_turn *turn) RP_MUST_CHECK;
/* Queues the parcel after all that are ready sooner. errors MEMORY */
rp_err rp_replay_queue(rp_replay *r, const rp_replay_turn *turn) RP_MUST_CHECK;
/* Sends the first waiting parcel, which must exist. *node: its destination. errors MEMORY */
rp_err rp_replay_take_turn(rp_replay *r, uint32_t *node) RP_MUST_CHECK;

/* ---- replay_wait.c --------------------------------------------------------------------------- */

/* The hold of the node's next op, or RP_NO_NODE. */
uint32_t rp_replay_hold_of(const rp_replay *r, const rp_replay_node *n);

/* What the node's next op waits for, or NULL and the time when it can start. *edge: the edge that
 * it arrives over or that has no room; RP_NO_NODE: an op of the node itself. */
const char *rp_replay_missing(const rp_replay *r, const rp_replay_node *n, double *start,
                              uint32_t *edge);

/* Fails with a message that follows the waiting nodes from the first one until one repeats.
 * errors  FAULT; MEMORY */
rp_err rp_replay_fail_deadlock(rp_replay *r) RP_MUST_CHECK;

/* errors  FAULT: forwards, gradients or parcels are left at the end */
rp_err rp_replay_check_empty(const rp_replay *r) RP_MUST_CHECK;

#endif
