/* Seconds of a step with given sizes: the recurrence, one genome at a time. Pure. */
#ifndef RP_PLANNERS_RECURRENCE_H
#define RP_PLANNERS_RECURRENCE_H

#include "planners/problem.h"

/* Seconds of a full microbatch, and of the step's last. */
typedef struct {
    double full, last;
} rp_chunk_s;

/* A problem in tables for fast evaluation. */
typedef struct {
    const rp_problem *problem;
    uint32_t stages, samples, size_count;
    uint32_t count[RP_PLANNERS_SIZES_MAX]; /* microbatches of a step, by size */
    rp_chunk_s *pass[RP_WAYS];             /* [stages][size_count] */
    rp_chunk_s *send[RP_WAYS];
    /* [from][to]: for each microbatch of size `to`, the microbatch of size `from` that completes
     * its samples: J of METHODS 10.1 */
    const uint16_t *source[RP_PLANNERS_SIZES_MAX][RP_PLANNERS_SIZES_MAX];
} rp_tables;

/* Memory for one evaluation. */
typedef struct {
    double *arrival[2];                   /* [samples]: at the stage, and at the next one */
    double start[RP_PLANNERS_STAGES_MAX]; /* end of a stage's forwards */
} rp_recurrence_room;

/* `problem` is borrowed and must be valid (rp_problem_check()). errors MEMORY */
rp_err rp_tables_open(rp_arena *arena, const rp_problem *problem, rp_tables *out) RP_MUST_CHECK;
rp_err rp_recurrence_open(rp_arena *arena, const rp_tables *tables,
                          rp_recurrence_room *out) RP_MUST_CHECK;

/* One stage in one direction: returns the end of its last microbatch. `start`: earliest start.
 * `arrival`: arrivals of the microbatches of size `from` that the stage before it sends. `out`:
 * arrivals at the next stage. The first stage of a direction has one arrival of all samples.
 *
 * A wire carries one microbatch at a time, in the order in which they end, while the stage computes
 * the next.
 *
 * source  METHODS 10.1; latency delays an arrival and does not occupy the wire */
double rp_recurrence_stage(const rp_tables *tables, rp_way way, uint32_t stage, uint8_t from,
                           uint8_t size, const double *arrival, double start, double *out);

/* The end of the step, which is the last update. Infinite if the genome exceeds a stage's memory.
 */
double rp_recurrence_makespan(const rp_tables *tables, const rp_genome *genome,
                              rp_recurrence_room *room);

#endif
