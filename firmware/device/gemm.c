#include "device/gemm.h"

#include "device/gemm_own.h"

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
        RP_TRY(rp_fail(RP_ERR_SHAPE, "gemm: sizes do not match: C is %u x %u, A %u x %u, B %u x %u",
                       m, n, rp_mat_rows(a), k, rp_mat_rows(b), rp_mat_cols(b)));
    }
    if (c->kind != RP_MAT_STRIDED || c->transposed) {
        RP_TRY(rp_fail(RP_ERR_SHAPE, "gemm: C must be strided and not transposed"));
    }
    if (epilogue->bias_axis != RP_BIAS_NONE) {
        uint64_t count = epilogue->bias_axis == RP_BIAS_ROW ? m : n;
        if ((epilogue->bias_offset + count) * sizeof(float) > epilogue->bias->bytes) {
            RP_TRY(rp_fail(RP_ERR_SHAPE, "gemm: a bias of %llu elements exceeds its buffer",
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
    const size_t has = workspace ? workspace->bytes : 0; /* a small product needs none */
    if (bytes > has) {
        RP_TRY(rp_fail(RP_ERR_MEMORY, "gemm: needs a workspace of %zu bytes, has %zu", bytes, has));
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
