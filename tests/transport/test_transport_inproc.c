#include <time.h>

#include "contract.h"

static void count_wake(void *context) {
    ++*(uint32_t *)context;
}

/* Who gets something is told, so that a scheduler need not look at everybody. */
static void deliveries_wake_their_owner(void **state) {
    (void)state;
    contract_set s;
    uint32_t woken[2] = {0, 0};
    rp_packet packet;
    contract_open(&s);
    for (int i = 0; i < 2; i++) {
        rp_transport_options options = {
            .clock = &s.clock, .hub = s.hub, .wake = count_wake, .wake_context = &woken[i]};
        expect_ok(rp_transport_start(&s.arena, "inproc", &options, &s.transport[i]));
    }
    contract_bind(&s, "tcp://10.0.0.1:5000");
    contract_connect(&s, 1, "tcp://10.0.0.1:5000");
    contract_until(&s, s.connected[1] > 0);
    assert_int_equal(woken[0], 1); /* of the connection */
    expect_ok(contract_post(&s, 1, 0, contract_packet(1, 1, 0)));
    assert_int_equal(woken[0], 2);
    assert_int_equal(woken[1], 0);
    expect_ok(contract_take(&s, 0, &packet));
    expect_ok(contract_post(&s, 0, packet.peer, contract_packet(1, 1, 0)));
    rp_packet_drop(&packet);
    assert_int_equal(woken[1], 1);
    uint32_t sent = 0;
    while (contract_post(&s, 1, 0, contract_packet(sent, 1, 0)) == RP_OK) {
        sent++;
    }
    assert_int_equal(sent, CONTRACT_QUEUE);
    expect_ok(contract_take(&s, 0, &packet));
    rp_packet_drop(&packet);
    assert_int_equal(woken[1], 2); /* there is room again */
    rp_port_close(&s.port[0]);
    assert_int_equal(woken[1], 3);
    contract_close(&s);
}

/* One binding end takes from its connections in turn. */
static void connections_take_turns(void **state) {
    (void)state;
    contract_set s;
    (void)contract_join(&s);
    expect_ok(rp_port_allow(s.port[0], s.keys[2].public_text));
    contract_connect(&s, 2, s.port[0]->endpoint);
    contract_until(&s, s.connected[2] > 0);
    for (uint32_t i = 0; i < 3; i++) {
        expect_ok(contract_post(&s, 1, 0, contract_packet(1, 1, 0)));
        expect_ok(contract_post(&s, 2, 0, contract_packet(2, 1, 0)));
    }
    uint32_t before = 0;
    for (int i = 0; i < 6; i++) {
        rp_packet packet;
        expect_ok(contract_take(&s, 0, &packet));
        const uint32_t number = contract_check(&packet, 1, 0);
        assert_true(number != before);
        before = number;
        rp_packet_drop(&packet);
    }
    contract_close(&s);
}

/* Owned memory is handed over, not copied. */
static void owned_frames_are_not_copied(void **state) {
    (void)state;
    contract_set s;
    (void)contract_join(&s);
    rp_packet packet = contract_packet(1, 3, 4000);
    const void *data = packet.frame[2]->data;
    expect_ok(s.port[1]->kind->post(s.port[1], &packet));
    rp_packet_drop(&packet);
    expect_ok(contract_take(&s, 0, &packet));
    assert_ptr_equal(packet.frame[2]->data, data);
    rp_packet_drop(&packet);
    contract_close(&s);
}

/* A packet of an earlier life comes again, to whoever listens there now. */
static void old_packets_are_replayed(void **state) {
    (void)state;
    contract_set s;
    rp_hub *hub;
    rp_packet packet;
    contract_open(&s);
    expect_ok(rp_hub_new(&s.arena, 4, &hub));
    for (int i = 0; i < 2; i++) {
        rp_transport_options options = {.clock = &s.clock, .hub = hub};
        expect_ok(rp_transport_start(&s.arena, "inproc", &options, &s.transport[i]));
    }
    for (uint32_t life = 0; life < 2; life++) {
        contract_bind(&s, "tcp://0.0.0.0:5000");
        contract_connect(&s, 1, "tcp://10.0.0.7:5000");
        contract_until(&s, s.connected[1] > life);
        if (life == 0) {
            expect_ok(contract_post(&s, 1, 0, contract_packet(41, 2, 99)));
            expect_ok(contract_post(&s, 1, 0, contract_packet(42, 2, 99)));
            assert_int_equal(rp_hub_remembered(hub), 2);
        } else {
            expect_err(contract_take(&s, 0, &packet), RP_ERR_AGAIN);
            expect_ok(rp_hub_replay(hub, 1));
            expect_ok(contract_take(&s, 0, &packet));
            assert_int_equal(contract_check(&packet, 2, 99), 42);
            assert_true(packet.peer != 0);
            rp_packet_drop(&packet);
            for (uint32_t i = 0; i < 7; i++) { /* only the last four are kept */
                expect_ok(contract_post(&s, 0, 2, contract_packet(i, 1, 0)));
            }
            assert_int_equal(rp_hub_remembered(hub), 4);
            for (uint32_t i = 0; i < 7; i++) {
                expect_ok(contract_take(&s, 1, &packet));
                rp_packet_drop(&packet);
            }
            expect_ok(rp_hub_replay(hub, 0));
            expect_ok(contract_take(&s, 1, &packet));
            assert_int_equal(contract_check(&packet, 1, 0), 3);
            rp_packet_drop(&packet);
        }
        rp_port_close(&s.port[1]);
        rp_port_close(&s.port[0]);
        expect_err(rp_hub_replay(hub, 0), RP_ERR_AGAIN);
    }
    rp_hub_finish(&hub);
    contract_close(&s);
}

/* What begins a connection is kept apart: later packets do not drive it out. */
static void beginnings_are_remembered(void **state) {
    (void)state;
    contract_set s;
    rp_hub *hub;
    rp_packet packet;
    contract_open(&s);
    expect_ok(rp_hub_new(&s.arena, 2, &hub));
    expect_ok(rp_hub_remember_beginnings(hub, &s.arena, 8));
    for (int i = 0; i < 2; i++) {
        rp_transport_options options = {.clock = &s.clock, .hub = hub};
        expect_ok(rp_transport_start(&s.arena, "inproc", &options, &s.transport[i]));
    }
    contract_bind(&s, "tcp://0.0.0.0:5000");
    contract_connect(&s, 1, "tcp://10.0.0.7:5000");
    contract_until(&s, s.connected[1] > 0);
    for (uint32_t i = 0; i < 9; i++) {
        expect_ok(contract_post(&s, 1, 0, contract_packet(i, 1, 0)));
        expect_ok(contract_take(&s, 0, &packet));
        rp_packet_drop(&packet);
    }
    assert_int_equal(rp_hub_remembered(hub), 4 + 2);
    static const uint32_t kept[] = {0, 1, 2, 3, 7, 8};
    for (uint32_t i = 0; i < 6; i++) {
        expect_ok(rp_hub_replay(hub, i));
        expect_ok(contract_take(&s, 0, &packet));
        assert_int_equal(contract_check(&packet, 1, 0), kept[i]);
        rp_packet_drop(&packet);
    }
    rp_port_close(&s.port[1]);
    rp_port_close(&s.port[0]);
    rp_hub_finish(&hub);
    contract_close(&s);
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    contract = (contract_kind){.name = "inproc"};
    const struct CMUnitTest tests[] = {
        CONTRACT_CASES,
        cmocka_unit_test(deliveries_wake_their_owner),
        cmocka_unit_test(connections_take_turns),
        cmocka_unit_test(owned_frames_are_not_copied),
        cmocka_unit_test(old_packets_are_replayed),
        cmocka_unit_test(beginnings_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
