/* One file from an address, by libcurl. Private to the room. */
#ifndef RP_DATA_DOWNLOAD_H
#define RP_DATA_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    const char *url;
    const char *target; /* file that is written, over what is there */
    uint64_t bytes;     /* that the file has; a longer one is cut short there, as an error */
    bool any_protocol;  /* https, http and file; otherwise https only, redirects too */
    bool progress;      /* a line on standard error that grows */
} rp_download;

/* Tries three times where the network may be at fault. A connection has 20 s to come up, and ends
 * when less than 100 bytes a second come for a minute.
 * errors  IO with libcurl's reason; MEMORY. What was written stays: the caller removes it */
rp_err rp_download_file(const rp_download *download) RP_MUST_CHECK;

#endif
