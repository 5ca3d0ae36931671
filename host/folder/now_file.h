/* now.json: the present state of a run, for programs that show it while it trains.
 *
 * The caller gives values; this module adds the counts of earlier starts of the run, and replaces
 * the file. A failure is never an error of the run: the file is then older than a second. */
#ifndef RP_FOLDER_NOW_FILE_H
#define RP_FOLDER_NOW_FILE_H

#include <stdint.h>

#include "base/arena.h"

typedef enum { RP_NOW_FORWARD, RP_NOW_BACKWARD, RP_NOW_UPDATE, RP_NOW_OPS } rp_now_op;
/* "forward", .. */
const char *rp_now_op_name(rp_now_op op);

/* A number that is NaN, and a text that is NULL, is unknown and omitted. Counts are those since
 * this start of the run. */
typedef struct {
    const char *name;
    const char *state;       /* "training", "silent", .. */
    const char *op;          /* kind of the last op that it reported */
    double busy;             /* share 0..1 of the last second */
    double op_s[RP_NOW_OPS]; /* seconds of ops */
    double idle_s;           /* seconds without an op, while the ring trained or evaluated */
    uint64_t memory_bytes;   /* most device memory; 0: unknown */
    double heat_c, power_w;
    double energy_j;  /* drawn; 0: unknown */
    double silent_s;  /* since it was heard */
    double staleness; /* most updates by which its gradients were late */
} rp_now_board;

/* One direction between two ends. */
typedef struct {
    const char *kind;      /* "hop", "feed", "control" */
    const char *from, *to; /* names of boards, or "host" */
    uint64_t bytes;
    double rate_bytes_s;
    double use; /* share 0..1 of the training time, up to the last report */
    double busy_s;
    double queue; /* messages that wait, or are not acknowledged */
    uint64_t resent, resets;
    double delay_s[2]; /* to the acknowledgement: median and 95th percentile */
} rp_now_wire;

/* A site of a federated run in the round that is open. */
typedef struct {
    const char *name;
    const char *state; /* "training", "finished", .. */
} rp_now_site;

typedef struct {
    const char *state;    /* of the controller: "train", "save", .. */
    uint64_t step, steps; /* steps done, and of the run; of a federated run: rounds */
    uint64_t samples;     /* trained, in all starts */
    double loss, learning_rate, samples_per_s;
    double left_s; /* time left */
    const rp_now_board *board;
    uint32_t board_count;
    const rp_now_wire *wire;
    uint32_t wire_count;
    const rp_now_site *site;
    uint32_t site_count; /* 0: the run is not a federated one */
} rp_now;

typedef struct rp_now_file rp_now_file;

/* Reads the counts of earlier starts. `run_id`: of the run, so that only its own file counts.
 * *out is allocated in `arena`, as later what new wires need. errors MEMORY */
rp_err rp_now_open(rp_arena *arena, const char *folder, uint64_t run_id,
                   rp_now_file **out) RP_MUST_CHECK;
/* Replaces the file; at most RP_NOW_BYTES_MAX bytes. Of a large ring it omits sites and wires of
 * the host, then all wires, then counts of boards. */
void rp_now_write(const rp_now_file *file, const rp_now *now);
/* The run ends: the last state stays in the run folder. `now` NULL: it is unknown. */
void rp_now_end(const rp_now_file *file, const rp_now *now);

#endif
