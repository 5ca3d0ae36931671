/* Silence, on a virtual clock: an agent whose host is lost, and one that builds for a long time. */
#include <stdatomic.h>
#include <time.h>

#include "one_agent.h"

/* The host's limits and the agent's, of PROTOCOL.md. */
static const int64_t BOARD_SILENT_NS = 10 * RP_NS_PER_S;
static const int64_t HOST_SILENT_NS = 90 * RP_NS_PER_S;
static const int64_t ORPHAN_NS = 60 * RP_NS_PER_S;

static void step_for(fixture *f, int64_t time_ns) {
    const int64_t end_ns = rp_clock_now_ns(&f->clock) + time_ns;
    while (rp_clock_now_ns(&f->clock) < end_ns) {
        step(f);
    }
}

static void expect_state(const fixture *f, rp_agent_state state) {
    assert_string_equal(rp_agent_state_name(rp_agent_state_of(f->agent)),
                        rp_agent_state_name(state));
}

/* ---- a lost host ----------------------------------------------------------------------------- */

static void open_digest(fixture *f) {
    open_agent(f, true, rp_executor_find("digest"), false);
    f->ping_ns = RP_NS_PER_S;
}

static void lose_host(fixture *f) {
    f->ping_ns = 0;
    step_for(f, HOST_SILENT_NS + RP_NS_PER_S);
}

static void take_silence_fault(fixture *f) {
    const rp_Frame fault = receive(f);
    assert_int_equal(rp_frame_kind(&fault), RP_KIND_FAULT);
    assert_int_equal(fault.body.fault.fault_class, RP_FAULT_TRANSIENT);
    assert_non_null(strstr(fault.body.fault.text, "no message from the host for 90 s"));
}

/* Its run stops and is kept for a while; then it is over. */
static void a_lost_host_leaves_an_orphan(void **state) {
    (void)state;
    static const rp_agent_state from[] = {RP_AGENT_READY, RP_AGENT_RUNNING};
    for (uint32_t i = 0; i < 2; i++) {
        fixture f;
        open_digest(&f);
        lead_to(&f, from[i]);
        step_for(&f, 2 * HOST_SILENT_NS); /* pings are enough */
        expect_state(&f, from[i]);
        f.ping_ns = 0;
        step_for(&f, HOST_SILENT_NS - 2 * RP_NS_PER_S);
        expect_state(&f, from[i]);
        step_for(&f, 3 * RP_NS_PER_S);
        expect_state(&f, RP_AGENT_ORPHAN);
        take_silence_fault(&f);
        step_for(&f, ORPHAN_NS - 2 * RP_NS_PER_S);
        expect_state(&f, RP_AGENT_ORPHAN);
        step_for(&f, 2 * RP_NS_PER_S);
        expect_state(&f, RP_AGENT_HELLO);
        greet(&f);
        close_fixture(&f);
    }
}

/* Of its own term it takes only what ends it, and a greeting is another controller's, which is told
 * so; a higher one is greeted. */
static void an_orphan_answers_a_higher_term(void **state) {
    (void)state;
    fixture f;
    const rp_Frame hello = {.which_body = RP_KIND_HELLO,
                            .body.hello = {.wire_min = RP_WIRE_MIN,
                                           .wire_max = RP_WIRE_MAX,
                                           .features = HOST_FEATURES}};
    open_digest(&f);
    lead_to(&f, RP_AGENT_READY);
    lose_host(&f);
    take_silence_fault(&f);
    send(&f, hello, NULL, 0);
    const rp_Frame refusal = receive(&f);
    assert_int_equal(rp_frame_kind(&refusal), RP_KIND_FAULT);
    assert_non_null(strstr(refusal.body.fault.text, "with the same term"));
    send_kind(&f, RP_KIND_START);
    send_texts(&f, RP_KIND_ASSIGN);
    step_for(&f, RP_NS_PER_S);
    expect_state(&f, RP_AGENT_ORPHAN);
    greet(&f); /* the first answer is to this */
    expect_state(&f, RP_AGENT_HELLO);
    lead_to(&f, RP_AGENT_RUNNING);
    lose_host(&f);
    expect_state(&f, RP_AGENT_ORPHAN);
    take_silence_fault(&f);
    send_kind(&f, RP_KIND_BYE);
    step_to_state(&f, RP_AGENT_HELLO);
    close_fixture(&f);
}

/* As long as the host has said when it gave the board its stages. */
static void an_orphan_waits_as_long_as_it_is_told(void **state) {
    (void)state;
    fixture f;
    open_digest(&f);
    f.orphan_s = 7;
    lead_to(&f, RP_AGENT_READY);
    lose_host(&f);
    expect_state(&f, RP_AGENT_ORPHAN);
    step_for(&f, 4 * RP_NS_PER_S);
    expect_state(&f, RP_AGENT_ORPHAN);
    step_for(&f, 4 * RP_NS_PER_S);
    expect_state(&f, RP_AGENT_HELLO);
    close_fixture(&f);
}

/* ---- a host that takes over ------------------------------------------------------------------ */

/* What the board answers; `held`: and what it holds. */
static bool ask_what_is_held(fixture *f, uint32_t hold, rp_Held *held) {
    const rp_Frame hello = {.which_body = RP_KIND_HELLO,
                            .body.hello = {.wire_min = RP_WIRE_MIN,
                                           .wire_max = RP_WIRE_MAX,
                                           .features = HOST_FEATURES,
                                           .hold = hold}};
    send(f, hello, NULL, 0);
    rp_Frame answer = receive(f);
    while (rp_frame_kind(&answer) != RP_KIND_HELLO) {
        assert_int_equal(rp_frame_kind(&answer), RP_KIND_FAULT); /* it missed the host before */
        answer = receive(f);
    }
    if (answer.body.hello.busy) {
        const rp_Frame frame = receive(f);
        assert_int_equal(rp_frame_kind(&frame), RP_KIND_HELD);
        assert_int_equal(frame.term, f->term);
        *held = frame.body.held;
    }
    return answer.body.hello.busy;
}

static void expect_saved(fixture *f) {
    rp_kind kind = RP_KIND_NONE;
    uint32_t tensors = 0;
    send_kind(f, RP_KIND_SAVE);
    while (kind != RP_KIND_TENSORS_END) {
        const rp_Frame frame = receive(f);
        kind = rp_frame_kind(&frame);
        tensors += kind == RP_KIND_TENSOR;
        assert_true(kind == RP_KIND_TENSOR || kind == RP_KIND_TENSORS_END);
    }
    assert_int_equal(tensors, 4); /* of two layers */
}

static void a_new_host_is_told_what_is_held(void **state) {
    (void)state;
    for (uint32_t orphan = 0; orphan < 2; orphan++) {
        fixture f;
        rp_Held held = {0};
        open_digest(&f);
        lead_to(&f, RP_AGENT_RUNNING);
        if (orphan) {
            lose_host(&f);
        }
        f.term++;
        assert_true(ask_what_is_held(&f, 1, &held));
        expect_state(&f, RP_AGENT_RUNNING); /* it may go on, an orphan again */
        assert_int_equal(held.step, 0);
        assert_false(held.paused || held.stopped);
        assert_true(held.settled && held.clean && held.plan != 0);
        assert_true(ask_what_is_held(&f, 2, &held));
        expect_state(&f, RP_AGENT_PAUSED);
        assert_true(held.stopped);
        assert_true(ask_what_is_held(&f, 1, &held));
        expect_state(&f, RP_AGENT_RUNNING);
        assert_false(held.stopped);
        assert_true(ask_what_is_held(&f, 2, &held));
        expect_saved(&f);
        send_kind(&f, RP_KIND_START); /* it stays so */
        const rp_Frame fault = receive(&f);
        assert_int_equal(rp_frame_kind(&fault), RP_KIND_FAULT);
        greet(&f);
        close_fixture(&f);
    }
}

/* One that died while boards copied what they hold: a save goes to the next one all the same. */
static void a_new_host_saves_in_the_middle_of_a_copy(void **state) {
    (void)state;
    static const rp_Frame copy = {.which_body = RP_KIND_COPY,
                                  .body.copy = {.step = 1, .bytes_max = 1 << 20}};
    fixture f;
    rp_Held held;
    open_digest(&f);
    lead_to(&f, RP_AGENT_RUNNING);
    f.term++;
    assert_true(ask_what_is_held(&f, 2, &held));
    send(&f, copy, NULL, 0);
    f.term++;
    assert_true(ask_what_is_held(&f, 2, &held));
    expect_saved(&f);
    close_fixture(&f);
}

/* Nobody's run ends because somebody asks, and nothing is held that was not trained. */
static void asking_ends_nothing(void **state) {
    (void)state;
    static const rp_agent_state from[] = {RP_AGENT_HELLO, RP_AGENT_ASSIGNED, RP_AGENT_READY};
    rp_Held held;
    fixture f;
    for (uint32_t i = 0; i < 3; i++) {
        open_digest(&f);
        lead_to(&f, from[i]);
        assert_false(ask_what_is_held(&f, 2, &held));
        expect_state(&f, from[i]);
        close_fixture(&f);
    }
    open_digest(&f);
    lead_to(&f, RP_AGENT_RUNNING);
    f.run_id = 8;
    assert_false(ask_what_is_held(&f, 2, &held));
    expect_state(&f, RP_AGENT_RUNNING);
    close_fixture(&f);
}

/* The host before, which is not dead after all. */
static void a_host_that_was_replaced_is_refused(void **state) {
    (void)state;
    rp_Held held;
    fixture f;
    open_digest(&f);
    lead_to(&f, RP_AGENT_RUNNING);
    f.term++;
    assert_true(ask_what_is_held(&f, 1, &held));
    f.term--;
    send(&f, (rp_Frame){.which_body = RP_KIND_STOP, .body.stop = {.step = 0}}, NULL, 0);
    step_for(&f, RP_NS_PER_S);
    expect_state(&f, RP_AGENT_RUNNING);
    close_fixture(&f);
}

/* Before a run is complete there is nothing to keep. */
static void an_assigned_board_forgets_at_once(void **state) {
    (void)state;
    fixture f;
    open_digest(&f);
    lead_to(&f, RP_AGENT_ASSIGNED);
    lose_host(&f);
    expect_state(&f, RP_AGENT_HELLO);
    take_silence_fault(&f);
    close_fixture(&f);
}

/* ---- a long build ---------------------------------------------------------------------------- */

static atomic_bool gate; /* open: stages are prepared at once */

static rp_err prepare_behind_gate(rp_arena *arena, const rp_site *site, const rp_job *job,
                                  rp_executor **out) {
    const struct timespec nap = {.tv_nsec = 1000000};
    for (int i = 0; i < 60000 && !atomic_load(&gate); i++) {
        (void)nanosleep(&nap, NULL);
    }
    return rp_executor_find("digest")->prepare(arena, site, job, out);
}

/* The host has heard the board all the time, so that it would not have given it up. */
static void step_while_building(fixture *f, int64_t time_ns) {
    const int64_t end_ns = rp_clock_now_ns(&f->clock) + time_ns;
    while (rp_clock_now_ns(&f->clock) < end_ns) {
        rp_link_stats stats;
        step(f);
        expect_state(f, RP_AGENT_BUILDING);
        rp_link_stats_of(f->link, &stats);
        assert_true(rp_clock_now_ns(&f->clock) - stats.last_heard_ns < BOARD_SILENT_NS / 2);
    }
}

/* The builder's thread works in real time, which the virtual clock does not see. */
static void wait_for_builder(fixture *f) {
    const struct timespec nap = {.tv_nsec = 1000000};
    atomic_store(&gate, true);
    for (int i = 0; i < 60000 && rp_agent_state_of(f->agent) == RP_AGENT_BUILDING; i++) {
        (void)nanosleep(&nap, NULL);
        step(f);
    }
}

/* A cold build of a slow board, and a profile: ten minutes, beats of the heart all the while. */
static void a_board_is_heard_while_it_builds(void **state) {
    (void)state;
    static const rp_kind orders[] = {RP_KIND_ASSIGN, RP_KIND_PROFILE};
    static const rp_kind answers[] = {RP_KIND_READY, RP_KIND_PROFILE_DONE};
    rp_executor_kind slow = *rp_executor_find("digest");
    slow.prepare = prepare_behind_gate;
    for (uint32_t i = 0; i < 2; i++) {
        fixture f;
        atomic_store(&gate, false);
        open_agent(&f, true, &slow, true);
        f.ping_ns = RP_NS_PER_S;
        greet(&f);
        send_texts(&f, orders[i]);
        step_to_state(&f, RP_AGENT_BUILDING);
        step_while_building(&f, 600 * RP_NS_PER_S);
        wait_for_builder(&f);
        expect_kind(&f, answers[i]);
        close_fixture(&f);
    }
}

/* BUILDING again and again, the last one right before the answer; not to a host that is older. */
static void a_host_may_hear_of_the_build(void **state) {
    (void)state;
    static const rp_kind orders[] = {RP_KIND_ASSIGN, RP_KIND_PROFILE};
    static const rp_kind answers[] = {RP_KIND_READY, RP_KIND_PROFILE_DONE};
    rp_executor_kind slow = *rp_executor_find("digest");
    slow.prepare = prepare_behind_gate;
    for (uint32_t i = 0; i < 2; i++) {
        fixture f;
        uint32_t told = 0;
        rp_Building last = {0};
        rp_kind kind = RP_KIND_NONE;
        atomic_store(&gate, false);
        open_agent(&f, true, &slow, true);
        f.ping_ns = RP_NS_PER_S;
        f.features = RP_WIRE_FEATURES;
        greet(&f);
        send_texts(&f, orders[i]);
        step_to_state(&f, RP_AGENT_BUILDING);
        step_while_building(&f, 600 * RP_NS_PER_S); /* the host reads nothing: a bounded number */
        wait_for_builder(&f);
        while (kind == RP_KIND_NONE || kind == RP_KIND_BUILDING) {
            const rp_Frame frame = receive(&f);
            kind = rp_frame_kind(&frame);
            told += kind == RP_KIND_BUILDING;
            last = kind == RP_KIND_BUILDING ? frame.body.building : last;
        }
        assert_int_equal(kind, answers[i]);
        assert_true(told >= 2);
        assert_int_equal(last.layers, orders[i] == RP_KIND_PROFILE ? 2 : 0); /* of the model */
        assert_int_equal(last.layers_timed, last.layers);
        close_fixture(&f);
    }
}

/* A host that is lost meanwhile is noticed as well, and the build is dropped. */
static void a_host_is_missed_while_building(void **state) {
    (void)state;
    rp_executor_kind slow = *rp_executor_find("digest");
    slow.prepare = prepare_behind_gate;
    fixture f;
    atomic_store(&gate, false);
    open_agent(&f, true, &slow, true);
    f.ping_ns = RP_NS_PER_S;
    greet(&f);
    send_texts(&f, RP_KIND_ASSIGN);
    step_to_state(&f, RP_AGENT_BUILDING);
    lose_host(&f);
    expect_state(&f, RP_AGENT_HELLO);
    take_silence_fault(&f);
    atomic_store(&gate, true);
    close_fixture(&f);
}

static void wait_for_ready(fixture *f) {
    const struct timespec nap = {.tv_nsec = 1000000};
    for (int i = 0; i < 60000 && rp_agent_state_of(f->agent) != RP_AGENT_ASSIGNED; i++) {
        (void)nanosleep(&nap, NULL);
        step(f);
    }
    expect_kind(f, RP_KIND_READY);
}

/* A run that is interrupted while its kernels are built, and again: the assignment that waits for
 * the builder is dropped, and the next host is answered at once. */
static void a_waiting_assignment_is_dropped(void **state) {
    (void)state;
    static const rp_kind ends[] = {RP_KIND_BYE, RP_KIND_FAULT, RP_KIND_HELLO};
    rp_executor_kind slow = *rp_executor_find("digest");
    slow.prepare = prepare_behind_gate;
    for (uint32_t i = 0; i < 3; i++) {
        fixture f;
        atomic_store(&gate, false);
        open_agent(&f, true, &slow, true);
        f.ping_ns = RP_NS_PER_S;
        greet(&f);
        send_texts(&f, RP_KIND_ASSIGN);
        step_to_state(&f, RP_AGENT_BUILDING);
        send_kind(&f, RP_KIND_BYE);
        for (uint32_t start = 0; start < 3; start++) {
            greet(&f);
            send_texts(&f, RP_KIND_ASSIGN); /* waits */
            step_for(&f, RP_NS_PER_S);
            expect_state(&f, RP_AGENT_HELLO);
            if (ends[i] != RP_KIND_HELLO) {
                send_kind(&f, ends[i]);
            }
        }
        greet(&f);
        send_texts(&f, RP_KIND_ASSIGN);
        atomic_store(&gate, true);
        wait_for_ready(&f);
        close_fixture(&f);
    }
}

/* ---- a device that hangs --------------------------------------------------------------------- */

static fixture board;
static rp_link *feed;
static bool hangs;

static void hang_device(rp_agent_options *options) {
    options->site.clock = &board.clock;
    options->site.hangs = &hangs;
}

/* What it says last of waiting; every gradient is taken as it is. */
static rp_Waiting take_waiting(void) {
    rp_message *message = NULL;
    rp_Waiting said = {0};
    while (rp_link_recv(board.link, &message) == RP_OK) {
        const rp_Frame *frame = &message->frame;
        if (rp_frame_kind(frame) == RP_KIND_WAITING) {
            said = frame->body.waiting;
        } else if (rp_frame_kind(frame) == RP_KIND_NORMS) {
            const rp_Frame taken = {
                .which_body = RP_KIND_STEP_DECISION,
                .body.step_decision = {.step = frame->body.norms.step, .scale = 1}};
            send(&board, taken, NULL, 0);
        }
        rp_link_release(board.link, &message);
    }
    return said;
}

/* A board that has trained `steps` steps of 2 samples, and is at the first op of the next one. */
static void open_hanging(uint64_t steps) {
    static const int32_t labels[2] = {0, 1};
    static const float inputs[8] = {1};
    const rp_shape rows = rp_shape_2(2, 1);
    const rp_shape batch = rp_shape_2(2, 4);
    const rp_part label = rp_part_of_tensor(RP_DTYPE_I32, labels, &rows);
    const rp_part input = rp_part_of_tensor(RP_DTYPE_F32, inputs, &batch);
    char endpoint[64];
    hangs = false;
    fixture_options = hang_device;
    open_digest(&board);
    fixture_options = NULL;
    board.features = RP_WIRE_FEATURES;
    greet(&board);
    send_texts(&board, RP_KIND_ASSIGN);
    const rp_Frame ready = receive(&board);
    assert_int_equal(rp_frame_kind(&ready), RP_KIND_READY);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", ready.body.ready.feed_port);
    send_kind(&board, RP_KIND_CONNECT);
    const rp_link_options options = {.name = "feed",
                                     .connect = endpoint,
                                     .peer_public = board.agent_keys.public_text,
                                     .window = 1,
                                     .send_window = 4,
                                     .part_bytes_max = 1 << 16,
                                     .run = {7, board.term},
                                     .wire = RP_WIRE_MAX};
    expect_ok(rp_link_open(board.links, &options, &feed));
    send(&board, (rp_Frame){.which_body = RP_KIND_START, .body.start = {.pause = 10}}, NULL, 0);
    for (uint64_t at = 0; at <= steps; at++) {
        const rp_Parcel parcel = {.step = at, .count = 2};
        rp_Frame frame = rp_frame_of_parcel(RP_KIND_LABEL, &parcel);
        for (uint32_t i = 0; i < 100 && !rp_link_can_send(feed); i++) {
            expect_ok(rp_link_step(feed));
            step(&board);
        }
        hangs = at == steps;
        expect_ok(rp_link_send(feed, &frame, &label, 1, true, NULL, NULL));
        frame = rp_frame_of_parcel(RP_KIND_INPUT, &parcel);
        expect_ok(rp_link_send(feed, &frame, &input, 1, true, NULL, NULL));
        for (uint32_t i = 0; i < 20; i++) {
            expect_ok(rp_link_step(feed));
            step_for(&board, 20 * RP_NS_PER_MS);
            (void)take_waiting();
        }
    }
}

static void close_hanging(void) {
    rp_link_close(&feed);
    close_fixture(&board);
}

/* As the controller judges it, and systemd hears no sign of life from then on: after 30 s, or 300 s
 * where no op has ended. What ends the run then ends the agent. */
static void a_device_that_hangs_is_known(void **state) {
    (void)state;
    static const struct {
        uint64_t steps;
        int64_t limit_s;
    } cases[] = {{3, 30}, {0, 300}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool over;
        open_hanging(cases[i].steps);
        for (int64_t s = 0; s < cases[i].limit_s - 2; s++) {
            step_for(&board, RP_NS_PER_S);
            assert_false(rp_agent_device_hangs(board.agent));
            (void)take_waiting();
        }
        step_for(&board, 3 * RP_NS_PER_S);
        assert_true(rp_agent_device_hangs(board.agent));
        const rp_Waiting said = take_waiting();
        assert_int_equal(said.what, RP_WAITING_DEVICE);
        assert_true(said.for_ns >= (cases[i].limit_s - 1) * RP_NS_PER_S);
        assert_true((said.longest_ns > 0) == (cases[i].steps > 0));
        expect_state(&board, RP_AGENT_RUNNING);
        send_kind(&board, RP_KIND_HELLO);
        rp_err err = RP_OK;
        for (uint32_t k = 0; k < 100 && err == RP_OK; k++) {
            expect_ok(rp_link_step(board.link));
            err = rp_agent_step(board.agent, &over);
            board.clock.stepped_ns += RP_NS_PER_MS;
        }
        assert_int_equal(err, RP_ERR_DEVICE);
        rp_message *message = NULL; /* and no greeting: its process has as good as gone */
        expect_ok(rp_link_step(board.link));
        assert_int_equal(rp_link_recv(board.link, &message), RP_ERR_AGAIN);
        close_hanging();
    }
}

/* A device that goes on in time, and an agent that was stopped for a minute in an op: its device
 * was stopped with it. */
static void a_device_that_goes_on_does_not_hang(void **state) {
    (void)state;
    bool over;
    open_hanging(3);
    step_for(&board, 25 * RP_NS_PER_S);
    hangs = false;
    step_for(&board, RP_NS_PER_S);
    assert_int_equal(take_waiting().what, RP_WAITING_NOTHING);
    assert_false(rp_agent_device_hangs(board.agent));
    close_hanging();
    open_hanging(3);
    step_for(&board, 5 * RP_NS_PER_S);
    board.clock.stepped_ns += 60 * RP_NS_PER_S;
    expect_ok(rp_agent_step(board.agent, &over));
    assert_false(rp_agent_device_hangs(board.agent));
    hangs = false;
    close_hanging();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_host_leaves_an_orphan),
        cmocka_unit_test(an_orphan_answers_a_higher_term),
        cmocka_unit_test(an_orphan_waits_as_long_as_it_is_told),
        cmocka_unit_test(a_new_host_is_told_what_is_held),
        cmocka_unit_test(a_new_host_saves_in_the_middle_of_a_copy),
        cmocka_unit_test(asking_ends_nothing),
        cmocka_unit_test(a_host_that_was_replaced_is_refused),
        cmocka_unit_test(an_assigned_board_forgets_at_once),
        cmocka_unit_test(a_board_is_heard_while_it_builds),
        cmocka_unit_test(a_host_may_hear_of_the_build),
        cmocka_unit_test(a_host_is_missed_while_building),
        cmocka_unit_test(a_waiting_assignment_is_dropped),
        cmocka_unit_test(a_device_that_hangs_is_known),
        cmocka_unit_test(a_device_that_goes_on_does_not_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
