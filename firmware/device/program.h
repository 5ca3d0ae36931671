/* Kernels by name, and launching them.
 *
 * The sources of kernels/ are embedded as text. A program is built once per (name, defines), or
 * read from the on-disk cache of binaries. Its key is the SHA-256 of source, options, device name,
 * driver, device and platform version, format number. A damaged or foreign entry is a miss, never
 * an error. If the driver has its own cache, the entry only records that (ready.h). */
#ifndef RP_DEVICE_PROGRAM_H
#define RP_DEVICE_PROGRAM_H

#include "device/tensor.h"

typedef struct rp_kernel rp_kernel;

/* `program` is the file name without .cl; `defines` like "-DWG=64 -DRELU=1" or NULL. The board's
 * tuning.json may override defines of a program. Looking up a kernel again is a hash probe and
 * allocates nothing, so call it at the launch. */
rp_err rp_kernel_find(rp_device *device, const char *program, const char *entry,
                      const char *defines, rp_kernel **out) RP_MUST_CHECK;

/* rp_launch l = rp_launch_begin(kernel);
 * rp_arg_buffer(&l, y); rp_arg_u32(&l, n);
 * RP_TRY(rp_launch_run(&l, 1, (size_t[]){n}, (size_t[]){64}));
 * A wrong argument is remembered and returned by run. Global sizes are rounded up to the local
 * ones: kernels check their bounds. `local` NULL lets the driver choose. */
typedef struct {
    rp_kernel *kernel;
    uint32_t next;
    rp_err err;
} rp_launch;

rp_launch rp_launch_begin(rp_kernel *kernel);
void rp_arg_buffer(rp_launch *launch, const rp_buffer *buffer); /* NULL = a null pointer */
/* Two arguments: the buffer and, as ulong, the index of the tensor's first element in it. NULL = a
 * null pointer and 0. */
void rp_arg_tensor(rp_launch *launch, const rp_tensor *tensor);
void rp_arg_u32(rp_launch *launch, uint32_t value);
void rp_arg_i32(rp_launch *launch, int32_t value);
void rp_arg_u64(rp_launch *launch, uint64_t value);
void rp_arg_f32(rp_launch *launch, float value);
void rp_arg_local(rp_launch *launch, size_t bytes);
rp_err rp_launch_run(rp_launch *launch, uint32_t dims, const size_t *global,
                     const size_t *local) RP_MUST_CHECK;

#endif
