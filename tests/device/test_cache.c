#include "expect.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/cache.h"

static char dir[] = "/tmp/rp-test-cache-XXXXXX";
static rp_cache_key key;

static const char binary[] = "a kernel";
static const int64_t patient_ns = 30 * RP_NS_PER_S;

static bool is_there(void) {
    rp_arena arena;
    void *found;
    size_t bytes;
    rp_arena_init(&arena, "test", 0);
    bool hit = rp_cache_read(&arena, dir, &key, &found, &bytes);
    if (hit) {
        assert_int_equal(bytes, sizeof binary);
        assert_memory_equal(found, binary, sizeof binary);
    }
    rp_arena_finish(&arena);
    return hit;
}

/* The path of a file of the key's entry, which may be absent. */
static void path_of(char out[256], const char *end) {
    int length = snprintf(out, 256, "%s/", dir);
    for (size_t i = 0; i < sizeof key.bytes; i++) {
        length += snprintf(out + length, 256 - (size_t)length, "%02x", key.bytes[i]);
    }
    (void)snprintf(out + length, 256 - (size_t)length, "%s", end);
}

static bool has_lock_file(void) {
    char path[256];
    path_of(path, ".lock");
    return access(path, F_OK) == 0;
}

typedef enum { BUILDS, SLEEPS, DIES } habit;

/* A process that holds the lock when this returns. BUILDS: for a while, then the entry is there.
 * SLEEPS: until it is killed. DIES: not any more, it never let go of it. */
static pid_t start_holder(habit how) {
    int ends[2];
    char told;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int fd = -1;
        bool locked = rp_cache_lock(dir, &key, 0, NULL, &fd) && fd >= 0;
        if (!locked || write(ends[1], "x", 1) != 1 || how == DIES) {
            _exit(1);
        }
        (void)usleep(how == BUILDS ? 300000 : 60000000);
        rp_cache_write(dir, &key, binary, sizeof binary);
        rp_cache_unlock(dir, &key, fd);
        _exit(0);
    }
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &told, 1), 1);
    (void)close(ends[0]);
    return child;
}

static void reap_child(pid_t child, bool kill_it) {
    int status;
    if (kill_it) {
        assert_int_equal(kill(child, SIGKILL), 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
}

static int64_t now_ns(void) {
    const rp_clock clock = rp_clock_real();
    return rp_clock_now_ns(&clock);
}

static void who_waits_finds_the_entry(void **state) {
    (void)state;
    int fd = -1;
    pid_t child = start_holder(BUILDS);
    assert_false(is_there());
    assert_true(rp_cache_lock(dir, &key, patient_ns, NULL, &fd));
    assert_true(fd >= 0);
    assert_true(is_there());
    rp_cache_unlock(dir, &key, fd);
    assert_false(has_lock_file());
    reap_child(child, false);
    char path[256];
    path_of(path, ".bin");
    assert_int_equal(unlink(path), 0);
}

static void waiting_has_an_end(void **state) {
    (void)state;
    int fd = -1;
    pid_t child = start_holder(SLEEPS);
    int64_t start_ns = now_ns();
    assert_false(rp_cache_lock(dir, &key, 200 * RP_NS_PER_MS, NULL, &fd));
    assert_true(now_ns() - start_ns >= 200 * RP_NS_PER_MS);
    assert_int_equal(fd, -1);
    assert_false(rp_cache_lock(dir, &key, 0, NULL, &fd));
    const atomic_bool cancelled = true;
    assert_false(rp_cache_lock(dir, &key, patient_ns, &cancelled, &fd));
    rp_cache_unlock(dir, &key, fd); /* nothing: the other still holds it */
    assert_true(has_lock_file());
    reap_child(child, true);
    assert_true(rp_cache_lock(dir, &key, patient_ns, NULL, &fd));
    assert_true(fd >= 0);
    rp_cache_unlock(dir, &key, fd);
}

/* Its file stays, and hinders nobody. */
static void a_dead_process_holds_nothing(void **state) {
    (void)state;
    int fd = -1;
    reap_child(start_holder(DIES), false);
    assert_true(has_lock_file());
    assert_true(rp_cache_lock(dir, &key, 0, NULL, &fd));
    assert_true(fd >= 0);
    rp_cache_unlock(dir, &key, fd);
    assert_false(has_lock_file());
}

/* Waits for the lock while its file is removed: the lock of a file without a name is a lock too. */
static void a_lock_file_may_vanish(void **state) {
    (void)state;
    char path[256];
    int fd = -1;
    int second = -1;
    path_of(path, ".lock");
    assert_true(rp_cache_lock(dir, &key, 0, NULL, &fd));
    assert_int_equal(unlink(path), 0);
    assert_true(rp_cache_lock(dir, &key, 0, NULL, &second));
    assert_true(second >= 0);
    rp_cache_unlock(dir, &key, fd);
    rp_cache_unlock(dir, &key, second);
    assert_false(has_lock_file());
}

static void no_folder_no_lock(void **state) {
    (void)state;
    static const char *const folders[] = {"", "/proc/self/no-folder", "/dev/null/below"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        int fd = 5;
        assert_true(rp_cache_lock(folders[i], &key, patient_ns, NULL, &fd));
        assert_int_equal(fd, -1);
        rp_cache_write(folders[i], &key, binary, sizeof binary);
        rp_cache_unlock(folders[i], &key, fd);
    }
}

/* The lengths are hashed too: the texts can not be confused by where one ends. */
static void a_key_is_of_all_texts(void **state) {
    (void)state;
    const rp_cache_key one = rp_cache_key_of((const char *[]){"ab", "c", NULL});
    const rp_cache_key other = rp_cache_key_of((const char *[]){"a", "bc", NULL});
    const rp_cache_key same = rp_cache_key_of((const char *[]){"ab", "c", NULL});
    assert_memory_not_equal(one.bytes, other.bytes, sizeof one.bytes);
    assert_memory_equal(one.bytes, same.bytes, sizeof one.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_finds_the_entry),
        cmocka_unit_test(waiting_has_an_end),
        cmocka_unit_test(a_dead_process_holds_nothing),
        cmocka_unit_test(a_lock_file_may_vanish),
        cmocka_unit_test(no_folder_no_lock),
        cmocka_unit_test(a_key_is_of_all_texts),
    };
    if (!mkdtemp(dir)) {
        skip_program("no temporary folder");
    }
    key = rp_cache_key_of((const char *[]){"test", NULL});
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (rmdir(dir) != 0) {
        print_error("%s is not empty\n", dir);
        failed++;
    }
    return failed;
}
