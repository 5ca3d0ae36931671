/* What the controller counts for now.json from one writing to the next (present.c). */
#ifndef RP_CONTROL_NOW_COUNTS_H
#define RP_CONTROL_NOW_COUNTS_H

#include "folder/now_file.h"
#include "record/sink.h"

/* Ops of a board since this start. */
typedef struct {
    const char *name; /* pointer of the ring */
    int64_t op_ns[RP_NOW_OPS];
    int64_t recent_ns; /* of ops since the file was written */
    int64_t idle_ns;   /* as last written; it never falls */
    rp_op_kind last;   /* RP_OP_KINDS: no op yet */
} rp_now_counts_board;

typedef struct {
    rp_arena arena;    /* of the file and the boards; the run's own is sealed while it trains */
    rp_now_file *file; /* NULL: not opened */
    bool is_off;       /* this run has no file, or it could not be opened */
    rp_now_counts_board *board;
    uint32_t board_count, board_max;
    int64_t written_ns, round_ns; /* times of the last file and of the last round */
    int64_t active_ns;            /* time in segments and passes */
    int64_t reported_ns;          /* active_ns when boards last reported on their wires */
    uint64_t reported_bytes;      /* sum of what they reported */
} rp_now_counts;

/* The counts of a board, from 0 if it is new. NULL: more boards than there is room for. `name`: a
 * pointer of the ring. */
rp_now_counts_board *rp_now_counts_of(rp_now_counts *counts, const char *name);
/* The column of an op. */
rp_now_op rp_now_counts_column(rp_op_kind kind);
/* Counts an op of a board of the ring. */
void rp_now_counts_add(rp_now_counts *counts, const char *board, const rp_sink_op *op);

#endif
