/* Boundary tensors of the opencl executor, to and from the host, and the losses of their codecs. */
#include "codec/convert.h"
#include "stage/opencl_own.h"

/* Writes part `index` of every piece to its samples' position, counted from byte `at` of the
 * buffer. */
rp_err rp_opencl_write_pieces(rp_opencl *e, const rp_pass *pass, uint32_t index, rp_buffer *to,
                              size_t at, size_t sample_bytes) {
    rp_err err = RP_OK;
    for (uint32_t p = 0; p < pass->in_count; p++) {
        const rp_stage_piece *piece = &pass->in[p];
        const rp_piece_cut cut = rp_piece_of(piece, &pass->op->samples);
        RP_TRY(rp_buffer_write(e->device, to, at + cut.at * sample_bytes,
                               (const char *)piece->part[index] + cut.from * sample_bytes,
                               cut.count * sample_bytes));
    }
fail:
    return err;
}

/* Reads boundary tensors. Encoded ones go through one buffer, which the in-order queue protects
 * from being overwritten too early. at: values or gradients of the op. */
rp_err rp_opencl_tensors_in(rp_opencl *e, const rp_pass *pass, const rp_boundary_tensors *boundary,
                            const rp_tensor *at) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < boundary->count && pass->in_count > 0; i++) {
        const rp_tensor *to = &at[boundary->tensor[i]];
        const rp_codec codec = boundary->codec[i];
        if (codec == RP_CODEC_F32) {
            RP_TRY(rp_opencl_write_pieces(e, pass, i, to->buffer,
                                          (size_t)to->offset * sizeof(float), boundary->bytes[i]));
        } else {
            RP_TRY(rp_opencl_write_pieces(e, pass, i, e->encoded, 0, boundary->bytes[i]));
            RP_TRY(codec == RP_CODEC_UINT8 ? rp_pixels_decode(e->device, to, e->encoded, e->pixels,
                                                              e->base.job->pixels.groups)
                                           : rp_codec_decode(e->device, codec, to, e->encoded));
        }
    }
fail:
    return err;
}

/* In every LOSS_STEPS-th step the first sample of each parcel is decoded again to measure its loss:
 * often enough to see the cost of a codec, with hardly any work. */
enum { LOSS_STEPS = 8 };

static rp_err add_loss(rp_opencl *e, const rp_pass *pass, rp_codec codec, const rp_tensor *from) {
    const bool gradients = pass->op->kind != RP_OP_FORWARD;
    rp_err err = RP_OK;
    if (!pass->training || pass->op->step % LOSS_STEPS != 0) {
        return RP_OK;
    }
    rp_tensor first = *from;
    first.shape.dim[0] = 1;
    const rp_tensor back = {.buffer = e->decoded, .shape = first.shape};
    RP_TRY(rp_codec_decode(e->device, codec, &back, e->encoded));
    RP_TRY(rp_codec_add_loss(e->device, e->losses, gradients, &back, &first));
fail:
    return err;
}

rp_err rp_opencl_tensors_out(rp_opencl *e, const rp_pass *pass, const rp_boundary_tensors *boundary,
                             const rp_tensor *at) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < boundary->count && pass->in_count > 0; i++) {
        const rp_tensor *from = &at[boundary->tensor[i]];
        const rp_codec codec = boundary->codec[i];
        if (codec == RP_CODEC_F32) {
            RP_TRY(rp_tensor_read(e->device, pass->out[i], from));
        } else {
            RP_TRY(rp_codec_encode(e->device, codec, e->encoded, from));
            RP_TRY(rp_buffer_read(e->device, pass->out[i], e->encoded, 0,
                                  from->shape.dim[0] * boundary->bytes[i]));
            RP_TRY(add_loss(e, pass, codec, from));
        }
    }
fail:
    return err;
}

rp_err rp_opencl_take_losses(rp_executor *executor, rp_codec_loss out[2]) {
    rp_opencl *e = rp_opencl_of(executor);
    float sums[2][RP_CODEC_LOSS_FLOATS] = {{0}};
    rp_err err = RP_OK;
    if (e->losses) {
        RP_TRY(rp_buffer_read_now(e->device, sums, e->losses, 0, sizeof sums));
        RP_TRY(rp_buffer_fill_zero(e->device, e->losses, 0, sizeof sums));
    }
    out[0] = rp_codec_sum_loss(sums[0]);
    out[1] = rp_codec_sum_loss(sums[1]);
fail:
    return err;
}
