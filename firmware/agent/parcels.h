/* What a board's parcels take of its processor's memory at most: those that have come or may come,
 * and those that wait to be sent or to be acknowledged. By the plan's windows, before a link is
 * opened. */
#ifndef RP_AGENT_PARCELS_H
#define RP_AGENT_PARCELS_H

#include "plan/plan.h"
#include "stage/job.h"

typedef struct {
    uint64_t bytes;      /* of all edges of the node */
    uint64_t edge_bytes; /* of the edge that takes most */
    uint32_t edge;       /* .. of the plan */
    uint32_t edge_parcels;
} rp_parcel_memory;

/* Of each edge as many full parcels as its window has, and of each link the parcels for which
 * credit is on its way back. Stashes do not count: what they have only the stage's layout knows.
 * `job`: of any stage of the node. Pure. */
rp_parcel_memory rp_parcel_memory_of(const rp_plan *plan, uint32_t node, const rp_job *job);

/* The memory where parcels lie. */
typedef struct {
    bool apart;           /* the device has memory of its own, and its stages lie there */
    uint64_t stage_bytes; /* of the stages; apart: of their stashes that are offloaded */
    uint64_t limit_bytes; /* for all of it */
} rp_parcel_room;

/* Whether they fit beside what the stages take. errors  LIMIT: with both, and the edge that takes
 * most */
rp_err rp_parcel_memory_check(const rp_plan *plan, uint32_t node, const rp_parcel_memory *parcels,
                              const rp_parcel_room *room) RP_MUST_CHECK;

#endif
