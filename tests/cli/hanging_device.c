/* Between an agent and its driver (LD_PRELOAD): a device that hangs. The first process that takes
 * the file which RP_HANG names away gets one: what it enqueues from then on never begins, so that
 * whoever waits for the device waits for ever. Its threads go on, and so do its links. */
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In-order queues: all that comes after a barrier on an event that nobody sets. */
static void hang(cl_command_queue queue) {
    cl_context context;
    cl_event never;
    if (clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(cl_context), &context, NULL) !=
        CL_SUCCESS) {
        abort();
    }
    never = clCreateUserEvent(context, NULL);
    if (!never || clEnqueueBarrierWithWaitList(queue, 1, &never, NULL) != CL_SUCCESS) {
        abort();
    }
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint wait_count, const cl_event *wait, cl_event *event) {
    cl_int (*below)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                    const size_t *, cl_uint, const cl_event *, cl_event *);
    const char *file = getenv("RP_HANG");
    void *found = dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    if (!found) {
        abort();
    }
    memcpy(&below, &found, sizeof below);
    if (file && unlink(file) == 0) {
        hang(queue);
    }
    return below(queue, kernel, dimensions, offset, global, local, wait_count, wait, event);
}
