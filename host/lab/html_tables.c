/* Tables of report.html. */
#include <string.h>

#include "lab/drawing.h"
#include "lab/html_own.h"

static void put_head(const rp_html_page *p, const rp_lab_column *column) {
    rp_html_put(p, column->left ? "<th class=\"l\"" : "<th");
    if (column->hint) {
        rp_html_put(p, " title=\"");
        rp_html_text(p, column->hint);
        rp_html_put(p, "\"");
    }
    rp_html_put(p, ">");
    rp_html_text(p, column->title);
    rp_html_put(p, "</th>");
}

/* CSS class of a verdict: better or worse. A diverged row has it only at its main number. */
static const char *colour_of(const rp_lab_column *column, const rp_lab_line *line) {
    const rp_lab_row *row = line->row;
    if (line->sheet->kind != RP_LAB_METHODS ||
        (row->diverged > 0 ? column != rp_lab_column_main(line->sheet)
                           : !column->verdict || row->baseline)) {
        return "";
    }
    const int verdict = rp_lab_row_verdict(line->sheet->table, row);
    return verdict > 0 ? "good" : verdict < 0 ? "bad" : "";
}

static bool is_best(const rp_html_page *p, const rp_lab_column *column, const rp_lab_line *line) {
    return line->sheet->kind == RP_LAB_METHODS && column == rp_lab_column_main(line->sheet) &&
           line->row == rp_html_best(p, line->row->model);
}

static void put_meter(const rp_html_page *p, const rp_lab_column *column, const rp_lab_line *line) {
    const double own = rp_lab_column_value(column, line).stats.mean;
    double most = 0;
    for (rp_lab_line each = {.sheet = line->sheet}; rp_lab_sheet_next(&each);) {
        const double real = rp_lab_column_value(column, &each).stats.mean;
        most = real > most ? real : most;
    }
    if (own > 0) {
        (void)fprintf(p->file, "<span class=\"meter\"><i style=\"width:%.0f%%\"></i></span>",
                      100 * (own / most));
    }
}

static void put_below(const rp_html_page *p, const rp_lab_column *column, const rp_lab_line *line) {
    char text[RP_LAB_CELL_BYTES];
    rp_lab_write_cell(column, line, text);
    if (text[0] && strcmp(text, RP_LAB_DASH) != 0) {
        rp_html_put(p, "<small title=\"");
        rp_html_text(p, column->hint);
        rp_html_put(p, "\">");
        rp_html_text(p, text);
        rp_html_put(p, "</small>");
    }
}

/* Begins <td> with its classes. */
static void open_cell(const rp_html_page *p, const rp_lab_column *column, const rp_lab_line *line) {
    const char *const classes[] = {column->left ? "l" : "",
                                   column->look ? column->look(line) : colour_of(column, line),
                                   is_best(p, column, line) ? "best" : ""};
    bool any = false;
    rp_html_put(p, "<td");
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (classes[i][0]) {
            (void)fprintf(p->file, "%s%s", any ? " " : " class=\"", classes[i]);
            any = true;
        }
    }
    rp_html_put(p, any ? "\">" : ">");
}

static void put_cell(const rp_html_page *p, const rp_lab_column *column, const rp_lab_line *line) {
    char text[RP_LAB_CELL_BYTES];
    char link[RP_LAB_CELL_BYTES] = "";
    open_cell(p, column, line);
    if (column->link) {
        column->link(line, link);
    }
    rp_html_put(p, column->mark ? "<span class=\"key\"></span>" : "");
    if (link[0]) {
        rp_html_put(p, "<a href=\"");
        rp_html_text(p, link);
        rp_html_put(p, "\">");
    }
    rp_lab_write_cell(column, line, text);
    rp_html_text(p, text);
    rp_html_put(p, link[0] ? "</a>" : "");
    if (column->meter) {
        put_meter(p, column, line);
    }
    const rp_lab_column *next = rp_lab_column_next(line->sheet, column);
    if (next && next->below) {
        put_below(p, next, line);
    }
    rp_html_put(p, "</td>");
}

static void put_line_tag(const rp_html_page *p, const rp_lab_line *line) {
    const rp_lab_sheet_kind kind = line->sheet->kind;
    if (line->row) {
        (void)fprintf(p->file, "<tr class=\"c%u%s\">", line->row->line % RP_DRAWING_COLOURS,
                      kind == RP_LAB_METHODS && line->row->baseline ? " base" : "");
    } else if (kind == RP_LAB_RUNS) {
        (void)fprintf(p->file, "<tr id=\"r%u\">", line->index);
    } else {
        rp_html_put(p, "<tr>");
    }
}

void rp_html_sheet(const rp_html_page *p, const rp_lab_sheet *sheet) {
    rp_html_put(p, "<div class=\"table\"><table>\n<tr>");
    for (const rp_lab_column *c = rp_lab_column_first(sheet); c; c = rp_lab_column_next(sheet, c)) {
        if (!c->below) {
            put_head(p, c);
        }
    }
    rp_html_put(p, "</tr>\n");
    for (rp_lab_line line = {.sheet = sheet}; rp_lab_sheet_next(&line);) {
        put_line_tag(p, &line);
        for (const rp_lab_column *c = rp_lab_column_first(sheet); c;
             c = rp_lab_column_next(sheet, c)) {
            if (!c->below) {
                put_cell(p, c, &line);
            }
        }
        rp_html_put(p, "</tr>\n");
    }
    rp_html_put(p, "</table></div>\n");
}

/* Lists the hints of the columns, for touch screens and print. */
void rp_html_hints(const rp_html_page *p, const rp_lab_sheet *sheet) {
    rp_html_put(p, "<dl>\n");
    for (const rp_lab_column *c = rp_lab_column_first(sheet); c; c = rp_lab_column_next(sheet, c)) {
        if (c->hint) {
            rp_html_tag(p, "dt", "", c->title);
            rp_html_tag(p, "dd", "", c->hint);
            rp_html_put(p, "\n");
        }
    }
    rp_html_put(p, "</dl>\n");
}
