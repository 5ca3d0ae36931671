/* Files that a site sends or keeps: whatever their bytes, an error, or files whose values are all
 * finite. The first byte tells which codec is in use, and what the bytes after it are: an update,
 * the state of a site, or start.safetensors. */
#include "fuzz.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sites/start.h"
#include "sites/state.h"
#include "sites/update.h"

enum { MANY = 260, PATH_BYTES = 96 }; /* two blocks of topk, the second one short */

static rp_model_param params[] = {
    {.name = "body", .owner = 0, .count = MANY},
    {.name = "var", .owner = 1, .count = 2, .role = RP_PARAM_STATE},
    {.name = "head", .owner = 2, .count = 2},
};
static const rp_model model = {.param_count = 3, .param = params};
static const char *const heads[] = {"head"};
static char given[PATH_BYTES], sent[PATH_BYTES], out[PATH_BYTES], errors[PATH_BYTES];
static char update[PATH_BYTES];

static void put(const char *path, const void *bytes, size_t count) {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    RP_ASSERT(file >= 0 && write(file, bytes, count) == (ssize_t)count && close(file) == 0);
}

/* Weights of a round: a tensor that is coded, running statistics, a tensor that the site keeps, one
 * that the model does not have, a count. */
static void make_given(void) {
    static const char *const meta[] = {"format", "pt", NULL};
    static const rp_st_entry entry[] = {{"body", RP_ST_F32, 2, {MANY / 2, 2}, 0, MANY * 4},
                                        {"count", RP_ST_I64, 0, {0}, 0, 8},
                                        {"head", RP_ST_F32, 1, {2}, 0, 8},
                                        {"other", RP_ST_F32, 1, {2}, 0, 8},
                                        {"var", RP_ST_F32, 1, {2}, 0, 8}};
    static const uint8_t zeros[MANY * 4];
    rp_st_writer *writer = NULL;
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 0);
    RP_ASSERT(rp_st_create(&arena, given, entry, 5, meta, false, &writer) == RP_OK);
    for (uint32_t i = 0; i < 5; i++) {
        RP_ASSERT(rp_st_write(writer, i, 0, zeros, (size_t)entry[i].bytes) == RP_OK);
    }
    RP_ASSERT(rp_st_commit(&writer) == RP_OK);
    rp_arena_finish(&arena);
}

static char folder[] = "/dev/shm/rp-fuzz-XXXXXX";

static void remove_folder(void) {
    const char *const paths[] = {given, sent, out, errors, update};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        (void)unlink(paths[i]);
    }
    (void)rmdir(folder);
}

static void make_folder(void) {
    if (!given[0]) {
        RP_ASSERT(mkdtemp(folder));
        (void)snprintf(given, sizeof given, "%s/given", folder);
        (void)snprintf(sent, sizeof sent, "%s/sent", folder);
        (void)snprintf(out, sizeof out, "%s/out", folder);
        (void)snprintf(errors, sizeof errors, "%s/errors", folder);
        (void)snprintf(update, sizeof update, "%s/update", folder);
        make_given();
        RP_ASSERT(atexit(remove_folder) == 0);
    }
}

/* Every tensor of floats is as many finite numbers as its shape says. */
static void check_file(rp_arena *arena, const char *path, bool has_given) {
    rp_st_reader *reader = NULL;
    const float *value;
    RP_ASSERT(rp_st_open(arena, path, &reader) == RP_OK);
    RP_ASSERT(rp_st_check_sums(reader) == RP_OK);
    for (uint32_t i = 0; i < rp_st_count(reader); i++) {
        const rp_st_entry *entry = rp_st_entry_at(reader, i);
        if (rp_st_is_float(entry->type)) {
            RP_ASSERT(rp_st_need_f32(reader, entry->name, entry->dims, entry->dim, &value) ==
                      RP_OK);
        }
    }
    RP_ASSERT(!has_given ||
              rp_st_need_f32(reader, "body", 2, (uint64_t[]){MANY / 2, 2}, &value) == RP_OK);
    rp_st_close(&reader);
}

static void read_update(rp_arena *arena, const rp_round_rules *rules) {
    const rp_update_facts facts = {
        .rules = rules, .model = &model, .given = given, .digest = "0011"};
    if (rp_update_read(arena, &facts, sent, out) == RP_OK) {
        check_file(arena, out, true);
    }
}

/* As the start of the run, from which a site's update is then made. */
static void read_start(rp_arena *arena, const rp_round_rules *rules, const char *path) {
    const rp_update_facts facts = {
        .rules = rules, .model = &model, .given = given, .digest = "0011"};
    const rp_update_files files = {
        .trained = given, .start = path, .update = update, .errors = errors};
    rp_site_difference difference;
    rp_site_start start;
    if (rp_site_read_start(arena, path, &start) == RP_OK) {
        RP_ASSERT(start.optimizer == (start.updates > 0));
    }
    if (rp_update_write(arena, &facts, &files, &difference) == RP_OK) {
        check_file(arena, errors, true);
        RP_ASSERT(rp_update_read(arena, &facts, update, out) == RP_OK);
    }
}

static void read_state(rp_arena *arena, const rp_round_rules *rules) {
    const rp_site_start_order order = {.rules = rules,
                                       .given = given,
                                       .state = sent,
                                       .round = 7,
                                       .from = 6,
                                       .site = "a",
                                       .optimizer = "sgd"};
    if (rp_site_make_start(arena, &order, out) == RP_OK) {
        check_file(arena, out, true);
        read_start(arena, rules, out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    const uint8_t first = count > 0 ? bytes[0] : 0;
    const rp_round_rules rules = {.keep = heads,
                                  .keep_count = 1,
                                  .drift = true,
                                  .keeps_optimizer = true,
                                  .delta = first % 2
                                               ? (rp_delta){.kind = RP_DELTA_TOPK, .share = 0.05}
                                               : (rp_delta){.kind = RP_DELTA_INT8}};
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 64 << 20);
    make_folder();
    put(sent, bytes + (count > 0), count - (count > 0));
    switch (first / 2 % 3) {
    case 0:
        read_update(&arena, &rules);
        break;
    case 1:
        read_state(&arena, &rules);
        break;
    default:
        read_start(&arena, &rules, sent);
    }
    rp_arena_finish(&arena);
    return 0;
}
