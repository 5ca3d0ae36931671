#include "lab/how.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    void (*put)(void *to, const char *text);
    void *to;
} writer;

static void put_text(const writer *w, const char *text) {
    w->put(w->to, text);
}

static void put_words(const writer *w, const char *title, const char *const *word, uint32_t count) {
    put_text(w, title);
    for (uint32_t i = 0; i < count; i++) {
        put_text(w, i ? ", `" : " `");
        put_text(w, word[i]);
        put_text(w, "`");
    }
    put_text(w, count ? "\n" : " nothing\n");
}

/* Devices of the first row that has run. */
static void put_boards(const writer *w, const rp_lab_table *table) {
    const rp_lab_row *row = table->row;
    const rp_lab_row *end = row + table->row_count;
    char text[40];
    while (row < end && row->stage_count == 0) {
        row++;
    }
    for (uint32_t k = 0; row < end && k < row->stage_count; k++) {
        const char *board = row->stage[k].board;
        if (k == 0 || strcmp(board, row->stage[k - 1].board) != 0) {
            put_text(w, k == 0 ? "- Devices: " : "; ");
            put_text(w, board);
        }
    }
    if (row < end) {
        (void)snprintf(text, sizeof text, " (%u stages)\n", row->stage_count);
        put_text(w, text);
    }
}

void rp_lab_how(const rp_lab_table *table, void (*put_piece)(void *to, const char *text),
                void *to) {
    const writer out = {put_piece, to};
    const writer *w = &out;
    put_text(w, "- `ringpipe lab ");
    put_text(w, table->plan->lab->path);
    put_text(w, " --out ");
    put_text(w, table->plan->folder);
    put_text(w, "`, ringpipe " RP_VERSION
                ". Every number here was computed from the run folders under "
                "`runs/`; each run file is next to its folder.\n");
    put_boards(w, table);
    put_text(w, "- Equal seeds mean equal start weights, equal order of the data and equal "
                "augmentation, whatever the method.\n");
    put_words(w, "- Equal in all rows:", table->equal, table->equal_count);
    put_words(w, "- Different between rows:", table->differs, table->differs_count);
    if (table->cut_differs) {
        put_text(w, "- **The runs of a model were cut at different layers**, by "
                    "`cut: auto` or by the methods' own cuts. This changes no result of schedules "
                    "that flush after every step; for "
                    "other schedules, name a cut.\n");
    }
    put_text(
        w,
        "- \xc2\xb1 is the deviation of the sample (n \xe2\x88\x92 1); one seed has none. "
        "Differences are paired by model and seed. The interval is Student's t for the "
        "mean difference; **better** and **worse** mean that it does not contain zero. It is not "
        "corrected for the number of comparisons.\n"
        "- A run has diverged when its last evaluation or the train loss of its last epoch is "
        "not finite. A row with such a run has no mean.\n");
    if (table->plan->lab->tune) {
        put_text(w, "- The points of sweeps were chosen on ");
        put_text(w, rp_lab_table_chosen_on(table));
        put_text(w, "; a tuning seed that is also a row's seed biases the row a little.\n");
    }
}
