#include "base/clock.h"
#include "expect.h"
#include "link/sender.h"

#define MS RP_NS_PER_MS

typedef struct {
    rp_arena arena;
    rp_sender *sender;
    uint32_t done[64]; /* calls by number */
    struct ticket {
        void *fixture;
        uint32_t number;
    } ticket[64];
    uint32_t put;
    uint8_t memory[64];
} fixture;

static void count_done(void *context) {
    const struct ticket *t = context;
    ((fixture *)t->fixture)->done[t->number]++;
}

static void open_sender(fixture *f, uint32_t window, uint32_t control_max, bool calls) {
    memset(f, 0, sizeof *f);
    rp_arena_init(&f->arena, "test", 0);
    const rp_sender_options options = {window, control_max, calls};
    expect_ok(rp_sender_new(&f->arena, &options, 0, &f->sender));
}

static void close_sender(fixture *f) {
    rp_sender_give_up(f->sender);
    rp_sender_call_done(f->sender);
    assert_false(rp_sender_is_lending(f->sender));
    for (uint32_t i = 0; i < f->put; i++) {
        assert_int_equal(f->done[i], 1);
    }
    rp_arena_finish(&f->arena);
}

/* A data message that lends one byte of memory, or a control message without parts. */
static void put_message(fixture *f, bool data) {
    const rp_Parcel parcel = {.step = f->put, .count = 1};
    rp_Frame frame = data ? rp_frame_of_parcel(RP_KIND_LABEL, &parcel)
                          : (rp_Frame){.which_body = RP_KIND_STOP, .body.stop = {f->put}};
    const rp_part part = rp_part_of_array(RP_DTYPE_U8, &f->memory[f->put], 1);
    f->ticket[f->put] = (struct ticket){f, f->put};
    expect_ok(rp_sender_put(f->sender, &frame, &part, data, false, count_done, &f->ticket[f->put]));
    f->put++;
}

/* The number that is transmitted now, 0 when none; it is posted. */
static uint64_t transmit_messages(fixture *f, int64_t now) {
    rp_sender_message message;
    if (!rp_sender_next(f->sender, &message)) {
        return 0;
    }
    rp_sender_sent(f->sender, now);
    return message.frame->seq;
}

static void numbers_begin_with_the_peer(void **state) {
    (void)state;
    fixture f;
    open_sender(&f, 4, 4, true);
    assert_false(rp_sender_has_room(f.sender, true)); /* no credit yet */
    put_message(&f, false);
    assert_int_equal(transmit_messages(&f, 0), 0); /* no peer yet */
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 2, 0);
    put_message(&f, true);
    put_message(&f, true);
    assert_false(rp_sender_has_room(f.sender, true));
    for (uint64_t seq = 1; seq <= 3; seq++) {
        assert_int_equal(transmit_messages(&f, 0), seq);
    }
    assert_int_equal(transmit_messages(&f, 0), 0);
    const rp_sender_facts facts = rp_sender_facts_of(f.sender);
    assert_int_equal(facts.sent, 3);
    assert_int_equal(facts.resent, 0);
    assert_int_equal(facts.unacked, 3);
    assert_true(facts.on_the_way);
    close_sender(&f);
}

/* What the peer has not given back, on its way or there: told by its credit. */
static void credit_says_what_is_released(void **state) {
    (void)state;
    fixture f;
    open_sender(&f, 8, 4, true);
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 3, 0);
    assert_int_equal(rp_sender_facts_of(f.sender).unreleased, 0);
    put_message(&f, true);
    put_message(&f, false); /* not data */
    put_message(&f, true);
    assert_int_equal(rp_sender_facts_of(f.sender).unreleased, 2);
    for (int i = 0; i < 3; i++) {
        (void)transmit_messages(&f, 0);
    }
    assert_true(rp_sender_on_ack(f.sender, 3, 0));
    assert_int_equal(rp_sender_facts_of(f.sender).unreleased, 2); /* there, and in use */
    rp_sender_on_credit(f.sender, 4, 0);
    assert_int_equal(rp_sender_facts_of(f.sender).unreleased, 1);
    rp_sender_on_credit(f.sender, 5, 0);
    assert_int_equal(rp_sender_facts_of(f.sender).unreleased, 0);
    rp_sender_meet(f.sender); /* another peer, another window */
    rp_sender_on_credit(f.sender, 7, 0);
    put_message(&f, true);
    assert_int_equal(rp_sender_facts_of(f.sender).unreleased, 1);
    close_sender(&f);
}

static void windows_are_bounded(void **state) {
    (void)state;
    fixture f;
    open_sender(&f, 3, 2, true);
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 100, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(rp_sender_has_room(f.sender, true));
        put_message(&f, true);
    }
    assert_false(rp_sender_has_room(f.sender, true));
    put_message(&f, false);
    put_message(&f, false);
    assert_false(rp_sender_has_room(f.sender, false));
    for (int i = 0; i < 5; i++) {
        assert_true(transmit_messages(&f, 0) > 0);
    }
    assert_true(rp_sender_on_ack(f.sender, 2, 0));
    assert_false(rp_sender_has_room(f.sender, true)); /* acked, but done() comes first */
    rp_sender_call_done(f.sender);
    assert_true(rp_sender_has_room(f.sender, true));
    assert_false(rp_sender_has_room(f.sender, false)); /* data made the room */
    assert_true(rp_sender_on_ack(f.sender, 4, 0));
    rp_sender_call_done(f.sender);
    assert_true(rp_sender_has_room(f.sender, false));
    close_sender(&f);
}

static void acks_finish_in_any_form(void **state) {
    (void)state;
    fixture f;
    open_sender(&f, 8, 1, true);
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 8, 0);
    for (int i = 0; i < 4; i++) {
        put_message(&f, true);
    }
    for (int i = 0; i < 3; i++) {
        (void)transmit_messages(&f, 0);
    }
    assert_false(rp_sender_on_ack(f.sender, 4, 0)); /* was never sent */
    assert_false(rp_sender_on_ack(f.sender, UINT64_MAX, 0));
    assert_true(rp_sender_on_ack(f.sender, 2, 0));
    assert_true(rp_sender_on_ack(f.sender, 1, 0)); /* an old frame: nothing new */
    rp_sender_call_done(f.sender);
    rp_sender_call_done(f.sender);
    assert_int_equal(f.done[0] + f.done[1], 2);
    assert_int_equal(f.done[2] + f.done[3], 0);
    assert_int_equal(rp_sender_facts_of(f.sender).unacked, 2);
    close_sender(&f);
}

/* Memory that the transport still reads is not given back, whatever the peer acks; a later message
 * may be. */
static void lent_memory_is_waited_for(void **state) {
    (void)state;
    fixture f;
    rp_sender_message message;
    open_sender(&f, 8, 1, true);
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 8, 0);
    put_message(&f, true);
    put_message(&f, true);
    assert_true(rp_sender_next(f.sender, &message));
    rp_buffer *kept = rp_buffer_keep(message.part[0]);
    assert_ptr_equal(kept->data, &f.memory[0]);
    rp_sender_sent(f.sender, 0);
    (void)transmit_messages(&f, 0);
    assert_true(rp_sender_on_ack(f.sender, 2, 0));
    rp_sender_call_done(f.sender);
    assert_int_equal(f.done[0], 0);
    assert_int_equal(f.done[1], 1);
    assert_true(rp_sender_is_lending(f.sender));
    rp_buffer_drop(&kept);
    rp_sender_call_done(f.sender);
    assert_int_equal(f.done[0], 1);
    assert_false(rp_sender_is_lending(f.sender));
    close_sender(&f);
}

static void copies_need_no_memory_of_the_caller(void **state) {
    (void)state;
    fixture f;
    rp_sender_message message;
    open_sender(&f, 2, 1, true);
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 2, 0);
    uint8_t bytes[3] = {1, 2, 3};
    const rp_Parcel parcel = {.count = 3};
    const rp_Frame frame = rp_frame_of_parcel(RP_KIND_LABEL, &parcel);
    const rp_part part = rp_part_of_array(RP_DTYPE_U8, bytes, 3);
    expect_ok(rp_sender_put(f.sender, &frame, &part, 1, true, NULL, NULL));
    memset(bytes, 0, sizeof bytes);
    assert_true(rp_sender_next(f.sender, &message));
    rp_buffer *kept = rp_buffer_keep(message.part[0]);
    rp_sender_sent(f.sender, 0);
    assert_true(rp_sender_on_ack(f.sender, 1, 0));
    rp_sender_call_done(f.sender);
    assert_false(rp_sender_is_lending(f.sender)); /* who keeps a copy keeps nobody waiting */
    assert_int_equal(((const uint8_t *)kept->data)[2], 3);
    rp_buffer_drop(&kept);
    close_sender(&f);
}

/* "Again": from the ack on, each number as before; an older request does nothing. */
static void replays_go_back_to_the_ack(void **state) {
    (void)state;
    fixture f;
    rp_sender_probe probe;
    open_sender(&f, 8, 1, true);
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 8, 0);
    for (uint64_t seq = 1; seq <= 5; seq++) {
        put_message(&f, true);
        assert_int_equal(transmit_messages(&f, 0), seq);
    }
    assert_true(rp_sender_on_ack(f.sender, 2, 10 * MS));
    assert_true(rp_sender_probe_due(f.sender, 210 * MS, &probe));
    assert_int_equal(probe.seq, 5);
    rp_sender_on_again(f.sender, probe.generation, 20 * MS);
    for (uint64_t seq = 3; seq <= 5; seq++) {
        assert_int_equal(transmit_messages(&f, 20 * MS), seq);
    }
    assert_int_equal(transmit_messages(&f, 20 * MS), 0);
    rp_sender_on_again(f.sender, probe.generation, 20 * MS); /* the same request, late */
    assert_int_equal(transmit_messages(&f, 20 * MS), 0);
    rp_sender_on_again(f.sender, RP_SENDER_ANY_GENERATION, 20 * MS);
    assert_int_equal(transmit_messages(&f, 20 * MS), 3);
    assert_true(rp_sender_on_ack(f.sender, 5, 20 * MS)); /* of the first transmission */
    assert_int_equal(transmit_messages(&f, 20 * MS), 0);
    const rp_sender_facts facts = rp_sender_facts_of(f.sender);
    assert_int_equal(facts.sent, 5);
    assert_int_equal(facts.resent, 4);
    close_sender(&f);
}

/* After each replay at once, three times; then with the usual pause. */
static void replays_probe_eagerly_at_first(void **state) {
    (void)state;
    fixture f;
    rp_sender_probe probe;
    open_sender(&f, 8, 1, true);
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 8, 0);
    put_message(&f, true);
    (void)transmit_messages(&f, 0);
    for (int i = 0; i < 5; i++) {
        rp_sender_on_again(f.sender, RP_SENDER_ANY_GENERATION, 0);
        (void)transmit_messages(&f, 0);
        assert_int_equal(rp_sender_probe_due(f.sender, 0, &probe), i < 3);
        if (i < 3) {
            rp_sender_probed(f.sender, true, 0);
        }
    }
    close_sender(&f);
}

/* 200 ms after the last progress, then after 400, 800, 1600, 2000, 2000 ms. */
static void probes_come_ever_later(void **state) {
    (void)state;
    static const int64_t pauses[] = {200, 200, 400, 800, 1600, 2000, 2000};
    fixture f;
    rp_sender_probe probe;
    open_sender(&f, 8, 1, false);
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 8, 0);
    assert_int_equal(rp_sender_deadline_ns(f.sender), INT64_MAX); /* nothing is awaited */
    assert_false(rp_sender_probe_due(f.sender, 100000 * MS, &probe));
    put_message(&f, true);
    int64_t now = 5000 * MS;
    (void)transmit_messages(&f, now);
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        const int64_t due = now + pauses[i] * MS;
        assert_int_equal(rp_sender_deadline_ns(f.sender), due);
        assert_false(rp_sender_probe_due(f.sender, due - 1, &probe));
        assert_true(rp_sender_probe_due(f.sender, due, &probe));
        rp_sender_probed(f.sender, true, due);
        now = due;
    }
    assert_true(rp_sender_on_ack(f.sender, 1, now)); /* progress */
    put_message(&f, true);
    (void)transmit_messages(&f, now);
    assert_int_equal(rp_sender_deadline_ns(f.sender), now + 200 * MS);
    close_sender(&f);
}

/* What is awaited: an ack, credit, a peer to talk to (where this end calls). */
static void probes_ask_for_what_is_awaited(void **state) {
    (void)state;
    fixture f;
    rp_sender_probe probe;
    for (int calls = 0; calls < 2; calls++) {
        open_sender(&f, 2, 1, calls);
        assert_int_equal(rp_sender_probe_due(f.sender, 0, &probe), calls);
        rp_sender_meet(f.sender);
        assert_true(rp_sender_probe_due(f.sender, 0, &probe)); /* no credit */
        rp_sender_on_credit(f.sender, 1, 0);
        assert_false(rp_sender_probe_due(f.sender, 10000 * MS, &probe));
        put_message(&f, true); /* uses the credit up */
        (void)transmit_messages(&f, 0);
        assert_true(rp_sender_on_ack(f.sender, 1, 0));
        assert_false(rp_sender_probe_due(f.sender, 199 * MS, &probe));
        assert_true(rp_sender_probe_due(f.sender, 200 * MS, &probe));
        rp_sender_on_credit(f.sender, 1, 0); /* no more than before */
        assert_true(rp_sender_probe_due(f.sender, 200 * MS, &probe));
        rp_sender_on_credit(f.sender, 2, 0);
        assert_false(rp_sender_probe_due(f.sender, 200 * MS, &probe));
        rp_sender_reconnected(f.sender); /* at once, until it could be posted */
        assert_true(rp_sender_is_ready(f.sender));
        assert_true(rp_sender_probe_due(f.sender, 0, &probe));
        rp_sender_probed(f.sender, false, 0);
        assert_true(rp_sender_probe_due(f.sender, 0, &probe));
        rp_sender_probed(f.sender, true, 0);
        assert_false(rp_sender_probe_due(f.sender, 0, &probe));
        /* who calls asks again until somebody is heard there: the answer may be lost */
        for (int64_t now = 10000 * MS; now < 60000 * MS; now += 10000 * MS) {
            assert_int_equal(rp_sender_probe_due(f.sender, now, &probe), calls);
            rp_sender_probed(f.sender, true, now);
        }
        assert_true(rp_sender_on_ack(f.sender, 1, 60000 * MS));
        assert_false(rp_sender_probe_due(f.sender, 90000 * MS, &probe));
        close_sender(&f);
    }
}

/* What the old peer had not acked is given up, once each; numbers and credit begin anew. */
static void another_peer_begins_anew(void **state) {
    (void)state;
    fixture f;
    open_sender(&f, 8, 4, true);
    rp_sender_meet(f.sender);
    rp_sender_on_credit(f.sender, 8, 0);
    for (int i = 0; i < 3; i++) {
        put_message(&f, true);
    }
    put_message(&f, false);
    (void)transmit_messages(&f, 0);
    (void)transmit_messages(&f, 0);
    assert_true(rp_sender_on_ack(f.sender, 1, 0));
    rp_sender_meet(f.sender);
    rp_sender_call_done(f.sender);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(f.done[i], 1);
    }
    assert_int_equal(transmit_messages(&f, 0), 0);
    assert_false(rp_sender_has_room(f.sender, true)); /* no credit of this one */
    rp_sender_on_credit(f.sender, 1, 0);
    put_message(&f, true);
    assert_int_equal(transmit_messages(&f, 0), 1);
    assert_false(rp_sender_on_ack(f.sender, 2, 0));
    assert_true(rp_sender_on_ack(f.sender, 1, 0));
    close_sender(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_begin_with_the_peer),
        cmocka_unit_test(credit_says_what_is_released),
        cmocka_unit_test(windows_are_bounded),
        cmocka_unit_test(acks_finish_in_any_form),
        cmocka_unit_test(lent_memory_is_waited_for),
        cmocka_unit_test(copies_need_no_memory_of_the_caller),
        cmocka_unit_test(replays_go_back_to_the_ack),
        cmocka_unit_test(replays_probe_eagerly_at_first),
        cmocka_unit_test(probes_come_ever_later),
        cmocka_unit_test(probes_ask_for_what_is_awaited),
        cmocka_unit_test(another_peer_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
