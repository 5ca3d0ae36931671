#include "agent/sensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/power.h"

enum { PATH_BYTES = RP_KERNEL_PATH_BYTES, TEXT_BYTES = 2048, CHANNELS_MAX = 16 };

static void note_reading(rp_sensors *out, rp_reading what, double value) {
    out->known[what] = true;
    out->value[what] = value;
}

static void note_largest(rp_sensors *out, rp_reading what, double value) {
    if (!out->known[what] || value > out->value[what]) {
        note_reading(out, what, value);
    }
}

/* Marks throttling as known, with or without a reason. */
static void note_throttled(rp_sensors *out, rp_reading what, uint32_t reasons) {
    const uint32_t before = out->known[what] ? (uint32_t)out->value[what] : 0;
    note_reading(out, what, before | reasons);
}

/* ---- heat ------------------------------------------------------------------------------------ */

static bool is_temperature(double milli) {
    return milli > -60e3 && milli < 200e3 && milli != 0; /* 0: the sensor is off */
}

static void look_for_critical(const char *zone, rp_sensors *out) {
    for (int i = 0; i < CHANNELS_MAX; i++) {
        char name[32];
        double milli;
        (void)snprintf(name, sizeof name, "trip_point_%d_type", i);
        if (!rp_kernel_is(zone, name, "critical")) {
            continue;
        }
        (void)snprintf(name, sizeof name, "trip_point_%d_temp", i);
        if (rp_kernel_number(zone, name, 10, &milli) && is_temperature(milli)) {
            note_reading(out, RP_READING_CRITICAL, milli * 1e-3);
        }
    }
}

static void visit_zone(const char *zone, const char *name, void *context) {
    rp_sensors *out = context;
    double milli;
    (void)name;
    if (!rp_kernel_number(zone, "temp", 10, &milli) || !is_temperature(milli)) {
        return;
    }
    const bool hottest =
        !out->known[RP_READING_TEMPERATURE] || milli * 1e-3 > out->value[RP_READING_TEMPERATURE];
    if (hottest) {
        note_reading(out, RP_READING_TEMPERATURE, milli * 1e-3);
        out->known[RP_READING_CRITICAL] = false;
        look_for_critical(zone, out);
    }
}

static void visit_zone_heat(const char *zone, const char *name, void *context) {
    double milli;
    (void)name;
    if (rp_kernel_number(zone, "temp", 10, &milli) && is_temperature(milli)) {
        note_largest(context, RP_READING_TEMPERATURE, milli * 1e-3);
    }
}

static void visit_monitor_heat(const char *folder, const char *name, void *context) {
    rp_sensors *out = context;
    (void)name;
    for (int i = 1; i <= CHANNELS_MAX; i++) {
        char file[32];
        double milli;
        (void)snprintf(file, sizeof file, "temp%d_input", i);
        if (rp_kernel_number(folder, file, 10, &milli) && is_temperature(milli)) {
            note_largest(out, RP_READING_TEMPERATURE, milli * 1e-3);
        }
    }
}

/* ---- throttling ------------------------------------------------------------------------------ */

/* A cooling device that slows the board down, unlike a fan. */
static void visit_cooling(const char *folder, const char *name, void *context) {
    rp_sensors *out = context;
    char path[PATH_BYTES];
    char type[64];
    double level;
    (void)name;
    const int n = snprintf(path, sizeof path, "%s/type", folder);
    if (n < 0 || n >= (int)sizeof path || !rp_kernel_read(path, type, sizeof type) ||
        !(strstr(type, "cpufreq") || strstr(type, "devfreq") || strcmp(type, "Processor") == 0) ||
        !rp_kernel_number(folder, "cur_state", 10, &level)) {
        return;
    }
    note_throttled(out, RP_READING_THROTTLED,
                   level > 0 ? RP_THROTTLED_CLOCK | RP_THROTTLED_HEAT : 0);
}

/* Bits of the firmware: 0 voltage, 1 clock, 2 throttled, 3 soft temperature limit; the same from 16
 * on for since boot. */
static uint32_t firmware_reasons(uint32_t bits) {
    return (bits & 1 ? (uint32_t)RP_THROTTLED_VOLTAGE : 0) |
           (bits & 2 ? (uint32_t)RP_THROTTLED_CLOCK : 0) |
           (bits & 12 ? (uint32_t)RP_THROTTLED_HEAT : 0);
}

static void read_firmware(const char *root, rp_sensors *out) {
    char folder[PATH_BYTES];
    double bits;
    (void)snprintf(folder, sizeof folder, "%s/sys/devices/platform/soc/soc:firmware", root);
    if (rp_kernel_number(folder, "get_throttled", 16, &bits) && bits >= 0 && bits <= UINT32_MAX) {
        note_throttled(out, RP_READING_THROTTLED, firmware_reasons((uint32_t)bits));
        note_throttled(out, RP_READING_WAS_THROTTLED, firmware_reasons((uint32_t)bits >> 16));
    }
}

static void visit_core(const char *folder, const char *name, void *context) {
    rp_sensors *out = context;
    double count;
    if (name[3] >= '0' && name[3] <= '9' &&
        rp_kernel_number(folder, "thermal_throttle/core_throttle_count", 10, &count)) {
        note_throttled(out, RP_READING_WAS_THROTTLED, count > 0 ? RP_THROTTLED_HEAT : 0);
    }
}

static void visit_monitor_alarms(const char *folder, const char *name, void *context) {
    rp_sensors *out = context;
    double value;
    (void)name;
    if (rp_kernel_is(folder, "name", "rpi_volt") &&
        rp_kernel_number(folder, "in0_lcrit_alarm", 10, &value)) {
        note_throttled(out, RP_READING_THROTTLED, value > 0 ? RP_THROTTLED_VOLTAGE : 0);
    }
    for (int i = 1; i <= 3 && rp_kernel_is(folder, "name", "soctherm_oc"); i++) {
        char file[32];
        (void)snprintf(file, sizeof file, "oc%d_event_cnt", i);
        if (rp_kernel_number(folder, file, 10, &value)) {
            note_throttled(out, RP_READING_WAS_THROTTLED, value > 0 ? RP_THROTTLED_CURRENT : 0);
        }
    }
}

/* ---- power and clocks ------------------------------------------------------------------------ */

static void read_power(const char *root, rp_sensors *out) {
    const rp_power_channel channel = rp_power_find(root);
    double watts;
    if (rp_power_read(&channel, &watts)) {
        note_reading(out, RP_READING_POWER, watts);
    }
}

static void visit_policy(const char *folder, const char *name, void *context) {
    rp_sensors *out = context;
    double kilo;
    (void)name;
    if (rp_kernel_number(folder, "scaling_cur_freq", 10, &kilo) && kilo > 0) {
        note_largest(out, RP_READING_CLOCK, kilo * 1e3);
    }
    if (rp_kernel_number(folder, "cpuinfo_max_freq", 10, &kilo) && kilo > 0) {
        note_largest(out, RP_READING_CLOCK_MAX, kilo * 1e3);
    }
}

static void visit_devfreq(const char *folder, const char *name, void *context) {
    rp_sensors *out = context;
    double hertz;
    if (strstr(name, "gpu") && rp_kernel_number(folder, "cur_freq", 10, &hertz) && hertz > 0) {
        note_largest(out, RP_READING_DEVICE_CLOCK, hertz);
    }
}

static void visit_card(const char *folder, const char *name, void *context) {
    rp_sensors *out = context;
    double mega;
    if (!strchr(name, '-') && rp_kernel_number(folder, "gt_cur_freq_mhz", 10, &mega) && mega > 0) {
        note_largest(out, RP_READING_DEVICE_CLOCK, mega * 1e6);
    }
}

/* ---- the system ------------------------------------------------------------------------------ */

static void read_memory(const char *root, rp_sensors *out) {
    const struct {
        const char *word;
        rp_reading what;
    } lines[] = {{"MemTotal:", RP_READING_MEMORY}, {"MemAvailable:", RP_READING_MEMORY_FREE}};
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!rp_kernel_read(path, text, sizeof text)) {
        return;
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *at = strstr(text, lines[i].word);
        char *end = NULL;
        const char *digits = at ? at + strlen(lines[i].word) : NULL;
        const double kib = digits ? strtod(digits, &end) : 0;
        if (end && end != digits && kib > 0 && kib < 1e15) {
            note_reading(out, lines[i].what, kib * 1024);
        }
    }
}

/* The first number in a file. */
static void read_first(const char *root, const char *name, rp_reading what, rp_sensors *out) {
    char path[PATH_BYTES];
    char text[128];
    char *end;
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    if (rp_kernel_read(path, text, sizeof text)) {
        const double value = strtod(text, &end);
        if (end != text && value >= 0 && value < 1e12) {
            note_reading(out, what, value);
        }
    }
}

static void read_disk(const char *folder, rp_sensors *out) {
    struct statvfs disk;
    if (folder && statvfs(folder, &disk) == 0) {
        note_reading(out, RP_READING_DISK, (double)disk.f_blocks * (double)disk.f_frsize);
        note_reading(out, RP_READING_DISK_FREE, (double)disk.f_bavail * (double)disk.f_frsize);
    }
}

/* PRETTY_NAME="Debian GNU/Linux 12 (bookworm)" */
static void read_names(const char *root, rp_sensors *out) {
    static const char key[] = "PRETTY_NAME=";
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/etc/os-release", root);
    const bool there = rp_kernel_read(path, text, sizeof text);
    const char *at = there ? strstr(text, key) : NULL;
    if (at) {
        at += sizeof key - 1;
        at += *at == '"';
        (void)snprintf(out->system, sizeof out->system, "%.*s", (int)strcspn(at, "\"\n"), at);
    }
    (void)snprintf(path, sizeof path, "%s/proc/sys/kernel/osrelease", root);
    if (rp_kernel_read(path, text, sizeof text)) {
        (void)snprintf(out->kernel, sizeof out->kernel, "%.63s", text);
    }
}

double rp_sensors_heat(const char *root) {
    rp_sensors all = {0};
    rp_kernel_each(root, "sys/class/thermal", "thermal_zone", &all, visit_zone_heat);
    if (!all.known[RP_READING_TEMPERATURE]) {
        rp_kernel_each(root, "sys/class/hwmon", "hwmon", &all, visit_monitor_heat);
    }
    return all.known[RP_READING_TEMPERATURE] ? all.value[RP_READING_TEMPERATURE] : 0;
}

void rp_sensors_read(const char *root, const char *folder, rp_sensors *out) {
    *out = (rp_sensors){0};
    if (strlen(root) > PATH_BYTES / 2) {
        return;
    }
    rp_kernel_each(root, "sys/class/thermal", "thermal_zone", out, visit_zone);
    if (!out->known[RP_READING_TEMPERATURE]) {
        rp_kernel_each(root, "sys/class/hwmon", "hwmon", out, visit_monitor_heat);
    }
    rp_kernel_each(root, "sys/class/thermal", "cooling_device", out, visit_cooling);
    read_firmware(root, out);
    rp_kernel_each(root, "sys/devices/system/cpu", "cpu", out, visit_core);
    rp_kernel_each(root, "sys/class/hwmon", "hwmon", out, visit_monitor_alarms);
    read_power(root, out);
    rp_kernel_each(root, "sys/devices/system/cpu/cpufreq", "policy", out, visit_policy);
    rp_kernel_each(root, "sys/class/devfreq", "", out, visit_devfreq);
    rp_kernel_each(root, "sys/class/drm", "card", out, visit_card);
    read_memory(root, out);
    read_first(root, "proc/uptime", RP_READING_UP, out);
    read_first(root, "proc/loadavg", RP_READING_LOAD, out);
    read_disk(folder, out);
    read_names(root, out);
}
