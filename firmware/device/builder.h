/* One long job on a thread of its own: building kernels, preparing a stage, timing its layers.
 *
 * A slow board builds for minutes. Its agent gives that work to a builder and keeps answering:
 *
 *     RP_TRY(rp_device_builder_start(builder, prepare_stage, agent));
 *     ... every step, or when rp_device_builder_eventfd() is readable:
 *     if (rp_device_builder_is_done(builder)) {
 *         err = rp_device_builder_join(builder);
 *     }
 *
 * From start to join the device, and whatever else the job changes, belong to the job: the owner's
 * thread may not touch them, not even after is_done() has said true. start() and join() are what
 * makes the one thread's writes visible to the other. A builder has one owner, whose thread calls
 * every function here but rp_device_builder_is_cancelled() and rp_device_builder_say(). */
#ifndef RP_DEVICE_BUILDER_H
#define RP_DEVICE_BUILDER_H

#include "device/device.h"

typedef struct rp_device_builder rp_device_builder;

/* Runs on the builder's thread. A job of many parts asks is_cancelled() between them and returns
 * INTERRUPTED. What it leaves half made is the owner's to free, after the join. */
typedef rp_err (*rp_device_build)(rp_device_builder *builder, void *context);

/* `device` is the one that the jobs build for; NULL for jobs without a device (an executor that
 * computes nothing). The builder lies in `arena` and borrows the device until it is closed.
 * errors  MEMORY; IO when the system gives no eventfd */
rp_err rp_device_builder_open(rp_arena *arena, rp_device *device,
                              rp_device_builder **out) RP_MUST_CHECK;
/* Cancels and joins a job that still runs: may wait for as long as one program takes to build.
 * Accepts NULL inside. */
void rp_device_builder_close(rp_device_builder **builder);

/* Starts `build`; `context` is borrowed until the join. A job that was started and not joined yet
 * is the owner's mistake. The thread takes no signals. errors  IO when no thread can be started */
rp_err rp_device_builder_start(rp_device_builder *builder, rp_device_build build,
                               void *context) RP_MUST_CHECK;
/* Started, and not joined yet. */
bool rp_device_builder_is_started(const rp_device_builder *builder);
/* The job has returned: a join will not wait. */
bool rp_device_builder_is_done(const rp_device_builder *builder);
/* Readable from the moment when the job has returned until the join: for poll(). */
int rp_device_builder_eventfd(const rp_device_builder *builder);
/* Waits for the job and returns what it returned. The job's message becomes rp_err_message() of
 * this thread; it was logged where the fault was found and is not logged again. */
rp_err rp_device_builder_join(rp_device_builder *builder) RP_MUST_CHECK;

/* How far the job is, in parts of its own: the job says it, from any thread it is asked. */
typedef struct {
    uint32_t parts, done;
} rp_build_parts;
void rp_device_builder_say(rp_device_builder *builder, uint32_t done, uint32_t parts);
rp_build_parts rp_device_builder_parts(const rp_device_builder *builder);

/* Asks the job to end early. Kernels that are not built yet fail with INTERRUPTED from here to the
 * join; one that is being built is built to its end. The job may also still succeed. */
void rp_device_builder_cancel(rp_device_builder *builder);
bool rp_device_builder_is_cancelled(const rp_device_builder *builder);

#endif
