/* `links.codec: auto`: the codecs in effect, and those that are next. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"

/* Of a wire's time: then it is full when its bytes take so much of it at the rate that acks have
 * shown. */
static const double FULL = 0.8;

/* They are chosen once for a number of stages; a checkpoint says those that it was made with. */
bool rp_codecs_are_wanted(const rp_controller *c) {
    return c->run.codec_auto && c->options.purpose != RP_PURPOSE_EVALUATE && c->run.stages > 1 &&
           !c->setup.given && c->setup.codecs.stages != c->run.stages;
}

/* As for the cut. */
static rp_err open_codecs(rp_controller *c) {
    rp_err err = RP_OK;
    if (!c->setup.codecs.now) {
        RP_TRY(RP_ARENA_NEW(&c->arena, RP_CUT_STAGES_MAX, &c->setup.codecs.now));
        RP_TRY(RP_ARENA_NEW(&c->arena, RP_CUT_STAGES_MAX, &c->setup.codecs.next));
    }
fail:
    return err;
}

static void show_codecs(rp_controller *c, const rp_codec (*codec)[2]) {
    c->setup.now.codec = codec;
    c->setup.now.codec_stages = codec ? c->run.stages : 0;
    rp_setup_refresh(c);
}

static void take_codecs(rp_controller *c, const rp_codec (*from)[2]) {
    const size_t bytes = (c->run.stages - 1) * sizeof *from;
    memmove(c->setup.codecs.now, from, bytes);
    memmove(c->setup.codecs.next, from, bytes);
    c->setup.codecs.stages = c->run.stages;
    c->setup.codecs.differ = false;
    show_codecs(c, (const rp_codec(*)[2])c->setup.codecs.now);
}

rp_err rp_codecs_keep(rp_controller *c, const rp_joint_answer *answer) {
    rp_err err = RP_OK;
    if (rp_codecs_are_wanted(c) && answer->is_known && answer->plan[0].plain_s > 0) {
        RP_TRY(open_codecs(c));
        take_codecs(c, answer->plan[0].codec);
    }
fail:
    return err;
}

static rp_err choose_codecs_of(rp_controller *c) {
    double *rate;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "rates", 0);
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)c->run.boards * c->run.boards, &rate));
    RP_TRY(open_codecs(c));
    rp_cost_rates(&c->run,
                  rp_measure_has_profile(c->measure) ? rp_measure_profile(c->measure) : NULL, rate);
    show_codecs(c, NULL);
    RP_TRY(rp_cost_choose_codecs(&c->run, &c->setup.now.cut, rp_measure_layer_seconds(c->measure),
                                 rate, c->setup.codecs.next));
    take_codecs(c, (const rp_codec(*)[2])c->setup.codecs.next);
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_codecs_choose(rp_controller *c) {
    return rp_codecs_are_wanted(c) ? choose_codecs_of(c) : RP_OK;
}

rp_err rp_codecs_of_row(rp_controller *c, const rp_codec (*codec)[2]) {
    rp_err err;
    RP_TRY(open_codecs(c));
    if (c->setup.codecs.stages == c->run.stages) {
        show_codecs(c, (const rp_codec(*)[2])c->setup.codecs.now);
    } else if (codec) {
        take_codecs(c, codec);
    } else {
        RP_TRY(choose_codecs_of(c));
    }
fail:
    return err;
}

/* Where a stage loses more than links.max_error, a milder codec is next. */
static rp_err judge_loss(rp_controller *c, const rp_sink_codec *line, bool gradients) {
    const rp_codec_choice *codecs = &c->setup.codecs;
    char text[200];
    if (codecs->stages != c->setup.plan->stage_count || line->l2_error <= c->run.codec_max_error) {
        return RP_OK;
    }
    const uint32_t boundary = line->stage - gradients;
    const rp_codec milder = rp_cost_milder(codecs->now[boundary][gradients], gradients);
    rp_codec *next = &codecs->next[boundary][gradients];
    if (*next == milder) {
        return RP_OK; /* it waits for empty pipes */
    }
    *next = milder;
    c->setup.codecs.differ = true;
    (void)snprintf(text, sizeof text,
                   "%s of stage %u lose %.2g %% in %s, and links.max_error is %.2g %%: %s is next",
                   line->carries, line->stage, 100 * line->l2_error, line->codec,
                   100 * c->run.codec_max_error, rp_codec_name(*next));
    return rp_record_event(rp_folder_record(c->folder), "codecs", line->step, text);
}

static rp_err note_loss(rp_controller *c, uint32_t stage, bool gradients) {
    const rp_plan *plan = c->setup.plan;
    rp_codec codec[2][2];
    rp_err err = RP_OK;
    rp_plan_codecs_of(plan, stage, codec);
    const rp_sink_codec line = {.step = c->train.position.step,
                                .stage = stage,
                                .carries = gradients ? "gradients" : "activations",
                                .codec = rp_codec_name(codec[!gradients][gradients]),
                                .l2_error = rp_losses_of_stage(c->measure, plan, stage, gradients)};
    if (!isnan(line.l2_error)) {
        RP_TRY(rp_record_codec(rp_folder_record(c->folder), &line));
        RP_TRY(judge_loss(c, &line, gradients));
    }
fail:
    return err;
}

rp_err rp_controller_note_losses(rp_controller *c) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < c->setup.plan->stage_count; k++) {
        RP_TRY(note_loss(c, k, false));
        RP_TRY(note_loss(c, k, true));
    }
    rp_losses_end_segment(c->measure);
fail:
    return err;
}

rp_err rp_codecs_resume(rp_controller *c, const rp_setup *then) {
    rp_err err = RP_OK;
    if (c->run.codec_auto && !c->setup.given && then->codec &&
        then->cut.stage_count == c->run.stages && then->codec_stages == c->run.stages) {
        RP_TRY(open_codecs(c));
        take_codecs(c, then->codec);
        c->setup.codecs.measured = true; /* or would not be its bits */
    }
fail:
    return err;
}

static rp_err say_codecs(const rp_controller *c, const char *why, rp_codec (*of)[2]) {
    char text[400];
    size_t used =
        (size_t)snprintf(text, sizeof text, "%sfrom stage to stage (activations/gradients):", why);
    for (uint32_t k = 0; k + 1 < c->run.stages && used + 1 < sizeof text; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, " %s/%s", rp_codec_name(of[k][0]),
                                 rp_codec_name(of[k][1]));
    }
    return rp_record_event(rp_folder_record(c->folder), "codecs", c->train.position.step, text);
}

rp_err rp_controller_say_codecs(const rp_controller *c) {
    const bool any = rp_folder_record(c->folder) && c->setup.codecs.stages == c->run.stages;
    return any ? say_codecs(c, "", c->setup.codecs.now) : RP_OK;
}

/* As acks have said, else as measured before; 0 of those of
 * which nobody knows. Of all wires, or of those that were full: one that was seldom full may be
 * faster (link/pace.h). */
void rp_codecs_find_rates(const rp_controller *c, bool full_only, double *rate) {
    const double seconds =
        (double)(c->ring.now_ns - rp_train_segment_start_ns(c->train.room)) * 1e-9;
    if (rp_measure_has_profile(c->measure) && c->ring.count == c->run.boards) {
        rp_cost_rates(&c->run, rp_measure_profile(c->measure), rate);
    }
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_facts *facts = &c->ring.board[k].facts;
        for (uint32_t i = 0; i < facts->link_count; i++) {
            const rp_board_link *link = &facts->link[i];
            const bool fits = !full_only || link->busy_s > FULL * seconds;
            const bool stays = link->peer < c->ring.count; /* in the ring */
            if (link->rate > 0 && fits && stays) {
                rate[(size_t)k * c->ring.count + link->peer] = link->rate;
            }
        }
    }
}

rp_err rp_controller_follow_wires(rp_controller *c) {
    rp_codec(*next)[2] = c->setup.codecs.next;
    double *rate;
    rp_arena arena;
    rp_err err = RP_OK;
    if (c->setup.codecs.stages != c->run.stages || c->setup.codecs.measured || c->run.emulate) {
        return RP_OK;
    }
    c->setup.codecs.measured = true;
    rp_arena_init(&arena, "rates", 0);
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)c->ring.count * c->ring.count, &rate));
    rp_codecs_find_rates(c, true, rate);
    RP_TRY(rp_cost_choose_codecs(&c->run, &c->setup.now.cut, rp_measure_layer_seconds(c->measure),
                                 rate, next));
    c->setup.codecs.differ =
        memcmp(next, c->setup.codecs.now, (c->run.stages - 1) * sizeof *next) != 0;
    RP_TRY(c->setup.codecs.differ ? say_codecs(c, "wires were full; next, ", next) : RP_OK);
fail:
    rp_arena_finish(&arena);
    return err;
}

void rp_controller_follow_losses(rp_controller *c) {
    if (!c->setup.codecs.differ || rp_controller_drained_at(c) != c->train.position.step) {
        return;
    }
    if (c->setup.follow.phase == RP_FOLLOW_NONE && c->train.position.step < rp_controller_end(c)) {
        c->setup.follow = (rp_follow){.phase = RP_FOLLOW_DRAIN, .before = c->run.method.advance};
        c->setup.advance_least = c->run.method.advance;
    }
    take_codecs(
        c, (const rp_codec(*)[2])c->setup.codecs.next); /* also for a run that is made longer */
}

bool rp_controller_wants_milder(const rp_controller *c) {
    return c->setup.codecs.differ && rp_controller_drained_at(c) < rp_controller_next_evaluation(c);
}
