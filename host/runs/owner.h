/* controller.json in a run folder: the process that uses the folder. It is made after the folder
 * was locked and removed before it is unlocked; a process that is killed leaves it. */
#ifndef RP_RUNS_OWNER_H
#define RP_RUNS_OWNER_H

#include "base/err.h"

typedef enum {
    RP_OWNER_NONE,  /* no process, or it has ended normally */
    RP_OWNER_ALIVE, /* runs on this machine */
    RP_OWNER_DEAD,  /* was killed, or the machine was switched off; or the folder is a copy of the
                       folder that the process uses */
    RP_OWNER_ELSEWHERE /* belongs to a different machine or container, so its state is unknown */
} rp_owner_life;

typedef struct {
    rp_owner_life life;
    int64_t pid;
    char host[256];
    uint64_t start;  /* start of the process in ticks since boot */
    int64_t made_ns; /* when the file was made, in ns since 1970 */
} rp_owner;

/* Writes controller.json for this process. errors  IO */
rp_err rp_owner_write(const char *folder) RP_MUST_CHECK;
void rp_owner_remove(const char *folder);

/* Reads controller.json; NONE if it is missing or invalid. */
void rp_owner_read(const char *folder, rp_owner *out);

/* Is the process of an owner that was ALIVE still alive? */
bool rp_owner_is_alive(const rp_owner *owner);

#endif
