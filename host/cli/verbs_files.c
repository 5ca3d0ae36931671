/* Verbs about files: keys, data sets, drawings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "cli/cli.h"
#include "cli/draw.h"
#include "cli/draw_plan.h"
#include "data/fetch.h"

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
    if (rp_input_is_standard(args->word[0]) || (end && strcmp(end, ".json") == 0)) {
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
    if (!kind->flushed && !args->whole && chunks == 1) {
        return rp_draw_steady(stdout, kind, args->stages, args->micro, svg);
    }
    return rp_draw_chunks(stdout, kind, args->stages, chunks, args->micro, svg);
}

rp_err rp_verb_data(const rp_cli_args *args) {
    if (strcmp(args->word[0], "fetch") != 0 || !args->to) {
        return rp_fail(RP_ERR_USAGE, "expected: data fetch SET --to DIR [--from ADDRESS]");
    }
    return rp_data_fetch(args->word[1], args->from, args->to);
}
