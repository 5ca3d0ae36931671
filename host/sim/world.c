#include "sim/world.h"

typedef struct {
    rp_world_step step; /* NULL: no such node now */
    void *context;
    int64_t cost_ns, free_ns, deadline_ns;
    uint32_t tie;  /* the smallest of equal deadlines is first */
    uint32_t heap; /* position in the heap */
} node;

struct rp_world {
    rp_clock clock;
    rp_rng rng;
    node *node;
    uint32_t count;
    uint32_t *heap; /* node indexes; the earliest first */
    uint64_t steps;
};

rp_err rp_world_open(rp_arena *arena, uint32_t nodes, uint64_t seed, rp_world **out) {
    rp_world *w;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &w));
    RP_TRY(RP_ARENA_NEW(arena, nodes, &w->node));
    RP_TRY(RP_ARENA_NEW(arena, nodes, &w->heap));
    w->clock = rp_clock_stepped(0);
    w->rng = rp_rng_named(seed, "sim/order");
    w->count = nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        w->node[i].deadline_ns = RP_WORLD_NEVER;
        w->node[i].heap = w->heap[i] = i;
    }
    *out = w;
fail:
    return err;
}

const rp_clock *rp_world_clock(const rp_world *world) {
    return &world->clock;
}

int64_t rp_world_now_ns(const rp_world *world) {
    return world->clock.stepped_ns;
}

uint64_t rp_world_steps(const rp_world *world) {
    return world->steps;
}

/* ---- the heap -------------------------------------------------------------------------------- */

static bool is_earlier(const rp_world *w, uint32_t a, uint32_t b) {
    const node *x = &w->node[a];
    const node *y = &w->node[b];
    if (x->deadline_ns != y->deadline_ns) {
        return x->deadline_ns < y->deadline_ns;
    }
    return x->tie != y->tie ? x->tie < y->tie : a < b;
}

static void swap_places(rp_world *w, uint32_t i, uint32_t j) {
    const uint32_t a = w->heap[i];
    const uint32_t b = w->heap[j];
    w->heap[i] = b;
    w->heap[j] = a;
    w->node[b].heap = i;
    w->node[a].heap = j;
}

static void move_node(rp_world *w, uint32_t index) {
    uint32_t at = w->node[index].heap;
    while (at > 0 && is_earlier(w, w->heap[at], w->heap[(at - 1) / 2])) {
        swap_places(w, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t first = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < w->count; child++) {
            first = is_earlier(w, w->heap[child], w->heap[first]) ? child : first;
        }
        if (first == at) {
            return;
        }
        swap_places(w, at, first);
        at = first;
    }
}

static void set_deadline(rp_world *w, uint32_t index, int64_t at_ns) {
    node *n = &w->node[index];
    const int64_t now_ns = w->clock.stepped_ns;
    at_ns = at_ns < now_ns ? now_ns : at_ns;
    at_ns = at_ns < n->free_ns ? n->free_ns : at_ns;
    if (n->deadline_ns == at_ns) {
        return;
    }
    n->deadline_ns = at_ns;
    n->tie = rp_rng_u32(&w->rng);
    move_node(w, index);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

void rp_world_put_node(rp_world *w, uint32_t index, rp_world_step step, void *context,
                       int64_t cost_ns) {
    RP_ASSERT(index < w->count && step && cost_ns >= 0);
    node *n = &w->node[index];
    n->step = step;
    n->context = context;
    n->cost_ns = cost_ns;
    n->free_ns = 0;
    set_deadline(w, index, w->clock.stepped_ns);
}

void rp_world_remove_node(rp_world *w, uint32_t index) {
    RP_ASSERT(index < w->count);
    w->node[index].step = NULL;
    set_deadline(w, index, RP_WORLD_NEVER);
}

void rp_world_wake_node(rp_world *w, uint32_t index) {
    RP_ASSERT(index < w->count);
    const node *n = &w->node[index];
    if (n->step && n->deadline_ns > w->clock.stepped_ns) {
        set_deadline(w, index, w->clock.stepped_ns);
    }
}

bool rp_world_step_next(rp_world *w, int64_t until_ns) {
    const uint32_t index = w->heap[0];
    node *n = &w->node[index];
    if (n->deadline_ns >= until_ns) {
        w->clock.stepped_ns = until_ns > w->clock.stepped_ns ? until_ns : w->clock.stepped_ns;
        return false;
    }
    const int64_t now_ns = n->deadline_ns;
    w->clock.stepped_ns = now_ns;
    n->free_ns = now_ns + n->cost_ns;
    n->deadline_ns = RP_WORLD_NEVER; /* so that a wake-up during the step is kept */
    move_node(w, index);
    const int64_t next_ns = n->step(n->context, now_ns);
    w->steps++;
    if (n->step && next_ns < n->deadline_ns) {
        set_deadline(w, index, next_ns);
    }
    return true;
}
