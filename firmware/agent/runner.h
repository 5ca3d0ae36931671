/* The runner executes one segment of a job on a stage: it asks the schedule for the next op, waits
 * until the op's inputs have come, gives it to the stage, and sends what comes out.
 *
 * Never blocks: rp_runner_step() does what can be done now. At most RP_RUNNER_DEPTH ops are in the
 * device's queue. Messages on a link come in the order in which the ops need them, so each source
 * is a queue whose head must fit the next op; anything else is a fault of the peer.
 *
 * Parcels: INPUT and LABEL from the host's feed (one LABEL parcel a step, ahead of its inputs),
 * ACTIVATION from the stage before, GRADIENT from the stage behind. */
#ifndef RP_AGENT_RUNNER_H
#define RP_AGENT_RUNNER_H

#include "link/link.h"
#include "stage/stage.h"

enum { RP_RUNNER_DEPTH = 2, RP_TRACE_MAX = 512 };

/* Parcels that a data link takes ahead of their ops, and labels that the last stage puts aside:
 * those of all steps in the ring, and some to come. */
uint32_t rp_runner_window(const rp_job *job);

/* One op in the trace, as it goes over the wire (little-endian, packed by hand). */
enum { RP_TRACE_BYTES = 40 };

typedef struct rp_runner rp_runner;

typedef struct {
    rp_device *device;
    rp_stage *stage;
    const rp_job *job;
    const rp_clock *clock;
    rp_link *control; /* results, norms, trace */
    rp_link *in;      /* from the stage before, NULL on the first */
    rp_link *out;     /* to the stage behind, NULL on the last */
    rp_link *feed;    /* from the host: first and last stage, else NULL */
} rp_runner_links;

rp_err rp_runner_open(rp_arena *arena, const rp_runner_links *links, rp_runner **out) RP_MUST_CHECK;
/* Waits for the device and lets go of messages; the links may be closed after it. */
void rp_runner_close(rp_runner **runner);

/* Goes on from step `step` and pauses behind the update of the step before `pause`. A schedule that
 * does not flush pauses with microbatches in flight: parcels of theirs that have come are put
 * aside, and a later segment goes on with them. `drain`: but for this last segment, behind which
 * the pipes are empty. errors PEER when it is not there, or more is in flight */
rp_err rp_runner_train(rp_runner *runner, uint64_t step, uint64_t pause, bool drain) RP_MUST_CHECK;
/* Between two segments. `training`: forwards in training mode, without a loss, so that batch
 * statistics become those of the evaluated model. */
rp_err rp_runner_evaluate(rp_runner *runner, uint64_t samples, bool training) RP_MUST_CHECK;
/* Pause earlier, at `step`. errors PEER when it is in work already */
rp_err rp_runner_stop(rp_runner *runner, uint64_t step) RP_MUST_CHECK;
/* The host's answer to NORMS. errors PEER when it does not belong to the waiting step */
rp_err rp_runner_verdict(rp_runner *runner, uint64_t step, float grad_scale,
                         bool skip) RP_MUST_CHECK;

/* *active: a segment is under way. errors end the segment: PEER, DEVICE, ... */
rp_err rp_runner_step(rp_runner *runner, bool *active) RP_MUST_CHECK;

/* Between two segments: microbatches in flight as bytes, the stage's and parcels that wait here; 0
 * when there are none. Read from byte 0 on. `fill`: the step at which the pipes were filled. */
#define RP_FLIGHT_NAME "flight" /* in place of a tensor's name, on the wire */
size_t rp_runner_flight_bytes(const rp_runner *runner);
uint64_t rp_runner_fill_step(const rp_runner *runner);
rp_err rp_runner_flight_read(rp_runner *runner, size_t first, size_t count,
                             void *out) RP_MUST_CHECK;
/* Before the first segment: takes over what was in flight at the job's first step. All bytes must
 * then be written, in order, or rp_runner_train() refuses. errors PEER when `bytes` does not fit */
rp_err rp_runner_resume(rp_runner *runner, uint64_t fill, size_t bytes) RP_MUST_CHECK;
rp_err rp_runner_flight_write(rp_runner *runner, size_t first, size_t count,
                              const void *bytes) RP_MUST_CHECK;

/* How long the caller may sleep at most: an emulated pace ends without a sound. */
int64_t rp_runner_sleep_ns(const rp_runner *runner, int64_t most_ns);

typedef struct {
    int64_t busy_ns;
    uint64_t ops, trace_dropped;
    uint64_t microbatches; /* gradients taken: each sample once a step */
    uint32_t in_flight_max;
    uint64_t skipped; /* updates left out by the stage's own verdict */
} rp_runner_facts;
rp_runner_facts rp_runner_facts_of(const rp_runner *runner); /* since open */

#endif
