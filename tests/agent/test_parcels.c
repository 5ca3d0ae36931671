/* What parcels take of a board's memory: the plan's windows, in the bytes of their codecs. */
#include "agent/parcels.h"
#include "agent/ring.h"

static const char model[] = "input: [2, 5, 5]\nlayers:\n"
                            "  - {name: conv1, kind: conv2d, out: 3, kernel: 3, pad: 1}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc1, kind: dense, out: 3}\n";
static const char job[] =
    "sample: [2, 5, 5]\nclasses: 3\nseed: 1\nbatch: 8\nmicrobatch: 4\nepoch_samples: 64\n"
    "steps: 8\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.1}\nschedule: 1f1b\n";

enum { INPUT = 50, MIDDLE = 75, MICRO = 4, BATCH = 8 };

static void open_ring(test_ring *ring, rp_codec codec) {
    const rp_site site = {0};
    const rp_codec both[1][2] = {{codec, codec}};
    test_codec = both;
    test_ring_open_on(ring, "digest", &site, model, job, "[flat]", 2);
    test_codec = NULL;
}

static rp_parcel_memory memory_of(const test_ring *ring, uint32_t node) {
    return rp_parcel_memory_of(ring->plan, node, &ring->board[node].job);
}

static uint64_t window_of(const test_ring *ring, rp_carries carries) {
    uint32_t e = 0;
    while (ring->plan->edge[e].carries != carries) {
        e++;
    }
    return ring->plan->edge[e].window;
}

/* Of a link what is on its way while credit comes back; of a feed's parcels the larger. */
static void they_are_the_windows(void **state) {
    (void)state;
    const rp_codec codecs[] = {RP_CODEC_F32, RP_CODEC_INT8};
    for (uint32_t i = 0; i < 2; i++) {
        test_ring ring;
        open_ring(&ring, codecs[i]);
        const uint64_t middle = MICRO * rp_codec_bytes(codecs[i], MIDDLE);
        const uint64_t input = MICRO * INPUT * sizeof(float);
        const uint64_t label = BATCH * sizeof(float);
        const uint64_t up = window_of(&ring, RP_CARRIES_ACTIVATION);
        const uint64_t down = window_of(&ring, RP_CARRIES_GRADIENT);
        const uint64_t slack = RP_PLAN_LINK_SLACK;
        assert_int_equal(memory_of(&ring, 0).bytes,
                         (window_of(&ring, RP_CARRIES_INPUT) + slack) * input + up * middle +
                             (down + slack) * middle);
        assert_int_equal(memory_of(&ring, 1).bytes,
                         (window_of(&ring, RP_CARRIES_LABEL) + slack) * label + down * middle +
                             (up + slack) * middle);
        test_ring_close(&ring);
    }
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    const uint64_t stage = 1000000;
    test_ring ring;
    open_ring(&ring, RP_CODEC_F32);
    const rp_parcel_memory parcels = memory_of(&ring, 1);
    rp_parcel_room room = {.stage_bytes = stage, .limit_bytes = stage + parcels.bytes};
    expect_ok(rp_parcel_memory_check(ring.plan, 1, &parcels, &room));
    room.limit_bytes--;
    expect_err(rp_parcel_memory_check(ring.plan, 1, &parcels, &room), RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), "parcels with labels from the host"));
    assert_null(strstr(rp_err_message(), "processor"));
    room.apart = true;
    expect_err(rp_parcel_memory_check(ring.plan, 1, &parcels, &room), RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), "its processor's memory"));
    assert_non_null(strstr(rp_err_message(), "offloaded stashes"));
    test_ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_the_windows),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
