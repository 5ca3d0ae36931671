/* One device for a test program. It uses the driver's kernel cache: asked for binaries, PoCL would
 * compile all kernels of a program, also those that no test launches. */
#ifndef RP_TESTS_DEVICE_OPEN_H
#define RP_TESTS_DEVICE_OPEN_H

#include "expect.h"

#include "device/device.h"

static rp_arena boot;
static rp_device *device;

static inline void open_device(void) {
    rp_arena_init(&boot, "boot", 0);
    if (rp_device_open(&boot, &(rp_device_options){0}, &device) != RP_OK) {
        skip_program("%s", rp_err_message());
    }
}

static inline void close_device(void) {
    rp_device_close(&device);
    rp_arena_finish(&boot);
}

#endif
