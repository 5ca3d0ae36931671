#include "lab/html.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "lab/cells.h"
#include "lab/drawing.h"
#include "lab/html_own.h"

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

/* ---- head ------------------------------------------------------------------------------------ */

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_when(const rp_html_page *p) {
    char text[64];
    time_t ends[2] = {(time_t)p->table->first_s, (time_t)p->table->last_s};
    for (int i = 0; i < 2 && ends[0] > 0; i++) {
        struct tm tm;
        if (gmtime_r(&ends[i], &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm) > 0) {
            rp_html_put(p, i == 0 ? " \xc2\xb7 runs ended " : " to ");
            rp_html_text(p, text);
        }
    }
    rp_html_put(p, ends[0] > 0 ? " UTC" : "");
}

/* A line of a drawing is hidden by its box, without a script. */
static void put_toggles_style(const rp_html_page *p) {
    for (uint32_t i = 0; i < p->table->line_count; i++) {
        (void)fprintf(p->file, "body:has(#t%u:not(:checked)) .drawing .m%u{display:none}\n", i, i);
    }
}

/* The value of a key that is the same in all rows, or NULL. */
static const char *equal_value(const rp_html_page *p, const char *key) {
    for (uint32_t i = 0; i < p->table->equal_count; i++) {
        if (strcmp(p->table->equal[i], key) == 0) {
            return p->table->equal_value[i];
        }
    }
    return NULL;
}

static const rp_lab_result *any_result(const rp_html_page *p) {
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
static void put_value(const rp_html_page *p, const char *yaml) {
    char text[RP_LAB_CELL_BYTES];
    (void)snprintf(text, sizeof text, "%s", yaml);
    for (size_t end = strlen(text); end > 0 && text[end - 1] <= ' '; end--) {
        text[end - 1] = '\0';
    }
    rp_html_text(p, text);
}

/* On what: the data and what else is the same in all rows. */
static void put_data(const rp_html_page *p) {
    static const char *const keys[][2] = {
        {"train.epochs", "epochs"},         {"train.steps", "steps"},  {"train.batch", "batch"},
        {"train.microbatch", "microbatch"}, {"ring.boards", "boards"}, {"loss", "loss"}};
    const rp_lab_result *result = any_result(p);
    const char *set = equal_value(p, "data.set");
    if (!result) {
        return;
    }
    rp_html_put(p, "<p>Data: ");
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
            rp_html_put(p, " \xc2\xb7 ");
            rp_html_text(p, keys[i][1]);
            rp_html_put(p, " ");
            put_value(p, value);
        }
    }
    rp_html_put(p, "</p>\n");
}

static void put_head(const rp_html_page *p) {
    const rp_labfile *lab = p->table->plan->lab;
    const rp_lab_counts *counts = &p->options->counts;
    rp_html_put(p, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
                   "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    if (strcmp(p->options->state, "running") == 0) {
        (void)fprintf(p->file, "<meta http-equiv=\"refresh\" content=\"%d\">\n", REFRESH_S);
    }
    rp_html_tag(p, "title", "", file_name(lab->path));
    rp_html_put(p, "\n<style>\n");
    rp_html_put(p, rp_drawing_style);
    rp_html_put(p, style);
    put_toggles_style(p);
    rp_html_put(p, "</style></head>\n<body><header>\n");
    rp_html_tag(p, "h1", "", file_name(lab->path));
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
    rp_html_put(p, "</p>\n");
    if (lab->description[0]) {
        rp_html_tag(p, "p", "about", lab->description);
        rp_html_put(p, "\n");
    }
    put_data(p);
    rp_html_put(p, "</header>\n<main>\n");
}

/* ---- chapters -------------------------------------------------------------------------------- */

static void put_figures(const rp_html_page *p, uint32_t model, rp_lab_part part,
                        const char *title) {
    bool any = false;
    for (uint32_t i = 0; i < p->figures->count; i++) {
        const rp_lab_figure *figure = &p->figures->figure[i];
        if (figure->model != model || figure->part != part) {
            continue;
        }
        if (!any && title[0]) {
            rp_html_tag(p, "h3", "", title);
        }
        rp_html_put(p, any ? "<figure>" : "<div class=\"figures\">\n<figure>");
        rp_lab_figure_write(p->file, figure, false);
        rp_html_put(p, "</figure>\n");
        any = true;
    }
    rp_html_put(p, any ? "</div>\n" : "");
}

static void put_toggles(const rp_html_page *p) {
    rp_html_put(p, "<nav><span class=\"soft\">shown in drawings:</span>\n");
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = rp_html_row(p, 0, line);
        const rp_labfile *lab = p->table->plan->lab;
        (void)fprintf(p->file,
                      "<label class=\"c%u\"><input type=\"checkbox\" id=\"t%u\" checked>"
                      "<span class=\"key\"></span>",
                      line % RP_DRAWING_COLOURS, line);
        rp_html_text(p, lab->tune ? lab->method[row->method].name : row->label);
        rp_html_put(p, "</label>\n");
    }
    rp_html_put(p, "</nav>\n");
}

static void put_model(const rp_html_page *p, uint32_t model) {
    rp_html_put(p, "<section>\n");
    rp_html_tag(p, "h2", "", p->table->plan->lab->folder[model]);
    rp_html_cards(p, model);
    rp_html_methods(p, model);
    rp_html_stages(p, model);
    if (rp_lab_table_wires(p->table, model) > 0) {
        rp_html_wires(p, model);
    }
    put_figures(p, model, RP_LAB_RESULT_PART, "");
    put_figures(p, model, RP_LAB_LEARNING_PART, "Learning");
    put_figures(p, model, RP_LAB_WEIGHTS_PART, "Memory and weights");
    put_figures(p, model, RP_LAB_SWEEP_PART, "Sweeps");
    for (uint32_t i = 0; i < p->table->tuning_count; i++) {
        if (p->table->tuning[i].model == model) {
            rp_html_trials(p, &p->table->tuning[i]);
        }
    }
    rp_html_put(p, "</section>\n");
}

/* ---- runs and how ---------------------------------------------------------------------------- */

static void put_run(const rp_html_page *p, const rp_lab_run *run) {
    const rp_lab_result *result = &run->result;
    char text[RP_LAB_CELL_BYTES];
    const rp_stats accuracy = rp_stats_of(&result->accuracy, result->diverged ? 0 : 1);
    const rp_stats loss = rp_stats_of(&result->eval_loss, result->diverged ? 0 : 1);
    bool good = result->status == RP_LAB_FINISHED && !result->diverged;
    (void)fprintf(p->file, "<tr id=\"r%u\">", (uint32_t)(run - p->table->plan->run));
    rp_html_put(p, "<td class=\"l\"><a href=\"runs/");
    rp_html_text(p, run->name);
    rp_html_put(p, "/\">");
    rp_html_text(p, run->name);
    rp_html_put(p, "</a></td>");
    rp_html_tag(p, "td",
                good                            ? "l"
                : result->status == RP_LAB_OPEN ? "l soft"
                                                : "l bad",
                rp_lab_write_status(result));
    if (p->table->classes) {
        rp_lab_write_mean(&accuracy, 100, text);
        rp_html_tag(p, "td", "", text);
    }
    rp_lab_write_mean(&loss, 1, text);
    rp_html_tag(p, "td", "", text);
    rp_lab_write_duration(result->seconds, text);
    rp_html_tag(p, "td", "", text);
    rp_lab_write_number(result->samples_per_s, text);
    rp_html_tag(p, "td", "", text);
    (void)snprintf(text, sizeof text, "%.0f step%s skipped", result->skipped,
                   result->skipped == 1 ? "" : "s");
    rp_html_tag(p, "td", "l wrap",
                result->status != RP_LAB_FINISHED ? result->note
                : result->skipped > 0             ? text
                                                  : "");
    rp_html_put(p, "</tr>\n");
}

static void put_runs(const rp_html_page *p) {
    const rp_lab_plan *plan = p->table->plan;
    rp_html_put(p, "<h2>Runs</h2>\n");
    (void)fprintf(p->file,
                  "<details open><summary>%u runs</summary>%s<div class=\"table\"><table>\n"
                  "<tr><th class=\"l\">run</th><th class=\"l\">status</th>%s"
                  "<th>test loss</th><th>time</th><th>samples/s</th>"
                  "<th class=\"l\">note</th></tr>\n",
                  p->options->counts.wanted, RP_HTML_SCROLLS,
                  p->table->classes ? "<th>test accuracy %</th>" : "");
    for (uint32_t i = 0; i < plan->run_count; i++) {
        if (plan->run[i].wanted) {
            put_run(p, &plan->run[i]);
        }
    }
    rp_html_put(p, "</table></div></details>\n");
}

static void put_words(const rp_html_page *p, const char *title, const char *const *word,
                      uint32_t count) {
    rp_html_put(p, "<li>");
    rp_html_text(p, title);
    for (uint32_t i = 0; i < count; i++) {
        rp_html_put(p, i ? ", " : " ");
        rp_html_tag(p, "code", "", word[i]);
    }
    rp_html_put(p, count ? "</li>\n" : " nothing</li>\n");
}

/* What was asked for, as it stands there now. */
static void put_file(const rp_html_page *p, const char *path) {
    char text[4096];
    FILE *from = fopen(path, "re");
    size_t all = 0;
    rp_html_put(p, "<details><summary>");
    rp_html_text(p, path);
    rp_html_put(p, "</summary><pre>");
    while (from && all < FILE_BYTES_MAX) {
        if (!fgets(text, sizeof text, from)) {
            break;
        }
        all += strlen(text);
        text[strcspn(text, "\n")] = '\0';
        rp_html_text(p, text);
        rp_html_put(p, "\n");
    }
    if (from) {
        (void)fclose(from);
    }
    rp_html_put(p, "</pre></details>\n");
}

static void put_boards(const rp_html_page *p) {
    for (uint32_t i = 0; i < p->table->row_count; i++) {
        const rp_lab_row *row = &p->table->row[i];
        if (row->stage_count > 0) {
            rp_html_put(p, "<li>Devices: ");
            for (uint32_t k = 0; k < row->stage_count; k++) {
                bool again = k > 0 && strcmp(row->stage[k].board, row->stage[k - 1].board) == 0;
                rp_html_put(p, k == 0 ? "" : again ? "" : "; ");
                rp_html_text(p, again ? "" : row->stage[k].board);
            }
            (void)fprintf(p->file, " (%u stages)</li>\n", row->stage_count);
            return;
        }
    }
}

static void put_how(const rp_html_page *p) {
    const rp_lab_plan *plan = p->table->plan;
    rp_html_put(p, "<h2>How this was made</h2>\n<ul>\n<li><code>ringpipe lab ");
    rp_html_text(p, plan->lab->path);
    rp_html_put(p, " --out ");
    rp_html_text(p, plan->folder);
    rp_html_put(p, "</code>, ringpipe " RP_VERSION
                   ". Every number here was computed from the run folders "
                   "under <code>runs/</code>; each has its run file beside it.</li>\n");
    put_boards(p);
    rp_html_put(p, "<li>Equal seeds mean equal start weights, equal order of the data and equal "
                   "augmentation, whatever the method.</li>\n");
    put_words(p, "Equal in all rows:", p->table->equal, p->table->equal_count);
    put_words(p, "Different between rows:", p->table->differs, p->table->differs_count);
    if (p->table->cut_differs) {
        rp_html_put(
            p, "<li class=\"bad\">The runs of a model were cut at different layers: <code>cut: "
               "auto</code> measures anew each time. Schedules that end every step with empty "
               "pipes do not mind; for the others, name a cut.</li>\n");
    }
    rp_html_put(
        p, "<li>\xc2\xb1 is the deviation of the sample (n \xe2\x88\x92 1); one seed has none. "
           "Differences are paired: the same model and seed. The interval is Student's t for the "
           "mean difference; <span class=\"good\">better</span> and <span class=\"bad\">worse"
           "</span> mean that it does not hold zero. It is not corrected for the number of "
           "comparisons.</li>\n<li>A run has diverged when its last evaluation or the train loss "
           "of its last epoch is not finite. A row with such a run has no mean.</li>\n");
    if (plan->lab->tune) {
        rp_html_put(p, "<li>The points of sweeps were chosen on ");
        rp_html_put(p, rp_lab_table_chosen_on(p->table));
        rp_html_put(p, "; a tuning seed that is also one of the rows' flatters its row a "
                       "little.</li>\n");
    }
    rp_html_put(p, "</ul>\n");
    put_file(p, plan->lab->path);
    put_file(p, plan->lab->base);
}

rp_err rp_lab_html(const rp_lab_table *table, const rp_lab_report_options *options,
                   const rp_lab_figures *figures, FILE *file) {
    const rp_html_page p = {file, table, options, figures};
    put_head(&p);
    if (table->line_count > 1) {
        put_toggles(&p);
    }
    for (uint32_t model = 0; model < table->plan->lab->model_count; model++) {
        put_model(&p, model);
    }
    put_runs(&p);
    put_how(&p);
    rp_html_put(&p, "</main>\n<footer></footer></body></html>\n");
    return ferror(file) ? rp_fail(RP_ERR_IO, "report.html can not be written") : RP_OK;
}
