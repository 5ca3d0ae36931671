/* One loss call with its memory, for the tests of losses. */
#ifndef RP_TESTS_NN_LOSS_CASE_H
#define RP_TESTS_NN_LOSS_CASE_H

#include "golden.h"
#include "nn/loss.h"

/* y and dy lie between samples that nothing may touch. */
enum { LOSS_LEAD = 3, LOSS_TRAIL = 2, LOSS_GUARD = 0xA5 };

typedef struct {
    rp_arena arena;
    rp_darena *memory;
    uint32_t n, outputs, rows; /* rows: 1 at first; outputs: of all rows */
    rp_loss_options options;   /* 0 at first */
    const rp_loss_kind *kind;
    rp_tensor y, dy;
    rp_buffer *target, *result, *row_result;
    rp_buffer *overlap;     /* NULL at first: not counted */
    float *loss, *gradient; /* after loss_case_run(): [n][RP_LOSS_RESULT], and [n][outputs] */
} loss_case;

static inline void loss_case_take(loss_case *c, rp_tensor *out) {
    const size_t row = c->outputs * sizeof(float);
    rp_tensor whole = {.shape = rp_shape_2(LOSS_LEAD + c->n + LOSS_TRAIL, c->outputs)};
    unsigned char *guard;
    expect_ok(rp_darena_take(c->memory, rp_tensor_bytes(&whole), &whole.buffer));
    expect_ok(RP_ARENA_NEW(&c->arena, rp_tensor_bytes(&whole), &guard));
    memset(guard, LOSS_GUARD, rp_tensor_bytes(&whole));
    memset(guard + LOSS_LEAD * row, 0, c->n * row);
    expect_ok(
        rp_buffer_write_now(golden_device(), whole.buffer, 0, guard, rp_tensor_bytes(&whole)));
    expect_ok(rp_tensor_slice(&whole, LOSS_LEAD, c->n, out));
}

static inline void loss_case_expect_guard(loss_case *c, const rp_tensor *of) {
    const size_t row = c->outputs * sizeof(float);
    const size_t bytes = rp_buffer_bytes(of->buffer);
    unsigned char *all;
    expect_ok(RP_ARENA_NEW(&c->arena, bytes, &all));
    expect_ok(rp_buffer_read_now(golden_device(), all, of->buffer, 0, bytes));
    for (size_t i = 0; i < bytes; i++) {
        assert_true(all[i] == LOSS_GUARD || (i >= LOSS_LEAD * row && i < (LOSS_LEAD + c->n) * row));
    }
}

static inline void loss_case_open_rows(loss_case *c, const char *kind, uint32_t n, uint32_t rows,
                                       uint32_t outputs, const rp_loss_options *options) {
    *c = (loss_case){.n = n,
                     .rows = rows,
                     .outputs = rows * outputs,
                     .options = *options,
                     .kind = rp_loss_find(kind)};
    assert_non_null(c->kind);
    rp_arena_init(&c->arena, "loss", 0);
    const size_t targets =
        (size_t)n * (c->kind->class_target ? rows + options->ignores : c->outputs);
    expect_ok(rp_darena_open(&c->arena, golden_device(), "loss", 0, 0, &c->memory));
    loss_case_take(c, &c->y);
    loss_case_take(c, &c->dy);
    expect_ok(rp_darena_take(c->memory, targets * sizeof(float), &c->target));
    expect_ok(rp_darena_take(c->memory, RP_LOSS_RESULT * n * sizeof(float), &c->result));
    expect_ok(rp_darena_take(c->memory, RP_LOSS_RESULT * n * rows * sizeof(float), &c->row_result));
    expect_ok(RP_ARENA_NEW(&c->arena, RP_LOSS_RESULT * (size_t)n, &c->loss));
    expect_ok(RP_ARENA_NEW(&c->arena, (size_t)n * c->outputs, &c->gradient));
}

static inline void loss_case_open(loss_case *c, const char *kind, uint32_t n, uint32_t outputs) {
    loss_case_open_rows(c, kind, n, 1, outputs, &(rp_loss_options){0});
}

static inline void loss_case_close(loss_case *c) {
    loss_case_expect_guard(c, &c->y);
    loss_case_expect_guard(c, &c->dy);
    rp_darena_close(&c->memory);
    rp_arena_finish(&c->arena);
}

/* y [n][outputs]; target n int32 or [n][outputs] float. */
static inline void loss_case_fill(loss_case *c, const float *y, const void *target) {
    expect_ok(rp_tensor_write(golden_device(), &c->y, y));
    expect_ok(
        rp_buffer_write_now(golden_device(), c->target, 0, target, rp_buffer_bytes(c->target)));
}

/* All n samples as one microbatch of a step that has `step_samples`. */
static inline void loss_case_run(loss_case *c, uint32_t step_samples, bool with_gradient) {
    rp_device *device = golden_device();
    const rp_loss_call call = {.device = device,
                               .n = c->n,
                               .step_samples = step_samples,
                               .rows = c->rows,
                               .options = c->options,
                               .y = &c->y,
                               .target = c->target,
                               .dy = with_gradient ? &c->dy : NULL,
                               .result = c->result,
                               .row_result = c->row_result,
                               .overlap = c->overlap};
    expect_ok(rp_loss_run(c->kind, &call));
    expect_ok(rp_tensor_read(device, c->gradient, &c->dy));
    expect_ok(
        rp_buffer_read_now(device, c->loss, c->result, 0, RP_LOSS_RESULT * c->n * sizeof(float)));
}

/* The tensor <case>/<what> of the golden file. */
static inline const float *loss_case_golden(const rp_st_reader *reader, const char *name,
                                            const char *what) {
    char full[RP_ST_NAME_MAX];
    snprintf(full, sizeof full, "%s/%s", name, what);
    const rp_st_entry *entry = rp_st_find(reader, full);
    assert_non_null(entry);
    return rp_st_data(reader, entry);
}

/* Opens each case of the loss in tests/golden/<stem>.safetensors in turn with y and the targets
 * filled. */
static inline void loss_case_each(const char *stem, const char *kind,
                                  void (*run)(loss_case *c, const rp_st_reader *reader,
                                              const char *name)) {
    rp_arena arena;
    rp_arena_init(&arena, "golden", 0);
    rp_st_reader *reader = golden_file(&arena, stem);
    char *names;
    char *rest;
    uint32_t count = 0;
    expect_ok(rp_arena_string(&arena, rp_st_meta(reader, "cases"), &names));
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        if (strncmp(name, kind, strlen(kind)) != 0) {
            continue;
        }
        const char *text = rp_st_meta(reader, name);
        rp_node *facts;
        uint32_t n = 0;
        uint32_t outputs = 0;
        expect_ok(rp_config_read_text(&arena, text, strlen(text), name, &facts));
        expect_ok(rp_node_u32(facts, "n", 1, 4096, &n));
        expect_ok(rp_node_u32(facts, "outputs", 1, 4096, &outputs));
        loss_case c;
        loss_case_open(&c, kind, n, outputs);
        expect_ok(rp_node_f32(facts, "label_smoothing", 0, 1, &c.options.label_smoothing));
        const float *target = loss_case_golden(reader, name, "target");
        int32_t class_of[4096];
        for (uint32_t i = 0; c.kind->class_target && i < n; i++) {
            class_of[i] = (int32_t)target[i];
        }
        loss_case_fill(&c, loss_case_golden(reader, name, "y"),
                       c.kind->class_target ? (const void *)class_of : target);
        run(&c, reader, name);
        loss_case_close(&c);
        count++;
    }
    assert_true(count > 0);
    rp_st_close(&reader);
    rp_arena_finish(&arena);
}

/* Value and gradient against PyTorch; without gradient dy is not touched; a larger step scales. */
static inline void loss_case_compare(loss_case *c, const rp_st_reader *reader, const char *name) {
    const size_t count = (size_t)c->n * c->outputs;
    const float *loss = loss_case_golden(reader, name, "loss");
    const float *dy = loss_case_golden(reader, name, "dy");
    loss_case_run(c, c->n, false);
    for (size_t i = 0; i < count; i++) {
        expect_close(c->gradient[i], 0, 0, 0);
    }
    loss_case_run(c, c->n, true);
    for (uint32_t i = 0; i < c->n; i++) {
        expect_close(c->loss[RP_LOSS_RESULT * i], loss[i], 1e-5, 1e-6);
    }
    expect_close_all(c->gradient, dy, count, 1e-5, 1e-7);
    loss_case_run(c, 4 * c->n, true);
    for (size_t i = 0; i < count; i++) {
        expect_close(c->gradient[i], 0.25 * (double)dy[i], 1e-5, 1e-7);
    }
}

/* Central differences of sum(loss) over the whole gradient. */
static inline void loss_case_differences(const char *kind, const void *target, float smoothing) {
    enum { N = 3, OUTPUTS = 11 };
    const float h = 1e-2f;
    float y[N * OUTPUTS];
    loss_case c;
    loss_case_open(&c, kind, N, OUTPUTS);
    c.options.label_smoothing = smoothing;
    golden_values("y", N * OUTPUTS, y);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, 1, true);
    float gradient[N * OUTPUTS];
    memcpy(gradient, c.gradient, sizeof gradient);
    for (size_t i = 0; i < N * OUTPUTS; i++) {
        const float at = y[i];
        double loss[2];
        for (int side = 0; side < 2; side++) {
            y[i] = side ? at + h : at - h;
            loss_case_fill(&c, y, target);
            loss_case_run(&c, 1, false);
            loss[side] = 0;
            for (size_t s = 0; s < N; s++) {
                loss[side] += (double)c.loss[RP_LOSS_RESULT * s];
            }
        }
        y[i] = at;
        expect_close((loss[1] - loss[0]) / (2 * (double)h), gradient[i], 0, 2e-4);
    }
    loss_case_close(&c);
}

#endif
