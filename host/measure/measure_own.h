/* The struct of this room, for its own files. */
#ifndef RP_MEASURE_MEASURE_OWN_H
#define RP_MEASURE_MEASURE_OWN_H

#include "link/wire_rate.h"
#include "measure/measure.h"
#include "planning/predict.h"

/* drift.c: predicted and measured times of the plan in force. */
typedef struct {
    double seconds;
    uint64_t count;
} rp_drift_op;

typedef struct {
    bool is_known;                  /* there is a prediction */
    rp_prediction predicted;        /* its ops are in plan_arena, like `op` */
    rp_drift_op (*op)[RP_OP_KINDS]; /* [holds], of full microbatches */
    double steps_s;                 /* duration of `steps` steps */
    uint64_t steps;
    int64_t step_ns;   /* when the last step of the segment was done; 0: none */
    int64_t assign_ns; /* when boards began to get stages; 0: they have them */
    double setup_s;    /* duration of the last set-up */
    uint32_t changes;  /* number of changes of the plan because of drift */
} rp_drift;

/* wires.c: the wire being measured, and the progress. */
typedef struct {
    uint32_t at, count; /* current wire, number of wires; at <= count */
    enum {
        RP_WIRES_NEXT,
        RP_WIRES_LISTEN, /* end 1 listens for end 0 */
        RP_WIRES_FORTH,  /* end 0 dials and measures */
        RP_WIRES_BACK,   /* end 1 measures */
        RP_WIRES_BOTH    /* both measure at once */
    } phase;
    uint32_t end[2]; /* two different boards; valid unless NEXT */
    int64_t since_ns;
    double alone_s[2];   /* seconds of the largest size, by the end that sends */
    uint32_t largest[2]; /* that size in bytes */
} rp_wires;

/* feed_wires.c: the board whose wires to and from the host are measured. */
typedef struct {
    uint32_t at, count; /* current board, number of boards */
    enum { RP_FEED_WIRES_NEXT, RP_FEED_WIRES_FORTH, RP_FEED_WIRES_BACK } phase;
    int64_t since_ns;
    rp_wire_rate rate;
} rp_feed_wires;

/* losses.c: losses of a stage on a board: of activations, of gradients. */
typedef struct {
    rp_codec_loss segment[2], total[2];
} rp_hold_losses;

typedef struct {
    bool probed; /* there is no cached profile for it, or it has been probed */
    bool tried;  /* it has answered the last TRIAL with: */
    rp_TrialDone trial;
    uint64_t round_trips;     /* count of its control link at the last ping */
    int64_t shortest_trip_ns; /* valid if trips > 0 */
} rp_measure_board;

struct rp_measure {
    rp_measure_needs needs;
    rp_measure_board *board; /* [board_count], by place in the ring */
    uint32_t board_count;    /* at least the largest size of the ring */
    rp_arena arena;          /* memory of `kept` and `profile` */
    rp_profile kept;         /* cached profiles, to be probed */
    rp_profile profile;
    double *layer_seconds; /* [2 * layers] */
    uint32_t builders;     /* number of boards that build kernels before measuring; 0: none */
    bool has_profile;
    rp_wires wires;
    rp_feed_wires feed_wires;
    uint32_t trips; /* round trips measured since rp_measure_begin_trips() */
    double delay_s; /* from board to board */
    rp_arena plan_arena;
    rp_drift drift;
    rp_hold_losses *losses; /* [holds]; NULL: not open */
    uint32_t holds;         /* holds of the plan in force, while drift or losses are open */
};

/* equal_boards.c: boards of one machine would disturb each other. */
bool rp_measure_share_machine(const rp_ring *ring, uint32_t a, uint32_t b);
/* The board that is measured for this one: itself, or an equal one on its machine. */
uint32_t rp_measure_board_for(const rp_measure *m, uint32_t board);
/* orders.c: lists the codecs that boards have to measure. Returns how many. */
uint32_t rp_measure_list_codecs(const rp_measure *m, uint32_t out[RP_MEASURED_CODECS]);
/* profile_cache.c: looks up a board's cached profile. errors MEMORY */
rp_err rp_profile_cache_read(rp_measure *m, uint32_t board) RP_MUST_CHECK;
/* Stores a board's profile in the cache; a failure only means that the next run measures again. */
void rp_profile_cache_write(const rp_measure *m, uint32_t board);
/* All boards that would be measured have a cached profile, which only needs a probe. */
bool rp_profile_cache_is_complete(const rp_measure *m);
/* profile_probe.c: the board's cached profile has to be probed. */
bool rp_profile_probe_is_due(const rp_measure *m, uint32_t board);
rp_err rp_profile_probe_order(const rp_measure *m, uint32_t board, rp_Profile *out) RP_MUST_CHECK;
/* errors PEER: the answer is not one to a probe */
rp_err rp_profile_probe_take(rp_measure *m, uint32_t board, const double *values, size_t count,
                             rp_measure_answer *out) RP_MUST_CHECK;
/* wires.c: starts with the first wire between boards; those to the host come last. */
void rp_wires_begin(rp_measure *m);
/* feed_wires.c */
void rp_feed_wires_begin(rp_measure *m);
rp_err rp_feed_wires_step(rp_measure *m, bool *all) RP_MUST_CHECK;

/* There are real wires that can be measured. */
static inline bool rp_measure_has_unknown_wires(const rp_measure *m) {
    return m->needs.has_real_wires && !m->needs.run->emulate;
}

#endif
