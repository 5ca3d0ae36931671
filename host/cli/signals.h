/* Signals belong to the program: they are read here and told to whom they concern. */
#ifndef RP_CLI_SIGNALS_H
#define RP_CLI_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD for the whole process and opens a descriptor that is
 * readable when one has come: call it before the first thread starts. errors IO */
rp_err rp_cli_open_signals(int *fd) RP_MUST_CHECK;

/* What has come since the last call: how often the program was told to end, and whether a child has
 * ended. */
void rp_cli_read_signals(int fd, uint32_t *interrupts, bool *child_ended);

#endif
