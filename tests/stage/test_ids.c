/* A net on token ids: the ids cross cuts to a layer that reads them for their padding, and every
 * cut gives the same bits. */
#include "agent/ring.h"

static const char model_text[] =
    "input: {shape: [12], type: i32}\nlayers:\n"
    "  - {name: words, kind: embedding, count: tokens, out: 10, padding: 3}\n"
    "  - {name: places, kind: position, length: 16, std: 0.5}\n"
    "  - {name: class, kind: prepend, std: 0.5}\n"
    "  - {name: gates, kind: glu}\n"
    "  - {name: body, kind: dense, out: 24}\n"
    "  - {name: bend, kind: gelu, approximate: tanh}\n"
    "  - {name: pooled, kind: seqpool, from: [places, data], padding: 3}\n"
    "  - {name: both, kind: concat, from: [bend, pooled]}\n"
    "  - {name: slope, kind: prelu}\n"
    "  - {name: out, kind: dense, out: 3}\n";

/* Two inputs of different vocabularies: both are read on the first and on later stages. */
static const char two_text[] =
    "input:\n"
    "  source: {shape: [5], type: i32}\n"
    "  target: {shape: [7], type: i32}\nlayers:\n"
    "  - {name: from, kind: embedding, from: source, count: 9, out: 6, padding: 3}\n"
    "  - {name: sum, kind: seqpool, from: [from, source], padding: 3}\n"
    "  - {name: to, kind: embedding, from: target, count: tokens, out: 6}\n"
    "  - {name: rest, kind: seqpool, from: [to, target], padding: 3}\n"
    "  - {name: tail, kind: slice, from: rest, start: 1, end: 5}\n"
    "  - {name: both, kind: concat, from: [sum, tail]}\n"
    "  - {name: out, kind: dense, out: 3}\n";

static const char job_format[] =
    "sample: [12]\nsample_type: i32\ntokens: 7\nclasses: 3\nseed: 3\nbatch: 10\nmicrobatch: 4\n"
    "epoch_samples: 30\nsteps: 5\nloss: cross-entropy\n"
    "optimizer: {kind: adamw, lr: 0.05, weight_decay: 0.1}\nschedule: %s\n";

enum { FLOATS = 1 << 13, OUT = 10, PADDING = 3 };

static size_t train(const char *model, const char *schedule, const char *cut, uint32_t stages,
                    float *out, double *loss) {
    char job[1024];
    test_ring ring;
    (void)snprintf(job, sizeof job, job_format, schedule);
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, cut, stages);
    test_ring_run(&ring);
    const size_t count = test_ring_weights(&ring, out, FLOATS);
    *loss = ring.loss;
    test_ring_close(&ring);
    return count;
}

static void cuts_give_the_same_bits(void **state) {
    (void)state;
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1"};
    static const char *const cuts[] = {"[places]", "[pooled]", "[class, both]",
                                       "[places, body, slope]"};
    static const uint32_t stages[] = {2, 2, 3, 4};
    static float one[FLOATS];
    static float many[FLOATS];
    for (size_t s = 0; s < 3; s++) {
        double loss;
        double other;
        const size_t count = train(model_text, schedules[s], "[]", 1, one, &loss);
        assert_true(expect_finite_bits(loss) && loss > 0);
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(train(model_text, schedules[s], cuts[k], stages[k], many, &other),
                             count);
            assert_memory_equal(one, many, count * sizeof *one);
            assert_true(loss == other);
        }
    }
}

static void several_inputs_cross_cuts(void **state) {
    (void)state;
    static const char *const cuts[] = {"[from]", "[sum, rest]", "[target, to, both]"};
    static float one[FLOATS];
    static float many[FLOATS];
    double loss;
    double other;
    const size_t count = train(two_text, "1f1b", "[]", 1, one, &loss);
    assert_true(expect_finite_bits(loss) && loss > 0);
    assert_int_equal(count, 3 * (9 * 6 + 7 * 6 + 10 * 3 + 3)); /* with two moments */
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t stages = k + 2;
        assert_int_equal(train(two_text, "1f1b", cuts[k], stages, many, &other), count);
        assert_memory_equal(one, many, count * sizeof *one);
        assert_true(loss == other);
    }
}

/* Five steps change every row of the table but that of the padding, which stays 0. */
static void rows_are_trained(void **state) {
    (void)state;
    static float weights[FLOATS];
    static float start[FLOATS];
    char job[1024];
    test_ring ring;
    (void)snprintf(job, sizeof job, job_format, "gpipe");
    test_ring_open(&ring, RP_GEMM_PANEL, model_text, job, "[]", 1);
    const rp_model *model = ring.board[0].job.model;
    assert_int_equal(rp_model_id_count(model), 7);
    rp_model_init_param(model, 0, 3, start);
    test_ring_run(&ring);
    (void)test_ring_weights(&ring, weights, FLOATS);
    for (size_t row = 0; row < 7; row++) {
        for (size_t i = 0; i < OUT; i++) {
            const float now = weights[row * OUT + i];
            assert_true(expect_finite_bits((double)now));
            assert_true(row == PADDING ? now == 0.0f : now != start[row * OUT + i]);
        }
    }
    test_ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_give_the_same_bits),
        cmocka_unit_test(several_inputs_cross_cuts),
        cmocka_unit_test(rows_are_trained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
