/* What a board's system says of itself: files of the kernel below `root`, which is "" but for
 * tests.
 *
 * Temperature: the hottest of /sys/class/thermal, else of /sys/class/hwmon. Throttling: the word of
 * a Raspberry Pi's firmware (get_throttled), the alarm of its supply (rpi_volt), cooling devices of
 * the kernel that are at work, the counters of x86 cores and of a Jetson's over-current events.
 * Power: the largest channel of /sys/class/hwmon that is power, or of an INA3221 voltage times
 * current. What a board does not have is not known; nothing is a fault. */
#ifndef RP_AGENT_SENSORS_H
#define RP_AGENT_SENSORS_H

#include "wire/frame.h"

typedef struct {
    bool known[RP_READINGS];
    double value[RP_READINGS];
    char system[64], kernel[64]; /* "": not known */
} rp_sensors;

/* Reads a few dozen small files. `folder`: whose disk is meant; NULL: none is. */
void rp_sensors_read(const char *root, const char *folder, rp_sensors *out);

#endif
