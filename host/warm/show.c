/* Progress while the ring is warmed, and the result. */
#include <inttypes.h>
#include <jansson.h>

#include "base/json_print.h"
#include "base/printable.h"
#include "warm/warm_own.h"

static const int64_t SAY_EVERY_NS = 5 * RP_NS_PER_S;

/* Ready kernels of both phases; this grows as long as there is progress. */
static uint64_t count_ready(const rp_ring *ring) {
    uint64_t ready = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        ready += ring->board[k].build.before.ready + ring->board[k].build.now.ready;
    }
    return ready;
}

void rp_warm_say(rp_warm *warm) {
    const rp_ring *ring = warm ? warm->needs.ring : NULL;
    FILE *progress = warm ? warm->needs.progress : NULL;
    const uint64_t ready = warm ? count_ready(ring) : 0;
    if (!progress || ready == warm->said_ready || ring->now_ns - warm->said_ns < SAY_EVERY_NS) {
        return;
    }
    warm->said_ready = ready;
    warm->said_ns = ring->now_ns;
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_state *board = &ring->board[k];
        rp_print(progress, "%s%s: %u of %u kernels", k ? ", " : "", board->name,
                 board->build.before.ready + board->build.now.ready,
                 board->build.before.kernels + board->build.now.kernels);
    }
    const int64_t left_ns = warm->end_ns - ring->now_ns;
    rp_print(progress, "; %" PRId64 " s left\n", left_ns > 0 ? left_ns / RP_NS_PER_S : 0);
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Names the ring's boards for whose places a spare has built (`built`), or has not. */
static void show_places(const rp_warm *warm, const rp_warm_row *spare, const char *text,
                        bool built) {
    const char *before = text;
    for (uint32_t k = 0; k < warm->places; k++) {
        if ((spare->took[k] != 0) == built) {
            (void)fprintf(warm->needs.result, "%s%s", before, warm->row[k].name);
            before = ", ";
        }
    }
}

static void show_row(const rp_warm *warm, const rp_warm_row *row) {
    const rp_board_building *built = &row->built;
    if (built->ready == 0) {
        (void)fprintf(warm->needs.result, "%s: nothing was %s", row->name,
                      row->missing ? "built" : "left to build");
        return;
    }
    (void)fprintf(warm->needs.result,
                  "%s: %u kernels built in %.1f s, %u found in the cache in %.1f s", row->name,
                  built->built, (double)built->build_ns * 1e-9, built->ready - built->built,
                  (double)built->read_ns * 1e-9);
}

static void show_text(const rp_warm *warm) {
    for (uint32_t k = 0; k < warm->places; k++) {
        show_row(warm, &warm->row[k]);
        (void)fputc('\n', warm->needs.result);
    }
    for (uint32_t i = 0; i < warm->spares; i++) {
        const rp_warm_row *row = &warm->row[warm->places + i];
        show_row(warm, row);
        show_places(warm, row, ", as a spare for ", true);
        if (row->missing) {
            show_places(warm, row, ", not for ", false);
            (void)fprintf(warm->needs.result, ": %s", row->missing);
        }
        (void)fputc('\n', warm->needs.result);
    }
}

static json_t *row_json(const rp_warm_row *row) {
    const rp_board_building *built = &row->built;
    return json_pack("{s:s, s:I, s:I, s:f, s:f}", "name", row->name, "built",
                     (json_int_t)built->built, "found", (json_int_t)(built->ready - built->built),
                     "build_s", (double)built->build_ns * 1e-9, "read_s",
                     (double)built->read_ns * 1e-9);
}

static json_t *spare_json(const rp_warm *warm, const rp_warm_row *row) {
    json_t *places = json_array();
    json_t *object = row_json(row);
    for (uint32_t k = 0; k < warm->places; k++) {
        if (row->took[k]) {
            (void)json_array_append_new(places, json_string(warm->row[k].name));
        }
    }
    (void)json_object_set_new(object, "for", places);
    (void)json_object_set_new(object, "missing",
                              row->missing ? json_string(row->missing) : json_null());
    return object;
}

static rp_err show_json(const rp_warm *warm) {
    json_t *boards = json_array();
    json_t *spares = json_array();
    bool missing = false;
    for (uint32_t k = 0; k < warm->places; k++) {
        (void)json_array_append_new(boards, row_json(&warm->row[k]));
    }
    for (uint32_t i = 0; i < warm->spares; i++) {
        const rp_warm_row *row = &warm->row[warm->places + i];
        (void)json_array_append_new(spares, spare_json(warm, row));
        missing = missing || row->missing;
    }
    json_t *root =
        json_pack("{s:i, s:s, s:o, s:o}", "version", 1, "status",
                  missing ? "incomplete" : "finished", "boards", boards, "spares", spares);
    return rp_json_print(root, JSON_REAL_PRECISION(9), warm->needs.result);
}

rp_err rp_warm_show(const rp_warm *warm) {
    if (!warm->needs.result) {
        return RP_OK;
    }
    if (warm->needs.as_json) {
        return show_json(warm);
    }
    show_text(warm);
    return RP_OK;
}
