/* Downloads one file with libcurl. Private to the room. */
#ifndef RP_DATA_DOWNLOAD_H
#define RP_DATA_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    const char *url;
    const char *target; /* file to write; an existing one is overwritten */
    uint64_t bytes;     /* expected size; a longer file is an error */
    bool any_protocol;  /* https, http and file; otherwise only https, for redirects also */
    bool progress;      /* show progress on standard error */
} rp_download;

/* Downloads the file; up to three attempts after network errors. Timeouts: 20 s to connect, a
 * minute below 100 bytes/s. errors  IO with libcurl's reason; MEMORY. The caller removes a partly
 * written file */
rp_err rp_download_file(const rp_download *download) RP_MUST_CHECK;

#endif
