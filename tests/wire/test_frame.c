#include "base/rng.h"
#include "expect.h"
#include "wire/frame.h"

enum { PART_MAX = 1 << 20 };

/* Kinds as they are really used, each with its bytes on the wire. The bytes may never change. */
typedef struct {
    rp_Kind kind;
    const char *hex;
} golden;

static const golden goldens[] = {
#include "golden.inc"
};

static const uint8_t payload[48] = {0, 0, 128, 63, 0, 0, 0, 64, 7, 7};

/* One header of each kind, with parts that fit. */
static uint32_t sample(rp_Kind kind, rp_Header *header, rp_part *parts) {
    *header = (rp_Header){.kind = kind, .run = 0x1122334455667788, .session = 99, .peer = 101};
    if (!rp_frame_is_numbered(kind)) {
        header->ack = 300;
        header->credit = 17;
        header->whole_count = 1;
        header->whole[0] = UINT64_MAX;
        return 0;
    }
    header->seq = 200;
    header->step = 1000000;
    header->first = 32;
    header->count = 4;
    header->epoch = 2;
    header->stage = 3;
    parts[0] = (rp_part){payload, 24};
    parts[1] = (rp_part){payload + 24, 24};
    rp_shape shape = rp_shape_2(2, 3);
    if (rp_frame_is_data(kind)) {
        rp_frame_add_shape(header, &shape);
        rp_frame_add_shape(header, &shape);
        return 2;
    }
    header->code = 7;
    header->number_count = 2;
    header->number[0] = 0.25;
    header->number[1] = -1e300;
    header->whole_count = 1;
    header->whole[0] = 1;
    snprintf(header->text, sizeof header->text, "conv1/weight µ");
    if (kind == RP_KIND_TENSOR) {
        rp_frame_add_shape(header, &shape);
        return 1;
    }
    return kind % 3;
}

static void to_hex(const uint8_t *bytes, size_t count, char *out) {
    for (size_t i = 0; i < count; i++) {
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

static const char *golden_of(rp_Kind kind) {
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        if (goldens[i].kind == kind) {
            return goldens[i].hex;
        }
    }
    return "none";
}

/* Every kind that decodes has golden bytes, and they come out again. On a mismatch the line to put
 * into golden.inc is printed: only for a new kind. */
static void golden_bytes_stay(void **state) {
    (void)state;
    uint32_t kinds = 0;
    uint32_t wrong = 0;
    for (int kind = 0; kind < 128; kind++) {
        rp_Header header;
        rp_Header back;
        rp_part parts[RP_PARTS_MAX];
        uint8_t bytes[RP_HEADER_BYTES_MAX];
        char hex[2 * RP_HEADER_BYTES_MAX + 1];
        size_t count;
        uint32_t part_count = sample((rp_Kind)kind, &header, parts);
        if (rp_frame_encode(&header, parts, part_count, bytes, &count) != RP_OK) {
            continue;
        }
        kinds++;
        to_hex(bytes, count, hex);
        if (strcmp(hex, golden_of((rp_Kind)kind)) != 0) {
            printf("{%d,\n \"%s\"},\n", kind, hex);
            wrong++;
        }
        expect_ok(rp_frame_decode(bytes, count, PART_MAX, &back));
        expect_ok(rp_frame_check_parts(&back, parts, part_count));
        uint8_t again[RP_HEADER_BYTES_MAX];
        size_t again_count;
        expect_ok(rp_frame_write(&back, again, &again_count));
        assert_int_equal(again_count, count);
        assert_memory_equal(again, bytes, count);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(kinds, sizeof goldens / sizeof goldens[0]);
}

/* The largest of everything that may stand together. */
static void the_largest_header_fits(void **state) {
    (void)state;
    for (uint32_t shapes = 1; shapes <= RP_PARTS_MAX; shapes += RP_PARTS_MAX - 1) {
        rp_Header header = {.kind = RP_KIND_NORMS, .number_count = 8, .whole_count = 8};
        uint8_t bytes[RP_HEADER_BYTES_MAX];
        size_t count;
        rp_shape shape = {6, {1 << 7, 1 << 7, 1 << 7, 1 << 7, 1, 1}};
        header.run = header.seq = header.ack = header.credit = header.session = header.step =
            header.peer = UINT64_MAX;
        header.first = header.count = header.epoch = header.stage = header.code = UINT32_MAX;
        for (int i = 0; i < 8; i++) {
            header.number[i] = -1.0 / 3;
            header.whole[i] = UINT64_MAX;
        }
        if (shapes == 1) {
            memset(header.text, 'x', sizeof header.text - 1);
        }
        for (uint32_t i = 0; i < shapes; i++) {
            rp_frame_add_shape(&header, &shape);
        }
        rp_part parts[RP_PARTS_MAX];
        for (uint32_t i = 0; i < RP_PARTS_MAX; i++) {
            parts[i] = (rp_part){payload, 1};
        }
        expect_ok(rp_frame_encode(&header, parts, RP_PARTS_MAX, bytes, &count));
        header.part_bytes_count = RP_PARTS_MAX;
        for (int i = 0; i < RP_PARTS_MAX; i++) {
            header.part_bytes[i] = (UINT64_C(1) << 35) - 1;
        }
        expect_ok(rp_frame_write(&header, bytes, &count));
        printf("%u shapes: %zu bytes\n", shapes, count);
        assert_true(count <= RP_HEADER_BYTES_MAX);
    }
}

/* Writes a changed header without the checks of the sender, then decodes it. */
static rp_err decode_of(const rp_Header *header) {
    rp_Header out;
    uint8_t bytes[RP_HEADER_BYTES_MAX];
    size_t count;
    expect_ok(rp_frame_write(header, bytes, &count));
    return rp_frame_decode(bytes, count, PART_MAX, &out);
}

static void bad_headers_are_refused(void **state) {
    (void)state;
    rp_Header good;
    rp_part parts[RP_PARTS_MAX];
    uint8_t bytes[RP_HEADER_BYTES_MAX + 1];
    size_t count;
    uint32_t part_count = sample(RP_KIND_ACTIVATION, &good, parts);
    expect_ok(rp_frame_encode(&good, parts, part_count, bytes, &count));
    expect_ok(decode_of(&good));

    rp_Header bad = good;
    bad.version = 2;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.kind = (rp_Kind)47;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad.kind = RP_KIND_NONE;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad.kind = RP_KIND_PING; /* with parts */
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.shape[1].dim[0] = 4; /* 48 bytes, not 24 */
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.shape[0].dim[0] = 0;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.shape[0].dim[0] = bad.shape[0].dim[1] = 1u << 31; /* a product that would wrap */
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.shape_count = 1;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.text[0] = 'x'; /* beside two shapes */
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.part_bytes[0] = PART_MAX + 1;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);

    rp_Header out;
    expect_err(rp_frame_decode(bytes, RP_HEADER_BYTES_MAX + 1, PART_MAX, &out), RP_ERR_FORMAT);
    expect_err(rp_frame_decode(bytes, 0, PART_MAX, &out), RP_ERR_FORMAT); /* version 0 */
    for (size_t cut = 1; cut < count; cut++) { /* cut short: an error, or other sound contents */
        rp_err err = rp_frame_decode(bytes, cut, PART_MAX, &out);
        assert_true(err == RP_OK || err == RP_ERR_FORMAT);
    }
    uint8_t nine_shapes[] = {8, 1,  16, 1,  98, 0,  98, 0,  98, 0,  98,
                             0, 98, 0,  98, 0,  98, 0,  98, 0,  98, 0};
    expect_err(rp_frame_decode(nine_shapes, sizeof nine_shapes, PART_MAX, &out), RP_ERR_FORMAT);
}

static void texts_are_printable(void **state) {
    (void)state;
    static const char *const sound[] = {"", "plain", "µ ✓ 😀", "\xed\x9f\xbf"};
    static const char *const unsound[] = {"a\nb",     "\x1b[2J",      "\x7f",
                                          "\xff",     "\xc0\xaf",     "\xe0\x80\x80",
                                          "\xc2\x85", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                          "\xe2\x9c", "\xf0\x9f\x98"};
    for (size_t i = 0; i < sizeof sound / sizeof sound[0]; i++) {
        rp_Header header = {.version = 1, .kind = RP_KIND_FAULT};
        snprintf(header.text, sizeof header.text, "%s", sound[i]);
        expect_ok(decode_of(&header));
    }
    for (size_t i = 0; i < sizeof unsound / sizeof unsound[0]; i++) {
        rp_Header header = {.version = 1, .kind = RP_KIND_FAULT};
        uint8_t bytes[RP_HEADER_BYTES_MAX];
        size_t count;
        snprintf(header.text, sizeof header.text, "ok %s", unsound[i]);
        expect_err(decode_of(&header), RP_ERR_FORMAT);
        expect_ok(rp_frame_encode(&header, NULL, 0, bytes, &count)); /* the sender makes it sound */
        expect_ok(decode_of(&header));
        assert_memory_equal(header.text, "ok ", 3);
    }
    rp_Header header = {.version = 1, .kind = RP_KIND_FAULT};
    uint8_t bytes[RP_HEADER_BYTES_MAX];
    size_t count;
    memset(header.text, 'y', sizeof header.text); /* no terminator */
    expect_ok(rp_frame_encode(&header, NULL, 0, bytes, &count));
    assert_int_equal(strlen(header.text), sizeof header.text - 1);
}

static void senders_are_checked(void **state) {
    (void)state;
    rp_Header header;
    rp_part parts[RP_PARTS_MAX];
    uint8_t bytes[RP_HEADER_BYTES_MAX];
    size_t count;
    uint32_t part_count = sample(RP_KIND_INPUT, &header, parts);
    parts[1].bytes = 20; /* not the shape's */
    expect_err(rp_frame_encode(&header, parts, part_count, bytes, &count), RP_ERR_FORMAT);
    expect_err(rp_frame_encode(&header, parts, 9, bytes, &count), RP_ERR_LIMIT);
    (void)sample(RP_KIND_PROBE_DONE, &header, parts);
    header.whole_count = 9;
    expect_err(rp_frame_encode(&header, NULL, 0, bytes, &count), RP_ERR_LIMIT);
    (void)sample(RP_KIND_TENSOR, &header, parts);
    header.shape[0].dim_count = 7;
    expect_err(rp_frame_encode(&header, parts, 1, bytes, &count), RP_ERR_LIMIT);
    (void)sample(RP_KIND_TRACE, &header, parts);
    if (sizeof(size_t) > 4) {
        parts[0].bytes = (size_t)1 << 36;
        expect_err(rp_frame_encode(&header, parts, 1, bytes, &count), RP_ERR_LIMIT);
    }
}

static void parts_are_checked(void **state) {
    (void)state;
    rp_Header header;
    rp_part parts[RP_PARTS_MAX];
    uint8_t bytes[RP_HEADER_BYTES_MAX];
    uint8_t copy[24];
    size_t count;
    uint32_t part_count = sample(RP_KIND_GRADIENT, &header, parts);
    expect_ok(rp_frame_encode(&header, parts, part_count, bytes, &count));
    expect_ok(rp_frame_check_parts(&header, parts, part_count));
    expect_err(rp_frame_check_parts(&header, parts, 1), RP_ERR_FORMAT);
    parts[0].bytes = 23;
    expect_err(rp_frame_check_parts(&header, parts, part_count), RP_ERR_FORMAT);
    parts[0].bytes = 24;
    memcpy(copy, parts[0].data, sizeof copy);
    for (size_t i = 0; i < 8 * sizeof copy; i++) { /* any bit */
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
        parts[0].data = copy;
        expect_err(rp_frame_check_parts(&header, parts, part_count), RP_ERR_FORMAT);
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    expect_ok(rp_frame_check_parts(&header, parts, part_count));
    rp_shape shape;
    expect_ok(rp_frame_shape(&header, 1, &shape));
    assert_int_equal(rp_shape_count(&shape), 6);
    expect_err(rp_frame_shape(&header, 2, &shape), RP_ERR_FORMAT);
}

/* Chance bytes, and sound headers with bits turned over: refused or sound, never harmful. */
static void chance_does_not_hurt(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(1, "frames");
    uint32_t accepted = 0;
    for (int i = 0; i < 3000; i++) {
        rp_Header header;
        rp_part parts[RP_PARTS_MAX];
        uint8_t bytes[RP_HEADER_BYTES_MAX];
        size_t count;
        uint32_t part_count = sample(goldens[rp_rng_below(&rng, 28)].kind, &header, parts);
        expect_ok(rp_frame_encode(&header, parts, part_count, bytes, &count));
        for (uint32_t k = rp_rng_below(&rng, 4); k < 4; k++) {
            bytes[rp_rng_below(&rng, (uint32_t)count)] ^= (uint8_t)(1u << rp_rng_below(&rng, 8));
        }
        if (rp_frame_decode(bytes, count, PART_MAX, &header) == RP_OK) {
            accepted++;
            expect_ok(rp_frame_write(&header, bytes, &count));
        }
    }
    assert_true(accepted > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_bytes_stay),       cmocka_unit_test(the_largest_header_fits),
        cmocka_unit_test(bad_headers_are_refused), cmocka_unit_test(texts_are_printable),
        cmocka_unit_test(senders_are_checked),     cmocka_unit_test(parts_are_checked),
        cmocka_unit_test(chance_does_not_hurt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
