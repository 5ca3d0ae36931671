#include "run/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/runner.h"
#include "run/metrics.h"
#include "run/progress.h"
#include "run/summary.h"
#include "run/tensorboard.h"
#include "run/trace.h"

/* Pictures, not the run: a trace that nobody can open any more helps nobody. */
enum { TRACE_OPS_MAX = 1000000, SPEED_STEPS = 32 };

struct rp_record {
    rp_arena *arena;
    const rp_runfile *run;
    const char *folder; /* NULL: no files */
    rp_format format;
    rp_clock clock;
    int64_t start_ns;
    uint64_t step_first;
    double before_s, segment_before_s; /* of the runs that this one resumes */

    rp_metrics *metrics;
    rp_tensorboard *board;
    rp_trace *trace;
    rp_progress *progress;

    uint64_t steps, samples, trace_ops;
    uint64_t epoch_samples, epoch_correct; /* of the epoch under way */
    double epoch_loss, train_loss;
    double segment_s;             /* wall time of all segments */
    int64_t step_ns[SPEED_STEPS]; /* ends of the last steps */
    uint32_t step_samples[SPEED_STEPS];
    int64_t *busy_ns; /* per stage, of the trace since the last picture */
    int64_t busy_since_ns;
    double *busy;

    bool evaluated;
    double eval_loss, eval_accuracy;
    uint64_t eval_samples;
};

static double wall_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double since_start_s(const rp_record *record) {
    return record->before_s + (double)(rp_clock_now_ns(&record->clock) - record->start_ns) * 1e-9;
}

void rp_record_totals(const rp_record *record, rp_position *position) {
    position->samples = record->samples;
    position->epoch_samples = record->epoch_samples;
    position->epoch_loss = record->epoch_loss;
    position->seconds = since_start_s(record);
    position->segment_s = record->segment_before_s + record->segment_s;
}

static rp_err open_files(rp_record *record, const rp_position *position) {
    char *path;
    rp_err err;
    /* what comes after the step that is still to be evaluated is made again */
    uint64_t first = position->step;
    RP_TRY(rp_arena_printf(record->arena, &path, "%s/log.jsonl", record->folder));
    RP_TRY(rp_metrics_open(record->arena, path, first, &record->metrics));
    RP_TRY(rp_arena_printf(record->arena, &path, "%s/trace.json", record->folder));
    RP_TRY(rp_trace_open(record->arena, path, record->start_ns, first, &record->trace));
    RP_TRY(rp_tensorboard_open(record->arena, record->folder, first, wall_s(), &record->board));
    for (uint32_t k = 0; k < record->run->stages; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "stage %u", k);
        RP_TRY(rp_trace_name_stage(record->trace, k, name));
        RP_TRY(rp_trace_name_lane(record->trace, k, 0, "device"));
    }
fail:
    return err;
}

rp_err rp_record_open(rp_arena *arena, const rp_runfile *run, const char *folder, rp_format format,
                      const rp_position *position, rp_record **out) {
    rp_err err;
    rp_record *record;
    RP_TRY(RP_ARENA_NEW(arena, 1, &record));
    *record = (rp_record){.arena = arena,
                          .run = run,
                          .folder = folder,
                          .format = format,
                          .clock = rp_clock_real(),
                          .step_first = position->step,
                          .steps = position->step,
                          .samples = position->samples,
                          .epoch_samples = position->epoch_samples,
                          .epoch_loss = position->epoch_loss,
                          .before_s = position->seconds,
                          .segment_before_s = position->segment_s};
    if (record->epoch_samples > 0) {
        record->train_loss = record->epoch_loss / (double)record->epoch_samples;
    }
    if (position->evaluated) {
        record->evaluated = true;
        record->eval_loss = position->eval_loss;
        record->eval_samples = position->eval_samples;
        record->eval_accuracy = (double)position->eval_correct / (double)position->eval_samples;
    }
    record->start_ns = record->busy_since_ns = rp_clock_now_ns(&record->clock);
    RP_TRY(RP_ARENA_NEW(arena, run->stages, &record->busy_ns));
    RP_TRY(RP_ARENA_NEW(arena, run->stages, &record->busy));
    if (folder) {
        RP_TRY(open_files(record, position));
    }
    rp_progress_options options = {
        .file = stderr,
        .mode = RP_PROGRESS_AUTO,
        .step_first = position->step,
        .step_total = run->steps,
        .epochs = (uint32_t)((run->steps + run->epoch_steps - 1) / run->epoch_steps),
        .stages = run->stages,
    };
    RP_TRY(rp_progress_open(arena, &options, &record->progress));
    *out = record;
fail:
    return err;
}

/* Over the last steps, so that a stall shows. */
static double speed(const rp_record *record) {
    uint64_t done = record->steps - record->step_first;
    uint32_t count = done < SPEED_STEPS ? (uint32_t)done : SPEED_STEPS;
    if (count < 2) {
        return 0;
    }
    uint64_t samples = 0;
    for (uint32_t i = 1; i < count; i++) {
        samples += record->step_samples[(record->steps - i) % SPEED_STEPS];
    }
    int64_t last_ns = record->step_ns[(record->steps - 1) % SPEED_STEPS];
    int64_t first_ns = record->step_ns[(record->steps - count) % SPEED_STEPS];
    return last_ns > first_ns ? (double)samples * 1e9 / (double)(last_ns - first_ns) : 0;
}

/* Shares of the last moment; the pictures want no history. */
static void update_busy(rp_record *record) {
    int64_t now_ns = rp_clock_now_ns(&record->clock);
    int64_t span_ns = now_ns - record->busy_since_ns;
    if (span_ns < RP_NS_PER_S) {
        return;
    }
    for (uint32_t k = 0; k < record->run->stages; k++) {
        double share = (double)record->busy_ns[k] / (double)span_ns;
        record->busy[k] = share < 1 ? share : 1;
        record->busy_ns[k] = 0;
    }
    record->busy_since_ns = now_ns;
}

static rp_err write_step(rp_record *record, const rp_metrics_step *step) {
    double now_s = wall_s();
    rp_err err;
    RP_TRY(rp_metrics_write_step(record->metrics, step));
    RP_TRY(rp_tensorboard_scalar(record->board, "train/loss", step->loss, step->step, now_s));
    RP_TRY(rp_tensorboard_scalar(record->board, "train/lr", step->lr, step->step, now_s));
fail:
    return err;
}

rp_err rp_record_step(rp_record *record, uint64_t step, double loss, double lr, uint32_t samples,
                      uint64_t correct) {
    uint32_t epoch = (uint32_t)(step / record->run->epoch_steps);
    if (step % record->run->epoch_steps == 0) {
        record->epoch_loss = 0;
        record->epoch_samples = record->epoch_correct = 0;
    }
    record->epoch_loss += loss * samples;
    record->epoch_samples += samples;
    record->epoch_correct += correct;
    record->train_loss = record->epoch_loss / (double)record->epoch_samples;
    record->step_ns[step % SPEED_STEPS] = rp_clock_now_ns(&record->clock);
    record->step_samples[step % SPEED_STEPS] = samples;
    record->steps = step + 1;
    record->samples += samples;
    update_busy(record);
    rp_metrics_step line = {step, epoch, loss, lr, speed(record), since_start_s(record)};
    rp_progress_state state = {step + 1, epoch, loss, line.samples_per_s, record->busy};
    rp_progress_update(record->progress, &state);
    return record->folder ? write_step(record, &line) : RP_OK;
}

rp_err rp_record_eval(rp_record *record, uint64_t step, double loss, uint64_t samples,
                      uint64_t correct) {
    bool classes = record->run->loss->class_target;
    char text[160];
    record->evaluated = true;
    record->eval_loss = loss;
    record->eval_samples = samples;
    record->eval_accuracy = (double)correct / (double)samples;
    if (classes) {
        (void)snprintf(text, sizeof text, "step %" PRIu64 ": test loss %.4f, accuracy %.2f %%",
                       step, loss, 100 * record->eval_accuracy);
    } else {
        (void)snprintf(text, sizeof text, "step %" PRIu64 ": test loss %.6g", step, loss);
    }
    rp_progress_line(record->progress, text);
    if (!record->folder) {
        return RP_OK;
    }
    /* logged with the last step trained: a run that resumes behind it keeps the line */
    uint64_t last = step > 0 ? step - 1 : 0;
    rp_err err;
    RP_TRY(rp_metrics_write_eval(record->metrics, last, loss,
                                 classes ? record->eval_accuracy : -1.0, samples,
                                 since_start_s(record)));
    RP_TRY(rp_tensorboard_scalar(record->board, "test/loss", loss, last, wall_s()));
    if (classes) {
        RP_TRY(rp_tensorboard_scalar(record->board, "test/accuracy", record->eval_accuracy, last,
                                     wall_s()));
    }
fail:
    return err;
}

rp_err rp_record_note(rp_record *record, const char *name, uint64_t step, const char *text) {
    return record->folder
               ? rp_metrics_write_event(record->metrics, name, step, since_start_s(record), text)
               : RP_OK;
}

rp_err rp_record_event(rp_record *record, const char *name, uint64_t step, const char *text) {
    char line[256];
    (void)snprintf(line, sizeof line, "step %" PRIu64 ": %s", step, text);
    rp_progress_line(record->progress, line);
    return rp_record_note(record, name, step, text);
}

rp_err rp_record_probe(rp_record *record, const rp_record_prediction *line) {
    char tag[64];
    rp_err err;
    if (!record->folder) {
        return RP_OK;
    }
    RP_TRY(rp_metrics_write_prediction(record->metrics, line->step, line->stage, line->gap,
                                       line->ahead, line->error, line->stale_error,
                                       since_start_s(record)));
    (void)snprintf(tag, sizeof tag, "prediction/stage%u/error", line->stage);
    RP_TRY(rp_tensorboard_scalar(record->board, tag, line->error, line->step, wall_s()));
    (void)snprintf(tag, sizeof tag, "prediction/stage%u/stale_error", line->stage);
    RP_TRY(rp_tensorboard_scalar(record->board, tag, line->stale_error, line->step, wall_s()));
fail:
    return err;
}

void rp_record_phase(rp_record *record, const char *text) {
    if (record) {
        rp_progress_phase(record->progress, text);
    }
}

void rp_record_segment(rp_record *record, double seconds) {
    record->segment_s += seconds;
}

static uint64_t get_u64(const uint8_t *at) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | at[i];
    }
    return value;
}

static rp_err add_op(rp_record *record, uint32_t stage, int64_t offset_ns, const uint8_t *at) {
    static const char *const names[RP_OP_KINDS] = {"forward", "backward", "backward input",
                                                   "backward weight", "update"};
    uint64_t kind = get_u64(at);
    uint64_t range = get_u64(at + 16);
    int64_t start_ns = (int64_t)get_u64(at + 24);
    int64_t end_ns = (int64_t)get_u64(at + 32);
    if ((kind & 0xff) >= RP_OP_KINDS || end_ns < start_ns) {
        return rp_fail(RP_ERR_PEER, "a trace record of stage %u makes no sense", stage);
    }
    record->busy_ns[stage] += end_ns - start_ns;
    if (!record->trace || record->trace_ops++ >= TRACE_OPS_MAX) {
        return RP_OK;
    }
    bool eval = (kind & 0x100) != 0;
    rp_trace_event event = {
        .stage = stage,
        .name = eval ? "evaluate" : names[kind & 0xff],
        .category = eval ? "evaluation" : "training",
        .start_ns = start_ns + offset_ns,
        .duration_ns = end_ns - start_ns,
        .step = get_u64(at + 8),
        .first = (uint32_t)range,
        .count = (uint32_t)(range >> 32),
    };
    return rp_trace_add(record->trace, &event);
}

rp_err rp_record_trace(rp_record *record, uint32_t stage, int64_t clock_offset_ns,
                       const uint8_t *bytes, size_t count) {
    if (count % RP_TRACE_BYTES) {
        return rp_fail(RP_ERR_PEER, "a trace of stage %u has %zu bytes", stage, count);
    }
    for (size_t i = 0; i < count; i += RP_TRACE_BYTES) {
        rp_err err = add_op(record, stage, clock_offset_ns, bytes + i);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static rp_err stage_summaries(rp_record *record, const rp_ring *ring, const rp_cut *cut,
                              rp_summary *summary) {
    rp_summary_stage *stage;
    double busy_s = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(record->arena, cut->stage_count + 1, &stage));
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        const rp_board_state *board = &ring->board[k];
        const char **layers;
        uint32_t count = cut->first[k + 1] - cut->first[k];
        RP_TRY(RP_ARENA_NEW(record->arena, count, &layers));
        for (uint32_t i = 0; i < count; i++) {
            layers[i] = record->run->model->layer[cut->first[k] + i].name;
        }
        double busy = (double)board->fact[0] * 1e-9;
        stage[k] = (rp_summary_stage){
            .board = board->device ? board->device : board->name,
            .layers = layers,
            .layer_count = count,
            .busy_s = busy,
            .idle_s = record->segment_s > busy ? record->segment_s - busy : 0,
            .weight_bytes = board->weight_bytes,
            .device_bytes_max = board->fact[4],
            .weight_versions_max = board->weight_copies_max,
            .probe_copies = board->probe_copies,
            .in_flight_max = (uint32_t)board->fact[2],
            .gap_max = (uint32_t)board->fact[3],
        };
        busy_s += busy;
    }
    summary->stage = stage;
    summary->stage_count = cut->stage_count;
    if (record->segment_s > 0 && cut->stage_count > 0) {
        summary->bubble = 1 - busy_s / (record->segment_s * cut->stage_count);
    }
fail:
    return err;
}

static rp_err link_summaries(rp_record *record, const rp_ring *ring, const rp_cut *cut,
                             rp_summary *summary) {
    rp_summary_link *link;
    uint32_t n = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(record->arena, 2 * (size_t)cut->stage_count + 1, &link));
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        const rp_board_state *board = &ring->board[k];
        double wall = record->segment_s > 0 ? record->segment_s : 1;
        if (k + 1 < cut->stage_count) {
            link[n++] = (rp_summary_link){k, k + 1, board->fact[5], board->link_busy_s[0],
                                          board->link_busy_s[0] / wall};
        }
        if (k > 0) {
            link[n++] = (rp_summary_link){k, k - 1, board->fact[6], board->link_busy_s[1],
                                          board->link_busy_s[1] / wall};
        }
    }
    summary->link = link;
    summary->link_count = n;
fail:
    return err;
}

/* Microbatches that had to contribute, and how many fewer the last board counted. */
static void fill_ledger(const rp_record *record, const rp_ring *ring, const rp_cut *cut,
                        rp_summary *summary) {
    const rp_sched_shape shape = rp_runfile_sched_shape(record->run, 0);
    uint64_t due = 0; /* of the boards that count here; earlier ones have gone */
    for (uint64_t step = 0; step < record->steps; step++) {
        uint32_t count = rp_sched_micro_count(&shape, step);
        summary->microbatches += count;
        due += step >= record->step_first ? count : 0;
    }
    for (uint32_t k = 0; k < cut->stage_count && strcmp(summary->status, "failed") != 0; k++) {
        uint64_t done = ring->board[k].fact[1];
        uint64_t missing = due > done ? due - done : 0;
        uint64_t more = done > due ? done - due : 0;
        summary->lost = missing > summary->lost ? missing : summary->lost;
        summary->repeated = more > summary->repeated ? more : summary->repeated;
    }
}

static rp_err make_summary(rp_record *record, const rp_ring *ring, const rp_cut *cut,
                           const char *status, const char *note, rp_summary *out) {
    const rp_runfile *run = record->run;
    rp_err err;
    *out = (rp_summary){
        .status = status,
        .model = run->model_name,
        .schedule = run->method.kind->name,
        .note = note,
        .stages = run->stages,
        .epochs = (uint32_t)(record->steps / run->epoch_steps),
        .steps = record->steps,
        .samples = record->samples,
        .seconds = since_start_s(record),
        .train_loss = record->train_loss,
        .evaluated = record->evaluated,
        .classes = run->loss->class_target,
        .eval_loss = record->eval_loss,
        .eval_accuracy = record->eval_accuracy,
        .eval_samples = record->eval_samples,
        .samples_per_s =
            record->segment_s + record->segment_before_s > 0
                ? (double)record->samples / (record->segment_s + record->segment_before_s)
                : 0,
    };
    RP_TRY(stage_summaries(record, ring, cut, out));
    RP_TRY(link_summaries(record, ring, cut, out));
    fill_ledger(record, ring, cut, out);
fail:
    return err;
}

static void print_result(const rp_record *record, const rp_summary *summary) {
    (void)printf("%s: %s on %u stages, schedule %s, %" PRIu64 " steps, %.1f s\n", summary->status,
                 summary->model, summary->stages, summary->schedule, summary->steps,
                 summary->seconds);
    if (summary->samples > 0) {
        (void)printf("train loss %.4f, %.0f samples/s", summary->train_loss,
                     summary->samples_per_s);
        if (strcmp(summary->status, "failed") != 0) { /* busy times come at a segment's end */
            (void)printf(", bubble %.0f %%", 100 * summary->bubble);
        }
        (void)printf("\n");
    }
    if (summary->evaluated && summary->classes) {
        (void)printf("test loss %.4f, accuracy %.2f %% of %" PRIu64 "\n", summary->eval_loss,
                     100 * summary->eval_accuracy, summary->eval_samples);
    } else if (summary->evaluated) {
        (void)printf("test loss %.6g of %" PRIu64 "\n", summary->eval_loss, summary->eval_samples);
    }
    if (record->folder) {
        (void)printf("everything is in %s\n", record->folder);
    }
}

static rp_err close_files(rp_record *record) {
    rp_err first = rp_metrics_close(&record->metrics);
    rp_err second = rp_trace_close(&record->trace);
    rp_err third = rp_tensorboard_close(&record->board);
    return first != RP_OK ? first : second != RP_OK ? second : third;
}

rp_err rp_record_close(rp_record **record_pointer, const rp_ring *ring, const rp_cut *cut,
                       const char *status, const char *note) {
    rp_record *record = *record_pointer;
    rp_summary summary;
    rp_err err;
    *record_pointer = NULL;
    rp_progress_close(&record->progress);
    rp_err closed = close_files(record);
    rp_cut none = {0};
    RP_TRY(make_summary(record, ring, ring->board ? cut : &none, status, note, &summary));
    if (record->folder) {
        char *path;
        RP_TRY(rp_arena_printf(record->arena, &path, "%s/summary.json", record->folder));
        RP_TRY(rp_summary_write(&summary, path));
    }
    bool nothing = strcmp(status, "failed") == 0 && record->samples == 0;
    if (record->format == RP_FORMAT_JSON) {
        RP_TRY(rp_summary_print(&summary, stdout));
    } else if (!nothing) { /* standard error has said why */
        print_result(record, &summary);
    }
    err = closed;
fail:
    return err;
}
