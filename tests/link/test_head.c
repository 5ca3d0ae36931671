#include "base/log.h"
#include "expect.h"
#include "link/head.h"

static void any_flipped_bit_is_found(void **state) {
    (void)state;
    const rp_Frame frame = {.version = RP_WIRE_MAX,
                            .which_body = RP_KIND_STOP,
                            .seq = 1234567,
                            .ack = 7,
                            .session = UINT64_MAX,
                            .body.stop = {99}};
    rp_buffer *head;
    rp_Frame got;
    expect_ok(rp_head_write(&frame, &head));
    expect_ok(rp_head_read(head, 0, &got));
    assert_int_equal(got.seq, frame.seq);
    assert_true(got.session == frame.session);
    assert_int_equal(got.body.stop.step, 99);
    uint8_t *bytes = malloc(head->bytes);
    assert_non_null(bytes);
    memcpy(bytes, head->data, head->bytes);
    rp_buffer copy;
    for (size_t bit = 0; bit < 8 * head->bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        rp_buffer_borrow(&copy, bytes, head->bytes);
        expect_err(rp_head_read(&copy, 0, &got), RP_ERR_FORMAT);
        bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    for (size_t count = 0; count < head->bytes; count++) {
        rp_buffer_borrow(&copy, bytes, count);
        expect_err(rp_head_read(&copy, 0, &got), RP_ERR_FORMAT);
    }
    free(bytes);
    rp_buffer_drop(&head);
}

static void a_sealed_frame_is_still_checked(void **state) {
    (void)state;
    uint8_t bytes[RP_HEAD_BYTES_MAX + 1] = {0xff, 0xff};
    rp_buffer head;
    rp_Frame got;
    rp_buffer_borrow(&head, bytes, rp_head_seal(bytes, 2));
    assert_int_equal(head.bytes, 2 + RP_HEAD_SUM_BYTES);
    expect_err(rp_head_read(&head, 0, &got), RP_ERR_FORMAT); /* no protobuf */
    rp_buffer_borrow(&head, bytes, sizeof bytes);
    expect_err(rp_head_read(&head, 0, &got), RP_ERR_FORMAT); /* too long */
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_flipped_bit_is_found),
        cmocka_unit_test(a_sealed_frame_is_still_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
