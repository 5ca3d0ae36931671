/* Boundary tensors that travel encoded. */
#include "agent/ring.h"

#include "agent/runner_own.h"
#include "codec/convert.h"
#include "codec/encode.h"

/* The data crosses the first boundary beside an activation, and has no gradient. */
static const char model[] = "input: [2, 5, 5]\n"
                            "layers:\n"
                            "  - {name: conv1, kind: conv2d, out: 3, kernel: 3, pad: 1}\n"
                            "  - {name: tanh1, kind: tanh}\n"
                            "  - {name: cat, kind: concat, from: [data, tanh1]}\n"
                            "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                            "  - {name: tanh2, kind: tanh}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc1, kind: dense, out: 30}\n"
                            "  - {name: silu, kind: silu}\n"
                            "  - {name: fc2, kind: dense, out: 3}\n";
static const char job_format[] =
    "sample: [2, 5, 5]\nclasses: 3\nseed: 3\nbatch: %u\nmicrobatch: %u\nepoch_samples: 20\n"
    "steps: %u\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n"
    "schedule: %s\n";

enum { SAMPLES = 6, STEPS = 3, IMAGE = 50, MIDDLE = 75, FLOATS = 1 << 14 };
enum { DATA, TANH, PARTS }; /* of the first boundary */

typedef struct {
    test_ring ring;
    rp_darena *memory;
    rp_buffer *encoded, *values;
    rp_codec outside; /* applied here, between two stages without a codec */
    char part[PARTS][SAMPLES * MIDDLE * sizeof(float)];
    char gradient[SAMPLES * MIDDLE * sizeof(float)];
    uint8_t image[SAMPLES * IMAGE * sizeof(float)]; /* as a host sends it */
} pair;

/* Top-k is for gradients only. */
static rp_codec of_activations(rp_codec codec) {
    return rp_codec_kept(codec) > 0 ? RP_CODEC_F32 : codec;
}

static void open_pair(pair *p, rp_codec codec, bool inside) {
    char job[512];
    const rp_codec both[1][2] = {{of_activations(codec), codec}};
    test_codec = inside ? both : NULL;
    test_input_codec = inside ? of_activations(codec) : RP_CODEC_F32;
    p->outside = inside ? RP_CODEC_F32 : codec;
    (void)snprintf(job, sizeof job, job_format, (unsigned)SAMPLES, (unsigned)SAMPLES,
                   (unsigned)STEPS, "gpipe");
    test_ring_open(&p->ring, RP_GEMM_PANEL, model, job, "[cat]", 2);
    test_codec = NULL;
    test_input_codec = RP_CODEC_F32;
    expect_ok(rp_darena_open(&p->ring.arena, p->ring.device, "test", 0, 0, &p->memory));
    expect_ok(rp_darena_take(p->memory, sizeof p->gradient, &p->values));
    expect_ok(rp_darena_take(p->memory, 2 * sizeof p->gradient, &p->encoded));
}

static void close_pair(pair *p) {
    rp_darena_close(&p->memory);
    test_ring_close(&p->ring);
}

/* There and back, as the two stages would. */
static void lose_digits(pair *p, rp_codec codec, void *values, uint32_t count) {
    const rp_tensor tensor = {.buffer = p->values, .shape = rp_shape_2(SAMPLES, count)};
    if (codec != RP_CODEC_F32) {
        expect_ok(rp_tensor_write(p->ring.device, &tensor, values));
        expect_ok(rp_codec_encode(p->ring.device, codec, p->encoded, &tensor));
        expect_ok(rp_codec_decode(p->ring.device, codec, &tensor, p->encoded));
        expect_ok(rp_tensor_read(p->ring.device, values, &tensor));
        expect_ok(rp_device_drain(p->ring.device));
    }
}

/* All samples of an op, in two pieces. */
static void run_op(pair *p, uint32_t stage, rp_op_kind kind, uint64_t step, const char *const *from,
                   const size_t *bytes, void *const *out) {
    enum { FIRST = 4 };
    const rp_op op = {.kind = kind, .stage = stage, .step = step, .samples = {0, SAMPLES}};
    const void *first[PARTS] = {from[0], from[1]};
    const void *second[PARTS] = {from[0] + FIRST * bytes[0],
                                 from[1] ? from[1] + FIRST * bytes[1] : NULL};
    const rp_stage_piece pieces[] = {{.samples = {0, FIRST}, .part = first},
                                     {.samples = {FIRST, SAMPLES - FIRST}, .part = second}};
    rp_stage *at = p->ring.board[stage].stage;
    expect_ok(kind == RP_OP_FORWARD ? rp_stage_forward(at, &op, pieces, 2, out)
                                    : rp_stage_backward(at, &op, pieces, 2, out));
    expect_ok(rp_stage_drain(at));
}

static void run_forwards(pair *p, uint64_t step) {
    rp_stage *lower = p->ring.board[0].stage;
    const rp_boundary_tensors up = rp_layout_boundary(rp_stage_layout(lower), true, false);
    const rp_boundary_tensors in = rp_layout_boundary(rp_stage_layout(lower), false, false);
    const char *const image[PARTS] = {(const char *)p->image, NULL};
    void *const up_to[] = {p->part[0], p->part[1]};
    assert_int_equal(up.count, PARTS);
    assert_int_equal(up.codec[DATA], RP_CODEC_F32);
    for (size_t i = 0; i < (size_t)SAMPLES * IMAGE; i++) {
        p->ring.input[i] = test_input(step * SAMPLES + i / IMAGE, i % IMAGE);
        p->ring.label[i / IMAGE] = (int32_t)(i / IMAGE % 3);
    }
    lose_digits(p, of_activations(p->outside), p->ring.input, IMAGE);
    rp_codec_encode_host(in.codec[0], p->ring.input, SAMPLES, IMAGE, p->image);
    run_op(p, 0, RP_OP_FORWARD, step, image, in.bytes, up_to);
    lose_digits(p, of_activations(p->outside), p->part[TANH], MIDDLE);
}

/* How the samples of the gradient come in, and of each part of the boundary. */
static void run_rest(pair *p, uint64_t step) {
    const rp_layout *layout = rp_stage_layout(p->ring.board[0].stage);
    const rp_boundary_tensors up = rp_layout_boundary(layout, true, false);
    const rp_boundary_tensors down = rp_layout_boundary(layout, true, true);
    const char *const labels[PARTS] = {(const char *)p->ring.label, NULL};
    const char *const parts[PARTS] = {p->part[0], p->part[1]};
    const char *const gradient[PARTS] = {p->gradient, NULL};
    void *const down_to[] = {p->gradient};
    assert_int_equal(down.count, 1);
    run_op(p, 1, RP_OP_FORWARD, step, parts, up.bytes, NULL);
    run_op(p, 1, RP_OP_BACKWARD, step, labels, (size_t[]){sizeof(int32_t), 0}, down_to);
    lose_digits(p, p->outside, p->gradient, MIDDLE);
    run_op(p, 0, RP_OP_BACKWARD, step, gradient, down.bytes, NULL);
    for (uint32_t k = 0; k < 2; k++) {
        const rp_op update = {.kind = RP_OP_UPDATE, .stage = k, .step = step};
        expect_ok(rp_stage_update(p->ring.board[k].stage, &update, 1, false));
    }
}

static void run_step(pair *p, uint64_t step) {
    run_forwards(p, step);
    run_rest(p, step);
}

static size_t train_pair(rp_codec codec, bool inside, float *weights) {
    static pair p;
    open_pair(&p, codec, inside);
    for (uint64_t step = 0; step < STEPS; step++) {
        run_step(&p, step);
    }
    const size_t count = test_ring_weights(&p.ring, weights, FLOATS);
    close_pair(&p);
    return count;
}

/* Two stages with a codec are two without one that somebody puts between them, bit for bit. */
static void stages_encode_as_the_codec_says(void **state) {
    (void)state;
    static float plain[FLOATS];
    static float inside[FLOATS];
    static float outside[FLOATS];
    const size_t count = train_pair(RP_CODEC_F32, true, plain);
    for (int codec = RP_CODEC_F16; codec <= RP_CODEC_TOPK_100; codec++) {
        if (codec == RP_CODEC_UINT8) {
            continue; /* of inputs, below */
        }
        assert_int_equal(train_pair((rp_codec)codec, true, inside), count);
        assert_int_equal(train_pair((rp_codec)codec, false, outside), count);
        assert_memory_equal(inside, outside, count * sizeof *inside);
        assert_memory_not_equal(inside, plain, count * sizeof *inside);
        expect_close_all(inside, plain, count, 0, 0.05); /* at a rate of 0.05 */
    }
}

/* A step on images of k / 255: normalised here, or sent as bytes. */
static void run_pixels(pair *p, rp_codec codec, uint64_t step, float *up) {
    static const float mean[] = {0.13f, 0.5f};
    static const float deviation[] = {0.31f, 0.7f};
    const rp_layout *layout = rp_stage_layout(p->ring.board[0].stage);
    const rp_boundary_tensors in = rp_layout_boundary(layout, false, false);
    const char *const image[PARTS] = {(const char *)p->image, NULL};
    void *const up_to[] = {p->part[DATA], p->part[TANH]};
    assert_int_equal(in.bytes[0], codec == RP_CODEC_UINT8 ? IMAGE : IMAGE * sizeof(float));
    for (size_t i = 0; i < (size_t)SAMPLES * IMAGE; i++) {
        const float x = (float)((i * 37 + step) % 256) / 255.0f;
        const size_t group = i % IMAGE / (IMAGE / 2);
        p->ring.input[i] = codec == RP_CODEC_UINT8 ? x : (x - mean[group]) / deviation[group];
    }
    rp_codec_encode_host(codec, p->ring.input, SAMPLES, IMAGE, p->image);
    run_op(p, 0, RP_OP_FORWARD, step, image, in.bytes, up_to);
    memcpy(up, p->part, sizeof p->part);
}

/* The data that goes on to the second stage is the same, too: f32 there. */
static void bytes_are_normalised_on_the_board(void **state) {
    (void)state;
    static pair p;
    static float up[2][PARTS * SAMPLES * MIDDLE];
    for (int bytes = 0; bytes < 2; bytes++) {
        char job[512];
        const int end = snprintf(job, sizeof job, job_format, (unsigned)SAMPLES, (unsigned)SAMPLES,
                                 (unsigned)STEPS, "gpipe");
        (void)snprintf(job + end, sizeof job - (size_t)end,
                       "normalise: {mean: [0.13, 0.5], std: [0.31, 0.7]}\n");
        test_input_codec = bytes ? RP_CODEC_UINT8 : RP_CODEC_F32;
        test_ring_open(&p.ring, RP_GEMM_PANEL, model, job, "[cat]", 2);
        const rp_layout *layout = rp_stage_layout(p.ring.board[0].stage);
        assert_int_equal(layout->pixel_bytes, bytes ? 2 * 256 * sizeof(float) : 0);
        assert_int_equal(rp_stage_layout(p.ring.board[1].stage)->pixel_bytes, 0);
        run_pixels(&p, test_input_codec, 0, up[bytes]);
        test_input_codec = RP_CODEC_F32;
        test_ring_close(&p.ring);
    }
    assert_memory_equal(up[0], up[1], sizeof up[0]);
    assert_true(up[0][0] < 0 && up[0][1] != up[0][0]);
}

/* What leaves a stage has the bytes of its codec, and so have the device and the largest part. */
static void parcels_are_smaller(void **state) {
    (void)state;
    static pair plain;
    static pair coded;
    open_pair(&plain, RP_CODEC_F32, true);
    open_pair(&coded, RP_CODEC_INT8, true);
    const rp_layout *before = rp_stage_layout(plain.ring.board[1].stage);
    const rp_layout *after = rp_stage_layout(coded.ring.board[1].stage);
    const rp_boundary_tensors was = rp_layout_boundary(before, false, true);
    const rp_boundary_tensors is = rp_layout_boundary(after, false, true);
    assert_int_equal(was.sample_bytes, MIDDLE * sizeof(float));
    assert_int_equal(is.sample_bytes, MIDDLE + sizeof(float));
    assert_int_equal(before->codec_bytes, 0);
    assert_int_equal(after->codec_bytes, SAMPLES * (MIDDLE + sizeof(float)));
    assert_true(rp_layout_part_max(after, &coded.ring.board[1].job) <
                rp_layout_part_max(before, &plain.ring.board[1].job));
    close_pair(&plain);
    close_pair(&coded);
}

/* In every eighth step the first sample of a parcel is measured; what is not trained is not. */
static void losses_are_measured(void **state) {
    (void)state;
    static pair plain;
    static pair coded;
    rp_codec_loss loss[2];
    double lost = 0;
    double all = 0;
    float x[SAMPLES * MIDDLE];
    float back[SAMPLES * MIDDLE];
    open_pair(&plain, RP_CODEC_F32, true);
    open_pair(&coded, RP_CODEC_INT8, true);
    run_step(&plain, 0);
    memcpy(x, plain.part[TANH], sizeof x);
    lose_digits(&plain, RP_CODEC_INT8, plain.part[TANH], MIDDLE);
    memcpy(back, plain.part[TANH], sizeof back);
    for (uint32_t i = 0; i < MIDDLE; i++) {
        lost += ((double)back[i] - (double)x[i]) * ((double)back[i] - (double)x[i]);
        all += (double)x[i] * (double)x[i];
    }
    for (uint32_t k = 0; k < 2; k++) {
        expect_ok(rp_stage_take_losses(plain.ring.board[k].stage, loss));
        assert_true(loss[0].all == 0 && loss[1].all == 0);
    }
    run_step(&coded, 0);
    expect_ok(rp_stage_take_losses(coded.ring.board[0].stage, loss));
    assert_true(loss[1].all == 0); /* no gradient leaves the first stage */
    assert_true(loss[0].lost > 0);
    expect_close(loss[0].all, all, 0.02, 0); /* its input is encoded, too */
    expect_close(loss[0].lost, lost, 0.5, 0);
    expect_ok(rp_stage_take_losses(coded.ring.board[1].stage, loss));
    assert_true(loss[0].all == 0);
    assert_true(loss[1].lost > 0 && loss[1].lost < 1e-4 * loss[1].all);
    run_step(&coded, 1);
    for (uint32_t k = 0; k < 2; k++) {
        expect_ok(rp_stage_take_losses(coded.ring.board[k].stage, loss));
        assert_true(loss[0].all == 0 && loss[1].all == 0);
    }
    close_pair(&plain);
    close_pair(&coded);
}

/* ---- rings ----------------------------------------------------------------------------------- */

static double train_ring(const char *schedule, const char *cut, uint32_t stages,
                         const rp_codec (*codec)[2], float *weights) {
    char job[512];
    test_ring ring;
    (void)snprintf(job, sizeof job, job_format, 10u, 3u, 4u, schedule);
    test_codec = codec;
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, cut, stages);
    test_codec = NULL;
    test_ring_run(&ring);
    (void)test_ring_weights(&ring, weights, FLOATS);
    const double loss = ring.loss;
    test_ring_close(&ring);
    return loss;
}

/* Parcels of runners are cut and gathered by samples; what a ring computes twice is the same, and
 * near to what it computes without a codec. */
static void rings_train_with_codecs(void **state) {
    (void)state;
    static const rp_codec codecs[3][2] = {{RP_CODEC_INT8, RP_CODEC_BF16},
                                          {RP_CODEC_F16, RP_CODEC_F32},
                                          {RP_CODEC_F32, RP_CODEC_TOPK_100}};
    static const struct {
        const char *schedule, *cut;
        uint32_t stages;
    } cases[] = {
        {"1f1b", "[cat, flat, silu]", 4},
        {"async", "[cat, flat]", 3},
        {"{kind: interleaved-1f1b, chunks: 2}", "[cat, flat, silu]", 4},
    };
    static float weights[3][FLOATS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double loss[3];
        memset(weights, 0, sizeof weights);
        for (size_t run = 0; run < 3; run++) {
            loss[run] = train_ring(cases[i].schedule, cases[i].cut, cases[i].stages,
                                   run < 2 ? codecs : NULL, weights[run]);
        }
        assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
        assert_memory_not_equal(weights[0], weights[2], sizeof weights[0]);
        expect_close(loss[0], loss[2], 0.05, 0);
    }
}

/* A parcel of another codec than the plan's is the peer's fault. */
static void another_codec_is_refused(void **state) {
    (void)state;
    static const rp_codec codecs[1][2] = {{RP_CODEC_F16, RP_CODEC_F16}};
    char job[512];
    test_ring ring;
    rp_err err = RP_OK;
    (void)snprintf(job, sizeof job, job_format, 10u, 5u, 2u, "gpipe");
    test_codec = codecs;
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, "[cat]", 2);
    test_codec = NULL;
    rp_runner *second = ring.node[1].runner;
    for (uint32_t e = 0; e < second->at.edge_count; e++) {
        if (second->edge[e].carries == RP_KIND_ACTIVATION) {
            second->edge[e].codec = RP_CODEC_BF16;
        }
    }
    test_ring_start(&ring);
    ring.node[1].active = false; /* stepped here */
    for (int64_t start_ns = rp_clock_now_ns(&ring.clock);
         err == RP_OK && rp_clock_now_ns(&ring.clock) - start_ns < 50 * RP_NS_PER_S;) {
        bool active;
        (void)test_ring_step(&ring);
        err = rp_runner_step(second, &active);
    }
    assert_int_equal(err, RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(),
                           "received activation of stage 0 in codec f16 (1), the plan says bf16"));
    test_ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_encode_as_the_codec_says),
        cmocka_unit_test(bytes_are_normalised_on_the_board),
        cmocka_unit_test(parcels_are_smaller),
        cmocka_unit_test(losses_are_measured),
        cmocka_unit_test(rings_train_with_codecs),
        cmocka_unit_test(another_codec_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
