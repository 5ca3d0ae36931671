#include "transport/buffer.h"

#include <string.h>

#include "base/arena.h"

enum { BODY = 64 }; /* the bytes follow the struct at this offset */

static void destroy_owned(rp_buffer *buffer) {
    rp_block_free(buffer);
}

rp_err rp_buffer_new(size_t bytes, rp_buffer **out, void **memory) {
    size_t total;
    void *block;
    *out = NULL;
    if (!rp_add_size(bytes, BODY, &total)) {
        return rp_fail(RP_ERR_MEMORY, "a buffer of %zu bytes overflows", bytes);
    }
    rp_err err = rp_block_new(total, &block);
    if (err != RP_OK) {
        return err;
    }
    rp_buffer *buffer = block;
    *memory = (char *)block + BODY;
    buffer->data = *memory;
    buffer->bytes = bytes;
    buffer->destroy = destroy_owned;
    atomic_init(&buffer->references, 1);
    *out = buffer;
    return RP_OK;
}

void rp_buffer_borrow(rp_buffer *buffer, const void *data, size_t bytes) {
    buffer->data = data;
    buffer->bytes = bytes;
    buffer->destroy = NULL;
    atomic_init(&buffer->references, 1);
}

bool rp_buffer_is_borrowed(const rp_buffer *buffer) {
    return !buffer->destroy;
}

bool rp_buffer_is_lent(const rp_buffer *buffer) {
    return atomic_load_explicit(&buffer->references, memory_order_acquire) > 1;
}

rp_buffer *rp_buffer_keep(rp_buffer *buffer) {
    atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

void rp_buffer_drop(rp_buffer **buffer_taken) {
    rp_buffer *buffer = *buffer_taken;
    *buffer_taken = NULL;
    if (!buffer) {
        return;
    }
    /* a borrowed buffer may be gone once its count is decreased */
    void (*destroy)(rp_buffer *) = buffer->destroy;
    if (atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) == 1 && destroy) {
        destroy(buffer);
    }
}

rp_err rp_buffer_keep_owned(rp_buffer *buffer, rp_buffer **out) {
    if (!rp_buffer_is_borrowed(buffer)) {
        *out = rp_buffer_keep(buffer);
        return RP_OK;
    }
    void *memory;
    rp_err err = rp_buffer_new(buffer->bytes, out, &memory);
    if (err == RP_OK && buffer->bytes) {
        memcpy(memory, buffer->data, buffer->bytes);
    }
    return err;
}
