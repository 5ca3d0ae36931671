/* Cards of report.html: the best, fastest and smallest method, if the seeds show a difference. */
#include <math.h>
#include <string.h>

#include "lab/html_own.h"

/* A value of one seed, larger is better; NaN: none. */
typedef double (*measure)(const rp_html_page *p, const rp_lab_row *row, uint32_t seed);

static double main_number(const rp_html_page *p, const rp_lab_row *row, uint32_t seed) {
    return row->diverged > 0   ? (double)NAN
           : p->table->classes ? row->accuracy_of[seed]
                               : -row->loss_of[seed];
}

static double speed_of(const rp_html_page *p, const rp_lab_row *row, uint32_t seed) {
    (void)p;
    return row->result[seed] ? row->result[seed]->samples_per_s : (double)NAN;
}

/* One value for all seeds. */
static double memory_of(const rp_html_page *p, const rp_lab_row *row, uint32_t seed) {
    (void)p;
    (void)seed;
    return -row->device_bytes;
}

static double mean_of(const rp_html_page *p, const rp_lab_row *row, measure of) {
    double value[RP_LAB_SEEDS_MAX];
    for (uint32_t s = 0; s < row->wanted; s++) {
        value[s] = of(p, row, s);
    }
    return rp_stats_of(value, row->wanted).mean;
}

/* Whether the interval of the difference is above zero; memory is compared without an interval. */
static bool is_better(const rp_html_page *p, const rp_lab_row *row, const rp_lab_row *other,
                      measure of) {
    double own[RP_LAB_SEEDS_MAX];
    double base[RP_LAB_SEEDS_MAX];
    for (uint32_t s = 0; s < row->wanted; s++) {
        own[s] = of(p, row, s);
        base[s] = of(p, other, s);
    }
    const rp_stats_paired paired = rp_stats_pair(own, base, row->wanted);
    return of == memory_of ? own[0] > base[0] : rp_stats_sign(&paired) > 0;
}

/* Whether the row is better than every comparable row, and there is one. */
static bool is_ahead(const rp_html_page *p, const rp_lab_row *row, measure of) {
    uint32_t others = 0;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *other = rp_lab_table_row(p->table, row->model, line);
        if (other == row || !isfinite(mean_of(p, other, of)) ||
            (other->diverged > 0 && of != memory_of)) {
            continue;
        }
        if (!is_better(p, row, other, of)) {
            return false;
        }
        others++;
    }
    return others > 0;
}

static const rp_lab_row *best_row(const rp_html_page *p, uint32_t model, measure of) {
    const rp_lab_row *best = NULL;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = rp_lab_table_row(p->table, model, line);
        const double mean = mean_of(p, row, of);
        if (isfinite(mean) && (!best || mean > mean_of(p, best, of))) {
            best = row;
        }
    }
    return best;
}

const rp_lab_row *rp_html_best(const rp_html_page *p, uint32_t model) {
    return best_row(p, model, main_number);
}

static void put_card(const rp_html_page *p, const char *what, const char *label,
                     const char *value) {
    rp_html_put(p, "<div class=\"card\">");
    rp_html_tag(p, "span", "", what);
    rp_html_tag(p, "b", "", label);
    rp_html_tag(p, "span", "", value);
    rp_html_put(p, "</div>\n");
}

/* Names a winner only if the seeds show that it is better than every other row. */
static void put_main_card(const rp_html_page *p, uint32_t model) {
    char text[RP_LAB_CELL_BYTES];
    char more[RP_LAB_CELL_BYTES + 64];
    const char *what = p->table->classes ? "highest test accuracy" : "lowest test loss";
    const rp_lab_row *row = rp_html_best(p, model);
    if (!row || p->table->line_count < 2) {
        return;
    }
    if (is_ahead(p, row, main_number)) {
        const rp_lab_sheet sheet = rp_lab_sheet_of_row(p->table, RP_LAB_METHODS, row);
        rp_lab_line line = {.sheet = &sheet};
        (void)rp_lab_sheet_next(&line);
        rp_lab_write_cell(rp_lab_column_main(&sheet), &line, text);
        (void)snprintf(more, sizeof more, "%s%s; better than every other row", text,
                       p->table->classes ? " %" : "");
        put_card(p, what, row->label, more);
    } else {
        put_card(p, what, "no clear winner",
                 row->wanted < 2 ? "one seed has no interval"
                                 : "some 95 % intervals of differences contain zero");
    }
}

void rp_html_cards(const rp_html_page *p, uint32_t model) {
    char more[128];
    rp_html_put(p, "<div class=\"cards\">\n");
    put_main_card(p, model);
    const rp_lab_row *row = best_row(p, model, speed_of);
    if (row && is_ahead(p, row, speed_of)) {
        (void)snprintf(more, sizeof more, "%.0f samples/s", floor(row->samples_per_s.mean + 0.5));
        if (isfinite(row->speed)) {
            (void)snprintf(more + strlen(more), sizeof more - strlen(more),
                           ", \xc3\x97%.2f the baseline's", row->speed);
        }
        put_card(p, "fastest", row->label, more);
    }
    row = best_row(p, model, memory_of);
    if (row && is_ahead(p, row, memory_of)) {
        (void)snprintf(more, sizeof more, "%.1f MiB on all devices", row->device_bytes / (1 << 20));
        put_card(p, "least memory", row->label, more);
    }
    rp_html_put(p, "</div>\n");
}
