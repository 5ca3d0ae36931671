#include "agent/sensors.h"

#include "folder.h"

static rp_sensors look(void) {
    rp_sensors sensors;
    rp_sensors_read(folder, NULL, &sensors);
    return sensors;
}

static void expect_reading(const rp_sensors *sensors, rp_reading what, double value) {
    assert_true(sensors->known[what]);
    expect_close(sensors->value[what], value, 1e-12, 1e-9);
}

static void an_empty_system_has_nothing(void **state) {
    (void)state;
    const rp_sensors sensors = look();
    for (uint32_t what = 0; what < RP_READINGS; what++) {
        assert_false(sensors.known[what]);
    }
    assert_string_equal(sensors.system, "");
    assert_string_equal(sensors.kernel, "");
}

static void the_hottest_zone_counts(void **state) {
    (void)state;
    (void)write_text("sys/class/thermal/thermal_zone0/temp", "45200\n");
    (void)write_text("sys/class/thermal/thermal_zone1/temp", "61234\n");
    (void)write_text("sys/class/thermal/thermal_zone1/trip_point_0_type", "passive\n");
    (void)write_text("sys/class/thermal/thermal_zone1/trip_point_0_temp", "70000\n");
    (void)write_text("sys/class/thermal/thermal_zone1/trip_point_1_type", "critical\n");
    (void)write_text("sys/class/thermal/thermal_zone1/trip_point_1_temp", "85000\n");
    (void)write_text("sys/class/thermal/thermal_zone2/temp", "-274000\n"); /* no such sensor */
    (void)write_text("sys/class/thermal/thermal_zone3/temp", "0\n");       /* off */
    (void)write_text("sys/class/thermal/thermal_zone4/temp", "warm\n");
    (void)write_text("sys/class/thermal/thermal_zone5/temp", "99000 or so\n");
    (void)write_text("sys/class/hwmon/hwmon0/temp1_input",
                     "99000\n"); /* not asked where there are zones */
    const rp_sensors sensors = look();
    expect_reading(&sensors, RP_READING_TEMPERATURE, 61.234);
    expect_reading(&sensors, RP_READING_CRITICAL, 85);
    assert_false(sensors.known[RP_READING_THROTTLED]);
}

static void monitors_have_heat_and_power(void **state) {
    (void)state;
    (void)write_text("sys/class/hwmon/hwmon0/temp1_input", "38000\n");
    (void)write_text("sys/class/hwmon/hwmon0/temp2_input", "41500\n");
    (void)write_text("sys/class/hwmon/hwmon1/name", "ina3221\n"); /* of a Jetson */
    (void)write_text("sys/class/hwmon/hwmon1/in1_input", "5040\n");
    (void)write_text("sys/class/hwmon/hwmon1/curr1_input", "1200\n");
    (void)write_text("sys/class/hwmon/hwmon1/in2_input", "5000\n");
    (void)write_text("sys/class/hwmon/hwmon1/curr2_input", "400\n");
    (void)write_text("sys/class/hwmon/hwmon2/name", "other\n"); /* whose channels are no pairs */
    (void)write_text("sys/class/hwmon/hwmon2/in1_input", "12000\n");
    (void)write_text("sys/class/hwmon/hwmon2/curr1_input", "9000\n");
    rp_sensors sensors = look();
    expect_reading(&sensors, RP_READING_TEMPERATURE, 41.5);
    assert_false(sensors.known[RP_READING_CRITICAL]);
    expect_reading(&sensors, RP_READING_POWER, 6.048);
    (void)write_text("sys/class/hwmon/hwmon3/power1_input", "7250000\n");
    sensors = look();
    expect_reading(&sensors, RP_READING_POWER, 7.25);
}

static void a_firmware_says_why_it_throttles(void **state) {
    (void)state;
    static const char word[] = "sys/devices/platform/soc/soc:firmware/get_throttled";
    (void)write_text(word, "0\n");
    rp_sensors sensors = look();
    expect_reading(&sensors, RP_READING_THROTTLED, 0);
    expect_reading(&sensors, RP_READING_WAS_THROTTLED, 0);
    (void)write_text(word, "50005\n"); /* voltage and throttled, now and before */
    sensors = look();
    expect_reading(&sensors, RP_READING_THROTTLED, RP_THROTTLED_VOLTAGE | RP_THROTTLED_HEAT);
    expect_reading(&sensors, RP_READING_WAS_THROTTLED, RP_THROTTLED_VOLTAGE | RP_THROTTLED_HEAT);
    (void)write_text(word, "e0002\n");
    sensors = look();
    expect_reading(&sensors, RP_READING_THROTTLED, RP_THROTTLED_CLOCK);
    expect_reading(&sensors, RP_READING_WAS_THROTTLED, RP_THROTTLED_CLOCK | RP_THROTTLED_HEAT);
    (void)write_text(word, "fffffffff0000\n");
    sensors = look();
    assert_false(sensors.known[RP_READING_THROTTLED]);
}

static void others_tell_of_throttling_too(void **state) {
    (void)state;
    (void)write_text("sys/class/thermal/cooling_device0/type", "pwm-fan\n");
    (void)write_text("sys/class/thermal/cooling_device0/cur_state", "3\n");
    rp_sensors sensors = look();
    assert_false(sensors.known[RP_READING_THROTTLED]); /* a fan slows nothing down */
    (void)write_text("sys/class/thermal/cooling_device1/type", "cpufreq-cpu0\n");
    (void)write_text("sys/class/thermal/cooling_device1/cur_state", "0\n");
    sensors = look();
    expect_reading(&sensors, RP_READING_THROTTLED, 0);
    (void)write_text("sys/class/thermal/cooling_device1/cur_state", "2\n");
    (void)write_text("sys/class/hwmon/hwmon4/name", "rpi_volt\n");
    (void)write_text("sys/class/hwmon/hwmon4/in0_lcrit_alarm", "1\n");
    (void)write_text("sys/class/hwmon/hwmon5/name", "soctherm_oc\n");
    (void)write_text("sys/class/hwmon/hwmon5/oc1_event_cnt", "0\n");
    (void)write_text("sys/class/hwmon/hwmon5/oc3_event_cnt", "17\n");
    (void)write_text("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "5\n");
    sensors = look();
    expect_reading(&sensors, RP_READING_THROTTLED,
                   RP_THROTTLED_CLOCK | RP_THROTTLED_HEAT | RP_THROTTLED_VOLTAGE);
    expect_reading(&sensors, RP_READING_WAS_THROTTLED, RP_THROTTLED_CURRENT | RP_THROTTLED_HEAT);
}

static void clocks_memory_and_names(void **state) {
    (void)state;
    (void)write_text("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "1500000\n");
    (void)write_text("sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "1800000\n");
    (void)write_text("sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq", "408000\n");
    (void)write_text("sys/devices/system/cpu/cpufreq/policy4/cpuinfo_max_freq", "2400000\n");
    (void)write_text("sys/class/devfreq/fb000000.gpu/cur_freq", "800000000\n");
    (void)write_text("sys/class/devfreq/dmc/cur_freq", "2112000000\n");
    (void)write_text("proc/meminfo", "MemTotal:        7957080 kB\nMemFree:          100 kB\n"
                                     "MemAvailable:    1234567 kB\n");
    (void)write_text("proc/uptime", "90061.25 300000.00\n");
    (void)write_text("proc/loadavg", "1.75 1.00 0.50 2/300 4711\n");
    (void)write_text("proc/sys/kernel/osrelease", "6.6.31+rpt-rpi-2712\n");
    (void)write_text(
        "etc/os-release",
        "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n");
    rp_sensors sensors;
    rp_sensors_read(folder, folder, &sensors);
    expect_reading(&sensors, RP_READING_CLOCK, 1.5e9);
    expect_reading(&sensors, RP_READING_CLOCK_MAX, 2.4e9);
    expect_reading(&sensors, RP_READING_DEVICE_CLOCK, 8e8);
    expect_reading(&sensors, RP_READING_MEMORY, 7957080.0 * 1024);
    expect_reading(&sensors, RP_READING_MEMORY_FREE, 1234567.0 * 1024);
    expect_reading(&sensors, RP_READING_UP, 90061.25);
    expect_reading(&sensors, RP_READING_LOAD, 1.75);
    assert_true(sensors.known[RP_READING_DISK] && sensors.value[RP_READING_DISK] > 0);
    assert_true(sensors.value[RP_READING_DISK_FREE] <= sensors.value[RP_READING_DISK]);
    assert_string_equal(sensors.kernel, "6.6.31+rpt-rpi-2712");
    assert_string_equal(sensors.system, "Debian GNU/Linux 12 (bookworm)");
}

/* Whatever a file has: nothing is read beyond it, and no number is made of it. */
static void nonsense_is_not_known(void **state) {
    (void)state;
    char much[8192];
    memset(much, '9', sizeof much);
    much[sizeof much - 1] = '\0';
    (void)write_text("proc/meminfo", "MemTotal:");
    (void)write_text("proc/uptime", "-5 x\n");
    (void)write_text("proc/loadavg", "");
    (void)write_text("sys/class/thermal/thermal_zone0/temp", much);
    (void)write_text("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "<unknown>\n");
    (void)write_text("etc/os-release", "PRETTY_NAME=");
    (void)write_text("proc/sys/kernel/osrelease", much);
    const rp_sensors sensors = look();
    for (uint32_t what = 0; what < RP_READINGS; what++) {
        assert_false(sensors.known[what]);
    }
    assert_string_equal(sensors.system, "");
    assert_int_equal(strlen(sensors.kernel), 63);
}

int main(void) {
#define in_a_root(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        in_a_root(an_empty_system_has_nothing),   in_a_root(the_hottest_zone_counts),
        in_a_root(monitors_have_heat_and_power),  in_a_root(a_firmware_says_why_it_throttles),
        in_a_root(others_tell_of_throttling_too), in_a_root(clocks_memory_and_names),
        in_a_root(nonsense_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
