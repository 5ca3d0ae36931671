#include "view/terminal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "runs/story.h"

enum { BAR_COLUMNS = 10, CELL_BYTES = 128 };

/* A cell of a table, `columns` wide. */
static void add_cell(rp_view_text *out, const char *text, int columns) {
    char safe[CELL_BYTES];
    rp_printable(text, false, safe, sizeof safe);
    rp_view_add(out, "  %-*.*s", columns, columns, safe);
}

static void add_share(rp_view_text *out, double share) {
    char bar[BAR_COLUMNS + 1];
    const int full = isfinite(share) ? (int)(share * BAR_COLUMNS + 0.5) : 0;
    for (int i = 0; i < BAR_COLUMNS; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[BAR_COLUMNS] = '\0';
    if (isfinite(share)) {
        rp_view_add(out, "  %s %3.0f%%", bar, 100 * share);
    } else {
        rp_view_add(out, "  %*s", BAR_COLUMNS + 5, "-");
    }
}

static void add_number(rp_view_text *out, double value, double scale, const char *format) {
    if (isfinite(value)) {
        char text[32];
        (void)snprintf(text, sizeof text, "%.1f%s", value * scale, format);
        rp_view_add(out, "  %10s", text);
    } else {
        rp_view_add(out, "  %10s", "-");
    }
}

static void add_head(const rp_view_facts *facts, rp_view_text *out) {
    const rp_run_state *state = &facts->state;
    char safe[RP_VIEW_NAME_BYTES];
    char left[RP_STORY_TIME_BYTES];
    rp_printable(facts->run->name, false, safe, sizeof safe);
    rp_view_add(out, "%s: %s", safe, rp_run_condition_name(state->condition));
    rp_printable(state->model, false, safe, sizeof safe);
    rp_view_add(out, "  %s", safe);
    rp_printable(state->schedule, false, safe, sizeof safe);
    rp_view_add(out, " %s\n%s %" PRIu64, safe, state->rounds ? "round" : "step", state->step);
    if (state->steps > 0) {
        rp_view_add(out, " of %" PRIu64, state->steps);
    }
    if (isfinite(state->loss)) {
        rp_view_add(out, "  loss %.4g", state->loss);
    }
    if (isfinite(state->samples_per_s)) {
        rp_view_add(out, "  %.1f samples/s", state->samples_per_s);
    }
    if (isfinite(facts->left_s) && facts->left_s > 0) {
        rp_story_time(facts->left_s, left);
        rp_view_add(out, "  %s left", left);
    }
    rp_view_add(out, "\n");
    if (facts->age_s > 5) {
        rp_view_add(out, "the state below is %.0f s old\n", facts->age_s);
    }
}

static void add_boards(const rp_view_facts *facts, rp_view_text *out) {
    rp_view_add(out, "  %-14s  %-10s  %-15s  %10s  %10s  %10s  %s\n", "BOARD", "STATE", "BUSY",
                "MEMORY", "STALENESS", "SILENT", "LAYERS");
    for (uint32_t i = 0; i < facts->board_count; i++) {
        const rp_view_board *board = &facts->board[i];
        add_cell(out, board->name, 14);
        add_cell(out, board->state[0] ? board->state : "-", 10);
        add_share(out, board->busy);
        add_number(out, board->memory_bytes, 1.0 / 1048576, " MiB");
        add_number(out, board->staleness, 1, "");
        add_number(out, board->silent_s, 1, " s");
        add_cell(out, board->layers, 40);
        rp_view_add(out, "\n");
    }
}

static void add_wires(const rp_view_facts *facts, rp_view_text *out) {
    bool any = false;
    for (uint32_t i = 0; i < facts->wire_count; i++) {
        const rp_view_wire *wire = &facts->wire[i];
        if (strcmp(wire->kind, "control") == 0) {
            continue;
        }
        if (!any) {
            rp_view_add(out, "  %-14s  %-14s  %-4s  %-15s  %10s  %10s\n", "FROM", "TO", "KIND",
                        "USE", "RATE", "RESENT");
            any = true;
        }
        add_cell(out, wire->from, 14);
        add_cell(out, wire->to, 14);
        add_cell(out, wire->kind, 4);
        add_share(out, wire->use);
        add_number(out, wire->rate_bytes_s, 8e-6, " Mb/s");
        add_number(out, wire->resent, 1, "");
        rp_view_add(out, "\n");
    }
}

static void add_sites(const rp_view_facts *facts, rp_view_text *out) {
    rp_view_add(out, "  %-14s  %-14s  %10s  %10s  %10s  %10s\n", "SITE", "STATE", "ROUND",
                "SAMPLES", "LOSS", "LATE");
    for (uint32_t i = 0; i < facts->site_count; i++) {
        const rp_view_site *site = &facts->site[i];
        const double value[] = {site->last_round, site->samples, site->loss, site->late};
        add_cell(out, site->name, 14);
        add_cell(out, site->state[0] ? site->state : "-", 14);
        for (size_t k = 0; k < sizeof value / sizeof *value; k++) {
            char text[32] = "-";
            if (isfinite(value[k])) {
                (void)snprintf(text, sizeof text, k == 2 ? "%.4f" : "%.0f", value[k]);
            }
            rp_view_add(out, "  %10s", text);
        }
        rp_view_add(out, "\n");
    }
}

void rp_view_terminal(const rp_view_facts *facts, rp_view_text *out) {
    add_head(facts, out);
    if (facts->site_count > 0) {
        add_sites(facts, out);
        return;
    }
    add_boards(facts, out);
    add_wires(facts, out);
}
