#include <stdio.h>

#include "device/gemm_own.h"

enum {
    PANEL = 32,           /* columns of a packed panel */
    PANELS_MAX = 4,       /* of a work-group */
    TILE_ROWS_MAX = 24,   /* a common multiple of the tile heights */
    GROUPS_WANTED = 8,    /* work-groups that keep several threads busy to the end */
    LONG_BLOCK = 32,      /* tiles of a block whose copy of B costs little */
    PART_DEPTH_MIN = 512, /* a sum is only divided into parts of at least this depth */
    /* elements of C up to which the sum is divided, because parts are written and read again */
    PART_ELEMENTS_MAX = 1 << 20,
    /* Columns of a left operand that are further apart are packed, because each is in another page
     * and many are in the same set of a cache. */
    COLUMN_STEP_MAX = 256,
    DEPTH_STEP = 16, /* divides the depth of a block, which is transposed 16 x 16 */
    PACK_TILES = 4   /* per work-group of pack_rows */
};

typedef struct {
    rp_view a, b, c;
    rp_spread a_spread, b_spread;
    bool packs_a;    /* otherwise tiles are read where A is */
    uint64_t packed; /* offset in the workspace, in elements */
    uint64_t t;
    uint32_t parts; /* most parts of the sum over the depth; 1: C is written directly */
    uint64_t total;
} plan;

static uint32_t divide_up(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}

static uint32_t smaller_of(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Divides the sum if there are few columns and a long sum (gradients of weights). Depends on the
 * shape alone, so that neither the thread count nor tuned block sizes change the memory needed. */
static uint32_t count_parts(uint32_t m, uint32_t n, uint32_t k) {
    const uint32_t blocks = divide_up(n, PANELS_MAX * PANEL);
    if (blocks >= GROUPS_WANTED || (uint64_t)m * n > PART_ELEMENTS_MAX) {
        return 1;
    }
    uint32_t parts = smaller_of(divide_up(GROUPS_WANTED, blocks), k / PART_DEPTH_MIN);
    return parts < 1 ? 1 : parts;
}

/* Contiguous rows are read as fast as packed tiles, and so are contiguous columns that are close to
 * one another. */
static bool is_read_fast(const rp_view *a) {
    return rp_steps_plain(&a->row) && rp_steps_plain(&a->col) &&
           (a->col.s0 == 1 || (a->row.s0 == 1 && a->col.s0 > 0 && a->col.s0 <= COLUMN_STEP_MAX));
}

static plan plan_call(const rp_mat *c, const rp_mat *a, const rp_mat *b) {
    const uint32_t m = rp_mat_rows(c);
    const uint32_t n = rp_mat_cols(c);
    const uint32_t k = rp_mat_cols(a);
    rp_parts parts = {0};
    rp_spread none;
    plan made = {0};
    rp_view_plan(a, &parts, &made.a, &made.a_spread);
    rp_view_plan(b, &parts, &made.b, &made.b_spread);
    rp_view_plan(c, &parts, &made.c, &none);
    made.packs_a = !is_read_fast(&made.a);
    if (made.packs_a) {
        made.packed =
            rp_parts_take(&parts, (uint64_t)divide_up(m, TILE_ROWS_MAX) * TILE_ROWS_MAX * k);
    }
    made.parts = count_parts(m, n, k);
    if (made.parts > 1) {
        made.t = rp_parts_take(&parts, (uint64_t)made.parts * m * n);
    }
    made.total = parts.used;
    return made;
}

/* The product as executed: C = A * B, or its transpose if the sum is divided; `finish` adds the
 * parts and can transpose at no cost. */
typedef struct {
    rp_mat c, a, b;
    rp_epilogue epilogue;
} call;

static bool is_read_in_place(rp_mat a) {
    rp_parts parts = {0};
    rp_spread spread;
    rp_view view;
    rp_view_plan(&a, &parts, &view, &spread);
    return is_read_fast(&view);
}

/* B is packed by each group. A is packed once in memory, unless it is read in place; so A should be
 * the larger operand if it can be read in place, otherwise the smaller one. */
static bool turns_call(const rp_mat *c, const rp_mat *a, const rp_mat *b) {
    const uint32_t m = rp_mat_rows(c);
    const uint32_t n = rp_mat_cols(c);
    const bool in_place = is_read_in_place(*a) && is_read_in_place(rp_mat_transposed(*b));
    return (in_place ? m < n : m > n) && count_parts(n, m, rp_mat_cols(a)) > 1;
}

static call turn_call(const rp_mat *c, const rp_mat *a, const rp_mat *b,
                      const rp_epilogue *epilogue) {
    call made = {*c, *a, *b, *epilogue};
    if (turns_call(c, a, b)) {
        made.c = rp_mat_transposed(*c);
        made.a = rp_mat_transposed(*b);
        made.b = rp_mat_transposed(*a);
        if (epilogue->bias_axis != RP_BIAS_NONE) {
            made.epilogue.bias_axis =
                epilogue->bias_axis == RP_BIAS_ROW ? RP_BIAS_COL : RP_BIAS_ROW;
        }
    }
    return made;
}

uint64_t rp_gemm_panel_elements(const rp_mat *c, const rp_mat *a, const rp_mat *b) {
    const call x = turn_call(c, a, b, &(rp_epilogue){0});
    return plan_call(&x.c, &x.a, &x.b).total;
}

/* RUN() of kernels/gemm_tile.clh. */
static uint32_t describe_run(const rp_steps *steps) {
    const uint32_t run = steps->s0 == 1 || steps->s0 == 2 ? rp_steps_run(steps, 16) : 1;
    return run > 1 ? (uint32_t)steps->s0 * 32 + run : 0;
}

/* Number of neighbours that are contiguous. */
static uint32_t count_run(const rp_steps *steps) {
    return steps->s0 == 1 ? rp_steps_run(steps, 16) : 1;
}

/* How the product is divided into work-groups. */
typedef struct {
    uint32_t panels, row_each;
    uint32_t depth_each; /* a multiple of block_each */
    uint32_t block_each; /* depth for which B is packed at once */
    uint32_t groups[3];
} cut;

static cut cut_call(const plan *p, const rp_tuning_panel *panel) {
    const uint32_t m = p->c.rows;
    const uint32_t n = p->c.cols;
    const uint32_t k = p->a.cols;
    cut made;
    /* Parts, and the blocks of a part, have about the same depth. */
    const uint32_t part = divide_up(k, p->parts);
    const uint32_t part_blocks = divide_up(part, panel->depth);
    made.block_each = divide_up(divide_up(part, part_blocks), DEPTH_STEP) * DEPTH_STEP;
    made.depth_each = part_blocks * made.block_each;
    made.groups[2] = divide_up(k, made.depth_each);
    /* At least two panels, so that a tile of A loaded from memory is used twice. */
    made.panels = smaller_of(panel->columns / PANEL, divide_up(n, PANEL));
    while (made.panels > 2 && divide_up(n, made.panels * PANEL) * made.groups[2] < GROUPS_WANTED) {
        made.panels--;
    }
    made.groups[0] = divide_up(n, made.panels * PANEL);
    made.panels = divide_up(divide_up(n, PANEL), made.groups[0]); /* the last group has as many */
    /* Every block of rows packs B separately, which costs as much as four tiles. */
    const uint32_t tiles = divide_up(m, panel->rows);
    const uint32_t others = made.groups[0] * made.groups[2];
    uint32_t blocks = smaller_of(divide_up(tiles, 4), divide_up(GROUPS_WANTED, others));
    /* As many groups for each of two or four threads, if blocks stay long. */
    while (blocks > 1 && others * blocks % 4 != 0 && tiles / blocks >= LONG_BLOCK) {
        blocks++;
    }
    made.row_each = divide_up(tiles, blocks) * panel->rows;
    made.groups[1] = divide_up(m, made.row_each);
    return made;
}

static rp_err pack_rows(rp_device *device, const plan *p, const cut *how, rp_buffer *workspace) {
    const rp_tuning_panel *panel = &device->tuning.panel;
    char defines[64];
    rp_kernel *kernel;
    rp_err err;
    (void)snprintf(defines, sizeof defines, "-DMR=%u -DPACK_DEPTH=%u -DPACK_TILES=%d", panel->rows,
                   panel->depth, PACK_TILES);
    RP_TRY(rp_kernel_find(device, "gemm_pack", "pack_rows", defines, &kernel));
    rp_launch l = rp_launch_begin(kernel);
    rp_arg_buffer(&l, workspace);
    rp_arg_u64(&l, p->packed);
    rp_arg_buffer(&l, p->a.buffer);
    rp_arg_u64(&l, p->a.base);
    rp_arg_u32(&l, p->a.rows);
    rp_arg_u32(&l, p->a.cols);
    rp_arg_steps(&l, &p->a.row);
    rp_arg_steps(&l, &p->a.col);
    rp_arg_u32(&l, how->block_each);
    rp_arg_u32(&l, describe_run(&p->a.col));
    rp_arg_u32(&l, count_run(&p->a.row));
    RP_TRY(rp_launch_run(&l, 2,
                         (size_t[]){divide_up(p->a.rows, panel->rows * PACK_TILES),
                                    divide_up(p->a.cols, how->block_each)},
                         (size_t[]){1, 1}));
fail:
    return err;
}

static rp_err multiply_by_panels(rp_device *device, const plan *p, const cut *how,
                                 const rp_epilogue *epilogue, rp_buffer *workspace) {
    const rp_tuning_panel *panel = &device->tuning.panel;
    const uint32_t wide = describe_run(&p->b.col);
    uint32_t deep = describe_run(&p->b.row);
    if (wide % 32 >= deep % 32) {
        deep = 0;
    }
    char defines[64];
    const bool parted = p->parts > 1;
    const rp_steps plain = {RP_STEPS_WHOLE, 0, RP_STEPS_WHOLE, 0, 1};
    rp_kernel *kernel;
    rp_err err;
    (void)snprintf(defines, sizeof defines, "-DMR=%u -DKC=%u -DNB=%u", panel->rows, panel->depth,
                   panel->columns / PANEL);
    RP_TRY(rp_kernel_find(device, "gemm_panel", "product", defines, &kernel));
    rp_launch l = rp_launch_begin(kernel);
    rp_arg_buffer(&l, parted ? workspace : p->c.buffer);
    rp_arg_u64(&l, parted ? p->t : p->c.base);
    rp_arg_u64(&l, (uint64_t)p->c.rows * p->c.cols);
    rp_arg_i32(&l, parted ? (int32_t)p->c.cols : p->c.row.s0);
    rp_arg_steps(&l, parted ? &plain : &p->c.col);
    rp_arg_buffer(&l, p->packs_a ? workspace : p->a.buffer);
    rp_arg_u64(&l, p->packs_a ? p->packed : p->a.base);
    rp_arg_buffer(&l, p->b.buffer);
    rp_arg_u64(&l, p->b.base);
    rp_arg_steps(&l, &p->b.row);
    rp_arg_steps(&l, &p->b.col);
    rp_arg_u32(&l, p->c.rows);
    rp_arg_u32(&l, p->c.cols);
    rp_arg_u32(&l, p->a.cols);
    rp_arg_u32(&l, wide);
    rp_arg_u32(&l, deep);
    rp_arg_u32(&l, parted ? 16 : count_run(&p->c.col));
    rp_arg_u32(&l, how->panels);
    rp_arg_u32(&l, how->row_each);
    rp_arg_u32(&l, how->depth_each);
    rp_arg_u32(&l, how->block_each);
    rp_arg_u32(&l, !parted && epilogue->accumulate);
    rp_arg_buffer(&l, epilogue->bias);
    rp_arg_u64(&l, epilogue->bias_offset);
    rp_arg_u32(&l, parted ? 0 : (uint32_t)epilogue->bias_axis);
    rp_arg_u32(&l, !parted && epilogue->relu);
    rp_arg_u32(&l, p->packs_a);
    rp_arg_i32(&l, p->a.row.s0);
    rp_arg_u32(&l, (uint32_t)p->a.col.s0);
    RP_TRY(rp_launch_run(&l, 3, (size_t[]){how->groups[0], how->groups[1], how->groups[2]},
                         (size_t[]){1, 1, 1}));
fail:
    return err;
}

rp_err rp_gemm_panel(rp_device *device, const rp_mat *c, const rp_mat *a, const rp_mat *b,
                     const rp_epilogue *epilogue, rp_buffer *workspace) {
    const call x = turn_call(c, a, b, epilogue);
    plan p = plan_call(&x.c, &x.a, &x.b);
    const cut how = cut_call(&p, &device->tuning.panel);
    rp_err err;
    RP_TRY(rp_view_prepare(device, &x.a, &p.a_spread, workspace, &p.a));
    RP_TRY(rp_view_prepare(device, &x.b, &p.b_spread, workspace, &p.b));
    if (p.packs_a) {
        RP_TRY(pack_rows(device, &p, &how, workspace));
    }
    RP_TRY(multiply_by_panels(device, &p, &how, &x.epilogue, workspace));
    if (p.parts > 1) {
        RP_TRY(rp_gemm_finish(device, &p.c, workspace, p.t, how.groups[2], &x.epilogue));
    }
fail:
    return err;
}
