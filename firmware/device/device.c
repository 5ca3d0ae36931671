#include "device/device.h"

#include <clblast_c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cache_home.h"
#include "base/clock.h"
#include "base/log.h"
#include "device/cl.h"
#include "device/device_own.h"

enum {
    PLATFORMS_MAX = 16,
    DEVICES_MAX = 32,
    CACHE_WAIT_S = 60,   /* time of the slowest program on a slow board */
    FILE_BYTES = 4 << 20 /* several times what PoCL's compiler writes */
};

/* ---- choosing ------------------------------------------------------------------------------ */

static void read_text(cl_device_id id, cl_device_info what, char out[128]) {
    char text[1024] = "";
    (void)clGetDeviceInfo(id, what, sizeof text - 1, text, NULL);
    (void)snprintf(out, 128, "%.127s", text);
}

static cl_ulong read_number(cl_device_id id, cl_device_info what) {
    cl_ulong value =
        0; /* 4-byte answers fill the low half, on little-endian hosts, which all of ours are */
    (void)clGetDeviceInfo(id, what, sizeof value, &value, NULL);
    return value;
}

static bool name_matches(const char *text, const char *part) {
    return !part || strcasestr(text, part) != NULL;
}

static void read_facts(rp_device *device) {
    rp_device_facts *facts = &device->facts;
    cl_device_id id = device->id;
    (void)clGetPlatformInfo(device->platform, CL_PLATFORM_NAME, sizeof facts->platform,
                            facts->platform, NULL);
    (void)clGetPlatformInfo(device->platform, CL_PLATFORM_VERSION, sizeof device->platform_version,
                            device->platform_version, NULL);
    read_text(id, CL_DEVICE_NAME, facts->name);
    read_text(id, CL_DEVICE_VENDOR, facts->vendor);
    read_text(id, CL_DRIVER_VERSION, facts->driver);
    read_text(id, CL_DEVICE_VERSION, facts->version);
    facts->memory_bytes = read_number(id, CL_DEVICE_GLOBAL_MEM_SIZE);
    facts->alloc_bytes_max = read_number(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    facts->local_bytes = read_number(id, CL_DEVICE_LOCAL_MEM_SIZE);
    facts->group_items_max = (uint32_t)read_number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    facts->compute_units = (uint32_t)read_number(id, CL_DEVICE_MAX_COMPUTE_UNITS);
    facts->cpu = (read_number(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    facts->unified = read_number(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    /* The driver answers in bits. */
    facts->align_bytes = (uint32_t)read_number(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    if (facts->align_bytes < 64) {
        facts->align_bytes = 64;
    }
}

/* Matching devices in the driver loader's order, and the names of all other devices. */
typedef struct {
    cl_platform_id platform[DEVICES_MAX];
    cl_device_id id[DEVICES_MAX];
    uint32_t count;
    char others[512];
    cl_int code; /* result of the query for platforms */
} matching;

static void look_at_platform(cl_platform_id platform, const rp_device_options *options,
                             matching *out) {
    cl_device_id ids[DEVICES_MAX];
    cl_uint count = 0;
    char name[128] = "";
    (void)clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, ids, &count) != CL_SUCCESS) {
        return;
    }
    for (cl_uint d = 0; d < count && d < DEVICES_MAX; d++) {
        char text[128];
        read_text(ids[d], CL_DEVICE_NAME, text);
        if (!name_matches(name, options->platform) || !name_matches(text, options->device)) {
            const size_t used = strlen(out->others);
            (void)snprintf(out->others + used, sizeof out->others - used, " [%s: %s]", name, text);
        } else if (out->count < DEVICES_MAX) {
            out->platform[out->count] = platform;
            out->id[out->count++] = ids[d];
        }
    }
}

static void find_matching(const rp_device_options *options, matching *out) {
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint count = 0;
    *out = (matching){0};
    out->code = clGetPlatformIDs(PLATFORMS_MAX, platforms, &count);
    if (out->code == CL_SUCCESS && count == 0) {
        out->code = CL_DEVICE_NOT_FOUND;
    }
    for (cl_uint p = 0; out->code == CL_SUCCESS && p < count && p < PLATFORMS_MAX; p++) {
        look_at_platform(platforms[p], options, out);
    }
}

static bool is_pocl(const rp_device *device) {
    return strcmp(device->facts.platform, "Portable Computing Language") == 0;
}

/* Without a folder for its cache PoCL offers no device, or one that builds no kernel. */
static rp_err check_cache(bool needed) {
    const char *obstacle = needed ? rp_cache_home_obstacle() : NULL;
    return obstacle ? rp_fail(RP_ERR_DEVICE,
                              "no OpenCL device: %s is not writable, but PoCL needs it for its "
                              "cache; set POCL_CACHE_DIR or XDG_CACHE_HOME to a writable folder",
                              obstacle)
                    : RP_OK;
}

static rp_err choose_device(rp_device *device, const rp_device_options *options) {
    matching found;
    find_matching(options, &found);
    const rp_err err = check_cache(options->skip >= found.count);
    if (err != RP_OK) {
        return err;
    }
    if (found.code != CL_SUCCESS) {
        return rp_fail(RP_ERR_DEVICE,
                       "no OpenCL driver (OpenCL %d): install pocl-opencl-icd for the CPU, or your "
                       "GPU's ICD package",
                       found.code);
    }
    if (options->skip >= found.count) {
        return rp_fail(RP_ERR_DEVICE,
                       "no OpenCL device matches platform '%s', device '%s'; seen:%s; install "
                       "pocl-opencl-icd for the CPU",
                       options->platform ? options->platform : "*",
                       options->device ? options->device : "*",
                       found.others[0] ? found.others : " none");
    }
    device->platform = found.platform[options->skip];
    device->id = found.id[options->skip];
    read_facts(device);
    return check_cache(is_pocl(device));
}

/* PoCL 3.1 reads it once, when its first platform is queried. */
static void limit_threads(const rp_device_options *options) {
    char text[16];
    if (options->threads > 0) {
        (void)snprintf(text, sizeof text, "%u", options->threads);
        (void)setenv("POCL_MAX_PTHREAD_COUNT", text, 1);
    }
}

/* PoCL's compiler ends the program if it cannot write, and names no file and no limit. Warns once,
 * however many devices are opened. */
static void check_file_limit(const rp_device *device) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct rlimit limit;
    if (is_pocl(device) && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < FILE_BYTES &&
        !atomic_flag_test_and_set(&said)) {
        rp_log_warn("files may not be larger than %llu bytes here (`ulimit -f`): PoCL may need "
                    "larger ones to compile kernels, and would then end this program",
                    (unsigned long long)limit.rlim_cur);
    }
}

uint32_t rp_device_count(const rp_device_options *options) {
    matching found;
    limit_threads(options);
    (void)rp_cache_home();
    find_matching(options, &found);
    return found.count > options->skip ? found.count - options->skip : 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

static rp_err find_cache_dir(rp_arena *arena, const rp_device_options *options, char **out) {
    const char *home = rp_cache_home();
    if (options->cache_dir || !home[0]) {
        return rp_arena_string(arena, options->cache_dir ? options->cache_dir : "", out);
    }
    return rp_arena_printf(arena, out, "%s/ringpipe", home);
}

/* PoCL caches every program and kernel that it compiles, unless told not to. To write a program's
 * binary it would compile all of the program's kernels again, for any group size. */
static bool driver_caches(const rp_device *device, const rp_device_options *options) {
    const char *cache = getenv("POCL_KERNEL_CACHE");
    return !options->cache_dir && is_pocl(device) && !(cache && strcmp(cache, "0") == 0);
}

/* With a binary it also need not run clang for the includes of a program at every start. */
static bool wants_binaries(void) {
    const char *wish = getenv("RINGPIPE_BINARIES");
    return wish && strcmp(wish, "1") == 0;
}

static rp_err open_queue(rp_device *device) {
    cl_int code;
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                          (cl_context_properties)device->platform, 0};
    device->context = clCreateContext(properties, 1, &device->id, NULL, NULL, &code);
    if (code != CL_SUCCESS) {
        return rp_cl(code, "context on %s", device->facts.name);
    }
    /* Some board drivers refuse a profiling queue, which is not required here. */
    device->queue =
        clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code);
    device->facts.profiling = code == CL_SUCCESS;
    if (code != CL_SUCCESS) {
        device->queue = clCreateCommandQueue(device->context, device->id, 0, &code);
    }
    return rp_cl(code, "queue on %s", device->facts.name);
}

static rp_err apply_clblast(const rp_device *device) {
    for (uint32_t i = 0; i < device->tuning.clblast_count; i++) {
        const rp_tuning_clblast *set = &device->tuning.clblast[i];
        CLBlastStatusCode code =
            CLBlastOverrideParameters(device->id, set->kernel, CLBlastPrecisionSingle, set->count,
                                      (const char **)(uintptr_t)set->name, set->value);
        if (code != CLBlastSuccess) {
            return rp_fail(RP_ERR_FORMAT,
                           "tuning: CLBlast refuses the parameters of %s (CLBlast %d)", set->kernel,
                           (int)code);
        }
    }
    return RP_OK;
}

/* The packed block of the panel kernel must fit local memory, so it may have to shrink. */
static void fit_panel(rp_device *device) {
    rp_tuning_panel *panel = &device->tuning.panel;
    const uint64_t local = device->facts.local_bytes;
    while (panel->columns > 32 && UINT64_C(4) * panel->columns * (panel->depth + 4) > local) {
        panel->columns -= 32;
    }
    while (panel->depth > 16 && UINT64_C(4) * panel->columns * (panel->depth + 4) > local) {
        panel->depth = panel->depth / 32 * 16;
    }
}

/* A CPU's driver counts its threads as compute units. */
static void check_threads(const rp_device *device, uint32_t threads) {
    const rp_device_facts *facts = &device->facts;
    if (threads > 0 && facts->cpu && facts->compute_units > threads) {
        rp_log_warn("%s computes on %u threads, not on the requested %u: its driver was already "
                    "initialised, or has no such setting",
                    facts->name, facts->compute_units, threads);
    }
}

static rp_err choose_tuning(rp_arena *arena, rp_device *device, const char *board_path) {
    const rp_device_facts *facts = &device->facts;
    const rp_tuning_key key = {facts->platform, facts->name, facts->driver};
    const rp_tuning_origin *origin = &device->tuning_origin;
    const rp_err err =
        rp_tuning_choose(arena, &key, board_path, &device->tuning, &device->tuning_origin);
    device->gemm = device->tuning.gemm;
    if (err == RP_OK && origin->ignored && !origin->applied) {
        rp_log_info("%s is not used, because it is for %s, driver %s; `ringpipe tune` makes one "
                    "for this device",
                    origin->ignored, origin->ignored_device, origin->ignored_driver);
    }
    return err;
}

rp_err rp_device_open(rp_arena *arena, const rp_device_options *options, rp_device **out) {
    rp_device *device = NULL;
    rp_err err;
    limit_threads(options);
    RP_TRY(RP_ARENA_NEW(arena, 1, &device));
    device->event_fd = -1;
    (void)pthread_mutex_init(&device->building_lock, NULL);
    device->gemm_broken = getenv("RP_TEST_BREAK_GEMM") != NULL;
    RP_TRY(find_cache_dir(arena, options, &device->cache_dir));
    device->cache_wait_ns = CACHE_WAIT_S * RP_NS_PER_S;
    RP_TRY(choose_device(device, options));
    check_threads(device, options->threads);
    check_file_limit(device);
    device->driver_caches = driver_caches(device, options);
    device->keeps_binaries = !device->driver_caches || wants_binaries();
    RP_TRY(choose_tuning(arena, device,
                         options->tuning_path || !device->facts.cpu ? options->tuning_path
                                                                    : options->cpu_tuning_path));
    fit_panel(device);
    RP_TRY(open_queue(device));
    RP_TRY(apply_clblast(device));
    RP_TRY(rp_fences_open(device));
    rp_log_debug("device %s (%s, driver %s), gemm %s", device->facts.name, device->facts.platform,
                 device->facts.driver, rp_gemm_choice_name(device->gemm));
    *out = device;
    return RP_OK;
fail:
    rp_device_close(&device);
    return err;
}

void rp_device_close(rp_device **pointer) {
    rp_device *device = *pointer;
    *pointer = NULL;
    if (!device) {
        return;
    }
    if (device->queue) {
        (void)clFinish(device->queue);
        rp_fences_close(device);
        rp_programs_release(device);
        (void)clReleaseCommandQueue(device->queue);
    }
    if (device->context) {
        (void)clReleaseContext(device->context);
    }
    (void)pthread_mutex_destroy(&device->building_lock);
}

const rp_device_facts *rp_device_facts_of(const rp_device *device) {
    return &device->facts;
}

const rp_tuning_origin *rp_device_tuning_origin(const rp_device *device) {
    return &device->tuning_origin;
}

rp_gemm_choice rp_device_gemm(const rp_device *device) {
    return device->gemm;
}

void rp_device_choose_gemm(rp_device *device, rp_gemm_choice choice) {
    device->gemm = choice;
}
