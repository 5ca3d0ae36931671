#include "lab/markdown.h"

#include <math.h>
#include <string.h>

#include "lab/cells.h"

enum { COLUMNS_MAX = 24 };

typedef struct {
    rp_arena arena;
    const char **cell; /* by row and column; row 0 is the head */
    uint32_t rows, columns, room;
} grid;

/* Characters of UTF-8. */
static uint32_t width_of(const char *text) {
    uint32_t width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

static rp_err open_grid(grid *g, uint32_t rows) {
    *g = (grid){.room = rows};
    rp_arena_init(&g->arena, "table.md", 0);
    return RP_ARENA_NEW(&g->arena, (size_t)rows * COLUMNS_MAX, &g->cell);
}

/* Bars would end the cell. */
static rp_err set_cell(grid *g, uint32_t row, uint32_t column, const char *text) {
    char safe[2 * RP_LAB_CELL_BYTES];
    size_t used = 0;
    RP_ASSERT(row < g->room && column < COLUMNS_MAX);
    for (; *text && used + 2 < sizeof safe; text++) {
        if (*text == '|') {
            safe[used++] = '\\';
        }
        safe[used++] = *text == '\n' ? ' ' : *text;
    }
    safe[used] = '\0';
    char *copy;
    rp_err err = rp_arena_string(&g->arena, safe, &copy);
    if (err == RP_OK) {
        g->cell[row * COLUMNS_MAX + column] = copy;
        g->rows = row >= g->rows ? row + 1 : g->rows;
        g->columns = column >= g->columns ? column + 1 : g->columns;
    }
    return err;
}

static void put_cell(FILE *file, const char *text, uint32_t width, bool left) {
    uint32_t blanks = width - width_of(text);
    (void)fprintf(file, "| %*s%s%*s ", left ? 0 : (int)blanks, "", text, left ? (int)blanks : 0,
                  "");
}

/* Words to the left, numbers to the right. */
static void put_grid(const grid *g, FILE *file, uint32_t left_columns) {
    uint32_t width[COLUMNS_MAX] = {0};
    for (uint32_t i = 0; i < g->rows * COLUMNS_MAX; i++) {
        uint32_t wide = g->cell[i] ? width_of(g->cell[i]) : 0;
        width[i % COLUMNS_MAX] = wide > width[i % COLUMNS_MAX] ? wide : width[i % COLUMNS_MAX];
    }
    for (uint32_t row = 0; row < g->rows; row++) {
        for (uint32_t c = 0; c < g->columns; c++) {
            const char *text = g->cell[row * COLUMNS_MAX + c];
            put_cell(file, text ? text : "", width[c], c < left_columns);
        }
        (void)fputs("|\n", file);
        for (uint32_t c = 0; row == 0 && c < g->columns; c++) {
            (void)fputs("|", file);
            for (uint32_t i = 0; i < width[c] + 1; i++) {
                (void)fputc('-', file);
            }
            (void)fputc(c < left_columns ? '-' : ':', file);
        }
        if (row == 0) {
            (void)fputs("|\n", file);
        }
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

rp_err rp_lab_markdown_methods(const rp_lab_table *table, uint32_t model, FILE *file) {
    grid g;
    char text[RP_LAB_CELL_BYTES];
    rp_err err;
    RP_TRY(open_grid(&g, table->line_count + 1));
    uint32_t column = 0;
    for (const rp_lab_column *c = rp_lab_columns; c->title; c++) {
        if (!c->shown(table)) {
            continue;
        }
        RP_TRY(set_cell(&g, 0, column, c->title));
        for (uint32_t i = 0; i < table->line_count; i++) {
            rp_lab_write_cell(c, table, &table->row[model * table->line_count + i], text);
            RP_TRY(set_cell(&g, i + 1, column, text));
        }
        column++;
    }
    put_grid(&g, file, 1);
fail:
    rp_arena_finish(&g.arena);
    return err;
}

static rp_err put_stages(const rp_lab_table *table, uint32_t model, FILE *file) {
    grid g;
    char text[RP_LAB_CELL_BYTES];
    uint32_t lines = 1;
    uint32_t at = 1;
    rp_err err;
    for (uint32_t i = 0; i < table->line_count; i++) {
        lines += table->row[model * table->line_count + i].stage_count;
    }
    RP_TRY(open_grid(&g, lines));
    RP_TRY(set_cell(&g, 0, 0, "method"));
    RP_TRY(set_cell(&g, 0, 1, "stage"));
    for (uint32_t i = 0; i < table->line_count; i++) {
        const rp_lab_row *row = &table->row[model * table->line_count + i];
        for (uint32_t k = 0; k < row->stage_count; k++, at++) {
            uint32_t column = 2;
            (void)snprintf(text, sizeof text, "%u", k);
            RP_TRY(set_cell(&g, at, 0, row->label));
            RP_TRY(set_cell(&g, at, 1, text));
            for (const rp_lab_stage_column *c = rp_lab_stage_columns; c->title; c++) {
                if (!c->predicted || table->predicted) {
                    c->write(row, k, text);
                    RP_TRY(set_cell(&g, 0, column, c->title));
                    RP_TRY(set_cell(&g, at, column++, text));
                }
            }
        }
    }
    put_grid(&g, file, 3);
fail:
    rp_arena_finish(&g.arena);
    return err;
}

static rp_err put_wires(const rp_lab_table *table, uint32_t model, FILE *file) {
    grid g;
    char text[RP_LAB_CELL_BYTES];
    uint32_t at = 1;
    rp_err err;
    RP_TRY(open_grid(&g, 1 + rp_lab_table_wires(table, model)));
    RP_TRY(set_cell(&g, 0, 0, "method"));
    for (uint32_t c = 0; rp_lab_wire_columns[c].title; c++) {
        RP_TRY(set_cell(&g, 0, c + 1, rp_lab_wire_columns[c].title));
    }
    for (uint32_t i = 0; i < table->line_count; i++) {
        const rp_lab_row *row = &table->row[model * table->line_count + i];
        for (uint32_t w = 0; w < row->wire_count; w++, at++) {
            RP_TRY(set_cell(&g, at, 0, row->label));
            for (uint32_t c = 0; rp_lab_wire_columns[c].title; c++) {
                rp_lab_wire_columns[c].write(&row->wire[w], text);
                RP_TRY(set_cell(&g, at, c + 1, text));
            }
        }
    }
    put_grid(&g, file, 2);
fail:
    rp_arena_finish(&g.arena);
    return err;
}

static rp_err put_tuning(const rp_lab_tuning *tuning, FILE *file) {
    grid g;
    char text[RP_LAB_CELL_BYTES];
    rp_err err;
    RP_TRY(open_grid(&g, tuning->trial_count + 1));
    RP_TRY(set_cell(&g, 0, 0, "point"));
    RP_TRY(set_cell(&g, 0, 1,
                    !tuning->accuracy    ? "loss"
                    : tuning->validation ? "validation accuracy %"
                                         : "test accuracy %"));
    RP_TRY(set_cell(&g, 0, 2, ""));
    for (uint32_t i = 0; i < tuning->trial_count; i++) {
        const rp_lab_trial *trial = &tuning->trial[i];
        rp_lab_write_mean(&trial->score, tuning->accuracy ? 100 : 1, text);
        RP_TRY(set_cell(&g, i + 1, 0, trial->label));
        RP_TRY(set_cell(&g, i + 1, 1, trial->diverged ? "diverged" : text));
        RP_TRY(set_cell(&g, i + 1, 2,
                        trial->at_edge                    ? "chosen, at the end of the range"
                        : trial->chosen                   ? "chosen"
                        : trial->finished < trial->wanted ? "not finished"
                                                          : ""));
    }
    put_grid(&g, file, 1);
fail:
    rp_arena_finish(&g.arena);
    return err;
}

static rp_err put_runs(const rp_lab_table *table, FILE *file) {
    const rp_lab_plan *plan = table->plan;
    static const char *const titles[] = {
        "run", "status", "test accuracy %", "test loss", "time", "samples/s", "note"};
    grid g;
    char text[RP_LAB_CELL_BYTES];
    uint32_t at = 1;
    rp_err err;
    RP_TRY(open_grid(&g, plan->run_count + 1));
    for (uint32_t c = 0; c < sizeof titles / sizeof *titles; c++) {
        RP_TRY(set_cell(&g, 0, c, titles[c]));
    }
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const rp_lab_run *run = &plan->run[i];
        const rp_lab_result *result = &run->result;
        if (!run->wanted) {
            continue;
        }
        rp_stats accuracy = rp_stats_of(&result->accuracy, result->diverged ? 0 : 1);
        rp_stats loss = rp_stats_of(&result->eval_loss, result->diverged ? 0 : 1);
        RP_TRY(set_cell(&g, at, 0, run->name));
        RP_TRY(set_cell(&g, at, 1, rp_lab_write_status(result)));
        rp_lab_write_mean(&accuracy, 100, text);
        RP_TRY(set_cell(&g, at, 2, text));
        rp_lab_write_mean(&loss, 1, text);
        RP_TRY(set_cell(&g, at, 3, text));
        rp_lab_write_duration(result->seconds, text);
        RP_TRY(set_cell(&g, at, 4, text));
        rp_lab_write_number(result->samples_per_s, text);
        RP_TRY(set_cell(&g, at, 5, text));
        RP_TRY(set_cell(&g, at++, 6, result->status == RP_LAB_FINISHED ? "" : result->note));
    }
    put_grid(&g, file, 2);
fail:
    rp_arena_finish(&g.arena);
    return err;
}

static void put_words(FILE *file, const char *title, const char *const *word, uint32_t count) {
    (void)fprintf(file, "- %s:", title);
    for (uint32_t i = 0; i < count; i++) {
        (void)fprintf(file, "%s `%s`", i ? "," : "", word[i]);
    }
    (void)fprintf(file, "%s\n", count ? "" : " nothing");
}

static void put_how(const rp_lab_table *table, FILE *file) {
    const rp_lab_plan *plan = table->plan;
    (void)fprintf(file, "\n## How this was made\n\n");
    (void)fprintf(file,
                  "- `ringpipe lab %s --out %s`, ringpipe %s; every run file and run folder "
                  "is under `runs/`.\n",
                  plan->lab->path, plan->folder, RP_VERSION);
    (void)fprintf(file, "- Equal seeds mean equal start weights, equal order of the data and equal "
                        "augmentation, whatever the method.\n");
    put_words(file, "Equal in all rows", table->equal, table->equal_count);
    put_words(file, "Different between rows", table->differs, table->differs_count);
    if (table->cut_differs) {
        (void)fprintf(file, "- The runs of a model were cut at different layers: `cut: auto` "
                            "measures anew each time. Name a cut to compare asynchronous methods "
                            "strictly.\n");
    }
    (void)fprintf(file,
                  "- \xc2\xb1 is the deviation of the sample (n - 1). Differences are paired: "
                  "the same model and seed. The interval is Student's t for the mean "
                  "difference; it is not corrected for the number of comparisons.\n");
    if (plan->lab->tune) {
        (void)fprintf(file,
                      "- The points of sweeps were chosen on %s; a tuning seed that is also one of "
                      "the rows' flatters its row a little.\n",
                      rp_lab_table_chosen_on(table));
    }
}

rp_err rp_lab_markdown(const rp_lab_table *table, const rp_lab_report_options *options,
                       FILE *file) {
    const rp_labfile *lab = table->plan->lab;
    rp_err err;
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
        RP_TRY(rp_lab_markdown_methods(table, model, file));
        (void)fprintf(file, "\n### Stages\n\n");
        RP_TRY(put_stages(table, model, file));
        if (rp_lab_table_wires(table, model) > 0) {
            (void)fprintf(file, "\n### Wires\n\n");
            RP_TRY(put_wires(table, model, file));
        }
    }
    for (uint32_t i = 0; i < table->tuning_count; i++) {
        const rp_lab_tuning *tuning = &table->tuning[i];
        (void)fprintf(file, "\n### Sweep of %s, %s\n\n", lab->method[tuning->method].name,
                      lab->folder[tuning->model]);
        RP_TRY(put_tuning(tuning, file));
    }
    (void)fprintf(file, "\n## Runs\n\n");
    RP_TRY(put_runs(table, file));
    put_how(table, file);
fail:
    return err;
}
