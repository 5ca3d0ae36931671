/* Signals belong to the program: they are read here and told to whom they concern. */
#ifndef RP_CLI_SIGNALS_H
#define RP_CLI_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* What has come since the last call. */
typedef struct {
    uint32_t interrupts; /* how often the program was told to end, as by Ctrl-C; a signal that comes
                            at once behind another is the same wish */
    bool asked;          /* to end in an orderly way, however often: SIGUSR1, of `ringpipe stop` */
    bool child_ended;
} rp_cli_signals;

/* Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGCHLD for the whole process and opens a descriptor
 * that is readable when one has come: call it before the first thread starts. SIGHUP is left alone
 * where the program was started with SIGHUP ignored, as `nohup` does. errors IO */
rp_err rp_cli_open_signals(int *fd) RP_MUST_CHECK;

/* From here on the signals that tell a program to end do end it. */
void rp_cli_let_signals_end(void);

void rp_cli_read_signals(int fd, rp_cli_signals *out);

/* For verbs that end at the first wish, however it is said. errors as rp_cli_open_signals() */
rp_err rp_cli_watch_signals(void) RP_MUST_CHECK;
/* True from the first wish on. Signals are the process's: the argument is not read. */
bool rp_cli_is_stopped(void *unused);

#endif
