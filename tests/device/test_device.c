#include "open.h"

#include <poll.h>
#include <unistd.h>

static void facts_are_filled(void **state) {
    (void)state;
    const rp_device_facts *facts = rp_device_facts_of(device);
    assert_true(facts->name[0] && facts->platform[0] && facts->driver[0]);
    assert_true(facts->memory_bytes >= facts->alloc_bytes_max / 2 && facts->alloc_bytes_max > 0);
    assert_true(facts->align_bytes >= 64 && facts->align_bytes <= 4096);
    assert_true(facts->group_items_max >= 1 && facts->compute_units >= 1);
}

static void a_stranger_is_refused_by_name(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_device *none = NULL;
    expect_err(rp_device_open(&arena, &(rp_device_options){.device = "no such device"}, &none),
               RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "no such device"));
    assert_non_null(strstr(rp_err_message(), "pocl-opencl-icd"));
    assert_null(none);
    rp_arena_finish(&arena);
}

static void buffers_are_zeroed_and_copy(void **state) {
    (void)state;
    rp_darena *arena;
    rp_buffer *a;
    rp_buffer *b;
    float host[100];
    float back[100];
    for (int i = 0; i < 100; i++) {
        host[i] = (float)i;
        back[i] = -1;
    }
    expect_ok(rp_darena_open(&boot, device, "test", 1000, 0, &arena));
    expect_ok(rp_darena_take(arena, 400, &a));
    expect_ok(rp_darena_take(arena, 400, &b));
    expect_ok(rp_buffer_read_now(device, back, a, 0, 400));
    expect_close(back[0], 0, 0, 0);
    expect_close(back[99], 0, 0, 0);
    expect_ok(rp_buffer_write(device, a, 0, host, 400));
    expect_ok(rp_buffer_copy(device, b, 40, a, 0, 360));
    expect_ok(rp_buffer_read_now(device, back, b, 0, 400));
    expect_close(back[9], 0, 0, 0);
    expect_close_all(back + 10, host, 90, 0, 0);
    expect_ok(rp_buffer_fill_zero(device, b, 44, 4));
    expect_ok(rp_buffer_read_now(device, back, b, 40, 12));
    expect_close(back[1], 0, 0, 0);
    expect_close(back[2], 2, 0, 0);
    expect_err(rp_buffer_read_now(device, back, b, 4, 400), RP_ERR_LIMIT);
    expect_err(rp_buffer_write_now(device, b, SIZE_MAX, host, 4), RP_ERR_LIMIT);
    expect_err(rp_buffer_copy(device, b, 0, a, 396, 8), RP_ERR_LIMIT);
    rp_darena_close(&arena);
    assert_null(arena);
}

static void an_arena_has_a_limit(void **state) {
    (void)state;
    rp_darena *arena;
    rp_buffer *a;
    size_t before = rp_device_used_bytes(device);
    expect_ok(rp_darena_open(&boot, device, "weights", 1000, 0, &arena));
    expect_ok(rp_darena_take(arena, 600, &a));
    assert_int_equal(rp_device_used_bytes(device), before + 600);
    expect_err(rp_darena_take(arena, 600, &a), RP_ERR_MEMORY);
    assert_non_null(strstr(rp_err_message(), "weights"));
    assert_non_null(strstr(rp_err_message(), "600 of 1000"));
    rp_darena_close(&arena);
    assert_int_equal(rp_device_used_bytes(device), before);
    assert_true(rp_device_used_bytes_max(device) >= before + 600);
    rp_device_reset_used_bytes_max(device);
    assert_int_equal(rp_device_used_bytes_max(device), before);
}

/* What a run may use counts over all arenas; what is there already is not taken back. */
static void a_device_has_a_limit(void **state) {
    (void)state;
    rp_darena *arenas[2];
    rp_buffer *a;
    const size_t before = rp_device_used_bytes(device);
    rp_device_limit_bytes(device, before + 1000);
    expect_ok(rp_darena_open(&boot, device, "weights", 0, 512, &arenas[0]));
    expect_ok(rp_darena_open(&boot, device, "slots", 0, 0, &arenas[1]));
    expect_err(rp_darena_take(arenas[1], 600, &a), RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), "slots: 600 bytes in addition"));
    expect_ok(rp_darena_take(arenas[1], 488, &a));
    expect_err(rp_darena_take(arenas[1], 1, &a), RP_ERR_LIMIT);
    rp_device_limit_bytes(device, before + 4); /* below what is in use */
    expect_err(rp_darena_take(arenas[1], 1, &a), RP_ERR_LIMIT);
    rp_device_limit_bytes(device, 0);
    expect_ok(rp_darena_take(arenas[1], 600, &a));
    rp_darena_close(&arenas[0]);
    rp_darena_close(&arenas[1]);
}

static void a_chunk_is_handed_out_in_parts(void **state) {
    (void)state;
    const uint32_t align = rp_device_facts_of(device)->align_bytes;
    rp_darena *arena;
    rp_buffer *part[3];
    const float one = 1;
    float back = 0;
    size_t bytes = 3 * rp_darena_round(100, align);
    expect_ok(rp_darena_open(&boot, device, "chunk", 0, bytes, &arena));
    for (int i = 0; i < 3; i++) {
        expect_ok(rp_darena_take(arena, 100, &part[i]));
        assert_true(rp_buffer_bytes(part[i]) >= 100);
        expect_ok(rp_buffer_write_now(device, part[i], 4, &one, 4));
        expect_ok(rp_buffer_read_now(device, &back, rp_darena_whole(arena),
                                     (size_t)i * rp_darena_round(100, align) + 4, 4));
        expect_close(back, 1, 0, 0);
    }
    expect_ok(rp_buffer_fill_zero(device, part[1], 0, rp_buffer_bytes(part[1])));
    expect_ok(rp_buffer_read_now(device, &back, part[1], 4, 4));
    expect_close(back, 0, 0, 0);
    expect_ok(rp_buffer_read_now(device, &back, part[2], 4, 4));
    expect_close(back, 1, 0, 0);
    assert_int_equal(rp_darena_used_bytes(arena), bytes);
    expect_err(rp_darena_take(arena, 1, &part[0]), RP_ERR_MEMORY);
    rp_darena_close(&arena);
    assert_int_equal(rp_darena_round(0, 128), 128);
    assert_int_equal(rp_darena_round(128, 128), 128);
    assert_int_equal(rp_darena_round(129, 128), 256);
}

static void fences_pass_and_wake(void **state) {
    (void)state;
    rp_darena *arena;
    rp_buffer *a;
    expect_ok(rp_darena_open(&boot, device, "test", 0, 0, &arena));
    expect_ok(rp_darena_take(arena, 1 << 20, &a));
    for (int round = 0; round < 3000; round++) { /* more than the pool holds: slots come back */
        rp_fence fence;
        expect_ok(rp_device_fence(device, &fence));
        if (round % 2) {
            bool done = false;
            int64_t done_ns = 0;
            for (int tries = 0; !done && tries < 5000; tries++) {
                expect_ok(rp_fence_poll(&fence, &done, &done_ns));
                (void)poll(NULL, 0, !done);
            }
            assert_true(done && done_ns > 0);
        }
        rp_fence_release(&fence);
        assert_null(fence.state);
        rp_fence_release(&fence);
    }
    expect_ok(rp_device_drain(device));
    struct pollfd wake = {.fd = rp_device_eventfd(device), .events = POLLIN};
    assert_int_equal(poll(&wake, 1, 1000), 1);
    uint64_t count;
    assert_int_equal(read(wake.fd, &count, sizeof count), sizeof count);
    assert_true(count >= 1);
    rp_fence passed = {NULL};
    bool done = false;
    expect_ok(rp_fence_poll(&passed, &done, NULL));
    assert_true(done);
    rp_darena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_filled),
        cmocka_unit_test(a_stranger_is_refused_by_name),
        cmocka_unit_test(buffers_are_zeroed_and_copy),
        cmocka_unit_test(an_arena_has_a_limit),
        cmocka_unit_test(a_device_has_a_limit),
        cmocka_unit_test(a_chunk_is_handed_out_in_parts),
        cmocka_unit_test(fences_pass_and_wake),
    };
    open_device();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_device();
    return failed;
}
