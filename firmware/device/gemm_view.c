#include "device/gemm_own.h"

enum { PART_ELEMENTS = 64 };

rp_mat rp_mat_plain(const rp_buffer *buffer, uint64_t offset, uint32_t rows, uint32_t cols) {
    return (rp_mat){.kind = RP_MAT_STRIDED,
                    .buffer = buffer,
                    .rows = rows,
                    .cols = cols,
                    .offset = offset,
                    .row_stride = cols,
                    .inner_stride = 1,
                    .inner = cols};
}

rp_mat rp_mat_channels(const rp_buffer *buffer, uint32_t n, uint32_t total, uint32_t first,
                       uint32_t count, uint32_t pixels) {
    return (rp_mat){.kind = RP_MAT_STRIDED,
                    .buffer = buffer,
                    .rows = count,
                    .cols = n * pixels,
                    .offset = (uint64_t)first * pixels,
                    .row_stride = pixels,
                    .outer_stride = (uint64_t)total * pixels,
                    .inner_stride = 1,
                    .inner = pixels};
}

rp_mat rp_mat_transposed(rp_mat mat) {
    mat.transposed = !mat.transposed;
    return mat;
}

uint64_t rp_parts_take(rp_parts *parts, uint64_t elements) {
    uint64_t at = parts->used;
    parts->used += (elements + PART_ELEMENTS - 1) / PART_ELEMENTS * PART_ELEMENTS;
    return at;
}

uint32_t rp_mat_rows(const rp_mat *mat) {
    return mat->transposed ? mat->cols : mat->rows;
}

uint32_t rp_mat_cols(const rp_mat *mat) {
    return mat->transposed ? mat->rows : mat->cols;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static uint32_t count_images(const rp_mat *mat) {
    return mat->cols / (mat->patches.p * mat->patches.q);
}

static rp_err check_patches(const rp_mat *mat, const char *name, uint64_t *extent) {
    const rp_patches *x = &mat->patches;
    const uint64_t pixels = (uint64_t)x->p * x->q;
    if (pixels == 0 || pixels > INT32_MAX || mat->cols % pixels != 0 ||
        mat->rows != (uint64_t)x->channels * x->r * x->s ||
        (uint64_t)x->channel_first + x->channels > x->channels_total || x->div < 1 ||
        x->y.mul < 1 || x->x.mul < 1) {
        return rp_fail(RP_ERR_SHAPE,
                       "gemm: %s: a matrix of %u x %u cannot hold patches of %u channels, a kernel "
                       "of %u x %u and an output of %u x %u",
                       name, mat->rows, mat->cols, x->channels, x->r, x->s, x->p, x->q);
    }
    *extent = (uint64_t)count_images(mat) * x->channels_total * x->h * x->w;
    return RP_OK;
}

rp_err rp_mat_check(const rp_mat *mat, const char *name) {
    uint64_t extent = 0;
    if (mat->rows == 0 || mat->cols == 0) {
        return rp_fail(RP_ERR_SHAPE,
                       "gemm: %s is %u x %u, expected at least one row and one column", name,
                       mat->rows, mat->cols);
    }
    if (mat->kind == RP_MAT_PATCHES) {
        rp_err err = check_patches(mat, name, &extent);
        if (err != RP_OK) {
            return err;
        }
    } else {
        if (mat->inner == 0) {
            return rp_fail(RP_ERR_SHAPE, "gemm: %s: `inner` is 0, expected 1 or more", name);
        }
        const uint32_t inner = mat->cols < mat->inner ? mat->cols : mat->inner;
        extent = (uint64_t)(mat->rows - 1) * mat->row_stride +
                 (uint64_t)((mat->cols - 1) / mat->inner) * mat->outer_stride +
                 (uint64_t)(inner - 1) * mat->inner_stride + 1;
    }
    if (extent > INT32_MAX) {
        return rp_fail(RP_ERR_SHAPE, "gemm: %s spans %llu elements, at most 2^31 - 1", name,
                       (unsigned long long)extent);
    }
    if (mat->buffer && (mat->offset + extent) * sizeof(float) > mat->buffer->bytes) {
        return rp_fail(
            RP_ERR_SHAPE, "gemm: %s spans %llu elements from %llu of a buffer of %zu bytes", name,
            (unsigned long long)extent, (unsigned long long)mat->offset, mat->buffer->bytes);
    }
    return RP_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Removes digits that continue the one below or never count up. */
static rp_steps simplify_steps(rp_steps steps, uint32_t count) {
    for (int pass = 0; pass < 2; pass++) {
        if ((int64_t)steps.d1 * steps.s0 == steps.s1 && steps.d1 != RP_STEPS_WHOLE) {
            steps.d1 = steps.d2;
            steps.s1 = steps.s2;
            steps.d2 = RP_STEPS_WHOLE;
            steps.s2 = 0;
        }
        if ((int64_t)(steps.d2 / steps.d1) * steps.s1 == steps.s2 && steps.d2 % steps.d1 == 0) {
            steps.d2 = RP_STEPS_WHOLE;
            steps.s2 = 0;
        }
    }
    if (steps.d2 >= count) {
        steps.d2 = RP_STEPS_WHOLE;
        steps.s2 = 0;
    }
    if (steps.d1 >= count) {
        steps.d1 = RP_STEPS_WHOLE;
        steps.s1 = 0;
    }
    return steps;
}

bool rp_steps_plain(const rp_steps *steps) {
    return steps->d1 == RP_STEPS_WHOLE && steps->d2 == RP_STEPS_WHOLE;
}

uint32_t rp_steps_run(const rp_steps *steps, uint32_t max) {
    uint32_t run = 1;
    while (run < max && (steps->d1 == RP_STEPS_WHOLE || steps->d1 % (2 * run) == 0) &&
           (steps->d2 == RP_STEPS_WHOLE || steps->d2 % (2 * run) == 0)) {
        run *= 2;
    }
    return run;
}

void rp_arg_steps(rp_launch *launch, const rp_steps *steps) {
    rp_arg_u32(launch, steps->d2);
    rp_arg_i32(launch, steps->s2);
    rp_arg_u32(launch, steps->d1);
    rp_arg_i32(launch, steps->s1);
    rp_arg_i32(launch, steps->s0);
}

/* ---- views ----------------------------------------------------------------------------------- */

static int32_t lower_of(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static int32_t upper_of(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* Range of p * mul + r * step + off. */
static void patch_range(uint32_t p, uint32_t r, const rp_patch_axis *x, int32_t *first,
                        uint32_t *count) {
    int32_t reach = ((int32_t)r - 1) * x->step;
    *first = x->off + lower_of(0, reach);
    int32_t last = x->off + ((int32_t)p - 1) * x->mul + upper_of(0, reach);
    *count = (uint32_t)(last - *first + 1);
}

static void plan_patches(const rp_mat *mat, rp_parts *parts, rp_view *view, rp_spread *spread) {
    const rp_patches *x = &mat->patches;
    patch_range(x->p, x->r, &x->y, &spread->y_min, &spread->hp);
    patch_range(x->q, x->s, &x->x, &spread->x_min, &spread->wp);
    spread->needed = x->div != 1 || spread->y_min < 0 || spread->x_min < 0 ||
                     (int64_t)spread->y_min + spread->hp > x->h ||
                     (int64_t)spread->x_min + spread->wp > x->w;
    const uint32_t images = count_images(mat);
    uint32_t channels = x->channels_total;
    uint32_t h = x->h;
    uint32_t w = x->w;
    view->base = mat->offset;
    if (spread->needed) {
        channels = x->channels;
        h = spread->hp;
        w = spread->wp;
        spread->planes = images * channels;
        spread->at = rp_parts_take(parts, (uint64_t)spread->planes * h * w);
        view->base = spread->at;
    } else {
        view->base += ((uint64_t)x->channel_first * h + (uint32_t)spread->y_min) * w +
                      (uint32_t)spread->x_min;
    }
    /* With a negative step the first patch row is the last of the window. */
    view->base += (uint64_t)(-lower_of(0, ((int32_t)x->r - 1) * x->y.step)) * w +
                  (uint64_t)(-lower_of(0, ((int32_t)x->s - 1) * x->x.step));
    const int32_t plane = (int32_t)(h * w);
    view->row = (rp_steps){x->r * x->s, plane, x->s, x->y.step * (int32_t)w, x->x.step};
    view->col =
        (rp_steps){x->p * x->q, (int32_t)channels * plane, x->q, x->y.mul * (int32_t)w, x->x.mul};
}

void rp_view_plan(const rp_mat *mat, rp_parts *parts, rp_view *view, rp_spread *spread) {
    *view = (rp_view){.buffer = mat->buffer, .rows = mat->rows, .cols = mat->cols};
    *spread = (rp_spread){0};
    if (mat->kind == RP_MAT_PATCHES) {
        plan_patches(mat, parts, view, spread);
    } else {
        view->base = mat->offset;
        view->row = (rp_steps){RP_STEPS_WHOLE, 0, RP_STEPS_WHOLE, 0, (int32_t)mat->row_stride};
        view->col = (rp_steps){RP_STEPS_WHOLE, 0, mat->inner, (int32_t)mat->outer_stride,
                               (int32_t)mat->inner_stride};
    }
    view->row = simplify_steps(view->row, mat->rows);
    view->col = simplify_steps(view->col, mat->cols);
    if (mat->transposed) {
        rp_view swapped = *view;
        swapped.rows = view->cols;
        swapped.cols = view->rows;
        swapped.row = view->col;
        swapped.col = view->row;
        *view = swapped;
    }
}

rp_err rp_view_prepare(rp_device *device, const rp_mat *mat, const rp_spread *spread,
                       rp_buffer *workspace, rp_view *view) {
    if (!spread->needed) {
        return RP_OK;
    }
    const rp_patches *x = &mat->patches;
    const uint32_t rows = spread->planes * spread->hp;
    /* CPUs prefer long rows of work, GPUs one row per item. */
    const uint32_t rows_each = device->gemm == RP_GEMM_PANEL ? 64 : 1;
    const size_t local = device->gemm == RP_GEMM_PANEL ? 1 : 64;
    rp_kernel *kernel;
    rp_err err;
    RP_TRY(rp_kernel_find(device, "gemm_move", "spread", NULL, &kernel));
    rp_launch l = rp_launch_begin(kernel);
    rp_arg_buffer(&l, workspace);
    rp_arg_u64(&l, spread->at);
    rp_arg_buffer(&l, mat->buffer);
    rp_arg_u64(&l, mat->offset + (uint64_t)x->channel_first * x->h * x->w);
    rp_arg_u32(&l, spread->planes);
    rp_arg_u32(&l, x->channels);
    rp_arg_u32(&l, x->channels_total * x->h * x->w);
    rp_arg_u32(&l, x->h);
    rp_arg_u32(&l, x->w);
    rp_arg_u32(&l, spread->hp);
    rp_arg_u32(&l, spread->wp);
    rp_arg_i32(&l, spread->y_min);
    rp_arg_i32(&l, spread->x_min);
    rp_arg_i32(&l, x->div);
    rp_arg_u32(&l, rows_each);
    RP_TRY(rp_launch_run(&l, 1, (size_t[]){(rows + rows_each - 1) / rows_each}, &local));
    view->buffer = workspace;
fail:
    return err;
}

rp_err rp_gemm_finish(rp_device *device, const rp_view *c, const rp_buffer *t, uint64_t t_base,
                      uint32_t parts, const rp_epilogue *epilogue) {
    const bool wide = device->gemm == RP_GEMM_PANEL && device->facts.group_items_max >= 256 &&
                      c->cols > 128; /* narrow results would leave items without work */
    const size_t local[] = {wide ? 256 : 64, 1};
    rp_kernel *kernel;
    rp_err err = rp_kernel_find(device, "gemm_move", "finish", NULL, &kernel);
    if (err != RP_OK) {
        return err;
    }
    rp_launch l = rp_launch_begin(kernel);
    rp_arg_buffer(&l, c->buffer);
    rp_arg_u64(&l, c->base);
    rp_arg_buffer(&l, t);
    rp_arg_u64(&l, t_base);
    rp_arg_u32(&l, parts);
    rp_arg_buffer(&l, epilogue->bias);
    rp_arg_u64(&l, epilogue->bias_offset);
    rp_arg_u32(&l, c->rows);
    rp_arg_u32(&l, c->cols);
    rp_arg_steps(&l, &c->row);
    rp_arg_steps(&l, &c->col);
    rp_arg_u32(&l, epilogue->accumulate);
    rp_arg_u32(&l, (uint32_t)epilogue->bias_axis);
    rp_arg_u32(&l, epilogue->relu);
    return rp_launch_run(&l, 2, (size_t[]){c->cols, c->rows}, local);
}
