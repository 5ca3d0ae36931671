/* Local agents: child processes of this program. None outlives it: the kernel kills them when it
 * dies (PR_SET_PDEATHSIG), and close() ends them otherwise. Each controller has its own; a process
 * may have several controllers. */
#ifndef RP_RING_LOCAL_H
#define RP_RING_LOCAL_H

#include <stdio.h>
#include <sys/types.h>

#include "link/link.h"
#include "ring/spawner.h"

enum { RP_LOCAL_PATH = 512, RP_LOCAL_AGENTS_MAX = RP_RING_BOARDS_MAX };

typedef struct {
    pid_t pid;  /* 0: it has ended */
    int output; /* its standard output, read until it reports where it listens */
    char line[160];
    size_t line_used;
    bool listens;
    char endpoint[128];
    char public_text[RP_KEY_TEXT];
    char log_path[RP_LOCAL_PATH];
} rp_local_agent;

typedef struct {
    char program[RP_LOCAL_PATH];
    FILE *terminal; /* receives the last lines of an agent that failed; NULL: none */
    uint32_t count;
    rp_local_agent agent[RP_LOCAL_AGENTS_MAX];
    char folder[256]; /* temporary; holds keys, and logs without a log folder */
    int folder_lock;
    int64_t end_ns; /* when they were first told to end; 0: not yet */
    bool told;      /* SIGTERM has been sent */
} rp_local;

/* Returns a spawner that uses `local`, which must outlive it. `program`: the agent; NULL:
 * `ringpipe-agent` in the folder of this program. */
rp_spawner rp_local_spawner(rp_local *local, const char *program, FILE *terminal);

#endif
