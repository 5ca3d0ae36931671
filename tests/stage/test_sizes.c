/* umpipe: microbatches of any size by stage and direction give gpipe's gradient, but for the order
 * of the sums. */
#include "agent/ring.h"

#include <math.h>

/* Skips over several boundaries, dropout, norms of a sample, both poolings; as many layers as eight
 * stages need. */
static const char model[] =
    "input: [2, 9, 9]\nlayers:\n"
    "  - {name: conv1, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
    "  - {name: norm1, kind: groupnorm, groups: 2}\n"
    "  - {name: relu1, kind: relu}\n"
    "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1, groups: 4}\n"
    "  - {name: drop, kind: dropout, p: 0.3}\n"
    "  - {name: add, kind: add, from: [relu1, drop]}\n"
    "  - {name: gelu, kind: gelu}\n"
    "  - {name: cat, kind: concat, from: [relu1, gelu]}\n"
    "  - {name: pool, kind: maxpool, kernel: 3, stride: 2}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: norm2, kind: layernorm}\n"
    "  - {name: fc1, kind: dense, out: 7}\n"
    "  - {name: tanh, kind: tanh}\n"
    "  - {name: fc2, kind: dense, out: 3}\n";
static const char *const cuts[] = {"",
                                   "[]",
                                   "[drop]",
                                   "[conv2, pool]",
                                   "[norm1, add, flat]",
                                   "[norm1, conv2, gelu, fc1]",
                                   "[relu1, drop, gelu, pool, fc2]",
                                   "[norm1, conv2, add, cat, norm2, fc2]",
                                   "[norm1, conv2, drop, gelu, pool, norm2, tanh]"};
/* Steps of 10, 10 and 3 samples. */
static const char job_format[] =
    "sample: [2, 9, 9]\nclasses: 3\nseed: 3\nbatch: 10\nmicrobatch: 4\nepoch_samples: 23\n"
    "steps: 4\nloss: cross-entropy\noptimizer: {kind: %s}\nlr_schedule: cosine\nschedule: %s\n";
static const char *const optimizers[] = {
    "sgd, lr: 0.1", "sgd, lr: 0.05, momentum: 0.9, nesterov: true", "adam, lr: 0.01, eps: 0.01",
    "adamw, lr: 0.01, eps: 0.01, weight_decay: 0.1",
    "rmsprop, lr: 0.001, momentum: 0.5, eps: 0.01"};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers, FLOATS = 1 << 14 };

static size_t train(const char *schedule, const char *optimizer, uint32_t stages, float *weights,
                    double *loss) {
    char job[1024];
    test_ring ring;
    (void)snprintf(job, sizeof job, job_format, optimizer, schedule);
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, cuts[stages], stages);
    test_ring_run(&ring);
    const size_t count = test_ring_weights(&ring, weights, FLOATS);
    *loss = ring.loss;
    test_ring_close(&ring);
    return count;
}

static uint32_t next_random(uint64_t *seed, uint32_t count) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % count;
}

static void draw_sizes(uint64_t *seed, uint32_t stages, char *out, size_t bytes) {
    size_t used = (size_t)snprintf(out, bytes, "{kind: umpipe");
    for (uint32_t d = 0; d < 2; d++) {
        used += (size_t)snprintf(out + used, bytes - used, ", %s: [", d ? "backward" : "forward");
        for (uint32_t k = 0; k < stages; k++) {
            used += (size_t)snprintf(out + used, bytes - used, "%s%u", k ? ", " : "",
                                     1 + next_random(seed, 10));
        }
        used += (size_t)snprintf(out + used, bytes - used, "]");
    }
    (void)snprintf(out + used, bytes - used, "}");
}

static void random_sizes_give_gpipes_gradient(void **state) {
    (void)state;
    static float want[FLOATS], got[FLOATS];
    uint64_t seed = 11;
    for (uint32_t o = 0; o < OPTIMIZERS; o++) {
        double loss, own_loss;
        const size_t count = train("gpipe", optimizers[o], 1, want, &loss);
        double largest = 0;
        for (size_t i = 0; i < count; i++) {
            largest = fmax(largest, fabs((double)want[i]));
        }
        assert_true(count > 500 && largest > 0.1);
        for (uint32_t stages = 1; stages <= 8; stages++) {
            char schedule[256];
            draw_sizes(&seed, stages, schedule, sizeof schedule);
            memset(got, 0, sizeof got);
            assert_int_equal(train(schedule, optimizers[o], stages, got, &own_loss), count);
            expect_close_all(got, want, count, 0, 2e-6 * largest);
            expect_close(own_loss, loss, 1e-6, 1e-6);
        }
    }
}

/* Of one size everywhere the cut does not matter. */
static void equal_sizes_do_not_depend_on_the_cut(void **state) {
    (void)state;
    static float want[FLOATS], got[FLOATS];
    double loss, own_loss;
    const size_t count =
        train("{kind: umpipe, forward: 3, backward: 4}", optimizers[1], 1, want, &loss);
    for (uint32_t stages = 2; stages <= 8; stages++) {
        (void)train("{kind: umpipe, forward: 3, backward: 4}", optimizers[1], stages, got,
                    &own_loss);
        assert_memory_equal(got, want, count * sizeof *got);
        assert_true(loss == own_loss);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sizes_give_gpipes_gradient),
        cmocka_unit_test(equal_sizes_do_not_depend_on_the_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
