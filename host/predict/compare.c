#include "predict/compare.h"

#include <math.h>
#include <string.h>

typedef struct {
    const rp_compare_options *options;
    rp_network *network;
    uint32_t input[RP_COMPARE_INPUTS_MAX]; /* arrays */
    uint32_t output;
    size_t values;         /* in a sample */
    void *x;               /* samples of a run: floats, or int32_t */
    float *y;              /* and what the net makes of them */
    float *wanted;         /* one sample's outputs */
    float *before;         /* those of the first sample */
    bool differ;           /* the outputs of a further sample are others */
    double *row;           /* with the end that the net leaves out */
    double error, largest; /* of all samples so far */
} comparison;

/* ---- arrays ---------------------------------------------------------------------------------- */

static rp_err find_array(const rp_compare_options *options, const char *name, uint32_t *out) {
    *out = rp_npz_find(options->arrays, name);
    return *out != UINT32_MAX
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: has no array '%s'", options->path, name);
}

static rp_err find_arrays(comparison *c, uint32_t *samples) {
    const rp_compare_options *options = c->options;
    rp_shape shape;
    rp_err err;
    RP_TRY(find_array(options, options->output, &c->output));
    *samples = rp_npz_samples(options->arrays, c->output, &shape);
    if (rp_shape_count(&shape) != rp_network_outputs(c->network)) {
        return rp_fail(RP_ERR_FORMAT, "%s: %s: a sample has %zu values, expected the net's %u",
                       options->path, options->output, rp_shape_count(&shape),
                       rp_network_outputs(c->network));
    }
    for (uint32_t i = 0; i < options->input_count; i++) {
        RP_TRY(find_array(options, options->input[i], &c->input[i]));
        const uint32_t count = rp_npz_samples(options->arrays, c->input[i], &shape);
        if (!rp_shape_equal(&shape, &options->shape[i])) {
            return rp_fail(RP_ERR_FORMAT, "%s: %s: a sample has another shape than the input",
                           options->path, options->input[i]);
        }
        if (count != *samples) {
            return rp_fail(RP_ERR_FORMAT, "%s: %s has %u samples, %s has %u", options->path,
                           options->input[i], count, options->output, *samples);
        }
        c->values += rp_shape_count(&shape);
    }
fail:
    return err;
}

static rp_err read_sample(const comparison *c, uint32_t index, size_t at) {
    const rp_compare_options *options = c->options;
    size_t done = at * c->values;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < options->input_count && err == RP_OK; i++) {
        err = options->ids
                  ? rp_npz_whole(options->arrays, c->input[i], index, 0, INT32_MAX,
                                 (int32_t *)c->x + done)
                  : rp_npz_floats(options->arrays, c->input[i], index, (float *)c->x + done);
        done += rp_shape_count(&options->shape[i]);
    }
    return err;
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Writes the row as it is with the end of the net. */
static void add_end(const comparison *c, const float *y) {
    const uint32_t n = c->options->row;
    double most = (double)y[0];
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        most = fmax(most, (double)y[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        sum += exp((double)y[i] - most);
    }
    for (uint32_t i = 0; i < n; i++) {
        const double log_p = (double)y[i] - most - log(sum);
        c->row[i] = c->options->end == RP_END_NONE      ? (double)y[i]
                    : c->options->end == RP_END_SOFTMAX ? exp(log_p)
                                                        : log_p;
    }
}

static rp_err compare_sample(comparison *c, uint32_t index, const float *y) {
    const uint32_t outputs = rp_network_outputs(c->network);
    const rp_err err = rp_npz_floats(c->options->arrays, c->output, index, c->wanted);
    if (err == RP_OK && index == 0) {
        memcpy(c->before, c->wanted, outputs * sizeof *c->before);
    }
    c->differ = c->differ ||
                (err == RP_OK && memcmp(c->before, c->wanted, outputs * sizeof *c->before) != 0);
    for (uint32_t first = 0; err == RP_OK && first < outputs; first += c->options->row) {
        add_end(c, y + first);
        for (uint32_t i = 0; i < c->options->row; i++) {
            const double wanted = (double)c->wanted[first + i];
            const double error = fabs(c->row[i] - wanted);
            c->largest = fmax(c->largest, fabs(wanted));
            if (!isnan(c->error) && !(error <= c->error)) { /* the first NaN stays */
                c->error = error;
            }
        }
    }
    return err;
}

static rp_err new_buffers(rp_arena *arena, comparison *c) {
    const uint32_t micro = rp_network_micro(c->network);
    const uint32_t outputs = rp_network_outputs(c->network);
    rp_err err;
    RP_TRY(rp_arena_alloc(arena, micro * c->values, sizeof(float), &c->x));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)micro * outputs, &c->y));
    RP_TRY(RP_ARENA_NEW(arena, outputs, &c->wanted));
    RP_TRY(RP_ARENA_NEW(arena, outputs, &c->before));
    RP_TRY(RP_ARENA_NEW(arena, c->options->row, &c->row));
fail:
    return err;
}

rp_err rp_compare_outputs(rp_arena *arena, rp_network *network, const rp_compare_options *options,
                          rp_comparison *out) {
    comparison c = {.options = options, .network = network};
    const uint32_t micro = rp_network_micro(network);
    const uint32_t outputs = rp_network_outputs(network);
    rp_err err;
    RP_ASSERT(options->input_count <= RP_COMPARE_INPUTS_MAX && options->row > 0 &&
              outputs % options->row == 0);
    *out = (rp_comparison){0};
    RP_TRY(find_arrays(&c, &out->samples));
    RP_TRY(new_buffers(arena, &c));
    for (uint32_t first = 0; first < out->samples; first += micro) {
        const uint32_t n = out->samples - first < micro ? out->samples - first : micro;
        for (uint32_t i = 0; i < n; i++) {
            RP_TRY(read_sample(&c, first + i, i));
        }
        RP_TRY(rp_network_run(network, 0, c.x, n, c.y));
        for (uint32_t i = 0; i < n; i++) {
            RP_TRY(compare_sample(&c, first + i, c.y + (size_t)i * outputs));
        }
    }
    out->same = out->samples > 1 && !c.differ;
    out->error = c.largest > 0 ? c.error / c.largest : c.error;
fail:
    return err;
}
