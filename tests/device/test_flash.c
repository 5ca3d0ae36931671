/* A file for what leaves memory: taken at once, without a name, past the page cache. */
#include "device/flash.h"

#include <string.h>
#include <sys/vfs.h>

#include "flash_faults.h"

enum { ENTRIES = 3, PIECE = 1 << 20, BYTES = PIECE + 300 };

static char folder[64];
static rp_arena arena;
static rp_flash *flash;
static char *piece;

static int setup(void **state) {
    (void)state;
    (void)snprintf(folder, sizeof folder, "./flash-XXXXXX"); /* ctest's folder: on a disk */
    assert_non_null(mkdtemp(folder));
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_flash_take(&arena, PIECE, &piece));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_flash_close(&flash);
    rp_flash_close(&flash);
    rp_arena_finish(&arena);
    return rmdir(folder); /* fails where a file is left */
}

static void what_is_written_is_read(void **state) {
    (void)state;
    expect_ok(rp_flash_open(&arena, folder, ENTRIES, BYTES, &flash));
    assert_int_equal((uintptr_t)piece % RP_FLASH_BLOCK, 0);
    assert_int_equal(rp_flash_round(BYTES), (1 << 20) + 4096);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        memset(piece, (int)i + 1, PIECE);
        expect_ok(rp_flash_write(flash, i, 0, piece, PIECE));
        memset(piece, (int)i + 11, PIECE);
        expect_ok(rp_flash_write(flash, i, PIECE, piece, 300));
    }
    assert_int_equal(rp_flash_written_bytes(flash), ENTRIES * ((1 << 20) + 4096));
    for (uint32_t i = ENTRIES; i-- > 0;) {
        expect_ok(rp_flash_read(flash, i, 0, piece, PIECE));
        assert_true(piece[0] == (char)(i + 1) && piece[PIECE - 1] == (char)(i + 1));
        expect_ok(rp_flash_read(flash, i, PIECE, piece, 300));
        assert_true(piece[0] == (char)(i + 11) && piece[299] == (char)(i + 11));
    }
}

/* All of it is there from the start, by blocks of the disk, and it has no name. */
static void room_is_taken_at_once(void **state) {
    (void)state;
    struct stat about;
    expect_ok(rp_flash_open(&arena, folder, ENTRIES, BYTES, &flash));
    const int fd = find_nameless();
    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_size, ENTRIES * ((1 << 20) + 4096));
    assert_true((int64_t)about.st_blocks * 512 >= (int64_t)about.st_size);
    assert_int_equal(rmdir(folder), 0);
    rp_flash_close(&flash);
    assert_int_equal(find_nameless(), -1);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void what_has_no_room_is_refused(void **state) {
    (void)state;
    expect_err(rp_flash_open(&arena, folder, 1u << 30, 1u << 30, &flash), RP_ERR_LIMIT);
    assert_null(flash);
    assert_non_null(
        strstr(rp_err_message(), "flash: 1099511627776.0 MiB needed for 1073741824 stashes"));
    assert_non_null(strstr(rp_err_message(), "No space left on device"));
    assert_non_null(strstr(rp_err_message(), "RINGPIPE_FLASH"));
    refuse_writes(true);
    const rp_err err = rp_flash_open(&arena, folder, ENTRIES, BYTES, &flash);
    refuse_writes(false);
    expect_err(err, RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), "File too large"));
    expect_err(rp_flash_open(&arena, "./not-there", ENTRIES, BYTES, &flash), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "./not-there: No such file or directory"));
    assert_int_equal(find_nameless(), -1);
}

static void failures_have_their_numbers(void **state) {
    (void)state;
    expect_ok(rp_flash_open(&arena, folder, ENTRIES, BYTES, &flash));
    assert_int_equal(ftruncate(find_nameless(), RP_FLASH_BLOCK), 0);
    expect_err(rp_flash_read(flash, 0, 0, piece, 2 * RP_FLASH_BLOCK), RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "reading stash 0 in ./flash-"));
    assert_non_null(strstr(rp_err_message(), "4096 of 8192 bytes, without an error code"));
    refuse_writes(true);
    const rp_err err = rp_flash_write(flash, 2, 0, piece, 1);
    refuse_writes(false);
    expect_err(err, RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "writing stash 2 in ./flash-"));
}

/* Where the file system has no direct I/O, or is memory, that is said and it works all the same. */
static void memory_is_no_flash(void **state) {
    (void)state;
    struct statfs about;
    expect_ok(rp_flash_open(&arena, folder, ENTRIES, BYTES, &flash));
    assert_int_equal(statfs(folder, &about), 0);
    assert_true(about.f_type == 0x01021994 || !rp_flash_why_cached(flash)); /* tmpfs */
    rp_flash_close(&flash);
    if (statfs("/dev/shm", &about) != 0 || about.f_type != 0x01021994) {
        return;
    }
    expect_ok(rp_flash_open(&arena, "/dev/shm", ENTRIES, BYTES, &flash));
    assert_non_null(strstr(rp_flash_why_cached(flash), "memory"));
    memset(piece, 5, RP_FLASH_BLOCK);
    expect_ok(rp_flash_write(flash, 1, 0, piece, 10));
    memset(piece, 0, RP_FLASH_BLOCK);
    expect_ok(rp_flash_read(flash, 1, 0, piece, 10));
    assert_int_equal(piece[9], 5);
}

static void rates_are_measured(void **state) {
    (void)state;
    double rate[2] = {0};
    expect_ok(rp_flash_measure(folder, &rate[0], &rate[1]));
    assert_true(rate[0] > 1e4 && rate[0] < 1e12);
    assert_true(rate[1] > 1e4 && rate[1] < 1e12);
    expect_err(rp_flash_measure("./not-there", &rate[0], &rate[1]), RP_ERR_USAGE);
}

static void the_folder_is_the_environments(void **state) {
    (void)state;
    assert_int_equal(unsetenv("RINGPIPE_FLASH"), 0);
    assert_string_equal(rp_flash_folder(), "/var/tmp");
    assert_int_equal(setenv("RINGPIPE_FLASH", "/mnt/card", 1), 0);
    assert_string_equal(rp_flash_folder(), "/mnt/card");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(room_is_taken_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_no_room_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_have_their_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_is_no_flash, setup, teardown),
        cmocka_unit_test_setup_teardown(rates_are_measured, setup, teardown),
        cmocka_unit_test(the_folder_is_the_environments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
