/* What the controller tells the record: plain facts of the run, its boards and its links. The only
 * file here that knows both. */
#include <math.h>
#include <unistd.h>

#include "control/telemetry.h"
#include "measure/drift.h"
#include "measure/losses.h"
#include "train/verify.h"
#include "wire/trace.h"

static rp_record_score record_score(const rp_position_score *score) {
    return (rp_record_score){score->done, score->loss, score->samples, score->correct};
}

static rp_record_totals totals_of(const rp_position *position) {
    return (rp_record_totals){.step = position->step,
                              .samples = position->samples,
                              .epoch_samples = position->epoch_samples,
                              .epoch_loss = position->epoch_loss,
                              .seconds = position->seconds,
                              .segment_s = position->segment_s,
                              .eval = record_score(&position->test),
                              .validation = record_score(&position->validation)};
}

rp_err rp_telemetry_open(const rp_run_view *v) {
    rp_sched_shape shape = rp_runfile_sched_shape(v->run, 0);
    shape.stages = v->run->boards; /* the record's stage is what a board holds */
    shape.chunks = 1;
    const bool trains = v->options->purpose == RP_PURPOSE_TRAIN;
    const rp_record_run run = {.model = v->run->model_name,
                               .schedule = v->run->method.kind->name,
                               .shape = shape,
                               .stages = v->run->stages,
                               .classes = v->run->loss->accuracy,
                               .folder = rp_folder_paths_of(v->folder)->folder,
                               .trace_bytes = (uint64_t)v->run->record.trace_mib << 20,
                               .progress = v->env->progress,
                               .result = v->env->result,
                               .format = v->options->format,
                               .temporary = v->options->temporary,
                               .eval_split = trains ? "test" : rp_split_name(v->options->split),
                               .executor = v->options->executor,
                               .clock = v->env->clock};
    const rp_record_totals start = totals_of(v->position);
    return rp_folder_open_record(v->folder, &run, &start);
}

rp_err rp_telemetry_rewind(rp_record *record, const rp_position *position) {
    const rp_record_totals to = totals_of(position);
    return rp_record_rewind(record, &to);
}

void rp_telemetry_read_totals(const rp_record *record, rp_position *position) {
    rp_record_totals totals = totals_of(position);
    rp_record_read_totals(record, &totals);
    position->samples = totals.samples;
    position->epoch_samples = totals.epoch_samples;
    position->epoch_loss = totals.epoch_loss;
    position->seconds = totals.seconds;
    position->segment_s = totals.segment_s;
}

/* ---- ops ------------------------------------------------------------------------------------- */

static rp_err unpack_op(uint32_t stage, int64_t offset_ns, const uint8_t *at, rp_sink_op *out) {
    const rp_trace_record record = rp_trace_unpack(at);
    if (record.kind >= RP_OP_KINDS || record.end_ns < record.start_ns ||
        !rp_board_is_clock_time(record.start_ns) || !rp_board_is_clock_time(record.end_ns)) {
        return rp_fail(RP_ERR_PEER, "a trace record of stage %u is out of range", stage);
    }
    *out = (rp_sink_op){.stage = stage,
                        .part = record.stage,
                        .kind = (rp_op_kind)record.kind,
                        .evaluation = record.evaluation,
                        .step = record.step,
                        .samples = {record.first, record.count},
                        .start_ns = record.start_ns + offset_ns,
                        .end_ns = record.end_ns + offset_ns};
    return RP_OK;
}

/* A board with one stage need not say which. */
static uint32_t stage_of(const rp_plan *plan, const rp_sink_op *op) {
    const rp_plan_node *node = &plan->node[op->stage];
    return node->hold_count == 1 ? plan->hold[node->hold_first].stage : op->part;
}

rp_err rp_telemetry_take_ops(const rp_run_view *v, uint32_t stage, const rp_part *part) {
    const rp_plan *plan = rp_arrangement_plan(v->setup);
    rp_record *record = rp_folder_record(v->folder);
    rp_transfers *transfers = rp_folder_transfers(v->folder);
    rp_err err = RP_OK;
    if (part->bytes % RP_TRACE_BYTES) {
        return rp_fail(RP_ERR_PEER, "a trace of stage %u has %zu bytes", stage, part->bytes);
    }
    for (size_t i = 0; i < part->bytes; i += RP_TRACE_BYTES) {
        rp_sink_op op;
        RP_TRY(unpack_op(stage, v->ring->board[stage].clock_offset_ns,
                         (const uint8_t *)part->data + i, &op));
        op.part = stage_of(plan, &op);
        rp_drift_note_op(v->measure, plan, &op);
        RP_TRY(rp_record_op(record, &op));
        RP_TRY(transfers ? rp_transfers_take(transfers, plan, v->run->model, v->run->batch,
                                             v->position->fill_step, &op, record)
                         : RP_OK);
    }
fail:
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

static const char *role_of(const rp_plan_hold *hold) {
    return hold->role == RP_ROLE_BOTH ? NULL : rp_role_name(hold->role);
}

static rp_err stage_facts(const rp_run_view *v, rp_arena *arena, rp_summary_stage *stage,
                          uint64_t *micro_done, double (*share)[2]) {
    const rp_model *model = v->run->model;
    const rp_plan *plan = rp_arrangement_plan(v->setup);
    const rp_cut *cut = rp_arrangement_plan_cut(v->setup);
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < v->ring->count; k++) {
        const rp_board_state *board = &v->ring->board[k];
        const rp_plan_node *node = &plan->node[k];
        const rp_plan_hold *hold = &plan->hold[node->hold_first];
        const char **layers;
        uint32_t *stages;
        uint32_t count = 0;
        RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &layers));
        RP_TRY(RP_ARENA_NEW(arena, node->hold_count, &stages));
        for (uint32_t h = 0; h < node->hold_count; h++) {
            const uint32_t own = hold[h].stage;
            stages[h] = own;
            for (uint32_t i = cut->first[own]; i < cut->first[own + 1]; i++) {
                layers[count++] = model->layer[i].name;
            }
        }
        stage[k] = (rp_summary_stage){
            .board = board->device ? board->device : board->name,
            .layers = layers,
            .layer_count = count,
            .stages = stages,
            .stage_count = node->hold_count,
            .role = role_of(hold),
            .busy_s = (double)board->facts.busy_ns * 1e-9,
            .weight_bytes = board->memory.weight_bytes,
            .device_bytes_max = board->facts.device_bytes_max,
            .flash_bytes = board->facts.flash_bytes,
            .weight_versions_max = board->memory.weight_copies_max,
            .probe_copies = board->memory.probe_copies,
            .in_flight_max = board->facts.in_flight_max,
            .gap_max = board->facts.staleness_max,
        };
        micro_done[k] = board->facts.microbatches / node->hold_count;
        for (uint32_t end = 0; end < 2; end++) { /* the same for all that it holds */
            share[k][end] = hold->share[end];
        }
    }
fail:
    return err;
}

/* Of inputs, activations and gradients from one end to another: each name once. NULL: of none. */
static rp_err codecs_between(const rp_plan *plan, uint32_t from, uint32_t to, rp_arena *arena,
                             const char **out) {
    bool has[RP_CODECS] = {false};
    char *text = NULL;
    rp_err err = RP_OK;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const bool encodes = edge->carries == RP_CARRIES_ACTIVATION ||
                             edge->carries == RP_CARRIES_GRADIENT ||
                             edge->carries == RP_CARRIES_INPUT;
        has[edge->codec] |= encodes && edge->from == from && edge->to == to;
    }
    for (uint32_t codec = 0; codec < RP_CODECS; codec++) {
        if (has[codec]) {
            RP_TRY(rp_arena_printf(arena, &text, "%s%s%s", text ? text : "", text ? " " : "",
                                   rp_codec_name((rp_codec)codec)));
        }
    }
    *out = text;
fail:
    return err;
}

/* What each board has sent to its neighbours, to those behind it first. */
static rp_err link_facts(const rp_run_view *v, rp_arena *arena, rp_record_end *end) {
    size_t count = 0;
    for (uint32_t k = 0; k < v->ring->count; k++) {
        count += v->ring->board[k].facts.link_count;
    }
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &end->link));
    for (uint32_t k = 0; k < v->ring->count; k++) {
        const rp_board_facts *facts = &v->ring->board[k].facts;
        for (uint32_t i = facts->link_count; i-- > 0;) {
            const rp_board_link *at = &facts->link[i];
            rp_summary_link *to = &end->link[end->link_count++];
            *to = (rp_summary_link){
                .from = k, .to = at->peer, .bytes = at->bytes, .busy_s = at->busy_s};
            RP_TRY(codecs_between(rp_arrangement_plan(v->setup), k, at->peer, arena, &to->codec));
        }
    }
fail:
    return err;
}

static rp_summary_wire wire_row(const char *kind, uint32_t from, uint32_t to,
                                const rp_board_link *use) {
    return (rp_summary_wire){.kind = kind,
                             .from = from,
                             .to = to,
                             .bytes = use->bytes,
                             .rate_mbit = use->rate > 0 ? 8e-6 * use->rate : (double)NAN,
                             .busy_s = use->rate > 0 ? use->busy_s : (double)NAN,
                             .delay_ms = {1e3 * use->delay_s[0], 1e3 * use->delay_s[1]},
                             .resent = use->resent,
                             .resets = use->resets,
                             .l2_error = (double)NAN};
}

/* Every wire: between boards as above, then between the host and each board, from the host first.
 */
static rp_err wire_facts(const rp_run_view *v, rp_arena *arena, rp_record_end *end) {
    const rp_plan *plan = rp_arrangement_plan(v->setup);
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, end->link_count + 4 * (size_t)v->ring->count, &end->wire));
    for (uint32_t k = 0; k < v->ring->count; k++) {
        const rp_board_facts *facts = &v->ring->board[k].facts;
        for (uint32_t i = facts->link_count; i-- > 0;) {
            rp_summary_wire *to = &end->wire[end->wire_count++];
            *to = wire_row("hop", k, facts->link[i].peer, &facts->link[i]);
            to->l2_error = rp_losses_of_wire(v->measure, plan, k, to->to);
            RP_TRY(codecs_between(plan, k, to->to, arena, &to->codec));
        }
    }
    for (uint32_t k = 0; k < v->ring->count; k++) {
        const rp_board_facts *facts = &v->ring->board[k].facts;
        if (facts->feed[1].bytes > 0) {
            rp_summary_wire *to = &end->wire[end->wire_count++];
            *to = wire_row("feed", RP_PLAN_HOST, k, &facts->feed[1]);
            RP_TRY(codecs_between(plan, RP_PLAN_HOST, k, arena, &to->codec));
            end->wire[end->wire_count++] = wire_row("feed", k, RP_PLAN_HOST, &facts->feed[0]);
        }
        end->wire[end->wire_count++] = wire_row("control", RP_PLAN_HOST, k, &facts->control[1]);
        end->wire[end->wire_count++] = wire_row("control", k, RP_PLAN_HOST, &facts->control[0]);
    }
fail:
    return err;
}

/* None when the run ended before it had boards and a plan. */
static rp_err gather_facts(const rp_run_view *v, rp_arena *arena, rp_record_end *end) {
    const uint32_t count = v->ring->board && rp_arrangement_plan(v->setup) ? v->ring->count : 0;
    uint64_t *micro_done;
    double(*share)[2];
    rp_err err = RP_OK;
    if (count == 0) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, count, &end->stage));
    RP_TRY(RP_ARENA_NEW(arena, count, &micro_done));
    RP_TRY(RP_ARENA_NEW(arena, count, &share));
    RP_TRY(stage_facts(v, arena, end->stage, micro_done, share));
    RP_TRY(link_facts(v, arena, end));
    RP_TRY(wire_facts(v, arena, end));
    end->micro_done = micro_done;
    end->share = (const double(*)[2])share;
    end->stage_count = count;
fail:
    return err;
}

rp_err rp_telemetry_write_facts(const rp_run_view *v) {
    rp_record_end end = {0};
    rp_arena arena;
    rp_arena_init(&arena, "facts", 0);
    rp_err err = gather_facts(v, &arena, &end);
    if (err == RP_OK && rp_folder_record(v->folder)) {
        err = rp_record_facts(rp_folder_record(v->folder),
                              &(rp_sink_facts){.step = v->position->step,
                                               .stage = end.stage,
                                               .stage_count = end.stage_count,
                                               .link = end.link,
                                               .link_count = end.link_count});
    }
    rp_arena_finish(&arena);
    return err;
}

static rp_summary_best summarize_best(const rp_run_view *v) {
    const bool trains = v->options->purpose == RP_PURPOSE_TRAIN; /* else there is no folder */
    const bool kept = trains && v->run->score.keep_best &&
                      access(rp_folder_paths_of(v->folder)->best_weights, F_OK) == 0;
    return (rp_summary_best){
        .step = rp_train_best(v->train)->step,
        .metric = v->run->score.best_by == RP_BEST_ACCURACY ? "accuracy" : "loss",
        .split = rp_data_scored(&v->run->data) == RP_SPLIT_VALIDATION ? "validation" : "test",
        .value = rp_train_best(v->train)->value,
        .path = kept ? "best.safetensors" : NULL};
}

rp_err rp_telemetry_close(const rp_run_view *v, const char *status, const char *note) {
    rp_record_end end = {.status = status,
                         .note = note,
                         .best = summarize_best(v),
                         .ledger = rp_train_tell_ledger(v->train),
                         .verify = rp_verify_tell(v->train),
                         .recovery = v->recoveries,
                         .recovery_count = v->recovery_count,
                         .boards_left = v->ring->away.left,
                         .boards_joined = v->ring->away.joined};
    rp_arena arena;
    end.ledger.known = end.ledger.known && v->has_begun;
    rp_arena_init(&arena, "summary", 0);
    const rp_err told =
        rp_drift_tell(v->measure, rp_arrangement_plan(v->setup), &arena, &end.prediction);
    const rp_err gathered = told == RP_OK ? gather_facts(v, &arena, &end) : told;
    const rp_err closed = rp_folder_close_record(v->folder, &end);
    rp_arena_finish(&arena);
    return gathered != RP_OK ? gathered : closed;
}
