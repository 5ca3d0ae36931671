/* Finds which kernels a job launches, and counts how many of them are ready.
 *
 * The same job runs twice. The first run is a rehearsal that only lists kernels: launches, copies
 * and products are skipped and nothing is built. The second run builds each kernel at its first
 * launch and counts it:
 *
 *     rp_device_rehearse(device, true);
 *     ... issue everything ...
 *     rp_device_rehearse(device, false);
 *     ... issue everything: a kernel that is not ready yet is built ...
 *
 * A kernel here is an entry of a program with one group size, because PoCL compiles each of them at
 * its first launch. If the driver caches what it compiles (as PoCL does), several processes that
 * start together share the work: one compiles while the rest wait, and then read. */
#ifndef RP_DEVICE_READY_H
#define RP_DEVICE_READY_H

#include "device/device.h"

typedef struct {
    uint32_t kernels; /* listed or launched since the last rp_device_count_anew() */
    uint32_t ready;   /* ready ones of them; all others must still be built */
    uint32_t built;   /* ready ones that were not found in a cache */
    int64_t build_ns; /* time of building them */
    int64_t read_ns;  /* time of reading all other kernels from a cache, or of waiting for another
                         process */
} rp_build_count;

void rp_device_rehearse(rp_device *device, bool on);
/* While it is on, a program or a kernel that another process is building fails with AGAIN instead
 * of waiting; its launch must be repeated later, after other work. */
void rp_device_pass_over(rp_device *device, bool on);
/* Starts a new job: kernels of earlier jobs are counted again only if it launches them. */
void rp_device_count_anew(rp_device *device);
/* May be called from any thread. Its numbers are of about the same moment. */
rp_build_count rp_device_build_count(const rp_device *device);
/* The last build begun, for people: "kernels/pool.cl", "kernel max_forward of kernels/pool.cl"; ""
 * if none was since the builder began. May be called from any thread. */
void rp_device_building(rp_device *device, char *out, size_t bytes);
#endif
