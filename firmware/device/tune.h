/* Finds what a board's tuning.json should say, by trying and measuring. */
#ifndef RP_DEVICE_TUNE_H
#define RP_DEVICE_TUNE_H

#include "device/device.h"

/* Tries block sizes of the panel kernel and parameters of CLBlast's Xgemm and of its switch-over
 * for about `minutes`, and writes the fastest to out_path (beside it, then renamed). A candidate
 * may only win after rp_device_selftest() has passed with it. The file holds no date: the same
 * measurements give the same bytes. Afterwards the device works with what was found.
 * progress (may be NULL) gets one line per candidate
 * errors  IO when the file can not be written; DEVICE; NUMERIC when nothing passes the self-test
 * source  constraints on parameters: CLBlast src/tuning/kernels/xgemm.hpp */
rp_err rp_tune_run(rp_arena *arena, rp_device *device, double minutes, const char *out_path,
                   void (*progress)(const char *text)) RP_MUST_CHECK;

#endif
