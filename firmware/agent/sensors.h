/* The board's own sensors: files of the kernel below `root`, which is "" except in tests.
 *
 * Temperature: the hottest of /sys/class/thermal, else of /sys/class/hwmon. Throttling: the word of
 * a Raspberry Pi's firmware (get_throttled), the alarm of its supply (rpi_volt), active cooling
 * devices of the kernel, the counters of x86 cores and of a Jetson's over-current events. Power:
 * the largest power channel of /sys/class/hwmon, or voltage times current of an INA3221. A missing
 * sensor leaves its value unknown; nothing is a fault. */
#ifndef RP_AGENT_SENSORS_H
#define RP_AGENT_SENSORS_H

#include "wire/frame.h"

typedef struct {
    bool known[RP_READINGS];
    double value[RP_READINGS];
    char system[64], kernel[64]; /* "": not known */
} rp_sensors;

/* Reads a few dozen small files, and the values that the agent itself knows stay unknown. Units of
 * the readings, and the bits of throttling: wire/frame.h. `folder`: whose disk is reported; it is
 * not relative to `root`; NULL: none. */
void rp_sensors_read(const char *root, const char *folder, rp_sensors *out);
/* Its temperature alone, which takes fewer files; 0: unknown. */
double rp_sensors_heat(const char *root);

#endif
