/* Virtual time: nodes that are stepped in the order of their deadlines.
 *
 * A node is a state machine `deadline = step(node, now)`. The world takes the earliest deadline,
 * sets the clock to it and steps that node; nothing else moves time. Equal deadlines are taken in
 * an order drawn from the seed, so different seeds see different interleavings, and a seed always
 * sees the same one. A step may cost its node virtual time, during which the node is not stepped
 * again, whatever wakes it. Every operation is O(log nodes). */
#ifndef RP_SIM_WORLD_H
#define RP_SIM_WORLD_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"

#define RP_WORLD_NEVER INT64_MAX

typedef struct rp_world rp_world;

/* Does everything that is due at `now_ns`; returns the time of its next step, or RP_WORLD_NEVER to
 * be stepped only when woken. A time in the past counts as now. */
typedef int64_t (*rp_world_step)(void *context, int64_t now_ns);

/* `seed` draws the order of simultaneous steps. errors MEMORY */
rp_err rp_world_open(rp_arena *arena, uint32_t nodes, uint64_t seed, rp_world **out) RP_MUST_CHECK;

/* The clock that all nodes read; borrowed, valid as long as the world. */
const rp_clock *rp_world_clock(const rp_world *world);
int64_t rp_world_now_ns(const rp_world *world);

/* Adds node `index`, due now, or replaces its step function. `cost_ns`: virtual time of each of its
 * steps. */
void rp_world_put_node(rp_world *world, uint32_t index, rp_world_step step, void *context,
                       int64_t cost_ns);
/* The node is not stepped any more. */
void rp_world_remove_node(rp_world *world, uint32_t index);
/* Makes the node due as soon as the cost of its last step is over. */
void rp_world_wake_node(rp_world *world, uint32_t index);

/* Steps the earliest node. False when no node has a deadline before `until_ns`: the clock is then
 * at `until_ns`. */
bool rp_world_step_next(rp_world *world, int64_t until_ns);
uint64_t rp_world_steps(const rp_world *world); /* so far */

#endif
