#include "lab/html.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "lab/drawing.h"
#include "lab/how.h"
#include "lab/html_own.h"

enum { REFRESH_S = 30, FILE_BYTES_MAX = 65536 };

/* Shown above a table in narrow windows. */
static const char scrolls[] =
    "<p class=\"scrolls soft\">The table goes on to the right \xe2\x86\x92</p>\n";

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

/* Style by which an unchecked box hides a line of all drawings, without a script. */
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
    const rp_lab_result *result = NULL;
    for (uint32_t i = 0; i < p->table->row_count && !result; i++) {
        result = rp_lab_row_first(&p->table->row[i]);
    }
    return result;
}

/* Writes a YAML value without its final newline. */
static void put_value(const rp_html_page *p, const char *yaml) {
    char text[192];
    (void)snprintf(text, sizeof text, "%s", yaml);
    for (size_t end = strlen(text); end > 0 && text[end - 1] <= ' '; end--) {
        text[end - 1] = '\0';
    }
    rp_html_text(p, text);
}

/* Writes the data set and further settings that are equal in all rows. */
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
    rp_html_put(p, rp_html_style);
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
        rp_plot_write(p->file, &figure->plot, false);
        rp_html_put(p, "</figure>\n");
        any = true;
    }
    rp_html_put(p, any ? "</div>\n" : "");
}

static void put_toggles(const rp_html_page *p) {
    rp_html_put(p, "<nav><span class=\"soft\">shown in drawings:</span>\n");
    for (uint32_t line = 0; line < p->table->line_count; line++) {
        const rp_lab_row *row = rp_lab_table_row(p->table, 0, line);
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

static void put_details(const rp_html_page *p, rp_lab_sheet_kind kind, uint32_t index,
                        const char *summary) {
    const rp_lab_sheet sheet = rp_lab_sheet_of(p->table, kind, index);
    rp_html_put(p, "<details>");
    rp_html_tag(p, "summary", "", summary);
    rp_html_sheet(p, &sheet);
    rp_html_hints(p, &sheet);
    rp_html_put(p, "</details>\n");
}

static void put_points(const rp_html_page *p, uint32_t index) {
    const rp_lab_sheet sheet = rp_lab_sheet_of(p->table, RP_LAB_POINTS, index);
    rp_html_put(p, "<details><summary>Points of ");
    rp_html_text(p, p->table->plan->lab->method[sheet.tuning->method].name);
    rp_html_put(p, "</summary>");
    rp_html_sheet(p, &sheet);
    rp_html_put(p, "</details>\n");
}

static void put_model(const rp_html_page *p, uint32_t model) {
    const rp_lab_sheet methods = rp_lab_sheet_of(p->table, RP_LAB_METHODS, model);
    rp_html_put(p, "<section>\n");
    rp_html_tag(p, "h2", "", p->table->plan->lab->folder[model]);
    rp_html_cards(p, model);
    rp_html_put(p, scrolls);
    rp_html_sheet(p, &methods);
    rp_html_put(p, "<details><summary>What the columns mean</summary>");
    rp_html_hints(p, &methods);
    rp_html_put(p, "</details>\n");
    put_details(p, RP_LAB_STAGES, model, "Stages: memory, versions, staleness, predictions");
    if (rp_lab_table_wires(p->table, model) > 0) {
        put_details(p, RP_LAB_WIRES, model, "Wires: bytes, rates, delays, codecs");
    }
    put_figures(p, model, RP_LAB_RESULT_PART, "");
    put_figures(p, model, RP_LAB_LEARNING_PART, "Learning");
    put_figures(p, model, RP_LAB_WEIGHTS_PART, "Memory and weights");
    put_figures(p, model, RP_LAB_SWEEP_PART, "Sweeps");
    for (uint32_t i = 0; i < p->table->tuning_count; i++) {
        if (p->table->tuning[i].model == model) {
            put_points(p, i);
        }
    }
    rp_html_put(p, "</section>\n");
}

/* ---- runs and how ---------------------------------------------------------------------------- */

static void put_runs(const rp_html_page *p) {
    const rp_lab_sheet runs = rp_lab_sheet_of(p->table, RP_LAB_RUNS, 0);
    (void)fprintf(p->file, "<h2>Runs</h2>\n<details open><summary>%u runs</summary>%s",
                  p->options->counts.wanted, scrolls);
    rp_html_sheet(p, &runs);
    rp_html_put(p, "</details>\n");
}

/* Writes the current text of a file, folded. */
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

/* State for a list of rp_lab_how() as HTML. */
typedef struct {
    const rp_html_page *page;
    bool open, code, bold; /* inside an item, code, bold text */
} list;

static void put_in_list(void *to, const char *text) {
    list *l = to;
    for (const char *c = text; *c; c++) {
        const char one[] = {*c, '\0'};
        if (*c == '\n') {
            rp_html_put(l->page, "</li>\n");
            l->open = false;
        } else if (!l->open) {
            rp_html_put(l->page, "<li>");
            l->open = true;
            c++; /* "- " */
        } else if (*c == '`') {
            rp_html_put(l->page, l->code ? "</code>" : "<code>");
            l->code = !l->code;
        } else if (c[0] == '*' && c[1] == '*') {
            rp_html_put(l->page, l->bold ? "</b>" : "<b>");
            l->bold = !l->bold;
            c++;
        } else {
            rp_html_text(l->page, one);
        }
    }
}

static void put_how(const rp_html_page *p) {
    list l = {.page = p};
    rp_html_put(p, "<h2>How this was made</h2>\n<ul>\n");
    rp_lab_how(p->table, put_in_list, &l);
    rp_html_put(p, "</ul>\n");
    put_file(p, p->table->plan->lab->path);
    put_file(p, p->table->plan->lab->base);
}

void rp_lab_html(const rp_lab_table *table, const rp_lab_report_options *options,
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
}
