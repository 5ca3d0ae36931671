#include "wire/samples.h"

#include "base/rng.h"
#include "expect.h"

enum { PART_MAX = 1 << 20 };

/* Each kind with its bytes on the wire. The bytes may never change. */
typedef struct {
    rp_kind kind;
    const char *hex;
} golden;

static const golden goldens[] = {
#include "golden.inc"
};

static const char *golden_of(rp_kind kind) {
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        if (goldens[i].kind == kind) {
            return goldens[i].hex;
        }
    }
    return "none";
}

static void to_hex(const uint8_t *bytes, size_t count, char *out) {
    for (size_t i = 0; i < count; i++) {
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

/* The line of golden.inc, in pieces of 45 bytes. */
static void print_golden(rp_kind kind, const char *hex) {
    const char *name = rp_kind_name(kind);
    printf("{RP_KIND_");
    for (; *name; name++) {
        (void)putchar(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
    }
    printf(",");
    for (size_t at = 0; hex[at]; at += strlen(hex + at) < 90 ? strlen(hex + at) : 90) {
        printf("\n \"%.90s\"", hex + at);
    }
    printf("},\n");
}

/* Every kind has golden bytes, and they come out again. On a mismatch the line to put into
 * golden.inc is printed: only for a new kind, or a new field. */
static void golden_bytes_stay(void **state) {
    (void)state;
    uint32_t kinds = 0;
    uint32_t wrong = 0;
    for (int kind = 0; kind < SAMPLE_KINDS_END; kind++) {
        rp_Frame frame;
        rp_Frame back;
        rp_part parts[RP_PARTS_MAX];
        uint8_t bytes[RP_FRAME_BYTES_MAX];
        uint8_t again[RP_FRAME_BYTES_MAX];
        char hex[2 * RP_FRAME_BYTES_MAX + 1];
        size_t count;
        size_t again_count;
        if (!rp_kind_facts_of((rp_kind)kind)->name) {
            continue;
        }
        kinds++;
        const uint32_t part_count = sample_frame((rp_kind)kind, &frame, parts);
        expect_ok(rp_frame_encode(&frame, parts, part_count, bytes, &count));
        to_hex(bytes, count, hex);
        if (strcmp(hex, golden_of((rp_kind)kind)) != 0) {
            print_golden((rp_kind)kind, hex);
            wrong++;
        }
        expect_ok(rp_frame_decode(bytes, count, PART_MAX, &back));
        expect_ok(rp_frame_check_parts(&back, parts, part_count));
        for (uint32_t i = 0; i < part_count; i++) {
            const rp_part part = rp_frame_part(&back, i, parts[i].data, parts[i].bytes);
            assert_true(rp_shape_equal(&part.shape, &parts[i].shape));
            assert_int_equal(part.dtype, parts[i].dtype);
        }
        expect_ok(rp_frame_write(&back, again, &again_count));
        assert_int_equal(again_count, count);
        assert_memory_equal(again, bytes, count);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(kinds, sizeof goldens / sizeof goldens[0]);
}

/* Sets every byte of a body that a number or a text may have to its largest. */
static void make_largest(const pb_msgdesc_t *fields, void *message) {
    pb_field_iter_t field;
    if (!pb_field_iter_begin(&field, fields, message)) {
        return;
    }
    do {
        const bool repeated = PB_HTYPE(field.type) == PB_HTYPE_REPEATED;
        const pb_size_t count = repeated ? field.array_size : 1;
        if (repeated) {
            memcpy(field.pSize, &count, sizeof count);
        }
        for (pb_size_t i = 0; i < count; i++) {
            char *at = (char *)field.pData + (size_t)i * field.data_size;
            if (PB_LTYPE(field.type) == PB_LTYPE_SUBMESSAGE) {
                make_largest(field.submsg_desc, at);
            } else if (PB_LTYPE(field.type) == PB_LTYPE_STRING) {
                memset(at, 'x', (size_t)field.data_size - 1);
                at[field.data_size - 1] = 0;
            } else {
                memset(at, PB_LTYPE(field.type) == PB_LTYPE_BOOL ? 1 : 0xff, field.data_size);
            }
        }
    } while (pb_field_iter_next(&field));
}

/* The largest of everything that may stand together. */
static void the_largest_frames_fit(void **state) {
    (void)state;
    for (int kind = 0; kind < SAMPLE_KINDS_END; kind++) {
        const rp_kind_facts *facts = rp_kind_facts_of((rp_kind)kind);
        rp_Frame frame = {.which_body = (pb_size_t)kind, .version = UINT32_MAX, .term = UINT32_MAX};
        uint8_t bytes[RP_FRAME_BYTES_MAX];
        size_t count;
        if (!facts->name) {
            continue;
        }
        frame.run_id = frame.seq = frame.ack = frame.credit = frame.session = frame.peer =
            frame.payload_hash = UINT64_MAX;
        make_largest(facts->body, &frame.body);
        frame.part_count = (pb_size_t)facts->parts_max;
        for (uint32_t i = 0; i < facts->parts_max; i++) {
            frame.part[i] = (rp_Part){.dtype = RP_DTYPE_U64,
                                      .dim_count = 6,
                                      .dim = {1 << 7, 1 << 7, 1 << 7, 1 << 7, 1, 1},
                                      .bytes = (UINT64_C(1) << 35) - 1,
                                      .block = UINT32_MAX};
        }
        expect_ok(rp_frame_write(&frame, bytes, &count));
        printf("%s: %zu bytes\n", facts->name, count);
        assert_true(count <= (size_t)(facts->of_class == RP_CLASS_DATA ? RP_FRAME_DATA_BYTES_MAX
                                                                       : RP_FRAME_BYTES_MAX));
    }
}

/* Writes a changed frame without the checks of the sender, then decodes it. */
static rp_err decode_of(const rp_Frame *frame) {
    rp_Frame out;
    uint8_t bytes[RP_FRAME_BYTES_MAX];
    size_t count;
    expect_ok(rp_frame_write(frame, bytes, &count));
    return rp_frame_decode(bytes, count, PART_MAX, &out);
}

static void bad_frames_are_refused(void **state) {
    (void)state;
    rp_Frame good;
    rp_part parts[RP_PARTS_MAX];
    uint8_t bytes[RP_FRAME_BYTES_MAX + 1];
    size_t count;
    const uint32_t part_count = sample_frame(RP_KIND_ACTIVATION, &good, parts);
    expect_ok(rp_frame_encode(&good, parts, part_count, bytes, &count));
    expect_ok(decode_of(&good));

    rp_Frame bad = good;
    bad.which_body = 0;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.which_body = RP_KIND_PING; /* with parts */
    bad.body.ping.time_ns = 1;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.part_count = 0; /* fewer than the kind has */
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.part[1].dim[1] = 4; /* 32 bytes, not 24 */
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.part[0].dim[0] = 0;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.part[0].dim[0] = bad.part[0].dim[1] = 1u << 31; /* a product that would wrap */
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.part[0].dim_count = 0;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.part[0].dim[0] = 3; /* another count of samples than the parcel's */
    bad.part[0].dim[1] = 2;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);
    bad = good;
    bad.part[0].bytes = PART_MAX + 1;
    expect_err(decode_of(&bad), RP_ERR_FORMAT);

    rp_Frame out;
    const size_t largest =
        (size_t)good.part[0].bytes; /* of the parts: what the window has room for */
    expect_ok(rp_frame_decode(bytes, count, largest, &out));
    expect_err(rp_frame_decode(bytes, count, largest - 1, &out), RP_ERR_FORMAT);
    expect_err(rp_frame_decode(bytes, RP_FRAME_BYTES_MAX + 1, PART_MAX, &out), RP_ERR_FORMAT);
    expect_err(rp_frame_decode(bytes, 0, PART_MAX, &out), RP_ERR_FORMAT);
    for (size_t cut = 1; cut < count; cut++) { /* cut short: an error, or other sound contents */
        rp_err err = rp_frame_decode(bytes, cut, PART_MAX, &out);
        assert_true(err == RP_OK || err == RP_ERR_FORMAT);
    }
    uint8_t nine_parts[] = {8, 2,  74, 0,  74, 0,  74, 0,  74, 0,  74,
                            0, 74, 0,  74, 0,  74, 0,  74, 0,  90, 0};
    expect_err(rp_frame_decode(nine_parts, sizeof nine_parts, PART_MAX, &out), RP_ERR_FORMAT);
}

/* shape x dtype = bytes, for every dtype. */
static void dtypes_are_checked(void **state) {
    (void)state;
    static const struct {
        rp_Dtype dtype;
        uint32_t block;
        uint64_t bytes; /* of 2 x 3 elements; 0: no tensor */
    } cases[] = {
        {RP_DTYPE_BYTES, 0, 0}, {RP_DTYPE_TEXT, 0, 0},     {RP_DTYPE_F32, 0, 24},
        {RP_DTYPE_F16, 0, 12},  {RP_DTYPE_BF16, 0, 12},    {RP_DTYPE_I32, 0, 24},
        {RP_DTYPE_U8, 0, 6},    {RP_DTYPE_F64, 0, 48},     {RP_DTYPE_U64, 0, 48},
        {RP_DTYPE_I8, 4, 14},   {RP_DTYPE_I8, 6, 10},      {RP_DTYPE_I8, 100, 10},
        {RP_DTYPE_I8, 1, 30},   {RP_DTYPE_I8, 0, 0},       {RP_DTYPE_F32, 4, 0},
        {(rp_Dtype)10, 0, 0},   {(rp_Dtype)1000000, 0, 0},
    };
    const rp_shape shape = rp_shape_2(2, 3);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const rp_Parcel parcel = {.count = 2};
        rp_Frame frame = rp_frame_of_parcel(RP_KIND_GRADIENT, &parcel);
        rp_part part = {.data = sample_payload,
                        .bytes = cases[i].bytes,
                        .dtype = cases[i].dtype,
                        .block = cases[i].block,
                        .shape = shape};
        uint8_t bytes[RP_FRAME_BYTES_MAX];
        size_t count;
        assert_int_equal(rp_part_bytes(cases[i].dtype, 6, cases[i].block), cases[i].bytes);
        const rp_err want = cases[i].bytes ? RP_OK : RP_ERR_FORMAT;
        expect_err(rp_frame_encode(&frame, &part, 1, bytes, &count), want);
        for (int off = -1; off <= 1; off += 2) {
            part.bytes = cases[i].bytes + (size_t)off;
            part.data = bytes; /* large enough to be hashed */
            if (part.bytes < sizeof bytes) {
                expect_err(rp_frame_encode(&frame, &part, 1, bytes, &count), RP_ERR_FORMAT);
            }
        }
    }
}

static void versions_are_ranges(void **state) {
    (void)state;
    rp_wire_range range = {2, 5};
    assert_false(rp_wire_narrow(&range, 6, 9));
    assert_false(rp_wire_narrow(&range, 0, 1));
    assert_false(rp_wire_narrow(&range, 4, 3));
    assert_false(rp_wire_narrow(&range, 0, 0));
    assert_true(range.min == 2 && range.max == 5);
    assert_true(rp_wire_narrow(&range, 1, 4));
    assert_true(range.min == 2 && range.max == 4);
    assert_true(rp_wire_narrow(&range, 4, 9));
    assert_true(range.min == 4 && range.max == 4);

    rp_Frame hello = {.which_body = RP_KIND_HELLO, .version = RP_WIRE_MAX + 7};
    rp_Frame probe = {.which_body = RP_KIND_PROBE, .version = RP_WIRE_MAX + 7};
    rp_Frame stop = {.which_body = RP_KIND_STOP, .version = RP_WIRE_MAX};
    expect_ok(decode_of(&hello)); /* of every version, or nobody could say which it speaks */
    expect_ok(decode_of(&probe));
    expect_ok(decode_of(&stop));
    stop.version = RP_WIRE_MAX + 1;
    expect_err(decode_of(&stop), RP_ERR_FORMAT);
    hello.version = 1; /* had another layout */
    probe.version = 0;
    expect_err(decode_of(&hello), RP_ERR_FORMAT);
    expect_err(decode_of(&probe), RP_ERR_FORMAT);
    stop.version = 0;
    expect_err(decode_of(&stop), RP_ERR_FORMAT);
    rp_Frame out;
    const uint8_t first_version[] = {8, 1, 16, 16}; /* a HELLO of version 1 */
    expect_err(rp_frame_decode(first_version, sizeof first_version, PART_MAX, &out), RP_ERR_FORMAT);
    assert_non_null(strstr(rp_err_message(), "wire version 1"));
}

static void texts_are_printable(void **state) {
    (void)state;
    static const char *const sound[] = {"", "plain", "µ ✓ 😀", "\xed\x9f\xbf"};
    static const char *const unsound[] = {"a\nb",     "\x1b[2J",      "\x7f",
                                          "\xff",     "\xc0\xaf",     "\xe0\x80\x80",
                                          "\xc2\x85", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                          "\xe2\x9c", "\xf0\x9f\x98"};
    for (size_t i = 0; i < sizeof sound / sizeof sound[0]; i++) {
        rp_Frame frame = {.version = RP_WIRE_MAX, .which_body = RP_KIND_HELLO};
        snprintf(frame.body.hello.device, sizeof frame.body.hello.device, "%s", sound[i]);
        expect_ok(decode_of(&frame));
    }
    for (size_t i = 0; i < sizeof unsound / sizeof unsound[0]; i++) {
        rp_Frame frame = {.version = RP_WIRE_MAX, .which_body = RP_KIND_HELLO};
        char *text = frame.body.hello.device; /* the last of three */
        uint8_t bytes[RP_FRAME_BYTES_MAX];
        size_t count;
        snprintf(text, sizeof frame.body.hello.device, "ok %s", unsound[i]);
        expect_err(decode_of(&frame), RP_ERR_FORMAT);
        expect_ok(rp_frame_encode(&frame, NULL, 0, bytes, &count)); /* the sender makes it sound */
        expect_ok(decode_of(&frame));
        assert_memory_equal(text, "ok ", 3);
    }
    rp_Frame frame = {.version = RP_WIRE_MAX, .which_body = RP_KIND_FAULT};
    rp_Fault *fault = &frame.body.fault;
    uint8_t bytes[RP_FRAME_BYTES_MAX];
    size_t count;
    memset(fault->text, 'y', sizeof fault->text); /* no terminator */
    expect_ok(rp_frame_encode(&frame, NULL, 0, bytes, &count));
    assert_int_equal(strlen(fault->text), sizeof fault->text - 1);
}

/* A name that goes into the other end's files has no character that needs quotes there; the
 * sender is told, and the receiver takes no such frame. */
static void names_are_plain(void **state) {
    (void)state;
    static const char *const wrong[] = {"a\", key: b", "a b", "a\\b", "a}", "../b", "gr\303\274n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        for (int field = 0; field < 3; field++) {
            rp_Frame frame;
            rp_Frame back;
            rp_part parts[RP_PARTS_MAX];
            uint8_t bytes[RP_FRAME_BYTES_MAX];
            size_t count;
            sample_frame(field == 0 ? RP_KIND_ENROL : RP_KIND_ENROLLED, &frame, parts);
            expect_ok(rp_frame_encode(&frame, NULL, 0, bytes, &count));
            expect_ok(rp_frame_decode(bytes, count, 0, &back));
            char *name = field == 0   ? frame.body.enrol.board
                         : field == 1 ? frame.body.enrolled.host
                                      : frame.body.enrolled.name;
            (void)snprintf(name, 64, "%s", wrong[i]);
            expect_err(rp_frame_encode(&frame, NULL, 0, bytes, &count), RP_ERR_FORMAT);
            expect_ok(rp_frame_write(&frame, bytes, &count)); /* a peer that does not check */
            expect_err(rp_frame_decode(bytes, count, 0, &back), RP_ERR_FORMAT);
        }
    }
}

static void senders_are_checked(void **state) {
    (void)state;
    rp_Frame frame;
    rp_part parts[RP_PARTS_MAX + 1];
    uint8_t bytes[RP_FRAME_BYTES_MAX];
    size_t count;
    uint32_t part_count = sample_frame(RP_KIND_INPUT, &frame, parts);
    parts[1].bytes = 20; /* not the shape's */
    expect_err(rp_frame_encode(&frame, parts, part_count, bytes, &count), RP_ERR_FORMAT);
    expect_err(rp_frame_encode(&frame, parts, 9, bytes, &count), RP_ERR_LIMIT);
    (void)sample_frame(RP_KIND_SAVE, &frame, parts);
    parts[0] = rp_part_of_text("a part");
    expect_err(rp_frame_encode(&frame, parts, 1, bytes, &count), RP_ERR_FORMAT);
    (void)sample_frame(RP_KIND_TENSOR, &frame, parts);
    parts[0].shape.dims = 7;
    expect_err(rp_frame_encode(&frame, parts, 1, bytes, &count), RP_ERR_LIMIT);
    (void)sample_frame(RP_KIND_TRACE, &frame, parts);
    if (sizeof(size_t) > 4) {
        parts[0].bytes = (size_t)1 << 36;
        expect_err(rp_frame_encode(&frame, parts, 1, bytes, &count), RP_ERR_LIMIT);
    }
    frame.which_body = 63;
    expect_err(rp_frame_encode(&frame, NULL, 0, bytes, &count), RP_ERR_FORMAT);
    frame.which_body = 60000;
    expect_err(rp_frame_encode(&frame, NULL, 0, bytes, &count), RP_ERR_FORMAT);
}

static void parts_are_checked(void **state) {
    (void)state;
    rp_Frame frame;
    rp_part parts[RP_PARTS_MAX];
    uint8_t bytes[RP_FRAME_BYTES_MAX];
    uint8_t copy[24];
    size_t count;
    const uint32_t part_count = sample_frame(RP_KIND_GRADIENT, &frame, parts);
    expect_ok(rp_frame_encode(&frame, parts, part_count, bytes, &count));
    expect_ok(rp_frame_check_parts(&frame, parts, part_count));
    expect_err(rp_frame_check_parts(&frame, parts, 1), RP_ERR_FORMAT);
    parts[0].bytes = 23;
    expect_err(rp_frame_check_parts(&frame, parts, part_count), RP_ERR_FORMAT);
    parts[0].bytes = 24;
    memcpy(copy, parts[0].data, sizeof copy);
    for (size_t i = 0; i < 8 * sizeof copy; i++) { /* any bit */
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
        parts[0].data = copy;
        expect_err(rp_frame_check_parts(&frame, parts, part_count), RP_ERR_FORMAT);
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    expect_ok(rp_frame_check_parts(&frame, parts, part_count));
}

/* Chance bytes, and sound frames with bits turned over: refused or sound, never harmful. */
static void chance_does_not_hurt(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(1, "frames");
    const uint32_t kinds = sizeof goldens / sizeof goldens[0];
    uint32_t accepted = 0;
    for (int i = 0; i < 3000; i++) {
        rp_Frame frame;
        rp_part parts[RP_PARTS_MAX];
        uint8_t bytes[RP_FRAME_BYTES_MAX];
        size_t count;
        const uint32_t part_count =
            sample_frame(goldens[rp_rng_below(&rng, kinds)].kind, &frame, parts);
        expect_ok(rp_frame_encode(&frame, parts, part_count, bytes, &count));
        for (uint32_t k = rp_rng_below(&rng, 4); k < 4; k++) {
            bytes[rp_rng_below(&rng, (uint32_t)count)] ^= (uint8_t)(1u << rp_rng_below(&rng, 8));
        }
        if (rp_frame_decode(bytes, count, PART_MAX, &frame) == RP_OK) {
            accepted++;
            expect_ok(rp_frame_write(&frame, bytes, &count));
        }
    }
    assert_true(accepted > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_bytes_stay),      cmocka_unit_test(the_largest_frames_fit),
        cmocka_unit_test(bad_frames_are_refused), cmocka_unit_test(dtypes_are_checked),
        cmocka_unit_test(versions_are_ranges),    cmocka_unit_test(texts_are_printable),
        cmocka_unit_test(names_are_plain),        cmocka_unit_test(senders_are_checked),
        cmocka_unit_test(parts_are_checked),      cmocka_unit_test(chance_does_not_hurt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
