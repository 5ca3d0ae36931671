/* A plan is made from a model and a cut; one that does not hold together is refused with a name. */
#include <math.h>

#include "plans.h"

static const char model_text[] = "input: [1, 8, 8]\n"
                                 "layers:\n"
                                 "  - {name: conv1, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                                 "  - {name: relu1, kind: relu}\n"
                                 "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                                 "  - {name: sum, kind: add, from: [conv2, relu1]}\n"
                                 "  - {name: flat, kind: flatten}\n"
                                 "  - {name: fc, kind: dense, out: 10}\n";

static rp_model *read_model(rp_arena *arena, const char *text) {
    rp_node *root;
    rp_model *model;
    expect_ok(rp_config_read_text(arena, text, strlen(text), "model", &root));
    expect_ok(rp_model_parse(arena, root, &(rp_model_data){0}, &model));
    return model;
}

static rp_plan *plan_of_model(rp_arena *arena, const rp_model *model) {
    const char text[] = "cut: [conv2, flat]";
    rp_node *root;
    const char *const boards[] = {"left", "middle", "right"};
    const rp_method method = method_of("1f1b", 3);
    rp_cut cut;
    rp_plan *plan;
    expect_ok(rp_config_read_text(arena, text, sizeof text - 1, "cut", &root));
    expect_ok(rp_cut_parse(arena, model, rp_node_find(root, "cut"), &cut));
    const rp_plan_options options = {.model_name = "small",
                                     .model = model,
                                     .cut = &cut,
                                     .method = &method,
                                     .boards = boards,
                                     .memory_bytes =
                                         (const uint64_t[]){1 << 20, 1 << 20, 1 << 20, 1 << 20},
                                     .batch = 8,
                                     .micro = 2,
                                     .epoch_samples = 100,
                                     .steps = 50};
    expect_ok(rp_plan_make(arena, &options, &plan));
    expect_ok(rp_plan_check(plan, model));
    return plan;
}

static const rp_plan_edge *find_edge(const rp_plan *plan, rp_carries carries, uint32_t stage) {
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        if (plan->edge[e].carries == carries && plan->edge[e].stage == stage) {
            return &plan->edge[e];
        }
    }
    return NULL;
}

/* ---- sizes by stage and direction ------------------------------------------------------------ */

static const char normed[] = "input: [1, 8, 8]\n"
                             "layers:\n"
                             "  - {name: conv1, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                             "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                             "  - {name: bn, kind: batchnorm}\n"
                             "  - {name: flat, kind: flatten}\n"
                             "  - {name: fc, kind: dense, out: 10}\n";

/* Three stages of umpipe, the second one with batch statistics; microbatch 2. */
static rp_err plan_sizes(rp_arena *arena, const rp_model *model, const uint32_t (*size)[2],
                         rp_plan **out) {
    const uint32_t first[] = {0, 1, 3, 5};
    const rp_cut cut = {.stage_count = 3, .first = first};
    const rp_method method = method_of("umpipe", 3);
    const rp_plan_options options = {.model_name = "normed",
                                     .model = model,
                                     .cut = &cut,
                                     .method = &method,
                                     .batch = 8,
                                     .micro = 2,
                                     .size = size,
                                     .epoch_samples = 100,
                                     .steps = 50};
    return rp_plan_make(arena, &options, out);
}

static void batch_statistics_keep_the_microbatch(void **state) {
    (void)state;
    static const uint32_t good[3][2] = {{4, 3}, {2, 2}, {5, 8}};
    static const uint32_t bad[3][2] = {{4, 3}, {2, 4}, {5, 8}};
    rp_arena arena;
    rp_plan *plan, *other;
    rp_arena_init(&arena, "test", 0);
    const rp_model *model = read_model(&arena, normed);
    expect_ok(plan_sizes(&arena, model, good, &plan));
    assert_int_equal(plan->stage[0].micro_backward, 3);
    assert_int_equal(plan->stage[2].micro_forward, 5);
    assert_true(plan->stage[1].as_forward && !plan->stage[0].as_forward);
    expect_ok(rp_plan_check(plan, model));
    expect_ok(plan_sizes(&arena, model, NULL, &other));
    assert_true(rp_plan_digest(plan) != rp_plan_digest(other));
    expect_err(plan_sizes(&arena, model, bad, &other), RP_ERR_USAGE);
    assert_string_equal(rp_err_message(),
                        "plan: stages[1]: microbatches of 2 samples forward and 4 backward, and "
                        "layer 'bn' normalises over a microbatch: with another size it is another "
                        "model; expected train.microbatch, 2, in both directions");
    plan->stage[1].as_forward = false;
    expect_err(rp_plan_check(plan, model), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "stages[1].as_forward: expected true"));
    plan->stage[1].as_forward = true;
    plan->stage[2].as_forward = true; /* of two sizes */
    expect_err(rp_plan_check(plan, model), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

/* As many parcels as cover a path, as far as the receiver has memory for them; where no bytes are
 * known, as few as the schedule needs. */
static void windows_cover_the_path(void **state) {
    (void)state;
    static const struct {
        uint64_t memory;
        bool model;
        uint32_t input, activation;
    } cases[] = {{0, true, 256, 32},     /* all 32 microbatches of a step; 4 MiB hold 8192 */
                 {1 << 20, true, 32, 8}, /* 16 KiB: 512 bytes an input, 2048 an activation */
                 {1 << 10, true, 2, 7},  /* what the schedule needs, whatever there is */
                 {0, false, 2, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_method method = method_of("gpipe", 3);
        static const uint32_t first[] = {0, 2, 4, 6};
        const rp_cut cut = {.stage_count = 3, .first = first};
        rp_arena arena;
        rp_plan *plan;
        rp_arena_init(&arena, "test", 0);
        const rp_plan_options options = {
            .model = cases[i].model ? read_model(&arena, model_text) : NULL,
            .cut = &cut,
            .method = &method,
            .memory_bytes = (const uint64_t[]){cases[i].memory, cases[i].memory, cases[i].memory,
                                               cases[i].memory},
            .batch = 64,
            .micro = 2,
            .epoch_samples = 6400,
            .steps = 50};
        expect_ok(rp_plan_make(&arena, &options, &plan));
        assert_int_equal(find_edge(plan, RP_CARRIES_INPUT, 0)->window, cases[i].input);
        assert_int_equal(find_edge(plan, RP_CARRIES_ACTIVATION, 1)->window, cases[i].activation);
        assert_true(find_edge(plan, RP_CARRIES_LABEL, 2)->window >= cases[i].input - 1);
        expect_ok(rp_plan_check(plan, options.model));
        rp_arena_finish(&arena);
    }
}

static void todays_topology(void **state) {
    (void)state;
    rp_arena arena;
    rp_cut cut;
    rp_arena_init(&arena, "test", 0);
    rp_model *model = read_model(&arena, model_text);
    rp_plan *plan = plan_of_model(&arena, model);
    assert_int_equal(plan->node_count, 3);
    assert_string_equal(plan->node[1].name, "middle");
    assert_int_equal(plan->edge_count, 6);
    assert_string_equal(plan->stage[1].layer[0], "conv2");
    assert_string_equal(plan->stage[1].layer[1], "sum");
    const rp_plan_edge *up = find_edge(plan, RP_CARRIES_ACTIVATION, 1);
    assert_int_equal(up->from, 0);
    assert_int_equal(up->to, 1);
    assert_int_equal(up->tensor_count, 1);
    assert_string_equal(up->tensor[0], "relu1");
    assert_int_equal(find_edge(plan, RP_CARRIES_INPUT, 0)->from, RP_PLAN_HOST);
    assert_int_equal(find_edge(plan, RP_CARRIES_LABEL, 2)->to, 2);
    expect_ok(rp_plan_cut(&arena, plan, model, &cut));
    assert_int_equal(cut.stage_count, 3);
    assert_int_equal(cut.first[1], 2);
    assert_int_equal(cut.first[2], 4);
    assert_int_equal(rp_plan_find_node(plan, "right"), 2);
    assert_int_equal(rp_plan_find_node(plan, "host"), 3);
    rp_arena_finish(&arena);
}

static void another_model_is_refused(void **state) {
    (void)state;
    static const char *const changes[][2] = {
        {"out: 10", "out: 11"}, {"{name: fc,", "{name: fd,"}, {"kind: relu", "kind: tanh"}};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_model *model = read_model(&arena, model_text);
    rp_plan *plan = plan_of_model(&arena, model);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char *text;
        const char *at = strstr(model_text, changes[i][0]);
        expect_ok(rp_arena_printf(&arena, &text, "%.*s%s%s", (int)(at - model_text), model_text,
                                  changes[i][1], at + strlen(changes[i][0])));
        rp_model *other = read_model(&arena, text);
        assert_true(rp_plan_model_digest(other) != plan->model_digest);
        expect_err(rp_plan_check(plan, other), RP_ERR_USAGE);
    }
    plan->stage[2].layer[0] = "flatten";
    expect_err(rp_plan_check(plan, model), RP_ERR_USAGE);
    assert_string_equal(rp_err_message(),
                        "plan: stages[2].layers: layer 4 is 'flatten', but in the model 'flat'");
    rp_arena_finish(&arena);
}

static rp_plan *good_plan(rp_arena *arena) {
    static const spread_stage stage[] = {
        {1, {0}, 2, false}, {2, {0.5}, 2, false}, {1, {0}, 2, false}};
    rp_plan *plan = spread_plan(arena, "gpipe", stage, 3, 8);
    expect_ok(rp_plan_measure(plan));
    expect_ok(rp_plan_check(plan, NULL));
    return plan;
}

static void hole(rp_plan *p) {
    p->hold[1].share[1] = 0.4;
}
static void overlap(rp_plan *p) {
    p->hold[2].share[0] = 0.4;
}
static void twice(rp_plan *p) {
    p->hold[2].share[0] = 0;
}
static void no_backward(rp_plan *p) {
    p->hold[0].role = RP_ROLE_FORWARD;
}
static void not_a_number(rp_plan *p) {
    p->hold[0].share[1] = (double)NAN;
}
static void edge_gone(rp_plan *p) {
    p->edge[1].stage = 2;
}
static void same_name(rp_plan *p) {
    p->node[3].name = p->node[0].name;
}
static void no_window(rp_plan *p) {
    p->edge[0].window = 0;
}
static void codec(rp_plan *p) {
    p->edge[1].codec = RP_CODEC_F16;
}
static void codec_of_labels(rp_plan *p) {
    for (uint32_t e = 0; e < p->edge_count; e++) {
        if (p->edge[e].carries == RP_CARRIES_LABEL) {
            p->edge[e].codec = RP_CODEC_INT8;
        }
    }
}
static void codec_of_gradients(rp_plan *p) {
    for (uint32_t e = 0; e < p->edge_count; e++) {
        if (p->edge[e].carries == RP_CARRIES_ACTIVATION) {
            p->edge[e].codec = RP_CODEC_TOPK_100;
        }
    }
}
static void executor(rp_plan *p) {
    p->node[1].executor = "abacus";
}
static void large_micro(rp_plan *p) {
    p->stage[1].micro_forward = 9;
}
static void two_sizes(rp_plan *p) {
    p->stage[1].micro_backward = 4;
}
static void offload(rp_plan *p) {
    p->stage[2].offload = "tape";
}
static void tensors_that_stay(rp_plan *p) {
    p->stage[2].leave_tensors = 2;
}
static void recompute(rp_plan *p) {
    static const char *of_another_stage[] = {"fc2"};
    p->stage[1].recompute = true;
    p->stage[1].group = of_another_stage;
    p->stage[1].group_count = 1;
}
static void stage_gone(rp_plan *p) {
    p->hold[3].stage = 7;
}
static void unflushed(rp_plan *p) {
    p->method = method_of("pipedream", 3);
}
static void chunks(rp_plan *p) {
    p->method = method_of("{kind: interleaved-1f1b, chunks: 3}", 3);
}

/* A boundary's edges get its codecs; windows hold more parcels where these are smaller, and what
 * was made without codecs keeps its digest. */
static void boundaries_have_codecs(void **state) {
    (void)state;
    static const rp_codec all[2][2] = {{RP_CODEC_INT8, RP_CODEC_F16},
                                       {RP_CODEC_F32, RP_CODEC_BF16}};
    static const rp_codec none[2][2] = {{RP_CODEC_F32, RP_CODEC_F32}, {RP_CODEC_F32}};
    rp_arena arena;
    rp_codec at[2][2];
    rp_arena_init(&arena, "test", 0);
    rp_model *model = read_model(&arena, model_text);
    rp_plan *plan = plan_of_model(&arena, model);
    const uint64_t before = rp_plan_digest(plan);
    assert_int_equal(plan->stage_count, 3);
    assert_false(rp_plan_has_codec(plan));
    rp_plan_set_codecs(plan, model, none);
    assert_true(rp_plan_digest(plan) == before);
    rp_plan_set_codecs(plan, model, all);
    expect_ok(rp_plan_check(plan, model));
    assert_true(rp_plan_has_codec(plan));
    assert_true(rp_plan_digest(plan) != before);
    rp_plan_codecs_of(plan, 0, at);
    assert_int_equal(at[0][0], RP_CODEC_F32);
    rp_plan_set_input_codec(plan, model, RP_CODEC_F16);
    expect_ok(rp_plan_check(plan, model));
    rp_plan_codecs_of(plan, 0, at);
    assert_int_equal(at[0][0], RP_CODEC_F16);
    assert_int_equal(at[0][1], RP_CODEC_F32);
    rp_plan_codecs_of(plan, 1, at);
    assert_int_equal(at[0][0], RP_CODEC_INT8); /* below: activations, gradients */
    assert_int_equal(at[0][1], RP_CODEC_F16);
    assert_int_equal(at[1][0], RP_CODEC_F32);
    assert_int_equal(at[1][1], RP_CODEC_BF16);
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        rp_plan_edge edge = plan->edge[e];
        const uint64_t bytes = rp_plan_sample_bytes(&edge, model);
        const rp_codec codec = edge.codec;
        if (edge.carries == RP_CARRIES_LABEL) {
            assert_int_equal(codec, RP_CODEC_F32);
            continue;
        }
        assert_int_equal(edge.parcel_bytes, bytes * plan->micro);
        edge.codec = RP_CODEC_F32;
        const uint64_t floats = rp_plan_sample_bytes(&edge, model) / sizeof(float);
        assert_int_equal(bytes, rp_codec_bytes(codec, floats));
        assert_true(floats > 0);
    }
    rp_arena_finish(&arena);
}

/* What stays on a board is not encoded. */
static void a_board_does_not_encode_for_itself(void **state) {
    (void)state;
    static const rp_codec all[3][2] = {
        {RP_CODEC_INT8, RP_CODEC_INT8}, {RP_CODEC_INT8, RP_CODEC_INT8}, {RP_CODEC_INT8}};
    const plan_case one = {"{kind: interleaved-1f1b, chunks: 3}", 1, 8, 2, 40, 5};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &one, &plan));
    rp_plan_set_codecs(plan, NULL, all);
    assert_false(rp_plan_has_codec(plan));
    rp_arena_finish(&arena);
}

static void wrong_plans_are_named(void **state) {
    (void)state;
    static const struct {
        void (*change)(rp_plan *plan);
        const char *message;
    } cases[] = {
        {hole, "plan: holds.samples: stage 1: no node does the forward from 0.4 of the samples on"},
        {overlap, "stage 1: no node does the forward from 0.5 of the samples on"},
        {twice, "stage 1: 2 nodes do the forward from 0 of the samples on"},
        {no_backward, "stage 0: no node does the backward from 0 of the samples on"},
        {not_a_number, "nodes[0].holds[0].samples: node s0.0: expected a share within [0, 1]"},
        {edge_gone,
         "edges: expected one edge with the gradient of stage 0 from s1.0 to s0.0, found 0"},
        {same_name, "nodes[3].name: 's0.0' is empty, `host`, or the name"},
        {no_window, "edges[0].window: to s0.0: expected a window of 1 or more"},
        {codec,
         "edges[2].codec: to s0.0: codec f32, but edges[1] with the gradient of the same stage "
         "has f16; expected one codec"},
        {codec_of_labels, "codec: to s2.0: codec int8 of labels; expected f32"},
        {codec_of_gradients, "codec topk-0.1 of activations; expected f32"},
        {executor, "nodes[1].executor: expected opencl, timed or digest, found 'abacus'"},
        {large_micro, "stages[1].forward: a microbatch of 9 samples, expected 1 to 8"},
        {two_sizes, "stages[1].backward: microbatches of 2 samples forward and 4 backward"},
        {offload, "stages[2].offload: expected none, host or flash"},
        {tensors_that_stay, "stages[2].offload_tensors: is 2 without offload"},
        {recompute,
         "stages[1].recompute[0]: expected layers of the stage in their order, found 'fc2'"},
        {stage_gone, "nodes[3].holds[0].stage: node s2.0 holds stage 7, but the plan has 3"},
        {unflushed, "nodes[1].holds: node s1.0 holds a share of stage 1; schedule pipedream, which "
                    "does not flush"},
        {chunks, "nodes[0].holds: node s0.0 holds 1 stages; schedule interleaved-1f1b needs 3 for "
                 "each node"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_arena_init(&arena, "test", 0);
        rp_plan *plan = good_plan(&arena);
        cases[i].change(plan);
        if (rp_plan_check(plan, NULL) != RP_ERR_USAGE ||
            !strstr(rp_err_message(), cases[i].message)) {
            fail_msg("expected '%s', found '%s'", cases[i].message, rp_err_message());
        }
        rp_arena_finish(&arena);
    }
}

static void an_edge_too_many_is_refused(void **state) {
    (void)state;
    rp_arena arena;
    rp_plan_edge *more;
    rp_arena_init(&arena, "test", 0);
    rp_plan *plan = good_plan(&arena);
    expect_ok(RP_ARENA_NEW(&arena, plan->edge_count + 1, &more));
    memcpy(more, plan->edge, plan->edge_count * sizeof *more);
    more[plan->edge_count] = more[0];
    more[plan->edge_count].to = plan->node_count - 1;
    plan->edge = more;
    plan->edge_count++;
    expect_err(rp_plan_check(plan, NULL), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "edges, expected the "));
    rp_arena_finish(&arena);
}

static void offload_of_a_split_stage(rp_plan *p) {
    p->stage[1].offload = "host";
}
static void share_of_a_split_stage(rp_plan *p) { /* another board has the rest of the forward */
    p->hold[0].share[1] = 0.5;
    p->hold[1].stage = 0;
    p->hold[1].share[0] = 0.5;
}
static void both_roles(rp_plan *p) {
    p->hold[0].role = p->hold[1].role = RP_ROLE_BOTH;
    p->hold[2].role = p->hold[3].role = RP_ROLE_AVERAGE;
}
static void numbers_of_ahead(rp_plan *p) {
    p->method.ahead_count = 3;
    p->method.ahead[0] = p->method.ahead[1] = p->method.ahead[2] = 4;
}

/* Forward and backward of every stage on one node each, all samples of it. */
static void split_stages_are_whole(void **state) {
    (void)state;
    static const struct {
        void (*change)(rp_plan *plan);
        const char *message;
    } cases[] = {
        {offload_of_a_split_stage, "stages[1].offload: the stage is split (schedule pipefb)"},
        {share_of_a_split_stage, "stage 1: no node does the forward from 0 of the samples on"},
        {both_roles, "schedule pipefb needs one node in role forward and one in role backward"},
        {numbers_of_ahead, "stages, method.ahead: 2 stages and 3 numbers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const plan_case c = {"pipefb", 2, 8, 8, 20, 5};
        rp_arena arena;
        rp_plan *plan;
        rp_arena_init(&arena, "test", 0);
        expect_ok(make_plan(&arena, &c, &plan));
        expect_ok(rp_plan_check(plan, NULL));
        cases[i].change(plan);
        if (rp_plan_check(plan, NULL) != RP_ERR_USAGE ||
            !strstr(rp_err_message(), cases[i].message)) {
            fail_msg("expected '%s', found '%s'", cases[i].message, rp_err_message());
        }
        rp_arena_finish(&arena);
    }
    const rp_method method = method_of("pipefb", 66);
    const rp_cut cut = {.stage_count = 33};
    const rp_plan_options many = {
        .cut = &cut, .method = &method, .batch = 1, .micro = 1, .epoch_samples = 1, .steps = 1};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_err(rp_plan_make(&arena, &many, &plan), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "expected 1 to 32 stages, found 33"));
    rp_arena_finish(&arena);
}

static void chunks_must_divide_the_stages(void **state) {
    (void)state;
    const rp_method method = method_of("{kind: interleaved-1f1b, chunks: 2}", 3);
    const rp_cut cut = {.stage_count = 5};
    const rp_plan_options options = {
        .cut = &cut, .method = &method, .batch = 8, .micro = 2, .epoch_samples = 8, .steps = 1};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_err(rp_plan_make(&arena, &options, &plan), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_cover_the_path),
        cmocka_unit_test(todays_topology),
        cmocka_unit_test(another_model_is_refused),
        cmocka_unit_test(batch_statistics_keep_the_microbatch),
        cmocka_unit_test(boundaries_have_codecs),
        cmocka_unit_test(a_board_does_not_encode_for_itself),
        cmocka_unit_test(wrong_plans_are_named),
        cmocka_unit_test(an_edge_too_many_is_refused),
        cmocka_unit_test(split_stages_are_whole),
        cmocka_unit_test(chunks_must_divide_the_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
