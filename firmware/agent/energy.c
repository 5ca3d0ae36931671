#include "agent/energy.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static const int64_t GAP_NS = 10 * RP_NS_PER_S;

/* ---- counters -------------------------------------------------------------------------------- */

static double read_counter(const rp_energy_counter *counter) {
    double micro;
    return rp_kernel_number(counter->folder, "energy_uj", 10, &micro) ? micro : -1;
}

static void add_counter(rp_energy *energy, const char *folder) {
    rp_energy_counter *counter = &energy->counter[energy->counter_count];
    if (energy->counter_count == RP_ENERGY_COUNTERS_MAX) {
        return;
    }
    (void)snprintf(counter->folder, sizeof counter->folder, "%s", folder);
    counter->last_uj = read_counter(counter);
    energy->counter_count +=
        rp_kernel_number(folder, "max_energy_range_uj", 10, &counter->range_uj) &&
        counter->last_uj >= 0;
}

/* The whole platform. */
static void visit_platform(const char *folder, const char *name, void *context) {
    (void)name;
    if (rp_kernel_is(folder, "name", "psys")) {
        add_counter(context, folder);
    }
}

/* A package, and memory that is not part of one. */
static void visit_part(const char *folder, const char *name, void *context) {
    char path[RP_KERNEL_PATH_BYTES];
    char word[32];
    (void)name;
    const int n = snprintf(path, sizeof path, "%s/name", folder);
    if (n > 0 && n < (int)sizeof path && rp_kernel_read(path, word, sizeof word) &&
        (strncmp(word, "package", 7) == 0 || strcmp(word, "dram") == 0)) {
        add_counter(context, folder);
    }
}

static void read_machine(rp_energy *energy, const char *root) {
    char path[RP_KERNEL_PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s/proc/sys/kernel/random/boot_id", root);
    if (n < 0 || n >= (int)sizeof path ||
        !rp_kernel_read(path, energy->machine, sizeof energy->machine)) {
        energy->machine[0] = '\0';
    }
}

void rp_energy_open(rp_energy *energy, const char *root) {
    *energy = (rp_energy){.read_ns = 0};
    /* intel-rapl-mmio counts the same packages again */
    rp_kernel_each(root, "sys/class/powercap", "intel-rapl:", energy, visit_platform);
    if (energy->counter_count == 0) {
        rp_kernel_each(root, "sys/class/powercap", "intel-rapl:", energy, visit_part);
    }
    if (energy->counter_count == 0) {
        energy->power = rp_power_find(root);
    }
    if (energy->counter_count > 0 || energy->power.folder[0]) {
        read_machine(energy, root);
    }
}

/* Joules since the last reading, of the counters that could be read both times. */
static double read_counters(rp_energy *energy) {
    double joules = 0;
    for (uint32_t i = 0; i < energy->counter_count; i++) {
        rp_energy_counter *counter = &energy->counter[i];
        const double last = counter->last_uj;
        const double micro = read_counter(counter);
        const double over = micro < last ? counter->range_uj : 0;
        joules += micro >= 0 && last >= 0 ? (micro - last + over) * 1e-6 : 0;
        counter->last_uj = micro;
    }
    return joules;
}

/* ---- readings -------------------------------------------------------------------------------- */

static void take_counters(rp_energy *energy, double passed_s, bool counts) {
    const double joules = read_counters(energy);
    energy->watts = counts && passed_s > 0 ? joules / passed_s : 0;
    energy->joules += counts ? joules : 0;
}

static void take_power(rp_energy *energy, double passed_s, bool counts) {
    const double before = energy->watts;
    double watts;
    energy->watts = rp_power_read(&energy->power, &watts) ? watts : 0;
    if (counts && before > 0 && energy->watts > 0) {
        energy->joules += 0.5 * (before + energy->watts) * passed_s;
    }
}

static void read_now(rp_energy *energy, int64_t now_ns, bool counts) {
    const int64_t passed_ns = now_ns - energy->read_ns;
    const double passed_s = 1e-9 * (double)passed_ns;
    if (energy->counter_count > 0) {
        take_counters(energy, passed_s, counts);
    } else {
        take_power(energy, passed_s, counts && passed_ns <= GAP_NS);
    }
    energy->read_ns = now_ns;
}

void rp_energy_begin(rp_energy *energy, int64_t now_ns) {
    read_now(energy, now_ns, false);
    energy->joules = 0;
}

void rp_energy_read(rp_energy *energy, int64_t now_ns) {
    read_now(energy, now_ns, true);
}
