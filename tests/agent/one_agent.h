/* For tests: an agent alone with its host, which is the test. */
#ifndef RP_TESTS_AGENT_ONE_AGENT_H
#define RP_TESTS_AGENT_ONE_AGENT_H

#include "expect.h"

#include "agent/agent.h"
#include "plan/plan.h"
#include "transport/inproc.h"

static const char model_text[] = "input: [4]\nlayers:\n  - {name: fc1, kind: dense, out: 5}\n"
                                 "  - {name: fc2, kind: dense, out: 3}\n";

/* A host that does not ask how far a build is, nor what is waited for, so that every answer is one
 * that a test knows. */
static const uint64_t HOST_FEATURES =
    RP_WIRE_FEATURES & ~(RP_WIRE_FEATURE_BUILDING | RP_WIRE_FEATURE_WAITING);

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
    uint64_t run_id;    /* 0 = 7 */
    uint32_t orphan_s;  /* that an ASSIGN says */
    uint64_t features;  /* of the host; 0 = HOST_FEATURES */
    const char *origin; /* of the host, in its HELLO; NULL: none */
    bool is_virtual;    /* time stands still but for rp_agent_wait(), and there is no socket */
    rp_loop loop;
    rp_hub *hub;
    rp_transport *transport;
    int64_t ping_ns; /* virtual: the host pings so often, 0 = never */
    int64_t pinged_ns;
} fixture;

static inline void write_plan(fixture *f) {
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

/* What a test wants otherwise; NULL: nothing. */
static void (*fixture_options)(rp_agent_options *options);

/* Both ends on ZeroMQ and the real clock; `is_virtual`: in one hub, on a clock that is stepped.
 * `executor`: NULL = opencl; `device`: whether the board has one, and so a builder's thread. */
static inline void open_agent(fixture *f, bool is_virtual, const rp_executor_kind *executor,
                              bool device) {
    const rp_device_options wanted = {.threads = 1};
    *f = (fixture){.is_virtual = is_virtual,
                   .clock = is_virtual ? rp_clock_stepped(RP_NS_PER_S) : rp_clock_real()};
    f->loop = is_virtual ? rp_loop_virtual(&f->clock) : rp_loop_poll(&f->clock);
    rp_arena_init(&f->arena, "test", 0);
    expect_ok(rp_keys_make(&f->host_keys));
    expect_ok(rp_keys_make(&f->agent_keys));
    if (device) {
        expect_ok(rp_device_open(&f->arena, &wanted, &f->device));
    }
    if (is_virtual) {
        expect_ok(rp_hub_new(&f->arena, 0, &f->hub));
        const rp_transport_options inproc = {.clock = &f->clock, .hub = f->hub};
        expect_ok(rp_transport_start(&f->arena, "inproc", &inproc, &f->transport));
    }
    const char *trusted[] = {f->host_keys.public_text};
    rp_agent_options options = {.name = "board",
                                .listen = "tcp://127.0.0.1:0",
                                .keys = f->agent_keys,
                                .trusted = trusted,
                                .trusted_count = 1,
                                .executor = executor,
                                .transport = f->transport,
                                .loop = &f->loop};
    if (fixture_options) {
        fixture_options(&options);
    }
    expect_ok(rp_agent_open(&f->arena, f->device, &f->clock, &options, &f->agent));
    const rp_links_options links = {
        .clock = &f->clock, .keys = &f->host_keys, .seed = 1, .transport = f->transport};
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

static inline void open_fixture(fixture *f) {
    open_agent(f, false, NULL, true);
}

static inline void close_fixture(fixture *f) {
    rp_agent_close(&f->agent);
    rp_link_close(&f->link);
    rp_links_close(&f->links);
    rp_transport_finish(&f->transport);
    rp_hub_finish(&f->hub);
    rp_device_close(&f->device);
    rp_arena_finish(&f->arena);
}

static inline void send(fixture *f, rp_Frame frame, const rp_part *parts, uint32_t count) {
    frame.run_id = f->run_id ? f->run_id : 7;
    frame.term = f->term;
    expect_ok(rp_link_send(f->link, &frame, parts, count, true, NULL, NULL));
}

static inline void send_kind(fixture *f, rp_kind kind) {
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

static inline void send_texts(fixture *f, rp_kind kind) {
    const rp_part parts[] = {rp_part_of_text(f->job_text), rp_part_of_text(model_text),
                             rp_part_of_text(f->plan_text)};
    rp_Frame frame = {.which_body = (pb_size_t)kind};
    if (kind == RP_KIND_ASSIGN) {
        frame.body.assign.wire = RP_WIRE_MAX;
        frame.body.assign.orphan_s = f->orphan_s;
    }
    send(f, frame, parts, kind == RP_KIND_ASSIGN ? 3 : 2);
}

static inline void step(fixture *f) {
    bool over;
    expect_ok(rp_agent_step(f->agent, &over));
    expect_ok(rp_link_step(f->link));
    if (f->is_virtual) {
        const int64_t now_ns = rp_clock_now_ns(&f->clock);
        if (f->ping_ns && now_ns - f->pinged_ns >= f->ping_ns) {
            f->pinged_ns = now_ns;
            expect_ok(rp_link_ping(f->link));
        }
        rp_link_before_wait(f->link);
        expect_ok(rp_agent_wait(f->agent));
    } else {
        rp_link *one[] = {f->link};
        expect_ok(rp_link_wait(one, 1, NULL, 0, RP_NS_PER_MS / 2));
    }
}

static inline void step_to_state(fixture *f, rp_agent_state state) {
    for (uint32_t i = 0; i < 60000 && rp_agent_state_of(f->agent) != state; i++) {
        step(f);
    }
    assert_string_equal(rp_agent_state_name(rp_agent_state_of(f->agent)),
                        rp_agent_state_name(state));
}

/* The next message of the agent. */
static inline rp_Frame receive(fixture *f) {
    rp_message *message = NULL;
    for (uint32_t i = 0; i < 60000 && rp_link_recv(f->link, &message) == RP_ERR_AGAIN; i++) {
        step(f);
    }
    assert_non_null(message);
    const rp_Frame frame = message->frame;
    rp_link_release(f->link, &message);
    return frame;
}

static inline void expect_kind(fixture *f, rp_kind kind) {
    const rp_Frame frame = receive(f);
    if (rp_frame_kind(&frame) != kind) {
        fail_msg("expected %s, got %s '%s'", rp_kind_name(kind),
                 rp_kind_name(rp_frame_kind(&frame)),
                 rp_frame_kind(&frame) == RP_KIND_FAULT ? frame.body.fault.text : "");
    }
}

static inline void expect_fault(fixture *f, rp_kind kind, rp_agent_state state) {
    const rp_Frame frame = receive(f);
    assert_int_equal(rp_frame_kind(&frame), RP_KIND_FAULT);
    const char *text = frame.body.fault.text;
    if (!strstr(text, rp_kind_name(kind)) || !strstr(text, rp_agent_state_name(state))) {
        fail_msg("%s in state %s: '%s'", rp_kind_name(kind), rp_agent_state_name(state), text);
    }
    assert_int_equal(rp_agent_state_of(f->agent), RP_AGENT_HELLO);
}

/* Answers of what was under way may come first. */
static inline void greet(fixture *f) {
    rp_Frame hello = {.which_body = RP_KIND_HELLO,
                      .body.hello = {.wire_min = RP_WIRE_MIN,
                                     .wire_max = RP_WIRE_MAX,
                                     .features = f->features ? f->features : HOST_FEATURES}};
    (void)snprintf(hello.body.hello.origin, sizeof hello.body.hello.origin, "%s",
                   f->origin ? f->origin : "");
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
static inline void lead_to(fixture *f, rp_agent_state state) {
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

#endif
