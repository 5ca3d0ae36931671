/* How long a step takes with given sizes: the recurrence, one genome at a time. Pure. */
#ifndef RP_PLANNERS_RECURRENCE_H
#define RP_PLANNERS_RECURRENCE_H

#include "planners/problem.h"

/* Seconds of a full microbatch, and of the step's last one. */
typedef struct {
    double full, last;
} rp_chunk_s;

/* A problem, with everything that an evaluation looks up. */
typedef struct {
    const rp_problem *problem;
    uint32_t stages, samples, size_count;
    uint32_t count[RP_PLANNERS_SIZES_MAX]; /* microbatches of a step, by size */
    rp_chunk_s *pass[RP_WAYS];             /* [stages][size_count] */
    rp_chunk_s *send[RP_WAYS];
    /* [from][to]: for each microbatch of size `to`, the first one of size `from` with which all of
     * its samples are there: J of METHODS 10.1 */
    const uint16_t *source[RP_PLANNERS_SIZES_MAX][RP_PLANNERS_SIZES_MAX];
} rp_tables;

/* Room for one evaluation. */
typedef struct {
    double *arrival[2]; /* [samples]: of a neighbour's microbatches, and what the stage sends */
    double start[RP_PLANNERS_STAGES_MAX]; /* when a stage's forwards are over */
} rp_recurrence_room;

/* `problem` is borrowed, and has been checked. errors MEMORY */
rp_err rp_tables_open(rp_arena *arena, const rp_problem *problem, rp_tables *out) RP_MUST_CHECK;
rp_err rp_recurrence_open(rp_arena *arena, const rp_tables *tables,
                          rp_recurrence_room *out) RP_MUST_CHECK;

/* One stage, one way: the end of its last microbatch. `start`: when it may begin. `arrival`: of the
 * microbatches of the stage that it receives from, whose size is `from`. `out`: arrivals at the
 * next one. The first stage of a way has one arrival at 0 or `start`, of all samples.
 *
 * A wire carries one microbatch at a time, in the order in which they are made, beside compute.
 *
 * source  METHODS 10.1; latency delays an arrival and does not keep the wire */
double rp_recurrence_stage(const rp_tables *tables, rp_way way, uint32_t stage, uint8_t from,
                           uint8_t size, const double *arrival, double start, double *out);

/* The end of the step: the last update. Infinite where memory does not suffice. */
double rp_recurrence_makespan(const rp_tables *tables, const rp_genome *genome,
                              rp_recurrence_room *room);

#endif
