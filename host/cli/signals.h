/* Signals of the process, read as events. */
#ifndef RP_CLI_SIGNALS_H
#define RP_CLI_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Signals since the last call. */
typedef struct {
    uint32_t interrupts; /* requests to end, like Ctrl-C; signals within 0.2 s count once */
    bool asked;          /* request for an orderly end: SIGUSR1, from `ringpipe stop` */
    bool child_ended;
} rp_cli_signals;

/* Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGCHLD for the whole process and opens a descriptor
 * that is readable when a signal has arrived. Call it before the first thread starts. SIGHUP is not
 * touched if the program was started with SIGHUP ignored, as by `nohup`. errors IO */
rp_err rp_cli_open_signals(int *fd) RP_MUST_CHECK;

/* Unblocks SIGINT, SIGTERM and SIGHUP, which then end the process. */
void rp_cli_let_signals_end(void);

void rp_cli_read_signals(int fd, rp_cli_signals *out);

/* For verbs that end at the first request of any kind. errors as rp_cli_open_signals() */
rp_err rp_cli_watch_signals(void) RP_MUST_CHECK;
/* true after the first request. The argument is ignored, because signals belong to the process. */
bool rp_cli_is_stopped(void *unused);

#endif
