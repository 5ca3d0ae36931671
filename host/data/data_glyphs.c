#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "data/data.h"
#include "data/pixels.h"

enum {
    CLASSES = 10,
    POINTS_MAX = 40,
    SIDE_MIN = 12,
    SIDE_MAX = 128,
    COUNT_MAX = 1000 * 1000,
    NOISE_BLOCK = 64 /* block of the random stream where noise begins, after all numbers before */
};

static const float pi = 3.14159265f;

/* Points joined by lines, except into a point with `lift`. */
typedef struct {
    float x[POINTS_MAX], y[POINTS_MAX];
    bool lift[POINTS_MAX];
    uint32_t count;
} strokes;

typedef struct {
    uint8_t *pixels[2];
    uint32_t side;
} own;

typedef struct {
    uint32_t side;
    float *ink; /* side * side, 0 to 1 */
} canvas;

static float uniform_between(rp_rng *rng, float low, float high) {
    return low + (high - low) * rp_rng_uniform(rng);
}

static void add_point(strokes *s, float x, float y, bool lift) {
    RP_ASSERT(s->count < POINTS_MAX);
    s->x[s->count] = x;
    s->y[s->count] = y;
    s->lift[s->count++] = lift;
}

/* Adds corners from a table of x, y; 9 lifts the pen before the next corner. */
static void add_corners(strokes *s, const float *corners, uint32_t numbers) {
    bool lift = true;
    for (uint32_t i = 0; i + 1 < numbers; i += 2) {
        if (corners[i] > 8.0f) {
            lift = true;
            i--;
            continue;
        }
        add_point(s, corners[i], corners[i + 1], lift);
        lift = false;
    }
}

static void add_turn(strokes *s, uint32_t points, float turns, float radius_first,
                     float radius_last) {
    for (uint32_t i = 0; i <= points; i++) {
        const float share = (float)i / (float)points;
        const float radius = radius_first + (radius_last - radius_first) * share;
        const float angle = 2.0f * pi * turns * share;
        add_point(s, radius * cosf(angle), radius * sinf(angle), i == 0);
    }
}

static void add_wave(strokes *s) {
    for (uint32_t i = 0; i <= 20; i++) {
        const float x = (float)i / 10.0f - 1.0f;
        add_point(s, x, 0.6f * sinf(1.5f * pi * x), i == 0);
    }
}

static void add_shape(uint32_t class, strokes *s) {
    static const float triangle[] = {0, -1, 0.95f, 0.75f, -0.95f, 0.75f, 0, -1};
    static const float square[] = {-0.8f, -0.8f, 0.8f, -0.8f, 0.8f,
                                   0.8f,  -0.8f, 0.8f, -0.8f, -0.8f};
    static const float cross[] = {0, -1, 0, 1, 9, -1, 0, 1, 0};
    static const float star[] = {0,     -1,     0.59f,  0.81f, -0.95f, -0.31f,
                                 0.95f, -0.31f, -0.59f, 0.81f, 0,      -1};
    static const float arrow[] = {-1, 0, 1, 0, 9, 0.3f, -0.7f, 1, 0, 0.3f, 0.7f};
    static const float hourglass[] = {-0.8f, -0.9f, 0.8f, -0.9f, -0.8f,
                                      0.9f,  0.8f,  0.9f, -0.8f, -0.9f};
    static const float house[] = {-0.75f, 0.9f, 0.75f,  0.9f,   0.75f,  -0.15f,
                                  0,      -1,   -0.75f, -0.15f, -0.75f, 0.9f};
    static const struct {
        const float *corners;
        uint32_t numbers;
    } drawn[] = {{triangle, 8}, {square, 10},    {cross, 9}, {star, 12},
                 {arrow, 11},   {hourglass, 10}, {house, 12}};
    s->count = 0;
    if (class < sizeof drawn / sizeof *drawn) {
        add_corners(s, drawn[class].corners, drawn[class].numbers);
    } else if (class == 7) {
        add_turn(s, 24, 1.0f, 0.9f, 0.9f); /* ring */
    } else if (class == 8) {
        add_turn(s, 32, 2.0f, 0.1f, 1.0f); /* spiral */
    } else {
        add_wave(s);
    }
}

/* Puts ink along the line from a to b: full inside `radius`, fading over one pixel. */
static void draw_line(canvas *to, float ax, float ay, float bx, float by, float radius,
                      float strength) {
    const float reach = radius + 1.0f;
    const float last = (float)(to->side - 1);
    const int x0 = (int)fmaxf(0.0f, floorf(fminf(ax, bx) - reach));
    const int x1 = (int)fminf(last, ceilf(fmaxf(ax, bx) + reach));
    const int y0 = (int)fmaxf(0.0f, floorf(fminf(ay, by) - reach));
    const int y1 = (int)fminf(last, ceilf(fmaxf(ay, by) + reach));
    const float dx = bx - ax;
    const float dy = by - ay;
    const float length2 = dx * dx + dy * dy;
    for (int y = y0; y <= y1; y++) {
        for (int x = x0; x <= x1; x++) {
            const float px = (float)x - ax;
            const float py = (float)y - ay;
            float t = length2 > 0.0f ? (px * dx + py * dy) / length2 : 0.0f;
            t = t < 0.0f ? 0.0f : t > 1.0f ? 1.0f : t;
            const float ex = px - t * dx;
            const float ey = py - t * dy;
            float cover = radius + 0.5f - sqrtf(ex * ex + ey * ey);
            cover = cover > 1.0f ? strength : cover * strength;
            float *ink = &to->ink[(uint32_t)y * to->side + (uint32_t)x];
            *ink = cover > *ink ? cover : *ink;
        }
    }
}

/* Draws the class's strokes with jitter, rotation, scale, shear and shift. */
static void draw_glyph(canvas *to, uint32_t class, rp_rng *rng) {
    strokes s;
    add_shape(class, &s);
    const float middle = (float)(to->side - 1) / 2.0f;
    const float unit = (float)to->side / 28.0f;
    const float angle = uniform_between(rng, -0.45f, 0.45f);
    const float scale_x = uniform_between(rng, 6.0f, 11.0f) * unit;
    const float scale_y = scale_x * uniform_between(rng, 0.8f, 1.25f);
    const float shear = uniform_between(rng, -0.25f, 0.25f);
    const float move_x = middle + uniform_between(rng, -3.0f, 3.0f) * unit;
    const float move_y = middle + uniform_between(rng, -3.0f, 3.0f) * unit;
    const float radius = uniform_between(rng, 0.4f, 1.3f) * unit;
    for (uint32_t i = 0; i < s.count; i++) {
        const float x = scale_x * (s.x[i] + uniform_between(rng, -0.07f, 0.07f) + shear * s.y[i]);
        const float y = scale_y * (s.y[i] + uniform_between(rng, -0.07f, 0.07f));
        s.x[i] = move_x + cosf(angle) * x - sinf(angle) * y;
        s.y[i] = move_y + sinf(angle) * x + cosf(angle) * y;
    }
    for (uint32_t i = 1; i < s.count; i++) {
        if (!s.lift[i]) {
            draw_line(to, s.x[i - 1], s.y[i - 1], s.x[i], s.y[i], radius, 1.0f);
        }
    }
}

/* Draws up to two scratches that belong to no class, and sometimes a patch that hides a part. */
static void disturb_canvas(canvas *to, rp_rng *rng) {
    const float side = (float)to->side;
    const uint32_t scratches = rp_rng_below(rng, 3);
    for (uint32_t i = 0; i < scratches; i++) {
        const float x = uniform_between(rng, 0.0f, side);
        const float y = uniform_between(rng, 0.0f, side);
        const float angle = uniform_between(rng, 0.0f, 2.0f * pi);
        const float length = uniform_between(rng, 0.1f, 0.3f) * side;
        /* Separate statements, because compilers evaluate arguments in different orders. */
        const float grey = uniform_between(rng, 0.4f, 0.9f);
        const float radius = uniform_between(rng, 0.2f, 0.6f);
        draw_line(to, x, y, x + length * cosf(angle), y + length * sinf(angle), radius, grey);
    }
    if (rp_rng_below(rng, 2) == 0) {
        return;
    }
    const uint32_t size_min = to->side / 7;
    const uint32_t width = size_min + rp_rng_below(rng, size_min + 1);
    const uint32_t height = size_min + rp_rng_below(rng, size_min + 1);
    const uint32_t left = rp_rng_below(rng, to->side - width + 1);
    const uint32_t top = rp_rng_below(rng, to->side - height + 1);
    const float grey = uniform_between(rng, 0.0f, 0.6f);
    for (uint32_t y = top; y < top + height; y++) {
        for (uint32_t x = left; x < left + width; x++) {
            to->ink[y * to->side + x] = grey;
        }
    }
}

/* Converts paper, ink and noise to bytes. The noise of a pixel is the sum of a word's four bytes,
 * which is close to a normal distribution and much cheaper. */
static void develop_pixels(const canvas *from, rp_rng *rng, uint8_t *pixels) {
    const float paper = uniform_between(rng, 0.0f, 0.25f);
    const float ink = uniform_between(rng, 0.5f, 1.0f) - paper;
    const float noise =
        uniform_between(rng, 0.02f, 0.14f) / 148.0f; /* standard deviation of the sum: 148 */
    const uint32_t count = from->side * from->side;
    RP_ASSERT(rng->next < 4 * NOISE_BLOCK);
    uint32_t word[4] = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (i % 4 == 0) {
            rp_rng_block(rng, NOISE_BLOCK + i / 4, word);
        }
        const uint32_t w = word[i % 4];
        const uint32_t sum = (w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24);
        const float value = paper + ink * from->ink[i] + noise * ((float)sum - 510.0f);
        pixels[i] = (uint8_t)(value < 0.0f ? 0.0f : value > 1.0f ? 255.0f : value * 255.0f + 0.5f);
    }
}

static void draw_split(const own *o, uint64_t seed, rp_split split, uint32_t count, float *ink) {
    canvas to = {.side = o->side, .ink = ink};
    const size_t pixels = (size_t)o->side * o->side;
    for (uint32_t i = 0; i < count; i++) {
        char name[48];
        (void)snprintf(name, sizeof name, "glyphs/%s/%u",
                       split == RP_SPLIT_TRAIN ? "train" : "test", i);
        rp_rng rng = rp_rng_named(seed, name);
        memset(ink, 0, pixels * sizeof *ink);
        draw_glyph(&to, i % CLASSES, &rng);
        disturb_canvas(&to, &rng);
        develop_pixels(&to, &rng, o->pixels[split] + i * pixels);
    }
}

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    static const char *const names[CLASSES] = {"triangle",  "square", "cross", "star",   "arrow",
                                               "hourglass", "house",  "ring",  "spiral", "wave"};
    const double mean = 0.2044; /* both measured */
    const double deviation = 0.2012;
    (void)input;
    (void)class_target;
    rp_err err = RP_OK;
    own *o;
    float *ink;
    uint64_t seed = 1; /* not the run's, so that all runs see the same pictures */
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    o->side = 28;
    data->count[RP_SPLIT_TRAIN] = 12000;
    data->count[RP_SPLIT_TEST] = 2000;
    RP_TRY(rp_node_u32(keys, "train", 1, COUNT_MAX, &data->count[RP_SPLIT_TRAIN]));
    RP_TRY(rp_node_u32(keys, "test", 1, COUNT_MAX, &data->count[RP_SPLIT_TEST]));
    RP_TRY(rp_node_u32(keys, "size", SIDE_MIN, SIDE_MAX, &o->side));
    RP_TRY(rp_node_u64(keys, "seed", 0, UINT64_MAX, &seed));
    data->sample = rp_shape_3(1, o->side, o->side);
    data->channels = 1;
    data->bytes = true;
    data->classes = CLASSES;
    data->class_name = names;
    RP_TRY(rp_norm_set(arena, &data->norm, 1, &mean, &deviation));
    data->own = o;
    const size_t pixels = (size_t)o->side * o->side;
    RP_TRY(RP_ARENA_NEW(arena, pixels, &ink));
    for (int split = RP_SPLIT_TRAIN; split <= RP_SPLIT_TEST; split++) {
        RP_TRY(RP_ARENA_NEW(arena, data->count[split] * pixels, &o->pixels[split]));
        draw_split(o, seed, (rp_split)split, data->count[split], ink);
    }
fail:
    return err;
}

static rp_err read_sample(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                          int32_t *label) {
    const own *o = data->own;
    const size_t pixels = (size_t)o->side * o->side;
    (void)row;
    rp_pixels_read(x, o->pixels[split] + index * pixels, pixels);
    if (label) {
        *label = (int32_t)(index % CLASSES);
    }
    return RP_OK;
}

const rp_data_kind rp_data_glyphs = {
    .name = "glyphs",
    .source = "drawn here: triangle square cross star arrow hourglass house ring spiral wave",
    .open = open_set,
    .read = read_sample,
};
