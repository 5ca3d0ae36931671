/* Commands on another machine, by the system's ssh. */
#ifndef RP_ADOPT_REMOTE_H
#define RP_ADOPT_REMOTE_H

#include "base/arena.h"

typedef struct {
    const char *to;      /* USER@ADDRESS */
    const char *command; /* for a shell there */
    const char *input;   /* a file that is its standard input; NULL: none */
    bool terminal;       /* it may ask a person something: it has this program's */
    int wait_s;          /* at most */
    char *out;           /* its standard output, cut at out_bytes - 1; NULL: goes where ours does */
    size_t out_bytes;
} rp_remote;

/* Words of an ssh that does that, ended by NULL. */
enum { RP_REMOTE_WORDS = 8 };
void rp_remote_words(const rp_remote *remote, const char *word[RP_REMOTE_WORDS]);
/* As a line that a person may paste. errors MEMORY */
rp_err rp_remote_text(rp_arena *arena, const rp_remote *remote, const char **out) RP_MUST_CHECK;
/* *code: as rp_tool_run() says; 255 is ssh's own. errors  IO: ssh does not start; TIMEOUT */
rp_err rp_remote_run(const rp_remote *remote, int *code) RP_MUST_CHECK;

#endif
