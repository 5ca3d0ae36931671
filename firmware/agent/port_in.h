/* A receive port: boundary tensors of one kind (input, label, activation or gradient) that one
 * stage of this node consumes, from all edges that carry them.
 *
 * A parcel carries a sample range of a step. Parcels wait in a bounded pending queue until an op
 * asks for its own range, which may differ from a parcel's: the op gathers pieces of one or several
 * parcels. The memory of a parcel belongs to its source (a link, a send port of the same node, a
 * checkpoint) and is borrowed until `release`, which the port calls once all of the parcel's
 * samples have been consumed. Parcels of an evaluation and of training are kept apart: those of
 * training wait while an evaluation runs.
 *
 * Pure bookkeeping: knows no link, no device, no clock. */
#ifndef RP_AGENT_PORT_IN_H
#define RP_AGENT_PORT_IN_H

#include "base/arena.h"
#include "sched/sched.h"
#include "wire/frame.h"

enum { RP_PORT_PIECES_MAX = 64, RP_PORT_SOURCES_MAX = 17 };

/* Bytes of a sample's tensors in a step of `time` tokens. */
typedef struct {
    uint32_t time;
    size_t sample_bytes[RP_PARTS_MAX];
} rp_port_time;

/* Content of one sample in a parcel: bytes and element type of each of its tensors. */
typedef struct {
    uint32_t tensor_count;
    size_t sample_bytes[RP_PARTS_MAX]; /* in the longest steps, which have `time` 0 */
    rp_Dtype dtype[RP_PARTS_MAX];
    /* shorter steps; the list must outlive the port. A sum has the same bytes in all steps */
    const rp_port_time *shorter;
    uint32_t shorter_count;
    /* a parcel has `bytes` however many samples it is for, because it is a sum over them. An op
     * takes whole parcels */
    bool is_sum;
} rp_port_form;
/* Bytes of tensor `i` in a parcel of `samples` of the longest steps. */
static inline size_t rp_port_bytes(const rp_port_form *form, uint32_t i, uint32_t samples) {
    return form->is_sum ? form->sample_bytes[i] : form->sample_bytes[i] * samples;
}
/* Whether a step may have `time` tokens. */
bool rp_port_has_time(const rp_port_form *form, uint32_t time);
/* As rp_port_bytes(), in a step of `time` tokens, which rp_port_has_time(). */
size_t rp_port_bytes_at(const rp_port_form *form, uint32_t time, uint32_t i, uint32_t samples);

typedef struct {
    uint64_t step;
    rp_range samples; /* within the step */
    bool evaluating;  /* of an evaluation, whose steps count from 0 */
    uint32_t time;    /* tokens of a sample; 0: as in the longest steps */
    uint32_t source;  /* index of the edge that brought it */
    uint32_t part_count;
    rp_part part[RP_PARTS_MAX];                 /* [samples.count] samples of each tensor */
    void (*release)(void *owner, void *memory); /* NULL: the memory needs no release */
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
/* Releases every parcel. Accepts a pointer to NULL. */
void rp_port_in_close(rp_port_in **port);
const rp_port_form *rp_port_in_form(const rp_port_in *port);

/* Adds a parcel that has arrived; the struct is copied, its memory borrowed. After an error it
 * still belongs to the caller.
 * errors  AGAIN when the pending queue is full; PEER: parts of other sizes, no samples, samples
 *         that have arrived before, a step that is over */
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
    uint32_t parcel; /* index in the port, for rp_port_in_return() */
    uint32_t time;   /* of the parcel */
    const void *part[RP_PARTS_MAX];
} rp_port_piece;

/* Ordered by sample. */
typedef struct {
    uint32_t count;
    rp_port_piece piece[RP_PORT_PIECES_MAX];
} rp_port_pieces;

/* *ready: the whole range has arrived, and `pieces` says where it is. Consumes nothing. An op's
 * step is never before that of an earlier op in the same segment.
 * errors  PEER: a parcel of an evaluation in training; samples of an earlier step that no op asked
 *         for; samples that every source has skipped; a sum that also covers other samples
 *         LIMIT: more than RP_PORT_PIECES_MAX pieces */
rp_err rp_port_in_gather(rp_port_in *port, const rp_port_want *want, rp_port_pieces *pieces,
                         bool *ready) RP_MUST_CHECK;
/* Like rp_port_in_gather() for a port of sums, with errors PEER also if the samples arrived in
 * several parcels. */
rp_err rp_port_in_gather_one(rp_port_in *port, const rp_port_want *want, rp_port_pieces *pieces,
                             bool *ready) RP_MUST_CHECK;
/* Like rp_port_in_gather() without errors about other pending parcels, for a much later op.
 * errors  PEER: a sum that also covers other samples; LIMIT */
rp_err rp_port_in_find(const rp_port_in *port, const rp_port_want *want, rp_port_pieces *pieces,
                       bool *ready) RP_MUST_CHECK;
/* The op has been submitted: its samples are consumed, but their memory is still being read. */
void rp_port_in_take(rp_port_in *port, const rp_port_pieces *pieces);
/* The device has read them: releases parcels without remaining samples. */
void rp_port_in_return(rp_port_in *port, rp_port_pieces *pieces);

/* Parcels of training that wait: for checkpoints, between two segments. */
uint32_t rp_port_in_pending(const rp_port_in *port);
/* A new segment begins: steps may go back. */
void rp_port_in_begin(rp_port_in *port);

#endif
