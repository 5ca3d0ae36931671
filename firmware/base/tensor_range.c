#include "base/tensor_range.h"

#include <math.h>

#include "base/safetensors_own.h"

rp_tensor_range rp_tensor_range_of(const rp_st_reader *reader, const rp_st_entry *entry) {
    rp_tensor_range range = {.min = (double)NAN, .max = (double)NAN};
    const uint8_t *bytes = rp_st_data(reader, entry);
    double sum = 0;
    (void)rp_st_count_of(entry, &range.count); /* checked when the file was opened */
    for (uint64_t i = 0; rp_st_has_values(entry->type) && i < range.count; i++) {
        const double value = rp_st_value(entry->type, bytes, i);
        if (isnan(value)) {
            range.nan++;
        } else if (isinf(value)) {
            range.infinite++;
        } else {
            range.min = range.min <= value ? range.min : value;
            range.max = range.max >= value ? range.max : value;
            sum += value;
        }
    }
    const uint64_t finite = range.count - range.nan - range.infinite;
    range.mean = finite ? sum / (double)finite : (double)NAN;
    return range;
}
