/* A whole run on a stepped clock: every file that it leaves. */
#include "folder.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include <jansson.h>

#include "record/record.h"

static rp_clock now;
static FILE *progress, *result;

static int setup_record(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    now = rp_clock_stepped(RP_NS_PER_S);
    progress = fopen(in_folder("progress"), "w");
    result = fopen(in_folder("result"), "w");
    return progress && result ? 0 : -1;
}

static int teardown_record(void **state) {
    (void)fclose(progress);
    (void)fclose(result);
    return teardown(state);
}

/* Two stages, epochs of two steps of 64 samples in microbatches of 32. */
static rp_record_run run_of(uint64_t steps) {
    return (rp_record_run){
        .model = "mlp",
        .schedule = "gpipe",
        .shape = {.stages = 2, .step_end = steps, .epoch_samples = 128, .batch = 64, .micro = 32},
        .classes = true,
        .folder = folder,
        .trace_bytes = 1 << 26,
        .progress = progress,
        .result = result,
        .format = RP_FORMAT_TEXT,
        .clock = &now};
}

static void train_step(rp_record *record, uint64_t step, double loss) {
    const int64_t start_ns = now.stepped_ns;
    now.stepped_ns += RP_NS_PER_S / 2;
    for (uint32_t k = 0; k < 2; k++) {
        const rp_sink_op op = {.stage = k,
                               .kind = RP_OP_FORWARD,
                               .step = step,
                               .samples = {32, 32},
                               .start_ns = start_ns,
                               .end_ns = start_ns + (k + 1) * RP_NS_PER_S / 8};
        expect_ok(rp_record_op(record, &op));
    }
    expect_ok(rp_record_step(record, step, loss, 0.25, 64, 64));
}

static void close_record(rp_record *record, const char *status, uint64_t micro_done) {
    static const char *const layers[] = {"fc1"};
    rp_summary_stage stage[2] = {{.board = "a", .layers = layers, .layer_count = 1, .busy_s = 0.25},
                                 {.board = "b", .layers = layers, .layer_count = 1, .busy_s = 0.5}};
    rp_summary_link link[1] = {{.from = 0, .to = 1, .bytes = 9, .busy_s = 0.25}};
    const uint64_t done[2] = {micro_done, micro_done + 1};
    const rp_record_end end = {.status = status,
                               .note = "",
                               .stage = stage,
                               .stage_count = 2,
                               .link = link,
                               .link_count = 1,
                               .micro_done = done};
    rp_record_segment(record, 1.0, true);
    expect_ok(rp_record_close(&record, &end));
    assert_null(record);
}

/* Boards that share a stage owe the microbatches of their shares, not those of a whole step. */
static void a_share_owes_its_microbatches(void **state) {
    (void)state;
    static const double share[3][2] = {{0, 0.25}, {0.25, 1}, {0, 1}}; /* 16, 48 and 64 samples */
    static const struct {
        uint64_t done[3], lost, repeated;
    } cases[] = {{{2, 4, 4}, 0, 0}, {{2, 3, 4}, 1, 0}, {{4, 4, 4}, 0, 2}};
    for (uint32_t i = 0; i < 3; i++) {
        const rp_record_run run = run_of(2);
        const rp_record_totals start = {0};
        rp_summary_stage stage[3] = {{.board = "a"}, {.board = "b"}, {.board = "c"}};
        const rp_record_end end = {.status = "finished",
                                   .note = "",
                                   .stage = stage,
                                   .stage_count = 3,
                                   .micro_done = cases[i].done,
                                   .share = share};
        rp_record *record = NULL;
        expect_ok(rp_record_open(&arena, &run, &start, &record));
        train_step(record, 0, 2);
        train_step(record, 1, 1);
        expect_ok(rp_record_close(&record, &end));
        json_t *summary = json_loads(slurp("summary.json", NULL), 0, NULL);
        const json_t *ledger = json_object_get(summary, "ledger");
        assert_int_equal(json_integer_value(json_object_get(ledger, "microbatches")), 4);
        assert_int_equal(json_integer_value(json_object_get(ledger, "lost")), cases[i].lost);
        assert_int_equal(json_integer_value(json_object_get(ledger, "repeated")),
                         cases[i].repeated);
        json_decref(summary);
    }
}

static double number_at(const char *file, const char *key) {
    json_t *object = json_loads(slurp(file, NULL), 0, NULL);
    assert_non_null(object);
    const json_t *value = json_object_get(object, key);
    const double number = json_is_number(value) ? json_number_value(value) : NAN;
    json_decref(object);
    return number;
}

static void every_sink_is_told(void **state) {
    (void)state;
    const rp_record_run run = run_of(2);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    rp_record_phase(record, "building kernels");
    train_step(record, 0, 2.0);
    train_step(record, 1, 1.0);
    expect_ok(rp_record_event(
        record, &(rp_run_event){.kind = RP_EVENT_HINT, .step = 1, .note = "seen and logged"}));
    expect_ok(rp_record_event(
        record, &(rp_run_event){.kind = RP_EVENT_TRUST, .step = 1, .stage = 7, .gain = 0.5}));
    expect_ok(rp_record_event(NULL, &(rp_run_event){.kind = RP_EVENT_SKIPPED_STEP}));
    expect_ok(rp_record_prediction(
        record, &(rp_sink_prediction){.step = 1, .stage = 1, .gap = 2, .error = 0.5}));
    expect_ok(rp_record_codec(
        record,
        &(rp_sink_codec){
            .step = 2, .stage = 1, .carries = "gradients", .codec = "int8", .l2_error = 0.0625}));
    expect_ok(
        rp_record_eval(record, true, 2, &(rp_record_score){true, 0.25, 32, 32, 16, (double)NAN}));
    expect_ok(
        rp_record_eval(record, false, 2, &(rp_record_score){true, 0.5, 64, 64, 56, (double)NAN}));
    close_record(record, "finished", 4);
    const char *log = slurp("log.jsonl", NULL);
    assert_non_null(strstr(log, "{\"step\":1,\"epoch\":0,\"loss\":2.0,\"lr\":0.25,"
                                "\"samples_per_s\":0.0,\"time_s\":0.5}\n"));
    assert_non_null(strstr(log, "{\"step\":2,\"epoch\":0,\"loss\":1.0,\"lr\":0.25,"
                                "\"samples_per_s\":128.0,\"time_s\":1.0}\n"));
    assert_non_null(strstr(log, "\"event\":\"hint\""));
    assert_non_null(strstr(log, "\"event\":\"trust\""));
    assert_non_null(strstr(log, "\"kind\":\"trust\",\"stage\":7,\"gain\":0.5,\"fallen\":0,"));
    assert_non_null(strstr(log, "\"event\":\"prediction\",\"step\":2,\"stage\":1,\"gap\":2"));
    assert_non_null(strstr(log, "{\"event\":\"codec\",\"step\":2,\"stage\":1,\"carries\":"
                                "\"gradients\",\"codec\":\"int8\",\"l2_error\":0.0625,"));
    assert_non_null(strstr(log, "\"event\":\"eval\",\"step\":2,\"loss\":0.5,\"accuracy\":0.875"));
    assert_non_null(strstr(slurp("trace.json", NULL), "\"name\":\"forward\""));
    size_t bytes;
    (void)slurp("events.out.tfevents.ringpipe", &bytes);
    assert_true(bytes > 0);
    (void)fflush(progress);
    const char *seen = slurp("progress", NULL);
    assert_non_null(strstr(seen, "building kernels\n"));
    assert_non_null(strstr(seen, "step 1: seen and logged\n"));
    assert_non_null(strstr(seen, "step 2: validation loss 0.2500, accuracy 50.00 %\n"));
    assert_non_null(strstr(seen, "step 2: test loss 0.5000, accuracy 87.50 %\n"));
    assert_null(strstr(seen, "stage 7"));
    (void)fflush(result);
    char want[512];
    (void)snprintf(want, sizeof want,
                   "finished: mlp on 2 stages, schedule gpipe, 2 steps, 1.0 s\n"
                   "train loss 1.5000, 128 samples/s, bubble 62 %%\n"
                   "validation loss 0.2500, accuracy 50.00 %% of 32\n"
                   "test loss 0.5000, accuracy 87.50 %% of 64\n"
                   "everything is in %s\n",
                   folder);
    assert_string_equal(slurp("result", NULL), want);
}

static void expect_in(const char *text, const char *word) {
    if (!strstr(text, word)) {
        fail_msg("'%s' is not in\n%s", word, text);
    }
}

/* A run that goes back behind its second step: everything that counts is as it was there. */
static void a_run_goes_back(void **state) {
    (void)state;
    const rp_record_run run = run_of(3);
    rp_record_totals totals = {0};
    rp_record *record = NULL;
    expect_ok(rp_record_open(&arena, &run, &totals, &record));
    train_step(record, 0, 2.0);
    rp_record_read_totals(record, &totals);
    totals.step = 1;
    train_step(record, 1, 100.0);
    train_step(record, 2, 100.0);
    expect_ok(
        rp_record_eval(record, false, 3, &(rp_record_score){true, 9, 64, 64, 1, (double)NAN}));
    expect_ok(rp_record_rewind(record, &totals));
    now.stepped_ns += 10 * RP_NS_PER_S; /* until the boards are back: no step's time */
    train_step(record, 1, 1.0);
    train_step(record, 2, 3.0);
    close_record(record, "finished", 6);
    assert_int_equal((int)number_at("summary.json", "samples"), 3 * 64);
    assert_true(number_at("summary.json", "seconds") == 12.5);
    const char *log = slurp("log.jsonl", NULL);
    assert_null(strstr(log, "100.0"));
    assert_null(strstr(log, "eval"));
    expect_in(log, "{\"step\":2,\"epoch\":0,\"loss\":1.0,\"lr\":0.25,\"samples_per_s\":0.0,");
    expect_in(log, "{\"step\":3,\"epoch\":1,\"loss\":3.0,\"lr\":0.25,\"samples_per_s\":128.0,");
    (void)fflush(result);
    expect_in(slurp("result", NULL), "train loss 3.0000");
}

/* The mean is of the steps with a finite loss, in a resumed run also. */
static void a_step_that_is_not_finite_is_left_out(void **state) {
    (void)state;
    static const struct {
        double loss[4], mean; /* in two epochs of two steps; NAN: null */
        int left_out;
    } cases[] = {{{1, 1, 3, (double)NAN}, 3, 1},
                 {{1, 1, (double)INFINITY, 4}, 4, 1},
                 {{1, 1, (double)NAN, (double)NAN}, (double)NAN, 2},
                 {{(double)NAN, 1, 3, 5}, 4, 0}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t resumed = 0; resumed < 5; resumed++) { /* so many steps are a former run's */
            const rp_record_run run = run_of(4);
            rp_record_totals totals = {0};
            rp_record *record = NULL;
            expect_ok(rp_record_open(&arena, &run, &totals, &record));
            for (uint64_t step = 0; step < 4; step++) {
                if (step == resumed) {
                    rp_record_read_totals(record, &totals);
                    totals.step = step;
                    close_record(record, "interrupted", 4);
                    expect_ok(rp_record_open(&arena, &run, &totals, &record));
                }
                train_step(record, step, cases[i].loss[step]);
            }
            close_record(record, "finished", 8);
            json_t *summary = json_loads(slurp("summary.json", NULL), 0, NULL);
            const json_t *train = json_object_get(summary, "train");
            const json_t *loss = json_object_get(train, "loss");
            const json_t *left_out = json_object_get(train, "left_out");
            assert_true(isnan(cases[i].mean) ? json_is_null(loss)
                                             : json_number_value(loss) == cases[i].mean);
            assert_int_equal(json_integer_value(left_out), cases[i].left_out);
            assert_int_equal(left_out != NULL, cases[i].left_out > 0);
            json_decref(summary);
        }
    }
    (void)fflush(result);
    expect_in(slurp("result", NULL), "train loss 3.0000 without 1 step whose loss is not finite, ");
}

/* A target that `loss.ignore` excludes is not a step that the guard skipped. */
static void targets_that_do_not_count_leave_no_step_out(void **state) {
    (void)state;
    const rp_record_run run = run_of(2);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    expect_ok(rp_record_step(record, 0, 2, 0.25, 64, 10));
    expect_ok(rp_record_step(record, 1, (double)NAN, 0.25, 64, 0));
    close_record(record, "finished", 4);
    const char *text = slurp("summary.json", NULL);
    assert_null(strstr(text, "left_out"));
    assert_non_null(strstr(text, "\"loss\": 2.0"));
    assert_non_null(strstr(slurp("log.jsonl", NULL), "{\"step\":2,\"epoch\":0,\"loss\":null,"));
}

static rp_sink_op op_of(rp_op_kind kind, uint64_t step, uint32_t start_ms, uint32_t end_ms) {
    return (rp_sink_op){.kind = kind,
                        .step = step,
                        .samples = {0, 64},
                        .start_ns = now.stepped_ns + start_ms * RP_NS_PER_MS,
                        .end_ns = now.stepped_ns + end_ms * RP_NS_PER_MS};
}

/* Three forwards, the weights of two of them updated meanwhile, in two ops each. */
static void the_trace_counts(void **state) {
    (void)state;
    static const struct {
        rp_op_kind kind;
        uint64_t step;
    } ops[] = {{RP_OP_FORWARD, 0},  {RP_OP_FORWARD, 1}, {RP_OP_FORWARD, 2},
               {RP_OP_BACKWARD, 0}, {RP_OP_UPDATE, 0},  {RP_OP_UPDATE, 0},
               {RP_OP_BACKWARD, 1}, {RP_OP_UPDATE, 1},  {RP_OP_BACKWARD, 2}};
    const rp_record_run run = run_of(4);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    for (uint32_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const rp_sink_op op = op_of(ops[i].kind, ops[i].step, 10 * i, 10 * i + 5);
        expect_ok(rp_record_op(record, &op));
    }
    for (uint32_t i = 0; i < 2; i++) { /* the second leaves before the first has arrived */
        const rp_sink_transfer transfer = {.from = 0,
                                           .to = 1,
                                           .carries = "activation",
                                           .step = i,
                                           .samples = {0, 64},
                                           .bytes = 4096,
                                           .start_ns = now.stepped_ns + i * RP_NS_PER_MS,
                                           .end_ns = now.stepped_ns + (i + 5) * RP_NS_PER_MS};
        expect_ok(rp_record_transfer(record, &transfer));
    }
    const rp_record_end end = {.status = "finished", .note = ""};
    expect_ok(rp_record_close(&record, &end));
    const char *text = slurp("trace.json", NULL);
    json_t *events = json_loads(text, 0, NULL);
    assert_non_null(events);
    json_decref(events);
    expect_in(text, "\"name\":\"in flight\",\"pid\":0,\"tid\":0,\"ts\":20000.000,\"step\":2,"
                    "\"args\":{\"microbatches\":3}}");
    expect_in(text, "\"name\":\"in flight\",\"pid\":0,\"tid\":0,\"ts\":85000.000,\"step\":2,"
                    "\"args\":{\"microbatches\":0}}");
    expect_in(text, "\"ts\":60000.000,\"step\":1,\"args\":{\"updates\":1}}");
    expect_in(text, "\"ts\":80000.000,\"step\":2,\"args\":{\"updates\":2}}");
    expect_in(text, "{\"ph\":\"i\",\"name\":\"step 0\",\"pid\":0,\"tid\":0,\"ts\":45000.000");
    expect_in(text, "\"args\":{\"first\":0,\"count\":64,\"bytes\":4096}");
    expect_in(text, "\"name\":\"activation on the way to 1\",\"pid\":0,\"tid\":0,"
                    "\"ts\":1000.000,\"step\":1,\"args\":{\"parcels\":2}}");
}

/* A file that a viewer opens: so many bytes, of the newest events, whatever they are. */
static void the_trace_is_bounded(void **state) {
    (void)state;
    enum { OPS = 30000, BOUND = 1 << 20 };
    rp_record_run run = run_of(OPS);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    size_t bytes;
    run.trace_bytes = BOUND;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    for (uint64_t step = 0; step < OPS; step++) { /* 2 events, then 3 */
        const rp_sink_op forward = op_of(RP_OP_FORWARD, step, 0, 1);
        const rp_sink_op backward = op_of(RP_OP_BACKWARD, step, 1, 2);
        expect_ok(rp_record_op(record, &forward));
        expect_ok(rp_record_op(record, &backward));
    }
    const rp_record_end end = {.status = "finished", .note = ""};
    expect_ok(rp_record_close(&record, &end));
    const char *text = slurp("trace.json", &bytes);
    assert_in_range(bytes, BOUND / 3, BOUND);
    expect_in(text, "{\"name\":\"board 1\"}");
    expect_in(text, "\"step\":29999,");
    assert_null(strstr(text, "\"step\":15000,"));
    assert_string_equal(text + bytes - 3, "\n]\n");
}

/* `record.trace_mib: 0` */
static void a_trace_is_not_written_on_request(void **state) {
    (void)state;
    rp_record_run run = run_of(2);
    const rp_record_totals start = {0};
    const rp_record_end end = {.status = "finished", .note = ""};
    rp_record *record = NULL;
    run.trace_bytes = 0;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    train_step(record, 0, 1.0);
    expect_ok(rp_record_close(&record, &end));
    assert_int_equal(access(in_folder("trace.json"), F_OK), -1);
}

static void tensorboard_has_what_can_be_watched(void **state) {
    (void)state;
    static const char *const tags[] = {"train/loss",
                                       "train/lr",
                                       "train/gradient_norm",
                                       "speed/samples_per_s",
                                       "busy/board0",
                                       "busy/board1",
                                       "memory_mib/board1",
                                       "staleness_max/board0",
                                       "in_flight_max/board1",
                                       "link_mb/0-1",
                                       "prediction/stage1/stale_over_predicted"};
    const rp_record_run run = run_of(4);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    rp_summary_stage stage[2] = {{.board = "a"}, {.board = "b"}};
    rp_summary_link link[1] = {{.from = 0, .to = 1, .bytes = 9}};
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    for (uint64_t step = 0; step < 4; step++) {
        train_step(record, step, 2.0);
        expect_ok(rp_record_norm(record, step, 1.5));
    }
    expect_ok(rp_record_prediction(
        record, &(rp_sink_prediction){.step = 3, .stage = 1, .error = 0.5, .stale_error = 2}));
    expect_ok(rp_record_facts(
        record, &(rp_sink_facts){
                    .step = 4, .stage = stage, .stage_count = 2, .link = link, .link_count = 1}));
    close_record(record, "finished", 8);
    size_t bytes;
    const char *text = slurp("events.out.tfevents.ringpipe", &bytes);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!memmem(text, bytes, tags[i], strlen(tags[i]))) {
            fail_msg("no curve %s", tags[i]);
        }
    }
}

/* Pixels are counted, but their loss has no other units. */
static void pixels_are_counted(void **state) {
    (void)state;
    rp_record_run run = run_of(2);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    run.targets = RP_TARGETS_PIXELS;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    now.stepped_ns += RP_NS_PER_S / 2;
    expect_ok(rp_record_step(record, 0, 0.5, 0.25, 64, 640));
    expect_ok(rp_record_eval(record, true, 1, &(rp_record_score){true, 0.5, 5, 50, 25, 0.375}));
    expect_ok(
        rp_record_eval(record, false, 1, &(rp_record_score){true, 0.25, 10, 100, 25, (double)NAN}));
    close_record(record, "finished", 4);
    const char *text = slurp("log.jsonl", NULL);
    assert_null(strstr(text, "perplexity"));
    assert_non_null(strstr(text, "\"accuracy\":0.5,\"mean_iou\":0.375,\"samples\":5,"));
    assert_non_null(strstr(text, "\"accuracy\":0.25,\"samples\":10,"));
    assert_non_null(strstr(slurp("progress", NULL),
                           "validation loss 0.5000, accuracy 50.00 %, mean IoU 37.50 %\n"));
    text = slurp("summary.json", NULL);
    assert_non_null(strstr(text, "\"mean_iou\": 0.375"));
    assert_non_null(strstr(text, "\"pixels\": 100"));
    assert_null(strstr(text, "perplexity"));
    assert_null(strstr(text, "tokens"));
    (void)fflush(result);
    text = slurp("result", NULL);
    assert_non_null(strstr(text, "accuracy 50.00 % of 50 pixels, mean IoU 37.50 %\n"));
    assert_non_null(strstr(text, "accuracy 25.00 % of 100 pixels\n"));
}

/* Losses of a text are also perplexities and bits, and speeds are also of tokens. A token of the
 * test part is as long as two of the training part. */
static void tokens_have_their_units(void **state) {
    (void)state;
    rp_record_run run = run_of(2);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    run.targets = RP_TARGETS_TEXT;
    run.bits = (rp_record_bits){.train = 1 / log(2), .eval = 0.5 / log(2), .validation = 2};
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    for (uint64_t step = 0; step < 2; step++) {
        now.stepped_ns += RP_NS_PER_S / 2;
        expect_ok(rp_record_step(record, step, step == 0 ? 2 : log(2), 0.25, 64, 640));
    }
    expect_ok(rp_record_eval(record, false, 2,
                             &(rp_record_score){true, 3 * log(2), 10, 100, 25, (double)NAN}));
    close_record(record, "finished", 4);
    const char *text = slurp("log.jsonl", NULL);
    assert_non_null(strstr(text, "\"tokens_per_s\":1280.0,\"perplexity\":2.0,\"bits\":1.0}\n"));
    assert_non_null(strstr(text, "\"accuracy\":0.25,\"perplexity\":8.0,\"bits\":1.5,"
                                 "\"samples\":10,"));
    expect_close(number_at("summary.json", "samples_per_s"), 128, 0, 1e-9);
    expect_close(number_at("summary.json", "tokens_per_s"), 1280, 0, 1e-9);
    text = slurp("summary.json", NULL);
    assert_non_null(strstr(text, "\"perplexity\": "));
    assert_non_null(strstr(text, "\"bits\": 1.5"));
    assert_non_null(strstr(text, "\"tokens\": 100"));
    (void)fflush(result);
    assert_non_null(strstr(slurp("result", NULL), "test loss 2.0794, perplexity 8, 1.5000 bits, "
                                                  "accuracy 25.00 % of 100 tokens\n"));
    assert_non_null(strstr(slurp("progress", NULL), "loss 0.6931  1.000 bits  1280 tokens/s"));
    size_t bytes;
    text = slurp("events.out.tfevents.ringpipe", &bytes);
    assert_non_null(memmem(text, bytes, "test/perplexity", 15));
    assert_non_null(memmem(text, bytes, "train/bits", 10));
}

static void facts_become_the_summary(void **state) {
    (void)state;
    rp_record_run run = run_of(4);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    train_step(record, 0, 2.0);
    close_record(record, "interrupted", 1); /* one of two is missing on stage 0 */
    expect_close(number_at("summary.json", "bubble"), 1 - 0.75 / 2, 0, 1e-12);
    expect_close(number_at("summary.json", "samples_per_s"), 64, 0, 1e-12);
    const char *text = slurp("summary.json", NULL);
    assert_non_null(strstr(text, "\"idle_s\": 0.75"));
    assert_non_null(strstr(text, "\"utilisation\": 0.25"));
    assert_non_null(strstr(text, "\"lost\": 1"));
    assert_non_null(strstr(text, "\"repeated\": 0"));
}

/* One whose rate was measured too low is faster: all its bytes passed in the time that there was.
 * A control wire carries something all the time that the run is there. */
static void no_wire_is_busy_for_longer_than_it_could(void **state) {
    (void)state;
    rp_record_run run = run_of(4);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    rp_summary_wire wire[] = {
        {.kind = "hop", .bytes = 4000000, .rate_mbit = 8, .busy_s = 4},
        {.kind = "hop", .bytes = 500000, .rate_mbit = 8, .busy_s = 0.5},
        {.kind = "control", .bytes = 4000000, .rate_mbit = 8, .busy_s = 4},
        {.kind = "feed", .bytes = 10, .rate_mbit = (double)NAN, .busy_s = (double)NAN}};
    rp_summary_link link[] = {{.from = 0, .to = 1, .bytes = 4000000, .busy_s = 4}};
    const rp_record_end end = {.status = "failed",
                               .note = "",
                               .link = link,
                               .link_count = 1,
                               .wire = wire,
                               .wire_count = sizeof wire / sizeof *wire};
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    now.stepped_ns += 8 * RP_NS_PER_S;
    rp_record_segment(record, 2, true);
    expect_ok(rp_record_close(&record, &end));
    expect_close(link[0].utilisation, 1, 1e-12, 0);
    expect_close(wire[0].utilisation, 1, 1e-12, 0);
    expect_close(wire[0].rate_mbit, 16, 1e-12, 0);
    expect_close(wire[0].busy_s, 2, 1e-12, 0);
    expect_close(wire[1].utilisation, 0.25, 1e-12, 0);
    expect_close(wire[1].rate_mbit, 8, 1e-12, 0);
    expect_close(wire[2].utilisation, 0.5, 1e-12, 0);
    assert_true(isnan(wire[3].utilisation) && isnan(wire[3].rate_mbit));
}

/* A segment that was cut off has taken its time, but no board tells how busy it was. */
static void busy_times_are_of_whole_segments(void **state) {
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        const rp_record_run run = run_of(4);
        const rp_record_totals start = {0};
        rp_record *record = NULL;
        rp_summary_stage stage[1] = {{.board = "a", .busy_s = whole * 1.5}};
        const uint64_t done[1] = {4};
        const rp_record_end end = {.status = "interrupted",
                                   .note = "",
                                   .stage = stage,
                                   .stage_count = 1,
                                   .micro_done = done};
        expect_ok(rp_record_open(&arena, &run, &start, &record));
        train_step(record, 0, 2.0);
        rp_record_segment(record, 4, false);
        if (whole) {
            rp_record_segment(record, 2, true);
        }
        expect_ok(rp_record_close(&record, &end));
        json_t *summary = json_loads(slurp("summary.json", NULL), 0, NULL);
        const json_t *bubble = json_object_get(summary, "bubble");
        if (whole) {
            expect_close(json_number_value(bubble), 0.25, 1e-12, 0);
            expect_close(stage[0].idle_s, 0.5, 1e-12, 0);
        } else {
            assert_true(json_is_null(bubble));
        }
        json_decref(summary);
    }
}

/* Totals go on, and what the sinks hold of steps that are trained again is taken back. */
static void a_resumed_run_goes_on(void **state) {
    (void)state;
    rp_record_run run = run_of(4);
    rp_record_totals totals = {0};
    rp_record *record = NULL;
    expect_ok(rp_record_open(&arena, &run, &totals, &record));
    train_step(record, 0, 2.0);
    rp_record_read_totals(record, &totals);
    totals.step = 1;
    train_step(record, 1, 99.0); /* no checkpoint has it */
    close_record(record, "failed", 4);
    now.stepped_ns += 100 * RP_NS_PER_S;
    expect_ok(rp_record_open(&arena, &run, &totals, &record));
    train_step(record, 1, 4.0);
    close_record(record, "finished", 2);
    const char *log = slurp("log.jsonl", NULL);
    assert_null(strstr(log, "99.0"));
    assert_non_null(strstr(log, "\"step\":2,\"epoch\":0,\"loss\":4.0"));
    assert_non_null(strstr(log, "\"time_s\":1.0}"));
    expect_close(number_at("summary.json", "samples"), 128, 0, 0);
    expect_close(number_at("summary.json", "seconds"), 1.0, 0, 1e-12);
    assert_non_null(strstr(slurp("summary.json", NULL), "\"loss\": 3.0"));
}

/* Lines that do not fit are lost, and that is said once; the run and later lines are whole. */
static void a_full_disk_costs_lines(void **state) {
    (void)state;
    const rp_record_run run = run_of(60);
    const rp_record_totals start = {0};
    rp_record *record = NULL;
    struct rlimit before;
    size_t bytes;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    for (uint64_t step = 0; step < 20; step++) { /* longer than what a person is told */
        train_step(record, step, 2.0);
    }
    (void)slurp("log.jsonl", &bytes);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    const struct rlimit full = {bytes + 20, before.rlim_max}; /* in the middle of a line */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    for (uint64_t step = 20; step < 40; step++) {
        train_step(record, step, 1.0);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    train_step(record, 40, 4.0);
    close_record(record, "finished", 41);
    const char *log = slurp("log.jsonl", NULL);
    const char *behind = strstr(log, "{\"step\":41,");
    assert_non_null(behind);
    assert_true(behind == log + bytes); /* nothing of the others */
    assert_string_equal(strchr(behind, '\n'), "\n");
    (void)fflush(progress);
    const char *said = slurp("progress", NULL);
    const char *once = strstr(said, "log.jsonl: cannot be written: File too large");
    assert_non_null(once);
    assert_null(strstr(once + 1, "log.jsonl: cannot be written"));
    expect_close(number_at("summary.json", "samples"), 41 * 64, 0, 0);
}

static void no_folder_no_files(void **state) {
    (void)state;
    rp_record_run run = run_of(2);
    const rp_record_totals start = {0};
    const rp_record_end end = {.status = "finished", .note = ""};
    rp_record *record = NULL;
    run.folder = NULL;
    run.result = NULL;
    expect_ok(rp_record_open(&arena, &run, &start, &record));
    train_step(record, 0, 2.0);
    expect_ok(rp_record_close(&record, &end));
    assert_int_equal(access(in_folder("log.jsonl"), F_OK), -1);
    assert_int_equal(access(in_folder("summary.json"), F_OK), -1);
    rp_record_phase(NULL, "nobody");
    run.folder = "/none/such";
    expect_err(rp_record_open(&arena, &run, &start, &record), RP_ERR_IO);
    assert_null(record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sink_is_told, setup_record, teardown_record),
        cmocka_unit_test_setup_teardown(a_run_goes_back, setup_record, teardown_record),
        cmocka_unit_test_setup_teardown(targets_that_do_not_count_leave_no_step_out, setup_record,
                                        teardown_record),
        cmocka_unit_test_setup_teardown(a_step_that_is_not_finite_is_left_out, setup_record,
                                        teardown_record),
        cmocka_unit_test_setup_teardown(the_trace_counts, setup_record, teardown_record),
        cmocka_unit_test_setup_teardown(the_trace_is_bounded, setup_record, teardown_record),
        cmocka_unit_test_setup_teardown(a_trace_is_not_written_on_request, setup_record,
                                        teardown_record),
        cmocka_unit_test_setup_teardown(tensorboard_has_what_can_be_watched, setup_record,
                                        teardown_record),
        cmocka_unit_test_setup_teardown(pixels_are_counted, setup_record, teardown_record),
        cmocka_unit_test_setup_teardown(tokens_have_their_units, setup_record, teardown_record),
        cmocka_unit_test_setup_teardown(facts_become_the_summary, setup_record, teardown_record),
        cmocka_unit_test_setup_teardown(no_wire_is_busy_for_longer_than_it_could, setup_record,
                                        teardown_record),
        cmocka_unit_test_setup_teardown(a_share_owes_its_microbatches, setup_record,
                                        teardown_record),
        cmocka_unit_test_setup_teardown(busy_times_are_of_whole_segments, setup_record,
                                        teardown_record),
        cmocka_unit_test_setup_teardown(a_resumed_run_goes_on, setup_record, teardown_record),
        cmocka_unit_test_setup_teardown(a_full_disk_costs_lines, setup_record, teardown_record),
        cmocka_unit_test_setup_teardown(no_folder_no_files, setup_record, teardown_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
