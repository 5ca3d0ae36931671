#include "folder.h"

#include <math.h>

#include "lab/columns.h"
#include "lab/html.h"
#include "lab/markdown.h"
#include "lab/table.h"
#include "lab/tablejson.h"

#include <jansson.h>

static rp_labfile lab;
static rp_lab_plan plan;

static rp_err open_plan(const char *text) {
    write_text("run.yaml", "model: mlp\noptimizer: {lr: 1}\nschedule: gpipe\n");
    char *out; /* which the plan keeps */
    expect_ok(rp_arena_string(&arena, in_folder("out"), &out));
    expect_ok(rp_labfile_read(&arena, write_text("compare.yaml", text), &lab));
    return rp_lab_plan_make(&arena, &lab, out, &plan);
}

/* As if `ringpipe train` had been there. accuracy NaN: diverged. */
static void finish_stages(rp_lab_run *run, double accuracy, double speed, const char *stages) {
    char text[1024];
    char name[256];
    char loss[32] = "null";
    if (isfinite(accuracy)) {
        (void)snprintf(loss, sizeof loss, "%g", 1 - accuracy);
    }
    (void)snprintf(text, sizeof text,
                   "{\"status\": \"finished\", \"steps\": 4, \"epochs\": 1, \"seconds\": 2,"
                   " \"train\": {\"loss\": 0.5}, \"eval\": {\"loss\": %s, \"accuracy\": %g},"
                   " \"samples_per_s\": %g, \"bubble\": 0.25, \"stage\": [%s]}",
                   loss, isfinite(accuracy) ? accuracy : 0.1, speed, stages);
    write_text("out/.lock", "");
    expect_ok(rp_lab_plan_write(&plan, run));
    (void)snprintf(name, sizeof name, "out/runs/%s/summary.json", run->name);
    write_text(name, text);
    (void)snprintf(name, sizeof name, "out/runs/%s/log.jsonl", run->name);
    write_text(name, "{\"step\":0,\"epoch\":0,\"loss\":2}\n");
    expect_ok(rp_lab_plan_refresh(&plan, run));
}

static void finish_run(uint32_t method, uint32_t point, uint32_t seed, double accuracy,
                       double speed) {
    char stage[128];
    (void)snprintf(stage, sizeof stage,
                   "{\"layers\": [\"a\"], \"gap_max\": %u, \"device_bytes_max\": 1048576,"
                   " \"weight_versions_max\": 1}",
                   method);
    finish_stages(rp_lab_plan_run(&plan, 0, method, point, seed), accuracy, speed, stage);
}

static const char two_methods[] = "base: run.yaml\nseeds: [1, 2, 3]\nbaseline: a\nmethods:\n"
                                  "  a: {}\n  b: {schedule: 1f1b}\n  c: {optimizer.lr: 9}\n";

static const char *cell_of(const rp_lab_sheet *sheet, uint32_t at, const char *title) {
    static char text[RP_LAB_CELL_BYTES];
    rp_lab_line line = {.sheet = sheet};
    for (uint32_t i = 0; i <= at; i++) {
        assert_true(rp_lab_sheet_next(&line));
    }
    for (const rp_lab_column *c = rp_lab_column_first(sheet); c; c = rp_lab_column_next(sheet, c)) {
        if (strcmp(c->title, title) == 0) {
            rp_lab_write_cell(c, &line, text);
            return text;
        }
    }
    return "no such column";
}

static const char *cell(const rp_lab_table *table, const rp_lab_row *row, const char *title) {
    const rp_lab_sheet sheet = rp_lab_sheet_of_row(table, RP_LAB_METHODS, row);
    return cell_of(&sheet, 0, title);
}

static void differences_and_divergence(void **state) {
    (void)state;
    rp_lab_table table;
    expect_ok(open_plan(two_methods));
    for (uint32_t s = 0; s < 3; s++) {
        finish_run(0, 0, s, 0.90 + 0.01 * s, 1000);
        finish_run(1, 0, s, 0.92 + 0.0101 * s, 1500);
        finish_run(2, 0, s, s == 1 ? (double)NAN : 0.99, 1000);
    }
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    assert_int_equal(table.row_count, 3);
    const rp_lab_row *b = &table.row[1];
    expect_close(b->accuracy.mean, 0.9301, 1e-12, 0);
    expect_close(b->accuracy_over.mean, 0.0201, 1e-12, 0);
    expect_close(b->accuracy_over.deviation, 0.0001, 1e-9, 0);
    expect_close(b->speed, 1.5, 1e-12, 0);
    expect_close(b->gap_max, 1, 0, 0);
    assert_int_equal(rp_lab_row_verdict(&table, b), 1);
    assert_string_equal(cell(&table, b, "test accuracy %"), "93.01 \xc2\xb1 1.01");
    assert_string_equal(cell(&table, b, "difference"), "+2.01 \xc2\xb1 0.01");
    assert_string_equal(cell(&table, &table.row[0], "difference"), "baseline");
    assert_string_equal(cell(&table, b, "bubble"), "25 %");
    const rp_lab_row *c = &table.row[2]; /* two seeds of 99 % do not make a mean */
    assert_int_equal(c->diverged, 1);
    assert_string_equal(cell(&table, c, "test accuracy %"), "diverged (1 of 3)");
    assert_string_equal(cell(&table, c, "difference"), "\xe2\x80\x93");
    assert_int_equal(rp_lab_row_verdict(&table, c), -1);
    assert_int_equal(table.differs_count, 2);
    assert_string_equal(table.differs[0], "optimizer.lr");
    assert_string_equal(table.differs[1], "schedule");
    assert_int_equal(table.equal_count, 0);
    rp_lab_counts counts = rp_lab_plan_count(&plan);
    assert_true(counts.complete && counts.finished == 9 && counts.diverged == 1);
}

static const char *page_of(const rp_lab_table *table) {
    static char text[1 << 17];
    const rp_lab_report_options options = {"finished", rp_lab_plan_count(&plan)};
    rp_lab_figures figures;
    FILE *file = fopen(in_folder("report.html"), "w+");
    assert_non_null(file);
    expect_ok(rp_lab_figures_make(&arena, table, &figures));
    rp_lab_html(table, &options, &figures, file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    return text;
}

/* A winner is named only where the interval to every other row excludes zero. */
static void winners_are_shown_by_the_seeds(void **state) {
    (void)state;
    rp_lab_table table;
    expect_ok(open_plan(two_methods));
    for (uint32_t s = 0; s < 3; s++) {
        finish_run(0, 0, s, 0.90 + 0.01 * s, 1000 + 400 * (s % 2));
        finish_run(1, 0, s, 0.92 + 0.0101 * s, 1100 + 400 * ((s + 1) % 2));
        finish_run(2, 0, s, s == 1 ? (double)NAN : 0.99, 1000);
    }
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    const char *page = page_of(&table);
    assert_non_null(
        strstr(page, "<b>b</b><span>93.01 \xc2\xb1 1.01 %; better than every other row"));
    assert_null(strstr(page, "fastest")); /* by some seeds only */
    assert_null(strstr(page, "no clear winner"));
    finish_run(2, 0, 1, 0.92, 1000); /* 99, 92, 99 %: the mean is higher, the interval holds 0 */
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    page = page_of(&table);
    assert_non_null(strstr(page, "no clear winner"));
    assert_null(strstr(page, "better than every other row"));
}

static void a_page_says_what_it_is_about(void **state) {
    (void)state;
    rp_lab_table table;
    expect_ok(open_plan("base: run.yaml\nseeds: [1]\ndescription: Is a < b?\nmethods:\n"
                        "  a: {data.set: glyphs}\n  b: {data.set: glyphs, schedule: 1f1b}\n"));
    finish_run(0, 0, 0, 0.9, 1000);
    finish_run(1, 0, 0, 0.95, 2000);
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    const char *page = page_of(&table);
    assert_non_null(strstr(page, "Is a &lt; b?</p>"));
    assert_non_null(strstr(page, "<p>Data: glyphs"));
    assert_non_null(strstr(page, "one seed has no interval"));
    assert_null(strstr(page, "fastest"));
    assert_non_null(strstr(page, "<a href=\"#r0\">a</a>"));
    assert_non_null(strstr(page, "<tr id=\"r0\">"));
    /* What hovering shows is in the text, too. */
    for (uint32_t kind = RP_LAB_METHODS; kind <= RP_LAB_STAGES; kind++) {
        const rp_lab_sheet sheet = rp_lab_sheet_of(&table, kind, 0);
        for (const rp_lab_column *c = rp_lab_column_first(&sheet); c;
             c = rp_lab_column_next(&sheet, c)) {
            char said[256];
            (void)snprintf(said, sizeof said, "<dd>%s</dd>", c->hint);
            assert_true(!c->hint || strstr(page, said));
        }
    }
}

/* A row for each wire of a method: means over the seeds that know a number. */
/* A seed that never gets there, and one that starts late. */
static void time_to_the_goal(void **state) {
    (void)state;
    static const struct {
        double first_s, later_s, accuracy;
    } seeds[3] = {{2, 9, 0.8}, {5, 15, 0.81}, {2, 9, 0.79}};
    rp_lab_table table;
    expect_ok(open_plan("base: run.yaml\nseeds: [1, 2, 3]\ngoal: 0.8\nmethods: {a: {}}\n"));
    for (uint32_t s = 0; s < 3; s++) {
        char name[256];
        char text[512];
        rp_lab_run *run = rp_lab_plan_run(&plan, 0, 0, 0, s);
        finish_run(0, 0, s, 0.9, 1000);
        (void)snprintf(name, sizeof name, "out/runs/%s/log.jsonl", run->name);
        (void)snprintf(text, sizeof text,
                       "{\"step\":1,\"epoch\":0,\"loss\":2,\"time_s\":%g}\n"
                       "{\"event\":\"eval\",\"step\":2,\"loss\":1,\"accuracy\":0.7,"
                       "\"time_s\":6,\"split\":\"test\"}\n"
                       "{\"event\":\"eval\",\"step\":3,\"loss\":1,\"accuracy\":%g,"
                       "\"time_s\":%g,\"split\":\"test\"}\n",
                       seeds[s].first_s, seeds[s].accuracy, seeds[s].later_s);
        write_text(name, text);
        expect_ok(rp_lab_plan_refresh(&plan, run));
    }
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    assert_string_equal(cell(&table, &table.row[0], "seconds to the goal"),
                        "8.5 \xc2\xb1 2.1 (2 of 3 reach it)");
    expect_ok(open_plan(two_methods));
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    assert_string_equal(cell(&table, &table.row[0], "seconds to the goal"), "no such column");
}

static void wires_have_rows(void **state) {
    (void)state;
    static const char *const stages[2] = {
        "{\"layers\": [\"a\"]}], \"wire\": ["
        "{\"kind\": \"feed\", \"from\": \"host\", \"to\": 0, \"bytes\": 1048576, \"rate_mbit\": "
        "null,"
        " \"utilisation\": 0.25, \"resets\": 1, \"codec\": \"uint8\"},"
        "{\"kind\": \"hop\", \"from\": 0, \"to\": 1, \"bytes\": 7}",
        "{\"layers\": [\"a\"]}], \"wire\": ["
        "{\"kind\": \"feed\", \"from\": \"host\", \"to\": 0, \"bytes\": 3145728, \"rate_mbit\": "
        "12.5,"
        " \"utilisation\": 0.75, \"resets\": 2, \"codec\": \"uint8\"}"};
    rp_lab_table table;
    expect_ok(open_plan("base: run.yaml\nseeds: [1, 2]\nmethods:\n  a: {}\n"));
    for (uint32_t s = 0; s < 2; s++) {
        finish_stages(rp_lab_plan_run(&plan, 0, 0, 0, s), 0.5, 100, stages[s]);
    }
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    assert_int_equal(rp_lab_table_wires(&table, 0), 2);
    static const char *const cells[][2] = {{"method", "a"},
                                           {"wire", "feed host \xe2\x86\x92 0"},
                                           {"MiB", "2.0"},
                                           {"busy", "50 %"},
                                           {"Mbit/s", "12.50"},
                                           {"ms, median", "\xe2\x80\x93"},
                                           {"ms, 95 %", "\xe2\x80\x93"},
                                           {"resent", "\xe2\x80\x93"},
                                           {"resets", "1.50"},
                                           {"codec", "uint8"}};
    const rp_lab_sheet sheet = rp_lab_sheet_of(&table, RP_LAB_WIRES, 0);
    uint32_t columns = 0;
    for (const rp_lab_column *c = rp_lab_column_first(&sheet); c;
         c = rp_lab_column_next(&sheet, c)) {
        assert_string_equal(c->title, cells[columns][0]);
        assert_string_equal(cell_of(&sheet, 0, c->title), cells[columns++][1]);
    }
    assert_int_equal(columns, sizeof cells / sizeof *cells);
    expect_close(table.row[0].wire[1].number[RP_LAB_WIRE_BYTES], 7, 0, 0); /* of one seed */
    const char *page = page_of(&table);
    assert_non_null(strstr(page, "<td class=\"l\">feed host \xe2\x86\x92 0</td><td>2.0"));
    const rp_lab_report_options options = {"finished", rp_lab_plan_count(&plan)};
    FILE *file = fopen(in_folder("table.json"), "w+");
    expect_ok(rp_lab_json(&table, &options, file, 0));
    rewind(file);
    json_t *root = json_loadf(file, 0, NULL);
    assert_int_equal(fclose(file), 0);
    const json_t *model = json_array_get(json_object_get(root, "model"), 0);
    const json_t *row = json_array_get(json_object_get(model, "row"), 0);
    const json_t *wire = json_array_get(json_object_get(row, "wire"), 0);
    assert_string_equal(json_string_value(json_object_get(wire, "codec")), "uint8");
    expect_close(json_number_value(json_object_get(wire, "utilisation")), 0.5, 0, 0);
    assert_true(json_is_null(json_object_get(wire, "delay_p50_ms")));
    json_decref(root);
    file = fopen(in_folder("table.md"), "w+");
    rp_lab_markdown(&table, &options, file);
    rewind(file);
    char md[4096];
    md[fread(md, 1, sizeof md - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(md, "### Wires\n\n| method | wire"));
    assert_non_null(strstr(md, "| a      | feed host \xe2\x86\x92 0 | 2.0 "));
}

static void unfinished_rows(void **state) {
    (void)state;
    rp_lab_table table;
    expect_ok(open_plan(two_methods));
    finish_run(0, 0, 1, 0.5, 1000);
    write_text("out/runs/mlp/b/seed-1.log", "x run: error: no power\n");
    expect_ok(rp_lab_plan_refresh(&plan, rp_lab_plan_run(&plan, 0, 1, 0, 0)));
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    assert_string_equal(cell(&table, &table.row[0], "test accuracy %"), "50.00"); /* one: no +- */
    assert_string_equal(cell(&table, &table.row[0], "seeds"), "1 of 3");
    assert_string_equal(cell(&table, &table.row[1], "test accuracy %"), "failed");
    assert_string_equal(cell(&table, &table.row[1], "seeds"), "0 of 3, 1 failed");
    assert_string_equal(cell(&table, &table.row[1], "bubble"), "\xe2\x80\x93");
    assert_string_equal(cell(&table, &table.row[2], "test accuracy %"), "\xe2\x80\x93");
    rp_lab_counts counts = rp_lab_plan_count(&plan);
    assert_true(!counts.complete && counts.failed == 1 && counts.wanted == 9);
}

/* Tuned on seed 7, then the best of them on 1 and 2. */
static void tuning_chooses(void **state) {
    (void)state;
    rp_lab_table table;
    expect_ok(open_plan("base: run.yaml\nseeds: [1, 2]\nmethods:\n"
                        "  a: {optimizer.lr: [1, 2, 3, 4]}\n  b: {}\ntune: {seeds: [7]}\n"));
    const uint32_t tune_seed = 2;
    assert_int_equal(rp_lab_plan_count(&plan).wanted, 4 + 2);
    for (uint32_t point = 0; point < 4; point++) {
        assert_int_equal(plan.chosen[0], RP_LAB_NOT_CHOSEN);
        rp_lab_run *next = rp_lab_plan_next(&plan);
        assert_int_equal(next->method, 0); /* tuning goes first */
        assert_int_equal(next->point, point);
        assert_int_equal(next->seed, tune_seed);
        const double accuracy[] = {0.5, (double)NAN, 0.7, 0.7};
        finish_run(0, point, tune_seed, accuracy[point], 1000);
    }
    assert_int_equal(plan.chosen[0], 2); /* the first of the best */
    rp_lab_counts counts = rp_lab_plan_count(&plan);
    assert_int_equal(counts.wanted, 4 + 2 + 2);
    assert_false(counts.complete);
    assert_int_equal(rp_lab_plan_next(&plan)->seed, 0);
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    assert_int_equal(table.row_count, 2);
    assert_string_equal(table.row[0].label, "a, lr=3");
    assert_int_equal(table.row[0].finished, 0); /* seed 7 is not one of its seeds */
    assert_int_equal(table.tuning_count, 1);
    assert_true(table.tuning[0].trial[2].chosen && !table.tuning[0].trial[2].at_edge);
    assert_int_equal(table.tuning[0].trial[1].diverged, 1);
}

/* By seed of three runs each, where the second stage begins; "": on one board. */
static bool cuts_differ(const char *const a[3], const char *const b[3]) {
    rp_lab_table table;
    expect_ok(open_plan(two_methods));
    for (uint32_t i = 0; i < 6; i++) {
        const char *second = i < 3 ? a[i] : b[i - 3];
        char stages[128];
        (void)snprintf(stages, sizeof stages, "{\"layers\": [\"a\"]}%s%s%s",
                       second[0] ? ", {\"layers\": [\"" : "", second, second[0] ? "\"]}" : "");
        finish_stages(rp_lab_plan_run(&plan, 0, i / 3, 0, i % 3), 0.5, 1000, stages);
    }
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    return table.cut_differs;
}

static void cuts_are_compared_on_as_many_boards(void **state) {
    (void)state;
    const char *const one[] = {"", "", ""};
    const char *const b[] = {"b", "b", "b"};
    const char *const c[] = {"c", "c", "c"};
    const char *const mixed[] = {"", "b", "c"};
    assert_false(cuts_differ(one, b));
    assert_false(cuts_differ(b, one));
    assert_false(cuts_differ(b, b));
    assert_true(cuts_differ(b, c));
    assert_true(cuts_differ(one, mixed)); /* the baseline on one board hides no other's */
}

static void a_run_under_way_decides_nothing(void **state) {
    (void)state;
    expect_ok(open_plan("base: run.yaml\nseeds: [1]\nmethods:\n"
                        "  a: {optimizer.lr: [1, 2]}\n  b: {}\ntune: {}\n"));
    rp_lab_run *second = rp_lab_plan_run(&plan, 0, 0, 1, 0);
    second->tried = second->running = true;
    finish_run(0, 0, 0, 0.5, 1000);
    assert_int_equal(plan.chosen[0], RP_LAB_NOT_CHOSEN);
    second->running = false; /* it has failed */
    expect_ok(rp_lab_plan_refresh(&plan, second));
    assert_int_equal(plan.chosen[0], 0);
}

static void all_points_diverge(void **state) {
    (void)state;
    rp_lab_table table;
    expect_ok(open_plan("base: run.yaml\nseeds: [1]\nmethods:\n"
                        "  a: {optimizer.lr: [1, 2]}\ntune: {}\n"));
    finish_run(0, 0, 0, (double)NAN, 1000);
    finish_run(0, 1, 0, (double)NAN, 1000);
    assert_int_equal(plan.chosen[0], RP_LAB_NONE_IS_GOOD);
    assert_true(rp_lab_plan_count(&plan).complete);
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    assert_string_equal(cell(&table, &table.row[0], "test loss"), "diverged");
}

static void other_settings_are_not_mixed_in(void **state) {
    (void)state;
    expect_ok(open_plan(two_methods));
    finish_run(1, 0, 0, 0.5, 1000);
    expect_ok(open_plan(two_methods)); /* the same again */
    assert_int_equal(rp_lab_plan_count(&plan).finished, 1);
    expect_err(open_plan("base: run.yaml\nseeds: [1]\nmethods:\n  b: {schedule: zb-h1}\n"),
               RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "out/runs/mlp/b/seed-1"));
    expect_ok(open_plan("base: run.yaml\nseeds: [1, 9]\nmethods:\n  b: {schedule: 1f1b}\n"
                        "  d: {}\n")); /* more of everything */
    assert_int_equal(rp_lab_plan_count(&plan).finished, 1);
    assert_int_equal(rp_lab_plan_count(&plan).wanted, 4);
}

/* What is written reads back, without a NaN. */
static void json_and_markdown(void **state) {
    (void)state;
    rp_lab_table table;
    expect_ok(open_plan(two_methods));
    finish_run(0, 0, 0, 0.5, 1000);
    finish_run(1, 0, 0, (double)NAN, 1000);
    expect_ok(rp_lab_table_make(&arena, &plan, &table));
    rp_lab_report_options options = {"running", rp_lab_plan_count(&plan)};
    FILE *file = fopen(in_folder("table.json"), "w+");
    expect_ok(rp_lab_json(&table, &options, file, 0));
    rewind(file);
    json_t *root = json_loadf(file, 0, NULL);
    assert_non_null(root);
    const json_t *row = json_array_get(
        json_object_get(json_array_get(json_object_get(root, "model"), 0), "row"), 0);
    const json_t *accuracy = json_object_get(row, "accuracy");
    expect_close(json_number_value(json_object_get(accuracy, "mean")), 0.5, 0, 0);
    assert_true(json_is_null(json_object_get(accuracy, "deviation")));
    const json_t *bubble = json_object_get(row, "bubble");
    expect_close(json_number_value(json_object_get(bubble, "mean")), 0.25, 0, 0);
    json_decref(root);
    assert_int_equal(fclose(file), 0);
    file = fopen(in_folder("table.md"), "w+");
    rp_lab_markdown(&table, &options, file);
    rewind(file);
    char line[1024];
    uint32_t rows = 0;
    while (fgets(line, sizeof line, file)) {
        assert_null(strstr(line, "nan"));
        rows += strncmp(line, "| mlp/", 6) == 0;
    }
    assert_int_equal(rows, 9);
    assert_int_equal(fclose(file), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(differences_and_divergence, setup, teardown),
        cmocka_unit_test_setup_teardown(winners_are_shown_by_the_seeds, setup, teardown),
        cmocka_unit_test_setup_teardown(a_page_says_what_it_is_about, setup, teardown),
        cmocka_unit_test_setup_teardown(time_to_the_goal, setup, teardown),
        cmocka_unit_test_setup_teardown(wires_have_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(unfinished_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(tuning_chooses, setup, teardown),
        cmocka_unit_test_setup_teardown(cuts_are_compared_on_as_many_boards, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_under_way_decides_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(all_points_diverge, setup, teardown),
        cmocka_unit_test_setup_teardown(other_settings_are_not_mixed_in, setup, teardown),
        cmocka_unit_test_setup_teardown(json_and_markdown, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
