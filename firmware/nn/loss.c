#include "nn/loss.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/program.h"
#include "nn/layer_common.h"
#include "nn/loss_own.h"

enum { PIXELS = 16 /* of an item of cross_entropy_pixels, kernels/loss.cl */ };

const rp_loss_kind *rp_loss_find(const char *name) {
    for (const rp_loss_kind *const *kind = rp_loss_kinds; *kind; kind++) {
        if (strcmp((*kind)->name, name) == 0) {
            return *kind;
        }
    }
    return NULL;
}

static rp_err fail_unknown(const rp_node *node, const char *name) {
    char known[200] = "";
    size_t used = 0;
    for (const rp_loss_kind *const *k = rp_loss_kinds; *k && used < sizeof known; k++) {
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", (*k)->name);
    }
    return rp_node_fail(node, "no loss '%s'; there are:%s", name, known);
}

static rp_err read_options(rp_node *node, rp_loss_options *options) {
    static const char *const places[] = {"last", "first", NULL};
    uint32_t place = 0;
    rp_err err;
    RP_TRY(rp_node_f32(node, "label_smoothing", 0.0, 1.0, &options->label_smoothing));
    options->ignores = rp_node_find(node, "ignore") != NULL;
    RP_TRY(rp_node_i32(node, "ignore", &options->ignore));
    RP_TRY(rp_node_word(node, "classes_at", places, &place));
    options->classes_first = place == 1;
    RP_TRY(rp_node_done(node));
fail:
    return err;
}

rp_err rp_loss_parse(rp_node *root, const rp_loss_kind **kind, rp_loss_options *options) {
    rp_node *node;
    const char *name = "cross-entropy";
    rp_err err;
    *options = (rp_loss_options){0};
    RP_TRY(rp_node_section(root, "loss", name, &node));
    if (node && rp_node_is_map(node)) {
        RP_TRY(rp_node_need(node, "kind"));
        RP_TRY(rp_node_string(node, "kind", &name));
        RP_TRY(read_options(node, options));
    } else {
        RP_TRY(rp_node_string(root, "loss", &name));
    }
    *kind = rp_loss_find(name);
    if (!*kind) {
        return fail_unknown(node, name);
    }
    if (!(*kind)->accuracy && options->label_smoothing > 0) {
        return rp_node_fail(rp_node_find(node, "label_smoothing"),
                            "is for classes, but the targets of %s are not classes", (*kind)->name);
    }
    if (!(*kind)->class_target && options->ignores) {
        return rp_node_fail(rp_node_find(node, "ignore"),
                            "is a class, but the targets of %s are not classes", (*kind)->name);
    }
    if (!(*kind)->class_target && options->classes_first) {
        return rp_node_fail(rp_node_find(node, "classes_at"),
                            "is for classes, but the targets of %s are not classes", (*kind)->name);
    }
fail:
    return err;
}

/* Are the targets of a sample the places of all dimensions of its output but `classes`? */
static bool has_rows(const rp_shape *out, uint32_t rows, uint32_t classes) {
    return out->dims >= 2 && rp_shape_count(out) / out->dim[classes] == rows;
}

static rp_err check_pixels(const rp_shape *out, uint32_t rows) {
    char text[RP_LAYER_SHAPE_TEXT];
    if (!has_rows(out, rows, 0)) {
        return rp_fail(RP_ERR_SHAPE,
                       "the model's output is %s, but a sample has %u target%s: expected "
                       "[classes, height, width] with a target for each pixel "
                       "(loss.classes_at: first)",
                       rp_layer_shape_text(out, text), rows, rows == 1 ? "" : "s");
    }
    return out->dim[0] <= RP_LOSS_PIXEL_CLASSES_MAX
               ? RP_OK
               : rp_fail(RP_ERR_LIMIT,
                         "the model's output is %s: expected at most %d classes of pixels "
                         "(loss.classes_at: first), because the mean IoU counts the pixels of each",
                         rp_layer_shape_text(out, text), RP_LOSS_PIXEL_CLASSES_MAX);
}

rp_err rp_loss_check_layout(const rp_shape *out, uint32_t rows, const rp_loss_options *options) {
    char text[RP_LAYER_SHAPE_TEXT];
    if (options->classes_first) {
        return check_pixels(out, rows);
    }
    if (rows > 1 && !has_rows(out, rows, out->dims - 1)) {
        return rp_fail(RP_ERR_SHAPE,
                       "the model's output is %s, but a sample has %u targets: expected a row of "
                       "classes for each target, as in [%u, classes]",
                       rp_layer_shape_text(out, text), rows, rows);
    }
    return RP_OK;
}

double rp_loss_mean_iou(const double *both, const double *either, uint32_t classes) {
    double sum = 0;
    uint32_t present = 0;
    for (uint32_t k = 0; k < classes; k++) {
        sum += either[k] > 0 ? both[k] / either[k] : 0;
        present += either[k] > 0;
    }
    return present > 0 ? sum / present : (double)NAN;
}

rp_err rp_loss_run(const rp_loss_kind *kind, const rp_loss_call *call) {
    const uint64_t outputs = rp_shape_count(&call->y->shape) / call->y->shape.dim[0];
    const rp_tensor *of[] = {call->y, call->dy};
    for (size_t i = 0; i < sizeof of / sizeof *of && of[i]; i++) {
        if (of[i]->dtype != RP_F32 || !rp_tensor_fits(of[i], call->n * outputs)) {
            return rp_fail(RP_ERR_SHAPE, "loss %s: %s must be f32 (it is %s) with %llu elements",
                           kind->name, i == 0 ? "y" : "dy", rp_dtype_name(of[i]->dtype),
                           (unsigned long long)(call->n * outputs));
        }
    }
    return kind->run(call);
}

/* One item for each `items` of a sample: for a target, or for 16 pixels. */
static rp_err launch_items(const rp_loss_call *call, const char *entry, uint32_t items,
                           rp_buffer *result, uint32_t result_first) {
    const size_t count = (size_t)call->n * items;
    const size_t outputs = rp_shape_count(&call->y->shape) / call->y->shape.dim[0] / call->rows;
    const uint32_t n = call->options.classes_first ? call->n : (uint32_t)count;
    rp_kernel *kernel;
    rp_err err;
    RP_TRY(rp_kernel_find(call->device, "loss", entry, NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, result);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->y);
    rp_arg_buffer(&launch, call->target);
    rp_arg_u32(&launch, n);
    rp_arg_u32(&launch, (uint32_t)outputs);
    rp_arg_u32(&launch, result_first);
    rp_arg_f32(&launch, (float)(1.0 / ((double)call->step_samples * call->rows)));
    rp_arg_f32(&launch, call->options.label_smoothing);
    rp_arg_u32(&launch, call->rows);
    rp_arg_u32(&launch, call->options.ignores);
    rp_arg_i32(&launch, call->options.ignore);
    RP_TRY(rp_launch_run(&launch, 1, &count, (size_t[]){4}));
fail:
    return err;
}

/* Adds the results of the items of each sample, in order. */
static rp_err sum_items(const rp_loss_call *call, uint32_t items) {
    const size_t n = call->n;
    rp_kernel *kernel;
    rp_err err;
    RP_TRY(rp_kernel_find(call->device, "loss", "sum_rows", NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, call->result);
    rp_arg_buffer(&launch, call->row_result);
    rp_arg_u32(&launch, call->n);
    rp_arg_u32(&launch, items);
    rp_arg_u32(&launch, call->result_first);
    RP_TRY(rp_launch_run(&launch, 1, &n, (size_t[]){4}));
fail:
    return err;
}

static rp_err count_overlap(const rp_loss_call *call) {
    const size_t outputs = rp_shape_count(&call->y->shape) / call->y->shape.dim[0] / call->rows;
    const size_t sample_bytes = 2 * outputs * sizeof(uint32_t);
    const size_t count = (size_t)call->n * call->rows;
    rp_kernel *kernel;
    rp_err err;
    RP_TRY(rp_buffer_fill_zero(call->device, call->overlap, call->result_first * sample_bytes,
                               call->n * sample_bytes));
    RP_TRY(rp_kernel_find(call->device, "loss", "class_overlap", NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, call->overlap);
    rp_arg_tensor(&launch, call->y);
    rp_arg_buffer(&launch, call->target);
    rp_arg_u32(&launch, call->n);
    rp_arg_u32(&launch, (uint32_t)outputs);
    rp_arg_u32(&launch, call->result_first);
    rp_arg_u32(&launch, call->rows);
    rp_arg_u32(&launch, call->options.ignores);
    rp_arg_i32(&launch, call->options.ignore);
    RP_TRY(rp_launch_run(&launch, 1, &count, (size_t[]){4}));
fail:
    return err;
}

rp_err rp_loss_launch(const rp_loss_call *call, const char *entry) {
    const bool pixels = call->options.classes_first;
    const uint32_t items = pixels ? rp_layer_divide_up(call->rows, PIXELS) : call->rows;
    rp_err err;
    RP_ASSERT(call->rows > 0 && (pixels || !call->overlap));
    RP_TRY(call->overlap ? count_overlap(call) : RP_OK);
    if (items == 1) {
        return launch_items(call, entry, items, call->result, call->result_first);
    }
    RP_TRY(launch_items(call, entry, items, call->row_result, 0));
    RP_TRY(sum_items(call, items));
fail:
    return err;
}
