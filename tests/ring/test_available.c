/* Memory of a machine, from files as Linux has them. */
#include "folder.h"

#include <sys/stat.h>

#include "ring/available.h"

static void the_least_of_all_limits(void **state) {
    (void)state;
    const uint64_t mib = 1 << 20;
    assert_int_equal(rp_available_memory(folder), 0); /* not known */
    write_text("proc/meminfo", "MemTotal: 9000000 kB\nMemFree: 1 kB\nMemAvailable: 1048576 kB\n"
                               "SwapTotal: 5 kB\nSwapFree: 1024 kB\n");
    assert_int_equal(rp_available_memory(folder), 1025 * mib);
    write_text("proc/self/cgroup", "1:name=systemd:/\n0::/a/b\n");
    write_text("sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(rp_available_memory(folder), 1025 * mib);
    write_text("sys/fs/cgroup/a/memory.max", "104857600\n"); /* of the group around it: 100 MiB */
    assert_int_equal(rp_available_memory(folder), 100 * mib);
    write_text("sys/fs/cgroup/a/memory.current",
               "83886080\n"); /* 80 are used, 10 of them for a cache */
    write_text("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 10485760\n");
    assert_int_equal(rp_available_memory(folder), 30 * mib);
    write_text("sys/fs/cgroup/memory.max", "7340032\n");
    assert_int_equal(rp_available_memory(folder), 7 * mib);
}

static void this_machine_has_memory(void **state) {
    (void)state;
    assert_true(rp_available_memory("") > 1 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_of_all_limits, setup, teardown),
        cmocka_unit_test(this_machine_has_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
