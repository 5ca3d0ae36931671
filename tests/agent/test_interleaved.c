/* Interleaved 1F1B through the real runners: several stages on a node, handed over between them by
 * memory or round the ring, train what one stage a node trains. */
#include "agent/ring.h"

static const char model[] =
    "input: [4]\nlayers:\n"
    "  - {name: a, kind: dense, out: 5}\n  - {name: a1, kind: tanh}\n"
    "  - {name: b, kind: dense, out: 5}\n  - {name: b1, kind: tanh}\n"
    "  - {name: c, kind: dense, out: 5}\n  - {name: d, kind: dense, out: 5}\n"
    "  - {name: e, kind: dense, out: 5}\n  - {name: f, kind: dense, out: 5}\n"
    "  - {name: g, kind: dense, out: 5}\n  - {name: h, kind: dense, out: 3}\n";

/* By number of stages. */
static const char *const cuts[] = {
    "", "[]", "[c]", "[b, d]", "[b, c, e]", NULL, "[b, c, d, e, g]", NULL, "[b, c, d, e, f, g, h]"};

enum { FLOATS = 1 << 12, STEPS = 5 };

static size_t train_ring(const char *schedule, const char *guard, uint32_t stages, float *out,
                         double *loss) {
    char job[512];
    test_ring ring;
    (void)snprintf(job, sizeof job,
                   "sample: [4]\nclasses: 3\nseed: 5\nbatch: 16\nmicrobatch: 2\nguard: %s\n"
                   "epoch_samples: 76\nsteps: %d\nloss: cross-entropy\n" /* a short last step */
                   "optimizer: {kind: adam, lr: 0.02, eps: 0.01}\nschedule: %s\n",
                   guard, STEPS, schedule);
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, cuts[stages], stages);
    test_ring_run(&ring);
    const size_t count = test_ring_weights(&ring, out, FLOATS);
    *loss = ring.loss;
    test_ring_close(&ring);
    for (size_t i = 0; i < count; i++) {
        assert_true(expect_finite_bits((double)out[i]));
    }
    return count;
}

typedef struct {
    uint32_t nodes, chunks;
} net;

static const net nets[] = {{1, 2}, {1, 4}, {2, 2}, {2, 4}, {4, 2}, {3, 2}};

/* The same sums in another order: equal within rounding. Against 1F1B, whose backwards come in the
 * same order on every stage, to the bit. */
static void it_trains_what_gpipe_trains(void **state) {
    (void)state;
    for (uint32_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        float gpipe[FLOATS], flush[FLOATS], got[FLOATS];
        double gpipe_loss, flush_loss, loss;
        char schedule[64];
        const uint32_t stages = nets[i].nodes * nets[i].chunks;
        (void)snprintf(schedule, sizeof schedule, "{kind: interleaved-1f1b, chunks: %u}",
                       nets[i].chunks);
        const size_t count = train_ring("gpipe", "true", stages, gpipe, &gpipe_loss);
        assert_int_equal(train_ring("1f1b", "true", stages, flush, &flush_loss), count);
        assert_int_equal(train_ring(schedule, i % 2 ? "true" : "false", stages, got, &loss), count);
        expect_close_all(got, gpipe, count, 1e-4, 1e-5);
        expect_close(loss, gpipe_loss, 1e-5, 0);
        assert_memory_equal(got, flush, count * sizeof *got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_trains_what_gpipe_trains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
