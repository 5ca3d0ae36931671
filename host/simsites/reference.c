#include "simsites/reference.h"

#include <string.h>

#include "federation/rule.h"
#include "federation/sample.h"
#include "simsites/reference_site.h"

/* ---- who is asked ---------------------------------------------------------------------------- */

static uint32_t list_there(const rp_sim_sites_subject *s, double at_s, uint32_t *there) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->list.sites; i++) {
        if (!s->trace || rp_trace_is_there(&s->trace[i], at_s)) {
            there[count++] = i;
        }
    }
    return count;
}

rp_err rp_sim_reference_asked(rp_arena *arena, const rp_sim_sites_subject *s, rp_sim_round **out) {
    enum { WAITS_MAX = 1000000 };
    const rp_federated_keys *keys = &s->run.federated;
    const uint32_t least = keys->least > 0 ? keys->least : 1;
    double at_s = 0;
    uint32_t *there;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)s->list.sites + 1, &there));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)keys->rounds + 1, out));
    for (uint32_t r = 0; r < keys->rounds; r++) {
        rp_sim_round *round = &(*out)[r];
        uint32_t count = list_there(s, at_s, there);
        for (uint32_t n = 0; count < least && n < WAITS_MAX; n++) {
            at_s += keys->trace_s;
            count = list_there(s, at_s, there);
        }
        if (count < least) {
            return rp_fail(RP_ERR_USAGE, "%s: %u sites are never there together", keys->trace,
                           least);
        }
        RP_TRY(RP_ARENA_NEW(arena, (size_t)s->cost.members + 1, &round->member));
        RP_TRY(rp_sample_draw(arena, s->run.seed, r + 1, there, count, s->cost.members,
                              round->member, &round->count));
        at_s += keys->trace_s;
    }
fail:
    return err;
}

/* ---- the centre ------------------------------------------------------------------------------ */

typedef struct {
    const rp_sim_sites_subject *subject;
    rp_arena arena;
    float *x, *own;             /* [values]; [sites][values] elastic: weights of a site */
    bool *has_own;              /* [sites] */
    double *m, *v;              /* [values] */
    double *from, *next;        /* [values] */
    double **y, **moved;        /* [members][values] */
    const double **y_at;        /* [members] of a tensor */
    double **moved_at, *column; /* [members] */
    rp_rule_member *member;     /* [members] */
    rp_reference_sites *trains;
} reference;

static rp_err make_room(reference *r) {
    const size_t values = (size_t)r->subject->standin.values + 1;
    const size_t members = (size_t)r->subject->cost.members + 1;
    const size_t sites = (size_t)r->subject->list.sites + 1;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&r->arena, values, &r->x));
    RP_TRY(RP_ARENA_NEW(&r->arena, values * sites, &r->own));
    RP_TRY(RP_ARENA_NEW(&r->arena, sites, &r->has_own));
    RP_TRY(RP_ARENA_NEW(&r->arena, values, &r->m));
    RP_TRY(RP_ARENA_NEW(&r->arena, values, &r->v));
    RP_TRY(RP_ARENA_NEW(&r->arena, values, &r->from));
    RP_TRY(RP_ARENA_NEW(&r->arena, values, &r->next));
    RP_TRY(RP_ARENA_NEW(&r->arena, members, &r->y));
    RP_TRY(RP_ARENA_NEW(&r->arena, members, &r->moved));
    RP_TRY(RP_ARENA_NEW(&r->arena, members, &r->y_at));
    RP_TRY(RP_ARENA_NEW(&r->arena, members, &r->moved_at));
    RP_TRY(RP_ARENA_NEW(&r->arena, members, &r->column));
    RP_TRY(RP_ARENA_NEW(&r->arena, members, &r->member));
    for (size_t i = 0; i < members; i++) {
        RP_TRY(RP_ARENA_NEW(&r->arena, values, &r->y[i]));
        RP_TRY(RP_ARENA_NEW(&r->arena, values, &r->moved[i]));
    }
fail:
    return err;
}

static float *own_of(const reference *r, uint32_t site) {
    return r->own + (size_t)site * r->subject->standin.values;
}

static const float *given_to(const reference *r, uint32_t site) {
    return r->has_own[site] ? own_of(r, site) : r->x;
}

/* Sites that were late have trained too, and may have saved what they keep. */
static rp_err train_sites(reference *r, const rp_sim_round *asked, const rp_sim_round *round,
                          uint64_t number) {
    const uint32_t values = r->subject->standin.values;
    uint32_t done = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < asked->count; i++) {
        const uint32_t site = asked->member[i];
        const bool takes_part = done < round->count && round->member[done] == site;
        const float *result;
        RP_TRY(rp_reference_train(r->trains, site, number, given_to(r, site), &result));
        for (uint32_t j = 0; takes_part && j < values; j++) {
            r->y[done][j] = (double)result[j];
        }
        done += takes_part;
    }
fail:
    return err;
}

static void weigh_sites(reference *r, const rp_sim_round *round) {
    const rp_sim_sites_subject *s = r->subject;
    const bool equal = s->run.federated.rule.equal;
    double all = 0;
    for (uint32_t i = 0; i < round->count; i++) {
        all += equal ? 1 : s->list.site[round->member[i]].train_count;
    }
    for (uint32_t i = 0; i < round->count; i++) {
        r->member[i] = (rp_rule_member){
            .weight = (equal ? 1 : s->list.site[round->member[i]].train_count) / all,
            .steps = (double)s->time[round->member[i]].steps};
    }
}

/* The centre's values of a tensor that sites keep never change. */
static void keep_tensor(reference *r, const rp_standin_tensor *tensor, uint32_t count) {
    for (uint32_t j = tensor->first; j < tensor->first + tensor->count; j++) {
        r->next[j] = r->from[j];
        for (uint32_t i = 0; i < count; i++) {
            r->moved[i][j] = r->from[j];
        }
    }
}

static void apply_rule(reference *r, uint32_t count, uint64_t update) {
    const rp_standin *standin = &r->subject->standin;
    const rp_rule_round round = {.rule = &r->subject->run.federated.rule,
                                 .member = r->member,
                                 .count = count,
                                 .update = update};
    for (uint32_t j = 0; j < standin->values; j++) {
        r->from[j] = (double)r->x[j];
    }
    for (uint32_t t = 0; t < standin->tensors; t++) {
        const rp_standin_tensor *tensor = &standin->tensor[t];
        for (uint32_t i = 0; i < count; i++) {
            r->y_at[i] = r->y[i] + tensor->first;
            r->moved_at[i] = r->moved[i] + tensor->first;
        }
        const rp_rule_values values = {.count = tensor->count,
                                       .x = r->from + tensor->first,
                                       .y = r->y_at,
                                       .m = r->m + tensor->first,
                                       .v = r->v + tensor->first,
                                       .moved = r->moved_at,
                                       .column = r->column,
                                       .next = r->next + tensor->first,
                                       .is_statistic = tensor->is_statistic};
        if (rp_site_keeps(&r->subject->rules, tensor->name)) {
            keep_tensor(r, tensor, count);
        } else {
            rp_rule_apply(&round, &values);
        }
    }
}

/* Weights are stored as f32. */
static void store_round(reference *r, const rp_sim_round *round) {
    const uint32_t values = r->subject->standin.values;
    const bool moves = rp_rule_moves_sites(r->subject->run.federated.rule.kind);
    for (uint32_t j = 0; j < values; j++) {
        r->x[j] = (float)r->next[j];
    }
    for (uint32_t i = 0; moves && i < round->count; i++) {
        float *own = own_of(r, round->member[i]);
        for (uint32_t j = 0; j < values; j++) {
            own[j] = (float)r->moved[i][j];
        }
        r->has_own[round->member[i]] = true;
    }
}

rp_err rp_sim_reference_center(const rp_sim_sites_subject *s, const rp_sim_round *asked,
                               const rp_sim_round *round, const rp_sim_from *from, float *out) {
    reference r = {.subject = s};
    rp_err err;
    rp_arena_init(&r.arena, "reference", 0);
    RP_TRY(make_room(&r));
    RP_TRY(rp_reference_open(&r.arena, s, from, &r.trains));
    rp_standin_begin(&s->standin, r.x);
    for (uint32_t n = 0; n < s->run.federated.rounds; n++) {
        RP_TRY(train_sites(&r, &asked[n], &round[n], n + 1));
        weigh_sites(&r, &round[n]);
        apply_rule(&r, round[n].count, n + 1);
        store_round(&r, &round[n]);
    }
    memcpy(out, r.x, s->standin.values * sizeof *out);
fail:
    rp_arena_finish(&r.arena);
    return err;
}
