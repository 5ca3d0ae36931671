#include "device/peak.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "device/program.h"

enum { GROUP = 64, ROUNDS_FIRST = 256, ROUNDS_MAX = 1 << 24, ITEMS_A_UNIT = 16 };

static const float A = 0.999F;
static const float B = 0.001F; /* x tends to b / (1 - a) = 1 */

typedef struct {
    uint32_t width, chains;
} shape;

typedef struct {
    rp_device *device;
    rp_buffer *out;
    size_t items, group;
} probe;

static int64_t now_ns(void) {
    const rp_clock clock = rp_clock_real();
    return rp_clock_now_ns(&clock);
}

static rp_err run_once(const probe *p, rp_kernel *kernel, uint32_t rounds, int64_t *took_ns) {
    rp_launch launch = rp_launch_begin(kernel);
    const int64_t start_ns = now_ns();
    rp_err err;
    rp_arg_u32(&launch, rounds);
    rp_arg_f32(&launch, A);
    rp_arg_f32(&launch, B);
    rp_arg_buffer(&launch, p->out);
    RP_TRY(rp_launch_run(&launch, 1, &p->items, &p->group));
    RP_TRY(rp_device_drain(p->device));
    *took_ns = now_ns() - start_ns;
fail:
    return err;
}

/* Checks the first item: the sum of its chains, as the kernel computes it. */
static rp_err check_result(const probe *p, const shape *s, uint32_t rounds) {
    float got;
    double want = 0;
    const double kept = pow((double)A, rounds);
    rp_err err;
    RP_TRY(rp_buffer_read_now(p->device, &got, p->out, 0, sizeof got));
    for (uint32_t i = 0; i < s->chains; i++) {
        for (uint32_t lane = 0; lane < s->width; lane++) {
            want += 0.001 * (16 * i + lane) * kept + (double)B / (1 - (double)A) * (1 - kept);
        }
    }
    if (!(fabs((double)got - want) <= 1e-3 * want)) {
        return rp_fail(RP_ERR_NUMERIC, "kernels/peak.cl: got %g, expected %g", (double)got, want);
    }
fail:
    return err;
}

/* Doubles the run until it takes a fifth of the time, then takes the best of five. */
static rp_err measure_shape(const probe *p, const shape *s, double seconds, double *gflops) {
    rp_kernel *kernel;
    char defines[64];
    uint32_t rounds = ROUNDS_FIRST;
    int64_t took_ns;
    rp_err err;
    (void)snprintf(defines, sizeof defines, "-DWIDTH=%u -DCHAINS=%u", s->width, s->chains);
    RP_TRY(rp_kernel_find(p->device, "peak", "peak", defines, &kernel));
    RP_TRY(run_once(p, kernel, rounds, &took_ns));
    RP_TRY(check_result(p, s, rounds));
    while (took_ns < (int64_t)(seconds * 0.2e9) && rounds < ROUNDS_MAX) {
        rounds *= 2;
        RP_TRY(run_once(p, kernel, rounds, &took_ns));
    }
    for (int i = 0; i < 4; i++) {
        int64_t again_ns;
        RP_TRY(run_once(p, kernel, rounds, &again_ns));
        took_ns = again_ns < took_ns ? again_ns : took_ns;
    }
    *gflops =
        took_ns > 0 ? 2.0 * s->width * s->chains * rounds * (double)p->items / (double)took_ns : 0;
fail:
    return err;
}

rp_err rp_device_measure_peak(rp_device *device, double seconds, double *gflops) {
    static const shape shapes[] = {{16, 12}, {8, 12}, {4, 6}};
    const rp_device_facts *facts = rp_device_facts_of(device);
    const size_t group_max = facts->group_items_max ? facts->group_items_max : 1;
    probe p = {.device = device};
    rp_darena *memory = NULL;
    rp_arena arena;
    rp_err err;
    /* a CPU's items are wide vectors */
    p.group = facts->cpu ? 1 : group_max < GROUP ? group_max : GROUP;
    p.items = p.group * ITEMS_A_UNIT * (facts->compute_units ? facts->compute_units : 1);
    rp_arena_init(&arena, "peak", 0);
    *gflops = 0;
    RP_TRY(rp_darena_open(&arena, device, "peak", 0, 0, &memory));
    RP_TRY(rp_darena_take(memory, p.items * sizeof(float), &p.out));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double own = 0;
        RP_TRY(measure_shape(&p, &shapes[i], seconds, &own));
        *gflops = own > *gflops ? own : *gflops;
    }
fail:
    rp_darena_close(&memory);
    rp_arena_finish(&arena);
    return err;
}
