/* Local agents: child processes of the controller. None outlives it, however it ends: the kernel
 * kills them when it dies (PR_SET_PDEATHSIG), and close() does in every other case. */
#ifndef RP_RUN_LOCAL_H
#define RP_RUN_LOCAL_H

#include <sys/types.h>

#include "link/link.h"

typedef struct {
    pid_t pid;  /* 0 when it has ended */
    int output; /* its standard output, until it has said where it listens */
    char endpoint[128];
    char public_text[RP_KEY_TEXT];
    char *log_path;
} rp_local_agent;

typedef struct {
    uint32_t count;
    rp_local_agent *agent;
    uint64_t program_bytes; /* of ringpipe-agent */
    char folder[256];       /* keys, and logs when no log folder was given; removed */
} rp_local;

typedef struct {
    uint32_t count;
    const char *board;
    uint32_t threads;        /* a agent's, 0: the cores shared out */
    const char *log_folder;  /* for agent-<k>.log; NULL: thrown away at the end */
    const char *host_public; /* whom they trust */
    int signal_fd;           /* readable at Ctrl-C or a child's end */
} rp_local_options;

/* Starts all, then waits until each listens (its device is open and tested).
 * errors  what the agent's exit code says: USAGE, DEVICE, REFUSED; TIMEOUT; INTERRUPTED */
rp_err rp_local_open(rp_arena *arena, const rp_local_options *options,
                     rp_local **out) RP_MUST_CHECK;
void rp_local_close(rp_local **local);

/* Reaps one agent that has ended: its index, or RP_OK with *index = count. The error is that of its
 * exit code, FAULT when it was killed; the end of its log has been printed then. */
rp_err rp_local_reap(rp_local *local, uint32_t *index) RP_MUST_CHECK;

#endif
