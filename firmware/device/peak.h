/* Peak speed of a device, for comparison with measured figures. */
#ifndef RP_DEVICE_PEAK_H
#define RP_DEVICE_PEAK_H

#include "device/device.h"

/* GFLOP/s of float32 multiply-adds in registers, the best of several widths; each is measured for
 * about `seconds` after its kernel has been built.
 * errors  DEVICE, MEMORY; NUMERIC when the kernel computes wrongly */
rp_err rp_device_measure_peak(rp_device *device, double seconds, double *gflops) RP_MUST_CHECK;

/* GFLOP/s of square products of size 512 with the GEMM in force, several in the queue at once: the
 * best round within about `seconds` after its kernels have been built. errors DEVICE, MEMORY */
rp_err rp_device_measure_gemm(rp_arena *arena, rp_device *device, double seconds,
                              double *gflops) RP_MUST_CHECK;

#endif
