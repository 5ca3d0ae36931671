/* Every kind of layer, with its keys, in every opset. */
#include "exported.h"

#include "export/layer.h"

static const rp_model_data nothing = {0};

/* Layers of all families with keys that are not the usual ones. */
static const char *const nets[] = {
    /* images */
    "input: [4, 12, 12]\n"
    "layers:\n"
    "  - {name: conv, kind: conv2d, out: 8, kernel: [3, 1], stride: [1, 2], pad: [1, 0], "
    "dilation: [2, 1], groups: 2}\n"
    "  - {name: norm, kind: batchnorm, eps: 1e-3, momentum: 0.2, deferred: true}\n"
    "  - {name: six, kind: relu6}\n"
    "  - {name: up, kind: upsample, scale: 3, mode: bilinear, align_corners: true}\n"
    "  - {name: near, kind: upsample, scale: [1, 2]}\n"
    "  - {name: back, kind: convtranspose2d, out: 6, kernel: 3, stride: 2, pad: 1, output_pad: 1, "
    "groups: 2, bias: false}\n"
    "  - {name: max, kind: maxpool, kernel: 3, stride: 2, ceil_mode: true}\n"
    "  - {name: mean, kind: avgpool, kernel: [2, 3], stride: 2, pad: 1, count_include_pad: false}\n"
    "  - {name: over, kind: avgpool, kernel: 3, stride: 2, ceil_mode: true}\n"
    "  - {name: slopes, kind: prelu}\n"
    "  - {name: groups, kind: groupnorm, groups: 3, eps: 1e-4}\n"
    "  - {name: scale, kind: scale, init: 0.5}\n"
    "  - {name: bins, kind: adaptiveavgpool, out: [5, 4]}\n"
    "  - {name: path, kind: droppath, p: 0.2}\n"
    "  - {name: all, kind: globalavgpool}\n"
    "  - {name: gate, kind: mul, from: [path, all]}\n"
    "  - {name: norms, kind: layernorm}\n"
    "  - {name: fc, kind: dense, out: 3, bias: false}\n",
    /* activations */
    "input: [6, 8]\n"
    "layers:\n"
    "  - {name: a, kind: gelu}\n"
    "  - {name: b, kind: gelu, approximate: tanh}\n"
    "  - {name: c, kind: silu}\n"
    "  - {name: d, kind: mish}\n"
    "  - {name: e, kind: softplus}\n"
    "  - {name: f, kind: elu, alpha: 0.7}\n"
    "  - {name: g, kind: leaky_relu, slope: 0.2}\n"
    "  - {name: h, kind: hardswish}\n"
    "  - {name: i, kind: hardsigmoid}\n"
    "  - {name: j, kind: tanh}\n"
    "  - {name: k, kind: sigmoid}\n"
    "  - {name: l, kind: relu}\n"
    "  - {name: m, kind: prelu, shared: true}\n"
    "  - {name: n, kind: swiglu, from: [m, l]}\n"
    "  - {name: o, kind: glu}\n"
    "  - {name: p, kind: dropout, p: 0.1}\n"
    "  - {name: q, kind: concat, from: [p, o, p], axis: 1}\n"
    "  - {name: r, kind: slice, axis: 1, start: 3, end: 9}\n"
    "  - {name: s, kind: add, from: [r, r, r]}\n"
    "  - {name: t, kind: flatten}\n",
    /* tokens */
    "input: {shape: [7], type: i32}\n"
    "layers:\n"
    "  - {name: embed, kind: embedding, count: 20, out: 8, padding: 0, std: 0.1}\n"
    "  - {name: place, kind: position, length: 9}\n"
    "  - {name: waves, kind: sinusoid}\n"
    "  - {name: both, kind: lstm, from: [waves, data], hidden: 4, bidirectional: true, lengths: "
    "true}\n"
    "  - {name: back, kind: gru, hidden: 8, reverse: true}\n"
    "  - {name: norm, kind: rmsnorm, eps: 1e-5}\n"
    "  - {name: qkv, kind: linear, out: 16, layout: in-out, lora: {rank: 2, alpha: 3, dropout: "
    "0.1}}\n"
    "  - {name: heads, kind: attention, from: [qkv, data], heads: 4, kv_heads: 2, causal: true, "
    "scale: 0.3, dropout: 0.1, padding: 0, rotary: {base: 100, interleaved: true}}\n"
    "  - {name: turned, kind: attention, from: [heads, heads, heads], heads: 2, rotary: {}}\n"
    "  - {name: add, kind: additive, from: [turned, heads, heads, data], normalise: true, padding: "
    "0}\n"
    "  - {name: last, kind: gru, hidden: 5, output: last}\n"
    "  - {name: mean, kind: seqpool, from: [add, data], padding: 0}\n"
    "  - {name: max, kind: seqpool, from: [add, data], mode: max, padding: 0}\n"
    "  - {name: end, kind: seqpool, from: [add, data], mode: last, padding: 0}\n"
    "  - {name: one, kind: seqpool, from: [add, data], mode: first, padding: 0}\n"
    "  - {name: tip, kind: seqpool, from: add, mode: last}\n"
    "  - {name: top, kind: seqpool, from: add, mode: max}\n"
    "  - {name: cat, kind: concat, from: [mean, max, end, one, tip, top, last]}\n"
    "  - {name: fc, kind: linear, out: 3}\n",
    /* an image as a sequence, and two inputs */
    "input: [3, 4, 4]\n"
    "layers:\n"
    "  - {name: rows, kind: sequence}\n"
    "  - {name: class, kind: prepend, names: {weight: {name: class_token, dims: 3}}}\n"
    "  - {name: pool, kind: seqpool, mode: first}\n",
    "input: {source: {shape: [5], type: i32}, target: {shape: [7], type: i32}}\n"
    "layers:\n"
    "  - {name: a, kind: embedding, from: source, count: 9, out: 4}\n"
    "  - {name: b, kind: embedding, from: target, count: 9, out: 4, names: {weight: a.weight}}\n"
    "  - {name: c, kind: attention, from: [b, a, a], heads: 2, causal: true}\n",
    /* elementary kinds */
    "input: [3, 4]\n"
    "layers:\n"
    "  - {name: a, kind: abs}\n"
    "  - {name: b, kind: sqrt}\n"
    "  - {name: c, kind: exp}\n"
    "  - {name: d, kind: log}\n"
    "  - {name: e, kind: erf}\n"
    "  - {name: f, kind: neg}\n"
    "  - {name: g, kind: reciprocal}\n"
    "  - {name: h, kind: pow, exponent: 2}\n"
    "  - {name: i, kind: clip, max: 3}\n"
    "  - {name: w, kind: parameter, shape: [4]}\n"
    "  - {name: two, kind: constant, shape: [1], value: 2}\n"
    "  - {name: k, kind: sub, from: [i, w]}\n"
    "  - {name: l, kind: div, from: [k, two]}\n"
    "  - {name: m, kind: min, from: [l, two]}\n"
    "  - {name: n, kind: max, from: [m, w]}\n"
    "  - {name: o, kind: less, from: [n, two]}\n"
    "  - {name: p, kind: greater, from: [n, w]}\n"
    "  - {name: q, kind: equal, from: [n, m]}\n"
    "  - {name: r, kind: and, from: [o, p]}\n"
    "  - {name: s, kind: or, from: [r, q]}\n"
    "  - {name: t, kind: not}\n"
    "  - {name: u, kind: isnan, from: n}\n"
    "  - {name: v, kind: or, from: [t, u]}\n"
    "  - {name: x, kind: where, from: [v, n, w]}\n"
    "  - {name: y, kind: softmax, axis: 0}\n"
    "  - {name: z, kind: logsoftmax}\n"
    "  - {name: turn, kind: transpose, perm: [1, 0]}\n"
    "  - {name: table, kind: parameter, shape: [5, 3]}\n"
    "  - {name: prod, kind: matmul, from: [turn, table], transpose: true}\n"
    "  - {name: row, kind: reshape, shape: [20, 1]}\n"
    "  - {name: wide, kind: expand, shape: [20, 2]}\n"
    "  - {name: edge, kind: pad, pads: [1, 0, 0, 2], value: 0.5}\n"
    "  - {name: part, kind: gather, axis: 1, indices: [3, 0, 1]}\n"
    "  - {name: mean, kind: mean, axes: [0], keep: true}\n"
    "  - {name: most, kind: max-over, axes: [1]}\n"
    "  - {name: all, kind: sum}\n",
};

static bool is_in_nets(const char *kind) {
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "kind: %s", kind);
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        for (const char *at = strstr(nets[i], wanted); at; at = strstr(at + 1, wanted)) {
            const char after = at[strlen(wanted)];
            if (after == ',' || after == '}') {
                return true;
            }
        }
    }
    return false;
}

static void every_kind_has_a_writer_and_a_net(void **state) {
    (void)state;
    for (const rp_layer_kind *const *kind = rp_layer_kinds; *kind; kind++) {
        if (!rp_export_find_writer((*kind)->name) || !is_in_nets((*kind)->name)) {
            print_error("%s\n", (*kind)->name);
            fail();
        }
    }
}

/* The reader checks the graph: each value is given once, before it is read. */
static void every_opset(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        write_weights(model_of(nets[i], &nothing), in_folder("w.safetensors"));
        for (uint32_t opset = RP_ONNX_OPSET_FIRST; opset <= RP_ONNX_OPSET_LAST; opset++) {
            for (int train = 0; train < 2; train++) {
                const rp_export_form form = {
                    .opset = opset, .train = train == 1, .inline_bytes = RP_EXPORT_INLINE_BYTES};
                rp_onnx_model *model;
                export_text(nets[i], &nothing, in_folder("w.safetensors"), &form,
                            in_folder("net.onnx"));
                assert_int_equal(rp_onnx_open(&arena, in_folder("net.onnx"), &model), RP_OK);
                assert_int_equal(model->opset, opset);
                assert_string_equal(model->producer, "ringpipe");
                rp_onnx_close(&model);
            }
        }
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void expect_refusal(rp_export_net *net, const char *text) {
    const rp_export_form form = {.opset = 17, .inline_bytes = RP_EXPORT_INLINE_BYTES};
    rp_onnx_findings refusals;
    rp_export_graph *graph;
    assert_int_equal(rp_export_build(net, &form, &refusals, &graph), RP_OK);
    assert_int_equal(refusals.count, 1);
    assert_non_null(strstr(refusals.item[0].text, text));
    rp_export_close(&net);
}

static rp_export_net *open_text(const char *text) {
    write_weights(model_of(text, &nothing), in_folder("w.safetensors"));
    return open_net(text, &nothing, in_folder("w.safetensors"));
}

static void keys_that_no_writer_knows(void **state) {
    (void)state;
    rp_export_net *net = open_text("input: [4]\nlayers:\n  - {name: fc, kind: dense, out: 3}\n");
    assert_int_equal(rp_config_set(&arena, rp_node_item(net->layers, 0), "squared=true"), RP_OK);
    expect_refusal(net, "layer 'fc' (dense): a key of it cannot be exported");
}

static void padding_that_is_counted(void **state) {
    (void)state;
    expect_refusal(open_text("input: [2, 6, 6]\nlayers:\n  - {name: mean, kind: avgpool, kernel: "
                             "3, stride: 2, pad: 1, ceil_mode: true}\n"),
                   "layer 'mean' (avgpool): ceil_mode with count_include_pad");
}

static void names_of_two_values(void **state) {
    (void)state;
    expect_refusal(open_text("input: [4]\nonnx: {inputs: [fc.weight]}\n"
                             "layers:\n  - {name: fc, kind: dense, out: 3}\n"),
                   "'fc.weight' is also the name of another value");
}

static void opsets_outside(void **state) {
    (void)state;
    rp_export_net *net = open_text("input: [4]\nlayers:\n  - {name: fc, kind: dense, out: 3}\n");
    const rp_export_form form = {.opset = 12};
    rp_onnx_findings refusals;
    rp_export_graph *graph;
    assert_int_equal(rp_export_build(net, &form, &refusals, &graph), RP_ERR_USAGE);
    rp_export_close(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_writer_and_a_net),
        cmocka_unit_test_setup_teardown(every_opset, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_that_no_writer_knows, setup, teardown),
        cmocka_unit_test_setup_teardown(padding_that_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(names_of_two_values, setup, teardown),
        cmocka_unit_test_setup_teardown(opsets_outside, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
