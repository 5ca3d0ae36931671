/* Reads a whole data set once, as a run would. */
#ifndef RP_DATA_CHECK_H
#define RP_DATA_CHECK_H

#include "data/data.h"

/* Every sample of every part, by data->workers threads; nothing is kept. With several bad samples
 * each is logged, up to a bound, and the error says how many there are.
 * errors  those of the set's `read`, with the file's name; FORMAT: a value that is not finite */
rp_err rp_data_check(const rp_data *data) RP_MUST_CHECK;

#endif
