/* From the plan to a runner's edges: each edge has a port of its own, edges with one neighbour
 * share its link. */
#include "../plan/plans.h"
#include "agent/connect.h"

/* Places of links that are only compared. */
enum { NODES_MAX = 8 };
static char place[NODES_MAX + 1];

static rp_link *link_of(uint32_t far) {
    return (rp_link *)(void *)&place[far == RP_PLAN_HOST ? NODES_MAX : far];
}

static rp_runner_options connect_node(const rp_plan *plan, uint32_t node) {
    uint32_t neighbour[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t count = rp_plan_neighbours(plan, node, neighbour);
    rp_runner_far far[RP_PLAN_NEIGHBOURS_MAX + 1] = {{RP_PLAN_HOST, link_of(RP_PLAN_HOST)}};
    for (uint32_t i = 0; i < count; i++) {
        assert_true(neighbour[i] < NODES_MAX);
        far[i + 1] = (rp_runner_far){neighbour[i], link_of(neighbour[i])};
    }
    rp_runner_options options = {.held_count = plan->node[node].hold_count};
    expect_ok(rp_plan_check_training(plan, NULL));
    expect_ok(rp_runner_connect(&options, plan, node, far, count + 1));
    assert_ptr_equal(options.plan, plan);
    assert_int_equal(options.node, node);
    return options;
}

static const rp_runner_edge *find_edge(const rp_runner_options *options, rp_kind carries,
                                       bool outgoing, uint32_t held) {
    for (uint32_t e = 0; e < options->edge_count; e++) {
        const rp_runner_edge *edge = &options->edge[e];
        if (edge->carries == carries && edge->outgoing == outgoing &&
            (outgoing ? edge->sender : edge->taker) == held) {
            return edge;
        }
    }
    fail_msg("no edge carries %s", rp_kind_name(carries));
    return NULL;
}

/* Node 0 of two holds stages 0 and 2 of four, node 1 the others. */
static void edges_with_one_neighbour_share_a_link(void **state) {
    (void)state;
    const plan_case c = {"{kind: interleaved-1f1b, chunks: 2}", 2, 8, 2, 16, 2};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    assert_int_equal(plan->edge_count, 8); /* input, label, three up, three down */
    const rp_runner_options at = connect_node(plan, 0);
    assert_int_equal(at.edge_count, 7);
    for (uint32_t e = 0; e < at.edge_count; e++) {
        const rp_runner_edge *edge = &at.edge[e];
        assert_ptr_equal(edge->link, link_of(rp_plan_far_end(&plan->edge[edge->edge], 0)));
        for (uint32_t other = 0; other < e; other++) {
            assert_int_not_equal(edge->edge, at.edge[other].edge);
        }
    }
    const rp_runner_edge *up[] = {find_edge(&at, RP_KIND_ACTIVATION, true, 0),
                                  find_edge(&at, RP_KIND_ACTIVATION, true, 1)};
    assert_ptr_equal(up[0]->link, up[1]->link); /* stages 0 and 2 to stages 1 and 3 */
    assert_ptr_equal(up[0]->link, link_of(1));
    assert_ptr_equal(find_edge(&at, RP_KIND_GRADIENT, false, 0)->link, link_of(1));
    assert_ptr_equal(find_edge(&at, RP_KIND_ACTIVATION, false, 1)->link, link_of(1));
    assert_ptr_equal(find_edge(&at, RP_KIND_GRADIENT, true, 1)->link, link_of(1));
    assert_ptr_equal(find_edge(&at, RP_KIND_INPUT, false, 0)->link, link_of(RP_PLAN_HOST));
    rp_arena_finish(&arena);
}

/* The windows of a link are those of its edges together. */
static void a_link_has_room_for_all_its_edges(void **state) {
    (void)state;
    const plan_case c = {"{kind: interleaved-1f1b, chunks: 2}", 2, 8, 2, 16, 2};
    rp_arena arena;
    rp_plan *plan;
    uint32_t comes = 0;
    uint32_t edges = 0;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const bool here = edge->from == 1 || edge->to == 1;
        if (here && rp_plan_far_end(edge, 1) == 0) {
            edges++;
            comes += edge->to == 1 ? edge->window : 0;
        }
    }
    const rp_runner_use use = rp_runner_use_of(plan, 1, 0);
    assert_int_equal(use.edges, edges);
    assert_int_equal(edges, 6);
    assert_true(use.window >= comes);
    assert_int_equal(rp_runner_use_of(plan, 1, 1).edges, 0);
    assert_int_equal(rp_runner_use_of(plan, 1, RP_PLAN_HOST).edges, 1);
    rp_arena_finish(&arena);
}

/* One node with two stages: the edges between them need no link, and have both ends here. */
static void an_edge_may_stay_on_its_node(void **state) {
    (void)state;
    const plan_case c = {"{kind: interleaved-1f1b, chunks: 2}", 1, 8, 2, 16, 2};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    const rp_runner_options at = connect_node(plan, 0);
    const rp_runner_edge *up = find_edge(&at, RP_KIND_ACTIVATION, true, 0);
    assert_null(up->link);
    assert_int_equal(up->taker, 1);
    const rp_runner_edge *down = find_edge(&at, RP_KIND_GRADIENT, true, 1);
    assert_null(down->link);
    assert_int_equal(down->taker, 0);
    rp_arena_finish(&arena);
}

/* Boards that share a stage have links to each other for their gradients, and to all boards of the
 * stages beside it whose samples they have. */
static void boards_of_a_stage_are_neighbours(void **state) {
    (void)state;
    static const spread_stage stage[] = {{.nodes = 1, .micro = 2},
                                         {.nodes = 2, .share = {0.5}, .micro = 2}};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_plan *plan = spread_plan(&arena, "gpipe", stage, 2, 8);
    expect_ok(rp_plan_measure(plan));
    const rp_runner_options first = connect_node(plan, 0);
    assert_ptr_equal(first.edge[1].link, link_of(1));
    const rp_runner_options at = connect_node(plan, 1);
    const rp_runner_edge *in = find_edge(&at, RP_KIND_WEIGHT_GRADIENT, false, 0);
    const rp_runner_edge *out = find_edge(&at, RP_KIND_WEIGHT_GRADIENT, true, 0);
    assert_ptr_equal(in->link, link_of(2));
    assert_ptr_equal(out->link, link_of(2));
    assert_ptr_equal(find_edge(&at, RP_KIND_GRADIENT, true, 0)->link, link_of(0));
    assert_ptr_equal(find_edge(&at, RP_KIND_LABEL, false, 0)->link, link_of(RP_PLAN_HOST));
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_with_one_neighbour_share_a_link),
        cmocka_unit_test(a_link_has_room_for_all_its_edges),
        cmocka_unit_test(an_edge_may_stay_on_its_node),
        cmocka_unit_test(boards_of_a_stage_are_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
