/* Run files: what resolves, and what is refused with line and key. */
#include "expect.h"

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
    assert_non_null(strstr(rp_err_message(), "40 stages need as many layers"));
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
        expect_close(job.label_smoothing, i ? 0.1 : 0, 1e-7, 0);
        rp_runfile_close(&run);
    }
    rp_arena_finish(&arena);
}

/* What the host writes for a stage is what the agent reads. */
static void the_assignment_is_read_back(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_runfile run;
    expect_ok(read_text(&arena, good, "optimizer.beta1=0.8", &run));
    rp_cut cut = {2, (const uint32_t[]){0, 2, run.model->layer_count}};
    char *text;
    expect_ok(rp_runfile_assignment(
        &arena, &run, &cut, 1,
        &(rp_runfile_peers){"hostkey", (const char *const[]){"key0", "key1"}, 2}, &text));
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
    rp_link_profile link;
    expect_ok(rp_link_profile_parse(&link, rp_node_find(root, "link")));
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
        expect_close(run.throttle.forward_ms, 10, 0, 0);
        expect_close(run.throttle.backward_ms, 20, 0, 0);
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
    refused_changed("boards: 2", "boards: 2, pace: {forward_ms: 1}, throttle: {forward_ms: 1}",
                    ":3: ring.pace: is the former name of `throttle`");
}

static void bad_files_are_refused(void **state) {
    (void)state;
    refused_changed("model: mlp", "model: mpl", "mpl");
    refused_changed("epochs: 3", "epoch: 3", ":4: train.epoch: unknown key");
    refused_changed("microbatch: 4", "microbatch: 17", "microbatch");
    refused_changed("epochs: 3, ", "", "epochs");
    refused_changed("boards: 2", "boards: 0", "boards");
    refused_changed("boards: 2", "boards: 4097", "boards");
    refused_changed("kind: adam", "kind: adamm", "adamm");
    refused_changed("schedule: 1f1b\n", "schedule: 1f1c\n", "1f1c");
    refused_changed("schedule: 1f1b\n", "schedule: async\n", "clip_norm: is the norm over all");
    refused_changed("schedule: 1f1b\n", "schedule: {kind: async, advance: autos}\n",
                    "expected auto or a whole number from 0 to 4, found 'autos'");
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
    static const char key[] = "0123456789012345678901234567890123456789";
    char text[1024];
    rp_arena arena;
    rp_runfile run;
    FILE *file = fopen(roster, "w");
    assert_non_null(file);
    (void)fprintf(file,
                  "boards:\n- {name: left, address: 'tcp://10.0.0.7:7000', key: '%s'}\n"
                  "- {name: '%s', address: '%s', key: '%s'}\n",
                  key, c->name, c->address, key);
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
        {name + 1, "tcp://[fe80::1%eth0]:7000", NULL},
        {"right", hosts[0], NULL},
        {"left", "tcp://10.0.0.8:7000", "boards 1 and 2 of the list are both called 'left'"},
        {"host", "tcp://10.0.0.8:7000", "name: expected 1 to 63 bytes, and not `host`"},
        {"", "tcp://10.0.0.8:7000", "name: expected 1 to 63 bytes"},
        {name, "tcp://10.0.0.8:7000", "name: expected 1 to 63 bytes"},
        {"right", "tcp://10.0.0.7:7000", "boards 'left' and 'right' have the same one"},
        {"right", hosts[1], "address: expected tcp://HOST:PORT, HOST of at most 99 bytes"},
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

int main(void) {
    int file = mkstemp(path);
    if (file < 0) {
        return 1;
    }
    (void)close(file);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_file_resolves),
        cmocka_unit_test(start_weights),
        cmocka_unit_test(label_smoothing_reaches_the_stage),
        cmocka_unit_test(an_automatic_cut_needs_layers),
        cmocka_unit_test(the_assignment_is_read_back),
        cmocka_unit_test(one_board_is_profiled_before_auto_is_chosen),
        cmocka_unit_test(throttle_has_a_former_name),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(rosters_are_checked),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)remove(path);
    return failed;
}
