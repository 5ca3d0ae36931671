/* Takes choices that were made before: from the user's plan, or from run.yaml, plan.json and the
 * checkpoint of a resumed run. */
#include <stdio.h>
#include <string.h>

#include "planning/planfile.h"
#include "setup/setup_own.h"

/* ---- run.yaml -------------------------------------------------------------------------------- */

static void resume_micro(const rp_arrangement *a, rp_node *before, rp_setup *next) {
    rp_node *train = rp_node_find(before, "train");
    uint32_t micro = 0;
    if (next->micro_auto && train &&
        rp_node_u32(train, "microbatch", 1, a->run.batch, &micro) == RP_OK && micro > 0) {
        next->micro = micro;
        next->micro_auto = false;
    }
}

static void take_schedule(const rp_arrangement *a, uint32_t index, rp_setup *next) {
    if (next->schedule_auto && index < a->opened.schedules.count) {
        next->schedule_auto = false;
        if (index > 0) {
            rp_setup_take_schedule(next, &a->opened, index);
        }
    }
}

static void resume_schedule(const rp_arrangement *a, rp_node *before, rp_setup *next) {
    rp_method method;
    if (next->schedule_auto && rp_method_parse(before, a->run.boards, &method) == RP_OK) {
        take_schedule(a, rp_schedules_find(&a->opened.schedules, &method, a->run.boards), next);
    }
}

/* run.yaml has the choices for the whole run. If it cannot be read, the error is reported later. */
rp_err rp_arrangement_resume_choices(rp_arrangement *a) {
    rp_setup next = a->now;
    rp_arena arena;
    rp_node *before;
    rp_err err = RP_OK;
    if (!a->resume || !(next.micro_auto || next.schedule_auto)) {
        return RP_OK;
    }
    rp_arena_init(&arena, "run.yaml", 0);
    if (rp_config_read_file(&arena, rp_folder_paths_of(a->folder)->run_yaml, &before) == RP_OK) {
        resume_micro(a, before, &next);
        resume_schedule(a, before, &next);
        RP_TRY(rp_arrangement_take(a, &next, NULL));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- a checkpoint ---------------------------------------------------------------------------- */

bool rp_ahead_is_wanted(const rp_arrangement *a) {
    return a->run.method.ahead_measured && !a->evaluates;
}

static void take_ahead(const rp_arrangement *a, const uint16_t *ahead, uint32_t count,
                       rp_setup *next) {
    if (rp_ahead_is_wanted(a) && count == next->stages) {
        memcpy(next->ahead, ahead, count * sizeof *ahead);
        next->ahead_count = count;
        next->ahead_auto = false;
    }
}

rp_err rp_ahead_take(rp_arrangement *a, const uint16_t *ahead, uint32_t count) {
    rp_setup next = a->now;
    take_ahead(a, ahead, count, &next);
    return rp_arrangement_take(a, &next, NULL);
}

/* Other codecs or sizes would change bits. */
rp_err rp_arrangement_resume(rp_arrangement *a) {
    const rp_setup *then = &a->position->setup;
    const bool same = then->cut.stage_count == a->run.stages && !rp_arrangement_is_fixed(a);
    rp_setup next = a->now;
    if (same && a->run.codec_auto && then->codec && then->codec_stages == a->run.stages) {
        next.codec = then->codec;
        next.codec_stages = then->codec_stages;
        a->codecs.measured = true;
    }
    if (same && a->run.sizes.planner && then->size && then->size_stages == a->run.stages) {
        next.size = then->size;
        next.size_stages = then->size_stages;
    }
    if (a->run.method.advance_auto) {
        rp_setup_take_advance(&next, then->advance);
    }
    take_ahead(a, then->ahead, then->ahead_count, &next);
    return rp_arrangement_take(a, &next, NULL);
}

/* ---- a plan ---------------------------------------------------------------------------------- */

/* Takes the shared stages, and codecs and sizes if the planner has chosen them. */
static void take_shares(const rp_setup *by_plan, const rp_runfile *run, rp_setup *next) {
    next->group = by_plan->group;
    next->share = by_plan->share;
    if (run->codec_auto) {
        next->codec = by_plan->codec;
        next->codec_stages = by_plan->codec_stages;
    }
    if (run->sizes.planner) {
        next->size = by_plan->size;
        next->size_stages = by_plan->size_stages;
    }
}

/* Takes the plan's stages, microbatch and method. */
static rp_err take_plan(rp_arrangement *a, rp_arena *arena, rp_plan *plan, bool is_own) {
    const rp_schedules *all = &a->opened.schedules;
    rp_setup next = a->now;
    rp_setup by_plan;
    rp_err err;
    RP_TRY(rp_position_setup(arena, &a->run, plan, &by_plan));
    next.stages = by_plan.stages; /* boards may share a stage */
    next.cut = by_plan.cut;
    next.micro = plan->micro; /* effective if the run file says auto */
    a->former = is_own && by_plan.group ? plan : NULL;
    a->given = a->former ? NULL : plan;
    if (a->former) {
        take_shares(&by_plan, &a->run, &next);
    }
    take_schedule(a, rp_schedules_find(all, &plan->method, plan->stage_count), &next);
    RP_TRY(rp_arrangement_take(a, &next, NULL));
    rp_arrangement_adopt_advance(a, plan->method.advance);
    RP_TRY(rp_ahead_take(a, plan->method.ahead, plan->method.ahead_count));
fail:
    return err;
}

/* Finds plan.json of the resumed run, if it has shared stages that the run chose itself. */
static rp_err find_own_plan(const rp_arrangement *a, rp_arena *arena, char **path) {
    *path = NULL;
    return a->resume && a->run.cut_auto && rp_about_plan_is(a->resume, "shared")
               ? rp_arena_printf(arena, path, "%s/plan.json", a->resume)
               : RP_OK;
}

rp_err rp_arrangement_read_plan(rp_arrangement *a, const char *executor) {
    const char *path = a->given_path;
    rp_arena arena;
    rp_plan *plan;
    char *own;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "plan", 0);
    if (!path) {
        RP_TRY(find_own_plan(a, a->arena,
                             &own)); /* not in `arena`, because the plan names it in messages */
        path = own;
    }
    if (path) {
        RP_TRY(rp_planfile_read(a->arena, path, &a->run, executor, &plan));
        RP_TRY(take_plan(a, &arena, plan, !a->given_path));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
