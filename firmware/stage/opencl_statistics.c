/* Running statistics on the device and their copies. Each is contiguous, so a step needs one
 * copy. */
#include "stage/opencl_own.h"

static rp_param_role role_of(const rp_opencl *e, uint32_t param) {
    return e->base.job->model->param[e->base.layout->param_first + param].role;
}

static rp_err open_piece(rp_opencl *e, const char *name, rp_darena **out) {
    return rp_darena_open(e->arena, e->device, name, 0, e->base.layout->statistics_bytes, out);
}

rp_err rp_opencl_take_statistics(rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    rp_buffer *whole;
    rp_err err;
    if (layout->statistics_bytes == 0) {
        return RP_OK;
    }
    RP_TRY(open_piece(e, "running statistics", &e->statistics));
    for (uint32_t i = 0; i < layout->param_count; i++) {
        if (role_of(e, i) == RP_PARAM_STATE) {
            RP_TRY(rp_darena_take(e->statistics,
                                  rp_shape_count(&e->param[i].value.shape) * sizeof(float),
                                  &e->param[i].value.buffer));
        }
    }
    rp_darena_seal(e->statistics);
    RP_TRY(RP_ARENA_NEW(e->arena, layout->kept + 1, &e->kept));
    for (uint32_t i = 0; i < layout->kept; i++) {
        RP_TRY(open_piece(e, "kept statistics", &e->kept[i]));
        RP_TRY(rp_darena_take(e->kept[i], layout->statistics_bytes, &whole));
        rp_darena_seal(e->kept[i]);
    }
fail:
    return err;
}

void rp_opencl_free_statistics(rp_opencl *e) {
    for (uint32_t i = 0; e->kept && i < e->base.layout->kept; i++) {
        rp_darena_close(&e->kept[i]);
    }
    rp_darena_close(&e->statistics);
}

static rp_err copy_piece(rp_opencl *e, rp_darena *to, rp_darena *from) {
    return rp_buffer_copy(e->device, rp_darena_whole(to), 0, rp_darena_whole(from), 0,
                          e->base.layout->statistics_bytes);
}

rp_err rp_opencl_keep(rp_opencl *e, uint32_t kept) {
    return copy_piece(e, e->kept[kept], e->statistics);
}

rp_err rp_opencl_restore(rp_opencl *e, uint32_t kept) {
    rp_err err;
    RP_TRY(copy_piece(e, e->statistics, e->kept[kept]));
    for (uint32_t i = 0; i < e->base.layout->param_count; i++) {
        rp_buffer *sums = e->param[i].value.buffer;
        RP_TRY(role_of(e, i) == RP_PARAM_SCRATCH
                   ? rp_buffer_fill_zero(e->device, sums, 0, rp_buffer_bytes(sums))
                   : RP_OK);
    }
fail:
    return err;
}
