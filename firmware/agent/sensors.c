#include "agent/sensors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PATH_BYTES = 512, TEXT_BYTES = 2048, ENTRIES_MAX = 64, CHANNELS_MAX = 16 };

/* ---- files ----------------------------------------------------------------------------------- */

/* Reads up to `bytes` of a kernel file, without its final newline. */
static bool read_text(const char *path, char *out, size_t bytes) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const ssize_t got = fd >= 0 ? read(fd, out, bytes - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (got <= 0) {
        return false;
    }
    out[got] = '\0';
    const size_t used = strlen(out);
    if (used > 0 && out[used - 1] == '\n') {
        out[used - 1] = '\0';
    }
    return true;
}

/* Parses the whole content of folder/name as a number in this base. */
static bool read_number(const char *folder, const char *name, int base, double *out) {
    char path[PATH_BYTES];
    char text[64];
    char *end;
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || n >= (int)sizeof path || !read_text(path, text, sizeof text)) {
        return false;
    }
    const long long number = strtoll(text, &end, base);
    *out = (double)number;
    return end != text && *end == '\0';
}

static bool has_text(const char *folder, const char *name, const char *wanted) {
    char path[PATH_BYTES];
    char text[64];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && n < (int)sizeof path && read_text(path, text, sizeof text) &&
           strcmp(text, wanted) == 0;
}

/* Calls `visit` for entries of root/path that begin with `prefix`, up to a limit. */
static void each_of(const char *root, const char *path, const char *prefix, rp_sensors *out,
                    void (*visit)(const char *folder, const char *name, rp_sensors *out)) {
    char folder[PATH_BYTES];
    char whole[PATH_BYTES];
    const int n = snprintf(folder, sizeof folder, "%s/%s", root, path);
    DIR *dir = n > 0 && n < (int)sizeof folder ? opendir(folder) : NULL;
    uint32_t count = 0;
    for (struct dirent *entry; dir && count < ENTRIES_MAX && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0) {
            continue;
        }
        const int used = snprintf(whole, sizeof whole, "%s/%s", folder, entry->d_name);
        if (used > 0 && used < (int)sizeof whole) {
            visit(whole, entry->d_name, out);
            count++;
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
}

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
        if (!has_text(zone, name, "critical")) {
            continue;
        }
        (void)snprintf(name, sizeof name, "trip_point_%d_temp", i);
        if (read_number(zone, name, 10, &milli) && is_temperature(milli)) {
            note_reading(out, RP_READING_CRITICAL, milli * 1e-3);
        }
    }
}

static void visit_zone(const char *zone, const char *name, rp_sensors *out) {
    double milli;
    (void)name;
    if (!read_number(zone, "temp", 10, &milli) || !is_temperature(milli)) {
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

static void visit_monitor_heat(const char *folder, const char *name, rp_sensors *out) {
    (void)name;
    for (int i = 1; i <= CHANNELS_MAX; i++) {
        char file[32];
        double milli;
        (void)snprintf(file, sizeof file, "temp%d_input", i);
        if (read_number(folder, file, 10, &milli) && is_temperature(milli)) {
            note_largest(out, RP_READING_TEMPERATURE, milli * 1e-3);
        }
    }
}

/* ---- throttling ------------------------------------------------------------------------------ */

/* A cooling device that slows the board down, unlike a fan. */
static void visit_cooling(const char *folder, const char *name, rp_sensors *out) {
    char path[PATH_BYTES];
    char type[64];
    double level;
    (void)name;
    const int n = snprintf(path, sizeof path, "%s/type", folder);
    if (n < 0 || n >= (int)sizeof path || !read_text(path, type, sizeof type) ||
        !(strstr(type, "cpufreq") || strstr(type, "devfreq") || strcmp(type, "Processor") == 0) ||
        !read_number(folder, "cur_state", 10, &level)) {
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
    if (read_number(folder, "get_throttled", 16, &bits) && bits >= 0 && bits <= UINT32_MAX) {
        note_throttled(out, RP_READING_THROTTLED, firmware_reasons((uint32_t)bits));
        note_throttled(out, RP_READING_WAS_THROTTLED, firmware_reasons((uint32_t)bits >> 16));
    }
}

static void visit_core(const char *folder, const char *name, rp_sensors *out) {
    double count;
    if (name[3] >= '0' && name[3] <= '9' &&
        read_number(folder, "thermal_throttle/core_throttle_count", 10, &count)) {
        note_throttled(out, RP_READING_WAS_THROTTLED, count > 0 ? RP_THROTTLED_HEAT : 0);
    }
}

static void visit_monitor_alarms(const char *folder, const char *name, rp_sensors *out) {
    double value;
    (void)name;
    if (has_text(folder, "name", "rpi_volt") &&
        read_number(folder, "in0_lcrit_alarm", 10, &value)) {
        note_throttled(out, RP_READING_THROTTLED, value > 0 ? RP_THROTTLED_VOLTAGE : 0);
    }
    for (int i = 1; i <= 3 && has_text(folder, "name", "soctherm_oc"); i++) {
        char file[32];
        (void)snprintf(file, sizeof file, "oc%d_event_cnt", i);
        if (read_number(folder, file, 10, &value)) {
            note_throttled(out, RP_READING_WAS_THROTTLED, value > 0 ? RP_THROTTLED_CURRENT : 0);
        }
    }
}

/* ---- power and clocks ------------------------------------------------------------------------ */

static void visit_monitor_power(const char *folder, const char *name, rp_sensors *out) {
    const bool ina = has_text(folder, "name", "ina3221");
    (void)name;
    for (int i = 1; i <= CHANNELS_MAX; i++) {
        char file[32];
        double milli_volt;
        double value;
        (void)snprintf(file, sizeof file, "power%d_input", i);
        if (read_number(folder, file, 10, &value) && value > 0) {
            note_largest(out, RP_READING_POWER, value * 1e-6);
        }
        (void)snprintf(file, sizeof file, "in%d_input", i);
        if (!ina || !read_number(folder, file, 10, &milli_volt)) {
            continue;
        }
        (void)snprintf(file, sizeof file, "curr%d_input", i);
        if (read_number(folder, file, 10, &value) && value > 0 && milli_volt > 0) {
            note_largest(out, RP_READING_POWER, milli_volt * value * 1e-6);
        }
    }
}

static void visit_policy(const char *folder, const char *name, rp_sensors *out) {
    double kilo;
    (void)name;
    if (read_number(folder, "scaling_cur_freq", 10, &kilo) && kilo > 0) {
        note_largest(out, RP_READING_CLOCK, kilo * 1e3);
    }
    if (read_number(folder, "cpuinfo_max_freq", 10, &kilo) && kilo > 0) {
        note_largest(out, RP_READING_CLOCK_MAX, kilo * 1e3);
    }
}

static void visit_devfreq(const char *folder, const char *name, rp_sensors *out) {
    double hertz;
    if (strstr(name, "gpu") && read_number(folder, "cur_freq", 10, &hertz) && hertz > 0) {
        note_largest(out, RP_READING_DEVICE_CLOCK, hertz);
    }
}

static void visit_card(const char *folder, const char *name, rp_sensors *out) {
    double mega;
    if (!strchr(name, '-') && read_number(folder, "gt_cur_freq_mhz", 10, &mega) && mega > 0) {
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
    if (!read_text(path, text, sizeof text)) {
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
    if (read_text(path, text, sizeof text)) {
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
    const bool there = read_text(path, text, sizeof text);
    const char *at = there ? strstr(text, key) : NULL;
    if (at) {
        at += sizeof key - 1;
        at += *at == '"';
        (void)snprintf(out->system, sizeof out->system, "%.*s", (int)strcspn(at, "\"\n"), at);
    }
    (void)snprintf(path, sizeof path, "%s/proc/sys/kernel/osrelease", root);
    if (read_text(path, text, sizeof text)) {
        (void)snprintf(out->kernel, sizeof out->kernel, "%.63s", text);
    }
}

void rp_sensors_read(const char *root, const char *folder, rp_sensors *out) {
    *out = (rp_sensors){0};
    if (strlen(root) > PATH_BYTES / 2) {
        return;
    }
    each_of(root, "sys/class/thermal", "thermal_zone", out, visit_zone);
    if (!out->known[RP_READING_TEMPERATURE]) {
        each_of(root, "sys/class/hwmon", "hwmon", out, visit_monitor_heat);
    }
    each_of(root, "sys/class/thermal", "cooling_device", out, visit_cooling);
    read_firmware(root, out);
    each_of(root, "sys/devices/system/cpu", "cpu", out, visit_core);
    each_of(root, "sys/class/hwmon", "hwmon", out, visit_monitor_alarms);
    each_of(root, "sys/class/hwmon", "hwmon", out, visit_monitor_power);
    each_of(root, "sys/devices/system/cpu/cpufreq", "policy", out, visit_policy);
    each_of(root, "sys/class/devfreq", "", out, visit_devfreq);
    each_of(root, "sys/class/drm", "card", out, visit_card);
    read_memory(root, out);
    read_first(root, "proc/uptime", RP_READING_UP, out);
    read_first(root, "proc/loadavg", RP_READING_LOAD, out);
    read_disk(folder, out);
    read_names(root, out);
}
