/* Encode and decode one message header; decide from the header alone what the parts must be.
 *
 * Every byte that comes in has a limit that was decided before it came: a header of at most 512
 * bytes, at most 8 parts, each of the size that the header names, shape x type = bytes. */
#ifndef RP_WIRE_FRAME_H
#define RP_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/shape.h"
#include "ringpipe.pb.h" /* generated: rp_Header, rp_Kind */

enum { RP_WIRE_VERSION = 1, RP_HEADER_BYTES_MAX = 512, RP_PARTS_MAX = 8 };

typedef struct {
    const void *data;
    size_t bytes;
} rp_part;

/* out has RP_HEADER_BYTES_MAX bytes. Fills version, part_bytes and payload_hash from the parts;
 * what is no printable UTF-8 in `text` becomes '?', so that a fault can always be told.
 * errors  FORMAT: unknown kind, shapes that do not fit the parts, text together with more than one
 *         shape; LIMIT: parts. A header without errors always fits. */
rp_err rp_frame_encode(rp_Header *header, const rp_part *parts, uint32_t part_count, uint8_t *out,
                       size_t *bytes) RP_MUST_CHECK;

/* The same bytes again after a change of run, seq, ack, credit, session or peer: no hashing. */
rp_err rp_frame_write(const rp_Header *header, uint8_t *out, size_t *bytes) RP_MUST_CHECK;

/* errors FORMAT: version, unknown kind, count, a shape whose product times 4 is not the part's
 * size (f32 kinds: INPUT ACTIVATION GRADIENT TENSOR), a part above `part_bytes_max` */
rp_err rp_frame_decode(const uint8_t *bytes, size_t count, size_t part_bytes_max,
                       rp_Header *out) RP_MUST_CHECK;

/* The frames that came against the header: number, sizes, hash. errors FORMAT */
rp_err rp_frame_check_parts(const rp_Header *header, const rp_part *parts,
                            uint32_t part_count) RP_MUST_CHECK;

/* What the link does with a kind: data parcels count against the window, unnumbered kinds are below
 * the reliable stream. */
bool rp_frame_is_data(rp_Kind kind);
bool rp_frame_is_numbered(rp_Kind kind);

/* Shapes to and from the header; at most RP_PARTS_MAX. errors FORMAT: no shape `index` */
void rp_frame_add_shape(rp_Header *header, const rp_shape *shape);
rp_err rp_frame_shape(const rp_Header *header, uint32_t index, rp_shape *out) RP_MUST_CHECK;

#endif
