/* A chunk in host memory that device and host use in place. OpenCL is given the host memory's
 * address, so the pointer that a driver returns for it can be checked. */
#include <string.h>

#include "base/log.h"
#include "device/cl.h"
#include "device/device_own.h"
#include "device/flash.h"

enum { TRIED = 64, ROUNDS = 2 };

static bool is_all(const char *bytes, char byte) {
    bool same = true;
    for (size_t i = 0; i < TRIED; i++) {
        same = same && bytes[i] == byte;
    }
    return same;
}

/* Tests that the host sees what the device writes, and vice versa. */
static rp_err try_at(rp_device *device, const rp_buffer *chunk, size_t at, char by_device,
                     char by_host, bool *same) {
    char seen[TRIED];
    cl_int code;
    rp_err err;
    RP_TRY(rp_cl(
        clEnqueueFillBuffer(device->queue, chunk->memory, &by_device, 1, at, TRIED, 0, NULL, NULL),
        "filling mapped memory"));
    char *mapped =
        clEnqueueMapBuffer(device->queue, chunk->memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                           chunk->bytes, 0, NULL, NULL, &code);
    RP_TRY(rp_cl(code, "mapping memory"));
    *same = mapped == chunk->host && is_all(mapped + at, by_device);
    if (*same) { /* otherwise leave the memory alone */
        memset(mapped + at, by_host, TRIED);
    }
    RP_TRY(rp_cl(clEnqueueUnmapMemObject(device->queue, chunk->memory, mapped, 0, NULL, NULL),
                 "unmapping memory"));
    RP_TRY(rp_cl(
        clEnqueueReadBuffer(device->queue, chunk->memory, CL_TRUE, at, TRIED, seen, 0, NULL, NULL),
        "reading mapped memory"));
    *same = *same && is_all(seen, by_host);
fail:
    return err;
}

/* Twice, for drivers that fail after an unmap; at both ends. */
static rp_err try_mapping(rp_device *device, const rp_buffer *chunk, bool *works) {
    rp_err err;
    *works = true;
    for (uint32_t i = 0; i < 2 * ROUNDS && *works; i++) {
        const size_t at = i % 2 ? chunk->bytes - TRIED : 0;
        RP_TRY(try_at(device, chunk, at, (char)(0x5a + (int)i), (char)(0x21 + (int)i), works));
    }
    RP_TRY(rp_buffer_fill_zero(device, (rp_buffer *)(uintptr_t)chunk, 0, chunk->bytes));
fail:
    return err;
}

rp_err rp_darena_open_mapped(rp_arena *arena, rp_device *device, const char *name,
                             size_t chunk_bytes, rp_darena **out) {
    char *host;
    bool works = false;
    rp_err err;
    if (!device->facts.unified || device->rehearses || chunk_bytes < TRIED) {
        return rp_darena_open(arena, device, name, 0, chunk_bytes, out);
    }
    RP_TRY(rp_flash_take(arena, chunk_bytes, &host));
    RP_TRY(rp_darena_open_in(arena, device, name, chunk_bytes, host, out));
    err = try_mapping(device, rp_darena_whole(*out), &works);
    if (err == RP_OK && works) {
        return RP_OK;
    }
    rp_log_warn("%s: mapped memory differs from what the device sees, so stashes are copied", name);
    rp_darena_close(out);
    RP_TRY(rp_darena_open(arena, device, name, 0, chunk_bytes, out));
fail:
    return err;
}
