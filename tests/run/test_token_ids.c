/* Runs of token ids: what the model's input says reaches the data set, and the set's numbers the
 * model. */
#include "folder.h"

#include "run/runfile.h"

static rp_err read_run(const char *input, const char *data, rp_runfile *out) {
    char text[1024];
    char *path;
    (void)snprintf(text, sizeof text,
                   "input: %s\n"
                   "layers:\n"
                   "  - {name: emb, kind: embedding, count: tokens, out: 4}\n"
                   "  - {name: fc, kind: linear, out: classes}\n",
                   input);
    write_text("model.yaml", text);
    (void)snprintf(text, sizeof text,
                   "model: %s/model.yaml\n"
                   "data: {path: %s/input.txt, %s}\n"
                   "ring: {boards: 2}\n"
                   "train: {epochs: 1, batch: 4}\n"
                   "loss: cross-entropy\n"
                   "schedule: gpipe\n"
                   "optimizer: {kind: sgd, lr: 0.1}\n",
                   folder, folder, data);
    expect_ok(rp_arena_string(&arena, write_text("run.yaml", text), &path));
    return rp_runfile_read(&arena, path, NULL, 0, out);
}

static void a_text_has_the_length_of_the_model(void **state) {
    (void)state;
    static const struct {
        const char *input, *data;
        uint32_t time;
    } cases[] = {
        {"{shape: [6], type: i32}", "set: text, tokens: chars", 6},
        {"{shape: [6], type: i32}", "set: text, tokens: chars, time: 6", 6},
        {"{shape: data, type: i32}", "set: text, tokens: chars, time: 5", 5},
        {"data", "set: text, tokens: chars, time: 4", 4},
    };
    write_text("input.txt",
               "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_runfile run;
        expect_ok(read_run(cases[i].input, cases[i].data, &run));
        assert_true(run.data.type == RP_I32 && run.model->input_type == RP_I32);
        assert_int_equal(run.data.sample.dim[0], cases[i].time);
        assert_int_equal(rp_runfile_target_rows(&run), cases[i].time);
        assert_int_equal(run.data.id_limit[0], 3); /* `count: tokens` */
        assert_int_equal(rp_model_out(run.model)->dim[1], 3);
        rp_runfile_close(&run);
    }
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *input, *data, *part;
    } bad[] = {
        {"{shape: [6], type: i32}", "set: text, tokens: chars, time: 5",
         "data.time: expected 6, because the model's input is [6], found 5"},
        {"[6]", "set: text, tokens: chars, time: 6",
         "the model expects samples [6] of f32, the data set has [6] of i32"},
        {"[6]", "set: text, tokens: chars", "data: the key 'time' is needed here"},
        {"data", "set: text, tokens: chars", "data: the key 'time' is needed here"},
        {"{shape: [2, 3], type: i32}", "set: text, tokens: chars, time: 6",
         "samples are rows of 1 to 65536 token ids, but the model's input is [2, 3]"},
        {"{shape: [6], type: i32}", "set: text, tokens: chars, augment: flip",
         "data.augment: does not apply to token ids"},
    };
    write_text("input.txt",
               "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rp_runfile run;
        const rp_err err = read_run(bad[i].input, bad[i].data, &run);
        assert_int_equal(rp_err_exit_code(err), 2);
        if (!strstr(rp_err_message(), bad[i].part)) {
            fail_msg("'%s' is not in '%s'", bad[i].part, rp_err_message());
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_has_the_length_of_the_model, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
