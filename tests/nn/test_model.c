#include "expect.h"

#include <math.h>

#include "nn/cut.h"
#include "nn/model.h"

static rp_arena arena;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test model", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static rp_err parse_model(const char *text, const rp_shape *data, uint32_t classes,
                          rp_model **out) {
    rp_node *root;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "m.yaml", &root));
    const rp_model_data about = {.sample = data ? *data : (rp_shape){0}, .classes = classes};
    return rp_model_parse(&arena, root, &about, out);
}

static rp_err load_zoo_for(const char *name, const rp_shape *data, uint32_t classes,
                           rp_model **out) {
    char *path;
    rp_node *root;
    const char *source = getenv("RP_SOURCE_DIR");
    expect_ok(
        rp_arena_printf(&arena, &path, "%s/host/models/%s.yaml", source ? source : ".", name));
    expect_ok(rp_config_read_file(&arena, path, &root));
    const rp_model_data about = {.sample = data ? *data : (rp_shape){0}, .classes = classes};
    return rp_model_parse(&arena, root, &about, out);
}

static rp_err load_zoo(const char *name, const rp_shape *data, rp_model **out) {
    return load_zoo_for(name, data, 10, out);
}

/* Parameters as PyTorch counts them in the same nets. */
static void zoo(void **state) {
    (void)state;
    const rp_shape small = rp_shape_3(1, 28, 28);
    const rp_shape colour = rp_shape_3(3, 32, 32);
    const struct {
        const char *name;
        bool takes_small;
        size_t trained; /* at 3 x 32 x 32 */
    } nets[] = {
        {"mlp", true, 820874},
        {"lenet", true, 83126},
        {"cnn-small", true, 113738},
        {"alexnet-cifar", true, 6976842},
        {"vgg11", false, 9228362},
        {"vgg16", false, 14724042},
        {"resnet18", true, 11173962},
        {"mobilenet-small", true, 543050},
        {"vgg-narrow", true, 74498},
        {"resnet-narrow", true, 44370},
        {"resnet50-narrow", true, 1484186},
        {"resnet101-narrow", true, 2680986},
        {"googlenet-narrow", true, 355138},
        {"inception-v3-narrow", true, 1373346},
        {"densenet121-narrow", true, 452714},
        {"mobilenet-v3-narrow", true, 409394},
        {"efficientnet-b0-narrow", true, 1077932},
        {"vit-tiny", true, 2693578},
        {"vit-tiny-narrow", true, 208074},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        rp_model *model;
        expect_ok(load_zoo(nets[i].name, &colour, &model));
        assert_int_equal(rp_model_out(model)->dims, 1);
        assert_int_equal(rp_model_out(model)->dim[0], 10);
        size_t trained = rp_model_param_count(model, RP_PARAM_TRAINED, 0, model->layer_count);
        if (trained != nets[i].trained) {
            print_error("%s: %zu parameters\n", nets[i].name, trained);
        }
        assert_int_equal(trained, nets[i].trained);
        if (nets[i].takes_small) {
            expect_ok(load_zoo(nets[i].name, &small, &model));
        } else {
            expect_err(load_zoo(nets[i].name, &small, &model), RP_ERR_SHAPE);
            assert_non_null(strstr(rp_err_message(), "layer 'pool5'"));
            assert_non_null(strstr(rp_err_message(), ".yaml:"));
        }
    }
}

/* torchvision's own counts, of its names and shapes; without auxiliary heads. */
static void torchvision_nets(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(3, 224, 224);
    const struct {
        const char *name;
        size_t trained;
        const char *first, *last;
    } nets[] = {
        {"alexnet", 61100840, "features.0.weight", "classifier.6.bias"},
        {"vgg11", 132863336, "features.0.weight", "classifier.6.bias"},
        {"vgg11_bn", 132868840, "features.0.weight", "classifier.6.bias"},
        {"vgg16_bn", 138365992, "features.0.weight", "classifier.6.bias"},
        {"resnet18", 11689512, "conv1.weight", "fc.bias"},
        {"resnet50", 25557032, "conv1.weight", "fc.bias"},
        {"resnet101", 44549160, "conv1.weight", "fc.bias"},
        {"mobilenet_v2", 3504872, "features.0.0.weight", "classifier.1.bias"},
        {"googlenet", 6624904, "conv1.conv.weight", "fc.bias"},
        {"inception_v3", 23834568, "Conv2d_1a_3x3.conv.weight", "fc.bias"},
        {"densenet121", 7978856, "features.conv0.weight", "classifier.bias"},
        {"mobilenet_v3_small", 2542856, "features.0.0.weight", "classifier.3.bias"},
        {"efficientnet_b0", 5288548, "features.0.0.weight", "classifier.1.bias"},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        char name[64];
        rp_model *model;
        (void)snprintf(name, sizeof name, "torchvision-%s", nets[i].name);
        expect_ok(load_zoo_for(name, &image, 1000, &model));
        assert_int_equal(rp_model_param_count(model, RP_PARAM_TRAINED, 0, model->layer_count),
                         nets[i].trained);
        assert_string_equal(model->param[0].name, nets[i].first);
        assert_string_equal(model->param[model->param_count - 1].name, nets[i].last);
    }
}

/* PyTorch's counts; a class for each pixel. */
static void segmentation_nets(void **state) {
    (void)state;
    const rp_shape colour = rp_shape_3(3, 32, 48);
    const rp_shape want = rp_shape_3(10, 32, 48);
    const struct {
        const char *name;
        size_t trained;
    } nets[] = {{"unet", 1942730}, {"unet-narrow", 122138}};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        rp_model *model;
        expect_ok(load_zoo(nets[i].name, &colour, &model));
        assert_true(rp_shape_equal(rp_model_out(model), &want));
        assert_int_equal(rp_model_param_count(model, RP_PARAM_TRAINED, 0, model->layer_count),
                         nets[i].trained);
    }
}

/* minGPT's count of gpt-nano, without a tied output layer, SpecTrain's of its LSTM, and that of
 * NVIDIA's GNMT with two embeddings. */
static void text_nets(void **state) {
    (void)state;
    const struct {
        const char *name;
        rp_model_data data;
        size_t trained;
    } nets[] = {
        {"gpt-nano", {rp_shape_1(64), RP_I32, 65, 65}, 94224},
        {"gpt-micro", {rp_shape_1(128), RP_I32, 65, 65}, 826368},
        {"char-rnn", {rp_shape_1(64), RP_I32, 65, 65}, 243969},
        {"residual-lstm", {rp_shape_1(200), RP_I32, 2, 10000}, 1874690},
        {"gpt1-14-narrow", {rp_shape_1(128), RP_I32, 2000, 2000}, 3048192},
        {"gnmt-8", {rp_shape_1(100), RP_I32, 32320, 32320}, 193766977},
        {"gnmt-16", {rp_shape_1(100), RP_I32, 32320, 32320}, 277718593},
        {"gnmt-narrow", {rp_shape_1(80), RP_I32, 8000, 8000}, 3904577},
        {"gpt-nano-tied", {rp_shape_1(64), RP_I32, 65, 65}, 91104},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        char *path;
        rp_node *root;
        rp_model *model;
        const char *source = getenv("RP_SOURCE_DIR");
        expect_ok(rp_arena_printf(&arena, &path, "%s/host/models/%s.yaml", source ? source : ".",
                                  nets[i].name));
        expect_ok(rp_config_read_file(&arena, path, &root));
        expect_ok(rp_model_parse(&arena, root, &nets[i].data, &model));
        assert_int_equal(rp_model_tensor_count(model, RP_PARAM_TRAINED), nets[i].trained);
        assert_int_equal(rp_model_id_count(model), nets[i].data.tokens);
        assert_int_equal(rp_model_type(model, RP_LAYER_DATA), RP_I32);
        assert_int_equal(rp_model_type(model, model->input_count), RP_F32);
    }
}

/* Ids where numbers are expected, numbers where ids are, and data of another type. */
static void types_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"input: {shape: [4], type: i32}\nlayers:\n- {name: a, kind: relu}",
         "relu takes numbers, but 'data' gives token ids (i32)"},
        {"input: [4]\nlayers:\n- {name: a, kind: embedding, count: 3, out: 2}",
         "input 1 of embedding takes token ids (i32), which only an input of the "
         "model can give; 'data' gives"},
        {"input: {shape: [4], type: i32}\nlayers:\n- {name: a, kind: embedding, count: 3, out: 2}\n"
         "- {name: b, kind: embedding, count: 3, out: 2}",
         "input 1 of embedding takes token ids (i32), which only an input of the "
         "model can give; 'a' gives"},
        {"input: {shape: [4], type: f16}\nlayers:\n- {name: a, kind: relu}",
         "expected one of: f32"},
        {"input: {type: i32}\nlayers:\n- {name: a, kind: relu}", "the key 'shape' is needed here"},
    };
    rp_model *model;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_not_equal(parse_model(cases[i].text, NULL, 0, &model), RP_OK);
        if (!strstr(rp_err_message(), cases[i].message)) {
            fail_msg("%s: '%s'", cases[i].text, rp_err_message());
        }
    }
    const rp_shape four = rp_shape_1(4);
    expect_err(parse_model("input: {shape: [4], type: i32}\nlayers:\n"
                           "- {name: a, kind: embedding, count: 3, out: 2}",
                           &four, 0, &model),
               RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(),
                           "the model expects samples [4] of i32, the data set has [4] of f32"));
}

static void several_inputs(void **state) {
    (void)state;
    static const char text[] =
        "input:\n  a: {shape: [3], type: i32}\n  b: {shape: [2], type: i32}\n"
        "layers:\n"
        "- {name: x, kind: embedding, from: b, count: 7, out: 2}\n"
        "- {name: y, kind: embedding, from: a, count: 9, out: 2}\n"
        "- {name: part, kind: slice, from: a, start: 1}\n"
        "- {name: z, kind: embedding, from: part, count: 5, out: 2}\n"
        "- {name: out, kind: add, from: [x, z]}\n"
        "- {name: all, kind: concat, from: [out, y]}\n";
    static const uint32_t limits[] = {9, 5, 5, 7, 7};
    rp_model *model;
    uint32_t *limit;
    expect_ok(parse_model(text, NULL, 0, &model));
    assert_int_equal(model->input_count, 2);
    assert_int_equal(model->layer_count, 8);
    assert_int_equal(model->input.dim[0], 5);
    assert_int_equal(rp_model_find(model, "b"), 1);
    assert_true(rp_model_type(model, 1) == RP_I32 && rp_model_type(model, 2) == RP_F32);
    assert_int_equal(rp_model_shape(model, 1)->dim[0], 2);
    expect_ok(rp_model_id_limits(&arena, model, &limit));
    assert_memory_equal(limit, limits, sizeof limits);
}

/* Layers that use a random stream in training. */
static void layers_that_draw(void **state) {
    (void)state;
    static const struct {
        const char *layer;
        bool draws;
    } cases[] = {
        {"kind: dropout", true},
        {"kind: dropout, train: false", false},
        {"kind: droppath, p: 0.1", true},
        {"kind: attention, heads: 1, dropout: 0.1", true},
        {"kind: attention, heads: 1, dropout: 0.1, train: false", false},
        {"kind: attention, heads: 1", false},
        {"kind: linear, out: 4", false},
        {"kind: linear, out: 4, lora: {rank: 2}", false},
        {"kind: linear, out: 4, lora: {rank: 2, dropout: 0.1}", true},
        {"kind: linear, out: 4, lora: {rank: 2, dropout: 0.1}, train: false", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        rp_model *model;
        (void)snprintf(text, sizeof text, "input: [5, 6]\nlayers:\n- {name: l, %s}",
                       cases[i].layer);
        expect_ok(parse_model(text, NULL, 0, &model));
        assert_int_equal(model->plan[0].draws, cases[i].draws);
    }
}

static void several_inputs_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *input, *layer, *message;
    } cases[] = {
        {"a: {shape: [3]}", "from: a", "or 2 to 8 inputs like `source: {shape: "},
        {"a: {shape: [3]}, b: [2]", "from: a", "expected an input like {shape: [40], type: i32}"},
        {"a: {shape: [3]}, b: {shape: [2], type: i32}", "from: a",
         "expected the type of the first input, f32: the inputs of a model have one type, found "
         "i32"},
        {"a: {shape: [3, 2]}, b: {shape: [3, 4]}", "from: a", "only in the first size"},
        {"a: {shape: [3]}, b: {shape: [3]}", "from: a", "no layer reads the input 'b'"},
        {"a: {shape: [3]}, b: {shape: [3]}", "train: true", "several inputs: expected `from`"},
        {"a: {shape: [3]}, data: {shape: [3]}", "from: a", "'data' is the model's input"},
        {"a: {shape: [3]}, l: {shape: [3]}", "from: a", "an input 'l' is in line 1 already"},
        {"a: {shape: [3]}, b: {shape: [3], kind: x}", "from: a", "kind"},
        {"shape: {shape: [3]}, type: {shape: [3]}", "from: type",
         "no layer reads the input 'shape'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        rp_model *model;
        (void)snprintf(text, sizeof text, "input: {%s}\nlayers:\n- {name: l, kind: relu, %s}",
                       cases[i].input, cases[i].layer);
        assert_int_not_equal(parse_model(text, NULL, 0, &model), RP_OK);
        if (!strstr(rp_err_message(), cases[i].message)) {
            fail_msg("%s: '%s'", text, rp_err_message());
        }
    }
}

/* Inputs count as layers, for whose number cuts and plans have room. */
static void layers_are_limited(void **state) {
    (void)state;
    static const uint32_t counts[] = {RP_MODEL_LAYERS_MAX - 2, RP_MODEL_LAYERS_MAX - 1};
    for (size_t k = 0; k < 2; k++) {
        const size_t room = 200 + (size_t)counts[k] * 40;
        size_t used;
        char *text;
        rp_model *model;
        expect_ok(rp_arena_alloc(&arena, 1, room, (void **)&text));
        used = (size_t)snprintf(text, room,
                                "input: {a: {shape: [2]}, b: {shape: [2]}}\nlayers:\n"
                                "- {name: l0, kind: add, from: [a, b]}\n");
        for (uint32_t i = 1; i < counts[k]; i++) {
            used += (size_t)snprintf(text + used, room - used, "- {name: l%u, kind: relu}\n", i);
        }
        const rp_err err = parse_model(text, NULL, 0, &model);
        assert_int_equal(err, k == 0 ? RP_OK : RP_ERR_USAGE);
        if (k == 0) {
            const uint32_t first[] = {0, model->layer_count / 2, model->layer_count};
            assert_int_equal(model->layer_count, RP_MODEL_LAYERS_MAX);
            expect_ok(rp_cut_check(model, &(rp_cut){.stage_count = 2, .first = first}));
        }
    }
    assert_non_null(strstr(rp_err_message(), "expected a list of 1 to 4094 layers"));
}

static const char residual[] = "input: [2, 4, 4]\n"
                               "layers:\n"
                               "  - {name: c1, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                               "  - {name: b1, kind: batchnorm}\n"
                               "  - {name: c2, kind: conv2d, out: 4, kernel: 1, from: data}\n"
                               "  - {name: sum, kind: add, from: [b1, c2]}\n"
                               "  - {name: fc, kind: dense, out: classes, bias: false}\n";

static void structure(void **state) {
    (void)state;
    rp_model *model;
    expect_ok(parse_model(residual, NULL, 3, &model));
    assert_int_equal(model->layer_count, 5);
    assert_int_equal(model->layer[0].input[0], RP_LAYER_DATA);
    assert_int_equal(model->layer[1].input[0], 0);
    assert_int_equal(model->layer[2].input[0], RP_LAYER_DATA);
    assert_int_equal(model->layer[3].input_count, 2);
    assert_int_equal(model->layer[3].input[0], 1);
    assert_int_equal(model->layer[3].input[1], 2);
    assert_int_equal(model->layer[3].line, 6);
    assert_int_equal(rp_model_find(model, "sum"), 3);
    assert_int_equal(rp_model_find(model, "none"), 5);
    const rp_shape want = rp_shape_3(4, 4, 4);
    assert_true(rp_shape_equal(rp_model_shape(model, 3), &want));
    assert_true(rp_shape_equal(rp_model_shape(model, RP_LAYER_DATA), &model->input));
    assert_int_equal(rp_model_out(model)->dim[0], 3);
    assert_int_equal(rp_model_readers(model, RP_LAYER_DATA, 0, 5), 2);
    assert_int_equal(rp_model_readers(model, RP_LAYER_DATA, 1, 5), 1);
    assert_int_equal(rp_model_readers(model, 1, 0, 3), 0);
}

static void parameters(void **state) {
    (void)state;
    rp_model *model;
    expect_ok(parse_model(residual, NULL, 3, &model));
    const char *const names[] = {"c1.weight", "c1.bias",         "b1.weight",
                                 "b1.bias",   "b1.running_mean", "b1.running_var",
                                 "c2.weight", "c2.bias",         "fc.weight"};
    assert_int_equal(model->param_count, 9);
    for (uint32_t i = 0; i < 9; i++) {
        assert_string_equal(model->param[i].name, names[i]);
    }
    assert_int_equal(model->param[5].layer, 1);
    assert_int_equal(model->param[5].index, 3);
    assert_int_equal(model->param[5].role, RP_PARAM_STATE);
    assert_int_equal(model->param[8].count, 3 * 64);
    assert_int_equal(model->param_first[1], 2);
    assert_int_equal(rp_model_param_count(model, RP_PARAM_STATE, 0, 5), 8);
    assert_int_equal(rp_model_param_count(model, RP_PARAM_TRAINED, 2, 5), 12 + 192);
    expect_close(rp_model_flops_forward(model, 4, 5), 2 * 192, 0, 0);
    expect_close(rp_model_flops_backward(model, 4, 5), 4 * 192, 0, 0);
}

/* c1 and b1 are frozen; c2, trained, is the other input of `sum`. */
static void frozen(void **state) {
    (void)state;
    static const char text[] =
        "input: [2, 4, 4]\nlayers:\n"
        "  - {name: c1, kind: conv2d, out: 4, kernel: 1, train: false}\n"
        "  - {name: b1, kind: batchnorm, deferred: true, train: false}\n"
        "  - {name: c2, kind: conv2d, out: 4, kernel: 1, from: b1, train: true}\n"
        "  - {name: sum, kind: add, from: [b1, c2]}\n"
        "  - {name: fc, kind: dense, out: 3, train: false}\n";
    static const bool wants_grad[] = {false, false, true, true, true};
    rp_model *model;
    expect_ok(parse_model(text, NULL, 3, &model));
    assert_int_equal(model->param_count, 2 + 4 + 2 + 2);
    for (uint32_t p = 0; p < model->param_count; p++) {
        const bool trains = model->param[p].layer == 2;
        assert_int_equal(model->param[p].role, trains ? RP_PARAM_TRAINED : RP_PARAM_FROZEN);
    }
    for (uint32_t i = 0; i < model->layer_count; i++) {
        assert_int_equal(model->wants_grad[i], wants_grad[i]);
        assert_int_equal(model->layer[i].frozen, i != 2 && i != 3);
    }
    assert_int_equal(rp_model_param_count(model, RP_PARAM_TRAINED, 0, 5), 4 * 4 + 4);
    assert_true(!model->plan[0].needs_x && model->plan[2].needs_x && !model->plan[4].needs_x);
    expect_close(rp_model_flops_backward(model, 4, 5), 2 * 192, 0, 0); /* dx only */
}

static void start_values(void **state) {
    (void)state;
    rp_model *model;
    float value[192];
    float again[192];
    double sum = 0;
    double square = 0;
    expect_ok(parse_model(residual, NULL, 3, &model));
    rp_model_init_param(model, 8, 1, value);
    rp_rng rng = rp_rng_named(1, "init/fc/weight");
    for (size_t i = 0; i < 192; i++) {
        float u = rp_rng_uniform(&rng);
        expect_close(value[i], (2 * (double)u - 1) / 8, 1e-6, 1e-7);
        assert_true(fabsf(value[i]) <= 0.125f);
        sum += (double)value[i];
        square += (double)value[i] * (double)value[i];
    }
    expect_close(sum / 192, 0, 0, 0.02);
    expect_close(square / 192, 1.0 / 3 / 64, 0.2, 0);
    rp_model_init_param(model, 8, 2, again);
    assert_memory_not_equal(value, again, sizeof value);
    rp_model_init_param(model, 0, 1, value); /* fan in 18 */
    for (size_t i = 0; i < 72; i++) {
        assert_true((double)fabsf(value[i]) <= 1 / sqrt(18.0));
    }
    rp_model_init_param(model, 2, 1, value);
    rp_model_init_param(model, 4, 1, again);
    expect_close(value[3], 1, 0, 0);
    expect_close(again[3], 0, 0, 0);
}

static void data_decides(void **state) {
    (void)state;
    rp_model *model;
    const rp_shape flat = rp_shape_1(32);
    const rp_shape other = rp_shape_1(33);
    const char text[] = "input: data\nlayers:\n  - {name: a, kind: dense, out: classes}\n";
    expect_ok(parse_model(text, &flat, 7, &model));
    assert_int_equal(model->input.dim[0], 32);
    expect_ok(parse_model(residual, &flat, 3, &model)); /* rows of 32 columns are [2, 4, 4] */
    assert_int_equal(model->input.dims, 3);
    expect_err(parse_model(residual, &other, 3, &model), RP_ERR_SHAPE);
    expect_err(parse_model(text, NULL, 7, &model), RP_ERR_USAGE);
    expect_err(parse_model(text, &flat, 0, &model), RP_ERR_USAGE);
}

/* One layer of a model with input [2, 4, 4]. */
static void mistakes(void **state) {
    (void)state;
    const struct {
        const char *layers, *message;
    } cases[] = {
        {"  - {name: a, kind: dens, out: 3}", "no layer kind 'dens'"},
        {"  - {kind: dense, out: 3}", "name"},
        {"  - {name: a b, kind: dense, out: 3}", "a layer's name has"},
        {"  - {name: data, kind: dense, out: 3}", "the model's input"},
        {"  - {name: a, kind: dense}", "out"},
        {"  - {name: a, kind: dense, out: 0}", "out"},
        {"  - {name: a, kind: dense, out: 3, kernel: 3}", "kernel"},
        {"  - {name: a, kind: dense, out: 3, from: b}", "no earlier layer 'b'"},
        {"  - {name: a, kind: dense, out: 3, from: a}", "no earlier layer 'a'"},
        {"  - {name: a, kind: dense, out: 3, from: [data, data]}", "1 to 1 inputs"},
        {"  - {name: a, kind: dense, out: 3, train: maybe}", "train"},
        {"  - {name: a, kind: add}", "2 to 8 inputs"},
        {"  - {name: a, kind: add, from: [data, [data]]}", "earlier layer"},
        {"  - {name: a, kind: relu}\n  - {name: a, kind: relu}", "is in line 3 already"},
        {"  - {name: a, kind: relu}\n  - {name: b, kind: relu, from: data}", "reads the output of"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: 5}", "m.yaml:3"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: 5}", "layer 'a'"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: 1, groups: 3}", "groups"},
        {"  - {name: a, kind: conv2d, out: 3, kernel: 1, groups: 3}", "groups"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: [1, 5]}",
         "a 1x5 kernel with pad 0, dilation 1 does not fit into [2, 4, 4]"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: [5, 3], pad: [0, 1]}", "pad [0, 1]"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: [3]}", "a list of two: [height, width]"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: [1, 2, 3]}", "a list of two"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: {h: 1, w: 3}}", "a list of two"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: [1, 0]}", "from 1 to 255, found '0'"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: 1, stride: [1, x]}", "found 'x'"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: 1, pad: [256, 0]}", "from 0 to 255"},
        {"  - {name: a, kind: conv2d, out: 4, kernel: 3, dilation: [1, -1]}", "from 1 to 255"},
        {"  - {name: a, kind: maxpool, kernel: 2, pad: 2}", "half the kernel"},
        {"  - {name: a, kind: maxpool, kernel: 5}", "does not fit"},
        {"  - {name: a, kind: maxpool, kernel: [2, 3], pad: [0, 2]}",
         "half the kernel, 1, found 2"},
        {"  - {name: a, kind: maxpool, kernel: [1, 6], pad: [0, 0]}", "a 1x6 window with pad 0"},
        {"  - {name: a, kind: avgpool, kernel: [7, 3], stride: 2, ceil_mode: true}",
         "does not fit into [2, 4, 4]"},
        {"  - {name: a, kind: maxpool, kernel: 2, ceil_mode: 2}", "ceil_mode"},
        {"  - {name: a, kind: maxpool, kernel: 2, count_include_pad: true}", "unknown key"},
        {"  - {name: a, kind: avgpool, kernel: [2, 2, 2]}", "a list of two: [height, width]"},
        {"  - {name: a, kind: flatten}\n  - {name: b, kind: globalavgpool}", "needs an image"},
        {"  - {name: a, kind: flatten}\n  - {name: b, kind: adaptiveavgpool, out: 2}",
         "needs an image"},
        {"  - {name: a, kind: adaptiveavgpool}", "out"},
        {"  - {name: a, kind: adaptiveavgpool, out: [7, 0]}", "from 1 to 255, found '0'"},
        {"  - {name: a, kind: adaptiveavgpool, out: [7]}", "a list of two: [height, width]"},
        {"  - {name: a, kind: dense, out: 3}\n  - {name: b, kind: add, from: [a, data]}",
         "one shape"},
        {"  - {name: a, kind: flatten}\n  - {name: b, kind: concat, from: [a, data]}",
         "first dimension"},
        {"  - {name: a, kind: conv2d, out: 1048576, kernel: 3, pad: 255}", "too large"},
        {"  - word", "expected a layer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        rp_model *model;
        snprintf(text, sizeof text, "input: [2, 4, 4]\nlayers:\n%s\n", cases[i].layers);
        rp_err err = parse_model(text, NULL, 3, &model);
        if (!(err == RP_ERR_USAGE || err == RP_ERR_SHAPE) ||
            !strstr(rp_err_message(), cases[i].message) || !strstr(rp_err_message(), "m.yaml:")) {
            print_error("%s\n -> %d %s\n", cases[i].layers, err, rp_err_message());
            fail();
        }
    }
}

static void mistakes_above_the_layers(void **state) {
    (void)state;
    rp_model *model;
    const char *const texts[] = {
        "layers:\n  - {name: a, kind: relu}\n",
        "input: [3]\n",
        "input: [3]\nlayers: []\n",
        "input: [3]\nlayers: word\n",
        "input: []\nlayers:\n  - {name: a, kind: relu}\n",
        "input: [0]\nlayers:\n  - {name: a, kind: relu}\n",
        "input: [-1]\nlayers:\n  - {name: a, kind: relu}\n",
        "input: [2x]\nlayers:\n  - {name: a, kind: relu}\n",
        "input: [1, 1, 1, 1, 1, 1]\nlayers:\n  - {name: a, kind: relu}\n",
        "input: [65536, 65536]\nlayers:\n  - {name: a, kind: relu}\n",
        "input: [99999999999999999999]\nlayers:\n  - {name: a, kind: relu}\n",
        "input: [3]\nlayers:\n  - {name: a, kind: relu}\nextra: 1\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rp_err err = parse_model(texts[i], NULL, 3, &model);
        if (err != RP_ERR_USAGE) {
            print_error("%s -> %d\n", texts[i], err);
        }
        expect_err(err, RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), "m.yaml"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(zoo, setup, teardown),
        cmocka_unit_test_setup_teardown(torchvision_nets, setup, teardown),
        cmocka_unit_test_setup_teardown(segmentation_nets, setup, teardown),
        cmocka_unit_test_setup_teardown(text_nets, setup, teardown),
        cmocka_unit_test_setup_teardown(types_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(several_inputs, setup, teardown),
        cmocka_unit_test_setup_teardown(several_inputs_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_that_draw, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_are_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(structure, setup, teardown),
        cmocka_unit_test_setup_teardown(parameters, setup, teardown),
        cmocka_unit_test_setup_teardown(frozen, setup, teardown),
        cmocka_unit_test_setup_teardown(start_values, setup, teardown),
        cmocka_unit_test_setup_teardown(data_decides, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes_above_the_layers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
