#include "device/program.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/cache.h"
#include "device/cl.h"
#include "device/device_own.h"
#include "device/sources.h"

enum { INCLUDE_DEPTH_MAX = 8, INCLUDES_MAX = 16, OPTIONS_BYTES = 512 };

/* ---- source text ----------------------------------------------------------------------------- */

typedef struct {
    char *out; /* NULL: only count */
    size_t bytes;
    const rp_kernel_source *seen[INCLUDES_MAX]; /* each header is included once */
    uint32_t seen_count;
} text;

static const rp_kernel_source *find_source(const char *name, size_t bytes) {
    for (const rp_kernel_source *source = rp_kernel_sources; source->name; source++) {
        if (strlen(source->name) == bytes && memcmp(source->name, name, bytes) == 0) {
            return source;
        }
    }
    return NULL;
}

static void append_text(text *to, const char *from, size_t bytes) {
    if (to->out) {
        memcpy(to->out + to->bytes, from, bytes);
    }
    to->bytes += bytes;
}

/* The name in a line `#include "..."`, or NULL. */
static const char *included_name(const char *line, size_t bytes, size_t *name_bytes) {
    static const char start[] = "#include \"";
    const size_t start_bytes = sizeof start - 1;
    if (bytes < start_bytes || memcmp(line, start, start_bytes) != 0) {
        return NULL;
    }
    const char *name = line + start_bytes;
    const char *end = memchr(name, '"', bytes - start_bytes);
    if (!end) {
        return NULL;
    }
    *name_bytes = (size_t)(end - name);
    return name;
}

static rp_err expand_includes(text *to, const rp_kernel_source *source, uint32_t depth) {
    if (depth > INCLUDE_DEPTH_MAX) {
        return rp_fail(RP_ERR_DEVICE, "kernels/%s: includes nest too deep", source->name);
    }
    const char *at = (const char *)source->text;
    while (*at) {
        const char *newline = strchr(at, '\n');
        size_t bytes = newline ? (size_t)(newline - at) + 1 : strlen(at);
        size_t name_bytes;
        const char *name = included_name(at, bytes, &name_bytes);
        if (!name) {
            append_text(to, at, bytes);
            at += bytes;
            continue;
        }
        const rp_kernel_source *header = find_source(name, name_bytes);
        if (!header || to->seen_count == INCLUDES_MAX) {
            return rp_fail(RP_ERR_DEVICE, "kernels/%s: cannot include %.*s", source->name,
                           (int)name_bytes, name);
        }
        bool seen = false;
        for (uint32_t i = 0; i < to->seen_count; i++) {
            seen = seen || to->seen[i] == header;
        }
        if (!seen) {
            to->seen[to->seen_count++] = header;
            rp_err err = expand_includes(to, header, depth + 1);
            if (err != RP_OK) {
                return err;
            }
        }
        at += bytes;
    }
    return RP_OK;
}

static rp_err make_source(rp_arena *arena, const char *program, char **out) {
    char name[RP_KERNEL_KEY_MAX];
    int length = snprintf(name, sizeof name, "%s.cl", program);
    const rp_kernel_source *source = find_source(name, length > 0 ? (size_t)length : 0);
    if (!source) {
        return rp_fail(RP_ERR_DEVICE, "kernels/%s.cl is not part of this program", program);
    }
    text counted = {0};
    text made = {0};
    rp_err err;
    RP_TRY(expand_includes(&counted, source, 0));
    RP_TRY(RP_ARENA_NEW(arena, counted.bytes + 1, &made.out));
    RP_TRY(expand_includes(&made, source, 0));
    *out = made.out;
fail:
    return err;
}

/* ---- building -------------------------------------------------------------------------------- */

static rp_err report_build(const rp_device *device, cl_program built, const char *name,
                           cl_int code) {
    rp_arena scratch;
    rp_arena_init(&scratch, "build log", 0);
    size_t bytes = 0;
    char *log = NULL;
    (void)clGetProgramBuildInfo(built, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    if (bytes > 0 && RP_ARENA_NEW(&scratch, bytes + 1, &log) == RP_OK) {
        (void)clGetProgramBuildInfo(built, device->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    }
    rp_err err = rp_cl(code, "kernels/%s.cl does not build", name);
    char *rest = log;
    const char *row = log ? strsep(&rest, "\n") : "(no build log)";
    for (; row; row = strsep(&rest, "\n")) {
        rp_log_error("%s", row);
    }
    rp_arena_finish(&scratch);
    return err;
}

static cl_program build_cached(rp_device *device, rp_arena *scratch, const rp_cache_key *key,
                               const char *options) {
    void *binary;
    size_t bytes;
    if (!rp_cache_read(scratch, device->cache_dir, key, &binary, &bytes)) {
        return NULL;
    }
    const unsigned char *start = binary;
    cl_int status;
    cl_int code;
    cl_program built =
        clCreateProgramWithBinary(device->context, 1, &device->id, &bytes, &start, &status, &code);
    if (code == CL_SUCCESS && status == CL_SUCCESS &&
        clBuildProgram(built, 1, &device->id, options, NULL, NULL) == CL_SUCCESS) {
        return built;
    }
    if (code == CL_SUCCESS) {
        (void)clReleaseProgram(built);
    }
    return NULL;
}

static void save_binary(rp_device *device, rp_arena *scratch, const rp_cache_key *key,
                        cl_program built) {
    size_t bytes = 0;
    unsigned char *binary;
    if (clGetProgramInfo(built, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
            CL_SUCCESS ||
        bytes == 0 || RP_ARENA_NEW(scratch, bytes, &binary) != RP_OK) {
        return;
    }
    if (clGetProgramInfo(built, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS) {
        rp_cache_write(device->cache_dir, key, binary, bytes);
    }
}

static rp_err build_source(rp_device *device, const char *name, const char *source,
                           const char *options, cl_program *out) {
    cl_int code;
    cl_program built = clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS) {
        return rp_cl(code, "kernels/%s.cl", name);
    }
    code = clBuildProgram(built, 1, &device->id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        rp_err err = report_build(device, built, name, code);
        (void)clReleaseProgram(built);
        return err;
    }
    *out = built;
    return RP_OK;
}

static bool is_cancelled(const rp_device *device) {
    return device->build_cancelled && atomic_load(device->build_cancelled);
}

static rp_err refuse_cancelled(const char *name) {
    return rp_fail(RP_ERR_INTERRUPTED, "kernels/%s.cl: building was cancelled", name);
}

/* Waits for another process that builds the same entry. errors INTERRUPTED, AGAIN */
static rp_err lock_entry(rp_device *device, const rp_cache_key *key, const char *name,
                         int *lock_fd) {
    if (rp_cache_lock(device->cache_dir, key, rp_ready_patience_ns(device), device->build_cancelled,
                      lock_fd)) {
        return RP_OK;
    }
    if (is_cancelled(device)) {
        return refuse_cancelled(name);
    }
    if (device->passes_over) {
        return RP_ERR_AGAIN;
    }
    rp_log_warn(
        "kernels/%s.cl: another process did not build it in time, so this process builds it", name);
    device->cache_wait_ns = 0; /* later locks may be blocked for the same reason */
    return RP_OK;
}

/* The entry is missing: waits for another process that builds it, else builds and saves it. */
static rp_err build_locked(rp_device *device, rp_arena *scratch, const rp_cache_key *key,
                           const char *name, const char *source, const char *options,
                           cl_program *out) {
    int lock_fd;
    rp_err err = RP_OK;
    RP_TRY(lock_entry(device, key, name, &lock_fd));
    *out = build_cached(device, scratch, key, options);
    if (*out) {
        device->cache_hits++;
    } else {
        device->cache_misses++;
        err = build_source(device, name, source, options, out);
        if (err == RP_OK) {
            save_binary(device, scratch, key, *out);
        }
    }
    rp_cache_unlock(device->cache_dir, key, lock_fd);
fail:
    return err;
}

/* The driver caches what it compiles: one process compiles, all other processes find the result. */
static rp_err build_by_driver(rp_device *device, const rp_cache_key *key, const char *name,
                              const char *source, const char *options, cl_program *out) {
    int lock_fd = -1;
    bool known = rp_ready_is_known(device, key);
    rp_err err = RP_OK;
    if (!known) {
        RP_TRY(lock_entry(device, key, name, &lock_fd));
        known = rp_ready_is_known(device, key);
    }
    device->cache_hits += known;
    device->cache_misses += !known;
    err = build_source(device, name, source, options, out);
    if (err == RP_OK && !known) {
        rp_ready_note(device, key);
    }
    rp_cache_unlock(device->cache_dir, key, lock_fd);
fail:
    return err;
}

static rp_err build_program(rp_device *device, const char *name, const char *options,
                            rp_program *made) {
    const rp_clock clock = rp_clock_real();
    const int64_t start_ns = rp_clock_now_ns(&clock);
    const uint32_t misses = device->cache_misses;
    rp_arena scratch;
    char *source = NULL;
    rp_err err;
    if (is_cancelled(device)) {
        return refuse_cancelled(name);
    }
    rp_ready_begin(device, "kernels/%s.cl", name);
    rp_arena_init(&scratch, "program", 0);
    RP_TRY(make_source(&scratch, name, &source));
    const char *parts[] = {source,
                           options,
                           device->facts.name,
                           device->facts.driver,
                           device->facts.version,
                           device->platform_version,
                           device->keeps_binaries ? "here" : "by the driver",
                           NULL};
    made->cache_key = rp_cache_key_of(parts);
    made->program =
        device->keeps_binaries ? build_cached(device, &scratch, &made->cache_key, options) : NULL;
    if (made->program) {
        device->cache_hits++;
    } else if (!device->keeps_binaries) {
        RP_TRY(build_by_driver(device, &made->cache_key, name, source, options, &made->program));
    } else {
        RP_TRY(build_locked(device, &scratch, &made->cache_key, name, source, options,
                            &made->program));
    }
    made->missed = device->cache_misses != misses;
    rp_ready_add_time(device, made->missed, rp_clock_now_ns(&clock) - start_ns);
fail:
    rp_arena_finish(&scratch);
    return err;
}

/* ---- finding --------------------------------------------------------------------------------- */

static rp_err find_program(rp_device *device, const char *name, const char *defines,
                           const rp_program **out) {
    char key[RP_KERNEL_KEY_MAX];
    char options[OPTIONS_BYTES];
    const char *board = rp_tuning_defines(&device->tuning, name);
    (void)snprintf(key, sizeof key, "%s\n%s", name, defines);
    for (uint32_t i = 0; i < device->program_count; i++) {
        if (strcmp(device->programs[i].key, key) == 0) {
            *out = &device->programs[i];
            return RP_OK;
        }
    }
    if (device->program_count == RP_PROGRAMS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "device: more than %d programs", RP_PROGRAMS_MAX);
    }
    /* The board's defines come last, because the last -D of a name wins. */
    int length =
        snprintf(options, sizeof options, "-cl-std=CL1.2 %s %s", defines, board ? board : "");
    if (length < 0 || (size_t)length >= sizeof options) {
        return rp_fail(RP_ERR_LIMIT, "kernels/%s.cl: options too long", name);
    }
    rp_program *made = &device->programs[device->program_count];
    rp_err err = build_program(device, name, options, made);
    if (err == RP_OK) {
        memcpy(made->key, key, sizeof key);
        *out = made;
        device->program_count++;
    }
    return err;
}

static uint32_t hash_key(const char *key) {
    uint32_t value = 2166136261u; /* FNV-1a */
    for (; *key; key++) {
        value = (value ^ (uint8_t)*key) * 16777619u;
    }
    return value;
}

static rp_err create_kernel(rp_device *device, rp_kernel *slot, const char *program,
                            const char *entry, const char *defines) {
    const rp_program *built = NULL;
    slot->device = device;
    if (device->rehearses) {
        return RP_OK;
    }
    rp_err err = find_program(device, program, defines, &built);
    if (err != RP_OK) {
        return err;
    }
    cl_int code;
    slot->kernel = clCreateKernel(built->program, entry, &code);
    if (code != CL_SUCCESS) {
        slot->kernel = NULL;
        return rp_cl(code, "kernel %s of kernels/%s.cl", entry, program);
    }
    rp_log_debug("kernel %s of kernels/%s.cl %s", entry, program, defines);
    slot->program = built;
    return RP_OK;
}

rp_err rp_kernel_find(rp_device *device, const char *program, const char *entry,
                      const char *defines, rp_kernel **out) {
    char key[RP_KERNEL_KEY_MAX];
    const char *extra = defines ? defines : "";
    int length = snprintf(key, sizeof key, "%s\n%s\n%s", entry, program, extra);
    if (length < 0 || (size_t)length >= sizeof key) {
        return rp_fail(RP_ERR_LIMIT, "kernel %s of kernels/%s.cl: defines too long", entry,
                       program);
    }
    uint32_t at = hash_key(key);
    for (uint32_t probe = 0; probe < RP_KERNELS_MAX; probe++) {
        rp_kernel *slot = &device->kernels[(at + probe) % RP_KERNELS_MAX];
        if (strcmp(slot->key, key) == 0 && (slot->kernel || device->rehearses)) {
            *out = slot;
            return RP_OK;
        }
        if (!slot->key[0] || strcmp(slot->key, key) == 0) {
            rp_err err = create_kernel(device, slot, program, entry, extra);
            if (err == RP_OK) {
                memcpy(slot->key, key, sizeof key);
                *out = slot;
            }
            return err;
        }
    }
    return rp_fail(RP_ERR_LIMIT, "device: more than %d kernels", RP_KERNELS_MAX);
}

void rp_programs_release(rp_device *device) {
    for (uint32_t i = 0; i < RP_KERNELS_MAX; i++) {
        if (device->kernels[i].kernel) {
            (void)clReleaseKernel(device->kernels[i].kernel);
        }
        device->kernels[i].kernel = NULL;
        device->kernels[i].key[0] = 0;
    }
    for (uint32_t i = 0; i < device->program_count; i++) {
        (void)clReleaseProgram(device->programs[i].program);
    }
    device->program_count = 0;
}

/* ---- launching ------------------------------------------------------------------------------- */

rp_launch rp_launch_begin(rp_kernel *kernel) {
    return (rp_launch){.kernel = kernel, .err = RP_OK};
}

static void set_arg(rp_launch *launch, size_t bytes, const void *value) {
    uint32_t index = launch->next++;
    if (launch->err != RP_OK || !launch->kernel->kernel) {
        return;
    }
    cl_int code = clSetKernelArg(launch->kernel->kernel, index, bytes, value);
    if (code != CL_SUCCESS) {
        launch->err = rp_cl(code, "argument %u of kernel %.*s", index,
                            (int)strcspn(launch->kernel->key, "\n"), launch->kernel->key);
    }
}

void rp_arg_buffer(rp_launch *launch, const rp_buffer *buffer) {
    set_arg(launch, sizeof(cl_mem), buffer ? &buffer->memory : NULL);
}

void rp_arg_tensor(rp_launch *launch, const rp_tensor *tensor) {
    rp_arg_buffer(launch, tensor ? tensor->buffer : NULL);
    rp_arg_u64(launch, tensor ? tensor->offset : 0);
}

void rp_arg_u32(rp_launch *launch, uint32_t value) {
    set_arg(launch, sizeof value, &value);
}

void rp_arg_i32(rp_launch *launch, int32_t value) {
    set_arg(launch, sizeof value, &value);
}

void rp_arg_u64(rp_launch *launch, uint64_t value) {
    set_arg(launch, sizeof value, &value);
}

void rp_arg_f32(rp_launch *launch, float value) {
    set_arg(launch, sizeof value, &value);
}

void rp_arg_local(rp_launch *launch, size_t bytes) {
    set_arg(launch, bytes, NULL);
}

typedef struct {
    cl_kernel kernel;
    const rp_kernel *of;
    uint32_t dims;
    const size_t *global, *local;
} grid;

static rp_err launch_grid(void *context) {
    const grid *g = context;
    cl_int code = clEnqueueNDRangeKernel(g->of->device->queue, g->kernel, g->dims, NULL, g->global,
                                         g->local, 0, NULL, NULL);
    return rp_cl(code, "launch of kernel %.*s", (int)strcspn(g->of->key, "\n"), g->of->key);
}

rp_err rp_launch_run(rp_launch *launch, uint32_t dims, const size_t *global, const size_t *local) {
    RP_ASSERT(dims >= 1 && dims <= 3);
    if (launch->err != RP_OK) {
        return launch->err;
    }
    size_t rounded[3];
    size_t groups[3] = {1, 1, 1};
    size_t items[3] = {0};
    for (uint32_t i = 0; i < dims; i++) {
        items[i] = local ? local[i] : 0;
        groups[i] = local ? (global[i] + local[i] - 1) / local[i] : global[i];
        rounded[i] = local ? groups[i] * local[i] : global[i];
    }
    grid g = {launch->kernel->kernel, launch->kernel, dims, rounded, local};
    return rp_ready_launch(launch->kernel, groups, items, launch_grid, &g);
}
