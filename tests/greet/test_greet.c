/* Boards that the test plays are greeted over links in this process, on a virtual clock. */
#include "greet/greet.h"

#include "expect.h"
#include "transport/inproc.h"

enum { THERE, BUSY, OLD, SILENT, REFUSED, MUTE, DIALS, AWAY, BOARDS };
#define FEATURES RP_WIRE_FEATURE_TRIALS
#define LISTEN "tcp://host:7100"

typedef struct {
    rp_keypair keys;
    rp_transport *transport;
    rp_links *links;
    rp_link *link;
    char endpoint[64];
    uint32_t greetings, questions;
} far_board;

static rp_arena arena;
static rp_clock test_clock;
static rp_hub *hub;
static rp_keypair host_keys;
static rp_transport *host_transport;
static far_board far[BOARDS];
static rp_roster_entry roster[BOARDS];
static rp_loop loop;
static rp_greet *greet;
static uint32_t rounds, stop_after; /* 0: never */

static void answer(uint32_t k, rp_Frame frame) {
    expect_ok(rp_link_send(far[k].link, &frame, NULL, 0, true, NULL, NULL));
}

static void take(uint32_t k, const rp_Frame *frame) {
    if (rp_frame_kind(frame) == RP_KIND_HELLO && k != MUTE) {
        far[k].greetings++;
        assert_string_equal(frame->body.hello.name, "host");
        assert_string_equal(frame->body.hello.origin, "");
        answer(k, (rp_Frame){.which_body = RP_KIND_HELLO,
                             .body.hello = {.busy = k == BUSY,
                                            .software = "1.2",
                                            .features = k == OLD ? 0 : RP_WIRE_FEATURES}});
    } else if (rp_frame_kind(frame) == RP_KIND_TRIAL) {
        far[k].questions++;
        answer(k, (rp_Frame){.which_body = RP_KIND_BYE}); /* which answers nothing */
        answer(k, (rp_Frame){.which_body = RP_KIND_TRIAL_DONE,
                             .body.trial_done.port = far[k].questions});
    }
}

/* The boards do their rounds while the host waits. */
static rp_err go_round(rp_loop *self, int64_t deadline_ns, const rp_handle *handles,
                       uint32_t count) {
    const int64_t next_ns = test_clock.stepped_ns + 10 * RP_NS_PER_MS;
    (void)self;
    (void)handles;
    (void)count;
    rounds++;
    for (uint32_t k = 0; k < BOARDS; k++) {
        rp_message *message;
        if (far[k].link) {
            expect_ok(rp_link_step(far[k].link));
            while (rp_link_recv(far[k].link, &message) == RP_OK) {
                take(k, &message->frame);
                rp_link_release(far[k].link, &message);
            }
            rp_link_before_wait(far[k].link);
        }
    }
    test_clock.stepped_ns =
        deadline_ns > test_clock.stepped_ns && deadline_ns < next_ns ? deadline_ns : next_ns;
    return RP_OK;
}

static bool is_stopped(void *context) {
    (void)context;
    return stop_after > 0 && rounds >= stop_after;
}

static void begin(uint32_t k) {
    const bool dials = k >= DIALS;
    const rp_link_options options = {.name = "control",
                                     .bind = dials ? NULL : far[k].endpoint,
                                     .connect = dials ? LISTEN : NULL,
                                     .peer_public = k == REFUSED ? far[k].keys.public_text
                                                                 : host_keys.public_text,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = 1 << 20};
    rp_link_close(&far[k].link);
    expect_ok(rp_link_open(far[k].links, &options, &far[k].link));
}

static void start_transport(const rp_keypair *keys, rp_transport **out) {
    const rp_transport_options inproc = {.clock = &test_clock, .hub = hub, .keys = keys};
    expect_ok(rp_transport_start(&arena, "inproc", &inproc, out));
}

static int open_boards(void **state) {
    (void)state;
    memset(far, 0, sizeof far);
    rounds = stop_after = 0;
    rp_arena_init(&arena, "greet", 0);
    test_clock = rp_clock_stepped(RP_NS_PER_S);
    loop = (rp_loop){.clock = &test_clock, .wait = go_round};
    expect_ok(rp_hub_new(&arena, 0, &hub));
    expect_ok(rp_keys_make(&host_keys));
    start_transport(&host_keys, &host_transport);
    for (uint32_t k = 0; k < BOARDS; k++) {
        expect_ok(rp_keys_make(&far[k].keys));
        start_transport(&far[k].keys, &far[k].transport);
        const rp_links_options links = {.clock = &test_clock, .transport = far[k].transport};
        expect_ok(rp_links_open(&arena, &links, &far[k].links));
        (void)snprintf(far[k].endpoint, sizeof far[k].endpoint, "tcp://board%u:1", k);
        roster[k] = (rp_roster_entry){.name = "b",
                                      .endpoint = k >= DIALS ? "" : far[k].endpoint,
                                      .dials = k >= DIALS,
                                      .public_text = far[k].keys.public_text};
    }
    const rp_greet_options options = {.board = roster,
                                      .count = BOARDS,
                                      .listen = LISTEN,
                                      .transport = host_transport,
                                      .clock = &test_clock,
                                      .loop = &loop,
                                      .link = "control",
                                      .who = "test",
                                      .stopped = is_stopped,
                                      .features = FEATURES,
                                      .answer = RP_KIND_TRIAL_DONE,
                                      .mute_ns = 2 * RP_NS_PER_S};
    expect_ok(rp_greet_open(&arena, &options, &greet));
    for (uint32_t k = 0; k < BOARDS; k++) {
        if (k != SILENT && k != AWAY) {
            begin(k);
        }
    }
    return 0;
}

static int close_boards(void **state) {
    (void)state;
    rp_greet_close(&greet);
    rp_greet_close(&greet); /* once more does nothing */
    for (uint32_t k = 0; k < BOARDS; k++) {
        rp_link_close(&far[k].link);
        rp_links_close(&far[k].links);
        rp_transport_finish(&far[k].transport);
    }
    rp_transport_finish(&host_transport);
    rp_hub_finish(&hub);
    rp_arena_finish(&arena);
    return 0;
}

static void every_board_is_told_from_the_others(void **state) {
    static const rp_greet_state expected[BOARDS] = {
        [THERE] = RP_GREET_THERE,   [BUSY] = RP_GREET_BUSY,       [OLD] = RP_GREET_OLD,
        [SILENT] = RP_GREET_SILENT, [MUTE] = RP_GREET_MUTE,       [REFUSED] = RP_GREET_REFUSED,
        [DIALS] = RP_GREET_THERE,   [AWAY] = RP_GREET_NOT_DIALLED};
    const int64_t since_ns = test_clock.stepped_ns;
    bool all = true;
    (void)state;
    expect_ok(rp_greet_wait(greet, 5 * RP_NS_PER_S, &all));
    assert_false(all); /* two did not come */
    assert_in_range(test_clock.stepped_ns - since_ns, 5 * RP_NS_PER_S,
                    5 * RP_NS_PER_S + 100 * RP_NS_PER_MS);
    for (uint32_t k = 0; k < BOARDS; k++) {
        const rp_greet_found found = rp_greet_look(greet, k);
        assert_int_equal(found.state, expected[k]);
        assert_int_equal(found.hello != NULL, k <= OLD || k == DIALS);
        assert_int_equal(found.restarts, 0);
    }
    assert_string_equal(rp_greet_look(greet, THERE).hello->software, "1.2");
    assert_int_equal(far[THERE].greetings, 1);
}

static void nobody_is_waited_for_when_all_are_decided(void **state) {
    bool all = false;
    (void)state;
    begin(SILENT);
    begin(AWAY);
    const int64_t since_ns = test_clock.stepped_ns;
    expect_ok(rp_greet_wait(greet, 60 * RP_NS_PER_S, &all));
    assert_true(all);
    assert_true(test_clock.stepped_ns - since_ns < 5 * RP_NS_PER_S); /* the mute one has its time */
}

static void a_process_that_restarts_is_greeted_again(void **state) {
    bool all;
    (void)state;
    expect_ok(rp_greet_wait(greet, RP_NS_PER_S, &all));
    begin(THERE);
    for (uint32_t i = 0; far[THERE].greetings < 2 && i < 2000; i++) {
        expect_ok(rp_greet_round(greet));
    }
    assert_int_equal(far[THERE].greetings, 2);
    assert_int_equal(rp_greet_look(greet, THERE).restarts, 1);
    assert_int_equal(far[BUSY].greetings, 1);
    expect_ok(rp_greet_again(greet, THERE)); /* over a new link nothing is known */
    assert_int_equal(rp_greet_look(greet, THERE).state, RP_GREET_SILENT);
    assert_int_equal(rp_greet_look(greet, THERE).restarts, 0);
    for (uint32_t i = 0; !rp_greet_look(greet, THERE).hello && i < 2000; i++) {
        expect_ok(rp_greet_round(greet));
    }
    assert_int_equal(rp_greet_look(greet, THERE).state, RP_GREET_THERE);
}

static void a_question_is_answered_once(void **state) {
    bool all;
    (void)state;
    expect_ok(rp_greet_wait(greet, RP_NS_PER_S, &all));
    for (uint32_t asked = 1; asked <= 2; asked++) {
        rp_Frame question = {.which_body = RP_KIND_TRIAL};
        const rp_Frame *said = NULL;
        expect_ok(rp_greet_ask(greet, DIALS, &question));
        assert_null(rp_greet_take_answer(greet, DIALS));
        for (uint32_t i = 0; !said && i < 100; i++) {
            expect_ok(rp_greet_round(greet));
            said = rp_greet_take_answer(greet, DIALS);
        }
        assert_non_null(said);
        assert_int_equal(said->body.trial_done.port, asked);
        assert_null(rp_greet_take_answer(greet, DIALS));
        assert_null(rp_greet_take_answer(greet, THERE)); /* nobody asked it */
    }
}

static void it_can_be_stopped(void **state) {
    bool all;
    (void)state;
    stop_after = 10;
    assert_int_equal(rp_greet_wait(greet, 60 * RP_NS_PER_S, &all), RP_ERR_INTERRUPTED);
    assert_string_equal(rp_err_message(), "test: stopped");
}

static void states_have_words(void **state) {
    (void)state;
    assert_string_equal(rp_greet_state_word(RP_GREET_THERE), "there");
    assert_string_equal(rp_greet_state_word(RP_GREET_BUSY), "busy");
    assert_string_equal(rp_greet_state_word(RP_GREET_MUTE), "busy");
    assert_string_equal(rp_greet_state_word(RP_GREET_NOT_DIALLED), "not-dialled");
}

#define GREET_TEST(name) cmocka_unit_test_setup_teardown(name, open_boards, close_boards)

int main(void) {
    const struct CMUnitTest tests[] = {
        GREET_TEST(every_board_is_told_from_the_others),
        GREET_TEST(nobody_is_waited_for_when_all_are_decided),
        GREET_TEST(a_process_that_restarts_is_greeted_again),
        GREET_TEST(a_question_is_answered_once),
        GREET_TEST(it_can_be_stopped),
        cmocka_unit_test(states_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
