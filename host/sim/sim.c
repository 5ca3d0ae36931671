#include "sim/sim.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/process.h"
#include "sim/tally.h"
#include "sim/verdict.h"

/* Limits of processor time and wall time for one seed: a hundred times what one takes. */
static const double BUSY_LIMIT_S = 60, LIMIT_S = 1200;

/* Tunes malloc of a child process. Links open and close often: small rings keep freed memory, so
 * that it is not requested from the system again. In large rings large blocks are fresh pages,
 * which take memory only where they are used, because most places of a link never are. */
static void tune_memory(uint32_t boards) {
    enum { SMALL_RING = 16 };
    const bool small = boards <= SMALL_RING;
    (void)mallopt(M_MMAP_THRESHOLD, small ? 32 << 20 : 128 << 10);
    (void)mallopt(M_TRIM_THRESHOLD, small ? 64 << 20 : 256 << 10);
    (void)mallopt(M_TOP_PAD, small ? 1 << 20 : 64 << 10);
}

static rp_err run_seed(void *context, uint64_t seed, rp_sim_result *out) {
    const rp_sim_case *what = context;
    tune_memory(what->cluster.boards);
    if (!what->terminal && !what->cluster.result) {
        rp_log_setup(RP_LOG_NOTHING, ""); /* faults are expected here */
    }
    const rp_err err = rp_sim_judge(what, seed, out);
    out->output_error = rp_process_output_error();
    return err;
}

static const char *name_of(rp_sim_outcome outcome) {
    static const char *const names[] = {"finished", "stopped and resumed", "hung", "wrong"};
    return names[outcome];
}

static void report_seed(void *context, uint64_t seed, const rp_sim_result *result) {
    rp_sim_case *what = context;
    what->stop = result->stop;
    what->output_error = result->output_error;
    const bool bad = result->outcome == RP_SIM_HUNG || result->outcome == RP_SIM_WRONG;
    if (bad || what->terminal) {
        (void)fprintf(stderr,
                      "seed %" PRIu64 ": %s after %.1f virtual seconds, %" PRIu32
                      " faults, %" PRIu64 " events with hash %016" PRIx64 "\n",
                      seed, name_of(result->outcome), result->virtual_s, result->faults,
                      result->events, result->event_hash);
    }
}

/* The timed executor needs a profile or a throttle; without them no op would take any time. */
static rp_err check_costs(const rp_sim_options *options, const rp_runfile *run) {
    const bool has_throttle = rp_throttles_any(&run->throttle);
    if (strcmp(options->executor, "timed") == 0 && !options->profile && !has_throttle) {
        return rp_fail(RP_ERR_USAGE, "--executor timed needs --profile PROFILE.json, the costs of "
                                     "the layers as `ringpipe profile` writes them, or a "
                                     "ring.throttle in the run file");
    }
    return RP_OK;
}

/* Boards that the run can lose: its spares, and boards without which the model is cut again. */
static uint32_t count_spare_boards(const rp_runfile *run) {
    const bool may_shrink = !run->local && run->cut_auto && run->hops.count == 0 &&
                            rp_codecs_are_alike(run->codec, run->stages);
    return run->spares + (may_shrink ? run->boards - run->safety.at_least : 0);
}

rp_err rp_sim(const rp_sim_options *options) {
    const bool one = options->seed_first == options->seed_last;
    const bool none = strcmp(options->faults, "none") == 0;
    const bool all = strcmp(options->faults, "all") == 0;
    rp_sim_subject subject = {0};
    rp_sim_faults faults;
    rp_sim_tally tally;
    uint64_t *memory_bytes;
    rp_err err;
    RP_TRY(rp_sim_check_options(options));
    RP_TRY(rp_sim_subject_open(options->run_path, options->set, options->set_count,
                               options->executor, options->plan, options->profile, &subject));
    RP_TRY(check_costs(options, &subject.run));
    if (!none && !all) {
        RP_TRY(rp_sim_faults_read(&subject.arena, options->faults,
                                  subject.run.boards + subject.run.spares, &faults));
    }
    RP_TRY(RP_ARENA_NEW(&subject.arena, subject.run.boards + subject.run.spares, &memory_bytes));
    for (uint32_t k = 0; k < subject.run.boards + subject.run.spares; k++) {
        memory_bytes[k] = rp_runfile_memory_of(&subject.run, k);
    }
    rp_sim_case what = {
        .subject = &subject,
        .cluster = {.run_path = options->run_path,
                    .set = options->set,
                    .set_count = options->set_count,
                    .boards = subject.run.boards + subject.run.spares,
                    .roster = subject.run.roster,
                    .listen = subject.run.listen,
                    .may_lose = count_spare_boards(&subject.run),
                    .plan = options->plan,
                    .executor = options->executor,
                    .layer_seconds = subject.layer_seconds,
                    .profile = subject.profile.board_count > 0 ? &subject.profile : NULL,
                    .layer_count = subject.run.model->layer_count,
                    .folder = options->resume ? options->resume : options->out,
                    .resume = options->resume != NULL,
                    .progress = one && !options->trace && !options->quiet ? stderr : NULL,
                    .result = one && !options->trace ? stdout : NULL,
                    .trace = options->trace ? stdout : NULL,
                    .format = options->format,
                    .memory_bytes = memory_bytes,
                    .wait_ns = subject.run.safety.wait_s * RP_NS_PER_S},
        .faults = none || all ? NULL : &faults,
        .draws_faults = all,
        .once = options->once,
        .terminal = options->trace ? stdout : NULL,
    };
    const rp_seeds_options seeds = {.first = options->seed_first,
                                    .last = options->seed_last,
                                    .jobs = one ? 1 : options->jobs,
                                    .busy_limit_s = BUSY_LIMIT_S,
                                    .limit_s = LIMIT_S,
                                    .run = run_seed,
                                    .on_result = report_seed,
                                    .context = &what};
    RP_TRY(rp_seeds_run(&seeds, &tally));
    RP_TRY(what.stop);
    if (what.output_error != 0) {
        RP_TRY(rp_process_lost_output(what.output_error));
    }
    if (!one) {
        RP_TRY(rp_sim_print_tally(options, &tally, NULL));
    }
    err = rp_sim_check_tally(&tally);
fail:
    rp_sim_subject_close(&subject);
    return err;
}
