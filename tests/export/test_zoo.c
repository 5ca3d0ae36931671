/* Nets of the zoo: an import of the exported model has the same layers and the same weights, and
 * exporting that gives the same model file again. */
#include "exported.h"

#define CLASSES 10
#define TOKENS 65

static const rp_model_data image = {.sample = {3, {3, 32, 32}}, .type = RP_F32, .classes = CLASSES};
static const rp_model_data text = {
    .sample = {1, {24}}, .type = RP_I32, .classes = TOKENS, .tokens = TOKENS};

static const char *read_zoo(const char *name) {
    const char *source = getenv("RP_SOURCE_DIR");
    const char *found;
    char *path;
    size_t bytes;
    assert_non_null(source);
    assert_int_equal(rp_arena_printf(&arena, &path, "%s/host/models/%s.yaml", source, name), RP_OK);
    assert_int_equal(rp_config_load(&arena, path, &found, &bytes), RP_OK);
    char *copy;
    assert_int_equal(rp_arena_text(&arena, found, bytes, &copy), RP_OK);
    return copy;
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* A layer that only arranges or drops, which an import may write in another way. */
static bool is_silent(const rp_model *model, uint32_t i) {
    static const char *const kinds[] = {"flatten", "dropout"};
    bool silent = false;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        silent |= strcmp(model->layer[i].kind->name, kinds[k]) == 0;
    }
    return silent;
}

/* The layer whose output `i` is, apart from silent ones. */
static uint32_t source_of(const rp_model *model, uint32_t i) {
    while (i != RP_LAYER_DATA && is_silent(model, i)) {
        i = model->layer[i].input[0];
    }
    return i;
}

/* Number of a layer among those that are not silent. */
static uint32_t number_of(const rp_model *model, uint32_t i) {
    uint32_t number = 0;
    for (uint32_t k = 0; k < i && i != RP_LAYER_DATA; k++) {
        number += !is_silent(model, k);
    }
    return i == RP_LAYER_DATA ? RP_LAYER_DATA : number;
}

static uint32_t next_of(const rp_model *model, uint32_t i) {
    while (i < model->layer_count && is_silent(model, i)) {
        i++;
    }
    return i;
}

static void compare_params(const rp_model *a, uint32_t i, const rp_model *b, uint32_t k) {
    assert_int_equal(a->plan[i].param_count, b->plan[k].param_count);
    for (uint32_t p = 0; p < a->plan[i].param_count; p++) {
        const rp_model_param *x = &a->param[a->param_first[i] + p];
        const rp_model_param *y = &b->param[b->param_first[k] + p];
        if (x->role != RP_PARAM_SCRATCH) {
            assert_string_equal(x->name, y->name);
            assert_int_equal(x->count, y->count);
            assert_int_equal(x->tied, y->tied);
        }
    }
}

/* The kind that computes the same as a layer does, as an import calls it. */
static const char *kind_of(const rp_model *model, uint32_t i) {
    const char *kind = model->layer[i].kind->name;
    const rp_shape *out = &model->plan[i].out;
    if (strcmp(kind, "adaptiveavgpool") == 0) {
        return out->dim[1] == 1 && out->dim[2] == 1 ? "globalavgpool" : "avgpool";
    }
    return strcmp(kind, "linear") == 0 && model->in[i][0].dims == 1 ? "dense" : kind;
}

static void compare_kinds(const rp_model *a, uint32_t i, const rp_model *b, uint32_t k) {
    assert_string_equal(kind_of(a, i), b->layer[k].kind->name);
    assert_int_equal(rp_shape_count(&a->plan[i].out), rp_shape_count(&b->plan[k].out));
    assert_true(a->plan[i].flops_forward == b->plan[k].flops_forward);
}

static void compare_models(const rp_model *a, const rp_model *b) {
    uint32_t k = 0;
    for (uint32_t i = next_of(a, 0); i < a->layer_count; i = next_of(a, i + 1)) {
        k = next_of(b, k);
        assert_true(k < b->layer_count);
        compare_kinds(a, i, b, k);
        assert_int_equal(a->layer[i].input_count, b->layer[k].input_count);
        for (uint32_t n = 0; n < a->layer[i].input_count; n++) {
            assert_int_equal(number_of(a, source_of(a, a->layer[i].input[n])),
                             number_of(b, source_of(b, b->layer[k].input[n])));
        }
        compare_params(a, i, b, k);
        k++;
    }
    assert_int_equal(next_of(b, k), b->layer_count);
}

static void compare_weights(const char *a, const char *b) {
    rp_st_reader *x;
    rp_st_reader *y;
    assert_int_equal(rp_st_open(&arena, a, &x), RP_OK);
    assert_int_equal(rp_st_open(&arena, b, &y), RP_OK);
    assert_int_equal(rp_st_count(x), rp_st_count(y));
    for (uint32_t i = 0; i < rp_st_count(x); i++) {
        const rp_st_entry *e = rp_st_entry_at(x, i);
        const rp_st_entry *f = rp_st_find(y, e->name);
        assert_non_null(f);
        assert_int_equal(e->bytes, f->bytes);
        assert_memory_equal(rp_st_data(x, e), rp_st_data(y, f), e->bytes);
    }
    rp_st_close(&x);
    rp_st_close(&y);
}

/* ---- the way there and back ------------------------------------------------------------------ */

static void go_and_return(const char *name, const rp_model_data *data, uint32_t opset) {
    static const rp_model_data nothing = {0};
    const rp_export_form form = {
        .opset = opset, .train = true, .inline_bytes = RP_EXPORT_INLINE_BYTES};
    const char *zoo = read_zoo(name);
    const rp_model *model = model_of(zoo, data);
    print_message("%s, opset %u\n", name, opset);
    write_weights(model, in_folder("zoo.safetensors"));
    export_text(zoo, data, in_folder("zoo.safetensors"), &form, in_folder("zoo.onnx"));
    const char *first = import_file(in_folder("zoo.onnx"), in_folder("first.safetensors"));
    compare_models(model, model_of(first, &nothing));
    compare_weights(in_folder("zoo.safetensors"), in_folder("first.safetensors"));
    export_text(first, &nothing, in_folder("first.safetensors"), &form, in_folder("first.onnx"));
    const char *second = import_file(in_folder("first.onnx"), in_folder("second.safetensors"));
    assert_string_equal(without_comments(second), without_comments(first));
    compare_weights(in_folder("first.safetensors"), in_folder("second.safetensors"));
}

static void images(void **state) {
    (void)state;
    go_and_return("lenet", &image, 17);
    go_and_return("cnn-small", &image, 13);
    go_and_return("resnet-narrow", &image, 17);
    go_and_return("resnet50-narrow", &image, 20);
    go_and_return("vgg-narrow", &image, 23);
}

static void images_with_gates(void **state) {
    (void)state;
    go_and_return("mobilenet-small", &image, 17);
    go_and_return("mobilenet-v3-narrow", &image, 17);
    go_and_return("mobilenet-v3-narrow", &image, 13);
    go_and_return("unet-narrow", &image, 18);
    go_and_return("densenet121-narrow", &image, 17);
}

static void texts(void **state) {
    (void)state;
    go_and_return("gpt-nano", &text, 17);
    go_and_return("gpt-nano-tied", &text, 20);
    go_and_return("gpt-micro", &text, 23);
}

static void recurrent(void **state) {
    (void)state;
    go_and_return("residual-lstm", &text, 17);
    go_and_return("char-rnn", &text, 13);
}

static void transformers_of_images(void **state) {
    (void)state;
    go_and_return("vit-tiny-narrow", &image, 17);
    go_and_return("vit-tiny-narrow", &image, 23);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(images, setup, teardown),
        cmocka_unit_test_setup_teardown(images_with_gates, setup, teardown),
        cmocka_unit_test_setup_teardown(texts, setup, teardown),
        cmocka_unit_test_setup_teardown(recurrent, setup, teardown),
        cmocka_unit_test_setup_teardown(transformers_of_images, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
