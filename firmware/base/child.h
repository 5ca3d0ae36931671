/* A child process. It leads its own process group, so a terminal's Ctrl-C does not reach it, and it
 * does not outlive this process. */
#ifndef RP_BASE_CHILD_H
#define RP_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* All zero: not running. */
typedef struct {
    pid_t pid;       /* 0: not running */
    uint32_t told;   /* number of signals sent to end it */
    int64_t told_ns; /* time of the last one */
    int killed_by;   /* the signal that ended it; 0: it runs, or ended by itself */
} rp_child;

/* Starts a program; NULL: this program. word: its name and arguments, NULL-terminated. fd: its
 * standard input, output and error, which this process keeps open; -1: /dev/null. kept: one more
 * descriptor that it inherits, or -1; it inherits no other descriptor with close-on-exec. errors
 * IO */
rp_err rp_child_start(rp_child *child, const char *program, const char *const *word,
                      const int fd[3], int kept) RP_MUST_CHECK;

/* Tells a running child to end: twice by SIGINT, after that by SIGKILL. */
void rp_child_tell(rp_child *child, int64_t now_ns);
/* Tells it again if it has not ended in time: two minutes after the first signal, 20 s after the
 * second. */
void rp_child_press(rp_child *child, int64_t now_ns);

/* Returns true if it has ended since the last call, with its exit code, or 128 + signal. */
bool rp_child_reap(rp_child *child, int *code);

/* Ends it at once and waits for its end. */
void rp_child_kill(rp_child *child);

#endif
