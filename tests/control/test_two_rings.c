/* Two controllers in one process, each with agents of its own as child processes, stepped by one
 * loop: each trains its ring as if it were alone, and one that is interrupted does not disturb the
 * other. */
#include "folder.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "control/controller.h"
#include "ring/local.h"

typedef struct {
    rp_local local;
    rp_controller *c;
    char out[160];
} site;

static site one, two;
static rp_clock the_clock;
static char agent[600], run_path[128];

static void open_site(site *s, const char *name) {
    static const char *const set[] = {"data.train=320", "data.test=64", "train.epochs=1"};
    const rp_controller_env env = {.clock = &the_clock,
                                   .spawner = rp_local_spawner(&s->local, agent, stderr)};
    (void)snprintf(s->out, sizeof s->out, "%s/%s", folder, name);
    const rp_controller_options options = {
        .run_path = run_path, .set = set, .set_count = 3, .out = s->out};
    expect_ok(rp_controller_open(&env, &options, &s->c));
}

static void step_site(site *s, rp_wait_list *list, int64_t *deadline_ns) {
    const int64_t at_ns = rp_controller_step(s->c, rp_clock_now_ns(&the_clock));
    *deadline_ns = at_ns < *deadline_ns ? at_ns : *deadline_ns;
    rp_controller_add_waits(s->c, list);
}

/* The whole program of two controllers: step, wait. `interrupt`: the first site at its training. */
static void run_both(int signal_fd, bool interrupt) {
    while (!rp_controller_has_ended(one.c) || !rp_controller_has_ended(two.c)) {
        rp_wait_list list = {.fd = {signal_fd}, .fd_count = 1};
        rp_controller_waiting why;
        struct signalfd_siginfo info;
        int64_t deadline_ns = INT64_MAX;
        step_site(&one, &list, &deadline_ns);
        step_site(&two, &list, &deadline_ns);
        rp_controller_waiting_of(one.c, &why);
        if (interrupt && strcmp(why.state, "train") == 0) {
            interrupt = false;
            rp_controller_interrupt(one.c);
        }
        if (deadline_ns < INT64_MAX) {
            expect_ok(rp_link_wait(list.link, list.link_count, list.fd, list.fd_count,
                                   deadline_ns - rp_clock_now_ns(&the_clock)));
        }
        while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
            rp_controller_child_ended(one.c);
            rp_controller_child_ended(two.c);
        }
    }
    assert_false(interrupt);
}

static size_t read_weights(const site *s, char *out, size_t bytes) {
    char path[256];
    (void)snprintf(path, sizeof path, "%s/weights.safetensors", s->out);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t count = fread(out, 1, bytes, file);
    assert_int_equal(fclose(file), 0);
    return count;
}

static void two_rings_train_in_one_process(void **state) {
    static char weights[2][1 << 20];
    const int signal_fd = *(int *)*state;
    open_site(&one, "one");
    open_site(&two, "two");
    run_both(signal_fd, false);
    expect_ok(rp_controller_close(&one.c));
    expect_ok(rp_controller_close(&two.c));
    const size_t count = read_weights(&one, weights[0], sizeof weights[0]);
    assert_true(count > 1000);
    assert_int_equal(read_weights(&two, weights[1], sizeof weights[1]), count);
    assert_memory_equal(weights[0], weights[1], count);
}

static void an_interrupt_is_of_one(void **state) {
    const int signal_fd = *(int *)*state;
    open_site(&one, "three");
    open_site(&two, "four");
    run_both(signal_fd, true);
    expect_err(rp_controller_close(&one.c), RP_ERR_INTERRUPTED);
    expect_ok(rp_controller_close(&two.c));
}

static int open_all(void **state) {
    static const char yaml[] = "model: mlp\n"
                               "data: {set: glyphs}\n"
                               "ring: {boards: 2, threads: 1}\n"
                               "train: {epochs: 1, batch: 32, microbatch: 16, seed: 1}\n"
                               "loss: cross-entropy\n"
                               "optimizer: {kind: sgd, lr: 0.05}\n"
                               "schedule: 1f1b\n"
                               "cut: [fc2]\n";
    static int signal_fd;
    sigset_t set;
    const char *build = getenv("RP_BUILD_DIR");
    if (setup(state) != 0 || !build) {
        return -1;
    }
    (void)snprintf(agent, sizeof agent, "%s/bin/ringpipe-agent", build);
    (void)snprintf(run_path, sizeof run_path, "%s/run.yaml", folder);
    append("run.yaml", yaml, sizeof yaml - 1);
    the_clock = rp_clock_real();
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    *state = &signal_fd;
    return signal_fd < 0 ? -1 : 0;
}

static int close_all(void **state) {
    (void)close(*(int *)*state);
    return teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_rings_train_in_one_process),
        cmocka_unit_test(an_interrupt_is_of_one),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
