#include "simsites/simsites.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/process.h"
#include "sim/tally.h"
#include "simsites/lives.h"
#include "simsites/virtual.h"

/* Limits of processor time and wall time for one seed: a hundred times what one takes. */
static const double BUSY_LIMIT_S = 60, LIMIT_S = 1200;

/* Rounds open and close many files and arenas. malloc keeps their memory instead of returning it to
 * the system, which would clear it again and again. */
static void tune_memory(void) {
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    (void)mallopt(M_TOP_PAD, 1 << 20);
}

static rp_err run_seed(void *context, uint64_t seed, rp_sim_result *out) {
    const rp_sim_sites_case *what = context;
    tune_memory();
    if (!what->trace && !what->result) {
        rp_log_setup(RP_LOG_NOTHING, ""); /* faults are expected here */
    }
    const rp_err err = rp_sim_sites_judge(what, seed, out);
    out->output_error = rp_process_output_error();
    return err;
}

typedef struct {
    rp_sim_sites_case what; /* first, because run_seed() takes a pointer to it */
    int output_error;
} job;

static void report_seed(void *context, uint64_t seed, const rp_sim_result *result) {
    static const char *const names[] = {"finished", "stopped and resumed", "hung", "wrong"};
    job *j = context;
    j->output_error = result->output_error;
    const bool bad = result->outcome == RP_SIM_HUNG || result->outcome == RP_SIM_WRONG;
    if (bad || j->what.trace) {
        (void)fprintf(stderr,
                      "seed %" PRIu64 ": %s after %.1f virtual seconds, %" PRIu32
                      " faults, %" PRIu64 " events with hash %016" PRIx64 "\n",
                      seed, names[result->outcome], result->virtual_s, result->faults,
                      result->events, result->event_hash);
    }
}

static rp_err check_options(const rp_sim_options *options) {
    if (options->plan || options->resume || options->once) {
        return rp_fail(RP_ERR_USAGE,
                       "sites: --%s is for a single ring, so it excludes `sites`: remove it",
                       options->plan     ? "plan"
                       : options->resume ? "resume"
                                         : "once");
    }
    return rp_sim_check_options(options);
}

/* A fault of a file: `node` counts the sites of the split file, and a line is one between the host
 * and a site. */
static rp_err check_faults(const char *path, const rp_sim_faults *faults) {
    for (uint32_t i = 0; i < faults->count; i++) {
        const rp_sim_fault *fault = &faults->fault[i];
        const char *name = rp_sim_fault_facts_at(fault->kind)->name;
        const bool is_edge = rp_sim_fault_target(fault->kind) == RP_SIM_TARGET_EDGE;
        if (!rp_virtual_knows(fault->kind) || fault->in < RP_CONTROL_STATES) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: fault '%s'%s is one of a ring's boards: expected crash, gone, "
                           "slow, suspend, partition, wrong, host-suspend, host-crash, save-crash "
                           "or interrupt, without `in`",
                           path, name, fault->in < RP_CONTROL_STATES ? " with `in`" : "");
        }
        if (is_edge && (fault->from == RP_SIM_HOST) == (fault->to == RP_SIM_HOST)) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: fault '%s': sites have lines to the host only: expected `host` as "
                           "one of `from` and `to`",
                           path, name);
        }
    }
    return RP_OK;
}

static json_t *json_of_kills(const rp_sim_marks *marks) {
    json_t *kills = json_object();
    for (uint32_t s = 0; s < RP_FEDERATION_AT_STATES; s++) {
        (void)json_object_set_new(kills, rp_virtual_state_name((rp_federation_at)s),
                                  json_integer(marks->kill[s]));
    }
    return json_pack("{s:o}", "killed_in", kills);
}

static rp_err run_seeds(const rp_sim_options *options, job *j) {
    const bool one = options->seed_first == options->seed_last;
    const rp_seeds_options seeds = {.first = options->seed_first,
                                    .last = options->seed_last,
                                    .jobs = one ? 1 : options->jobs,
                                    .busy_limit_s = BUSY_LIMIT_S,
                                    .limit_s = LIMIT_S,
                                    .run = run_seed,
                                    .on_result = report_seed,
                                    .context = j};
    rp_sim_tally tally;
    rp_err err;
    RP_TRY(rp_seeds_run(&seeds, &tally));
    if (j->output_error != 0) {
        RP_TRY(rp_process_lost_output(j->output_error));
    }
    if (!one) {
        RP_TRY(rp_sim_print_tally(options, &tally, json_of_kills(&tally.marks)));
    }
    err = rp_sim_check_tally(&tally);
fail:
    return err;
}

rp_err rp_sim_sites(const rp_sim_options *options) {
    const bool one = options->seed_first == options->seed_last;
    const bool none = strcmp(options->faults, "none") == 0;
    const bool all = strcmp(options->faults, "all") == 0;
    rp_sim_sites_subject subject = {0};
    rp_sim_faults faults;
    rp_sim_round *asked;
    rp_err err;
    RP_TRY(check_options(options));
    RP_TRY(rp_sim_sites_open(options->run_path, options->set, options->set_count, options->executor,
                             options->profile, &subject));
    RP_TRY(rp_sim_reference_asked(&subject.arena, &subject, &asked));
    if (!none && !all) {
        RP_TRY(rp_sim_faults_read(&subject.arena, options->faults, subject.list.sites, &faults));
        RP_TRY(check_faults(options->faults, &faults));
    }
    job j = {.what = {.subject = &subject,
                      .asked = asked,
                      .run_path = options->run_path,
                      .set = options->set,
                      .set_count = options->set_count,
                      .out = options->out,
                      .faults = none || all ? NULL : &faults,
                      .draws_faults = all,
                      .json = options->format == RP_FORMAT_JSON,
                      .progress = one && !options->trace && !options->quiet ? stderr : NULL,
                      .result = one && !options->trace ? stdout : NULL,
                      .trace = options->trace ? stdout : NULL}};
    err = run_seeds(options, &j);
fail:
    rp_sim_sites_close(&subject);
    return err;
}
