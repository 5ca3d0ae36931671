/* Neighbours of a board in a segment, on a virtual clock: one that is heard, however slow it is,
 * and one that is not. The test plays the host and the board at the other end of the hop. */
#include "one_agent.h"

static const int64_t LINK_LOST_NS = 10 * RP_NS_PER_S;
static uint32_t meet_s; /* as the next ASSIGN says */

static const int64_t LINK_MEET_NS = 30 * RP_NS_PER_S;

typedef struct {
    fixture f;
    rp_link *hop; /* of the neighbour */
    bool is_cut;  /* it neither hears nor says anything */
} neighbours;

/* Board `node` of a ring of two. */
static void open_board(neighbours *n, uint32_t node) {
    fixture *f = &n->f;
    *n = (neighbours){.is_cut = false};
    open_agent(f, true, rp_executor_find("digest"), false);
    f->ping_ns = RP_NS_PER_S;
    expect_ok(rp_arena_printf(
        &f->arena, &f->job_text,
        "stage: %u\nstages: 2\ncut: [fc2]\nsample: [4]\nclasses: 3\nseed: 1\nbatch: 2\n"
        "microbatch: 2\nepoch_samples: 20\nsteps: 10\nloss: cross-entropy\n"
        "optimizer: {kind: sgd, lr: 0.1}\nschedule: gpipe\npeers: {host: \"%s\", boards: "
        "[\"%s\"]}\n",
        node, f->host_keys.public_text, f->host_keys.public_text));
    write_plan(f);
}

static void close_board(neighbours *n) {
    rp_link_close(&n->hop);
    close_fixture(&n->f);
}

static void open_hop(neighbours *n, const char *bind, const char *connect) {
    const rp_link_options options = {.name = "hop",
                                     .bind = bind,
                                     .connect = connect,
                                     .peer_public = n->f.agent_keys.public_text,
                                     .window = 8,
                                     .send_window = 8,
                                     .part_bytes_max = 1 << 16,
                                     .run = {7, n->f.term},
                                     .wire = RP_WIRE_MAX};
    expect_ok(rp_link_open(n->f.links, &options, &n->hop));
}

/* To the state ready; its neighbour is there. */
static void make_ready(neighbours *n, uint32_t node) {
    fixture *f = &n->f;
    const rp_part parts[] = {rp_part_of_text(f->job_text), rp_part_of_text(model_text),
                             rp_part_of_text(f->plan_text)};
    rp_Frame connect = {.which_body = RP_KIND_CONNECT};
    char endpoint[80];
    greet(f);
    send(f,
         (rp_Frame){.which_body = RP_KIND_ASSIGN,
                    .body.assign = {.wire = RP_WIRE_MAX, .node = node, .meet_s = meet_s}},
         parts, 3);
    const rp_Frame ready = receive(f);
    assert_int_equal(rp_frame_kind(&ready), RP_KIND_READY);
    if (node == 0) {
        connect.body.connect.node = 1;
        open_hop(n, "tcp://127.0.0.1:0", NULL);
        (void)snprintf(connect.body.connect.endpoint, sizeof connect.body.connect.endpoint, "%s",
                       rp_link_endpoint(n->hop));
        (void)snprintf(connect.body.connect.public_key, sizeof connect.body.connect.public_key,
                       "%s", f->host_keys.public_text);
    } else {
        (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u",
                       ready.body.ready.hop_port[0]);
        open_hop(n, NULL, endpoint);
    }
    send(f, connect, NULL, 0);
    step_to_state(f, RP_AGENT_READY);
}

static void start(neighbours *n) {
    send(&n->f, (rp_Frame){.which_body = RP_KIND_START, .body.start = {.pause = 10}}, NULL, 0);
    step_to_state(&n->f, RP_AGENT_RUNNING);
}

/* How long it took until `state`, at most `most_ns`. */
static int64_t step_until(neighbours *n, rp_agent_state state, int64_t most_ns) {
    const rp_clock *clock = &n->f.clock;
    const int64_t begin_ns = rp_clock_now_ns(clock);
    while (rp_agent_state_of(n->f.agent) != state && rp_clock_now_ns(clock) - begin_ns < most_ns) {
        if (!n->is_cut) {
            expect_ok(rp_link_step(n->hop));
            rp_link_before_wait(n->hop);
        }
        step(&n->f);
    }
    return rp_clock_now_ns(clock) - begin_ns;
}

/* The run ends in time, and the host hears which hop it was. */
static void expect_lost(neighbours *n, int64_t within_ns, const char *text) {
    const int64_t took_ns = step_until(n, RP_AGENT_HELLO, 10 * within_ns);
    const rp_Frame fault = receive(&n->f);
    assert_int_equal(rp_frame_kind(&fault), RP_KIND_FAULT);
    if (!strstr(fault.body.fault.text, text)) {
        fail_msg("expected '%s', got '%s'", text, fault.body.fault.text);
    }
    assert_int_equal(fault.body.fault.fault_class, RP_FAULT_BOARD);
    assert_in_range(took_ns, within_ns - 3 * RP_NS_PER_S, within_ns + 5 * RP_NS_PER_S);
}

/* Which board it is to dial is the plan's, not the message's. */
static void only_a_neighbour_is_dialled(void **state) {
    (void)state;
    static const uint32_t wrong[] = {0, 2, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        neighbours n;
        open_board(&n, 0);
        fixture *f = &n.f;
        const rp_part parts[] = {rp_part_of_text(f->job_text), rp_part_of_text(model_text),
                                 rp_part_of_text(f->plan_text)};
        rp_Frame connect = {.which_body = RP_KIND_CONNECT,
                            .body.connect = {.endpoint = "tcp://127.0.0.1:1", .node = wrong[i]}};
        greet(f);
        send(f, (rp_Frame){.which_body = RP_KIND_ASSIGN, .body.assign = {.wire = RP_WIRE_MAX}},
             parts, 3);
        const rp_Frame ready = receive(f);
        assert_int_equal(rp_frame_kind(&ready), RP_KIND_READY);
        assert_int_equal(ready.body.ready.hop_port_count, 0); /* it dials, and is not dialled */
        (void)snprintf(connect.body.connect.public_key, sizeof connect.body.connect.public_key,
                       "%s", f->host_keys.public_text);
        send(f, connect, NULL, 0);
        const rp_Frame fault = receive(f);
        assert_int_equal(rp_frame_kind(&fault), RP_KIND_FAULT);
        assert_non_null(strstr(fault.body.fault.text, "this board does not dial it"));
        close_board(&n);
    }
}

static const char *const hop_texts[] = {
    "hop board0 -> board1: no answer from board board1 at ",
    "hop board0 -> board1: no answer from board board0 to "};

/* It sends no parcel and asks for none for ten minutes: it computes, or waits for others. */
static void a_slow_neighbour_is_heard(void **state) {
    (void)state;
    for (uint32_t node = 0; node < 2; node++) {
        neighbours n;
        open_board(&n, node);
        make_ready(&n, node);
        start(&n);
        (void)step_until(&n, RP_AGENT_HELLO, 600 * RP_NS_PER_S);
        assert_int_equal(rp_agent_state_of(n.f.agent), RP_AGENT_RUNNING);
        close_board(&n);
    }
}

static void a_hop_that_is_cut_is_named(void **state) {
    (void)state;
    for (uint32_t node = 0; node < 2; node++) {
        neighbours n;
        open_board(&n, node);
        make_ready(&n, node);
        start(&n);
        (void)step_until(&n, RP_AGENT_HELLO, 5 * RP_NS_PER_S);
        n.is_cut = true;
        expect_lost(&n, LINK_LOST_NS, hop_texts[node]);
        close_board(&n);
    }
}

/* No packet ever came: a firewall has closed the hop's port. The host says how long boards are
 * waited for, and 30 s are the least. */
static void a_hop_that_never_was_is_named(void **state) {
    (void)state;
    static const uint32_t said_s[] = {0, 5, 90};
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t node = i % 2;
        neighbours n;
        meet_s = said_s[i / 2];
        open_board(&n, node);
        n.is_cut = true;
        make_ready(&n, node);
        start(&n);
        expect_lost(&n, meet_s > 30 ? meet_s * RP_NS_PER_S : LINK_MEET_NS, hop_texts[node]);
        close_board(&n);
    }
    meet_s = 0;
}

/* Between two segments, and while a board has no segment, nobody asks; then the time begins anew.
 */
static void a_pause_is_no_silence(void **state) {
    (void)state;
    for (uint32_t node = 0; node < 2; node++) {
        neighbours n;
        open_board(&n, node);
        make_ready(&n, node);
        n.is_cut = true;
        (void)step_until(&n, RP_AGENT_HELLO, 10 * LINK_MEET_NS);
        assert_int_equal(rp_agent_state_of(n.f.agent), RP_AGENT_READY);
        start(&n);
        (void)step_until(&n, RP_AGENT_HELLO, LINK_LOST_NS - 5 * RP_NS_PER_S);
        assert_int_equal(rp_agent_state_of(n.f.agent), RP_AGENT_RUNNING);
        close_board(&n);
    }
}

/* Steps until the board says what it waits for, at most `most_ns`; other reports are not sent here.
 */
static rp_Waiting next_waiting(neighbours *n, int64_t most_ns) {
    const int64_t begin_ns = rp_clock_now_ns(&n->f.clock);
    rp_message *message = NULL;
    while (rp_link_recv(n->f.link, &message) == RP_ERR_AGAIN) {
        assert_true(rp_clock_now_ns(&n->f.clock) - begin_ns < most_ns);
        (void)step_until(n, RP_AGENT_HELLO, RP_NS_PER_MS);
    }
    const rp_Frame frame = message->frame;
    rp_link_release(n->f.link, &message);
    assert_int_equal(rp_frame_kind(&frame), RP_KIND_WAITING);
    return frame.body.waiting;
}

static void open_that_tells(neighbours *n, uint32_t node) {
    open_board(n, node);
    n->f.features = RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_BUILDING;
    make_ready(n, node);
    start(n);
}

/* The first board waits for the host's inputs, the second for what the first sends: once a second.
 */
static void what_is_waited_for_is_told(void **state) {
    (void)state;
    static const rp_waiting_for what[] = {RP_WAITING_FEED, RP_WAITING_INPUT};
    for (uint32_t node = 0; node < 2; node++) {
        neighbours n;
        open_that_tells(&n, node);
        for (int64_t i = 1; i <= 3; i++) {
            const rp_Waiting said = next_waiting(&n, 3 * RP_NS_PER_S);
            assert_int_equal(said.what, what[node]);
            assert_int_equal(said.peer, 0);
            assert_int_equal(said.step, 0);
            assert_int_equal(said.count, 2);
            assert_int_equal(said.stage, node);
            assert_in_range(said.for_ns, i * RP_NS_PER_S, (i + 1) * RP_NS_PER_S);
            assert_int_equal(said.silent_count, 0);
        }
        close_board(&n);
    }
}

/* At once, and again when it is over. */
static void a_silent_hop_is_told(void **state) {
    (void)state;
    for (uint32_t node = 0; node < 2; node++) {
        neighbours n;
        open_that_tells(&n, node);
        (void)step_until(&n, RP_AGENT_HELLO, 5 * RP_NS_PER_S);
        n.is_cut = true;
        rp_Waiting said = next_waiting(&n, 3 * RP_NS_PER_S);
        const int64_t begin_ns = rp_clock_now_ns(&n.f.clock);
        while (said.silent_count == 0) {
            said = next_waiting(&n, 3 * RP_NS_PER_S);
        }
        assert_in_range(rp_clock_now_ns(&n.f.clock) - begin_ns, 0, 5 * RP_NS_PER_S);
        assert_int_equal(said.silent_count, 1);
        assert_int_equal(said.silent[0].peer, 1 - node);
        assert_in_range(said.silent[0].silent_ns, 3 * RP_NS_PER_S, 5 * RP_NS_PER_S);
        n.is_cut = false;
        while (said.silent_count == 1) {
            said = next_waiting(&n, 5 * RP_NS_PER_S);
        }
        assert_int_equal(rp_agent_state_of(n.f.agent), RP_AGENT_RUNNING);
        close_board(&n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_neighbour_is_dialled),
        cmocka_unit_test(a_slow_neighbour_is_heard),
        cmocka_unit_test(a_hop_that_is_cut_is_named),
        cmocka_unit_test(a_hop_that_never_was_is_named),
        cmocka_unit_test(a_pause_is_no_silence),
        cmocka_unit_test(what_is_waited_for_is_told),
        cmocka_unit_test(a_silent_hop_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
