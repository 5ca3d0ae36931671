/* Stashes that lie with the host or on flash while they wait: the bits of a run that keeps them on
 * the device, which holds three. */
#include "agent/ring.h"

#include "device/flash_faults.h"
#include "stage/opencl_own.h"
#include "stage/stage_own.h"

static const char model[] = "input: [2, 6, 6]\n"
                            "layers:\n"
                            "  - {name: conv1, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                            "  - {name: bn1, kind: batchnorm}\n"
                            "  - {name: relu1, kind: relu}\n"
                            "  - {name: drop1, kind: dropout, p: 0.3}\n"
                            "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                            "  - {name: add, kind: add, from: [drop1, conv2]}\n"
                            "  - {name: pool, kind: maxpool, kernel: 3, stride: 2}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc1, kind: dense, out: 9}\n"
                            "  - {name: tanh, kind: tanh}\n"
                            "  - {name: fc2, kind: dense, out: 7}\n"
                            "  - {name: gelu, kind: gelu}\n"
                            "  - {name: fc3, kind: dense, out: 3}\n";

static const char job_format[] =
    "sample: [2, 6, 6]\nclasses: 3\nseed: 3\nbatch: %u\nmicrobatch: 2\nepoch_samples: 41\n"
    "steps: %u\nloss: cross-entropy\noptimizer: {kind: adam, lr: 0.05}\n"
    "schedule: %s\noffload: %s\nrecompute: %s\n";

enum { FLOATS = 1 << 15, STAGES = 6 };
static const char six[] = "[relu1, conv2, flat, tanh, gelu]";

typedef struct {
    const char *schedule;
    uint32_t batch, steps;
    bool again; /* it can compute forwards again */
} test_case;

static const test_case cases[] = {{"gpipe", 16, 5, true},
                                  {"1f1b", 16, 5, true},
                                  {"zb-h1", 16, 5, true},
                                  {"async", 2, 24, true},
                                  {"pipedream", 2, 24, true},
                                  {"pipedream-2bw", 4, 12, true},
                                  {"spectrain", 2, 24, false},
                                  {"pipeoptim", 2, 24, false},
                                  {"xpipe", 4, 12, false},
                                  {"ea-pipe", 2, 24, true},
                                  {"{kind: avgpipe, advance: 1}", 4, 12, true}};

/* The most that a device holds of one of the stages, over that of a slot. */
static size_t train(const test_case *c, const char *offload, const char *recompute, const char *cut,
                    uint32_t stages, float *weights, double *loss) {
    char job[1024];
    test_ring ring;
    (void)snprintf(job, sizeof job, job_format, c->batch, c->steps, c->schedule, offload,
                   recompute);
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, cut, stages);
    test_ring_run(&ring);
    const size_t count = test_ring_weights(&ring, weights, FLOATS);
    *loss = ring.loss;
    for (uint32_t k = 0; k < stages; k++) {
        const rp_layout *layout = rp_stage_layout(ring.board[k].stage);
        const bool leaves = strcmp(offload, "none") != 0 && layout->slots > 3;
        assert_int_equal(layout->stashes, leaves ? 3 : layout->slots);
    }
    test_ring_close(&ring);
    return count;
}

static const struct {
    const char *offload;
    uint32_t leave; /* tensors of each stash; 0: all */
    bool again;
} ways[] = {{"host", 0, false}, {"flash", 0, false}, {"host", 2, false}, {"flash", 1, false},
            {"host", 0, true},  {"flash", 0, true},  {"flash", 1, true}};

static void compare(const test_case *c, const char *cut, uint32_t stages) {
    static float want[FLOATS];
    static float got[FLOATS];
    double loss[2];
    memset(want, 0, sizeof want);
    const size_t count = train(c, "none", "none", cut, stages, want, &loss[0]);
    assert_true(count > 200);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        if (ways[w].again && !c->again) {
            continue;
        }
        test_leave_tensors = ways[w].leave;
        memset(got, 0, sizeof got);
        assert_int_equal(
            train(c, ways[w].offload, ways[w].again ? "all" : "none", cut, stages, got, &loss[1]),
            count);
        test_leave_tensors = 0;
        assert_memory_equal(want, got, count * sizeof *want);
        assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
    }
}

static void bits_are_those_of_a_run_on_the_device(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        compare(&cases[i], six, STAGES);
    }
}

static void one_stage_with_a_step_in_flight(void **state) {
    (void)state;
    compare(&cases[0], "[]", 1);
}

/* Bytes of the first tensors of a slot, not rounded up to the device's alignment. */
static size_t bare_bytes(const rp_layout *layout, uint32_t tensors) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < tensors; i++) {
        bytes += layout->part_bytes[layout->part_order[i]];
    }
    return bytes;
}

/* Counted by the device, not by the plan. Without offload each tensor of the 20 slots is a buffer
 * of its own, which is not rounded up. With offload the three stashes on the device are parts of
 * chunks, which are. */
static void the_device_holds_three(void **state) {
    (void)state;
    static const char *const offloads[] = {"none", "host", "flash", "flash"};
    size_t used[4];
    size_t bare[4];
    size_t leave[4];
    for (int host = 0; host < 4; host++) {
        char job[1024];
        test_ring ring;
        (void)snprintf(job, sizeof job, job_format, 40, 2, "gpipe", offloads[host], "none");
        test_leave_tensors = host == 3 ? 2 : 0;
        test_ring_open(&ring, RP_GEMM_PANEL, model, job, "[]", 1);
        const rp_layout *layout = rp_stage_layout(ring.board[0].stage);
        assert_int_equal(layout->slots, 20);
        bare[host] = bare_bytes(layout, layout->leave_count);
        leave[host] = layout->leave_bytes;
        used[host] = rp_stage_facts(ring.board[0].stage).used_bytes;
        test_ring_close(&ring);
    }
    test_leave_tensors = 0;
    assert_true(bare[3] > 0 && bare[3] < bare[2] / 2);
    for (int host = 1; host < 4; host++) {
        assert_true(used[host] < used[0]);
        assert_int_equal(used[0] - used[host], 20 * bare[host] - 3 * leave[host]);
    }
}

/* What is in flight at a checkpoint lies on the device, with the host or on flash, or in part; in
 * any order. A checkpoint has as many bytes whichever. */
static void microbatches_in_flight_are_saved(void **state) {
    (void)state;
    static const char *const offloads[] = {"none", "host", "flash", "host", "flash"};
    static char bytes[2][1 << 17];
    size_t on_device = 0;
    char job[1024];
    for (int way = 0; way < 5; way++) {
        test_ring ring;
        (void)snprintf(job, sizeof job, job_format, 2, 24, "pipedream", offloads[way], "none");
        test_leave_tensors = way > 2 ? 1 : 0;
        test_ring_open(&ring, RP_GEMM_PANEL, model, job, six, STAGES);
        rp_stage *stage = ring.board[0].stage;
        const size_t count = rp_stage_in_flight_bytes(stage);
        assert_true(count > 0 && count <= sizeof bytes[0]);
        on_device = way == 0 ? count : on_device;
        assert_int_equal(count, on_device);
        for (size_t i = 0; i < count; i++) {
            bytes[0][i] = (char)(i * 7 + i / 251);
        }
        for (size_t at = 0; at < count; at += 1000) { /* in pieces, as messages bring them */
            const size_t part = count - at < 1000 ? count - at : 1000;
            expect_ok(rp_stage_in_flight_write(stage, at, part, bytes[0] + at));
        }
        expect_ok(rp_stage_in_flight_read(stage, 0, count, bytes[1]));
        const rp_layout *layout = rp_stage_layout(stage);
        assert_int_equal(layout->slots, STAGES);
        assert_true(memcmp(bytes[0], bytes[1], layout->weight_bytes / 2) == 0);
        size_t differ = 0; /* but for what fills up buffers to whole words */
        for (size_t i = 0; i < count; i++) {
            differ += bytes[0][i] != bytes[1][i];
        }
        assert_true(differ < 4 * 200);
        test_leave_tensors = 0;
        test_ring_close(&ring);
    }
}

/* Stashes that travel (pipefb) come into slots and leave them, wherever those lie at the time. */
static void slots_move(const char *offload, const char *recompute) {
    enum { SLOTS = 8, WORDS = 1 << 14 };
    static uint32_t stash[SLOTS][WORDS];
    static uint32_t back[WORDS];
    char job[1024];
    test_ring ring;
    (void)snprintf(job, sizeof job, job_format, 16, 2, "gpipe", offload, recompute);
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, "[]", 1);
    rp_stage *stage = ring.board[0].stage;
    const size_t bytes = rp_stage_stash_bytes(stage);
    assert_int_equal(rp_stage_layout(stage)->slots, SLOTS);
    assert_int_equal(rp_stage_layout(stage)->stashes, strcmp(offload, "none") == 0 ? SLOTS : 3);
    assert_true(bytes > 500 && bytes <= sizeof back);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t k = 0; k < SLOTS; k++) {
            const uint32_t slot = (5 * k + round) % SLOTS;
            const rp_command in = {.kind = RP_COMMAND_UNSTASH,
                                   .stash = {.from = stash[slot], .slot = slot}};
            for (uint32_t i = 0; i < WORDS; i++) {
                stash[slot][i] = (i * 2654435761u) ^ (slot << 8) ^ (round << 16);
            }
            expect_ok(rp_stage_issue(stage, &in));
        }
        for (uint32_t k = 0; k < 2 * SLOTS; k++) {
            const uint32_t slot = (3 * k + k / SLOTS) % SLOTS;
            const rp_command out = {.kind = RP_COMMAND_STASH, .stash = {.out = back, .slot = slot}};
            size_t differ = 0; /* but for what fills up buffers to whole words */
            memset(back, 0, sizeof back);
            expect_ok(rp_stage_issue(stage, &out));
            expect_ok(rp_stage_drain(stage));
            for (size_t i = 0; i < bytes; i++) {
                differ += ((char *)back)[i] != ((char *)stash[slot])[i];
            }
            assert_true(differ < 4 * 20);
        }
    }
    test_ring_close(&ring);
}

static void stashes_that_travel(void **state) {
    (void)state;
    static const char *const offloads[] = {"none", "host", "flash"};
    for (int way = 0; way < 9; way++) {
        test_leave_tensors = way / 3 == 2 ? 2 : 0;
        slots_move(offloads[way % 3], way / 3 == 1 ? "all" : "none");
    }
    test_leave_tensors = 0;
}

/* The next ops of the stage's list, which is one of gpipe with labels. */
static void run_ops(rp_stage *stage, rp_sched_state *list, uint32_t count) {
    static float memory[TEST_INPUT_FLOATS];
    const void *in[] = {memory};
    void *out[] = {memory};
    rp_op op;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(rp_sched_next_of_stage(rp_sched_find("gpipe"), list, &op));
        const rp_stage_piece piece = {.samples = op.samples, .part = in};
        expect_ok(op.kind == RP_OP_FORWARD ? rp_stage_forward(stage, &op, &piece, 1, out)
                                           : rp_stage_backward(stage, &op, &piece, 1, out));
    }
}

/* A disk that fails ends the run with what it said; nothing hangs, nothing is believed. */
static void a_failing_disk_is_a_fault(void **state) {
    (void)state;
    char job[1024];
    test_ring ring;
    rp_sched_state list;
    rp_mark mark;
    bool done = false;
    int64_t end_ns;
    (void)snprintf(job, sizeof job, job_format, 16, 2, "gpipe", "flash", "none");
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, "[]", 1);
    rp_stage *stage = ring.board[0].stage;
    const rp_sched_shape shape = rp_job_sched_shape(&ring.board[0].job, 0, 2);
    rp_sched_start(&list, &shape);
    run_ops(stage, &list, 8);
    expect_ok(rp_spill_drain(rp_opencl_of(rp_stage_executor(stage))->spill)); /* all are there */
    assert_int_equal(ftruncate(find_nameless(), 0), 0);
    run_ops(stage, &list, 8);
    expect_ok(rp_stage_mark(stage, &mark));
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < 10000 && err == RP_OK && !done; i++) {
        err = rp_stage_poll(stage, &mark, &done, &end_ns);
        (void)usleep(1000);
    }
    expect_err(err, RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "flash: reading stash"));
    expect_err(rp_stage_drain(stage), RP_ERR_DEVICE);
    rp_stage_release(stage, &mark);
    test_ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_holds_three),
        cmocka_unit_test(one_stage_with_a_step_in_flight),
        cmocka_unit_test(bits_are_those_of_a_run_on_the_device),
        cmocka_unit_test(microbatches_in_flight_are_saved),
        cmocka_unit_test(stashes_that_travel),
        cmocka_unit_test(a_failing_disk_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
