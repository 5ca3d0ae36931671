/* Starts local boards: as child processes (local.h), or as agents in this process (simulation). */
#ifndef RP_RING_SPAWNER_H
#define RP_RING_SPAWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Maximum number of boards of a ring over a network: each costs sockets, thread time and memory on
 * this host. With lent links (simulation) the limit is RP_CUT_STAGES_MAX. */
enum { RP_RING_BOARDS_MAX = 64 };

/* How boards are started. Borrowed until start() returns. */
typedef struct {
    uint32_t count;
    const char *board; /* profile of the boards: `boards/<name>` */
    uint32_t threads;  /* threads of each board; 0: the cores are divided among the boards */
    const uint32_t *board_threads; /* [count], 0 as above; NULL: all as `threads` */
    const char *log_folder;        /* for agent-<k>.log; NULL: logs are deleted at the end */
    const char *host_public;       /* public key of the host that the boards accept */
    int media;                     /* descriptor that the boards inherit; -1: none */
    const bool *hung; /* [count], restart() only: the board hangs and is ended first; NULL: no board
                         hangs */
} rp_spawn_order;

/* Starts boards on this machine and notices when they end. No function blocks except close(). */
typedef struct {
    const char *name;
    /* errors  USAGE, IO: nothing is left running */
    rp_err (*start)(void *self, const rp_spawn_order *order);
    /* Starts boards that have ended or hang again; their addresses may change.
     * errors  as start() */
    rp_err (*restart)(void *self, const rp_spawn_order *order);
    /* Continues the start. *up: every board listens, address() may be called.
     * errors  those of a board that ended before it listened */
    rp_err (*step)(void *self, bool *up);
    /* Borrowed until close(). */
    void (*address)(void *self, uint32_t board, const char **endpoint, const char **public_text);
    /* Readable when step() has something to do; -1: step() may be called at any time. */
    int (*fd)(void *self);
    /* After a child has ended: *board is that board, or the count when no board has ended.
     * errors  of the board's exit code, in plain language */
    rp_err (*reap)(void *self, uint32_t *board);
    /* Boards that received BYE end by themselves. Later calls terminate and then kill them, as time
     * passes since the first call. True when all have ended. */
    bool (*end)(void *self, int64_t now_ns);
    /* Ends all boards at once; also valid before start(). */
    void (*close)(void *self);
} rp_spawner_kind;

typedef struct {
    const rp_spawner_kind *kind;
    void *self;
    uint64_t program_bytes; /* size of a board's program, for plan.json; 0: unknown */
    uint64_t memory_bytes;  /* memory available to all boards together; 0: unknown */
    uint32_t cores;         /* cores and kernel cache that the boards share; 0: not shared */
} rp_spawner;

#endif
