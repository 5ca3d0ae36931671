/* What lies between which bounds in a tensor of a safetensors file. */
#ifndef RP_BASE_TENSOR_RANGE_H
#define RP_BASE_TENSOR_RANGE_H

#include "base/safetensors.h"

typedef struct {
    uint64_t count;         /* values */
    uint64_t nan, infinite; /* of them */
    double min, max, mean;  /* of the others; NaN where there are none */
} rp_tensor_range;

/* Reads every value; 64-bit integers are rounded to double. A type without plain values (see
 * rp_st_has_values) gives the count only. */
rp_tensor_range rp_tensor_range_of(const rp_st_reader *reader, const rp_st_entry *entry);

#endif
