/* Feeding boards that share the first stage: one whose link has no room holds back nobody else. */
#include "boards.h"
#include "train/train_own.h"

enum { STEPS = 8, ON_THE_WAY = 4 }; /* an epoch's steps; batches that a feed keeps at once */

static test_ring ring; /* large for a stack */
static char plan_path[600];

/* A layer with statistics of a microbatch can not be shared: another model than the other tests'.
 */
static void prepare(const char *name) {
    static const char model[] = "input: data\nlayers:\n"
                                "  - {name: fc, kind: dense, out: 8}\n"
                                "  - {name: out, kind: dense, out: classes}\n";
    ring_prepare(&ring, name);
    write_text("model.yaml", model);
    ring_set(&ring, "data.train=128");
    ring_set(&ring, "train.microbatch=1");
}

/* The whole model on both boards, each for half of the samples. */
static void write_plan(void) {
    static const uint32_t first[] = {0, 2};
    static const char *const names[] = {"0", "1"};
    rp_cut cut = {.stage_count = 1, .first = first};
    rp_plan_node node[BOARDS];
    rp_plan_hold hold[BOARDS];
    rp_plan *plan;
    prepare("row");
    ring_open(&ring);
    const rp_runfile *run = ring.c->run;
    assert_int_equal(run->model->layer_count, first[1]);
    const rp_plan_options options = {.model_name = run->model_name,
                                     .model = run->model,
                                     .cut = &cut,
                                     .method = &run->method,
                                     .boards = names,
                                     .batch = run->batch,
                                     .micro = run->micro,
                                     .epoch_samples = run->data.count[RP_SPLIT_TRAIN],
                                     .steps = run->steps};
    expect_ok(rp_plan_make(&ring.arena, &options, &plan));
    for (uint32_t k = 0; k < BOARDS; k++) {
        node[k] = plan->node[0];
        node[k].name = names[k];
        node[k].hold_first = k;
        hold[k] = plan->hold[0];
        hold[k].node = k;
        hold[k].share[0] = 0.5 * k;
        hold[k].share[1] = 0.5 * (k + 1);
    }
    plan->node = node;
    plan->hold = hold;
    plan->node_count = plan->hold_count = BOARDS;
    expect_ok(rp_plan_connect(&ring.arena, run->model, &cut, plan));
    expect_ok(rp_plan_measure(plan));
    for (uint32_t e = 0; e < plan->edge_count; e++) { /* else all batches would be on their way */
        plan->edge[e].window = plan->edge[e].carries == RP_CARRIES_INPUT ? 2 : plan->edge[e].window;
    }
    (void)snprintf(plan_path, sizeof plan_path, "%s", in_folder("shared.json"));
    FILE *file = fopen(plan_path, "w");
    assert_non_null(file);
    expect_ok(rp_plan_write(plan, file));
    assert_int_equal(fclose(file), 0);
    ring_close(&ring);
}

static void step_for(uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; i++) {
        ring_step(&ring, RP_NS_PER_MS);
    }
    assert_int_equal(ring.c->machine.state, RP_CONTROL_TRAIN);
}

static void a_link_without_room_stops_no_other(void **state) {
    (void)state;
    write_plan();
    for (uint32_t cut = 0; cut < BOARDS; cut++) {
        prepare("out");
        ring.options.plan = plan_path;
        ring.board[cut].feed_is_cut = true;
        ring.mute = RP_KIND_START; /* boards take what comes, and say nothing */
        ring_open(&ring);
        assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
        step_for(300);
        assert_int_equal(ring.board[cut].inputs, 0);
        assert_int_equal(ring.board[1 - cut].inputs, ON_THE_WAY * BATCH / 2);
        ring.board[cut].feed_is_cut = false;
        step_for(300);
        for (uint32_t k = 0; k < BOARDS; k++) {
            assert_int_equal(ring.board[k].inputs, STEPS * BATCH / 2);
        }
        assert_true(rp_feed_quiet(ring.c->train->feed));
        assert_int_equal(rp_feed_untouched(ring.c->train->feed), STEPS);
        ring_close(&ring);
    }
    (void)unlink(plan_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_link_without_room_stops_no_other, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
