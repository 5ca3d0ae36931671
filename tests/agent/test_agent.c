/* An agent as a state machine: every kind of message in every state is handled or refused, and
 * building never stops it from answering. */
#include "expect.h"

#include "agent/agent.h"
#include "plan/plan.h"

/* ---- the table ------------------------------------------------------------------------------- */

/* x: taken. Columns: hello, building, assigned, ready, running, paused, saving. */
typedef struct {
    rp_kind kind;
    const char *states;
} row;

static const row table[] = {
    {RP_KIND_INPUT, ". . . . . . ."},
    {RP_KIND_LABEL, ". . . . . . ."},
    {RP_KIND_ACTIVATION, ". . . . . . ."},
    {RP_KIND_GRADIENT, ". . . . . . ."},
    {RP_KIND_HELLO, "x x x x x x x"},
    {RP_KIND_ASSIGN, "x x x x x x x"},
    {RP_KIND_READY, ". . . . . . ."},
    {RP_KIND_CONNECT, ". . x . . . ."},
    {RP_KIND_START, ". . . x . x ."},
    {RP_KIND_STOP, ". . . x x x x"},
    {RP_KIND_STEP_DONE, ". . . . . . ."},
    {RP_KIND_NORMS, ". . . . . . ."},
    {RP_KIND_STEP_DECISION, ". . . . x . ."},
    {RP_KIND_SKIPPED, ". . . . . . ."},
    {RP_KIND_PREDICTION_ERROR, ". . . . . . ."},
    {RP_KIND_PREDICTION_GAIN, ". . . x x x x"},
    {RP_KIND_TRACE, ". . . . . . ."},
    {RP_KIND_FINISHED, ". . . . . . ."},
    {RP_KIND_EVALUATE, ". . . x . x ."},
    {RP_KIND_EVALUATE_DONE, ". . . . . . ."},
    {RP_KIND_SAVE, ". . . x . x ."},
    {RP_KIND_TENSOR, ". . . x . x ."},
    {RP_KIND_IN_FLIGHT, ". . . x . x ."},
    {RP_KIND_TENSORS_END, ". . . x . x ."},
    {RP_KIND_PROFILE, "x x x x x x x"},
    {RP_KIND_PROFILE_DONE, ". . . . . . ."},
    {RP_KIND_FAULT, "x x x x x x x"},
    {RP_KIND_BYE, "x x x x x x x"},
    {RP_KIND_ACK_ONLY, ". . . . . . ."},
    {RP_KIND_PROBE, ". . . . . . ."},
    {RP_KIND_PING, ". . . . . . ."},
    {RP_KIND_PONG, ". . . . . . ."},
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

/* ---- an agent and its host ------------------------------------------------------------------- */

static const char model_text[] = "input: [4]\nlayers:\n  - {name: fc1, kind: dense, out: 5}\n"
                                 "  - {name: fc2, kind: dense, out: 3}\n";

typedef struct {
    rp_arena arena;
    rp_clock clock;
    rp_device *device;
    rp_keypair host_keys, agent_keys;
    rp_links *links;
    rp_link *link;
    rp_agent *agent;
    char *job_text, *plan_text;
    uint32_t term;
} fixture;

static void write_plan(fixture *f) {
    enum { PLAN_BYTES = 1 << 14 };
    rp_node *root;
    rp_node *model;
    rp_job job;
    rp_plan *plan;
    expect_ok(rp_config_read_text(&f->arena, f->job_text, strlen(f->job_text), "job", &root));
    expect_ok(rp_config_read_text(&f->arena, model_text, strlen(model_text), "model", &model));
    expect_ok(rp_job_parse(&f->arena, root, model, &job));
    const rp_plan_options options = {.model_name = "test",
                                     .model = job.model,
                                     .cut = &job.cut,
                                     .method = &job.method,
                                     .batch = job.batch,
                                     .micro = job.micro,
                                     .epoch_samples = job.epoch_samples,
                                     .steps = job.steps};
    expect_ok(rp_plan_make(&f->arena, &options, &plan));
    expect_ok(RP_ARENA_NEW(&f->arena, PLAN_BYTES, &f->plan_text));
    FILE *file = fmemopen(f->plan_text, PLAN_BYTES, "w");
    assert_non_null(file);
    expect_ok(rp_plan_write(plan, file));
    assert_int_equal(fclose(file), 0);
}

static void open_fixture(fixture *f) {
    const rp_device_options wanted = {.threads = 1};
    *f = (fixture){.clock = rp_clock_real()};
    rp_arena_init(&f->arena, "test", 0);
    expect_ok(rp_keys_make(&f->host_keys));
    expect_ok(rp_keys_make(&f->agent_keys));
    expect_ok(rp_device_open(&f->arena, &wanted, &f->device));
    const char *trusted[] = {f->host_keys.public_text};
    const rp_agent_options options = {.name = "board",
                                      .listen = "tcp://127.0.0.1:0",
                                      .keys = f->agent_keys,
                                      .trusted = trusted,
                                      .trusted_count = 1};
    expect_ok(rp_agent_open(&f->arena, f->device, &f->clock, &options, &f->agent));
    const rp_links_options links = {.clock = &f->clock, .keys = &f->host_keys, .seed = 1};
    expect_ok(rp_links_open(&f->arena, &links, &f->links));
    const rp_link_options link = {.name = "control",
                                  .connect = rp_agent_endpoint(f->agent),
                                  .peer_public = f->agent_keys.public_text,
                                  .window = 1,
                                  .send_window = 1,
                                  .part_bytes_max = 1 << 20};
    expect_ok(rp_link_open(f->links, &link, &f->link));
    expect_ok(rp_arena_printf(&f->arena, &f->job_text,
                              "stage: 0\nstages: 1\ncut: []\nsample: [4]\nclasses: 3\nseed: 1\n"
                              "batch: 2\nmicrobatch: 2\nepoch_samples: 20\nsteps: 10\n"
                              "loss: cross-entropy\noptimizer: {kind: sgd, lr: 0.1}\n"
                              "schedule: gpipe\npeers: {host: \"%s\"}\n",
                              f->host_keys.public_text));
    write_plan(f);
}

static void close_fixture(fixture *f) {
    rp_agent_close(&f->agent);
    rp_link_close(&f->link);
    rp_links_close(&f->links);
    rp_device_close(&f->device);
    rp_arena_finish(&f->arena);
}

static void send(fixture *f, rp_Frame frame, const rp_part *parts, uint32_t count) {
    frame.run_id = 7;
    frame.term = f->term;
    expect_ok(rp_link_send(f->link, &frame, parts, count, true, NULL, NULL));
}

static void send_kind(fixture *f, rp_kind kind) {
    static const float values[1] = {0};
    static const double gain[1] = {1};
    rp_Frame frame = {.which_body = (pb_size_t)kind};
    const rp_part tensor = rp_part_of_array(RP_DTYPE_F32, values, 1);
    const rp_part gains = rp_part_of_array(RP_DTYPE_F64, gain, 1);
    if (kind == RP_KIND_TENSOR) {
        frame.body.tensor.total = 1;
        (void)snprintf(frame.body.tensor.name, sizeof frame.body.tensor.name, "fc1.bias");
        send(f, frame, &tensor, 1);
    } else if (kind == RP_KIND_PREDICTION_GAIN) {
        send(f, frame, &gains, 1);
    } else {
        send(f, frame, NULL, 0);
    }
}

static void send_texts(fixture *f, rp_kind kind) {
    const rp_part parts[] = {rp_part_of_text(f->job_text), rp_part_of_text(model_text),
                             rp_part_of_text(f->plan_text)};
    rp_Frame frame = {.which_body = (pb_size_t)kind};
    if (kind == RP_KIND_ASSIGN) {
        frame.body.assign.wire = RP_WIRE_MAX;
    }
    send(f, frame, parts, kind == RP_KIND_ASSIGN ? 3 : 2);
}

static void step(fixture *f) {
    bool over;
    expect_ok(rp_agent_step(f->agent, &over));
    expect_ok(rp_link_step(f->link));
    rp_link *one[] = {f->link};
    expect_ok(rp_link_wait(one, 1, NULL, 0, RP_NS_PER_MS / 2));
}

static void step_to_state(fixture *f, rp_agent_state state) {
    for (uint32_t i = 0; i < 60000 && rp_agent_state_of(f->agent) != state; i++) {
        step(f);
    }
    assert_string_equal(rp_agent_state_name(rp_agent_state_of(f->agent)),
                        rp_agent_state_name(state));
}

/* The next message of the agent. */
static rp_Frame receive(fixture *f) {
    rp_message *message = NULL;
    for (uint32_t i = 0; i < 60000 && rp_link_recv(f->link, &message) == RP_ERR_AGAIN; i++) {
        step(f);
    }
    assert_non_null(message);
    const rp_Frame frame = message->frame;
    rp_link_release(f->link, &message);
    return frame;
}

static void expect_kind(fixture *f, rp_kind kind) {
    const rp_Frame frame = receive(f);
    if (rp_frame_kind(&frame) != kind) {
        fail_msg("expected %s, got %s '%s'", rp_kind_name(kind),
                 rp_kind_name(rp_frame_kind(&frame)),
                 rp_frame_kind(&frame) == RP_KIND_FAULT ? frame.body.fault.text : "");
    }
}

static void expect_fault(fixture *f, rp_kind kind, rp_agent_state state) {
    const rp_Frame frame = receive(f);
    assert_int_equal(rp_frame_kind(&frame), RP_KIND_FAULT);
    const char *text = frame.body.fault.text;
    if (!strstr(text, rp_kind_name(kind)) || !strstr(text, rp_agent_state_name(state))) {
        fail_msg("%s in state %s: '%s'", rp_kind_name(kind), rp_agent_state_name(state), text);
    }
    assert_int_equal(rp_agent_state_of(f->agent), RP_AGENT_HELLO);
}

/* Answers of what was under way may come first. */
static void greet(fixture *f) {
    const rp_Frame hello = {.which_body = RP_KIND_HELLO,
                            .body.hello = {.wire_min = RP_WIRE_MIN, .wire_max = RP_WIRE_MAX}};
    f->term++; /* a new assignment */
    send(f, hello, NULL, 0);
    rp_kind kind = RP_KIND_NONE;
    while (kind != RP_KIND_HELLO) {
        const rp_Frame frame = receive(f);
        kind = rp_frame_kind(&frame);
        assert_int_not_equal(kind, RP_KIND_FAULT);
    }
}

/* To a state that an agent can be brought to without data. */
static void lead_to(fixture *f, rp_agent_state state) {
    greet(f);
    if (state == RP_AGENT_HELLO) {
        return;
    }
    send_texts(f, RP_KIND_ASSIGN);
    expect_kind(f, RP_KIND_READY);
    if (state == RP_AGENT_ASSIGNED) {
        return;
    }
    send_kind(f, RP_KIND_CONNECT);
    step_to_state(f, RP_AGENT_READY);
    if (state == RP_AGENT_RUNNING) {
        send(f, (rp_Frame){.which_body = RP_KIND_START, .body.start = {.pause = 10}}, NULL, 0);
        step_to_state(f, RP_AGENT_RUNNING);
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
                            .body.hello = {.wire_min = RP_WIRE_MIN, .wire_max = RP_WIRE_MAX}};
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_in_every_state),
        cmocka_unit_test(a_refused_message_ends_the_run),
        cmocka_unit_test(a_hello_is_answered_while_building),
        cmocka_unit_test(an_agent_is_closed_while_building),
        cmocka_unit_test(a_profile_is_answered),
        cmocka_unit_test(a_plan_that_does_not_fit_is_refused),
        cmocka_unit_test(messages_of_an_ended_run_are_dropped),
        cmocka_unit_test(an_older_term_is_refused),
        cmocka_unit_test(versions_of_the_wire_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
