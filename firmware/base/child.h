/* A program that this one starts. It leads a process group of its own, so that a terminal's Ctrl-C
 * does not reach it, and does not outlive this process. */
#ifndef RP_BASE_CHILD_H
#define RP_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* All zero: it does not run. */
typedef struct {
    pid_t pid;       /* 0: it does not run */
    uint32_t told;   /* how often it was told to end */
    int64_t told_ns; /* and when, last */
    int killed_by;   /* the signal that ended it; 0: it ended by itself, or runs */
} rp_child;

/* `program` NULL: this program. `word`: its name and arguments, NULL at the end. `fd`: its standard
 * input, output and error, which stay open here; -1: /dev/null. `kept`: a further descriptor that
 * it gets, or -1; others that are closed on exec it does not have.
 * errors  IO */
rp_err rp_child_start(rp_child *child, const char *program, const char *const *word,
                      const int fd[3], int kept) RP_MUST_CHECK;

/* Tells one that runs to end: twice by SIGINT, after that by SIGKILL. */
void rp_child_tell(rp_child *child, int64_t now_ns);
/* Tells it again when it was told a while ago: an orderly end, the first one, may take two minutes,
 * and the second 20 s. */
void rp_child_press(rp_child *child, int64_t now_ns);

/* True when it has ended since the last call, with its exit code, or 128 + signal. */
bool rp_child_reap(rp_child *child, int *code);

/* Ends it at once and waits. */
void rp_child_kill(rp_child *child);

#endif
