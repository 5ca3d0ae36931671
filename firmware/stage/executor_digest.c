/* The executor whose numbers are digests: a lost, repeated or wrong-version op changes the final
 * ones with certainty, at almost no cost. Boundary tensors travel as 16 bytes a sample; data and
 * targets of the set come as they are. Of a parameter's digest its first bytes are the parameter's
 * in files, the rest is zero; values that do not look like one are taken over by their hash. Losses
 * and sums of squares that it reports are numbers in (0, 1] without a meaning. */
#include <string.h>

#include "stage/busy.h"
#include "stage/digest.h"

enum { ALIGN_BYTES = 64 };

/* A parameter that is being written: its bytes come in order, in pieces of any size. */
enum { CHUNK_BYTES = 1024 };
typedef struct {
    rp_region region;
    size_t next;
    bool plain; /* something lies behind the first 16 bytes: no digest but values */
    rp_digest first;
    rp_digest hash;          /* of all whole chunks so far */
    char chunk[CHUNK_BYTES]; /* the bytes behind them */
} writing;

typedef struct {
    rp_executor base;
    bool strict;
    rp_busy busy;
    rp_digest *blocks;   /* in a row, each of trained_count */
    rp_digest *running;  /* by parameter: batch statistics */
    rp_digest *slots;    /* rows of values, then the statistics of the layers */
    rp_digest *deferred; /* rows of gradients */
    rp_digest *grads;    /* those of an undivided backward */
    float *results, *probe_norms;
    size_t slot_digests, rows_digests; /* of one slot, of all rows of it */
    writing writing;
} digest_executor;

extern const rp_executor_kind rp_executor_digest;

static digest_executor *executor_of(rp_executor *executor) {
    return (digest_executor *)(void *)executor; /* the base is its first member */
}

/* ---- memory ---------------------------------------------------------------------------------- */

static rp_digest *block_of(const digest_executor *e, rp_block block) {
    return e->blocks +
           (size_t)rp_block_position(e->base.layout, block) * e->base.layout->trained_count;
}

static const rp_model_param *param_at(const digest_executor *e, uint32_t param) {
    return &e->base.job->model->param[e->base.layout->param_first + param];
}

/* By trained parameter. */
static const rp_model_param *trained_at(const digest_executor *e, uint32_t trained) {
    uint32_t p = 0;
    while (e->base.layout->trained[p] != trained) {
        p++;
    }
    return param_at(e, p);
}

static rp_err take_memory(rp_arena *arena, digest_executor *e) {
    const rp_layout *layout = e->base.layout;
    const size_t micro = e->base.job->micro;
    rp_err err;
    e->rows_digests = layout->tensor_count * micro;
    e->slot_digests = e->rows_digests + layout->layer_count;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)rp_block_total(layout) * layout->trained_count + 1,
                        &e->blocks));
    RP_TRY(RP_ARENA_NEW(arena, layout->param_count + 1, &e->running));
    RP_TRY(RP_ARENA_NEW(arena, layout->slots * e->slot_digests, &e->slots));
    RP_TRY(RP_ARENA_NEW(arena, layout->deferred_slots * e->rows_digests + 1, &e->deferred));
    RP_TRY(RP_ARENA_NEW(arena, e->rows_digests, &e->grads));
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)e->base.job->batch, &e->results));
    RP_TRY(
        RP_ARENA_NEW(arena, RP_PROBE_NORMS * (size_t)layout->trained_count + 1, &e->probe_norms));
fail:
    return err;
}

static rp_err digest_prepare(rp_arena *arena, const rp_site *site, const rp_job *job,
                             rp_executor **out) {
    digest_executor *e;
    rp_layout *layout;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &e));
    RP_TRY(rp_layout_make(arena, job, RP_GEMM_PANEL, ALIGN_BYTES, &layout));
    layout->boundary_floats = RP_DIGEST_BYTES / sizeof(float);
    *e = (digest_executor){
        .base = {.kind = &rp_executor_digest, .job = job, .layout = layout},
        .strict = site->strict,
    };
    rp_busy_open(&e->busy, site, job, layout);
    RP_TRY(take_memory(arena, e));
    *out = &e->base;
fail:
    return err;
}

static void digest_destroy(rp_executor **executor) {
    *executor = NULL; /* its memory is the arena's */
}

static void digest_init(digest_executor *e) {
    const rp_layout *layout = e->base.layout;
    memset(e->blocks, 0,
           (size_t)rp_block_total(layout) * layout->trained_count * sizeof *e->blocks);
    for (uint32_t p = 0; p < layout->param_count; p++) {
        const rp_model_param *param = param_at(e, p);
        const rp_digest start = rp_digest_init(param, e->base.job->seed);
        const uint32_t trained = layout->trained[p];
        e->running[p] = param->role == RP_PARAM_STATE ? start : (rp_digest){0};
        for (uint32_t v = 0; trained != RP_NOT_TRAINED && v < layout->versions; v++) {
            block_of(e, (rp_block){RP_BLOCK_WEIGHTS, v})[trained] = start;
        }
        if (trained != RP_NOT_TRAINED && layout->centres) {
            block_of(e, (rp_block){RP_BLOCK_CENTRE, 0})[trained] = start;
        }
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

static rp_digest_pass pass_of(digest_executor *e, const rp_pass *pass) {
    rp_digest *slot = e->slots + pass->stash.slot * e->slot_digests;
    const bool deferred = pass->deferred.slot != RP_NO_SLOT;
    return (rp_digest_pass){
        .job = e->base.job,
        .layout = e->base.layout,
        .stride = e->base.job->micro,
        .n = pass->op->samples.count,
        .number = pass->op->step * e->base.job->batch + pass->op->samples.first,
        .training = pass->training,
        .strict = e->strict,
        .accumulate = pass->accumulate,
        .renewal = pass->renewal,
        .weights = block_of(e, pass->weights),
        .running = e->running,
        .value = slot + pass->stash.first,
        .statistics = slot + e->rows_digests,
        .grad = deferred
                    ? e->deferred + pass->deferred.slot * e->rows_digests + pass->deferred.first
                    : e->grads,
        .gradient = block_of(e, (rp_block){RP_BLOCK_GRADIENT, 0}),
    };
}

static rp_digest *row_of(const rp_digest_pass *at, rp_digest *rows, uint32_t tensor) {
    return rows + (size_t)tensor * at->stride;
}

/* Part `index` of all pieces: digests as they are, or (`bytes` > 0) the hash of so many bytes of
 * each sample. */
static void take_part(const rp_pass *pass, uint32_t index, size_t bytes, rp_digest *row) {
    for (uint32_t p = 0; p < pass->in_count; p++) {
        const rp_stage_piece *piece = &pass->in[p];
        const rp_piece_cut cut = rp_piece_of(piece, &pass->op->samples);
        const char *from = piece->part[index];
        if (bytes == 0) {
            memcpy(row + cut.at, from + cut.from * sizeof *row, cut.count * sizeof *row);
        }
        for (uint32_t s = 0; bytes > 0 && s < cut.count; s++) {
            row[cut.at + s] = rp_digest_of_bytes(from + (cut.from + s) * bytes, bytes);
        }
    }
}

static void copy_row(const rp_digest_pass *at, const rp_digest *row, void *out) {
    memcpy(out, row, at->n * sizeof *row);
}

static void digest_forward(digest_executor *e, const rp_pass *pass) {
    const rp_layout *layout = e->base.layout;
    const rp_digest_pass at = pass_of(e, pass);
    for (uint32_t i = 0; i < layout->input_count && pass->in_count > 0; i++) {
        const bool data = layout->tensor[i].producer == RP_LAYER_DATA;
        const size_t bytes = rp_shape_count(&layout->tensor[i].sample) * sizeof(float);
        rp_digest *row = row_of(&at, at.value, i);
        take_part(pass, i, data ? bytes : 0, row);
        for (uint32_t s = 0; data && s < at.n; s++) {
            row[s] = rp_digest_input(at.number + s, row[s]);
        }
    }
    rp_digest_run_forward(&at);
    for (uint32_t i = 0; i < layout->output_count && pass->in_count > 0; i++) {
        copy_row(&at, row_of(&at, at.value, layout->outputs[i]), pass->out[i]);
    }
}

/* Losses of the samples, into the results; their digests into the gradient of the output. */
static void run_loss(digest_executor *e, const rp_pass *pass, const rp_digest_pass *at) {
    const rp_job *job = e->base.job;
    const uint32_t last = e->base.layout->tensor_count - 1;
    const rp_digest *y = row_of(at, at->value, last);
    rp_digest *loss = row_of(at, at->grad, last);
    take_part(pass, 0, (job->loss->class_target ? 1 : job->target_width) * sizeof(float), loss);
    for (uint32_t s = 0; s < at->n && pass->in_count > 0; s++) {
        float *result = e->results + 2 * ((size_t)pass->op->samples.first + s);
        loss[s] = rp_digest_loss(y[s], loss[s], pass->step_samples);
        result[0] = rp_digest_number(loss[s]);
        result[1] = rp_digest_correct(loss[s]) ? 1.0f : 0.0f;
    }
}

static void digest_backward(digest_executor *e, const rp_pass *pass) {
    const rp_layout *layout = e->base.layout;
    const rp_digest_pass at = pass_of(e, pass);
    const rp_op_kind kind = pass->op->kind;
    if (kind == RP_OP_BACKWARD_WEIGHT) {
        rp_digest_run_backward(&at, false, true);
        return;
    }
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        memset(row_of(&at, at.grad, t), 0, at.n * sizeof *at.grad);
    }
    if (rp_job_is_last(e->base.job)) {
        run_loss(e, pass, &at);
    } else {
        const rp_boundary_tensors upper = rp_layout_boundary(layout, true, true);
        for (uint32_t i = 0; i < upper.count; i++) {
            take_part(pass, i, 0, row_of(&at, at.grad, upper.tensor[i]));
        }
    }
    rp_digest_run_backward(&at, true, kind == RP_OP_BACKWARD);
    const rp_boundary_tensors lower = rp_layout_boundary(layout, false, true);
    for (uint32_t i = 0; i < lower.count && pass->in_count > 0; i++) {
        copy_row(&at, row_of(&at, at.grad, lower.tensor[i]), pass->out[i]);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static rp_digest_optimise optimise_of(const digest_executor *e, const rp_optimise *by,
                                      uint32_t trained) {
    const uint32_t states = e->base.layout->state_count;
    rp_digest_optimise out = {
        .param = trained_at(e, trained),
        .weight = block_of(e, by->weights)[trained],
        .gradient = block_of(e, (rp_block){RP_BLOCK_GRADIENT, 0})[trained],
        .state_count = states,
        .rate = by->rate,
        .grad_scale = by->grad_scale,
        .applied = by->applied,
    };
    for (uint32_t s = 0; s < states; s++) {
        out.state[s] = block_of(e, (rp_block){RP_BLOCK_STATE, by->replica * states + s})[trained];
    }
    return out;
}

static void digest_update(digest_executor *e, const rp_optimise *by, uint32_t trained) {
    const uint32_t states = e->base.layout->state_count;
    rp_digest_optimise at = optimise_of(e, by, trained);
    rp_digest_update(&at);
    block_of(e, by->weights)[trained] = at.weight;
    for (uint32_t s = 0; s < states; s++) {
        block_of(e, (rp_block){RP_BLOCK_STATE, by->replica * states + s})[trained] = at.state[s];
    }
}

static void digest_predict(digest_executor *e, const rp_optimise *by, uint32_t trained) {
    const rp_digest_optimise at = optimise_of(e, by, trained);
    const float share = by->share ? by->share[trained] : 1.0f;
    block_of(e, by->to)[trained] = rp_digest_predict(&at, by->ahead, share);
}

static void digest_average(digest_executor *e, const rp_command *command, uint32_t trained) {
    const rp_layout *layout = e->base.layout;
    const rp_block centre = {RP_BLOCK_CENTRE, 0};
    const rp_block scratch = {RP_BLOCK_SCRATCH, 0};
    rp_digest_average(command->average.term, trained_at(e, trained),
                      &block_of(e, command->average.x)[trained],
                      layout->centres ? &block_of(e, centre)[trained] : NULL,
                      layout->scratches ? &block_of(e, scratch)[trained] : NULL,
                      command->average.alpha, command->average.share);
}

static void digest_probe(digest_executor *e, rp_block newest, uint32_t trained) {
    const uint32_t count = e->base.layout->trained_count;
    for (uint32_t i = 0; i < RP_PROBE_NORMS; i++) {
        e->probe_norms[i * count + trained] = rp_digest_probe(
            i, trained_at(e, trained), block_of(e, (rp_block){RP_BLOCK_PROBE, 0})[trained],
            block_of(e, (rp_block){RP_BLOCK_PROBE, 1})[trained], block_of(e, newest)[trained]);
    }
}

/* Commands on whole blocks: the same for each parameter. */
static void run_blocks(digest_executor *e, const rp_command *command, uint32_t trained) {
    switch (command->kind) {
    case RP_COMMAND_NORMS:
        command->read.out[trained] =
            rp_digest_number(block_of(e, (rp_block){RP_BLOCK_GRADIENT, 0})[trained]);
        return;
    case RP_COMMAND_COPY:
        block_of(e, command->move.to)[trained] = block_of(e, command->move.from)[trained];
        return;
    case RP_COMMAND_PROBE:
        digest_probe(e, command->move.from, trained);
        return;
    case RP_COMMAND_PREDICT:
        digest_predict(e, &command->optimise, trained);
        return;
    case RP_COMMAND_UPDATE:
        digest_update(e, &command->optimise, trained);
        return;
    case RP_COMMAND_AVERAGE:
        digest_average(e, command, trained);
        return;
    default:
        RP_ASSERT(false && "a command on blocks");
    }
}

/* ---- commands -------------------------------------------------------------------------------- */

static rp_err digest_issue(rp_executor *executor, const rp_command *command) {
    digest_executor *e = executor_of(executor);
    const rp_layout *layout = e->base.layout;
    rp_busy_spend(&e->busy, command);
    switch (command->kind) {
    case RP_COMMAND_INIT:
        digest_init(e);
        return RP_OK;
    case RP_COMMAND_FORWARD:
        digest_forward(e, &command->pass);
        return RP_OK;
    case RP_COMMAND_LOSS: {
        const rp_digest_pass at = pass_of(e, &command->pass);
        run_loss(e, &command->pass, &at);
        return RP_OK;
    }
    case RP_COMMAND_BACKWARD:
        digest_backward(e, &command->pass);
        return RP_OK;
    case RP_COMMAND_COMMIT:
        rp_digest_run_commit(
            &(rp_digest_pass){.job = e->base.job, .layout = layout, .running = e->running});
        return RP_OK;
    case RP_COMMAND_RESULTS:
        memcpy(command->read.out, e->results, 2 * command->read.count * sizeof *e->results);
        return RP_OK;
    case RP_COMMAND_PROBE_NORMS:
        memcpy(command->read.out, e->probe_norms,
               RP_PROBE_NORMS * layout->trained_count * sizeof *e->probe_norms);
        return RP_OK;
    default:
        for (uint32_t t = 0; t < layout->trained_count; t++) {
            run_blocks(e, command, t);
        }
        return RP_OK;
    }
}

static rp_err digest_mark(rp_executor *executor, rp_mark *out) {
    *out = rp_busy_mark(&executor_of(executor)->busy);
    return RP_OK;
}

static rp_err poll_mark(rp_executor *executor, const rp_mark *at, bool *done, int64_t *end_ns) {
    *done = rp_busy_passed(&executor_of(executor)->busy, at);
    *end_ns = at->end_ns;
    return RP_OK;
}

static void digest_release(rp_executor *executor, rp_mark *at) {
    (void)executor;
    *at = (rp_mark){0};
}

static rp_err digest_drain(rp_executor *executor) {
    (void)executor;
    return RP_OK;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef struct {
    char *at;
    size_t bytes;
} span;

enum { IN_FLIGHT_SPANS = 3 };

/* Versions and predictions lie side by side. */
static void find_in_flight(const digest_executor *e, span out[IN_FLIGHT_SPANS]) {
    const rp_layout *layout = e->base.layout;
    const size_t block = layout->trained_count * sizeof(rp_digest);
    const rp_block probes = {RP_BLOCK_PROBE, 0};
    out[0] = (span){(char *)e->blocks, (layout->versions + layout->predicted) * block};
    out[1] = (span){layout->probes ? (char *)block_of(e, probes) : NULL, layout->probes * block};
    out[2] = (span){(char *)e->slots, layout->slots * e->slot_digests * sizeof *e->slots};
}

static void move_in_flight(const digest_executor *e, size_t first, size_t count, const char *in,
                           char *out) {
    span spans[IN_FLIGHT_SPANS];
    size_t begin = 0;
    find_in_flight(e, spans);
    for (uint32_t i = 0; i < IN_FLIGHT_SPANS; i++) {
        const size_t from = first > begin ? first : begin;
        const size_t span_end = begin + spans[i].bytes;
        const size_t end = first + count < span_end ? first + count : span_end;
        if (from < end && in) {
            memcpy(spans[i].at + (from - begin), in + (from - first), end - from);
        } else if (from < end) {
            memcpy(out + (from - first), spans[i].at + (from - begin), end - from);
        }
        begin = span_end;
    }
}

static rp_digest *digest_at(const digest_executor *e, rp_block block, uint32_t param) {
    const uint32_t trained = e->base.layout->trained[param];
    return trained == RP_NOT_TRAINED ? &e->running[param] : &block_of(e, block)[trained];
}

static rp_err read_region(rp_executor *executor, const rp_region *region, size_t first,
                          size_t count, void *out) {
    const digest_executor *e = executor_of(executor);
    if (region->kind == RP_REGION_IN_FLIGHT) {
        move_in_flight(e, first, count, NULL, out);
        return RP_OK;
    }
    const rp_digest *digest = digest_at(e, region->block, region->param);
    memset(out, 0, count);
    if (first < sizeof *digest) {
        const size_t rest = sizeof *digest - first;
        memcpy(out, (const char *)digest + first, count < rest ? count : rest);
    }
    return RP_OK;
}

static rp_digest fold_chunk(const writing *w, size_t count) {
    const rp_digest parts[] = {w->hash, rp_digest_of_bytes(w->chunk, count)};
    return rp_digest_of_bytes(parts, sizeof parts);
}

static void write_byte(writing *w, char byte) {
    if (w->next < sizeof w->first) {
        ((char *)&w->first)[w->next] = byte;
    } else {
        w->plain |= byte != 0;
    }
    w->chunk[w->next++ % CHUNK_BYTES] = byte;
    if (w->next % CHUNK_BYTES == 0) {
        w->hash = fold_chunk(w, CHUNK_BYTES);
    }
}

static void digest_store(digest_executor *e, const rp_region *region, rp_digest digest) {
    const rp_layout *layout = e->base.layout;
    if (region->kind == RP_REGION_BLOCK || layout->trained[region->param] == RP_NOT_TRAINED) {
        *digest_at(e, region->block, region->param) = digest;
        return;
    }
    for (uint32_t v = 0; v < layout->versions; v++) {
        *digest_at(e, (rp_block){RP_BLOCK_WEIGHTS, v}, region->param) = digest;
    }
    if (layout->centres) {
        *digest_at(e, (rp_block){RP_BLOCK_CENTRE, 0}, region->param) = digest;
    }
}

static bool same_region(const rp_region *a, const rp_region *b) {
    return a->kind == b->kind && a->param == b->param && a->block.kind == b->block.kind &&
           a->block.index == b->block.index;
}

static rp_err write_region(rp_executor *executor, const rp_region *region, size_t first,
                           size_t count, const void *from) {
    digest_executor *e = executor_of(executor);
    writing *w = &e->writing;
    if (region->kind == RP_REGION_IN_FLIGHT) {
        move_in_flight(e, first, count, from, NULL);
        return RP_OK;
    }
    const rp_model_param *param = param_at(e, region->param);
    if (first == 0) {
        *w = (writing){.region = *region};
    }
    if (first != w->next || !same_region(&w->region, region)) {
        return rp_fail(RP_ERR_USAGE, "tensor %s: received byte %zu, expected byte %zu next",
                       param->name, first, same_region(&w->region, region) ? w->next : 0);
    }
    for (size_t i = 0; i < count; i++) {
        write_byte(w, ((const char *)from)[i]);
    }
    digest_store(e, region,
                 rp_digest_fit(w->plain ? fold_chunk(w, w->next % CHUNK_BYTES) : w->first, param));
    return RP_OK;
}

static rp_executor_facts digest_facts(const rp_executor *executor) {
    const digest_executor *e = (const digest_executor *)(const void *)executor;
    const rp_layout *layout = e->base.layout;
    span spans[IN_FLIGHT_SPANS];
    find_in_flight(e, spans);
    return (rp_executor_facts){
        .used_bytes = ((size_t)rp_block_total(layout) * layout->trained_count +
                       layout->slots * e->slot_digests) *
                      sizeof(rp_digest),
        .weight_copies = rp_layout_weight_copies(layout),
        .probe_copies = layout->probes,
        .in_flight_bytes = spans[0].bytes + spans[1].bytes + spans[2].bytes,
        .handle = -1,
    };
}

const rp_executor_kind rp_executor_digest = {
    .name = "digest",
    .prepare = digest_prepare,
    .destroy = digest_destroy,
    .issue = digest_issue,
    .mark = digest_mark,
    .poll = poll_mark,
    .release = digest_release,
    .read = read_region,
    .write = write_region,
    .drain = digest_drain,
    .facts = digest_facts,
};
