/* Chooses the device with the fastest products: on small boards that is often the CPU, and neither
 * the type nor the stated clock of a device shows it. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/device_own.h"
#include "device/gemm.h"
#include "device/peak.h"

enum { SIDE = 512, REPEATS = 4 };

static const double trial_s = 0.25;

static rp_err run_turn(rp_device *device, const rp_mat mat[3], rp_buffer *workspace) {
    const rp_epilogue plain = {0};
    rp_err err;
    for (int i = 0; i < REPEATS; i++) {
        RP_TRY(rp_gemm_run(device, &mat[0], &mat[1], &mat[2], &plain, workspace));
    }
    RP_TRY(rp_device_drain(device));
fail:
    return err;
}

rp_err rp_device_measure_gemm(rp_arena *arena, rp_device *device, double seconds, double *gflops) {
    const rp_clock clock = rp_clock_real();
    rp_darena *memory = NULL;
    rp_buffer *buffer;
    rp_buffer *workspace;
    rp_mat mat[3];
    rp_err err;
    *gflops = 0;
    RP_TRY(rp_darena_open(arena, device, "speed", 0, 0, &memory));
    for (int i = 0; i < 3; i++) {
        RP_TRY(rp_darena_take(memory, SIDE * SIDE * sizeof(float), &buffer));
        mat[i] = rp_mat_plain(buffer, 0, SIDE, SIDE);
    }
    const size_t bytes = rp_gemm_workspace_bytes(rp_device_gemm(device), &mat[0], &mat[1], &mat[2]);
    RP_TRY(rp_darena_take(memory, bytes ? bytes : 1, &workspace));
    RP_TRY(run_turn(device, mat, workspace)); /* the first run builds kernels */
    const int64_t began_ns = rp_clock_now_ns(&clock);
    for (int64_t now_ns = began_ns; (double)(now_ns - began_ns) < seconds * RP_NS_PER_S;) {
        const int64_t turn_ns = now_ns;
        RP_TRY(run_turn(device, mat, workspace));
        now_ns = rp_clock_now_ns(&clock);
        const double own = 2.0 * SIDE * SIDE * SIDE * REPEATS / (double)(now_ns - turn_ns);
        *gflops = own > *gflops ? own : *gflops;
    }
fail:
    rp_darena_close(&memory);
    return err;
}

/* Its speed, or 0 if it does not open or computes wrongly. */
static double try_device(const rp_device_options *options) {
    rp_device *device = NULL;
    rp_arena arena;
    rp_err err;
    double gflops = 0;
    rp_arena_init(&arena, "trial", 0);
    RP_TRY(rp_device_open(&arena, options, &device));
    RP_TRY(rp_device_selftest(device));
    RP_TRY(rp_device_measure_gemm(&arena, device, trial_s, &gflops));
    rp_log_info("device %s (%s): %.1f GFLOP/s in products", rp_device_facts_of(device)->name,
                rp_device_facts_of(device)->platform, gflops);
fail:
    rp_device_close(&device);
    rp_arena_finish(&arena);
    return err == RP_OK ? gflops : 0;
}

rp_err rp_device_open_fastest(rp_arena *arena, const rp_device_options *options, rp_device **out) {
    const uint32_t count = rp_device_count(options);
    rp_device_options one = *options;
    rp_device_options best = *options;
    double most = 0;
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        one.skip = options->skip + i;
        const double gflops = try_device(&one);
        if (gflops > most) {
            most = gflops;
            best = one;
        }
    }
    return rp_device_open(arena, &best, out);
}
