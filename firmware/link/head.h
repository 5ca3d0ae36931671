/* Frame 0 on the wire: the encoded rp_Frame, then its 8-byte checksum (XXH3-64, little endian). The
 * hash in rp_Frame covers only the parts, but a damaged ack or step number would do harm as
 * well. */
#ifndef RP_LINK_HEAD_H
#define RP_LINK_HEAD_H

#include "transport/buffer.h"
#include "wire/frame.h"

enum { RP_HEAD_SUM_BYTES = 8, RP_HEAD_BYTES_MAX = RP_FRAME_BYTES_MAX + RP_HEAD_SUM_BYTES };

/* *out is one owned reference. errors those of rp_frame_write(), MEMORY */
rp_err rp_head_write(const rp_Frame *frame, rp_buffer **out) RP_MUST_CHECK;

/* errors  FORMAT: a wrong checksum (not logged, because lines damage frames), and those of
 *         rp_frame_decode() */
rp_err rp_head_read(const rp_buffer *head, size_t part_bytes_max, rp_Frame *out) RP_MUST_CHECK;

/* Appends the checksum to `count` encoded bytes and returns the new count. */
size_t rp_head_seal(uint8_t *bytes, size_t count);

#endif
