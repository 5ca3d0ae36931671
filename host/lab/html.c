#include "lab/html.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "lab/cells.h"
#include "lab/drawing.h"

enum { REFRESH_S = 30, FILE_BYTES_MAX = 65536 };

static const char style[] =
    "*{box-sizing:border-box}html{color-scheme:light dark}\n"
    "body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"
    "'Segoe UI','DejaVu Sans',sans-serif}\n"
    ":root{--page:#f4f6f8;--mark:#eef4fb}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#0e1216;--mark:#1a2430}}\n"
    "header,main,footer{max-width:1360px;margin:0 auto;padding:0 24px}\n"
    "header{padding-top:28px}h1{font-size:26px;margin:0}h2{font-size:20px;margin:36px 0 10px}\n"
    "h3{font-size:15px;margin:26px 0 8px}p{margin:6px 0}.soft,.hint{color:var(--soft)}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:12px;"
    "margin:18px 0}\n"
    ".card,figure,.table{background:var(--paper);border:1px solid var(--grid);border-radius:10px}\n"
    ".card{padding:12px 16px}.card b{display:block;font-size:21px;line-height:1.3}\n"
    ".card span{color:var(--soft);font-size:13px}\n"
    ".table{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px;"
    "font-variant-numeric:tabular-nums}\n"
    "td small{display:block;font-size:12px;opacity:.8;white-space:normal;max-width:150px;"
    "margin-left:auto}td{vertical-align:top}\n"
    "th,td{padding:7px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid "
    "var(--grid)}\n"
    "tr:last-child td{border-bottom:0}th{white-space:normal;font-weight:600;color:var(--soft);"
    "font-size:12.5px;"
    "vertical-align:bottom}\n"
    "th[title]{text-decoration:underline dotted;text-underline-offset:3px;cursor:help}\n"
    "td.l,th.l{text-align:left}td.wrap{white-space:normal;max-width:520px}\n"
    "tr.base td{background:var(--mark)}td.best{font-weight:700}\n"
    ".good{color:var(--good)}.bad{color:var(--bad)}\n"
    ".key{display:inline-block;width:11px;height:11px;border-radius:3px;background:var(--c);"
    "margin-right:8px}\n"
    ".meter{display:block;height:4px;border-radius:2px;background:var(--grid);margin-top:3px}\n"
    ".meter i{display:block;height:4px;border-radius:2px;background:var(--c)}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr));"
    "gap:14px;margin:12px 0}\n"
    "figure{margin:0;padding:8px}.drawing{display:block;width:100%;height:auto}\n"
    "nav{position:sticky;top:0;z-index:2;background:var(--page);border-bottom:1px solid "
    "var(--grid);padding:9px 0;display:flex;flex-wrap:wrap;gap:4px 18px}\n"
    "nav label{cursor:pointer;white-space:nowrap}nav input{accent-color:var(--c);margin:0 6px 0 "
    "0}\n"
    "details{margin:10px 0}summary{cursor:pointer;font-weight:600}\n"
    "pre{background:var(--paper);border:1px solid var(--grid);border-radius:10px;padding:12px;"
    "overflow-x:auto;font-size:13px}code{font-size:13px}\n"
    "ul{padding-left:20px}li{margin:5px 0}a{color:inherit}footer{padding:24px}\n"
    /* What does not fit scrolls inside .table: its first column stays, a shadow at the right edge
     * says that there is more. */
    ".table{background:linear-gradient(to left,var(--paper) 30%,transparent) right/48px 100% "
    "no-repeat local,linear-gradient(to left,rgba(0,0,0,.28),transparent) right/16px 100% "
    "no-repeat scroll,var(--paper)}\n"
    "th.l:first-child,td.l:first-child{position:sticky;left:0;z-index:1;background:var(--paper);"
    "box-shadow:1px 0 0 var(--grid)}tr.base td.l:first-child{background:var(--mark)}\n"
    "tr:target td{background:var(--mark)}.scrolls{display:none}\n"
    "dl{margin:8px 0;font-size:14px}dt{font-weight:600}dd{margin:0 0 6px 18px;color:var(--soft)}\n"
    ".about{max-width:820px;font-size:16px}\n"
    "@media(max-width:700px){header,main,footer{padding:0 14px}header{padding-top:16px}"
    "h1{font-size:21px}nav{position:static}.scrolls{display:block}"
    "th.l:first-child,td.l:first-child{min-width:108px;max-width:38vw;white-space:normal;overflow-"
    "wrap:anywhere}}\n"
    "@media print{nav{display:none}body{background:none}}\n";

typedef struct {
    FILE *file;
    const rp_lab_table *table;
    const rp_lab_report_options *options;
    const rp_lab_figures *figures;
} page;

static void put_html(const page *p, const char *html) {
    (void)fputs(html, p->file);
}

static void put_text(const page *p, const char *text) {
    rp_drawing_text(p->file, text);
}

/* <tag class="...">text</tag> */
static void put_tag(const page *p, const char *tag, const char *classes, const char *text) {
    (void)fprintf(p->file, "<%s%s%s%s>", tag, classes[0] ? " class=\"" : "", classes,
                  classes[0] ? "\"" : "");
    put_text(p, text);
    (void)fprintf(p->file, "</%s>", tag);
}

static const rp_lab_row *row_at(const page *p, uint32_t model, uint32_t line) {
    return &p->table->row[model * p->table->line_count + line];
}

/* ---- head ------------------------------------------------------------------------------------ */

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_when(const page *p) {
    char text[64];
    time_t ends[2] = {(time_t)p->table->first_s, (time_t)p->table->last_s};
    for (int i = 0; i < 2 && ends[0] > 0; i++) {
        struct tm tm;
        if (gmtime_r(&ends[i], &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm) > 0) {
            put_html(p, i == 0 ? " \xc2\xb7 runs ended " : " to ");
            put_text(p, text);
        }
    }
    put_html(p, ends[0] > 0 ? " UTC" : "");
}

/* A line of a drawing is hidden by its box, without a script. */
static void put_toggles_style(const page *p) {
    for (uint32_t i = 0; i < p->table->line_count; i++) {
        (void)fprintf(p->file, "body:has(#t%u:not(:checked)) .drawing .m%u{display:none}\n", i, i);
    }
}

/* The value of a key that is the same in all rows, or NULL. */
static const char *equal_value(const page *p, const char *key) {
    for (uint32_t i = 0; i < p->table->equal_count; i++) {
        if (strcmp(p->table->equal[i], key) == 0) {
            return p->table->equal_value[i];
        }
    }
    return NULL;
}

static const rp_lab_result *any_result(const page *p) {
    for (uint32_t i = 0; i < p->table->row_count; i++) {
        const rp_lab_row *row = &p->table->row[i];
        for (uint32_t s = 0; s < row->wanted; s++) {
            if (row->result[s]) {
                return row->result[s];
            }
        }
    }
    return NULL;
}

/* YAML ends with a line. */
static void put_value(const page *p, const char *yaml) {
    char text[RP_LAB_CELL_BYTES];
    (void)snprintf(text, sizeof text, "%s", yaml);
    for (size_t end = strlen(text); end > 0 && text[end - 1] <= ' '; end--) {
        text[end - 1] = '\0';
    }
    put_text(p, text);
}

/* On what: the data and what else is the same in all rows. */
static void put_data(const page *p) {
    static const char *const keys[][2] = {
        {"train.epochs", "epochs"},         {"train.steps", "steps"},  {"train.batch", "batch"},
        {"train.microbatch", "microbatch"}, {"ring.boards", "boards"}, {"loss", "loss"}};
    const rp_lab_result *result = any_result(p);
    const char *set = equal_value(p, "data.set");
    if (!result) {
        return;
    }
    put_html(p, "<p>Data: ");
    put_value(p, set ? set : "differs between rows");
    if (result->epochs >= 1 && isfinite(result->samples)) {
        (void)fprintf(p->file, ", %.0f training samples an epoch",
                      result->samples / result->epochs);
    }
    if (isfinite(result->eval_samples)) {
        (void)fprintf(p->file, ", %.0f test samples", result->eval_samples);
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = equal_value(p, keys[i][0]);
        if (value) {
            put_html(p, " \xc2\xb7 ");
            put_text(p, keys[i][1]);
            put_html(p, " ");
            put_value(p, value);
        }
    }
    put_html(p, "</p>\n");
}

static void put_head(const page *p) {
    const rp_labfile *lab = p->table->plan->lab;
    const rp_lab_counts *counts = &p->options->counts;
    put_html(p, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
                "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    if (strcmp(p->options->state, "running") == 0) {
        (void)fprintf(p->file, "<meta http-equiv=\"refresh\" content=\"%d\">\n", REFRESH_S);
    }
    put_tag(p, "title", "", file_name(lab->path));
    put_html(p, "\n<style>\n");
    put_html(p, rp_drawing_style);
    put_html(p, style);
    put_toggles_style(p);
    put_html(p, "</style></head>\n<body><header>\n");
    put_tag(p, "h1", "", file_name(lab->path));
    (void)fprintf(p->file,
                  "<p class=\"soft\">%u method%s \xc2\xb7 %u model%s \xc2\xb7 %u seed%s \xc2\xb7 "
                  "%s: %u of %u runs finished",
                  lab->method_count, lab->method_count == 1 ? "" : "s", lab->model_count,
                  lab->model_count == 1 ? "" : "s", lab->seed_count,
                  lab->seed_count == 1 ? "" : "s", p->options->state, counts->finished,
                  counts->wanted);
    if (counts->failed > 0) {
        (void)fprintf(p->file, ", <span class=\"bad\">%u failed</span>", counts->failed);
    }
    if (counts->diverged > 0) {
        (void)fprintf(p->file, ", <span class=\"bad\">%u diverged</span>", counts->diverged);
    }
    put_when(p);
    put_html(p, "</p>\n");
    if (lab->description[0]) {
        put_tag(p, "p", "about", lab->description);
        put_html(p, "\n");
    }
    put_data(p);
    put_html(p, "</header>\n<main>\n");
}

/* ---- cards ----------------------------------------------------------------------------------- */

typedef double (*measure)(const page *p, const rp_lab_row *row);
/* Of one seed, larger is better; NaN: not finished. */
typedef double (*seed_measure)(const page *p, const rp_lab_row *row, uint32_t seed);

static double seed_main(const page *p, const rp_lab_row *row, uint32_t seed) {
    return p->table->classes ? row->accuracy_of[seed] : -row->loss_of[seed];
}

static double seed_speed(const page *p, const rp_lab_row *row, uint32_t seed) {
    (void)p;
    return row->result[seed] ? row->result[seed]->samples_per_s : (double)NAN;
}

/* Is the row ahead of every other one, by an interval that does not hold zero? */
static bool is_ahead(const page *p, const rp_lab_row *row, seed_measure of) {
    uint32_t others = 0;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *other = row_at(p, row->model, line);
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

static double by_main(const page *p, const rp_lab_row *row) {
    double mean = rp_lab_row_main(p->table, row)->mean;
    return row->diverged > 0 ? (double)NAN : p->table->classes ? mean : -mean;
}

static double by_speed(const page *p, const rp_lab_row *row) {
    (void)p;
    return row->samples_per_s.mean;
}

static double by_memory(const page *p, const rp_lab_row *row) {
    (void)p;
    return -row->device_bytes;
}

static const rp_lab_row *best_row(const page *p, uint32_t model, measure of) {
    const rp_lab_row *best = NULL;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = row_at(p, model, line);
        if (isfinite(of(p, row)) && (!best || of(p, row) > of(p, best))) {
            best = row;
        }
    }
    return best;
}

/* Bytes are counted, not sampled: the least is the least, unless two have it. */
static bool is_alone(const page *p, const rp_lab_row *row, measure of) {
    uint32_t others = 0;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *other = row_at(p, row->model, line);
        if (other != row && isfinite(of(p, other))) {
            others++;
            if (of(p, other) >= of(p, row)) {
                return false;
            }
        }
    }
    return others > 0;
}

static void put_card(const page *p, const char *what, const char *label, const char *value) {
    put_html(p, "<div class=\"card\">");
    put_tag(p, "span", "", what);
    put_tag(p, "b", "", label);
    put_tag(p, "span", "", value);
    put_html(p, "</div>\n");
}

/* A winner only where the seeds show one. */
static void put_main_card(const page *p, uint32_t model) {
    char text[RP_LAB_CELL_BYTES];
    char more[RP_LAB_CELL_BYTES + 64];
    const char *what = p->table->classes ? "highest test accuracy" : "lowest test loss";
    const rp_lab_row *row = best_row(p, model, by_main);
    if (!row || p->table->line_count < 2) {
        return;
    }
    if (is_ahead(p, row, seed_main)) {
        rp_lab_write_mean(rp_lab_row_main(p->table, row), p->table->classes ? 100 : 1, text);
        (void)snprintf(more, sizeof more, "%s%s; ahead of every other row", text,
                       p->table->classes ? " %" : "");
        put_card(p, what, row->label, more);
    } else {
        put_card(p, what, "no clear winner",
                 row->wanted < 2 ? "one seed has no interval"
                                 : "not every 95 % interval of the differences leaves zero out");
    }
}

static void put_cards(const page *p, uint32_t model) {
    char text[RP_LAB_CELL_BYTES];
    char more[RP_LAB_CELL_BYTES + 64];
    put_html(p, "<div class=\"cards\">\n");
    put_main_card(p, model);
    const rp_lab_row *row = best_row(p, model, by_speed);
    if (row && is_ahead(p, row, seed_speed)) {
        rp_lab_write_number(floor(row->samples_per_s.mean + 0.5), text);
        (void)snprintf(more, sizeof more, "%s samples/s", text);
        if (isfinite(row->speed)) {
            (void)snprintf(more, sizeof more, "%s samples/s, \xc3\x97%.2f the baseline's", text,
                           row->speed);
        }
        put_card(p, "fastest", row->label, more);
    }
    row = best_row(p, model, by_memory);
    if (row && is_alone(p, row, by_memory)) {
        (void)snprintf(more, sizeof more, "%.1f MiB on all devices", row->device_bytes / (1 << 20));
        put_card(p, "least memory", row->label, more);
    }
    put_html(p, "</div>\n");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_head_cell(const page *p, const char *title, const char *hint, bool left) {
    put_html(p, left ? "<th class=\"l\"" : "<th");
    if (hint[0]) {
        put_html(p, " title=\"");
        put_text(p, hint);
        put_html(p, "\"");
    }
    put_html(p, ">");
    put_text(p, title);
    put_html(p, "</th>");
}

static double largest_of(const page *p, uint32_t model, const rp_lab_column *column) {
    double most = 0;
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        double size = column->size(row_at(p, model, line));
        most = size > most ? size : most;
    }
    return most;
}

/* What says better or worse is coloured so; of a diverged row only the main number. */
static const char *colour_of(const page *p, const rp_lab_column *column, const rp_lab_row *row) {
    bool main_column = rp_lab_column_is_main(column, p->table);
    int verdict = rp_lab_row_verdict(p->table, row);
    if (row->diverged > 0 ? !main_column : !column->verdict || row->baseline) {
        return "";
    }
    return verdict > 0 ? "good" : verdict < 0 ? "bad" : "";
}

static void put_below(const page *p, const rp_lab_column *column, const rp_lab_row *row) {
    char text[RP_LAB_CELL_BYTES];
    rp_lab_write_cell(column, p->table, row, text);
    if (text[0] && strcmp(text, "\xe2\x80\x93") != 0) {
        put_html(p, "<small title=\"");
        put_text(p, column->hint);
        put_html(p, "\">");
        put_text(p, text);
        put_html(p, "</small>");
    }
}

/* To the row's first run in the list of runs. */
static void put_run_link(const page *p, const rp_lab_row *row, const char *text) {
    const rp_lab_plan *plan = p->table->plan;
    const bool has_runs = row->point < plan->lab->method[row->method].point_count;
    if (has_runs) {
        const rp_lab_run *run = rp_lab_plan_run(plan, row->model, row->method, row->point, 0);
        (void)fprintf(p->file, "<a href=\"#r%u\">", (uint32_t)(run - plan->run));
    }
    put_text(p, text);
    put_html(p, has_runs ? "</a>" : "");
}

static void put_cell(const page *p, const rp_lab_column *column, const rp_lab_row *row, bool best) {
    char text[RP_LAB_CELL_BYTES];
    bool first = column == rp_lab_columns;
    bool main_column = rp_lab_column_is_main(column, p->table);
    rp_lab_write_cell(column, p->table, row, text);
    (void)fprintf(p->file, "<td class=\"%s %s %s\">", first ? "l" : "", colour_of(p, column, row),
                  main_column && best ? "best" : "");
    if (first) {
        put_html(p, "<span class=\"key\"></span>");
        put_run_link(p, row, text);
    } else {
        put_text(p, text);
    }
    if (column->size && column->size(row) > 0) {
        double share = column->size(row) / largest_of(p, row->model, column);
        (void)fprintf(p->file, "<span class=\"meter\"><i style=\"width:%.0f%%\"></i></span>",
                      100 * share);
    }
    if (column[1].title && column[1].below && column[1].shown(p->table)) {
        put_below(p, &column[1], row);
    }
    put_html(p, "</td>");
}

static bool own_cell(const page *p, const rp_lab_column *column) {
    return column->shown(p->table) && !column->below;
}

static const char scrolls[] =
    "<p class=\"scrolls soft\">The table goes on to the right \xe2\x86\x92</p>\n";

static void put_hint(const page *p, const char *title, const char *hint) {
    if (hint[0]) {
        put_tag(p, "dt", "", title);
        put_tag(p, "dd", "", hint);
        put_html(p, "\n");
    }
}

/* The same words as on hover, for fingers and for paper. */
static void put_hints(const page *p) {
    put_html(p, "<details><summary>What the columns say</summary><dl>\n");
    for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
        if (c->shown(p->table)) {
            put_hint(p, c->title, c->hint);
        }
    }
    put_html(p, "</dl></details>\n");
}

static void put_stage_hints(const page *p) {
    put_html(p, "<dl>\n");
    for (const rp_lab_stage_column *c = rp_lab_stage_columns; c->title; c++) {
        if (!c->predicted || p->table->predicted) {
            put_hint(p, c->title, c->hint);
        }
    }
    put_html(p, "</dl>\n");
}

static void put_methods(const page *p, uint32_t model) {
    const rp_lab_row *best = best_row(p, model, by_main);
    put_html(p, scrolls);
    put_html(p, "<div class=\"table\"><table>\n<tr>");
    for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
        if (own_cell(p, c)) {
            put_head_cell(p, c->title, c->hint, c == rp_lab_columns);
        }
    }
    put_html(p, "</tr>\n");
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = row_at(p, model, line);
        (void)fprintf(p->file, "<tr class=\"c%u%s\">", line % RP_DRAWING_COLOURS,
                      row->baseline ? " base" : "");
        for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
            if (own_cell(p, c)) {
                put_cell(p, c, row, row == best);
            }
        }
        put_html(p, "</tr>\n");
    }
    put_html(p, "</table></div>\n");
    put_hints(p);
}

static void put_stages(const page *p, uint32_t model) {
    char text[RP_LAB_CELL_BYTES];
    put_html(p, "<details><summary>Stages: memory, versions, staleness, predictions</summary>"
                "<div class=\"table\"><table>\n<tr><th class=\"l\">method</th><th>stage</th>");
    for (const rp_lab_stage_column *c = rp_lab_stage_columns; c->title; c++) {
        if (!c->predicted || p->table->predicted) {
            put_head_cell(p, c->title, c->hint, c == rp_lab_stage_columns);
        }
    }
    put_html(p, "</tr>\n");
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = row_at(p, model, line);
        for (uint32_t k = 0; k < row->stage_count; k++) {
            (void)fprintf(p->file, "<tr class=\"c%u\"><td class=\"l\"><span class=\"key\"></span>",
                          line % RP_DRAWING_COLOURS);
            put_text(p, row->label);
            (void)fprintf(p->file, "</td><td>%u</td>", k);
            for (const rp_lab_stage_column *c = rp_lab_stage_columns; c->title; c++) {
                if (!c->predicted || p->table->predicted) {
                    c->write(row, k, text);
                    put_tag(p, "td", c == rp_lab_stage_columns ? "l" : "", text);
                }
            }
            put_html(p, "</tr>\n");
        }
    }
    put_html(p, "</table></div>\n");
    put_stage_hints(p);
    put_html(p, "</details>\n");
}

static void put_wire(const page *p, uint32_t line, const rp_lab_row *row, const rp_lab_wire *wire) {
    char text[RP_LAB_CELL_BYTES];
    (void)fprintf(p->file, "<tr class=\"c%u\"><td class=\"l\"><span class=\"key\"></span>",
                  line % RP_DRAWING_COLOURS);
    put_text(p, row->label);
    put_html(p, "</td>");
    for (const rp_lab_wire_column *c = rp_lab_wire_columns; c->title; c++) {
        c->write(wire, text);
        put_tag(p, "td", c == rp_lab_wire_columns ? "l" : "", text);
    }
    put_html(p, "</tr>\n");
}

static void put_wires(const page *p, uint32_t model) {
    put_html(p, "<details><summary>Wires: bytes, rates, delays, codecs</summary>"
                "<div class=\"table\"><table>\n<tr><th class=\"l\">method</th>");
    for (const rp_lab_wire_column *c = rp_lab_wire_columns; c->title; c++) {
        put_head_cell(p, c->title, c->hint, c == rp_lab_wire_columns);
    }
    put_html(p, "</tr>\n");
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = row_at(p, model, line);
        for (uint32_t w = 0; w < row->wire_count; w++) {
            put_wire(p, line, row, &row->wire[w]);
        }
    }
    put_html(p, "</table></div>\n<dl>\n");
    for (const rp_lab_wire_column *c = rp_lab_wire_columns; c->title; c++) {
        put_hint(p, c->title, c->hint);
    }
    put_html(p, "</dl>\n</details>\n");
}

static void put_trials(const page *p, const rp_lab_tuning *tuning) {
    char text[RP_LAB_CELL_BYTES];
    put_html(p, "<details><summary>Points of ");
    put_text(p, p->table->plan->lab->method[tuning->method].name);
    (void)fprintf(p->file,
                  "</summary><div class=\"table\"><table>\n<tr><th class=\"l\">point</th>"
                  "<th>%s</th><th class=\"l\"></th></tr>\n",
                  !tuning->accuracy    ? "loss"
                  : tuning->validation ? "validation accuracy %"
                                       : "test accuracy %");
    for (uint32_t i = 0; i < tuning->trial_count; i++) {
        const rp_lab_trial *trial = &tuning->trial[i];
        rp_lab_write_mean(&trial->score, tuning->accuracy ? 100 : 1, text);
        put_html(p, "<tr>");
        put_tag(p, "td", "l", trial->label);
        put_tag(p, "td",
                trial->chosen     ? "best"
                : trial->diverged ? "bad"
                                  : "",
                trial->diverged ? "diverged" : text);
        put_tag(p, "td", "l",
                trial->at_edge  ? "chosen, at the end of the range: a wider one may hold better"
                : trial->chosen ? "chosen"
                : trial->finished < trial->wanted ? "not finished"
                                                  : "");
        put_html(p, "</tr>\n");
    }
    put_html(p, "</table></div></details>\n");
}

/* ---- chapters -------------------------------------------------------------------------------- */

static void put_figures(const page *p, uint32_t model, rp_lab_part part, const char *title) {
    bool any = false;
    for (uint32_t i = 0; i < p->figures->count; i++) {
        const rp_lab_figure *figure = &p->figures->figure[i];
        if (figure->model != model || figure->part != part) {
            continue;
        }
        if (!any && title[0]) {
            put_tag(p, "h3", "", title);
        }
        put_html(p, any ? "<figure>" : "<div class=\"figures\">\n<figure>");
        rp_lab_figure_write(p->file, figure, false);
        put_html(p, "</figure>\n");
        any = true;
    }
    put_html(p, any ? "</div>\n" : "");
}

static void put_toggles(const page *p) {
    put_html(p, "<nav><span class=\"soft\">shown in drawings:</span>\n");
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = row_at(p, 0, line);
        const rp_labfile *lab = p->table->plan->lab;
        (void)fprintf(p->file,
                      "<label class=\"c%u\"><input type=\"checkbox\" id=\"t%u\" checked>"
                      "<span class=\"key\"></span>",
                      line % RP_DRAWING_COLOURS, line);
        put_text(p, lab->tune ? lab->method[row->method].name : row->label);
        put_html(p, "</label>\n");
    }
    put_html(p, "</nav>\n");
}

static void put_model(const page *p, uint32_t model) {
    put_html(p, "<section>\n");
    put_tag(p, "h2", "", p->table->plan->lab->folder[model]);
    put_cards(p, model);
    put_methods(p, model);
    put_stages(p, model);
    if (rp_lab_table_wires(p->table, model) > 0) {
        put_wires(p, model);
    }
    put_figures(p, model, RP_LAB_RESULT_PART, "");
    put_figures(p, model, RP_LAB_LEARNING_PART, "Learning");
    put_figures(p, model, RP_LAB_WEIGHTS_PART, "Memory and weights");
    put_figures(p, model, RP_LAB_SWEEP_PART, "Sweeps");
    for (uint32_t i = 0; i < p->table->tuning_count; i++) {
        if (p->table->tuning[i].model == model) {
            put_trials(p, &p->table->tuning[i]);
        }
    }
    put_html(p, "</section>\n");
}

/* ---- runs and how ---------------------------------------------------------------------------- */

static void put_run(const page *p, const rp_lab_run *run) {
    const rp_lab_result *result = &run->result;
    char text[RP_LAB_CELL_BYTES];
    const rp_stats accuracy = rp_stats_of(&result->accuracy, result->diverged ? 0 : 1);
    const rp_stats loss = rp_stats_of(&result->eval_loss, result->diverged ? 0 : 1);
    bool good = result->status == RP_LAB_FINISHED && !result->diverged;
    (void)fprintf(p->file, "<tr id=\"r%u\">", (uint32_t)(run - p->table->plan->run));
    put_html(p, "<td class=\"l\"><a href=\"runs/");
    put_text(p, run->name);
    put_html(p, "/\">");
    put_text(p, run->name);
    put_html(p, "</a></td>");
    put_tag(p, "td",
            good                            ? "l"
            : result->status == RP_LAB_OPEN ? "l soft"
                                            : "l bad",
            rp_lab_write_status(result));
    if (p->table->classes) {
        rp_lab_write_mean(&accuracy, 100, text);
        put_tag(p, "td", "", text);
    }
    rp_lab_write_mean(&loss, 1, text);
    put_tag(p, "td", "", text);
    rp_lab_write_duration(result->seconds, text);
    put_tag(p, "td", "", text);
    rp_lab_write_number(result->samples_per_s, text);
    put_tag(p, "td", "", text);
    (void)snprintf(text, sizeof text, "%.0f step%s skipped", result->skipped,
                   result->skipped == 1 ? "" : "s");
    put_tag(p, "td", "l wrap",
            result->status != RP_LAB_FINISHED ? result->note
            : result->skipped > 0             ? text
                                              : "");
    put_html(p, "</tr>\n");
}

static void put_runs(const page *p) {
    const rp_lab_plan *plan = p->table->plan;
    put_html(p, "<h2>Runs</h2>\n");
    (void)fprintf(p->file,
                  "<details open><summary>%u runs</summary>%s<div class=\"table\"><table>\n"
                  "<tr><th class=\"l\">run</th><th class=\"l\">status</th>%s"
                  "<th>test loss</th><th>time</th><th>samples/s</th>"
                  "<th class=\"l\">note</th></tr>\n",
                  p->options->counts.wanted, scrolls,
                  p->table->classes ? "<th>test accuracy %</th>" : "");
    for (uint32_t i = 0; i < plan->run_count; i++) {
        if (plan->run[i].wanted) {
            put_run(p, &plan->run[i]);
        }
    }
    put_html(p, "</table></div></details>\n");
}

static void put_words(const page *p, const char *title, const char *const *word, uint32_t count) {
    put_html(p, "<li>");
    put_text(p, title);
    for (uint32_t i = 0; i < count; i++) {
        put_html(p, i ? ", " : " ");
        put_tag(p, "code", "", word[i]);
    }
    put_html(p, count ? "</li>\n" : " nothing</li>\n");
}

/* What was asked for, as it stands there now. */
static void put_file(const page *p, const char *path) {
    char text[4096];
    FILE *from = fopen(path, "re");
    size_t all = 0;
    put_html(p, "<details><summary>");
    put_text(p, path);
    put_html(p, "</summary><pre>");
    while (from && all < FILE_BYTES_MAX) {
        if (!fgets(text, sizeof text, from)) {
            break;
        }
        all += strlen(text);
        text[strcspn(text, "\n")] = '\0';
        put_text(p, text);
        put_html(p, "\n");
    }
    if (from) {
        (void)fclose(from);
    }
    put_html(p, "</pre></details>\n");
}

static void put_boards(const page *p) {
    for (uint32_t i = 0; i < p->table->row_count; i++) {
        const rp_lab_row *row = &p->table->row[i];
        if (row->stage_count > 0) {
            put_html(p, "<li>Devices: ");
            for (uint32_t k = 0; k < row->stage_count; k++) {
                bool again = k > 0 && strcmp(row->stage[k].board, row->stage[k - 1].board) == 0;
                put_html(p, k == 0 ? "" : again ? "" : "; ");
                put_text(p, again ? "" : row->stage[k].board);
            }
            (void)fprintf(p->file, " (%u stages)</li>\n", row->stage_count);
            return;
        }
    }
}

static void put_how(const page *p) {
    const rp_lab_plan *plan = p->table->plan;
    put_html(p, "<h2>How this was made</h2>\n<ul>\n<li><code>ringpipe lab ");
    put_text(p, plan->lab->path);
    put_html(p, " --out ");
    put_text(p, plan->folder);
    put_html(p, "</code>, ringpipe " RP_VERSION
                ". Every number here was computed from the run folders "
                "under <code>runs/</code>; each has its run file beside it.</li>\n");
    put_boards(p);
    put_html(p, "<li>Equal seeds mean equal start weights, equal order of the data and equal "
                "augmentation, whatever the method.</li>\n");
    put_words(p, "Equal in all rows:", p->table->equal, p->table->equal_count);
    put_words(p, "Different between rows:", p->table->differs, p->table->differs_count);
    if (p->table->cut_differs) {
        put_html(p,
                 "<li class=\"bad\">The runs of a model were cut at different layers: <code>cut: "
                 "auto</code> measures anew each time. Schedules that end every step with empty "
                 "pipes do not mind; for the others, name a cut.</li>\n");
    }
    put_html(p,
             "<li>\xc2\xb1 is the deviation of the sample (n \xe2\x88\x92 1); one seed has none. "
             "Differences are paired: the same model and seed. The interval is Student's t for the "
             "mean difference; <span class=\"good\">better</span> and <span class=\"bad\">worse"
             "</span> mean that it does not hold zero. It is not corrected for the number of "
             "comparisons.</li>\n<li>A run has diverged when its last evaluation or the train loss "
             "of its last epoch is not finite. A row with such a run has no mean.</li>\n");
    if (plan->lab->tune) {
        put_html(p, "<li>The points of sweeps were chosen on ");
        put_html(p, rp_lab_table_chosen_on(p->table));
        put_html(p, "; a tuning seed that is also one of the rows' flatters its row a "
                    "little.</li>\n");
    }
    put_html(p, "</ul>\n");
    put_file(p, plan->lab->path);
    put_file(p, plan->lab->base);
}

rp_err rp_lab_html(const rp_lab_table *table, const rp_lab_report_options *options,
                   const rp_lab_figures *figures, FILE *file) {
    const page p = {file, table, options, figures};
    put_head(&p);
    if (table->line_count > 1) {
        put_toggles(&p);
    }
    for (uint32_t model = 0; model < table->plan->lab->model_count; model++) {
        put_model(&p, model);
    }
    put_runs(&p);
    put_how(&p);
    put_html(&p, "</main>\n<footer></footer></body></html>\n");
    return ferror(file) ? rp_fail(RP_ERR_IO, "report.html can not be written") : RP_OK;
}
