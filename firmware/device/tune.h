/* Finds what a board's tuning.json should say, by trying and measuring. */
#ifndef RP_DEVICE_TUNE_H
#define RP_DEVICE_TUNE_H

#include "device/device.h"

/* Speeds are geometric means of GFLOP/s over a few shapes. */
typedef struct {
    double before, found; /* what was in force, and the best of the others; 0: does not run */
    bool better;          /* rp_tune_is_better() of them, and not the same */
    rp_gemm_choice gemm;  /* of what was found */
    const char *text; /* of its tuning.json, in the arena; the device and the driver are in it */
} rp_tune_result;

/* Tries block sizes of the panel kernel and parameters of CLBlast's Xgemm and of its switch-over
 * for about `minutes`. A candidate may only win after rp_device_selftest() has passed with it; then
 * it is measured in turns with what was in force. The text holds no date: the same measurements
 * give the same bytes. Afterwards the device works with what was found.
 * progress (may be NULL) gets one line per candidate
 * errors  DEVICE; NUMERIC when nothing passes the self-test
 * trap    CLBlast forgets no parameters: where its own were in force they are measured first only
 * source  constraints on parameters: CLBlast src/tuning/kernels/xgemm.hpp */
rp_err rp_tune_run(rp_arena *arena, rp_device *device, double minutes,
                   void (*progress)(const char *text), rp_tune_result *out) RP_MUST_CHECK;

/* By more than 2 %: less is noise. */
bool rp_tune_is_better(double before, double found);

/* Beside the file first, then renamed. errors IO */
rp_err rp_tune_write(rp_arena *arena, const rp_tune_result *result, const char *path) RP_MUST_CHECK;

#endif
