#include "base/printable.h"
#include "lanes/lanes_own.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/shell.h"
#include "data/describe.h"
#include "run/paths.h"
#include "run/rate.h"
#include "run/remarks.h"
#include "run/runfile.h"

enum { SETS_MAX = 64 };
static const int64_t AGAIN_NS = 500 * RP_NS_PER_MS; /* doubled with every attempt */
static const int64_t LOOK_NS = RP_NS_PER_S;

/* ---- the run file ---------------------------------------------------------------------------- */

static rp_err write_files(rp_lanes *lanes, rp_runfile *run) {
    char *model;
    char *data;
    rp_err err;
    RP_TRY(rp_arena_printf(&lanes->arena, &model, "%s/model.yaml", lanes->folder));
    RP_TRY(rp_arena_printf(&lanes->arena, &data, "%s/data.json", lanes->folder));
    RP_TRY(lanes->options.resume ? rp_data_check_vocab(&run->data, data) : RP_OK);
    RP_TRY(rp_paths_make_absolute(&lanes->arena, run->root));
    RP_TRY(rp_config_replace(run->model_root, model));
    RP_TRY(rp_data_describe(&run->data, data));
    for (uint32_t i = 0; i < run->data.notes.count && !lanes->options.resume; i++) {
        rp_log_warn("%s", run->data.notes.text[i]);
    }
    RP_TRY(rp_lanes_write_journal(lanes));
    err = rp_config_replace(run->root, lanes->run_yaml);
fail:
    return err;
}

/* Reads the file as each lane will, because with a roster the lanes have different boards. */
static rp_err check_lanes(rp_lanes *lanes) {
    const char *set[SETS_MAX + 1];
    char own[32];
    rp_err err = RP_OK;
    RP_ASSERT(lanes->options.set_count <= SETS_MAX);
    for (uint32_t i = 0; i < lanes->options.set_count; i++) {
        set[i] = lanes->options.set[i];
    }
    set[lanes->options.set_count] = own;
    for (uint32_t k = 0; k < lanes->keys.count && err == RP_OK; k++) {
        rp_arena arena;
        rp_runfile run = {0};
        rp_arena_init(&arena, "lane", 0);
        (void)snprintf(own, sizeof own, "lanes.lane=%u", k);
        err = rp_runfile_read(&arena, lanes->options.run_path, set, lanes->options.set_count + 1,
                              &run);
        err = err == RP_OK ? rp_runfile_check_cut(&run) : err;
        err = err == RP_OK ? rp_runfile_check_values(&run) : err;
        if (err == RP_OK && k == 0) {
            lanes->steps = run.steps;
            lanes->epoch_steps = run.epoch_steps;
        }
        rp_runfile_close(&run);
        rp_arena_finish(&arena);
    }
    return err;
}

/* Call it before the old run file is replaced. */
static rp_err note_run(rp_lanes *lanes, const rp_runfile *run) {
    rp_node *before;
    rp_err err;
    lanes->notes = run->data.notes;
    RP_TRY(rp_runfile_note(&lanes->arena, run, &lanes->notes));
    if (!lanes->options.resume) {
        return RP_OK;
    }
    RP_TRY(rp_config_read_file(&lanes->arena, lanes->run_yaml, &before));
    lanes->rate_changes = rp_runfile_rate_change(before, run, rp_lanes_at(lanes), &lanes->rate);
fail:
    return err;
}

static rp_err take_run(rp_lanes *lanes, rp_runfile *run) {
    char *text;
    rp_err err;
    lanes->keys = run->lanes;
    lanes->epochs = run->epochs;
    lanes->stages = run->stages;
    lanes->has_test = run->data.count[RP_SPLIT_TEST] > 0;
    lanes->finite = run->score.non_finite_steps > 0;
    RP_TRY(rp_arena_string(&lanes->arena, run->model_name, &text));
    lanes->model = text;
    lanes->schedule = run->method.kind->name;
    RP_TRY(check_lanes(lanes));
    RP_TRY(rp_lanes_take_folder(lanes));
    RP_TRY(rp_lanes_read_journal(lanes));
    RP_TRY(note_run(lanes, run));
    RP_TRY(write_files(lanes, run));
fail:
    return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err start_lane(rp_lanes *lanes, rp_lane_child *lane) {
    const rp_lane_order order = {.run_yaml = lanes->run_yaml,
                                 .set = lanes->options.set,
                                 .set_count = lanes->options.set_count,
                                 .keys = lanes->options.keys};
    return rp_lane_start(lane, &order);
}

static bool is_finished(const rp_lanes *lanes) {
    return lanes->last_steps == lanes->steps && access(lanes->summary, F_OK) == 0 &&
           access(lanes->weights, F_OK) == 0;
}

static rp_err begin_run(rp_lanes *lanes) {
    rp_err err = RP_OK;
    lanes->start_ns = lanes->now_ns = rp_clock_now_ns(lanes->clock);
    if (is_finished(lanes)) {
        lanes->phase = RP_LANES_ENDED;
        if (lanes->options.progress) {
            (void)fprintf(lanes->options.progress,
                          "%s: the run is finished; nothing is left to do\n", lanes->folder);
        }
        return RP_OK;
    }
    (void)unlink(lanes->summary); /* from an earlier start */
    if (lanes->last_steps == lanes->steps) {
        lanes->phase = RP_LANES_LAST;
        return RP_OK;
    }
    lanes->last_steps = 0;
    if (lanes->options.resume) {
        RP_TRY(rp_lanes_log_event(
            lanes, &(rp_run_event){.kind = RP_EVENT_LANES_RESUMED, .round = lanes->round}));
    }
    for (uint32_t i = 0; i < lanes->notes.count; i++) {
        RP_TRY(rp_lanes_log_event(
            lanes, &(rp_run_event){.kind = RP_EVENT_HINT, .note = lanes->notes.text[i]}));
    }
    if (lanes->rate_changes) {
        const rp_rate_change *rate = &lanes->rate;
        RP_TRY(rp_lanes_log_event(lanes, &(rp_run_event){.kind = RP_EVENT_RATE_CHANGED,
                                                         .lr_before = rate->before,
                                                         .lr = rate->now,
                                                         .curve = rate->curve,
                                                         .steps_before = rate->steps_before,
                                                         .steps = rate->steps}));
    }
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        RP_TRY(start_lane(lanes, &lanes->lane[k]));
    }
fail:
    return err;
}

rp_err rp_lanes_open(const rp_clock *clock, const rp_lanes_options *options, rp_lanes **out) {
    rp_arena arena;
    rp_lanes *lanes = NULL;
    rp_runfile run = {0};
    rp_err err;
    rp_arena_init(&arena, "lanes", 0);
    err = RP_ARENA_NEW(&arena, 1, &lanes);
    if (err != RP_OK) {
        rp_arena_finish(&arena);
        return err;
    }
    *lanes = (rp_lanes){
        .clock = clock, .options = *options, .arena = arena, .folder_fd = -1, .loss = (double)NAN};
    RP_TRY(
        rp_runfile_read(&lanes->arena, options->run_path, options->set, options->set_count, &run));
    RP_TRY(take_run(lanes, &run));
    RP_TRY(begin_run(lanes));
fail:
    rp_runfile_close(&run);
    if (err != RP_OK) {
        (void)rp_lanes_close(&lanes);
        return err;
    }
    *out = lanes;
    return RP_OK;
}

rp_err rp_lanes_close(rp_lanes **taken) {
    rp_lanes *lanes = *taken;
    *taken = NULL;
    const rp_err result = lanes->phase == RP_LANES_ENDED ? lanes->result : RP_ERR_INTERRUPTED;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        rp_lane_kill(&lanes->lane[k]);
    }
    rp_lane_kill(&lanes->scorer);
    rp_lanes_leave_folder(lanes);
    rp_arena arena = lanes->arena; /* a copy, because the arena contains `lanes` */
    rp_arena_finish(&arena);
    return result;
}

/* ---- lanes that end -------------------------------------------------------------------------- */

static uint32_t count_running(const rp_lanes *lanes) {
    uint32_t running = 0;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        running += lanes->lane[k].child.pid > 0;
    }
    return running;
}

static uint32_t count_left(const rp_lanes *lanes) {
    uint32_t left = 0;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        left += lanes->lane[k].condition != RP_LANE_OVER;
    }
    return left;
}

static rp_err stop_run(rp_lanes *lanes, rp_err result, const char *why) {
    lanes->phase = RP_LANES_STOP;
    lanes->result = result;
    (void)snprintf(lanes->note, sizeof lanes->note, "%s", why);
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        rp_child_tell(&lanes->lane[k].child, lanes->now_ns);
    }
    return RP_OK;
}

/* The lane will resume from its newest checkpoint after a pause; other lanes do not wait for it. */
static rp_err note_ended(rp_lanes *lanes, rp_lane_child *lane) {
    if (lanes->phase != RP_LANES_WORK) {
        return RP_OK;
    }
    if (++lane->tries > RP_LANE_TRIES_MAX) {
        lane->condition = RP_LANE_OVER;
        const rp_err err = rp_lanes_log_event(lanes, &(rp_run_event){.kind = RP_EVENT_LANE_LOST,
                                                                     .lane = lane->index,
                                                                     .tries = lane->tries,
                                                                     .file = lane->log});
        return err == RP_OK && count_left(lanes) == 0
                   ? stop_run(lanes, RP_ERR_FAULT, "every lane was given up")
                   : err;
    }
    lane->condition = RP_LANE_AWAY;
    lane->start_ns = lanes->now_ns + (AGAIN_NS << (lane->tries - 1));
    return rp_lanes_log_event(lanes, &(rp_run_event){.kind = RP_EVENT_LANE_ENDED,
                                                     .lane = lane->index,
                                                     .exit_code = (uint64_t)lane->exit_code,
                                                     .file = lane->log});
}

static rp_err restart_lane(rp_lanes *lanes, rp_lane_child *lane) {
    if (lane->start_ns == 0 || lanes->now_ns < lane->start_ns || lanes->phase != RP_LANES_WORK) {
        return RP_OK;
    }
    lane->restarts++;
    return start_lane(lanes, lane);
}

/* ---- lanes that talk ------------------------------------------------------------------------- */

static void note_round(rp_lanes *lanes, rp_lane_child *lane) {
    const int64_t late_ns = lanes->waiting_ns > 0 ? lanes->now_ns - lanes->waiting_ns : 0;
    if (lane->condition == RP_LANE_AT_WORK && lanes->closed_ns > 0) {
        lane->delay_ns[lane->delays++ % RP_ROUND_TIMES_MAX] = late_ns;
    }
    lane->reached = true;
    lane->reached_ns = lanes->now_ns;
}

/* Other lanes would meet the same sample, so a retry is useless. */
static rp_err stop_at_data(rp_lanes *lanes, const rp_lane_child *lane) {
    char why[sizeof lanes->note];
    (void)snprintf(why, sizeof why, "a lane cannot use its data; see %.300s", lane->log);
    return stop_run(lanes, rp_fail(RP_ERR_DATA, "%s", why), why);
}

static rp_err take_word(rp_lanes *lanes, rp_lane_child *lane, rp_lane_word word) {
    switch (word) {
    case RP_LANE_SAYS_ROUND:
        note_round(lanes, lane);
        return RP_OK;
    case RP_LANE_SAYS_AWAY:
        lane->condition = RP_LANE_AWAY;
        return rp_lanes_log_event(
            lanes, &(rp_run_event){.kind = RP_EVENT_LANE_FAULT, .lane = lane->index});
    case RP_LANE_SAYS_BACK:
        return rp_lanes_log_event(lanes,
                                  &(rp_run_event){.kind = RP_EVENT_LANE_BACK, .lane = lane->index});
    case RP_LANE_SAYS_DATA:
        return stop_at_data(lanes, lane);
    default:
        return RP_OK;
    }
}

static rp_err step_lane(rp_lanes *lanes, rp_lane_child *lane) {
    rp_lane_word word;
    rp_err err = RP_OK;
    while ((word = rp_lane_listen(lane)) != RP_LANE_SAYS_NOTHING) {
        RP_TRY(take_word(lanes, lane, word));
    }
    rp_child_press(&lane->child, lanes->now_ns);
    RP_TRY(rp_lane_reap(lane) ? note_ended(lanes, lane) : RP_OK);
    RP_TRY(restart_lane(lanes, lane));
fail:
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

static rp_err begin_scoring(rp_lanes *lanes) {
    const char *const words[] = {"ringpipe",
                                 "eval",
                                 lanes->folder,
                                 "--weights",
                                 lanes->weights,
                                 "--format",
                                 "json",
                                 "--quiet",
                                 lanes->options.keys ? "--keys" : NULL,
                                 lanes->options.keys,
                                 NULL};
    rp_err err;
    RP_TRY(rp_average_export(lanes->center, lanes->weights));
    lanes->phase = RP_LANES_EVALUATE;
    err = lanes->has_test ? rp_lane_run(&lanes->scorer, words, lanes->scores) : RP_OK;
fail:
    return err;
}

static const char *status_of(rp_err err) {
    return err == RP_OK ? "finished" : err == RP_ERR_INTERRUPTED ? "interrupted" : "failed";
}

static rp_err finish_run(rp_lanes *lanes) {
    const rp_err err = rp_lanes_summarise(lanes, status_of(lanes->result));
    const char *program = lanes->options.program ? lanes->options.program : "ringpipe";
    const char *word = lanes->folder;
    lanes->phase = RP_LANES_ENDED;
    if (lanes->result != RP_OK && lanes->options.progress &&
        rp_shell_word(&lanes->arena, lanes->folder, &word) == RP_OK) {
        rp_print(lanes->options.progress, "%s\n", lanes->note);
        if (lanes->result != RP_ERR_DATA) { /* a resume would end there again */
            rp_print(lanes->options.progress, "go on with: %s resume %s\n", program, word);
        }
    }
    return err;
}

static rp_err end_scoring(rp_lanes *lanes) {
    rp_lane_child *scorer = &lanes->scorer;
    rp_child_press(&scorer->child, lanes->now_ns);
    if (lanes->has_test && !rp_lane_reap(scorer)) {
        return RP_OK;
    }
    if (scorer->exit_code != 0 && lanes->result == RP_OK) {
        lanes->result = lanes->interrupts > 0 ? RP_ERR_INTERRUPTED : RP_ERR_FAULT;
        (void)snprintf(lanes->note, sizeof lanes->note,
                       "the centre could not be evaluated (exit %d); see %.300s", scorer->exit_code,
                       scorer->log);
    }
    if (!lanes->has_test && lanes->finite && !isfinite(lanes->loss) && lanes->result == RP_OK) {
        lanes->result =
            RP_ERR_FAULT; /* without a test split only the loss tells how good the centre is */
        (void)snprintf(lanes->note, sizeof lanes->note,
                       "the result is of no use: the loss of the last round is not finite");
    }
    return finish_run(lanes);
}

static rp_err step_phase(rp_lanes *lanes) {
    switch (lanes->phase) {
    case RP_LANES_WORK:
        return rp_lanes_meet(lanes);
    case RP_LANES_LAST:
        return count_running(lanes) == 0 ? begin_scoring(lanes) : RP_OK;
    case RP_LANES_EVALUATE:
        return end_scoring(lanes);
    case RP_LANES_STOP:
        return count_running(lanes) == 0 ? finish_run(lanes) : RP_OK;
    default:
        return RP_OK;
    }
}

static rp_err step_all(rp_lanes *lanes) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        RP_TRY(step_lane(lanes, &lanes->lane[k]));
    }
    err = step_phase(lanes);
fail:
    return err;
}

int64_t rp_lanes_step(rp_lanes *lanes, int64_t now_ns) {
    lanes->now_ns = now_ns;
    const rp_err err = lanes->phase == RP_LANES_ENDED ? RP_OK : step_all(lanes);
    if (err != RP_OK && lanes->phase < RP_LANES_STOP) { /* an error with its own files */
        (void)!stop_run(lanes, err, rp_err_message());
    } else if (err != RP_OK) {
        lanes->result = err;
        lanes->phase = RP_LANES_ENDED;
    }
    int64_t at_ns = now_ns + LOOK_NS;
    const int64_t meet_ns = rp_lanes_meet_ns(lanes);
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        const int64_t start_ns = lanes->phase == RP_LANES_WORK ? lanes->lane[k].start_ns : 0;
        at_ns = start_ns > 0 && start_ns < at_ns ? start_ns : at_ns;
    }
    return meet_ns < at_ns ? meet_ns : at_ns;
}

bool rp_lanes_have_ended(const rp_lanes *lanes) {
    return lanes->phase == RP_LANES_ENDED;
}

uint32_t rp_lanes_fds(const rp_lanes *lanes, int fd[RP_LANES_MAX]) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        if (lanes->lane[k].fd >= 0) {
            fd[count++] = lanes->lane[k].fd;
        }
    }
    return count;
}

void rp_lanes_interrupt(rp_lanes *lanes) {
    lanes->interrupts++;
    if (lanes->phase == RP_LANES_ENDED) {
        return;
    }
    if (lanes->interrupts == 1 && lanes->phase == RP_LANES_WORK) {
        char why[80];
        (void)snprintf(why, sizeof why, "interrupted after round %" PRIu64, lanes->round);
        (void)!stop_run(lanes, RP_ERR_INTERRUPTED, why);
        return;
    }
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        rp_child_tell(&lanes->lane[k].child, lanes->now_ns);
    }
    rp_child_tell(&lanes->scorer.child, lanes->now_ns);
}
