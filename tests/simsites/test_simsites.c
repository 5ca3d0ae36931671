/* Simulated federated runs: they end as the reference says, and what differs is found. */
#include "folder.h"

#include "base/log.h"
#include "run_of_sites.h"
#include "simsites/lives.h"
#include "simsites/verdict.h"

static rp_sim_sites_subject subject;
static rp_sim_sites_case what;

static void open_case(const char *keys) {
    const char *path = write_sites(keys, "");
    rp_sim_round *asked;
    expect_ok(rp_sim_sites_open(path, NULL, 0, "digest", NULL, &subject));
    expect_ok(rp_sim_reference_asked(&subject.arena, &subject, &asked));
    what = (rp_sim_sites_case){.subject = &subject, .asked = asked, .run_path = path};
}

static void train(const char *site, uint64_t round, uint64_t steps, float *values) {
    const rp_standin_state state = {.values = values};
    rp_standin_train(&subject.standin, site, round, steps, &state);
}

static void steps_tell_who_and_when(void **state) {
    float a[64] = {0};
    float b[64] = {0};
    (void)state;
    open_case("rounds: 2, steps: 3");
    const size_t bytes = subject.standin.values * sizeof *a;
    assert_true(subject.standin.values <= 64 && subject.standin.tensors > 0);
    rp_standin_begin(&subject.standin, a);
    memcpy(b, a, bytes);
    train("site-0", 1, 3, a);
    train("site-0", 1, 3, b);
    assert_memory_equal(a, b, bytes);
    const struct {
        const char *site;
        uint64_t round, steps;
    } others[] = {{"site-1", 1, 3}, {"site-0", 2, 3}, {"site-0", 1, 4}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        rp_standin_begin(&subject.standin, b);
        train(others[i].site, others[i].round, others[i].steps, b);
        assert_memory_not_equal(a, b, bytes);
    }
    train("site-0", 1, 3, a); /* a second time */
    rp_standin_begin(&subject.standin, b);
    train("site-0", 1, 3, b);
    assert_memory_not_equal(a, b, bytes);
    rp_sim_sites_close(&subject);
}

static void faults_change_nothing(void **state) {
    static const char *const keys[] = {
        "rounds: 6, steps: 3",
        "rounds: 6, steps: 3, rule: elastic, at_once: 3",
        "rounds: 6, epochs: 1, rule: fedadam, count: 2",
        "rounds: 6, steps: 3, at_once: 3, take: {least: 2, wait: 2}",
        "rounds: 6, steps: 3, at_once: 3, drift: true, rule: {kind: fedavg, weights: equal}",
        "rounds: 5, steps: 3, at_once: 3, optimizer: keep, delta: {codec: int8}, take: {least: 1}",
        "rounds: 6, steps: 3, at_once: 3, rule: gossip"};
    (void)state;
    rp_log_setup(RP_LOG_NOTHING, "");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        rp_sim_result calm;
        open_case(keys[i]);
        expect_ok(rp_sim_sites_judge(&what, 1, &calm));
        assert_int_equal(calm.outcome, RP_SIM_FINISHED);
        assert_int_equal(calm.faults, 0);
        what.draws_faults = true;
        for (uint64_t seed = 1; seed <= 8; seed++) {
            rp_sim_result first;
            rp_sim_result again;
            expect_ok(rp_sim_sites_judge(&what, seed, &first));
            assert_true(first.outcome == RP_SIM_FINISHED ||
                        first.outcome == RP_SIM_STOPPED_RESUMABLE);
            assert_true(first.faults > 0 && first.events != calm.events);
            expect_ok(rp_sim_sites_judge(&what, seed, &again));
            assert_true(first.event_hash == again.event_hash);
        }
        rp_sim_sites_close(&subject);
    }
}

/* A deadline that a slow site misses: the round closes without it. */
static void late_sites_are_left_out(void **state) {
    rp_sim_faults faults = {.count = 1,
                            .fault = {{.kind = RP_SIM_FAULT_SUSPEND,
                                       .from = 1,
                                       .to = 1,
                                       .at_ns = RP_NS_PER_S,
                                       .for_ns = 20 * RP_NS_PER_S,
                                       .in = RP_CONTROL_STATES}}};
    rp_sim_result result;
    char *out;
    (void)state;
    open_case("rounds: 4, steps: 3, at_once: 3, take: {least: 2, wait: 5}");
    expect_ok(rp_arena_string(&arena, in_folder("late"), &out));
    what.out = out;
    what.faults = &faults;
    expect_ok(rp_sim_sites_judge(&what, 1, &result));
    assert_int_equal(result.outcome, RP_SIM_FINISHED);
    assert_non_null(strstr(slurp("late/log.jsonl", NULL), "\"site-1\",\"status\":\"late\""));
    assert_true(result.virtual_s > 15 && result.virtual_s < 40);
    rp_sim_sites_close(&subject);
}

static void replace_in(const char *name, const char *from, const char *to) {
    char *text;
    char *at;
    expect_ok(rp_arena_string(&arena, slurp(name, NULL), &text));
    at = strstr(text, from);
    assert_non_null(at);
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    (void)fprintf(file, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_int_equal(fclose(file), 0);
}

static void run_into(const char *name) {
    rp_sim_result result;
    char *out;
    expect_ok(rp_arena_string(&arena, in_folder(name), &out));
    what.out = out;
    expect_ok(rp_sim_sites_judge(&what, 1, &result));
    assert_int_equal(result.outcome, RP_SIM_FINISHED);
}

/* The verdict of a folder in which one thing has changed. */
static void differences_are_found(void **state) {
    float values[64];
    (void)state;
    rp_log_setup(RP_LOG_NOTHING, "");
    open_case("rounds: 3, steps: 3");
    run_into("a");
    expect_ok(rp_sim_sites_compare(&what, NULL, in_folder("a")));

    const char *weights = in_folder("a/weights.safetensors");
    expect_ok(rp_standin_read(&subject.standin, weights, values));
    train("site-0", 3, 3, values); /* a step more */
    expect_ok(rp_standin_write(&subject.standin, weights, values, 3));
    assert_int_equal(rp_sim_sites_compare(&what, NULL, in_folder("a")), RP_ERR_FAULT);

    run_into("b"); /* a site has no line in a round */
    replace_in("b/log.jsonl", "{\"event\":\"site\"", "{\"event\":\"none\"");
    assert_int_equal(rp_sim_sites_compare(&what, NULL, in_folder("b")), RP_ERR_FAULT);

    run_into("c"); /* a site that did not take part, without `take` */
    replace_in("c/log.jsonl", "\"status\":\"finished\"", "\"status\":\"late\"");
    assert_int_equal(rp_sim_sites_compare(&what, NULL, in_folder("c")), RP_ERR_FAULT);

    run_into("d"); /* a round twice */
    replace_in("d/log.jsonl", "\"round\":2,\"sites\":3", "\"round\":1,\"sites\":3");
    assert_int_equal(rp_sim_sites_compare(&what, NULL, in_folder("d")), RP_ERR_FAULT);

    run_into("e"); /* sums */
    replace_in("e/summary.json", "\"rounds\": 3,\n   \"late\"", "\"rounds\": 4,\n   \"late\"");
    assert_int_equal(rp_sim_sites_compare(&what, NULL, in_folder("e")), RP_ERR_FAULT);
    rp_sim_sites_close(&subject);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_tell_who_and_when, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_change_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(late_sites_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(differences_are_found, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
