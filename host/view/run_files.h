/* What the files of a run folder say about a run: its boards, wires and state. */
#ifndef RP_VIEW_RUN_FILES_H
#define RP_VIEW_RUN_FILES_H

#include "runs/state.h"
#include "view/log_totals.h"

enum {
    RP_VIEW_NAME_BYTES = 256,
    RP_VIEW_BOARDS_MAX = 4096,
    RP_VIEW_SITES_MAX = 1024,
    RP_VIEW_OPS = 3
};

/* A number that is NaN, and a text that is "", is unknown. */
typedef struct {
    const char *name;
    const char *state, *op;
    const char *layers; /* "conv1 .. relu2" */
    const char *stages; /* "0", "0 4" */
    const char *role;   /* "forward" or "backward": half of a stage */
    double layer_count;
    double busy, op_s[RP_VIEW_OPS], idle_s;
    double memory_bytes, heat_c, power_w, energy_j, silent_s, staleness;
} rp_view_board;

typedef struct {
    const char *kind, *from, *to;
    double bytes, rate_bytes_s, use, busy_s, queue, resent, resets, delay_s[2];
} rp_view_wire;

/* A site of a federated run: sums over its rounds. */
typedef struct {
    const char *name;
    const char *state; /* in the open round; "": unknown */
    double loss, samples, late, last_round;
} rp_view_site;

typedef struct {
    const char *folder;
    char name[RP_VIEW_NAME_BYTES];
    rp_view_log log;
    uint64_t steps_high, samples_high; /* largest values shown: counters never fall */
} rp_view_run;

typedef struct {
    const rp_view_run *run;
    rp_run_state state;
    const char *controller; /* state of the controller; "": unknown, or the run is not active */
    double age_s;           /* of now.json; NAN: the run is not active, or has no such file */
    double samples, left_s; /* NAN: unknown */
    double lost, repeated;  /* of the ledger, once the run has ended */
    rp_view_board *board;
    uint32_t board_count, board_max;
    rp_view_wire *wire;
    uint32_t wire_count;
    double round, up_bytes, down_bytes; /* of a federated run; NAN: another run */
    rp_view_site *site;
    uint32_t site_count;
} rp_view_facts;

/* Reads the files; what is missing or invalid is unknown. Updates run->log first. The texts of *out
 * are in `arena`. errors MEMORY; USAGE: the folder is not a run any more */
rp_err rp_view_read(rp_arena *arena, rp_view_run *run, rp_view_facts *out) RP_MUST_CHECK;

/* A number that changes when now.json, controller.json, summary.json or plan.json is replaced, or
 * log.jsonl grows. */
uint64_t rp_view_stamp(const rp_view_run *run);

#endif
