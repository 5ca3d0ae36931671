/* The idx files of MNIST and its siblings, plain or gzipped. Private to the room.
 *
 * source  http://yann.lecun.com/exdb/mnist: big-endian, images 0x803 count rows columns bytes,
 *         labels 0x801 count bytes */
#ifndef RP_DATA_IDX_H
#define RP_DATA_IDX_H

#include "data/data.h"

/* Opens the four official files (NAME or NAME.gz) in the folder `path:`; fills sample, classes,
 * counts and own. Magic, counts and sizes are checked before memory is taken. errors USAGE, IO,
 * FORMAT */
rp_err rp_idx_open(rp_arena *arena, rp_data *data, rp_node *keys) RP_MUST_CHECK;

/* `read` of these kinds. */
rp_err rp_idx_read(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                   int32_t *label) RP_MUST_CHECK;

#endif
