/* One flat parameter block with its optimiser, and golden cases through it. */
#ifndef RP_TESTS_OPTIM_CASE_H
#define RP_TESTS_OPTIM_CASE_H

#include "nn/golden.h"

#include "optim/optim.h"

typedef struct {
    rp_arena arena;
    rp_darena *memory;
    rp_optim optim;
    rp_buffer *g, *out;
    rp_optim_call call;
} optim_case;

/* Reads `optimizer:` from a YAML map. */
static inline rp_err optim_case_parse(rp_arena *arena, const char *text, rp_optim *optim) {
    rp_node *node;
    rp_err err = rp_config_read_text(arena, text, strlen(text), "run.yaml", &node);
    return err == RP_OK ? rp_optim_parse(optim, node) : err;
}

/* Numbers of states, of a stage that predicts and of one that does not. */
typedef struct {
    const char *text;
    uint32_t predicting, otherwise;
} optim_states;

static inline void optim_case_states(const optim_states *cases, size_t count) {
    rp_arena arena;
    rp_arena_init(&arena, "states", 0);
    for (size_t i = 0; i < count; i++) {
        rp_optim optim;
        expect_ok(optim_case_parse(&arena, cases[i].text, &optim));
        assert_int_equal(optim.kind->state_count(&optim), cases[i].predicting);
        optim.predicts = false;
        assert_int_equal(optim.kind->state_count(&optim), cases[i].otherwise);
    }
    rp_arena_finish(&arena);
}

static inline void optim_case_write(rp_buffer *to, const float *from, size_t count) {
    expect_ok(rp_buffer_write_now(golden_device(), to, 0, from, count * sizeof(float)));
}

static inline void optim_case_read(const rp_buffer *from, float *to, size_t count) {
    expect_ok(rp_buffer_read_now(golden_device(), to, from, 0, count * sizeof(float)));
}

/* A block of `count` floats, all zero. */
static inline void optim_case_open(optim_case *c, const rp_optim *optim, uint32_t count) {
    *c = (optim_case){.optim = *optim};
    rp_arena_init(&c->arena, "optim", 0);
    expect_ok(rp_darena_open(&c->arena, golden_device(), "optim", 0, 0, &c->memory));
    c->call = (rp_optim_call){.device = golden_device(),
                              .optim = &c->optim,
                              .count = count,
                              .lr = (float)optim->lr,
                              .grad_scale = 1.0f};
    const size_t bytes = count * sizeof(float);
    expect_ok(rp_darena_take(c->memory, bytes, &c->call.w));
    expect_ok(rp_darena_take(c->memory, bytes, &c->g));
    expect_ok(rp_darena_take(c->memory, bytes, &c->out));
    c->call.g = c->g;
    for (uint32_t i = 0; i < optim->kind->state_count(optim); i++) {
        expect_ok(rp_darena_take(c->memory, bytes, &c->call.state[i]));
    }
}

static inline void optim_case_close(optim_case *c) {
    rp_darena_close(&c->memory);
    rp_arena_finish(&c->arena);
}

static inline void optim_case_step(optim_case *c, const float *g) {
    optim_case_write(c->g, g, c->call.count);
    expect_ok(c->optim.kind->step(&c->call));
    c->call.t++;
}

typedef struct {
    const rp_st_reader *reader;
    const char *name;
    uint32_t count, steps;
    const char *optimizer; /* YAML */
} optim_golden;

/* got == the file's <case>/<what>; without such a tensor nothing when `may_lack`. */
static inline void optim_golden_compare(const optim_golden *golden, const rp_buffer *got,
                                        const char *what, bool may_lack) {
    char name[RP_ST_NAME_MAX];
    float values[128];
    snprintf(name, sizeof name, "%s/%s", golden->name, what);
    const rp_st_entry *entry = rp_st_find(golden->reader, name);
    if (!entry) {
        assert_true(may_lack);
        return;
    }
    const float *want = rp_st_data(golden->reader, entry);
    optim_case_read(got, values, golden->count);
    for (uint32_t i = 0; i < golden->count; i++) {
        expect_close_at((double)values[i], (double)want[i], 2e-5, 2e-6, name, i, __FILE__,
                        __LINE__);
    }
}

/* Weights and states follow PyTorch for 10 steps; gradients arrive scaled by 4 and grad_scale
 * undoes it. Then predict: w - lr * s * what was applied last; before the first step and for s = 0,
 * w. */
static inline void optim_golden_run(const optim_golden *golden) {
    enum { BLOCK = 128 };
    const float ahead = 3.0f;
    char stream[RP_ST_NAME_MAX];
    float w[BLOCK];
    float values[BLOCK];
    rp_optim optim;
    optim_case c;
    rp_arena arena;
    rp_arena_init(&arena, "parse", 0);
    expect_ok(optim_case_parse(&arena, golden->optimizer, &optim));
    rp_arena_finish(&arena);
    optim_case_open(&c, &optim, golden->count);
    snprintf(stream, sizeof stream, "%s/w", golden->name);
    golden_values(stream, golden->count, w);
    optim_case_write(c.call.w, w, golden->count);
    expect_ok(optim.kind->predict(&c.call, c.out, ahead));
    optim_case_read(c.out, values, golden->count);
    assert_memory_equal(values, w, golden->count * sizeof(float));
    c.call.grad_scale = 0.25f;
    for (uint32_t t = 0; t < golden->steps; t++) {
        snprintf(stream, sizeof stream, "%s/g%u", golden->name, t);
        golden_values(stream, golden->count, values);
        for (uint32_t i = 0; i < golden->count; i++) {
            values[i] *= 4.0f;
        }
        c.call.lr = (float)(optim.lr * (1.0 + t / 10.0));
        optim_case_step(&c, values);
        char what[16];
        snprintf(what, sizeof what, "w%u", t + 1);
        optim_golden_compare(golden, c.call.w, what, t > 1 && t + 1 < golden->steps);
    }
    for (uint32_t i = 0; i < optim.kind->state_count(&optim); i++) {
        optim_golden_compare(golden, c.call.state[i], optim.kind->state_names[i], true);
    }
    optim_case_read(c.call.w, w, golden->count);
    expect_ok(optim.kind->predict(&c.call, c.out, 0.0f));
    optim_case_read(c.out, values, golden->count);
    assert_memory_equal(values, w, golden->count * sizeof(float));
    expect_ok(optim.kind->predict(&c.call, c.out, ahead));
    optim_case_read(c.out, values, golden->count);
    snprintf(stream, sizeof stream, "%s/moved", golden->name);
    const float *moved = rp_st_data(golden->reader, rp_st_find(golden->reader, stream));
    for (uint32_t i = 0; i < golden->count; i++) {
        const double want = (double)w[i] - (double)c.call.lr * (double)ahead * (double)moved[i];
        expect_close_at((double)values[i], want, 2e-5, 2e-6, stream, i, __FILE__, __LINE__);
    }
    optim_case_close(&c);
}

/* Every golden case of this kind. */
static inline void optim_golden_each(const char *kind) {
    rp_arena arena;
    uint32_t ran = 0;
    char *names;
    char *rest;
    rp_arena_init(&arena, "golden", 0);
    rp_st_reader *reader = golden_file(&arena, "optim");
    expect_ok(rp_arena_string(&arena, rp_st_meta(reader, "cases"), &names));
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        const char *text = rp_st_meta(reader, name);
        const char *of;
        char *keys;
        rp_node *facts;
        optim_golden golden = {.reader = reader, .name = name};
        expect_ok(rp_config_read_text(&arena, text, strlen(text), name, &facts));
        rp_node *optimizer = rp_node_find(facts, "optimizer");
        expect_ok(rp_node_string(optimizer, "kind", &of));
        if (strcmp(of, kind) != 0) {
            continue;
        }
        expect_ok(rp_node_u32(facts, "count", 1, 128, &golden.count));
        expect_ok(rp_node_u32(facts, "steps", 1, 100, &golden.steps));
        expect_ok(rp_config_text(&arena, optimizer, &keys));
        golden.optimizer = keys;
        optim_golden_run(&golden);
        ran++;
    }
    assert_true(ran > 0);
    rp_st_close(&reader);
    rp_arena_finish(&arena);
}

/* The text is refused as USAGE and the message contains `part`. */
static inline void optim_case_refused(const char *text, const char *part) {
    rp_arena arena;
    rp_optim optim;
    rp_arena_init(&arena, "refused", 0);
    expect_err(optim_case_parse(&arena, text, &optim), RP_ERR_USAGE);
    if (!strstr(rp_err_message(), part)) {
        print_error("'%s' does not contain '%s'\n", rp_err_message(), part);
        fail();
    }
    rp_arena_finish(&arena);
}

#endif
