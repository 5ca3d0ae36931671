/* draw. */
#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "cli/cli.h"
#include "cli/draw.h"
#include "cli/draw_plan.h"

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
