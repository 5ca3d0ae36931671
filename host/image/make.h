/* Makes disk images with the scripts of packaging/image. */
#ifndef RP_IMAGE_MAKE_H
#define RP_IMAGE_MAKE_H

#include "image/node.h"

typedef struct {
    const char *arch;     /* amd64, arm64 */
    const char *kernel;   /* Debian's package */
    const char *console;  /* ttyS0, or several, separated by ',' */
    const char *drivers;  /* Debian's packages, separated by ' '; "": none */
    const char *packages; /* the folder that ./bootstrap package makes */
    const char *cache;    /* folder of systems that are reused */
    uint32_t release;     /* number of the system, for later updates */
} rp_image_system;

/* The folder with the scripts: $RINGPIPE_IMAGE, or the installed ones, or those of the source. */
const char *rp_image_folder(void);
/* Finds the newest ringpipe-agent_*_ARCH.deb in `packages`. errors USAGE: missing */
rp_err rp_image_find_agent(rp_arena *arena, const char *packages, const char *arch,
                           const char **out) RP_MUST_CHECK;
/* Checks tools, packages and disk space for `count` images; `out`: path of one of them. Makes the
 * folder of the cache. errors  USAGE naming what is missing */
rp_err rp_image_check_system(const rp_image_system *system, const char *out,
                             uint32_t count) RP_MUST_CHECK;
/* Makes one image; the scripts write to standard error.
 * errors  USAGE, FAULT: the scripts failed, and printed the reason; INTERRUPTED */
rp_err rp_image_make(const rp_image_system *system, const rp_image_node *node,
                     const char *out) RP_MUST_CHECK;

/* Makes only the system, as a new folder for `ringpipe bundle`, for boards that run one already.
 * errors as rp_image_make() */
rp_err rp_image_make_system(const rp_image_system *system, const char *folder) RP_MUST_CHECK;

#endif
