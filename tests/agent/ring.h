/* For tests: a job from texts, and a ring of the real runners in one process, over links of the
 * inproc transport. Node n holds the stages n, n + nodes, ..; where stages are split, the half of
 * one that the plan says. The test plays the host. */
#ifndef RP_TESTS_AGENT_RING_H
#define RP_TESTS_AGENT_RING_H

#include "expect.h"

#include "agent/connect.h"
#include "agent/runner.h"
#include "sched/split.h"
#include "transport/inproc.h"

enum { TEST_NODES_MAX = 16, TEST_INPUT_FLOATS = 1 << 16, TEST_SAMPLES_MAX = 256 };

/* Both ends of a link; NULL: there is none. */
typedef struct {
    rp_link *bound, *connected;
} test_pair;

typedef struct {
    rp_job job;
    rp_stage *stage;
} test_board;

typedef struct {
    rp_runner *runner;
    test_pair control, feed;       /* bound here, connected by the host */
    test_pair hop[TEST_NODES_MAX]; /* to a neighbour: bound there, connected here */
    bool active;
    uint64_t norms_step; /* that its norms came for, and how many */
    uint32_t norms_count;
} test_node;

typedef struct {
    rp_arena arena;
    rp_device *device;
    rp_clock clock;
    rp_hub *hub;
    rp_transport *transport;
    rp_links *links;
    uint32_t count; /* of boards below */
    uint32_t nodes;
    test_board *board; /* by stage; where stages are split, by node */
    rp_plan *plan;
    test_node node[TEST_NODES_MAX];
    double loss; /* mean of the last step */
    /* step s takes minibatch first + s * stride of the data; 0 and 1 by default */
    uint64_t first, stride;
    uint64_t input_step, label_step; /* that the host feeds next */
    uint32_t input_micro;
    float *input;
    int32_t *label;
    uint64_t steps_done;
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

/* Of the rings that are opened from here on, by boundary; NULL: f32. */
static const rp_codec (*test_codec)[2];
static rp_codec test_input_codec; /* the test encodes */
/* Of the same: tensors of a stash that leave where it is offloaded; 0: all. */
static uint32_t test_leave_tensors;

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

/* ---- opening --------------------------------------------------------------------------------- */

static inline void test_pair_open(test_ring *ring, const char *name, uint32_t node, uint32_t window,
                                  test_pair *out) {
    char endpoint[64];
    (void)snprintf(endpoint, sizeof endpoint, "inproc://%s-%u", name, node);
    rp_link_options options = {.name = name,
                               .bind = endpoint,
                               .window = window,
                               .send_window = window,
                               .part_bytes_max = TEST_INPUT_FLOATS * sizeof(float)};
    expect_ok(rp_link_open(ring->links, &options, &out->bound));
    options.bind = NULL;
    options.connect = endpoint;
    expect_ok(rp_link_open(ring->links, &options, &out->connected));
}

/* All neighbours of a ring in a row: the one with the lower number dials. */
static inline void test_open_links(test_ring *ring, uint32_t node) {
    const rp_runner_use feed = rp_runner_use_of(ring->plan, node, RP_PLAN_HOST);
    uint32_t far[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t count = rp_plan_neighbours(ring->plan, node, far);
    test_node *n = &ring->node[node];
    test_pair_open(ring, "control", node, 1, &n->control);
    if (feed.edges > 0) {
        test_pair_open(ring, "feed", node, feed.window, &n->feed);
    }
    for (uint32_t i = 0; i < count; i++) {
        const rp_runner_use use = rp_runner_use_of(ring->plan, node, far[i]);
        char name[32];
        if (rp_plan_dials(ring->plan, node, far[i])) { /* as many each way */
            (void)snprintf(name, sizeof name, "hop%u", far[i]);
            test_pair_open(ring, name, node, use.window + use.send_window, &n->hop[far[i]]);
        }
    }
}

static inline void test_open_runner(test_ring *ring, uint32_t node) {
    test_node *n = &ring->node[node];
    rp_runner_options options = {.clock = &ring->clock, .control = n->control.bound};
    for (uint32_t s = node; s < ring->count; s += ring->nodes) {
        options.held[options.held_count++] =
            (rp_runner_held){&ring->board[s].job, ring->board[s].stage};
    }
    rp_runner_far far[TEST_NODES_MAX + 1] = {{RP_PLAN_HOST, n->feed.bound}};
    for (uint32_t k = 0; k < ring->nodes; k++) {
        far[k + 1] =
            (rp_runner_far){k, rp_plan_dials(ring->plan, node, k) ? n->hop[k].connected
                                                                  : ring->node[k].hop[node].bound};
    }
    if (!ring->plan->method.kind->splits) { /* not by a host so far */
        expect_ok(rp_plan_check_training(ring->plan, NULL));
    }
    expect_ok(rp_runner_connect(&options, ring->plan, node, far, ring->nodes + 1));
    expect_ok(rp_runner_open(&ring->arena, &options, &n->runner));
}

/* The plan that the controller would send. */
static inline rp_plan *test_plan(rp_arena *arena, const rp_job *job) {
    static uint32_t size[64][2];
    for (uint32_t k = 0; job->size && k < job->cut.stage_count; k++) {
        assert_true(k < 64);
        size[k][0] = job->size[k][0];
        size[k][1] = job->size[k][1] ? job->size[k][1] : size[k][0];
    }
    const rp_plan_options options = {.model_name = "test",
                                     .model = job->model,
                                     .cut = &job->cut,
                                     .method = &job->method,
                                     .batch = job->batch,
                                     .micro = job->micro,
                                     .size = job->size ? size : NULL,
                                     .epoch_samples = job->epoch_samples,
                                     .step_first = job->step_first,
                                     .steps = job->steps,
                                     .codec = test_codec,
                                     .input_codec = test_input_codec};
    rp_plan *plan;
    expect_ok(rp_plan_make(arena, &options, &plan));
    return plan;
}

static inline void test_ring_open_on(test_ring *ring, const char *executor, const rp_site *site,
                                     const char *model, const char *job, const char *cut,
                                     uint32_t stages) {
    *ring = (test_ring){.count = stages, .stride = 1, .clock = rp_clock_real()};
    rp_arena_init(&ring->arena, "test ring", 0);
    expect_ok(rp_hub_new(&ring->arena, 0, &ring->hub));
    const rp_transport_options inproc = {.clock = &ring->clock, .hub = ring->hub};
    expect_ok(rp_transport_start(&ring->arena, "inproc", &inproc, &ring->transport));
    const rp_links_options links = {.clock = &ring->clock, .transport = ring->transport};
    expect_ok(rp_links_open(&ring->arena, &links, &ring->links));
    expect_ok(RP_ARENA_NEW(&ring->arena, 2 * (size_t)stages, &ring->board));
    expect_ok(RP_ARENA_NEW(&ring->arena, TEST_INPUT_FLOATS, &ring->input));
    expect_ok(RP_ARENA_NEW(&ring->arena, TEST_SAMPLES_MAX, &ring->label));
    expect_ok(test_parse(&ring->arena, model, job, cut, stages, 0, &ring->board[0].job));
    const rp_method *method = &ring->board[0].job.method;
    ring->nodes = rp_method_boards(method, stages);
    ring->count = method->kind->splits ? ring->nodes : stages;
    assert_true(ring->nodes > 0 && ring->nodes <= TEST_NODES_MAX);
    for (uint32_t k = 0; k < ring->count; k++) {
        const uint32_t stage = rp_sched_split_stage(stages, method->whole, k);
        expect_ok(test_parse(&ring->arena, model, job, cut, stages, stage, &ring->board[k].job));
    }
    ring->plan = test_plan(&ring->arena, &ring->board[0].job);
    for (uint32_t k = 0; k < ring->count; k++) {
        test_board *board = &ring->board[k];
        board->job.role = method->kind->splits ? ring->plan->hold[k].role : RP_ROLE_BOTH;
        rp_plan_codecs_of(ring->plan, board->job.stage, board->job.codec);
        board->job.leave_tensors = test_leave_tensors;
        expect_ok(rp_stage_prepare(&ring->arena, rp_executor_find(executor), site, &board->job,
                                   &board->stage));
    }
    for (uint32_t n = 0; n < ring->nodes; n++) {
        test_open_links(ring, n);
    }
    for (uint32_t n = 0; n < ring->nodes; n++) {
        test_open_runner(ring, n);
    }
}

static inline void test_ring_open(test_ring *ring, rp_gemm_choice gemm, const char *model,
                                  const char *job, const char *cut, uint32_t stages) {
    const rp_site site = {.device = test_device_open()};
    rp_device_choose_gemm(site.device, gemm);
    test_ring_open_on(ring, "opencl", &site, model, job, cut, stages);
    ring->device = site.device;
}

static inline void test_pair_close(test_pair *pair) {
    rp_link_close(&pair->bound);
    rp_link_close(&pair->connected);
}

static inline void test_ring_close(test_ring *ring) {
    for (uint32_t n = 0; n < ring->nodes; n++) {
        rp_runner_close(&ring->node[n].runner);
    }
    for (uint32_t n = 0; n < ring->nodes; n++) {
        test_pair_close(&ring->node[n].control);
        test_pair_close(&ring->node[n].feed);
        for (uint32_t k = 0; k < ring->nodes; k++) {
            test_pair_close(&ring->node[n].hop[k]);
        }
    }
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_stage_destroy(&ring->board[k].stage);
    }
    rp_links_close(&ring->links);
    rp_transport_finish(&ring->transport);
    rp_hub_finish(&ring->hub);
    rp_arena_finish(&ring->arena);
}

/* ---- the host's part ------------------------------------------------------------------------- */

/* Inputs and classes that depend on the sample's number only. */
static inline float test_input(uint64_t sample, size_t i) {
    rp_rng rng = rp_rng_named(sample, "test/input");
    rng.next = i;
    return rp_rng_uniform(&rng) * 2 - 1;
}

/* Fills ring->input[i] with element i of the sample; token ids where the model takes ids. */
static inline void test_fill_input(test_ring *ring, uint64_t sample, size_t i, size_t at) {
    const rp_model *model = ring->board[0].job.model;
    const float value = test_input(sample, i);
    if (model->input_type == RP_I32) {
        const float count = (float)rp_model_id_count(model);
        const int32_t id = (int32_t)((value + 1) / 2 * count);
        memcpy(&ring->input[at], &id, sizeof id);
    } else {
        ring->input[at] = value;
    }
}

/* The first sample of a step. */
static inline uint64_t test_sample(const test_ring *ring, uint64_t step) {
    return (ring->first + step * ring->stride) * ring->board[0].job.batch;
}

static inline rp_err test_feed(rp_link *link, rp_kind kind, uint64_t step, rp_range samples,
                               const rp_part *part) {
    const rp_Parcel parcel = {.step = step, .first = samples.first, .count = samples.count};
    rp_Frame frame = rp_frame_of_parcel(kind, &parcel);
    return rp_link_send(link, &frame, part, 1, true, NULL, NULL);
}

/* Ahead of their inputs; but where both share a link, not so far ahead that they fill it. */
static inline void test_feed_labels(test_ring *ring, rp_link *link) {
    const rp_job *job = &ring->board[0].job;
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    const uint64_t ahead = ring->nodes > 1 ? job->steps : 0;
    while (ring->label_step < job->steps && ring->label_step <= ring->input_step + ahead &&
           rp_link_can_send(link)) {
        const uint64_t step = ring->label_step++;
        const rp_range samples = {0, rp_sched_step_samples(&shape, step)};
        assert_true(samples.count <= TEST_SAMPLES_MAX);
        for (uint32_t i = 0; i < samples.count; i++) {
            ring->label[i] = (int32_t)((test_sample(ring, step) + i) % 3);
        }
        const rp_shape rows = rp_shape_2(samples.count, 1);
        const rp_part part = rp_part_of_tensor(RP_DTYPE_I32, ring->label, &rows);
        expect_ok(test_feed(link, RP_KIND_LABEL, step, samples, &part));
    }
}

static inline void test_feed_inputs(test_ring *ring, rp_link *link) {
    const rp_job *job = &ring->board[0].job;
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    const size_t width = rp_shape_count(&job->model->input);
    while (ring->input_step < job->steps && rp_link_can_send(link)) {
        const uint64_t step = ring->input_step;
        const rp_range samples = rp_sched_micro_range(&shape, step, ring->input_micro++);
        for (size_t i = 0; i < width * samples.count; i++) {
            test_fill_input(ring, test_sample(ring, step) + samples.first + i / width, i % width,
                            i);
        }
        const rp_shape batch = rp_shape_batch(samples.count, &job->model->input);
        const rp_Dtype type = job->model->input_type == RP_I32 ? RP_DTYPE_I32 : RP_DTYPE_F32;
        const rp_part part = rp_part_of_tensor(type, ring->input, &batch);
        expect_ok(test_feed(link, RP_KIND_INPUT, step, samples, &part));
        if (ring->input_micro == rp_sched_micro_count(&shape, step)) {
            ring->input_micro = 0;
            ring->input_step++;
            if (ring->nodes == 1) {
                return;
            }
        }
    }
}

/* Every gradient is taken as it is. */
static inline void test_on_report(test_ring *ring, test_node *n, const rp_Frame *frame) {
    const rp_StepDone *done = &frame->body.step_done;
    const uint32_t held = ring->count / ring->nodes;
    switch (rp_frame_kind(frame)) {
    case RP_KIND_STEP_DONE:
        ring->loss = done->loss_sum / done->samples;
        ring->steps_done++;
        break;
    case RP_KIND_NORMS:
        n->norms_count = n->norms_step == frame->body.norms.step ? n->norms_count + 1 : 1;
        n->norms_step = frame->body.norms.step;
        if (n->norms_count == held) {
            n->norms_count = 0;
            expect_ok(rp_runner_decide_step(n->runner, n->norms_step, 1, false));
        }
        break;
    default:
        break;
    }
}

static inline void test_step_pair(test_pair *pair) {
    rp_link *const end[] = {pair->bound, pair->connected};
    for (uint32_t i = 0; i < 2 && pair->bound; i++) {
        expect_ok(rp_link_step(end[i]));
        rp_link_before_wait(end[i]);
    }
}

static inline void test_step_node(test_ring *ring, test_node *n) {
    rp_message *message;
    test_step_pair(&n->control);
    test_step_pair(&n->feed);
    for (uint32_t k = 0; k < ring->nodes; k++) {
        test_step_pair(&n->hop[k]);
    }
    if (n->active) {
        expect_ok(rp_runner_step(n->runner, &n->active));
    }
    while (rp_link_recv(n->control.connected, &message) == RP_OK) {
        test_on_report(ring, n, &message->frame);
        rp_link_release(n->control.connected, &message);
    }
}

static inline void test_ring_start(test_ring *ring) {
    const rp_job *job = &ring->board[0].job;
    for (uint32_t n = 0; n < ring->nodes; n++) {
        expect_ok(rp_runner_train(ring->node[n].runner, job->step_first, job->steps, false));
        ring->node[n].active = true;
    }
    ring->input_step = ring->label_step = job->step_first;
}

/* The node with the loss. */
static inline uint32_t test_last_node(const test_ring *ring) {
    const rp_method *method = &ring->plan->method;
    const uint32_t stages = ring->plan->stage_count;
    return method->kind->splits ? rp_method_backward_node(method, stages, stages - 1)
                                : ring->nodes - 1;
}

static inline void test_ring_feed(test_ring *ring) {
    test_feed_labels(ring, ring->node[test_last_node(ring)].feed.connected);
    test_feed_inputs(ring, ring->node[0].feed.connected);
}

/* One round of every node; false: all steps are done. */
static inline bool test_ring_step_nodes(test_ring *ring) {
    bool active = false;
    for (uint32_t n = 0; n < ring->nodes; n++) {
        test_step_node(ring, &ring->node[n]);
        active |= ring->node[n].active;
    }
    return active || ring->steps_done < ring->board[0].job.steps;
}

static inline bool test_ring_step(test_ring *ring) {
    test_ring_feed(ring);
    return test_ring_step_nodes(ring);
}

/* Every node has had every sample once in its step. */
static inline void test_ring_expect_ledger(test_ring *ring) {
    const rp_job *job = &ring->board[0].job;
    const rp_sched_shape shape = rp_job_sched_shape(job, job->step_first, job->steps);
    rp_run_ledger due = {0};
    rp_run_ledger_add_steps(&due, &shape, job->step_first, job->steps);
    for (uint32_t n = 0; n < ring->nodes; n++) {
        rp_run_ledger own;
        if (ring->board[n].job.role == RP_ROLE_FORWARD) {
            continue; /* has no gradients */
        }
        expect_ok(rp_runner_ledger(ring->node[n].runner, &own));
        assert_int_equal(own.samples, due.samples);
        assert_int_equal(own.digest, due.digest);
    }
}

/* All steps. */
static inline void test_ring_run(test_ring *ring) {
    const int64_t start_ns = rp_clock_now_ns(&ring->clock);
    test_ring_start(ring);
    while (test_ring_step(ring)) {
        if (rp_clock_now_ns(&ring->clock) - start_ns > 50 * RP_NS_PER_S) {
            fail_msg("the ring has stopped behind step %llu", (unsigned long long)ring->steps_done);
        }
    }
    test_ring_expect_ledger(ring);
}

/* ---- what it holds --------------------------------------------------------------------------- */

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
