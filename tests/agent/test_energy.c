/* Energy from mocked files of the kernel, with the time as an argument. */
#include "agent/energy.h"

#include "folder.h"

static rp_energy energy;

static void put(const char *directory, const char *name, const char *text) {
    char path[256];
    (void)snprintf(path, sizeof path, "sys/class/%s/%s", directory, name);
    (void)write_text(path, text);
}

static void put_number(const char *directory, const char *name, double value) {
    char text[32];
    (void)snprintf(text, sizeof text, "%.0f\n", value);
    put(directory, name, text);
}

static void put_domain(const char *directory, const char *name, double range, double micro) {
    put(directory, "name", name);
    put_number(directory, "max_energy_range_uj", range);
    put_number(directory, "energy_uj", micro);
}

static int64_t at_s(double seconds) {
    return (int64_t)(seconds * 1e9);
}

static void nothing_is_known_without_files(void **state) {
    (void)state;
    rp_energy_open(&energy, folder);
    rp_energy_begin(&energy, at_s(100));
    for (int i = 1; i < 20; i++) {
        rp_energy_read(&energy, at_s(100 + i));
    }
    assert_true(energy.joules == 0 && energy.watts == 0);
}

/* The packages and the memory of a server, with parts of the packages, and the second list of the
 * same packages; one counter begins from 0 again. */
static void counters_are_summed(void **state) {
    (void)state;
    put_domain("powercap/intel-rapl:0", "package-0\n", 1e6 * 262143, 1e6 * 262140);
    put_domain("powercap/intel-rapl:0:0", "core\n", 1e6 * 262143, 5);
    put_domain("powercap/intel-rapl:0:1", "dram\n", 1e6 * 65712, 1e6 * 40);
    put_domain("powercap/intel-rapl:1", "package-1\n", 1e6 * 262143, 0);
    put_domain("powercap/intel-rapl-mmio:0", "package-0\n", 1e6 * 262143, 1e6 * 262140);
    put("hwmon/hwmon0", "power1_input", "99000000\n"); /* not used */
    rp_energy_open(&energy, folder);
    assert_int_equal(energy.counter_count, 3);
    rp_energy_begin(&energy, at_s(7));
    for (int i = 1; i <= 60; i++) {
        const double package = 262140 + 20.0 * i;
        put_number("powercap/intel-rapl:0", "energy_uj",
                   1e6 * (package < 262143 ? package : package - 262143));
        put_number("powercap/intel-rapl:0:0", "energy_uj", 1e6 * 15.0 * i);
        put_number("powercap/intel-rapl:0:1", "energy_uj", 1e6 * (40 + 3.0 * i));
        put_number("powercap/intel-rapl:1", "energy_uj", 1e6 * 12.0 * i);
        put_number("powercap/intel-rapl-mmio:0", "energy_uj", 1e6 * 20.0 * i);
        rp_energy_read(&energy, at_s(7 + i));
        expect_close(energy.watts, 35, 1e-9, 0);
    }
    expect_close(energy.joules, 60 * 35, 1e-9, 0);
    rp_energy_begin(&energy, at_s(100));
    assert_true(energy.joules == 0);
}

/* Agents of one machine report the same; without a sensor, none. */
static void the_machine_is_named(void **state) {
    (void)state;
    (void)store("proc/sys/kernel/random/boot_id", "wb", "0f1e\n", 5);
    rp_energy_open(&energy, folder);
    assert_string_equal(energy.machine, "");
    put_domain("powercap/intel-rapl:0", "package-0\n", 1e12, 0);
    rp_energy_open(&energy, folder);
    assert_string_equal(energy.machine, "0f1e");
    char longer[128];
    memset(longer, 'a', sizeof longer);
    (void)write_file("proc/sys/kernel/random/boot_id", longer, sizeof longer);
    rp_energy_open(&energy, folder);
    assert_int_equal(strlen(energy.machine), RP_ENERGY_MACHINE_BYTES - 1);
}

static void the_platform_has_all_parts(void **state) {
    (void)state;
    put_domain("powercap/intel-rapl:0", "package-0\n", 1e12, 0);
    put_domain("powercap/intel-rapl:1", "psys\n", 1e12, 0);
    rp_energy_open(&energy, folder);
    assert_int_equal(energy.counter_count, 1);
    rp_energy_begin(&energy, at_s(1));
    put_number("powercap/intel-rapl:0", "energy_uj", 5e6);
    put_number("powercap/intel-rapl:1", "energy_uj", 9e6);
    rp_energy_read(&energy, at_s(2));
    expect_close(energy.joules, 9, 1e-12, 0);
}

/* A counter that cannot be read for a time is skipped alone, and what it counts then is lost. */
static void bad_counters_are_skipped(void **state) {
    (void)state;
    put_domain("powercap/intel-rapl:0", "package-0\n", 1e12, 0);
    put_domain("powercap/intel-rapl:1", "package-1\n", 1e12, 0);
    rp_energy_open(&energy, folder);
    put("powercap/intel-rapl:1", "energy_uj", "no number\n");
    rp_energy_begin(&energy, at_s(1));
    put_number("powercap/intel-rapl:0", "energy_uj", 3e6);
    rp_energy_read(&energy, at_s(2));
    expect_close(energy.joules, 3, 1e-12, 0);
    put_number("powercap/intel-rapl:1", "energy_uj", 100e6);
    put_number("powercap/intel-rapl:0", "energy_uj", 4e6);
    rp_energy_read(&energy, at_s(3));
    expect_close(energy.joules, 4, 1e-12, 0);
    put_number("powercap/intel-rapl:1", "energy_uj", 107e6);
    rp_energy_read(&energy, at_s(4));
    expect_close(energy.joules, 11, 1e-12, 0);
}

/* A Jetson's INA3221: the channel of the input is the largest. Power rises from 5 to 15 W, once
 * cannot be read, and a gap of more than 10 s does not count. */
static void power_is_integrated(void **state) {
    (void)state;
    const char *monitor = "hwmon/hwmon1";
    put(monitor, "name", "ina3221\n");
    put_number(monitor, "in1_input", 5000);
    put_number(monitor, "curr1_input", 1000);
    put_number(monitor, "in2_input", 5000);
    put_number(monitor, "curr2_input", 300);
    rp_energy_open(&energy, folder);
    rp_energy_begin(&energy, at_s(1));
    expect_close(energy.watts, 5, 1e-12, 0);
    for (int i = 1; i <= 20; i++) {
        put_number(monitor, "curr1_input", 1000 + 100 * i);
        rp_energy_read(&energy, at_s(1 + i));
    }
    expect_close(energy.watts, 15, 1e-12, 0);
    expect_close(energy.joules, 20 * 10, 0.01, 0);
    put(monitor, "curr1_input", "no number\n");
    rp_energy_read(&energy, at_s(22));
    assert_true(energy.watts == 0);
    put_number(monitor, "curr1_input", 2000);
    rp_energy_read(&energy, at_s(23));
    rp_energy_read(&energy, at_s(34)); /* 11 s later */
    expect_close(energy.joules, 20 * 10, 0.01, 0);
    rp_energy_read(&energy, at_s(35));
    expect_close(energy.joules, 20 * 10 + 10, 0.01, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_known_without_files, setup, teardown),
        cmocka_unit_test_setup_teardown(counters_are_summed, setup, teardown),
        cmocka_unit_test_setup_teardown(the_machine_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(the_platform_has_all_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_counters_are_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(power_is_integrated, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
