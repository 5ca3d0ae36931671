/* Files of a single board on its card. */
#ifndef RP_IMAGE_NODE_H
#define RP_IMAGE_NODE_H

#include "base/arena.h"

enum { RP_IMAGE_NAME_MAX = 63 };

typedef struct {
    const char *name, *board;
    const char *token;          /* TOKEN@ADDRESS:PORT, for --enrol */
    const char *listen;         /* tcp://HOST:PORT; NULL: it dials */
    const char *dial;           /* [NAME@]ADDRESS:PORT of the host, if it dials */
    const char *ssh_key, *wifi; /* files, or NULL */
    const char *update_key;     /* a file, or NULL */
} rp_image_node;

/* Is it a valid host name (RFC 1123), which is also the name in the roster: letters, digits and -,
 * at most 63? */
bool rp_image_is_name(const char *name);
/* Checks the texts and files; writes nothing. errors  USAGE with file and line */
rp_err rp_image_check_node(const rp_image_node *node) RP_MUST_CHECK;
/* Writes node.conf and the files for first-boot to an existing folder. errors  as
 * rp_image_check_node(); IO */
rp_err rp_image_write_node(const rp_image_node *node, const char *folder) RP_MUST_CHECK;
/* Writes one file with mode 0600, as a whole. errors IO */
rp_err rp_image_write_file(const char *folder, const char *name, const char *text) RP_MUST_CHECK;

#endif
