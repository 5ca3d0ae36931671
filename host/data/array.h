/* Arrays of numbers in files: .npy of NumPy, and idx, plain or gzipped. The first dimension counts
 * samples. A sample of a plain file is read from the file on demand; a gzipped file is unpacked in
 * memory. Private to the room.
 *
 * source  numpy/lib/format.py, versions 1.0 to 3.0, C order; types f4 f8 u1 u2 u4 u8 i1 i2 i4
 * i8, either byte order. idx: http://yann.lecun.com/exdb/mnist, types 08 09 0b 0c 0d 0e, big-endian
 */
#ifndef RP_DATA_ARRAY_H
#define RP_DATA_ARRAY_H

#include "base/arena.h"
#include "base/shape.h"

typedef enum { RP_NUMBER_FLOAT, RP_NUMBER_UNSIGNED, RP_NUMBER_SIGNED } rp_number;

typedef struct {
    const char *path; /* borrowed */
    rp_number number;
    uint32_t bytes; /* in a number: 1, 2, 4 or 8 */
    bool big_endian;
    uint32_t count;
    rp_shape sample; /* dims 0: a sample is one number */
    int fd;          /* of a plain file; -1: `unpacked` holds the numbers */
    uint64_t at;     /* offset of the first number in the file */
    const uint8_t *unpacked;
} rp_array;

/* Opens an array: .npy if `path` ends so, else idx. Compares header and size of the file before
 * memory is taken. errors  IO; FORMAT naming the file and the problem; LIMIT */
rp_err rp_array_open(rp_arena *arena, const char *path, rp_array *out) RP_MUST_CHECK;
/* Like rp_array_open(), for the bytes of a .npy file, which the caller keeps. `name` is for
 * messages. */
rp_err rp_array_open_bytes(const uint8_t *bytes, size_t count, const char *name,
                           rp_array *out) RP_MUST_CHECK;
void rp_array_close(rp_array *array); /* accepts a zeroed one */

/* Writes NumPy's name for the type of the numbers, like "f4". Returns `text`. */
enum { RP_ARRAY_TYPE_BYTES = 4 };
const char *rp_array_type(const rp_array *array, char *text);
/* Are the numbers unsigned bytes, which count as pixels? */
bool rp_array_has_bytes(const rp_array *array);
/* Reads the numbers of sample `index`; `pixels`: unsigned bytes are divided by 255. Thread-safe.
 * errors  IO; FORMAT: a number that is not finite as a float */
rp_err rp_array_read(const rp_array *array, uint32_t index, bool pixels,
                     double *value) RP_MUST_CHECK;
/* Reads sample `index` as a row of targets: numbers are rounded to floats, bytes are not divided.
 */
rp_err rp_array_read_row(const rp_array *array, uint32_t index, float *row) RP_MUST_CHECK;
/* Reads the numbers of sample `index` of an array of whole numbers.
 * errors  IO; FORMAT: a number is not from `least` to `most` */
rp_err rp_array_read_whole(const rp_array *array, uint32_t index, int32_t least, int32_t most,
                           int32_t *value) RP_MUST_CHECK;
/* Reads the class of sample `index` from an array of one whole number for each sample.
 * errors  IO; FORMAT: not from 0 to 65535 */
rp_err rp_array_read_class(const rp_array *array, uint32_t index, int32_t *label) RP_MUST_CHECK;

/* Parses the text of a header of .npy, without its first ten or twelve bytes: {'descr': '<f4',
 * 'fortran_order': False, 'shape': (60000, 28, 28), }. errors FORMAT */
rp_err rp_array_parse_npy(const char *text, size_t bytes, const char *path,
                          rp_array *out) RP_MUST_CHECK;

#endif
