/* Tables of report.html. */
#include <string.h>

#include "lab/cells.h"
#include "lab/drawing.h"
#include "lab/html_own.h"

static void put_head_cell(const rp_html_page *p, const char *title, const char *hint, bool left) {
    rp_html_put(p, left ? "<th class=\"l\"" : "<th");
    if (hint[0]) {
        rp_html_put(p, " title=\"");
        rp_html_text(p, hint);
        rp_html_put(p, "\"");
    }
    rp_html_put(p, ">");
    rp_html_text(p, title);
    rp_html_put(p, "</th>");
}

static double largest_of(const rp_html_page *p, uint32_t model, const rp_lab_column *column) {
    double most = 0;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        double size = column->size(rp_html_row(p, model, line));
        most = size > most ? size : most;
    }
    return most;
}

/* What says better or worse is coloured so; of a diverged row only the main number. */
static const char *colour_of(const rp_html_page *p, const rp_lab_column *column,
                             const rp_lab_row *row) {
    bool main_column = rp_lab_column_is_main(column, p->table);
    int verdict = rp_lab_row_verdict(p->table, row);
    if (row->diverged > 0 ? !main_column : !column->verdict || row->baseline) {
        return "";
    }
    return verdict > 0 ? "good" : verdict < 0 ? "bad" : "";
}

static void put_below(const rp_html_page *p, const rp_lab_column *column, const rp_lab_row *row) {
    char text[RP_LAB_CELL_BYTES];
    rp_lab_write_cell(column, p->table, row, text);
    if (text[0] && strcmp(text, "\xe2\x80\x93") != 0) {
        rp_html_put(p, "<small title=\"");
        rp_html_text(p, column->hint);
        rp_html_put(p, "\">");
        rp_html_text(p, text);
        rp_html_put(p, "</small>");
    }
}

/* To the row's first run in the list of runs. */
static void put_run_link(const rp_html_page *p, const rp_lab_row *row, const char *text) {
    const rp_lab_plan *plan = p->table->plan;
    const bool has_runs = row->point < plan->lab->method[row->method].point_count;
    if (has_runs) {
        const rp_lab_run *run = rp_lab_plan_run(plan, row->model, row->method, row->point, 0);
        (void)fprintf(p->file, "<a href=\"#r%u\">", (uint32_t)(run - plan->run));
    }
    rp_html_text(p, text);
    rp_html_put(p, has_runs ? "</a>" : "");
}

static void put_cell(const rp_html_page *p, const rp_lab_column *column, const rp_lab_row *row,
                     bool best) {
    char text[RP_LAB_CELL_BYTES];
    bool first = column == rp_lab_columns;
    bool main_column = rp_lab_column_is_main(column, p->table);
    rp_lab_write_cell(column, p->table, row, text);
    (void)fprintf(p->file, "<td class=\"%s %s %s\">", first ? "l" : "", colour_of(p, column, row),
                  main_column && best ? "best" : "");
    if (first) {
        rp_html_put(p, "<span class=\"key\"></span>");
        put_run_link(p, row, text);
    } else {
        rp_html_text(p, text);
    }
    if (column->size && column->size(row) > 0) {
        double share = column->size(row) / largest_of(p, row->model, column);
        (void)fprintf(p->file, "<span class=\"meter\"><i style=\"width:%.0f%%\"></i></span>",
                      100 * share);
    }
    if (column[1].title && column[1].below && column[1].shown(p->table)) {
        put_below(p, &column[1], row);
    }
    rp_html_put(p, "</td>");
}

static bool own_cell(const rp_html_page *p, const rp_lab_column *column) {
    return column->shown(p->table) && !column->below;
}

static void put_hint(const rp_html_page *p, const char *title, const char *hint) {
    if (hint[0]) {
        rp_html_tag(p, "dt", "", title);
        rp_html_tag(p, "dd", "", hint);
        rp_html_put(p, "\n");
    }
}

/* The same words as on hover, for fingers and for paper. */
static void put_hints(const rp_html_page *p) {
    rp_html_put(p, "<details><summary>What the columns say</summary><dl>\n");
    for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
        if (c->shown(p->table)) {
            put_hint(p, c->title, c->hint);
        }
    }
    rp_html_put(p, "</dl></details>\n");
}

static void put_stage_hints(const rp_html_page *p) {
    rp_html_put(p, "<dl>\n");
    for (const rp_lab_stage_column *c = rp_lab_stage_columns; c->title; c++) {
        if (!c->predicted || p->table->predicted) {
            put_hint(p, c->title, c->hint);
        }
    }
    rp_html_put(p, "</dl>\n");
}

void rp_html_methods(const rp_html_page *p, uint32_t model) {
    const rp_lab_row *best = rp_html_best(p, model);
    rp_html_put(p, RP_HTML_SCROLLS);
    rp_html_put(p, "<div class=\"table\"><table>\n<tr>");
    for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
        if (own_cell(p, c)) {
            put_head_cell(p, c->title, c->hint, c == rp_lab_columns);
        }
    }
    rp_html_put(p, "</tr>\n");
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = rp_html_row(p, model, line);
        (void)fprintf(p->file, "<tr class=\"c%u%s\">", line % RP_DRAWING_COLOURS,
                      row->baseline ? " base" : "");
        for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
            if (own_cell(p, c)) {
                put_cell(p, c, row, row == best);
            }
        }
        rp_html_put(p, "</tr>\n");
    }
    rp_html_put(p, "</table></div>\n");
    put_hints(p);
}

void rp_html_stages(const rp_html_page *p, uint32_t model) {
    char text[RP_LAB_CELL_BYTES];
    rp_html_put(p, "<details><summary>Stages: memory, versions, staleness, predictions</summary>"
                   "<div class=\"table\"><table>\n<tr><th class=\"l\">method</th><th>stage</th>");
    for (const rp_lab_stage_column *c = rp_lab_stage_columns; c->title; c++) {
        if (!c->predicted || p->table->predicted) {
            put_head_cell(p, c->title, c->hint, c == rp_lab_stage_columns);
        }
    }
    rp_html_put(p, "</tr>\n");
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = rp_html_row(p, model, line);
        for (uint32_t k = 0; k < row->stage_count; k++) {
            (void)fprintf(p->file, "<tr class=\"c%u\"><td class=\"l\"><span class=\"key\"></span>",
                          line % RP_DRAWING_COLOURS);
            rp_html_text(p, row->label);
            (void)fprintf(p->file, "</td><td>%u</td>", k);
            for (const rp_lab_stage_column *c = rp_lab_stage_columns; c->title; c++) {
                if (!c->predicted || p->table->predicted) {
                    c->write(row, k, text);
                    rp_html_tag(p, "td", c == rp_lab_stage_columns ? "l" : "", text);
                }
            }
            rp_html_put(p, "</tr>\n");
        }
    }
    rp_html_put(p, "</table></div>\n");
    put_stage_hints(p);
    rp_html_put(p, "</details>\n");
}

static void put_wire(const rp_html_page *p, uint32_t line, const rp_lab_row *row,
                     const rp_lab_wire *wire) {
    char text[RP_LAB_CELL_BYTES];
    (void)fprintf(p->file, "<tr class=\"c%u\"><td class=\"l\"><span class=\"key\"></span>",
                  line % RP_DRAWING_COLOURS);
    rp_html_text(p, row->label);
    rp_html_put(p, "</td>");
    for (const rp_lab_wire_column *c = rp_lab_wire_columns; c->title; c++) {
        c->write(wire, text);
        rp_html_tag(p, "td", c == rp_lab_wire_columns ? "l" : "", text);
    }
    rp_html_put(p, "</tr>\n");
}

void rp_html_wires(const rp_html_page *p, uint32_t model) {
    rp_html_put(p, "<details><summary>Wires: bytes, rates, delays, codecs</summary>"
                   "<div class=\"table\"><table>\n<tr><th class=\"l\">method</th>");
    for (const rp_lab_wire_column *c = rp_lab_wire_columns; c->title; c++) {
        put_head_cell(p, c->title, c->hint, c == rp_lab_wire_columns);
    }
    rp_html_put(p, "</tr>\n");
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = rp_html_row(p, model, line);
        for (uint32_t w = 0; w < row->wire_count; w++) {
            put_wire(p, line, row, &row->wire[w]);
        }
    }
    rp_html_put(p, "</table></div>\n<dl>\n");
    for (const rp_lab_wire_column *c = rp_lab_wire_columns; c->title; c++) {
        put_hint(p, c->title, c->hint);
    }
    rp_html_put(p, "</dl>\n</details>\n");
}

void rp_html_trials(const rp_html_page *p, const rp_lab_tuning *tuning) {
    char text[RP_LAB_CELL_BYTES];
    rp_html_put(p, "<details><summary>Points of ");
    rp_html_text(p, p->table->plan->lab->method[tuning->method].name);
    (void)fprintf(p->file,
                  "</summary><div class=\"table\"><table>\n<tr><th class=\"l\">point</th>"
                  "<th>%s</th><th class=\"l\"></th></tr>\n",
                  !tuning->accuracy    ? "loss"
                  : tuning->validation ? "validation accuracy %"
                                       : "test accuracy %");
    for (uint32_t i = 0; i < tuning->trial_count; i++) {
        const rp_lab_trial *trial = &tuning->trial[i];
        rp_lab_write_mean(&trial->score, tuning->accuracy ? 100 : 1, text);
        rp_html_put(p, "<tr>");
        rp_html_tag(p, "td", "l", trial->label);
        rp_html_tag(p, "td",
                    trial->chosen     ? "best"
                    : trial->diverged ? "bad"
                                      : "",
                    trial->diverged ? "diverged" : text);
        rp_html_tag(p, "td", "l",
                    trial->at_edge  ? "chosen, at the end of the range: a wider one may hold better"
                    : trial->chosen ? "chosen"
                    : trial->finished < trial->wanted ? "not finished"
                                                      : "");
        rp_html_put(p, "</tr>\n");
    }
    rp_html_put(p, "</table></div></details>\n");
}
