/* Errors and the end of a gzip file. Private to the room. */
#ifndef RP_DATA_GZIP_H
#define RP_DATA_GZIP_H

#include <zlib.h>

#include "base/err.h"

/* zlib's message for the last call that failed. */
const char *rp_gzip_problem(gzFile file);

/* Checks that the file ends here, and gzip's checksum. zlib reports a missing checksum as an
 * ordinary end of file, but sets an error. errors  FORMAT naming `path` */
rp_err rp_gzip_check_end(gzFile file, const char *path) RP_MUST_CHECK;

#endif
