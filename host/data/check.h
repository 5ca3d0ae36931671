/* Reads a whole data set once, as a run would. */
#ifndef RP_DATA_CHECK_H
#define RP_DATA_CHECK_H

#include "data/data.h"

/* Reads every sample of every part by data->workers threads, and keeps nothing. If several samples
 * are bad each is logged, up to a bound, and the error has their number.
 * errors  those of the set's `read`, with the file's name; FORMAT: a value that is not finite */
rp_err rp_data_check(const rp_data *data) RP_MUST_CHECK;

#endif
