/* The opencl executor's boundary tensors, to and from the host, and what their codecs lose. */
#include "codec/convert.h"
#include "stage/opencl_own.h"

/* Part `index` of every piece, each to its samples' place behind byte `at` of the buffer. */
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

/* ---- what is remembered of samples ----------------------------------------------------------- */

static rp_sched_shape shape_of(const rp_job *job) {
    return (rp_sched_shape){.epoch_samples = job->epoch_samples, .batch = job->batch};
}

/* The numbers of the samples of an epoch. Its memory is written again two epochs later, and no op
 * of an epoch is left in the queue then: what remembers flushes. */
static rp_err enqueue_order(rp_opencl *e, uint64_t epoch) {
    const rp_job *job = e->base.job;
    uint32_t *order = e->epoch_order[epoch % 2];
    rp_err err = RP_OK;
    if (e->epoch == epoch) {
        return RP_OK;
    }
    if (job->shuffle) {
        rp_rng_epoch_order(job->seed, (uint32_t)epoch, order, (uint32_t)job->epoch_samples);
    } else {
        for (uint32_t i = 0; i < job->epoch_samples; i++) {
            order[i] = i;
        }
    }
    RP_TRY(rp_buffer_write(e->device, e->order, 0, order, e->base.layout->order_bytes));
    e->epoch = epoch;
fail:
    return err;
}

/* Of tensor `index` of a boundary; its samples are the op's. */
static rp_err memory_of(rp_opencl *e, const rp_pass *pass, bool upper, uint32_t index,
                        rp_codec_memory *out) {
    const rp_sched_shape shape = shape_of(e->base.job);
    const uint64_t steps = rp_sched_epoch_steps(&shape);
    const uint64_t first = pass->op->step % steps * shape.batch + pass->op->samples.first;
    *out = (rp_codec_memory){e->remembered[upper][index], e->order, (uint32_t)first};
    return enqueue_order(e, pass->op->step / steps);
}

/* What has come, decoded, becomes what the stage before has sent. */
static rp_err remember_in(rp_opencl *e, const rp_pass *pass, uint32_t index, const rp_tensor *to) {
    rp_codec_memory memory;
    rp_err err;
    RP_TRY(memory_of(e, pass, false, index, &memory));
    RP_TRY(rp_codec_remember(e->device, &memory, to, pass->changes));
fail:
    return err;
}

/* Encodes it, or its change, and remembers what the next stage will see: in e->change behind it. */
static rp_err remember_out(rp_opencl *e, const rp_pass *pass, uint32_t index, rp_codec codec,
                           const rp_tensor *from) {
    const rp_tensor change = {.buffer = e->change, .shape = from->shape};
    rp_codec_memory memory;
    rp_err err;
    RP_TRY(memory_of(e, pass, true, index, &memory));
    if (pass->changes) {
        RP_TRY(rp_codec_change(e->device, &memory, e->change, from));
    }
    RP_TRY(rp_codec_encode(e->device, codec, e->encoded, pass->changes ? &change : from));
    RP_TRY(rp_codec_decode(e->device, codec, &change, e->encoded));
    RP_TRY(rp_codec_remember(e->device, &memory, &change, pass->changes));
fail:
    return err;
}

static bool remembers(const rp_opencl *e, const rp_pass *pass, bool upper, uint32_t index) {
    return pass->op->kind == RP_OP_FORWARD && pass->remembers && e->remembered[upper][index];
}

/* ---- in and out ------------------------------------------------------------------------------ */

/* Tensors that come through a boundary; encoded ones by way of one buffer, which the queue's order
 * keeps from being written too early. `at`: the values or the gradients of the op. */
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
            RP_TRY(remembers(e, pass, false, i) ? remember_in(e, pass, i, to) : RP_OK);
        }
    }
fail:
    return err;
}

/* In every so many steps the first sample of each parcel is decoded again, and what it has lost is
 * summed: enough to see what a codec costs, and hardly any work. */
enum { LOSS_STEPS = 8 };

/* `seen`: what the next stage has of it, NULL: it has yet to be decoded. */
static rp_err add_loss(rp_opencl *e, const rp_pass *pass, rp_codec codec, const rp_tensor *from,
                       rp_buffer *seen) {
    const bool gradients = pass->op->kind != RP_OP_FORWARD;
    rp_err err = RP_OK;
    if (!pass->training || pass->op->step % LOSS_STEPS != 0) {
        return RP_OK;
    }
    rp_tensor first = *from;
    first.shape.dim[0] = 1;
    const rp_tensor back = {.buffer = seen ? seen : e->decoded, .shape = first.shape};
    RP_TRY(seen ? RP_OK : rp_codec_decode(e->device, codec, &back, e->encoded));
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
            const bool remembered = remembers(e, pass, true, i);
            RP_TRY(remembered ? remember_out(e, pass, i, codec, from)
                              : rp_codec_encode(e->device, codec, e->encoded, from));
            RP_TRY(rp_buffer_read(e->device, pass->out[i], e->encoded, 0,
                                  from->shape.dim[0] * boundary->bytes[i]));
            RP_TRY(add_loss(e, pass, codec, from, remembered ? e->change : NULL));
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
