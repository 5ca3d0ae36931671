/* Records when each kernel runs on the device, for bench_kernels.py. It is loaded before the OpenCL
 * driver (LD_PRELOAD) and changes no result. Each process that launches kernels writes a file
 * KERNEL_TRACE.<pid> with a line for each launch: begin and end in ns on the device's clock, name.
 * The product's queues have profiling switched on wherever the driver offers it. */
#include <CL/cl.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PENDING_MAX = 4096 };

typedef struct {
    cl_event event;
    char name[64];
} launch;

/* Launches that are not yet written, oldest first, from `first` on. */
static launch pending[PENDING_MAX];
static size_t first, count;
static FILE *file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The same function of the driver. ISO C has no way from an object to a function. */
static void *find_below(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        (void)fprintf(stderr, "kernel_trace: the driver has no %s\n", name);
        abort();
    }
    return found;
}

#define BELOW(type, name)                                                                          \
    type name;                                                                                     \
    {                                                                                              \
        void *at = find_below(&#name[6]);                                                          \
        memcpy(&name, &at, sizeof name);                                                           \
    }

typedef cl_int wait_function(cl_uint, const cl_event *);
typedef cl_int time_function(cl_event, cl_profiling_info, size_t, void *, size_t *);
typedef cl_int release_function(cl_event);
typedef cl_int retain_function(cl_event);
typedef cl_int name_function(cl_kernel, cl_kernel_info, size_t, void *, size_t *);

static void write_oldest(void) {
    BELOW(wait_function *, below_clWaitForEvents)
    BELOW(time_function *, below_clGetEventProfilingInfo)
    BELOW(release_function *, below_clReleaseEvent)
    launch *it = &pending[first];
    cl_ulong begin = 0;
    cl_ulong end = 0;
    (void)below_clWaitForEvents(1, &it->event);
    (void)below_clGetEventProfilingInfo(it->event, CL_PROFILING_COMMAND_START, sizeof begin, &begin,
                                        NULL);
    (void)below_clGetEventProfilingInfo(it->event, CL_PROFILING_COMMAND_END, sizeof end, &end,
                                        NULL);
    (void)below_clReleaseEvent(it->event);
    if (file) {
        (void)fprintf(file, "%" PRIu64 " %" PRIu64 " %s\n", (uint64_t)begin, (uint64_t)end,
                      it->name);
    }
    first = (first + 1) % PENDING_MAX;
    count--;
}

static void open_file(void) {
    const char *stem = getenv("KERNEL_TRACE");
    char path[4096];
    if (!file && stem) {
        (void)snprintf(path, sizeof path, "%s.%d", stem, (int)getpid());
        file = fopen(path, "w");
    }
}

typedef cl_int run_function(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                            const size_t *, cl_uint, const cl_event *, cl_event *);

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint waits, const cl_event *wait, cl_event *event) {
    BELOW(run_function *, below_clEnqueueNDRangeKernel)
    BELOW(retain_function *, below_clRetainEvent)
    BELOW(name_function *, below_clGetKernelInfo)
    cl_event own = NULL;
    (void)pthread_mutex_lock(&lock);
    open_file();
    while (count == PENDING_MAX) {
        write_oldest();
    }
    const cl_int code =
        below_clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, waits, wait, &own);
    if (code == CL_SUCCESS) {
        launch *it = &pending[(first + count++) % PENDING_MAX];
        *it = (launch){.event = own};
        (void)below_clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof it->name, it->name,
                                    NULL);
        if (event) {
            (void)below_clRetainEvent(own);
            *event = own;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return code;
}

typedef cl_int queue_function(cl_command_queue);

/* The product finishes a queue before it releases it. */
cl_int clReleaseCommandQueue(cl_command_queue queue) {
    BELOW(queue_function *, below_clReleaseCommandQueue)
    (void)pthread_mutex_lock(&lock);
    while (count > 0) {
        write_oldest();
    }
    if (file) {
        (void)fflush(file);
    }
    (void)pthread_mutex_unlock(&lock);
    return below_clReleaseCommandQueue(queue);
}
