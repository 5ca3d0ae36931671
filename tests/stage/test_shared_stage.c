/* A stage whose samples several boards share: their gradients are summed, and then all of them have
 * what one board would have. */
#include "agent/ring.h"

enum { BATCH = 16, WIDTH = 8, FLOATS = 1 << 12, BOARDS = 3 };

static const char model[] = "input: [8]\nlayers:\n"
                            "  - {name: fc1, kind: dense, out: 11}\n"
                            "  - {name: relu1, kind: relu}\n"
                            "  - {name: fc2, kind: dense, out: 3}\n";
static const char job[] = "sample: [8]\nclasses: 3\nseed: 1\nbatch: 16\nmicrobatch: 4\n"
                          "epoch_samples: 64\nsteps: 12\nloss: cross-entropy\n"
                          "optimizer: {kind: adam, lr: 0.1}\nschedule: gpipe\n%s";
static const char *more; /* keys of the job */
static const double shares[BOARDS][2] = {{0, 0.3}, {0.3, 0.5}, {0.5, 1}};

typedef struct {
    rp_job job;
    rp_stage *stage;
    float *gradient;
} board;

static float x[BATCH * WIDTH];
static int32_t classes[BATCH];

static void open_board(rp_arena *arena, const char *executor, const double share[2], board *out) {
    const bool computes = strcmp(executor, "opencl") == 0;
    char text[512];
    (void)snprintf(text, sizeof text, job, more);
    const rp_site site = {.device = computes ? test_device_open() : NULL};
    expect_ok(test_parse(arena, model, text, "[]", 1, 0, &out->job));
    memcpy(out->job.share, share, sizeof out->job.share);
    expect_ok(rp_stage_prepare(arena, rp_executor_find(executor), &site, &out->job, &out->stage));
    expect_ok(RP_ARENA_NEW(arena, rp_stage_layout(out->stage)->gradient_bytes, &out->gradient));
}

/* Forwards and backwards of the board's own samples of a step, as its list says. */
static void run_passes(board *b, uint64_t step) {
    const void *const in[] = {x};
    const void *const target[] = {classes};
    const rp_stage_piece all[] = {{.samples = {0, BATCH}, .part = in},
                                  {.samples = {0, BATCH}, .part = target}};
    const rp_sched_shape shape = rp_job_sched_shape(&b->job, step, 12);
    rp_sched_state list;
    rp_op op;
    rp_sched_start(&list, &shape);
    while (b->job.method.kind->next(&list, &op) && op.kind != RP_OP_UPDATE) {
        expect_ok(op.kind == RP_OP_FORWARD ? rp_stage_forward(b->stage, &op, &all[0], 1, NULL)
                                           : rp_stage_backward(b->stage, &op, &all[1], 1, NULL));
    }
    expect_ok(rp_stage_read_gradient(b->stage, b->gradient));
    expect_ok(rp_stage_drain(b->stage));
}

static size_t update(board *b, uint64_t step, float *out) {
    const rp_op op = {.kind = RP_OP_UPDATE, .step = step, .samples = {0, BATCH}};
    size_t used = 0;
    expect_ok(rp_stage_update(b->stage, &op, 1, false));
    for (uint32_t i = 0; i < rp_stage_tensor_count(b->stage, true); i++) {
        char name[256];
        rp_shape tensor;
        expect_ok(rp_stage_tensor_at(b->stage, i, name, sizeof name, &tensor));
        const size_t count = rp_shape_count(&tensor);
        assert_true(used + count <= FLOATS);
        expect_ok(rp_stage_tensor_read(b->stage, i, 0, count, out + used));
        used += count;
    }
    return used;
}

/* `exact`: sums of digests have no order, those of floats are rounded. */
static void run_shared(const char *executor, bool exact) {
    static const double all[2] = {0, 1};
    static float one[FLOATS], shared[BOARDS][FLOATS];
    board whole;
    board part[BOARDS];
    const void *gradient[BOARDS];
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        x[i] = test_input(i / WIDTH, i % WIDTH);
        classes[i / WIDTH] = (int32_t)(i / WIDTH % 3);
    }
    open_board(&arena, executor, all, &whole);
    assert_int_equal(rp_stage_layout(whole.stage)->peers, 0); /* which would cost memory */
    run_passes(&whole, 0);
    const size_t count = update(&whole, 0, one);
    for (uint32_t b = 0; b < BOARDS; b++) {
        open_board(&arena, executor, shares[b], &part[b]);
        run_passes(&part[b], 0);
        gradient[b] = part[b].gradient;
    }
    for (uint32_t b = 0; b < BOARDS; b++) {
        expect_ok(rp_stage_sum_gradients(part[b].stage, gradient, BOARDS));
        assert_int_equal(update(&part[b], 0, shared[b]), count);
        assert_memory_equal(shared[b], shared[0], count * sizeof *one);
    }
    for (size_t i = 0; i < count && !exact; i++) {
        expect_close(shared[0][i], one[i], 1e-4, 1e-6);
    }
    if (exact) {
        assert_memory_equal(shared[0], one, count * sizeof *one);
    }
    /* without the others' gradients a board has another model */
    for (uint32_t b = 0; b < 2; b++) {
        run_passes(&part[b], 1);
        (void)update(&part[b], 1, shared[b]);
    }
    assert_memory_not_equal(shared[0], shared[1], count * sizeof *one);
    for (uint32_t b = 0; b < BOARDS; b++) {
        rp_stage_destroy(&part[b].stage);
    }
    rp_stage_destroy(&whole.stage);
    rp_arena_finish(&arena);
}

static void digests_are_those_of_one_board(void **state) {
    (void)state;
    more = "";
    run_shared("digest", true);
}

static void numbers_are_those_of_one_board(void **state) {
    (void)state;
    more = "";
    run_shared("opencl", false);
}

/* The anchor's term is added once, after the sum. */
static void anchors_are_those_of_one_board(void **state) {
    (void)state;
    more = "anchor: 0.5\n";
    run_shared("digest", true);
    run_shared("opencl", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_one_board),
        cmocka_unit_test(numbers_are_those_of_one_board),
        cmocka_unit_test(anchors_are_those_of_one_board),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
