#include "planning/fit_memory.h"

#include <math.h>
#include <string.h>

#include "planning/offload.h"
#include "stage/layout.h"

enum { ALIGN_BYTES = 128, GROUPS_MAX = 8 }; /* usual alignment of devices; groups to try */

typedef struct {
    rp_arena *arena; /* for the plan */
    rp_arena scratch;
    const rp_runfile *run;
    const rp_cut *cut;
    const rp_profile *profile; /* may be NULL */
    rp_plan *plan;
    rp_job job;          /* of stage 0; only stage, share, codecs and role differ between holds */
    rp_offload *offload; /* by stage, from the run file */
    bool changed;        /* some stage has changed */
} fitting;

/* One way to reduce a stage's bytes on its device. */
typedef struct {
    bool again;
    uint32_t groups; /* of recompute */
    rp_offload offload;
    uint32_t leave;       /* tensors of a stash that are offloaded; 0: all, if any */
    uint64_t bytes;       /* needed on the device */
    uint64_t stash_bytes; /* of a microbatch that are offloaded */
    uint64_t stay_bytes;  /* of a microbatch that stay, if others are offloaded */
    double cost_s;        /* additional seconds of a microbatch; INFINITY: unknown */
} way;

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

static rp_err lay_out(rp_arena *arena, const fitting *f, const rp_plan_hold *hold,
                      const bool *begins, const way *of, rp_layout **out) {
    rp_job job = f->job;
    job.stage = hold->stage;
    memcpy(job.share, hold->share, sizeof job.share);
    rp_plan_codecs_of(f->plan, hold->stage, job.codec);
    job.role = hold->role;
    job.recompute = of->again;
    job.group_begins = begins;
    job.offload = of->offload;
    job.leave_tensors = of->leave;
    return rp_layout_make(arena, &job, RP_GEMM_PANEL, ALIGN_BYTES, out);
}

/* Sets the bytes of a way by its layout. `begins`: the layers at which its groups begin. `room`:
 * offload only as many tensors of a stash as are needed to fit into that; 0: as the way says. */
static rp_err count_way(const fitting *f, const rp_plan_hold *hold, const bool *begins,
                        uint64_t room, way *out) {
    rp_layout *layout;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "layout", 0);
    RP_TRY(lay_out(&arena, f, hold, begins, out, &layout));
    const uint32_t least = rp_layout_leave_least(layout, room);
    if (room > 0 && least < layout->leave_count) {
        out->leave = least;
        RP_TRY(lay_out(&arena, f, hold, begins, out, &layout));
    }
    out->bytes = layout->total_bytes;
    out->stash_bytes = layout->leave_bytes;
    out->stay_bytes = layout->leave_count > 0 ? layout->slot_bytes - layout->leave_bytes : 0;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Divides a stage into groups with about equal bytes of activations. */
static void divide_stage(const fitting *f, uint32_t stage, uint32_t groups, bool *begins) {
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

/* Reads the groups of a stage that another of its boards has already changed. */
static void note_groups(const fitting *f, const rp_plan_stage *stage, bool *begins) {
    memset(begins, 0, f->job.model->layer_count * sizeof *begins);
    for (uint32_t g = 0; g < stage->group_count; g++) {
        begins[rp_model_find(f->job.model, stage->group[g])] = true;
    }
}

/* ---- ways ------------------------------------------------------------------------------------ */

/* Where the stage may offload its stashes; NONE: nowhere, or the board is unknown. */
static rp_offload offload_of(const fitting *f, uint32_t node, uint32_t stage) {
    if (f->offload[stage] != RP_OFFLOAD_AUTO || rp_method_is_split(&f->plan->method, stage) ||
        !f->profile) {
        return RP_OFFLOAD_NONE;
    }
    switch (rp_profile_board_at(f->profile, node)->device_memory) {
    case RP_DEVICE_MEMORY_OWN:
        return RP_OFFLOAD_HOST;
    case RP_DEVICE_MEMORY_SHARED:
        return RP_OFFLOAD_FLASH;
    default:
        return RP_OFFLOAD_NONE;
    }
}

static double pass_s(const fitting *f, uint32_t node, uint32_t stage, rp_measured_pass pass) {
    return rp_profile_pass_s(f->profile, node, f->cut->first[stage], f->cut->first[stage + 1], pass,
                             f->run->micro);
}

static double rate_of(double bytes, double seconds) {
    return seconds > 0 ? bytes / seconds : 0;
}

static rp_offload_cost offload_cost(const fitting *f, uint32_t node, uint32_t stage,
                                    const way *of) {
    const rp_profile_board *board = rp_profile_board_at(f->profile, node);
    const double bytes = (double)of->stash_bytes;
    const double copy_s[2] = {rp_profile_copy_s(f->profile, node, true, bytes),
                              rp_profile_copy_s(f->profile, node, false, bytes)};
    const bool flash = of->offload == RP_OFFLOAD_FLASH;
    return (rp_offload_cost){.stash_bytes = bytes,
                             .write_rate = flash ? board->flash_rate[0] : rate_of(bytes, copy_s[0]),
                             .read_rate = flash ? board->flash_rate[1] : rate_of(bytes, copy_s[1]),
                             .both_ways = !flash,
                             .copy_s = flash ? copy_s[0] + copy_s[1]
                                             : 0, /* copied by the processor that computes */
                             .forward_s = pass_s(f, node, stage, RP_MEASURED_FORWARD),
                             .backward_s = pass_s(f, node, stage, RP_MEASURED_BACKWARD)};
}

static void set_cost(const fitting *f, uint32_t node, uint32_t stage, way *of) {
    const bool known = f->profile && rp_profile_board_at(f->profile, node)->known;
    of->cost_s = known ? 0 : (double)INFINITY;
    if (known && of->again) {
        of->cost_s += pass_s(f, node, stage, RP_MEASURED_FORWARD);
    }
    if (known && of->stash_bytes > 0) {
        const rp_offload_cost cost = offload_cost(f, node, stage, of);
        of->cost_s += rp_offload_cost_s(&cost);
    }
}

/* Finds the number of groups that needs least. `room`: as in count_way(). */
static rp_err count_recompute(fitting *f, const rp_plan_hold *hold, bool *begins, uint64_t room,
                              way *out) {
    way best = *out;
    rp_err err = RP_OK;
    best.bytes = UINT64_MAX;
    for (uint32_t groups = 1; groups <= GROUPS_MAX; groups++) {
        out->groups = groups;
        divide_stage(f, hold->stage, groups, begins);
        RP_TRY(count_way(f, hold, begins, 0, out));
        best = out->bytes < best.bytes ? *out : best;
    }
    *out = best;
    divide_stage(f, hold->stage, best.groups, begins);
    RP_TRY(count_way(f, hold, begins, room, out));
fail:
    return err;
}

enum { AGAIN, OFFLOAD, BOTH, WAYS };

/* Counts all ways, with bytes and costs. `bytes` is UINT64_MAX for a way that is not allowed. */
static rp_err find_ways(fitting *f, const rp_plan_hold *hold, const way *plain, uint64_t room,
                        way out[WAYS]) {
    const rp_plan_stage *stage = &f->plan->stage[hold->stage];
    const bool parts = rp_plan_takes_parts(f->plan, hold->stage);
    const bool may_again =
        f->run->recompute_auto && !rp_method_refuses_again(&f->plan->method, hold->stage, parts);
    const rp_offload offload = offload_of(f, hold->node, hold->stage);
    /* if another board of the stage already offloads tensors, these do not suffice here: offload
     * all */
    const uint64_t some = plain->offload == RP_OFFLOAD_NONE ? room : 0;
    bool *begins;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&f->scratch, f->job.model->layer_count, &begins));
    for (uint32_t w = 0; w < WAYS; w++) {
        const bool again = w != OFFLOAD;
        out[w] = *plain;
        out[w].again = again || plain->again;
        out[w].offload = w == AGAIN ? plain->offload : offload;
        out[w].leave = 0;
        if ((again && !may_again) || (w != AGAIN && offload == RP_OFFLOAD_NONE)) {
            out[w].bytes = UINT64_MAX;
            continue;
        }
        if (again && !plain->again) {
            RP_TRY(count_recompute(f, hold, begins, some, &out[w]));
        } else {
            note_groups(f, stage, begins);
            RP_TRY(count_way(f, hold, begins, some, &out[w]));
        }
        set_cost(f, hold->node, hold->stage, &out[w]);
    }
fail:
    return err;
}

/* The cheapest way within `room`, of equal ones the first; if none fits, the smallest. */
static uint32_t choose_way(const way option[WAYS], uint64_t room) {
    uint32_t best = 0;
    for (uint32_t w = 1; w < WAYS; w++) {
        const way *a = &option[w];
        const way *b = &option[best];
        const bool fits = a->bytes <= room;
        const bool is_better = fits != (b->bytes <= room) ? fits
                               : fits                     ? a->cost_s < b->cost_s
                                                          : a->bytes < b->bytes;
        best = is_better ? w : best;
    }
    return best;
}

static const char *cost_text(const way *of, uint64_t room, char *out, size_t bytes) {
    if (of->bytes == UINT64_MAX) {
        (void)snprintf(out, bytes, "is not allowed");
    } else if (of->bytes > room) {
        (void)snprintf(out, bytes, "would not suffice");
    } else if (isfinite(of->cost_s)) {
        (void)snprintf(out, bytes, "would cost %.3g ms", 1e3 * of->cost_s);
    } else {
        (void)snprintf(out, bytes, "has no measured times");
    }
    return out;
}

/* "12.1 MiB instead of 40.2, for 3.1 ms a microbatch; offload to flash would cost 20 ms" */
static rp_err write_reason(fitting *f, const rp_plan_hold *hold, uint64_t before,
                           const way option[WAYS], uint32_t chosen, uint64_t room) {
    const way *own = &option[chosen];
    const uint32_t other = chosen == AGAIN ? OFFLOAD : AGAIN;
    const bool has_offload = option[OFFLOAD].bytes < UINT64_MAX;
    const bool shares = option[OFFLOAD].offload == RP_OFFLOAD_FLASH;
    char cost[80] = "";
    char than[200] = "";
    char text[80];
    char *why;
    if (isfinite(own->cost_s)) {
        (void)snprintf(cost, sizeof cost, ", for %.3g ms a microbatch", 1e3 * own->cost_s);
    }
    if (has_offload) {
        (void)snprintf(than, sizeof than, "; %s%s %s%s",
                       other == AGAIN ? "computing forwards again" : "offload to ",
                       other == AGAIN ? "" : rp_offload_name(option[OFFLOAD].offload),
                       cost_text(&option[other], room, text, sizeof text),
                       shares ? "; the host's memory is the device's, so nothing is saved there"
                              : "");
    }
    const rp_err err =
        rp_arena_printf(f->arena, &why, "%.1f MiB instead of %.1f%s%s",
                        (double)own->bytes / (1 << 20), (double)before / (1 << 20), cost, than);
    f->plan->stage[hold->stage].memory_why = err == RP_OK ? why : NULL;
    return err;
}

/* Changes a stage to the best way for `room`, if that needs less. */
static rp_err shrink_stage(fitting *f, const rp_plan_hold *hold, way *own, uint64_t room) {
    const way plain = *own;
    way option[WAYS];
    bool *begins;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&f->scratch, f->job.model->layer_count, &begins));
    RP_TRY(find_ways(f, hold, &plain, room, option));
    const uint32_t chosen = choose_way(option, room);
    if (option[chosen].bytes >= plain.bytes) {
        return RP_OK;
    }
    *own = option[chosen];
    if (own->again && !plain.again) {
        divide_stage(f, hold->stage, own->groups, begins);
        RP_TRY(take_groups(f, hold->stage, begins));
    }
    f->plan->stage[hold->stage].offload = rp_offload_name(own->offload);
    f->plan->stage[hold->stage].leave_tensors = own->leave;
    f->changed = true;
    RP_TRY(write_reason(f, hold, plain.bytes, option, chosen, room));
fail:
    return err;
}

/* ---- boards ---------------------------------------------------------------------------------- */

static rp_err refuse_board(const fitting *f, uint32_t node, uint64_t plain, uint64_t least,
                           const char *why_not) {
    const double mb = 1e-6;
    char again[200] = "";
    if (why_not) {
        const uint32_t stage = f->plan->hold[f->plan->node[node].hold_first].stage;
        char whose[RP_METHOD_WHOSE_BYTES];
        (void)snprintf(again, sizeof again, " (recompute is not for %s: %s)",
                       rp_method_whose(&f->plan->method, stage, whose), why_not);
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

/* Counts a stage as the plan has it now. */
static rp_err count_hold(fitting *f, const rp_plan_hold *hold, way *out) {
    const rp_plan_stage *stage = &f->plan->stage[hold->stage];
    bool *begins;
    rp_err err;
    *out = (way){.again = stage->recompute,
                 .offload = rp_offload_find(stage->offload),
                 .leave = stage->leave_tensors};
    RP_TRY(RP_ARENA_NEW(&f->scratch, f->job.model->layer_count, &begins));
    note_groups(f, stage, begins);
    RP_TRY(count_way(f, hold, begins, 0, out));
fail:
    return err;
}

/* The largest stage that was not tried yet; `count`: all were tried. */
static uint32_t find_largest(const way *own, const bool *tried, uint32_t count) {
    uint32_t most = count;
    for (uint32_t h = 0; h < count; h++) {
        most = !tried[h] && (most == count || own[h].bytes > own[most].bytes) ? h : most;
    }
    return most;
}

static rp_err fit_node(fitting *f, uint32_t node) {
    const rp_plan_node *at = &f->plan->node[node];
    const rp_plan_hold *hold = &f->plan->hold[at->hold_first];
    way *own;
    bool *tried;
    uint64_t sum = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&f->scratch, at->hold_count, &own));
    RP_TRY(RP_ARENA_NEW(&f->scratch, at->hold_count, &tried));
    for (uint32_t h = 0; h < at->hold_count; h++) {
        RP_TRY(count_hold(f, &hold[h], &own[h]));
        sum += own[h].bytes;
    }
    const uint64_t plain = sum;
    while (sum > at->memory_bytes) {
        const uint32_t most = find_largest(own, tried, at->hold_count);
        if (most == at->hold_count) {
            return !f->run->recompute_auto && plain == sum
                       ? RP_OK /* the board itself will refuse */
                       : refuse_board(
                             f, node, plain, sum,
                             rp_method_refuses_again(&f->plan->method, hold->stage,
                                                     rp_plan_takes_parts(f->plan, hold->stage)));
        }
        const uint64_t others = sum - own[most].bytes;
        const uint64_t room = at->memory_bytes > others ? at->memory_bytes - others : 0;
        tried[most] = true;
        RP_TRY(shrink_stage(f, &hold[most], &own[most], room));
        sum = others + own[most].bytes;
    }
fail:
    return err;
}

/* A change of a stage affects all boards that share it, so this repeats until nothing changes. Each
 * stage changes at most twice. */
static rp_err fit_nodes(fitting *f) {
    rp_err err = RP_OK;
    do {
        f->changed = false;
        for (uint32_t k = 0; k < f->plan->node_count; k++) {
            RP_TRY(f->plan->node[k].memory_bytes > 0 ? fit_node(f, k) : RP_OK);
        }
    } while (f->changed);
fail:
    return err;
}

static rp_err take_recompute(fitting *f) {
    const rp_plan *plan = f->plan;
    bool *stage;
    bool *begins;
    bool is_auto;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&f->scratch, plan->stage_count, &stage));
    RP_TRY(RP_ARENA_NEW(&f->scratch, f->run->model->layer_count, &begins));
    RP_TRY(rp_recompute_read(f->run->root, f->run->model, f->cut, stage, begins, &is_auto));
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        RP_TRY(stage[k] ? take_groups(f, k, begins) : RP_OK);
    }
fail:
    return err;
}

/* *leaves: some stage offloads. */
static rp_err take_offload(fitting *f, bool *leaves) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&f->scratch, f->plan->stage_count, &f->offload));
    RP_TRY(rp_offload_read(f->run->root, f->plan->stage_count, f->offload));
    for (uint32_t k = 0; k < f->plan->stage_count; k++) {
        const rp_offload said = f->offload[k];
        f->plan->stage[k].offload =
            rp_offload_name(said == RP_OFFLOAD_AUTO ? RP_OFFLOAD_NONE : said);
        *leaves |= said == RP_OFFLOAD_HOST || said == RP_OFFLOAD_FLASH;
    }
fail:
    return err;
}

/* Sets a stage's offload_bytes and stay_bytes, the largest of its holds. */
static rp_err note_bytes(fitting *f, uint32_t h) {
    const rp_plan_hold *hold = &f->plan->hold[h];
    rp_plan_stage *stage = &f->plan->stage[hold->stage];
    way own;
    rp_err err = RP_OK;
    if (strcmp(stage->offload, rp_offload_name(RP_OFFLOAD_NONE)) == 0) {
        return RP_OK;
    }
    RP_TRY(count_hold(f, hold, &own));
    rp_job job = f->job;
    job.stage = hold->stage;
    memcpy(job.share, hold->share, sizeof job.share);
    const uint64_t samples = rp_job_own_samples(&job, job.batch).count;
    const uint64_t micro = rp_job_holds_steps(&job) ? job.batch : rp_job_forward_samples(&job);
    const uint64_t bytes = (samples + micro - 1) / micro * own.stash_bytes;
    stage->offload_bytes = bytes > stage->offload_bytes ? bytes : stage->offload_bytes;
    stage->stay_bytes = own.stay_bytes > stage->stay_bytes ? own.stay_bytes : stage->stay_bytes;
fail:
    return err;
}

rp_err rp_fit_memory_note(const rp_runfile *run, const rp_cut *cut, rp_plan *plan) {
    fitting f = {.run = run, .cut = cut, .plan = plan};
    bool leaves = false;
    rp_err err = RP_OK;
    rp_arena_init(&f.scratch, "memory", 0);
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        leaves |= strcmp(plan->stage[k].offload, rp_offload_name(RP_OFFLOAD_NONE)) != 0;
    }
    RP_TRY(leaves ? read_job(&f) : RP_OK);
    for (uint32_t h = 0; leaves && h < plan->hold_count; h++) {
        RP_TRY(note_bytes(&f, h));
    }
fail:
    rp_arena_finish(&f.scratch);
    return err;
}

rp_err rp_fit_memory(rp_arena *arena, const rp_runfile *run, const rp_cut *cut,
                     const rp_profile *profile, rp_plan *plan) {
    fitting f = {.arena = arena, .run = run, .cut = cut, .profile = profile, .plan = plan};
    bool leaves = false;
    bool limited = false;
    rp_err err = RP_OK;
    rp_arena_init(&f.scratch, "memory", 0);
    RP_TRY(take_offload(&f, &leaves));
    if (!run->recompute_auto) {
        RP_TRY(take_recompute(&f));
    }
    for (uint32_t k = 0; k < plan->node_count; k++) {
        limited |= plan->node[k].memory_bytes > 0;
    }
    /* With `advance: auto` boards report how many forwards they have memory for. */
    limited = limited && !run->method.advance_auto;
    if (limited || leaves) {
        RP_TRY(read_job(&f));
    }
    RP_TRY(limited ? fit_nodes(&f) : RP_OK);
    for (uint32_t h = 0; (limited || leaves) && h < plan->hold_count; h++) {
        RP_TRY(note_bytes(&f, h));
    }
fail:
    rp_arena_finish(&f.scratch);
    return err;
}

rp_err rp_fit_memory_needs(const rp_runfile *run, const rp_cut *cut, rp_plan *plan, uint64_t *out) {
    fitting f = {.run = run, .cut = cut, .plan = plan};
    rp_err err;
    rp_arena_init(&f.scratch, "memory", 0);
    RP_TRY(read_job(&f));
    for (uint32_t k = 0; k < plan->node_count; k++) {
        out[k] = 0;
    }
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        way own;
        RP_TRY(count_hold(&f, &plan->hold[h], &own));
        out[plan->hold[h].node] += own.bytes;
    }
fail:
    rp_arena_finish(&f.scratch);
    return err;
}
