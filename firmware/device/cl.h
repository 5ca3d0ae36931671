/* Converts OpenCL's codes to our errors. Private to the room. */
#ifndef RP_DEVICE_CL_H
#define RP_DEVICE_CL_H

#include <CL/cl.h>

#include "base/err.h"

/* RP_OK for CL_SUCCESS; otherwise logs the message with the name and number of the code. */
#define rp_cl(code, ...) rp_cl_at((code), __FILE__, __LINE__, __VA_ARGS__)
rp_err rp_cl_at(cl_int code, const char *file, int line, const char *format, ...) RP_MUST_CHECK
    RP_PRINTF(4, 5);
const char *rp_cl_text(cl_int code);

#endif
