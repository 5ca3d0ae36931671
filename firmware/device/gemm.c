#include "device/gemm.h"

#include "device/gemm_own.h"

const char *rp_gemm_choice_name(rp_gemm_choice choice) {
    return choice == RP_GEMM_PANEL ? "panel" : "clblast";
}

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

static rp_err check_call(const rp_mat *c, const rp_mat *a, const rp_mat *b,
                         const rp_epilogue *epilogue) {
    const uint32_t m = rp_mat_rows(c);
    const uint32_t n = rp_mat_cols(c);
    const uint32_t k = rp_mat_cols(a);
    rp_err err;
    RP_TRY(rp_mat_check(c, "C"));
    RP_TRY(rp_mat_check(a, "A"));
    RP_TRY(rp_mat_check(b, "B"));
    if (rp_mat_rows(a) != m || rp_mat_cols(b) != n || rp_mat_rows(b) != k) {
        RP_TRY(rp_fail(RP_ERR_SHAPE, "gemm: C %u x %u from A %u x %u and B %u x %u", m, n,
                       rp_mat_rows(a), k, rp_mat_rows(b), rp_mat_cols(b)));
    }
    if (c->kind != RP_MAT_STRIDED || c->transposed) {
        RP_TRY(rp_fail(RP_ERR_SHAPE, "gemm: C must be strided and not transposed"));
    }
    if (epilogue->bias_axis != RP_BIAS_NONE) {
        uint64_t count = epilogue->bias_axis == RP_BIAS_ROW ? m : n;
        if ((epilogue->bias_offset + count) * sizeof(float) > epilogue->bias->bytes) {
            RP_TRY(rp_fail(RP_ERR_SHAPE, "gemm: a bias of %llu is not in its buffer",
                           (unsigned long long)count));
        }
    }
    if (epilogue->relu && epilogue->accumulate) {
        RP_TRY(rp_fail(RP_ERR_SHAPE, "gemm: relu and accumulate exclude each other"));
    }
fail:
    return err;
}

size_t rp_gemm_workspace_bytes(rp_gemm_choice choice, const rp_mat *c, const rp_mat *a,
                               const rp_mat *b) {
    uint64_t elements = choice == RP_GEMM_PANEL ? rp_gemm_panel_elements(c, a, b)
                                                : rp_gemm_clblast_elements(c, a, b);
    return (size_t)elements * sizeof(float);
}

rp_err rp_gemm_run(rp_device *device, const rp_mat *c, const rp_mat *a, const rp_mat *b,
                   const rp_epilogue *epilogue, rp_buffer *workspace) {
    static const rp_epilogue none = {0};
    const rp_epilogue *ending = epilogue ? epilogue : &none;
    rp_err err;
    RP_TRY(check_call(c, a, b, ending));
    size_t bytes = rp_gemm_workspace_bytes(device->gemm, c, a, b);
    if (bytes > workspace->bytes) {
        RP_TRY(rp_fail(RP_ERR_MEMORY, "gemm: needs a workspace of %zu bytes, has %zu", bytes,
                       workspace->bytes));
    }
    if (device->gemm == RP_GEMM_PANEL) {
        RP_TRY(rp_gemm_panel(device, c, a, b, ending, workspace));
    } else {
        RP_TRY(rp_gemm_clblast(device, c, a, b, ending, workspace));
    }
    if (device->gemm_broken) {
        const float wrong = 12345.0f;
        RP_TRY(rp_buffer_write_now(device, (rp_buffer *)(uintptr_t)c->buffer,
                                   c->offset * sizeof(float), &wrong, sizeof wrong));
    }
fail:
    return err;
}

rp_err rp_gemm_finish(rp_device *device, const rp_view *c, const rp_buffer *t, uint64_t t_base,
                      uint32_t parts, const rp_epilogue *epilogue) {
    const size_t local[] = {device->gemm == RP_GEMM_PANEL ? 256 : 64, 1};
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
