/* Commands that are shown to a person and work when they are pasted. */
#ifndef RP_BASE_SHELL_H
#define RP_BASE_SHELL_H

#include "base/arena.h"

/* The text as one word of a POSIX shell: as it is where that does, otherwise in single quotes.
 * Control characters stay: they are shown as they are, too. */
rp_err rp_shell_word(rp_arena *arena, const char *text, const char **out) RP_MUST_CHECK;

#endif
