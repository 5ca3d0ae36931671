/* draw and data fetch. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/input.h"
#include "base/json_print.h"
#include "cli/cli.h"
#include "cli/draw.h"
#include "cli/draw_plan.h"
#include "data/fetch.h"

static rp_err draw_plan(rp_arena *arena, const char *path) {
    rp_plan *plan;
    rp_err err;
    RP_TRY(rp_plan_read(arena, path, &plan));
    RP_TRY(rp_plan_check(plan, NULL));
    RP_TRY(rp_draw_plan(stdout, plan));
fail:
    return err;
}

/* "{kind: pipefb, split: [true, false]}", as under `schedule`; the list gives the number of stages.
 */
static rp_err draw_split(rp_arena *arena, const rp_cli_args *args) {
    rp_node *root;
    rp_method method;
    char *text;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &text, "schedule: %s\n", args->words.item[0]));
    RP_TRY(rp_config_read_text(arena, text, strlen(text), "SCHEDULE", &root));
    RP_TRY(rp_method_parse(root, args->draw.stages, &method));
    if (method.split_count == 0 || method.ahead_count > 0 || method.publish > 1) {
        err = rp_fail(RP_ERR_USAGE,
                      "draw: %s: expected the name of a schedule, or a map with `split` for a kind "
                      "that splits stages, as in {kind: pipefb, split: [true, false]}",
                      args->words.item[0]);
        goto fail;
    }
    const rp_draw_options options = {.kind = method.kind,
                                     .stages = method.split_count,
                                     .whole = method.whole,
                                     .micro = args->draw.micro,
                                     .steady = !args->draw.whole,
                                     .svg = strcmp(args->format, "svg") == 0};
    RP_TRY(rp_draw_schedule(stdout, &options));
fail:
    return err;
}

rp_err rp_verb_draw(rp_arena *arena, const rp_cli_args *args) {
    if (strcmp(args->words.item[0], "table") == 0) {
        return rp_draw_table(stdout);
    }
    const char *end = strrchr(args->words.item[0], '.');
    if (rp_input_is_standard(args->words.item[0]) || (end && strcmp(end, ".json") == 0)) {
        return draw_plan(arena, args->words.item[0]);
    }
    if (args->words.item[0][0] == '{') {
        return draw_split(arena, args);
    }
    const rp_sched_kind *kind = rp_sched_find(args->words.item[0]);
    if (!kind) {
        char known[256] = "table";
        for (uint32_t i = 0; rp_sched_kinds[i]; i++) {
            size_t used = strlen(known);
            (void)snprintf(known + used, sizeof known - used, " %s", rp_sched_kinds[i]->name);
        }
        return rp_fail(RP_ERR_USAGE, "unknown schedule '%s'; expected one of: %s",
                       args->words.item[0], known);
    }
    const uint32_t chunks = args->draw.chunks ? args->draw.chunks : kind->interleaves ? 2 : 1;
    const rp_draw_options options = {.kind = kind,
                                     .stages = args->draw.stages,
                                     .chunks = chunks,
                                     .micro = args->draw.micro,
                                     .steady = !kind->flushed && !args->draw.whole && chunks == 1,
                                     .svg = strcmp(args->format, "svg") == 0};
    return rp_draw_schedule(stdout, &options);
}

/* Prints names and sizes of the fetched files. */
static rp_err print_fetched(const rp_cli_args *args) {
    const bool json = rp_cli_is_json(args);
    const char *name;
    json_t *files = json_array();
    for (uint32_t i = 0; (name = rp_data_fetch_file(args->words.item[0], i)) != NULL; i++) {
        char path[4096];
        struct stat facts = {0};
        (void)snprintf(path, sizeof path, "%s/%s", args->to, name);
        if (stat(path, &facts) != 0) {
            json_decref(files);
            return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
        }
        (void)json_array_append_new(
            files, json_pack("{s:s, s:I}", "name", name, "bytes", (json_int_t)facts.st_size));
        if (!json) {
            (void)printf("%-28s %12lld bytes\n", name, (long long)facts.st_size);
        }
    }
    json_t *object = json_pack("{s:i, s:s, s:s, s:o}", "version", 1, "set", args->words.item[0],
                               "folder", args->to, "files", files);
    if (json) {
        return rp_json_print(object, 0, stdout);
    }
    json_decref(object);
    return RP_OK;
}

rp_err rp_verb_data_fetch(rp_arena *arena, const rp_cli_args *args) {
    (void)arena;
    const rp_err err = rp_data_fetch(args->words.item[0], args->from, args->to);
    return err == RP_OK ? print_fetched(args) : err;
}
