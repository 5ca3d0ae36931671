#include "device/cl.h"
#include "device/device_own.h"

rp_err rp_device_drain(rp_device *device) {
    return rp_cl(clFinish(device->queue), "finish");
}

/* ---- copies -------------------------------------------------------------------------------- */

static rp_err check_range(const rp_buffer *buffer, size_t offset_bytes, size_t bytes,
                          const char *what) {
    if (offset_bytes > buffer->bytes || bytes > buffer->bytes - offset_bytes) {
        return rp_fail(RP_ERR_LIMIT, "%s: %zu bytes at offset %zu exceed a buffer of %zu", what,
                       bytes, offset_bytes, buffer->bytes);
    }
    return RP_OK;
}

static rp_err write_buffer(rp_device *device, rp_buffer *to, size_t offset_bytes, const void *from,
                           size_t bytes, cl_bool wait) {
    rp_err err = check_range(to, offset_bytes, bytes, "write");
    if (err != RP_OK || bytes == 0 || device->rehearses) {
        return err;
    }
    return rp_cl(clEnqueueWriteBuffer(device->queue, to->memory, wait, offset_bytes, bytes, from, 0,
                                      NULL, NULL),
                 "write of %zu bytes", bytes);
}

static rp_err read_buffer(rp_device *device, void *to, const rp_buffer *from, size_t offset_bytes,
                          size_t bytes, cl_bool wait) {
    rp_err err = check_range(from, offset_bytes, bytes, "read");
    if (err != RP_OK || bytes == 0 || device->rehearses) {
        return err;
    }
    return rp_cl(clEnqueueReadBuffer(device->queue, from->memory, wait, offset_bytes, bytes, to, 0,
                                     NULL, NULL),
                 "read of %zu bytes", bytes);
}

rp_err rp_buffer_write(rp_device *device, rp_buffer *to, size_t offset_bytes, const void *from,
                       size_t bytes) {
    return write_buffer(device, to, offset_bytes, from, bytes, CL_FALSE);
}

rp_err rp_buffer_read(rp_device *device, void *to, const rp_buffer *from, size_t offset_bytes,
                      size_t bytes) {
    return read_buffer(device, to, from, offset_bytes, bytes, CL_FALSE);
}

rp_err rp_buffer_write_now(rp_device *device, rp_buffer *to, size_t offset_bytes, const void *from,
                           size_t bytes) {
    return write_buffer(device, to, offset_bytes, from, bytes, CL_TRUE);
}

rp_err rp_buffer_read_now(rp_device *device, void *to, const rp_buffer *from, size_t offset_bytes,
                          size_t bytes) {
    return read_buffer(device, to, from, offset_bytes, bytes, CL_TRUE);
}

rp_err rp_buffer_copy(rp_device *device, rp_buffer *to, size_t to_offset, const rp_buffer *from,
                      size_t from_offset, size_t bytes) {
    rp_err err;
    RP_TRY(check_range(to, to_offset, bytes, "copy to"));
    RP_TRY(check_range(from, from_offset, bytes, "copy from"));
    if (bytes > 0 && !device->rehearses) {
        RP_TRY(rp_cl(clEnqueueCopyBuffer(device->queue, from->memory, to->memory, from_offset,
                                         to_offset, bytes, 0, NULL, NULL),
                     "copy of %zu bytes", bytes));
    }
fail:
    return err;
}

rp_err rp_buffer_fill_zero(rp_device *device, rp_buffer *to, size_t offset_bytes, size_t bytes) {
    const cl_uchar zero = 0;
    rp_err err = check_range(to, offset_bytes, bytes, "fill");
    if (err != RP_OK || bytes == 0 || device->rehearses) {
        return err;
    }
    return rp_cl(clEnqueueFillBuffer(device->queue, to->memory, &zero, sizeof zero, offset_bytes,
                                     bytes, 0, NULL, NULL),
                 "fill of %zu bytes", bytes);
}
