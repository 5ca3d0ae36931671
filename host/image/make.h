/* A disk image by the scripts of packaging/image. */
#ifndef RP_IMAGE_MAKE_H
#define RP_IMAGE_MAKE_H

#include "image/node.h"

typedef struct {
    const char *arch;     /* amd64, arm64 */
    const char *kernel;   /* Debian's package */
    const char *console;  /* ttyS0, or several with ',' between */
    const char *drivers;  /* Debian's packages, with ' ' between; "" */
    const char *packages; /* the folder that ./bootstrap package makes */
    const char *cache;    /* where systems are kept from call to call */
    uint32_t release;     /* which system it is, for boards that get newer ones */
} rp_image_system;

/* The folder with the scripts: $RINGPIPE_IMAGE, or where they were installed or lie in the source.
 */
const char *rp_image_folder(void);
/* The newest ringpipe-agent_*_ARCH.deb there. errors USAGE: there is none */
rp_err rp_image_find_agent(rp_arena *arena, const char *packages, const char *arch,
                           const char **out) RP_MUST_CHECK;
/* Are tools, packages and room for `count` images there? `out`: of one of them. Makes the folder of
 * the cache. errors  USAGE with what is missing */
rp_err rp_image_check_system(const rp_image_system *system, const char *out,
                             uint32_t count) RP_MUST_CHECK;
/* One image; what the scripts say goes to standard error.
 * errors  USAGE, FAULT: one that the scripts have said; INTERRUPTED */
rp_err rp_image_make(const rp_image_system *system, const rp_image_node *node,
                     const char *out) RP_MUST_CHECK;

/* The system alone, as a folder that is not there yet: what `ringpipe bundle` takes, for boards
 * that run one already. errors as above */
rp_err rp_image_make_system(const rp_image_system *system, const char *folder) RP_MUST_CHECK;

#endif
