/* The state `plan`: links are measured where that decides something, then the cut and the forwards
 * in flight are chosen. With `advance: auto` the host looks again at every pause; when links have
 * changed, the pipes drain, and the boards get new stages (METHODS 1, 9). */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"

/* Boards that are idle answer at once; behind a profile some answers are late. */
enum { BRINGUP_TRIPS = 8, PAUSE_TRIPS = 2 };
/* Microbatches before links are looked at for the first time, in a run of so many times as many. */
enum { FIRST_LOOK_MICROS = 32, FIRST_LOOK_PART = 8 };

/* ---- what is wanted -------------------------------------------------------------------------- */

static bool wants_advance(const rp_controller *c) {
    return c->run.method.advance_auto && c->options.purpose != RP_PURPOSE_EVALUATE &&
           c->run.stages > 1 && !c->setup.given;
}

bool rp_controller_needs_profile(const rp_controller *c) {
    const bool has_old_cut = c->train.position.setup.cut.stage_count == c->run.stages;
    const bool for_cut = c->run.cut_auto && !has_old_cut && c->run.stages > 1 && !c->setup.given;
    return c->options.purpose == RP_PURPOSE_PROFILE || for_cut || rp_codecs_are_wanted(c) ||
           rp_sizes_are_wanted(c) || wants_advance(c) || rp_ahead_is_wanted(c);
}

/* Of the next best those that share stages are among the tried ones, where they may. */
static rp_err open_trials(rp_controller *c, const rp_joint_answer *answer) {
    rp_joint_answer others = *answer;
    rp_joint_plan first = answer->plan[0];
    rp_err err = RP_OK;
    if (c->run.plan_trial > 0 && c->run.plan_share > 1 && answer->is_known) {
        const rp_joint_ask ask = rp_shares_ask(c);
        RP_TRY(rp_joint_search(&ask, &others));
        first.schedule = 0; /* the run has it now */
    }
    rp_trials_open(c, answer->is_known ? &first : NULL, &others);
fail:
    return err;
}

/* The cut of the fastest replay, of the ring as it is, and the codecs with which it is that. */
static rp_err choose_by_profile(rp_controller *c, rp_arena *arena, rp_cut *cut) {
    rp_joint_answer answer;
    rp_err err;
    RP_TRY(rp_controller_find_cut(c, arena, &answer, cut));
    RP_TRY(rp_schedule_take(c, &answer));
    RP_TRY(rp_controller_take_micro(c, &answer));
    RP_TRY(rp_codecs_keep(c, &answer));
    RP_TRY(open_trials(c, &answer));
fail:
    return err;
}

static rp_err choose_cut(rp_controller *c) {
    const uint32_t whole[2] = {0, c->run.model->layer_count};
    rp_arena arena;
    rp_cut cut = {.stage_count = 1, .first = whole};
    rp_err err = RP_OK;
    rp_arena_init(&arena, "cut", 0);
    if (c->setup.given) {
        RP_TRY(rp_plan_cut(&arena, c->setup.given, c->run.model, &cut));
    } else if (!c->run.cut_auto) {
        cut = c->run.cut;
    } else if (c->train.position.setup.cut.stage_count == c->run.stages) {
        cut = c->train.position.setup
                  .cut; /* a measurement is never the same twice, a resumed run is */
    } else if (c->run.stages > 1) {
        RP_TRY(choose_by_profile(c, &arena, &cut));
    }
    RP_TRY(rp_controller_take_micro(c, NULL)); /* nothing has chosen it */
    RP_TRY(rp_schedule_take(c, NULL));
    RP_TRY(rp_controller_keep_cut(c, &cut));
    if (rp_measure_has_profile(c->measure)) {
        rp_measure_place(c->measure);
        rp_measure_take_cut(c->measure, &c->setup.now.cut);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- what is said ---------------------------------------------------------------------------- */

rp_err rp_controller_log_advance(const rp_controller *c, const char *text) {
    return rp_folder_record(c->folder) ? rp_record_event(rp_folder_record(c->folder), "advance",
                                                         c->train.position.step, text)
                                       : RP_OK;
}

/* The price of what was chosen, and what the limit holds back. */
static rp_err hint_advance(const rp_controller *c) {
    const rp_method *method = &c->run.method;
    const rp_sched_shape shape = rp_runfile_sched_shape(&c->run, 0);
    const uint32_t wanted = rp_advance_wanted(&c->setup.advance);
    const uint32_t now = rp_method_age(method, &shape, method->advance);
    const bool elastic = method->kind->average == RP_AVERAGE_ELASTIC && !method->replicas_given;
    char text[240];
    int used = 0;
    if (elastic && method->advance > 0) {
        used = snprintf(text, sizeof text,
                        "advance %u means %u replicas: each takes one step of %u, which costs "
                        "accuracy; schedule.replicas or advance: {max_staleness: N} bounds them",
                        method->advance, method->replicas, method->replicas);
    } else if (wanted > method->advance && method->advance + 1 >= c->setup.advance.tried &&
               c->setup.advance.busy[method->advance] < 0.9 * c->setup.advance.busy_most) {
        used = snprintf(text, sizeof text,
                        "links hold the boards back, and a staleness of %u is the limit; advance: "
                        "{max_staleness: %u} would fill them, at the price of accuracy",
                        now, rp_method_age(method, &shape, wanted));
    }
    const uint64_t step = c->train.position.step;
    return used > 0 && rp_folder_record(c->folder)
               ? rp_record_event(rp_folder_record(c->folder), "hint", step - (step > 0), text)
               : RP_OK;
}

rp_err rp_controller_say_advance(const rp_controller *c, uint32_t before) {
    const rp_method *method = &c->run.method;
    const double *busy = c->setup.advance.busy;
    char text[200];
    const uint32_t micros = (c->run.batch - 1) / c->run.micro + 1;
    const double step_ms = busy[method->advance] > 0
                               ? 1e3 * c->setup.advance.work * micros / busy[method->advance]
                               : 0;
    int used = snprintf(text, sizeof text,
                        "links take %.1f ms: advance %u keeps the boards %.0f %% busy, %.3g ms a "
                        "step",
                        1e3 * rp_measure_delay_s(c->measure), method->advance,
                        100 * busy[method->advance], step_ms);
    if (method->advance != before) {
        used += snprintf(text + used, sizeof text - (size_t)used, ", %u %.0f %%", before,
                         100 * busy[before]);
    }
    if (method->kind->average == RP_AVERAGE_ELASTIC) {
        (void)snprintf(text + used, sizeof text - (size_t)used, "; %u replicas, alpha %.3g",
                       method->replicas, method->alpha);
    }
    const rp_err err = rp_controller_log_advance(c, text);
    return err == RP_OK ? hint_advance(c) : err;
}

void rp_controller_take_advance(rp_controller *c, const rp_advance_choice *choice) {
    c->setup.advance = *choice;
    c->setup.advance_chosen = true;
    rp_setup_take_advance(&c->setup.now, choice->advance);
    rp_setup_refresh(c);
}

bool rp_plan_has_answered(const rp_controller *c, uint32_t board) {
    return rp_measure_has_answered(c->measure, board);
}

/* ---- the state ------------------------------------------------------------------------------- */

/* Else boards are to get their stages: the first time, or because others have left the ring. */
static bool is_pause(const rp_controller *c) {
    return rp_train_has_feed(c->train.room);
}

/* A resumed run keeps what its checkpoint says, which may hold microbatches in flight. */
static bool chooses_advance(const rp_controller *c) {
    return wants_advance(c) && (is_pause(c) || c->train.position.step == 0);
}

rp_err rp_plan_enter(rp_controller *c) {
    rp_err err = RP_OK;
    rp_measure_begin_trips(c->measure);
    if (!is_pause(c)) {
        c->setup.advance_max = RP_ADVANCE_MAX; /* of what the method's limit allows */
        RP_TRY(rp_arrange_ring(c));
        RP_TRY(choose_cut(c));
        RP_TRY(rp_codecs_choose(c));
        RP_TRY(rp_sizes_choose(c));
        RP_TRY(rp_ahead_choose(c));
    }
    if (chooses_advance(c) && !c->run.emulate) {
        RP_TRY(rp_measure_ping(c->measure));
    }
fail:
    return err;
}

/* How fast real wires are shows when they carry something: the first look is early in the run. */
static uint64_t first_look(const rp_controller *c) {
    const uint64_t micros = (c->run.batch - 1) / c->run.micro + 1;
    const uint64_t step = (FIRST_LOOK_MICROS + micros - 1) / micros;
    return !c->run.emulate && c->run.steps >= FIRST_LOOK_PART * step ? step : 0;
}

static void leave_bringup(rp_controller *c, const rp_advance_choice *choice) {
    if (choice) {
        rp_controller_take_advance(c, choice);
        c->setup.look_step = first_look(c);
    }
    c->setup.advance_least = choice ? 0 : c->run.method.advance;
    rp_controller_enter(c, RP_CONTROL_ASSIGN);
}

static void leave_pause(rp_controller *c, const rp_advance_choice *choice) {
    const uint32_t before = c->run.method.advance;
    c->setup.looked_at = true;
    if (!rp_advance_pays(choice, before)) {
        rp_controller_enter(c, RP_CONTROL_TRAIN);
        return;
    }
    c->setup.follow = (rp_follow){RP_FOLLOW_DRAIN, true, *choice, before};
    c->setup.advance_least = before < choice->advance ? before : choice->advance;
    rp_controller_enter(c, RP_CONTROL_DRAIN);
}

static rp_err choose_advance(rp_controller *c, rp_advance_choice *choice) {
    double *rate = NULL;
    rp_arena arena;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "rates", 0);
    if (!c->run.emulate) {
        RP_TRY(RP_ARENA_NEW(&arena, (size_t)c->ring.count * c->ring.count, &rate));
        rp_codecs_find_rates(c, false, rate);
    }
    rp_measure_take_delay(c->measure);
    RP_TRY(rp_cost_choose_advance(&c->run, &c->setup.now.cut, rp_measure_layer_seconds(c->measure),
                                  rp_measure_delay_s(c->measure), rate, c->setup.advance_max,
                                  choice));
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_plan_step(rp_controller *c) {
    const uint32_t trips = is_pause(c) ? PAUSE_TRIPS : BRINGUP_TRIPS;
    rp_advance_choice choice;
    bool done = false;
    rp_err err = RP_OK;
    if (!chooses_advance(c)) {
        leave_bringup(c, NULL);
        return RP_OK;
    }
    if (!c->run.emulate) {
        if (!rp_controller_all_done(c)) {
            return RP_OK;
        }
        RP_TRY(rp_measure_note_trips(c->measure, trips, &done));
        if (!done) {
            return RP_OK;
        }
    }
    RP_TRY(choose_advance(c, &choice));
    if (is_pause(c)) {
        leave_pause(c, &choice);
    } else {
        leave_bringup(c, &choice);
    }
fail:
    return err;
}

/* ---- a run that goes on ---------------------------------------------------------------------- */

rp_err rp_setup_resume(rp_controller *c) {
    const rp_setup *then = &c->train.position.setup;
    rp_err err;
    RP_TRY(rp_codecs_resume(c, then));
    rp_trials_resume(c, then->trial);
    c->train.position.setup.trial = NULL; /* from here on setup.trial has it */
    rp_sizes_resume(c, then);
    if (c->run.method.advance_auto) {
        rp_setup_take_advance(&c->setup.now, then->advance);
        rp_setup_refresh(c);
    }
    RP_TRY(rp_ahead_take(c, then->ahead, then->ahead_count));
fail:
    return err;
}

void rp_setup_go_back(rp_controller *c) {
    c->setup.follow.phase = RP_FOLLOW_NONE;
    c->setup.codecs.differ = c->setup.looked_at = false;
    c->setup.reassigning = c->setup.plan != NULL;
}

/* ---- links that change ----------------------------------------------------------------------- */

/* A few steps for the drain, and a moment for the boards: no change for less. What is in flight may
 * reach over a checkpoint's step (another is made behind it), not over an evaluation's. */
bool rp_controller_follows_links(const rp_controller *c) {
    return wants_advance(c) && c->train.position.step > 0 && !c->setup.looked_at &&
           rp_controller_drained_at(c) < rp_controller_next_evaluation(c);
}
