/* The most processor memory that a board's parcels need: those that have arrived or may arrive, and
 * those that wait to be sent or acknowledged. Computed from the plan's windows before a link is
 * opened. */
#ifndef RP_AGENT_PARCELS_H
#define RP_AGENT_PARCELS_H

#include "plan/plan.h"
#include "stage/job.h"

typedef struct {
    uint64_t bytes;      /* of all edges of the node */
    uint64_t edge_bytes; /* of the edge that needs most */
    uint32_t edge;       /* index of that edge in the plan */
    uint32_t edge_parcels;
} rp_parcel_memory;

/* Counts as many full parcels for each edge as its window has, and for each link the parcels for
 * which credit is on its way back. Omits stashes, whose size only the stage's layout knows. `job`:
 * of any stage of the node. Pure. */
rp_parcel_memory rp_parcel_memory_of(const rp_plan *plan, uint32_t node, const rp_job *job);

/* The memory where parcels are stored. */
typedef struct {
    bool apart;           /* the device has its own memory, where its stages are stored */
    uint64_t stage_bytes; /* of the stages; if apart: of their offloaded stashes */
    uint64_t limit_bytes; /* limit for everything */
} rp_parcel_room;

/* Checks that they fit next to the stages.
 * errors  LIMIT: naming both sizes, and the edge that needs most */
rp_err rp_parcel_memory_check(const rp_plan *plan, uint32_t node, const rp_parcel_memory *parcels,
                              const rp_parcel_room *room) RP_MUST_CHECK;

#endif
