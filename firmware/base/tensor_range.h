/* Statistics of the values of a tensor in a safetensors file. */
#ifndef RP_BASE_TENSOR_RANGE_H
#define RP_BASE_TENSOR_RANGE_H

#include "base/safetensors.h"

typedef struct {
    uint64_t count;         /* all values */
    uint64_t nan, infinite; /* number of NaN and of infinite values */
    double min, max, mean;  /* of the finite values; NaN without any */
} rp_tensor_range;

/* Reads every value; 64-bit integers are rounded to double. For a type without plain values (see
 * rp_st_has_values) only the count is set. */
rp_tensor_range rp_tensor_range_of(const rp_st_reader *reader, const rp_st_entry *entry);

#endif
