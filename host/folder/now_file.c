#include "folder/now_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json_values.h"
#include "base/replace.h"
#include "folder/now_totals.h"
#include "runs/now_place.h"

enum { DIGITS = 13 }; /* written_s has milliseconds */

/* What is omitted of a ring that is too large for one file. */
typedef enum { ALL, NO_HOST_WIRES, NO_WIRES, NO_COUNTS, DETAILS } detail;

struct rp_now_file {
    const char *folder;
    uint64_t run_id;
    rp_now_totals *totals;
    char *text; /* [RP_NOW_BYTES_MAX] */
};

const char *rp_now_op_name(rp_now_op op) {
    static const char *const names[RP_NOW_OPS] = {"forward", "backward", "update"};
    return names[op];
}

rp_err rp_now_open(rp_arena *arena, const char *folder, uint64_t run_id, rp_now_file **out) {
    rp_now_file *file;
    char *copy;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &file));
    RP_TRY(rp_arena_string(arena, folder, &copy));
    RP_TRY(RP_ARENA_NEW(arena, RP_NOW_BYTES_MAX, &file->text));
    file->folder = copy;
    file->run_id = run_id;
    RP_TRY(rp_now_totals_open(arena, folder, run_id, &file->totals));
    *out = file;
fail:
    return err;
}

/* ---- the text -------------------------------------------------------------------------------- */

static void put_real(json_t *object, const char *key, double value, bool *good) {
    if (isfinite(value)) {
        rp_json_put(object, key, json_real(value), good);
    }
}

static void put_text(json_t *object, const char *key, const char *value, bool *good) {
    if (value) {
        rp_json_put(object, key, json_string(value), good);
    }
}

static json_t *make_board(const rp_now_file *file, const rp_now_board *board, detail level,
                          bool *good) {
    const rp_now_key key = {"", board->name, ""};
    rp_now_sums sums = {.counts = {0}};
    json_t *object = json_object();
    put_text(object, "name", board->name, good);
    put_text(object, "state", board->state, good);
    put_real(object, "busy", board->busy, good);
    put_real(object, "silent_s", board->silent_s, good);
    if (level == NO_COUNTS) {
        return object;
    }
    put_text(object, "op", board->op, good);
    if (board->memory_bytes > 0) {
        rp_json_put(object, "memory_bytes", rp_json_of_whole(board->memory_bytes), good);
    }
    put_real(object, "heat_c", board->heat_c, good);
    put_real(object, "power_w", board->power_w, good);
    put_real(object, "staleness", board->staleness, good);
    for (uint32_t i = 0; i < RP_NOW_OPS; i++) {
        sums.reals[i] = board->op_s[i];
    }
    sums.reals[RP_NOW_IDLE] = isfinite(board->idle_s) ? board->idle_s : 0;
    sums.reals[RP_NOW_ENERGY] = board->energy_j;
    rp_now_totals_add(file->totals, &key, &sums);
    json_t *ops = json_object();
    for (uint32_t i = 0; i < RP_NOW_OPS; i++) {
        put_real(ops, rp_now_op_name((rp_now_op)i), sums.reals[i], good);
    }
    rp_json_put(object, "op_s", ops, good);
    put_real(object, "idle_s", sums.reals[RP_NOW_IDLE], good);
    if (sums.reals[RP_NOW_ENERGY] > 0) {
        put_real(object, "energy_j", sums.reals[RP_NOW_ENERGY], good);
    }
    return object;
}

static json_t *make_wire(const rp_now_file *file, const rp_now_wire *wire, bool *good) {
    const rp_now_key key = {wire->kind, wire->from, wire->to};
    rp_now_sums sums = {.reals = {isfinite(wire->busy_s) ? wire->busy_s : 0},
                        .counts = {wire->bytes, wire->resent, wire->resets}};
    json_t *object = json_object();
    rp_now_totals_add(file->totals, &key, &sums);
    put_text(object, "kind", wire->kind, good);
    put_text(object, "from", wire->from, good);
    put_text(object, "to", wire->to, good);
    rp_json_put(object, "bytes", rp_json_of_whole(sums.counts[0]), good);
    put_real(object, "rate_bytes_s", wire->rate_bytes_s, good);
    put_real(object, "use", wire->use, good);
    put_real(object, "busy_s", sums.reals[0] > 0 ? sums.reals[0] : wire->busy_s, good);
    put_real(object, "queue", wire->queue, good);
    rp_json_put(object, "resent", rp_json_of_whole(sums.counts[1]), good);
    rp_json_put(object, "resets", rp_json_of_whole(sums.counts[2]), good);
    put_real(object, "delay_s", wire->delay_s[0], good);
    put_real(object, "delay_95_s", wire->delay_s[1], good);
    return object;
}

static double wall_s(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static json_t *make_head(const rp_now_file *file, const rp_now *now, bool *good) {
    char id[32];
    json_t *root = json_object();
    (void)snprintf(id, sizeof id, "%016" PRIx64, file->run_id);
    rp_json_put(root, "version", json_integer(1), good);
    rp_json_put(root, "pid", json_integer(getpid()), good);
    put_text(root, "run_id", id, good);
    put_real(root, "written_s", wall_s(), good);
    put_text(root, "state", now->state, good);
    rp_json_put(root, "step", rp_json_of_whole(now->step), good);
    rp_json_put(root, "steps", rp_json_of_whole(now->steps), good);
    rp_json_put(root, "samples", rp_json_of_whole(now->samples), good);
    put_real(root, "loss", now->loss, good);
    put_real(root, "learning_rate", now->learning_rate, good);
    put_real(root, "samples_per_s", now->samples_per_s, good);
    put_real(root, "left_s", now->left_s, good);
    return root;
}

static json_t *make_sites(const rp_now *now, bool *good) {
    json_t *sites = json_array();
    for (uint32_t i = 0; i < now->site_count; i++) {
        json_t *object = json_object();
        put_text(object, "site", now->site[i].name, good);
        put_text(object, "state", now->site[i].state, good);
        (void)json_array_append_new(sites, object);
    }
    return sites;
}

/* 0: it does not fit, or a name is not UTF-8. */
static size_t print_now(const rp_now_file *file, const rp_now *now, detail level) {
    bool good = true;
    json_t *root = make_head(file, now, &good);
    json_t *boards = json_array();
    json_t *wires = json_array();
    for (uint32_t i = 0; i < now->board_count; i++) {
        (void)json_array_append_new(boards, make_board(file, &now->board[i], level, &good));
    }
    for (uint32_t i = 0; level < NO_WIRES && i < now->wire_count; i++) {
        if (level == ALL || strcmp(now->wire[i].kind, "hop") == 0) {
            (void)json_array_append_new(wires, make_wire(file, &now->wire[i], &good));
        }
    }
    rp_json_put(root, "boards", boards, &good);
    rp_json_put(root, "wires", wires, &good);
    if (level == ALL && now->site_count > 0) {
        rp_json_put(root, "sites", make_sites(now, &good), &good);
    }
    const size_t bytes = good ? json_dumpb(root, file->text, RP_NOW_BYTES_MAX - 1,
                                           JSON_COMPACT | JSON_REAL_PRECISION(DIGITS))
                              : 0;
    json_decref(root);
    if (bytes == 0 || bytes >= RP_NOW_BYTES_MAX - 1) {
        return 0;
    }
    file->text[bytes] = '\n';
    return bytes + 1;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Without fsync: after a crash of the machine nothing in it is true any more, and a slow disk must
 * not hold up the run. */
static bool replace_file(const char *path, const char *text, size_t bytes) {
    char temporary[RP_NOW_PATH_BYTES];
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= RP_NOW_PATH_BYTES) {
        return false;
    }
    const int fd = rp_replace_open(temporary, O_WRONLY | O_TRUNC | O_NONBLOCK);
    const bool opened = fd >= 0;
    bool good = opened && write(fd, text, bytes) == (ssize_t)bytes;
    good = opened && close(fd) == 0 && good;
    good = good && rename(temporary, path) == 0;
    if (opened && !good) {
        (void)unlink(temporary);
    }
    return good;
}

static bool write_to(const rp_now_file *file, const rp_now *now, const char *path) {
    size_t bytes = 0;
    for (uint32_t level = ALL; level < DETAILS && bytes == 0; level++) {
        bytes = print_now(file, now, (detail)level);
    }
    return bytes > 0 && replace_file(path, file->text, bytes);
}

void rp_now_write(const rp_now_file *file, const rp_now *now) {
    char memory[RP_NOW_PATH_BYTES];
    char path[RP_NOW_PATH_BYTES];
    const bool has_memory = rp_now_runtime_place(file->folder, true, memory);
    if (has_memory && write_to(file, now, memory)) {
        return;
    }
    if (rp_now_folder_place(file->folder, path) && write_to(file, now, path) && has_memory) {
        (void)unlink(memory); /* readers would prefer its old state */
    }
}

void rp_now_end(const rp_now_file *file, const rp_now *now) {
    char path[RP_NOW_PATH_BYTES];
    const bool kept = now && rp_now_folder_place(file->folder, path) && write_to(file, now, path);
    if (kept && rp_now_runtime_place(file->folder, false, path)) {
        (void)unlink(path);
    }
}
