#include "run_folder.h"

#include "view/metrics.h"

static const char *metrics_of(rp_view_run *run) {
    rp_view_facts facts;
    rp_view_text text = {.arena = &arena};
    expect_ok(rp_view_read(&arena, run, &facts));
    rp_view_metrics(&run, &facts, 1, &text);
    expect_ok(text.err);
    return text.data;
}

static void expect_line(const char *text, const char *line) {
    const char *at = strstr(text, line);
    if (!at || (at != text && at[-1] != '\n')) {
        print_error("no line %s in:\n%s", line, text);
    }
    assert_true(at && (at == text || at[-1] == '\n'));
}

static void of_an_active_run(void **state) {
    rp_view_run run = run_here();
    (void)state;
    (void)snprintf(run.name, sizeof run.name, "a \"run\"\\\n");
    expect_ok(rp_owner_write(folder));
    write_plan();
    add_steps(1, 12);
    static const char eval[] = "{\"event\":\"eval\",\"step\":12,\"loss\":0.5,\"accuracy\":0.75,"
                               "\"split\":\"test\"}\n"
                               "{\"event\":\"fault\",\"fault_class\":\"transient\",\"step\":12}\n"
                               "{\"event\":\"recovered\",\"step\":12}\n";
    append("log.jsonl", eval, sizeof eval - 1);
    write_now();
    const char *text = metrics_of(&run);
#define RUN "{run=\"a \\\"run\\\"\\\\?\""
    expect_line(text, "ringpipe_build_info{version=\"" RP_VERSION "\"} 1\n");
    expect_line(text, "ringpipe_run_info" RUN ",model=\"mlp\",schedule=\"gpipe\"} 1\n");
    expect_line(text, "ringpipe_run_state" RUN ",state=\"training\"} 1\n");
    expect_line(text, "ringpipe_run_state" RUN ",state=\"failed\"} 0\n");
    expect_line(text, "ringpipe_steps_total" RUN "} 12\n");
    expect_line(text, "ringpipe_samples_total" RUN "} 768\n");
    expect_line(text, "ringpipe_steps_goal" RUN "} 40\n");
    expect_line(text, "ringpipe_eval_accuracy_ratio" RUN ",split=\"test\"} 0.75\n");
    expect_line(text, "ringpipe_recoveries_total" RUN ",cause=\"transient\"} 1\n");
    expect_line(text, "ringpipe_board_up" RUN ",board=\"left\"} 1\n");
    expect_line(text, "ringpipe_board_up" RUN ",board=\"right \\\"2\\\"\"} 0\n");
    expect_line(text, "ringpipe_board_op_seconds_total" RUN ",board=\"left\",op=\"backward\"} 4\n");
    expect_line(text, "ringpipe_board_idle_seconds_total" RUN ",board=\"left\"} 3\n");
    expect_line(text, "ringpipe_board_energy_joules_total" RUN ",board=\"left\"} 41.5\n");
    expect_line(text, "ringpipe_board_memory_bytes" RUN ",board=\"left\"} 1048576\n");
    expect_line(text, "ringpipe_stage_staleness_updates" RUN ",stage=\"0\"} 1\n");
    expect_line(text, "ringpipe_wire_bytes_total" RUN
                      ",from=\"left\",to=\"right \\\"2\\\"\",kind=\"hop\"} 5000\n");
    expect_line(text, "ringpipe_wire_delay_seconds" RUN ",from=\"left\",to=\"right \\\"2\\\"\","
                      "kind=\"hop\",quantile=\"0.95\"} 0.004\n");
#undef RUN
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf}"));
    assert_null(strstr(text, "ringpipe_board_power_watts{")); /* unknown */
}

/* Each name has its help and its type once, before its values. */
static void have_help_and_type(void **state) {
    rp_view_run run = run_here();
    char name[128];
    char needle[200];
    (void)state;
    const char *text = metrics_of(&run);
    for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
        if (*at == '#') {
            continue;
        }
        const size_t length = strcspn(at, "{ ");
        assert_true(length < sizeof name);
        memcpy(name, at, length);
        name[length] = '\0';
        (void)snprintf(needle, sizeof needle, "# TYPE %s ", name);
        const char *type = strstr(text, needle);
        assert_non_null(type);
        assert_true(type < at);
        assert_null(strstr(type + 1, needle));
        (void)snprintf(needle, sizeof needle, "# HELP %s ", name);
        assert_non_null(strstr(text, needle));
        const bool counter = strncmp(type + strlen(name) + 8, "counter", 7) == 0;
        assert_int_equal(counter, length > 6 && strcmp(name + length - 6, "_total") == 0);
    }
}

/* The run has gone back: its log has fewer steps than before. */
static void counters_do_not_fall(void **state) {
    rp_view_run run = run_here();
    (void)state;
    (void)metrics_of(&run);
    assert_int_equal(run.steps_high, 12);
    assert_int_equal(unlink(in_folder("log.jsonl")), 0);
    add_steps(1, 8);
    expect_line(metrics_of(&run), "ringpipe_steps_total{run=\"a run\"} 12\n");
    add_steps(9, 14);
    expect_line(metrics_of(&run), "ringpipe_steps_total{run=\"a run\"} 14\n");
}

static void of_a_federated_run(void **state) {
    rp_view_run run = run_here();
    (void)state;
    write_text("federation.json", "{\"round\": 7, \"sites\": ["
                                  "{\"site\": \"a\", \"loss\": 0.5, \"samples\": 320, \"late\": 1,"
                                  " \"last_round\": 7, \"up_bytes\": 100, \"down_bytes\": 200},"
                                  "{\"site\": \"b\", \"loss\": null, \"samples\": 0, \"late\": 0,"
                                  " \"last_round\": 0, \"up_bytes\": 10, \"down_bytes\": 20}]}");
    const char *text = metrics_of(&run);
    expect_line(text, "ringpipe_round{run=\"a run\"} 7\n");
    expect_line(text, "ringpipe_round_sites{run=\"a run\"} 1\n");
    expect_line(text, "ringpipe_round_bytes_total{run=\"a run\",direction=\"up\"} 110\n");
    expect_line(text, "ringpipe_round_bytes_total{run=\"a run\",direction=\"down\"} 220\n");
    expect_line(text, "ringpipe_site_loss{run=\"a run\",site=\"a\"} 0.5\n");
    expect_line(text, "ringpipe_site_samples{run=\"a run\",site=\"b\"} 0\n");
    expect_line(text, "ringpipe_site_last_round{run=\"a run\",site=\"a\"} 7\n");
    expect_line(text, "ringpipe_site_late_total{run=\"a run\",site=\"a\"} 1\n");
    assert_null(strstr(text, "ringpipe_site_loss{run=\"a run\",site=\"b\"")); /* unknown */
    assert_null(strstr(text, "ringpipe_site_last_round{run=\"a run\",site=\"b\""));
    assert_int_equal(unlink(in_folder("federation.json")), 0);
    assert_null(strstr(metrics_of(&run), "ringpipe_round{")); /* another run */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_an_active_run),
        cmocka_unit_test(have_help_and_type),
        cmocka_unit_test(counters_do_not_fall),
        cmocka_unit_test(of_a_federated_run),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
