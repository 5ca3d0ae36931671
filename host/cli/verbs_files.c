/* Verbs about files: keys, data sets, weights, drawings. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors.h"
#include "cli/cli.h"
#include "cli/draw.h"
#include "cli/draw_plan.h"
#include "data/fetch.h"
#include "link/link.h"

static rp_err draw_plan(const char *path) {
    rp_arena arena;
    rp_plan *plan;
    rp_err err;
    rp_arena_init(&arena, "plan", 0);
    RP_TRY(rp_plan_read(&arena, path, &plan));
    RP_TRY(rp_plan_check(plan, NULL));
    RP_TRY(rp_draw_plan(stdout, plan));
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_verb_draw(const rp_cli_args *args) {
    if (strcmp(args->word[0], "table") == 0) {
        return rp_draw_table(stdout);
    }
    const char *end = strrchr(args->word[0], '.');
    if (end && strcmp(end, ".json") == 0) {
        return draw_plan(args->word[0]);
    }
    const rp_sched_kind *kind = rp_sched_find(args->word[0]);
    if (!kind) {
        char known[256] = "table";
        for (uint32_t i = 0; rp_sched_kinds[i]; i++) {
            size_t used = strlen(known);
            (void)snprintf(known + used, sizeof known - used, " %s", rp_sched_kinds[i]->name);
        }
        return rp_fail(RP_ERR_USAGE, "no schedule '%s'; there are: %s", args->word[0], known);
    }
    bool svg = strcmp(args->format, "svg") == 0;
    const uint32_t chunks = args->chunks ? args->chunks : kind->interleaves ? 2 : 1;
    return rp_draw_chunks(stdout, kind, args->stages, chunks, args->micro, svg);
}

static const char *keys_folder(const rp_cli_args *args, char *out, size_t bytes) {
    const char *home = getenv("HOME");
    (void)snprintf(out, bytes, "%s/.config/ringpipe/keys", home ? home : ".");
    return args->dir ? args->dir : out;
}

rp_err rp_verb_keys(const rp_cli_args *args) {
    char own[512];
    const char *folder = keys_folder(args, own, sizeof own);
    rp_keypair pair;
    rp_err err;
    if (strcmp(args->word[0], "new") == 0 && args->word_count == 1) {
        RP_TRY(rp_keys_new(folder));
        RP_TRY(rp_keys_read(folder, &pair));
        (void)printf("%s\n", pair.public_text);
        return RP_OK;
    }
    if (strcmp(args->word[0], "show") == 0 && args->word_count == 1) {
        RP_TRY(rp_keys_read(folder, &pair));
        (void)printf("%s\n", pair.public_text);
        return RP_OK;
    }
    if (strcmp(args->word[0], "trust") == 0 && args->word_count == 3) {
        return rp_keys_trust(folder, args->word[1], args->word[2]);
    }
    err = rp_fail(RP_ERR_USAGE, "expected: keys new | keys show | keys trust NAME KEY");
fail:
    return err;
}

rp_err rp_verb_data(const rp_cli_args *args) {
    if (strcmp(args->word[0], "fetch") != 0 || !args->to) {
        return rp_fail(RP_ERR_USAGE, "expected: data fetch SET --to DIR");
    }
    return rp_data_fetch(args->word[1], args->to);
}

static const char *type_name(rp_st_type type) {
    static const char *const names[] = {"F32", "I32", "I64", "U8", "F64", "F16", "BF16"};
    return names[type];
}

rp_err rp_verb_inspect(const rp_cli_args *args) {
    rp_arena arena;
    rp_arena_init(&arena, "inspect", 0);
    rp_st_reader *reader = NULL;
    uint64_t total = 0;
    rp_err err;
    RP_TRY(rp_st_open(&arena, args->word[0], &reader));
    for (uint32_t i = 0; i < rp_st_count(reader); i++) {
        const rp_st_entry *entry = rp_st_entry_at(reader, i);
        (void)printf("%-40s %-5s [", entry->name, type_name(entry->type));
        for (uint32_t d = 0; d < entry->dims; d++) {
            (void)printf("%s%" PRIu64, d ? ", " : "", entry->dim[d]);
        }
        (void)printf("]  %" PRIu64 " bytes\n", entry->bytes);
        total += entry->bytes;
    }
    static const char *const keys[] = {"model", "schedule", "step", "applied", "seed", "format"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = rp_st_meta(reader, keys[i]);
        if (value) {
            (void)printf("%s: %s\n", keys[i], value);
        }
    }
    (void)printf("%u tensors, %" PRIu64 " bytes\n", rp_st_count(reader), total);
fail:
    rp_st_close(&reader);
    rp_arena_finish(&arena);
    return err;
}
