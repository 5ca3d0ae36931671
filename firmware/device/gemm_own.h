/* Code shared by the two implementations of rp_gemm_run(). Private to the room. */
#ifndef RP_DEVICE_GEMM_OWN_H
#define RP_DEVICE_GEMM_OWN_H

#include "device/device_own.h"
#include "device/gemm.h"
#include "device/program.h"

/* One dimension of an operand, see kernels/gemm_steps.clh. */
typedef struct {
    uint32_t d2;
    int32_t s2;
    uint32_t d1;
    int32_t s1, s0;
} rp_steps;

/* a divisor larger than any index: the next higher digit is unused */
enum { RP_STEPS_WHOLE = 0x7fffffff };

/* Element (i, j) = buffer[base + row(i) + col(j)]. */
typedef struct {
    const rp_buffer *buffer;
    uint64_t base;
    uint32_t rows, cols;
    rp_steps row, col;
} rp_view;

/* The padded copy of an operand of patches, in which every patch is inside the image. */
typedef struct {
    bool needed;
    uint64_t at; /* element of the workspace */
    uint32_t planes, hp, wp;
    int32_t y_min, x_min;
} rp_spread;

/* Allocates parts of the workspace; also used for measuring its size. */
typedef struct {
    uint64_t used; /* elements */
} rp_parts;

uint64_t rp_parts_take(rp_parts *parts, uint64_t elements);

/* Checks extents, and the bounds of the buffer if there is one. */
rp_err rp_mat_check(const rp_mat *mat, const char *name) RP_MUST_CHECK;
uint32_t rp_mat_rows(const rp_mat *mat); /* after `transposed` */
uint32_t rp_mat_cols(const rp_mat *mat);

/* Pure. If spread->needed the view is of the copy, whose offset comes from `parts`. */
void rp_view_plan(const rp_mat *mat, rp_parts *parts, rp_view *view, rp_spread *spread);
/* Enqueues the copy if needed, and sets the view's buffer to its data. */
rp_err rp_view_prepare(rp_device *device, const rp_mat *mat, const rp_spread *spread,
                       rp_buffer *workspace, rp_view *view) RP_MUST_CHECK;

/* The largest power of two up to `max` such that in every aligned run of that length neighbours are
 * s0 elements apart. */
uint32_t rp_steps_run(const rp_steps *steps, uint32_t max);
bool rp_steps_plain(const rp_steps *steps); /* offset is index * s0 */
void rp_arg_steps(rp_launch *launch, const rp_steps *steps);

/* `finish` of kernels/gemm_move.cl: adds parts, bias, relu. parts 0: c itself is the product. */
rp_err rp_gemm_finish(rp_device *device, const rp_view *c, const rp_buffer *t, uint64_t t_base,
                      uint32_t parts, const rp_epilogue *epilogue) RP_MUST_CHECK;

rp_err rp_gemm_clblast(rp_device *device, const rp_mat *c, const rp_mat *a, const rp_mat *b,
                       const rp_epilogue *epilogue, rp_buffer *workspace) RP_MUST_CHECK;
uint64_t rp_gemm_clblast_elements(const rp_mat *c, const rp_mat *a, const rp_mat *b);
rp_err rp_gemm_panel(rp_device *device, const rp_mat *c, const rp_mat *a, const rp_mat *b,
                     const rp_epilogue *epilogue, rp_buffer *workspace) RP_MUST_CHECK;
uint64_t rp_gemm_panel_elements(const rp_mat *c, const rp_mat *a, const rp_mat *b);

#endif
