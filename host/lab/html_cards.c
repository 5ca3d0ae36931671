/* Cards of report.html: who is ahead, fastest, smallest; only where the seeds show it. */
#include <math.h>
#include <string.h>

#include "lab/html_own.h"

typedef double (*measure)(const rp_html_page *p, const rp_lab_row *row);
/* Of one seed, larger is better; NaN: not finished. */
typedef double (*seed_measure)(const rp_html_page *p, const rp_lab_row *row, uint32_t seed);

static double seed_main(const rp_html_page *p, const rp_lab_row *row, uint32_t seed) {
    return p->table->classes ? row->accuracy_of[seed] : -row->loss_of[seed];
}

static double seed_speed(const rp_html_page *p, const rp_lab_row *row, uint32_t seed) {
    (void)p;
    return row->result[seed] ? row->result[seed]->samples_per_s : (double)NAN;
}

/* Is the row ahead of every other one, by an interval that does not hold zero? */
static bool is_ahead(const rp_html_page *p, const rp_lab_row *row, seed_measure of) {
    uint32_t others = 0;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *other = rp_lab_table_row(p->table, row->model, line);
        double own[RP_LAB_SEEDS_MAX];
        double base[RP_LAB_SEEDS_MAX];
        if (other == row || other->finished == 0 || other->diverged > 0) {
            continue;
        }
        for (uint32_t s = 0; s < row->wanted; s++) {
            own[s] = of(p, row, s);
            base[s] = of(p, other, s);
        }
        const rp_stats_paired paired = rp_stats_pair(own, base, row->wanted);
        if (rp_stats_sign(&paired) <= 0) {
            return false;
        }
        others++;
    }
    return others > 0;
}

static double by_main(const rp_html_page *p, const rp_lab_row *row) {
    double mean = rp_lab_row_main(p->table, row)->mean;
    return row->diverged > 0 ? (double)NAN : p->table->classes ? mean : -mean;
}

static double by_speed(const rp_html_page *p, const rp_lab_row *row) {
    (void)p;
    return row->samples_per_s.mean;
}

static double by_memory(const rp_html_page *p, const rp_lab_row *row) {
    (void)p;
    return -row->device_bytes;
}

static const rp_lab_row *best_row(const rp_html_page *p, uint32_t model, measure of) {
    const rp_lab_row *best = NULL;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = rp_lab_table_row(p->table, model, line);
        if (isfinite(of(p, row)) && (!best || of(p, row) > of(p, best))) {
            best = row;
        }
    }
    return best;
}

/* Bytes are counted, not sampled: the least is the least, unless two have it. */
static bool is_alone(const rp_html_page *p, const rp_lab_row *row, measure of) {
    uint32_t others = 0;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *other = rp_lab_table_row(p->table, row->model, line);
        if (other != row && isfinite(of(p, other))) {
            others++;
            if (of(p, other) >= of(p, row)) {
                return false;
            }
        }
    }
    return others > 0;
}

const rp_lab_row *rp_html_best(const rp_html_page *p, uint32_t model) {
    return best_row(p, model, by_main);
}

static void put_card(const rp_html_page *p, const char *what, const char *label,
                     const char *value) {
    rp_html_put(p, "<div class=\"card\">");
    rp_html_tag(p, "span", "", what);
    rp_html_tag(p, "b", "", label);
    rp_html_tag(p, "span", "", value);
    rp_html_put(p, "</div>\n");
}

/* A winner only where the seeds show one. */
static void put_main_card(const rp_html_page *p, uint32_t model) {
    char text[RP_LAB_CELL_BYTES];
    char more[RP_LAB_CELL_BYTES + 64];
    const char *what = p->table->classes ? "highest test accuracy" : "lowest test loss";
    const rp_lab_row *row = rp_html_best(p, model);
    if (!row || p->table->line_count < 2) {
        return;
    }
    if (is_ahead(p, row, seed_main)) {
        const rp_lab_sheet sheet = rp_lab_sheet_of_row(p->table, RP_LAB_METHODS, row);
        rp_lab_line line = {.sheet = &sheet};
        const rp_lab_column *column = rp_lab_column_first(&sheet);
        while (!column->main) {
            column = rp_lab_column_next(&sheet, column);
        }
        (void)rp_lab_sheet_next(&line);
        rp_lab_write_cell(column, &line, text);
        (void)snprintf(more, sizeof more, "%s%s; ahead of every other row", text,
                       p->table->classes ? " %" : "");
        put_card(p, what, row->label, more);
    } else {
        put_card(p, what, "no clear winner",
                 row->wanted < 2 ? "one seed has no interval"
                                 : "not every 95 % interval of the differences leaves zero out");
    }
}

void rp_html_cards(const rp_html_page *p, uint32_t model) {
    char more[128];
    rp_html_put(p, "<div class=\"cards\">\n");
    put_main_card(p, model);
    const rp_lab_row *row = best_row(p, model, by_speed);
    if (row && is_ahead(p, row, seed_speed)) {
        (void)snprintf(more, sizeof more, "%.0f samples/s", floor(row->samples_per_s.mean + 0.5));
        if (isfinite(row->speed)) {
            (void)snprintf(more + strlen(more), sizeof more - strlen(more),
                           ", \xc3\x97%.2f the baseline's", row->speed);
        }
        put_card(p, "fastest", row->label, more);
    }
    row = best_row(p, model, by_memory);
    if (row && is_alone(p, row, by_memory)) {
        (void)snprintf(more, sizeof more, "%.1f MiB on all devices", row->device_bytes / (1 << 20));
        put_card(p, "least memory", row->label, more);
    }
    rp_html_put(p, "</div>\n");
}
