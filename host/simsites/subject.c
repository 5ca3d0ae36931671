#include "simsites/subject.h"

#include <math.h>
#include <string.h>

#include "run/patterns.h"
#include "run/remarks.h"

/* Seconds of a forward and a backward of a layer with the digest executor. */
static const double FORWARD_S = 1e-4, BACKWARD_S = 2e-4;

/* The simulation knows no time of a line that the run file does not describe. */
static double known_s(double seconds) {
    return isfinite(seconds) ? seconds : 0;
}

static rp_err find_times(rp_sim_sites_subject *s, const char *executor, const char *profile) {
    const bool timed = strcmp(executor, "timed") == 0;
    const rp_round_costs costs = {.profile = timed ? profile : NULL,
                                  .op_s = {timed ? 0 : FORWARD_S, timed ? 0 : BACKWARD_S},
                                  .has_all_sites = true};
    rp_round_time *longest;
    rp_err err;
    RP_TRY(rp_round_times(&s->arena, &s->run, &s->list, &s->cost, &costs, &s->time));
    RP_TRY(RP_ARENA_NEW(&s->arena, (size_t)s->list.sites + 1, &longest));
    for (uint32_t i = 0; i < s->list.sites; i++) {
        rp_round_time *time = &s->time[i];
        if (!isfinite(time->step_s)) {
            return rp_fail(RP_ERR_USAGE,
                           "--executor timed: the time of a step of site %s is unknown: expected "
                           "--profile PROFILE.json, or a ring.throttle in its run file",
                           s->list.site[i].name);
        }
        time->down_s = known_s(time->down_s);
        time->up_s = known_s(time->up_s);
        longest[i] = *time;
    }
    rp_round_keep_longest(longest, s->list.sites, s->cost.members);
    s->round_s = rp_round_length_s(longest, s->cost.members, s->run.federated.at_once);
fail:
    return err;
}

static rp_err read_options(rp_sim_sites_subject *s) {
    const rp_site_options *options = &s->run.federated.options;
    const uint32_t count = rp_patterns_count(options->keep);
    const char **pattern;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&s->arena, (size_t)count + 1, &pattern));
    for (uint32_t i = 0; i < count; i++) {
        pattern[i] = rp_node_text(rp_patterns_at(options->keep, i));
    }
    s->rules = (rp_round_rules){.keep = pattern,
                                .keep_count = count,
                                .drift = options->drift,
                                .keeps_optimizer = options->keeps_optimizer,
                                .clip = options->clip,
                                .delta = options->delta};
    s->keeps_state = rp_site_options_keep_state(options);
    s->has_options = s->keeps_state || options->clip > 0;
fail:
    return err;
}

static rp_err read_trace(rp_sim_sites_subject *s) {
    const char **name;
    rp_err err;
    if (!s->run.federated.trace) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(&s->arena, (size_t)s->list.sites + 1, &name));
    for (uint32_t i = 0; i < s->list.sites; i++) {
        name[i] = s->list.site[i].name;
    }
    err = rp_trace_read(&s->arena, s->run.federated.trace, name, s->list.sites, &s->trace);
fail:
    return err;
}

rp_err rp_sim_sites_open(const char *run_path, const char *const *set, uint32_t set_count,
                         const char *executor, const char *profile, rp_sim_sites_subject *out) {
    rp_err err;
    *out = (rp_sim_sites_subject){0};
    rp_arena_init(&out->arena, "sites", 0);
    RP_TRY(rp_runfile_read(&out->arena, run_path, set, set_count, &out->run));
    RP_TRY(read_options(out));
    RP_TRY(rp_runfile_check_cut(&out->run));
    RP_TRY(rp_runfile_check_values(&out->run));
    RP_TRY(rp_federation_find_cost(&out->arena, &out->run, &out->cost));
    RP_TRY(rp_split_file_read(&out->arena, out->run.federated.split, &out->list));
    RP_TRY(read_trace(out));
    RP_TRY(rp_standin_open(&out->arena, out->run.model, out->run.seed, &out->standin));
    RP_TRY(find_times(out, executor, profile));
    return RP_OK;
fail:
    rp_sim_sites_close(out);
    return err;
}

void rp_sim_sites_close(rp_sim_sites_subject *subject) {
    rp_runfile_close(&subject->run);
    rp_arena_finish(&subject->arena);
}
