/* A secret as an option gives it: as a text, or as the name of a file, which no list of processes
 * shows. */
#ifndef RP_TRANSPORT_TOKEN_TEXT_H
#define RP_TRANSPORT_TOKEN_TEXT_H

#include "base/arena.h"

enum { RP_TOKEN_TEXT_MAX = 512 }; /* bytes of the file */

/* `text` "@FILE" gives the one line of FILE, and any other `text` itself. `option` is the option's
 * name in messages, which never show the secret.
 * errors  USAGE: not a regular file of one line of 1 to RP_TOKEN_TEXT_MAX bytes; REFUSED: others
 * than its owner may read the file; IO */
rp_err rp_token_text(rp_arena *arena, const char *option, const char *text,
                     const char **out) RP_MUST_CHECK;

/* Overwrites an argument of this process, so that a list of processes no longer shows it. The name
 * of a file stays. */
void rp_token_hide(char *argument);

#endif
