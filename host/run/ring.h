/* The ring as the controller sees it: one control link a board, a feed link to the first and the
 * last, and the phases that lead to a ring that can train.
 *
 *   open -> hello -> (profile) -> assign -> connect -> segments ... -> bye
 *
 * Each phase pumps messages until every board has answered, has failed, or the phase's deadline is
 * over; nothing waits without one. */
#ifndef RP_RUN_RING_H
#define RP_RUN_RING_H

#include "run/local.h"
#include "run/runfile.h"

/* Updates done, by stage and replica: of a checkpoint, which may be of another number of stages. */
typedef struct {
    uint32_t stages;
    uint64_t of[RP_CUT_STAGES_MAX][RP_REPLICAS_MAX];
} rp_applied;

/* Where a run stands between two segments. */
typedef struct {
    uint64_t step; /* next step to train */
    rp_cut cut;    /* that its checkpoint was made on; stage_count 0: none */
    uint64_t fill; /* where its pipes were filled: before `step` when microbatches are in flight */
    rp_applied applied;         /* as its checkpoint says */
    uint32_t advance, replicas; /* of the method then; 0 without an average */
    bool evaluated;             /* the evaluation due at this step has been done */
    /* what a resumed run goes on counting from */
    uint64_t samples, epoch_samples;
    double epoch_loss; /* sum over the samples of the epoch under way */
    double seconds, segment_s;
    double eval_loss; /* of that evaluation */
    uint64_t eval_samples, eval_correct;
} rp_position;

/* What boards report at the end of a segment; `up` is to the next stage, `down` to the one before.
 */
typedef struct {
    uint64_t bytes; /* sent */
    double busy_s;
} rp_board_link;
typedef struct {
    int64_t busy_ns;
    uint64_t microbatches;
    uint32_t in_flight_max, staleness_max;
    uint64_t device_bytes_max;
    rp_board_link up, down;
} rp_board_facts;

typedef struct {
    const char *name;
    const char *device; /* from its hello */
    char endpoint[128];
    char public_text[RP_KEY_TEXT];
    rp_link *control, *feed;
    bool hello, ready, profiled, finished;
    uint64_t round_trips; /* when it was pinged last */
    uint32_t hop_port, feed_port;
    int64_t clock_offset_ns; /* host time = board time + offset */
    rp_gemm_choice gemm;
    uint64_t device_bytes, weight_bytes, slots, resident_bytes;
    int64_t prepare_ns;
    rp_board_facts facts;              /* of all assignments */
    rp_board_facts facts_before;       /* of those before this one */
    uint64_t applied[RP_REPLICAS_MAX]; /* updates done: of the last checkpoint or segment */
    uint64_t flight_bytes;             /* of microbatches in flight at the last pause */
    uint32_t weight_copies;            /* versions of the weights that its memory holds */
    uint32_t weight_copies_max;        /* in any assignment */
    uint32_t probe_copies;             /* and those of a probe */
} rp_board_state;

typedef struct rp_ring rp_ring;
typedef struct rp_saving rp_saving; /* saving.c's */
struct rp_ring {
    rp_arena *arena;
    const rp_runfile *run;
    rp_clock clock;
    rp_keypair keys;
    rp_links *links;
    rp_local *local;
    rp_board_state *board;
    uint32_t count;
    const char *folder;       /* of the run, borrowed; NULL: none */
    rp_run_identity identity; /* of the run, on every message; each assignment has its term */
    rp_wire_range wire;       /* versions that all ends speak */
    uint64_t features;        /* that all ends have */
    int signal_fd;
    uint32_t interrupts; /* SIGINT and SIGTERM so far */
    int64_t last_ping_ns;
    bool watching;         /* silence of a board is a fault */
    double *layer_seconds; /* of a profile: forward, backward per layer */
    rp_saving *saving;     /* the save under way, or NULL */
    /* Messages of a run go here. */
    rp_err (*on_message)(void *context, uint32_t stage, const rp_message *message);
    void *context;
};

/* Blocks SIGINT, SIGTERM, SIGCHLD for the whole process and reads them from a descriptor: call it
 * before the first thread starts. */
rp_err rp_ring_signals(int *signal_fd) RP_MUST_CHECK;

/* Starts or reaches the boards and says hello. `folder`: of the run, for its identity and the
 * agents' logs; NULL: none. `keys_folder`: the host's keys for a roster.
 * errors  REFUSED when a board does not take our key or is not whom the roster says */
rp_err rp_ring_open(rp_arena *arena, const rp_runfile *run, const char *folder,
                    const char *keys_folder, int signal_fd, rp_ring *out) RP_MUST_CHECK;
void rp_ring_close(rp_ring *ring);

/* What a board may report as times: finite, not negative. */
bool rp_ring_are_times(const double *seconds, size_t count);

/* Seconds of each layer for one microbatch, on board 0 (local boards are alike). */
rp_err rp_ring_profile(rp_ring *ring, const double **layer_seconds) RP_MUST_CHECK;

/* The shortest of so many round trips to each board, and of these the longest: a board that is busy
 * when a ping comes, with a profile say, answers late. */
rp_err rp_ring_round_trip(rp_ring *ring, uint32_t trips, int64_t *out_ns) RP_MUST_CHECK;

/* Everyone gets its assignment, builds, and is connected to its neighbours. */
rp_err rp_ring_assign(rp_ring *ring, const rp_cut *cut) RP_MUST_CHECK;

/* The same again, as the run file's method is now: what the boards held is gone. Nothing may be on
 * its way. Kernels are there already, so a board that needs much longer than before is a fault. */
rp_err rp_ring_assign_again(rp_ring *ring, const rp_cut *cut) RP_MUST_CHECK;

/* One round: waits at most timeout_ns for anything, handles it. extra_fd < 0: none.
 * errors  FAULT (a board said so, died or is silent), INTERRUPTED at the second signal */
rp_err rp_ring_pump(rp_ring *ring, int extra_fd, int64_t timeout_ns) RP_MUST_CHECK;

/* A control message to one board; `parts` are copied. Pumps while the link is full. */
rp_err rp_ring_send(rp_ring *ring, uint32_t stage, rp_Frame *frame, const rp_part *parts,
                    uint32_t part_count) RP_MUST_CHECK;
rp_err rp_ring_send_all(rp_ring *ring, const rp_Frame *frame) RP_MUST_CHECK;

#endif
