#include "folder/now_totals.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs/now_place.h"
#include "runs/tail.h"

enum { ROWS_MAX = 8192 };

typedef struct {
    rp_now_key key;
    rp_now_sums before, now; /* of earlier starts and connections; since then */
} total_row;

struct rp_now_totals {
    rp_arena *arena;
    total_row *row[ROWS_MAX];
    uint32_t count;
    uint32_t next; /* after the row of the last search: the order of calls hardly changes */
};

/* Names in now.json: of op_s, and from RP_NOW_IDLE on of the board. */
static const char *const board_reals[RP_NOW_REALS] = {"forward", "backward", "update", "idle_s",
                                                      "energy_j"};
static const char *const counts[RP_NOW_COUNTS] = {"bytes", "resent", "resets"};

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is_same(const rp_now_key *a, const rp_now_key *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->kind, b->kind) == 0 &&
           strcmp(a->to, b->to) == 0;
}

/* The row of this key, which is added if it is new. NULL: too many, or memory is short. */
static total_row *row_of(rp_now_totals *totals, const rp_now_key *key) {
    total_row *row;
    char *text[3];
    for (uint32_t i = 0; i < totals->count; i++) {
        const uint32_t at = (totals->next + i) % totals->count;
        if (is_same(&totals->row[at]->key, key)) {
            totals->next = at + 1;
            return totals->row[at];
        }
    }
    if (totals->count == ROWS_MAX || RP_ARENA_NEW(totals->arena, 1, &row) != RP_OK ||
        rp_arena_string(totals->arena, key->kind, &text[0]) != RP_OK ||
        rp_arena_string(totals->arena, key->name, &text[1]) != RP_OK ||
        rp_arena_string(totals->arena, key->to, &text[2]) != RP_OK) {
        return NULL;
    }
    row->key = (rp_now_key){text[0], text[1], text[2]};
    totals->row[totals->count++] = row;
    return row;
}

/* The counts have begun from 0 since the last call. */
static bool is_fresh(const rp_now_sums *last, const rp_now_sums *now) {
    for (uint32_t i = 0; i < RP_NOW_COUNTS; i++) {
        if (now->counts[i] < last->counts[i]) {
            return true;
        }
    }
    return false;
}

void rp_now_totals_add(rp_now_totals *totals, const rp_now_key *key, rp_now_sums *sums) {
    total_row *row = row_of(totals, key);
    if (!row) {
        return;
    }
    if (is_fresh(&row->now, sums)) {
        for (uint32_t i = 0; i < RP_NOW_COUNTS; i++) {
            row->before.counts[i] += row->now.counts[i];
        }
        for (uint32_t i = 0; i < RP_NOW_REALS; i++) {
            row->before.reals[i] += row->now.reals[i];
            row->now.reals[i] = 0;
        }
    }
    for (uint32_t i = 0; i < RP_NOW_COUNTS; i++) {
        row->now.counts[i] = sums->counts[i];
        sums->counts[i] += row->before.counts[i];
    }
    for (uint32_t i = 0; i < RP_NOW_REALS; i++) {
        row->now.reals[i] = fmax(row->now.reals[i], sums->reals[i]);
        sums->reals[i] = row->before.reals[i] + row->now.reals[i];
    }
}

/* ---- the file of earlier starts -------------------------------------------------------------- */

/* NULL: missing, not a regular file, too long, or not JSON. */
static json_t *load(const char *path) {
    struct stat facts;
    json_t *root = NULL;
    const int fd = rp_tail_open(path);
    if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_size <= RP_NOW_BYTES_MAX) {
        root = json_loadfd(fd, 0, NULL);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return root;
}

static double time_of(const json_t *root) {
    return json_number_value(json_object_get(root, "written_s"));
}

/* The newer one of the two files, if it is of this run. */
static json_t *load_newest(const char *folder, uint64_t run_id) {
    char path[RP_NOW_PATH_BYTES];
    char id[32];
    json_t *found = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        json_t *root =
            (i == 0 ? rp_now_folder_place(folder, path) : rp_now_runtime_place(folder, false, path))
                ? load(path)
                : NULL;
        const char *own = json_string_value(json_object_get(root, "run_id"));
        (void)snprintf(id, sizeof id, "%016" PRIx64, run_id);
        if (own && strcmp(own, id) == 0 && (!found || time_of(root) > time_of(found))) {
            json_t *older = found;
            found = root;
            root = older;
        }
        json_decref(root);
    }
    return found;
}

/* 0: missing or invalid. */
static double read_real(const json_t *from, const char *key) {
    const double value = json_number_value(json_object_get(from, key));
    return value > 0 && value < 1e12 ? value : 0;
}

static uint64_t read_count(const json_t *from, const char *key) {
    const json_int_t value = json_integer_value(json_object_get(from, key));
    return value > 0 && value < INT64_MAX / 2 ? (uint64_t)value : 0;
}

static const char *text_of(const json_t *from, const char *key) {
    const char *text = json_string_value(json_object_get(from, key));
    return text ? text : "";
}

static void read_board(rp_now_totals *totals, const json_t *from) {
    const rp_now_key key = {"", text_of(from, "name"), ""};
    const json_t *ops = json_object_get(from, "op_s");
    total_row *row = row_of(totals, &key);
    for (uint32_t i = 0; row && i < RP_NOW_REALS; i++) {
        row->before.reals[i] = read_real(i < RP_NOW_IDLE ? ops : from, board_reals[i]);
    }
}

static void read_wire(rp_now_totals *totals, const json_t *from) {
    const rp_now_key key = {text_of(from, "kind"), text_of(from, "from"), text_of(from, "to")};
    total_row *row = row_of(totals, &key);
    for (uint32_t i = 0; row && i < RP_NOW_COUNTS; i++) {
        row->before.counts[i] = read_count(from, counts[i]);
    }
    if (row) {
        row->before.reals[0] = read_real(from, "busy_s");
    }
}

rp_err rp_now_totals_open(rp_arena *arena, const char *folder, uint64_t run_id,
                          rp_now_totals **out) {
    json_t *root = load_newest(folder, run_id);
    const json_t *boards = json_object_get(root, "boards");
    const json_t *wires = json_object_get(root, "wires");
    rp_now_totals *totals;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &totals));
    totals->arena = arena;
    for (size_t i = 0; i < json_array_size(boards); i++) {
        read_board(totals, json_array_get(boards, i));
    }
    for (size_t i = 0; i < json_array_size(wires); i++) {
        read_wire(totals, json_array_get(wires, i));
    }
    *out = totals;
fail:
    json_decref(root);
    return err;
}
