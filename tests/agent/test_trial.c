/* A link that a board tries outside of a run, and a HELLO of no run. */
#include "link/wire_rate.h"
#include "one_agent.h"

static rp_Frame receive_no_run(fixture *f) {
    rp_message *message;
    for (uint32_t i = 0; i < 4000; i++) {
        bool over;
        expect_ok(rp_agent_step(f->agent, &over));
        expect_ok(rp_link_step(f->link));
        if (rp_link_recv(f->link, &message) == RP_OK) {
            const rp_Frame frame = message->frame;
            rp_link_release(f->link, &message);
            return frame;
        }
        f->clock.stepped_ns += 5 * RP_NS_PER_MS;
    }
    fail_msg("no answer");
    return (rp_Frame){0};
}

static void send_no_run(fixture *f, rp_Frame frame) {
    expect_ok(rp_link_send(f->link, &frame, NULL, 0, true, NULL, NULL));
}

static rp_Frame trial(const char *endpoint, const char *key) {
    rp_Frame frame = {.which_body = RP_KIND_TRIAL};
    (void)snprintf(frame.body.trial.endpoint, sizeof frame.body.trial.endpoint, "%s", endpoint);
    (void)snprintf(frame.body.trial.public_key, sizeof frame.body.trial.public_key, "%s", key);
    return frame;
}

static rp_TrialDone ask(fixture *f, const char *endpoint, const char *key) {
    send_no_run(f, trial(endpoint, key));
    const rp_Frame answer = receive_no_run(f);
    assert_int_equal(rp_frame_kind(&answer), RP_KIND_TRIAL_DONE);
    return answer.body.trial_done;
}

static rp_link *open_far(fixture *f, const char *bind, const char *connect) {
    rp_link *link;
    const rp_link_options options = {.name = "far",
                                     .bind = bind,
                                     .connect = connect,
                                     .peer_public = f->agent_keys.public_text,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = 1024};
    expect_ok(rp_link_open(f->links, &options, &link));
    return link;
}

/* It listens for the other board until it is told otherwise, or nobody came for a while. */
static void a_board_listens(void **state) {
    (void)state;
    fixture f;
    char endpoint[64];
    open_agent(&f, true, rp_executor_find("digest"), false);
    for (int ended = 0; ended < 2; ended++) {
        const rp_TrialDone done = ask(&f, "", f.host_keys.public_text);
        assert_int_equal(done.outcome, RP_TRIAL_LISTENS);
        (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", done.port);
        rp_link *far = open_far(&f, NULL, endpoint);
        for (int i = 0; i < 100 && !rp_link_health_of(far).last_heard_ns; i++) {
            bool over;
            expect_ok(rp_link_step(far));
            expect_ok(rp_agent_step(f.agent, &over));
            f.clock.stepped_ns += 5 * RP_NS_PER_MS;
        }
        assert_true(rp_link_health_of(far).last_heard_ns > 0);
        rp_link_close(&far);
        if (ended) {
            send_no_run(&f, trial("", ""));
        }
        f.clock.stepped_ns += ended ? 0 : 20 * RP_NS_PER_S;
        for (int i = 0; i < 10; i++) {
            bool over;
            expect_ok(rp_link_step(f.link));
            expect_ok(rp_agent_step(f.agent, &over));
            f.clock.stepped_ns += RP_NS_PER_MS;
        }
        far = open_far(&f, endpoint, NULL); /* the address is free again */
        rp_link_close(&far);
    }
    close_fixture(&f);
}

/* It dials: somebody who answers, and nobody, for 5 s. */
static void a_board_dials(void **state) {
    (void)state;
    fixture f;
    open_agent(&f, true, rp_executor_find("digest"), false);
    rp_link *far = open_far(&f, "tcp://127.0.0.1:*", NULL);
    send_no_run(&f, trial(rp_link_endpoint(far), f.host_keys.public_text));
    for (int i = 0; i < 100 && !rp_link_health_of(far).last_heard_ns; i++) {
        bool over;
        expect_ok(rp_link_step(f.link));
        expect_ok(rp_agent_step(f.agent, &over));
        expect_ok(rp_link_step(far));
        f.clock.stepped_ns += 5 * RP_NS_PER_MS;
    }
    const rp_Frame answer = receive_no_run(&f);
    assert_int_equal(answer.body.trial_done.outcome, RP_TRIAL_REACHED);
    rp_link_close(&far);
    const int64_t before_ns = rp_clock_now_ns(&f.clock);
    const rp_TrialDone done = ask(&f, "tcp://127.0.0.1:9", f.host_keys.public_text);
    assert_int_equal(done.outcome, RP_TRIAL_SILENT);
    assert_in_range(rp_clock_now_ns(&f.clock) - before_ns, RP_TRIAL_NS, RP_TRIAL_NS + RP_NS_PER_S);
    assert_int_equal(ask(&f, "tcp://127.0.0.1:9", "no key").outcome, RP_TRIAL_FAILED);
    close_fixture(&f);
}

static rp_Frame measuring(const char *endpoint, const char *key, uint32_t first, uint32_t second) {
    rp_Frame frame = trial(endpoint, key);
    frame.body.trial.bytes_count = 2;
    frame.body.trial.bytes[0] = first;
    frame.body.trial.bytes[1] = second;
    return frame;
}

/* The far end takes what comes, until the board answers. */
static rp_TrialDone answer_of(fixture *f, rp_link *far, uint64_t *bytes) {
    rp_message *message;
    for (uint32_t i = 0; i < 4000; i++) {
        bool over;
        expect_ok(rp_agent_step(f->agent, &over));
        expect_ok(rp_link_step(f->link));
        expect_ok(rp_link_step(far));
        while (rp_link_recv(far, &message) == RP_OK) {
            assert_int_equal(rp_frame_kind(&message->frame), RP_KIND_TRIAL_BYTES);
            *bytes += message->part[0].bytes;
            rp_link_release(far, &message);
        }
        rp_link_before_wait(far);
        if (rp_link_recv(f->link, &message) == RP_OK) {
            const rp_TrialDone done = message->frame.body.trial_done;
            assert_int_equal(rp_frame_kind(&message->frame), RP_KIND_TRIAL_DONE);
            rp_link_release(f->link, &message);
            return done;
        }
        f->clock.stepped_ns += RP_NS_PER_MS;
    }
    fail_msg("no answer");
    return (rp_TrialDone){0};
}

/* Messages of each size are timed to their acks: once the link is there, and again over the same
 * one; without a link, and with sizes that do not rise, it says so. */
static void a_board_measures(void **state) {
    (void)state;
    fixture f;
    uint64_t bytes = 0;
    open_agent(&f, true, rp_executor_find("digest"), false);
    rp_link *far = open_far(&f, "tcp://127.0.0.1:*", NULL);
    send_no_run(&f, measuring(rp_link_endpoint(far), f.host_keys.public_text, 64, 1000));
    for (uint32_t turn = 1; turn <= 2; turn++) {
        const rp_TrialDone done = answer_of(&f, far, &bytes);
        assert_int_equal(done.outcome, RP_TRIAL_MEASURED);
        assert_int_equal(done.seconds_count, 2);
        assert_true(done.seconds[0] > 0 && done.seconds[1] > 0);
        assert_int_equal(bytes, turn * RP_WIRE_ROUNDS * 1064);
        send_no_run(&f, measuring("", "", 64, 1000));
    }
    assert_int_equal(answer_of(&f, far, &bytes).outcome, RP_TRIAL_MEASURED);
    rp_Frame row = measuring("", "", 64, 1000); /* the largest alone */
    row.body.trial.row = true;
    send_no_run(&f, row);
    const rp_TrialDone done = answer_of(&f, far, &bytes);
    assert_int_equal(done.outcome, RP_TRIAL_MEASURED);
    assert_true(done.seconds[0] == 0 && done.seconds[1] > 0);
    assert_int_equal(bytes, RP_WIRE_ROUNDS * (3 * 1064 + 1000));
    send_no_run(&f, measuring("", "", 1000, 1000));
    assert_int_equal(answer_of(&f, far, &bytes).outcome, RP_TRIAL_FAILED);
    send_no_run(&f, measuring("", "", 64, RP_WIRE_BYTES_MAX + 1));
    assert_int_equal(answer_of(&f, far, &bytes).outcome, RP_TRIAL_FAILED);
    send_no_run(&f, trial("", ""));
    send_no_run(&f, measuring("", "", 64, 1000));
    assert_int_equal(answer_of(&f, far, &bytes).outcome, RP_TRIAL_FAILED);
    assert_int_equal(bytes, RP_WIRE_ROUNDS * (3 * 1064 + 1000));
    rp_link_close(&far);
    close_fixture(&f);
}

/* Over the control link, both ways: what the board sends, and what it takes and drops. */
static void a_board_measures_its_control_link(void **state) {
    (void)state;
    fixture f;
    rp_message *message;
    uint64_t bytes = 0;
    rp_TrialDone done = {0};
    open_agent(&f, true, rp_executor_find("digest"), false);
    rp_Frame asks = measuring("", "", 64, 1000);
    asks.body.trial.control = true;
    send_no_run(&f, asks);
    for (uint32_t i = 0; i < 4000 && done.seconds_count == 0; i++) {
        bool over;
        expect_ok(rp_agent_step(f.agent, &over));
        expect_ok(rp_link_step(f.link));
        while (rp_link_recv(f.link, &message) == RP_OK) {
            const bool of_trial = rp_frame_kind(&message->frame) == RP_KIND_TRIAL_BYTES;
            bytes += of_trial ? message->part[0].bytes : 0;
            done = of_trial ? done : message->frame.body.trial_done;
            rp_link_release(f.link, &message);
        }
        rp_link_before_wait(f.link);
        f.clock.stepped_ns += RP_NS_PER_MS;
    }
    assert_int_equal(done.outcome, RP_TRIAL_MEASURED);
    assert_int_equal(done.seconds_count, 2);
    assert_true(done.seconds[0] > 0 && done.seconds[1] > 0);
    assert_int_equal(bytes, RP_WIRE_ROUNDS * 1064);
    static uint8_t some[1000];
    rp_Frame frame = {.which_body = RP_KIND_TRIAL_BYTES};
    const rp_part part = rp_part_of_bytes(some, sizeof some);
    expect_ok(rp_link_send(f.link, &frame, &part, 1, true, NULL, NULL));
    send_no_run(&f, measuring("", "", 64, 1000)); /* the board is as it was, and takes more */
    assert_int_equal(receive_no_run(&f).body.trial_done.outcome, RP_TRIAL_FAILED);
    close_fixture(&f);
}

/* Who asks in no run ends none. */
static void a_greeting_of_no_run_ends_nothing(void **state) {
    (void)state;
    fixture f;
    const rp_Frame hello = {.which_body = RP_KIND_HELLO,
                            .body.hello = {.wire_min = RP_WIRE_MIN,
                                           .wire_max = RP_WIRE_MAX,
                                           .features = HOST_FEATURES}};
    open_agent(&f, true, rp_executor_find("digest"), false);
    send_no_run(&f, hello);
    rp_Frame answer = receive_no_run(&f);
    assert_int_equal(rp_frame_kind(&answer), RP_KIND_HELLO);
    assert_false(answer.body.hello.busy);
    assert_true(answer.body.hello.features & RP_WIRE_FEATURE_TRIALS);
    greet(&f);
    const rp_part parts[] = {rp_part_of_text(f.job_text), rp_part_of_text(model_text),
                             rp_part_of_text(f.plan_text)};
    send(&f, (rp_Frame){.which_body = RP_KIND_ASSIGN, .body.assign = {.wire = RP_WIRE_MAX}}, parts,
         3);
    answer = receive(&f);
    assert_int_equal(rp_frame_kind(&answer), RP_KIND_READY);
    send_no_run(&f, hello);
    answer = receive_no_run(&f);
    assert_int_equal(rp_frame_kind(&answer), RP_KIND_HELLO);
    assert_true(answer.body.hello.busy);
    assert_int_equal(rp_agent_state_of(f.agent), RP_AGENT_ASSIGNED);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_board_listens),
        cmocka_unit_test(a_board_dials),
        cmocka_unit_test(a_board_measures),
        cmocka_unit_test(a_board_measures_its_control_link),
        cmocka_unit_test(a_greeting_of_no_run_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
