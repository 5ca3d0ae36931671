/* Inputs as bytes: what a device makes of them has the bits of a host that normalises. */
#include "codec/convert.h"
#include "codec/encode.h"
#include "codec/pixels.h"
#include "nn/golden.h"

enum { GROUPS = 3, WIDTH = 100, SAMPLES = 2, COUNT = GROUPS * WIDTH, ALL = SAMPLES * COUNT };
enum { LEAD = 5 };

static const rp_pixel_norm norm = {
    .groups = GROUPS, .mean = {0.4914f, 0, -3.7f}, .deviation = {0.2023f, 1, 1e-6f}};

typedef struct {
    rp_arena arena;
    rp_darena *memory;
    rp_buffer *floats, *bytes, *values;
    rp_tensor tensor;
} rig;

static void open_it(rig *r) {
    float value[GROUPS * RP_PIXEL_LEVELS];
    rp_arena_init(&r->arena, "pixels", 0);
    expect_ok(rp_darena_open(&r->arena, golden_device(), "pixels", 0, 0, &r->memory));
    expect_ok(rp_darena_take(r->memory, (LEAD + ALL) * sizeof(float), &r->floats));
    expect_ok(rp_darena_take(r->memory, ALL, &r->bytes));
    expect_ok(rp_darena_take(r->memory, sizeof value, &r->values));
    rp_pixel_values(&norm, value);
    expect_ok(rp_buffer_write_now(golden_device(), r->values, 0, value, sizeof value));
    r->tensor =
        (rp_tensor){.buffer = r->floats, .offset = LEAD, .shape = rp_shape_2(SAMPLES, COUNT)};
}

static void close_it(rig *r) {
    rp_darena_close(&r->memory);
    rp_arena_finish(&r->arena);
}

/* One step after the other, each rounded: volatile keeps a compiler from joining them. */
static float as_a_host(uint8_t byte, uint32_t group) {
    volatile float x = (float)byte / 255.0f;
    x = x - norm.mean[group];
    x = x / norm.deviation[group];
    return x;
}

static void a_device_gives_the_bits_of_a_host(void **state) {
    (void)state;
    rig r;
    uint8_t byte[ALL];
    float out[ALL];
    float want[ALL];
    open_it(&r);
    for (uint32_t i = 0; i < ALL; i++) {
        byte[i] = (uint8_t)(i % COUNT * 2 + i / COUNT);
        want[i] = as_a_host(byte[i], i % COUNT / WIDTH);
    }
    expect_ok(rp_buffer_write_now(golden_device(), r.bytes, 0, byte, sizeof byte));
    expect_ok(rp_pixels_decode(golden_device(), &r.tensor, r.bytes, r.values, GROUPS));
    expect_ok(rp_tensor_read(golden_device(), out, &r.tensor));
    expect_ok(rp_device_drain(golden_device()));
    assert_memory_equal(out, want, sizeof out);
    close_it(&r);
}

static void all_values(void **state) {
    (void)state;
    float value[GROUPS * RP_PIXEL_LEVELS];
    rp_pixel_values(&norm, value);
    for (uint32_t i = 0; i < GROUPS * RP_PIXEL_LEVELS; i++) {
        const float want = as_a_host((uint8_t)(i % RP_PIXEL_LEVELS), i / RP_PIXEL_LEVELS);
        assert_memory_equal(&value[i], &want, sizeof want);
    }
}

static void a_host_sends_the_bytes_of_the_set(void **state) {
    (void)state;
    float x[256];
    uint8_t out[256];
    for (uint32_t b = 0; b < 256; b++) {
        x[b] = (float)b / 255.0f;
    }
    rp_codec_encode_host(RP_CODEC_UINT8, x, 2, 128, out);
    for (uint32_t b = 0; b < 256; b++) {
        assert_int_equal(out[b], b);
    }
}

static void sizes_are_checked(void **state) {
    (void)state;
    rig r;
    open_it(&r);
    expect_err(rp_pixels_decode(golden_device(), &r.tensor, r.bytes, r.values, 0), RP_ERR_SHAPE);
    expect_err(rp_pixels_decode(golden_device(), &r.tensor, r.bytes, r.values, 7), RP_ERR_SHAPE);
    expect_err(rp_pixels_decode(golden_device(), &r.tensor, r.bytes, r.values, 4), RP_ERR_SHAPE);
    r.tensor.offset++;
    expect_err(rp_pixels_decode(golden_device(), &r.tensor, r.bytes, r.values, 3), RP_ERR_SHAPE);
    r.tensor.offset--;
    r.tensor.shape = rp_shape_2(SAMPLES - 1, COUNT);
    rp_buffer *small;
    expect_ok(rp_darena_take(r.memory, COUNT - 1, &small));
    expect_err(rp_pixels_decode(golden_device(), &r.tensor, small, r.values, 3), RP_ERR_SHAPE);
    close_it(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_gives_the_bits_of_a_host),
        cmocka_unit_test(all_values),
        cmocka_unit_test(a_host_sends_the_bytes_of_the_set),
        cmocka_unit_test(sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
