/* A driver as some boards have it, between a program and any other driver (LD_PRELOAD): it says
 * what is not true, and refuses what those refuse. Nothing else of it is small.
 *
 * No queue with profiling (V3D); at most 128 items in a group, and 64 in one of a kernel (Vivante);
 * 16 KiB of local memory (V3D), or RP_SMALL_DEVICE_LOCAL bytes; one compute unit, 1 MHz (Adreno,
 * V3D); no buffer above 64 MiB. With RP_SMALL_DEVICE_APART it has memory of its own, and the
 * machine so many bytes. With RP_SMALL_DEVICE_ALIGN parts of a buffer begin at multiples of so many
 * bytes (512: NVIDIA). While RP_SMALL_DEVICE_FAILS is "now", all work fails. */
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROUP_ITEMS = 128, KERNEL_ITEMS = 64 };
static const cl_ulong BUFFER_BYTES = 64 << 20;

static cl_ulong local_memory(void) {
    const char *given = getenv("RP_SMALL_DEVICE_LOCAL");
    return given ? strtoull(given, NULL, 10) : 16384;
}

/* The same function of the driver below. ISO C has no way from an object to a function. */
static void *below(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        (void)fprintf(stderr, "small_device: no %s below\n", name);
        abort();
    }
    return found;
}

#define BELOW(type, name)                                                                          \
    type name;                                                                                     \
    {                                                                                              \
        void *at = below(&#name[6]);                                                               \
        memcpy(&name, &at, sizeof name);                                                           \
    }

/* What was refused, for a person who looks for the reason. */
static cl_int refuse(cl_int code, const char *why) {
    if (getenv("RP_SMALL_DEVICE_TELLS")) {
        (void)fprintf(stderr, "small_device: %s\n", why);
    }
    return code;
}

typedef long sysconf_function(int);

long sysconf(int name) {
    BELOW(sysconf_function *, below_sysconf)
    const char *given = getenv("RP_SMALL_DEVICE_APART");
    return given && name == _SC_PHYS_PAGES ? strtol(given, NULL, 10) / below_sysconf(_SC_PAGESIZE)
                                           : below_sysconf(name);
}

typedef cl_int info_function(cl_device_id, cl_device_info, size_t, void *, size_t *);

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void *value,
                       size_t *actual) {
    BELOW(info_function *, below_clGetDeviceInfo)
    const cl_int code = below_clGetDeviceInfo(device, what, bytes, value, actual);
    if (code != CL_SUCCESS || !value) {
        return code;
    }
    size_t *sizes = value;
    switch (what) {
    case CL_DEVICE_TYPE:
        *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
        break;
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        sizes[0] = GROUP_ITEMS;
        break;
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        sizes[0] = sizes[1] = GROUP_ITEMS;
        sizes[2] = KERNEL_ITEMS;
        break;
    case CL_DEVICE_LOCAL_MEM_SIZE:
        *(cl_ulong *)value = local_memory();
        break;
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        *(cl_bool *)value = getenv("RP_SMALL_DEVICE_APART") ? CL_FALSE : CL_TRUE;
        break;
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        *(cl_ulong *)value = BUFFER_BYTES;
        break;
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
        if (getenv("RP_SMALL_DEVICE_ALIGN")) {
            *(cl_uint *)value = 8 * (cl_uint)strtoul(getenv("RP_SMALL_DEVICE_ALIGN"), NULL, 10);
        }
        break;
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        *(cl_uint *)value = 1;
        break;
    default:
        break;
    }
    return CL_SUCCESS;
}

typedef cl_command_queue queue_function(cl_context, cl_device_id, cl_command_queue_properties,
                                        cl_int *);

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int *code) {
    BELOW(queue_function *, below_clCreateCommandQueue)
    if (properties) {
        if (code) {
            *code = refuse(CL_INVALID_QUEUE_PROPERTIES, "a queue with properties");
        }
        return NULL;
    }
    return below_clCreateCommandQueue(context, device, properties, code);
}

typedef cl_mem buffer_function(cl_context, cl_mem_flags, size_t, void *, cl_int *);

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                      cl_int *code) {
    BELOW(buffer_function *, below_clCreateBuffer)
    if (bytes > BUFFER_BYTES) {
        if (code) {
            *code = refuse(CL_INVALID_BUFFER_SIZE, "a buffer that is too large");
        }
        return NULL;
    }
    return below_clCreateBuffer(context, flags, bytes, host, code);
}

typedef cl_int kernel_function(cl_kernel, cl_device_id, cl_kernel_work_group_info, size_t, void *,
                               size_t *);

cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                cl_kernel_work_group_info what, size_t bytes, void *value,
                                size_t *actual) {
    BELOW(kernel_function *, below_clGetKernelWorkGroupInfo)
    const cl_int code = below_clGetKernelWorkGroupInfo(kernel, device, what, bytes, value, actual);
    if (code == CL_SUCCESS && value && what == CL_KERNEL_WORK_GROUP_SIZE) {
        *(size_t *)value = KERNEL_ITEMS;
    }
    return code;
}

static bool work_fails(void) {
    const char *when = getenv("RP_SMALL_DEVICE_FAILS");
    return when && strcmp(when, "now") == 0;
}

typedef cl_int wait_function(cl_uint, const cl_event *);

cl_int clWaitForEvents(cl_uint count, const cl_event *events) {
    BELOW(wait_function *, below_clWaitForEvents)
    const cl_int code = below_clWaitForEvents(count, events);
    return work_fails() ? refuse(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "a wait") : code;
}

typedef cl_int event_function(cl_event, cl_event_info, size_t, void *, size_t *);

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t bytes, void *value,
                      size_t *actual) {
    BELOW(event_function *, below_clGetEventInfo)
    const cl_int code = below_clGetEventInfo(event, what, bytes, value, actual);
    if (code == CL_SUCCESS && value && what == CL_EVENT_COMMAND_EXECUTION_STATUS && work_fails()) {
        *(cl_int *)value = CL_OUT_OF_RESOURCES;
    }
    return code;
}

typedef cl_int run_function(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                            const size_t *, cl_uint, const cl_event *, cl_event *);

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint count, const cl_event *wait, cl_event *event) {
    BELOW(run_function *, below_clEnqueueNDRangeKernel)
    cl_ulong local_bytes = 0;
    cl_device_id device = NULL;
    size_t items = 1;
    for (cl_uint d = 0; local && d < dimensions; d++) {
        items *= local[d];
    }
    char name[128] = "";
    char why[256];
    (void)clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    if (items > KERNEL_ITEMS) {
        (void)snprintf(why, sizeof why, "%s: a group of %zu items", name, items);
        return refuse(CL_INVALID_WORK_GROUP_SIZE, why);
    }
    (void)clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    (void)clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes,
                                   &local_bytes, NULL);
    if (local_bytes > local_memory()) {
        (void)snprintf(why, sizeof why, "%s: %llu bytes of local memory", name,
                       (unsigned long long)local_bytes);
        return refuse(CL_OUT_OF_RESOURCES, why);
    }
    return below_clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count,
                                        wait, event);
}
