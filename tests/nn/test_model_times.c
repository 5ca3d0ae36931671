/* Samples of fewer tokens than planned: shapes of a model, layers that are refused, and kernels on
 * ragged n x ragged t, which give what the longest samples give and touch nothing outside. */
#include "golden.h"

#include <math.h>

#include "nn/model.h"

/* ---- models ---------------------------------------------------------------------------------- */

static rp_arena arena;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test times", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static rp_model *parse_model(const char *text) {
    const rp_model_data about = {.classes = 3, .tokens = 9, .type = RP_I32};
    rp_model *model;
    rp_node *root;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "m.yaml", &root));
    expect_ok(rp_model_parse(&arena, root, &about, &model));
    return model;
}

static void expect_shape(const rp_model_view *view, const rp_model *model, const char *layer,
                         rp_shape want) {
    const uint32_t index = rp_model_find(model, layer);
    assert_true(index < model->layer_count);
    assert_true(rp_shape_equal(rp_model_view_shape(view, index), &want));
}

static const char one_text[] =
    "input: {shape: [12], type: i32}\nlayers:\n"
    "  - {name: words, kind: embedding, count: tokens, out: 10, padding: 0}\n"
    "  - {name: places, kind: position, length: 16}\n"
    "  - {name: class, kind: prepend}\n"
    "  - {name: fc, kind: linear, out: 6}\n"
    "  - {name: pooled, kind: seqpool, from: [places, data], padding: 0}\n"
    "  - {name: first, kind: slice, from: fc, end: 1}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: both, kind: concat, from: [flat, pooled]}\n"
    "  - {name: out, kind: dense, out: 3}\n";

static void shapes_follow_the_length(void **state) {
    (void)state;
    rp_model *model = parse_model(one_text);
    assert_int_equal(rp_model_time(model), 12);
    assert_true(rp_model_has_time(model, 0));
    assert_false(rp_model_has_time(model, 5));
    expect_ok(rp_model_add_times(&arena, model, (const uint32_t[]){1, 5}, 2));
    assert_true(rp_model_has_time(model, 1) && rp_model_has_time(model, 5));
    assert_false(rp_model_has_time(model, 12)); /* that is 0 */
    rp_model_view view = rp_model_view_at(model, 5);
    assert_int_equal(rp_model_view_shape(&view, RP_LAYER_DATA)->dim[0], 5);
    expect_shape(&view, model, "words", rp_shape_2(5, 10));
    expect_shape(&view, model, "fc", rp_shape_2(6, 6));
    expect_shape(&view, model, "pooled", rp_shape_1(10));
    expect_shape(&view, model, "first", rp_shape_2(1, 6));
    expect_shape(&view, model, "out", rp_shape_1(3));
    view = rp_model_view_at(model, 0);
    expect_shape(&view, model, "words", rp_shape_2(12, 10));
    assert_ptr_equal(view.plan, model->plan);
}

static void several_inputs_have_one_length(void **state) {
    (void)state;
    rp_model *model = parse_model("input:\n"
                                  "  source: {shape: [6], type: i32}\n"
                                  "  target: {shape: [6], type: i32}\nlayers:\n"
                                  "  - {name: a, kind: embedding, from: source, count: 9, out: 4}\n"
                                  "  - {name: b, kind: embedding, from: target, count: 9, out: 4}\n"
                                  "  - {name: look, kind: attention, from: [b, a, a], heads: 2}\n"
                                  "  - {name: out, kind: linear, out: 9}\n");
    assert_int_equal(rp_model_time(model), 6);
    expect_ok(rp_model_add_times(&arena, model, (const uint32_t[]){2, 4}, 2));
    const rp_model_view view = rp_model_view_at(model, 4);
    assert_int_equal(view.input.dim[0], 8);
    expect_shape(&view, model, "source", rp_shape_1(4));
    expect_shape(&view, model, "target", rp_shape_1(4));
    assert_int_equal(view.plan[1].ids_first, 4);
    expect_shape(&view, model, "out", rp_shape_2(4, 9));
}

static void expect_refused(const char *layers, const char *layer, const char *why) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "input: {shape: [12], type: i32}\nlayers:\n"
                   "  - {name: words, kind: embedding, count: tokens, out: 8}\n%s",
                   layers);
    rp_model *model = parse_model(text);
    expect_err(rp_model_add_times(&arena, model, (const uint32_t[]){5}, 1), RP_ERR_SHAPE);
    if (!strstr(rp_err_message(), layer) || !strstr(rp_err_message(), why)) {
        fail_msg("'%s' and '%s' are not in '%s'", layer, why, rp_err_message());
    }
    assert_int_equal(model->view_count, 0);
}

static void layers_of_one_length_are_refused(void **state) {
    (void)state;
    expect_refused("  - {name: fc, kind: dense, out: 3}\n", "layer 'fc'",
                   "the weight of dense is [3, 96] for the longest samples, but [3, 40] for 5");
    expect_refused("  - {name: norm, kind: layernorm}\n", "layer 'norm'", "[12, 8]");
    expect_refused("  - {name: bn, kind: batchnorm}\n", "layer 'bn'", "batchnorm");
    expect_refused("  - {name: end, kind: slice, start: 11}\n", "layer 'end'", "not within axis 0");
    const char *const images[] = {
        "input: [3, 8, 8]\nlayers:\n  - {name: fc, kind: dense, out: 3}\n",
        "input:\n  a: {shape: [4], type: i32}\n  b: {shape: [6], type: i32}\nlayers:\n"
        "  - {name: x, kind: embedding, from: a, count: 9, out: 4}\n"
        "  - {name: y, kind: embedding, from: b, count: 9, out: 4}\n"
        "  - {name: z, kind: concat, from: [x, y]}\n"
        "  - {name: fc, kind: dense, out: 3}\n"};
    for (size_t i = 0; i < 2; i++) {
        rp_model *model = parse_model(images[i]);
        assert_int_equal(rp_model_time(model), 0);
        expect_err(rp_model_add_times(&arena, model, (const uint32_t[]){2}, 1), RP_ERR_SHAPE);
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

enum { IDS = 0, INPUTS_MAX = 4, PADDING = 0 };

typedef struct {
    const char *keys;
    uint32_t input_count;
    uint32_t columns[INPUTS_MAX]; /* IDS: token ids */
    bool pools;                   /* y is no sequence */
} layer_case;

static const layer_case cases[] = {
    {"{kind: embedding, count: tokens, out: 7, padding: 0}", 1, {IDS}, false},
    {"{kind: position, length: 40}", 1, {7}, false},
    {"{kind: sinusoid}", 1, {8}, false},
    {"{kind: linear, out: 9}", 1, {7}, false},
    {"{kind: linear, out: 9, lora: {rank: 2, dropout: 0.4}}", 1, {7}, false},
    {"{kind: layernorm, dims: 1}", 1, {17}, false},
    {"{kind: rmsnorm}", 1, {17}, false},
    {"{kind: dropout, p: 0.4}", 1, {7}, false},
    {"{kind: dropout, p: 0.4}", 1, {64}, false},
    {"{kind: gelu}", 1, {7}, false},
    {"{kind: add}", 2, {7, 7}, false},
    {"{kind: concat, axis: 1}", 2, {7, 3}, false},
    {"{kind: swiglu}", 2, {7, 7}, false},
    {"{kind: attention, heads: 2, causal: true, dropout: 0.3, rotary: {}}", 1, {24}, false},
    {"{kind: attention, heads: 2, padding: 0, dropout: 0.3}", 4, {8, 8, 8, IDS}, false},
    {"{kind: additive, normalise: true, padding: 0}", 4, {8, 8, 5, IDS}, false},
    {"{kind: lstm, hidden: 5}", 1, {7}, false},
    {"{kind: lstm, hidden: 5, bidirectional: true, lengths: true}", 2, {7, IDS}, false},
    {"{kind: gru, hidden: 5, reverse: true, lengths: true}", 2, {7, IDS}, false},
    {"{kind: lstm, hidden: 5, output: last, lengths: true}", 2, {7, IDS}, true},
    {"{kind: seqpool, padding: 0}", 2, {7, IDS}, true},
    {"{kind: seqpool, mode: max, padding: 0}", 2, {7, IDS}, true},
    {"{kind: seqpool, mode: last, padding: 0}", 2, {7, IDS}, true},
};

static rp_shape shape_of(uint32_t columns, uint32_t steps) {
    return columns == IDS ? rp_shape_1(steps) : rp_shape_2(steps, columns);
}

/* The first `steps` rows of each sample, of which there are `all`; further ones of `all` are 0. */
static float *cut_rows(layer_rig *rig, const float *from, uint32_t n, uint32_t all, uint32_t steps,
                       uint32_t columns, bool keeps) {
    const uint32_t rows = keeps ? all : steps;
    float *out;
    expect_ok(RP_ARENA_NEW(&rig->arena, (size_t)n * rows * columns, &out));
    for (uint32_t s = 0; s < n; s++) {
        memcpy(out + (size_t)s * rows * columns, from + (size_t)s * all * columns,
               (size_t)steps * columns * sizeof *out);
    }
    return out;
}

/* Sample s has `steps` - s tokens, at least one. */
static void write_ids(layer_rig *rig, rp_tensor *to, uint32_t n, uint32_t all, uint32_t steps) {
    int32_t *ids;
    expect_ok(RP_ARENA_NEW(&rig->arena, (size_t)n * all, &ids));
    for (uint32_t i = 0; i < n * all; i++) {
        const uint32_t s = i / all;
        const uint32_t t = i % all;
        ids[i] = t + (s < steps ? s : steps - 1) < steps ? 1 + (int32_t)((s + t) % 8) : PADDING;
    }
    rig_write(rig, to, (const float *)(const void *)ids);
}

/* A rig for samples of `all` steps, of which only the first `steps` matter, or of `steps`. */
static void open_case(layer_rig *rig, const layer_case *c, uint32_t n, uint32_t all, uint32_t steps,
                      bool cut, const rp_shape *longest) {
    static float drawn[1 << 16];
    const uint32_t rows = cut ? steps : all;
    rp_shape in[INPUTS_MAX];
    char stream[8];
    for (uint32_t i = 0; i < c->input_count; i++) {
        in[i] = shape_of(c->columns[i], rows);
    }
    (cut ? rig_open_inside : rig_open)(rig, "layer", c->keys, n, in, c->input_count);
    rig->call.seed = 7;
    rig->call.sample_first = 1001;
    rig->call.longest_in = longest;
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (c->columns[i] == IDS) {
            write_ids(rig, &rig->x[i], n, rows, steps);
            continue;
        }
        (void)snprintf(stream, sizeof stream, "x%u", i);
        golden_values(stream, (size_t)n * all * c->columns[i], drawn);
        rig_write(rig, &rig->x[i], cut_rows(rig, drawn, n, all, steps, c->columns[i], !cut));
    }
    const uint32_t out = rig->plan.out.dim[rig->plan.out.dims - 1];
    golden_values("dy", (size_t)n * all * out, drawn);
    rig_write(rig, &rig->dy, c->pools ? drawn : cut_rows(rig, drawn, n, all, steps, out, !cut));
    for (uint32_t p = 0; p < rig->plan.param_count; p++) {
        rig_draw(rig, &rig->param[p], rig->plan.param[p].suffix);
    }
}

/* got: [n][steps][columns]; want: the first rows of [n][all][columns]. */
static void compare_rows(const float *got, const float *want, uint32_t n, uint32_t all,
                         uint32_t steps, uint32_t columns, const char *what, const char *keys) {
    for (uint32_t i = 0; i < n * steps * columns; i++) {
        const uint32_t s = i / (steps * columns);
        const float to = want[(size_t)s * all * columns + i % (steps * columns)];
        if (!(fabsf(got[i] - to) <= 2e-5f * (1 + fabsf(to)))) {
            fail_msg("%s: %s[%u] is %g, expected %g", keys, what, i, (double)got[i], (double)to);
        }
    }
}

static void compare_case(const layer_case *c, uint32_t n, uint32_t all, uint32_t steps) {
    layer_rig whole;
    layer_rig cut;
    rp_shape longest[INPUTS_MAX];
    for (uint32_t i = 0; i < c->input_count; i++) {
        longest[i] = shape_of(c->columns[i], all);
    }
    open_case(&whole, c, n, all, steps, false, NULL);
    open_case(&cut, c, n, all, steps, true, longest);
    layer_rig *const rigs[] = {&whole, &cut};
    for (int r = 0; r < 2; r++) {
        expect_ok(rp_layer_forward(&rigs[r]->call));
        expect_ok(rp_layer_backward(&rigs[r]->call));
    }
    const uint32_t out = cut.plan.out.dim[cut.plan.out.dims - 1];
    compare_rows(rig_read(&cut, &cut.y), rig_read(&whole, &whole.y), n, c->pools ? 1 : all,
                 c->pools ? 1 : steps, out, "y", c->keys);
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (c->columns[i] != IDS) {
            compare_rows(rig_read(&cut, &cut.dx[i]), rig_read(&whole, &whole.dx[i]), n, all, steps,
                         c->columns[i], "dx", c->keys);
        }
    }
    for (uint32_t p = 0; p < cut.plan.param_count; p++) {
        const uint32_t count = (uint32_t)rp_shape_count(&cut.plan.param[p].shape);
        if (cut.plan.param[p].role == RP_PARAM_TRAINED) {
            compare_rows(rig_read(&cut, &cut.dparam[p]), rig_read(&whole, &whole.dparam[p]), 1, 1,
                         1, count, cut.plan.param[p].suffix, c->keys);
        }
    }
    rig_expect_guards(&cut);
    rig_close(&cut);
    rig_close(&whole);
}

static void shorter_samples_give_the_same(void **state) {
    (void)state;
    const struct {
        uint32_t n, all, steps;
    } sizes[] = {{1, 35, 33}, {3, 35, 9}, {5, 13, 12}, {7, 5, 1}};
    const size_t size_count = expect_small() ? 1 : sizeof sizes / sizeof *sizes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t k = 0; k < size_count; k++) {
            compare_case(&cases[i], sizes[k].n, sizes[k].all, sizes[k].steps);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shapes_follow_the_length, setup, teardown),
        cmocka_unit_test_setup_teardown(several_inputs_have_one_length, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_of_one_length_are_refused, setup, teardown),
        cmocka_unit_test(shorter_samples_give_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
