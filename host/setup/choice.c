/* A choice in progress: the next setup so far, with its run file and profile. */
#include "setup/choice.h"

#include <string.h>

static bool has_places(const rp_choice *c) {
    return c->facts->profile && c->placed.place;
}

const char *rp_choice_name(const rp_choice *c, uint32_t place) {
    RP_ASSERT(place < c->next.boards);
    return c->next.roster ? c->next.roster[place].name : c->facts->name[place];
}

void rp_choice_refresh(rp_choice *c) {
    const char *name[RP_CUT_STAGES_MAX];
    RP_ASSERT(c->next.boards > 0 && c->next.boards <= RP_CUT_STAGES_MAX);
    rp_setup_run(c->wish, &c->next, &c->run);
    if (has_places(c)) {
        for (uint32_t k = 0; k < c->next.boards; k++) {
            name[k] = rp_choice_name(c, k);
        }
        rp_profile_place(&c->placed, name, c->next.boards);
        c->placed.micro = c->next.micro;
    }
}

rp_err rp_choice_open(rp_choice *c, const rp_runfile *wish, const rp_setup_facts *facts,
                      const rp_setup *now, rp_arena *arena, rp_setup_why *why) {
    const rp_profile *profile = facts->profile;
    rp_err err = RP_OK;
    RP_ASSERT(rp_setup_check(now, wish) == NULL);
    *c = (rp_choice){.arena = arena, .wish = wish, .facts = facts, .next = *now, .why = why};
    *why = (rp_setup_why){.count = 0};
    if (profile) {
        c->placed = *profile;
        RP_TRY(RP_ARENA_NEW(arena, profile->board_count, &c->placed.place));
        memcpy(c->placed.place, profile->place, profile->board_count * sizeof *profile->place);
    }
    rp_choice_refresh(c);
fail:
    return err;
}

rp_err rp_choice_say(rp_choice *c, const rp_run_event *event) {
    RP_ASSERT(c->why->count < RP_SETUP_EVENTS_MAX);
    return rp_words_copy(c->arena, event, &c->why->event[c->why->count++]);
}

bool rp_choice_is_fixed(const rp_choice *c) {
    return c->facts->is_given || c->next.group;
}

rp_joint_ask rp_choice_ask(const rp_choice *c) {
    const rp_runfile *run = &c->run;
    RP_ASSERT(has_places(c));
    return (rp_joint_ask){.run = run,
                          .profile = &c->placed,
                          .delay_s = c->facts->delay_s,
                          .cuts_open = true,
                          .codecs_open = run->codec_auto && c->next.codec_stages != run->stages,
                          .share_most = run->plan.share,
                          .micro_open = run->micro_auto,
                          .schedules_open = run->schedule_auto,
                          .clock = c->facts->clock,
                          .limit_ns = (int64_t)(run->plan.seconds * (double)RP_NS_PER_S)};
}

rp_err rp_choice_layer_seconds(rp_choice *c, double **out) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(c->arena, 2 * (size_t)c->run.model->layer_count, out));
    if (c->facts->profile) {
        rp_profile_seconds(&c->placed, &c->run, &c->next.cut, *out);
    }
fail:
    return err;
}

rp_err rp_settle(const rp_settling *s, const char *key, const char *value) {
    RP_ASSERT(s->out->count < RP_SETUP_SETTLED_MAX);
    return rp_arena_printf(s->arena, &s->out->set[s->out->count++], "%s=%s", key, value);
}
