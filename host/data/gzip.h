/* Problems and the end of a gzip file. Private to the room. */
#ifndef RP_DATA_GZIP_H
#define RP_DATA_GZIP_H

#include <zlib.h>

#include "base/err.h"

/* Why the last call failed, in zlib's words. */
const char *rp_gzip_problem(gzFile file);

/* Checks that nothing follows what was read, and gzip's own checksum. zlib reports a missing
 * checksum as an ordinary end of file, and sets an error.
 * errors  FORMAT naming `path` */
rp_err rp_gzip_check_end(gzFile file, const char *path) RP_MUST_CHECK;

#endif
