/* Secrets in options: given as text, or as the name of a file, which keeps the secret out of
 * process lists. */
#ifndef RP_TRANSPORT_TOKEN_TEXT_H
#define RP_TRANSPORT_TOKEN_TEXT_H

#include "base/arena.h"

enum { RP_TOKEN_TEXT_MAX = 512 }; /* bytes of the file */

/* "@FILE" gives the single line of FILE, any other `text` itself. Messages name `option` and never
 * show the secret.
 * errors  USAGE: not a regular file of one line of 1 to RP_TOKEN_TEXT_MAX bytes; REFUSED: others
 *         than its owner may read the file; IO */
rp_err rp_token_text(rp_arena *arena, const char *option, const char *text,
                     const char **out) RP_MUST_CHECK;

/* Overwrites an argument of this process, so that process lists no longer show it. The name of a
 * file is kept. */
void rp_token_hide(char *argument);

#endif
