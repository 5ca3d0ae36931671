#include <clblast_c.h>

#include "device/gemm_own.h"

/* CLBlast pads its temporaries to work-group tiles; no tuned tile is larger. */
enum { TILE_MAX = 256 };

/* An operand in the form that CLBlast needs. */
typedef struct {
    rp_view view;
    rp_spread spread;
    bool gathered; /* copied to the workspace at `at`, row-major */
    uint64_t at;
    CLBlastTranspose transpose;
    size_t stride;
} operand;

typedef struct {
    /* elements for CLBlast's temporary, at the start because it takes no offset */
    uint64_t temporary;
    operand a, b;
    rp_view c;
    bool scattered; /* the product is written to `t`, then copied to C */
    uint64_t t;
    uint64_t total;
} plan;

static uint64_t round_up(uint64_t n) {
    return (n + TILE_MAX - 1) / TILE_MAX * TILE_MAX;
}

static void plan_operand(const rp_mat *mat, rp_parts *parts, operand *out) {
    rp_view_plan(mat, parts, &out->view, &out->spread);
    const rp_view *v = &out->view;
    bool plain = rp_steps_plain(&v->row) && rp_steps_plain(&v->col);
    out->transpose = CLBlastTransposeNo;
    if (plain && (v->col.s0 == 1 || v->cols == 1) && v->row.s0 >= (int32_t)v->cols) {
        out->stride = (size_t)v->row.s0;
    } else if (plain && (v->row.s0 == 1 || v->rows == 1) && v->col.s0 >= (int32_t)v->rows) {
        out->transpose = CLBlastTransposeYes;
        out->stride = (size_t)v->col.s0;
    } else {
        out->gathered = true;
        out->at = rp_parts_take(parts, (uint64_t)v->rows * v->cols);
        out->stride = v->cols;
    }
}

static plan plan_call(const rp_mat *c, const rp_mat *a, const rp_mat *b) {
    const uint64_t m = round_up(rp_mat_rows(c));
    const uint64_t n = round_up(rp_mat_cols(c));
    const uint64_t k = round_up(rp_mat_cols(a));
    rp_parts parts = {0};
    rp_spread none;
    plan made = {0};
    made.temporary = m * n + m * k + k * n;
    (void)rp_parts_take(&parts, made.temporary);
    plan_operand(a, &parts, &made.a);
    plan_operand(b, &parts, &made.b);
    rp_view_plan(c, &parts, &made.c, &none);
    const rp_view *v = &made.c;
    made.scattered = !rp_steps_plain(&v->row) || !rp_steps_plain(&v->col) ||
                     (v->col.s0 != 1 && v->cols > 1) || v->row.s0 < (int32_t)v->cols;
    if (made.scattered) {
        made.t = rp_parts_take(&parts, (uint64_t)v->rows * v->cols);
    }
    made.total = parts.used;
    return made;
}

uint64_t rp_gemm_clblast_elements(const rp_mat *c, const rp_mat *a, const rp_mat *b) {
    return plan_call(c, a, b).total;
}

static rp_err gather_operand(rp_device *device, const rp_mat *mat, rp_buffer *workspace,
                             operand *x) {
    rp_kernel *kernel;
    rp_err err;
    RP_TRY(rp_view_prepare(device, mat, &x->spread, workspace, &x->view));
    if (!x->gathered) {
        return RP_OK;
    }
    RP_TRY(rp_kernel_find(device, "gemm_move", "gather", NULL, &kernel));
    rp_launch l = rp_launch_begin(kernel);
    rp_arg_buffer(&l, workspace);
    rp_arg_u64(&l, x->at);
    rp_arg_buffer(&l, x->view.buffer);
    rp_arg_u64(&l, x->view.base);
    rp_arg_u32(&l, x->view.rows);
    rp_arg_u32(&l, x->view.cols);
    rp_arg_steps(&l, &x->view.row);
    rp_arg_steps(&l, &x->view.col);
    RP_TRY(rp_launch_run(&l, 2, (size_t[]){x->view.cols, x->view.rows}, (size_t[]){64, 1}));
    x->view.buffer = workspace;
    x->view.base = x->at;
fail:
    return err;
}

static rp_err check_code(CLBlastStatusCode code, const plan *p) {
    if (code == CLBlastSuccess) {
        return RP_OK;
    }
    return rp_fail(RP_ERR_DEVICE,
                   "CLBlast cannot compute a product of %u x %u x %u (CLBlast error %d)", p->c.rows,
                   p->c.cols, p->a.view.cols, (int)code);
}

static uint32_t lines_of(const operand *x) {
    return x->transpose == CLBlastTransposeNo ? x->view.rows : x->view.cols;
}

/* CLBlast's kernels count elements from the start of a buffer in 32 bits. */
static rp_err check_reach(const char *name, uint64_t base, uint32_t lines, size_t stride) {
    if (base + (uint64_t)lines * stride > INT32_MAX) {
        return rp_fail(RP_ERR_LIMIT,
                       "gemm: %s begins at element %llu of its buffer: CLBlast reaches 2^31 - 1",
                       name, (unsigned long long)base);
    }
    return RP_OK;
}

static rp_err multiply_by_clblast(rp_device *device, const plan *p, float beta,
                                  rp_buffer *workspace) {
    cl_command_queue queue = device->queue;
    const operand *a = &p->a;
    const operand *b = &p->b;
    const size_t c_at = p->scattered ? p->t : p->c.base;
    const size_t c_stride = p->scattered || p->c.rows == 1 ? p->c.cols : (size_t)p->c.row.s0;
    size_t bytes = 0;
    rp_err err;
    RP_TRY(check_reach("A", a->view.base, lines_of(a), a->stride));
    RP_TRY(check_reach("B", b->view.base, lines_of(b), b->stride));
    RP_TRY(check_reach("C", c_at, p->c.rows, c_stride));
    if (device->rehearses) {
        return RP_OK;
    }
    rp_ready_begin(device, "CLBlast's product of %u x %u x %u", p->c.rows, p->c.cols, a->view.cols);
    RP_TRY(check_code(CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, a->transpose, b->transpose,
                                                 p->c.rows, p->c.cols, a->view.cols, a->view.base,
                                                 a->stride, b->view.base, b->stride, c_at, c_stride,
                                                 &queue, &bytes),
                      p));
    if (bytes > p->temporary * sizeof(float)) {
        RP_TRY(rp_fail(RP_ERR_MEMORY, "CLBlast needs %zu temporary bytes, the plan has %llu", bytes,
                       (unsigned long long)(p->temporary * sizeof(float))));
    }
    RP_TRY(check_code(CLBlastSgemmWithTempBuffer(
                          CLBlastLayoutRowMajor, a->transpose, b->transpose, p->c.rows, p->c.cols,
                          a->view.cols, 1.0f, a->view.buffer->memory, a->view.base, a->stride,
                          b->view.buffer->memory, b->view.base, b->stride, beta,
                          p->scattered ? workspace->memory : p->c.buffer->memory, c_at, c_stride,
                          &queue, NULL, workspace->memory),
                      p));
fail:
    return err;
}

rp_err rp_gemm_clblast(rp_device *device, const rp_mat *c, const rp_mat *a, const rp_mat *b,
                       const rp_epilogue *epilogue, rp_buffer *workspace) {
    plan p = plan_call(c, a, b);
    rp_err err;
    RP_TRY(gather_operand(device, a, workspace, &p.a));
    RP_TRY(gather_operand(device, b, workspace, &p.b));
    RP_TRY(multiply_by_clblast(device, &p, !p.scattered && epilogue->accumulate ? 1.0f : 0.0f,
                               workspace));
    if (p.scattered) {
        RP_TRY(rp_gemm_finish(device, &p.c, workspace, p.t, 1, epilogue));
    } else if (epilogue->bias_axis != RP_BIAS_NONE || epilogue->relu) {
        RP_TRY(rp_gemm_finish(device, &p.c, workspace, 0, 0, epilogue));
    }
fail:
    return err;
}
