/* An agent as a state machine: every kind of message in every state is handled or refused, and
 * building never stops it from answering. */
#include "one_agent.h"

/* ---- the table ------------------------------------------------------------------------------- */

/* x: taken. Columns: hello, building, assigned, ready, running, paused, saving,
 * orphan, warming. */
typedef struct {
    rp_kind kind;
    const char *states;
} row;

static const row table[] = {
    {RP_KIND_INPUT, ". . . . . . . . ."},
    {RP_KIND_LABEL, ". . . . . . . . ."},
    {RP_KIND_ACTIVATION, ". . . . . . . . ."},
    {RP_KIND_GRADIENT, ". . . . . . . . ."},
    {RP_KIND_WEIGHT_GRADIENT, ". . . . . . . . ."},
    {RP_KIND_STASH, ". . . . . . . . ."},
    {RP_KIND_WEIGHT, ". . . . . . . . ."},
    {RP_KIND_TIED_GRADIENT, ". . . . . . . . ."},
    {RP_KIND_TIED_WEIGHT, ". . . . . . . . ."},
    {RP_KIND_HELLO, "x x x x x x x x x"},
    {RP_KIND_ASSIGN, "x x x x x x x x x"},
    {RP_KIND_READY, ". . . . . . . . ."},
    {RP_KIND_CONNECT, ". . x . . . . . ."},
    {RP_KIND_START, ". . . x . x . . ."},
    {RP_KIND_STOP, ". . . x x x x . ."},
    {RP_KIND_STEP_DONE, ". . . . . . . . ."},
    {RP_KIND_NORMS, ". . . . . . . . ."},
    {RP_KIND_STEP_DECISION, ". . . . x . . . ."},
    {RP_KIND_SKIPPED, ". . . . . . . . ."},
    {RP_KIND_PREDICTION_ERROR, ". . . . . . . . ."},
    {RP_KIND_PREDICTION_GAIN, ". . . x x x x . ."},
    {RP_KIND_TRACE, ". . . . . . . . ."},
    {RP_KIND_FINISHED, ". . . . . . . . ."},
    {RP_KIND_EVALUATE, ". . . x . x . . ."},
    {RP_KIND_EVALUATE_DONE, ". . . . . . . . ."},
    {RP_KIND_SAVE, ". . . x . x . . ."},
    {RP_KIND_RECORD, ". . . . . x . . ."},
    {RP_KIND_RECOMPUTED, ". . . . . . . . ."},
    {RP_KIND_COPY, ". . . x . x . . ."},
    {RP_KIND_COPIED, ". . . . . . . . ."},
    {RP_KIND_COPY_PIECE, ". . . . . . . . ."},
    {RP_KIND_COPY_GOT, ". . . . . . . . ."},
    {RP_KIND_FETCH, "x . . . . . . . ."},
    {RP_KIND_TENSOR, ". . . x . x . . ."},
    {RP_KIND_IN_FLIGHT, ". . . x . x . . ."},
    {RP_KIND_TENSORS_END, ". . . x . x . . ."},
    {RP_KIND_PROFILE, "x x x x x x x x x"},
    {RP_KIND_PROFILE_DONE, ". . . . . . . . ."},
    {RP_KIND_BUILDING, ". . . . . . . . ."},
    {RP_KIND_WAITING, ". . . . . . . . ."},
    {RP_KIND_HELD, ". . . . . . . . ."},
    {RP_KIND_TRIAL, "x . . . . . . . ."},
    {RP_KIND_TRIAL_DONE, ". . . . . . . . ."},
    {RP_KIND_ENROL, ". . . . . . . . ."},
    {RP_KIND_ENROLLED, ". . . . . . . . ."},
    {RP_KIND_PUSH, "x x x x x x x x x"},
    {RP_KIND_PUSH_PIECE, "x x x x x x x x x"},
    {RP_KIND_PUSHED, ". . . . . . . . ."},
    {RP_KIND_TRIAL_BYTES, "x . . . . . . . ."},
    {RP_KIND_FAULT, "x x x x x x x x x"},
    {RP_KIND_BYE, "x x x x x x x x x"},
    {RP_KIND_ACK_ONLY, ". . . . . . . . ."},
    {RP_KIND_PROBE, ". . . . . . . . ."},
    {RP_KIND_PING, ". . . . . . . . ."},
    {RP_KIND_PONG, ". . . . . . . . ."},
    {RP_KIND_ASK, ". . . . . . . . ."}, /* of the link, which asks rp_agent_answer_question() */
    {RP_KIND_CONDITION, ". . . . . . . . ."},
    {RP_KIND_LINES, ". . . . . . . . ."},
    {RP_KIND_ORDERED, ". . . . . . . . ."},
};

static const row *row_of(rp_kind kind) {
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].kind == kind) {
            return &table[i];
        }
    }
    fail_msg("kind %s has no row", rp_kind_name(kind));
    return NULL;
}

static void every_kind_in_every_state(void **state) {
    (void)state;
    static const rp_kind kinds[] = {
#define X(NAME, ...) RP_KIND_##NAME,
        RP_KIND_LIST(X)
#undef X
    };
    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const row *r = row_of(kinds[k]);
        assert_int_equal(strlen(r->states), 2 * RP_AGENT_STATES - 1);
        for (rp_agent_state s = 0; s < RP_AGENT_STATES; s++) {
            const bool want = r->states[2 * s] == 'x';
            if (rp_agent_takes(s, kinds[k]) != want) {
                fail_msg("%s in state %s: is %staken", rp_kind_name(kinds[k]),
                         rp_agent_state_name(s), want ? "not " : "");
            }
        }
    }
}

/* What the table refuses ends the run with a fault that names both, and the agent stays. */
static void a_refused_message_ends_the_run(void **state) {
    (void)state;
    static const rp_kind kinds[] = {RP_KIND_CONNECT, RP_KIND_START,     RP_KIND_EVALUATE,
                                    RP_KIND_SAVE,    RP_KIND_STOP,      RP_KIND_STEP_DECISION,
                                    RP_KIND_TENSOR,  RP_KIND_IN_FLIGHT, RP_KIND_PREDICTION_GAIN};
    static const rp_agent_state states[] = {RP_AGENT_HELLO, RP_AGENT_ASSIGNED, RP_AGENT_READY,
                                            RP_AGENT_RUNNING};
    fixture f;
    open_fixture(&f);
    for (uint32_t s = 0; s < sizeof states / sizeof *states; s++) {
        for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (!rp_agent_takes(states[s], kinds[k])) {
                lead_to(&f, states[s]);
                send_kind(&f, kinds[k]);
                expect_fault(&f, kinds[k], states[s]);
            }
        }
    }
    lead_to(&f, RP_AGENT_READY);
    close_fixture(&f);
}

/* A build that nobody wants any more is dropped; the next one waits for its end. */
static void a_hello_is_answered_while_building(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    for (uint32_t i = 0; i < 3; i++) {
        greet(&f);
        send_texts(&f, i == 1 ? RP_KIND_PROFILE : RP_KIND_ASSIGN);
        step_to_state(&f, RP_AGENT_BUILDING);
        greet(&f);
        assert_int_equal(rp_agent_state_of(f.agent), RP_AGENT_HELLO);
        send_texts(&f, RP_KIND_ASSIGN); /* and again, while the first may still be built */
        expect_kind(&f, RP_KIND_READY);
        assert_int_equal(rp_agent_state_of(f.agent), RP_AGENT_ASSIGNED);
    }
    send_kind(&f, RP_KIND_BYE);
    step_to_state(&f, RP_AGENT_HELLO);
    close_fixture(&f);
}

static void an_agent_is_closed_while_building(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    greet(&f);
    send_texts(&f, RP_KIND_ASSIGN);
    step_to_state(&f, RP_AGENT_BUILDING);
    close_fixture(&f);
}

static void a_profile_is_answered(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    greet(&f);
    send_texts(&f, RP_KIND_PROFILE);
    expect_kind(&f, RP_KIND_PROFILE_DONE);
    assert_int_equal(rp_agent_state_of(f.agent), RP_AGENT_HELLO);
    close_fixture(&f);
}

/* Nothing is measured of what is only built, and the same board may measure then. */
static void layers_are_only_built(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    const rp_part parts[] = {rp_part_of_text(f.job_text), rp_part_of_text(model_text)};
    greet(&f);
    for (int measured = 0; measured < 2; measured++) {
        rp_message *message = NULL;
        send(&f,
             (rp_Frame){.which_body = RP_KIND_PROFILE, .body.profile = {.build_only = !measured}},
             parts, 2);
        for (uint32_t i = 0; i < 60000 && rp_link_recv(f.link, &message) == RP_ERR_AGAIN; i++) {
            step(&f);
        }
        assert_non_null(message);
        assert_int_equal(rp_frame_kind(&message->frame), RP_KIND_PROFILE_DONE);
        assert_int_equal(message->part[0].bytes, 4 * sizeof(double));
        for (uint32_t i = 0; i < 4; i++) {
            double seconds;
            memcpy(&seconds, (const char *)message->part[0].data + i * sizeof seconds,
                   sizeof seconds);
            assert_true(measured ? seconds > 0 : seconds == 0.0);
        }
        rp_link_release(f.link, &message);
        assert_int_equal(rp_agent_state_of(f.agent), RP_AGENT_HELLO);
    }
    close_fixture(&f);
}

/* A node that the plan does not have, and a plan that is none. */
static void a_plan_that_does_not_fit_is_refused(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    const rp_part parts[] = {rp_part_of_text(f.job_text), rp_part_of_text(model_text),
                             rp_part_of_text(f.plan_text)};
    rp_Frame assign = {.which_body = RP_KIND_ASSIGN,
                       .body.assign = {.wire = RP_WIRE_MAX, .node = 1}};
    greet(&f);
    send(&f, assign, parts, 3);
    rp_Frame refusal = receive(&f);
    assert_int_equal(rp_frame_kind(&refusal), RP_KIND_FAULT);
    assert_non_null(strstr(refusal.body.fault.text, "has no node 1"));
    f.plan_text[0] = '[';
    assign.body.assign.node = 0;
    greet(&f);
    send(&f, assign, parts, 3);
    refusal = receive(&f);
    assert_int_equal(rp_frame_kind(&refusal), RP_KIND_FAULT);
    assert_non_null(strstr(refusal.body.fault.text, "plan"));
    close_fixture(&f);
}

/* The host sends on until it has heard of the fault: those messages say nothing. */
static void messages_of_an_ended_run_are_dropped(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    lead_to(&f, RP_AGENT_READY);
    send_kind(&f, RP_KIND_CONNECT);
    send_kind(&f, RP_KIND_STOP);
    send_kind(&f, RP_KIND_STEP_DECISION);
    expect_fault(&f, RP_KIND_CONNECT, RP_AGENT_READY);
    greet(&f); /* the next answer is that of the greeting */
    close_fixture(&f);
}

/* A controller that has been replaced is told so; what the board does for the newer one goes on. */
static void an_older_term_is_refused(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    lead_to(&f, RP_AGENT_READY);
    const rp_Frame hello = {.which_body = RP_KIND_HELLO,
                            .body.hello = {.wire_min = RP_WIRE_MIN,
                                           .wire_max = RP_WIRE_MAX,
                                           .features = HOST_FEATURES}};
    f.term--;
    send(&f, hello, NULL, 0);
    const rp_Frame answer = receive(&f);
    assert_int_equal(rp_frame_kind(&answer), RP_KIND_FAULT);
    assert_int_equal(answer.body.fault.fault_class, RP_FAULT_FATAL);
    assert_non_null(strstr(answer.body.fault.text, "newer start"));
    assert_int_equal(rp_agent_state_of(f.agent), RP_AGENT_READY);
    f.term++;
    greet(&f);
    close_fixture(&f);
}

/* What else an older term says is dropped while there is a run, and refused while there is none. */
static void an_older_term_ends_nothing(void **state) {
    (void)state;
    static const rp_kind kinds[] = {RP_KIND_BYE, RP_KIND_START, RP_KIND_CONNECT};
    fixture f;
    open_fixture(&f);
    lead_to(&f, RP_AGENT_READY);
    f.term--;
    for (uint32_t k = 0; k < 3; k++) {
        send_kind(&f, kinds[k]);
    }
    for (uint32_t i = 0; i < 50; i++) {
        step(&f);
    }
    assert_int_equal(rp_agent_state_of(f.agent), RP_AGENT_READY);
    f.term++;
    send_kind(&f, RP_KIND_BYE);
    step_to_state(&f, RP_AGENT_HELLO); /* and nobody was told of a fault: */
    f.term--;
    send_kind(&f, RP_KIND_START);
    const rp_Frame answer = receive(&f);
    assert_int_equal(rp_frame_kind(&answer), RP_KIND_FAULT);
    assert_non_null(strstr(answer.body.fault.text, "newer start"));
    f.term++;
    greet(&f);
    close_fixture(&f);
}

/* A host that speaks none of our versions hears which ones we do; a ring of one is refused. */
static void versions_of_the_wire_are_told(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    const rp_Frame hello = {
        .which_body = RP_KIND_HELLO,
        .body.hello = {.wire_min = RP_WIRE_MAX + 1, .wire_max = RP_WIRE_MAX + 3}};
    send(&f, hello, NULL, 0);
    const rp_Frame answer = receive(&f);
    assert_int_equal(rp_frame_kind(&answer), RP_KIND_HELLO);
    assert_int_equal(answer.body.hello.wire_min, RP_WIRE_MIN);
    assert_int_equal(answer.body.hello.wire_max, RP_WIRE_MAX);
    const rp_part parts[] = {rp_part_of_text(f.job_text), rp_part_of_text(model_text),
                             rp_part_of_text(f.plan_text)};
    const rp_Frame assign = {.which_body = RP_KIND_ASSIGN,
                             .body.assign = {.wire = RP_WIRE_MAX + 1}};
    send(&f, assign, parts, 3);
    const rp_Frame refusal = receive(&f);
    assert_int_equal(rp_frame_kind(&refusal), RP_KIND_FAULT);
    assert_non_null(strstr(refusal.body.fault.text, "wire version"));
    greet(&f);
    close_fixture(&f);
}

static void expect_refusal(fixture *f, const char *text) {
    const rp_Frame refusal = receive(f);
    assert_int_equal(rp_frame_kind(&refusal), RP_KIND_FAULT);
    if (!strstr(refusal.body.fault.text, text)) {
        fail_msg("expected '%s' in '%s'", text, refusal.body.fault.text);
    }
    assert_int_equal(rp_agent_state_of(f->agent), RP_AGENT_HELLO);
}

/* A host that was built before plans were sent: told at HELLO, and again at its ASSIGN. */
static void a_host_without_plans_is_refused(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    const rp_Frame hello = {
        .which_body = RP_KIND_HELLO,
        .body.hello = {.software = "0.0.7", .wire_min = RP_WIRE_MIN, .wire_max = RP_WIRE_MAX}};
    const rp_Frame assign = {.which_body = RP_KIND_ASSIGN, .body.assign = {.wire = RP_WIRE_MAX}};
    const rp_part parts[] = {rp_part_of_text(f.job_text), rp_part_of_text(model_text)};
    send(&f, hello, NULL, 0);
    expect_kind(&f, RP_KIND_HELLO);
    expect_refusal(&f, "the host (ringpipe 0.0.7) assigns stages without a plan, which this board "
                       "(ringpipe " RP_VERSION ") needs: update ringpipe on the host");
    send(&f, assign, parts, 2);
    expect_refusal(&f, "the host's ringpipe (0.0.7) is older than this board's (" RP_VERSION
                       "): update ringpipe on the host");
    greet(&f);
    close_fixture(&f);
}

/* `text` with `with` in place of the first `from`. */
static void replace(const char *text, const char *from, const char *with, char *out, size_t bytes) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    const int used =
        snprintf(out, bytes, "%.*s%s%s", (int)(at - text), text, with, at + strlen(from));
    assert_true(used > 0 && (size_t)used < bytes);
}

/* A host whose plan and job differ would have ops wait for samples that never come. */
static void plan_and_job_say_the_same(void **state) {
    (void)state;
    static const char *const changed[][2] = {{"\nepoch_samples: ", "\nepoch_samples: 1"},
                                             {"\nbatch: ", "\nbatch: 1"},
                                             {"schedule: gpipe", "schedule: 1f1b"}};
    char text[16384];
    fixture f;
    open_fixture(&f);
    char *whole = f.job_text;
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        replace(whole, changed[i][0], changed[i][1], text, sizeof text);
        f.job_text = text;
        greet(&f);
        send_texts(&f, RP_KIND_ASSIGN);
        expect_refusal(&f, "assignment: plan and job differ: ");
    }
    f.job_text = whole;
    close_fixture(&f);
}

/* A plan that does not hold together is refused before anything is built. */
static void half_a_role_is_refused(void **state) {
    (void)state;
    static const char whole[] = "\"role\": \"both\"";
    char text[16384];
    fixture f;
    open_fixture(&f);
    replace(f.plan_text, whole, "\"role\": \"forward\"", text, sizeof text);
    f.plan_text = text;
    greet(&f);
    send_texts(&f, RP_KIND_ASSIGN);
    expect_refusal(&f, "plan: holds.samples: stage 0: no node does the backward from 0");
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_in_every_state),
        cmocka_unit_test(a_refused_message_ends_the_run),
        cmocka_unit_test(a_hello_is_answered_while_building),
        cmocka_unit_test(an_agent_is_closed_while_building),
        cmocka_unit_test(a_profile_is_answered),
        cmocka_unit_test(layers_are_only_built),
        cmocka_unit_test(a_plan_that_does_not_fit_is_refused),
        cmocka_unit_test(messages_of_an_ended_run_are_dropped),
        cmocka_unit_test(an_older_term_is_refused),
        cmocka_unit_test(an_older_term_ends_nothing),
        cmocka_unit_test(versions_of_the_wire_are_told),
        cmocka_unit_test(a_host_without_plans_is_refused),
        cmocka_unit_test(half_a_role_is_refused),
        cmocka_unit_test(plan_and_job_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
