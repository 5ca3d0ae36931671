/* The folder for what can be made again: compiled kernels, profiles of boards, systems of images.
 */
#ifndef RP_BASE_CACHE_HOME_H
#define RP_BASE_CACHE_HOME_H

/* Returns $XDG_CACHE_HOME, or ~/.cache. Where that is not writable, it is ringpipe-cache-UID below
 * $TMPDIR or /tmp, and XDG_CACHE_HOME is set to it, for libraries and child processes; a warning
 * says so once. "": none of them is writable. Call it before threads start and before the first
 * call of OpenCL, because PoCL offers no device where it cannot make its cache. */
const char *rp_cache_home(void);

/* The folder that PoCL needs and that is not writable; NULL: PoCL has what it needs. */
const char *rp_cache_home_obstacle(void);

#endif
