/* Copies in memory: what was written is read back, message by message; bytes of a neighbour's copy
 * are believed in nothing. */
#include "expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/copies.h"

enum { MESSAGES = 3, FLOATS = 50 };

static const rp_run_identity run = {7, 2};
static rp_copies copies;

static void write_messages(rp_copy *copy) {
    float values[FLOATS];
    for (uint32_t m = 0; m < MESSAGES; m++) {
        for (uint32_t i = 0; i < FLOATS; i++) {
            values[i] = (float)(m * FLOATS + i);
        }
        rp_Frame frame = {.which_body = RP_KIND_TENSOR,
                          .body.tensor = {.first = m, .total = MESSAGES}};
        (void)snprintf(frame.body.tensor.name, sizeof frame.body.tensor.name, "fc%u.weight", m);
        const rp_part part = rp_part_of_array(RP_DTYPE_F32, values, FLOATS);
        expect_ok(rp_copy_add(copy, &frame, &part));
    }
    copy->is_whole = true;
}

static rp_copy *make_copy(uint32_t node) {
    rp_copy *copy;
    expect_ok(rp_copies_begin(&copies, run, 5, node,
                              MESSAGES * rp_copy_room(FLOATS * sizeof(float)), &copy));
    write_messages(copy);
    return copy;
}

static void expect_messages(const rp_copy *copy) {
    size_t at = 0;
    for (uint32_t m = 0; m < MESSAGES; m++) {
        rp_Frame frame;
        rp_part part;
        expect_ok(rp_copy_next(copy, &at, &frame, &part));
        assert_int_equal(rp_frame_kind(&frame), RP_KIND_TENSOR);
        assert_int_equal(frame.body.tensor.first, m);
        assert_int_equal(part.bytes, FLOATS * sizeof(float));
        float value;
        memcpy(&value, (const char *)part.data + sizeof value, sizeof value);
        assert_true(value == (float)(m * FLOATS + 1));
    }
    assert_int_equal(at, copy->got);
}

/* By a neighbour, piece by piece, into memory of its own. */
static void a_copy_travels(void **state) {
    (void)state;
    const rp_copy *own = make_copy(0);
    rp_copy *kept;
    expect_messages(own);
    expect_ok(rp_copies_begin(&copies, run, 5, 1, own->got, &kept));
    for (size_t at = 0; at < own->got; at += 100) {
        const size_t rest = own->got - at;
        assert_false(kept->is_whole);
        expect_ok(rp_copy_add_bytes(kept, at, own->bytes + at, rest < 100 ? rest : 100));
    }
    assert_true(kept->is_whole);
    expect_messages(kept);
    expect_err(rp_copy_add_bytes(kept, own->got, "x", 1), RP_ERR_PEER);
    assert_ptr_equal(rp_copies_find(&copies, run, 5, 1), kept);
    assert_null(rp_copies_find(&copies, (rp_run_identity){7, 3}, 5, 1));
    rp_copies_drop(&copies);
    assert_null(rp_copies_find(&copies, run, 5, 1));
}

static void pieces_come_in_order(void **state) {
    (void)state;
    rp_copy *kept;
    expect_ok(rp_copies_begin(&copies, run, 5, 1, 10, &kept));
    expect_err(rp_copy_add_bytes(kept, 1, "abc", 3), RP_ERR_PEER);
    expect_ok(rp_copy_add_bytes(kept, 0, "abc", 3));
    expect_err(rp_copy_add_bytes(kept, 0, "abc", 3), RP_ERR_PEER);
    expect_err(rp_copy_add_bytes(kept, 3, "12345678", 8), RP_ERR_PEER);
    expect_err(rp_copy_add_bytes(kept, 3, "", 0), RP_ERR_PEER);
    rp_copies_drop(&copies);
}

static void a_copy_without_bytes_is_whole_by_one_piece(void **state) {
    (void)state;
    rp_copy *kept;
    expect_ok(rp_copies_begin(&copies, run, 5, 1, 0, &kept));
    assert_false(kept->is_whole);
    expect_ok(rp_copy_add_bytes(kept, 0, NULL, 0));
    assert_true(kept->is_whole);
    assert_ptr_equal(rp_copies_find(&copies, run, 5, 1), kept);
    expect_err(rp_copy_add_bytes(kept, 0, "x", 1), RP_ERR_PEER);
    rp_copies_drop(&copies);
}

/* Any byte may be another one: that is noticed when it is read, or changes no number. */
static void damaged_bytes_are_no_message(void **state) {
    (void)state;
    rp_copy *copy = make_copy(0);
    uint32_t noticed = 0;
    for (size_t i = 0; i < copy->got; i++) {
        rp_err err = RP_OK;
        size_t at = 0;
        copy->bytes[i] ^= 0x10;
        while (err == RP_OK && at < copy->got) {
            rp_Frame frame;
            rp_part part;
            err = rp_copy_next(copy, &at, &frame, &part);
        }
        noticed += err == RP_ERR_FORMAT;
        copy->bytes[i] ^= 0x10;
    }
    assert_true(noticed > copy->got * 9 / 10); /* others are digits of names and places */
    expect_messages(copy);
    copy->got--;
    size_t at = 0;
    rp_Frame frame;
    rp_part part;
    expect_ok(rp_copy_next(copy, &at, &frame, &part));
    expect_ok(rp_copy_next(copy, &at, &frame, &part));
    expect_err(rp_copy_next(copy, &at, &frame, &part), RP_ERR_FORMAT);
    rp_copies_drop(&copies);
}

static void what_is_kept_is_bounded(void **state) {
    (void)state;
    rp_copy *copy;
    for (uint32_t i = 0; i < RP_COPIES_MAX; i++) {
        expect_ok(rp_copies_begin(&copies, run, i % 2 + 1, i, 8, &copy));
    }
    expect_err(rp_copies_begin(&copies, run, 9, 0, 8, &copy), RP_ERR_LIMIT);
    rp_copies_drop_others(&copies, run, 2);
    assert_null(rp_copies_find(&copies, run, 1, 0));
    assert_non_null(rp_copies_find(&copies, run, 2, 1));
    rp_copies_drop_others(&copies, (rp_run_identity){7, 3}, 2); /* of another term */
    assert_null(rp_copies_find(&copies, run, 2, 1));
    expect_ok(rp_copies_begin(&copies, run, 5, 0, 8, &copy));
    rp_Frame frame = {.which_body = RP_KIND_TENSOR, .body.tensor = {.name = "a", .total = 1}};
    const float value = 1;
    const rp_part part = rp_part_of_array(RP_DTYPE_F32, &value, 1);
    expect_err(rp_copy_add(copy, &frame, &part), RP_ERR_LIMIT);
    rp_copies_drop(&copies);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_travels),
        cmocka_unit_test(pieces_come_in_order),
        cmocka_unit_test(a_copy_without_bytes_is_whole_by_one_piece),
        cmocka_unit_test(damaged_bytes_are_no_message),
        cmocka_unit_test(what_is_kept_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
