/* The kernels against plain C that says the same with real numbers: doubles and exact powers of 2,
 * where the kernels move bits. */
#include "codec/convert.h"
#include "codec/encode.h"
#include "nn/golden.h"

#include <fenv.h>
#include <math.h>

#include "base/rng.h"

enum { COUNT = 300, SAMPLES = 3, LEAD = 5, ALL = COUNT * SAMPLES, BYTES_MAX = ALL * 4 };

typedef struct {
    rp_arena arena;
    rp_darena *memory;
    rp_buffer *values, *encoded;
    rp_tensor tensor;
} rig;

/* A tensor that begins inside its buffer. */
static void open_it(rig *r, uint32_t samples, uint32_t count) {
    rp_arena_init(&r->arena, "codec", 0);
    expect_ok(rp_darena_open(&r->arena, golden_device(), "codec", 0, 0, &r->memory));
    expect_ok(rp_darena_take(r->memory, (LEAD + ALL) * sizeof(float), &r->values));
    expect_ok(rp_darena_take(r->memory, BYTES_MAX, &r->encoded));
    r->tensor =
        (rp_tensor){.buffer = r->values, .offset = LEAD, .shape = rp_shape_2(samples, count)};
}

static void close_it(rig *r) {
    rp_darena_close(&r->memory);
    rp_arena_finish(&r->arena);
}

/* A host gives the same bytes. */
static void expect_host(const rig *r, rp_codec codec, const float *x, const uint8_t *device) {
    const size_t samples = r->tensor.shape.dim[0];
    const size_t count = r->tensor.shape.dim[1];
    uint8_t host[BYTES_MAX];
    rp_codec_encode_host(codec, x, samples, count, host);
    assert_memory_equal(host, device, samples * rp_codec_bytes(codec, count));
}

static void encode(rig *r, rp_codec codec, const float *x, uint8_t *out) {
    const size_t bytes = r->tensor.shape.dim[0] * rp_codec_bytes(codec, r->tensor.shape.dim[1]);
    expect_ok(rp_tensor_write(golden_device(), &r->tensor, x));
    expect_ok(rp_codec_encode(golden_device(), codec, r->encoded, &r->tensor));
    expect_ok(rp_buffer_read_now(golden_device(), out, r->encoded, 0, bytes));
    if (rp_codec_kept(codec) == 0) { /* hosts send inputs only */
        expect_host(r, codec, x, out);
    }
}

static void decode(rig *r, rp_codec codec, const uint8_t *from, float *out) {
    const size_t bytes = r->tensor.shape.dim[0] * rp_codec_bytes(codec, r->tensor.shape.dim[1]);
    expect_ok(rp_buffer_write_now(golden_device(), r->encoded, 0, from, bytes));
    expect_ok(rp_codec_decode(golden_device(), codec, &r->tensor, r->encoded));
    expect_ok(rp_tensor_read(golden_device(), out, &r->tensor));
    expect_ok(rp_device_drain(golden_device()));
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- f16 and bf16 ---------------------------------------------------------------------------- */

/* The nearest number of so many digits behind the first, whose exponents begin at `least`; by the
 * rounding of the C library, which is to even. */
static double nearest(double x, int digits, int least) {
    const int exponent = x != 0 ? ilogb(x) : least;
    const int unit = (exponent < least ? least : exponent) - digits;
    return ldexp(nearbyint(ldexp(x, -unit)), unit);
}

static double nearest_f16(double x) {
    const double rounded = nearest(x, 10, -14);
    return fabs(rounded) > 65504 ? copysign(INFINITY, x) : rounded;
}

/* Of 16 bits, as IEEE 754 says. */
static double value_of_f16(uint32_t bits) {
    const int exponent = (int)(bits >> 10 & 31);
    const double digits = bits & 0x3ff;
    const double size = exponent == 0    ? ldexp(digits, -24)
                        : exponent == 31 ? (double)INFINITY
                                         : ldexp(1024 + digits, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

/* Every f16 comes back as itself, and decodes to what IEEE 754 says. */
static void every_f16_is_itself(void **state) {
    (void)state;
    rig r;
    open_it(&r, 1, ALL);
    for (uint32_t first = 0; first < 65536; first += ALL) {
        uint16_t in[ALL];
        uint16_t out[ALL];
        float x[ALL];
        for (uint32_t i = 0; i < ALL; i++) {
            in[i] = (uint16_t)(first + i);
        }
        decode(&r, RP_CODEC_F16, (const uint8_t *)in, x);
        encode(&r, RP_CODEC_F16, x, (uint8_t *)out);
        for (uint32_t i = 0; i < ALL; i++) {
            if ((in[i] & 0x7c00) == 0x7c00 && (in[i] & 0x3ff) > 0) {
                assert_true(isnan(x[i]));
                assert_int_equal(out[i] & 0x7fff, 0x7e00);
            } else {
                assert_true((double)x[i] == value_of_f16(in[i]));
                assert_int_equal(out[i], in[i]);
            }
        }
    }
    close_it(&r);
}

/* At ties, one bit beside them, at the ends of the range, and anywhere. */
static float awkward(rp_rng *rng, uint32_t i) {
    static const float ends[] = {0.0f,         -0.0f,           65504.0f,      65519.996f,
                                 65520.0f,     1e30f,           INFINITY,      0x1p-24f,
                                 0x1p-25f,     0x1.000002p-25f, 0x1.8p-24f,    0x1p-14f,
                                 0x1.ffcp-15f, 0x1.ffep-15f,    3.4028235e38f, 0x1p-126f};
    const uint32_t count = sizeof ends / sizeof *ends;
    if (i < 2 * count) {
        return i % 2 ? -ends[i / 2] : ends[i / 2];
    }
    const uint32_t exponent = 127 - 30 + rp_rng_u32(rng) % 50;
    const uint32_t kept = rp_rng_u32(rng) & 0x7f0000;
    const uint32_t tie[] = {
        0x1000, 0x0fff, 0x1001, 0x8000, 0x7fff, 0x8001, rp_rng_u32(rng) & 0x7fffff, 0x3000};
    return float_of((rp_rng_u32(rng) & 1) << 31 | exponent << 23 | (kept + tie[i % 8]));
}

static void rounds_to_nearest(void **state) {
    (void)state;
    rig r;
    float x[ALL];
    uint16_t out[ALL];
    rp_rng rng = rp_rng_named(7, "codec");
    open_it(&r, 1, ALL);
    for (uint32_t i = 0; i < ALL; i++) {
        x[i] = awkward(&rng, i);
    }
    encode(&r, RP_CODEC_F16, x, (uint8_t *)out);
    for (uint32_t i = 0; i < ALL; i++) {
        assert_true(value_of_f16(out[i]) == nearest_f16((double)x[i]));
        assert_int_equal(out[i] >> 15, signbit(x[i]) != 0);
    }
    encode(&r, RP_CODEC_BF16, x, (uint8_t *)out);
    for (uint32_t i = 0; i < ALL; i++) {
        const double wanted = nearest((double)x[i], 7, -126);
        const double got = (double)float_of((uint32_t)out[i] << 16);
        assert_true(isinf(x[i]) ? got == (double)x[i] : got == (double)(float)wanted);
    }
    close_it(&r);
}

static void bf16_decodes_and_keeps_nan(void **state) {
    (void)state;
    rig r;
    const float x[4] = {NAN, float_of(0x7f800001), float_of(0xff800001), 1.0f};
    uint16_t out[4];
    float back[4];
    open_it(&r, 1, 4);
    encode(&r, RP_CODEC_BF16, x, (uint8_t *)out);
    decode(&r, RP_CODEC_BF16, (const uint8_t *)out, back);
    for (int i = 0; i < 3; i++) {
        assert_true(isnan(back[i]));
        assert_int_equal(bits_of(back[i]), (uint32_t)out[i] << 16);
    }
    assert_true(back[3] == 1.0f);
    close_it(&r);
}

/* ---- int8 ------------------------------------------------------------------------------------ */

/* One sample, as codec.h says. */
static void int8_of(const float *x, uint32_t count, uint8_t *out) {
    const uint32_t blocks = (count + RP_CODEC_BLOCK - 1) / RP_CODEC_BLOCK;
    for (uint32_t b = 0; b < blocks; b++) {
        const uint32_t end = (b + 1) * RP_CODEC_BLOCK < count ? (b + 1) * RP_CODEC_BLOCK : count;
        float largest = 0;
        for (uint32_t i = b * RP_CODEC_BLOCK; i < end; i++) {
            largest = isfinite(x[i]) && !(fabsf(x[i]) <= largest) ? fabsf(x[i]) : largest;
            largest = isfinite(x[i]) && isfinite(largest) ? largest : INFINITY;
        }
        const float scale = largest < 0x1p-100f ? 0
                            : isfinite(largest) ? largest * (float)(1.0 / 127)
                                                : float_of(0x7fc00000);
        memcpy(out + sizeof scale * b, &scale, sizeof scale);
        for (uint32_t i = b * RP_CODEC_BLOCK; i < end; i++) {
            /* 24 digits by 24: the quotient is no tie unless it is one */
            const double level = scale > 0 ? nearbyint((double)x[i] / (double)scale) : 0;
            out[sizeof scale * blocks + i] = (uint8_t)(int8_t)level;
        }
    }
}

static void draw(rp_rng *rng, uint32_t samples, uint32_t count, float *x) {
    for (uint32_t i = 0; i < samples * count; i++) {
        const int size = (int)(rp_rng_u32(rng) % 12) - 8;
        x[i] = ldexpf((float)(int32_t)rp_rng_u32(rng) * 0x1p-31f, size);
    }
}

static void int8_is_what_it_says(void **state) {
    (void)state;
    static const uint32_t counts[] = {1, 2, 127, 128, 129, 256, 300};
    rp_rng rng = rp_rng_named(11, "codec");
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const uint32_t count = counts[c];
        const size_t bytes = rp_codec_bytes(RP_CODEC_INT8, count);
        float x[ALL];
        float back[ALL];
        uint8_t wanted[BYTES_MAX];
        uint8_t out[BYTES_MAX];
        rig r;
        open_it(&r, SAMPLES, count);
        draw(&rng, SAMPLES, count, x);
        encode(&r, RP_CODEC_INT8, x, out);
        for (uint32_t s = 0; s < SAMPLES; s++) {
            int8_of(x + (size_t)s * count, count, wanted + s * bytes);
        }
        assert_memory_equal(out, wanted, SAMPLES * bytes);
        decode(&r, RP_CODEC_INT8, out, back);
        for (uint32_t i = 0; i < SAMPLES * count; i++) {
            const uint32_t s = i / count;
            const uint32_t block = i % count / RP_CODEC_BLOCK;
            float scale;
            memcpy(&scale, out + s * bytes + block * sizeof scale, sizeof scale);
            assert_true(fabs((double)back[i] - (double)x[i]) <= 0.5001 * (double)scale);
        }
        close_it(&r);
    }
}

/* Ties go to even; the authors' codes lose the positive end, this one keeps both. */
static void int8_ties_and_ends(void **state) {
    (void)state;
    float x[RP_CODEC_BLOCK] = {127, -127, 0.5f, 1.5f, -0.5f, -1.5f, 2.5f, 126.5f, 125.5f};
    uint8_t out[RP_CODEC_BLOCK + sizeof(float)];
    float back[RP_CODEC_BLOCK];
    static const int8_t levels[] = {127, -127, 0, 2, 0, -2, 2, 126, 126, 0};
    rig r;
    open_it(&r, 1, RP_CODEC_BLOCK);
    encode(&r, RP_CODEC_INT8, x, out);
    float scale;
    memcpy(&scale, out, sizeof scale);
    assert_true(scale == 1.0f);
    assert_memory_equal(out + sizeof scale, levels, sizeof levels);
    decode(&r, RP_CODEC_INT8, out, back);
    assert_true(back[0] == 127.0f && back[1] == -127.0f);
    for (uint32_t i = 0; i < RP_CODEC_BLOCK; i++) { /* an end that is no whole number */
        x[i] = i % 2 ? -0.3f : 0.3f;
    }
    encode(&r, RP_CODEC_INT8, x, out);
    decode(&r, RP_CODEC_INT8, out, back);
    for (uint32_t i = 0; i < RP_CODEC_BLOCK; i++) {
        assert_true(fabsf(back[i] - x[i]) <= 0x1p-24f);
    }
    close_it(&r);
}

/* What is not finite is seen at the other end; what is next to nothing is nothing. */
static void int8_of_what_is_no_number(void **state) {
    (void)state;
    float x[ALL];
    float back[ALL];
    uint8_t out[BYTES_MAX];
    rig r;
    open_it(&r, SAMPLES, COUNT);
    for (uint32_t i = 0; i < ALL; i++) {
        x[i] = i < COUNT ? 0x1p-101f : 1.0f;
    }
    x[COUNT + 130] = NAN;           /* sample 1, block 1 */
    x[2 * COUNT + 299] = -INFINITY; /* sample 2, block 2 */
    encode(&r, RP_CODEC_INT8, x, out);
    decode(&r, RP_CODEC_INT8, out, back);
    for (uint32_t i = 0; i < ALL; i++) {
        const uint32_t block = i % COUNT / RP_CODEC_BLOCK;
        const bool lost = (i / COUNT == 1 && block == 1) || (i / COUNT == 2 && block == 2);
        assert_true(lost ? isnan(back[i]) : back[i] == (i < COUNT ? 0.0f : 1.0f));
    }
    close_it(&r);
}

/* ---- int4 ------------------------------------------------------------------------------------ */

/* A tile as codec.h says, in doubles, by the matrix itself. */
typedef struct {
    double base, step, turned[RP_CODEC_TILE];
    uint32_t flag;
    uint8_t level[RP_CODEC_TILE];
} tile;

static double bf16_at(const uint8_t *at) {
    return (double)float_of(((uint32_t)at[0] | (uint32_t)at[1] << 8) << 16);
}

static void multiply(const double *v, double *out) {
    for (uint32_t i = 0; i < RP_CODEC_TILE; i++) {
        out[i] = 0;
        for (uint32_t j = 0; j < RP_CODEC_TILE; j++) {
            out[i] += __builtin_parity(i & j) ? -v[j] / 8 : v[j] / 8;
        }
    }
}

static uint32_t tile_size(uint32_t count, uint32_t t) {
    const uint32_t rest = count - t * RP_CODEC_TILE;
    return rest < RP_CODEC_TILE ? rest : RP_CODEC_TILE;
}

static tile tile_of(const uint8_t *row, uint32_t count, uint32_t t) {
    const uint32_t tiles = (count + RP_CODEC_TILE - 1) / RP_CODEC_TILE;
    const uint8_t *head = row + (size_t)t * RP_CODEC_TILE_HEAD;
    const uint8_t *levels = row + (size_t)tiles * RP_CODEC_TILE_HEAD;
    tile out = {.base = bf16_at(head), .step = bf16_at(head + 2), .flag = head[4]};
    for (uint32_t i = 0; i < tile_size(count, t); i++) {
        const uint32_t at = t * RP_CODEC_TILE + i;
        out.level[i] = (uint8_t)(levels[at / 2] >> (at % 2 * 4) & 15);
    }
    return out;
}

/* What it decodes to. */
static void values_of(const tile *of, uint32_t own, double *out) {
    double v[RP_CODEC_TILE];
    for (uint32_t i = 0; i < own; i++) {
        v[i] = of->base + of->level[i] * of->step;
    }
    memcpy(out, v, own * sizeof *v);
    if (of->flag) {
        const uint32_t place = of->flag - 128;
        multiply(v, out);
        const double first = out[0];
        out[0] = out[place];
        out[place] = first;
    }
}

/* What its levels stand for, and the range of the same without the transform, or with it. */
static void expect_levels(const tile *of, const float *x, uint32_t own) {
    double v[RP_CODEC_TILE];
    double turned[RP_CODEC_TILE];
    uint32_t place = 0;
    for (uint32_t i = 0; i < own; i++) {
        v[i] = (double)x[i];
        place = fabs(v[i]) > fabs(v[place]) ? i : place;
    }
    if (own == RP_CODEC_TILE) {
        v[place] = (double)x[0];
        v[0] = (double)x[place];
        multiply(v, turned);
        v[0] = (double)x[0];
        v[place] = (double)x[place];
    }
    const double *taken = of->flag ? turned : v;
    double least[2] = {INFINITY, INFINITY};
    double most[2] = {-INFINITY, -INFINITY};
    for (uint32_t i = 0; i < own; i++) {
        assert_true(fabs(of->base + of->level[i] * of->step - taken[i]) <= 0.501 * of->step);
        least[0] = fmin(least[0], v[i]);
        most[0] = fmax(most[0], v[i]);
        least[1] = own == RP_CODEC_TILE ? fmin(least[1], turned[i]) : 0;
        most[1] = own == RP_CODEC_TILE ? fmax(most[1], turned[i]) : 0;
    }
    assert_true(of->flag == 0 || (own == RP_CODEC_TILE && of->flag == 128 + place));
    const double smaller =
        own == RP_CODEC_TILE ? fmin(most[0] - least[0], most[1] - least[1]) : most[0] - least[0];
    const double size = fmax(fabs(least[of->flag > 0]), fabs(most[of->flag > 0]));
    assert_true(15 * of->step <= smaller * (1 + 0x1p-6) + size * 0x1p-6);
}

/* Sample 0 is even, and needs no transform; in others some tiles have an element that stands out.
 */
static void draw_tiles(rp_rng *rng, uint32_t samples, uint32_t count, float *x) {
    draw(rng, samples, count, x);
    for (uint32_t i = 0; i < count; i++) {
        x[i] = (float)(int32_t)rp_rng_u32(rng) * 0x1p-31f;
    }
    for (uint32_t i = count; i < samples * count; i += 1 + rp_rng_u32(rng) % 200) {
        x[i] *= 1000;
    }
}

static void int4_is_what_it_says(void **state) {
    (void)state;
    static const uint32_t counts[] = {1, 2, 63, 64, 65, 127, 128, 191, 300};
    rp_rng rng = rp_rng_named(19, "codec");
    uint32_t turned = 0;
    uint32_t whole = 0;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const uint32_t count = counts[c];
        const size_t bytes = rp_codec_bytes(RP_CODEC_INT4, count);
        float x[ALL];
        float back[ALL];
        uint8_t out[BYTES_MAX];
        rig r;
        open_it(&r, SAMPLES, count);
        draw_tiles(&rng, SAMPLES, count, x);
        encode(&r, RP_CODEC_INT4, x, out);
        decode(&r, RP_CODEC_INT4, out, back);
        for (uint32_t i = 0; i < SAMPLES * ((count + 63) / 64); i++) {
            const uint32_t s = i / ((count + 63) / 64);
            const uint32_t t = i % ((count + 63) / 64);
            const uint32_t own = tile_size(count, t);
            const size_t at = (size_t)s * count + (size_t)t * RP_CODEC_TILE;
            const tile is = tile_of(out + s * bytes, count, t);
            double values[RP_CODEC_TILE];
            expect_levels(&is, x + at, own);
            values_of(&is, own, values);
            for (uint32_t j = 0; j < own; j++) {
                assert_true(fabs((double)back[at + j] - values[j]) <=
                            0x1p-20 * (fabs(is.base) * 8 + is.step));
            }
            whole += own == RP_CODEC_TILE;
            turned += is.flag > 0;
        }
        close_it(&r);
    }
    assert_true(turned > 0 && turned < whole);
}

/* Of 63 small elements and a large one nearly all comes back, wherever it stands; without the
 * transform the others would be lost. */
static void int4_keeps_small_beside_large(void **state) {
    (void)state;
    for (uint32_t place = 0; place < RP_CODEC_TILE; place += 9) {
        float x[RP_CODEC_TILE];
        float back[RP_CODEC_TILE];
        uint8_t out[RP_CODEC_TILE];
        double lost = 0;
        double all = 0;
        rig r;
        open_it(&r, 1, RP_CODEC_TILE);
        for (uint32_t i = 0; i < RP_CODEC_TILE; i++) {
            x[i] = i == place ? -100.0f : (float)(i * 37 % 64) / 64.0f - 0.5f;
        }
        encode(&r, RP_CODEC_INT4, x, out);
        assert_int_equal(out[4], 128 + place);
        decode(&r, RP_CODEC_INT4, out, back);
        assert_true(fabsf(back[place] - x[place]) < 0.5f);
        for (uint32_t i = 0; i < RP_CODEC_TILE; i++) {
            const double rest = (double)back[i] - (double)x[i];
            lost += i == place ? 0 : rest * rest;
            all += i == place ? 0 : (double)x[i] * (double)x[i];
        }
        assert_true(sqrt(lost / all) < 0.25);
        close_it(&r);
    }
}

/* The bytes of one tile and a rest, which change only with the codec's number. */
static void int4_bytes_stay(void **state) {
    (void)state;
    static const uint8_t golden[] = {
        0x1d, 0x40, 0x1d, 0x3f, 0x85, 0x30, 0xbf, 0x23, 0x3e, 0x00, 0x6f, 0x44, 0x34, 0x37, 0xb4,
        0x73, 0xa4, 0x04, 0x42, 0x43, 0x37, 0x34, 0x73, 0x43, 0x04, 0x34, 0x44, 0x43, 0x37, 0x34,
        0x73, 0x43, 0x04, 0x34, 0x43, 0x47, 0x34, 0x30, 0x43, 0x03, 0x34, 0x74, 0x0f, 0x0b};
    enum { GOLDEN = RP_CODEC_TILE + 3 };
    float x[GOLDEN];
    uint8_t out[sizeof golden];
    rig r;
    assert_int_equal(sizeof golden, rp_codec_bytes(RP_CODEC_INT4, GOLDEN));
    open_it(&r, 1, GOLDEN);
    for (uint32_t i = 0; i < GOLDEN; i++) {
        x[i] = i == 5 ? 40.0f : (float)((int32_t)(i * 29 % 67) - 20) / 16.0f;
    }
    encode(&r, RP_CODEC_INT4, x, out);
    for (size_t i = 0; i < sizeof out; i++) {
        assert_int_equal(out[i], golden[i]);
    }
    close_it(&r);
}

/* What is not finite, or wider than an f32, is seen at the other end; what is next to nothing is
 * nothing; what is all the same comes back. */
static void int4_of_what_is_no_number(void **state) {
    (void)state;
    float x[ALL];
    float back[ALL];
    uint8_t out[BYTES_MAX];
    rig r;
    open_it(&r, SAMPLES, COUNT);
    for (uint32_t i = 0; i < ALL; i++) {
        x[i] = i < COUNT ? -0x1p-101f : 1.0f;
    }
    x[7] = float_of(1);
    x[COUNT + 70] = NAN;            /* sample 1, tile 1 */
    x[2 * COUNT + 299] = -INFINITY; /* sample 2, tile 4, which is not whole */
    x[2 * COUNT] = 3e38f;           /* sample 2, tile 0 */
    x[2 * COUNT + 1] = -3e38f;
    encode(&r, RP_CODEC_INT4, x, out);
    decode(&r, RP_CODEC_INT4, out, back);
    for (uint32_t i = 0; i < ALL; i++) {
        const uint32_t t = i % COUNT / RP_CODEC_TILE;
        const bool lost = (i / COUNT == 1 && t == 1) || (i / COUNT == 2 && (t == 4 || t == 0));
        assert_true(lost ? isnan(back[i]) : back[i] == (i < COUNT ? 0.0f : 1.0f));
    }
    close_it(&r);
}

/* ---- top-k ----------------------------------------------------------------------------------- */

/* As a list that is sorted by size, then by place. */
static const float *sorted_by;

static int by_size(const void *one, const void *other) {
    const uint32_t i = *(const uint32_t *)one;
    const uint32_t j = *(const uint32_t *)other;
    const uint32_t a = bits_of(sorted_by[i]) & 0x7fffffff;
    const uint32_t b = bits_of(sorted_by[j]) & 0x7fffffff;
    return a != b ? (a > b ? -1 : 1) : (i > j) - (i < j);
}

/* What a block decodes to. */
static uint32_t keep_largest(const float *x, uint32_t own, uint32_t per_mille, float *out) {
    uint32_t order[RP_CODEC_KEPT_BLOCK];
    const uint32_t kept = (uint32_t)ceil(own * per_mille / 1000.0);
    for (uint32_t i = 0; i < own; i++) {
        order[i] = i;
        out[i] = 0;
    }
    sorted_by = x;
    qsort(order, own, sizeof *order, by_size);
    for (uint32_t i = 0; i < kept; i++) {
        const float v = x[order[i]];
        out[order[i]] = isfinite(v) ? (float)nearest((double)v, 7, -126) : v;
    }
    return kept;
}

static void topk_is_what_it_says(void **state) {
    (void)state;
    static const uint32_t counts[] = {1, 9, 255, 256, 257, 300};
    static const uint32_t shares[] = {100, 30, 10};
    rp_rng rng = rp_rng_named(19, "codec");
    for (size_t c = 0; c < 3 * sizeof counts / sizeof *counts; c++) {
        const rp_codec codec = (rp_codec)(RP_CODEC_TOPK_100 + c % 3);
        const uint32_t count = counts[c / 3];
        float x[ALL];
        float back[ALL];
        uint8_t out[BYTES_MAX];
        rig r;
        open_it(&r, SAMPLES, count);
        draw(&rng, SAMPLES, count, x);
        for (uint32_t i = 0; i < count; i++) { /* sample 0 has many of the same size, and zeros */
            x[i] = ((float)(i * 7 % 5) - 2) * 0.3f;
        }
        encode(&r, codec, x, out);
        decode(&r, codec, out, back);
        for (uint32_t first = 0; first < SAMPLES * count;) {
            const uint32_t rest = count - first % count;
            const uint32_t own = rest < RP_CODEC_KEPT_BLOCK ? rest : RP_CODEC_KEPT_BLOCK;
            float wanted[RP_CODEC_KEPT_BLOCK];
            (void)keep_largest(x + first, own, shares[c % 3], wanted);
            assert_memory_equal(back + first, wanted, own * sizeof *wanted);
            first += own;
        }
        close_it(&r);
    }
}

/* The bytes of a block and a rest, as a few lines of Python sort them: those that stand out in any
 * way, and of many that are equal the first. */
static void topk_bytes_stay(void **state) {
    (void)state;
    static const uint8_t golden[] = {0,   200, 192, 7,   128, 127, 30,  200, 64,  101,
                                     200, 192, 131, 200, 64,  202, 200, 192, 232, 200,
                                     64,  255, 200, 194, 6,   196, 64,  17,  196, 192};
    float x[COUNT];
    uint8_t out[sizeof golden];
    rig r;
    assert_int_equal(sizeof golden, rp_codec_bytes(RP_CODEC_TOPK_30, COUNT));
    open_it(&r, 1, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = (float)((int32_t)(i * 37 % 101) - 50) / 8.0f;
    }
    x[7] = INFINITY;
    x[255] = -100.0625f;
    x[256] = 1e-40f;
    encode(&r, RP_CODEC_TOPK_30, x, out);
    assert_memory_equal(out, golden, sizeof golden);
    close_it(&r);
}

/* What is no number is kept; places that do not ascend, or lie outside, are none of a block's. */
static void topk_of_what_is_no_number(void **state) {
    (void)state;
    static const struct {
        uint8_t first, second, rest; /* places: two of the first block's three, and of the rest */
        bool lost[2];
    } cases[] = {{0, 1, 43, {false, false}}, {0, 0, 0, {true, false}},  {4, 3, 0, {true, false}},
                 {0, 200, 0, {true, false}}, {0, 1, 44, {false, true}}, {9, 9, 255, {true, true}}};
    float x[COUNT];
    float back[COUNT];
    uint8_t out[BYTES_MAX];
    rig r;
    open_it(&r, 1, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = 1e30f;
    }
    x[200] = NAN;
    x[299] = -INFINITY;
    encode(&r, RP_CODEC_TOPK_10, x, out);
    decode(&r, RP_CODEC_TOPK_10, out, back);
    assert_true(isnan(back[200]) && back[299] == -INFINITY && back[0] > 0 && back[2] == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        out[0] = cases[i].first;
        out[3] = cases[i].second;
        out[9] = cases[i].rest;
        decode(&r, RP_CODEC_TOPK_10, out, back);
        for (uint32_t k = 0; k < COUNT; k++) {
            const bool is_lost = cases[i].lost[k / RP_CODEC_KEPT_BLOCK];
            assert_int_equal(isnan(back[k]) != 0, is_lost || k == 200);
        }
    }
    close_it(&r);
}

/* Any bytes decode to something, inside the tensor. */
static void any_bytes_decode(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(13, "codec");
    for (int codec = RP_CODEC_F16; codec < RP_CODECS; codec++) {
        const float guard = 7;
        if (codec == RP_CODEC_UINT8) {
            continue; /* of inputs: test_pixels */
        }
        uint8_t bytes[BYTES_MAX];
        float back[ALL];
        float before[LEAD];
        rig r;
        open_it(&r, 2, COUNT);
        for (size_t i = 0; i < BYTES_MAX; i++) {
            bytes[i] = (uint8_t)rp_rng_u32(&rng);
        }
        for (uint32_t i = 0; i < LEAD; i++) {
            expect_ok(rp_buffer_write_now(golden_device(), r.values, i * sizeof guard, &guard,
                                          sizeof guard));
        }
        expect_ok(rp_buffer_write_now(golden_device(), r.values, (LEAD + 2 * COUNT) * sizeof guard,
                                      &guard, sizeof guard));
        decode(&r, (rp_codec)codec, bytes, back);
        expect_ok(rp_buffer_read_now(golden_device(), before, r.values, 0, sizeof before));
        assert_true(before[0] == guard && before[LEAD - 1] == guard);
        expect_ok(rp_buffer_read_now(golden_device(), before, r.values,
                                     (LEAD + 2 * COUNT) * sizeof guard, sizeof guard));
        assert_true(before[0] == guard);
        close_it(&r);
    }
}

/* Against sums in doubles. What was no number says nothing; what has become infinite is lost. */
static void losses_are_summed(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(17, "codec");
    float x[COUNT];
    float back[COUNT];
    float sums[3][RP_CODEC_LOSS_FLOATS];
    double lost = 0;
    double all = 0;
    rig r;
    open_it(&r, 1, COUNT);
    draw(&rng, 1, COUNT, x);
    for (uint32_t i = 0; i < COUNT; i++) {
        back[i] = x[i] * (i % 3 ? 0.875f : 1.0625f);
        const double rest = (double)back[i] - (double)x[i];
        lost += i > 3 ? rest * rest : 0;
        all += i > 3 ? (double)x[i] * (double)x[i] : 0;
    }
    x[0] = NAN;
    x[1] = back[1] = -INFINITY;
    back[2] = NAN;
    x[3] = 2;
    back[3] = INFINITY;
    const rp_tensor there = {.buffer = r.encoded, .shape = r.tensor.shape};
    expect_ok(rp_tensor_write(golden_device(), &r.tensor, x));
    expect_ok(rp_tensor_write(golden_device(), &there, back));
    rp_buffer *to;
    expect_ok(rp_darena_take(r.memory, sizeof sums, &to));
    expect_ok(rp_buffer_fill_zero(golden_device(), to, 0, sizeof sums));
    for (int twice = 0; twice < 2; twice++) {
        expect_ok(rp_codec_add_loss(golden_device(), to, 1, &there, &r.tensor));
    }
    expect_ok(rp_buffer_read_now(golden_device(), sums, to, 0, sizeof sums));
    const rp_codec_loss loss = rp_codec_sum_loss(sums[1]);
    expect_close(loss.lost, 2 * (lost + 4), 1e-5, 0);
    expect_close(loss.all, 2 * (all + 4), 1e-5, 0);
    assert_true(rp_codec_sum_loss(sums[0]).all == 0 && rp_codec_sum_loss(sums[2]).all == 0);
    const rp_tensor other = {.buffer = r.encoded, .shape = rp_shape_2(1, COUNT - 1)};
    expect_err(rp_codec_add_loss(golden_device(), to, 1, &other, &r.tensor), RP_ERR_SHAPE);
    close_it(&r);
}

static void sizes_are_checked(void **state) {
    (void)state;
    rig r;
    open_it(&r, SAMPLES, COUNT);
    rp_buffer *small;
    expect_ok(rp_darena_take(r.memory, SAMPLES * rp_codec_bytes(RP_CODEC_INT8, COUNT) - 1, &small));
    expect_err(rp_codec_encode(golden_device(), RP_CODEC_INT8, small, &r.tensor), RP_ERR_SHAPE);
    expect_err(rp_codec_decode(golden_device(), RP_CODEC_INT8, &r.tensor, small), RP_ERR_SHAPE);
    r.tensor.offset = LEAD + 1;
    expect_err(rp_codec_encode(golden_device(), RP_CODEC_F16, r.encoded, &r.tensor), RP_ERR_SHAPE);
    close_it(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_is_itself),
        cmocka_unit_test(rounds_to_nearest),
        cmocka_unit_test(bf16_decodes_and_keeps_nan),
        cmocka_unit_test(int8_is_what_it_says),
        cmocka_unit_test(int8_ties_and_ends),
        cmocka_unit_test(int8_of_what_is_no_number),
        cmocka_unit_test(int4_is_what_it_says),
        cmocka_unit_test(int4_keeps_small_beside_large),
        cmocka_unit_test(int4_bytes_stay),
        cmocka_unit_test(int4_of_what_is_no_number),
        cmocka_unit_test(topk_is_what_it_says),
        cmocka_unit_test(topk_bytes_stay),
        cmocka_unit_test(topk_of_what_is_no_number),
        cmocka_unit_test(any_bytes_decode),
        cmocka_unit_test(losses_are_summed),
        cmocka_unit_test(sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
