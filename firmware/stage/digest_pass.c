/* All layers of a stage over some samples, in digests. */
#include "stage/digest.h"

#include <string.h>

static uint32_t tensor_of(const rp_layout *layout, uint32_t producer) {
    return producer == RP_LAYER_DATA ? layout->data_tensor : layout->tensor_of[producer];
}

static rp_digest *row_of(const rp_digest_pass *pass, rp_digest *rows, uint32_t tensor) {
    return rows + (size_t)tensor * pass->stride;
}

static uint32_t model_layer(const rp_digest_pass *pass, uint32_t position) {
    return pass->layout->first_layer + position;
}

/* Indices of the layer's parameters within the stage. */
static rp_range params_of(const rp_digest_pass *pass, uint32_t layer) {
    const uint32_t *first = pass->job->model->param_first;
    return (rp_range){first[layer] - pass->layout->param_first, first[layer + 1] - first[layer]};
}

static const rp_model_param *param_at(const rp_digest_pass *pass, uint32_t param) {
    return &pass->job->model->param[pass->layout->param_first + param];
}

/* The layer's first parameter with the role, or NULL. */
static rp_digest *find_running(const rp_digest_pass *pass, uint32_t layer, rp_param_role role) {
    const rp_range params = params_of(pass, layer);
    for (uint32_t p = params.first; p < params.first + params.count; p++) {
        if (param_at(pass, p)->role == role) {
            return &pass->running[p];
        }
    }
    return NULL;
}

/* ---- one layer ------------------------------------------------------------------------------- */

static rp_digest_layer describe_layer(const rp_digest_pass *pass, uint32_t position) {
    const uint32_t index = model_layer(pass, position);
    const rp_layer *layer = &pass->job->model->layer[index];
    const rp_range params = params_of(pass, index);
    rp_digest own[RP_LAYER_PARAMS_MAX];
    uint32_t count = 0;
    for (uint32_t p = params.first; p < params.first + params.count; p++) {
        if (pass->layout->trained[p] != RP_NOT_TRAINED) {
            own[count++] = pass->weights[pass->layout->trained[p]];
        } else if (param_at(pass, p)->role == RP_PARAM_FROZEN) {
            own[count++] = pass->running[p];
        }
    }
    return (rp_digest_layer){
        .layer = index,
        .weights = rp_digest_weights(own, count),
        .statistics = pass->statistics[position],
        .input_count = layer->input_count,
        .draws = pass->training && pass->job->model->plan[index].draws,
        .seed = pass->job->seed,
    };
}

/* Digests of the layer's inputs for sample s. */
static void gather_inputs(const rp_digest_pass *pass, uint32_t layer, uint32_t s, rp_digest *x) {
    const rp_layer *at = &pass->job->model->layer[layer];
    for (uint32_t i = 0; i < at->input_count; i++) {
        x[i] = row_of(pass, pass->value, tensor_of(pass->layout, at->input[i]))[s];
    }
}

/* ---- batch statistics ------------------------------------------------------------------------ */

static rp_digest statistics_of_batch(const rp_digest_pass *pass, uint32_t layer) {
    const uint32_t x = tensor_of(pass->layout, pass->job->model->layer[layer].input[0]);
    rp_digest sum = {0};
    for (uint32_t s = 0; s < pass->n; s++) {
        sum = rp_digest_add(sum, rp_digest_statistic(layer, row_of(pass, pass->value, x)[s]));
    }
    return rp_digest_statistics(layer, sum, pass->n);
}

/* Updates every running statistic of the layer with the digest `by`. */
static void move_running(const rp_digest_pass *pass, uint32_t layer, rp_digest by,
                         uint32_t renewal) {
    const rp_range params = params_of(pass, layer);
    for (uint32_t p = params.first; p < params.first + params.count; p++) {
        if (param_at(pass, p)->role == RP_PARAM_STATE) {
            const rp_digest moved = rp_digest_running(pass->running[p], by, renewal);
            pass->running[p] = rp_digest_fit(moved, param_at(pass, p));
        }
    }
}

/* The statistics that the layer uses. In training they are those of the microbatch, which also
 * update the running ones, at once or deferred. */
static rp_digest take_statistics(const rp_digest_pass *pass, uint32_t layer) {
    rp_digest *deferred = find_running(pass, layer, RP_PARAM_SCRATCH);
    const rp_digest *running = find_running(pass, layer, RP_PARAM_STATE);
    if (!running) {
        return (rp_digest){0};
    }
    if (!pass->training) {
        return *running;
    }
    const rp_digest batch = statistics_of_batch(pass, layer);
    if (deferred) {
        *deferred = rp_digest_add(*deferred, batch);
    } else {
        move_running(pass, layer, batch, pass->renewal);
    }
    return batch;
}

void rp_digest_run_commit(const rp_digest_pass *pass) {
    for (uint32_t i = 0; i < pass->layout->layer_count; i++) {
        const uint32_t layer = model_layer(pass, i);
        rp_digest *deferred = find_running(pass, layer, RP_PARAM_SCRATCH);
        if (deferred) {
            move_running(pass, layer, *deferred, 0);
            *deferred = (rp_digest){0};
        }
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

void rp_digest_run_forward(const rp_digest_pass *pass) {
    rp_digest x[RP_LAYER_INPUTS_MAX];
    for (uint32_t i = 0; i < pass->layout->layer_count; i++) {
        pass->statistics[i] = take_statistics(pass, model_layer(pass, i));
        const rp_digest_layer layer = describe_layer(pass, i);
        rp_digest *y = row_of(pass, pass->value, pass->layout->input_count + i);
        for (uint32_t s = 0; s < pass->n; s++) {
            gather_inputs(pass, layer.layer, s, x);
            y[s] = rp_digest_forward(&layer, x, pass->number + s);
        }
    }
}

static void add_input_gradients(const rp_digest_pass *pass, const rp_digest_layer *layer,
                                const rp_digest *x, uint32_t s, rp_digest dy) {
    const rp_layer *at = &pass->job->model->layer[layer->layer];
    for (uint32_t i = 0; i < at->input_count; i++) {
        const uint32_t t = tensor_of(pass->layout, at->input[i]);
        if (pass->layout->tensor[t].wants_grad) {
            rp_digest *dx = &row_of(pass, pass->grad, t)[s];
            *dx = rp_digest_add(*dx, rp_digest_backward(layer, i, x, dy, pass->number + s));
        }
    }
}

static void add_weight_gradients(const rp_digest_pass *pass, const rp_digest_layer *layer,
                                 const rp_digest *dy) {
    const rp_range params = params_of(pass, layer->layer);
    rp_digest x[RP_LAYER_INPUTS_MAX];
    for (uint32_t p = params.first; p < params.first + params.count; p++) {
        const uint32_t t = pass->layout->trained[p];
        rp_digest sum = {0};
        if (t == RP_NOT_TRAINED) {
            continue;
        }
        for (uint32_t s = 0; s < pass->n; s++) {
            gather_inputs(pass, layer->layer, s, x);
            sum = rp_digest_add(sum, rp_digest_gradient(layer, param_at(pass, p)->index, x, dy[s],
                                                        pass->number + s));
        }
        const rp_digest before = pass->accumulate ? pass->gradient[t] : (rp_digest){0};
        pass->gradient[t] = rp_digest_accumulate(before, sum, pass->strict);
    }
}

void rp_digest_run_backward(const rp_digest_pass *pass, bool dx, bool dw) {
    rp_digest x[RP_LAYER_INPUTS_MAX];
    for (uint32_t i = pass->layout->layer_count; i-- > 0;) {
        const uint32_t y = pass->layout->input_count + i;
        const rp_digest *dy = row_of(pass, pass->grad, y);
        if (!pass->layout->tensor[y].wants_grad) {
            continue; /* nothing is trained here or in an earlier layer */
        }
        const rp_digest_layer layer = describe_layer(pass, i);
        for (uint32_t s = 0; dx && s < pass->n; s++) {
            gather_inputs(pass, layer.layer, s, x);
            add_input_gradients(pass, &layer, x, s, dy[s]);
        }
        if (dw) {
            add_weight_gradients(pass, &layer, dy);
        }
    }
}
