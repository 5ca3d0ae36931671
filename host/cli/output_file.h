/* Checks of a file that a verb is asked to write. */
#ifndef RP_CLI_OUTPUT_FILE_H
#define RP_CLI_OUTPUT_FILE_H

#include "cli/cli.h"

/* Whether the file may be written: it is missing, or a regular file that `--yes` replaces. A
 * device, a pipe, a folder or a symbolic link is never replaced, because the verb renames a new
 * file to the path. errors  USAGE naming the file */
rp_err rp_cli_check_output(const rp_cli_args *args, const char *path) RP_MUST_CHECK;
/* errors  USAGE: the output is the file `in`, which may be NULL */
rp_err rp_cli_check_input(const char *in, const char *path) RP_MUST_CHECK;
/* errors  USAGE: the output is one of the words of the command line */
rp_err rp_cli_check_inputs(const rp_cli_args *args, const char *path) RP_MUST_CHECK;

#endif
