/* Element types of tensors: size, and name in texts and messages. All rooms use this list; the
 * enumeration in firmware/wire has the same types and a few that are not tensor types.
 *
 * f32 is 0, so that a zeroed description means f32. i8 travels with an f32 scale for each block of
 * elements; rp_dtype_bytes() does not count the scales. */
#ifndef RP_BASE_DTYPE_H
#define RP_BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* name, bytes of an element, text */
#define RP_DTYPE_LIST(X)                                                                           \
    X(F32, 4, "f32")                                                                               \
    X(F16, 2, "f16")                                                                               \
    X(BF16, 2, "bf16")                                                                             \
    X(I8, 1, "i8")                                                                                 \
    X(I32, 4, "i32")                                                                               \
    X(U8, 1, "u8")

typedef enum {
#define X(name, bytes, text) RP_##name,
    RP_DTYPE_LIST(X)
#undef X
        RP_DTYPE_COUNT
} rp_dtype;

/* Bytes of one element; 0 for an unknown value. */
static inline size_t rp_dtype_bytes(rp_dtype type) {
    static const uint8_t sizes[] = {
#define X(name, bytes, text) bytes,
        RP_DTYPE_LIST(X)
#undef X
    };
    return (unsigned)type < RP_DTYPE_COUNT ? sizes[type] : 0;
}

/* "f32"; "unknown" for an unknown value. */
static inline const char *rp_dtype_name(rp_dtype type) {
    static const char *const names[] = {
#define X(name, bytes, text) text,
        RP_DTYPE_LIST(X)
#undef X
    };
    return (unsigned)type < RP_DTYPE_COUNT ? names[type] : "unknown";
}

/* RP_DTYPE_COUNT if no type has this name. */
static inline rp_dtype rp_dtype_find(const char *name) {
    for (unsigned type = 0; type < RP_DTYPE_COUNT; type++) {
        if (strcmp(rp_dtype_name((rp_dtype)type), name) == 0) {
            return (rp_dtype)type;
        }
    }
    return RP_DTYPE_COUNT;
}

#endif
