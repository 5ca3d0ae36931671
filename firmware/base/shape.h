/* Shapes: row-major, outermost dimension first. A sample's shape has no batch dimension N; a
 * tensor's has. */
#ifndef RP_BASE_SHAPE_H
#define RP_BASE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { RP_DIMS_MAX = 6 };

typedef struct {
    uint32_t dims;
    uint32_t dim[RP_DIMS_MAX];
} rp_shape;

static inline rp_shape rp_shape_1(uint32_t a) {
    return (rp_shape){1, {a}};
}
static inline rp_shape rp_shape_2(uint32_t a, uint32_t b) {
    return (rp_shape){2, {a, b}};
}
static inline rp_shape rp_shape_3(uint32_t a, uint32_t b, uint32_t c) {
    return (rp_shape){3, {a, b, c}};
}
static inline rp_shape rp_shape_4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return (rp_shape){4, {a, b, c, d}};
}

/* Product of the dimensions; 1 for a scalar. Callers have checked it with rp_shape_check(). */
static inline size_t rp_shape_count(const rp_shape *shape) {
    size_t count = 1;
    for (uint32_t i = 0; i < shape->dims; i++) {
        count *= shape->dim[i];
    }
    return count;
}

/* True when no dimension is 0, dims fits and the product is below 2^31 (kernels count in uint,
 * CLBlast in int). */
static inline bool rp_shape_check(const rp_shape *shape) {
    uint64_t count = 1;
    if (shape->dims > RP_DIMS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < shape->dims; i++) {
        count *= shape->dim[i];
        if (count == 0 || count >= UINT64_C(0x80000000)) {
            return false;
        }
    }
    return true;
}

static inline bool rp_shape_equal(const rp_shape *a, const rp_shape *b) {
    if (a->dims != b->dims) {
        return false;
    }
    for (uint32_t i = 0; i < a->dims; i++) {
        if (a->dim[i] != b->dim[i]) {
            return false;
        }
    }
    return true;
}

/* Prepends the batch dimension N to a sample's shape. */
static inline rp_shape rp_shape_batch(uint32_t n, const rp_shape *sample) {
    rp_shape out = {sample->dims + 1, {n}};
    for (uint32_t i = 0; i < sample->dims && i + 1 < RP_DIMS_MAX; i++) {
        out.dim[i + 1] = sample->dim[i];
    }
    return out;
}

#endif
