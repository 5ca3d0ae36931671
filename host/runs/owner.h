/* controller.json in a run folder: the process that works there. It is made behind the folder's
 * lock and removed before the lock is given back; one that is killed leaves it. */
#ifndef RP_RUNS_OWNER_H
#define RP_RUNS_OWNER_H

#include "base/err.h"

typedef enum {
    RP_OWNER_NONE,     /* nobody, or one that ended in an orderly way */
    RP_OWNER_ALIVE,    /* at work on this machine */
    RP_OWNER_DEAD,     /* was killed, or the machine was switched off; or the folder is a copy of
                          that in which the process works */
    RP_OWNER_ELSEWHERE /* of another machine or container: it cannot be seen from here */
} rp_owner_life;

typedef struct {
    rp_owner_life life;
    int64_t pid;
    char host[256];
    uint64_t start;  /* ticks since boot, when the process began */
    int64_t made_ns; /* since 1970, when the file was made */
} rp_owner;

/* Of this process. errors  IO */
rp_err rp_owner_write(const char *folder) RP_MUST_CHECK;
void rp_owner_remove(const char *folder);

/* NONE when there is no such file, or it is not one. */
void rp_owner_read(const char *folder, rp_owner *out);

/* Whether the process of an owner that was ALIVE is still there. */
bool rp_owner_is_alive(const rp_owner *owner);

#endif
