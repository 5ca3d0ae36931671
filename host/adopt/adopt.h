/* A system that runs becomes a board. */
#ifndef RP_ADOPT_ADOPT_H
#define RP_ADOPT_ADOPT_H

#include <stdbool.h>
#include <stdio.h>

#include "image/node.h"

/* What a system says of itself; "" where it says nothing, or what no such word may be. */
typedef struct {
    char os[64], machine[64], arch[64]; /* Linux, aarch64, arm64 (dpkg's) */
    char name[64];                      /* of the host */
    char user[64], sudo[64];            /* number; path */
    char systemd[64];                   /* yes */
    char service[64];                   /* active: an agent of the package runs */
    char from[64];                      /* this host's address, as it is seen there */
    char driver[64];                    /* some OpenCL driver's file */
    char missing[64];                   /* libraries that the agent needs */
    bool bare;                          /* it has no dpkg; then `arch` is of its machine */
    char system[64];                    /* for people */
} rp_adopt_system;

typedef struct {
    const char *to;       /* USER@ADDRESS */
    const char *scratch;  /* a folder to be made there, rp_adopt_scratch() */
    const char *packages; /* the folder that ./bootstrap package makes */
    const char *drivers;  /* Debian's packages, with ' ' between */
} rp_adopt;

/* Whether ssh takes it as one: no option, no blanks. */
bool rp_adopt_is_address(const char *to);
/* A folder's name that nobody else has. errors IO, MEMORY */
rp_err rp_adopt_scratch(rp_arena *arena, const char **out) RP_MUST_CHECK;

/* Asks the system what it is; changes nothing there.
 * errors  IO, TIMEOUT: ssh; USAGE: it gives no answer */
rp_err rp_adopt_look(const char *to, rp_adopt_system *out) RP_MUST_CHECK;
/* Whether the package, or without dpkg its files, can be put on it, and by whom. errors  USAGE and
 * why not */
rp_err rp_adopt_check(const char *to, const rp_adopt_system *system) RP_MUST_CHECK;
/* Sends the package, first-boot and `node`, and lets first-boot do its work; what was sent is
 * removed there, however that ends. errors  IO, USAGE, TIMEOUT; FAULT: first-boot failed */
rp_err rp_adopt_install(const rp_adopt *adopt, const rp_adopt_system *system,
                        const rp_image_node *node) RP_MUST_CHECK;
/* The commands of all that, and runs none. errors MEMORY */
rp_err rp_adopt_show(const rp_adopt *adopt, FILE *file) RP_MUST_CHECK;

#endif
