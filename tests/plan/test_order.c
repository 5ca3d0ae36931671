/* Who does what when, and what travels for it. */
#include "plans.h"

static const char *const schedules[] = {"gpipe",
                                        "1f1b",
                                        "zb-h1",
                                        "umpipe",
                                        "{kind: interleaved-1f1b, chunks: 2}",
                                        "{kind: interleaved-1f1b, chunks: 3}",
                                        "async",
                                        "pipedream",
                                        "pipedream-2bw",
                                        "spectrain",
                                        "pipeoptim",
                                        "{kind: pipeoptim, advance: 2}",
                                        "xpipe",
                                        "ea-pipe",
                                        "{kind: ea-pipe, replicas: 2}",
                                        "avgpipe"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

/* The list of a node of today's topology is the schedule's. */
static void lists_are_the_schedules(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SCHEDULES; i++) {
        const plan_case c = {schedules[i], 4, 8, 2, 20, 5};
        rp_arena arena;
        rp_plan *plan;
        rp_arena_init(&arena, "test", 0);
        expect_ok(make_plan(&arena, &c, &plan));
        for (uint32_t k = 0; k < 4; k++) {
            rp_sched_shape shape = {.stages = plan->stage_count,
                                    .stage = k,
                                    .step_end = 5,
                                    .epoch_samples = 20,
                                    .batch = 8,
                                    .micro = 2};
            rp_sched_state want;
            rp_plan_list list;
            rp_op a, b;
            rp_method_order(&plan->method, &shape);
            rp_sched_start(&want, &shape);
            rp_plan_list_start(plan, k, &list);
            while (plan->method.kind->next(&want, &a)) {
                assert_true(rp_plan_list_next(&list, &b));
                assert_int_equal(a.kind, b.kind);
                assert_int_equal(a.stage, b.stage);
                assert_int_equal(a.step, b.step);
                assert_int_equal(a.samples.first, b.samples.first);
                assert_int_equal(a.samples.count, b.samples.count);
            }
            assert_false(rp_plan_list_next(&list, &b));
        }
        rp_arena_finish(&arena);
    }
}

static const rp_plan_edge *edge_of(const rp_plan *plan, const rp_transfer *t) {
    return &plan->edge[t->edge];
}

static void transfers_of_a_row(void **state) {
    (void)state;
    const plan_case c = {"1f1b", 3, 8, 2, 20, 2};
    rp_arena arena;
    rp_plan *plan;
    rp_transfer t[8];
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    assert_int_equal(plan->edge_count, 6); /* input, label, two up, two down */
    const rp_op forward = {.kind = RP_OP_FORWARD, .stage = 1, .step = 1, .samples = {2, 2}};
    assert_int_equal(rp_plan_transfers(plan, 1, &forward, 0, t), 2);
    assert_false(t[0].send);
    assert_int_equal(edge_of(plan, &t[0])->from, 0);
    assert_int_equal(edge_of(plan, &t[0])->carries, RP_CARRIES_ACTIVATION);
    assert_true(t[1].send);
    assert_int_equal(edge_of(plan, &t[1])->to, 2);
    assert_int_equal(t[1].step, 1);
    assert_int_equal(t[1].samples.first, 2);
    assert_int_equal(t[1].samples.count, 2);
    const rp_op backward = {.kind = RP_OP_BACKWARD, .stage = 2, .samples = {6, 2}, .micro = 3};
    assert_int_equal(rp_plan_transfers(plan, 2, &backward, 0, t), 2);
    assert_int_equal(edge_of(plan, &t[0])->carries, RP_CARRIES_LABEL);
    assert_int_equal(edge_of(plan, &t[1])->carries, RP_CARRIES_GRADIENT);
    assert_int_equal(edge_of(plan, &t[1])->to, 1);
    const rp_op first = {.kind = RP_OP_FORWARD, .samples = {0, 2}};
    assert_int_equal(rp_plan_transfers(plan, 0, &first, 0, t), 2);
    assert_int_equal(edge_of(plan, &t[0])->carries, RP_CARRIES_INPUT);
    const rp_op update = {.kind = RP_OP_UPDATE, .stage = 1, .samples = {0, 8}};
    assert_int_equal(rp_plan_transfers(plan, 1, &update, 0, t), 0);
    /* an evaluation scores with the forward */
    const rp_op scored = {.kind = RP_OP_FORWARD, .stage = 2, .samples = {0, 2}};
    assert_int_equal(rp_plan_transfers(plan, 2, &scored, 0, t), 1);
    assert_int_equal(rp_plan_transfers(plan, 2, &scored, 8, t), 2);
    /* whose steps are not those of training: step 2 has 4 samples there */
    const rp_op late = {.kind = RP_OP_FORWARD, .stage = 1, .step = 2, .samples = {6, 2}};
    assert_int_equal(rp_plan_transfers(plan, 1, &late, 0, t), 0);
    assert_int_equal(rp_plan_transfers(plan, 1, &late, 8, t), 2);
    assert_int_equal(t[1].samples.first, 6);
    assert_int_equal(t[1].samples.count, 2);
    rp_arena_finish(&arena);
}

/* The samples of an op that transfers of one kind cover: each exactly once. */
static void expect_covered(const rp_plan *plan, const rp_op *op, rp_carries carries, bool send,
                           const rp_transfer *t, uint32_t count) {
    uint32_t samples = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const rp_plan_edge *e = &plan->edge[t[i].edge];
        if (e->carries != carries || t[i].send != send) {
            continue;
        }
        found++;
        samples += t[i].samples.count;
        assert_int_equal(t[i].step, op->step);
        assert_true(t[i].samples.first >= op->samples.first);
        assert_true(t[i].samples.first + t[i].samples.count <=
                    op->samples.first + op->samples.count);
        for (uint32_t j = 0; j < i; j++) {
            assert_true(plan->edge[t[j].edge].carries != carries || t[j].send != send ||
                        t[j].samples.first + t[j].samples.count <= t[i].samples.first ||
                        t[i].samples.first + t[i].samples.count <= t[j].samples.first);
        }
    }
    assert_true(found > 0);
    assert_int_equal(samples, op->samples.count);
}

static const spread_stage spread[] = {
    {2, {0.5}, 3, false}, {3, {0.25, 0.5}, 2, false}, {1, {0}, 4, false}, {2, {1.0 / 3}, 5, false}};

/* Two nodes, three, one and two, each with microbatches of its own. */
static void shares_meet_by_sample(void **state) {
    (void)state;
    static const char *const flushed[] = {"gpipe", "zb-h1", "1f1b"};
    for (uint32_t i = 0; i < 2; i++) {
        rp_arena arena;
        rp_sched_facts facts;
        rp_arena_init(&arena, "test", 0);
        rp_plan *plan = spread_plan(&arena, flushed[i], spread, 4, 24);
        if (i > 0) { /* in flight: counted in microbatches, which must not be too unequal */
            for (uint32_t k = 0; k < 4; k++) {
                plan->stage[k].micro_forward = plan->stage[k].micro_backward = 24;
            }
        }
        expect_ok(rp_plan_measure(plan));
        expect_ok(rp_plan_check(plan, NULL));
        expect_ok(rp_plan_replay(&arena, plan, NULL, true, NULL, RP_NO_NODE, &facts));
        for (uint32_t k = 0; k < plan->node_count; k++) {
            const uint32_t stage = plan->hold[k].stage;
            rp_plan_list list;
            rp_transfer t[32];
            rp_op op;
            uint32_t sums = 0;
            rp_plan_list_start(plan, k, &list);
            while (rp_plan_list_next(&list, &op)) {
                const uint32_t count = rp_plan_transfers(plan, k, &op, 0, t);
                if (op.kind == RP_OP_FORWARD) {
                    expect_covered(plan, &op, stage ? RP_CARRIES_ACTIVATION : RP_CARRIES_INPUT,
                                   false, t, count);
                    if (stage < 3) {
                        expect_covered(plan, &op, RP_CARRIES_ACTIVATION, true, t, count);
                    }
                } else if (op.kind == RP_OP_BACKWARD || op.kind == RP_OP_BACKWARD_INPUT) {
                    expect_covered(plan, &op, stage < 3 ? RP_CARRIES_GRADIENT : RP_CARRIES_LABEL,
                                   false, t, count);
                } else if (op.kind == RP_OP_UPDATE) {
                    assert_int_equal(count, 2 * (spread[stage].nodes - 1));
                    for (uint32_t j = 0; j < count; j++) { /* all sends, then all receives */
                        assert_true(t[j].before && t[j].send == (j < count / 2));
                    }
                    sums++;
                }
            }
            assert_int_equal(sums, 4);
        }
        rp_arena_finish(&arena);
    }
}

/* ---- sizes by stage and direction ------------------------------------------------------------ */

static uint32_t next_random(uint64_t *seed, uint32_t count) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % count;
}

/* Counts of samples that an op has met, by stage. */
typedef struct {
    uint32_t forward[8], backward[8];
} seen_samples;

static void count_samples(void *context, const rp_sched_slot *slot) {
    seen_samples *seen = context;
    seen->forward[slot->stage] += slot->op.kind == RP_OP_FORWARD ? slot->op.samples.count : 0;
    seen->backward[slot->stage] += slot->op.kind == RP_OP_BACKWARD ? slot->op.samples.count : 0;
}

/* The replay checks that what an op takes has been made; within the windows, with any costs. */
static void sizes_may_be_any(void **state) {
    (void)state;
    uint64_t seed = 7;
    for (uint32_t i = 0; i < trials(400, 80); i++) {
        const uint32_t stages = 1 + next_random(&seed, 8);
        const uint32_t batch = 1 + next_random(&seed, 40);
        const uint64_t epoch = 1 + next_random(&seed, 3 * batch);
        const plan_case c = {"umpipe", stages, batch, 1, epoch, 5};
        double cost[4][8];
        rp_arena arena;
        rp_plan *plan;
        rp_sched_facts facts;
        seen_samples seen = {{0}, {0}};
        const rp_sched_visitor visitor = {.op = count_samples, .context = &seen};
        rp_arena_init(&arena, "test", 0);
        expect_ok(make_plan(&arena, &c, &plan));
        for (uint32_t k = 0; k < stages; k++) {
            plan->stage[k].micro_forward = 1 + next_random(&seed, batch);
            plan->stage[k].as_forward = next_random(&seed, 5) == 0;
            plan->stage[k].micro_backward = plan->stage[k].as_forward
                                                ? plan->stage[k].micro_forward
                                                : 1 + next_random(&seed, batch);
            for (uint32_t what = 0; what < 4; what++) {
                cost[what][k] = next_random(&seed, 1000) * 1e-3;
            }
        }
        const rp_sched_costs costs = {.forward = cost[0],
                                      .backward_input = cost[1],
                                      .backward_weight = cost[2],
                                      .send = cost[3]};
        expect_ok(rp_plan_measure(plan));
        expect_ok(rp_plan_check(plan, NULL));
        expect_ok(rp_plan_replay(&arena, plan, &costs, true, &visitor, RP_NO_NODE, &facts));
        uint32_t samples = 0;
        for (uint64_t step = 0; step < 5; step++) {
            samples += rp_plan_step_samples(plan, step);
        }
        for (uint32_t k = 0; k < stages; k++) {
            assert_int_equal(seen.forward[k], samples);
            assert_int_equal(seen.backward[k], samples);
            assert_int_equal(facts.stage[k].staleness_max, 0);
        }
        rp_arena_finish(&arena);
    }
}

/* Boards of long rings get their windows without a replay each. */
static void sizes_of_a_long_ring(void **state) {
    (void)state;
    const plan_case c = {"umpipe", 20, 64, 1, 96, 4};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    for (uint32_t k = 0; k < 20; k++) {
        plan->stage[k].micro_forward = k % 2 ? 64 : 1;
        plan->stage[k].micro_backward = k % 3 ? 1 : 50;
    }
    expect_ok(rp_plan_measure(plan));
    expect_ok(rp_plan_check(plan, NULL));
    rp_arena_finish(&arena);
}

/* What a board's op may take is bounded; a plan that asks for more is refused. */
static void parcels_of_an_op_are_bounded(void **state) {
    (void)state;
    const plan_case c = {"umpipe", 3, 128, 1, 256, 4};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    plan->stage[1].micro_forward = plan->stage[0].micro_backward = RP_PLAN_PIECES_MAX;
    expect_ok(rp_plan_measure(plan));
    expect_ok(rp_plan_check(plan, NULL));
    plan->stage[0].micro_backward++;
    expect_ok(rp_plan_measure(plan));
    expect_err(rp_plan_check(plan, NULL), RP_ERR_USAGE);
    assert_string_equal(
        rp_err_message(),
        "plan: stages[0]: an op needs gradients from 65 parcels of the stage above, "
        "but at most 64 are possible; choose sizes that differ less");
    rp_arena_finish(&arena);
}

static double makespan_of(const char *schedule, uint32_t stages, uint32_t size, uint32_t batch,
                          const rp_sched_costs *costs) {
    const plan_case c = {schedule, stages, batch, size, 4 * batch, 4};
    rp_arena arena;
    rp_plan *plan;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    expect_ok(rp_plan_replay(&arena, plan, costs, true, NULL, RP_NO_NODE, &facts));
    rp_arena_finish(&arena);
    return facts.makespan;
}

/* One size that divides the step, in both directions: gpipe's time, exactly, whatever the costs. */
static void equal_sizes_take_gpipes_time(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (uint32_t i = 0; i < trials(200, 40); i++) {
        const uint32_t stages = 1 + next_random(&seed, 8);
        const uint32_t size = 1 + next_random(&seed, 9);
        const uint32_t batch = size * (1 + next_random(&seed, 12));
        double cost[5][8];
        for (uint32_t k = 0; k < 5 * 8; k++) {
            cost[k / 8][k % 8] = next_random(&seed, 1000) * 1e-3;
        }
        const rp_sched_costs costs = {.forward = cost[0],
                                      .backward_input = cost[1],
                                      .backward_weight = cost[2],
                                      .send = cost[3],
                                      .send_back = cost[4]};
        assert_true(makespan_of("umpipe", stages, size, batch, &costs) ==
                    makespan_of("gpipe", stages, size, batch, &costs));
    }
}

/* By hand: two stages, 4 samples forward in 2 + 2 and 4, backward in 3 + 1
 * and 2 + 2. */
static void unequal_sizes_by_hand(void **state) {
    (void)state;
    const plan_case c = {"umpipe", 2, 4, 1, 4, 1};
    static const double one[2] = {1, 1};
    static const double none[2] = {0, 0};
    const rp_sched_costs costs = {.forward = one, .backward_input = one, .backward_weight = none};
    rp_arena arena;
    rp_plan *plan;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    plan->stage[0].micro_forward = 2;
    plan->stage[0].micro_backward = 2;
    plan->stage[1].micro_forward = 4;
    plan->stage[1].micro_backward = 3;
    expect_ok(rp_plan_measure(plan));
    /* a full microbatch costs 1: halves of stage 0 end at 1 and 2, the whole of stage 1 at 3, its
     * backwards at 4 and 4 1/3; those of stage 0 begin at 4 and 5 */
    expect_ok(rp_plan_replay(&arena, plan, &costs, true, NULL, RP_NO_NODE, &facts));
    expect_close(facts.makespan, 6, 1e-12, 0);
    rp_arena_finish(&arena);
}

/* Of a step, by edge: parcels and samples that all feeds send together. */
static void expect_fed(const rp_plan *plan, uint64_t step, uint32_t batch) {
    uint32_t parcels[32] = {0};
    uint32_t samples[32] = {0};
    assert_true(plan->edge_count <= 32);
    for (uint32_t feed = 0; feed < rp_plan_feeds(plan); feed++) {
        rp_op op;
        for (uint32_t m = 0; rp_plan_feed_op(plan, feed, step, batch, m, &op); m++) {
            rp_transfer t[32];
            const uint32_t count = rp_plan_feed_transfers(plan, feed, &op, 0, t);
            for (uint32_t i = 0; i < count; i++) {
                const bool input = edge_of(plan, &t[i])->carries == RP_CARRIES_INPUT;
                assert_true(i == 0 || input ||
                            edge_of(plan, &t[i - 1])->carries == RP_CARRIES_LABEL);
                assert_true(!input || t[i].samples.count == op.samples.count);
                parcels[t[i].edge]++;
                samples[t[i].edge] += t[i].samples.count;
            }
        }
    }
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        if (edge->from == RP_PLAN_HOST) {
            const rp_plan_hold *to = rp_plan_find_hold(plan, edge->to, edge->stage);
            const uint32_t due = rp_sched_share(to->share, batch).count;
            const uint32_t micro = plan->stage[0].micro_forward;
            const bool input = edge->carries == RP_CARRIES_INPUT;
            assert_int_equal(samples[e], due);
            assert_int_equal(parcels[e], input ? (due + micro - 1) / micro : due > 0);
        }
    }
}

/* The node of the smallest share has no samples in a step of few. */
static void feeds_send_everything_once(void **state) {
    (void)state;
    static const spread_stage some[] = {{3, {0.1, 0.6}, 3, false}, {2, {0.5}, 3, false}};
    static const spread_stage one[] = {{3, {0.02, 0.6}, 4, false}};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (uint32_t stages = 1; stages <= 2; stages++) {
        const rp_plan *plan = spread_plan(&arena, "gpipe", stages == 1 ? one : some, stages, 24);
        assert_int_equal(rp_plan_feeds(plan), 3);
        expect_fed(plan, 0, 24);
        expect_fed(plan, 1, 12);
    }
    rp_arena_finish(&arena);
}

/* Boards that share all there is take a part of the time, however many microbatches they have. */
static void no_board_waits_for_anothers_inputs(void **state) {
    (void)state;
    static const spread_stage shared[] = {
        {1, {0}, 1, false}, {2, {0.5}, 1, false}, {4, {0.25, 0.5, 0.75}, 1, false}};
    static const char *const flushed[] = {"gpipe", "1f1b"};
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t n = 0; n < 3; n++) {
            rp_arena arena;
            rp_sched_facts facts;
            rp_arena_init(&arena, "test", 0);
            rp_plan *plan = spread_plan(&arena, flushed[i], &shared[n], 1, 64);
            expect_ok(rp_plan_measure(plan));
            expect_ok(rp_plan_check(plan, NULL));
            expect_ok(rp_plan_replay(&arena, plan, NULL, true, NULL, RP_NO_NODE, &facts));
            /* two steps of 64 and two of 32, forward and backward */
            expect_close(facts.makespan, 2.0 * 192 / shared[n].nodes, 1e-12, 0);
            rp_arena_finish(&arena);
        }
    }
}

/* Forward and backward of a stage on two nodes: stashes go over, weights come back. */
static void roles_may_be_on_different_nodes(void **state) {
    (void)state;
    static const spread_stage split[] = {
        {1, {0}, 2, true}, {2, {0.5}, 2, true}, {1, {0}, 2, false}};
    rp_arena arena;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    rp_plan *plan = spread_plan(&arena, "gpipe", split, 3, 8);
    expect_ok(rp_plan_measure(plan));
    expect_ok(rp_plan_check(plan, NULL));
    expect_ok(rp_plan_replay(&arena, plan, NULL, true, NULL, RP_NO_NODE, &facts));
    uint32_t stashes = 0, weights = 0;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        stashes += edge->carries == RP_CARRIES_STASH;
        weights += edge->carries == RP_CARRIES_WEIGHT;
        if (edge->carries == RP_CARRIES_WEIGHT) { /* behind every step but the last */
            assert_int_equal(facts.edge[e].parcels, 3);
        }
    }
    assert_int_equal(stashes, 3);
    assert_int_equal(weights, 3);
    assert_int_equal(rp_plan_find_hold(plan, 0, 0)->slots, 1); /* a stash leaves with its forward */
    assert_int_equal(rp_plan_find_hold(plan, 1, 0)->slots, 4);
    rp_arena_finish(&arena);
}

/* A kind that splits stages: forwards on nodes 0.., backwards on the others from behind. The plan's
 * replay, with the host in it, takes the time of the row's, and no window holds anybody up. */
static void split_stages(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 5; stages++) {
        for (uint32_t publish = 1; publish <= 2; publish++) {
            char text[64];
            (void)snprintf(text, sizeof text, "{kind: pipefb, publish: %u}", publish);
            const plan_case c = {text, stages, 4, 2, 50, 30};
            double cost[3][10];
            rp_arena arena;
            rp_plan *plan;
            rp_sched_facts bound, free, row;
            rp_arena_init(&arena, "test", 0);
            expect_ok(make_plan(&arena, &c, &plan));
            expect_ok(rp_plan_check(plan, NULL));
            assert_int_equal(plan->node_count, 2 * stages);
            for (uint32_t h = 0; h < plan->hold_count; h++) {
                const bool forward = h < stages;
                assert_int_equal(plan->hold[h].node, h);
                assert_int_equal(plan->hold[h].stage, forward ? h : 2 * stages - 1 - h);
                assert_int_equal(plan->hold[h].role, forward ? RP_ROLE_FORWARD : RP_ROLE_BACKWARD);
                for (uint32_t j = 0; j < 3; j++) {
                    cost[j][h] = 1 + (7 * h + 3 * j + publish) % 5;
                }
            }
            const rp_sched_costs costs = {
                .forward = cost[0], .backward_input = cost[1], .backward_weight = cost[2]};
            expect_ok(rp_plan_replay(&arena, plan, &costs, false, NULL, RP_NO_NODE, &free));
            expect_ok(rp_plan_replay(&arena, plan, &costs, true, NULL, RP_NO_NODE, &bound));
            rp_sched_shape shape = rp_plan_stage_shape(plan, 0, 0);
            expect_ok(rp_sched_replay(&arena, plan->method.kind, &shape, &costs, NULL, NULL, &row));
            expect_close(bound.makespan, free.makespan, 1e-12, 0);
            expect_close(bound.makespan, row.makespan, 1e-12, 0);
            for (uint32_t e = 0; e < plan->edge_count; e++) {
                const rp_plan_edge *edge = &plan->edge[e];
                assert_true(edge->carries == RP_CARRIES_INPUT ||
                            free.edge[e].waiting_max <= edge->window);
            }
            for (shape.stage = 0; shape.stage < stages; shape.stage++) {
                const uint32_t ahead = 2 * (stages - shape.stage);
                const rp_plan_hold *forward = &plan->hold[shape.stage];
                const rp_plan_hold *backward = &plan->hold[2 * stages - 1 - shape.stage];
                assert_int_equal(forward->slots, 1);
                /* two microbatches a step; those of `publish` - 1 steps more may be on their way */
                assert_true(backward->slots >= 2 * ahead &&
                            backward->slots <= 2 * (ahead + publish - 1));
                assert_int_equal(row.stage[backward->node].staleness_max, ahead + publish - 2);
            }
            rp_arena_finish(&arena);
        }
    }
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* With a flush no window is larger than stages + 4 (that of every link before there were plans);
 * without one, and wherever it is smaller, no sender can ever be held back by it. */
static void windows_are_enough(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SCHEDULES; i++) {
        for (uint32_t boards = 1; boards <= 6; boards++) {
            const plan_case c = {schedules[i], boards, 12, 2, 30, 20};
            rp_arena arena;
            rp_plan *plan;
            rp_sched_facts free, bound;
            rp_arena_init(&arena, "test", 0);
            expect_ok(make_plan(&arena, &c, &plan));
            expect_ok(rp_plan_check(plan, NULL));
            double cost[4][18];
            for (uint32_t h = 0; h < plan->hold_count; h++) { /* boards and links of all speeds */
                for (uint32_t j = 0; j < 4; j++) {
                    cost[j][h] = 1 + (7 * h + 3 * j + i) % 5;
                }
            }
            const rp_sched_costs costs = {.forward = cost[0],
                                          .backward_input = cost[1],
                                          .backward_weight = cost[2],
                                          .delay = cost[3]};
            expect_ok(rp_plan_replay(&arena, plan, &costs, false, NULL, RP_NO_NODE, &free));
            expect_ok(rp_plan_replay(&arena, plan, &costs, true, NULL, RP_NO_NODE, &bound));
            const bool flushed = plan->method.kind->flushed;
            bool throttles = false;
            for (uint32_t e = 0; e < plan->edge_count; e++) {
                const rp_plan_edge *edge = &plan->edge[e];
                const uint32_t most = plan->stage_count + RP_PLAN_WINDOW_SLACK;
                assert_true(edge->window >= 1 && (edge->window <= most || !flushed));
                if (!flushed || edge->window < most) {
                    assert_true(free.edge[e].waiting_max <= edge->window);
                } else {
                    throttles = true;
                }
            }
            if (!throttles) {
                expect_close(bound.makespan, free.makespan, 1e-12, 0);
            }
            rp_arena_finish(&arena);
        }
    }
}

/* Many nodes: counted in the lists alone, and quick. */
static void large_rings(void **state) {
    (void)state;
    static const char *const some[] = {"gpipe", "1f1b", "{kind: pipedream, advance: 2}"};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const plan_case c = {some[i], 64, 128, 8, 60000, 4000};
        rp_arena arena;
        rp_plan *plan;
        rp_arena_init(&arena, "test", 0);
        expect_ok(make_plan(&arena, &c, &plan));
        for (uint32_t e = 0; e < plan->edge_count; e++) {
            const rp_plan_edge *edge = &plan->edge[e];
            const uint32_t held = edge->carries == RP_CARRIES_ACTIVATION ? edge->from : edge->to;
            assert_true(i == 0 || edge->carries == RP_CARRIES_INPUT ||
                        edge->window >= plan->hold[held].slots);
        }
        expect_ok(rp_plan_check(plan, NULL));
        rp_arena_finish(&arena);
    }
}

/* 1F1B's figure comes out of the lists: D - k in flight, and as many parcels on their way. */
static void bounds_of_1f1b(void **state) {
    (void)state;
    const plan_case c = {"1f1b", 5, 40, 2, 200, 20};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    for (uint32_t k = 0; k < 5; k++) {
        assert_int_equal(plan->hold[k].slots, 5 - k);
    }
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        if (edge->carries == RP_CARRIES_ACTIVATION) {
            assert_int_equal(edge->window, 5 - edge->from);
        } else if (edge->carries == RP_CARRIES_GRADIENT) { /* of all that the receiver has open */
            assert_int_equal(edge->window, 5 - edge->to);
        }
    }
    rp_arena_finish(&arena);
}

/* A window of one parcel locks nothing in a row; microbatches that do not fit each other do. */
static void deadlocks_are_named(void **state) {
    (void)state;
    static const spread_stage unequal[] = {{1, {0}, 1, false}, {1, {0}, 8, false}};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_plan *plan = spread_plan(&arena, "1f1b", unequal, 2, 8);
    expect_err(rp_plan_measure(plan), RP_ERR_FAULT);
    assert_non_null(strstr(rp_err_message(), "node s0.0 at B0 of step 0 waits for a gradient from "
                                             "node s1.0; node s1.0 at F0 of step 0 waits for an "
                                             "activation from node s0.0"));
    const plan_case c = {"1f1b", 4, 8, 1, 20, 5};
    expect_ok(make_plan(&arena, &c, &plan));
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        plan->edge[e].window = 1;
    }
    expect_ok(rp_plan_check(plan, NULL));
    rp_arena_finish(&arena);
}

typedef struct {
    const rp_plan *plan;
    uint32_t ops, transfers;
    double last_op;
} seen;

static void see_op(void *context, const rp_sched_slot *slot) {
    seen *s = context;
    assert_true(slot->start >= s->last_op);
    s->last_op = slot->start;
    s->ops++;
}

static void see_transfer(void *context, const rp_sched_transfer_slot *slot) {
    seen *s = context;
    const rp_plan_edge *e = &s->plan->edge[slot->edge];
    const double delay = e->from == RP_PLAN_HOST ? 0 : 2;
    expect_close(slot->end - slot->start, delay, 1e-12, 0);
    assert_true(slot->samples.count > 0);
    s->transfers++;
}

static void transfers_have_times(void **state) {
    (void)state;
    const plan_case c = {"{kind: interleaved-1f1b, chunks: 2}", 3, 6, 1, 12, 2};
    const double delay[] = {2, 2, 2, 2, 2, 2};
    const rp_sched_costs costs = {.delay = delay};
    rp_arena arena;
    rp_plan *plan;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    seen s = {.plan = plan};
    const rp_sched_visitor visit = {see_op, see_transfer, &s};
    expect_ok(rp_plan_replay(&arena, plan, &costs, true, &visit, RP_NO_NODE, &facts));
    assert_int_equal(s.ops, 2 * 6 * (2 * 6 + 1)); /* steps, stages, F and B, an update */
    assert_int_equal(s.transfers, 2 * (6 * (2 * 5 + 1) + 1)); /* boundaries, inputs, labels */
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_the_schedules),
        cmocka_unit_test(transfers_of_a_row),
        cmocka_unit_test(shares_meet_by_sample),
        cmocka_unit_test(sizes_may_be_any),
        cmocka_unit_test(sizes_of_a_long_ring),
        cmocka_unit_test(parcels_of_an_op_are_bounded),
        cmocka_unit_test(equal_sizes_take_gpipes_time),
        cmocka_unit_test(unequal_sizes_by_hand),
        cmocka_unit_test(feeds_send_everything_once),
        cmocka_unit_test(no_board_waits_for_anothers_inputs),
        cmocka_unit_test(roles_may_be_on_different_nodes),
        cmocka_unit_test(split_stages),
        cmocka_unit_test(windows_are_enough),
        cmocka_unit_test(large_rings),
        cmocka_unit_test(bounds_of_1f1b),
        cmocka_unit_test(deadlocks_are_named),
        cmocka_unit_test(transfers_have_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
