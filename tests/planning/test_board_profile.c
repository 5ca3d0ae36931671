/* What is known of boards: what they say is checked, written, read back, and decides on a cut. */
#include "open_run.h"

#include <math.h>

#include "planning/cost.h"
#include "planning/planfile.h"
#include "planning/predict.h"

static void open_profile(rp_profile *out) {
    static const char *const names[] = {"left", "right"};
    read_run(&run, GPIPE);
    expect_ok(rp_profile_open(&arena, &run, 2, out));
    for (uint32_t k = 0; k < 2; k++) {
        out->board[k].name = out->board[k].like = names[k];
        out->board[k].device = "a CPU";
        out->board[k].memory_bytes = 1u << 30;
    }
}

/* A board that takes `a` + `b` n ms for n samples of a pass of layer 0, twice that of layer 1 .. */
static double *say(const rp_profile *profile, double a, double b, size_t *count) {
    const size_t layers = profile->layer_count;
    double *values;
    *count = rp_measured_count(layers, profile->size_count);
    expect_ok(RP_ARENA_NEW(&arena, *count, &values));
    for (size_t s = 0; s < profile->size_count; s++) {
        for (size_t i = 0; i < layers; i++) {
            for (size_t p = 0; p < RP_MEASURED_PASSES; p++) {
                const double part = p == 0 ? 1 : p == 1 ? 2 : p == 2 ? 1.25 : 0.75;
                double *at = &values[rp_measured_at(layers, s, i, p)];
                at[0] = part * (double)(i + 1) * (a + b * profile->sizes[s]) * 1e-3;
                at[1] = 0.01;
            }
        }
    }
    for (size_t i = 0; i < layers; i++) {
        values[rp_measured_update_at(layers, profile->size_count, i)] = 1e-4 * (double)i;
    }
    for (size_t i = 0; i < RP_MEASURED_COPIES; i++) {
        values[rp_measured_copy_at(layers, profile->size_count, i)] = 1e-5 * (double)(i + 1);
    }
    return values;
}

/* The same, and what its ops cost besides: 2 ms each, a ms a Ki of values predicted, averaged,
 * encoded, and 3 decoded. */
static double *say_besides(const rp_profile *profile, double a, double b, size_t *count) {
    const size_t layers = profile->layer_count;
    const size_t sizes = profile->size_count;
    size_t of_layers;
    double *values;
    const double *own = say(profile, a, b, &of_layers);
    *count = rp_measured_all(layers, sizes);
    expect_ok(RP_ARENA_NEW(&arena, *count, &values));
    memcpy(values, own, of_layers * sizeof *values);
    values[rp_measured_besides_at(layers, sizes, RP_BESIDES_HANDLING)] = 2e-3;
    for (size_t size = 0; size < 2; size++) {
        const double all_s = 1e-3 * RP_BESIDES_FLOATS[size] / 1024;
        const size_t which[] = {RP_BESIDES_PREDICTION + size, RP_BESIDES_AVERAGE + size,
                                rp_besides_codec(RP_CODEC_F16, 0, size),
                                rp_besides_codec(RP_CODEC_F16, 1, size)};
        for (size_t i = 0; i < 4; i++) {
            values[rp_measured_besides_at(layers, sizes, which[i])] = i == 3 ? 3 * all_s : all_s;
        }
    }
    return values;
}

static void sizes_reach_round_the_microbatch(void **state) {
    (void)state;
    rp_profile profile;
    open_profile(&profile);
    bool has_micro = false;
    for (uint32_t i = 0; i < profile.size_count; i++) {
        has_micro = has_micro || profile.sizes[i] == run.micro;
        assert_true(profile.sizes[i] >= 1 && profile.sizes[i] <= run.batch);
        assert_true(i == 0 || profile.sizes[i - 1] < profile.sizes[i]);
    }
    assert_true(has_micro);
    assert_int_equal(profile.sizes[profile.size_count - 1], run.batch);
}

static void an_op_costs_what_was_measured(void **state) {
    (void)state;
    rp_profile profile;
    size_t count;
    open_profile(&profile);
    const double *values = say(&profile, 3, 0.5, &count);
    expect_ok(rp_profile_take(&arena, &profile, 0, values, count));
    expect_close(rp_profile_pass_s(&profile, 0, 0, 1, RP_MEASURED_FORWARD, run.micro),
                 (3 + 0.5 * run.micro) * 1e-3, 1e-12, 0);
    expect_close(rp_profile_pass_s(&profile, 0, 0, 2, RP_MEASURED_BACKWARD, 3),
                 (1 + 2) * 2 * (3 + 0.5 * 3) * 1e-3, 1e-12, 0); /* between points */
    expect_close(rp_cost_op_s(&run, &profile, 0, 1, 3, RP_OP_UPDATE, 0), 3e-4, 1e-12, 0);
    expect_close(rp_profile_pass_s(&profile, 1, 0, 1, RP_MEASURED_FORWARD, 8), 0, 0, 0);
    assert_false(profile.board[1].known);
    rp_profile_take_like(&profile, 1, 0);
    assert_false(rp_profile_is_uneven(&profile, 2));
    assert_string_equal(profile.board[1].like, "left");
    expect_close(rp_profile_pass_s(&profile, 1, 0, 1, RP_MEASURED_FORWARD, 8), 7e-3, 1e-12, 0);
}

static void what_no_board_measures_is_refused(void **state) {
    (void)state;
    static const double bad[] = {-1e-9, (double)NAN, (double)INFINITY, -(double)INFINITY};
    rp_profile profile;
    size_t count;
    open_profile(&profile);
    double *values = say(&profile, 3, 0.5, &count);
    expect_ok(rp_profile_take(&arena, &profile, 0, values, count));
    for (size_t at = 0; at < count; at++) {
        const bool spread =
            at < rp_measured_update_at(profile.layer_count, profile.size_count, 0) && at % 2 > 0;
        for (size_t i = spread ? 1 : 0; i < 4; i++) { /* a negative spread: not measured */
            const double good = values[at];
            values[at] = bad[i];
            expect_err(rp_profile_take(&arena, &profile, 1, values, count), RP_ERR_PEER);
            values[at] = good;
        }
    }
    assert_false(profile.board[1].known);
    expect_err(rp_profile_take(&arena, &profile, 1, values, count - 1), RP_ERR_PEER);
    expect_err(rp_profile_take(&arena, &profile, 1, values, 0), RP_ERR_PEER);
    for (size_t s = 0; s < profile.size_count; s++) { /* all sizes of a layer left out */
        values[rp_measured_at(profile.layer_count, s, 1, 0) + 1] = -1;
    }
    expect_err(rp_profile_take(&arena, &profile, 1, values, count), RP_ERR_PEER);
    values[rp_measured_at(profile.layer_count, 0, 1, 0) + 1] = 0; /* one is enough */
    expect_ok(rp_profile_take(&arena, &profile, 1, values, count));
}

static void what_ops_cost_besides_is_taken(void **state) {
    (void)state;
    rp_profile profile;
    rp_profile back;
    size_t count;
    open_profile(&profile);
    double *values = say_besides(&profile, 3, 0.5, &count);
    for (size_t i = rp_measured_besides_at(profile.layer_count, profile.size_count, 0); i < count;
         i++) {
        const double good = values[i];
        values[i] = i % 3 ? -1e-9 : (double)NAN;
        expect_err(rp_profile_take(&arena, &profile, 0, values, count), RP_ERR_PEER);
        values[i] = good;
    }
    expect_ok(rp_profile_take(&arena, &profile, 0, values, count));
    rp_profile_take_like(&profile, 1, 0);
    FILE *file = fopen(in_folder("profile.json"), "w");
    assert_non_null(file);
    expect_ok(rp_profile_write(file, &run, &profile));
    assert_int_equal(fclose(file), 0);
    expect_ok(rp_profile_read(&arena, in_folder("profile.json"), &run, &back));
    const rp_profile *const both[] = {&profile, &back};
    for (uint32_t i = 0; i < 4; i++) {
        const rp_profile *of = both[i / 2];
        assert_true(of->board[i % 2].has_besides);
        expect_close(rp_profile_handling_s(of, i % 2), 2e-3, 1e-12, 0);
        expect_close(rp_profile_prediction_s(of, i % 2, 51200), 50e-3, 1e-9, 0);
        expect_close(rp_profile_average_s(of, i % 2, 1024), 1e-3, 1e-9, 0);
        expect_close(rp_profile_average_s(of, i % 2, 0), 0, 0, 0);
        expect_close(rp_profile_codec_s(of, i % 2, RP_CODEC_F16, true, 2048), 6e-3, 1e-9, 0);
        expect_close(rp_profile_codec_s(of, i % 2, RP_CODEC_INT8, true, 2048), 0, 0, 0);
    }
}

/* The right board is four times as slow, so it has fewer layers; and on the left one, more. */
static void slower_boards_have_fewer_layers(void **state) {
    (void)state;
    for (uint32_t slow = 0; slow < 2; slow++) {
        rp_profile profile;
        rp_cut cut;
        size_t count;
        open_profile(&profile);
        for (uint32_t k = 0; k < 2; k++) {
            const double *values = say(&profile, 0, k == slow ? 4 : 1, &count);
            expect_ok(rp_profile_take(&arena, &profile, k, values, count));
        }
        assert_true(rp_profile_is_uneven(&profile, 2));
        expect_ok(rp_cost_choose_cut_by_board(&arena, &run, &profile, &cut));
        assert_int_equal(cut.first[1], slow == 0 ? 1 : 2); /* layers cost 1, 2, 3 */
        double seconds[6];
        rp_profile_seconds(&profile, &run, &cut, seconds);
        expect_close(seconds[0], (slow == 0 ? 4e-3 : 1e-3) * run.micro, 1e-12, 0);
        expect_close(seconds[5], (slow == 1 ? 4e-3 : 1e-3) * 6 * run.micro, 1e-12, 0);
        const char *const swapped[] = {"right", "left"}; /* boards have changed their places */
        rp_profile_place(&profile, swapped, 2);
        expect_ok(rp_cost_choose_cut_by_board(&arena, &run, &profile, &cut));
        assert_int_equal(cut.first[1], slow == 0 ? 2 : 1);
        rp_runfile_close(&run);
    }
    read_run(&run, GPIPE);
}

/* Boards alike that are made slow differ, too. */
static void a_throttle_decides_on_the_cut(void **state) {
    (void)state;
    static const rp_board_throttle slow[] = {{"0", {.gflops = 1e-6}}, {"1", {.gflops = 1e-6}}};
    for (uint32_t k = 0; k < 2; k++) {
        rp_profile profile;
        rp_cut cut;
        size_t count;
        open_profile(&profile);
        const double *values = say(&profile, 0, 1e-6, &count);
        expect_ok(rp_profile_take(&arena, &profile, 0, values, count));
        rp_profile_take_like(&profile, 1, 0);
        run.throttle = (rp_throttles){.all = {.gflops = 1e-5}, .count = 1, .own = &slow[k]};
        expect_ok(rp_cost_choose_cut_by_board(&arena, &run, &profile, &cut));
        assert_int_equal(cut.first[1], k == 0 ? 1 : 2);
        const double flops = rp_model_flops_forward(run.model, 0, 1);
        expect_close(rp_cost_op_s(&run, &profile, k, 0, 1, RP_OP_FORWARD, 5), 5 * flops / 1e3, 1e-9,
                     0);
        rp_runfile_close(&run);
    }
    read_run(&run, GPIPE);
}

static void write_profile(const rp_profile *profile) {
    FILE *file = fopen(in_folder("profile.json"), "w");
    assert_non_null(file);
    expect_ok(rp_profile_write(file, &run, profile));
    assert_int_equal(fclose(file), 0);
}

static void what_is_written_is_read_back(void **state) {
    (void)state;
    rp_profile profile;
    rp_profile back;
    size_t count;
    open_profile(&profile);
    for (uint32_t k = 0; k < 2; k++) {
        const double *values = say(&profile, 1, k + 1, &count);
        expect_ok(rp_profile_take(&arena, &profile, k, values, count));
    }
    rp_profile_take_flash(&profile, 0, 25e6, 50e6);
    rp_profile_take_flash(&profile, 1, 25e6, (double)NAN); /* no rates */
    profile.board[0].device_memory = RP_DEVICE_MEMORY_SHARED;
    write_profile(&profile);
    expect_ok(rp_profile_read(&arena, in_folder("profile.json"), &run, &back));
    assert_int_equal(back.board_count, 2);
    assert_true(back.board[0].flash_rate[0] == 25e6 && back.board[0].flash_rate[1] == 50e6);
    assert_true(back.board[1].flash_rate[0] == 0 && back.board[1].flash_rate[1] == 0);
    assert_int_equal(back.board[0].device_memory, RP_DEVICE_MEMORY_SHARED);
    expect_err(rp_profile_check_boards("p.json", &run, &back), RP_ERR_USAGE); /* "0" and "1" */
    for (uint32_t k = 0; k < 2; k++) {
        const rp_profile_board *a = &profile.board[k];
        const rp_profile_board *b = &back.board[k];
        assert_string_equal(a->name, b->name);
        assert_string_equal(a->device, b->device);
        assert_int_equal(a->memory_bytes, b->memory_bytes);
        expect_close(a->copy_s[1][1], b->copy_s[1][1], 0, 0);
        for (uint32_t i = 0; i < profile.layer_count; i++) {
            expect_close(a->layer[i].update_s, b->layer[i].update_s, 0, 0);
            for (uint32_t p = 0; p < RP_MEASURED_PASSES; p++) {
                assert_memory_equal(&a->layer[i].pass[p], &b->layer[i].pass[p], sizeof(rp_curve));
            }
        }
    }
}

static void refused_after(const char *from, const char *to, const char *says) {
    rp_profile profile;
    rp_profile back;
    size_t count;
    char text[64 * 1024];
    open_profile(&profile);
    const double *values = say(&profile, 1, 1, &count);
    expect_ok(rp_profile_take(&arena, &profile, 0, values, count));
    rp_profile_take_like(&profile, 1, 0);
    write_profile(&profile);
    FILE *file = fopen(in_folder("profile.json"), "r");
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    text[bytes] = '\0';
    (void)fclose(file);
    char *at = strstr(text, from);
    assert_non_null(at);
    file = fopen(in_folder("profile.json"), "w");
    (void)fwrite(text, 1, (size_t)(at - text), file);
    (void)fprintf(file, "%s%s", to, at + strlen(from));
    (void)fclose(file);
    expect_err(rp_profile_read(&arena, in_folder("profile.json"), &run, &back), RP_ERR_USAGE);
    if (!strstr(rp_err_message(), says)) {
        fail_msg("'%s' is not in '%s'", says, rp_err_message());
    }
    rp_runfile_close(&run);
}

static void a_profile_of_something_else_is_refused(void **state) {
    (void)state;
    refused_after("\"version\": 2", "\"version\": 1", "version: expected 2, found 1");
    refused_after("\"model_digest\": \"", "\"model_digest\": \"f",
                  "it is a profile of another model");
    refused_after("\"update_s\"", "\"update\"", "update_s: expected seconds");
    refused_after("\"backward_input\"", "\"backwards_input\"", ".backward_input: expected 1 to");
    refused_after("\"samples\":", "\"sample\":", "[0]: expected {samples, seconds, spread}");
    refused_after("\"seconds\": 0", "\"seconds\": -0", "take -");
    refused_after("\"boards\": [", "\"board_list\": [", "boards: expected 1 to");
    refused_after("\"latency_s\":", "\"latency\":", "].latency_s: expected a finite number");
    refused_after("\"to\": \"right\"", "\"to\": \"wrong\"", "expected `from` and `to`");
    refused_after("\"sizes\": []", "\"sizes\": [{}]", ".bytes: expected a finite number");
    refused_after("{", "", "profile.json:");
    read_run(&run, GPIPE);
}

/* What was measured takes the place of 200 MB/s, with a rate of its own for each size; the latency
 * delays and costs nothing. */
static void wires_cost_what_was_measured(void **state) {
    (void)state;
    static const rp_curve_point trips[] = {
        {64, 20e-3, 0.1}, {1024, 21e-3, 0.1}, {1 << 20, 1.02, 0}};
    rp_profile profile;
    rp_profile back;
    size_t count;
    open_profile(&profile);
    for (uint32_t k = 0; k < 2; k++) {
        const double *values = say(&profile, 1, 1, &count);
        expect_ok(rp_profile_take(&arena, &profile, k, values, count));
    }
    const double assumed_s = rp_cost_boundary_s(&run, &profile, 1);
    expect_close(assumed_s, rp_cost_boundary_s(&run, NULL, 1), 0, 0);
    expect_ok(rp_profile_take_wire(&profile, 0, 1, trips, 3));
    expect_ok(rp_profile_take_wire(&profile, 1, 0, trips, 3));
    rp_profile_take_shared(&profile, 0, 1, true);
    assert_int_equal(rp_profile_take_wire(&profile, 0, 1, trips, 1), RP_ERR_USAGE);
    write_profile(&profile);
    expect_ok(rp_profile_read(&arena, in_folder("profile.json"), &run, &back));
    const rp_profile *const both[] = {&profile, &back};
    for (uint32_t i = 0; i < 2; i++) {
        const rp_profile_wire *wire = rp_profile_wire_at(both[i], 0, 1);
        double rate[4];
        expect_close(wire->latency_s, 10e-3, 1e-12, 0);
        expect_close(wire->bytes_per_s, 1048576, 1e-3, 0);
        assert_true(wire->shared && !wire->is_assumed);
        expect_close(rp_profile_wire_s(wire, 1024), 1e-3, 1e-9, 0);
        expect_close(rp_profile_wire_s(wire, 2 << 20), 2, 1e-2, 0);
        rp_cost_rates(&run, both[i], rate);
        assert_true(rate[1] > 0 && rate[2] > 0 && rate[0] == 0 && rate[3] == 0);
        const double bytes = assumed_s / 2 * 200e6; /* one way */
        expect_close(rp_cost_boundary_s(&run, both[i], 1), 2 * rp_profile_wire_s(wire, bytes), 1e-9,
                     0);
    }
}

static void predict(const rp_profile *profile, rp_prediction *out) {
    static const char *const names[] = {"left", "right"};
    static const uint32_t first[] = {0, 2, 3};
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    rp_plan *plan;
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    expect_ok(rp_predict(&arena, &run, profile, plan, 0, out));
}

/* Layers cost 1, 2, 3, so that both stages of gpipe cost 3: (M + D - 1)(F + B), and the update. A
 * board that is slower, or a wire, sets the pace, and is named. */
static void a_step_takes_what_the_replay_says(void **state) {
    (void)state;
    static const rp_curve_point slow[] = {{64, 1e-4, 0}, {4096, 40, 0}};
    rp_profile profile;
    rp_prediction found;
    size_t count;
    open_profile(&profile);
    for (uint32_t k = 0; k < 2; k++) {
        const double *values = say(&profile, 0, 1, &count);
        expect_ok(rp_profile_take(&arena, &profile, k, values, count));
    }
    const uint32_t micros = (run.batch + run.micro - 1) / run.micro;
    const double op_s = 3e-3 * run.micro;
    predict(&profile, &found);
    expect_close(found.step_s, (micros + 1) * 3 * op_s, 1e-2, 0);
    expect_close(found.work_s, micros * 3 * op_s, 1e-2, 0);
    expect_close(found.op_s[1][RP_OP_FORWARD], op_s, 1e-9, 0);
    expect_close(found.op_s[1][RP_OP_UPDATE], 2e-4, 1e-9, 0);
    const double before_s = found.step_s; /* copies delay each way of each microbatch once */
    const double bytes[] = {64 << 10, 4 << 20, 64};
    for (uint32_t i = 0; i < 2; i++) {
        expect_close(rp_profile_copy_s(&profile, 0, true, bytes[i]), 1e-5 * (3 + i), 1e-9, 0);
        expect_close(rp_profile_copy_s(&profile, 1, false, bytes[i]), 1e-5 * (1 + i), 1e-9, 0);
    }
    profile.board[0].copy_s[1][0] = profile.board[0].copy_s[1][1] = 0.5;
    assert_true(rp_profile_copy_s(&profile, 0, true, bytes[2]) == 0.5);
    predict(&profile, &found);
    expect_close(found.step_s - before_s, 0.5, 1e-3, 0);
    profile.board[0].copy_s[1][0] = profile.board[0].copy_s[1][1] = 0;
    rp_profile_slow_down(&profile, 1, 5);
    rp_profile_slow_down(&profile, 1, 2);
    predict(&profile, &found);
    assert_int_equal(found.board, 1);
    expect_close(found.op_s[1][RP_OP_BACKWARD], 20 * op_s, 1e-9, 0);
    expect_close(found.step_s, (micros * 30 + 3) * op_s, 1e-2, 0);
    assert_non_null(strstr(found.limits, "board right computes 9"));
    rp_profile_slow_down(&profile, 1, 0.1);
    expect_ok(rp_profile_take_wire(&profile, 1, 0, slow, 2));
    predict(&profile, &found);
    assert_non_null(strstr(found.limits, "the wire from board right to board left is in use 9"));
    expect_ok(rp_profile_take_wire(&profile, 0, 1, slow, 2)); /* as slow the other way */
    predict(&profile, &found);
    const double alone_s = found.wire_s;
    assert_false(found.takes_turns);
    rp_profile_take_shared(&profile, 0, 1, true);
    predict(&profile, &found);
    assert_true(found.takes_turns);
    expect_close(found.wire_s, 2 * alone_s, 1e-6, 0);
}

/* Handling is of every op; codecs of those that a boundary has, on both its boards; predictions of
 * stages that are not the last; averages of updates. */
static void ops_take_what_they_do_besides(void **state) {
    (void)state;
    static const rp_codec halves[][2] = {{RP_CODEC_F16, RP_CODEC_F16}};
    static const uint32_t first[] = {0, 2, 3};
    rp_profile profile;
    rp_prediction plain;
    rp_prediction found;
    size_t count;
    for (uint32_t with = 0; with < 2; with++) {
        open_profile(&profile);
        for (uint32_t k = 0; k < 2; k++) {
            const double *values =
                with ? say_besides(&profile, 0, 1, &count) : say(&profile, 0, 1, &count);
            expect_ok(rp_profile_take(&arena, &profile, k, values, count));
        }
        predict(&profile, with ? &found : &plain);
        if (with == 0) {
            rp_runfile_close(&run);
        }
    }
    const uint32_t micros = (run.batch + run.micro - 1) / run.micro;
    expect_close(found.step_s - plain.step_s, (2 * (micros + 1) + 1) * 2e-3, 1e-6, 0);
    expect_close(found.op_s[0][RP_OP_FORWARD], plain.op_s[0][RP_OP_FORWARD], 1e-12, 0);
    run.codec = halves;
    predict(&profile, &found);
    rp_boundary boundary;
    expect_ok(rp_cut_boundary_at(run.model, 2, &boundary));
    const double ki =
        run.micro * (double)rp_shape_count(rp_model_shape(run.model, boundary.producer[0])) / 1024;
    expect_close(found.op_s[0][RP_OP_FORWARD] - plain.op_s[0][RP_OP_FORWARD], ki * 1e-3, 1e-9, 0);
    expect_close(found.op_s[0][RP_OP_BACKWARD] - plain.op_s[0][RP_OP_BACKWARD], ki * 3e-3, 1e-9, 0);
    expect_close(found.op_s[1][RP_OP_FORWARD] - plain.op_s[1][RP_OP_FORWARD], ki * 3e-3, 1e-9, 0);
    expect_close(found.op_s[1][RP_OP_BACKWARD] - plain.op_s[1][RP_OP_BACKWARD], ki * 1e-3, 1e-9, 0);
    run.codec = NULL;
    const rp_cost_stage at = {0, 0, 2, first[0], first[1], false, true};
    const rp_cost_stage last = {1, 1, 2, first[1], first[2], true, false};
    const double weights =
        (double)rp_model_param_count(run.model, RP_PARAM_TRAINED, first[0], first[1]) / 1024;
    run.method.weights = RP_WEIGHTS_SPECTRAIN;
    for (uint32_t kind = RP_OP_FORWARD; kind <= RP_OP_BACKWARD; kind++) {
        const double plain_s =
            rp_cost_op_s(&run, &profile, 0, first[0], first[1], (rp_op_kind)kind, 4);
        expect_close(rp_cost_whole_op_s(&run, &profile, &at, (rp_op_kind)kind, 4) - plain_s,
                     weights * 1e-3, 1e-9, 0);
    }
    run.method.weights = RP_WEIGHTS_PIPEOPTIM; /* the backward sees the newest */
    expect_close(rp_cost_whole_op_s(&run, &profile, &at, RP_OP_BACKWARD, 4),
                 rp_cost_op_s(&run, &profile, 0, first[0], first[1], RP_OP_BACKWARD, 4), 1e-12, 0);
    expect_close(rp_cost_whole_op_s(&run, &profile, &last, RP_OP_FORWARD, 4),
                 rp_cost_op_s(&run, &profile, 1, first[1], first[2], RP_OP_FORWARD, 4), 1e-12, 0);
    run.method.kind = rp_sched_find("ea-pipe");
    run.method.period = 2;
    expect_close(rp_cost_whole_op_s(&run, &profile, &at, RP_OP_UPDATE, 0) -
                     rp_cost_op_s(&run, &profile, 0, first[0], first[1], RP_OP_UPDATE, 0),
                 weights * 1e-3 / 2, 1e-9, 0);
}

/* Inputs travel over the host's wire, one microbatch after the other. */
static void the_feed_may_be_the_slowest(void **state) {
    (void)state;
    static const rp_curve_point trip[] = {{64, 1e-6, 0}, {4096, 20, 0}};
    rp_profile profile;
    rp_prediction found;
    size_t count;
    open_profile(&profile);
    for (uint32_t k = 0; k < 2; k++) {
        const double *values = say(&profile, 0, 1e-3, &count);
        expect_ok(rp_profile_take(&arena, &profile, k, values, count));
    }
    expect_ok(rp_profile_take_wire(&profile, profile.board_count, 0, trip, 2));
    const double input =
        (double)(rp_codec_bytes(run.input_codec, rp_shape_count(&run.data.sample)) * run.batch);
    const double feed_s = input * rp_cost_feed_s(&run, &profile, 0, 4096) / 4096;
    predict(&profile, &found);
    expect_close(found.step_s, feed_s, 0.02, 0);
    assert_non_null(strstr(found.limits, "the wire from the host to board left is in use"));
}

/* Measured, or emulated: another time of a wire counts for this one way. */
static void a_wire_may_become_slow(void **state) {
    (void)state;
    static const rp_curve_point trip[] = {{64, 1e-3, 0.1}, {1e6, 101e-3, 0.1}};
    rp_profile profile;
    open_profile(&profile);
    expect_ok(rp_profile_take_wire(&profile, 0, 1, trip, 2));
    expect_close(rp_cost_wire_s(&run, &profile, 0, 1, 5e5), 50e-3, 1e-6, 0);
    rp_profile_slow_wire(&profile, 0, 1, 4);
    rp_profile_slow_wire(&profile, 0, 1, 0.5);
    expect_close(rp_cost_wire_s(&run, &profile, 0, 1, 5e5), 100e-3, 1e-6, 0);
    expect_close(rp_profile_wire_slower(&profile, 1, 0), 1, 0, 0);
    run.emulate = true;
    run.link.rate_mbit = 8;
    expect_close(rp_cost_wire_s(&run, &profile, 0, 1, 1e6), 2, 1e-9, 0);
    expect_close(rp_cost_wire_s(&run, &profile, 1, 0, 1e6), 1, 1e-9, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sizes_reach_round_the_microbatch, setup, close_run),
        cmocka_unit_test_setup_teardown(an_op_costs_what_was_measured, setup, close_run),
        cmocka_unit_test_setup_teardown(what_no_board_measures_is_refused, setup, close_run),
        cmocka_unit_test_setup_teardown(slower_boards_have_fewer_layers, setup, close_run),
        cmocka_unit_test_setup_teardown(a_throttle_decides_on_the_cut, setup, close_run),
        cmocka_unit_test_setup_teardown(what_is_written_is_read_back, setup, close_run),
        cmocka_unit_test_setup_teardown(a_profile_of_something_else_is_refused, setup, close_run),
        cmocka_unit_test_setup_teardown(wires_cost_what_was_measured, setup, close_run),
        cmocka_unit_test_setup_teardown(a_wire_may_become_slow, setup, close_run),
        cmocka_unit_test_setup_teardown(what_ops_cost_besides_is_taken, setup, close_run),
        cmocka_unit_test_setup_teardown(ops_take_what_they_do_besides, setup, close_run),
        cmocka_unit_test_setup_teardown(the_feed_may_be_the_slowest, setup, close_run),
        cmocka_unit_test_setup_teardown(a_step_takes_what_the_replay_says, setup, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
