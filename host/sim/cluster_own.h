/* Inside of a cluster; only for cluster.c and cluster_*.c. */
#ifndef RP_SIM_CLUSTER_OWN_H
#define RP_SIM_CLUSTER_OWN_H

#include <sys/types.h>

#include "agent/agent.h"
#include "sim/cluster.h"
#include "transport/emulate.h"
#include "transport/inproc.h"

enum { RP_SIM_NAME_BYTES = 64, RP_SIM_ADDRESS_BYTES = 128 };

/* A node's own clock: it may have been set ahead, or begun anew. */
typedef struct {
    rp_clock clock; /* first: rp_clock_now_ns() finds the rest behind it */
    const rp_clock *world;
    int64_t ahead_ns; /* of the world's */
    double fast;      /* share by which it runs ahead of the world's, since: */
    int64_t fast_from_ns;
} rp_sim_clock;

/* What a node sends goes over lines that faults change. */
typedef struct {
    rp_cluster *cluster;
    uint32_t node; /* its number in the world: boards, the host, the faults, the twins of boards */
    rp_transport *inproc, *line;
    rp_link_profile calm; /* of each line without faults */
} rp_sim_network;

typedef struct {
    rp_cluster *cluster;
    uint32_t index;
    uint32_t node; /* its number in the world: its index, or that of a twin */
    char name[RP_SIM_NAME_BYTES];
    rp_keypair keys;
    uint8_t key[RP_KEY_BYTES];         /* its public one */
    char listen[RP_SIM_ADDRESS_BYTES]; /* "": it dials */
    uint32_t lives;                    /* that have begun */
    rp_agent *agent;                   /* NULL: crashed */
    rp_arena arena;                    /* of this life */
    rp_sim_clock clock;                /* of this life */
    rp_rng sessions;
    rp_sim_network network;
    rp_site_costs costs; /* of its place in the profile that was given */
    double slow;         /* their factor, by faults */
    double *seconds; /* of each layer and one sample: forward, backward in turn; slowed by faults */
    bool moves;      /* its next life is at another address */
    bool empties;    /* and with another key */
    bool fails;      /* the next op of its device does */
    bool hangs;      /* its device ends no op */
    uint32_t wrong_every; /* of its forwards; 0: none is wrong */
    uint32_t allocations; /* one of the next so many fails; 0: none does */
    int64_t restart_ns;   /* crashed: when it begins anew, by the world's clock; NEVER */
    int64_t still_ns;     /* it stands still until then */
    bool lost;            /* away for longer than it is waited for, or where nobody looks for it */
    rp_agent_state state;
} rp_sim_board;

/* A file of a checkpoint that was damaged; one that is written anew has another inode. */
typedef struct {
    char name[RP_SIM_NAME_BYTES];
    ino_t inode;
} rp_sim_damage;
enum { RP_SIM_DAMAGES_MAX = 2 * RP_SIM_FAULTS_MAX }; /* a copy of such a file counts, too */

typedef struct {
    /* by index into options.faults */
    bool begun[RP_SIM_FAULTS_MAX], active[RP_SIM_FAULTS_MAX];
    int64_t at_ns[RP_SIM_FAULTS_MAX]; /* when it begins: later than drawn if its target was away */
    uint32_t effective;
    uint32_t before; /* of them, in earlier lives of the controller */
    rp_sim_marks marks;
    int64_t calm_ns;  /* when the last one that has begun is over, or its board not waited for */
    bool may_stop;    /* one of those that may end a run was there in this life of the controller */
    bool lines;       /* some line has had a fault */
    uint64_t streams; /* of lines, so far */
    rp_rng rng;
} rp_sim_trouble;

struct rp_cluster {
    rp_arena *arena;
    rp_cluster_options options;
    rp_world *world;
    rp_eventlog log;
    rp_hub *hub;
    rp_media *media;            /* of all lines, on the world's clock */
    rp_agent_library *library;  /* of the texts that all boards get */
    rp_sim_board *board, *twin; /* of each board; a twin has an agent while its fault lasts */

    /* the host */
    rp_keypair host_keys;
    rp_sim_clock host_clock;
    rp_sim_network host_network;
    rp_arena host_arena; /* of one life of the controller */
    rp_links *host_links;
    rp_rng host_sessions;
    rp_controller *controller; /* NULL: between two lives */
    uint32_t host_lives;
    int64_t host_since_ns; /* when this one began */
    bool host_crashed;
    const rp_sim_fault *disk_fault; /* that its files have when this life is over; or NULL */
    bool disk_full;
    bool disk_returns; /* when this life is over, to what it was when its fsync began to lie */
    bool disk_forgot;  /* it has gone back so */
    rp_sim_damage damage[RP_SIM_DAMAGES_MAX];
    uint32_t damages;
    const char *host_state;
    int64_t host_still_ns; /* it stands still until then */
    bool host_trains;      /* in this life there was a training segment */
    bool host_returns;     /* behind a fault, or resumed: it is not at work yet */

    rp_sim_trouble trouble;
};

/* Numbers of the world's nodes behind the boards. */
static inline uint32_t rp_sim_host_node(const rp_cluster *cluster) {
    return cluster->options.boards;
}
static inline uint32_t rp_sim_fault_node(const rp_cluster *cluster) {
    return cluster->options.boards + 1;
}

/* cluster_network.c: a transport whose packets wake the node. `seed`: of its lines. */
rp_err rp_sim_network_open(rp_cluster *cluster, uint32_t node, rp_arena *arena,
                           const rp_clock *clock, const rp_keypair *keys, uint64_t seed,
                           rp_sim_network *out) RP_MUST_CHECK;
void rp_sim_network_close(rp_sim_network *network);
/* Who is at the far end of a port: a board, or RP_SIM_HOST. */
uint32_t rp_sim_far_end(const rp_cluster *cluster, const rp_port *port);

/* A node's lines as the faults of now want them. */
void rp_sim_lines_set(rp_cluster *cluster, const rp_sim_network *network);
void rp_sim_clock_start(rp_sim_clock *clock, const rp_cluster *cluster);
void rp_sim_clock_set_fast(rp_sim_clock *clock, double share);
int64_t rp_sim_clock_to_world_ns(const rp_sim_clock *clock, int64_t at_ns);

/* cluster_boards.c */
rp_err rp_sim_board_open(rp_cluster *cluster, uint32_t index) RP_MUST_CHECK;
/* A life begins. errors as rp_agent_open() */
rp_err rp_sim_board_boot(rp_sim_board *board) RP_MUST_CHECK;
/* It ends without a word; begins anew at restart_ns. */
void rp_sim_board_crash(rp_sim_board *board, int64_t restart_ns);
void rp_sim_board_close(rp_sim_board *board);
/* Another machine with its key, where it listens or dials, for a while. */
void rp_sim_twin_begin(rp_sim_board *board);
void rp_sim_twin_end(rp_sim_board *board);
rp_err rp_sim_board_make_known(rp_sim_board *board) RP_MUST_CHECK;
/* The boards as the controller's spawner: they are there already. */
rp_spawner rp_sim_spawner(rp_cluster *cluster);

/* cluster_disk.c: there is a checkpoint; the controller has ended. */
bool rp_sim_disk_has_checkpoint(const rp_cluster *cluster);
void rp_sim_disk_damage(rp_cluster *cluster, const rp_sim_fault *fault);
/* The folder as it is now is what a loss of power leaves of it; or it goes back to that. */
void rp_sim_disk_keep(rp_cluster *cluster);
void rp_sim_disk_return(rp_cluster *cluster);
void rp_sim_disk_forget(const rp_cluster *cluster);

/* cluster_faults.c */
void rp_sim_faults_start(rp_cluster *cluster);
/* Something has changed that faults may wait for. */
void rp_sim_faults_look(rp_cluster *cluster);
/* A life of the controller begins. */
void rp_sim_faults_new_life(rp_cluster *cluster);
/* The controller stops because it has gone back too often: for as many faults it may. */
void rp_sim_faults_note_give_up(rp_cluster *cluster);

#endif
