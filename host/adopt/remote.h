/* Runs commands on another machine, through the system's ssh. */
#ifndef RP_ADOPT_REMOTE_H
#define RP_ADOPT_REMOTE_H

#include "base/arena.h"

typedef struct {
    const char *to;      /* USER@ADDRESS */
    const char *command; /* for the shell there */
    const char *input;   /* file for its standard input; NULL: none */
    bool terminal;       /* it may ask the user, on this program's terminal */
    int wait_s;          /* timeout in seconds */
    char *out;           /* its standard output, cut at out_bytes - 1; NULL: goes to ours */
    size_t out_bytes;
} rp_remote;

/* Words of the ssh command, ended by NULL. */
enum { RP_REMOTE_WORDS = 8 };
void rp_remote_words(const rp_remote *remote, const char *word[RP_REMOTE_WORDS]);
/* The command as a line that can be pasted into a shell. errors MEMORY */
rp_err rp_remote_text(rp_arena *arena, const rp_remote *remote, const char **out) RP_MUST_CHECK;
/* *code: as rp_tool_run() says; 255 comes from ssh itself. errors IO: ssh does not start;
 * TIMEOUT */
rp_err rp_remote_run(const rp_remote *remote, int *code) RP_MUST_CHECK;

#endif
