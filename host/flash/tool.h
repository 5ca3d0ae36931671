/* External programs that a verb needs. */
#ifndef RP_FLASH_TOOL_H
#define RP_FLASH_TOOL_H

#include "base/arena.h"

typedef struct {
    const char *name, *package; /* Debian's */
} rp_tool;

/* Checks that all tools exist in PATH, /usr/sbin or /sbin.
 * errors  USAGE naming the missing ones and the command that installs them */
rp_err rp_tools_need(const rp_tool *tool, size_t count) RP_MUST_CHECK;

/* Runs a program with this program's standard streams, and waits for its end. `argv` ends with
 * NULL; argv[0] is a path, or a name in PATH. *code: exit code, or 128 + N after signal N. errors
 * IO: it cannot be started */
rp_err rp_tool_run(char *const *argv, int *code) RP_MUST_CHECK;

#endif
