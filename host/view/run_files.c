#include "view/run_files.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runs/now_place.h"
#include "runs/tail.h"

enum {
    PATH_BYTES = 4096,
    JSON_BYTES_MAX = 16 * 1048576,
    TEXT_MAX = 200,
    STAGES_MAX = 64,
    WIRES_MAX = 4 * RP_VIEW_BOARDS_MAX
};

/* ---- values ---------------------------------------------------------------------------------- */

/* NULL: missing, not a regular file, too long, or not JSON. */
static json_t *load(const char *path, off_t most) {
    struct stat facts;
    json_t *root = NULL;
    const int fd = rp_tail_open(path);
    if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_size <= most) {
        root = json_loadfd(fd, 0, NULL);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return root;
}

static json_t *load_in(const char *folder, const char *name) {
    char path[PATH_BYTES];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_BYTES
               ? load(path, JSON_BYTES_MAX)
               : NULL;
}

/* NAN: missing, negative or not finite. */
static double real_of(const json_t *from, const char *key) {
    const json_t *value = json_object_get(from, key);
    const double number = json_number_value(value);
    return json_is_number(value) && isfinite(number) && number >= 0 ? number : (double)NAN;
}

static double share_of(const json_t *from, const char *key) {
    const double value = real_of(from, key);
    return value <= 1 ? value : (double)NAN;
}

/* A text without control characters, cut at TEXT_MAX bytes; "": missing. */
static rp_err text_of(rp_arena *arena, const json_t *value, const char **out) {
    const char *text = json_string_value(value);
    size_t length = text ? strlen(text) : 0;
    char *copy;
    if (length > TEXT_MAX) {
        for (length = TEXT_MAX; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;) {
            length--;
        }
    }
    const rp_err err = rp_arena_text(arena, text ? text : "", length, &copy);
    for (char *at = copy; err == RP_OK && *at; at++) {
        *at = (unsigned char)*at < ' ' || *at == 127 ? '?' : *at;
    }
    *out = err == RP_OK ? copy : "";
    return err;
}

static void forget_board(rp_view_board *board) {
    *board = (rp_view_board){.name = "", .state = "", .op = "", .layers = "", .stages = ""};
    board->role = "";
    board->layer_count = board->busy = board->idle_s = (double)NAN;
    board->memory_bytes = board->heat_c = board->power_w = board->energy_j = (double)NAN;
    board->silent_s = board->staleness = (double)NAN;
    for (uint32_t i = 0; i < RP_VIEW_OPS; i++) {
        board->op_s[i] = (double)NAN;
    }
}

/* The board of this name, which is added if it is new. NULL: too many. */
static rp_view_board *board_of(rp_view_facts *facts, const char *name) {
    for (uint32_t i = 0; i < facts->board_count; i++) {
        if (strcmp(facts->board[i].name, name) == 0) {
            return &facts->board[i];
        }
    }
    if (facts->board_count == facts->board_max) {
        return NULL;
    }
    rp_view_board *board = &facts->board[facts->board_count++];
    forget_board(board);
    board->name = name;
    return board;
}

/* ---- plan.json ------------------------------------------------------------------------------- */

/* "conv1 .. relu2" of all stages that the node holds, and how many. */
static rp_err read_layers(rp_arena *arena, const json_t *node, const json_t *stages,
                          rp_view_board *out) {
    const json_t *holds = json_object_get(node, "holds");
    const char *first = NULL;
    const char *last = NULL;
    double count = 0;
    char *text;
    rp_err err;
    for (size_t h = 0; h < json_array_size(holds) && h < STAGES_MAX; h++) {
        const json_t *stage = json_object_get(json_array_get(holds, h), "stage");
        const json_int_t index = json_is_integer(stage) ? json_integer_value(stage) : -1;
        const json_t *layers =
            index < 0 ? NULL : json_object_get(json_array_get(stages, (size_t)index), "layers");
        const size_t own = json_array_size(layers);
        first = first ? first : json_string_value(json_array_get(layers, 0));
        last = own > 0 ? json_string_value(json_array_get(layers, own - 1)) : last;
        count += (double)own;
        RP_TRY(rp_arena_printf(arena, &text, "%s%s%" PRId64, out->stages, h > 0 ? " " : "",
                               (int64_t)index));
        out->stages = strlen(text) <= TEXT_MAX ? text : out->stages;
    }
    if (!first || !last) {
        return RP_OK;
    }
    RP_TRY(rp_arena_printf(arena, &text, count > 1 ? "%.80s .. %.80s" : "%.80s", first, last));
    out->layers = text;
    out->layer_count = count;
fail:
    return err;
}

static rp_err read_plan(rp_arena *arena, const json_t *plan, rp_view_facts *facts) {
    const json_t *nodes = json_object_get(plan, "nodes");
    const json_t *stages = json_object_get(plan, "stages");
    rp_err err = RP_OK;
    for (size_t k = 0; k < json_array_size(nodes); k++) {
        const json_t *node = json_array_get(nodes, k);
        const json_t *hold = json_array_get(json_object_get(node, "holds"), 0);
        const char *name;
        RP_TRY(text_of(arena, json_object_get(node, "name"), &name));
        rp_view_board *board = board_of(facts, name);
        if (board) {
            RP_TRY(text_of(arena, json_object_get(hold, "role"), &board->role));
            board->role = strcmp(board->role, "both") == 0 ? "" : board->role;
            RP_TRY(read_layers(arena, node, stages, board));
        }
    }
fail:
    return err;
}

/* ---- now.json -------------------------------------------------------------------------------- */

static rp_err read_now_board(rp_arena *arena, const json_t *from, bool active,
                             rp_view_facts *facts) {
    static const char *const ops[RP_VIEW_OPS] = {"forward", "backward", "update"};
    const json_t *seconds = json_object_get(from, "op_s");
    const char *name;
    rp_err err;
    RP_TRY(text_of(arena, json_object_get(from, "name"), &name));
    rp_view_board *board = board_of(facts, name);
    if (!board) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < RP_VIEW_OPS; i++) {
        board->op_s[i] = real_of(seconds, ops[i]);
    }
    board->idle_s = real_of(from, "idle_s");
    board->memory_bytes = real_of(from, "memory_bytes");
    board->energy_j = real_of(from, "energy_j");
    board->staleness = real_of(from, "staleness");
    if (active) { /* what was true at the end of a run is not true now */
        RP_TRY(text_of(arena, json_object_get(from, "state"), &board->state));
        RP_TRY(text_of(arena, json_object_get(from, "op"), &board->op));
        board->busy = share_of(from, "busy");
        board->heat_c = real_of(from, "heat_c");
        board->power_w = real_of(from, "power_w");
        board->silent_s = real_of(from, "silent_s");
    }
fail:
    return err;
}

static rp_err read_now_wire(rp_arena *arena, const json_t *from, bool active, rp_view_wire *out) {
    rp_err err;
    *out = (rp_view_wire){.bytes = real_of(from, "bytes"),
                          .rate_bytes_s = real_of(from, "rate_bytes_s"),
                          .use = share_of(from, "use"),
                          .busy_s = real_of(from, "busy_s"),
                          .queue = active ? real_of(from, "queue") : (double)NAN,
                          .resent = real_of(from, "resent"),
                          .resets = real_of(from, "resets"),
                          .delay_s = {real_of(from, "delay_s"), real_of(from, "delay_95_s")}};
    RP_TRY(text_of(arena, json_object_get(from, "kind"), &out->kind));
    RP_TRY(text_of(arena, json_object_get(from, "from"), &out->from));
    RP_TRY(text_of(arena, json_object_get(from, "to"), &out->to));
fail:
    return err;
}

/* Both files list the sites in the order of the split file. */
static rp_err read_now_sites(rp_arena *arena, const json_t *now, rp_view_facts *facts) {
    const json_t *sites = json_object_get(now, "sites");
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < facts->site_count && i < json_array_size(sites); i++) {
        const json_t *from = json_array_get(sites, i);
        const char *name;
        RP_TRY(text_of(arena, json_object_get(from, "site"), &name));
        if (strcmp(name, facts->site[i].name) == 0) {
            RP_TRY(text_of(arena, json_object_get(from, "state"), &facts->site[i].state));
        }
    }
fail:
    return err;
}

static rp_err read_now(rp_arena *arena, const json_t *now, bool active, rp_view_facts *facts) {
    const json_t *boards = json_object_get(now, "boards");
    const json_t *wires = json_object_get(now, "wires");
    const size_t listed = json_array_size(wires);
    const size_t wire_count = listed < WIRES_MAX ? listed : WIRES_MAX;
    rp_err err = RP_OK;
    for (size_t i = 0; i < json_array_size(boards); i++) {
        RP_TRY(read_now_board(arena, json_array_get(boards, i), active, facts));
    }
    RP_TRY(RP_ARENA_NEW(arena, wire_count + 1, &facts->wire));
    for (size_t i = 0; i < wire_count; i++) {
        RP_TRY(read_now_wire(arena, json_array_get(wires, i), active, &facts->wire[i]));
        facts->wire_count++;
    }
    facts->samples = real_of(now, "samples");
    if (active) {
        struct timespec clock;
        (void)clock_gettime(CLOCK_REALTIME, &clock);
        const double age_s =
            (double)clock.tv_sec + 1e-9 * (double)clock.tv_nsec - real_of(now, "written_s");
        facts->age_s = age_s > 0 ? age_s : isfinite(age_s) ? 0 : (double)NAN;
        facts->left_s = real_of(now, "left_s");
        RP_TRY(text_of(arena, json_object_get(now, "state"), &facts->controller));
        RP_TRY(read_now_sites(arena, now, facts));
    }
fail:
    return err;
}

/* The file of the run's present controller, or the one that the last controller left. *active: it
 * is written now. NULL: none. */
static json_t *load_now(const rp_view_run *run, const rp_run_state *state, bool *active) {
    char path[RP_NOW_PATH_BYTES];
    json_t *root = NULL;
    if (rp_now_runtime_place(run->folder, false, path)) {
        root = load(path, RP_NOW_BYTES_MAX);
        const json_int_t pid = json_integer_value(json_object_get(root, "pid"));
        if (state->owner.life != RP_OWNER_ALIVE || pid != state->owner.pid) {
            json_decref(root);
            root = NULL;
        }
    }
    if (!root && rp_now_folder_place(run->folder, path)) {
        root = load(path, RP_NOW_BYTES_MAX);
    }
    const json_int_t pid = json_integer_value(json_object_get(root, "pid"));
    *active = (state->owner.life == RP_OWNER_ALIVE || state->owner.life == RP_OWNER_ELSEWHERE) &&
              pid == state->owner.pid;
    return root;
}

/* ---- summary.json ---------------------------------------------------------------------------- */

static rp_err read_summary(rp_arena *arena, const json_t *summary, rp_view_facts *facts) {
    const json_t *stages = json_object_get(summary, "stage");
    const json_t *ledger = json_object_get(summary, "ledger");
    const json_t *wires = json_object_get(summary, "wire");
    const size_t listed = json_array_size(wires);
    const size_t count = listed < WIRES_MAX ? listed : WIRES_MAX;
    rp_err err = RP_OK;
    facts->lost = real_of(ledger, "lost");
    facts->repeated = real_of(ledger, "repeated");
    if (!isfinite(facts->samples)) {
        facts->samples = real_of(summary, "samples");
    }
    for (size_t k = 0; k < json_array_size(stages) && k < facts->board_count; k++) {
        rp_view_board *board = &facts->board[k];
        const json_t *stage = json_array_get(stages, k);
        if (!isfinite(board->memory_bytes)) { /* else now.json has it, with earlier starts */
            board->memory_bytes = real_of(stage, "device_bytes_max");
            board->staleness = real_of(stage, "gap_max");
            board->idle_s = real_of(stage, "idle_s");
            board->energy_j = real_of(stage, "energy_j");
        }
    }
    if (facts->wire_count > 0) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &facts->wire));
    for (size_t i = 0; i < count; i++) {
        const json_t *from = json_array_get(wires, i);
        const json_t *end[2] = {json_object_get(from, "from"), json_object_get(from, "to")};
        const char *name[2] = {"host", "host"};
        for (uint32_t e = 0; e < 2; e++) {
            const json_int_t index = json_integer_value(end[e]);
            if (json_is_integer(end[e]) && index >= 0 && index < facts->board_count) {
                name[e] = facts->board[index].name;
            }
        }
        rp_view_wire *wire = &facts->wire[facts->wire_count++];
        RP_TRY(read_now_wire(arena, from, false, wire));
        wire->from = name[0];
        wire->to = name[1];
        wire->rate_bytes_s = 1.25e5 * real_of(from, "rate_mbit");
        wire->use = share_of(from, "utilisation");
        wire->delay_s[0] = 1e-3 * real_of(from, "delay_p50_ms");
        wire->delay_s[1] = 1e-3 * real_of(from, "delay_p95_ms");
    }
fail:
    return err;
}

/* ---- federation.json ------------------------------------------------------------------------- */

static rp_err read_sites(rp_arena *arena, const json_t *root, rp_view_facts *facts) {
    const json_t *sites = json_object_get(root, "sites");
    const size_t listed = json_array_size(sites);
    const size_t count = listed < RP_VIEW_SITES_MAX ? listed : RP_VIEW_SITES_MAX;
    rp_err err;
    facts->round = real_of(root, "round");
    facts->up_bytes = facts->down_bytes = count > 0 ? 0 : (double)NAN;
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &facts->site));
    for (size_t i = 0; i < count; i++) {
        const json_t *from = json_array_get(sites, i);
        rp_view_site *site = &facts->site[facts->site_count++];
        const double round = real_of(from, "last_round");
        RP_TRY(text_of(arena, json_object_get(from, "site"), &site->name));
        site->state = "";
        site->loss = real_of(from, "loss");
        site->samples = real_of(from, "samples");
        site->late = real_of(from, "late");
        site->last_round = round > 0 ? round : (double)NAN;
        facts->up_bytes += real_of(from, "up_bytes");
        facts->down_bytes += real_of(from, "down_bytes");
    }
fail:
    return err;
}

/* ---- a run ----------------------------------------------------------------------------------- */

rp_err rp_view_read(rp_arena *arena, rp_view_run *run, rp_view_facts *out) {
    char path[PATH_BYTES];
    json_t *plan = NULL;
    json_t *now = NULL;
    json_t *summary = NULL;
    json_t *sites = NULL;
    bool active = false;
    rp_arena scratch; /* for the end of the log, which is not kept */
    rp_err err;
    rp_arena_init(&scratch, "state", 0);
    *out = (rp_view_facts){.run = run, .controller = "", .age_s = (double)NAN};
    out->samples = out->left_s = out->lost = out->repeated = (double)NAN;
    if (snprintf(path, sizeof path, "%s/log.jsonl", run->folder) < PATH_BYTES) {
        (void)rp_view_log_update(&run->log, path);
    }
    RP_TRY(rp_run_state_read(&scratch, run->folder, &out->state));
    sites = load_in(run->folder, "federation.json");
    RP_TRY(read_sites(arena, sites, out));
    plan = load_in(run->folder, "plan.json");
    now = load_now(run, &out->state, &active);
    const size_t boards = json_array_size(json_object_get(plan, "nodes")) +
                          json_array_size(json_object_get(now, "boards"));
    out->board_max = boards < RP_VIEW_BOARDS_MAX ? (uint32_t)boards : RP_VIEW_BOARDS_MAX;
    RP_TRY(RP_ARENA_NEW(arena, out->board_max + 1, &out->board));
    RP_TRY(read_plan(arena, plan, out));
    RP_TRY(read_now(arena, now, active, out));
    if (out->state.owner.life == RP_OWNER_NONE) {
        summary = load_in(run->folder, "summary.json");
        RP_TRY(read_summary(arena, summary, out));
    }
    if (!isfinite(out->left_s)) {
        out->left_s = out->state.left_s;
    }
fail:
    rp_arena_finish(&scratch);
    json_decref(plan);
    json_decref(now);
    json_decref(summary);
    json_decref(sites);
    return err;
}

static uint64_t mix(uint64_t sum, const char *path) {
    struct stat facts;
    if (lstat(path, &facts) != 0) {
        return sum * UINT64_C(1099511628211) + 1;
    }
    const uint64_t parts[] = {facts.st_ino, (uint64_t)facts.st_size, (uint64_t)facts.st_mtim.tv_sec,
                              (uint64_t)facts.st_mtim.tv_nsec};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        sum = (sum ^ parts[i]) * UINT64_C(1099511628211); /* FNV-1a's prime */
    }
    return sum;
}

uint64_t rp_view_stamp(const rp_view_run *run) {
    static const char *const names[] = {"now.json", "controller.json", "summary.json", "plan.json",
                                        "log.jsonl"};
    char path[PATH_BYTES];
    uint64_t sum = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (snprintf(path, sizeof path, "%s/%s", run->folder, names[i]) < PATH_BYTES) {
            sum = mix(sum, path);
        }
    }
    return rp_now_runtime_place(run->folder, false, path) ? mix(sum, path) : sum;
}
