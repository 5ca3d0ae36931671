#include "run/controller_own.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "run/checkpoint.h"

/* ---- what is due ----------------------------------------------------------------------------- */

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Segments end at epochs' ends and where a checkpoint is due. */
static uint64_t next_boundary(const rp_controller *c) {
    uint64_t step = c->position.step;
    uint64_t end = smaller(c->run.steps, (step / c->run.epoch_steps + 1) * c->run.epoch_steps);
    if (c->run.checkpoint_steps) {
        end = smaller(end, (step / c->run.checkpoint_steps + 1) * c->run.checkpoint_steps);
    }
    return end;
}

uint64_t rp_controller_next_evaluation(const rp_controller *c) {
    const uint64_t every = c->run.eval_epochs * c->run.epoch_steps;
    const bool any = every > 0 && c->run.data.count[RP_SPLIT_TEST] > 0;
    return any ? smaller(c->run.steps, (c->position.step / every + 1) * every) : c->run.steps;
}

static bool eval_due(const rp_controller *c) {
    uint64_t step = c->position.step;
    if (c->run.data.count[RP_SPLIT_TEST] == 0 || c->position.evaluated || step == 0) {
        return false;
    }
    if (step == c->run.steps) {
        return true;
    }
    return step % c->run.epoch_steps == 0 && c->run.eval_epochs &&
           step / c->run.epoch_steps % c->run.eval_epochs == 0;
}

static bool statistics_due(const rp_controller *c) {
    return c->run.method.kind->average != RP_AVERAGE_NONE && c->run.recalibrate > 0 &&
           c->has_statistics;
}

/* ---- a training run -------------------------------------------------------------------------- */

rp_err rp_controller_save(rp_controller *c) {
    bool over = c->position.step == c->run.steps;
    rp_controller_read_totals(c);
    const rp_steer *steered = c->run.method.horizon == RP_HORIZON_MEASURED ? &c->steer : NULL;
    return rp_checkpoint_save(&c->ring, &c->cut, steered, &c->position, c->checkpoints,
                              over ? c->weights : NULL);
}

/* When the checkpoint of this step is written: a crash then costs an evaluation, not an epoch. */
static rp_err evaluate(rp_controller *c) {
    rp_err err;
    RP_TRY(rp_controller_eval_segment(c, RP_SPLIT_TEST));
    c->position.eval_loss = c->eval_loss / (double)c->eval_samples;
    c->position.eval_samples = c->eval_samples;
    c->position.eval_correct = c->eval_correct;
    RP_TRY(rp_checkpoint_mark_evaluated(c->checkpoints, &c->position));
fail:
    return err;
}

static rp_err train_segments(rp_controller *c) {
    rp_err err = RP_OK;
    while (c->position.step < c->run.steps && c->ring.interrupts == 0) {
        if (eval_due(c)) {
            RP_TRY(evaluate(c));
        }
        RP_TRY(rp_controller_follow_links(c));
        RP_TRY(rp_controller_train_segment(c, next_boundary(c), false));
        if (statistics_due(c) && (eval_due(c) || c->position.step == c->run.steps)) {
            RP_TRY(rp_controller_statistics_segment(c));
        }
        RP_TRY(rp_controller_save(c));
    }
    if (c->ring.interrupts > 0) {
        return rp_fail(RP_ERR_INTERRUPTED, "interrupted after step %" PRIu64, c->position.step);
    }
    if (c->position.step == c->run.steps && access(c->weights, F_OK) != 0) {
        RP_TRY(rp_controller_save(c)); /* resumed at its end, and somebody took them away */
    }
    if (eval_due(c)) {
        RP_TRY(evaluate(c));
    }
fail:
    return err;
}

/* A finished run that is resumed stays as it is. */
static bool nothing_left(const rp_controller *c) {
    bool evaluated = c->position.evaluated || c->run.data.count[RP_SPLIT_TEST] == 0;
    return c->position.step > 0 && c->position.step == c->run.steps && evaluated &&
           access(c->weights, F_OK) == 0;
}

/* What to start from: a checkpoint, a weights file, or the seed. Checked before anything starts. */
static rp_err find_start(rp_controller *c, const rp_train_options *options, char **path,
                         bool *states) {
    rp_err err = RP_OK;
    *path = NULL;
    *states = false;
    if (options->resume) {
        RP_TRY(rp_checkpoint_find(&c->arena, &c->run, c->checkpoints, path, &c->position));
        *states = *path != NULL;
        if (*states && c->run.method.advance_auto) {
            rp_method_set_advance(&c->run.method, c->run.stages, c->position.advance);
        }
    }
    if (*states) {
        RP_TRY(rp_checkpoint_check(&c->run, *path, true));
    } else if (c->run.init) {
        RP_TRY(rp_arena_string(&c->arena, c->run.init, path));
        RP_TRY(rp_checkpoint_check(&c->run, *path, false));
    }
fail:
    return err;
}

static void report_ready(rp_controller *c) {
    uint64_t device = 0;
    int64_t slowest_ns = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        device += c->ring.board[k].device_bytes;
        slowest_ns =
            c->ring.board[k].prepare_ns > slowest_ns ? c->ring.board[k].prepare_ns : slowest_ns;
    }
    char text[160];
    (void)snprintf(text, sizeof text,
                   "%u boards are ready: kernels built in %.1f s, %.1f MiB of "
                   "device memory in use",
                   c->ring.count, (double)slowest_ns * 1e-9, (double)device / (1 << 20));
    rp_record_phase(c->record, text);
}

/* Who leaves `microbatch` out gets one a step, which most of these schedules can not fill a ring
 * with. */
static rp_err hint_microbatch(rp_controller *c) {
    const rp_runfile *run = &c->run;
    const rp_sched_kind *kind = run->method.kind;
    rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    double busy;
    double better;
    char text[160];
    rp_err err = RP_OK;
    if (run->micro < run->batch || !(kind->flushed || kind->accumulates)) {
        return RP_OK;
    }
    RP_TRY(rp_advance_busy(&run->method, &shape, NULL, &busy));
    shape.micro = (run->batch + run->stages - 1) / run->stages;
    RP_TRY(rp_advance_busy(&run->method, &shape, NULL, &better));
    if (better > busy + 0.1) {
        (void)snprintf(text, sizeof text,
                       "one microbatch a step keeps the boards %.0f %% busy at best; "
                       "train.microbatch: %u, %.0f %%",
                       100 * busy, shape.micro, 100 * better);
        RP_TRY(rp_record_event(c->record, "hint", c->position.step, text));
    }
fail:
    return err;
}

rp_err rp_controller_go_on(rp_controller *c, const char *start, bool states) {
    rp_err err;
    if (start) {
        RP_TRY(rp_checkpoint_load(&c->ring, &c->cut, start, states ? &c->position : NULL));
    }
    c->position.fill = c->position.step;
    if (states && c->run.method.horizon == RP_HORIZON_MEASURED) {
        RP_TRY(rp_checkpoint_load_steer(start, &c->steer));
        RP_TRY(rp_controller_repeat_trust(c));
    }
    if (states) {
        RP_TRY(rp_checkpoint_load_flight(&c->ring, &c->cut, start, c->position.step,
                                         &c->position.fill));
    }
    RP_TRY(rp_controller_open_feed(c));
fail:
    return err;
}

static rp_err run_training(rp_controller *c, const rp_train_options *options, int signal_fd) {
    char *start;
    bool states;
    rp_err err;
    RP_TRY(find_start(c, options, &start, &states));
    c->run.step_first = c->position.step;
    if (nothing_left(c)) {
        (void)fprintf(stderr, "%s: the run is finished; nothing is left to do\n", c->folder);
        return RP_OK;
    }
    RP_TRY(rp_controller_open_record(c, options->format));
    RP_TRY(rp_controller_bring_up(c, options->keys_folder, signal_fd));
    report_ready(c);
    RP_TRY(hint_microbatch(c));
    RP_TRY(rp_controller_write_folder(c));
    RP_TRY(rp_steer_open(&c->arena, c->run.model->param_count, &c->steer));
    RP_TRY(rp_controller_go_on(c, start, states));
    err = train_segments(c);
    if (rp_err_exit_code(err) == 2) {
        err = RP_ERR_FAULT; /* the input was good enough to start: a disk is full, say */
    }
fail:
    return err;
}

/* ---- the verbs ------------------------------------------------------------------------------- */

static const char *status_of(rp_err err) {
    return err == RP_OK ? "finished" : err == RP_ERR_INTERRUPTED ? "interrupted" : "failed";
}

static rp_err close_all(rp_controller *c, rp_err result) {
    char note[512];
    (void)snprintf(note, sizeof note, "%s", result == RP_OK ? "" : rp_err_message());
    rp_err err = result;
    bool resumable =
        c->folder && c->record && rp_err_exit_code(result) > 2 && access(c->run_yaml, F_OK) == 0;
    if (c->record) {
        rp_err closed = rp_controller_close_record(c, status_of(result), note);
        if (err == RP_OK && closed != RP_OK) { /* the run itself has been done */
            err = rp_err_exit_code(closed) == 2 ? RP_ERR_FAULT : closed;
        }
    }
    if (resumable) {
        (void)fprintf(stderr, "go on with: ringpipe train %s --resume %s\n", c->run.path,
                      c->folder);
    }
    rp_ring_close(&c->ring);
    rp_controller_close_feed(c);
    rp_runfile_close(&c->run);
    rp_arena_finish(&c->arena);
    return err;
}

/* --dry-run: what would be done. */
static void print_checked(const rp_runfile *run, rp_format format) {
    size_t parameters =
        rp_model_param_count(run->model, RP_PARAM_TRAINED, 0, run->model->layer_count);
    (void)printf(format == RP_FORMAT_JSON
                     ? "{\"version\": 1, \"status\": \"checked\", \"model\": \"%s\", "
                       "\"parameters\": %zu, \"schedule\": \"%s\", \"stages\": %u, "
                       "\"steps\": %" PRIu64 ", \"samples\": %u}\n"
                     : "checked: %s, %zu parameters, schedule %s on %u stages, %" PRIu64
                       " steps over %u samples\n",
                 run->model_name, parameters, run->method.kind->name, run->stages, run->steps,
                 run->data.count[RP_SPLIT_TRAIN]);
}

rp_err rp_train(const rp_train_options *options) {
    rp_controller c = {0};
    rp_arena_init(&c.arena, "run", 0);
    int signal_fd;
    rp_err err;
    RP_TRY(rp_ring_signals(&signal_fd));
    RP_TRY(rp_runfile_read(&c.arena, options->run_path, options->set, options->set_count, &c.run));
    if (options->dry_run) {
        print_checked(&c.run, options->format);
    } else {
        RP_TRY(rp_controller_choose_folder(&c, options));
        err = run_training(&c, options, signal_fd);
    }
fail:
    return close_all(&c, err);
}

rp_err rp_plan(const rp_train_options *options, bool profile_only) {
    rp_controller c = {0};
    rp_arena_init(&c.arena, "plan", 0);
    int signal_fd;
    rp_err err;
    RP_TRY(rp_ring_signals(&signal_fd));
    RP_TRY(rp_runfile_read(&c.arena, options->run_path, options->set, options->set_count, &c.run));
    if (profile_only) {
        RP_TRY(rp_controller_reach_boards(&c, options->keys_folder, signal_fd));
        RP_TRY(rp_controller_measure(&c));
    } else {
        RP_TRY(rp_controller_bring_up(&c, options->keys_folder, signal_fd));
    }
    RP_TRY(rp_controller_write_json(&c, options->out, profile_only));
fail:
    return close_all(&c, err);
}

rp_err rp_eval(const rp_eval_options *options) {
    rp_controller c = {.forwards_only = true};
    rp_arena_init(&c.arena, "eval", 0);
    int signal_fd;
    rp_err err;
    RP_TRY(rp_ring_signals(&signal_fd));
    RP_TRY(rp_runfile_read(&c.arena, options->run_path, options->set, options->set_count, &c.run));
    RP_TRY(rp_checkpoint_check(&c.run, options->weights, false));
    if (c.run.data.count[options->split] == 0) {
        err = rp_fail(RP_ERR_USAGE, "the data set has no such split");
        goto fail;
    }
    RP_TRY(rp_controller_open_record(&c, options->format));
    RP_TRY(rp_controller_bring_up(&c, options->keys_folder, signal_fd));
    RP_TRY(rp_checkpoint_load(&c.ring, &c.cut, options->weights, NULL));
    RP_TRY(rp_controller_eval_segment(&c, options->split));
fail:
    return close_all(&c, err);
}
