/* For tests: a job from texts, and a ring of stages in one process that hands tensors on by memory.
 */
#ifndef RP_TESTS_STAGE_RING_H
#define RP_TESTS_STAGE_RING_H

#include "expect.h"

#include "stage/stage.h"

enum { TEST_TENSOR_FLOATS = 1 << 16, TEST_PARCELS = 64 };

/* A parcel that waits between two stages. */
typedef struct {
    bool full;
    uint64_t step;
    rp_range samples;
    float *part[RP_CUT_TENSORS_MAX];
} test_parcel;

typedef struct {
    rp_job job;
    rp_stage *stage;
    rp_sched_state sched;
    rp_op op;
    bool has_op, over;
    test_parcel forward[TEST_PARCELS]; /* towards this stage */
    test_parcel backward[TEST_PARCELS];
} test_board;

typedef struct {
    rp_arena arena;
    rp_device *device;
    uint32_t count;
    test_board *board;
    double loss; /* mean of the last step */
    /* step s takes minibatch first + s * stride of the data; 0 and 1 by default */
    uint64_t first, stride;
    const rp_executor_kind *kind;
} test_ring;

/* `job`: the assignment without stage, stages and cut. `cut`: "[a, b]". */
static inline rp_err test_parse(rp_arena *arena, const char *model, const char *job,
                                const char *cut, uint32_t stages, uint32_t stage, rp_job *out) {
    rp_node *model_root;
    rp_node *job_root;
    char *text;
    rp_err err;
    RP_TRY(rp_config_read_text(arena, model, strlen(model), "model", &model_root));
    RP_TRY(rp_arena_printf(arena, &text, "stage: %u\nstages: %u\ncut: %s\n%s", stage, stages, cut,
                           job));
    RP_TRY(rp_config_read_text(arena, text, strlen(text), "job", &job_root));
    RP_TRY(rp_job_parse(arena, job_root, model_root, out));
fail:
    return err;
}

static rp_arena test_device_arena;
static rp_device *test_device;

static inline void test_device_close(void) {
    rp_device_close(&test_device);
    rp_arena_finish(&test_device_arena);
}

/* The device of all rings is opened once a process: programs are not read again for each. */
static inline rp_device *test_device_open(void) {
    const rp_device_options options = {.threads = 2};
    if (!test_device) {
        rp_arena_init(&test_device_arena, "test device", 0);
        expect_ok(rp_device_open(&test_device_arena, &options, &test_device));
        (void)atexit(test_device_close);
    }
    return test_device;
}

static inline void test_ring_open(test_ring *ring, rp_gemm_choice gemm, const char *model,
                                  const char *job, const char *cut, uint32_t stages) {
    const rp_site site = {.device = test_device_open()};
    *ring = (test_ring){
        .count = stages, .stride = 1, .device = site.device, .kind = rp_executor_find("opencl")};
    rp_arena_init(&ring->arena, "test ring", 0);
    rp_device_choose_gemm(ring->device, gemm);
    expect_ok(RP_ARENA_NEW(&ring->arena, stages, &ring->board));
    for (uint32_t k = 0; k < stages; k++) {
        test_board *board = &ring->board[k];
        expect_ok(test_parse(&ring->arena, model, job, cut, stages, k, &board->job));
        expect_ok(rp_stage_prepare(&ring->arena, ring->kind, &site, &board->job, &board->stage));
        rp_sched_shape shape = rp_job_sched_shape(&board->job, 0, board->job.steps);
        rp_sched_start(&board->sched, &shape);
    }
}

static inline void test_ring_close(test_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_stage_destroy(&ring->board[k].stage);
    }
    rp_arena_finish(&ring->arena);
}

static inline test_parcel *test_find(test_parcel *parcels, const rp_op *op) {
    for (uint32_t i = 0; i < TEST_PARCELS; i++) {
        if (parcels[i].full && parcels[i].step == op->step &&
            parcels[i].samples.first == op->samples.first &&
            parcels[i].samples.count == op->samples.count) {
            return &parcels[i];
        }
    }
    return NULL;
}

static inline test_parcel *test_fill(test_ring *ring, test_parcel *parcels, const rp_op *op) {
    for (uint32_t i = 0; i < TEST_PARCELS; i++) {
        if (!parcels[i].full) {
            parcels[i].full = true;
            parcels[i].step = op->step;
            parcels[i].samples = op->samples;
            for (uint32_t t = 0; t < 3 && !parcels[i].part[t]; t++) {
                expect_ok(RP_ARENA_NEW(&ring->arena, TEST_TENSOR_FLOATS, &parcels[i].part[t]));
            }
            return &parcels[i];
        }
    }
    fail_msg("too many parcels");
    return NULL;
}

/* Inputs and classes that depend on the sample's number only. */
static inline float test_input(uint64_t sample, size_t i) {
    rp_rng rng = rp_rng_named(sample, "test/input");
    rng.next = i;
    return rp_rng_uniform(&rng) * 2 - 1;
}

/* The first sample of an op. */
static inline uint64_t test_sample(const test_ring *ring, const rp_op *op) {
    return (ring->first + op->step * ring->stride) * ring->board[0].job.batch + op->samples.first;
}

static inline bool test_forward(test_ring *ring, uint32_t k) {
    test_board *board = &ring->board[k];
    const rp_op *op = &board->op;
    const void *in[RP_CUT_TENSORS_MAX];
    void *out[RP_CUT_TENSORS_MAX];
    test_parcel *from = NULL;
    static float input[TEST_TENSOR_FLOATS];
    if (k == 0) {
        size_t sample = rp_shape_count(&board->job.model->input);
        for (size_t i = 0; i < sample * op->samples.count; i++) {
            input[i] = test_input(test_sample(ring, op) + i / sample, i % sample);
        }
        in[0] = input;
    } else {
        from = test_find(board->forward, op);
        if (!from) {
            return false;
        }
        memcpy(in, from->part, sizeof from->part);
    }
    if (k + 1 < ring->count) {
        test_parcel *to = test_fill(ring, ring->board[k + 1].forward, op);
        memcpy(out, to->part, sizeof to->part);
    }
    expect_ok(rp_stage_forward(board->stage, op, &(rp_stage_piece){op->samples, in}, 1, out));
    expect_ok(rp_device_drain(ring->device));
    if (from) {
        from->full = false;
    }
    return true;
}

static inline bool test_backward(test_ring *ring, uint32_t k) {
    test_board *board = &ring->board[k];
    const rp_op *op = &board->op;
    const void *in[RP_CUT_TENSORS_MAX] = {NULL};
    void *out[RP_CUT_TENSORS_MAX] = {NULL};
    test_parcel *from = NULL;
    int32_t target[256];
    if (op->kind != RP_OP_BACKWARD_WEIGHT) {
        bool wants = rp_layout_crossing(rp_stage_layout(board->stage), true, true).count > 0;
        if (k + 1 < ring->count && wants) {
            from = test_find(board->backward, op);
            if (!from) {
                return false;
            }
            memcpy(in, from->part, sizeof from->part);
        }
        for (uint32_t i = 0; i < op->samples.count; i++) {
            target[i] = (int32_t)((test_sample(ring, op) + i) % 3);
        }
        if (k + 1 == ring->count) {
            in[0] = target;
        }
        if (k > 0 && rp_layout_crossing(rp_stage_layout(board->stage), false, true).count > 0) {
            test_parcel *to = test_fill(ring, ring->board[k - 1].backward, op);
            memcpy(out, to->part, sizeof to->part);
        } else {
            out[0] = NULL;
        }
    }
    expect_ok(rp_stage_backward(board->stage, op, &(rp_stage_piece){op->samples, in}, 1, out));
    expect_ok(rp_device_drain(ring->device));
    if (from) {
        from->full = false;
    }
    return true;
}

static inline bool test_update(test_ring *ring, uint32_t k) {
    test_board *board = &ring->board[k];
    if (k + 1 == ring->count) {
        float results[512];
        rp_sched_shape shape = rp_job_sched_shape(&board->job, 0, board->job.steps);
        uint32_t samples = rp_sched_step_samples(&shape, board->op.step);
        expect_ok(rp_stage_results(board->stage, results, samples));
        expect_ok(rp_device_drain(ring->device));
        ring->loss = 0;
        for (uint32_t i = 0; i < samples; i++) {
            ring->loss += (double)results[2 * i] / samples;
        }
    }
    expect_ok(rp_stage_update(board->stage, &board->op, 1.0f, false));
    return true;
}

/* All steps, stage by stage as far as each can go. */
static inline void test_ring_run(test_ring *ring) {
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t k = 0; k < ring->count; k++) {
            test_board *board = &ring->board[k];
            if (!board->has_op && !board->over) {
                board->has_op = board->job.method.kind->next(&board->sched, &board->op);
                board->over = !board->has_op;
            }
            if (!board->has_op) {
                continue;
            }
            bool done = board->op.kind == RP_OP_FORWARD  ? test_forward(ring, k)
                        : board->op.kind == RP_OP_UPDATE ? test_update(ring, k)
                                                         : test_backward(ring, k);
            board->has_op = !done;
            moved |= done;
        }
    }
    for (uint32_t k = 0; k < ring->count; k++) {
        assert_true(ring->board[k].over);
    }
}

/* Every exported value and optimiser state of the whole model, in model order by name. */
static inline size_t test_ring_weights(test_ring *ring, float *out, size_t max) {
    size_t used = 0;
    for (int states = 0; states < 2; states++) {
        for (uint32_t k = 0; k < ring->count; k++) {
            rp_stage *stage = ring->board[k].stage;
            uint32_t first = states ? rp_stage_tensor_count(stage, false) : 0;
            for (uint32_t i = first; i < rp_stage_tensor_count(stage, states); i++) {
                char name[256];
                rp_shape shape;
                expect_ok(rp_stage_tensor_at(stage, i, name, sizeof name, &shape));
                size_t count = rp_shape_count(&shape);
                assert_true(used + count <= max);
                expect_ok(rp_stage_tensor_read(stage, i, 0, count, out + used));
                used += count;
            }
        }
    }
    return used;
}

#endif
