/* `advance: auto`: chooses how many forwards run ahead, by the current links, and logs it. */
#include <inttypes.h>
#include <stdio.h>

#include "planning/cost.h"
#include "setup/setup_own.h"

bool rp_arrangement_wants_advance(const rp_arrangement *a) {
    return a->run.method.advance_auto && !a->evaluates && a->run.stages > 1 &&
           !rp_arrangement_is_fixed(a);
}

rp_err rp_arrangement_log_advance(const rp_arrangement *a, const char *text) {
    return rp_folder_record(a->folder)
               ? rp_record_event(rp_folder_record(a->folder), "advance", a->position->step, text)
               : RP_OK;
}

/* Logs what the advance costs in accuracy, or what its limit costs in speed. */
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
    rp_arrangement_adopt_advance(a, choice->advance);
}

void rp_arrangement_adopt_advance(rp_arrangement *a, uint32_t advance) {
    if (a->run.method.advance_auto) {
        rp_setup next = a->now;
        rp_setup_take_advance(&next, advance);
        rp_arrangement_put(a, &next);
    }
}

void rp_arrangement_reduce_advance(rp_arrangement *a) {
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
        rp_arrangement_find_rates(a, false, segment_s, rate);
    }
    RP_ASSERT(rp_arrangement_has_cut(a));
    rp_measure_take_delay(a->measure);
    RP_TRY(rp_cost_choose_advance(&a->run, &a->now.cut, rp_measure_layer_seconds(a->measure),
                                  rp_measure_delay_s(a->measure), rate, a->advance_max, choice));
fail:
    rp_arena_finish(&arena);
    return err;
}
