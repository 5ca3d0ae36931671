#include "device/ready.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "device/device_own.h"
#include "device/program.h"

static const char note[] = "the driver has it";

bool rp_ready_is_known(const rp_device *device, const rp_cache_key *key) {
    rp_arena scratch;
    void *found;
    size_t bytes;
    rp_arena_init(&scratch, "kernel note", 0);
    const bool known = rp_cache_read(&scratch, device->cache_dir, key, &found, &bytes);
    rp_arena_finish(&scratch);
    return known;
}

void rp_ready_note(const rp_device *device, const rp_cache_key *key) {
    rp_cache_write(device->cache_dir, key, note, sizeof note);
}

int64_t rp_ready_patience_ns(const rp_device *device) {
    return device->passes_over ? 0 : device->cache_wait_ns;
}

/* ---- counting -------------------------------------------------------------------------------- */

void rp_device_rehearse(rp_device *device, bool on) {
    device->rehearses = on;
}

void rp_device_pass_over(rp_device *device, bool on) {
    device->passes_over = on;
}

void rp_device_count_anew(rp_device *device) {
    device->job++;
    atomic_store(&device->kernel_count, 0);
    atomic_store(&device->ready_count, 0);
    atomic_store(&device->built_count, 0);
    atomic_store(&device->build_ns, 0);
    atomic_store(&device->read_ns, 0);
}

rp_build_count rp_device_build_count(const rp_device *device) {
    rp_build_count count = {.ready = atomic_load(&device->ready_count)};
    /* loaded after `ready`, so that it is never less */
    count.kernels = atomic_load(&device->kernel_count);
    count.built = atomic_load(&device->built_count);
    count.build_ns = (int64_t)atomic_load(&device->build_ns);
    count.read_ns = (int64_t)atomic_load(&device->read_ns);
    return count;
}

/* Used by two threads: the builder's, and the reporting one. */
void rp_ready_begin(rp_device *device, const char *format, ...) {
    va_list args;
    if (!device->makes_ready || device->rehearses) {
        return;
    }
    (void)pthread_mutex_lock(&device->building_lock);
    va_start(args, format);
    (void)vsnprintf(device->building, sizeof device->building, format, args);
    va_end(args);
    (void)pthread_mutex_unlock(&device->building_lock);
}

void rp_device_building(rp_device *device, char *out, size_t bytes) {
    (void)pthread_mutex_lock(&device->building_lock);
    (void)snprintf(out, bytes, "%s", device->building);
    (void)pthread_mutex_unlock(&device->building_lock);
}

void rp_ready_forget(rp_device *device) {
    (void)pthread_mutex_lock(&device->building_lock);
    device->building[0] = '\0';
    (void)pthread_mutex_unlock(&device->building_lock);
}

void rp_ready_add_time(rp_device *device, bool built, int64_t ns) {
    atomic_fetch_add(built ? &device->build_ns : &device->read_ns, ns);
}

/* ---- kernels by their group size ------------------------------------------------------------- */

static uint32_t hash_variant(const rp_kernel *kernel, const size_t local[3], bool large) {
    uint32_t value = (uint32_t)(kernel - kernel->device->kernels);
    value = value * 16777619u ^ (uint32_t)local[0];
    value = value * 16777619u ^ (uint32_t)local[1];
    value = value * 16777619u ^ (uint32_t)local[2];
    return (value * 2 + large) * 2654435761u >> 16;
}

static bool is_variant(const rp_variant *v, const rp_kernel *kernel, const size_t local[3],
                       bool large) {
    return v->kernel == kernel && v->local[0] == local[0] && v->local[1] == local[1] &&
           v->local[2] == local[2] && v->large == large;
}

/* NULL if the table is full: such a kernel is launched but not counted. */
static rp_variant *find_variant(rp_device *device, const rp_kernel *kernel, const size_t groups[3],
                                const size_t local[3]) {
    const bool large = groups[0] > UINT16_MAX || groups[1] > UINT16_MAX || groups[2] > UINT16_MAX;
    const uint32_t at = hash_variant(kernel, local, large);
    for (uint32_t probe = 0; probe < RP_VARIANTS_MAX; probe++) {
        rp_variant *v = &device->variants[(at + probe) % RP_VARIANTS_MAX];
        if (is_variant(v, kernel, local, large)) {
            return v;
        }
        if (!v->kernel) {
            *v = (rp_variant){.kernel = kernel,
                              .local = {(uint32_t)local[0], (uint32_t)local[1], (uint32_t)local[2]},
                              .large = large,
                              .job = device->job - 1};
            return v;
        }
    }
    return NULL;
}

static void count_kernel(rp_device *device, rp_variant *v) {
    if (v->job != device->job) {
        v->job = device->job;
        atomic_fetch_add(&device->kernel_count, 1);
    }
}

/* ---- first launches -------------------------------------------------------------------------- */

static rp_err launch_and_wait(rp_device *device, rp_launch_now now, void *launch) {
    const rp_err err = now(launch);
    return err == RP_OK ? rp_device_drain(device) : err;
}

static rp_cache_key key_of_variant(const rp_variant *v) {
    char program[2 * RP_CACHE_KEY_BYTES + 1];
    char size[64];
    for (size_t i = 0; i < RP_CACHE_KEY_BYTES; i++) {
        (void)snprintf(program + 2 * i, 3, "%02x", v->kernel->program->cache_key.bytes[i]);
    }
    (void)snprintf(size, sizeof size, "%u %u %u %d", v->local[0], v->local[1], v->local[2],
                   v->large);
    return rp_cache_key_of((const char *[]){program, v->kernel->key, size, NULL});
}

/* If the driver caches, one process compiles and others wait. *built: compiled here. */
static rp_err launch_locked(rp_device *device, const rp_variant *v, rp_launch_now now, void *launch,
                            bool *built) {
    const rp_cache_key key = key_of_variant(v);
    int lock_fd;
    *built = false;
    if (rp_ready_is_known(device, &key)) {
        return launch_and_wait(device, now, launch);
    }
    if (!rp_cache_lock(device->cache_dir, &key, rp_ready_patience_ns(device),
                       device->build_cancelled, &lock_fd)) {
        if (device->passes_over) {
            return RP_ERR_AGAIN;
        }
        device->cache_wait_ns = 0; /* later locks may be blocked for the same reason */
    }
    *built = !rp_ready_is_known(device, &key);
    const rp_err err = launch_and_wait(device, now, launch);
    if (err == RP_OK && *built) {
        rp_ready_note(device, &key);
    }
    rp_cache_unlock(device->cache_dir, &key, lock_fd);
    return err;
}

static rp_err make_ready(rp_device *device, rp_variant *v, rp_launch_now now, void *launch) {
    const rp_clock clock = rp_clock_real();
    const int64_t start_ns = rp_clock_now_ns(&clock);
    bool built = v->kernel->program->missed;
    if (device->build_cancelled && atomic_load(device->build_cancelled)) {
        return rp_fail(RP_ERR_INTERRUPTED, "building kernels was cancelled");
    }
    count_kernel(device, v);
    rp_ready_begin(device, "kernel %.*s of kernels/%.*s.cl", (int)strcspn(v->kernel->key, "\n"),
                   v->kernel->key, (int)strcspn(v->kernel->program->key, "\n"),
                   v->kernel->program->key);
    const rp_err err = device->driver_caches ? launch_locked(device, v, now, launch, &built)
                                             : launch_and_wait(device, now, launch);
    if (err == RP_OK) {
        v->ready = true;
        atomic_fetch_add(&device->ready_count, 1);
        atomic_fetch_add(&device->built_count, built ? 1 : 0);
        rp_ready_add_time(device, built, rp_clock_now_ns(&clock) - start_ns);
    }
    return err;
}

rp_err rp_ready_launch(const rp_kernel *kernel, const size_t groups[3], const size_t local[3],
                       rp_launch_now now, void *launch) {
    rp_device *device = kernel->device;
    if (!device->rehearses && !device->makes_ready) {
        return now(launch);
    }
    rp_variant *v = find_variant(device, kernel, groups, local);
    if (device->rehearses) {
        if (v && !v->ready) {
            count_kernel(device, v);
        }
        return RP_OK;
    }
    return v && !v->ready ? make_ready(device, v, now, launch) : now(launch);
}
