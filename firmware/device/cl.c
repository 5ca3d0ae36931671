#include "device/cl.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    cl_int code;
    const char *text;
} cl_codes[] = {
    {CL_DEVICE_NOT_FOUND, "device not found"},
    {CL_DEVICE_NOT_AVAILABLE, "device not available"},
    {CL_COMPILER_NOT_AVAILABLE, "compiler not available"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "memory object allocation failure"},
    {CL_OUT_OF_RESOURCES, "out of resources"},
    {CL_OUT_OF_HOST_MEMORY, "out of host memory"},
    {CL_BUILD_PROGRAM_FAILURE, "build program failure"},
    {CL_MISALIGNED_SUB_BUFFER_OFFSET, "misaligned sub-buffer offset"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "an event waited for has failed"},
    {CL_INVALID_VALUE, "invalid value"},
    {CL_INVALID_QUEUE_PROPERTIES, "invalid queue properties"},
    {CL_INVALID_MEM_OBJECT, "invalid memory object"},
    {CL_INVALID_BINARY, "invalid binary"},
    {CL_INVALID_BUILD_OPTIONS, "invalid build options"},
    {CL_INVALID_KERNEL_NAME, "no kernel of this name"},
    {CL_INVALID_ARG_INDEX, "invalid argument index"},
    {CL_INVALID_ARG_VALUE, "invalid argument value"},
    {CL_INVALID_ARG_SIZE, "invalid argument size"},
    {CL_INVALID_KERNEL_ARGS, "an argument is not set"},
    {CL_INVALID_WORK_GROUP_SIZE, "invalid work-group size"},
    {CL_INVALID_WORK_ITEM_SIZE, "invalid work-item size"},
    {CL_INVALID_BUFFER_SIZE, "invalid buffer size"},
    {CL_INVALID_GLOBAL_WORK_SIZE, "invalid global work size"},
    {-1001, "no OpenCL driver installed"},
};

const char *rp_cl_text(cl_int code) {
    for (size_t i = 0; i < sizeof cl_codes / sizeof *cl_codes; i++) {
        if (cl_codes[i].code == code) {
            return cl_codes[i].text;
        }
    }
    return "OpenCL error";
}

rp_err rp_cl_at(cl_int code, const char *file, int line, const char *format, ...) {
    if (code == CL_SUCCESS) {
        return RP_OK;
    }
    char what[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return rp_fail_at(code == CL_MEM_OBJECT_ALLOCATION_FAILURE ? RP_ERR_MEMORY : RP_ERR_DEVICE,
                      file, line, "%s: %s (OpenCL %d)", what, rp_cl_text(code), code);
}
