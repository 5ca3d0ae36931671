/* Which board a runner names when a port to it is full. */
#include "agent/ring.h"

static const char model[] = "input: [2]\nlayers:\n"
                            "  - {name: fc1, kind: dense, out: 2}\n"
                            "  - {name: fc2, kind: dense, out: 2}\n"
                            "  - {name: fc3, kind: dense, out: 3}\n";
/* A step has more microbatches than the windows of a sender and a receiver. */
enum { BATCH = 4 * RP_PLAN_PATH_PARCELS, ROUNDS = 100000 };
static const char job[] =
    "sample: [2]\nclasses: 3\nseed: 1\nbatch: 1024\nmicrobatch: 1\nepoch_samples: 1024\n"
    "steps: 1\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.1}\nschedule: gpipe\n";

static void open_ring(test_ring *ring) {
    const rp_site site = {0};
    _Static_assert(BATCH == 1024, "as in the job");
    test_ring_open_on(ring, "digest", &site, model, job, "[fc2, fc3]", 3);
    test_ring_start(ring);
}

static void feed_labels(test_ring *ring) {
    static int32_t label[BATCH];
    const rp_shape rows = rp_shape_2(BATCH, 1);
    const rp_part part = rp_part_of_tensor(RP_DTYPE_I32, label, &rows);
    while (!rp_link_can_send(ring->node[2].feed.connected)) {
        test_step_node(ring, &ring->node[2]);
    }
    expect_ok(
        test_feed(ring->node[2].feed.connected, RP_KIND_LABEL, 0, (rp_range){0, BATCH}, &part));
}

/* Steps the nodes [first, end), and no other, until `waiting` waits for room. */
static rp_runner_wait step_until_full(test_ring *ring, uint32_t first, uint32_t end,
                                      uint32_t waiting) {
    rp_runner_wait wait = {0};
    for (uint32_t i = 0; i < ROUNDS && wait.what != RP_WAITING_ROOM; i++) {
        test_feed_inputs(ring, ring->node[0].feed.connected);
        for (uint32_t n = first; n < end; n++) {
            test_step_node(ring, &ring->node[n]);
        }
        wait = rp_runner_wait_of(ring->node[waiting].runner);
    }
    assert_int_equal(wait.what, RP_WAITING_ROOM);
    return wait;
}

/* The board that takes nothing is named, and not a neighbour on the other side. */
static void a_full_port_names_its_board(void **state) {
    (void)state;
    test_ring ring;
    for (uint32_t stuck = 1; stuck < 3; stuck++) {
        open_ring(&ring);
        const rp_runner_wait wait = step_until_full(&ring, 0, stuck, stuck - 1);
        assert_int_equal(wait.peer, stuck);
        assert_int_equal(wait.op.kind, RP_OP_FORWARD);
        test_ring_close(&ring);
    }
}

static void a_full_port_of_gradients_names_its_board(void **state) {
    (void)state;
    test_ring ring;
    open_ring(&ring);
    feed_labels(&ring);
    while (rp_runner_wait_of(ring.node[2].runner).op.kind != RP_OP_BACKWARD) {
        test_feed_inputs(&ring, ring.node[0].feed.connected);
        (void)test_ring_step_nodes(&ring);
    }
    const rp_runner_wait wait = step_until_full(&ring, 2, 3, 2);
    assert_int_equal(wait.peer, 1);
    assert_int_equal(wait.op.kind, RP_OP_BACKWARD);
    test_ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_port_names_its_board),
        cmocka_unit_test(a_full_port_of_gradients_names_its_board),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
