/* One long job on a separate thread: building kernels, preparing a stage, timing its layers.
 *
 * A slow board builds for minutes. Its agent passes that work to a builder and keeps answering:
 *
 *     RP_TRY(rp_device_builder_start(builder, prepare_stage, agent));
 *     ... every step, or when rp_device_builder_eventfd() is readable:
 *     if (rp_device_builder_is_done(builder)) {
 *         err = rp_device_builder_join(builder);
 *     }
 *
 * From start to join the device, and everything else the job changes, belong to the job: the
 * owner's thread may not touch them, not even after is_done() has returned true. start() and join()
 * make the writes of each of the two threads visible to both. A builder has one owner, whose thread
 * calls every function here except rp_device_builder_is_cancelled() and rp_device_builder_say(). */
#ifndef RP_DEVICE_BUILDER_H
#define RP_DEVICE_BUILDER_H

#include "device/device.h"

typedef struct rp_device_builder rp_device_builder;

/* Runs on the builder's thread. A job of many parts calls is_cancelled() between them and then
 * returns INTERRUPTED. The owner frees unfinished results after the join. */
typedef rp_err (*rp_device_build)(rp_device_builder *builder, void *context);

/* `device` is the one that the jobs build for; NULL for jobs without a device (an executor that
 * computes nothing). The builder is allocated in `arena` and borrows the device until it is closed.
 * errors  MEMORY; IO when the system provides no eventfd */
rp_err rp_device_builder_open(rp_arena *arena, rp_device *device,
                              rp_device_builder **out) RP_MUST_CHECK;
/* Cancels and joins a job that is still running, which may take as long as building one program.
 * Accepts a pointer to NULL. */
void rp_device_builder_close(rp_device_builder **builder);

/* Starts `build`; `context` is borrowed until the join. The previous job must have been joined. The
 * thread receives no signals. errors IO when no thread can be started */
rp_err rp_device_builder_start(rp_device_builder *builder, rp_device_build build,
                               void *context) RP_MUST_CHECK;
/* A job was started and not joined yet. */
bool rp_device_builder_is_started(const rp_device_builder *builder);
/* The job has returned, so that a join will not wait. */
bool rp_device_builder_is_done(const rp_device_builder *builder);
/* Readable from the return of the job until the join: for poll(). */
int rp_device_builder_eventfd(const rp_device_builder *builder);
/* Waits for the job and returns its result. The job's message becomes rp_err_message() of this
 * thread; it was already logged where the fault was found. */
rp_err rp_device_builder_join(rp_device_builder *builder) RP_MUST_CHECK;

/* Progress of the job, in parts that the job defines; may be called from any thread. */
typedef struct {
    uint32_t parts, done;
} rp_build_parts;
void rp_device_builder_say(rp_device_builder *builder, uint32_t done, uint32_t parts);
rp_build_parts rp_device_builder_parts(const rp_device_builder *builder);

/* Asks the job to end early. Until the join, kernels that are not built yet fail with INTERRUPTED;
 * a build in progress is completed. The job may still succeed. */
void rp_device_builder_cancel(rp_device_builder *builder);
bool rp_device_builder_is_cancelled(const rp_device_builder *builder);

#endif
