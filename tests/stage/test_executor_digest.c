/* The digest executor behind its port: parcels of their codec's bytes, files that are exact, what
 * is in flight, marks on a clock. That its digests are those of the methods: tests/sim. */
#include "agent/ring.h"

#include "stage/digest.h"

static const char model[] = "input: [2, 5, 5]\nlayers:\n"
                            "  - {name: conv1, kind: conv2d, out: 3, kernel: 3, pad: 1}\n"
                            "  - {name: bn1, kind: batchnorm}\n"
                            "  - {name: drop, kind: dropout, p: 0.3}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc1, kind: dense, out: 9}\n"
                            "  - {name: fc2, kind: dense, out: 3}\n";
static const char job_format[] =
    "sample: [2, 5, 5]\nclasses: 3\nseed: %d\nbatch: 8\nmicrobatch: 4\nepoch_samples: 64\n"
    "steps: 12\nloss: cross-entropy\noptimizer: {kind: adam, lr: 0.1}\nschedule: %s\n";

enum { FLOATS = 1 << 14, MIDDLE = 75 }; /* elements between the two stages of [drop] */

static void open_ring(test_ring *ring, const char *schedule, int seed, const rp_site *site) {
    char job[512];
    (void)snprintf(job, sizeof job, job_format, seed, schedule);
    test_ring_open_on(ring, "digest", site, model, job, "[drop]", 2);
}

static size_t train_stages(const char *schedule, int seed, float *out) {
    const rp_site site = {0};
    test_ring ring;
    open_ring(&ring, schedule, seed, &site);
    test_ring_run(&ring);
    const size_t count = test_ring_weights(&ring, out, FLOATS);
    test_ring_close(&ring);
    return count;
}

static void runs_repeat_and_seeds_differ(void **state) {
    (void)state;
    float a[FLOATS], b[FLOATS];
    const size_t count = train_stages("pipedream", 1, a);
    assert_int_equal(train_stages("pipedream", 1, b), count);
    assert_memory_equal(a, b, count * sizeof *a);
    (void)train_stages("pipedream", 2, b);
    assert_memory_not_equal(a, b, count * sizeof *a);
    (void)train_stages("async", 1, b);
    assert_memory_not_equal(a, b, count * sizeof *a);
}

/* Of a sample between the two stages. */
static void expect_bytes(const char *cut, rp_codec codec, size_t bytes) {
    const rp_site site = {0};
    const rp_codec both[1][2] = {{codec, codec}};
    char job[512];
    test_ring ring;
    (void)snprintf(job, sizeof job, job_format, 1, "gpipe");
    test_codec = both;
    test_ring_open_on(&ring, "digest", &site, model, job, cut, 2);
    test_codec = NULL;
    const rp_layout *layout = rp_stage_layout(ring.board[1].stage);
    for (int grad = 0; grad < 2; grad++) {
        const rp_boundary_tensors lower = rp_layout_boundary(layout, false, grad);
        assert_int_equal(lower.count, 1);
        assert_int_equal(lower.bytes[0], bytes);
        assert_int_equal(lower.sample_bytes, bytes);
    }
    assert_int_equal(rp_layout_part_max(layout, &ring.board[1].job), 4 * bytes);
    test_ring_run(&ring);
    test_ring_close(&ring);
}

static void parcels_have_the_bytes_of_their_codec(void **state) {
    (void)state;
    expect_bytes("[drop]", RP_CODEC_F32, MIDDLE * sizeof(float));
    expect_bytes("[drop]", RP_CODEC_F16, MIDDLE * sizeof(uint16_t));
    expect_bytes("[drop]", RP_CODEC_INT8, rp_codec_bytes(RP_CODEC_INT8, MIDDLE));
    expect_bytes("[fc2]", RP_CODEC_F32, 9 * sizeof(float));
    expect_bytes("[fc2]", RP_CODEC_INT4, 16); /* there must be room for a digest */
}

static void inputs_come_as_the_set_has_them(void **state) {
    (void)state;
    const rp_site site = {0};
    test_ring ring;
    open_ring(&ring, "gpipe", 1, &site);
    const rp_boundary_tensors data =
        rp_layout_boundary(rp_stage_layout(ring.board[0].stage), false, false);
    assert_int_equal(data.bytes[0], 50 * sizeof(float));
    test_ring_close(&ring);
}

/* What the last stage sends back of four samples, of which the last came with one byte changed. */
static rp_digest answer_to(size_t at, char more) {
    enum { SAMPLES = 4 };
    const rp_site site = {0};
    const rp_op op = {.kind = RP_OP_FORWARD, .stage = 1, .samples = {0, SAMPLES}};
    char came[SAMPLES][MIDDLE * sizeof(float)];
    char sent[SAMPLES][sizeof *came];
    const int32_t label[SAMPLES] = {0};
    rp_op back = op;
    rp_digest out;
    test_ring ring;
    memset(came, 7, sizeof came);
    came[SAMPLES - 1][at] = (char)(came[SAMPLES - 1][at] + more);
    open_ring(&ring, "1f1b", 1, &site);
    rp_stage *stage = ring.board[1].stage;
    const rp_stage_piece in = {.samples = op.samples, .part = (const void *[]){came}};
    const rp_stage_piece target = {.samples = op.samples, .part = (const void *[]){label}};
    back.kind = RP_OP_BACKWARD;
    expect_ok(rp_stage_forward(stage, &op, &in, 1, NULL));
    expect_ok(rp_stage_backward(stage, &back, &target, 1, (void *[]){sent}));
    const char *last = sent[SAMPLES - 1];
    memcpy(&out, last, sizeof out);
    assert_memory_equal(last, last + sizeof out, sizeof *sent - sizeof out);
    test_ring_close(&ring);
    return out;
}

static void every_byte_of_a_sample_counts(void **state) {
    (void)state;
    const rp_digest whole = answer_to(0, 0);
    assert_true(rp_digest_equal(whole, answer_to(0, 0)));
    assert_false(rp_digest_equal(whole, answer_to(0, 1)));
    assert_false(rp_digest_equal(whole, answer_to(100, 1)));
    assert_false(rp_digest_equal(whole, answer_to(MIDDLE * sizeof(float) - 1, 1)));
}

/* The first of two stages by itself: what it sends is dropped, gradients come from the sample. */
static void run_op(test_board *board, const rp_op *op) {
    static float x[8 * 50];
    static char dy[8][MIDDLE * sizeof(float)], out[sizeof dy];
    const void *part[] = {op->kind == RP_OP_FORWARD ? (void *)x : (void *)dy};
    const rp_stage_piece whole = {.samples = op->samples, .part = part};
    void *to[] = {out};
    for (uint32_t s = 0; s < op->samples.count && op->kind != RP_OP_UPDATE; s++) {
        const uint64_t number = op->step * board->job.batch + op->samples.first + s;
        memcpy(dy[s], &number, sizeof number);
        for (uint32_t i = 0; i < 50; i++) {
            x[s * 50 + i] = test_input(number, i);
        }
    }
    expect_ok(op->kind == RP_OP_FORWARD  ? rp_stage_forward(board->stage, op, &whole, 1, to)
              : op->kind == RP_OP_UPDATE ? rp_stage_update(board->stage, op, 1.0f, false)
                                         : rp_stage_backward(board->stage, op, &whole, 1, NULL));
}

/* All ops up to the update of the step before `end`. */
static void run_until(test_board *board, rp_sched_state *list, uint64_t end) {
    rp_op op;
    while (list->step < end && board->job.method.kind->next(list, &op)) {
        run_op(board, &op);
    }
}

/* What a checkpoint holds, in pieces, from one stage to another. */
static void copy_stage(test_board *from, test_board *to, uint64_t step) {
    enum { PIECE = 7 };
    const uint32_t count = rp_stage_tensor_count(from->stage, true);
    static float values[FLOATS];
    static char in_flight[1 << 16];
    for (uint32_t i = 0; i < count; i++) {
        char name[256];
        rp_shape shape;
        expect_ok(rp_stage_tensor_at(from->stage, i, name, sizeof name, &shape));
        const size_t floats = rp_shape_count(&shape);
        expect_ok(rp_stage_tensor_read(from->stage, i, 0, floats, values));
        for (size_t f = 4; f < floats; f++) {
            assert_true(values[f] == 0);
        }
        for (size_t f = 0; f < floats; f += PIECE) {
            const size_t n = floats - f < PIECE ? floats - f : PIECE;
            expect_ok(rp_stage_tensor_write(to->stage, name, f, n, values + f));
        }
    }
    const size_t bytes = rp_stage_in_flight_bytes(from->stage);
    assert_true(bytes % 4 == 0 && bytes > 0);
    rp_stage_resume(to->stage, 0, step);
    for (size_t at = 0; at < bytes; at += 1000) {
        const size_t n = bytes - at < 1000 ? bytes - at : 1000;
        expect_ok(rp_stage_in_flight_read(from->stage, at, n, in_flight));
        expect_ok(rp_stage_in_flight_write(to->stage, at, n, in_flight));
    }
    for (uint32_t r = 0; r < rp_stage_replicas(from->stage); r++) {
        rp_stage_set_applied(to->stage, r, rp_stage_applied(from->stage, r));
    }
}

/* Behind step 5 another stage takes over; both go on alike. */
static void a_resumed_run_is_the_run(void **state) {
    (void)state;
    static const char *const schedules[] = {"pipedream", "pipeoptim", "avgpipe", "1f1b",
                                            "{kind: pipeoptim, probe: 3}"};
    static float want[FLOATS], got[FLOATS], early[FLOATS];
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        const rp_site site = {0};
        test_ring first;
        test_ring second;
        open_ring(&first, schedules[i], 1, &site);
        open_ring(&second, schedules[i], 1, &site);
        const rp_sched_shape shape = rp_job_sched_shape(&first.board[0].job, 0, 12);
        rp_sched_state list;
        rp_sched_start(&list, &shape);
        run_until(&first.board[0], &list, 5);
        copy_stage(&first.board[0], &second.board[0], 5);
        const size_t count = test_ring_weights(&second, early, FLOATS);
        rp_sched_state again = list;
        run_until(&first.board[0], &list, 12);
        run_until(&second.board[0], &again, 12);
        assert_int_equal(test_ring_weights(&first, want, FLOATS), count);
        assert_int_equal(test_ring_weights(&second, got, FLOATS), count);
        assert_memory_equal(want, got, count * sizeof *want);
        assert_memory_not_equal(want, early, count * sizeof *want);
        test_ring_close(&first);
        test_ring_close(&second);
    }
}

/* Weights that somebody has trained elsewhere: their hash, whatever the pieces. */
static void values_are_taken_by_their_hash(void **state) {
    (void)state;
    const rp_site site = {0};
    enum { COUNT = 675 }; /* of fc1.weight: 9 x 75 */
    float values[COUNT], got[3][4];
    test_ring ring;
    open_ring(&ring, "gpipe", 1, &site);
    rp_stage *stage = ring.board[1].stage;
    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = test_input(i, 0);
    }
    for (uint32_t way = 0; way < 3; way++) {
        const size_t piece = way == 1 ? 64 : COUNT;
        values[COUNT - 1] += way == 2;
        for (size_t f = 0; f < COUNT; f += piece) {
            const size_t n = COUNT - f < piece ? COUNT - f : piece;
            expect_ok(rp_stage_tensor_write(stage, "fc1.weight", f, n, values + f));
        }
        expect_ok(rp_stage_tensor_read(stage, 0, 0, 4, got[way]));
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    assert_memory_not_equal(got[0], got[2], sizeof got[0]);
    expect_err(rp_stage_tensor_write(stage, "fc1.weight", 8, 4, values), RP_ERR_USAGE);
    test_ring_close(&ring);
}

static void marks_follow_the_given_clock(void **state) {
    (void)state;
    rp_clock clock = rp_clock_stepped(1000);
    static const double seconds[12] = {[0] = 1e-3, [1] = 2e-3, [2] = 1e-3, [3] = 1e-3};
    const rp_site site = {.clock = &clock, .seconds = seconds, .update_s = 5e-4};
    const rp_op op = {.kind = RP_OP_FORWARD, .samples = {0, 2}};
    float x[100] = {0};
    char y[2 * MIDDLE * sizeof(float)];
    rp_mark mark[2];
    bool done;
    int64_t end_ns;
    test_ring ring;
    open_ring(&ring, "gpipe", 1, &site);
    rp_stage *stage = ring.board[0].stage;
    const void *part[] = {x};
    expect_ok(rp_stage_mark(stage, &mark[0]));
    expect_ok(rp_stage_forward(stage, &op, &(rp_stage_piece){.samples = {0, 2}, .part = part}, 1,
                               (void *[]){y}));
    expect_ok(rp_stage_mark(stage, &mark[1]));
    expect_ok(rp_stage_poll(stage, &mark[0], &done, &end_ns));
    assert_true(done && end_ns == 1000);
    expect_ok(rp_stage_poll(stage, &mark[1], &done, &end_ns));
    assert_false(done); /* half a microbatch: half of 2 ms */
    assert_int_equal(mark[1].end_ns, 1000 + 1000000);
    clock.stepped_ns = 1001000;
    expect_ok(rp_stage_poll(stage, &mark[1], &done, &end_ns));
    assert_true(done && end_ns == 1001000);
    rp_stage_release(stage, &mark[0]);
    rp_stage_release(stage, &mark[1]);
    assert_int_equal(rp_stage_facts(stage).handle, -1);
    test_ring_close(&ring);
}

static void numbers_are_finite(void **state) {
    (void)state;
    const rp_site site = {0};
    float norms[8];
    test_ring ring;
    open_ring(&ring, "gpipe", 1, &site);
    test_ring_run(&ring);
    assert_true(ring.loss > 0 && ring.loss <= 1);
    expect_ok(rp_stage_norms(ring.board[1].stage, norms));
    for (uint32_t i = 0; i < rp_stage_norm_count(ring.board[1].stage); i++) {
        assert_true(norms[i] > 0 && norms[i] <= 1);
    }
    test_ring_close(&ring);
}

/* Carries, and a sum that does not see the order. */
static void digests_add_as_numbers_of_128_bits(void **state) {
    (void)state;
    const rp_digest a = {UINT64_MAX, 1};
    const rp_digest b = {1, UINT64_MAX};
    assert_true(rp_digest_equal(rp_digest_add(a, b), (rp_digest){0, 1}));
    assert_true(rp_digest_equal(rp_digest_add(b, a), (rp_digest){0, 1}));
    assert_false(
        rp_digest_equal(rp_digest_accumulate(a, b, true), rp_digest_accumulate(b, a, true)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_repeat_and_seeds_differ),
        cmocka_unit_test(parcels_have_the_bytes_of_their_codec),
        cmocka_unit_test(inputs_come_as_the_set_has_them),
        cmocka_unit_test(every_byte_of_a_sample_counts),
        cmocka_unit_test(a_resumed_run_is_the_run),
        cmocka_unit_test(values_are_taken_by_their_hash),
        cmocka_unit_test(marks_follow_the_given_clock),
        cmocka_unit_test(numbers_are_finite),
        cmocka_unit_test(digests_add_as_numbers_of_128_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
