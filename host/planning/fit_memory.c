#include "planning/fit_memory.h"

#include <string.h>

#include "stage/layout.h"

enum { ALIGN_BYTES = 128, GROUPS_MAX = 8 };

typedef struct {
    rp_arena *arena; /* the plan's */
    rp_arena scratch;
    const rp_runfile *run;
    const rp_cut *cut;
    rp_plan *plan;
    rp_job job; /* of stage 0, with all else that boards get */
} fitting;

static rp_err read_job(fitting *f) {
    rp_node *root;
    char *text;
    rp_err err;
    RP_TRY(rp_runfile_assignment(&f->scratch, f->run, f->cut, 0, NULL, &text));
    RP_TRY(rp_config_read_text(&f->scratch, text, strlen(text), "assignment", &root));
    RP_TRY(rp_job_parse(&f->scratch, root, f->run->model_root, &f->job));
    RP_TRY(rp_plan_sizes(&f->scratch, f->plan, &f->job.size));
fail:
    return err;
}

/* `again`: in groups that begin where `begins` says. */
static rp_err stage_bytes(const fitting *f, const rp_plan_hold *hold, bool again,
                          const bool *begins, uint64_t *out) {
    rp_layout *layout;
    rp_arena arena;
    rp_err err;
    rp_job job = f->job;
    job.stage = hold->stage;
    memcpy(job.share, hold->share, sizeof job.share);
    rp_plan_codecs_of(f->plan, hold->stage, job.codec);
    job.role = hold->role;
    job.recompute = again;
    job.group_begins = begins;
    job.offload = rp_offload_find(f->plan->stage[hold->stage].offload);
    rp_arena_init(&arena, "layout", 0);
    RP_TRY(rp_layout_make(&arena, &job, RP_GEMM_PANEL, ALIGN_BYTES, &layout));
    *out = layout->total_bytes;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Groups of about as many bytes of activations each. */
static void share_out(const fitting *f, uint32_t stage, uint32_t groups, bool *begins) {
    const rp_model *model = f->job.model;
    const uint32_t first = f->cut->first[stage];
    const uint32_t end = f->cut->first[stage + 1];
    double all = 0;
    double sum = 0;
    memset(begins, 0, model->layer_count * sizeof *begins);
    for (uint32_t i = first; i < end; i++) {
        all += (double)rp_shape_count(&model->plan[i].out);
    }
    for (uint32_t i = first, g = 1; i + 1 < end && g < groups; i++) {
        sum += (double)rp_shape_count(&model->plan[i].out);
        if (sum * groups >= all * g) {
            begins[i + 1] = true;
            g++;
        }
    }
}

static rp_err take_groups(fitting *f, uint32_t k, const bool *begins) {
    rp_plan_stage *stage = &f->plan->stage[k];
    rp_err err;
    RP_TRY(RP_ARENA_NEW(f->arena, stage->layer_count + 1, &stage->group));
    stage->recompute = true;
    stage->group_count = 0;
    for (uint32_t i = 1; i < stage->layer_count; i++) {
        if (begins[f->cut->first[k] + i]) {
            stage->group[stage->group_count++] = stage->layer[i];
        }
    }
fail:
    return err;
}

/* The groups with which the stage needs least; false: none needs less than `*bytes`. */
static rp_err shrink(fitting *f, const rp_plan_hold *hold, uint64_t *bytes, bool *done) {
    const uint64_t before = *bytes;
    bool *begins;
    uint32_t best = 0;
    char *why;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&f->scratch, f->job.model->layer_count, &begins));
    for (uint32_t groups = 1; groups <= GROUPS_MAX; groups++) {
        uint64_t own = 0;
        share_out(f, hold->stage, groups, begins);
        RP_TRY(stage_bytes(f, hold, true, begins, &own));
        if (own < *bytes) {
            *bytes = own;
            best = groups;
        }
    }
    *done = best > 0;
    if (best > 0) {
        share_out(f, hold->stage, best, begins);
        RP_TRY(take_groups(f, hold->stage, begins));
        RP_TRY(rp_arena_printf(f->arena, &why, "%.1f MiB in the place of %.1f",
                               (double)*bytes / (1 << 20), (double)before / (1 << 20)));
        f->plan->stage[hold->stage].memory_why = why;
    }
fail:
    return err;
}

static rp_err refuse(const fitting *f, uint32_t node, uint64_t plain, uint64_t least,
                     const char *why_not) {
    const double mb = 1e-6;
    char again[200] = "";
    if (why_not) {
        (void)snprintf(again, sizeof again, " (recompute is not for schedule %s: %s)",
                       f->plan->method.kind->name, why_not);
    } else if (least < plain) {
        (void)snprintf(again, sizeof again, ", %.2f with forwards computed again",
                       (double)least * mb);
    }
    return rp_fail(RP_ERR_USAGE,
                   "plan: board %s needs %.2f MB of device memory%s, and may use %.2f "
                   "(ring.memory_mb). Expected a smaller train.microbatch, a schedule with fewer "
                   "microbatches in flight, more boards, or more memory",
                   rp_plan_node_name(f->plan, node), (double)plain * mb, again,
                   (double)f->plan->node[node].memory_bytes * mb);
}

/* Of a stage that another of its boards has made to fit. */
static void note_groups(const fitting *f, const rp_plan_stage *stage, bool *begins) {
    memset(begins, 0, f->job.model->layer_count * sizeof *begins);
    for (uint32_t g = 0; g < stage->group_count; g++) {
        begins[rp_model_find(f->job.model, stage->group[g])] = true;
    }
}

static rp_err fit_node(fitting *f, uint32_t node) {
    const rp_plan_node *at = &f->plan->node[node];
    const rp_plan_hold *hold = &f->plan->hold[at->hold_first];
    uint64_t *bytes;
    bool *tried;
    bool *begins;
    uint64_t sum = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&f->scratch, at->hold_count, &bytes));
    RP_TRY(RP_ARENA_NEW(&f->scratch, at->hold_count, &tried));
    RP_TRY(RP_ARENA_NEW(&f->scratch, f->job.model->layer_count, &begins));
    for (uint32_t h = 0; h < at->hold_count; h++) {
        const rp_plan_stage *stage = &f->plan->stage[hold[h].stage];
        const bool parts = f->plan->method.kind->sizes && !stage->as_forward;
        tried[h] = stage->recompute || rp_method_refuses_again(&f->plan->method, parts);
        note_groups(f, stage, begins);
        RP_TRY(stage_bytes(f, &hold[h], stage->recompute, begins, &bytes[h]));
        sum += bytes[h];
    }
    const uint64_t plain = sum;
    while (sum > at->memory_bytes) {
        uint32_t most = at->hold_count;
        bool done;
        for (uint32_t h = 0; h < at->hold_count; h++) {
            most = !tried[h] && (most == at->hold_count || bytes[h] > bytes[most]) ? h : most;
        }
        if (most == at->hold_count) {
            return refuse(f, node, plain, sum, rp_method_refuses_again(&f->plan->method, false));
        }
        tried[most] = true;
        sum -= bytes[most];
        RP_TRY(shrink(f, &hold[most], &bytes[most], &done));
        sum += bytes[most];
    }
fail:
    return err;
}

static rp_err take_said(fitting *f) {
    const rp_plan *plan = f->plan;
    bool *stage;
    bool *begins;
    bool is_auto;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&f->scratch, plan->stage_count, &stage));
    RP_TRY(RP_ARENA_NEW(&f->scratch, f->run->model->layer_count, &begins));
    RP_TRY(rp_again_read(f->run->root, f->run->model, f->cut, stage, begins, &is_auto));
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        RP_TRY(stage[k] ? take_groups(f, k, begins) : RP_OK);
    }
fail:
    return err;
}

static rp_err take_offload(fitting *f) {
    rp_offload *stage;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&f->scratch, f->plan->stage_count, &stage));
    RP_TRY(rp_offload_read(f->run->root, f->plan->stage_count, stage));
    for (uint32_t k = 0; k < f->plan->stage_count; k++) {
        const rp_offload said = stage[k] == RP_OFFLOAD_AUTO ? RP_OFFLOAD_NONE : stage[k];
        f->plan->stage[k].offload = rp_offload_name(said);
    }
fail:
    return err;
}

rp_err rp_fit_memory(rp_arena *arena, const rp_runfile *run, const rp_cut *cut, rp_plan *plan) {
    fitting f = {.arena = arena, .run = run, .cut = cut, .plan = plan};
    bool has_job = false;
    rp_err err = RP_OK;
    rp_arena_init(&f.scratch, "memory", 0);
    RP_TRY(take_offload(&f));
    if (!run->recompute_auto) {
        RP_TRY(take_said(&f));
    }
    /* With `advance: auto` memory decides how many are in flight: boards say what they have room
     * for. */
    const bool chooses = run->recompute_auto && !run->method.advance_auto;
    for (uint32_t k = 0; chooses && k < plan->node_count; k++) {
        if (plan->node[k].memory_bytes > 0) {
            RP_TRY(has_job ? RP_OK : read_job(&f));
            has_job = true;
            RP_TRY(fit_node(&f, k));
        }
    }
fail:
    rp_arena_finish(&f.scratch);
    return err;
}
