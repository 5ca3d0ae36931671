/* The inside of `measure`. */
#ifndef RP_MEASURE_MEASURE_OWN_H
#define RP_MEASURE_MEASURE_OWN_H

#include "link/wire_rate.h"
#include "measure/measure.h"
#include "planning/predict.h"

/* drift.c: of the plan in force, predicted and measured. */
typedef struct {
    double seconds;
    uint64_t count;
} rp_drift_op;

typedef struct {
    bool is_known;                  /* there is a prediction */
    rp_prediction predicted;        /* its ops are in plan_arena, as `op` */
    rp_drift_op (*op)[RP_OP_KINDS]; /* [holds], of full microbatches */
    double steps_s;                 /* of `steps` steps */
    uint64_t steps;
    int64_t step_ns;   /* when the last step of the segment was done; 0: none is done yet */
    int64_t assign_ns; /* since when the boards get stages; 0: they have them */
    double setup_s;    /* that this took last */
    uint32_t changes;  /* of the plan, because of drift */
} rp_drift;

/* wires.c: which wire is being measured, and how far that is. */
typedef struct {
    uint32_t at, count; /* of wires; at <= count */
    enum {
        RP_WIRES_NEXT,
        RP_WIRES_LISTEN, /* end 1 lets end 0 connect */
        RP_WIRES_FORTH,  /* end 0 dials, and measures */
        RP_WIRES_BACK,   /* end 1 measures */
        RP_WIRES_BOTH    /* both at once */
    } phase;
    uint32_t end[2]; /* boards, which differ; valid unless NEXT */
    int64_t since_ns;
    double alone_s[2];   /* of the largest size, by the end that sends */
    uint32_t largest[2]; /* bytes */
} rp_wires;

/* feed_wires.c: of which board the wires to and from the host are measured. */
typedef struct {
    uint32_t at, count; /* of boards */
    enum { RP_FEED_WIRES_NEXT, RP_FEED_WIRES_FORTH, RP_FEED_WIRES_BACK } phase;
    int64_t since_ns;
    rp_wire_rate rate;
} rp_feed_wires;

/* losses.c: of what a board sends from a stage that it holds: of activations, of gradients. */
typedef struct {
    rp_codec_loss segment[2], total[2];
} rp_hold_losses;

typedef struct {
    bool probed; /* there is no profile of a former run for it, or it has been probed */
    bool tried;  /* it has answered the last TRIAL: */
    rp_TrialDone trial;
    uint64_t round_trips;     /* of its control link, when it was pinged last */
    int64_t shortest_trip_ns; /* valid when trips > 0 */
} rp_measure_board;

struct rp_measure {
    rp_measure_needs needs;
    rp_measure_board *board; /* [board_count], by place in the ring */
    uint32_t board_count;    /* at least as many as the ring ever has */
    rp_arena arena;          /* of `kept` and `profile` */
    rp_profile kept;         /* of boards, by former runs; to be probed */
    rp_profile profile;
    double *layer_seconds; /* [2 * layers] */
    uint32_t builders;     /* boards that build kernels before they are measured; 0: none */
    bool has_profile;
    rp_wires wires;
    rp_feed_wires feed_wires;
    uint32_t trips; /* round trips that have been measured since rp_measure_begin_trips() */
    double delay_s; /* from board to board */
    rp_arena plan_arena;
    rp_drift drift;
    rp_hold_losses *losses; /* [holds]; NULL: not open */
    uint32_t holds;         /* of the plan in force, when drift or losses are open */
};

/* equal_boards.c: boards of one machine would disturb each other. */
bool rp_measure_share_machine(const rp_ring *ring, uint32_t a, uint32_t b);
/* The board that is measured for this one: itself, or one of its machine that is alike. */
uint32_t rp_measure_board_for(const rp_measure *m, uint32_t board);
/* orders.c: of the codecs that boundaries may have, those that boards measure. Returns how many. */
uint32_t rp_measure_list_codecs(const rp_measure *m, uint32_t out[RP_MEASURED_CODECS]);
/* profile_cache.c: looks for the profile of a former run. errors  MEMORY */
rp_err rp_kept_look_up(rp_measure *m, uint32_t board) RP_MUST_CHECK;
/* Keeps what the board has measured; what cannot be kept is measured again by the next run. */
void rp_kept_write(const rp_measure *m, uint32_t board);
/* All boards that are to be measured have one, which only needs a probe. */
bool rp_kept_is_complete(const rp_measure *m);
/* profile_probe.c: the board has a profile of a former run, which has to be probed. */
bool rp_probe_is_due(const rp_measure *m, uint32_t board);
rp_err rp_probe_order(const rp_measure *m, uint32_t board, rp_Profile *out) RP_MUST_CHECK;
/* errors  PEER: it is not an answer to a probe */
rp_err rp_probe_take(rp_measure *m, uint32_t board, const double *values, size_t count,
                     rp_measure_answer *out) RP_MUST_CHECK;
/* wires.c: the first wire between boards is next, and after the last one those to the host. */
void rp_wires_begin(rp_measure *m);
/* feed_wires.c */
void rp_feed_wires_begin(rp_measure *m);
rp_err rp_feed_wires_step(rp_measure *m, bool *all) RP_MUST_CHECK;

/* The links go over wires that are not known and can be measured. */
static inline bool rp_measure_has_unknown_wires(const rp_measure *m) {
    return m->needs.has_real_wires && !m->needs.run->emulate;
}

#endif
