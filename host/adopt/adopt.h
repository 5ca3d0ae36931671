/* Makes a board of a running system, over ssh. */
#ifndef RP_ADOPT_ADOPT_H
#define RP_ADOPT_ADOPT_H

#include <stdbool.h>
#include <stdio.h>

#include "image/node.h"

/* Facts that a system reports; "": unknown or invalid. */
typedef struct {
    char os[64], machine[64], arch[64]; /* Linux; aarch64; arm64 (from dpkg) */
    char name[64];                      /* host name */
    char user[64], sudo[64];            /* user id; path of sudo */
    char systemd[64];                   /* "yes" */
    char service[64];                   /* "active": an agent of the package runs */
    char from[64];                      /* this host's address as seen there */
    char driver[64];                    /* file of some OpenCL driver */
    char missing[64];                   /* libraries that the agent needs */
    bool bare;                          /* no dpkg; then `arch` follows from `machine` */
    char system[64];                    /* name of the distribution, for the user */
} rp_adopt_system;

typedef struct {
    const char *to;       /* USER@ADDRESS */
    const char *scratch;  /* folder to be made there, by rp_adopt_scratch() */
    const char *packages; /* folder made by ./bootstrap package */
    const char *drivers;  /* Debian packages, separated by ' ' */
} rp_adopt;

/* The text is a valid address for ssh: not an option, no blanks. */
bool rp_adopt_is_address(const char *to);
/* Makes a unique folder name. errors IO, MEMORY */
rp_err rp_adopt_scratch(rp_arena *arena, const char **out) RP_MUST_CHECK;

/* Asks the system for its facts; changes nothing there.
 * errors IO, TIMEOUT: ssh; USAGE: no valid answer */
rp_err rp_adopt_look(const char *to, rp_adopt_system *out) RP_MUST_CHECK;
/* Checks that the package, or its files without dpkg, can be installed, and that the user may do
 * so. errors USAGE with the reason */
rp_err rp_adopt_check(const char *to, const rp_adopt_system *system) RP_MUST_CHECK;
/* Sends the package, first-boot and `node`, and runs first-boot. The sent files are removed in any
 * case. errors IO, USAGE, TIMEOUT; FAULT: first-boot failed */
rp_err rp_adopt_install(const rp_adopt *adopt, const rp_adopt_system *system,
                        const rp_image_node *node) RP_MUST_CHECK;
/* Shows the commands of an adoption without running them. errors MEMORY */
rp_err rp_adopt_show(const rp_adopt *adopt, FILE *file) RP_MUST_CHECK;

#endif
