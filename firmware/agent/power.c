#include "agent/power.h"

#include <stdio.h>

enum { CHANNELS_MAX = 16 };

typedef struct {
    rp_power_channel channel;
    double watts;
} found;

/* Value of folder/<kind><channel>_input, which must be positive. */
static bool read_input(const rp_power_channel *of, const char *kind, double *out) {
    char file[32];
    (void)snprintf(file, sizeof file, "%s%d_input", kind, of->channel);
    return rp_kernel_number(of->folder, file, 10, out) && *out > 0;
}

bool rp_power_read(const rp_power_channel *channel, double *watts) {
    double milli_volt;
    double value;
    if (!channel->folder[0]) {
        return false;
    }
    if (!channel->product) {
        const bool good = read_input(channel, "power", &value);
        *watts = good ? value * 1e-6 : 0;
        return good;
    }
    const bool good = read_input(channel, "in", &milli_volt) && read_input(channel, "curr", &value);
    *watts = good ? milli_volt * value * 1e-6 : 0;
    return good;
}

static void visit_monitor(const char *folder, const char *name, void *context) {
    found *most = context;
    const bool ina = rp_kernel_is(folder, "name", "ina3221");
    (void)name;
    for (int i = 1; i <= CHANNELS_MAX; i++) {
        for (int product = 0; product <= (ina ? 1 : 0); product++) {
            rp_power_channel channel = {.channel = i, .product = product > 0};
            double watts;
            (void)snprintf(channel.folder, sizeof channel.folder, "%s", folder);
            if (rp_power_read(&channel, &watts) && watts > most->watts) {
                *most = (found){channel, watts};
            }
        }
    }
}

rp_power_channel rp_power_find(const char *root) {
    found most = {.watts = 0};
    rp_kernel_each(root, "sys/class/hwmon", "hwmon", &most, visit_monitor);
    return most.channel;
}
