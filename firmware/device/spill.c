#include "device/spill.h"

#include <string.h>

#include "device/cl.h"
#include "device/spill_own.h"

enum { LEAVING = RP_SPILL_LEAVING, ARRIVING = RP_SPILL_ARRIVING, WAYS = RP_SPILL_WAYS };

struct rp_spill {
    rp_device *device;
    cl_command_queue queue[WAYS];
    cl_mem memory; /* host memory that drivers copy from and to fastest */
    char *entry;
    rp_spill_flash *flash; /* replaces both; else NULL */
    uint32_t entries;
    size_t entry_bytes;
};

rp_event rp_event_copy(const rp_event *of) {
    if (of->event) {
        (void)clRetainEvent(of->event);
    }
    return *of;
}

void rp_event_release(rp_event *event) {
    if (event->event) {
        (void)clReleaseEvent(event->event);
    }
    *event = (rp_event){0};
}

static rp_err open_memory(rp_spill *spill) {
    const size_t bytes = spill->entries * spill->entry_bytes;
    cl_int code;
    spill->memory = clCreateBuffer(spill->device->context,
                                   CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
    if (code == CL_SUCCESS) {
        spill->entry =
            clEnqueueMapBuffer(spill->queue[LEAVING], spill->memory, CL_TRUE,
                               CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &code);
    }
    return code == CL_SUCCESS
               ? RP_OK
               : rp_fail(RP_ERR_MEMORY, "host memory for %u stashes of %zu bytes: %s (OpenCL %d)",
                         spill->entries, spill->entry_bytes, rp_cl_text(code), code);
}

rp_err rp_spill_open(rp_arena *arena, rp_device *device, uint32_t entries, size_t entry_bytes,
                     const char *folder, rp_spill **out) {
    rp_spill *spill = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &spill));
    *spill = (rp_spill){.device = device, .entries = entries, .entry_bytes = entry_bytes};
    for (uint32_t way = 0; way < WAYS; way++) {
        cl_int code;
        spill->queue[way] = clCreateCommandQueue(device->context, device->id, 0, &code);
        RP_TRY(rp_cl(code, "a queue for copies on %s", device->facts.name));
    }
    RP_TRY(folder ? rp_spill_flash_open(arena, device, spill->queue, entries, entry_bytes, folder,
                                        &spill->flash)
                  : open_memory(spill));
    *out = spill;
    return RP_OK;
fail:
    rp_spill_close(&spill);
    return err;
}

void rp_spill_close(rp_spill **pointer) {
    rp_spill *spill = *pointer;
    *pointer = NULL;
    if (!spill) {
        return;
    }
    rp_spill_flash_close(&spill->flash);
    if (spill->entry) {
        (void)clEnqueueUnmapMemObject(spill->queue[LEAVING], spill->memory, spill->entry, 0, NULL,
                                      NULL);
    }
    for (uint32_t way = 0; way < WAYS; way++) {
        if (spill->queue[way]) {
            (void)clFinish(spill->queue[way]);
            (void)clReleaseCommandQueue(spill->queue[way]);
        }
    }
    if (spill->memory) {
        (void)clReleaseMemObject(spill->memory);
    }
    *spill = (rp_spill){0};
}

rp_err rp_spill_point(rp_spill *spill, rp_event *out) {
    cl_event event;
    rp_err err;
    *out = (rp_event){0};
    if (spill->device->rehearses) {
        return RP_OK;
    }
    RP_TRY(rp_cl(clEnqueueMarkerWithWaitList(spill->device->queue, 0, NULL, &event), "a point"));
    *out = (rp_event){event};
    RP_TRY(rp_cl(clFlush(spill->device->queue), "flush"));
fail:
    return err;
}

rp_err rp_spill_await(rp_spill *spill, const rp_event *event) {
    const cl_event it = event->event;
    return it ? rp_cl(clEnqueueBarrierWithWaitList(spill->device->queue, 1, &it, NULL), "a wait")
              : RP_OK;
}

static char *entry_of(const rp_spill *spill, uint32_t entry) {
    return spill->entry + entry * spill->entry_bytes;
}

static rp_err check_entry(const rp_spill *spill, const rp_buffer *buffer, uint32_t entry) {
    return entry < spill->entries && buffer->bytes >= spill->entry_bytes
               ? RP_OK
               : rp_fail(RP_ERR_LIMIT, "copy of %zu bytes: entry %u of %u, a buffer of %zu",
                         spill->entry_bytes, entry, spill->entries, buffer->bytes);
}

rp_err rp_spill_leave(rp_spill *spill, const rp_buffer *from, uint32_t entry, const rp_event *after,
                      rp_event *done) {
    const cl_event wait = after->event;
    const cl_uint waits = wait ? 1 : 0;
    cl_event event;
    rp_err err;
    *done = (rp_event){0};
    RP_TRY(check_entry(spill, from, entry));
    if (spill->device->rehearses) {
        return RP_OK;
    }
    if (spill->flash) {
        RP_TRY(rp_spill_flash_put(spill->flash, LEAVING, from, entry, &wait, waits, &event));
        *done = (rp_event){event};
        return RP_OK;
    }
    RP_TRY(rp_cl(clEnqueueReadBuffer(spill->queue[LEAVING], from->memory, CL_FALSE, 0,
                                     spill->entry_bytes, entry_of(spill, entry), waits,
                                     waits ? &wait : NULL, &event),
                 "copying out a stash of %zu bytes", spill->entry_bytes));
    *done = (rp_event){event};
    RP_TRY(rp_cl(clFlush(spill->queue[LEAVING]), "flush"));
fail:
    return err;
}

rp_err rp_spill_arrive(rp_spill *spill, rp_buffer *to, uint32_t entry, const rp_event *const *after,
                       uint32_t after_count, rp_event *done) {
    cl_event wait[RP_SPILL_WAITS_MAX];
    cl_uint waits = 0;
    cl_event event;
    rp_err err;
    *done = (rp_event){0};
    RP_ASSERT(after_count <= RP_SPILL_WAITS_MAX);
    RP_TRY(check_entry(spill, to, entry));
    if (spill->device->rehearses) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < after_count; i++) {
        if (after[i]->event) {
            wait[waits++] = after[i]->event;
        }
    }
    if (spill->flash) {
        RP_TRY(rp_spill_flash_put(spill->flash, ARRIVING, to, entry, wait, waits, &event));
        *done = (rp_event){event};
        return RP_OK;
    }
    RP_TRY(rp_cl(clEnqueueWriteBuffer(spill->queue[ARRIVING], to->memory, CL_FALSE, 0,
                                      spill->entry_bytes, entry_of(spill, entry), waits,
                                      waits ? wait : NULL, &event),
                 "copying back a stash of %zu bytes", spill->entry_bytes));
    *done = (rp_event){event};
    RP_TRY(rp_cl(clFlush(spill->queue[ARRIVING]), "flush"));
fail:
    return err;
}

rp_err rp_spill_check(rp_spill *spill) {
    return spill->flash ? rp_spill_flash_check(spill->flash) : RP_OK;
}

rp_err rp_spill_drain(rp_spill *spill) {
    rp_err err = RP_OK;
    if (spill->flash) { /* first, so that no copy waits for a thread */
        RP_TRY(rp_spill_flash_drain(spill->flash));
    }
    for (uint32_t way = 0; way < WAYS; way++) {
        RP_TRY(rp_cl(clFinish(spill->queue[way]), "finish of copies"));
    }
    RP_TRY(rp_spill_check(spill));
fail:
    return err;
}

rp_err rp_spill_move(rp_spill *spill, uint32_t entry, size_t at, size_t bytes, const char *in,
                     char *out) {
    RP_ASSERT(entry < spill->entries && at + bytes <= spill->entry_bytes);
    if (spill->flash) {
        return rp_spill_flash_move(spill->flash, entry, at, bytes, in, out);
    }
    memcpy(in ? entry_of(spill, entry) + at : out, in ? in : entry_of(spill, entry) + at, bytes);
    return RP_OK;
}

uint64_t rp_spill_written_bytes(rp_spill *spill) {
    return spill->flash ? rp_spill_flash_written(spill->flash) : 0;
}
