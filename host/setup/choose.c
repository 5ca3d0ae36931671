/* What is chosen before the boards get their stages: the cut with all that goes with it, and, with
 * `advance: auto`, how many forwards run ahead. */
#include <inttypes.h>
#include <stdio.h>

#include "setup/setup_own.h"

/* ---- what is wanted -------------------------------------------------------------------------- */

bool rp_arrangement_wants_advance(const rp_arrangement *a) {
    return a->run.method.advance_auto && !a->evaluates && a->run.stages > 1 && !a->given;
}

bool rp_arrangement_needs_profile(const rp_arrangement *a) {
    const bool has_old_cut = a->position->setup.cut.stage_count == a->run.stages;
    const bool for_cut = a->run.cut_auto && !has_old_cut && a->run.stages > 1 && !a->given;
    return a->profiles || for_cut || rp_codecs_are_wanted(a) || rp_sizes_are_wanted(a) ||
           rp_arrangement_wants_advance(a) || rp_ahead_is_wanted(a);
}

/* The cut of the fastest replay, of the ring as it is, and the codecs with which it is that. */
static rp_err choose_by_profile(rp_arrangement *a, rp_arena *arena, rp_cut *cut) {
    rp_joint_answer answer;
    rp_err err;
    RP_TRY(rp_arrangement_find_cut(a, arena, &answer, cut));
    RP_TRY(rp_schedule_take(a, &answer));
    RP_TRY(rp_arrangement_take_micro(a, &answer));
    RP_TRY(rp_codecs_keep(a, &answer));
fail:
    return err;
}

static rp_err choose_cut(rp_arrangement *a) {
    const uint32_t whole[2] = {0, a->run.model->layer_count};
    rp_arena arena;
    rp_cut cut = {.stage_count = 1, .first = whole};
    rp_err err = RP_OK;
    rp_arena_init(&arena, "cut", 0);
    if (a->given) {
        RP_TRY(rp_plan_cut(&arena, a->given, a->run.model, &cut));
    } else if (!a->run.cut_auto) {
        cut = a->run.cut;
    } else if (a->position->setup.cut.stage_count == a->run.stages) {
        cut = a->position->setup.cut; /* a measurement is never the same twice, a resumed run is */
    } else if (a->run.stages > 1) {
        RP_TRY(choose_by_profile(a, &arena, &cut));
    }
    RP_TRY(rp_arrangement_take_micro(a, NULL)); /* nothing has chosen it */
    RP_TRY(rp_schedule_take(a, NULL));
    RP_TRY(rp_arrangement_keep_cut(a, &cut));
    if (rp_measure_has_profile(a->measure)) {
        rp_measure_place(a->measure);
        rp_measure_take_cut(a->measure, &a->now.cut);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_arrangement_choose(rp_arrangement *a) {
    RP_ASSERT(a->measure && a->ring->count == a->run.boards);
    rp_err err;
    a->advance_max = RP_ADVANCE_MAX; /* of what the method's limit allows */
    RP_TRY(rp_arrange_ring(a));
    RP_TRY(choose_cut(a));
    RP_ASSERT(rp_arrangement_has_cut(a) && !a->run.micro_auto && !a->run.schedule_auto);
    RP_TRY(rp_codecs_choose(a));
    RP_TRY(rp_sizes_choose(a));
    RP_TRY(rp_ahead_choose(a));
fail:
    return err;
}

/* ---- what is said ---------------------------------------------------------------------------- */

rp_err rp_arrangement_log_advance(const rp_arrangement *a, const char *text) {
    return rp_folder_record(a->folder)
               ? rp_record_event(rp_folder_record(a->folder), "advance", a->position->step, text)
               : RP_OK;
}

/* The price of what was chosen, and what the limit holds back. */
static rp_err hint_advance(const rp_arrangement *a) {
    const rp_method *method = &a->run.method;
    const rp_sched_shape shape = rp_runfile_sched_shape(&a->run, 0);
    const uint32_t wanted = rp_advance_wanted(&a->advance);
    const uint32_t now = rp_method_age(method, &shape, method->advance);
    const bool elastic = method->kind->average == RP_AVERAGE_ELASTIC && !method->replicas_given;
    char text[240];
    int used = 0;
    if (elastic && method->advance > 0) {
        used = snprintf(text, sizeof text,
                        "advance %u means %u replicas: each takes one step of %u, which costs "
                        "accuracy; schedule.replicas or advance: {max_staleness: N} bounds them",
                        method->advance, method->replicas, method->replicas);
    } else if (wanted > method->advance && method->advance + 1 >= a->advance.tried &&
               a->advance.busy[method->advance] < 0.9 * a->advance.busy_most) {
        used = snprintf(text, sizeof text,
                        "links hold the boards back, and a staleness of %u is the limit; advance: "
                        "{max_staleness: %u} would fill them, at the price of accuracy",
                        now, rp_method_age(method, &shape, wanted));
    }
    const uint64_t step = a->position->step;
    return used > 0 && rp_folder_record(a->folder)
               ? rp_record_event(rp_folder_record(a->folder), "hint", step - (step > 0), text)
               : RP_OK;
}

rp_err rp_arrangement_say_advance(const rp_arrangement *a, uint32_t before) {
    const rp_method *method = &a->run.method;
    const double *busy = a->advance.busy;
    char text[200];
    const uint32_t micros = (a->run.batch - 1) / a->run.micro + 1;
    const double step_ms =
        busy[method->advance] > 0 ? 1e3 * a->advance.work * micros / busy[method->advance] : 0;
    int used = snprintf(text, sizeof text,
                        "links take %.1f ms: advance %u keeps the boards %.0f %% busy, %.3g ms a "
                        "step",
                        1e3 * rp_measure_delay_s(a->measure), method->advance,
                        100 * busy[method->advance], step_ms);
    if (method->advance != before) {
        used += snprintf(text + used, sizeof text - (size_t)used, ", %u %.0f %%", before,
                         100 * busy[before]);
    }
    if (method->kind->average == RP_AVERAGE_ELASTIC) {
        (void)snprintf(text + used, sizeof text - (size_t)used, "; %u replicas, alpha %.3g",
                       method->replicas, method->alpha);
    }
    const rp_err err = rp_arrangement_log_advance(a, text);
    return err == RP_OK ? hint_advance(a) : err;
}

void rp_arrangement_take_advance(rp_arrangement *a, const rp_advance_choice *choice) {
    RP_ASSERT(choice->advance <= RP_ADVANCE_MAX && a->run.method.advance_auto);
    a->advance = *choice;
    a->advance_chosen = true;
    rp_setup_take_advance(&a->now, choice->advance);
    rp_arrangement_refresh(a);
}

void rp_arrangement_adopt_advance(rp_arrangement *a, uint32_t advance) {
    if (a->run.method.advance_auto) {
        rp_setup_take_advance(&a->now, advance);
        rp_arrangement_refresh(a);
    }
}

void rp_arrangement_lessen_advance(rp_arrangement *a) {
    RP_ASSERT(a->run.method.advance > 0);
    a->advance_max = a->advance.advance = a->run.method.advance - 1;
    rp_arrangement_take_advance(a, &a->advance);
}

rp_err rp_arrangement_choose_advance(rp_arrangement *a, double segment_s,
                                     rp_advance_choice *choice) {
    double *rate = NULL;
    rp_arena arena;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "rates", 0);
    if (!a->run.emulate) {
        RP_TRY(RP_ARENA_NEW(&arena, (size_t)a->ring->count * a->ring->count, &rate));
        rp_codecs_find_rates(a, false, segment_s, rate);
    }
    RP_ASSERT(rp_arrangement_has_cut(a));
    rp_measure_take_delay(a->measure);
    RP_TRY(rp_cost_choose_advance(&a->run, &a->now.cut, rp_measure_layer_seconds(a->measure),
                                  rp_measure_delay_s(a->measure), rate, a->advance_max, choice));
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- a run that goes on ---------------------------------------------------------------------- */

rp_err rp_arrangement_resume(rp_arrangement *a) {
    const rp_setup *then = &a->position->setup;
    rp_err err;
    RP_TRY(rp_codecs_resume(a, then));
    rp_sizes_resume(a, then);
    rp_arrangement_adopt_advance(a, then->advance);
    RP_TRY(rp_ahead_take(a, then->ahead, then->ahead_count));
fail:
    return err;
}

void rp_arrangement_go_back(rp_arrangement *a) {
    a->codecs.differ = false;
}
