/* A receive port: boundary tensors of one kind (input, label, activation or gradient) that one
 * stage of this node consumes, whichever edges they come over.
 *
 * A parcel carries a sample range of a step. Parcels wait in a bounded pending queue until an op
 * asks for its own range, which need not be a parcel's: the op gathers pieces of one or several
 * parcels. The memory of a parcel belongs to whoever brought it (a link, a send port of the same
 * node, a checkpoint) and is borrowed until `release`, which the port calls once all of the
 * parcel's samples have been consumed. Parcels of an evaluation and of training are kept apart:
 * those of training wait while an evaluation runs.
 *
 * Pure bookkeeping: knows no link, no device, no clock. */
#ifndef RP_AGENT_PORT_IN_H
#define RP_AGENT_PORT_IN_H

#include "base/arena.h"
#include "sched/sched.h"
#include "wire/frame.h"

enum { RP_PORT_PIECES_MAX = 64, RP_PORT_SOURCES_MAX = 17 };

/* What one sample has in a parcel: bytes and element type of each of its tensors. */
typedef struct {
    uint32_t tensor_count;
    size_t sample_bytes[RP_PARTS_MAX];
    rp_Dtype dtype[RP_PARTS_MAX];
    bool is_sum; /* a parcel has so many bytes whatever its samples: a sum over them. An op takes
                    whole parcels */
} rp_port_form;
/* Bytes of tensor `i` of a parcel of so many samples. */
static inline size_t rp_port_bytes(const rp_port_form *form, uint32_t i, uint32_t samples) {
    return form->is_sum ? form->sample_bytes[i] : form->sample_bytes[i] * samples;
}

typedef struct {
    uint64_t step;
    rp_range samples; /* within the step */
    bool evaluating;  /* of an evaluation, whose steps count from 0 again */
    uint32_t source;  /* index of the edge that brought it */
    uint32_t part_count;
    rp_part part[RP_PARTS_MAX];                 /* [samples.count] samples of each tensor */
    void (*release)(void *owner, void *memory); /* NULL: nobody waits for the memory */
    void *owner, *memory;
} rp_parcel;

typedef struct {
    const char *name; /* for messages: "activations of stage 1"; borrowed */
    rp_port_form form;
    uint32_t pending_max;  /* parcels, >= 1: the windows of the edges that end here */
    uint32_t source_count; /* edges, 1 to RP_PORT_SOURCES_MAX */
} rp_port_in_options;

typedef struct rp_port_in rp_port_in;

/* errors MEMORY */
rp_err rp_port_in_open(rp_arena *arena, const rp_port_in_options *options,
                       rp_port_in **out) RP_MUST_CHECK;
/* Gives back every parcel. Accepts a pointer to NULL. */
void rp_port_in_close(rp_port_in **port);
const rp_port_form *rp_port_in_form(const rp_port_in *port);

/* A parcel that has come; copied, its memory is borrowed. After an error it is the caller's still.
 * errors  AGAIN when the pending queue is full; PEER: parts of other sizes, no samples, samples
 *         that have come before, a step that is over */
rp_err rp_port_in_push(rp_port_in *port, const rp_parcel *parcel) RP_MUST_CHECK;
bool rp_port_in_has_room(const rp_port_in *port);

/* The samples that an op needs. */
typedef struct {
    bool evaluating;
    uint64_t step;
    rp_range samples;
} rp_port_want;

/* Samples of one parcel; part[i]: their bytes of tensor i. */
typedef struct {
    rp_range samples;
    uint32_t parcel; /* position in the port, for rp_port_in_return() */
    const void *part[RP_PARTS_MAX];
} rp_port_piece;

/* In the order of their samples. */
typedef struct {
    uint32_t count;
    rp_port_piece piece[RP_PORT_PIECES_MAX];
} rp_port_pieces;

/* *ready: the whole range has come, and `pieces` says where it lies. Takes nothing. An op's step is
 * never before that of an op before it in the same segment.
 * errors  PEER: a parcel of an evaluation in training; samples of an earlier step that nothing asks
 *         for any more; samples that every source has passed over
 *         LIMIT: more than RP_PORT_PIECES_MAX pieces */
rp_err rp_port_in_gather(rp_port_in *port, const rp_port_want *want, rp_port_pieces *pieces,
                         bool *ready) RP_MUST_CHECK;
/* The same without errors about what else is pending: for an op that is far ahead. errors LIMIT */
rp_err rp_port_in_find(const rp_port_in *port, const rp_port_want *want, rp_port_pieces *pieces,
                       bool *ready) RP_MUST_CHECK;
/* The op is given to the device: its samples are consumed, their memory is read still. */
void rp_port_in_take(rp_port_in *port, const rp_port_pieces *pieces);
/* The device has read them: parcels without samples left are released. */
void rp_port_in_return(rp_port_in *port, rp_port_pieces *pieces);

/* Parcels of training that wait: for checkpoints, between two segments. */
uint32_t rp_port_in_pending(const rp_port_in *port);
/* A new segment begins: steps may count from an earlier one again. */
void rp_port_in_begin(rp_port_in *port);

#endif
