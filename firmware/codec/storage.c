#include "codec/storage.h"

#include <stdio.h>

#include "device/program.h"

enum { ENTRY_BYTES = 16, GROUP_ITEMS = 64, ITEM_ELEMENTS = 16 };

/* `packed` may be NULL. */
static rp_err check_views(const rp_tensor *x, rp_dtype format, const rp_tensor *packed) {
    const size_t count = rp_shape_count(&x->shape);
    const bool is_half = format == RP_F16 || format == RP_BF16;
    const bool fits =
        is_half && x->dtype == RP_F32 && rp_tensor_fits(x, count) &&
        (!packed || (rp_shape_count(&packed->shape) == count && rp_tensor_fits(packed, count)));
    return fits && count <= INT32_MAX
               ? RP_OK
               : rp_fail(RP_ERR_SHAPE,
                         "storage: %zu elements of %s do not fit in their buffers, or %s is not "
                         "f16 or bf16",
                         count, rp_dtype_name(x->dtype), rp_dtype_name(format));
}

static rp_err begin_launch(rp_device *device, const char *what, rp_dtype format, rp_launch *out) {
    char entry[ENTRY_BYTES];
    rp_kernel *kernel;
    (void)snprintf(entry, sizeof entry, "%s_%s", what, rp_dtype_name(format));
    const rp_err err = rp_kernel_find(device, "storage", entry, NULL, &kernel);
    if (err == RP_OK) {
        *out = rp_launch_begin(kernel);
    }
    return err;
}

static rp_err run_launch(rp_launch *launch, const rp_tensor *x) {
    const size_t count = rp_shape_count(&x->shape);
    const size_t items = (count + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS;
    const size_t local = GROUP_ITEMS;
    rp_arg_u32(launch, (uint32_t)count);
    return rp_launch_run(launch, 1, &items, &local);
}

rp_err rp_storage_round(rp_device *device, rp_dtype format, const rp_tensor *x) {
    rp_launch launch;
    rp_err err;
    RP_TRY(check_views(x, format, NULL));
    RP_TRY(begin_launch(device, "round", format, &launch));
    rp_arg_tensor(&launch, x);
    RP_TRY(run_launch(&launch, x));
fail:
    return err;
}

/* Runs a kernel from one view to another; `packed` is the one in 16 bits. */
static rp_err convert(rp_device *device, const char *what, const rp_tensor *to,
                      const rp_tensor *from, const rp_tensor *packed) {
    const rp_tensor *x = packed == to ? from : to;
    rp_launch launch;
    rp_err err;
    RP_TRY(check_views(x, packed->dtype, packed));
    RP_TRY(begin_launch(device, what, packed->dtype, &launch));
    rp_arg_tensor(&launch, to);
    rp_arg_tensor(&launch, from);
    RP_TRY(run_launch(&launch, x));
fail:
    return err;
}

rp_err rp_storage_pack(rp_device *device, const rp_tensor *to, const rp_tensor *x) {
    return convert(device, "pack", to, x, to);
}

rp_err rp_storage_unpack(rp_device *device, const rp_tensor *x, const rp_tensor *from) {
    return convert(device, "unpack", x, from, from);
}
