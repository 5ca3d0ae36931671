/* Layers on rows of a sequence, cut anywhere: the same bits as on one board, with a ragged last
 * microbatch and with gradients of weights that come later (zb-h1). */
#include "agent/ring.h"

static const char model[] =
    "input: [9, 6]\nlayers:\n"
    "  - {name: embed, kind: linear, out: 12}\n"
    "  - {name: relu1, kind: relu}\n"
    "  - {name: ln, kind: layernorm, dims: 1}\n"
    "  - {name: both, kind: lstm, hidden: 5, bidirectional: true}\n"
    "  - {name: mix, kind: linear, out: 7, layout: in-out}\n"
    "  - {name: between, kind: gru, hidden: 7, reverse: true, train: false}\n"
    "  - {name: sum, kind: add, from: [mix, between]}\n"
    "  - {name: rms, kind: rmsnorm}\n"
    "  - {name: units, kind: gru, hidden: 8}\n"
    "  - {name: end, kind: lstm, hidden: 6, output: last}\n"
    "  - {name: head, kind: dense, out: 3}\n";

enum { FLOATS = 1 << 14 };

static void open_ring(test_ring *ring, const char *schedule, const char *cut, uint32_t stages) {
    char job[512];
    (void)snprintf(job, sizeof job,
                   "sample: [9, 6]\nclasses: 3\nseed: 3\nbatch: 10\nmicrobatch: 4\n"
                   "epoch_samples: 30\nsteps: 4\nloss: cross-entropy\n"
                   "optimizer: {kind: adamw, lr: 0.01, weight_decay: 0.1}\nschedule: %s\n",
                   schedule);
    test_ring_open(ring, RP_GEMM_PANEL, model, job, cut, stages);
}

static void compare_cuts(const char *schedule) {
    static const char *const cuts[] = {"[]", "[both]", "[relu1, rms]", "[mix, sum, end]", NULL};
    static float one[FLOATS];
    static float many[FLOATS];
    size_t count = 0;
    for (uint32_t stages = 1; cuts[stages - 1]; stages++) {
        test_ring ring;
        float *to = stages == 1 ? one : many;
        open_ring(&ring, schedule, cuts[stages - 1], stages);
        test_ring_run(&ring);
        const size_t now = test_ring_weights(&ring, to, FLOATS);
        count = stages == 1 ? now : count;
        assert_int_equal(now, count);
        assert_memory_equal(one, to, count * sizeof *one);
        test_ring_close(&ring);
    }
    for (size_t i = 0; i < count; i++) {
        expect_close(one[i], 0, 0, 10); /* finite */
    }
}

static void cuts_change_no_bit(void **state) {
    (void)state;
    compare_cuts("1f1b");
    compare_cuts("gpipe");
    compare_cuts("zb-h1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
