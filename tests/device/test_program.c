#include "open.h"

#include <dirent.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device_own.h"
#include "device/program.h"

static char cache[] = "/tmp/rp-test-cache-XXXXXX";

static rp_device *open_with_cache(rp_arena *arena, const char *tuning) {
    rp_device *made = NULL;
    rp_arena_init(arena, "test", 0);
    rp_device_options options = {.cache_dir = cache, .tuning_path = tuning};
    expect_ok(rp_device_open(arena, &options, &made));
    return made;
}

/* The path of the only file of the cache folder. */
static void find_entry(char out[512]) {
    DIR *folder = opendir(cache);
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(out, 512, "%s/%.255s", cache, entry->d_name);
            count++;
        }
    }
    (void)closedir(folder);
    assert_int_equal(count, 1);
}

/* dst[i] = src[2 i + 1] by `gather` of gemm_move.cl, on a fresh device: a build or a hit. */
static void run_kernel(uint32_t want_hits, uint32_t want_misses) {
    rp_arena arena;
    rp_device *d = open_with_cache(&arena, NULL);
    rp_darena *memory;
    rp_buffer *src;
    rp_buffer *dst;
    rp_kernel *kernel;
    float numbers[100];
    float got[50];
    for (int i = 0; i < 100; i++) {
        numbers[i] = (float)i;
    }
    expect_ok(rp_darena_open(&arena, d, "test", 0, 0, &memory));
    expect_ok(rp_darena_take(memory, sizeof numbers, &src));
    expect_ok(rp_darena_take(memory, sizeof got, &dst));
    expect_ok(rp_buffer_write_now(d, src, 0, numbers, sizeof numbers));
    expect_ok(rp_kernel_find(d, "gemm_move", "gather", NULL, &kernel));
    assert_int_equal(d->cache_hits, want_hits);
    assert_int_equal(d->cache_misses, want_misses);
    rp_launch l = rp_launch_begin(kernel);
    rp_arg_buffer(&l, dst);
    rp_arg_u64(&l, 0);
    rp_arg_buffer(&l, src);
    rp_arg_u64(&l, 1);
    rp_arg_u32(&l, 1);
    rp_arg_u32(&l, 50);
    for (int i = 0; i < 2; i++) {
        rp_arg_u32(&l, 1000);
        rp_arg_i32(&l, 0);
        rp_arg_u32(&l, 1000);
        rp_arg_i32(&l, 0);
        rp_arg_i32(&l, 2);
    }
    expect_ok(rp_launch_run(&l, 2, (size_t[]){50, 1}, (size_t[]){64, 1})); /* rounded up to 64 */
    expect_ok(rp_buffer_read_now(d, got, dst, 0, sizeof got));
    for (int i = 0; i < 50; i++) {
        expect_close(got[i], 2 * i + 1, 0, 0);
    }
    rp_darena_close(&memory);
    rp_device_close(&d);
    rp_arena_finish(&arena);
}

static void a_program_is_built_once(void **state) {
    (void)state;
    run_kernel(0, 1);
    run_kernel(1, 0);
}

static void damage_file(long at, const char *bytes, size_t count) {
    char path[512];
    find_entry(path);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void a_bad_entry_is_a_miss(void **state) {
    (void)state;
    char path[512];
    damage_file(0, "NOPE", 4); /* foreign */
    run_kernel(0, 1);
    run_kernel(1, 0);
    damage_file(4, "\xff", 1); /* of another format */
    run_kernel(0, 1);
    damage_file(-9, "ringpipe!", 9); /* damaged bytes */
    run_kernel(0, 1);
    find_entry(path);
    assert_int_equal(truncate(path, 500), 0); /* cut short */
    run_kernel(0, 1);
    assert_int_equal(truncate(path, 0), 0);
    run_kernel(0, 1);
    run_kernel(1, 0);
}

static void a_found_kernel_costs_nothing(void **state) {
    (void)state;
    rp_kernel *first;
    rp_kernel *again;
    rp_kernel *other;
    expect_ok(rp_kernel_find(device, "gemm_move", "gather", NULL, &first));
    size_t used = boot.used_bytes;
    expect_ok(rp_kernel_find(device, "gemm_move", "gather", NULL, &again));
    assert_ptr_equal(first, again);
    assert_int_equal(boot.used_bytes, used);
    expect_ok(rp_kernel_find(device, "gemm_move", "finish", NULL, &other));
    assert_ptr_not_equal(first, other);
}

static void mistakes_have_messages(void **state) {
    (void)state;
    rp_kernel *kernel;
    expect_err(rp_kernel_find(device, "no_such", "x", NULL, &kernel), RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "kernels/no_such.cl"));
    expect_err(rp_kernel_find(device, "gemm_move", "no_entry", NULL, &kernel), RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "no_entry"));
    expect_ok(rp_kernel_find(device, "gemm_move", "gather", NULL, &kernel));
    rp_launch l = rp_launch_begin(kernel);
    rp_arg_f32(&l, 1.0f); /* 4 bytes where a buffer belongs */
    rp_arg_u32(&l, 1);
    expect_err(rp_launch_run(&l, 1, (size_t[]){1}, NULL), RP_ERR_DEVICE);
}

static void a_board_may_define_more(void **state) {
    (void)state;
    char path[600];
    rp_arena arena;
    rp_kernel *kernel;
    (void)snprintf(path, sizeof path, "%s/.tuning.json", cache);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("{\"programs\": {\"gemm_move\": \"-Dkernel=nonsense\"}}", file);
    assert_int_equal(fclose(file), 0);
    rp_device *d = open_with_cache(&arena, path);
    expect_err(rp_kernel_find(d, "gemm_move", "gather", NULL, &kernel), RP_ERR_DEVICE);
    rp_device_close(&d);
    rp_arena_finish(&arena);
    assert_int_equal(unlink(path), 0);
}

/* "build FOLDER": one program with this cache; says how often it was built here, 0 or 1. */
static int build_with_cache(char *folder) {
    rp_arena arena;
    rp_device *d = NULL;
    rp_kernel *kernel;
    rp_arena_init(&arena, "child", 0);
    if (rp_device_open(&arena, &(rp_device_options){.cache_dir = folder}, &d) != RP_OK ||
        rp_kernel_find(d, "gemm_pack", "pack_rows", "-DMR=8", &kernel) != RP_OK) {
        return 1;
    }
    printf("%u\n", d->cache_misses);
    rp_device_close(&d);
    rp_arena_finish(&arena);
    return 0;
}

/* Builds by `count` processes that begin together. */
static int count_builds(char *folder, int count) {
    char program[] = "tests_device";
    char name[] = "test_program";
    char verb[] = "build";
    char *const arguments[] = {program, name, verb, folder, NULL};
    enum { CHILDREN_MAX = 4 };
    pid_t child[CHILDREN_MAX];
    int ends[2];
    int builds = 0;
    posix_spawn_file_actions_t actions;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO), 0);
    for (int i = 0; i < count; i++) {
        assert_int_equal(
            posix_spawn(&child[i], "/proc/self/exe", &actions, NULL, arguments, environ), 0);
    }
    (void)close(ends[1]);
    FILE *answers = fdopen(ends[0], "r");
    assert_non_null(answers);
    for (int i = 0; i < count; i++) {
        char line[16];
        assert_non_null(fgets(line, sizeof line, answers));
        assert_true(strcmp(line, "0\n") == 0 || strcmp(line, "1\n") == 0);
        builds += line[0] == '1';
    }
    (void)fclose(answers);
    for (int i = 0; i < count; i++) {
        int status = -1;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return builds;
}

static void processes_share_the_work(void **state) {
    (void)state;
    char folder[] = "/tmp/rp-test-share-XXXXXX";
    char nowhere[] = "/dev/null/below";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(count_builds(folder, 4), 1);
    assert_int_equal(count_builds(folder, 1), 0);
    assert_int_equal(count_builds(nowhere, 2), 2); /* no cache: each for itself, none waits */
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        const char *end = strrchr(entry->d_name, '.');
        assert_true(entry->d_name[0] == '.' || (end && strcmp(end, ".bin") == 0)); /* no lock */
        if (entry->d_name[0] != '.') {
            assert_int_equal(unlinkat(dirfd(entries), entry->d_name, 0), 0);
        }
    }
    (void)closedir(entries);
    assert_int_equal(rmdir(folder), 0);
}

static void clean_up(void) {
    char path[512];
    find_entry(path);
    (void)unlink(path);
    (void)rmdir(cache);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_built_once),      cmocka_unit_test(a_bad_entry_is_a_miss),
        cmocka_unit_test(a_found_kernel_costs_nothing), cmocka_unit_test(mistakes_have_messages),
        cmocka_unit_test(a_board_may_define_more),      cmocka_unit_test(processes_share_the_work),
    };
    if (argc == 3 && strcmp(argv[1], "build") == 0) {
        return build_with_cache(argv[2]);
    }
    open_device();
    if (!mkdtemp(cache)) {
        skip_program("no temporary folder");
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clean_up();
    close_device();
    return failed;
}
