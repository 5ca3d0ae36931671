/* Programs of others that a verb needs. */
#ifndef RP_FLASH_TOOL_H
#define RP_FLASH_TOOL_H

#include "base/arena.h"

typedef struct {
    const char *name, *package; /* Debian's */
} rp_tool;

/* All of them, found by PATH, /usr/sbin and /sbin.
 * errors  USAGE naming those that are missing and the command that installs them */
rp_err rp_tools_need(const rp_tool *tool, size_t count) RP_MUST_CHECK;

/* Runs it to its end; it has this program's standard input, output and error. `argv` ends with
 * NULL; argv[0] is a path or a name to be found. *code: its exit code, 128 + N when signal N has
 * ended it. errors  IO: it cannot be started */
rp_err rp_tool_run(char *const *argv, int *code) RP_MUST_CHECK;

#endif
