#include "simsites/virtual.h"

#include <math.h>
#include <stdio.h>

#include "simsites/virtual_own.h"

enum { EXIT_KILLED = 137, STATES_MAX = 60 };

/* ---- time ------------------------------------------------------------------------------------ */

int64_t rp_virtual_now_ns(const rp_virtual *v) {
    return rp_virtual_time_ns(v);
}

const rp_clock *rp_virtual_clock(const rp_virtual *v) {
    return &v->clock;
}

/* Share of full speed at which the work of a site goes on. */
static double speed_of(const rp_virtual_site *site) {
    if (site->phase == RP_VIRTUAL_FAILING || site->phase == RP_VIRTUAL_ENDING) {
        return site->stills > 0 ? 0 : 1;
    }
    if (site->phase == RP_VIRTUAL_NONE || site->phase == RP_VIRTUAL_ENDED || site->stills > 0 ||
        (site->phase == RP_VIRTUAL_DOWN && site->down_outs > 0) ||
        (site->phase == RP_VIRTUAL_UP && site->up_outs > 0)) {
        return 0;
    }
    return site->phase == RP_VIRTUAL_TRAIN && site->slow > 1 ? 1 / site->slow : 1;
}

static int64_t end_ns(const rp_virtual *v, const rp_virtual_site *site) {
    const double speed = speed_of(site);
    return speed > 0 ? rp_virtual_now_ns(v) + (int64_t)ceil(site->left_ns / speed) : INT64_MAX;
}

static int64_t fault_end_ns(const rp_sim_fault *fault) {
    return fault->at_ns + fault->for_ns;
}

int64_t rp_virtual_next_ns(const rp_virtual *v) {
    int64_t next_ns = INT64_MAX;
    for (uint32_t i = 0; i < v->sites; i++) {
        const int64_t at_ns = end_ns(v, &v->site[i]);
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    next_ns = v->scoring && !v->score_ended && v->score_ns < next_ns ? v->score_ns : next_ns;
    if (v->begun < v->faults->count && v->faults->fault[v->begun].at_ns < next_ns) {
        next_ns = v->faults->fault[v->begun].at_ns;
    }
    for (uint32_t i = 0; i < v->begun; i++) {
        const int64_t at_ns = fault_end_ns(&v->faults->fault[i]);
        next_ns = !v->over[i] && at_ns < next_ns ? at_ns : next_ns;
    }
    return next_ns;
}

/* ---- faults ---------------------------------------------------------------------------------- */

bool rp_virtual_knows(rp_sim_fault_kind kind) {
    switch (kind) {
    case RP_SIM_FAULT_CRASH:
    case RP_SIM_FAULT_GONE:
    case RP_SIM_FAULT_SLOW:
    case RP_SIM_FAULT_SUSPEND:
    case RP_SIM_FAULT_PARTITION:
    case RP_SIM_FAULT_WRONG:
    case RP_SIM_FAULT_HOST_STILL:
    case RP_SIM_FAULT_HOST_CRASH:
    case RP_SIM_FAULT_SAVE_CRASH:
    case RP_SIM_FAULT_INTERRUPT:
        return true;
    default:
        return false;
    }
}

static bool is_running(const rp_virtual_site *site) {
    return site->phase != RP_VIRTUAL_NONE && site->phase != RP_VIRTUAL_ENDED;
}

static void lose_site(rp_virtual *v, uint32_t index, const rp_sim_fault *fault) {
    rp_virtual_site *site = &v->site[index];
    const int64_t until_ns = fault_end_ns(fault);
    if (fault->kind == RP_SIM_FAULT_GONE && !site->gone) {
        site->gone = true;
        site->loses_all = rp_rng_below(&v->draw, 2) == 0;
    }
    site->away_until_ns = until_ns > site->away_until_ns ? until_ns : site->away_until_ns;
    if (is_running(site)) {
        rp_virtual_end_site(v, index, EXIT_KILLED);
    }
}

static void hit_host(rp_virtual *v, const rp_sim_fault *fault) {
    switch (fault->kind) {
    case RP_SIM_FAULT_HOST_CRASH:
        v->killed = v->host.killed = true;
        break;
    case RP_SIM_FAULT_SAVE_CRASH:
        v->armed = v->armed > 0 ? v->armed : 1 + rp_rng_below(&v->draw, STATES_MAX);
        break;
    case RP_SIM_FAULT_INTERRUPT:
        v->host.interrupts++;
        break;
    default:
        v->host.still_until_ns = fault_end_ns(fault);
        break;
    }
}

/* Adds `change` to what the fault does while it lasts. */
static void change_site(rp_virtual *v, const rp_sim_fault *fault, int change) {
    const bool down = fault->from == RP_SIM_HOST;
    rp_virtual_site *site = &v->site[down ? fault->to : fault->from];
    uint32_t *count = fault->kind == RP_SIM_FAULT_WRONG     ? &site->damages
                      : fault->kind == RP_SIM_FAULT_SUSPEND ? &site->stills
                      : down                                ? &site->down_outs
                                                            : &site->up_outs;
    if (fault->kind == RP_SIM_FAULT_SLOW) {
        site->slow = change > 0 && fault->amount > 1 ? fault->amount : 1;
    } else {
        *count += (uint32_t)change;
    }
}

static void begin_fault(rp_virtual *v, const rp_sim_fault *fault) {
    char text[128];
    rp_sim_fault_text(fault, text, sizeof text);
    rp_eventlog_add(v->log, rp_virtual_now_ns(v), "fault", "%s", text);
    v->kind[fault->kind]++;
    if (rp_sim_fault_target(fault->kind) == RP_SIM_TARGET_HOST) {
        hit_host(v, fault);
    } else if (fault->kind == RP_SIM_FAULT_CRASH || fault->kind == RP_SIM_FAULT_GONE) {
        lose_site(v, fault->from, fault);
    } else {
        change_site(v, fault, 1);
    }
}

static bool lasts(const rp_sim_fault *fault) {
    return rp_sim_fault_target(fault->kind) != RP_SIM_TARGET_HOST &&
           fault->kind != RP_SIM_FAULT_CRASH && fault->kind != RP_SIM_FAULT_GONE;
}

static void change_faults(rp_virtual *v) {
    const int64_t now_ns = rp_virtual_now_ns(v);
    while (v->begun < v->faults->count && v->faults->fault[v->begun].at_ns <= now_ns) {
        begin_fault(v, &v->faults->fault[v->begun++]);
    }
    for (uint32_t i = 0; i < v->begun; i++) {
        const rp_sim_fault *fault = &v->faults->fault[i];
        if (!v->over[i] && fault_end_ns(fault) <= now_ns) {
            v->over[i] = true;
            if (lasts(fault)) {
                change_site(v, fault, -1);
            }
        }
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

rp_err rp_virtual_advance(rp_virtual *v, int64_t now_ns) {
    const double passed_ns = (double)(now_ns - rp_virtual_now_ns(v));
    rp_err err = RP_OK;
    RP_ASSERT(passed_ns >= 0);
    for (uint32_t i = 0; i < v->sites; i++) {
        v->site[i].left_ns -= passed_ns * speed_of(&v->site[i]);
    }
    v->clock.stepped_ns = RP_VIRTUAL_BEGIN_NS + now_ns;
    for (uint32_t i = 0; i < v->sites; i++) {
        rp_virtual_site *site = &v->site[i];
        while (speed_of(site) > 0 && site->left_ns < 0.5) {
            RP_TRY(rp_virtual_next_phase(v, i));
        }
    }
    if (v->scoring && !v->score_ended && v->score_ns <= now_ns) {
        RP_TRY(rp_virtual_end_score(v));
    }
    change_faults(v);
fail:
    return err;
}

rp_virtual_host rp_virtual_take_host(rp_virtual *v) {
    const rp_virtual_host host = v->host;
    v->host = (rp_virtual_host){0};
    return host;
}

bool rp_virtual_is_killed(const rp_virtual *v) {
    return v->killed;
}

void rp_virtual_begin_host(rp_virtual *v, const char *folder) {
    (void)snprintf(v->log_path, sizeof v->log_path, "%.4000s/log.jsonl", folder);
    v->killed = false;
    v->host = (rp_virtual_host){0};
}

rp_err rp_virtual_repair(rp_virtual *v) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < v->sites; i++) {
        RP_TRY(v->site[i].gone ? rp_virtual_lose_kept(v, i) : RP_OK);
        v->site[i].gone = false;
    }
fail:
    return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err open_site(rp_arena *arena, const rp_sim_sites_subject *subject,
                        rp_virtual_site *site) {
    const size_t values = (size_t)subject->standin.values + 1;
    const size_t rounds = (size_t)subject->run.federated.rounds + 2;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, values, &site->state.values));
    RP_TRY(RP_ARENA_NEW(arena, rounds, &site->saved));
    RP_TRY(RP_ARENA_NEW(arena, rounds, &site->from));
    for (size_t n = 0; n < rounds; n++) {
        site->from[n] = RP_SITE_NO_ROUND;
    }
    if (subject->rules.keeps_optimizer) {
        RP_TRY(RP_ARENA_NEW(arena, values, &site->state.momentum));
    }
    if (subject->rules.drift) {
        RP_TRY(RP_ARENA_NEW(arena, values, &site->state.drift));
    }
fail:
    return err;
}

rp_err rp_virtual_open(rp_arena *arena, const rp_sim_sites_subject *subject,
                       const rp_sim_faults *faults, rp_rng draw, rp_eventlog *log,
                       rp_virtual **out) {
    rp_virtual *v;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &v));
    *v = (rp_virtual){.subject = subject,
                      .faults = faults,
                      .log = log,
                      .clock = rp_clock_stepped(RP_VIRTUAL_BEGIN_NS),
                      .draw = draw,
                      .sites = subject->list.sites};
    RP_TRY(RP_ARENA_NEW(arena, (size_t)v->sites + 1, &v->site));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)faults->count + 1, &v->over));
    for (uint32_t i = 0; i < v->sites; i++) {
        v->site[i].slow = 1;
        RP_TRY(open_site(arena, subject, &v->site[i]));
    }
    *out = v;
fail:
    return err;
}

uint32_t rp_virtual_faults(const rp_virtual *v) {
    return v->begun;
}

const uint32_t *rp_virtual_fault_kinds(const rp_virtual *v) {
    return v->kind;
}

uint64_t rp_virtual_from(const rp_virtual *v, uint32_t site, uint64_t round) {
    return v->site[site].from[round];
}

const uint32_t *rp_virtual_kills(const rp_virtual *v) {
    return v->kills;
}
