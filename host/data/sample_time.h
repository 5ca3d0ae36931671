/* The key `time`: tokens in a sample. Private to the room. */
#ifndef RP_DATA_SAMPLE_TIME_H
#define RP_DATA_SAMPLE_TIME_H

#include "data/data.h"

enum { RP_TIME_MAX = 65536 };

/* Reads `time`; default: T, if the model's input is [parts * T] of i32. parts: 1, or 2 for a source
 * and a target of the same length. errors  USAGE */
rp_err rp_time_read(rp_node *keys, const rp_data_input *input, uint32_t parts,
                    uint32_t *out) RP_MUST_CHECK;

#endif
