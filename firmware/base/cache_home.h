/* The folder for what can be made again: compiled kernels, profiles of boards, systems of images.
 */
#ifndef RP_BASE_CACHE_HOME_H
#define RP_BASE_CACHE_HOME_H

/* $XDG_CACHE_HOME, or ~/.cache. Where that can not be written, ringpipe-cache-UID below $TMPDIR or
 * /tmp, and XDG_CACHE_HOME is set to it, for libraries and child processes. A warning says so once.
 * Call it before threads start, and before the first call of OpenCL: PoCL offers no device where it
 * can not make its cache. "": none of them can be written. */
const char *rp_cache_home(void);

/* The folder that PoCL wants to write and can not; NULL: it can. */
const char *rp_cache_home_obstacle(void);

#endif
