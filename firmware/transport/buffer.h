/* The reference-counted, read-only memory of one frame.
 *
 * An owned buffer is freed by the thread that drops its last reference. A borrowed buffer refers to
 * memory of its owner, which may reuse it when rp_buffer_is_lent() returns false. */
#ifndef RP_TRANSPORT_BUFFER_H
#define RP_TRANSPORT_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct rp_buffer rp_buffer;

struct rp_buffer {
    const void *data; /* aligned to 8 */
    size_t bytes;
    _Atomic uint32_t references;
    void (*destroy)(rp_buffer *buffer); /* NULL: borrowed */
};

/* Creates an owned buffer with one reference; its creator writes the bytes to *memory.
 * errors  MEMORY */
rp_err rp_buffer_new(size_t bytes, rp_buffer **out, void **memory) RP_MUST_CHECK;

/* Makes `buffer`, a struct of the caller, refer to memory of the caller, with one reference, which
 * the caller owns. */
void rp_buffer_borrow(rp_buffer *buffer, const void *data, size_t bytes);
bool rp_buffer_is_borrowed(const rp_buffer *buffer);
/* Whether anything except the owner may still read it. */
bool rp_buffer_is_lent(const rp_buffer *buffer);

rp_buffer *rp_buffer_keep(rp_buffer *buffer); /* adds a reference */
void rp_buffer_drop(rp_buffer **buffer);      /* drops a reference; NULL is accepted */

/* Returns a reference that may outlive the owner's memory: to the same buffer, or to a copy of a
 * borrowed one. errors MEMORY */
rp_err rp_buffer_keep_owned(rp_buffer *buffer, rp_buffer **out) RP_MUST_CHECK;

#endif
