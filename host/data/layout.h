/* Order of values in a sample of an array. Private to the room. */
#ifndef RP_DATA_LAYOUT_H
#define RP_DATA_LAYOUT_H

#include "base/shape.h"

/* Writes "[3, 32, 32]" to text[RP_LAYOUT_TEXT_BYTES], and returns it. */
enum { RP_LAYOUT_TEXT_BYTES = 96 };
const char *rp_layout_text(const rp_shape *shape, char *text);

/* Are the sizes equal, if sizes of 1 are ignored? [28, 28] fits [1, 28, 28]. */
bool rp_layout_fits(const rp_shape *a, const rp_shape *b);

/* Convert between [channels, height, width] and [height, width, channels]. */
rp_shape rp_layout_channels_first(const rp_shape *last);
rp_shape rp_layout_channels_last(const rp_shape *first);

/* Reorders a sample from [height, width, channels] to `first` ([channels, height, width]), in
 * place. errors  MEMORY */
rp_err rp_layout_turn(const rp_shape *first, double *value) RP_MUST_CHECK;

#endif
