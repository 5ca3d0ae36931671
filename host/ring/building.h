/* All boards that build an assignment: their time limit, progress and cost. */
#ifndef RP_RING_BUILDING_H
#define RP_RING_BUILDING_H

#include "record/sink.h"
#include "ring/ring.h"

/* Timeout of an assignment after the first one. Boards that have built before need little time
 * again; one that was never ready in this run may have to build all its kernels. */
int64_t rp_ring_build_limit_ns(const rp_ring *ring);
/* Progress of all boards: in kernels if boards have reported how many they need, else in boards.
 * out->text is `text`, borrowed. */
void rp_ring_tell_building(const rp_ring *ring, const char *text, rp_sink_part *out);
/* "4 boards are ready: 12 kernels built in 3.1 s, ..." */
void rp_ring_describe_ready(const rp_ring *ring, char *out, size_t bytes);

#endif
