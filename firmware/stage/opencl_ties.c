/* Tied weights on the device: the row of gradients for other stages, and the sums over all uses. */
#include "optim/average.h"
#include "stage/opencl_own.h"

static rp_buffer *gradient_of(const rp_opencl *e, const rp_layout_use *use) {
    return rp_opencl_flat(e, (rp_block){RP_BLOCK_GRADIENT, 0})->part[use->trained];
}

static size_t bytes_of(const rp_layout_use *use) {
    return use->count * sizeof(float);
}

rp_err rp_opencl_read_row(rp_opencl *e, rp_block block, char *out) {
    const rp_layout *layout = e->base.layout;
    rp_buffer *const *part = rp_opencl_flat(e, block)->part;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < layout->use_count; i++) {
        const rp_layout_use *use = &layout->use[i];
        if (use->sent && use->trained != RP_NOT_TRAINED) {
            RP_TRY(
                rp_buffer_read(e->device, out + use->place, part[use->trained], 0, bytes_of(use)));
        }
    }
fail:
    return err;
}

/* Adds the gradient of one use to the sum; the first one becomes the sum. */
static rp_err add_use(rp_opencl *e, const rp_layout_use *use, const char *row, rp_buffer **sum) {
    rp_buffer *term = use->trained != RP_NOT_TRAINED ? gradient_of(e, use)
                      : *sum                         ? e->tie_term
                                                     : e->tie_sum;
    rp_err err = RP_OK;
    if (use->trained == RP_NOT_TRAINED) {
        RP_TRY(rp_buffer_write(e->device, term, 0, row + use->place, bytes_of(use)));
    }
    RP_TRY(*sum ? rp_average_add(e->device, *sum, *sum, term, 1.0f, use->count) : RP_OK);
    *sum = *sum ? *sum : term;
fail:
    return err;
}

/* The uses [first, end) are those of one tensor. */
static rp_err tie_tensor(rp_opencl *e, const rp_command *command, uint32_t first, uint32_t end) {
    const rp_layout_use *use = e->base.layout->use;
    rp_buffer *sum = NULL;
    rp_err err = RP_OK;
    for (uint32_t i = first; i < end; i++) {
        const bool far = use[i].trained == RP_NOT_TRAINED;
        RP_TRY(add_use(
            e, &use[i],
            far ? rp_tie_row_of(command->tie.row, command->tie.count, use[i].stage) : NULL, &sum));
    }
    for (uint32_t i = first; i < end; i++) {
        if (use[i].trained != RP_NOT_TRAINED && gradient_of(e, &use[i]) != sum) {
            RP_TRY(
                rp_buffer_copy(e->device, gradient_of(e, &use[i]), 0, sum, 0, bytes_of(&use[i])));
        }
    }
fail:
    return err;
}

rp_err rp_opencl_tie(rp_opencl *e, const rp_command *command) {
    const rp_layout *layout = e->base.layout;
    rp_err err = RP_OK;
    for (uint32_t first = 0, end = 0; first < layout->use_count; first = end) {
        while (end < layout->use_count && layout->use[end].owner == layout->use[first].owner) {
            end++;
        }
        /* without a flush only the owner adds up */
        RP_TRY(rp_layout_adds_up(layout, first, e->base.job) ? tie_tensor(e, command, first, end)
                                                             : RP_OK);
    }
fail:
    return err;
}

rp_err rp_opencl_take_values(rp_opencl *e, const rp_pass *pass) {
    const rp_layout *layout = e->base.layout;
    rp_err err = RP_OK;
    for (uint32_t i = 0; pass->tie_count > 0 && i < layout->use_count; i++) {
        const rp_layout_use *use = &layout->use[i];
        if (use->part != RP_NO_STORAGE) {
            const char *row = rp_tie_row_of(pass->tie, pass->tie_count, use->owner_stage);
            RP_TRY(rp_buffer_write(e->device, e->slot[pass->stash.slot][use->part], 0,
                                   row + use->owner_place, bytes_of(use)));
        }
    }
fail:
    return err;
}

void rp_opencl_select_values(rp_opencl *e, const rp_pass *pass) {
    const rp_layout *layout = e->base.layout;
    for (uint32_t i = 0; i < layout->use_count; i++) {
        const rp_layout_use *use = &layout->use[i];
        if (use->part != RP_NO_STORAGE) {
            e->param[use->param].value.buffer = e->slot[pass->stash.slot][use->part];
        }
    }
}
