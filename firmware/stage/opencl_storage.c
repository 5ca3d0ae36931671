/* Storage in 16 bits (nn/rounding.h) in passes of the opencl executor. A forward rounds each kept
 * output and packs it into the slot. A backward unpacks what its layers read, each tensor once,
 * into the f32 copy that the layout has for it. */
#include "codec/storage.h"
#include "stage/opencl_own.h"

static const rp_layout_storage *storage_of(const rp_opencl *e, uint32_t t) {
    return &e->base.layout->value.storage[e->base.layout->tensor[t].storage];
}

/* The op's samples in the slot. */
static rp_tensor packed_view(const rp_opencl *e, const rp_pass *pass, uint32_t t) {
    const uint64_t count = rp_shape_count(&e->value[t].shape) / e->value[t].shape.dim[0];
    return (rp_tensor){.buffer = e->slot[pass->stash.slot][storage_of(e, t)->buffer],
                       .dtype = e->base.job->storage,
                       .offset = pass->stash.first * count,
                       .shape = e->value[t].shape};
}

rp_err rp_opencl_store(rp_opencl *e, const rp_pass *pass, uint32_t t) {
    if (!pass->training || !e->base.layout->tensor[t].rounds) {
        return RP_OK;
    }
    if (!storage_of(e, t)->packed) {
        return rp_storage_round(e->device, e->base.job->storage, &e->value[t]);
    }
    const rp_tensor packed = packed_view(e, pass, t);
    return rp_storage_pack(e->device, &packed, &e->value[t]);
}

rp_err rp_opencl_store_inputs(rp_opencl *e, const rp_pass *pass) {
    const rp_layout *layout = e->base.layout;
    const bool exact = layout->codec[0][0] == RP_CODEC_F32;
    rp_err err = RP_OK;
    for (uint32_t t = 0; t < layout->input_count; t++) {
        if (!exact || storage_of(e, t)->packed) {
            RP_TRY(rp_opencl_store(e, pass, t));
        }
    }
fail:
    return err;
}

rp_err rp_opencl_store_again(rp_opencl *e, uint32_t t) {
    e->unpacked[e->base.layout->tensor[t].storage] = true;
    return e->base.layout->tensor[t].rounds
               ? rp_storage_round(e->device, e->base.job->storage, &e->value[t])
               : RP_OK;
}

rp_err rp_opencl_load(rp_opencl *e, const rp_pass *pass, uint32_t t) {
    bool *unpacked = &e->unpacked[e->base.layout->tensor[t].storage];
    if (!storage_of(e, t)->packed || *unpacked) {
        return RP_OK;
    }
    *unpacked = true;
    const rp_tensor packed = packed_view(e, pass, t);
    return rp_storage_unpack(e->device, &e->value[t], &packed);
}

void rp_opencl_forget_copies(rp_opencl *e) {
    for (uint32_t s = 0; s < e->base.layout->value.storage_count; s++) {
        e->unpacked[s] = false;
    }
}
