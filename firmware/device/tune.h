/* Determines the content of a board's tuning.json by measurement. */
#ifndef RP_DEVICE_TUNE_H
#define RP_DEVICE_TUNE_H

#include "device/device.h"

/* Speeds are geometric means of GFLOP/s over a few shapes. */
typedef struct {
    double before, found; /* speed of the tuning in force, and of the best other; 0: does not run */
    bool better;          /* rp_tune_is_better() holds, and the tuning differs */
    rp_gemm_choice gemm;  /* of the tuning found */
    /* content of its tuning.json, in the arena; contains the device and the driver */
    const char *text;
} rp_tune_result;

/* Tries block sizes of the panel kernel and parameters of CLBlast's Xgemm and of its switch-over
 * for about `minutes`. A candidate may only win after rp_device_selftest() has passed with it; then
 * it is measured alternately with the tuning in force. The text has no date: the same measurements
 * give the same bytes. Afterwards the device uses what was found. `progress` (may be NULL) gets one
 * line per candidate.
 * errors  DEVICE; NUMERIC when no candidate passes the self-test
 * source  constraints on parameters: CLBlast src/tuning/kernels/xgemm.hpp
 *
 * Trap: CLBlast keeps parameters once they are set, so its own ones, if in force, are measured only
 * first. */
rp_err rp_tune_run(rp_arena *arena, rp_device *device, double minutes,
                   void (*progress)(const char *text), rp_tune_result *out) RP_MUST_CHECK;

/* Better by more than 2 %; smaller differences are noise. */
bool rp_tune_is_better(double before, double found);

/* Writes a temporary file, then renames it. errors IO */
rp_err rp_tune_write(rp_arena *arena, const rp_tune_result *result, const char *path) RP_MUST_CHECK;

#endif
