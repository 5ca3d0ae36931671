/* Inside of the replay; only for replay*.c. */
#ifndef RP_SCHED_REPLAY_OWN_H
#define RP_SCHED_REPLAY_OWN_H

#include "sched/ledger.h"
#include "sched/replay.h"

typedef struct {
    uint64_t updates;
    rp_ledger held; /* own forwards, backward to come */
    rp_ledger owed; /* own input gradients, weight gradient to come */
} rp_replay_hold;

typedef struct {
    rp_ledger parcels; /* sent, not yet taken */
    uint32_t link;     /* the first edge between the same two nodes, or on the same medium: they
                          share its time */
    bool on_medium;
    uint32_t queued; /* for a turn on it */
    double free;     /* of the link */
    double has_room; /* since when */
} rp_replay_route;

typedef struct {
    rp_sched_state state;
    rp_op op; /* the next one */
    bool over, ready;
    double start;          /* of `op` when ready */
    double free;           /* end of the last op */
    rp_transfer *transfer; /* of `op` */
    uint32_t transfer_count;
    uint32_t *hold; /* indices of its holds */
    uint32_t hold_count;
    uint32_t *edge; /* that begin or end here */
    uint32_t edge_count;
} rp_replay_node;

/* A parcel on its way over an edge, from when it is ready. */
typedef struct rp_replay_turn {
    struct rp_replay_turn *next;
    uint32_t edge;
    uint64_t step;
    rp_range samples;
    double ready, busy, delay;
} rp_replay_turn;

typedef struct {
    rp_arena arena; /* all but the facts; gone at the end */
    rp_piece_pool pool;
    const rp_sched_net *net;
    const rp_sched_costs *costs;
    const rp_sched_visitor *visit;
    uint32_t lazy;
    rp_replay_node *runner;
    rp_replay_hold *holder; /* by hold */
    rp_replay_route *route; /* by edge */
    rp_replay_turn *turn;   /* all that wait for one, the next first */
    rp_replay_turn *spare;
    rp_sched_facts *facts;
} rp_replay;

/* ---- replay_turns.c ---------------------------------------------------------------------------
 */

/* The parcel leaves when its link is free. errors MEMORY */
rp_err rp_replay_depart(rp_replay *r, const rp_replay_turn *turn) RP_MUST_CHECK;
/* .. when it is its turn: behind all that are ready sooner. errors MEMORY */
rp_err rp_replay_queue(rp_replay *r, const rp_replay_turn *turn) RP_MUST_CHECK;
/* The next one that waits leaves; there is one. *node: where it goes. errors MEMORY */
rp_err rp_replay_take_turn(rp_replay *r, uint32_t *node) RP_MUST_CHECK;

/* ---- replay_wait.c --------------------------------------------------------------------------- */

/* The hold of the node's next op, or RP_NO_NODE. */
uint32_t rp_replay_hold_of(const rp_replay *r, const rp_replay_node *n);

/* What the node's next op waits for, or NULL with the time when it can start. *edge: what it waits
 * for comes over it, or has no room on it; RP_NO_NODE: its own. */
const char *rp_replay_missing(const rp_replay *r, const rp_replay_node *n, double *start,
                              uint32_t *edge);

/* From the first node that waits, who waits for whom, until one comes again. errors FAULT; MEMORY
 */
rp_err rp_replay_fail_deadlock(rp_replay *r) RP_MUST_CHECK;

/* errors FAULT: forwards, gradients or parcels are left at the end */
rp_err rp_replay_check_empty(const rp_replay *r) RP_MUST_CHECK;

#endif
