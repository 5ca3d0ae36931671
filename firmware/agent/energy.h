/* The energy that a board has drawn while it has a run: from the counters of /sys/class/powercap
 * (psys, or else the packages and their memory), which only root can read on most systems, or else
 * from its power. Between two readings of power it changes linearly; a gap of more than 10 s does
 * not count. */
#ifndef RP_AGENT_ENERGY_H
#define RP_AGENT_ENERGY_H

#include <stdint.h>

#include "agent/power.h"

enum { RP_ENERGY_COUNTERS_MAX = 16, RP_ENERGY_MACHINE_BYTES = 40 };

typedef struct {
    char folder[RP_KERNEL_PATH_BYTES]; /* of powercap */
    double range_uj;                   /* after which it begins from 0 */
    double last_uj;                    /* below 0: it could not be read */
} rp_energy_counter;

/* Owned by the caller; it allocates nothing. */
typedef struct {
    rp_energy_counter counter[RP_ENERGY_COUNTERS_MAX];
    uint32_t counter_count;
    rp_power_channel power; /* if there are no counters */
    int64_t read_ns;        /* time of the last reading; 0: none */
    double watts;           /* then; 0: unknown */
    double joules;          /* since rp_energy_begin(); 0: unknown */
    /* Boot id of the kernel, so of the machine that is measured; "": unknown, or nothing can be
     * measured. Agents in containers have the same one. */
    char machine[RP_ENERGY_MACHINE_BYTES];
} rp_energy;

/* Finds what can be read; root: prefix of the kernel's files. */
void rp_energy_open(rp_energy *energy, const char *root);
/* Counts from 0 again. */
void rp_energy_begin(rp_energy *energy, int64_t now_ns);
/* Reads and adds. Power that cannot be read counts from its next reading on; so does a counter. */
void rp_energy_read(rp_energy *energy, int64_t now_ns);

#endif
