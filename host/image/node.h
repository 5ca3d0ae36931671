/* What is one board's own on its card. */
#ifndef RP_IMAGE_NODE_H
#define RP_IMAGE_NODE_H

#include "base/arena.h"

enum { RP_IMAGE_NAME_MAX = 63 };

typedef struct {
    const char *name, *board;
    const char *token;          /* with its host's address, as --enrol takes it */
    const char *listen;         /* tcp://HOST:PORT; NULL: it dials */
    const char *dial;           /* [NAME@]ADDRESS:PORT, when it does not listen */
    const char *ssh_key, *wifi; /* files, or NULL */
    const char *update_key;     /* a file, or NULL */
} rp_image_node;

/* A host's name (RFC 1123): letters, digits and -, at most 63; it is the roster's, too. */
bool rp_image_is_name(const char *name);
/* Reads the files and looks at the texts; writes nothing.
 * errors  USAGE with file and line */
rp_err rp_image_check_node(const rp_image_node *node) RP_MUST_CHECK;
/* node.conf and the files that first-boot takes, into a folder that is there.
 * errors  as above; IO */
rp_err rp_image_write_node(const rp_image_node *node, const char *folder) RP_MUST_CHECK;
/* One file, 0600, whole. errors IO */
rp_err rp_image_write_file(const char *folder, const char *name, const char *text) RP_MUST_CHECK;

#endif
