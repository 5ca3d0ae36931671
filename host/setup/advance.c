/* `advance: auto`: chooses how many forwards run ahead, by the current links, and logs it. */
#include <math.h>

#include "planning/cost.h"
#include "setup/setup_own.h"

bool rp_arrangement_wants_advance(const rp_arrangement *a) {
    return a->run.method.advance_auto && !a->evaluates && a->run.stages > 1 &&
           !rp_arrangement_is_fixed(a);
}

/* Logs what the advance costs in accuracy, or what its limit costs in speed. */
static rp_err hint_advance(const rp_arrangement *a) {
    const rp_method *method = &a->run.method;
    const rp_sched_shape shape = rp_runfile_sched_shape(&a->run, 0);
    const uint32_t wanted = rp_advance_wanted(&a->advance);
    const bool elastic = method->kind->average == RP_AVERAGE_ELASTIC && !method->replicas_given;
    const uint64_t step = a->position->step;
    rp_run_event event = {.step = step - (step > 0)};
    if (elastic && method->advance > 0) {
        event.kind = RP_EVENT_HINT_REPLICAS;
        event.advance = method->advance;
        event.replicas = method->replicas;
    } else if (wanted > method->advance && method->advance + 1 >= a->advance.tried &&
               a->advance.busy[method->advance] < 0.9 * a->advance.busy_most) {
        event.kind = RP_EVENT_HINT_STALENESS;
        event.staleness = rp_method_age(method, &shape, method->advance);
        event.staleness_wanted = rp_method_age(method, &shape, wanted);
    }
    return event.kind ? rp_record_event(rp_folder_record(a->folder), &event) : RP_OK;
}

rp_err rp_arrangement_say_advance(const rp_arrangement *a, uint32_t before) {
    const rp_method *method = &a->run.method;
    const double *busy = a->advance.busy;
    const bool elastic = method->kind->average == RP_AVERAGE_ELASTIC;
    const uint32_t micros = (a->run.batch - 1) / a->run.micro + 1;
    const double now = busy[method->advance];
    const rp_run_event event = {.kind = RP_EVENT_ADVANCE,
                                .step = a->position->step,
                                .delay_s = rp_measure_delay_s(a->measure),
                                .advance = method->advance,
                                .busy = now,
                                .step_s = now > 0 ? a->advance.work * micros / now : 0,
                                .advance_before = before,
                                .busy_before =
                                    before == method->advance ? (double)NAN : busy[before],
                                .replicas = elastic ? method->replicas : 0,
                                .alpha = elastic ? method->alpha : (double)NAN};
    rp_err err;
    RP_TRY(rp_record_event(rp_folder_record(a->folder), &event));
    RP_TRY(hint_advance(a));
fail:
    return err;
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
