#include "wire/trace.h"

enum { EVALUATION = 0x100, STAGE_BIT = 16 };

static void put_u64(uint8_t *at, uint64_t value) {
    for (int i = 0; i < 8; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get_u64(const uint8_t *at) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | at[i];
    }
    return value;
}

void rp_trace_pack(const rp_trace_record *record, uint8_t out[RP_TRACE_BYTES]) {
    put_u64(out, record->kind | (record->evaluation ? (uint64_t)EVALUATION : 0) |
                     (uint64_t)record->stage << STAGE_BIT);
    put_u64(out + 8, record->step);
    put_u64(out + 16, (uint64_t)record->first | (uint64_t)record->count << 32);
    put_u64(out + 24, (uint64_t)record->start_ns);
    put_u64(out + 32, (uint64_t)record->end_ns);
}

rp_trace_record rp_trace_unpack(const uint8_t bytes[RP_TRACE_BYTES]) {
    const uint64_t kind = get_u64(bytes);
    const uint64_t samples = get_u64(bytes + 16);
    return (rp_trace_record){.kind = (uint8_t)kind,
                             .evaluation = (kind & EVALUATION) != 0,
                             .stage = (uint16_t)(kind >> STAGE_BIT),
                             .step = get_u64(bytes + 8),
                             .first = (uint32_t)samples,
                             .count = (uint32_t)(samples >> 32),
                             .start_ns = (int64_t)get_u64(bytes + 24),
                             .end_ns = (int64_t)get_u64(bytes + 32)};
}
