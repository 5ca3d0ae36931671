#include <string.h>

#include "device/cl.h"
#include "device/device_own.h"

typedef struct taken {
    struct taken *next;
    rp_buffer buffer;
} taken;

struct rp_darena {
    rp_arena *arena;
    rp_device *device;
    const char *name;
    size_t limit_bytes;
    size_t used_bytes;
    rp_buffer chunk; /* .bytes 0: every take creates its own buffer */
    bool sealed;
    taken *list;
};

static void count_bytes(rp_device *device, size_t add, size_t remove) {
    device->used_bytes += add;
    device->used_bytes -= remove;
    if (device->used_bytes > device->used_bytes_max) {
        device->used_bytes_max = device->used_bytes;
    }
}

size_t rp_device_used_bytes(const rp_device *device) {
    return device->used_bytes;
}

size_t rp_device_used_bytes_max(const rp_device *device) {
    return device->used_bytes_max;
}

void rp_device_reset_used_bytes_max(rp_device *device) {
    device->used_bytes_max = device->used_bytes;
}

void rp_device_limit_bytes(rp_device *device, size_t limit) {
    device->used_bytes_limit = limit;
}

size_t rp_darena_round(size_t bytes, uint32_t align_bytes) {
    size_t whole = bytes == 0 ? 1 : bytes;
    size_t rest = whole % align_bytes;
    return rest == 0 ? whole : whole + (align_bytes - rest);
}

static rp_err create_buffer(rp_device *device, const char *name, size_t bytes, char *host,
                            rp_buffer *out) {
    if (bytes > device->facts.alloc_bytes_max) {
        return rp_fail(
            RP_ERR_MEMORY, "device memory %s: %zu bytes in one piece, %s gives at most %llu", name,
            bytes, device->facts.name, (unsigned long long)device->facts.alloc_bytes_max);
    }
    const size_t limit = device->used_bytes_limit;
    if (limit > 0 && (device->used_bytes > limit || bytes > limit - device->used_bytes)) {
        return rp_fail(RP_ERR_LIMIT,
                       "device memory %s: %zu bytes in addition to the %zu in use exceed this "
                       "run's limit of %zu (ring.memory_mb)",
                       name, bytes, device->used_bytes, limit);
    }
    cl_int code;
    cl_mem memory = clCreateBuffer(
        device->context,
        CL_MEM_READ_WRITE | (cl_mem_flags)(host ? CL_MEM_USE_HOST_PTR : CL_MEM_ALLOC_HOST_PTR),
        bytes, host, &code);
    if (code != CL_SUCCESS) {
        return rp_fail(RP_ERR_MEMORY, "device memory %s: %zu bytes: %s (OpenCL %d)", name, bytes,
                       rp_cl_text(code), code);
    }
    *out = (rp_buffer){memory, bytes, host};
    rp_err err = rp_buffer_fill_zero(device, out, 0, bytes);
    if (err != RP_OK) {
        (void)clReleaseMemObject(memory);
        return err;
    }
    count_bytes(device, bytes, 0);
    return RP_OK;
}

rp_err rp_darena_open(rp_arena *arena, rp_device *device, const char *name, size_t limit_bytes,
                      size_t chunk_bytes, rp_darena **out) {
    rp_darena *made = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &made));
    *made = (rp_darena){.arena = arena, .device = device, .name = name};
    made->limit_bytes = limit_bytes ? limit_bytes : (size_t)device->facts.memory_bytes;
    if (chunk_bytes > 0) {
        size_t bytes = rp_darena_round(chunk_bytes, device->facts.align_bytes);
        if (limit_bytes && chunk_bytes > limit_bytes) {
            return rp_fail(RP_ERR_MEMORY,
                           "device arena %s: a chunk of %zu bytes exceeds the limit of %zu", name,
                           chunk_bytes, limit_bytes);
        }
        RP_TRY(create_buffer(device, name, bytes, NULL, &made->chunk));
    }
    *out = made;
    return RP_OK;
fail:
    return err;
}

rp_err rp_darena_open_in(rp_arena *arena, rp_device *device, const char *name, size_t chunk_bytes,
                         char *host, rp_darena **out) {
    rp_darena *made = NULL;
    rp_err err;
    RP_TRY(rp_darena_open(arena, device, name, 0, 0, &made));
    RP_TRY(create_buffer(device, name, rp_darena_round(chunk_bytes, device->facts.align_bytes),
                         host, &made->chunk));
    *out = made;
fail:
    return err;
}

void rp_darena_close(rp_darena **pointer) {
    rp_darena *arena = *pointer;
    *pointer = NULL;
    if (!arena) {
        return;
    }
    for (taken *item = arena->list; item; item = item->next) {
        (void)clReleaseMemObject(item->buffer.memory);
    }
    if (arena->chunk.memory) {
        (void)clReleaseMemObject(arena->chunk.memory);
        count_bytes(arena->device, 0, arena->chunk.bytes);
    } else {
        count_bytes(arena->device, 0, arena->used_bytes);
    }
    *arena = (rp_darena){0};
}

static rp_err cut_chunk(rp_darena *arena, size_t bytes, rp_buffer *out) {
    cl_buffer_region region = {arena->used_bytes, bytes};
    cl_int code;
    cl_mem memory = clCreateSubBuffer(arena->chunk.memory, CL_MEM_READ_WRITE,
                                      CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    *out = (rp_buffer){memory, bytes, NULL};
    return rp_cl(code, "device arena %s: part of %zu bytes at %zu", arena->name, bytes,
                 arena->used_bytes);
}

rp_err rp_darena_take(rp_darena *arena, size_t bytes, rp_buffer **out) {
    RP_ASSERT(!arena->sealed);
    size_t limit = arena->chunk.memory ? arena->chunk.bytes : arena->limit_bytes;
    size_t room = limit - arena->used_bytes;
    size_t rounded = 0;
    if (bytes <= room) {
        rounded = rp_darena_round(bytes, arena->device->facts.align_bytes);
    }
    if (bytes > room || (arena->chunk.memory && rounded > room)) {
        return rp_fail(RP_ERR_MEMORY,
                       "device arena %s: no room for %zu bytes, %zu of %zu are in use", arena->name,
                       bytes, arena->used_bytes, limit);
    }
    taken *item = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena->arena, 1, &item));
    if (arena->chunk.memory) {
        RP_TRY(cut_chunk(arena, rounded, &item->buffer));
    } else {
        rounded = bytes == 0 ? 4 : bytes;
        RP_TRY(create_buffer(arena->device, arena->name, rounded, NULL, &item->buffer));
    }
    item->next = arena->list;
    arena->list = item;
    arena->used_bytes += rounded;
    *out = &item->buffer;
    return RP_OK;
fail:
    return err;
}

void rp_darena_seal(rp_darena *arena) {
    arena->sealed = true;
}

size_t rp_darena_used_bytes(const rp_darena *arena) {
    return arena->used_bytes;
}

size_t rp_buffer_bytes(const rp_buffer *buffer) {
    return buffer->bytes;
}

rp_buffer *rp_darena_whole(rp_darena *arena) {
    RP_ASSERT(arena->chunk.memory != NULL);
    return &arena->chunk;
}
