/* What boards are told of the setup, and whether they fit it. */
#include "arranged.h"

#include "setup/assignment.h"

static const char plain[] = "schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\n";

static bool has_text(const rp_part *part, const char *text) {
    return memmem(part->data, part->bytes, text, strlen(text)) != NULL;
}

static void an_assignment_names_who_dials_the_board(void **state) {
    (void)state;
    rp_board_order order;
    open_ring(plain, "cut=[fc2, fc3]");
    expect_ok(rp_arrangement_choose(setup_of_run));
    expect_ok(rp_arrangement_make_plan(setup_of_run));
    expect_ok(rp_arrangement_write_model(setup_of_run));
    ring.features = RP_WIRE_FEATURES;
    for (uint32_t k = 0; k < BOARDS; k++) {
        expect_ok(rp_board_order_assign(setup_of_run, k, 7, &order));
        assert_int_equal(rp_frame_kind(&order.frame), RP_KIND_ASSIGN);
        assert_int_equal(order.frame.body.assign.node, k);
        assert_int_equal(order.frame.body.assign.warm_s, 7);
        assert_true(order.frame.body.assign.features == RP_WIRE_FEATURES);
        assert_int_equal(order.part_count, 3);
        for (uint32_t other = 0; other < BOARDS; other++) {
            assert_int_equal(has_text(&order.part[0], ring.board[other].address.public_text),
                             other + 1 == k);
        }
        assert_true(has_text(&order.part[1], "fc1"));
        assert_false(has_text(&order.part[1], "onnx"));
        assert_int_equal(order.part[2].bytes, strlen(rp_arrangement_plan_text(setup_of_run)));
        rp_board_order_finish(&order);
    }
}

static void a_profile_is_of_the_whole_model(void **state) {
    (void)state;
    rp_board_order order;
    open_ring(plain, NULL);
    expect_ok(rp_arrangement_write_model(setup_of_run));
    for (uint32_t cores = 0; cores <= 2; cores += 2) { /* with two, boards first build */
        expect_ok(rp_measure_begin(measure, cores));
        expect_ok(rp_board_order_profile(setup_of_run, 1, 0, &order));
        assert_int_equal(rp_frame_kind(&order.frame), RP_KIND_PROFILE);
        assert_int_equal(order.frame.body.profile.build_only, cores == 2);
        assert_int_equal(order.part_count, 2);
        assert_false(has_text(&order.part[0], ring.board[0].address.public_text));
        rp_board_order_finish(&order);
    }
}

static void old_software_does_not_fit_what_is_asked(void **state) {
    static const struct {
        const char *more, *set;
        uint64_t lacks;
        const char *says;
    } cases[] = {
        {"links: {codec: f16}\n", NULL, RP_WIRE_FEATURE_CODECS, "does not support codec"},
        {"links: {codec: f16}\n", NULL, 0, NULL},
        {"", "train.storage.activations=bf16", RP_WIRE_FEATURE_STORAGE, "cannot store activations"},
        {"", "train.storage.activations=bf16", 0, NULL},
        {"", "train.anchor=0.5", RP_WIRE_FEATURE_ANCHOR, "cannot add a term to gradients"},
        {"", "train.anchor=0.5", 0, NULL},
        {"", NULL, RP_WIRE_FEATURE_COPIES | RP_WIRE_FEATURE_RECORDS | RP_WIRE_FEATURE_STORAGE,
         NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char more[200];
        const rp_Hello hello = {.software = "0.0.1",
                                .features = RP_WIRE_FEATURES & ~cases[i].lacks};
        (void)snprintf(more, sizeof more, "%s%s", plain, cases[i].more);
        open_ring(more, cases[i].set);
        if (cases[i].says) {
            expect_err(rp_arrangement_check_software(setup_of_run, 1, &hello), RP_ERR_PEER);
            assert_non_null(strstr(rp_err_message(), cases[i].says));
            assert_non_null(strstr(rp_err_message(), "board b1 (ringpipe 0.0.1)"));
        } else {
            expect_ok(rp_arrangement_check_software(setup_of_run, 1, &hello));
        }
        rp_measure_close(measure);
        measure = NULL;
        rp_arrangement_release(setup_of_run);
        rp_arrangement_close(setup_of_run);
        setup_of_run = NULL;
    }
}

/* Nobody asked for inputs as bytes: all boards get f32 instead. */
static void a_board_without_bytes_lowers_the_inputs(void **state) {
    (void)state;
    const rp_Hello hello = {.software = "0.0.1",
                            .features = RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_UINT8};
    open_ring(plain, NULL);
    assert_int_equal(run->input_codec, RP_CODEC_UINT8);
    expect_ok(rp_arrangement_check_software(setup_of_run, 0, &hello));
    assert_int_equal(run->input_codec, RP_CODEC_F32);
}

/* The lengths are in the assignment, which an older board would refuse. */
static void a_board_without_times_is_refused(void **state) {
    (void)state;
    const rp_Hello hello = {.software = "0.0.1",
                            .features = RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_TIMES};
    open_ring(plain, NULL);
    expect_ok(rp_arrangement_check_software(setup_of_run, 1, &hello));
    ((rp_runfile *)(uintptr_t)run)->data.buckets = (rp_buckets){.count = 1, .time = {3}};
    expect_err(rp_arrangement_check_software(setup_of_run, 1, &hello), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "does not support steps of several lengths, which "
                                             "data.buckets asks for"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_assignment_names_who_dials_the_board, setup, close_ring),
        cmocka_unit_test_setup_teardown(a_profile_is_of_the_whole_model, setup, close_ring),
        cmocka_unit_test_setup_teardown(old_software_does_not_fit_what_is_asked, setup, close_ring),
        cmocka_unit_test_setup_teardown(a_board_without_bytes_lowers_the_inputs, setup, close_ring),
        cmocka_unit_test_setup_teardown(a_board_without_times_is_refused, setup, close_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
