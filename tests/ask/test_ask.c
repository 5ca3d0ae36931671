/* An agent is asked, on a virtual clock: whatever it does, its host's stream goes on. */
#include "ask/ask.h"

#include "base/log.h"
#include "link/head.h"
#include "one_agent.h"

/* The loop of who asks: the agent and its host do their rounds meanwhile. */
typedef struct {
    rp_loop loop; /* first */
    fixture *f;
} rounds;

static rp_err go_round(rp_loop *loop, int64_t deadline_ns, const rp_handle *handles,
                       uint32_t count) {
    rounds *r = (rounds *)loop;
    bool over = false;
    (void)handles;
    (void)count;
    if (r->f->agent) {
        expect_ok(rp_agent_step(r->f->agent, &over));
    }
    expect_ok(rp_link_step(r->f->link));
    rp_link_before_wait(r->f->link);
    const int64_t now_ns = rp_clock_now_ns(&r->f->clock);
    const int64_t next_ns = now_ns + 5 * RP_NS_PER_MS;
    r->f->clock.stepped_ns = deadline_ns < next_ns && deadline_ns > now_ns ? deadline_ns : next_ns;
    return RP_OK;
}

typedef struct {
    fixture f;
    rounds r;
    rp_roster_entry board;
    rp_transport *transport;
    rp_arena arena;
    rp_asker *asker;
} asking;

static bool may_reboot;

static void tell_options(rp_agent_options *options) {
    options->profile = "pocl-cpu";
    options->system_root = "/nonexistent";
    options->life = 99;
    options->may_reboot = may_reboot;
}

static void open_asking(asking *a, bool reboots) {
    memset(a, 0, sizeof *a);
    may_reboot = reboots;
    fixture_options = tell_options;
    open_agent(&a->f, true, rp_executor_find("digest"), false);
    a->r = (rounds){.loop = {.clock = &a->f.clock, .wait = go_round}, .f = &a->f};
    rp_arena_init(&a->arena, "asking", 0);
    const rp_transport_options inproc = {.clock = &a->f.clock, .hub = a->f.hub};
    expect_ok(rp_transport_start(&a->arena, "inproc", &inproc, &a->transport));
    a->board = (rp_roster_entry){.name = "left",
                                 .endpoint = rp_agent_endpoint(a->f.agent),
                                 .public_text = a->f.agent_keys.public_text};
    const rp_ask_options options = {.board = &a->board,
                                    .keys = &a->f.host_keys,
                                    .clock = &a->f.clock,
                                    .transport = a->transport,
                                    .loop = &a->r.loop};
    expect_ok(rp_asker_open(&a->arena, &options, &a->asker));
}

static void close_asking(asking *a) {
    rp_asker_close(&a->asker);
    rp_transport_finish(&a->transport);
    close_fixture(&a->f);
    rp_arena_finish(&a->arena);
}

static rp_Condition ask_condition(asking *a) {
    const rp_Ask ask = {.what = RP_ASK_CONDITION};
    rp_Frame frame;
    int64_t trip_ns;
    expect_ok(rp_asker_ask(a->asker, &ask, 5 * RP_NS_PER_S, &frame, &trip_ns));
    assert_int_equal(rp_frame_kind(&frame), RP_KIND_CONDITION);
    return frame.body.condition;
}

static void a_board_says_how_it_is_in_every_state(void **state) {
    (void)state;
    static const rp_agent_state states[] = {RP_AGENT_HELLO, RP_AGENT_ASSIGNED, RP_AGENT_READY,
                                            RP_AGENT_RUNNING};
    asking a;
    open_asking(&a, false);
    for (uint32_t s = 0; s < sizeof states / sizeof *states; s++) {
        lead_to(&a.f, states[s]);
        rp_link_stats before;
        rp_link_stats_of(a.f.link, &before);
        const rp_Condition said = ask_condition(&a);
        assert_int_equal(said.state, states[s]);
        assert_int_equal(said.life, 99);
        assert_string_equal(said.name, "board");
        assert_string_equal(said.board, "pocl-cpu");
        assert_int_equal(said.wire_max, RP_WIRE_MAX);
        assert_false(said.may_reboot);
        assert_false(said.has_slots);
        assert_int_equal(said.run, states[s] == RP_AGENT_HELLO ? 0 : 7);
        assert_int_equal(said.stage_count, states[s] == RP_AGENT_HELLO ? 0 : 1);
        assert_int_equal(rp_agent_state_of(a.f.agent), states[s]);
        rp_link_stats after;
        rp_link_stats_of(a.f.link, &after);
        assert_int_equal(after.resets, before.resets);
        assert_int_equal(after.peer_session, before.peer_session);
        assert_int_equal(after.refused, before.refused);
    }
    greet(&a.f); /* its host has lost nothing */
    close_asking(&a);
}

/* Which host and run have it, for whoever finds it taken. */
static void a_board_says_who_holds_it(void **state) {
    (void)state;
    const rp_Ask ask = {.what = RP_ASK_HOLDER};
    asking a;
    rp_Frame frame;
    open_asking(&a, false);
    lead_to(&a.f, RP_AGENT_HELLO);
    expect_ok(rp_asker_ask(a.asker, &ask, 5 * RP_NS_PER_S, &frame, NULL));
    assert_int_equal(frame.body.ordered.run, 0);
    assert_int_equal(frame.body.ordered.state, RP_AGENT_HELLO);
    a.f.origin = "desk: runs/first";
    lead_to(&a.f, RP_AGENT_RUNNING);
    expect_ok(rp_asker_ask(a.asker, &ask, 5 * RP_NS_PER_S, &frame, NULL));
    const rp_Ordered *said = &frame.body.ordered;
    assert_int_equal(said->run, 7);
    assert_int_equal(said->state, RP_AGENT_RUNNING);
    assert_string_equal(said->origin, "desk: runs/first");
    assert_true(said->silent_ms < 3000);
    close_asking(&a);
}

static void its_journal_is_read_line_by_line(void **state) {
    (void)state;
    asking a;
    rp_Frame frame;
    open_asking(&a, false);
    rp_log_setup(RP_LOG_NOTHING, "board");
    rp_Ask ask = {.what = RP_ASK_LINES, .count = 5, .level = RP_LOG_INFO};
    for (int i = 0; i < 7; i++) {
        rp_log_info("line %d", i);
        rp_log_debug("detail %d", i);
    }
    rp_log_error("broken");
    uint32_t seen = 0;
    static const char *const want[] = {"board ask info: line 3", "board ask info: line 4",
                                       "board ask info: line 5", "board ask info: line 6",
                                       "board ask error: broken"};
    for (bool all = false; !all;) {
        expect_ok(rp_asker_ask(a.asker, &ask, 5 * RP_NS_PER_S, &frame, NULL));
        const rp_Lines *lines = &frame.body.lines;
        for (uint32_t i = 0; i < lines->number_count; i++) {
            assert_true(seen < 5);
            assert_string_equal(lines->text[i], want[seen]);
            assert_int_equal(lines->level[i], seen == 4 ? RP_LOG_ERROR : RP_LOG_INFO);
            seen++;
        }
        all = lines->next >= lines->end;
        assert_true(all || lines->next > ask.first);
        assert_int_equal(lines->fault, lines->end); /* it is the last one */
        ask.first = lines->next;
    }
    assert_int_equal(seen, 5);
    expect_ok(rp_asker_ask(a.asker, &ask, 5 * RP_NS_PER_S, &frame, NULL));
    assert_int_equal(frame.body.lines.number_count, 0); /* nothing new */
    close_asking(&a);
}

static rp_err order(asking *a, bool force) {
    const rp_Ask ask = {.what = RP_ASK_REBOOT, .force = force};
    rp_Frame frame;
    return rp_asker_ask(a->asker, &ask, 5 * RP_NS_PER_S, &frame, NULL);
}

static void a_board_reboots_only_when_it_may(void **state) {
    (void)state;
    asking a;
    bool over;
    open_asking(&a, false);
    assert_int_equal(order(&a, true), RP_ERR_REFUSED);
    assert_non_null(strstr(rp_err_message(), "left says: no host may reboot this board"));
    assert_false(rp_agent_reboots(a.f.agent));
    close_asking(&a);
    open_asking(&a, true);
    assert_true(ask_condition(&a).may_reboot);
    lead_to(&a.f, RP_AGENT_READY);
    assert_int_equal(order(&a, false), RP_ERR_FAULT);
    assert_non_null(strstr(rp_err_message(), "left says: the board has a run"));
    assert_int_equal(rp_agent_state_of(a.f.agent), RP_AGENT_READY);
    assert_false(rp_agent_reboots(a.f.agent));
    expect_ok(order(&a, true));
    assert_true(rp_agent_reboots(a.f.agent));
    expect_ok(rp_agent_step(a.f.agent, &over));
    assert_false(over);          /* the answer has time to leave */
    expect_ok(order(&a, false)); /* it is on its way: once more is no other order */
    a.f.clock.stepped_ns += RP_NS_PER_S;
    expect_ok(rp_agent_step(a.f.agent, &over));
    assert_true(over);
    close_asking(&a);
}

static void a_question_that_it_does_not_know(void **state) {
    (void)state;
    asking a;
    rp_Frame frame;
    const rp_Ask ask = {.what = 77};
    open_asking(&a, false);
    assert_int_equal(rp_asker_ask(a.asker, &ask, 5 * RP_NS_PER_S, &frame, NULL), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "does not know this question"));
    close_asking(&a);
}

/* A board of before: its link takes no questions, but says who it is. */
static void an_old_board_is_told_from_one_that_is_away(void **state) {
    (void)state;
    asking a;
    rp_Frame frame;
    rp_greet_state came;
    const rp_Ask ask = {.what = RP_ASK_CONDITION};
    open_asking(&a, false);
    rp_link *old;
    char endpoint[64]; /* it outlives the link */
    const rp_link_options options = {.name = "old",
                                     .bind = "tcp://127.0.0.1:*",
                                     .peer_public = a.f.host_keys.public_text,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = 1024};
    expect_ok(rp_link_open(a.f.links, &options, &old));
    rp_asker_close(&a.asker);
    (void)snprintf(endpoint, sizeof endpoint, "%s", rp_link_endpoint(old));
    a.board.endpoint = endpoint;
    rp_link *host = a.f.link;
    a.f.link = old; /* the one that is stepped */
    const rp_ask_options asks = {.board = &a.board,
                                 .keys = &a.f.host_keys,
                                 .clock = &a.f.clock,
                                 .transport = a.transport,
                                 .loop = &a.r.loop};
    expect_ok(rp_asker_open(&a.arena, &asks, &a.asker));
    assert_int_equal(rp_asker_ask(a.asker, &ask, 5 * RP_NS_PER_S, &frame, NULL), RP_ERR_FAULT);
    assert_non_null(strstr(rp_err_message(), "left: is there, but its software is too old"));
    rp_asker_close(&a.asker);
    rp_link_close(&old);
    a.f.link = host;
    expect_ok(rp_asker_open(&a.arena, &asks, &a.asker)); /* and now nobody is there */
    expect_ok(rp_asker_try(a.asker, &ask, 3 * RP_NS_PER_S, &frame, NULL, &came));
    assert_int_equal(came, RP_GREET_SILENT);
    close_asking(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_board_says_how_it_is_in_every_state),
        cmocka_unit_test(a_board_says_who_holds_it),
        cmocka_unit_test(its_journal_is_read_line_by_line),
        cmocka_unit_test(a_board_reboots_only_when_it_may),
        cmocka_unit_test(a_question_that_it_does_not_know),
        cmocka_unit_test(an_old_board_is_told_from_one_that_is_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
