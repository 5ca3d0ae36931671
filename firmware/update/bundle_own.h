/* Private to bundle*.c, unpack.c and system.c. */
#ifndef RP_UPDATE_BUNDLE_OWN_H
#define RP_UPDATE_BUNDLE_OWN_H

#include "update/bundle.h"

#define RP_BUNDLE_MAGIC "RPBUNDLE1\n"
#define RP_BUNDLE_PURPOSE "ringpipe bundle 1\n" /* prefix of what is signed */

enum { RP_BUNDLE_MAGIC_BYTES = 10, RP_BUNDLE_PURPOSE_BYTES = 18 };

/* Copies the bytes of one file from the stream to `fd`, without syncing.
 * errors  REFUSED: the sum differs; FORMAT: cut off; IO */
rp_err rp_bundle_copy(const rp_bundle_file *of, FILE *file, const char *name, int fd) RP_MUST_CHECK;

#endif
