#include "base/log.h"
#include "expect.h"
#include "link/receiver.h"

typedef struct {
    rp_arena arena;
    rp_receiver *receiver;
} fixture;

static void open_receiver(fixture *f, uint32_t window, uint32_t control_max) {
    rp_arena_init(&f->arena, "test", 0);
    const rp_receiver_options options = {window, control_max};
    expect_ok(rp_receiver_new(&f->arena, &options, &f->receiver));
}

static void close_receiver(fixture *f) {
    rp_receiver_drop_all(f->receiver);
    rp_arena_finish(&f->arena);
}

/* Message `seq`: data with one byte that is its number, or control. `damage`: the byte is another
 * than its hash says. */
static rp_receipt offer_as(fixture *f, uint64_t seq, bool data, bool keep, bool damage) {
    uint8_t written[RP_FRAME_BYTES_MAX];
    size_t count;
    uint8_t byte = (uint8_t)seq;
    const rp_Parcel parcel = {.step = seq, .count = 1};
    rp_Frame frame = data ? rp_frame_of_parcel(RP_KIND_LABEL, &parcel)
                          : (rp_Frame){.which_body = RP_KIND_STOP, .body.stop = {seq}};
    const rp_part part = rp_part_of_array(RP_DTYPE_U8, &byte, 1);
    expect_ok(rp_frame_encode(&frame, &part, data, written, &count));
    frame.seq = seq;
    rp_buffer *buffer = NULL;
    void *memory;
    if (data) {
        expect_ok(rp_buffer_new(1, &buffer, &memory));
        *(uint8_t *)memory = damage ? (uint8_t)(byte ^ 4) : byte;
    }
    rp_receipt receipt = rp_receiver_offer(f->receiver, &frame, &buffer, data, keep);
    if (data && keep && receipt == RP_RECEIPT_NEXT) {
        assert_null(buffer); /* taken */
    }
    rp_buffer_drop(&buffer);
    return receipt;
}

static rp_receipt offer_frame(fixture *f, uint64_t seq, bool data) {
    return offer_as(f, seq, data, true, false);
}

static rp_message *take_message(fixture *f, uint64_t seq) {
    rp_message *message;
    expect_ok(rp_receiver_take(f->receiver, &message));
    assert_int_equal(message->frame.seq, seq);
    if (rp_frame_is_data(&message->frame)) {
        assert_int_equal(message->part_count, 1);
        assert_int_equal(*(const uint8_t *)message->part[0].data, (uint8_t)seq);
    }
    return message;
}

static void messages_come_once_and_in_order(void **state) {
    (void)state;
    fixture f;
    rp_message *message;
    open_receiver(&f, 8, 8);
    expect_err(rp_receiver_take(f.receiver, &message), RP_ERR_AGAIN);
    assert_int_equal(rp_receiver_ack(f.receiver), 0);
    assert_int_equal(offer_frame(&f, 1, true), RP_RECEIPT_NEXT);
    assert_int_equal(offer_frame(&f, 1, true), RP_RECEIPT_DUPLICATE);
    assert_int_equal(offer_frame(&f, 3, true), RP_RECEIPT_GAP);
    assert_int_equal(offer_frame(&f, 2, false), RP_RECEIPT_NEXT);
    assert_int_equal(offer_frame(&f, 3, true), RP_RECEIPT_NEXT);
    assert_int_equal(offer_frame(&f, 2, false), RP_RECEIPT_DUPLICATE);
    assert_int_equal(rp_receiver_ack(f.receiver), 3);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        message = take_message(&f, seq);
        assert_false(rp_receiver_release(f.receiver, &message));
        assert_null(message);
    }
    expect_err(rp_receiver_take(f.receiver, &message), RP_ERR_AGAIN);
    assert_false(rp_receiver_release(f.receiver, &message)); /* nothing */
    close_receiver(&f);
}

/* A gap is told once; again when a probe says that the repetition, or our word, was lost. */
static void gaps_are_told_once(void **state) {
    (void)state;
    fixture f;
    open_receiver(&f, 8, 8);
    assert_int_equal(offer_frame(&f, 1, true), RP_RECEIPT_NEXT);
    assert_int_equal(offer_frame(&f, 3, true), RP_RECEIPT_GAP);
    assert_true(rp_receiver_ask_again(f.receiver));
    assert_int_equal(offer_frame(&f, 4, true), RP_RECEIPT_GAP);
    assert_false(rp_receiver_ask_again(f.receiver));
    assert_false(rp_receiver_on_probe(f.receiver, 1)); /* that came */
    assert_true(rp_receiver_on_probe(f.receiver, 4));
    assert_true(rp_receiver_on_probe(f.receiver, 4)); /* each probe gets its answer */
    assert_int_equal(offer_frame(&f, 2, true), RP_RECEIPT_NEXT);
    assert_int_equal(offer_frame(&f, 4, true), RP_RECEIPT_GAP); /* another gap */
    assert_true(rp_receiver_ask_again(f.receiver));
    close_receiver(&f);
}

static void credit_follows_release(void **state) {
    (void)state;
    fixture f;
    open_receiver(&f, 2, 8);
    assert_int_equal(rp_receiver_credit(f.receiver), 2);
    assert_int_equal(offer_frame(&f, 1, true), RP_RECEIPT_NEXT);
    assert_int_equal(offer_frame(&f, 2, true), RP_RECEIPT_NEXT);
    assert_int_equal(rp_receiver_credit(f.receiver), 2);
    assert_int_equal(offer_frame(&f, 3, true), RP_RECEIPT_DAMAGED); /* beyond it */
    assert_int_equal(offer_frame(&f, 3, false), RP_RECEIPT_NEXT);   /* control needs none */
    rp_message *first = take_message(&f, 1);
    assert_int_equal(rp_receiver_credit(f.receiver), 2);
    rp_receiver_acked(f.receiver);
    assert_false(rp_receiver_owes_ack(f.receiver));
    assert_false(rp_receiver_release(f.receiver, &first));
    assert_true(rp_receiver_owes_ack(f.receiver)); /* the credit has to be told */
    assert_int_equal(rp_receiver_credit(f.receiver), 3);
    assert_int_equal(offer_frame(&f, 4, true), RP_RECEIPT_NEXT);
    assert_int_equal(offer_frame(&f, 5, true), RP_RECEIPT_DAMAGED);
    close_receiver(&f);
}

static void damaged_parts_are_dropped(void **state) {
    (void)state;
    fixture f;
    open_receiver(&f, 2, 2);
    assert_int_equal(offer_as(&f, 1, true, true, true), RP_RECEIPT_DAMAGED);
    assert_int_equal(rp_receiver_ack(f.receiver), 0);
    assert_int_equal(offer_frame(&f, 1, true), RP_RECEIPT_NEXT);
    close_receiver(&f);
}

/* Of another run: acked, and its credit comes back, but nobody sees it. */
static void unwanted_messages_are_acked(void **state) {
    (void)state;
    fixture f;
    rp_message *message;
    open_receiver(&f, 1, 1);
    for (uint64_t seq = 1; seq <= 5; seq++) {
        assert_int_equal(offer_as(&f, seq, true, false, false), RP_RECEIPT_NEXT);
        assert_int_equal(rp_receiver_ack(f.receiver), seq);
        assert_int_equal(rp_receiver_credit(f.receiver), seq + 1);
    }
    expect_err(rp_receiver_take(f.receiver, &message), RP_ERR_AGAIN);
    close_receiver(&f);
}

/* The pool is used up: nothing is asked for again until there is room, and then at once. */
static void a_full_pool_asks_when_there_is_room(void **state) {
    (void)state;
    fixture f;
    open_receiver(&f, 1, 2);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        assert_int_equal(offer_frame(&f, seq, seq == 1), RP_RECEIPT_NEXT);
    }
    assert_int_equal(offer_frame(&f, 4, false), RP_RECEIPT_NO_ROOM);
    assert_int_equal(offer_frame(&f, 5, false), RP_RECEIPT_GAP);
    assert_false(rp_receiver_ask_again(f.receiver));
    assert_false(rp_receiver_on_probe(f.receiver, 5));
    rp_message *message = take_message(&f, 1);
    assert_true(rp_receiver_release(f.receiver, &message));
    assert_int_equal(offer_frame(&f, 4, false), RP_RECEIPT_NEXT);
    message = take_message(&f, 2);
    assert_false(rp_receiver_release(f.receiver, &message));
    close_receiver(&f);
}

/* An ack travels with the next frame; after a whole round without one it goes alone. */
static void acks_wait_a_round(void **state) {
    (void)state;
    fixture f;
    open_receiver(&f, 4, 4);
    assert_false(rp_receiver_end_round(f.receiver));
    assert_int_equal(offer_frame(&f, 1, true), RP_RECEIPT_NEXT);
    assert_true(rp_receiver_owes_ack(f.receiver));
    assert_false(rp_receiver_end_round(f.receiver));
    assert_true(rp_receiver_end_round(f.receiver));
    rp_receiver_acked(f.receiver);
    assert_false(rp_receiver_end_round(f.receiver));
    assert_false(rp_receiver_owes_ack(f.receiver));
    rp_receiver_owe_ack(f.receiver);
    assert_true(rp_receiver_owes_ack(f.receiver));
    close_receiver(&f);
}

static void news_is_told_until_the_wait_after(void **state) {
    (void)state;
    fixture f;
    open_receiver(&f, 4, 4);
    assert_false(rp_receiver_has_news(f.receiver));
    assert_int_equal(offer_frame(&f, 1, true), RP_RECEIPT_NEXT);
    rp_receiver_begin_wait(f.receiver);
    assert_true(rp_receiver_has_news(f.receiver));
    rp_receiver_begin_wait(f.receiver);
    assert_false(rp_receiver_has_news(f.receiver)); /* it lay here at the wait before */
    close_receiver(&f);
}

/* Another peer's numbers begin at 1; what the old one sent is still there, and in the window. */
static void another_peer_begins_anew(void **state) {
    (void)state;
    fixture f;
    open_receiver(&f, 2, 2);
    assert_int_equal(offer_frame(&f, 1, true), RP_RECEIPT_NEXT);
    assert_int_equal(offer_frame(&f, 3, true), RP_RECEIPT_GAP);
    assert_true(rp_receiver_ask_again(f.receiver));
    rp_receiver_meet(f.receiver);
    assert_int_equal(rp_receiver_ack(f.receiver), 0);
    assert_int_equal(rp_receiver_credit(f.receiver), 1);
    assert_int_equal(offer_frame(&f, 2, true), RP_RECEIPT_GAP);
    assert_true(rp_receiver_ask_again(f.receiver));
    assert_int_equal(offer_frame(&f, 1, true), RP_RECEIPT_NEXT);
    assert_int_equal(offer_frame(&f, 2, true), RP_RECEIPT_DAMAGED);
    rp_message *message = take_message(&f, 1);
    assert_false(rp_receiver_release(f.receiver, &message));
    assert_int_equal(rp_receiver_credit(f.receiver), 2);
    message = take_message(&f, 1); /* this one's */
    assert_false(rp_receiver_release(f.receiver, &message));
    close_receiver(&f);
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_once_and_in_order),
        cmocka_unit_test(gaps_are_told_once),
        cmocka_unit_test(credit_follows_release),
        cmocka_unit_test(damaged_parts_are_dropped),
        cmocka_unit_test(unwanted_messages_are_acked),
        cmocka_unit_test(a_full_pool_asks_when_there_is_room),
        cmocka_unit_test(acks_wait_a_round),
        cmocka_unit_test(news_is_told_until_the_wait_after),
        cmocka_unit_test(another_peer_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
