#include "lab/markdown.h"

#include "lab/how.h"

enum { COLUMNS_MAX = 32, TEXT_BYTES = 2 * RP_LAB_CELL_BYTES };

/* ---- tables ---------------------------------------------------------------------------------- */

/* Text of a cell with `|` escaped. `line` NULL: the title. */
static void write_cell(const rp_lab_column *column, const rp_lab_line *line, char *safe) {
    char text[RP_LAB_CELL_BYTES];
    if (line) {
        rp_lab_write_cell(column, line, text);
    } else {
        rp_lab_write_words(text, column->title);
    }
    for (const char *c = text; *c; c++) {
        if (*c == '|') {
            *safe++ = '\\';
        }
        *safe++ = *c == '\n' ? ' ' : *c;
    }
    *safe = '\0';
}

/* Number of characters in UTF-8. */
static uint32_t width_of(const char *text) {
    uint32_t width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

static void widen_columns(const rp_lab_sheet *sheet, const rp_lab_line *line, uint32_t *width) {
    char text[TEXT_BYTES];
    for (const rp_lab_column *c = rp_lab_column_first(sheet); c; c = rp_lab_column_next(sheet, c)) {
        write_cell(c, line, text);
        *width = width_of(text) > *width ? width_of(text) : *width;
        width++;
    }
}

/* Writes a line: words left-aligned, numbers right-aligned. */
static void put_line(const rp_lab_sheet *sheet, const rp_lab_line *line, const uint32_t *width,
                     FILE *file) {
    char text[TEXT_BYTES];
    for (const rp_lab_column *c = rp_lab_column_first(sheet); c; c = rp_lab_column_next(sheet, c)) {
        write_cell(c, line, text);
        const int blanks = (int)(*width++ - width_of(text));
        (void)fprintf(file, "| %*s%s%*s ", c->left ? 0 : blanks, "", text, c->left ? blanks : 0,
                      "");
    }
    (void)fputs("|\n", file);
}

void rp_lab_markdown_sheet(const rp_lab_sheet *sheet, FILE *file) {
    uint32_t width[COLUMNS_MAX] = {0};
    const uint32_t *wide = width;
    widen_columns(sheet, NULL, width);
    for (rp_lab_line line = {.sheet = sheet}; rp_lab_sheet_next(&line);) {
        widen_columns(sheet, &line, width);
    }
    put_line(sheet, NULL, width, file);
    for (const rp_lab_column *c = rp_lab_column_first(sheet); c; c = rp_lab_column_next(sheet, c)) {
        (void)fputc('|', file);
        for (uint32_t i = 0; i < *wide + 1; i++) {
            (void)fputc('-', file);
        }
        (void)fputc(c->left ? '-' : ':', file);
        wide++;
    }
    (void)fputs("|\n", file);
    for (rp_lab_line line = {.sheet = sheet}; rp_lab_sheet_next(&line);) {
        put_line(sheet, &line, width, file);
    }
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_text(void *file, const char *text) {
    (void)fputs(text, file);
}

static void put_sheet(const rp_lab_table *table, rp_lab_sheet_kind kind, uint32_t index,
                      FILE *file) {
    const rp_lab_sheet sheet = rp_lab_sheet_of(table, kind, index);
    rp_lab_markdown_sheet(&sheet, file);
}

void rp_lab_markdown(const rp_lab_table *table, const rp_lab_report_options *options, FILE *file) {
    const rp_labfile *lab = table->plan->lab;
    (void)fprintf(file, "# %s\n\n%s: %u of %u runs finished", lab->path, options->state,
                  options->counts.finished, options->counts.wanted);
    if (options->counts.failed > 0) {
        (void)fprintf(file, ", %u failed", options->counts.failed);
    }
    if (options->counts.diverged > 0) {
        (void)fprintf(file, ", %u diverged", options->counts.diverged);
    }
    (void)fprintf(file, ".\n");
    for (uint32_t model = 0; model < lab->model_count; model++) {
        (void)fprintf(file, "\n## %s\n\n", lab->folder[model]);
        put_sheet(table, RP_LAB_METHODS, model, file);
        (void)fprintf(file, "\n### Stages\n\n");
        put_sheet(table, RP_LAB_STAGES, model, file);
        if (rp_lab_table_wires(table, model) > 0) {
            (void)fprintf(file, "\n### Wires\n\n");
            put_sheet(table, RP_LAB_WIRES, model, file);
        }
    }
    for (uint32_t i = 0; i < table->tuning_count; i++) {
        const rp_lab_tuning *tuning = &table->tuning[i];
        (void)fprintf(file, "\n### Sweep of %s, %s\n\n", lab->method[tuning->method].name,
                      lab->folder[tuning->model]);
        put_sheet(table, RP_LAB_POINTS, i, file);
    }
    (void)fprintf(file, "\n## Runs\n\n");
    put_sheet(table, RP_LAB_RUNS, 0, file);
    (void)fprintf(file, "\n## How this was made\n\n");
    rp_lab_how(table, put_text, file);
}
