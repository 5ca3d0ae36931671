/* One device for a test program, with a kernel cache in the build folder. */
#ifndef RP_TESTS_DEVICE_OPEN_H
#define RP_TESTS_DEVICE_OPEN_H

#include "expect.h"

#include "device/device.h"

static rp_arena boot;
static rp_device *device;

static inline void open_device(void) {
    static char cache[512];
    const char *build = getenv("RP_BUILD_DIR");
    rp_device_options options = {0};
    if (build) {
        (void)snprintf(cache, sizeof cache, "%s/kernel-cache", build);
        options.cache_dir = cache;
    }
    rp_arena_init(&boot, "boot", 0);
    if (rp_device_open(&boot, &options, &device) != RP_OK) {
        skip_program("%s", rp_err_message());
    }
}

static inline void close_device(void) {
    rp_device_close(&device);
    rp_arena_finish(&boot);
}

#endif
