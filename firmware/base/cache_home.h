/* The cache folder, for files that can be regenerated: compiled kernels, profiles of boards,
 * systems of images. */
#ifndef RP_BASE_CACHE_HOME_H
#define RP_BASE_CACHE_HOME_H

/* Returns $XDG_CACHE_HOME, or ~/.cache. If that is not writable, returns ringpipe-cache-UID below
 * $TMPDIR or /tmp, sets XDG_CACHE_HOME to it for libraries and child processes, and logs one
 * warning. Returns "" if none of them is writable. Call it before threads start and before the
 * first call of OpenCL, because PoCL offers no device when it cannot create its cache. */
const char *rp_cache_home(void);

/* The folder that PoCL needs and that is not writable, or NULL if PoCL has what it needs. */
const char *rp_cache_home_obstacle(void);

#endif
