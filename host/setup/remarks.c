/* Remarks for the user who starts a run. */
#include "run/remarks.h"

#include <stdio.h>
#include <string.h>

#include "nn/ties.h"
#include "planning/cost.h"
#include "planning/staleness.h"
#include "setup/assignment.h"
#include "setup/setup_own.h"

static rp_err say_note(const rp_arrangement *a, rp_event_kind kind, const char *note) {
    return rp_record_event(rp_folder_record(a->folder),
                           &(rp_run_event){.kind = kind, .step = a->position->step, .note = note});
}

/* Without train.microbatch a step is one microbatch, which fills the ring only in a few
 * schedules. */
static rp_err hint_microbatch(const rp_arrangement *a) {
    const rp_sched_kind *kind = a->run.method.kind;
    uint32_t micro;
    double busy;
    double better;
    rp_err err = RP_OK;
    if (a->run.micro < a->run.batch || a->run.sizes.at || !(kind->flushed || kind->accumulates)) {
        return RP_OK;
    }
    RP_TRY(rp_cost_compare_micro(&a->run, &micro, &busy, &better));
    if (better > busy + 0.1) {
        RP_TRY(rp_record_event(rp_folder_record(a->folder),
                               &(rp_run_event){.kind = RP_EVENT_HINT_MICRO,
                                               .step = a->position->step,
                                               .busy_before = busy,
                                               .micro = micro,
                                               .busy = better}));
    }
fail:
    return err;
}

static rp_err hint_staleness(const rp_arrangement *a) {
    rp_staleness found;
    return rp_staleness_is_costly(&a->run, &found)
               ? rp_record_event(rp_folder_record(a->folder),
                                 &(rp_run_event){.kind = RP_EVENT_HINT_MOMENTUM,
                                                 .step = a->position->step,
                                                 .staleness = found.staleness,
                                                 .momentum_key = found.key,
                                                 .momentum = found.momentum,
                                                 .updates = found.updates,
                                                 .advice = found.advice})
               : RP_OK;
}

/* Staleness costs a tied tensor more than others, because every use has that of the owner. */
static rp_err hint_ties(const rp_arrangement *a) {
    const rp_model *model = a->run.model;
    uint32_t p = 0;
    if (a->plan->tie_count == 0 || a->plan->method.kind->flushed) {
        return RP_OK;
    }
    while (model->param[p].owner == p || !rp_ties_is_sent(model, &a->plan_cut, p)) {
        p++;
        RP_ASSERT(p < model->param_count);
    }
    const uint32_t owner = model->param[p].owner;
    return rp_record_event(rp_folder_record(a->folder),
                           &(rp_run_event){.kind = RP_EVENT_HINT_TIES,
                                           .step = a->position->step,
                                           .layer = model->layer[model->param[owner].layer].name,
                                           .peer_layer = model->layer[model->param[p].layer].name,
                                           .tensor = model->param[owner].name,
                                           .stage = rp_ties_stage_of(model, &a->plan_cut, owner)});
}

/* Lanes have the same data, so only the run of lanes logs notes about it. */
static rp_err note_data(const rp_arrangement *a) {
    const rp_notes *notes = &a->run.data.notes;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < notes->count && a->run.lanes.own == RP_LANE_NONE && err == RP_OK;
         i++) {
        err = say_note(a, RP_EVENT_HINT_DATA, notes->text[i]);
    }
    return err;
}

static bool is_said(const rp_notes *notes, uint32_t index) {
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(notes->text[i], notes->text[index]) == 0) {
            return true;
        }
    }
    return false;
}

/* Logs notes of the run, and of boards that handle a part of the samples. */
static rp_err note_run(const rp_arrangement *a) {
    rp_notes notes = {0};
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "notes", 0);
    RP_TRY(rp_runfile_note(&arena, &a->run, &notes));
    for (uint32_t h = 0; h < a->plan->hold_count; h++) {
        const rp_plan_hold *hold = &a->plan->hold[h];
        const uint32_t *first = &a->plan_cut.first[hold->stage];
        if (hold->share[0] > 0 || hold->share[1] < 1) {
            RP_TRY(rp_runfile_check_shared_values(&a->run, first[0], first[1], hold->share));
            RP_TRY(
                rp_runfile_note_shared(&arena, &a->run, first[0], first[1], hold->share, &notes));
        }
    }
    for (uint32_t i = 0; i < notes.count; i++) {
        RP_TRY(is_said(&notes, i) ? RP_OK : say_note(a, RP_EVENT_HINT, notes.text[i]));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_arrangement_remark(const rp_arrangement *a) {
    rp_err err;
    RP_ASSERT(a->plan && rp_folder_record(a->folder));
    RP_TRY(hint_microbatch(a));
    RP_TRY(hint_staleness(a));
    RP_TRY(hint_ties(a));
    RP_TRY(a->resume ? RP_OK : note_data(a));
    RP_TRY(note_run(a));
fail:
    return err;
}
