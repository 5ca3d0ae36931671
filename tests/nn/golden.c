#include "golden.h"

#include <inttypes.h>
#include <math.h>

enum {
    LEAD = 3,     /* samples before those of a tensor, in the second run of a case */
    TRAIL = 2,    /* and behind */
    GUARD = 0xA5, /* their bytes */
    DIFFERENCE_SAMPLES = 12,
    DIFFERENCE_SAMPLES_SMALL = 2,
    CLBLAST_FLOPS_SMALL = 100000, /* its kernels pad a product to whole tiles */
    CASES_SHORT = 12              /* of a file, about so many where kernels are interpreted in the
                                     gate's short form */
};

void golden_values(const char *stream, size_t count, float *out) {
    uint32_t seed = 0x811C9DC5u;
    for (const char *c = stream; *c; c++) {
        seed = (seed ^ (uint8_t)*c) * 0x01000193u;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t h = (uint32_t)i * 0x9E3779B9u + seed;
        h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
        h = (h ^ (h >> 13)) * 0xC2B2AE35u;
        h ^= h >> 16;
        out[i] = (float)(h >> 8) * 0x1p-23f - 1.0f;
    }
}

static rp_arena device_arena;
static rp_device *device;

static void close_device(void) {
    rp_device_close(&device);
    rp_arena_finish(&device_arena);
}

rp_device *golden_device(void) {
    if (!device) {
        rp_arena_init(&device_arena, "test device", 0);
        /* No cache_dir: PoCL asked for binaries would compile every kernel of each program. */
        if (rp_device_open(&device_arena, &(rp_device_options){0}, &device) != RP_OK) {
            skip_program("no OpenCL device: %s", rp_err_message());
        }
        atexit(close_device);
        if (expect_small()) {
            rp_device_choose_gemm(device, RP_GEMM_PANEL);
        }
    }
    return device;
}

/* ---- one layer with all its memory ---------------------------------------------------------- */

static void take(layer_rig *rig, size_t bytes, rp_buffer **out) {
    expect_ok(rp_darena_take(rig->memory, bytes ? bytes : 4, out));
}

static void take_tensor(layer_rig *rig, const rp_shape *shape, rp_tensor *out) {
    out->shape = *shape;
    take(rig, rp_shape_count(shape) * sizeof(float), &out->buffer);
}

/* n samples in the middle of a larger buffer, all of it guard. */
static void take_samples(layer_rig *rig, const rp_shape *sample, rp_tensor *out) {
    const size_t each = rp_shape_count(sample);
    const size_t bytes = (rig->lead + rig->call.n + TRAIL) * each * sizeof(float);
    if (rig->lead == 0) {
        rp_shape shape = rp_shape_batch(rig->call.n, sample);
        take_tensor(rig, &shape, out);
        return;
    }
    rp_tensor whole = {.shape = rp_shape_batch(rig->lead + rig->call.n + TRAIL, sample)};
    unsigned char *guard;
    take(rig, bytes, &whole.buffer);
    expect_ok(RP_ARENA_NEW(&rig->arena, bytes, &guard));
    memset(guard, GUARD, bytes);
    expect_ok(rp_buffer_write_now(golden_device(), whole.buffer, 0, guard, bytes));
    expect_ok(rp_tensor_slice(&whole, rig->lead, rig->call.n, out));
    assert_int_equal(out->offset, rig->lead * each);
}

static void expect_guard(layer_rig *rig, const rp_tensor *of) {
    const size_t bytes = rp_buffer_bytes(of->buffer);
    const size_t first = of->offset * sizeof(float);
    unsigned char *all;
    if (rig->lead == 0) {
        return;
    }
    expect_ok(RP_ARENA_NEW(&rig->arena, bytes, &all));
    expect_ok(rp_buffer_read_now(golden_device(), all, of->buffer, 0, bytes));
    for (size_t i = 0; i < bytes; i++) {
        if ((i < first || i >= first + rp_tensor_bytes(of)) && all[i] != GUARD) {
            print_error("byte %zu, outside of [%zu, %zu), is touched\n", i, first,
                        first + rp_tensor_bytes(of));
            fail();
        }
    }
}

void rig_expect_guards(layer_rig *rig) {
    for (uint32_t i = 0; i < rig->layer.input_count; i++) {
        expect_guard(rig, &rig->x[i]);
        if (!rp_layer_takes_ids(&rig->plan, i)) {
            expect_guard(rig, &rig->dx[i]);
        }
    }
    expect_guard(rig, &rig->y);
    expect_guard(rig, &rig->dy);
}

static void describe_case(layer_rig *rig, rp_node *keys, const char *name, uint32_t n,
                          const rp_shape *in, uint32_t input_count, bool relu) {
    const char *kind = NULL;
    rp_layer *layer = &rig->layer;
    (void)rp_node_find(keys, "name");
    expect_ok(rp_node_need(keys, "kind"));
    expect_ok(rp_node_string(keys, "kind", &kind));
    *layer = (rp_layer){.kind = rp_layer_find(kind), .name = name, .input_count = input_count};
    assert_non_null(layer->kind);
    expect_ok(rp_arena_alloc(&rig->arena, 1, layer->kind->spec_bytes + 1, &layer->spec));
    expect_ok(layer->kind->parse(layer, keys, &(rp_model_data){.classes = 10, .tokens = 10}));
    expect_ok(rp_node_done(keys));
    if (relu) {
        assert_non_null(layer->kind->fuse_relu);
        assert_true(layer->kind->fuse_relu(layer));
    }
    expect_ok(layer->kind->plan(layer, in, &rig->plan));
    rig->call = (rp_layer_call){.device = golden_device(),
                                .layer = layer,
                                .plan = &rig->plan,
                                .n = n,
                                .training = true,
                                .want_dx = true,
                                .want_dw = true};
    for (uint32_t i = 0; i < input_count; i++) {
        rig->call.in[i] = in[i];
    }
}

static size_t workspace_bytes(const layer_rig *rig) {
    const rp_layer *layer = &rig->layer;
    size_t most = 0; /* for either GEMM, whichever the test chooses */
    for (int choice = RP_GEMM_CLBLAST; choice <= RP_GEMM_PANEL; choice++) {
        size_t bytes = layer->kind->workspace_bytes
                           ? layer->kind->workspace_bytes(layer, &rig->plan, rig->call.in,
                                                          rig->call.n, (rp_gemm_choice)choice)
                           : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void take_all(layer_rig *rig) {
    rp_layer_call *call = &rig->call;
    for (uint32_t i = 0; i < rig->layer.input_count; i++) {
        take_samples(rig, &call->in[i], &rig->x[i]);
        call->x[i] = &rig->x[i];
        if (rp_layer_takes_ids(&rig->plan, i)) {
            rig->x[i].dtype = RP_I32;
        } else {
            take_samples(rig, &call->in[i], &rig->dx[i]);
            call->dx[i] = &rig->dx[i];
        }
    }
    take_samples(rig, &rig->plan.out, &rig->y);
    take_samples(rig, &rig->plan.out, &rig->dy);
    call->y = &rig->y;
    call->dy = &rig->dy;
    for (uint32_t i = 0; i < rig->plan.param_count; i++) {
        take_tensor(rig, &rig->plan.param[i].shape, &rig->param[i]);
        call->param[i] = &rig->param[i];
        if (rig->plan.param[i].role == RP_PARAM_TRAINED) {
            take_tensor(rig, &rig->plan.param[i].shape, &rig->dparam[i]);
            call->dparam[i] = &rig->dparam[i];
        }
    }
    for (uint32_t i = 0; i < rig->plan.saved_count; i++) {
        const size_t samples = rig->lead + call->n;
        take(rig, rig->plan.saved[i].fixed_bytes + samples * rig->plan.saved[i].sample_bytes,
             &call->saved[i]);
    }
    call->saved_first = rig->lead;
    take(rig, workspace_bytes(rig), &call->workspace);
}

static void open_rig(layer_rig *rig, const char *name, const char *keys, uint32_t n,
                     const rp_shape *in, uint32_t input_count, bool relu) {
    rp_node *root;
    expect_ok(rp_config_read_text(&rig->arena, keys, strlen(keys), name, &root));
    describe_case(rig, root, name, n, in, input_count, relu);
    expect_ok(rp_darena_open(&rig->arena, golden_device(), "rig", 0, 0, &rig->memory));
    take_all(rig);
}

void rig_open(layer_rig *rig, const char *name, const char *keys, uint32_t n, const rp_shape *in,
              uint32_t input_count) {
    *rig = (layer_rig){0};
    rp_arena_init(&rig->arena, "rig", 0);
    open_rig(rig, name, keys, n, in, input_count, false);
}

void rig_open_inside(layer_rig *rig, const char *name, const char *keys, uint32_t n,
                     const rp_shape *in, uint32_t input_count) {
    *rig = (layer_rig){.lead = LEAD};
    rp_arena_init(&rig->arena, "rig", 0);
    open_rig(rig, name, keys, n, in, input_count, false);
}

void rig_close(layer_rig *rig) {
    expect_ok(rp_device_drain(golden_device()));
    rp_darena_close(&rig->memory);
    rp_arena_finish(&rig->arena);
}

void rig_write(layer_rig *rig, rp_tensor *to, const float *from) {
    (void)rig;
    expect_ok(rp_tensor_write(golden_device(), to, from));
    expect_ok(rp_device_drain(golden_device()));
}

float *rig_read(layer_rig *rig, const rp_tensor *from) {
    float *out;
    size_t count = rp_shape_count(&from->shape);
    expect_ok(RP_ARENA_NEW(&rig->arena, count, &out));
    expect_ok(rp_tensor_read(golden_device(), out, from));
    expect_ok(rp_device_drain(golden_device()));
    return out;
}

void rig_draw(layer_rig *rig, rp_tensor *to, const char *stream) {
    float *drawn;
    size_t count = rp_shape_count(&to->shape);
    expect_ok(RP_ARENA_NEW(&rig->arena, count, &drawn));
    golden_values(stream, count, drawn);
    rig_write(rig, to, drawn);
}

/* ---- golden cases --------------------------------------------------------------------------- */

rp_st_reader *golden_file(rp_arena *arena, const char *stem) {
    rp_st_reader *reader;
    char *path;
    const char *root = getenv("RP_SOURCE_DIR");
    expect_ok(
        rp_arena_printf(arena, &path, "%s/tests/golden/%s.safetensors", root ? root : ".", stem));
    expect_ok(rp_st_open(arena, path, &reader));
    return reader;
}

static const rp_st_entry *find_tensor(const golden_case *golden, const char *what) {
    char name[RP_ST_NAME_MAX];
    snprintf(name, sizeof name, "%s/%s", golden->name, what);
    return rp_st_find(golden->reader, name);
}

/* Ids are in the file as floats. */
static void fill_ids(layer_rig *rig, const golden_case *golden, rp_tensor *to, const char *what) {
    const rp_st_entry *entry = find_tensor(golden, what);
    const size_t count = rp_shape_count(&to->shape);
    int32_t *ids;
    assert_non_null(entry);
    assert_int_equal(entry->bytes, count * sizeof(float));
    expect_ok(RP_ARENA_NEW(&rig->arena, count, &ids));
    const float *from = rp_st_data(golden->reader, entry);
    for (size_t i = 0; i < count; i++) {
        ids[i] = (int32_t)from[i];
    }
    expect_ok(rp_tensor_write(golden_device(), to, ids));
    expect_ok(rp_device_drain(golden_device()));
}

static void fill_tensor(layer_rig *rig, const golden_case *golden, rp_tensor *to,
                        const char *what) {
    const rp_st_entry *entry = find_tensor(golden, what);
    if (to->dtype == RP_I32) {
        fill_ids(rig, golden, to, what);
        return;
    }
    if (entry) {
        assert_int_equal(entry->bytes, rp_shape_count(&to->shape) * sizeof(float));
        rig_write(rig, to, rp_st_data(golden->reader, entry));
        return;
    }
    char stream[RP_ST_NAME_MAX];
    snprintf(stream, sizeof stream, "%s/%s", golden->name, what);
    rig_draw(rig, to, stream);
}

static rp_shape shape_of(const rp_node *list) {
    rp_shape shape = {.dims = rp_node_count(list)};
    for (uint32_t i = 0; i < shape.dims; i++) {
        shape.dim[i] = (uint32_t)strtoul(rp_node_text(rp_node_item(list, i)), NULL, 10);
    }
    return shape;
}

void golden_open(layer_rig *rig, const golden_case *golden, uint32_t lead) {
    *rig = (layer_rig){.lead = lead};
    rp_arena_init(&rig->arena, "rig", 0);
    const char *text = rp_st_meta(golden->reader, golden->name);
    assert_non_null(text);
    rp_node *facts;
    uint32_t n = 0;
    bool training = true;
    bool relu = false;
    char *keys;
    expect_ok(rp_config_read_text(&rig->arena, text, strlen(text), golden->name, &facts));
    expect_ok(rp_node_u32(facts, "n", 1, 4096, &n));
    expect_ok(rp_node_bool(facts, "training", &training));
    expect_ok(rp_node_bool(facts, "relu", &relu));
    rig->rel = GOLDEN_REL;
    expect_ok(rp_node_f64(facts, "rel", 1e-6, 1e-4, &rig->rel));
    const rp_node *list = rp_node_find(facts, "in");
    rp_shape in[RP_LAYER_INPUTS_MAX];
    for (uint32_t i = 0; i < rp_node_count(list); i++) {
        in[i] = shape_of(rp_node_item(list, i));
    }
    expect_ok(rp_config_text(&rig->arena, rp_node_find(facts, "layer"), &keys));
    open_rig(rig, golden->name, keys, n, in, rp_node_count(list), relu);
    rig->call.training = training;
    for (uint32_t i = 0; i < rig->layer.input_count; i++) {
        char what[16];
        snprintf(what, sizeof what, "x%u", i);
        fill_tensor(rig, golden, &rig->x[i], what);
    }
    fill_tensor(rig, golden, &rig->dy, "dy");
    for (uint32_t i = 0; i < rig->plan.param_count; i++) {
        if (rig->plan.param[i].role != RP_PARAM_SCRATCH) {
            fill_tensor(rig, golden, &rig->param[i], rig->plan.param[i].suffix);
        }
    }
}

/* got == want + base, where base may be NULL. */
static void compare_tensors(const golden_case *golden, const float *got, const char *what,
                            const float *base, size_t count, double rel) {
    const rp_st_entry *entry = find_tensor(golden, what);
    if (!entry || entry->bytes != count * sizeof(float)) {
        print_error("%s/%s: not in the golden file with %zu elements\n", golden->name, what, count);
        fail();
    }
    const float *want = rp_st_data(golden->reader, entry);
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(want[i]));
    }
    largest += base ? 1.0 : 0.0;
    for (size_t i = 0; i < count; i++) {
        double w = (double)want[i] + (base ? (double)base[i] : 0.0);
        if (!expect_is_close(got[i], w, rel, rel * largest)) {
            print_error("%s/%s%s[%zu]: got %.9g, want %.9g\n", golden->name, what,
                        base ? " added" : "", i, (double)got[i], w);
            fail();
        }
    }
}

/* FNV-1a over the bytes of what is looked at. */
static const float *hash_values(layer_rig *rig, const float *values, size_t count) {
    const unsigned char *bytes = (const unsigned char *)values;
    for (size_t i = 0; i < count * sizeof *values; i++) {
        rig->digest = (rig->digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return values;
}

void golden_compare(layer_rig *rig, const golden_case *golden, const rp_tensor *got,
                    const char *what, double rel) {
    const size_t count = rp_shape_count(&got->shape);
    compare_tensors(golden, hash_values(rig, rig_read(rig, got), count), what, NULL, count, rel);
}

/* Whether the case may run with this GEMM where kernels are interpreted. */
static bool fits_small(const golden_case *golden, rp_gemm_choice choice) {
    layer_rig rig;
    if (choice != RP_GEMM_CLBLAST) {
        return true;
    }
    golden_open(&rig, golden, 0);
    const double flops = rig.plan.flops_forward * rig.call.n;
    rig_close(&rig);
    return flops <= CLBLAST_FLOPS_SMALL;
}

static uint32_t count_names(const char *names) {
    uint32_t count = names[0] != 0;
    for (const char *at = names; *at; at++) {
        count += *at == ' ';
    }
    return count;
}

/* Where kernels are interpreted, the gate's short form has of a long file only the cases that the
 * commit (RP_DRAW) draws; the night has all of them. */
static bool is_drawn(const char *name, uint32_t count) {
    const char *draw = getenv("RP_DRAW");
    if (!expect_small() || !getenv("RP_SHORT") || !draw || count <= CASES_SHORT) {
        return true;
    }
    char stream[256];
    float value;
    snprintf(stream, sizeof stream, "%s %s", draw, name);
    golden_values(stream, 1, &value); /* in [-1, 1) */
    return (value + 1.0f) / 2.0f * (float)count < (float)CASES_SHORT;
}

void golden_each(const char *stem, void (*run)(const golden_case *golden)) {
    rp_arena arena;
    rp_device *on = golden_device();
    const rp_gemm_choice before = rp_device_gemm(on);
    rp_arena_init(&arena, "golden", 0);
    rp_st_reader *reader = golden_file(&arena, stem);
    const char *names = rp_st_meta(reader, "cases");
    assert_non_null(names);
    const uint32_t count = count_names(names);
    /* CLBlast's kernels are compiled for minutes under emulation, and they are not ours. */
    const int first = getenv("RP_GOLDEN_DIGESTS") ? RP_GEMM_PANEL : RP_GEMM_CLBLAST;
    for (int choice = first; choice <= RP_GEMM_PANEL; choice++) {
        rp_device_choose_gemm(on, (rp_gemm_choice)choice);
        for (const char *at = names; *at; at += *at == ' ') {
            size_t length = strcspn(at, " ");
            char *name;
            expect_ok(rp_arena_text(&arena, at, length, &name));
            const golden_case golden = {reader, name};
            if (is_drawn(name, count) &&
                (!expect_small() || fits_small(&golden, (rp_gemm_choice)choice))) {
                run(&golden);
            }
            at += length;
        }
    }
    rp_device_choose_gemm(on, before);
    rp_st_close(&reader);
    rp_arena_finish(&arena);
}

static void run_forward(layer_rig *rig) {
    expect_ok(rp_layer_forward(&rig->call));
}

static void run_backward(layer_rig *rig) {
    expect_ok(rp_layer_backward(&rig->call));
}

static bool has_dx(const layer_rig *rig, uint32_t input) {
    return !rp_layer_takes_ids(&rig->plan, input);
}

static void draw_gradients(layer_rig *rig) {
    for (uint32_t i = 0; i < rig->layer.input_count; i++) {
        if (has_dx(rig, i)) {
            rig_draw(rig, &rig->dx[i], "before");
        }
    }
    for (uint32_t i = 0; i < rig->plan.param_count; i++) {
        if (rig->call.dparam[i]) {
            rig_draw(rig, &rig->dparam[i], "before");
        }
    }
}

/* A gradient against the file: added to what draw_gradients() left, written, or left alone. */
typedef enum { WRITTEN, ADDED, UNTOUCHED } outcome;

static void check_tensors(layer_rig *rig, const golden_case *golden, const rp_tensor *got,
                          const char *what, outcome expected) {
    size_t count = rp_shape_count(&got->shape);
    const float *values = hash_values(rig, rig_read(rig, got), count);
    float *before;
    expect_ok(RP_ARENA_NEW(&rig->arena, count, &before));
    golden_values("before", count, before);
    if (expected == UNTOUCHED) {
        assert_memory_equal(values, before, count * sizeof(float));
    } else {
        compare_tensors(golden, values, what, expected == ADDED ? before : NULL, count, rig->rel);
    }
}

static void check_gradients(layer_rig *rig, const golden_case *golden, outcome dx, outcome dw) {
    char what[RP_LAYER_NAME_MAX];
    for (uint32_t i = 0; i < rig->layer.input_count; i++) {
        snprintf(what, sizeof what, "dx%u", i);
        if (has_dx(rig, i)) {
            check_tensors(rig, golden, &rig->dx[i], what, dx);
        }
    }
    for (uint32_t i = 0; i < rig->plan.param_count; i++) {
        if (rig->call.dparam[i]) {
            snprintf(what, sizeof what, "d%s", rig->plan.param[i].suffix);
            check_tensors(rig, golden, &rig->dparam[i], what, dw);
        }
    }
}

static void set_call(layer_rig *rig, bool want_dx, bool want_dw, bool add) {
    rig->call.want_dx = want_dx;
    rig->call.want_dw = want_dw;
    rig->call.accumulate = add;
    for (uint32_t i = 0; i < RP_LAYER_INPUTS_MAX; i++) {
        rig->call.dx_add[i] = add;
    }
    draw_gradients(rig);
}

/* y over x, dx over dy. */
static void run_in_place(layer_rig *rig, const golden_case *golden) {
    rp_tensor y = rig->x[0];
    rp_tensor dx = rig->dy;
    y.shape = rig->y.shape;
    dx.shape = rig->x[0].shape;
    rig->call.y = &y;
    rig->call.dx[0] = &dx;
    rig->call.dx_add[0] = false;
    rig->call.accumulate = false;
    rig->call.want_dx = rig->call.want_dw = true;
    run_forward(rig);
    golden_compare(rig, golden, &y, "y", rig->rel);
    run_backward(rig);
    golden_compare(rig, golden, &dx, "dx0", rig->rel);
}

/* Backward of the samples [first, first + n) of what the last forward computed. */
static void backward_part(layer_rig *rig, uint32_t first, uint32_t n) {
    const rp_layer_call whole = rig->call;
    rp_tensor x[RP_LAYER_INPUTS_MAX];
    rp_tensor dx[RP_LAYER_INPUTS_MAX];
    rp_tensor y;
    rp_tensor dy;
    rp_layer_call *call = &rig->call;
    for (uint32_t i = 0; i < rig->layer.input_count; i++) {
        expect_ok(rp_tensor_slice(&rig->x[i], first, n, &x[i]));
        call->x[i] = whole.x[i] ? &x[i] : NULL;
        if (has_dx(rig, i)) {
            expect_ok(rp_tensor_slice(&rig->dx[i], first, n, &dx[i]));
            call->dx[i] = &dx[i];
        }
    }
    expect_ok(rp_tensor_slice(&rig->y, first, n, &y));
    expect_ok(rp_tensor_slice(&rig->dy, first, n, &dy));
    call->y = whole.y ? &y : NULL;
    call->dy = &dy;
    call->n = n;
    call->saved_first = whole.saved_first + first;
    call->sample_first = whole.sample_first + first;
    call->accumulate = first > 0;
    run_backward(rig);
    rig->call = whole;
}

static void run_in_parts(layer_rig *rig, const golden_case *golden) {
    const uint32_t n = rig->call.n;
    set_call(rig, true, true, false);
    backward_part(rig, 0, (n + 2) / 3);
    backward_part(rig, (n + 2) / 3, n - (n + 2) / 3);
    check_gradients(rig, golden, WRITTEN, WRITTEN);
}

/* Gives the digest of all results. */
static uint64_t run_case(const golden_case *golden, uint32_t lead) {
    layer_rig rig;
    golden_open(&rig, golden, lead);
    run_forward(&rig);
    golden_compare(&rig, golden, &rig.y, "y", rig.rel);
    /* Backward may read only what the plan says it reads. */
    if (!rig.plan.needs_y) {
        rig.call.y = NULL;
    }
    for (uint32_t i = 0; i < rig.layer.input_count && !rig.plan.needs_x; i++) {
        rig.call.x[i] = NULL;
    }
    set_call(&rig, true, true, false);
    run_backward(&rig);
    check_gradients(&rig, golden, WRITTEN, WRITTEN);
    set_call(&rig, true, true, true);
    run_backward(&rig);
    check_gradients(&rig, golden, ADDED, ADDED);
    set_call(&rig, true, false, false);
    run_backward(&rig);
    check_gradients(&rig, golden, WRITTEN, UNTOUCHED);
    set_call(&rig, false, true, false);
    run_backward(&rig);
    check_gradients(&rig, golden, UNTOUCHED, WRITTEN);
    if (!rig.plan.whole && rig.call.n > 1) {
        run_in_parts(&rig, golden);
    }
    if (rig.plan.in_place) {
        for (uint32_t i = 0; i < rig.layer.input_count; i++) {
            rig.call.x[i] = &rig.x[i];
        }
        run_in_place(&rig, golden);
    }
    rig_expect_guards(&rig);
    rig_close(&rig);
    return rig.digest;
}

/* To the file that RP_GOLDEN_DIGESTS names, so that two machines can be compared. */
static void note_digest(const char *name, uint64_t digest) {
    const char *path = getenv("RP_GOLDEN_DIGESTS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (path) {
        assert_non_null(file);
        assert_true(fprintf(file, "%s %016" PRIx64 "\n", name, digest) > 0);
        assert_int_equal(fclose(file), 0);
    }
}

void golden_run(const golden_case *golden) {
    const uint64_t whole = run_case(golden, 0);
    note_digest(golden->name, whole);
    if (run_case(golden, LEAD) != whole) {
        print_error("%s: other bits where the tensors do not begin their memory\n", golden->name);
        fail();
    }
}

/* ---- central differences -------------------------------------------------------------------- */

static double loss_of(layer_rig *rig) {
    run_forward(rig);
    const float *y = rig_read(rig, &rig->y);
    const float *dy = rig_read(rig, &rig->dy);
    double loss = 0;
    for (size_t i = 0; i < rp_shape_count(&rig->y.shape); i++) {
        loss += (double)y[i] * (double)dy[i];
    }
    return loss;
}

static void check_differences(layer_rig *rig, rp_tensor *of, const rp_tensor *gradient,
                              const char *what, float h, double tolerance) {
    size_t count = rp_shape_count(&of->shape);
    float *value = rig_read(rig, of);
    const float *want = rig_read(rig, gradient);
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(want[i]));
    }
    size_t samples = expect_small() ? DIFFERENCE_SAMPLES_SMALL : DIFFERENCE_SAMPLES;
    samples = count < samples ? count : samples;
    for (size_t k = 0; k < samples; k++) {
        size_t i = k * count / samples;
        float at = value[i];
        value[i] = at + h;
        rig_write(rig, of, value);
        double above = loss_of(rig);
        value[i] = at - h;
        rig_write(rig, of, value);
        double below = loss_of(rig);
        double step = (double)(at + h) - (double)(at - h);
        value[i] = at;
        expect_close_at((above - below) / step, want[i], 0, tolerance * largest, what, i, __FILE__,
                        __LINE__);
    }
    rig_write(rig, of, value);
}

void golden_differences(const char *keys, uint32_t n, const rp_shape *in, uint32_t input_count,
                        float h, double tolerance) {
    layer_rig rig;
    char name[16];
    rig_open(&rig, "differences", keys, n, in, input_count);
    for (uint32_t i = 0; i < input_count; i++) {
        snprintf(name, sizeof name, "x%u", i);
        rig_draw(&rig, &rig.x[i], name);
    }
    rig_draw(&rig, &rig.dy, "dy");
    for (uint32_t i = 0; i < rig.plan.param_count; i++) {
        rig_draw(&rig, &rig.param[i], rig.plan.param[i].suffix);
    }
    run_forward(&rig);
    run_backward(&rig);
    for (uint32_t i = 0; i < input_count; i++) {
        check_differences(&rig, &rig.x[i], &rig.dx[i], "dx", h, tolerance);
    }
    for (uint32_t i = 0; i < rig.plan.param_count; i++) {
        if (rig.call.dparam[i]) {
            check_differences(&rig, &rig.param[i], &rig.dparam[i], rig.plan.param[i].suffix, h,
                              tolerance);
        }
    }
    rig_close(&rig);
}
