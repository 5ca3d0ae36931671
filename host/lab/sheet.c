#include "lab/columns.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- lines ----------------------------------------------------------------------------------- */

rp_lab_sheet rp_lab_sheet_of(const rp_lab_table *table, rp_lab_sheet_kind kind, uint32_t index) {
    rp_lab_sheet sheet = {.kind = kind, .table = table};
    if (kind == RP_LAB_POINTS) {
        sheet.tuning = &table->tuning[index];
    } else if (kind != RP_LAB_RUNS) {
        sheet.row = &table->row[index * table->line_count];
        sheet.row_count = table->line_count;
    }
    return sheet;
}

rp_lab_sheet rp_lab_sheet_of_row(const rp_lab_table *table, rp_lab_sheet_kind kind,
                                 const rp_lab_row *row) {
    return (rp_lab_sheet){.kind = kind, .table = table, .row = row, .row_count = 1};
}

/* Item `i` of a row or sheet; NULL: after the last one. */
static const void *item_at(const rp_lab_sheet *sheet, const rp_lab_row *row, uint32_t i) {
    const rp_lab_plan *plan = sheet->table->plan;
    switch (sheet->kind) {
    case RP_LAB_METHODS:
        return i == 0 ? row : NULL;
    case RP_LAB_STAGES:
        return i < row->stage_count ? &row->stage[i] : NULL;
    case RP_LAB_WIRES:
        return i < row->wire_count ? &row->wire[i] : NULL;
    case RP_LAB_POINTS:
        return i < sheet->tuning->trial_count ? &sheet->tuning->trial[i] : NULL;
    case RP_LAB_RUNS:
    case RP_LAB_SHEETS:
        break;
    }
    return i < plan->run_count ? &plan->run[i] : NULL;
}

bool rp_lab_sheet_next(rp_lab_line *line) {
    const rp_lab_sheet *sheet = line->sheet;
    const uint32_t rows = sheet->row ? sheet->row_count : 1;
    for (; line->next_row < rows; line->next_row++, line->next = 0) {
        line->row = sheet->row ? &sheet->row[line->next_row] : NULL;
        while ((line->item = item_at(sheet, line->row, line->next))) {
            line->index = line->next++;
            if (sheet->kind != RP_LAB_RUNS || ((const rp_lab_run *)line->item)->wanted) {
                return true;
            }
        }
    }
    return false;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Mean and deviation of a number of summary.json over the row's finished runs. */
static rp_stats stats_of(const rp_lab_row *row, const char *path) {
    double value[RP_LAB_SEEDS_MAX];
    uint32_t count = 0;
    for (uint32_t s = 0; s < row->wanted && count < RP_LAB_SEEDS_MAX; s++) {
        if (row->result[s]) {
            value[count++] = rp_lab_result_number(row->result[s], path);
        }
    }
    return rp_stats_of(value, count);
}

rp_lab_value rp_lab_column_value(const rp_lab_column *column, const rp_lab_line *line) {
    const void *at = (const char *)line->item + column->at;
    rp_lab_value value = {.kind = column->kind};
    if (column->missing && column->missing(line)) {
        return (rp_lab_value){0};
    }
    if (column->value) {
        return column->value(line);
    }
    switch (column->kind) {
    case RP_LAB_NOTHING:
        break;
    case RP_LAB_TEXT:
        value.text = *(const char *const *)at;
        break;
    case RP_LAB_WHOLE:
        value.whole = *(const uint32_t *)at;
        break;
    case RP_LAB_TRUTH:
        value.whole = *(const bool *)at;
        break;
    case RP_LAB_REAL:
        value.stats = (rp_stats){.mean = *(const double *)at, .deviation = (double)NAN};
        break;
    case RP_LAB_STATS:
        value.stats = column->path ? stats_of(line->row, column->path) : *(const rp_stats *)at;
        break;
    case RP_LAB_PAIRED:
        value.paired = *(const rp_stats_paired *)at;
        break;
    }
    return value;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void show_value(const rp_lab_value *value, const rp_lab_format *format, char *text) {
    static const rp_lab_format real = {.scale = 1, .decimals = RP_LAB_FOUR_DIGITS};
    static const rp_lab_format mean = {.scale = 1, .decimals = RP_LAB_SUITED};
    format = format ? format : value->kind == RP_LAB_REAL ? &real : &mean;
    if (value->kind == RP_LAB_TEXT) {
        rp_lab_write_words(text, value->text);
    } else if (value->kind == RP_LAB_WHOLE) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%llu", (unsigned long long)value->whole);
    } else {
        rp_lab_write_mean(text, value->stats.mean, value->stats.deviation, *format);
    }
}

/* Text for a row whose main number is missing; "": it has one. */
static void write_no_mean(const rp_lab_row *row, char *text) {
    text[0] = '\0';
    if (row->diverged > 0 && row->wanted > 1) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "diverged (%u of %u)", row->diverged,
                       row->finished);
    } else if (row->diverged > 0 || row->point == RP_LAB_NONE_IS_GOOD) {
        rp_lab_write_words(text, "diverged");
    } else if (row->finished == 0 && row->failed > 0) {
        rp_lab_write_words(text, "failed");
    }
}

const rp_lab_column *rp_lab_column_main(const rp_lab_sheet *sheet) {
    const rp_lab_column *first = rp_lab_column_first(sheet);
    while (first && !first->main) {
        first = rp_lab_column_next(sheet, first);
    }
    return first;
}

void rp_lab_write_cell(const rp_lab_column *column, const rp_lab_line *line, char *text) {
    const char *missing = column->missing ? column->missing(line) : NULL;
    if (column->main && column == rp_lab_column_main(line->sheet)) {
        write_no_mean(line->row, text);
        if (text[0]) {
            return;
        }
    }
    if (missing) {
        rp_lab_write_words(text, missing);
    } else if (column->write) {
        column->write(line, text);
    } else {
        const rp_lab_value value = rp_lab_column_value(column, line);
        show_value(&value, column->format, text);
    }
}

static const rp_lab_column *skip_hidden(const rp_lab_sheet *sheet, const rp_lab_column *column) {
    while ((column->title || column->key) &&
           !(column->title && (!column->shown || column->shown(sheet)))) {
        column++;
    }
    return column->title ? column : NULL;
}

const rp_lab_column *rp_lab_column_first(const rp_lab_sheet *sheet) {
    return skip_hidden(sheet, rp_lab_columns[sheet->kind]);
}

const rp_lab_column *rp_lab_column_next(const rp_lab_sheet *sheet, const rp_lab_column *column) {
    return skip_hidden(sheet, column + 1);
}
