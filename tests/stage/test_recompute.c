/* A microbatch that is computed again elsewhere: on an equal board the bits are the same, whatever
 * the schedule, the layers and the codecs are, and one wrong bit of what came out is seen. */
#include "agent/ring.h"

#include "stage/record.h"

/* Statistics of a batch, random numbers, frozen layers below and above a trained one, a skip. */
static const char model[] =
    "input: [2, 9, 9]\nlayers:\n"
    "  - {name: conv1, kind: conv2d, out: 5, kernel: 3, pad: 1}\n"
    "  - {name: bn1, kind: batchnorm}\n"
    "  - {name: relu1, kind: relu}\n"
    "  - {name: conv2, kind: conv2d, out: 5, kernel: 3, pad: 1, train: false}\n"
    "  - {name: drop, kind: dropout, p: 0.3}\n"
    "  - {name: add1, kind: add, from: [relu1, drop]}\n"
    "  - {name: bn2, kind: batchnorm, train: false}\n"
    "  - {name: conv3, kind: conv2d, out: 4, kernel: 1}\n"
    "  - {name: tanh, kind: tanh}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: fc1, kind: dense, out: 7}\n"
    "  - {name: relu2, kind: relu}\n"
    "  - {name: fc2, kind: dense, out: 3}\n";
static const char cut[] = "[conv2, bn2, fc1]";
static const char job_format[] =
    "sample: [2, 9, 9]\nclasses: 3\nseed: 3\nbatch: %u\nmicrobatch: 4\nepoch_samples: 60\n"
    "steps: 6\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n"
    "schedule: %s\n";

enum { STAGES = 4, FROZEN_STAGE = 1, STEP = 4, BYTES = 1 << 20, HEAD_BYTES = 48 };

typedef struct {
    test_ring ring;
    rp_site site;
    const char *executor;
    char bytes[STAGES][BYTES];
    size_t count[STAGES];
    rp_record_digests digests[STAGES];
} recorded;

static void run_recorded(recorded *r, const char *schedule, uint32_t batch, uint32_t micro) {
    char job[512];
    (void)snprintf(job, sizeof job, job_format, batch, schedule);
    test_ring_open_on(&r->ring, r->executor, &r->site, model, job, cut, STAGES);
    for (uint32_t k = 0; k < STAGES; k++) {
        expect_ok(rp_stage_record_begin(r->ring.board[k].stage, STEP, micro));
    }
    test_ring_run(&r->ring);
    for (uint32_t k = 0; k < STAGES; k++) {
        rp_stage *stage = r->ring.board[k].stage;
        expect_ok(rp_stage_record_end(stage, &r->count[k], &r->digests[k]));
        assert_true(r->count[k] > 0 && r->count[k] <= BYTES);
        rp_stage_record_read(stage, 0, 9, r->bytes[k]); /* in pieces of any size */
        rp_stage_record_read(stage, 9, r->count[k] - 9, r->bytes[k] + 9);
    }
}

/* On a stage that has nothing to do with the ring's. */
static rp_err recompute(recorded *r, uint32_t k, const char *bytes, size_t count,
                        rp_record_digests *out) {
    rp_job own = r->ring.board[k].job;
    own.role = (rp_role)(k % 3); /* whatever the board has itself: both, or half a stage */
    const rp_job job = rp_stage_record_job(&own);
    size_t most;
    rp_stage *stage;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_stage_record_bytes_max(&job, &most));
    assert_true(r->count[k] <= most);
    expect_ok(rp_stage_prepare(&arena, rp_executor_find(r->executor), &r->site, &job, &stage));
    const rp_err err = rp_stage_recompute(stage, bytes, count, out);
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
    return err;
}

static bool same(rp_record_digests a, rp_record_digests b) {
    return a.forward == b.forward && a.backward == b.backward && a.gradient == b.gradient;
}

static recorded *open_recorded(const char *executor) {
    static recorded r;
    memset(&r, 0, sizeof r);
    r.executor = executor;
    r.site.device = strcmp(executor, "opencl") == 0 ? test_device_open() : NULL;
    return &r;
}

static void expect_same(const char *executor, const char *schedule, uint32_t batch) {
    recorded *r = open_recorded(executor);
    const uint32_t micros = (batch - 1) / 4 + 1;
    for (uint32_t micro = 0; micro < micros; micro++) {
        run_recorded(r, schedule, batch, micro);
        for (uint32_t k = 0; k < STAGES; k++) {
            rp_record_digests again = {0};
            expect_ok(recompute(r, k, r->bytes[k], r->count[k], &again));
            assert_true(same(again, r->digests[k]));
            assert_true((again.gradient != 0) == (k != FROZEN_STAGE));
            assert_true(again.forward != 0 || k == STAGES - 1);
            assert_true(again.backward != 0 || k == 0);
        }
        test_ring_close(&r->ring);
    }
}

static const char whole_pipefb[] =
    "{kind: pipefb, ahead: [5, 4, 2, 2], split: [false, false, false, false]}";
static const char *const schedules[] = {
    "gpipe",     "1f1b",      "zb-h1",   "async",      "pipedream",
    "pipeoptim", "spectrain", "ea-pipe", whole_pipefb,
};

static void every_schedule_gives_the_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        expect_same("opencl", schedules[i], 10); /* the last microbatch is short */
        expect_same("digest", schedules[i], 10);
    }
}

static void codecs_give_the_same_bits(void **state) {
    static const rp_codec codecs[STAGES - 1][2] = {{RP_CODEC_F16, RP_CODEC_INT8},
                                                   {RP_CODEC_INT8, RP_CODEC_BF16},
                                                   {RP_CODEC_BF16, RP_CODEC_F16}};
    (void)state;
    test_codec = codecs;
    expect_same("opencl", "1f1b", 8);
    test_codec = NULL;
}

/* Of a weight, frozen or trained: what comes out is another one. */
static void a_flipped_bit_is_seen(void **state) {
    (void)state;
    recorded *r = open_recorded("opencl");
    run_recorded(r, "pipeoptim", 10, 1);
    for (uint32_t k = 0; k < STAGES; k++) {
        for (uint32_t weight = 0; weight < 5; weight++) {
            rp_record_digests again = {0};
            char *byte = &r->bytes[k][HEAD_BYTES + sizeof(float) * weight + 2];
            *byte = (char)(*byte ^ 64); /* of the mantissa */
            expect_ok(recompute(r, k, r->bytes[k], r->count[k], &again));
            *byte = (char)(*byte ^ 64);
            assert_false(same(again, r->digests[k]));
        }
    }
    test_ring_close(&r->ring);
}

/* Whatever the bytes say, nothing outside of the record is touched. */
static void other_bytes_are_refused(void **state) {
    (void)state;
    recorded *r = open_recorded("digest");
    run_recorded(r, "1f1b", 10, 0);
    rp_record_digests again;
    assert_int_equal(recompute(r, 1, r->bytes[1], r->count[1] - 1, &again), RP_ERR_PEER);
    assert_int_equal(recompute(r, 1, r->bytes[1], 7, &again), RP_ERR_PEER);
    assert_int_equal(recompute(r, 2, r->bytes[1], r->count[1], &again), RP_ERR_PEER);
    for (uint32_t i = 0; i < HEAD_BYTES; i++) {
        r->bytes[1][i] = (char)(r->bytes[1][i] ^ 0x80);
        const rp_err err = recompute(r, 1, r->bytes[1], r->count[1], &again);
        assert_true(err == RP_ERR_PEER || err == RP_OK); /* another microbatch of the run */
        r->bytes[1][i] = (char)(r->bytes[1][i] ^ 0x80);
    }
    expect_ok(recompute(r, 1, r->bytes[1], r->count[1], &again));
    test_ring_close(&r->ring);
}

/* Steps that were not trained, and a record that was taken, leave none. */
static void only_what_came_by_is_recorded(void **state) {
    (void)state;
    recorded *r = open_recorded("digest");
    char job[512];
    size_t count = 1;
    (void)snprintf(job, sizeof job, job_format, 10, "gpipe");
    test_ring_open_on(&r->ring, r->executor, &r->site, model, job, cut, STAGES);
    rp_stage *stage = r->ring.board[1].stage;
    expect_ok(rp_stage_record_end(stage, &count, &r->digests[1]));
    assert_int_equal(count, 0);
    expect_ok(rp_stage_record_begin(stage, 77, 0));
    test_ring_run(&r->ring);
    expect_ok(rp_stage_record_end(stage, &count, &r->digests[1]));
    assert_int_equal(count, 0);
    test_ring_close(&r->ring);
    run_recorded(r, "gpipe", 10, 2);
    expect_ok(rp_stage_record_end(r->ring.board[1].stage, &count, &r->digests[1]));
    assert_int_equal(count, 0);
    test_ring_close(&r->ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_gives_the_same_bits),
        cmocka_unit_test(codecs_give_the_same_bits),
        cmocka_unit_test(a_flipped_bit_is_seen),
        cmocka_unit_test(other_bytes_are_refused),
        cmocka_unit_test(only_what_came_by_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
