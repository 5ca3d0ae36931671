/* The power that a board draws: the largest power channel of /sys/class/hwmon, or voltage times
 * current of an INA3221. The largest one is the board's input where a board measures several. */
#ifndef RP_AGENT_POWER_H
#define RP_AGENT_POWER_H

#include <stdbool.h>

#include "agent/kernel_files.h"

typedef struct {
    char folder[RP_KERNEL_PATH_BYTES]; /* of hwmon; "": the board has no channel */
    int channel;
    bool product; /* voltage times current */
} rp_power_channel;

/* Finds the channel that has the largest value now; root: prefix of the kernel's files. */
rp_power_channel rp_power_find(const char *root);
/* *watts > 0; false: it cannot be read now. */
bool rp_power_read(const rp_power_channel *channel, double *watts);

#endif
