#include "folder.h"

#include <math.h>

#include "lab/drawing.h"
#include "lab/plot.h"

static const double nan_value = (double)NAN;

static char svg[1 << 17];

static FILE *open_svg(void) {
    FILE *file = fopen(in_folder("a.svg"), "w+");
    assert_non_null(file);
    return file;
}

/* No number in it may be none: a viewer would drop the whole path. */
static const char *read_svg(FILE *file) {
    rewind(file);
    svg[fread(svg, 1, sizeof svg - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    const char *const never[] = {"nan", "NaN", "inf\"", "inf ", "<script", "http://www.w3.org/1999",
                                 "url("};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        assert_null(strstr(svg, never[i]));
    }
    assert_true(strlen(svg) > 7 && strcmp(svg + strlen(svg) - 7, "</svg>\n") == 0);
    return svg;
}

static uint32_t count_of(const char *text, const char *word) {
    uint32_t count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        count++;
    }
    return count;
}

static const char *draw_plot(const rp_plot *plot, bool standalone) {
    FILE *file = open_svg();
    rp_plot_write(file, plot, standalone);
    return read_svg(file);
}

static void bands_lines_and_dots(void **state) {
    (void)state;
    const double x[] = {1, 2, 3};
    const double y[] = {0.5, 0.7, 0.9};
    const double low[] = {0.4, 0.6, 0.8};
    const double high[] = {0.6, 0.8, 1.0};
    const rp_series curve[] = {{.name = "a<b",
                                .line = 0,
                                .x = x,
                                .y = y,
                                .low = low,
                                .high = high,
                                .count = 3,
                                .marked = 1},
                               {.name = "b", .line = 13, .x = x, .y = y, .count = 3, .marked = 3}};
    const rp_plot plot = {.title = "T & U",
                          .note = "",
                          .x_label = "epochs",
                          .y_label = "%",
                          .percent = true,
                          .series = curve,
                          .count = 2};
    const char *text = draw_plot(&plot, false);
    assert_int_equal(count_of(text, "class=\"band\""), 1);
    assert_int_equal(count_of(text, "class=\"dot\""), 6);
    assert_int_equal(count_of(text, "class=\"ring\""), 1);
    assert_int_equal(count_of(text, "class=\"line dash\""), 1); /* the colours go round at 10 */
    assert_int_equal(count_of(text, "class=\"c3 m13\""), 2);
    assert_non_null(strstr(text, "a&lt;b: epochs 3: 90 % \xc2\xb1 10"));
    assert_non_null(strstr(text, "T &amp; U"));
    assert_null(strstr(text, "<style>"));
    assert_null(strstr(text, "class=\"cross\""));
    text = draw_plot(&plot, true);
    assert_non_null(strstr(text, "<style>"));
    assert_non_null(strstr(text, "xmlns=\"http://www.w3.org/2000/svg\""));
    assert_null(strstr(text, "var(")); /* which few programs but browsers know */
}

/* Where all have the same share the axis has room around it, and ends at 0 and 100 %. */
static void one_share(void **state) {
    (void)state;
    static const struct {
        double share;
        const char *tick, *none;
    } cases[] = {{1, ">96<", ">102<"}, {0, ">4<", ">-2<"}, {0.5, ">48<", ">60<"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double x[] = {1, 2};
        const double y[] = {cases[i].share, cases[i].share};
        const rp_series curve = {.name = "a", .x = x, .y = y, .count = 2, .marked = 2};
        const rp_plot plot = {.title = "t",
                              .note = "",
                              .x_label = "lr",
                              .y_label = "%",
                              .percent = true,
                              .series = &curve,
                              .count = 1};
        const char *text = draw_plot(&plot, false);
        if (!strstr(text, cases[i].tick)) {
            fail_msg("no %s in %s", cases[i].tick, text);
        }
        assert_null(strstr(text, cases[i].none));
        assert_null(strstr(text, ">105<"));
        assert_null(strstr(text, ">110<"));
    }
}

static void a_curve_that_ends_is_crossed_out(void **state) {
    (void)state;
    const double x[] = {1, 2, 3, 4, 5};
    const double y[] = {3, nan_value, 2, nan_value, (double)INFINITY};
    const rp_series curve = {.name = "a", .x = x, .y = y, .count = 5, .marked = 5};
    const rp_plot plot = {
        .title = "t", .note = "", .x_label = "x", .y_label = "y", .series = &curve, .count = 1};
    const char *text = draw_plot(&plot, false);
    assert_int_equal(count_of(text, "class=\"cross\""), 1);
    assert_int_equal(count_of(text, "class=\"dot\""), 2);
    const char *line = strstr(text, "class=\"line\" d=\"");
    assert_non_null(line);
    assert_int_equal(count_of(line, "M"), 2 + 1); /* interrupted between them; the cross */
}

static void nothing_finite_and_nothing_at_all(void **state) {
    (void)state;
    const double x[] = {1, nan_value};
    const double y[] = {nan_value, 2};
    const rp_series curve[] = {{.name = "a", .x = x, .y = y, .low = y, .high = y, .count = 2},
                               {.name = "b", .x = x, .y = y, .count = 0}};
    rp_plot plot = {.title = "t", .note = "n", .x_label = "x", .y_label = "y", .series = curve};
    for (uint32_t count = 0; count <= 2; count++) {
        for (int how = 0; how < 8; how++) {
            plot.count = count;
            plot.log_x = how & 1;
            plot.log_y = how & 2;
            plot.names = how & 4;
            (void)draw_plot(&plot, true);
        }
    }
}

/* A curve that explodes is cut, so that the others can be seen. */
static void one_that_explodes(void **state) {
    (void)state;
    const double x[] = {0, 1, 2, 3};
    const double good[] = {2, 1, 0.5, 0.4};
    const double mad[] = {2, 1e10, 1e20, 1e30};
    const rp_series curve[] = {{.name = "good", .x = x, .y = good, .count = 4, .marked = 4},
                               {.name = "mad", .x = x, .y = mad, .count = 4, .marked = 4}};
    rp_plot plot = {
        .title = "t", .note = "", .x_label = "x", .y_label = "y", .series = curve, .count = 2};
    assert_non_null(strstr(draw_plot(&plot, false), "cut off above"));
    assert_null(strstr(svg, ">1e+")); /* no tick is up there */
    plot.count = 1;
    assert_null(strstr(draw_plot(&plot, false), "cut off above"));
}

/* Names of points that lie together move down past each other, all of them, wherever that is. */
static void names_that_meet(void **state) {
    (void)state;
    enum { CURVES = 6, PLACES = 1000 };
    static const char *const names[CURVES] = {"one", "two", "three", "four", "five", "six"};
    for (int place = 0; place < PLACES; place++) {
        double x[CURVES];
        double y[CURVES];
        rp_series curve[CURVES + 1];
        for (uint32_t i = 0; i < CURVES; i++) {
            x[i] = 1.0 + 1e-4 * i;
            y[i] = 1e-3 * i + 0.000977 * place;
            curve[i] = (rp_series){
                .name = names[i], .line = i, .x = &x[i], .y = &y[i], .count = 1, .marked = 1};
        }
        const double far[] = {0, 2};
        const double ends[] = {0, 1};
        curve[CURVES] =
            (rp_series){.name = "far", .line = 6, .x = far, .y = ends, .count = 2, .marked = 2};
        const rp_plot plot = {.title = "t",
                              .note = "n",
                              .x_label = "x",
                              .y_label = "y",
                              .names = true,
                              .series = curve,
                              .count = CURVES + 1};
        assert_int_equal(count_of(draw_plot(&plot, true), "class=\"name"), CURVES + 1);
    }
}

static void log_axes(void **state) {
    (void)state;
    const double x[] = {0.001, 0.01, 0.1};
    const double y[] = {1e-6, 0, 10};
    const rp_series curve = {
        .name = "a", .x = x, .y = y, .low = y, .high = y, .count = 3, .marked = 2};
    const rp_plot plot = {.title = "t",
                          .note = "",
                          .x_label = "lr",
                          .y_label = "L2",
                          .log_x = true,
                          .log_y = true,
                          .names = true,
                          .series = &curve,
                          .count = 1};
    const char *text = draw_plot(&plot, false);
    assert_int_equal(count_of(text, "class=\"dot\""), 2); /* 0 has no place */
    assert_non_null(strstr(text, ">0.01<"));
}

static void differences(void **state) {
    (void)state;
    const double seeds[] = {1, 1.2, nan_value};
    const double one[] = {-0.1};
    const double mean[] = {1.1, -0.1};
    const double low[] = {0.9, nan_value, -30};
    const double high[] = {1.3, nan_value, 40};
    const rp_series row[] = {
        {.name = "better",
         .x = seeds,
         .y = mean,
         .low = low,
         .high = high,
         .count = 3,
         .verdict = 1},
        {.name = "one seed", .x = one, .y = mean + 1, .low = low + 1, .high = high + 1, .count = 1},
        {.name = "two seeds", .x = seeds, .y = mean, .low = low + 2, .high = high + 2, .count = 2},
    };
    const rp_plot plot = {.kind = RP_PLOT_DIFFERENCES,
                          .title = "against",
                          .note = "note",
                          .x_label = "points",
                          .series = row,
                          .count = 3};
    const char *text = draw_plot(&plot, true);
    assert_int_equal(count_of(text, "class=\"faint\""), 2 + 1 + 2);
    assert_int_equal(count_of(text, "95 % interval"), 2);
    assert_int_equal(count_of(text, "<g class=\"good\">"), 1);
    assert_int_equal(count_of(text, "l-5 5l5 5"), 1); /* an interval that leaves the picture */
    assert_int_equal(count_of(text, "class=\"zero\""), 1);
}

static void bars(void **state) {
    (void)state;
    const double a[] = {1, 2};
    const double b[] = {nan_value, 4};
    const double zero[] = {0, 0};
    rp_series series[] = {{.name = "a", .line = 0, .y = a, .count = 2},
                          {.name = "b", .line = 1, .y = b, .count = 2}};
    const rp_plot plot = {.kind = RP_PLOT_BARS,
                          .title = "Memory",
                          .note = "",
                          .x_label = "stage",
                          .y_label = "MiB",
                          .series = series,
                          .count = 2};
    const char *text = draw_plot(&plot, true);
    assert_int_equal(count_of(text, "class=\"bar\""), 3 + 2); /* and the legend */
    assert_non_null(strstr(text, "b, stage 1: 4"));
    assert_non_null(strstr(text, ">stage 1<"));
    series[0].y = series[1].y = zero;
    (void)draw_plot(&plot, false);
}

static void texts(void **state) {
    (void)state;
    FILE *file = open_svg();
    rp_drawing_text(file, "<a href=\"x\">&\n\x01");
    (void)fputs("</svg>\n", file);
    assert_string_equal(read_svg(file), "&lt;a href=&quot;x&quot;&gt;&amp;  </svg>\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bands_lines_and_dots, setup, teardown),
        cmocka_unit_test_setup_teardown(one_share, setup, teardown),
        cmocka_unit_test_setup_teardown(a_curve_that_ends_is_crossed_out, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_finite_and_nothing_at_all, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_explodes, setup, teardown),
        cmocka_unit_test_setup_teardown(names_that_meet, setup, teardown),
        cmocka_unit_test_setup_teardown(log_axes, setup, teardown),
        cmocka_unit_test_setup_teardown(differences, setup, teardown),
        cmocka_unit_test_setup_teardown(bars, setup, teardown),
        cmocka_unit_test_setup_teardown(texts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
