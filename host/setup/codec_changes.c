/* `links.codec: auto` at pauses: selects other codecs where they lose too much or wires are full.
 * They are used once the pipes are empty. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "measure/losses.h"
#include "planning/cost.h"
#include "setup/setup_own.h"

/* A wire is full if its bytes, at the rate shown by acks, take this fraction of the time. */
static const double FULL = 0.8;

bool rp_codecs_may_change(const rp_arrangement *a) {
    return a->run.codec_auto && a->now.codec_stages != a->run.stages;
}

/* The codecs were chosen by this room for this number of stages. */
static bool are_chosen(const rp_arrangement *a, uint32_t stages) {
    return a->run.codec_auto && !rp_arrangement_is_fixed(a) && a->now.codec_stages == stages;
}

/* A codec that lost more than links.max_error is replaced by the next milder one. */
static rp_err judge_loss(rp_arrangement *a, const rp_sink_codec *line, bool gradients) {
    rp_codecs_waiting *codecs = &a->codecs;
    if (!are_chosen(a, a->plan->stage_count) || line->l2_error <= a->run.codec_max_error) {
        return RP_OK;
    }
    const uint32_t boundary = line->stage - gradients;
    const rp_codec milder = rp_cost_milder(a->now.codec[boundary][gradients], gradients);
    rp_codec *next = &codecs->next[boundary][gradients];
    if (*next == milder) {
        return RP_OK; /* already selected */
    }
    *next = milder;
    codecs->differ = true;
    return rp_record_event(rp_folder_record(a->folder),
                           &(rp_run_event){.kind = RP_EVENT_CODEC_MILDER,
                                           .step = line->step,
                                           .stage = line->stage,
                                           .carries = line->carries,
                                           .codec = line->codec,
                                           .l2_error = line->l2_error,
                                           .max_error = a->run.codec_max_error,
                                           .next_codec = rp_codec_name(*next)});
}

static rp_err note_loss(rp_arrangement *a, uint32_t stage, bool gradients) {
    RP_ASSERT(a->plan && stage < a->plan->stage_count);
    const rp_plan *plan = a->plan;
    rp_codec codec[2][2];
    rp_err err = RP_OK;
    rp_plan_codecs_of(plan, stage, codec);
    const rp_sink_codec line = {.step = a->position->step,
                                .stage = stage,
                                .carries = gradients ? "gradients" : "activations",
                                .codec = rp_codec_name(codec[!gradients][gradients]),
                                .l2_error = rp_losses_of_stage(a->measure, plan, stage, gradients)};
    if (!isnan(line.l2_error)) {
        RP_TRY(rp_record_codec(rp_folder_record(a->folder), &line));
        RP_TRY(judge_loss(a, &line, gradients));
    }
fail:
    return err;
}

rp_err rp_arrangement_note_losses(rp_arrangement *a) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < a->plan->stage_count; k++) {
        RP_TRY(note_loss(a, k, false));
        RP_TRY(note_loss(a, k, true));
    }
    rp_losses_end_segment(a->measure);
fail:
    return err;
}

static rp_err say_codecs(const rp_arrangement *a, rp_event_kind kind, const rp_codec (*of)[2]) {
    RP_ASSERT(of && rp_folder_record(a->folder));
    char list[320] = "";
    size_t used = 0;
    for (uint32_t k = 0; k + 1 < a->run.stages && used < sizeof list; k++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s/%s", k ? " " : "",
                                 rp_codec_name(of[k][0]), rp_codec_name(of[k][1]));
    }
    return rp_record_event(
        rp_folder_record(a->folder),
        &(rp_run_event){.kind = kind, .step = a->position->step, .codecs = list});
}

rp_err rp_arrangement_say_codecs(const rp_arrangement *a) {
    const bool any = rp_folder_record(a->folder) && are_chosen(a, a->run.stages);
    return any ? say_codecs(a, RP_EVENT_CODECS, a->now.codec) : RP_OK;
}

/* Rates as shown by acks, else as measured before; 0: unknown. A wire that was seldom full may be
 * faster than acks show (link/pace.h). */
void rp_arrangement_find_rates(const rp_arrangement *a, bool full_only, double segment_s,
                               double *rate) {
    RP_ASSERT(a->ring->count <= a->opened.boards + a->opened.spares);
    if (rp_measure_has_profile(a->measure) && a->ring->count == a->run.boards) {
        rp_cost_rates(&a->run, rp_measure_profile(a->measure), rate);
    }
    for (uint32_t k = 0; k < a->ring->count; k++) {
        const rp_board_facts *facts = &a->ring->board[k].facts;
        for (uint32_t i = 0; i < facts->link_count; i++) {
            const rp_board_link *link = &facts->link[i];
            const bool fits = !full_only || link->busy_s > FULL * segment_s;
            const bool stays = link->peer < a->ring->count; /* in the ring */
            if (link->rate > 0 && fits && stays) {
                rate[(size_t)k * a->ring->count + link->peer] = link->rate;
            }
        }
    }
}

rp_err rp_arrangement_follow_wires(rp_arrangement *a, double segment_s) {
    rp_codec(*next)[2] = a->codecs.next;
    double *rate;
    rp_arena arena;
    rp_err err = RP_OK;
    if (!are_chosen(a, a->run.stages) || a->codecs.measured || a->run.emulate) {
        return RP_OK;
    }
    a->codecs.measured = true;
    rp_arena_init(&arena, "rates", 0);
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)a->ring->count * a->ring->count, &rate));
    rp_arrangement_find_rates(a, true, segment_s, rate);
    RP_TRY(rp_cost_choose_codecs(&a->run, &a->now.cut, rp_measure_layer_seconds(a->measure), rate,
                                 next));
    a->codecs.differ = memcmp(next, a->now.codec, (a->run.stages - 1) * sizeof *next) != 0;
    RP_TRY(a->codecs.differ ? say_codecs(a, RP_EVENT_CODECS_NEXT, (const rp_codec(*)[2])next)
                            : RP_OK);
fail:
    rp_arena_finish(&arena);
    return err;
}

bool rp_arrangement_waits_for_codecs(const rp_arrangement *a) {
    return a->codecs.differ;
}

void rp_arrangement_take_next_codecs(rp_arrangement *a) {
    RP_ASSERT(a->codecs.differ);
    rp_setup next = a->now;
    next.codec = (const rp_codec(*)[2])a->codecs.next;
    rp_arrangement_put(a, &next);
    a->codecs.differ = false;
}
