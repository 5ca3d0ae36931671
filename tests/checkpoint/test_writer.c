/* A checkpoint appears whole or not at all, and a reader gives back what was written. */
#include "open_run.h"

#include <math.h>

#include "checkpoint/checkpoint_own.h"

static rp_position position;
static rp_applied applied;
static rp_plan *plan;
static const uint32_t first_layers[] = {0, 1, 3};
static const uint32_t other_layers[] = {0, 2, 3};
static uint64_t updates[2][RP_REPLICAS_MAX];
static uint64_t in_flight_bytes[2];
static const rp_gain_estimator *gains; /* NULL: none are measured */
static char checkpoints[128], weights[128];
static char damaged[RP_CHECKPOINT_DAMAGE];

static void make_plan(rp_cut cut, uint32_t micro) {
    const rp_plan_options options = {.model_name = run.model_name,
                                     .model = run.model,
                                     .cut = &cut,
                                     .method = &run.method,
                                     .batch = run.batch,
                                     .micro = micro,
                                     .epoch_samples = 64,
                                     .steps = run.steps};
    expect_ok(rp_plan_make(&arena, &options, &plan));
}

static int open_run(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    read_run(&run, "schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1, momentum: 0.9}\n");
    position = (rp_position){.step = 3, .fill_step = 3, .samples = 48, .seconds = 1.5};
    updates[0][0] = 3;
    updates[1][0] = 2;
    applied = (rp_applied){.stages = 2, .of = updates};
    make_plan((rp_cut){.stage_count = 2, .first = first_layers}, run.micro);
    memset(in_flight_bytes, 0, sizeof in_flight_bytes);
    gains = NULL;
    (void)snprintf(checkpoints, sizeof checkpoints, "%s/checkpoint", folder);
    (void)snprintf(weights, sizeof weights, "%s/weights.safetensors", folder);
    return 0;
}

static rp_checkpoint_writer *open_writer(bool with_weights) {
    const rp_checkpoint_content content = {.run = &run,
                                           .plan = plan,
                                           .position = &position,
                                           .applied = &applied,
                                           .in_flight_bytes = in_flight_bytes,
                                           .estimator = gains,
                                           .folder = checkpoints,
                                           .weights = with_weights ? weights : NULL};
    rp_checkpoint_writer *writer = NULL;
    expect_ok(rp_checkpoint_open_writer(&arena, &content, &writer));
    return writer;
}

/* The value of element `i` of tensor `t`: no two are alike. */
static float value_of(uint32_t t, size_t i) {
    return (float)t * 10000.0f + (float)i;
}

/* Every tensor but `skip`, in pieces that come last first. */
static void write_tensors(rp_checkpoint_writer *writer, uint32_t skip) {
    enum { PIECE = 100 };
    rp_checkpoint_list list;
    expect_ok(rp_checkpoint_make_list(&arena, &run, true, &list));
    assert_true(list.count > 6);
    for (uint32_t t = 0; t < list.count; t++) {
        const size_t count = list.entry[t].bytes / sizeof(float);
        for (size_t first = (count - 1) / PIECE * PIECE; t != skip; first -= PIECE) {
            float piece[PIECE];
            const size_t some = count - first < PIECE ? count - first : PIECE;
            for (size_t i = 0; i < some; i++) {
                piece[i] = value_of(t, first + i);
            }
            expect_ok(rp_checkpoint_write_tensor(writer, 0, list.entry[t].name, first, piece,
                                                 some * sizeof(float)));
            if (first == 0) {
                break;
            }
        }
    }
}

static bool is_there(const char *path) {
    return access(path, F_OK) == 0;
}

static void what_was_written_is_read(void **state) {
    (void)state;
    rp_checkpoint_writer *writer = open_writer(true);
    rp_checkpoint_reader *reader = NULL;
    rp_checkpoint_tensor tensor;
    rp_position found = {0};
    rp_checkpoint_list list;
    char *path;
    bool more = true;
    write_tensors(writer, UINT32_MAX);
    assert_false(is_there(weights));
    expect_ok(rp_checkpoint_commit(&writer));
    assert_null(writer);
    assert_true(is_there(weights));

    expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
    assert_non_null(path);
    assert_int_equal(found.step, 3);
    assert_int_equal(found.samples, 48);
    assert_int_equal(found.setup.cut.stage_count, 2);
    assert_int_equal(found.setup.cut.first[1], 1);
    assert_int_equal(found.applied.of[0][0], 3);
    assert_int_equal(found.applied.of[1][0], 2);
    expect_ok(rp_checkpoint_check(&run, path, true));
    expect_ok(rp_checkpoint_check(&run, weights, false));
    expect_err(rp_checkpoint_check(&run, weights, true), RP_ERR_FORMAT);

    expect_ok(rp_checkpoint_make_list(&arena, &run, true, &list));
    expect_ok(rp_checkpoint_open_reader(&arena, &run, path, &found, &reader));
    for (uint32_t t = 0; t <= list.count; t++) {
        expect_ok(rp_checkpoint_next(reader, &tensor, &more));
        assert_int_equal(more, t < list.count);
        for (size_t i = 0; more && i < tensor.count; i++) {
            assert_true(tensor.values[i] == value_of(t, i));
        }
        if (more) {
            assert_string_equal(tensor.name, list.entry[t].name);
            assert_int_equal(tensor.param, list.param[t]);
        }
    }
    rp_checkpoint_close_reader(&reader);
}

static void half_a_checkpoint_never_appears(void **state) {
    (void)state;
    rp_position found = {0};
    char *path;
    rp_checkpoint_writer *writer = open_writer(true);
    write_tensors(writer, 2);
    expect_err(rp_checkpoint_commit(&writer), RP_ERR_FORMAT);
    assert_null(writer);
    writer = open_writer(false);
    write_tensors(writer, UINT32_MAX);
    rp_checkpoint_abandon(&writer);
    assert_null(writer);
    expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
    assert_null(path);
    assert_false(is_there(weights));
    rp_checkpoint_abandon(&writer); /* NULL */
}

static void what_boards_send_is_checked(void **state) {
    (void)state;
    static const float data[4] = {1, 2, 3, 4};
    rp_checkpoint_writer *writer = open_writer(false);
    expect_err(rp_checkpoint_write_tensor(writer, 1, "fc9.weight", 0, data, sizeof data),
               RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "board 1 sent the unknown tensor 'fc9.weight'"));
    expect_err(rp_checkpoint_write_tensor(writer, 1, "fc2.bias", 9, data, sizeof data),
               RP_ERR_PEER);
    assert_true(rp_checkpoint_write_tensor(writer, 1, "fc2.bias", 6, data, sizeof data) != RP_OK);
    assert_true(rp_checkpoint_write_tensor(writer, 1, "fc2.bias", UINT64_MAX / 2, data,
                                           sizeof data) != RP_OK);
    expect_err(rp_checkpoint_write_in_flight(writer, 1, 0, data, sizeof data), RP_ERR_PEER);
    rp_checkpoint_abandon(&writer);
}

enum { IN_FLIGHT = 16 };

/* What the checkpoint has in flight; NULL: nothing. */
static void expect_in_flight(const char *path, const char *bytes) {
    rp_st_reader *reader = NULL;
    rp_in_flight kept;
    bool usable;
    expect_ok(
        rp_checkpoint_open_in_flight(&arena, plan, path, position.step, &reader, &kept, &usable));
    assert_int_equal(usable, bytes != NULL);
    if (usable) {
        assert_int_equal(kept.part[1].bytes, IN_FLIGHT);
        assert_memory_equal(kept.part[1].data, bytes, IN_FLIGHT);
    }
    rp_st_close(&reader);
}

/* Of the last two checkpoints each is kept, with its sidecar files. */
static void the_last_two_are_kept(void **state) {
    (void)state;
    static const char in_flight[IN_FLIGHT] = "in flight";
    in_flight_bytes[1] = sizeof in_flight;
    for (position.step = 3; position.step < 6; position.step++) {
        rp_checkpoint_writer *writer = open_writer(false);
        write_tensors(writer, UINT32_MAX);
        expect_ok(rp_checkpoint_write_in_flight(writer, 1, 0, in_flight, sizeof in_flight));
        expect_ok(rp_checkpoint_commit(&writer));
    }
    for (uint32_t step = 3; step < 6; step++) {
        char path[200];
        (void)snprintf(path, sizeof path, "%s/step-%010u.flight", checkpoints, step);
        assert_int_equal(is_there(path), step > 3);
        (void)snprintf(path, sizeof path, "%s/step-%010u.safetensors", checkpoints, step);
        assert_int_equal(is_there(path), step > 3);
        if (step > 3) {
            expect_in_flight(path, in_flight);
        }
    }
}

/* Parcels of another codec may have as many bytes, and would be read as other numbers: what was in
 * flight is forwarded anew, as for another cut. */
static void another_codec_is_forwarded_anew(void **state) {
    (void)state;
    static const char in_flight[IN_FLIGHT] = "in flight";
    static const rp_codec f16[1][2] = {{RP_CODEC_F16, RP_CODEC_F32}};
    static const rp_codec bf16[1][2] = {{RP_CODEC_BF16, RP_CODEC_F32}};
    char path[200];
    (void)snprintf(path, sizeof path, "%s/step-0000000003.safetensors", checkpoints);
    in_flight_bytes[1] = sizeof in_flight;
    rp_plan_set_codecs(plan, run.model, f16);
    rp_checkpoint_writer *writer = open_writer(false);
    write_tensors(writer, UINT32_MAX);
    expect_ok(rp_checkpoint_write_in_flight(writer, 1, 0, in_flight, sizeof in_flight));
    expect_ok(rp_checkpoint_commit(&writer));
    expect_in_flight(path, in_flight);
    rp_plan_set_codecs(plan, run.model, bf16);
    expect_in_flight(path, NULL);
}

/* What a checkpoint says of codecs: those of its plan, or those that auto has chosen for what comes
 * next. */
static void it_says_its_codecs(void **state) {
    (void)state;
    static const rp_codec made[1][2] = {{RP_CODEC_INT8, RP_CODEC_F16}};
    static const rp_codec next[1][2] = {{RP_CODEC_F16, RP_CODEC_BF16}};
    char *path;
    rp_plan_set_codecs(plan, run.model, made);
    for (int chosen = 0; chosen < 2; chosen++) {
        rp_position found;
        run.codec_auto = chosen > 0;
        run.codec = chosen ? next : NULL;
        rp_checkpoint_writer *writer = open_writer(false);
        write_tensors(writer, UINT32_MAX);
        expect_ok(rp_checkpoint_commit(&writer));
        expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
        assert_non_null(found.setup.codec);
        assert_memory_equal(found.setup.codec, chosen ? next : made, sizeof made);
    }
}

static char checkpoint[200]; /* of step 3 */

static const char *beside(const char *end) {
    static char path[200];
    (void)snprintf(path, sizeof path, "%s/step-0000000003%s", checkpoints, end);
    return path;
}

/* Of step 3; `in_flight` NULL: nothing is. */
static rp_checkpoint_writer *write_step(const char *in_flight) {
    in_flight_bytes[1] = in_flight ? IN_FLIGHT : 0;
    rp_checkpoint_writer *writer = open_writer(false);
    write_tensors(writer, UINT32_MAX);
    if (in_flight) {
        expect_ok(rp_checkpoint_write_in_flight(writer, 1, 0, in_flight, IN_FLIGHT));
    }
    (void)snprintf(checkpoint, sizeof checkpoint, "%s", beside(".safetensors"));
    return writer;
}

static void save_step(const char *in_flight) {
    rp_checkpoint_writer *writer = write_step(in_flight);
    expect_ok(rp_checkpoint_commit(&writer));
}

/* A run without it would go on with other weights than the run that was never stopped. */
static void a_missing_sidecar_file_is_noticed(void **state) {
    (void)state;
    static const char *const ends[] = {".flight", ".steer"};
    static rp_gain_estimator estimator;
    expect_ok(rp_gain_estimator_open(&arena, run.model->param_count, &estimator));
    gains = &estimator;
    save_step("in flight here  ");
    expect_ok(rp_checkpoint_check(&run, checkpoint, true));
    for (size_t i = 0; i < 2; i++) {
        char moved[210];
        (void)snprintf(moved, sizeof moved, "%s.away", beside(ends[i]));
        assert_int_equal(rename(beside(ends[i]), moved), 0);
        expect_err(rp_checkpoint_check(&run, checkpoint, true), RP_ERR_FORMAT);
        assert_non_null(strstr(rp_err_message(), beside(ends[i])));
        assert_non_null(strstr(rp_err_message(), "the file is missing, which has"));
        assert_int_equal(rename(moved, beside(ends[i])), 0);
        expect_ok(rp_checkpoint_check(&run, checkpoint, true));
    }
}

/* The same step is saved again: what is there stays whole until the new one counts. */
static void an_earlier_save_stays_until_then(void **state) {
    (void)state;
    static const char *const content[] = {"the first save  ", "the second save ",
                                          "the third save  "};
    rp_checkpoint_writer *writer;
    save_step(content[0]);
    writer = write_step(content[1]);
    expect_in_flight(checkpoint, content[0]);
    rp_checkpoint_abandon(&writer);
    expect_in_flight(checkpoint, content[0]);
    for (size_t i = 1; i < 3; i++) {
        writer = write_step(content[i]);
        expect_in_flight(checkpoint, content[i - 1]);
        expect_ok(rp_checkpoint_commit(&writer));
        expect_in_flight(checkpoint, content[i]);
        assert_int_equal(is_there(beside(".flight")), i == 2);
        assert_int_equal(is_there(beside(".1.flight")), i == 1);
    }
    writer = write_step(NULL);
    expect_in_flight(checkpoint, content[2]);
    expect_ok(rp_checkpoint_commit(&writer));
    expect_in_flight(checkpoint, NULL);
    assert_false(is_there(beside(".flight")));
    expect_ok(rp_checkpoint_check(&run, checkpoint, true));
}

/* In the checkpoint's bytes; both words are as long. */
static void replace_word(const char *old, const char *new) {
    char path[200];
    size_t bytes;
    (void)snprintf(path, sizeof path, "checkpoint/step-0000000003.safetensors");
    const char *text = slurp(path, &bytes);
    size_t at = 0;
    while (at + strlen(old) <= bytes && memcmp(text + at, old, strlen(old)) != 0) {
        at++;
    }
    assert_true(at + strlen(old) <= bytes);
    FILE *file = fopen(checkpoint, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(new, 1, strlen(new), file), strlen(new));
    assert_int_equal(fclose(file), 0);
}

/* They did not name their sidecar files: the one that is there counts. */
static void checkpoints_of_older_programs_are_read(void **state) {
    (void)state;
    static const char content[] = "in flight here  ";
    save_step(content);
    replace_word("\"flight\"", "\"------\"");
    replace_word("\"steer\"", "\"-----\"");
    expect_ok(rp_checkpoint_check(&run, checkpoint, true));
    expect_in_flight(checkpoint, content);
    assert_int_equal(unlink(beside(".flight")), 0);
    expect_ok(rp_checkpoint_check(&run, checkpoint, true));
    expect_in_flight(checkpoint, NULL);
}

static void a_sidecar_file_has_a_plain_name(void **state) {
    (void)state;
    save_step("in flight here  ");
    replace_word("\".flight\"", "\"/f/ight\"");
    expect_err(rp_checkpoint_check(&run, checkpoint, true), RP_ERR_FORMAT);
    assert_non_null(strstr(rp_err_message(), "`flight` is '/f/ight'"));
}

/* A run could not go on from it. The weights are the run's result, whatever they are. */
static void what_is_not_finite_is_not_kept(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const char *const names[] = {"fc1.weight", "optim.momentum_buffer.fc2.bias"};
    save_step(NULL);
    for (size_t i = 0; i < 6; i++) {
        rp_position found = {0};
        char *path;
        position.step = 4;
        rp_checkpoint_writer *writer = open_writer(true);
        assert_null(rp_checkpoint_not_finite(writer));
        rp_checkpoint_list list;
        expect_ok(rp_checkpoint_make_list(&arena, &run, true, &list));
        uint32_t skip = 0;
        while (strcmp(list.entry[skip].name, names[i / 3]) != 0) {
            assert_true(++skip < list.count);
        }
        write_tensors(writer, skip);
        float values[4096] = {0};
        const size_t bytes = list.entry[skip].bytes;
        assert_true(bytes <= sizeof values);
        values[bytes / sizeof *values - 1] = bad[i % 3];
        expect_ok(rp_checkpoint_write_tensor(writer, 0, names[i / 3], 0, values, bytes));
        assert_string_equal(rp_checkpoint_not_finite(writer), names[i / 3]);
        expect_ok(rp_checkpoint_commit(&writer));
        assert_null(writer);
        assert_true(is_there(weights));
        assert_int_equal(unlink(weights), 0);
        expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
        assert_int_equal(found.step, 3);
        expect_ok(rp_checkpoint_check(&run, path, true));
    }
}

static void save_in_flight(uint64_t step) {
    static const char in_flight[16] = "in flight";
    position.step = position.fill_step = updates[0][0] = step;
    in_flight_bytes[0] = sizeof in_flight;
    rp_checkpoint_writer *writer = open_writer(false);
    write_tensors(writer, UINT32_MAX);
    expect_ok(rp_checkpoint_write_in_flight(writer, 0, 0, in_flight, sizeof in_flight));
    expect_ok(rp_checkpoint_commit(&writer));
}

/* Flips a bit in the middle of a file; once more and it is whole again. */
static void flip(const char *path) {
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long middle = ftell(file) / 2;
    assert_int_equal(fseek(file, middle, SEEK_SET), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, middle, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 16, file), byte ^ 16);
    assert_int_equal(fclose(file), 0);
}

/* The one before is used, and somebody is told which is damaged, and how. */
static void a_damaged_checkpoint_is_passed_over(void **state) {
    (void)state;
    rp_position found = {0};
    char newest[200];
    char older[200];
    char *path;
    save_in_flight(2);
    save_in_flight(3);
    for (int sidecar = 0; sidecar < 2; sidecar++) {
        const char *end = sidecar ? "flight" : "safetensors";
        (void)snprintf(newest, sizeof newest, "%s/step-0000000003.%s", checkpoints, end);
        (void)snprintf(older, sizeof older, "%s/step-0000000002.%s", checkpoints, end);
        expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
        assert_int_equal(found.step, 3);
        assert_string_equal(damaged, "");
        flip(newest);
        expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
        assert_int_equal(found.step, 2);
        assert_non_null(strstr(damaged, newest));
        assert_non_null(strstr(path, "step-0000000002"));
        flip(older);
        expect_err(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged),
                   RP_ERR_FORMAT);
        assert_non_null(strstr(rp_err_message(), newest));
        assert_non_null(strstr(rp_err_message(), "all earlier checkpoints are damaged also"));
        flip(newest);
        flip(older);
    }
    run.seed++; /* another run is no damage */
    expect_err(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged), RP_ERR_USAGE);
}

static void write_evaluated(const char *line) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/evaluated", checkpoints);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(line, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Another cut, seed or schedule is another run, or forwards anew. */
static void a_checkpoint_is_of_one_run(void **state) {
    (void)state;
    rp_position found = {0};
    char *path;
    rp_checkpoint_writer *writer = open_writer(false);
    write_tensors(writer, UINT32_MAX);
    expect_ok(rp_checkpoint_commit(&writer));
    run.seed++;
    expect_err(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "was made with seed 1, but the run file has 2"));
    run.seed--;
    run.data.count[RP_SPLIT_TRAIN]--; /* as another `validation` does */
    expect_err(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "was made with samples "));
    run.data.count[RP_SPLIT_TRAIN]++;
    run.storage = RP_BF16;
    expect_err(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "with storage f32, but the run file has bf16"));
    run.storage = RP_F32;
    run.steps = 2;
    expect_err(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged), RP_ERR_USAGE);
    run.steps = 8;
    expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
    assert_false(found.test.done || found.validation.done);
    const rp_position_score test = {
        .loss = 0.5, .samples = 24, .counted = 23, .correct = 12, .mean_iou = 0.375};
    const rp_position_score validation = {
        .loss = 0.25, .samples = 8, .counted = 8, .correct = 7, .mean_iou = (double)NAN};
    expect_ok(rp_checkpoint_mark_evaluated(checkpoints, RP_SPLIT_TEST, position.step, &test));
    expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
    assert_true(found.test.done && !found.validation.done);
    assert_int_equal(found.test.correct, 12);
    assert_int_equal(found.test.counted, 23);
    expect_close(found.test.mean_iou, 0.375, 0, 0);
    expect_ok(rp_checkpoint_mark_evaluated(checkpoints, RP_SPLIT_VALIDATION, position.step + 1,
                                           &validation));
    expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
    assert_false(found.validation.done); /* of another step */
    expect_ok(
        rp_checkpoint_mark_evaluated(checkpoints, RP_SPLIT_VALIDATION, position.step, &validation));
    expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
    assert_true(found.test.done && found.validation.done);
    expect_close(found.validation.loss, 0.25, 0, 0);
    assert_int_equal(found.validation.samples, 8);
    assert_true(isnan(found.validation.mean_iou));
    write_evaluated("3 0.5 24 12\n"); /* of former versions */
    expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
    assert_true(found.test.done && isnan(found.test.mean_iou));
    assert_int_equal(found.test.counted, 24);
}

/* A checkpoint says which plan it was made with. */
static void the_plan_is_compared(void **state) {
    (void)state;
    static const char in_flight[16] = "in flight";
    rp_position found = {0};
    rp_st_reader *reader = NULL;
    rp_in_flight kept;
    bool usable;
    char *path;
    in_flight_bytes[0] = sizeof in_flight;
    const uint64_t digest = rp_plan_digest(plan);
    rp_checkpoint_writer *writer = open_writer(false);
    write_tensors(writer, UINT32_MAX);
    expect_ok(rp_checkpoint_write_in_flight(writer, 0, 0, in_flight, sizeof in_flight));
    expect_ok(rp_checkpoint_commit(&writer));

    make_plan((rp_cut){.stage_count = 2, .first = other_layers}, run.micro); /* goes on, anew */
    assert_true(rp_plan_digest(plan) != digest);
    expect_ok(rp_checkpoint_find(&arena, &run, checkpoints, &path, &found, damaged));
    assert_true(found.plan == digest);
    assert_int_equal(found.setup.cut.first[1], 1);
    expect_ok(rp_checkpoint_open_in_flight(&arena, plan, path, 3, &reader, &kept, &usable));
    assert_false(usable);
    rp_st_close(&reader);
}

/* The metadata of a new checkpoint without `setup`, and with `old` pairs. */
static rp_err read_old(const char *const *old, rp_position *found) {
    const rp_checkpoint_sidecars none = {"", ""};
    const char *meta[RP_CHECKPOINT_META];
    const char *pairs[RP_CHECKPOINT_META + 20];
    uint32_t count = 0;
    float value = 0;
    rp_st_entry entry = {"x", RP_ST_F32, 1, {1}, 0, sizeof value};
    rp_st_writer *writer = NULL;
    rp_st_reader *reader = NULL;
    expect_ok(rp_checkpoint_make_meta(&arena, &run, plan, &position, &applied, &none, meta));
    for (uint32_t i = 0; meta[i]; i += 2) {
        if (strcmp(meta[i], "setup") != 0) {
            pairs[count++] = meta[i];
            pairs[count++] = meta[i + 1];
        }
    }
    for (; *old; old++) {
        pairs[count++] = *old;
    }
    pairs[count] = NULL;
    expect_ok(rp_st_create(&arena, in_folder("old"), &entry, 1, pairs, false, &writer));
    expect_ok(rp_st_write(writer, 0, 0, &value, sizeof value));
    expect_ok(rp_st_commit(&writer));
    expect_ok(rp_st_open(&arena, in_folder("old"), &reader));
    *found = (rp_position){0};
    const rp_err err = rp_checkpoint_read_position(&arena, reader, &run, "old", found);
    rp_st_close(&reader);
    return err;
}

/* Programs before version 2 of the text wrote parts of the setup by themselves, and the oldest ones
 * only some of them. */
static void old_texts_are_the_same_setup(void **state) {
    static const char *const all[] = {"cut",     "fc1,fc2",  "codec", "f16/int8",
                                      "sizes",   "8/4,2/16", "trial", "1/2/1", /* ignored */
                                      "advance", "0",        NULL};
    static const char *const some[] = {"cut", "fc1,fc3", "advance", "0", NULL};
    static const char *const none[] = {NULL};
    static const struct {
        const char *old[5];
        const char *why;
    } wrong[] = {{{"cut", "fc1,fc2", "codec", "f16", NULL}, "`codec` is 'f16'"},
                 {{"cut", "fc1,fc2", "sizes", "8/4", NULL}, "`sizes` is '8/4'"},
                 {{"cut", "fc1,fc2", "sizes", "8/4,2/17", NULL}, "`sizes` is '8/4,2/17'"}};
    rp_position found;
    (void)state;
    expect_ok(read_old(all, &found));
    assert_int_equal(found.setup.cut.stage_count, 2);
    assert_int_equal(found.setup.cut.first[1], 1);
    assert_int_equal(found.setup.codec_stages, 2);
    assert_int_equal(found.setup.codec[0][0], RP_CODEC_F16);
    assert_int_equal(found.setup.codec[0][1], RP_CODEC_INT8);
    assert_int_equal(found.setup.size_stages, 2);
    assert_int_equal(found.setup.size[1][1], 16);
    expect_ok(read_old(some, &found));
    assert_int_equal(found.setup.cut.first[1], 2);
    assert_null(found.setup.codec);
    assert_null(found.setup.size);
    expect_ok(read_old(none, &found));
    assert_int_equal(found.setup.cut.stage_count, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_err(read_old(wrong[i].old, &found), RP_ERR_FORMAT);
        assert_non_null(strstr(rp_err_message(), wrong[i].why));
    }
}

/* A run with `advance: auto` or `ahead: measured` goes on with those of its checkpoint. */
static void old_advances_and_steps_ahead_are_read(void **state) {
    static const char *const advance[] = {"cut", "fc1,fc2", "advance", "3", NULL};
    static const char *const lacking[] = {"cut", "fc1,fc2", NULL};
    static const char *const wrong[] = {"cut", "fc1,fc2", "advance", "65", NULL};
    rp_position found;
    (void)state;
    run.method.advance_auto = true;
    run.method.advance = 3; /* when it was written */
    expect_ok(read_old(advance, &found));
    assert_int_equal(found.setup.advance, 3);
    expect_err(read_old(lacking, &found), RP_ERR_FORMAT);
    expect_err(read_old(wrong, &found), RP_ERR_FORMAT);
    assert_non_null(strstr(rp_err_message(), "`advance` is '65'"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_read, open_run, close_run),
        cmocka_unit_test_setup_teardown(half_a_checkpoint_never_appears, open_run, close_run),
        cmocka_unit_test_setup_teardown(what_boards_send_is_checked, open_run, close_run),
        cmocka_unit_test_setup_teardown(the_last_two_are_kept, open_run, close_run),
        cmocka_unit_test_setup_teardown(another_codec_is_forwarded_anew, open_run, close_run),
        cmocka_unit_test_setup_teardown(it_says_its_codecs, open_run, close_run),
        cmocka_unit_test_setup_teardown(a_missing_sidecar_file_is_noticed, open_run, close_run),
        cmocka_unit_test_setup_teardown(an_earlier_save_stays_until_then, open_run, close_run),
        cmocka_unit_test_setup_teardown(checkpoints_of_older_programs_are_read, open_run,
                                        close_run),
        cmocka_unit_test_setup_teardown(old_texts_are_the_same_setup, open_run, close_run),
        cmocka_unit_test_setup_teardown(old_advances_and_steps_ahead_are_read, open_run, close_run),
        cmocka_unit_test_setup_teardown(a_sidecar_file_has_a_plain_name, open_run, close_run),
        cmocka_unit_test_setup_teardown(the_plan_is_compared, open_run, close_run),
        cmocka_unit_test_setup_teardown(what_is_not_finite_is_not_kept, open_run, close_run),
        cmocka_unit_test_setup_teardown(a_damaged_checkpoint_is_passed_over, open_run, close_run),
        cmocka_unit_test_setup_teardown(a_checkpoint_is_of_one_run, open_run, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
