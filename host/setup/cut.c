/* Chooses the cut, with all that the same search finds: schedule (`plan.schedules`), microbatch
 * (`train.microbatch: auto`) and codecs. */
#include <stdio.h>
#include <string.h>

#include "planning/cost.h"
#include "planning/halves.h"
#include "setup/choice.h"

rp_err rp_micro_take(rp_choice *c, const rp_joint_answer *answer) {
    const bool known = answer && answer->is_known;
    const uint32_t before = c->run.micro;
    if (!c->run.micro_auto) {
        return RP_OK;
    }
    RP_ASSERT(!known || (answer->with_micro > 0 && answer->with_micro <= c->run.batch));
    c->next.micro_auto = false; /* chosen once in a run */
    c->next.micro = known ? answer->with_micro : before;
    rp_choice_refresh(c);
    return rp_choice_say(c,
                         &(rp_run_event){.kind = !known ? RP_EVENT_MICRO_UNMEASURED
                                                 : c->run.micro == before ? RP_EVENT_MICRO_KEPT
                                                                          : RP_EVENT_MICRO_CHOSEN,
                                         .micro = c->run.micro});
}

rp_err rp_schedule_take(rp_choice *c, const rp_joint_answer *answer) {
    const bool known = answer && answer->is_known;
    char *words;
    rp_err err = RP_OK;
    if (!c->run.schedule_auto) {
        return RP_OK;
    }
    c->next.schedule_auto = false; /* chosen once in a run */
    if (known && answer->plan[0].schedule > 0) {
        rp_setup_take_schedule(&c->next, c->wish, answer->plan[0].schedule);
    }
    rp_choice_refresh(c);
    if (known) {
        RP_TRY(rp_arena_string(c->arena, answer->schedule, &words));
        c->why->schedule = words;
        const rp_run_event event = {.kind = RP_EVENT_SCHEDULE, .why = words};
        RP_TRY(words[0] ? rp_choice_say(c, &event) : RP_OK);
    }
fail:
    return err;
}

rp_err rp_cut_take(rp_choice *c, const rp_cut *cut) {
    uint32_t *first;
    rp_err err;
    RP_ASSERT(cut->stage_count > 0 && cut->stage_count <= RP_CUT_STAGES_MAX && cut->first[0] == 0);
    RP_ASSERT(cut->first[cut->stage_count] == c->run.model->layer_count);
    RP_TRY(RP_ARENA_NEW(c->arena, (size_t)cut->stage_count + 1, &first));
    memcpy(first, cut->first, ((size_t)cut->stage_count + 1) * sizeof *first);
    c->next.cut = (rp_cut){.stage_count = cut->stage_count, .first = first};
    if (c->next.size_stages != cut->stage_count) {
        rp_setup_reopen_sizes(&c->next, c->wish); /* they belong to another cut */
    }
    rp_choice_refresh(c);
fail:
    return err;
}

rp_err rp_cut_find(rp_choice *c, rp_joint_answer *answer, rp_cut *cut) {
    uint32_t *first;
    rp_err err;
    rp_joint_ask ask = rp_choice_ask(c);
    ask.share_most = 1;
    RP_TRY(rp_joint_search(&ask, answer));
    if (!answer->is_known) {
        return rp_ahead_is_bounded(c)
                   ? rp_halves_cut(c->arena, &c->run, &c->placed, cut, NULL)
                   : rp_cost_choose_cut_by_board(c->arena, &c->run, &c->placed, cut);
    }
    RP_TRY(RP_ARENA_NEW(c->arena, (size_t)c->run.stages + 1, &first));
    memcpy(first, answer->plan[0].first, ((size_t)c->run.stages + 1) * sizeof *first);
    *cut = (rp_cut){.stage_count = c->run.stages, .first = first};
fail:
    return err;
}

static bool has_former_cut(const rp_choice *c) {
    return c->facts->then && c->facts->then->stage_count == c->run.stages;
}

bool rp_cut_is_open(const rp_choice *c) {
    return c->run.cut_auto && !has_former_cut(c) && c->run.stages > 1 && !rp_choice_is_fixed(c);
}

/* Takes the cut with the fastest replay, and schedule, microbatch and codecs of that plan. */
static rp_err choose_by_profile(rp_choice *c, rp_cut *cut) {
    rp_joint_answer answer;
    rp_err err;
    RP_ASSERT(c->facts->profile);
    RP_TRY(rp_cut_find(c, &answer, cut));
    RP_TRY(rp_schedule_take(c, &answer));
    RP_TRY(rp_micro_take(c, &answer));
    RP_TRY(rp_codecs_take(c, &answer));
fail:
    return err;
}

rp_err rp_cut_choose(rp_choice *c) {
    const uint32_t whole[2] = {0, c->run.model->layer_count};
    rp_cut cut = {.stage_count = 1, .first = whole};
    rp_err err = RP_OK;
    if (rp_choice_is_fixed(c)) {
        cut = c->next.cut;
    } else if (!c->run.cut_auto) {
        cut = c->run.cut;
    } else if (has_former_cut(c)) {
        cut = *c->facts->then; /* new measurements would differ, and a resumed run must not */
    } else if (rp_cut_is_open(c)) {
        RP_TRY(choose_by_profile(c, &cut));
    }
    RP_TRY(rp_micro_take(c, NULL)); /* still open: keep the default */
    RP_TRY(rp_schedule_take(c, NULL));
    RP_TRY(rp_cut_take(c, &cut));
fail:
    return err;
}

rp_err rp_cut_settle(const rp_settling *s) {
    const rp_setup *now = s->now;
    char micro[16];
    rp_err err;
    (void)snprintf(micro, sizeof micro, "%u", now->micro);
    RP_TRY(s->was->micro_auto && !now->micro_auto ? rp_settle(s, "train.microbatch", micro)
                                                  : RP_OK);
    RP_TRY(now->schedule != s->was->schedule
               ? rp_settle(s, "schedule", s->run->schedules.at[now->schedule].text)
               : RP_OK);
fail:
    return err;
}
