#include "agent/ring.h"

static const char model[] = "input: [2, 8, 8]\nlayers:\n"
                            "  - {name: conv, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                            "  - {name: bn, kind: batchnorm}\n"
                            "  - {name: relu, kind: relu}\n"
                            "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                            "  - {name: add, kind: add, from: [relu, conv2]}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc, kind: dense, out: 3}\n";
static const char job_format[] =
    "sample: [2, 8, 8]\nclasses: 3\nseed: 1\nbatch: 16\nmicrobatch: 2\nepoch_samples: 32\n"
    "steps: 4\nloss: cross-entropy\noptimizer: {kind: adam, lr: 0.1}\nschedule: %s\n";

typedef struct {
    rp_arena arena;
    rp_job job;
    rp_layout *layout;
} made;

static void make_layout(made *m, const char *schedule, const char *cut, uint32_t stages,
                        uint32_t stage) {
    char text[1024];
    (void)snprintf(text, sizeof text, job_format, schedule);
    rp_arena_init(&m->arena, "test", 0);
    expect_ok(test_parse(&m->arena, model, text, cut, stages, stage, &m->job));
    expect_ok(rp_layout_make(&m->arena, &m->job, RP_GEMM_PANEL, 64, &m->layout));
}

static const rp_layout_tensor *tensor_named(const made *m, const char *name) {
    uint32_t layer = rp_model_find(m->job.model, name);
    return &m->layout->tensor[m->layout->tensor_of[layer]];
}

static void in_place_layers_share_storage(void **state) {
    (void)state;
    made m;
    make_layout(&m, "gpipe", "[]", 1, 0);
    /* bn keeps its input, relu its output: bn's output is overwritten by relu's */
    assert_int_equal(tensor_named(&m, "bn")->storage, tensor_named(&m, "relu")->storage);
    assert_int_not_equal(tensor_named(&m, "conv")->storage, tensor_named(&m, "bn")->storage);
    assert_true(m.layout->value.storage[tensor_named(&m, "conv")->storage].kept);
    assert_true(m.layout->value.storage[tensor_named(&m, "relu")->storage].kept);
    /* the loss reads the output in backward */
    assert_true(m.layout->value.storage[tensor_named(&m, "fc")->storage].kept);
    assert_int_equal(m.layout->slots, 8); /* gpipe holds the whole step */
    assert_int_equal(m.layout->state_count, 2);
    rp_arena_finish(&m.arena);
}

/* Fewer samples can need more workspace: whether a product is turned depends on their number. */
static void fewer_samples_have_room(void **state) {
    (void)state;
    static const char narrow[] = "input: [16, 16, 16]\nlayers:\n"
                                 "  - {name: wide, kind: conv2d, out: 96, kernel: 1}\n"
                                 "  - {name: thin, kind: conv2d, out: 16, kernel: 1}\n"
                                 "  - {name: mean, kind: globalavgpool}\n"
                                 "  - {name: fc, kind: dense, out: 3}\n";
    static const char text[] =
        "sample: [16, 16, 16]\nclasses: 3\nseed: 1\nbatch: 8\nmicrobatch: 8\nepoch_samples: 8\n"
        "steps: 4\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.1}\nschedule: gpipe\n";
    made m;
    size_t whole = 0;
    size_t most = 0;
    rp_arena_init(&m.arena, "test", 0);
    expect_ok(test_parse(&m.arena, narrow, text, "[]", 1, 0, &m.job));
    expect_ok(rp_layout_make(&m.arena, &m.job, RP_GEMM_PANEL, 64, &m.layout));
    const rp_model *net = m.job.model;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const rp_model_view view = rp_model_view_at(net, 0);
        for (uint32_t n = 1; net->layer[i].kind->workspace_bytes && n <= 8; n++) {
            const size_t bytes = net->layer[i].kind->workspace_bytes(&net->layer[i], &view.plan[i],
                                                                     view.in[i], n, RP_GEMM_PANEL);
            most = bytes > most ? bytes : most;
            whole = n == 8 && bytes > whole ? bytes : whole;
        }
    }
    assert_true(most > whole); /* otherwise this net shows nothing */
    assert_int_equal(m.layout->workspace_bytes, most);
    rp_arena_finish(&m.arena);
}

/* One slot with all samples of a step where a backward has a size of its own. */
static void a_slot_may_hold_a_step(void **state) {
    (void)state;
    static const char sizes[] = "{kind: umpipe, forward: [2, 5, 3], backward: [2, 4, 16]}";
    made gpipe, umpipe;
    make_layout(&gpipe, "gpipe", "[conv2, flat]", 3, 1);
    make_layout(&umpipe, sizes, "[conv2, flat]", 3, 1);
    assert_int_equal(gpipe.layout->slots, 8);
    assert_int_equal(umpipe.layout->slots, 1);
    assert_int_equal(umpipe.layout->slot_bytes, 8 * gpipe.layout->slot_bytes);
    assert_true(umpipe.layout->scratch_bytes > gpipe.layout->scratch_bytes); /* 5 samples, not 2 */
    assert_int_equal(rp_job_pass_samples(&umpipe.job), 5);
    assert_int_equal(rp_job_parcel_samples(&umpipe.job), 16);
    rp_arena_finish(&umpipe.arena);
    make_layout(&umpipe, sizes, "[conv2, flat]", 3, 0); /* bn: as with gpipe */
    assert_int_equal(umpipe.layout->slots, 8);
    assert_false(rp_job_holds_steps(&umpipe.job));
    rp_arena_finish(&umpipe.arena);
    rp_arena_finish(&gpipe.arena);
}

/* Those of the first layers wait longest, and the fewest leave that have to. */
static void what_waits_longest_leaves_first(void **state) {
    (void)state;
    made m;
    make_layout(&m, "gpipe", "[]", 1, 0);
    const uint32_t order[] = {
        m.layout->value.storage[0].buffer, /* the input: of conv */
        m.layout->value.storage[tensor_named(&m, "conv")->storage].buffer,
        rp_layout_saved_part(m.layout, 1, 0), /* of bn, with conv's output: both are of its time */
        m.layout->value.storage[tensor_named(&m, "relu")->storage].buffer,
    };
    assert_int_equal(m.layout->leave_count, 0);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(m.layout->part_order[i], order[i]);
        assert_true(m.layout->part_bytes[order[i]] > 0);
    }
    const size_t whole = m.layout->total_bytes;
    rp_layout *less;
    m.job.offload = RP_OFFLOAD_HOST;
    expect_ok(rp_layout_make(&m.arena, &m.job, RP_GEMM_PANEL, 64, &less));
    assert_int_equal(less->leave_count, less->order_count);
    assert_int_equal(whole - less->total_bytes, 5 * less->slot_bytes); /* 8 slots, 3 stashes */
    assert_int_equal(rp_layout_leave_least(less, 0), less->order_count);
    assert_int_equal(rp_layout_leave_least(less, whole), 1); /* it may as well be none */
    uint64_t bytes = whole;
    for (uint32_t count = 1; count <= less->order_count; count++) {
        rp_layout *some;
        bytes -= 5 * rp_darena_round(less->part_bytes[less->part_order[count - 1]], 64);
        assert_int_equal(rp_layout_leave_least(less, bytes), count);
        assert_int_equal(rp_layout_leave_least(less, bytes - 1),
                         count < less->order_count ? count + 1 : count);
        m.job.leave_tensors = count;
        expect_ok(rp_layout_make(&m.arena, &m.job, RP_GEMM_PANEL, 64, &some));
        assert_int_equal(some->total_bytes, bytes);
        assert_int_equal(rp_layout_offloaded_bytes(some), 8 * some->leave_bytes);
    }
    assert_int_equal(bytes, less->total_bytes);
    m.job.leave_tensors = 1000; /* there are as many as there are */
    expect_ok(rp_layout_make(&m.arena, &m.job, RP_GEMM_PANEL, 64, &less));
    assert_int_equal(less->leave_count, less->order_count);
    rp_arena_finish(&m.arena);
}

static void slots_follow_the_schedule(void **state) {
    (void)state;
    made m;
    make_layout(&m, "1f1b", "[conv2, flat]", 3, 0);
    assert_int_equal(m.layout->slots, 3);
    assert_int_equal(m.layout->deferred_slots, 0);
    assert_int_equal(m.layout->output_count, 1); /* relu's, read by conv2 and add */
    rp_arena_finish(&m.arena);
    make_layout(&m, "1f1b", "[conv2, flat]", 3, 2);
    assert_int_equal(m.layout->slots, 1);
    rp_arena_finish(&m.arena);
    make_layout(&m, "1f1b", "[add, flat]", 3, 1);
    rp_boundary_tensors lower = rp_layout_boundary(m.layout, false, true);
    assert_int_equal(lower.count, 2); /* relu passes by conv2 */
    rp_arena_finish(&m.arena);
    make_layout(&m, "zb-h1", "[conv2, flat]", 3, 1);
    assert_true(m.layout->deferred_slots >= 1);
    assert_true(m.layout->deferred_bytes > 0);
    rp_arena_finish(&m.arena);
}

static void what_does_not_fit_is_refused_with_numbers(void **state) {
    (void)state;
    made m;
    make_layout(&m, "gpipe", "[]", 1, 0);
    expect_ok(rp_layout_check(m.layout, &m.job, m.layout->total_bytes));
    expect_err(rp_layout_check(m.layout, &m.job, m.layout->total_bytes - 1), RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), "8 slots"));
    assert_non_null(strstr(rp_err_message(), "conv"));
    rp_arena_finish(&m.arena);
}

/* The whole run, op by op, as the stage will keep its books. */
static void walk_ops(const made *m, uint32_t *slots, uint32_t *versions, bool *predicts) {
    rp_versions books;
    rp_op op;
    uint32_t live = 0;
    *slots = 1;
    *predicts = false;
    rp_arena arena;
    rp_arena_init(&arena, "books", 0);
    expect_ok(rp_versions_open(&arena, &m->job, 64, &books));
    for (rp_sched_state list = books.list; m->job.method.kind->next(&list, &op);) {
        if (op.kind == RP_OP_FORWARD) {
            *predicts |= rp_versions_forward(&books, &op).ahead > 0;
            live++;
        } else if (op.kind == RP_OP_BACKWARD) {
            *predicts |= rp_versions_backward(&books, &op).ahead > 0;
            live--;
        } else {
            (void)rp_versions_update(&books, &op);
        }
        *slots = live > *slots ? live : *slots;
    }
    *versions = books.block_count;
    rp_arena_finish(&arena);
}

static void epochs_of_any_length_have_room(void **state) {
    (void)state;
    static const char *const schedules[] = {
        "async",
        "pipedream",
        "{kind: pipedream, advance: 3}",
        "{kind: pipedream, vertical_sync: true}",
        "{kind: pipedream, drain: true}",
        "pipedream-2bw",
        "{kind: pipeoptim, horizon: exact}",
        "{kind: ea-pipe, replicas: 2, weights: stash}",
        "{kind: ea-pipe, replicas: 2, weights: pipeoptim, horizon: exact}",
        "avgpipe"};
    /* epochs of one step, of a few, and of more than anyone wants to walk; whole or with a rest */
    static const uint32_t samples[] = {1, 16, 33, 200, 16 * 300 + 1, 16 * 1500 + 1};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules * 6; i++) {
        char text[1024];
        made m;
        const uint32_t epoch = (samples[i % 6] + 15) / 16;
        (void)snprintf(text, sizeof text,
                       "sample: [2, 8, 8]\nclasses: 3\nseed: 1\nbatch: 16\nmicrobatch: 4\n"
                       "epoch_samples: %u\nsteps: %u\nloss: cross-entropy\n"
                       "optimizer: {kind: adam, lr: 0.1}\nschedule: %s\n",
                       samples[i % 6], epoch < 12 ? 30 : 2 * epoch, schedules[i / 6]);
        for (uint32_t stage = 0; stage < 5; stage++) {
            uint32_t slots;
            uint32_t versions;
            bool predicts;
            rp_arena_init(&m.arena, "test", 0);
            expect_ok(test_parse(&m.arena, model, text, "[bn, conv2, add, fc]", 5, stage, &m.job));
            expect_ok(rp_layout_make(&m.arena, &m.job, RP_GEMM_PANEL, 64, &m.layout));
            walk_ops(&m, &slots, &versions, &predicts);
            assert_int_equal(m.layout->slots, slots);
            assert_int_equal(m.layout->copies.versions, versions);
            assert_true(m.layout->copies.predicted > 0 || !predicts);
            rp_arena_finish(&m.arena);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_place_layers_share_storage),
        cmocka_unit_test(fewer_samples_have_room),
        cmocka_unit_test(a_slot_may_hold_a_step),
        cmocka_unit_test(what_waits_longest_leaves_first),
        cmocka_unit_test(slots_follow_the_schedule),
        cmocka_unit_test(what_does_not_fit_is_refused_with_numbers),
        cmocka_unit_test(epochs_of_any_length_have_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
