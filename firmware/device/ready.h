/* Which kernels a job launches, and how many of them are ready.
 *
 * The same job is run twice. A rehearsal only lists: launches, copies and products are left out and
 * nothing is built. What is launched then for the first time is made ready on the way, and counted:
 *
 *     rp_device_rehearse(device, true);
 *     ... issue everything ...
 *     rp_device_rehearse(device, false);
 *     ... issue everything: a kernel that is not ready yet is built ...
 *
 * A kernel here is an entry of a program with one group size: PoCL compiles each of them when it is
 * launched first. Where the driver keeps what it has compiled (PoCL does), several processes that
 * begin together share that work: one compiles, the others wait for it and read. */
#ifndef RP_DEVICE_READY_H
#define RP_DEVICE_READY_H

#include "device/device.h"

typedef struct {
    uint32_t kernels; /* listed or launched since the last rp_device_count_anew() */
    uint32_t ready;   /* of them; the others are still to be built */
    uint32_t built;   /* of those that are ready: not found in a cache */
    int64_t build_ns; /* that building them took */
    int64_t read_ns;  /* that finding the others in a cache took, or waiting for another process */
} rp_build_count;

void rp_device_rehearse(rp_device *device, bool on);
/* While it is on, a program or a kernel that another process builds right now is not waited for: it
 * fails with AGAIN, and what launches it is to be issued again later, behind other work. */
void rp_device_pass_over(rp_device *device, bool on);
/* A new job: what earlier ones have launched is not counted again. */
void rp_device_count_anew(rp_device *device);
/* From any thread. Its numbers are of about the same moment. */
rp_build_count rp_device_build_count(const rp_device *device);
/* What of a build was begun last, as people know it: "kernels/pool.cl", "kernel max_forward of
 * kernels/pool.cl". "": nothing was since the builder began. From any thread. */
void rp_device_building(rp_device *device, char *out, size_t bytes);
#endif
