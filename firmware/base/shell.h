/* Commands that are shown to the user and work when pasted into a shell. */
#ifndef RP_BASE_SHELL_H
#define RP_BASE_SHELL_H

#include "base/arena.h"

/* The text as one word of a POSIX shell, in single quotes if it needs them. Control characters are
 * kept, even if the word is only displayed. */
rp_err rp_shell_word(rp_arena *arena, const char *text, const char **out) RP_MUST_CHECK;

#endif
