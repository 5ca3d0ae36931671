#include "run_folder.h"

#include "view/terminal.h"

static void a_run_as_text(void **state) {
    rp_view_run run = run_here();
    rp_view_facts facts;
    rp_view_text text = {.arena = &arena};
    (void)state;
    (void)snprintf(run.name, sizeof run.name, "a\033[2Jrun");
    expect_ok(rp_owner_write(folder));
    write_plan();
    add_steps(1, 12);
    write_now();
    expect_ok(rp_view_read(&arena, &run, &facts));
    rp_view_terminal(&facts, &text);
    expect_ok(text.err);
    assert_null(strchr(text.data, '\033'));
    assert_non_null(strstr(text.data, "run: training  mlp gpipe\nstep 12 of 40  loss 0.833"));
    assert_non_null(strstr(text.data, "left            training    ########..  75%     1.0 MiB"));
    assert_non_null(strstr(text.data, "right \"2\"       silent                    -"));
    assert_non_null(strstr(text.data, "hop   ###.......  25%    8.0 Mb/s         2.0"));
    assert_null(strstr(text.data, "nan"));
}

static void a_federated_run_as_text(void **state) {
    rp_view_run run = run_here();
    rp_view_facts facts;
    rp_view_text text = {.arena = &arena};
    char present[400];
    (void)state;
    write_text("federation.json",
               "{\"round\": 7, \"sites\": ["
               "{\"site\": \"a\\u001b[2J\", \"loss\": 0.5, \"samples\": 320, \"late\": 1,"
               " \"last_round\": 7, \"up_bytes\": 1, \"down_bytes\": 1},"
               "{\"site\": \"b\", \"loss\": null, \"samples\": 0, \"late\": 0,"
               " \"last_round\": 0, \"up_bytes\": 1, \"down_bytes\": 1}]}");
    (void)snprintf(present, sizeof present,
                   "{\"version\":1,\"pid\":%d,\"written_s\":1.0,\"state\":\"train\",\"sites\":["
                   "{\"site\":\"a\\u001b[2J\",\"state\":\"finished\"},"
                   "{\"site\":\"other\",\"state\":\"training\"}]}",
                   (int)getpid());
    write_text("now.json", present);
    expect_ok(rp_owner_write(folder));
    expect_ok(rp_view_read(&arena, &run, &facts));
    rp_view_terminal(&facts, &text);
    expect_ok(text.err);
    assert_null(strchr(text.data, '\033'));
    assert_non_null(strstr(text.data, "\nround "));
    assert_non_null(strstr(text.data, "finished                 7         320      0.5000"));
    assert_non_null(strstr(text.data, "  b               -                        -           0"));
    assert_null(strstr(text.data, "BOARD"));
    assert_null(strstr(text.data, "nan"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_as_text),
                                       cmocka_unit_test(a_federated_run_as_text)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
