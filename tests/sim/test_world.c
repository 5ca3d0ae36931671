/* Virtual time: who is stepped when. */
#include "expect.h"

#include <string.h>

#include "sim/world.h"

enum { NODES = 5 };

typedef struct {
    rp_world *world;
    char order[4096];
    uint32_t used;
    int64_t last_ns;
} story;

typedef struct {
    story *story;
    char name;
    int64_t every_ns;
    uint32_t wakes; /* the node that each of its steps wakes; NODES: none */
} actor;

static int64_t act_in_turn(void *context, int64_t now_ns) {
    actor *a = context;
    assert_true(now_ns >= a->story->last_ns);
    assert_int_equal(now_ns, rp_clock_now_ns(rp_world_clock(a->story->world)));
    a->story->last_ns = now_ns;
    if (a->story->used + 1 < sizeof a->story->order) {
        a->story->order[a->story->used++] = a->name;
    }
    if (a->wakes < NODES) {
        rp_world_wake_node(a->story->world, a->wakes);
    }
    return a->every_ns > 0 ? now_ns + a->every_ns : RP_WORLD_NEVER;
}

typedef struct {
    rp_arena arena;
    story story;
    actor actor[NODES];
} stage;

static void open_stage(stage *s, uint64_t seed) {
    *s = (stage){0};
    rp_arena_init(&s->arena, "world", 0);
    expect_ok(rp_world_open(&s->arena, NODES, seed, &s->story.world));
    for (uint32_t i = 0; i < NODES; i++) {
        s->actor[i] = (actor){&s->story, (char)('a' + i), 10, NODES};
    }
}

static void put_stage(stage *s, uint32_t i, int64_t cost_ns) {
    rp_world_put_node(s->story.world, i, act_in_turn, &s->actor[i], cost_ns);
}

static uint32_t count_of(const stage *s, char name) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->story.used; i++) {
        count += s->story.order[i] == name;
    }
    return count;
}

static void steps_by_deadline(void **state) {
    (void)state;
    stage s;
    open_stage(&s, 1);
    s.actor[0].every_ns = 10;
    s.actor[1].every_ns = 25;
    put_stage(&s, 0, 0);
    put_stage(&s, 1, 0);
    while (rp_world_step_next(s.story.world, 100)) {
    }
    assert_int_equal(rp_world_now_ns(s.story.world), 100);
    assert_int_equal(count_of(&s, 'a'), 10); /* at 0, 10 .. 90 */
    assert_int_equal(count_of(&s, 'b'), 4);  /* at 0, 25, 50, 75 */
    assert_int_equal(rp_world_steps(s.story.world), 14);
    rp_arena_finish(&s.arena);
}

static void run_all(stage *s, uint64_t seed) {
    open_stage(s, seed);
    for (uint32_t i = 0; i < NODES; i++) {
        put_stage(s, i, 0);
    }
    while (rp_world_step_next(s->story.world, 500)) {
    }
    rp_arena_finish(&s->arena);
}

static void ties_are_drawn_from_the_seed(void **state) {
    (void)state;
    stage a;
    stage b;
    stage c;
    run_all(&a, 1);
    run_all(&b, 1);
    run_all(&c, 2);
    assert_string_equal(a.story.order, b.story.order);
    assert_string_not_equal(a.story.order, c.story.order);
    assert_int_equal(a.story.used, 5 * 50);
    bool differs = false; /* within a run, too: not one fixed order again and again */
    for (uint32_t i = NODES; i < a.story.used; i++) {
        differs |= a.story.order[i] != a.story.order[i % NODES];
    }
    assert_true(differs);
}

static void waking_waits_for_the_cost_of_a_step(void **state) {
    (void)state;
    stage s;
    open_stage(&s, 1);
    s.actor[0].wakes = 1; /* every 10 */
    s.actor[1].every_ns = 0;
    put_stage(&s, 0, 0);
    put_stage(&s, 1, 35);
    while (rp_world_step_next(s.story.world, 100)) {
    }
    assert_int_equal(count_of(&s, 'b'), 3); /* at 0, 35, 70 */
    rp_arena_finish(&s.arena);
}

static void who_is_removed_is_silent(void **state) {
    (void)state;
    stage s;
    open_stage(&s, 1);
    put_stage(&s, 0, 0);
    put_stage(&s, 1, 0);
    assert_true(rp_world_step_next(s.story.world, 5));
    assert_true(rp_world_step_next(s.story.world, 5));
    rp_world_remove_node(s.story.world, 0);
    rp_world_wake_node(s.story.world, 0);
    while (rp_world_step_next(s.story.world, 50)) {
    }
    assert_int_equal(count_of(&s, 'a'), 1);
    put_stage(&s, 0, 0); /* and comes back */
    assert_true(rp_world_step_next(s.story.world, 51));
    rp_arena_finish(&s.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_by_deadline),
        cmocka_unit_test(ties_are_drawn_from_the_seed),
        cmocka_unit_test(waking_waits_for_the_cost_of_a_step),
        cmocka_unit_test(who_is_removed_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
