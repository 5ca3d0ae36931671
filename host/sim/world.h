/* Virtual time: nodes that are stepped in the order of their deadlines.
 *
 * A node is a state machine `deadline = step(node, now)`. The world takes the earliest deadline,
 * sets the clock to it and steps that node; nothing else moves time. Deadlines at the same time are
 * taken in an order drawn from the seed, so that different seeds see different interleavings and
 * the same seed always the same one. A step may cost its node virtual time: until then the node is
 * not stepped again, whatever wakes it. Everything costs O(log nodes). */
#ifndef RP_SIM_WORLD_H
#define RP_SIM_WORLD_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"

#define RP_WORLD_NEVER INT64_MAX

typedef struct rp_world rp_world;

/* Does what can be done at `now_ns`; gives the time when it wants to be stepped again
 * (RP_WORLD_NEVER: only when it is woken). A deadline that is over counts as now. */
typedef int64_t (*rp_world_step)(void *context, int64_t now_ns);

/* `seed`: of the order of simultaneous steps. errors MEMORY */
rp_err rp_world_open(rp_arena *arena, uint32_t nodes, uint64_t seed, rp_world **out) RP_MUST_CHECK;

/* The clock that all nodes read; borrowed, as long as the world. */
const rp_clock *rp_world_clock(const rp_world *world);
int64_t rp_world_now_ns(const rp_world *world);

/* Node `index` is due now. `cost_ns`: virtual time of each of its steps. A node that is there
 * already gets the new step function. */
void rp_world_put_node(rp_world *world, uint32_t index, rp_world_step step, void *context,
                       int64_t cost_ns);
/* It is not stepped any more. */
void rp_world_remove_node(rp_world *world, uint32_t index);
/* Something came for it: it is due as soon as its last step is over. */
void rp_world_wake_node(rp_world *world, uint32_t index);

/* Steps the earliest node. False when no node has a deadline before `until_ns`: the clock is then
 * at `until_ns`. */
bool rp_world_step_next(rp_world *world, int64_t until_ns);
uint64_t rp_world_steps(const rp_world *world); /* so far */

#endif
