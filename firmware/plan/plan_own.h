/* Private to the room. */
#ifndef RP_PLAN_PLAN_OWN_H
#define RP_PLAN_PLAN_OWN_H

#include "plan/plan.h"

/* Whether shares have samples in common in a step of any size. */
static inline bool rp_plan_overlap(const double a[2], const double b[2]) {
    return a[0] < b[1] && b[0] < a[1];
}

static inline bool rp_plan_does_forward(const rp_plan_hold *hold) {
    return hold->role == RP_ROLE_BOTH || hold->role == RP_ROLE_FORWARD;
}

static inline bool rp_plan_does_backward(const rp_plan_hold *hold) {
    return hold->role == RP_ROLE_BOTH || hold->role == RP_ROLE_BACKWARD;
}

/* Calls `each` for every edge that the plan's holds need; stops at the first error. */
typedef struct {
    rp_err (*each)(void *context, const rp_plan_edge *edge);
    void *context;
} rp_plan_edge_visitor;
rp_err rp_plan_needed_edges(const rp_plan *plan, const rp_plan_edge_visitor *visitor) RP_MUST_CHECK;

/* ties.c: fills plan->tie from the model. */
rp_err rp_plan_find_ties(rp_arena *arena, const rp_model *model, const rp_cut *cut,
                         rp_plan *plan) RP_MUST_CHECK;
/* Checks plan->tie against the model; uses `arena` for scratch. errors USAGE */
rp_err rp_plan_check_ties(rp_arena *arena, const rp_plan *plan,
                          const rp_model *model) RP_MUST_CHECK;
/* The edges with the tied gradients and weights of a stage. */
rp_err rp_plan_visit_ties(const rp_plan *plan, const rp_plan_edge_visitor *visitor,
                          uint32_t stage) RP_MUST_CHECK;
/* Whether it is the node's first update of a step, which is when it exchanges tied gradients. */
bool rp_plan_is_first_update(const rp_plan *plan, uint32_t node, const rp_op *op);

/* Checks that only inputs, activations and gradients have a codec, the same on all edges of a
 * boundary. errors USAGE */
rp_err rp_plan_check_codecs(const rp_plan *plan) RP_MUST_CHECK;

/* Checks stage number k, which has a layer with batch statistics (nn/cut.h), in a schedule with
 * sizes: its only size must be `micro`. errors USAGE */
rp_err rp_plan_check_whole(const char *source, uint32_t k, const rp_plan_stage *stage,
                           uint32_t micro, const rp_layer *layer) RP_MUST_CHECK;

/* Fills node_edge_first and node_edge. errors MEMORY */
rp_err rp_plan_index_edges(rp_arena *arena, rp_plan *plan) RP_MUST_CHECK;

/* A shortened run in which everything that can happen happens: pipes fill, full steps until nothing
 * new occurs, and the short last step of an epoch. Borrows everything except the sizes. */
rp_plan rp_plan_shorten(const rp_plan *plan);

#endif
