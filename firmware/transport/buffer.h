/* The memory of one frame, counted: who holds a reference may read it, nobody writes it.
 *
 * An owned buffer is freed by whoever drops its last reference, in any thread. A borrowed one is
 * memory of somebody else: its owner may reuse the memory when rp_buffer_is_lent() says false. */
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

/* An owned buffer with one reference; *memory is where its maker writes the bytes.
 * errors  MEMORY */
rp_err rp_buffer_new(size_t bytes, rp_buffer **out, void **memory) RP_MUST_CHECK;

/* Makes `buffer`, a struct of the caller, stand for memory of the caller; one reference, the
 * caller's own. */
void rp_buffer_borrow(rp_buffer *buffer, const void *data, size_t bytes);
bool rp_buffer_is_borrowed(const rp_buffer *buffer);
/* Somebody beside the owner may still read it. */
bool rp_buffer_is_lent(const rp_buffer *buffer);

rp_buffer *rp_buffer_keep(rp_buffer *buffer); /* one more reference */
void rp_buffer_drop(rp_buffer **buffer);      /* one less; NULL is accepted */

/* A reference that may outlive the owner's memory: to the same buffer, or to a copy of a borrowed
 * one.
 * errors  MEMORY */
rp_err rp_buffer_keep_owned(rp_buffer *buffer, rp_buffer **out) RP_MUST_CHECK;

#endif
