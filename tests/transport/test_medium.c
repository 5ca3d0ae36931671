/* Media: the same for all that share them, in one process and in its children. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "expect.h"
#include "transport/medium.h"

static rp_arena arena;
static rp_clock clock_of_test;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    clock_of_test = rp_clock_real();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static void a_key_is_one_medium(void **state) {
    (void)state;
    rp_media *media;
    expect_ok(rp_media_new(&arena, &clock_of_test, &media));
    rp_medium *a = rp_media_find(media, 7);
    rp_medium *b = rp_media_find(media, 7 + RP_MEDIA_MAX); /* the same place */
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(rp_media_find(media, 7), a);
    assert_ptr_equal(rp_media_find(media, 7 + RP_MEDIA_MAX), b);
    assert_null(rp_media_find(media, 0));
    assert_null(rp_media_find(NULL, 7));
    assert_int_equal(rp_media_fd(media), -1);
    for (uint64_t key = 1; key < RP_MEDIA_MAX; key++) { /* 7 is there: one place is left */
        assert_non_null(rp_media_find(media, key));
    }
    assert_null(rp_media_find(media, 3 * (uint64_t)RP_MEDIA_MAX + 1));
    assert_ptr_equal(rp_media_find(media, 7), a);
    rp_media_close(&media);
}

static void children_share_it(void **state) {
    (void)state;
    rp_media *media;
    expect_ok(rp_media_share(&arena, &clock_of_test, &media));
    atomic_store(&rp_media_find(media, 11)->free_ns, 5);
    const pid_t child = fork();
    if (child == 0) {
        rp_arena own;
        rp_media *adopted;
        rp_arena_init(&own, "child", 0);
        if (rp_media_adopt(&own, dup(rp_media_fd(media)), &clock_of_test, &adopted) != RP_OK) {
            _exit(1);
        }
        atomic_fetch_add(&rp_media_find(adopted, 11)->free_ns, 37);
        atomic_store(&rp_media_find(adopted, 12)->free_ns, 9);
        rp_media_close(&adopted);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(atomic_load(&rp_media_find(media, 11)->free_ns), 42);
    assert_int_equal(atomic_load(&rp_media_find(media, 12)->free_ns), 9);
    rp_media_close(&media);
    assert_null(media);
    rp_media_close(&media);
}

static void what_is_no_media_is_refused(void **state) {
    (void)state;
    rp_media *media;
    const int null = open("/dev/null", O_RDWR);
    FILE *file = tmpfile();
    assert_non_null(file);
    expect_err(rp_media_adopt(&arena, null, &clock_of_test, &media), RP_ERR_USAGE);
    expect_err(rp_media_adopt(&arena, fileno(file), &clock_of_test, &media), RP_ERR_USAGE);
    expect_err(rp_media_adopt(&arena, -1, &clock_of_test, &media), RP_ERR_USAGE);
    (void)fclose(file);
    (void)close(null);
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_is_one_medium, setup, teardown),
        cmocka_unit_test_setup_teardown(children_share_it, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_media_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
