#include "record/record.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { SPEED_STEPS = 32 };

typedef struct {
    const rp_sink_kind *kind;
    void *state; /* NULL: not open */
    bool failed; /* once, and that was said */
} sink;

struct rp_record {
    rp_record_run run;
    rp_clock own_clock;
    const rp_clock *clock;
    rp_sink_run sinks_run;
    sink *sinks;
    uint32_t sink_count;

    uint64_t epoch_steps;
    rp_record_totals total; /* of all runs; seconds: of those that this one resumes */
    uint64_t speed_step;    /* trained without a break since then */
    double train_loss;
    double segment_s;             /* wall time of this run's segments */
    double told_s;                /* .. of those whose busy times the boards have told */
    int64_t step_ns[SPEED_STEPS]; /* ends of the last steps */
    uint32_t step_samples[SPEED_STEPS];
    uint64_t step_counted[SPEED_STEPS]; /* targets that count */
    /* of all steps since the record was opened */
    uint64_t own_samples, own_counted;
    int64_t *busy_ns; /* per stage, since the shares were last computed */
    int64_t busy_since_ns;
    double *busy;
    bool busy_known;     /* a first share was computed */
    rp_sink_step newest; /* the newest step; valid if has_newest */
    bool has_newest;
};

/* Tells every open sink that has `function`, and leaves at the first error that counts. */
#define TELL(record, function, argument)                                                           \
    do {                                                                                           \
        for (uint32_t i = 0; i < (record)->sink_count; i++) {                                      \
            sink *to = &(record)->sinks[i];                                                        \
            if (to->state && to->kind->function) {                                                 \
                rp_err told = to->kind->function(to->state, (argument));                           \
                told = told == RP_OK ? told : take_failure(record, to, told);                      \
                if (told != RP_OK) {                                                               \
                    return told;                                                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return RP_OK;                                                                              \
    } while (0)

static double since_open_s(const rp_record *record) {
    return (double)(rp_clock_now_ns(record->clock) - record->sinks_run.start_ns) * 1e-9;
}

static double run_s(const rp_record *record) {
    return record->total.seconds + since_open_s(record);
}

static double wall_s(const rp_record *record) {
    return record->sinks_run.wall_s + since_open_s(record);
}

static rp_sink_event make_line(const rp_record *record, const rp_run_event *event,
                               char text[static RP_WORDS_BYTES]) {
    return (rp_sink_event){.event = event,
                           .text = rp_words_write(event, text, RP_WORDS_BYTES),
                           .time_s = run_s(record)};
}

/* Of a sink that is spared nothing but the first error is seen, by the others: the disk may be
 * full, and a run is worth more than its log. */
static rp_err take_failure(rp_record *record, sink *at, rp_err err) {
    if (err != RP_ERR_IO || !at->kind->spared || at->failed) {
        return err == RP_ERR_IO && at->kind->spared ? RP_OK : err;
    }
    at->failed = true;
    char text[RP_WORDS_BYTES];
    const rp_run_event unwritten = {
        .kind = RP_EVENT_UNWRITTEN, .step = record->total.step, .error = rp_err_message()};
    const rp_sink_event event = make_line(record, &unwritten, text);
    for (uint32_t i = 0; i < record->sink_count; i++) {
        const sink *to = &record->sinks[i];
        if (to->state && !to->kind->spared && to->kind->on_event) {
            (void)!to->kind->on_event(to->state, &event);
        }
    }
    return RP_OK;
}

void rp_record_read_totals(const rp_record *record, rp_record_totals *totals) {
    totals->samples = record->total.samples;
    totals->epoch_samples = record->total.epoch_samples;
    totals->epoch_counted = record->total.epoch_counted;
    totals->epoch_loss = record->total.epoch_loss;
    totals->seconds = run_s(record);
    totals->segment_s = record->total.segment_s + record->segment_s;
}

/* ---- life ------------------------------------------------------------------------------------ */

static double wall_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static rp_err close_sinks(rp_record *record, const rp_summary *summary) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < record->sink_count; i++) {
        sink *at = &record->sinks[i];
        if (at->state) {
            rp_err closed = at->kind->close(at->state, summary);
            closed = closed == RP_OK ? closed : take_failure(record, at, closed);
            err = err == RP_OK ? closed : err;
            at->state = NULL;
        }
    }
    return err;
}

static rp_err open_sinks(rp_record *record, rp_arena *arena) {
    rp_err err;
    uint32_t count = 0;
    while (rp_sink_kinds[count]) {
        count++;
    }
    RP_TRY(RP_ARENA_NEW(arena, count, &record->sinks));
    for (uint32_t i = 0; i < count; i++) {
        record->sinks[i].kind = rp_sink_kinds[i];
        RP_TRY(rp_sink_kinds[i]->open(arena, &record->sinks_run, &record->sinks[i].state));
        record->sink_count++;
    }
fail:
    return err;
}

/* Of the targets of the epoch under way; not a number: no step of it counts. */
static double mean_loss(const rp_record_totals *total) {
    return total->epoch_counted > 0 ? total->epoch_loss / (double)total->epoch_counted
                                    : (double)NAN;
}

static void take_totals(rp_record *record, const rp_record_totals *start) {
    record->total = *start;
    record->train_loss = mean_loss(start);
}

static void begin_run(rp_record *record, const rp_record_totals *start) {
    const rp_record_run *run = &record->run;
    record->epoch_steps = rp_sched_epoch_steps(&run->shape);
    take_totals(record, start);
    record->speed_step = start->step;
    record->busy_since_ns = rp_clock_now_ns(record->clock);
    record->sinks_run = (rp_sink_run){
        .folder = run->folder,
        .trace_bytes = run->trace_bytes,
        .temporary = run->temporary,
        .progress = run->progress,
        .result = run->result,
        .format = run->format,
        .clock = record->clock,
        .start_ns = record->busy_since_ns,
        .wall_s = wall_now_s(),
        .step_first = start->step,
        .step_total = run->shape.step_end,
        .epochs = (uint32_t)((run->shape.step_end + record->epoch_steps - 1) / record->epoch_steps),
        .stages = run->shape.stages,
        .without_losses = strcmp(run->executor, "opencl") != 0,
        .targets = run->targets,
    };
}

rp_err rp_record_open(rp_arena *arena, const rp_record_run *run, const rp_record_totals *start,
                      rp_record **out) {
    rp_err err;
    rp_record *record = NULL;
    RP_TRY(RP_ARENA_NEW(arena, 1, &record));
    record->run = *run;
    record->run.executor = run->executor ? run->executor : "opencl";
    record->run.eval_split = run->eval_split ? run->eval_split : "test";
    record->own_clock = rp_clock_real();
    record->clock = run->clock ? run->clock : &record->own_clock;
    begin_run(record, start);
    RP_TRY(RP_ARENA_NEW(arena, run->shape.stages, &record->busy_ns));
    RP_TRY(RP_ARENA_NEW(arena, run->shape.stages, &record->busy));
    RP_TRY(open_sinks(record, arena));
    *out = record;
    return RP_OK;
fail:
    if (record) {
        (void)close_sinks(record, NULL);
    }
    return err;
}

static rp_err rewind_sinks(rp_record *record, uint64_t step) {
    TELL(record, rewind, step);
}

rp_err rp_record_rewind(rp_record *record, const rp_record_totals *start) {
    rp_record_totals to = *start;
    to.seconds = record->total.seconds;
    to.segment_s = record->total.segment_s;
    take_totals(record, &to);
    record->speed_step = start->step;
    return rewind_sinks(record, start->step);
}

/* ---- on the way ------------------------------------------------------------------------------ */

/* Speed over the last steps, so that a stall shows. 0: not known yet. */
static void measure_speed(const rp_record *record, double *samples_per_s, double *tokens_per_s) {
    const uint64_t done = record->total.step - record->speed_step;
    const uint32_t count = done < SPEED_STEPS ? (uint32_t)done : SPEED_STEPS;
    uint64_t samples = 0;
    uint64_t counted = 0;
    *samples_per_s = *tokens_per_s = 0;
    if (count < 2) {
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        samples += record->step_samples[(record->total.step - i) % SPEED_STEPS];
        counted += record->step_counted[(record->total.step - i) % SPEED_STEPS];
    }
    const int64_t last_ns = record->step_ns[(record->total.step - 1) % SPEED_STEPS];
    const int64_t first_ns = record->step_ns[(record->total.step - count) % SPEED_STEPS];
    if (last_ns > first_ns) {
        *samples_per_s = (double)samples * 1e9 / (double)(last_ns - first_ns);
        *tokens_per_s = (double)counted * 1e9 / (double)(last_ns - first_ns);
    }
}

void rp_record_take_boards(rp_record *record, uint32_t boards, uint32_t stages) {
    RP_ASSERT(boards > 0 && boards <= record->sinks_run.stages);
    for (uint32_t k = boards; k < record->run.shape.stages; k++) {
        record->busy[k] = 0; /* nobody is there any more */
    }
    record->run.shape.stages = boards;
    record->run.stages = stages;
}

void rp_record_take_schedule(rp_record *record, const char *schedule) {
    record->run.schedule = schedule;
}

/* Shares of the last second: nobody who watches wants a longer history. */
static void update_busy(rp_record *record) {
    int64_t now_ns = rp_clock_now_ns(record->clock);
    int64_t span_ns = now_ns - record->busy_since_ns;
    if (span_ns < RP_NS_PER_S) {
        return;
    }
    for (uint32_t k = 0; k < record->run.shape.stages; k++) {
        double share = (double)record->busy_ns[k] / (double)span_ns;
        record->busy[k] = share < 1 ? share : 1;
        record->busy_ns[k] = 0;
    }
    record->busy_since_ns = now_ns;
    record->busy_known = true;
}

rp_err rp_record_step(rp_record *record, uint64_t step, double loss, double lr, uint32_t samples,
                      uint64_t counted) {
    rp_record_totals *total = &record->total;
    if (step % record->epoch_steps == 0) {
        total->epoch_loss = 0;
        total->epoch_samples = 0;
        total->epoch_counted = 0;
    }
    if (counted == 0 || isfinite(loss)) { /* the guard skips a step whose loss is not */
        total->epoch_loss += counted > 0 ? loss * (double)counted : 0;
        total->epoch_samples += samples;
        total->epoch_counted += counted;
    }
    record->train_loss = mean_loss(total);
    record->step_ns[step % SPEED_STEPS] = rp_clock_now_ns(record->clock);
    record->step_samples[step % SPEED_STEPS] = samples;
    record->step_counted[step % SPEED_STEPS] = counted;
    total->step = step + 1;
    total->samples += samples;
    record->own_samples += samples;
    record->own_counted += counted;
    update_busy(record);
    double samples_per_s;
    double tokens_per_s;
    measure_speed(record, &samples_per_s, &tokens_per_s);
    const rp_sink_step line = {.step = step,
                               .epoch = (uint32_t)(step / record->epoch_steps),
                               .loss = loss,
                               .bits = loss * record->run.bits.train,
                               .lr = lr,
                               .samples_per_s = samples_per_s,
                               .tokens_per_s = tokens_per_s,
                               .busy = record->busy_known ? record->busy : NULL,
                               .time_s = run_s(record),
                               .wall_s = wall_s(record)};
    record->newest = line;
    record->has_newest = true;
    TELL(record, on_step, &line);
}

const rp_sink_step *rp_record_newest_step(const rp_record *record) {
    return record->has_newest ? &record->newest : NULL;
}

static double accuracy_of(const rp_record_score *score) {
    return (double)score->correct / (double)score->counted;
}

rp_err rp_record_eval(rp_record *record, bool validation, uint64_t step,
                      const rp_record_score *score) {
    const rp_record_bits *bits = &record->run.bits;
    rp_record_totals *total = &record->total;
    *(validation ? &total->validation : &total->eval) = *score;
    const rp_sink_eval line = {.split = validation ? "validation" : record->run.eval_split,
                               .step = step,
                               .loss = score->loss,
                               .bits = score->loss * (validation ? bits->validation : bits->eval),
                               .accuracy = record->run.classes ? accuracy_of(score) : -1.0,
                               .mean_iou = score->mean_iou,
                               .samples = score->samples,
                               .time_s = run_s(record),
                               .wall_s = wall_s(record)};
    TELL(record, on_eval, &line);
}

rp_err rp_record_event(rp_record *record, const rp_run_event *event) {
    char text[RP_WORDS_BYTES];
    if (!record) {
        return RP_OK;
    }
    const rp_sink_event line = make_line(record, event, text);
    TELL(record, on_event, &line);
}

rp_err rp_record_prediction(rp_record *record, const rp_sink_prediction *prediction) {
    rp_sink_prediction line = *prediction;
    line.time_s = run_s(record);
    line.wall_s = wall_s(record);
    TELL(record, on_prediction, &line);
}

rp_err rp_record_codec(rp_record *record, const rp_sink_codec *codec) {
    rp_sink_codec line = *codec;
    line.time_s = run_s(record);
    TELL(record, on_codec, &line);
}

rp_err rp_record_op(rp_record *record, const rp_sink_op *op) {
    RP_ASSERT(op->stage < record->run.shape.stages);
    record->busy_ns[op->stage] += op->end_ns - op->start_ns;
    TELL(record, on_op, op);
}

rp_err rp_record_transfer(rp_record *record, const rp_sink_transfer *transfer) {
    TELL(record, on_transfer, transfer);
}

rp_err rp_record_facts(rp_record *record, const rp_sink_facts *facts) {
    rp_sink_facts line = *facts;
    line.time_s = run_s(record);
    line.wall_s = wall_s(record);
    TELL(record, on_facts, &line);
}

rp_err rp_record_norm(rp_record *record, uint64_t step, double norm) {
    const rp_sink_norm line = {step, norm, wall_s(record)};
    TELL(record, on_norm, &line);
}

rp_err rp_record_histogram(rp_record *record, uint64_t step, const char *name,
                           const rp_histogram *values) {
    const rp_sink_histogram line = {step, name, values, wall_s(record)};
    TELL(record, on_histogram, &line);
}

static rp_err tell_phase(rp_record *record, const char *text) {
    TELL(record, on_phase, text);
}

void rp_record_phase(rp_record *record, const char *text) {
    if (record) {
        (void)tell_phase(record, text);
    }
}

static rp_err tell_part(rp_record *record, const rp_sink_part *part) {
    TELL(record, on_part, part);
}

void rp_record_part(rp_record *record, const rp_sink_part *part) {
    if (record) {
        (void)tell_part(record, part);
    }
}

void rp_record_segment(rp_record *record, double seconds, bool whole) {
    record->segment_s += seconds;
    record->told_s += whole ? seconds : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* All bytes of a wire passed in this time: where that is less than they take at the rate that was
 * measured, the wire is faster, and was seldom full. */
static void add_wire_share(rp_summary_wire *wire, double seconds) {
    if (wire->busy_s > seconds && seconds > 0) {
        wire->rate_mbit = 8e-6 * (double)wire->bytes / seconds;
        wire->busy_s = seconds;
    }
    wire->utilisation = wire->busy_s / (seconds > 0 ? seconds : 1);
}

/* Of the facts, what follows from the wall time of the segments that have ended: busy times come
 * then. Assignments and checkpoints go over the control wire besides, so that its share is of the
 * run's time. */
static void add_shares(const rp_record *record, const rp_record_end *end, rp_summary *summary) {
    const double wall = record->told_s;
    double busy_s = 0;
    for (uint32_t k = 0; k < end->stage_count; k++) {
        const double busy = end->stage[k].busy_s;
        end->stage[k].idle_s = wall > busy ? wall - busy : 0;
        busy_s += busy;
    }
    for (uint32_t i = 0; i < end->link_count; i++) {
        rp_summary_link *link = &end->link[i];
        link->busy_s = wall > 0 && link->busy_s > wall ? wall : link->busy_s;
        link->utilisation = link->busy_s / (wall > 0 ? wall : 1);
    }
    for (uint32_t i = 0; i < end->wire_count; i++) {
        const bool control = strcmp(end->wire[i].kind, "control") == 0;
        add_wire_share(&end->wire[i], control ? since_open_s(record) : record->segment_s);
    }
    summary->bubble =
        wall > 0 && end->stage_count > 0 ? 1 - busy_s / (wall * end->stage_count) : (double)NAN;
}

/* Microbatches of a share (NULL: of all samples) in the steps from `first` on. */
static uint64_t count_microbatches(const rp_record *record, const double *share, uint64_t first) {
    rp_sched_shape shape = record->run.shape;
    uint64_t count = 0;
    if (share) {
        shape.share[0] = share[0];
        shape.share[1] = share[1];
    }
    for (uint64_t step = first; step < record->total.step; step++) {
        count += rp_sched_micro_count(&shape, step);
    }
    return count;
}

static bool same_share(const double a[2], const double b[2]) {
    return a[0] == b[0] && a[1] == b[1];
}

/* What was compared with the plan, sample by sample. Of boards that do not say that:
 * microbatches that had to contribute, and how many fewer or more a board counted of its share. Due
 * are those since the open: boards of before have gone. */
static void fill_ledger(const rp_record *record, const rp_record_end *end, rp_summary *summary) {
    uint64_t due = 0;
    summary->microbatches = count_microbatches(record, NULL, 0);
    summary->ledger = end->ledger;
    if (end->ledger.known) {
        summary->lost = end->ledger.lost;
        summary->repeated = end->ledger.repeated;
        return;
    }
    for (uint32_t k = 0; k < end->stage_count && strcmp(end->status, "failed") != 0; k++) {
        const double *share = end->share ? end->share[k] : NULL;
        if (k == 0 || (share && !same_share(share, end->share[k - 1]))) {
            due = count_microbatches(record, share, record->sinks_run.step_first);
        }
        uint64_t done = end->micro_done[k];
        uint64_t missing = due > done ? due - done : 0;
        uint64_t more = done > due ? done - due : 0;
        summary->lost = missing > summary->lost ? missing : summary->lost;
        summary->repeated = more > summary->repeated ? more : summary->repeated;
    }
}

/* Steps of the epoch under way that the mean of the losses leaves out, by the samples that are
 * missing from it: a resumed run knows no more of its former steps. */
static uint64_t count_left_out(const rp_record *record) {
    const rp_record_totals *total = &record->total;
    const uint32_t batch = record->run.shape.batch;
    uint64_t samples = 0;
    for (uint64_t step = total->step; step > 0; step--) {
        samples += rp_sched_step_samples(&record->run.shape, step - 1);
        if ((step - 1) % record->epoch_steps == 0) {
            break;
        }
    }
    return samples > total->epoch_samples ? (samples - total->epoch_samples + batch - 1) / batch
                                          : 0;
}

static rp_summary_score summary_score(const rp_record_score *score, double bits) {
    return (rp_summary_score){.known = score->known,
                              .loss = score->loss,
                              .bits = score->loss * bits,
                              .accuracy = score->known ? accuracy_of(score) : 0,
                              .mean_iou = score->mean_iou,
                              .samples = score->samples,
                              .counted = score->counted};
}

/* Joules of all boards for a sample; 0: unknown for one of them. A machine with several boards
 * counts once. */
static double energy_of_sample(const rp_record *record, const rp_record_end *end) {
    double joules = 0;
    bool known = record->own_samples > 0 && end->stage_count > 0;
    for (uint32_t k = 0; k < end->stage_count; k++) {
        joules += end->stage[k].energy_j;
        known = known && (end->stage[k].energy_j > 0 || end->stage[k].energy_with > 0);
    }
    return known ? joules / (double)record->own_samples : 0;
}

static rp_summary summarize_run(const rp_record *record, const rp_record_end *end) {
    const rp_record_run *run = &record->run;
    const rp_record_totals *total = &record->total;
    const double trained_s = total->segment_s + record->segment_s;
    const double samples_per_s = trained_s > 0 ? (double)total->samples / trained_s : 0;
    rp_summary summary = {
        .status = end->status,
        .model = run->model,
        .schedule = run->schedule,
        .executor = run->executor,
        .without_losses = record->sinks_run.without_losses,
        .note = end->note,
        .stages = run->stages > 0 ? run->stages : run->shape.stages,
        .boards = run->shape.stages,
        .epochs = (uint32_t)(total->step / record->epoch_steps),
        .steps = total->step,
        .samples = total->samples,
        .seconds = run_s(record),
        .train_loss = record->train_loss,
        .train_bits = record->train_loss * run->bits.train,
        .left_out = record->sinks_run.without_losses ? 0 : count_left_out(record),
        .classes = run->classes,
        .targets = run->targets,
        .eval = summary_score(&total->eval, run->bits.eval),
        .eval_split = run->eval_split,
        .validation = summary_score(&total->validation, run->bits.validation),
        .best = end->best,
        .samples_per_s = samples_per_s,
        .energy_j_per_sample = energy_of_sample(record, end),
        .tokens_per_s = record->own_samples > 0 ? samples_per_s * (double)record->own_counted /
                                                      (double)record->own_samples
                                                : 0,
        .stage = end->stage,
        .stage_count = end->stage_count,
        .link = end->link,
        .link_count = end->link_count,
        .wire = end->wire,
        .wire_count = end->wire_count,
        .verify = end->verify,
        .prediction = end->prediction,
        .recovery = end->recovery,
        .recovery_count = end->recovery_count,
        .boards_left = end->boards_left,
        .boards_joined = end->boards_joined,
    };
    add_shares(record, end, &summary);
    fill_ledger(record, end, &summary);
    return summary;
}

rp_err rp_record_close(rp_record **taken, const rp_record_end *end) {
    rp_record *record = *taken;
    *taken = NULL;
    const rp_summary summary = summarize_run(record, end);
    return close_sinks(record, &summary);
}

void rp_record_crash(rp_record *record) {
    for (uint32_t i = 0; record && i < record->sink_count; i++) {
        const sink *at = &record->sinks[i];
        if (at->state && at->kind->crash) {
            at->kind->crash(at->state);
        }
    }
}
