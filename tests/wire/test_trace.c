#include "wire/trace.h"

#include "expect.h"

/* Boards and hosts of different builds read each other's. */
static void a_record_is_these_bytes(void **state) {
    (void)state;
    static const rp_trace_record record = {.kind = 3,
                                           .evaluation = true,
                                           .stage = 0x4142,
                                           .step = 0x0102030405060708,
                                           .first = 0x11121314,
                                           .count = 0x21222324,
                                           .start_ns = -2,
                                           .end_ns = 0x3132333435363738};
    static const uint8_t golden[RP_TRACE_BYTES] = {
        3,    1,    0x42, 0x41, 0,    0,    0,    0,    8,    7,    6,    5,    4,    3,
        2,    1,    0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0xfe, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31};
    uint8_t bytes[RP_TRACE_BYTES];
    rp_trace_pack(&record, bytes);
    assert_memory_equal(bytes, golden, sizeof bytes);
    const rp_trace_record again = rp_trace_unpack(golden);
    assert_int_equal(again.kind, record.kind);
    assert_int_equal(again.evaluation, record.evaluation);
    assert_int_equal(again.stage, record.stage);
    assert_int_equal(again.step, record.step);
    assert_int_equal(again.first, record.first);
    assert_int_equal(again.count, record.count);
    assert_int_equal(again.start_ns, record.start_ns);
    assert_int_equal(again.end_ns, record.end_ns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_these_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
