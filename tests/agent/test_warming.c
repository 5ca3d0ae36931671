/* Ahead of a run a board builds what it would need, says that it does, and has an end to it. */
#include "one_agent.h"

#include <stdatomic.h>
#include <time.h>

#include "agent/agent_own.h"
#include "device/program.h"
#include "device/ready.h"

enum { WARM_S = 600 };

static void send_warm(fixture *f, rp_kind kind) {
    const rp_part parts[] = {rp_part_of_text(f->job_text), rp_part_of_text(model_text),
                             rp_part_of_text(f->plan_text)};
    rp_Frame frame = {.which_body = (pb_size_t)kind};
    if (kind == RP_KIND_ASSIGN) {
        frame.body.assign = (rp_Assign){.wire = RP_WIRE_MAX, .warm_s = WARM_S};
    } else {
        frame.body.profile.warm_s = WARM_S;
    }
    send(f, frame, parts, kind == RP_KIND_ASSIGN ? 3 : 2);
}

static rp_Condition condition_of(fixture *f) {
    const rp_Ask ask = {.id = 5, .what = RP_ASK_CONDITION};
    rp_Frame frame = {0};
    assert_true(rp_agent_answer_question(f->agent, &ask, &frame));
    return frame.body.condition;
}

static double reading(const rp_Condition *said, rp_reading what) {
    for (uint32_t i = 0; i < said->reading_count; i++) {
        if (said->reading[i].what == (uint32_t)what) {
            return said->reading[i].value;
        }
    }
    return -1;
}

/* What a build launches that this process has not launched before; it ends with READY. */
static uint32_t kernels_until_ready(fixture *f, rp_Ready *ready) {
    rp_Building last = {0};
    rp_Frame frame = {0};
    while (rp_frame_kind(&frame) != RP_KIND_READY) {
        frame = receive(f);
        assert_int_not_equal(rp_frame_kind(&frame), RP_KIND_FAULT);
        last = rp_frame_kind(&frame) == RP_KIND_BUILDING ? frame.body.building : last;
    }
    *ready = frame.body.ready;
    assert_int_equal(last.ready, last.kernels);
    return last.kernels;
}

/* An order ahead of a run ends in hello; the run finds all of its kernels. */
static void a_run_finds_what_was_warmed(void **state) {
    (void)state;
    fixture f;
    rp_Ready ready;
    open_fixture(&f);
    f.features = RP_WIRE_FEATURES;
    greet(&f);
    send_warm(&f, RP_KIND_ASSIGN);
    step_to_state(&f, RP_AGENT_WARMING);
    const rp_Condition said = condition_of(&f);
    assert_int_equal(said.state, RP_AGENT_WARMING);
    assert_int_equal(said.run, 0);
    assert_in_range((uint64_t)reading(&said, RP_READING_WARM_LEFT), WARM_S - 60, WARM_S);
    assert_true(kernels_until_ready(&f, &ready) > 0);
    assert_int_equal(ready.hop_port_count, 0);
    assert_int_equal(ready.feed_port, 0);
    step_to_state(&f, RP_AGENT_HELLO);
    const rp_Condition after = condition_of(&f);
    assert_true(reading(&after, RP_READING_WARM_LEFT) < 0);
    greet(&f);
    send_texts(&f, RP_KIND_ASSIGN);
    assert_int_equal(kernels_until_ready(&f, &ready), 0);
    step_to_state(&f, RP_AGENT_ASSIGNED);
    close_fixture(&f);
}

static void layers_are_measured_ahead(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f);
    greet(&f);
    send_warm(&f, RP_KIND_PROFILE);
    step_to_state(&f, RP_AGENT_WARMING);
    expect_kind(&f, RP_KIND_PROFILE_DONE);
    assert_int_equal(rp_agent_state_of(f.agent), RP_AGENT_HELLO);
    close_fixture(&f);
}

/* ---- an end -----------------------------------------------------------------------------------
 */

static atomic_bool gate;

/* A driver that hangs behind a kernel: the device is the builder's, as in a build. */
static rp_err prepare_and_hang(rp_arena *arena, const rp_site *site, const rp_job *job,
                               rp_executor **out) {
    const struct timespec nap = {.tv_nsec = 1000000};
    rp_kernel *kernel;
    rp_err err;
    RP_TRY(rp_kernel_find(site->device, "relu", "relu_forward", NULL, &kernel));
    for (int i = 0; i < 60000 && !atomic_load(&gate); i++) {
        (void)nanosleep(&nap, NULL);
    }
    RP_TRY(rp_executor_find("digest")->prepare(arena, site, job, out));
fail:
    return err;
}

static void open_hanging(fixture *f, rp_executor_kind *slow) {
    *slow = *rp_executor_find("digest");
    slow->prepare = prepare_and_hang;
    atomic_store(&gate, false);
    open_agent(f, true, slow, true);
    f->ping_ns = RP_NS_PER_S;
    greet(f);
    send_warm(f, RP_KIND_ASSIGN);
    step_to_state(f, RP_AGENT_WARMING);
}

/* The builder works in real time, which the virtual clock does not see. */
static void wait_for_kernel(fixture *f) {
    const struct timespec nap = {.tv_nsec = 1000000};
    char begun[96] = "";
    for (int i = 0; i < 60000 && !begun[0]; i++) {
        (void)nanosleep(&nap, NULL);
        rp_device_building(f->device, begun, sizeof begun);
    }
    assert_string_equal(begun, "kernels/relu.cl");
}

static void step_while_warming(fixture *f, int64_t time_ns) {
    const int64_t end_ns = rp_clock_now_ns(&f->clock) + time_ns;
    while (rp_clock_now_ns(&f->clock) < end_ns) {
        step(f);
        assert_int_equal(rp_agent_state_of(f->agent), RP_AGENT_WARMING);
    }
}

/* The host hears which kernel it is, and the board is there for the next run. */
static void a_kernel_that_hangs_is_named(void **state) {
    (void)state;
    const struct timespec nap = {.tv_nsec = 1000000};
    rp_executor_kind slow;
    fixture f;
    open_hanging(&f, &slow);
    wait_for_kernel(&f);
    step_while_warming(&f, (WARM_S - 10) * RP_NS_PER_S);
    const rp_Condition said = condition_of(&f);
    assert_in_range((uint64_t)reading(&said, RP_READING_WARM_LEFT), 1, 11);
    assert_string_equal(said.building, "kernels/relu.cl");
    const rp_Frame frame = receive(&f);
    assert_int_equal(rp_frame_kind(&frame), RP_KIND_FAULT);
    assert_int_equal(frame.body.fault.err, RP_ERR_TIMEOUT);
    assert_non_null(strstr(frame.body.fault.text, "the time limit of 600 s for warming is over"));
    assert_non_null(strstr(frame.body.fault.text, "the last one begun is kernels/relu.cl"));
    assert_int_equal(rp_agent_state_of(f.agent), RP_AGENT_HELLO);
    atomic_store(&gate, true);
    greet(&f);
    send_texts(&f, RP_KIND_ASSIGN);
    for (int i = 0; i < 60000 && rp_agent_state_of(f.agent) != RP_AGENT_ASSIGNED; i++) {
        (void)nanosleep(&nap, NULL);
        step(&f);
    }
    expect_kind(&f, RP_KIND_READY);
    close_fixture(&f);
}

/* Whoever has asked for it can end it, or has gone. */
static void a_host_ends_it(void **state) {
    (void)state;
    static const rp_kind ends[] = {RP_KIND_BYE, RP_KIND_FAULT};
    for (uint32_t i = 0; i < 2; i++) {
        rp_executor_kind slow;
        fixture f;
        open_hanging(&f, &slow);
        send_kind(&f, ends[i]);
        step_to_state(&f, RP_AGENT_HELLO);
        atomic_store(&gate, true);
        close_fixture(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_finds_what_was_warmed),
        cmocka_unit_test(layers_are_measured_ahead),
        cmocka_unit_test(a_kernel_that_hangs_is_named),
        cmocka_unit_test(a_host_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
