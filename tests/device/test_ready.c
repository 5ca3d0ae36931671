/* Kernels are listed before they are built, counted while they are, and compiled by one process
 * where the driver keeps what it compiles. */
#include "expect.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "device/builder.h"
#include "device/device_own.h"
#include "device/program.h"
#include "device/ready.h"

static char folder[] = "/tmp/rp-test-ready-XXXXXX";

typedef struct {
    rp_arena arena;
    rp_device *device;
    rp_device_builder *builder;
    rp_darena *memory;
    rp_buffer *to, *from;
} bench;

static void open_bench(bench *b) {
    rp_arena_init(&b->arena, "test", 0);
    expect_ok(rp_device_open(&b->arena, &(rp_device_options){0}, &b->device));
    expect_ok(rp_device_builder_open(&b->arena, b->device, &b->builder));
    expect_ok(rp_darena_open(&b->arena, b->device, "test", 0, 0, &b->memory));
    expect_ok(rp_darena_take(b->memory, 256, &b->to));
    expect_ok(rp_darena_take(b->memory, 256, &b->from));
}

static void close_bench(bench *b) {
    rp_device_builder_close(&b->builder);
    rp_darena_close(&b->memory);
    rp_device_close(&b->device);
    rp_arena_finish(&b->arena);
}

/* to[i] = from[i] for i < 8, by `gather` in groups of `items`. */
static rp_err launch_gather(bench *b, size_t items) {
    rp_kernel *kernel;
    rp_err err;
    RP_TRY(rp_kernel_find(b->device, "gemm_move", "gather", NULL, &kernel));
    rp_launch l = rp_launch_begin(kernel);
    rp_arg_buffer(&l, b->to);
    rp_arg_u64(&l, 0);
    rp_arg_buffer(&l, b->from);
    rp_arg_u64(&l, 0);
    rp_arg_u32(&l, 1);
    rp_arg_u32(&l, 8);
    for (int i = 0; i < 2; i++) {
        rp_arg_u32(&l, 1000);
        rp_arg_i32(&l, 0);
        rp_arg_u32(&l, 1000);
        rp_arg_i32(&l, 0);
        rp_arg_i32(&l, 1);
    }
    RP_TRY(rp_launch_run(&l, 2, (size_t[]){8, 1}, (size_t[]){items, 1}));
fail:
    return err;
}

/* Two group sizes are two kernels; the second launch of each is none. */
static rp_err issue_all(bench *b) {
    rp_err err;
    RP_TRY(launch_gather(b, 4));
    RP_TRY(launch_gather(b, 8));
    RP_TRY(launch_gather(b, 4));
fail:
    return err;
}

static rp_err build_all(rp_device_builder *builder, void *context) {
    bench *b = context;
    (void)builder;
    rp_device_rehearse(b->device, true);
    rp_err err = issue_all(b);
    rp_device_rehearse(b->device, false);
    RP_TRY(err);
    RP_TRY(issue_all(b));
fail:
    return err;
}

static void expect_count(const bench *b, uint32_t kernels, uint32_t ready, uint32_t built) {
    const rp_build_count count = rp_device_build_count(b->device);
    assert_int_equal(count.kernels, kernels);
    assert_int_equal(count.ready, ready);
    assert_int_equal(count.built, built);
}

static void run_job(bench *b) {
    expect_ok(rp_device_builder_start(b->builder, build_all, b));
    expect_ok(rp_device_builder_join(b->builder));
}

static void a_rehearsal_does_nothing(void **state) {
    (void)state;
    bench b;
    const float seven[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    float got[8];
    open_bench(&b);
    expect_ok(rp_buffer_write_now(b.device, b.from, 0, seven, sizeof seven));
    rp_device_rehearse(b.device, true);
    expect_ok(issue_all(&b));
    expect_ok(rp_buffer_write_now(b.device, b.to, 0, seven, sizeof seven));
    expect_ok(rp_buffer_copy(b.device, b.to, 0, b.from, 0, sizeof seven));
    rp_device_rehearse(b.device, false);
    assert_int_equal(b.device->cache_hits + b.device->cache_misses, 0);
    expect_count(&b, 2, 0, 0);
    expect_ok(rp_buffer_read_now(b.device, got, b.to, 0, sizeof got));
    for (int i = 0; i < 8; i++) {
        expect_close(got[i], 0, 0, 0);
    }
    expect_ok(
        launch_gather(&b, 4)); /* outside of a job: built, and neither waited for nor counted */
    expect_ok(rp_buffer_read_now(b.device, got, b.to, 0, sizeof got));
    for (int i = 0; i < 8; i++) {
        expect_close(got[i], 7, 0, 0);
    }
    expect_count(&b, 2, 0, 0);
    close_bench(&b);
}

/* The first process that builds is the only one. */
static void what_is_built_is_counted(void **state) {
    (void)state;
    for (uint32_t process = 0; process < 2; process++) {
        bench b;
        open_bench(&b);
        b.device->driver_caches = true; /* what follows is so for every driver */
        run_job(&b);
        expect_count(&b, 2, 2, process == 0 ? 2 : 0);
        const rp_build_count count = rp_device_build_count(b.device);
        assert_true(count.build_ns >= 0 && count.read_ns >= 0);
        assert_true(process == 0 ? count.build_ns > 0 : count.read_ns > 0 && count.build_ns == 0);
        rp_device_count_anew(b.device);
        run_job(&b); /* the next job has nothing left to do */
        expect_count(&b, 0, 0, 0);
        close_bench(&b);
    }
}

/* One entry of the cache is gone, and another process holds its lock. */
static int take_entry(const char *cache, const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", cache, name);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/%.*s.lock", cache, (int)strcspn(name, "."), name);
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    return fd;
}

/* What another process builds right now, the program or one of its kernels, is not waited for. */
static void what_another_builds_is_passed_over(void **state) {
    (void)state;
    char own[64];
    char cache[96];
    char names[3][128];
    uint32_t count = 0;
    const struct dirent *entry;
    bench first;
    (void)snprintf(own, sizeof own, "%s/passed-over", folder);
    (void)snprintf(cache, sizeof cache, "%s/ringpipe", own);
    assert_int_equal(setenv("XDG_CACHE_HOME", own, 1), 0);
    open_bench(&first);
    first.device->driver_caches = true; /* what follows is so for every driver */
    run_job(&first);
    close_bench(&first);
    DIR *entries = opendir(cache); /* the program's entry, and one of each kernel */
    assert_non_null(entries);
    while ((entry = readdir(entries))) {
        if (strstr(entry->d_name, ".bin")) {
            assert_in_range(count, 0, 2);
            (void)snprintf(names[count++], sizeof names[0], "%.127s", entry->d_name);
        }
    }
    (void)closedir(entries);
    assert_int_equal(count, 3);
    for (uint32_t i = 0; i < count; i++) {
        bench b;
        open_bench(&b);
        b.device->driver_caches = true;
        const int fd = take_entry(cache, names[i]);
        rp_device_pass_over(b.device, true);
        expect_ok(rp_device_builder_start(b.builder, build_all, &b));
        expect_err(rp_device_builder_join(b.builder), RP_ERR_AGAIN);
        (void)close(fd);
        run_job(&b);
        expect_ok(launch_gather(&b, 4));
        expect_ok(rp_device_drain(b.device));
        close_bench(&b);
    }
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

static off_t largest;

static int measure_file(const char *path, const struct stat *about, int kind, struct FTW *at) {
    (void)path;
    (void)at;
    if (kind == FTW_F && about->st_size > largest) {
        largest = about->st_size;
    }
    return 0;
}

/* Bytes of the largest entry of our cache. */
static off_t largest_entry(void) {
    char cache[64];
    (void)snprintf(cache, sizeof cache, "%s/ringpipe", folder);
    largest = 0;
    (void)nftw(cache, measure_file, 8, FTW_PHYS);
    return largest;
}

static void binaries_are_kept_only_where_the_driver_keeps_none(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    const bool pocl = strcmp(b.device->facts.platform, "Portable Computing Language") == 0;
    assert_int_equal(b.device->driver_caches, pocl);
    run_job(&b);
    close_bench(&b);
    if (pocl) {
        assert_in_range(largest_entry(), 1, 256);
    }
    assert_int_equal(setenv("POCL_KERNEL_CACHE", "0", 1), 0);
    open_bench(&b);
    assert_false(b.device->driver_caches);
    run_job(&b);
    close_bench(&b);
    assert_int_equal(unsetenv("POCL_KERNEL_CACHE"), 0);
    assert_true(largest_entry() > 256);
}

/* With a driver that keeps its own, too, where a person asks for them. */
static void binaries_are_kept_where_they_are_wanted(void **state) {
    const float seven[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    char cache[64];
    bench b;
    (void)state;
    (void)snprintf(cache, sizeof cache, "%s/wanted", folder);
    assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
    assert_int_equal(setenv("RINGPIPE_BINARIES", "1", 1), 0);
    for (uint32_t time = 0; time < 2; time++) {
        float got[8] = {0};
        open_bench(&b);
        run_job(&b);
        assert_int_equal(b.device->cache_misses, time == 0 ? 1 : 0);
        assert_int_equal(b.device->cache_hits, time == 0 ? 0 : 1);
        expect_ok(rp_buffer_write_now(b.device, b.from, 0, seven, sizeof seven));
        expect_ok(launch_gather(&b, 4));
        expect_ok(rp_buffer_read_now(b.device, got, b.to, 0, sizeof got));
        assert_memory_equal(got, seven, sizeof got);
        close_bench(&b);
    }
    assert_int_equal(unsetenv("RINGPIPE_BINARIES"), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

static int remove_path(const char *path, const struct stat *about, int kind, struct FTW *at) {
    (void)about;
    (void)kind;
    (void)at;
    return remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rehearsal_does_nothing),
        cmocka_unit_test(what_is_built_is_counted),
        cmocka_unit_test(what_another_builds_is_passed_over),
        cmocka_unit_test(binaries_are_kept_only_where_the_driver_keeps_none),
        cmocka_unit_test(binaries_are_kept_where_they_are_wanted),
    };
    rp_arena arena;
    rp_device *device = NULL;
    rp_arena_init(&arena, "probe", 0);
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) != 0 ||
        rp_device_open(&arena, &(rp_device_options){0}, &device) != RP_OK) {
        skip_program("no temporary folder or no device: %s", rp_err_message());
    }
    rp_device_close(&device);
    rp_arena_finish(&arena);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)nftw(folder, remove_path, 8, FTW_DEPTH | FTW_PHYS);
    return failed;
}
