/* A checkpoint goes to the boards: pieces, a board that takes none, a damaged file, no file. */
#include "keeping.h"

static rp_position at;

/* Until the load has ended, or for so many rounds. */
static rp_keep_outcome load_within(uint32_t rounds) {
    uint64_t fill_step = UINT64_MAX;
    rp_keep_outcome outcome = RP_KEEP_WAITS;
    for (uint32_t i = 0; i < rounds && outcome == RP_KEEP_WAITS; i++) {
        expect_ok(rp_keep_step_load(keep, &fill_step, &outcome));
        pass_ms(1);
    }
    assert_true(outcome != RP_KEEP_DONE || fill_step == at.step);
    return outcome;
}

static void begin_load(void) {
    const rp_keep_load_order order = {.plan = plan, .cut = &cut, .position = &at, .is_first = true};
    for (uint32_t k = 0; k < BOARDS; k++) {
        far[k].floats = 0;
        memset(far[k].orders, 0, sizeof far[k].orders);
    }
    expect_ok(rp_keep_begin_load(keep, &order));
}

static char *find(void) {
    char *path = NULL;
    at = (rp_position){0};
    expect_ok(rp_keep_find(keep, &arena, &path, &at));
    rp_keep_load_from(keep, path, RP_KEEP_CHECKPOINT);
    return path;
}

static uint64_t floats_of_stage(uint32_t stage) {
    uint64_t floats = 0;
    for (uint32_t i = 0; i < run.model->param_count; i++) {
        const rp_model_param *param = &run.model->param[i];
        const bool is_here =
            param->layer >= cut.first[stage] && param->layer < cut.first[stage + 1];
        floats += is_here ? param->count : 0;
    }
    return floats;
}

static void every_board_gets_its_stage(void **state) {
    (void)state;
    open_keep(NULL);
    save_at(4, 0.5F);
    assert_non_null(find());
    assert_int_equal(at.step, 4);
    ring.board[0].train.applied[0] = ring.board[1].train.applied[0] = 0;
    begin_load();
    assert_int_equal(load_within(200), RP_KEEP_DONE);
    rp_keep_abandon_load(keep);
    for (uint32_t k = 0; k < BOARDS; k++) {
        assert_int_equal(far[k].floats, floats_of_stage(k));
        assert_int_equal(far[k].orders[RP_KIND_TENSORS_END], 1);
        assert_int_equal(ring.board[k].train.applied[0], 4);
    }
    assert_int_equal(far[0].orders[RP_KIND_TENSOR], 3); /* the weights in two pieces, the bias */
    close_keep();
}

static void a_board_that_takes_nothing_is_named(void **state) {
    (void)state;
    open_keep(NULL);
    save_at(4, 0.5F);
    assert_non_null(find());
    begin_load();
    far[1].is_deaf = true;
    assert_int_equal(load_within(50), RP_KEEP_WAITS);
    assert_int_equal(rp_keep_load_is_late(keep), RP_ERR_TIMEOUT);
    assert_non_null(strstr(rp_err_message(), ring.board[1].name));
    assert_int_equal(far[0].floats, floats_of_stage(0));
    assert_int_equal(far[1].floats, 0);
    rp_keep_abandon_load(keep);
    close_keep();
}

static void a_load_begins_again_after_a_fault(void **state) {
    (void)state;
    open_keep(NULL);
    save_at(4, 0.5F);
    assert_non_null(find());
    begin_load();
    assert_int_equal(load_within(1), RP_KEEP_WAITS);
    rp_keep_abandon_load(keep);
    pass_ms(20);
    begin_load();
    assert_int_equal(load_within(200), RP_KEEP_DONE);
    rp_keep_abandon_load(keep);
    assert_int_equal(far[1].floats, floats_of_stage(1));
    close_keep();
}

static void the_one_before_a_damaged_one_is_found(void **state) {
    (void)state;
    open_keep(NULL);
    save_at(4, 0.5F);
    save_at(8, 0.25F);
    assert_non_null(find());
    assert_true(at.step == 8 && rp_keep_damage(keep)[0] == '\0');
    expect_ok(rp_keep_say_damage(keep, at.step));
    expect_events(0, .kind = RP_EVENT_DAMAGED);
    FILE *file = fopen(in_folder("out/checkpoint/step-0000000008.safetensors"), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -4, SEEK_END), 0);
    assert_int_equal(fputc(1, file), 1);
    assert_int_equal(fclose(file), 0);
    assert_non_null(find());
    assert_int_equal(at.step, 4);
    assert_non_null(strstr(rp_keep_damage(keep), "step-0000000008"));
    expect_ok(rp_keep_say_damage(keep, at.step));
    expect_events(1, .kind = RP_EVENT_DAMAGED, .step = 4, .error = "step-0000000008");
    close_keep();
}

static void without_a_file_nothing_is_sent(void **state) {
    (void)state;
    open_keep(NULL);
    assert_null(find());
    begin_load();
    assert_int_equal(load_within(1), RP_KEEP_DONE);
    rp_keep_abandon_load(keep);
    assert_int_equal(far[0].orders[RP_KIND_TENSORS_END], 0);
    close_keep();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_board_gets_its_stage, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_takes_nothing_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_load_begins_again_after_a_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(the_one_before_a_damaged_one_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_file_nothing_is_sent, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
