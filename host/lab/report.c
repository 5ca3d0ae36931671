#include "lab/report.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/replace.h"
#include "lab/figures.h"
#include "lab/html.h"
#include "lab/markdown.h"
#include "lab/tablejson.h"

typedef struct {
    const rp_lab_table *table;
    const rp_lab_report_options *options;
    const rp_lab_figures *figures;
    const rp_lab_figure *figure; /* to be written */
} report;

typedef rp_err (*writer)(const report *r, FILE *file);

/* `folder` and `name` in the comparison's folder. */
static rp_err replace_file(const report *r, const char *folder, const char *name, writer write) {
    char path[1024];
    int length = snprintf(path, sizeof path, "%s/%s%s", r->table->plan->folder, folder, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return rp_fail(RP_ERR_USAGE, "%s: path too long", r->table->plan->folder);
    }
    FILE *file = rp_replace_begin(path);
    const rp_err err = file ? write(r, file) : RP_OK;
    const rp_err replaced = rp_replace_end(file, path, err == RP_OK && file && !ferror(file));
    return err == RP_OK ? replaced : err;
}

static rp_err write_markdown(const report *r, FILE *file) {
    rp_lab_markdown(r->table, r->options, file);
    return RP_OK;
}

static rp_err write_json(const report *r, FILE *file) {
    return rp_lab_json(r->table, r->options, file, JSON_INDENT(1));
}

static rp_err write_html(const report *r, FILE *file) {
    rp_lab_html(r->table, r->options, r->figures, file);
    return RP_OK;
}

static rp_err write_figure(const report *r, FILE *file) {
    rp_plot_write(file, &r->figure->plot, true);
    return RP_OK;
}

static rp_err write_figures(report *r) {
    char path[1024];
    rp_err err = RP_OK;
    (void)snprintf(path, sizeof path, "%s/curves", r->table->plan->folder);
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    for (uint32_t i = 0; i < r->figures->count; i++) {
        r->figure = &r->figures->figure[i];
        RP_TRY(replace_file(r, "curves/", r->figure->file, write_figure));
    }
fail:
    return err;
}

rp_err rp_lab_report_write(const rp_lab_table *table, const rp_lab_report_options *options) {
    rp_arena arena;
    rp_arena_init(&arena, "figures", 0);
    rp_lab_figures figures;
    report r = {.table = table, .options = options, .figures = &figures};
    rp_err err;
    RP_TRY(rp_lab_figures_make(&arena, table, &figures));
    RP_TRY(replace_file(&r, "", "table.md", write_markdown));
    RP_TRY(replace_file(&r, "", "table.json", write_json));
    RP_TRY(write_figures(&r));
    RP_TRY(replace_file(&r, "", "report.html", write_html));
fail:
    rp_arena_finish(&arena);
    return err;
}

void rp_lab_report_print(const rp_lab_table *table, FILE *file) {
    for (uint32_t model = 0; model < table->plan->lab->model_count; model++) {
        const rp_lab_sheet methods = rp_lab_sheet_of(table, RP_LAB_METHODS, model);
        (void)fprintf(file, "%s%s\n\n", model ? "\n" : "", table->plan->lab->folder[model]);
        rp_lab_markdown_sheet(&methods, file);
    }
}

rp_err rp_lab_report_print_json(const rp_lab_table *table, const rp_lab_report_options *options,
                                FILE *file) {
    return rp_lab_json(table, options, file, 0);
}
