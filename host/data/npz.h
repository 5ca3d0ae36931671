/* Arrays of a .npz file of NumPy: a zip archive of .npy files, stored or deflated. All of it is
 * read into memory, so it is for small files.
 *
 * source  numpy.savez(), numpy.savez_compressed() */
#ifndef RP_DATA_NPZ_H
#define RP_DATA_NPZ_H

#include "base/arena.h"
#include "base/shape.h"

enum { RP_NPZ_ARRAYS_MAX = 256, RP_NPZ_BYTES_MAX = 1 << 30 /* of all arrays */ };

typedef struct rp_npz rp_npz;

/* errors  IO; FORMAT naming the file, and the array; LIMIT: more arrays or bytes than above */
rp_err rp_npz_read(rp_arena *arena, const char *path, rp_npz **out) RP_MUST_CHECK;

/* The number of an array; UINT32_MAX: the file has no array with this name. */
uint32_t rp_npz_find(const rp_npz *npz, const char *name);
/* Number of samples, the first dimension of the array, and the shape of one. */
uint32_t rp_npz_samples(const rp_npz *npz, uint32_t array, rp_shape *sample);

/* Reads sample `index`, rounded to floats, or as whole numbers in [least, most].
 * errors  FORMAT: not finite, or outside of the range */
rp_err rp_npz_floats(const rp_npz *npz, uint32_t array, uint32_t index, float *row) RP_MUST_CHECK;
rp_err rp_npz_whole(const rp_npz *npz, uint32_t array, uint32_t index, int32_t least, int32_t most,
                    int32_t *row) RP_MUST_CHECK;

#endif
