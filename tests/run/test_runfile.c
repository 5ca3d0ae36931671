/* Run files: what resolves, and what is refused with line and key. */
#include "expect.h"

#include <stdlib.h>
#include <unistd.h>

#include "run/runfile.h"

static const char good[] = "model: mlp\n"
                           "data: {set: glyphs, train: 50, test: 10}\n"
                           "ring: {boards: 2, link: {delay_ms: 1, rate_mbit: 50}}\n"
                           "train: {epochs: 3, batch: 16, microbatch: 4, seed: 9}\n"
                           "loss: cross-entropy\n"
                           "optimizer: {kind: adam, lr: 0.01, clip_norm: 2}\n"
                           "lr_schedule: cosine\n"
                           "schedule: 1f1b\n"
                           "cut: auto\n";

static char path[] = "/tmp/ringpipe-test-run-XXXXXX";

static rp_err read_text(rp_arena *arena, const char *text, const char *set, rp_runfile *run) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
    return rp_runfile_read(arena, path, &set, set ? 1 : 0, run);
}

static void refused(const char *text, const char *set, const char *message) {
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_runfile run;
    rp_err err = read_text(&arena, text, set, &run);
    assert_int_equal(rp_err_exit_code(err), 2);
    if (!strstr(rp_err_message(), message)) {
        fail_msg("'%s' is not in '%s'", message, rp_err_message());
    }
    rp_arena_finish(&arena);
}

/* `good` with one text put in the place of another. */
static void refused_changed(const char *from, const char *to, const char *message) {
    char text[2048];
    const char *at = strstr(good, from);
    assert_non_null(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    refused(text, NULL, message);
}

/* A plan may let boards share a stage; without one each has a layer of its own. */
static void an_automatic_cut_needs_layers(void **state) {
    (void)state;
    rp_arena arena;
    rp_runfile run;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, good, NULL, &run));
    expect_ok(rp_runfile_check_cut(&run));
    rp_runfile_close(&run);
    expect_ok(read_text(&arena, good, "ring.boards=40", &run));
    expect_err(rp_runfile_check_cut(&run), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "40 stages need at least one layer each"));
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

/* Steps are those of each lane, in the run file of the whole run also. */
static void anchors(void **state) {
    (void)state;
    rp_arena arena;
    rp_runfile run;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, good, "train.anchor=0.25", &run));
    expect_close(run.optim.anchor.mu, 0.25, 0, 0);
    rp_runfile_close(&run);
    expect_ok(read_text(&arena, good, "train.anchor=none", &run));
    assert_false(rp_optim_is_anchored(&run.optim));
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
    refused(good, "train.anchor=-1", "train.anchor");
    refused(good, "train.anchor={mu: 1, pull: 2}", "train.anchor.pull: unknown key");
    refused(good, "train.anchor={drift: true}", "expected kind: sgd without momentum");
    refused_changed("seed: 9}", "seed: 9, anchor: 1}\nlanes: {count: 2}",
                    "expected one of the two");
    refused("model: mlp\ndata: {set: glyphs, train: 50, test: 10}\nring: {boards: 2}\n"
            "train: {epochs: 1, batch: 16, anchor: 1}\nloss: cross-entropy\n"
            "optimizer: {kind: sgd, lr: 1}\nschedule: ea-pipe\n",
            NULL, "schedule ea-pipe has several replicas");
}

static void steps_of_lanes(void **state) {
    (void)state;
    static const char *const own[] = {"lanes={count: 3}", "lanes={count: 3, lane: 2}"};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (uint32_t i = 0; i < 2; i++) {
        rp_runfile run;
        expect_ok(read_text(&arena, good, own[i], &run));
        assert_int_equal(run.epoch_steps, 1); /* 16 samples of 50 in a batch of 16 */
        assert_int_equal(run.steps, 3);
        assert_int_equal(run.data.count[RP_SPLIT_TRAIN], i == 0 ? 50 : 16);
        rp_runfile_close(&run);
    }
    rp_arena_finish(&arena);
}

/* umpipe: sizes by stage and direction. `good` has two boards, a batch of 16, microbatches of 4. */
static void sizes_of_microbatches(void **state) {
    (void)state;
    static const char verified[] = "model: mlp\n"
                                   "data: {set: glyphs, train: 50, test: 10}\n"
                                   "ring: {boards: 2, verify: 1/4}\n"
                                   "train: {epochs: 3, batch: 16, microbatch: 4}\n"
                                   "loss: cross-entropy\n"
                                   "optimizer: {kind: adam, lr: 0.01}\n"
                                   "schedule: 1f1b\n";
    static const char normed[] = "model: vgg-narrow\n"
                                 "data: {set: glyphs, train: 50, test: 10}\n"
                                 "ring: {boards: 2}\n"
                                 "train: {epochs: 3, batch: 16, microbatch: 4}\n"
                                 "loss: cross-entropy\n"
                                 "optimizer: {kind: adam, lr: 0.01}\n"
                                 "schedule: 1f1b\n"
                                 "cut: [conv3]\n";
    rp_arena arena;
    rp_runfile run;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, good, "schedule=umpipe", &run));
    assert_null(run.sizes.at);
    rp_runfile_close(&run);
    expect_ok(read_text(&arena, good, "schedule={kind: umpipe, backward: [3, 16]}", &run));
    assert_true(run.sizes.by_stage);
    assert_int_equal(run.sizes.at[0][0], 4);
    assert_int_equal(run.sizes.at[0][1], 3);
    assert_int_equal(run.sizes.at[1][1], 16);
    rp_runfile_close(&run);
    expect_ok(read_text(&arena, good, "schedule={kind: umpipe, forward: 7}", &run));
    assert_false(run.sizes.by_stage);
    assert_int_equal(run.sizes.at[1][0], 7);
    assert_int_equal(run.sizes.at[1][1], 4);
    rp_runfile_close(&run);
    expect_ok(read_text(&arena, verified, "schedule={kind: umpipe, forward: 7}", &run));
    assert_int_equal(run.safety.verify, 4);
    rp_runfile_close(&run);
    refused(verified, "schedule=pipefb",
            "verify: needs a stage with forward and backward on one board");
    refused(good, "schedule={kind: umpipe, forward: [3]}",
            "schedule.forward: has 1 sizes for 2 stages");
    refused(good, "schedule={kind: umpipe, backward: [1, 2, 3]}", "has 3 sizes for 2 stages");
    refused(good, "schedule={kind: umpipe, forward: [4, 17]}",
            "stage 1 has microbatches of 17 samples; expected at most those of a step, 16");
    refused(good, "schedule={kind: umpipe, backward: 0}", "backward");
    refused(good, "schedule={kind: umpipe, backward: [2, x]}", "expected a whole number");
    refused(good, "schedule={kind: gpipe, forward: 4}", "forward: unknown key");
    refused(good, "schedule={kind: pipefb, ahead: [4, 2]}", "ahead: has 2 numbers for 1 stages");
    refused(normed, "schedule={kind: umpipe, forward: [4, 8]}",
            "stage 1 has microbatches of 8 samples forward and 4 backward, but its layer 'bn3' "
            "normalises over a microbatch, so another size would change the model; expected "
            "train.microbatch, 4, in both directions");
    rp_arena_finish(&arena);
}

/* Two boards for each stage; read, and refused where a run would begin. */
static void split_stages_take_two_boards_each(void **state) {
    (void)state;
    static const char text[] = "model: vgg-narrow\n"
                               "data: {set: glyphs, train: 50, test: 10}\n"
                               "ring: {boards: 4}\n"
                               "train: {epochs: 3, batch: 16, microbatch: 16}\n"
                               "loss: cross-entropy\n"
                               "optimizer: {kind: adam, lr: 0.01}\n"
                               "schedule: {kind: pipefb, ahead: [5, 2]}\n"
                               "cut: [conv3]\n";
    rp_arena arena;
    rp_runfile run;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, text, NULL, &run));
    assert_int_equal(run.stages, 2);
    expect_ok(rp_runfile_check_cut(&run));
    rp_runfile_close(&run);
    refused(text, "ring.boards=3", "expected an even number of boards, found 3");
    refused(text, "schedule.ahead=[5, 2, 1]", "ahead: has 3 numbers for 2 stages");
    rp_arena_finish(&arena);
}

/* A ring may become smaller, or larger again: groups of microbatches must still come out even. */
static void a_cut_needs_whole_groups_of_microbatches(void **state) {
    (void)state;
    rp_arena arena;
    rp_runfile run;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, good, "schedule={kind: interleaved-1f1b, chunks: 2}", &run));
    expect_ok(rp_runfile_check_cut(&run));
    run.boards = 3;
    run.stages = 6;
    expect_err(rp_runfile_check_cut(&run), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "needs a multiple of 3 microbatches"));
    run.boards = 1;
    run.stages = 2;
    expect_ok(rp_runfile_check_cut(&run));
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

static void a_good_file_resolves(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_runfile run;
    expect_ok(read_text(&arena, good, NULL, &run));
    assert_int_equal(run.stages, 2);
    assert_int_equal(run.epoch_steps, 4); /* 50 samples of 16 */
    assert_int_equal(run.steps, 12);
    assert_true(run.cut_auto && run.emulate && run.guard && run.local);
    assert_string_equal(run.method.kind->name, "1f1b");
    expect_close(run.optim.clip_norm, 2, 0, 0);
    rp_runfile_close(&run);
    expect_ok(read_text(&arena, good, "train.steps=5", &run));
    assert_int_equal(run.steps, 5);
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

static void the_trace_has_a_bound(void **state) {
    (void)state;
    static const struct {
        const char *set;
        uint32_t mib;
    } cases[] = {{NULL, 64}, {"record={trace_mib: 5}", 5}, {"record.trace_mib=0", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_runfile run;
        rp_arena_init(&arena, "test", 0);
        expect_ok(read_text(&arena, good, cases[i].set, &run));
        assert_int_equal(run.record.trace_mib, cases[i].mib);
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
    refused(good, "record.trace_mib=-1", "record.trace_mib: ");
}

static void histograms_on_request(void **state) {
    (void)state;
    static const struct {
        const char *set;
        bool any;
        uint64_t steps;
    } cases[] = {{NULL, false, 0},
                 {"record.histograms=none", false, 0},
                 {"record.histograms=checkpoints", true, 0},
                 {"record={histograms: 500}", true, 500}};
    static const char *const bad[] = {"record.histograms=0", "record.histograms=-5",
                                      "record.histograms=often", "record.histograms=5x",
                                      "record.histograms=[5]"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_runfile run;
        rp_arena_init(&arena, "test", 0);
        expect_ok(read_text(&arena, good, cases[i].set, &run));
        assert_true(run.record.histograms == cases[i].any);
        assert_int_equal(run.record.histogram_steps, cases[i].steps);
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refused(good, bad[i], "record.histograms: expected `checkpoints`, a number of steps");
    }
    refused(good, "record=often", "record: expected a map like {histograms: checkpoints}");
    refused(good, "record.histogram=5", "record.histogram: unknown key");
}

/* `none` is no path; others are meant from the run file's folder, /tmp. */
static void start_weights(void **state) {
    (void)state;
    static const struct {
        const char *init, *from;
    } cases[] = {{"none", NULL},
                 {"w.safetensors", "/tmp/w.safetensors"},
                 {"/a/w.safetensors", "/a/w.safetensors"},
                 {"{from: w.safetensors, only: fc1.*}", "/tmp/w.safetensors"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_runfile run;
        char text[2048];
        const char *at = strstr(good, "seed: 9");
        rp_arena_init(&arena, "test", 0);
        (void)snprintf(text, sizeof text, "%.*sinit: %s, %s", (int)(at - good), good, cases[i].init,
                       at);
        expect_ok(read_text(&arena, text, NULL, &run));
        assert_int_equal(run.init != NULL, cases[i].from != NULL);
        if (cases[i].from) {
            assert_string_equal(run.init->from, cases[i].from);
        }
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
}

static void label_smoothing_reaches_the_stage(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_runfile run;
    const char *const sets[] = {NULL, "loss={kind: cross-entropy, label_smoothing: 0.1}"};
    for (size_t i = 0; i < 2; i++) {
        expect_ok(read_text(&arena, good, sets[i], &run));
        rp_cut cut = {2, (const uint32_t[]){0, 2, run.model->layer_count}};
        char *text;
        rp_node *root;
        rp_job job;
        expect_ok(rp_runfile_assignment(&arena, &run, &cut, 1, NULL, &text));
        expect_ok(rp_config_read_text(&arena, text, strlen(text), "assignment", &root));
        expect_ok(rp_job_parse(&arena, root, run.model_root, &job));
        assert_string_equal(job.loss->name, "cross-entropy");
        expect_close(job.loss_options.label_smoothing, i ? 0.1 : 0, 1e-7, 0);
        rp_runfile_close(&run);
    }
    rp_arena_finish(&arena);
}

/* Masks of images of 16 x 16 in arrays, and a net with outputs [classes, 16, 16]. */
static void classes_at_reaches_the_stage(void **state) {
    (void)state;
    enum { PIXELS = 256 };
    static const char *const parts[] = {"train", "test"};
    static uint8_t bytes[128 + 2 * PIXELS];
    char where[512];
    char text[900];
    rp_arena arena;
    rp_runfile run;
    char folder[] = "/tmp/ringpipe-masks-XXXXXX";
    rp_arena_init(&arena, "test", 0);
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 4; i++) {
        memset(bytes, ' ', 128);
        memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
        const int length = snprintf((char *)bytes + 10, 118,
                                    "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 16, "
                                    "16), }");
        bytes[10 + length] = ' ';
        bytes[127] = '\n';
        bytes[128] = i >= 2 ? 1 : 0;
        (void)snprintf(where, sizeof where, "%s/%c_%s.npy", folder, i < 2 ? 'x' : 'y',
                       parts[i % 2]);
        FILE *file = fopen(where, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
        (void)fclose(file);
    }
    (void)snprintf(text, sizeof text,
                   "model: unet-narrow\n"
                   "data: {set: npy, path: %s}\n"
                   "ring: {boards: 2}\n"
                   "train: {epochs: 1, batch: 2, microbatch: 2}\n"
                   "loss: {kind: cross-entropy, ignore: 255, classes_at: first}\n"
                   "optimizer: {kind: sgd, lr: 0.1}\n"
                   "schedule: 1f1b\n",
                   folder);
    expect_ok(read_text(&arena, text, NULL, &run));
    assert_true(run.data.masks && run.data.classes == 2 && run.data.target_width == PIXELS);
    rp_cut cut = {2, (const uint32_t[]){0, 2, run.model->layer_count}};
    char *assignment;
    rp_node *root;
    rp_job job;
    expect_ok(rp_runfile_assignment(&arena, &run, &cut, 1, NULL, &assignment));
    expect_ok(rp_config_read_text(&arena, assignment, strlen(assignment), "assignment", &root));
    expect_ok(rp_job_parse(&arena, root, run.model_root, &job));
    assert_true(job.loss_options.classes_first && rp_job_target_rows(&job) == PIXELS);
    rp_runfile_close(&run);
    refused(text, "loss=cross-entropy", "a class for each pixel needs `loss: {classes_at: first}`");
    refused(text, "model=mlp", "expected [classes, height, width] with a target for each pixel");
    refused(text, "data={set: glyphs, train: 8, test: 8, size: 32}",
            "a sample has 1 target: expected [classes, height, width]");
    refused(text, "data.augment=flip", "data.augment: crop, flip, rotation and mixup do not apply");
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(where, sizeof where, "%s/%c_%s.npy", folder, i < 2 ? 'x' : 'y',
                       parts[i % 2]);
        assert_int_equal(unlink(where), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    rp_arena_finish(&arena);
}

/* Of a ring that has lost a board: states of replicas are there already. */
static void a_smaller_ring_has_as_many_replicas(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_runfile run;
    rp_node *root;
    rp_job job;
    char *text;
    expect_ok(read_text(&arena, good, NULL, &run)); /* writes the file */
    rp_runfile_close(&run);
    static const char *const sets[] = {"schedule=ea-pipe", "optimizer={kind: sgd, lr: 0.1}"};
    expect_ok(rp_runfile_read(&arena, path, sets, 2, &run));
    assert_int_equal(run.method.replicas, 2);
    run.boards = run.stages = 1;
    const rp_cut cut = {1, (const uint32_t[]){0, run.model->layer_count}};
    expect_ok(rp_runfile_assignment(&arena, &run, &cut, 0, NULL, &text));
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "assignment", &root));
    expect_ok(rp_job_parse(&arena, root, run.model_root, &job));
    assert_int_equal(job.method.replicas, 2);
    expect_close(job.method.alpha, 0.45, 1e-15, 0);
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

/* What the host writes for a stage is what the agent reads. */
static void the_assignment_is_read_back(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_runfile run;
    static const char *const sets[] = {"optimizer.beta1=0.8",
                                       "ring.link.hops=[{from: 0, rate_mbit: 2}]"};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(good, file);
    (void)fclose(file);
    expect_ok(rp_runfile_read(&arena, path, sets, 2, &run));
    run.hops.since_s = 2.5;
    rp_cut cut = {2, (const uint32_t[]){0, 2, run.model->layer_count}};
    char *text;
    expect_ok(rp_runfile_assignment(
        &arena, &run, &cut, 1,
        &(rp_runfile_peers){"hostkey", (const char *const[]){"key0", "key1"}, 2, 1}, &text));
    rp_node *root;
    rp_job job;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "assignment", &root));
    expect_ok(rp_job_parse(&arena, root, run.model_root, &job));
    assert_int_equal(job.stage, 1);
    assert_int_equal(job.cut.first[1], 2);
    assert_int_equal(job.steps, 12);
    assert_int_equal(job.seed, 9);
    assert_ptr_equal(job.method.kind, run.method.kind);
    expect_close(job.optim.beta1, 0.8, 0, 0);
    rp_link_profile link = {0};
    rp_link_hops hops = {0};
    const rp_link_ends ends = {.boards = 2, .reader = rp_link_reader_plain(&arena)};
    rp_node *told = rp_node_find(root, "link");
    expect_ok(rp_node_f64(told, "since_s", 0, 1e12, &hops.since_s));
    expect_ok(rp_link_hops_parse(told, &ends, &link, &hops));
    expect_close(hops.since_s, 2.5, 0, 0);
    expect_close(rp_link_profile_of(&link, &hops, 0, 1).rate_mbit, 2, 0, 0);
    expect_close(link.delay_ms, 1, 0, 0);
    expect_close(link.rate_mbit, 50, 0, 0);
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

/* The profile comes before `auto` is a number; boards know numbers only. */
static void one_board_is_profiled_before_auto_is_chosen(void **state) {
    (void)state;
    static const char *const sets[] = {"ring.boards=1", "optimizer.clip_norm=0",
                                       "schedule={kind: async, advance: auto}"};
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_runfile run;
    rp_job job;
    rp_node *root;
    char *text;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(good, file);
    (void)fclose(file);
    expect_ok(rp_runfile_read(&arena, path, sets, 3, &run));
    assert_true(run.method.advance_auto);
    const rp_cut whole = {1, (const uint32_t[]){0, run.model->layer_count}};
    expect_ok(rp_runfile_assignment(&arena, &run, &whole, 0, &(rp_runfile_peers){.host = "hostkey"},
                                    &text));
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "assignment", &root));
    expect_ok(rp_job_parse(&arena, root, run.model_root, &job));
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

/* `ring.pace` is the former name of `ring.throttle`. */
static void throttle_has_a_former_name(void **state) {
    (void)state;
    static const char *const sets[] = {"ring.throttle={forward_ms: 10, backward_ms: 20}",
                                       "ring.pace={forward_ms: 10, backward_ms: 20}"};
    for (uint32_t i = 0; i < 2; i++) {
        rp_arena arena;
        rp_arena_init(&arena, "test", 0);
        rp_runfile run;
        expect_ok(read_text(&arena, good, sets[i], &run));
        expect_close(run.throttle.all.forward_ms, 10, 0, 0);
        expect_close(run.throttle.all.backward_ms, 20, 0, 0);
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
    refused_changed("boards: 2", "boards: 2, pace: {forward_ms: 1}, throttle: {forward_ms: 1}",
                    ":3: ring.pace: is the former name of `throttle`");
}

static void throttles_by_board(void **state) {
    (void)state;
    static const char set[] = "ring.throttle={forward_ms: 10, gflops: 4, boards: "
                              "{1: {forward_ms: 30, forward_op_ms: 2, update_ms: 7}}}";
    rp_arena arena;
    rp_runfile run;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, good, set, &run));
    expect_close(rp_runfile_throttle_of(&run, 0)->forward_ms, 10, 0, 0);
    expect_close(rp_runfile_throttle_of(&run, 0)->update_ms, 0, 0, 0);
    expect_close(rp_runfile_throttle_of(&run, 1)->gflops, 4, 0, 0); /* of all boards */
    const rp_cut cut = {2, (const uint32_t[]){0, 2, run.model->layer_count}};
    for (uint32_t place = 0; place < 2; place++) { /* each has its own in its assignment */
        const rp_runfile_peers own = {.host = "hostkey", .place = place};
        char *text;
        rp_node *root;
        rp_job job;
        expect_ok(rp_runfile_assignment(&arena, &run, &cut, 0, &own, &text));
        expect_ok(rp_config_read_text(&arena, text, strlen(text), "assignment", &root));
        expect_ok(rp_job_parse(&arena, root, run.model_root, &job));
        expect_close(job.throttle.forward_ms, place ? 30 : 10, 0, 0);
        expect_close(job.throttle.forward_op_ms, place ? 2 : 0, 0, 0);
        expect_close(job.throttle.update_ms, place ? 7 : 0, 0, 0);
        expect_close(job.throttle.gflops, 4, 0, 0);
    }
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

/* A number for all boards, a list by place, a map by name; each board has its own in its job. */
static void memory_by_board(void **state) {
    (void)state;
    static const struct {
        const char *set;
        uint64_t bytes[2];
    } cases[] = {{"ring.memory_mb=1.5", {1500000, 1500000}},
                 {"ring.memory_mb=[2, 0]", {2000000, 0}},
                 {"ring.memory_mb={1: 0.25}", {0, 250000}},
                 {"ring.memory_mib=3", {3 << 20, 3 << 20}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_runfile run;
        rp_arena_init(&arena, "test", 0);
        expect_ok(read_text(&arena, good, cases[i].set, &run));
        const rp_cut cut = {2, (const uint32_t[]){0, 2, run.model->layer_count}};
        for (uint32_t place = 0; place < 2; place++) {
            const rp_runfile_peers own = {.host = "hostkey", .place = place};
            char *text;
            rp_node *root;
            rp_job job;
            assert_int_equal(rp_runfile_memory_of(&run, place), cases[i].bytes[place]);
            expect_ok(rp_runfile_assignment(&arena, &run, &cut, 0, &own, &text));
            expect_ok(rp_config_read_text(&arena, text, strlen(text), "assignment", &root));
            expect_ok(rp_job_parse(&arena, root, run.model_root, &job));
            assert_int_equal(job.memory_bytes, cases[i].bytes[place]);
        }
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
}

static void wrong_offload_and_recompute(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"offload: tape", ":10: offload: expected none, host, flash, auto, a list of stages"},
        {"offload: {0: tape}", ":10: offload.0: expected none, host, flash, auto"},
        {"offload: {2: flash}", ":10: offload.2: expected a stage, from 0 to 1, found '2'"},
        {"offload: [2]", ":10: offload[0]: expected a whole number from 0 to 1"},
        {"recompute: some", ":10: recompute: expected none, all, blocks, auto, or a list"},
        {"recompute: [2]", ":10: recompute[0]: expected a stage, from 0 to 1, or a layer"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[120];
        (void)snprintf(text, sizeof text, "cut: auto\n%s\n", cases[i][0]);
        refused_changed("cut: auto\n", text, cases[i][1]);
    }
    refused_changed("clip_norm: 2}\nlr_schedule: cosine\nschedule: 1f1b\n",
                    "clip_norm: 0}\nschedule: pipeoptim\nrecompute: all\n",
                    "recompute: does not apply to schedule pipeoptim: its forwards see predicted");
    refused_changed(
        "clip_norm: 2}\nlr_schedule: cosine\nschedule: 1f1b\n",
        "clip_norm: 0}\nschedule: umpipe\nrecompute: all\n",
        "recompute: does not apply to schedule umpipe: its backwards have other samples");
    refused_changed("clip_norm: 2}\nlr_schedule: cosine\nschedule: 1f1b\n",
                    "clip_norm: 0}\nschedule: pipefb\noffload: host\n",
                    "offload: stage 0 cannot be offloaded, because schedule pipefb");
}

static void wrong_throttles_and_threads(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"throttle: 3", ":3: ring.throttle: expected a map"},
        {"throttle: {forward_ms: -1}", ":3: ring.throttle.forward_ms: expected a number from 0"},
        {"throttle: {gflops: nan}", ":3: ring.throttle.gflops: expected a number from 0"},
        {"throttle: {speed: 2}", ":3: ring.throttle.speed: unknown key"},
        {"throttle: {boards: [1]}", ":3: ring.throttle.boards: expected a map by board"},
        {"throttle: {boards: {2: {}}}", ":3: ring.throttle.boards.2: expected a board's place"},
        {"throttle: {boards: {01: {}}}", ":3: ring.throttle.boards.01: expected a board's place"},
        {"throttle: {boards: {1: 4}}", ":3: ring.throttle.boards.1: expected a map"},
        {"throttle: {boards: {1: {update: 2}}}", ":3: ring.throttle.boards.1.update: unknown key"},
        {"throttle: {boards: {1: {update_ms: x}}}",
         ":3: ring.throttle.boards.1.update_ms: expected a number from 0"},
        {"memory_mb: [1]",
         ":3: ring.memory_mb: expected one number, or a list with one for each of the 2"},
        {"memory_mb: [1, -1]", ":3: ring.memory_mb[1]: expected a number from 0"},
        {"memory_mb: {2: 1}", ":3: ring.memory_mb.2: expected a board's place"},
        {"memory_mb: {1: nan}", ":3: ring.memory_mb.1: expected a number from 0"},
        {"memory_mb: nan", ":3: ring.memory_mb: expected a number from 0"},
        {"memory_mb: 1, memory_mib: 1", ":3: ring.memory_mb: `memory_mb` and `memory_mib`"},
        {"threads: [1]",
         ":3: ring.threads: expected one number, or a list with one for each of the 2 boards"},
        {"threads: [1, 2000]", ":3: ring.threads[1]: expected a whole number from 0 to 1024"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[120];
        (void)snprintf(text, sizeof text, "boards: 2, %s", cases[i][0]);
        refused_changed("boards: 2", text, cases[i][1]);
    }
}

/* links.codec, as the plan takes it. */
static void codecs_by_boundary_and_direction(void **state) {
    (void)state;
    static const struct {
        const char *set;
        rp_codec codec[2][2];
    } cases[] = {
        {"links.codec=int8", {{RP_CODEC_INT8, RP_CODEC_INT8}, {RP_CODEC_INT8, RP_CODEC_INT8}}},
        {"links={codec: {gradients: f16}}",
         {{RP_CODEC_F32, RP_CODEC_F16}, {RP_CODEC_F32, RP_CODEC_F16}}},
        {"links.codec=[bf16, {activations: int8, gradients: f16}]",
         {{RP_CODEC_BF16, RP_CODEC_BF16}, {RP_CODEC_INT8, RP_CODEC_F16}}},
        {"links.codec=f32", {{RP_CODEC_F32, RP_CODEC_F32}, {RP_CODEC_F32, RP_CODEC_F32}}},
    };
    char three[2048];
    const char *at = strstr(good, "boards: 2");
    (void)snprintf(three, sizeof three, "%.*sboards: 3%s", (int)(at - good), good, at + 9);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_runfile run;
        rp_arena_init(&arena, "test", 0);
        expect_ok(read_text(&arena, three, cases[i].set, &run));
        assert_non_null(run.codec);
        assert_memory_equal(run.codec, cases[i].codec, sizeof cases[i].codec);
        assert_int_equal(rp_codecs_any(run.codec, run.stages), i < 3);
        rp_runfile_close(&run);
        expect_ok(read_text(&arena, three, NULL, &run));
        assert_null(run.codec);
        assert_false(rp_codecs_any(run.codec, run.stages));
        assert_int_equal(run.input_codec, RP_CODEC_UINT8);
        assert_true(run.inputs_auto);
        rp_runfile_close(&run);
        expect_ok(read_text(&arena, three, "links={inputs: bf16}", &run));
        assert_int_equal(run.input_codec, RP_CODEC_BF16);
        assert_null(run.codec);
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
    rp_arena arena;
    rp_runfile run;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, three, "links={codec: auto}", &run));
    assert_true(run.codec_auto && run.codec_max_error == 0.05);
    assert_null(run.codec);
    rp_runfile_close(&run);
    expect_ok(read_text(&arena, three, "links={codec: auto, max_error: 0.01}", &run));
    assert_true(run.codec_max_error == 0.01);
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
    refused(three, "links={codec: int8, max_error: 0.1}", "has an effect only with `codec: auto`");
    refused(three, "links={codec: auto, max_error: 0}", "links.max_error");
    refused(three, "links.codec=[f16, auto]", "expected f32, f16, bf16, int8 or int4, found");
    refused(three, "links.inputs=[f16]", "expected auto, f32, f16, bf16, int8, int4 or uint8");
    refused(three, "links.codec=uint8", "expected f32, f16, bf16, int8 or int4, found 'uint8'");
    refused(three, "links.codec=int7", "expected f32, f16, bf16, int8 or int4, found 'int7'");
    refused(three, "links.codec=topk-0.1",
            "expected {gradients: topk-0.1}, or one for both directions: f32, f16");
    refused(three, "links.codec={activations: topk-0.1}",
            "'topk-0.1' is a codec for gradients only");
    refused(three, "links.codec={gradients: topk-0.5}", "int4, topk-0.1, topk-0.03 or topk-0.01");
    refused(three, "links.inputs=topk-0.1", "expected auto, f32");
    refused(three, "links.codec={activations: aqsgd2}", "int8 or int4, found 'aqsgd2'");
    refused(three, "links.codec=[f16]", "the list has 1 codecs for 3 stages; expected one codec");
    refused(three, "links.codec={activation: f16}", "links.codec.activation: unknown key");
    refused(three, "links={codecs: f16}", "links.codecs: unknown key");
    refused(three, "links=f16", "expected a map like {codec: int8}");
    refused(three, "links.codec=[f16, [f16, f16]]", "expected f32, f16");
}

static void copies_are_made_when_it_says(void **state) {
    (void)state;
    static const struct {
        const char *set;
        uint32_t steps;
        bool is_auto;
    } cases[] = {{NULL, 0, false},
                 {"ring.copy_steps=0", 0, false},
                 {"ring.copy_steps=20", 20, false},
                 {"ring.copy_steps=auto", 8, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_runfile run;
        rp_arena_init(&arena, "test", 0);
        expect_ok(read_text(&arena, good, cases[i].set, &run));
        assert_int_equal(run.safety.copy_steps, cases[i].steps);
        assert_int_equal(run.safety.copy_auto, cases[i].is_auto);
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
    refused(good, "ring.copy_steps=often", "ring.copy_steps");
    refused(good, "ring={boards: 1, copy_steps: auto}", "because a neighbour keeps the copy");
}

/* Inputs are bytes where the set has them and nothing computes values between them. */
static void inputs_are_bytes_where_they_can_be(void **state) {
    (void)state;
    static const struct {
        const char *data;
        bool bytes;
    } cases[] = {
        {"{set: glyphs, train: 50, test: 10}", true},
        {"{set: glyphs, train: 50, test: 10, augment: crop-flip, normalise: none}", true},
        {"{set: glyphs, train: 50, test: 10, augment: {rotation: 5}}", false},
        {"{set: glyphs, train: 50, test: 10, augment: {erasing: 0.5}}", false},
        {"{set: glyphs, train: 50, test: 10, augment: {mixup: 0.5}}", false},
        {"{set: glyphs, train: 50, test: 10, augment: {colour: {contrast: 0.5}}}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_arena arena;
        rp_runfile run;
        char set[160];
        char *text;
        rp_node *root;
        rp_job job;
        rp_arena_init(&arena, "test", 0);
        (void)snprintf(set, sizeof set, "data=%s", cases[i].data);
        expect_ok(read_text(&arena, good, set, &run));
        assert_int_equal(run.input_codec, cases[i].bytes ? RP_CODEC_UINT8 : RP_CODEC_F32);
        assert_int_equal(run.inputs_why == NULL, cases[i].bytes);
        const rp_cut whole = {1, (const uint32_t[]){0, run.model->layer_count}};
        expect_ok(rp_runfile_assignment(&arena, &run, &whole, 0, NULL, &text));
        expect_ok(rp_config_read_text(&arena, text, strlen(text), "assignment", &root));
        expect_ok(rp_job_parse(&arena, root, run.model_root, &job));
        assert_int_equal(job.pixels.groups, cases[i].bytes ? 1 : 0);
        if (cases[i].bytes) {
            const rp_norm *norm = &run.data.norm;
            assert_true(job.pixels.mean[0] == (norm->known ? (float)norm->mean[0] : 0));
            assert_true(job.pixels.deviation[0] == (norm->known ? (float)norm->deviation[0] : 1));
        }
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
    refused_changed("10}\n", "10, augment: {mixup: 1}}\nlinks: {inputs: uint8}\n",
                    "links.inputs: uint8 does not fit the data set: data.augment computes values "
                    "between bytes");
}

static void bad_files_are_refused(void **state) {
    (void)state;
    refused("model: mlp\n"
            "data: {set: glyphs, train: 50, test: 10, augment: {mixup: 0.2}}\n"
            "ring: {boards: 2}\n"
            "train: {epochs: 3, batch: 16, microbatch: 4}\n"
            "schedule: 1f1b\n"
            "loss: {kind: cross-entropy, ignore: 3}\n"
            "optimizer: {kind: sgd, lr: 0.01}\n",
            NULL, "`ignore` does not go with `augment.mixup`");
    refused_changed("model: mlp", "model: mpl", "mpl");
    refused_changed("model: mlp", "model: nets/missing.yaml",
                    ":1: model: '/tmp/nets/missing.yaml': No such file or directory");
    refused_changed("epochs: 3", "epoch: 3", ":4: train.epoch: unknown key");
    refused_changed("microbatch: 4", "microbatch: 17", "microbatch");
    refused_changed("epochs: 3, ", "", "epochs");
    refused_changed("boards: 2", "boards: 0", "boards");
    refused_changed("boards: 2", "boards: 4097", "boards");
    refused_changed("kind: adam", "kind: adamm", "adamm");
    refused_changed("schedule: 1f1b\n", "schedule: 1f1c\n", "1f1c");
    refused_changed("schedule: 1f1b\n", "schedule: async\n", "clip_norm: bounds the norm over all");
    refused_changed("schedule: 1f1b\n",
                    "schedule: {kind: pipedream-2bw, advance: {max_stale: 3}}\n", "max_stale");
    refused_changed("clip_norm: 2}\nlr_schedule: cosine\nschedule: 1f1b\n",
                    "eps: 0.1}\nschedule: {kind: async, advance: {max_staleness: 0}}\n",
                    "max_staleness: is 0, but async on 2 stages has 1 even without advance; "
                    "expected 1 or more");
    refused_changed(
        "schedule: 1f1b\n", "schedule: {kind: async, advance: autos}\n",
        "expected auto, {max_staleness: N} or a whole number from 0 to 64, found 'autos'");
    refused_changed("cross-entropy", "hinge", "hinge");
    refused_changed("cross-entropy", "mse", "");
    refused_changed("cut: auto", "cut: [nowhere]", "nowhere");
    refused_changed("cut: auto", "cut: []", "boards");
    refused_changed("loss: cross-entropy\n", "loss: cross-entropy\nloss: mse\n", "loss");
    refused_changed("optimizer: {kind: adam, lr: 0.01, clip_norm: 2}\n", "", "optimizer");
    refused_changed("lr: 0.01", "lr: .nan", "lr");
    refused(good, "train.bacth=3", "bacth");
    refused(good, "ring.roster=/absent/lab.yaml", "exclude");
}

/* ---- rosters --------------------------------------------------------------------------------- */

enum { LONG_HOST = 99, LONG_NAME = 63 };

typedef struct {
    const char *name, *address; /* of the second board, on line 3 */
    const char *message;        /* NULL: it is taken */
} roster_case;

static void check_roster(const char *roster, const roster_case *c) {
    static const char left[] = "0123456789012345678901234567890123456789";
    static const char right[] = "1123456789012345678901234567890123456789";
    char text[1024];
    rp_arena arena;
    rp_runfile run;
    FILE *file = fopen(roster, "w");
    assert_non_null(file);
    (void)fprintf(file,
                  "boards:\n- {name: left, address: 'tcp://10.0.0.7:7000', key: '%s'}\n"
                  "- {name: '%s', address: '%s', key: '%s'}\n",
                  left, c->name, c->address, right);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(text, sizeof text, "ring: {roster: %s}", roster);
    char whole[2048];
    const char *at = strstr(good, "ring: {boards: 2, link: {delay_ms: 1, rate_mbit: 50}}");
    (void)snprintf(whole, sizeof whole, "%.*s%s%s", (int)(at - good), good, text, strchr(at, '\n'));
    if (c->message) {
        char line[600];
        (void)snprintf(line, sizeof line, "%s:3: ", roster);
        refused(whole, NULL, line);
        refused(whole, NULL, c->message);
        return;
    }
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, whole, NULL, &run));
    assert_int_equal(run.boards, 2);
    assert_string_equal(run.roster[1].endpoint, c->address);
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

/* What the boards would refuse at ASSIGN, or what would be cut, is refused with the file's line. */
static void rosters_are_checked(void **state) {
    (void)state;
    char roster[] = "/tmp/ringpipe-test-roster-XXXXXX";
    char hosts[2][LONG_HOST + 20];
    char name[LONG_NAME + 2];
    for (int i = 0; i < 2; i++) {
        char host[LONG_HOST + 2];
        memset(host, 'h', sizeof host);
        host[LONG_HOST + i] = '\0';
        (void)snprintf(hosts[i], sizeof hosts[i], "tcp://%s:65533", host);
    }
    memset(name, 'n', sizeof name);
    name[LONG_NAME + 1] = '\0';
    const roster_case cases[] = {
        {"right", "tcp://10.0.0.8:7000", NULL},
        {name + 1, "tcp://board-7.local:7000", NULL},
        {"right", hosts[0], NULL},
        {"left", "tcp://10.0.0.8:7000", "boards 1 and 2 of the list have the same name 'left'"},
        {"host", "tcp://10.0.0.8:7000", "name: expected 1 to 63 bytes, and not `host`"},
        {"", "tcp://10.0.0.8:7000", "name: expected 1 to 63 bytes"},
        {name, "tcp://10.0.0.8:7000", "name: expected 1 to 63 bytes"},
        {"right", "tcp://10.0.0.7:7000",
         "address: boards 'left' and 'right' have the same address"},
        {"right", hosts[1], "HOST a name or an IPv4 address of at most 99 bytes"},
        {"right", "tcp://[::1]:7000", "HOST a name or an IPv4 address"},
        {"right", "tcp://fe80::1:7000", "HOST a name or an IPv4 address"},
        {"right", "10.0.0.8:7000", "address: expected tcp://HOST:PORT"},
        {"right", "tcp://10.0.0.8", "address: expected"},
        {"right", "tcp://:7000", "address: expected"},
        {"right", "tcp://10.0.0.8:0", "address: expected"},
        {"right", "tcp://10.0.0.8:65534", "PORT from 1 to 65533"},
        {"right", "tcp://10.0.0.8:7000x", "address: expected"},
        {"right", "tcp://10.0.0.8:*", "address: expected"},
        {"right", "tcp://10.0 .0.8:7000", "address: expected"},
    };
    const int file = mkstemp(roster);
    assert_true(file >= 0);
    (void)close(file);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_roster(roster, &cases[i]);
    }
    (void)remove(roster);
}

/* ---- what a default decided ------------------------------------------------------------------ */

static char *text_of(const rp_node *root) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    expect_ok(rp_config_write_whole(root, file));
    assert_int_equal(fclose(file), 0);
    return text;
}

static void expect_same_optim(const rp_optim *a, const rp_optim *b) {
    assert_ptr_equal(a->kind, b->kind);
    const double one[] = {a->lr,    a->momentum, a->dampening, a->weight_decay, a->beta1,
                          a->beta2, a->eps,      a->alpha,     a->clip_norm};
    const double two[] = {b->lr,    b->momentum, b->dampening, b->weight_decay, b->beta1,
                          b->beta2, b->eps,      b->alpha,     b->clip_norm};
    assert_memory_equal(one, two, sizeof one);
    assert_true(a->nesterov == b->nesterov && a->centered == b->centered);
}

static void expect_same_run(const rp_runfile *a, const rp_runfile *b) {
    char method[2][512];
    rp_method_text(&a->method, method[0], sizeof method[0]);
    rp_method_text(&b->method, method[1], sizeof method[1]);
    assert_string_equal(method[0], method[1]);
    assert_true(a->method.advance_auto == b->method.advance_auto);
    expect_same_optim(&a->optim, &b->optim);
    assert_int_equal(a->lr.kind, b->lr.kind);
    assert_int_equal(a->lr.warmup_steps, b->lr.warmup_steps);
    expect_close(a->lr.min_lr, b->lr.min_lr, 0, 0);
    expect_close(a->lr.power, b->lr.power, 0, 0);
    expect_close(a->lr.gamma, b->lr.gamma, 0, 0);
    assert_ptr_equal(a->loss, b->loss);
    expect_close(a->loss_options.label_smoothing, b->loss_options.label_smoothing, 0, 0);
    assert_true(a->emulate == b->emulate && a->guard == b->guard && a->local == b->local);
    assert_true(a->score.keep_best == b->score.keep_best && a->score.best_by == b->score.best_by);
    const uint64_t one[] = {a->boards,
                            a->stages,
                            a->threads,
                            a->memory.all,
                            a->steps,
                            a->batch,
                            a->micro,
                            a->seed,
                            a->score.eval_epochs,
                            a->score.recalibrate,
                            a->score.without_gain,
                            a->score.non_finite_steps,
                            (uint64_t)a->storage,
                            a->checkpoint_steps,
                            a->score.eval_steps};
    const uint64_t two[] = {b->boards,
                            b->stages,
                            b->threads,
                            b->memory.all,
                            b->steps,
                            b->batch,
                            b->micro,
                            b->seed,
                            b->score.eval_epochs,
                            b->score.recalibrate,
                            b->score.without_gain,
                            b->score.non_finite_steps,
                            (uint64_t)b->storage,
                            b->checkpoint_steps,
                            b->score.eval_steps};
    assert_memory_equal(one, two, sizeof one);
    for (int split = 0; split < RP_SPLITS; split++) {
        assert_int_equal(a->data.count[split], b->data.count[split]);
    }
}

/* The agents' half of a schedule, too, is what the host reads. */
static void expect_same_stage(rp_arena *arena, const rp_runfile *run, const rp_runfile *other) {
    rp_cut cut = {2, (const uint32_t[]){0, 2, run->model->layer_count}};
    char *text;
    rp_node *root;
    rp_method method;
    char told[256];
    char own[256];
    if (run->stages != 2 || run->method.advance_auto) {
        return;
    }
    expect_ok(rp_runfile_assignment(arena, other, &cut, 1, NULL, &text));
    expect_ok(rp_config_read_text(arena, text, strlen(text), "job", &root));
    expect_ok(rp_method_parse(root, 2, &method));
    rp_method_text(&method, told, sizeof told);
    rp_method_text(&run->method, own, sizeof own);
    assert_string_equal(told, own);
}

/* With `set`, the file reads to the same run as itself with every default; and that as itself. */
static void check_whole(const char *set) {
    const char *at = strstr(good, ", clip_norm: 2"); /* only where a step waits for all stages */
    char text[2048];
    (void)snprintf(text, sizeof text, "%.*s%s", (int)(at - good), good, at + 14);
    rp_arena arena;
    rp_runfile run, again;
    rp_arena_init(&arena, "test", 0);
    if (read_text(&arena, text, set, &run) != RP_OK) {
        fail_msg("%s: %s", set, rp_err_message());
    }
    char *own = NULL;
    expect_ok(rp_config_text(&arena, run.root, &own));
    char *whole = text_of(run.root);
    if (read_text(&arena, whole, NULL, &again) != RP_OK) {
        fail_msg("%s: %s: %s", set ? set : "", rp_err_message(), whole);
    }
    expect_same_run(&run, &again);
    expect_same_stage(&arena, &run, &again);
    char *twice = text_of(again.root);
    assert_string_equal(whole, twice);
    rp_node *given;
    expect_ok(rp_config_read_text(&arena, own, strlen(own), "own", &given));
    assert_true(strlen(whole) > strlen(own)); /* of the defaults nothing is in what was given */
    char *bare = text_of(given);
    assert_string_equal(own, bare);
    free(bare);
    free(whole);
    free(twice);
    rp_runfile_close(&run);
    rp_runfile_close(&again);
    rp_arena_finish(&arena);
}

static void what_a_default_decided_reads_back(void **state) {
    (void)state;
    static const char *const sets[] = {
        NULL,
        "schedule=gpipe",
        "schedule=zb-h1",
        "schedule=umpipe",
        "schedule={kind: umpipe, forward: [3, 5], backward: 2}",
        "schedule=async",
        "schedule=pipedream",
        "schedule={kind: pipedream, vertical_sync: true}",
        "schedule={kind: pipedream, weights: stash}",
        "schedule=pipedream-2bw",
        "schedule=pipeoptim",
        "schedule={kind: pipeoptim, horizon: measured}",
        "schedule={kind: pipeoptim, advance: auto}",
        "schedule={kind: async, weights: pipeoptim}",
        "schedule=xpipe",
        "schedule=ea-pipe",
        "schedule={kind: ea-pipe, replicas: 3}",
        "schedule={kind: ea-pipe, advance: 2}",
        "schedule={kind: ea-pipe, advance: auto}",
        "schedule={kind: ea-pipe, advance: auto, alpha: 0.1}",
        "schedule={kind: ea-pipe, replicas: auto, alpha: auto}",
        "schedule=avgpipe",
        "optimizer={kind: sgd, lr: 5.0e-4}",
        "optimizer={kind: sgd, lr: 0.1, momentum: 0.9, nesterov: true}",
        "optimizer={kind: adam, lr: 0.1, betas: [0.8, 0.99]}",
        "optimizer={kind: adam, lr: 0.1, beta1: 0}",
        "optimizer={kind: adamw, lr: 0.1}",
        "optimizer={kind: rmsprop, lr: 0.1}",
        "lr_schedule=constant",
        "lr_schedule=poly",
        "lr_schedule={kind: step, step_size: 2}",
        "loss={kind: cross-entropy, label_smoothing: 0.1}",
        "data.validation=0.2",
        "data.augment={crop: 2, colour: {hue: 0.1}, erasing: 0.5}",
        "data.augment={erasing: {p: 0.25}}",
        "data.mean=[0.5]",
        "data.normalise=measured",
        "checkpoint.best=loss",
        "checkpoint={}",
        "train.stop_after.without_gain=2",
        "record.histograms=5",
        "optimizer={kind: sgd, lr: 0.1, staleness_power: 0.5}",
        "train.storage.activations=bf16",
        "train.storage={}",
        "train.freeze=fc1",
        "train.freeze=none",
        "train.init=none",
        "ring={boards: 3}",
        "ring={}",
        "ring.throttle={forward_ms: 2}",
        "ring.pace={forward_ms: 2}",
        "ring.throttle={forward_ms: 2, boards: {0: {gflops: 3}}}",
        "ring.threads=[1, 2]",
        "ring.link={outage: every 60s for 5s, shared: air}",
        "ring.link={}",
        "ring.link={rate_mbit: 10, outage: [at 1s for 2s], hops: [{between: [0, host], loss: "
        "0.1}]}",
        "cut=[relu1]",
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        check_whole(sets[i]);
    }
}

static void what_was_given_stays_as_it_was_written(void **state) {
    (void)state;
    rp_arena arena;
    rp_runfile run;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, good, "optimizer={kind: sgd, lr: 5.0e-4, momentum: .90}", &run));
    char *whole = text_of(run.root);
    const char *const there[] = {"{kind: sgd, lr: 5.0e-4, momentum: .90, ",
                                 "nesterov: false",
                                 "lr_schedule: {kind: cosine, warmup_steps: 0",
                                 "schedule: 1f1b\n",
                                 "eval_epochs: 1",
                                 "recalibrate: 32",
                                 "checkpoint: {best: none}",
                                 "link: {delay_ms: 1, rate_mbit: 50"};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        if (!strstr(whole, there[i])) {
            fail_msg("'%s' is not in %s", there[i], whole);
        }
    }
    assert_null(strstr(whole, "keys:")); /* no default decided */
    free(whole);
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
}

/* Boards that dial: the host says where it listens, they are told apart by their keys, and of two
 * neighbours one can be dialled. */
/* ---- spares ---------------------------------------------------------------------------------- */

/* A ring of the boards a, b, c and d, of which `spare` says which wait. */
static rp_err read_spares(rp_arena *arena, const char *roster, const char *spare, rp_runfile *run) {
    static const char key[] = "012345678901234567890123456789012345678";
    char text[2048];
    FILE *file = fopen(roster, "w");
    assert_non_null(file);
    (void)fputs("boards:\n", file);
    for (const char *name = "abcd"; *name; name++) {
        char address[40] = "dials";
        if (*name != 'd') {
            (void)snprintf(address, sizeof address, "'tcp://10.0.0.%c:7100'", '1' + *name - 'a');
        }
        (void)fprintf(file, "  - {name: %c, address: %s, key: '%s%c'}\n", *name, address, key,
                      '1' + *name - 'a');
    }
    (void)fclose(file);
    const char *at = strstr(good, "ring:");
    (void)snprintf(text, sizeof text,
                   "%.*sring: {roster: %s, listen: 'tcp://0.0.0.0:7100', spare: %s}%s",
                   (int)(at - good), good, roster, spare, strchr(at, '\n'));
    return read_text(arena, text, NULL, run);
}

static void spares_wait_behind_the_others(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"b", "spare: expected a list of names"},
        {"[e]", "board 'e' is not in the roster"},
        {"[b, b]", "board 'b' is listed twice"},
        {"[[b]]", "expected names of boards"},
        {"[d]", "board 'd' dials the host (address: dials); a spare needs an address"},
    };
    char roster[] = "/tmp/ringpipe-test-spare-XXXXXX";
    rp_arena arena;
    rp_runfile run;
    const int file = mkstemp(roster);
    assert_true(file >= 0);
    (void)close(file);
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_err(read_spares(&arena, roster, wrong[i][0], &run), RP_ERR_USAGE);
        if (!strstr(rp_err_message(), wrong[i][1])) {
            fail_msg("%s", rp_err_message());
        }
        assert_non_null(strstr(rp_err_message(), ":3: "));
    }
    expect_ok(read_spares(&arena, roster, "[c, a]", &run));
    assert_int_equal(run.boards, 2);
    assert_int_equal(run.spares, 2);
    /* The second board is lost twice, then the first; d has been in the ring and dials. */
    static const char *const order[] = {"bdca", "bcad", "badc", "cadb"};
    static const uint32_t lost[] = {1, 1, 0};
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < 4; k++) {
            assert_int_equal(run.roster[k].name[0], order[i][k]);
        }
        assert_true(i == 3 || rp_spares_take(run.roster, run.boards, run.spares, lost[i]));
    }
    /* One that works is put aside ahead of those that were tried, and is tried next. */
    rp_spares_put_aside(run.roster, &run.boards, &run.spares, 0);
    assert_int_equal(run.boards, 1);
    assert_int_equal(run.spares, 3);
    assert_int_equal(run.roster[0].name[0], 'a');
    assert_int_equal(run.roster[1].name[0], 'c');
    assert_true(rp_spares_take(run.roster, run.boards, run.spares, 0));
    assert_int_equal(run.roster[0].name[0], 'c');
    rp_runfile_close(&run);
    expect_ok(read_spares(&arena, roster, "[]", &run));
    assert_int_equal(run.boards, 4);
    assert_false(rp_spares_take(run.roster, run.boards, run.spares, 0));
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
    (void)remove(roster);
    refused(good, "ring.spare=[a]", "spare: needs `ring.roster`, which lists the spare boards");
}

/* ---- boards that dial ------------------------------------------------------------------------ */

static void check_dials(const char *roster, const char *first, const char *second,
                        const char *listen, const char *message) {
    static const char key[] = "012345678901234567890123456789012345678";
    char whole[2048];
    rp_arena arena;
    rp_runfile run;
    FILE *file = fopen(roster, "w");
    assert_non_null(file);
    (void)fprintf(file,
                  "boards:\n- {name: a, address: '%s', key: '%s9'}\n"
                  "- {name: b, address: '%s', key: '%s%d'}\n"
                  "- {name: c, address: 'tcp://10.0.0.9:7000', key: '%s7'}\n",
                  first, key, second, key, message && strstr(message, "needs its own") ? 9 : 8,
                  key);
    assert_int_equal(fclose(file), 0);
    const char *at = strstr(good, "ring: {boards: 2, link: {delay_ms: 1, rate_mbit: 50}}");
    (void)snprintf(whole, sizeof whole, "%.*sring: {roster: %s%s}%s", (int)(at - good), good,
                   roster, listen, strchr(at, '\n'));
    rp_arena_init(&arena, "test", 0);
    rp_err err = read_text(&arena, whole, NULL, &run);
    if (err == RP_OK) {
        err = rp_runfile_check_cut(&run);
        assert_int_equal(run.roster[0].dials, strcmp(first, "dials") == 0);
        assert_int_equal(run.roster[1].dials, strcmp(second, "dials") == 0);
        assert_false(run.roster[2].dials);
        rp_runfile_close(&run);
    }
    if (message) {
        expect_err(err, RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), message));
    } else {
        expect_ok(err);
        assert_string_equal(run.listen, "tcp://0.0.0.0:7100");
    }
    rp_arena_finish(&arena);
}

static void boards_that_dial_are_checked(void **state) {
    (void)state;
    static const char there[] = "tcp://10.0.0.8:7000";
    static const char listen[] = ", listen: 'tcp://0.0.0.0:7100'";
    char roster[] = "/tmp/ringpipe-test-roster-XXXXXX";
    const int file = mkstemp(roster);
    assert_true(file >= 0);
    (void)close(file);
    check_dials(roster, "dials", there, listen, NULL);
    check_dials(roster, there, "dials", listen, NULL);
    check_dials(roster, there, "dials", "", "listen: is missing, but board 'b'");
    check_dials(roster, there, "dials", ", listen: here", "listen: expected tcp://HOST:PORT");
    check_dials(roster, there, "dials", ", listen: 'tcp://[::]:7100'",
                "listen: expected tcp://HOST:PORT, HOST a name or an IPv4 address");
    check_dials(roster, there, "dial", listen,
                "address: expected tcp://HOST:PORT, HOST a name or an IPv4 address of at most "
                "99 bytes, PORT from 1 to 65533, or dials");
    check_dials(roster, "dials", "dials", listen, "boards 'a' and 'b' are neighbours");
    check_dials(roster, "dials", "dials", listen, "each board needs its own");
    (void)remove(roster);
}

/* ---- mistyped keys --------------------------------------------------------------------------- */

/* With every key of it mistyped in turn, the message names that key, whatever else its absence
 * means for the run. */
static void a_mistyped_key_is_named(void **state) {
    (void)state;
    static const char text[] =
        "model: mlp\n"
        "data: {set: glyphs, train: 50, test: 10, size: 28, seed: 2, shuffle: true,\n"
        "  augment: {crop: 2, flip: true}, normalise: none, validation: 0.1, workers: 2}\n"
        "ring: {boards: 2, wait: 10, at_least: 2, verify: 1/20, copy_steps: 4, threads: 1,\n"
        "  memory_mb: 500, throttle: {forward_ms: 1}, link: {delay_ms: 1}, orphan_wait: 5}\n"
        "train: {epochs: 2, batch: 64, microbatch: 16, seed: 1, guard: true,\n"
        "  stop_after: {without_gain: 3}, storage: {activations: f16}}\n"
        "loss: {kind: cross-entropy, label_smoothing: 0.1}\n"
        "optimizer: {kind: sgd, lr: 0.05, momentum: 0.9, nesterov: true, staleness_power: 1,\n"
        "  staleness_per_stage: 1}\n"
        "lr_schedule: {kind: cosine, warmup_steps: 20}\n"
        "schedule: {kind: zb-h1}\n"
        "cut: auto\n"
        "links: {codec: f16, inputs: f32}\n"
        "plan: {seconds: 2}\n"
        "checkpoint: {best: loss}\n"
        "record: {histograms: 10}\n";
    rp_arena arena;
    rp_runfile run;
    uint32_t keys = 0;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena, text, NULL, &run));
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
    for (const char *colon = text; (colon = strchr(colon, ':')); colon++) {
        char changed[2 * sizeof text + 1];
        char message[80];
        const char *begin = colon;
        while (begin > text && (begin[-1] == '_' || (begin[-1] >= 'a' && begin[-1] <= 'z'))) {
            begin--;
        }
        (void)snprintf(changed, sizeof changed, "%.*s%c%s", (int)(begin - text), text, *begin,
                       begin);
        (void)snprintf(message, sizeof message, ": unknown key; did you mean '%.*s'?",
                       (int)(colon - begin), begin);
        refused(changed, NULL, message);
        keys++;
    }
    assert_int_equal(keys, 62);
    refused("model: mlp\ndata: {set: glyphs}\ntrain: {batch: 4}\nschedule: gpipe\n", NULL,
            ":1: the key 'optimizer' is needed here");
}

/* The same of the parts of a roster. */
static void a_mistyped_roster_is_named(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"boads: [{name: a}]\n", ":1: boads: unknown key; did you mean 'boards'?"},
        {"boards: [{name: a, group: g}]\ngroup: {g: {}}\n",
         ":2: group: unknown key; did you mean 'groups'?"},
        {"hosts: []\n", ":1: the key 'boards' is needed here"},
        {"boards: {}\n", ":1: boards: expected a list of 1 to"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rp_roster_entry *entries;
        uint32_t count;
        rp_arena arena;
        rp_arena_init(&arena, "test", 0);
        expect_err(rp_roster_read_text(&arena, texts[i][0], strlen(texts[i][0]), "roster.yaml",
                                       &entries, &count),
                   RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), texts[i][1]));
        rp_arena_finish(&arena);
    }
}

int main(void) {
    int file = mkstemp(path);
    if (file < 0) {
        return 1;
    }
    (void)close(file);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_file_resolves),
        cmocka_unit_test(a_mistyped_key_is_named),
        cmocka_unit_test(a_mistyped_roster_is_named),
        cmocka_unit_test(start_weights),
        cmocka_unit_test(the_trace_has_a_bound),
        cmocka_unit_test(histograms_on_request),
        cmocka_unit_test(label_smoothing_reaches_the_stage),
        cmocka_unit_test(classes_at_reaches_the_stage),
        cmocka_unit_test(an_automatic_cut_needs_layers),
        cmocka_unit_test(anchors),
        cmocka_unit_test(steps_of_lanes),
        cmocka_unit_test(sizes_of_microbatches),
        cmocka_unit_test(split_stages_take_two_boards_each),
        cmocka_unit_test(a_cut_needs_whole_groups_of_microbatches),
        cmocka_unit_test(a_smaller_ring_has_as_many_replicas),
        cmocka_unit_test(the_assignment_is_read_back),
        cmocka_unit_test(one_board_is_profiled_before_auto_is_chosen),
        cmocka_unit_test(throttle_has_a_former_name),
        cmocka_unit_test(throttles_by_board),
        cmocka_unit_test(memory_by_board),
        cmocka_unit_test(wrong_offload_and_recompute),
        cmocka_unit_test(wrong_throttles_and_threads),
        cmocka_unit_test(codecs_by_boundary_and_direction),
        cmocka_unit_test(copies_are_made_when_it_says),
        cmocka_unit_test(inputs_are_bytes_where_they_can_be),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(rosters_are_checked),
        cmocka_unit_test(what_a_default_decided_reads_back),
        cmocka_unit_test(what_was_given_stays_as_it_was_written),
        cmocka_unit_test(spares_wait_behind_the_others),
        cmocka_unit_test(boards_that_dial_are_checked),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)remove(path);
    return failed;
}
