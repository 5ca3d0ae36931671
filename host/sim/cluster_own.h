/* Internals of a cluster; only for cluster.c and cluster_*.c. */
#ifndef RP_SIM_CLUSTER_OWN_H
#define RP_SIM_CLUSTER_OWN_H

#include <sys/types.h>

#include "agent/agent.h"
#include "sim/cluster.h"
#include "transport/emulate.h"
#include "transport/inproc.h"

enum { RP_SIM_NAME_BYTES = 64, RP_SIM_ADDRESS_BYTES = 128 };

/* A node's clock. Faults make it jump or run fast; it restarts with each life of a board. */
typedef struct {
    rp_clock clock; /* first member: read_clock() casts its address to rp_sim_clock */
    const rp_clock *world;
    int64_t ahead_ns;     /* offset to the world's clock */
    double fast;          /* additional rate since fast_from_ns; 0.1: 10 % fast */
    int64_t fast_from_ns; /* world time */
} rp_sim_clock;

/* A node's transport: `inproc` below lines that faults change. */
typedef struct {
    rp_cluster *cluster;
    uint32_t node; /* number in the world, in this order: boards, host, faults, twins of boards */
    rp_transport *inproc, *line;
    rp_link_profile calm; /* profile of each line while no fault changes it */
} rp_sim_network;

typedef struct {
    rp_cluster *cluster;
    uint32_t index;
    uint32_t node; /* number in the world; a twin has its own */
    char name[RP_SIM_NAME_BYTES];
    rp_keypair keys;
    uint8_t key[RP_KEY_BYTES];         /* public key of `keys` */
    char listen[RP_SIM_ADDRESS_BYTES]; /* "": the board dials */
    uint32_t lives;                    /* started so far, the current one included */
    rp_agent *agent;                   /* NULL: crashed */
    rp_arena arena;                    /* memory of this life */
    rp_sim_clock clock;                /* restarts with each life */
    rp_rng sessions;
    rp_sim_network network;
    rp_site_costs costs;  /* from the profile, if one was given */
    double slow;          /* factor that faults put on op times */
    double *seconds;      /* forward, backward of each layer for one sample, with faults; or NULL */
    bool moves;           /* the next life has another address */
    bool empties;         /* the next life has another key */
    bool fails;           /* the next op fails in the device */
    bool hangs;           /* the device finishes no op */
    uint32_t wrong_every; /* every N-th forward is wrong; 0: none */
    uint32_t allocations; /* one of the next N allocations fails; 0: none */
    int64_t restart_ns;   /* crashed: world time of the next life; RP_WORLD_NEVER: none */
    int64_t still_ns;     /* suspended until then */
    bool lost;            /* away for longer than ring.wait, unreachable for good, or wrong */
    rp_agent_state state;
} rp_sim_board;

/* A damaged file of a checkpoint. The inode tells it from a rewritten file of the same name. */
typedef struct {
    char name[RP_SIM_NAME_BYTES];
    ino_t inode;
} rp_sim_damage;
enum { RP_SIM_DAMAGES_MAX = 2 * RP_SIM_FAULTS_MAX }; /* copies of damaged files count */

typedef struct {
    /* by index into options.faults */
    bool begun[RP_SIM_FAULTS_MAX], active[RP_SIM_FAULTS_MAX];
    int64_t at_ns[RP_SIM_FAULTS_MAX]; /* begin; later than drawn if the target was away */
    uint32_t effective;               /* faults that have begun */
    uint32_t before;                  /* `effective` when this life of the controller began */
    rp_sim_marks marks;
    int64_t calm_ns;  /* end of the last fault; begin of one that loses its board */
    bool may_stop;    /* a fault in this life of the controller may end the run */
    bool lines;       /* a line has had a fault */
    uint64_t streams; /* random streams of lines used so far */
    rp_rng rng;
} rp_sim_trouble;

struct rp_cluster {
    rp_arena *arena;
    rp_cluster_options options;
    rp_world *world;
    rp_eventlog log;
    rp_hub *hub;
    rp_media *media;            /* of all lines, on the world's clock */
    rp_agent_library *library;  /* parsed texts that all boards receive */
    rp_sim_board *board, *twin; /* by board; a twin has an agent while its fault lasts */

    /* the host */
    rp_keypair host_keys;
    rp_sim_clock host_clock;
    rp_sim_network host_network;
    rp_arena host_arena; /* memory of one life of the controller */
    rp_links *host_links;
    rp_rng host_sessions;
    rp_controller *controller; /* NULL: between two lives */
    uint32_t host_lives;
    int64_t host_since_ns; /* start of this life */
    bool host_crashed;
    const rp_sim_fault *disk_fault; /* damages a checkpoint file when this life ends; or NULL */
    bool disk_full;
    bool disk_returns; /* when this life ends, the folder goes back to the state that was kept */
    bool disk_forgot;  /* the folder has gone back that way */
    rp_sim_damage damage[RP_SIM_DAMAGES_MAX];
    uint32_t damages;
    const char *host_state;
    int64_t host_still_ns; /* suspended until then */
    bool host_trains;      /* this life has had a training segment */
    bool host_returns;     /* between a fault, or a resume, and training */

    rp_sim_trouble trouble;
};

/* Numbers of the nodes that follow the boards in the world. */
static inline uint32_t rp_sim_host_node(const rp_cluster *cluster) {
    return cluster->options.boards;
}
static inline uint32_t rp_sim_fault_node(const rp_cluster *cluster) {
    return cluster->options.boards + 1;
}

/* cluster_network.c: a transport whose packets wake the node. `seed` is for its lines. */
rp_err rp_sim_network_open(rp_cluster *cluster, uint32_t node, rp_arena *arena,
                           const rp_clock *clock, const rp_keypair *keys, uint64_t seed,
                           rp_sim_network *out) RP_MUST_CHECK;
void rp_sim_network_close(rp_sim_network *network);
/* Node at the far end of a port: a board, or RP_SIM_HOST. */
uint32_t rp_sim_far_end(const rp_cluster *cluster, const rp_port *port);

/* Applies the active faults to a node's lines. */
void rp_sim_lines_set(rp_cluster *cluster, const rp_sim_network *network);
void rp_sim_clock_start(rp_sim_clock *clock, const rp_cluster *cluster);
void rp_sim_clock_set_fast(rp_sim_clock *clock, double share);
int64_t rp_sim_clock_to_world_ns(const rp_sim_clock *clock, int64_t at_ns);

/* cluster_boards.c */
rp_err rp_sim_board_open(rp_cluster *cluster, uint32_t index) RP_MUST_CHECK;
/* Starts a life. errors as rp_agent_open() */
rp_err rp_sim_board_boot(rp_sim_board *board) RP_MUST_CHECK;
/* Ends the agent without a message; the next life starts at restart_ns. */
void rp_sim_board_crash(rp_sim_board *board, int64_t restart_ns);
void rp_sim_board_close(rp_sim_board *board);
/* A second machine with the board's key and address, until rp_sim_twin_end(). */
void rp_sim_twin_begin(rp_sim_board *board);
void rp_sim_twin_end(rp_sim_board *board);
/* Gives the board its name and key: the roster's, or a new key. */
rp_err rp_sim_board_make_known(rp_sim_board *board) RP_MUST_CHECK;
/* A spawner for the controller whose boards run already. */
rp_spawner rp_sim_spawner(rp_cluster *cluster);

/* cluster_disk.c */
bool rp_sim_disk_has_checkpoint(const rp_cluster *cluster);
/* Damages a file of the newest checkpoint after the controller has ended. */
void rp_sim_disk_damage(rp_cluster *cluster, const rp_sim_fault *fault);
/* Copies the run folder; puts that copy back, as a loss of power does; removes the copy. */
void rp_sim_disk_keep(rp_cluster *cluster);
void rp_sim_disk_return(rp_cluster *cluster);
void rp_sim_disk_forget(const rp_cluster *cluster);

/* cluster_faults.c */
void rp_sim_faults_start(rp_cluster *cluster);
/* Call after a change that faults may wait for. */
void rp_sim_faults_look(rp_cluster *cluster);
/* Call when a life of the controller begins. */
void rp_sim_faults_new_life(rp_cluster *cluster);
/* Call when the controller stops after too many recoveries, which enough faults justify. */
void rp_sim_faults_note_give_up(rp_cluster *cluster);

#endif
