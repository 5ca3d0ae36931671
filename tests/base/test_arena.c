#include "expect.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"

static void memory_is_zeroed_and_aligned(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    for (size_t bytes = 1; bytes < 300000; bytes = bytes * 3 + 1) {
        void *memory;
        expect_ok(rp_arena_alloc(&arena, bytes, 1, &memory));
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t i = 0; i < bytes; i++) {
            assert_int_equal(((unsigned char *)memory)[i], 0);
        }
        memset(memory, 0xff, bytes);
    }
    rp_arena_finish(&arena);
}

static void limits_and_overflow_are_errors(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 1024);
    void *memory;
    expect_ok(rp_arena_alloc(&arena, 1, 1000, &memory));
    expect_err(rp_arena_alloc(&arena, 1, 1000, &memory), RP_ERR_MEMORY);
    expect_err(rp_arena_alloc(&arena, SIZE_MAX / 2, 3, &memory), RP_ERR_MEMORY);
    expect_err(rp_arena_alloc(&arena, SIZE_MAX, 1, &memory), RP_ERR_MEMORY);
    rp_arena_finish(&arena);
    size_t n = 5;
    assert_false(rp_add_size(SIZE_MAX, 2, &n));
    assert_int_equal(n, 5);
    assert_true(rp_add_size(2, 3, &n));
}

static void texts(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    char *text;
    expect_ok(rp_arena_string(&arena, "abc", &text));
    assert_string_equal(text, "abc");
    expect_ok(rp_arena_printf(&arena, &text, "%d-%s", 7, "x"));
    assert_string_equal(text, "7-x");
    rp_arena_finish(&arena);
}

/* Does a process that allocates there end with an abort? */
static bool aborts(rp_arena *arena) {
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *text;
        (void)freopen("/dev/null", "w", stderr);
        _exit(rp_arena_string(arena, "abc", &text) == RP_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return WIFSIGNALED(status);
}

static void nothing_comes_from_a_sealed_one(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    assert_false(aborts(&arena));
    rp_arena_seal(&arena);
    assert_true(aborts(&arena));
    rp_arena_finish(&arena);
    assert_false(aborts(&arena));
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(limits_and_overflow_are_errors),
        cmocka_unit_test(texts),
        cmocka_unit_test(nothing_comes_from_a_sealed_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
