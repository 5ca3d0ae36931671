/* One op in a board's trace, as TRACE carries it: 40 bytes, little-endian.
 *
 *    0 u64  bits 0 to 7: kind of the op (sched.h); bit 8: part of an evaluation;
 *           bits 16 to 31: stage of the model (0 if the board's program is too old to report it)
 *    8 u64  step
 *   16 u32  first sample of the step, then u32 number of samples
 *   24 i64  start, then i64 end: ns by the board's clock */
#ifndef RP_WIRE_TRACE_H
#define RP_WIRE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_TRACE_BYTES = 40 };

typedef struct {
    uint8_t kind; /* the reader checks that the kind exists */
    bool evaluation;
    uint16_t stage; /* of the model: a board may hold several stages */
    uint64_t step;
    uint32_t first, count; /* samples of the step */
    int64_t start_ns, end_ns;
} rp_trace_record;

void rp_trace_pack(const rp_trace_record *record, uint8_t out[RP_TRACE_BYTES]);
rp_trace_record rp_trace_unpack(const uint8_t bytes[RP_TRACE_BYTES]);

#endif
