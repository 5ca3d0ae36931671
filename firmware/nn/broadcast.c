#include "nn/broadcast.h"

enum { GROUP_ITEMS = 64, SUM_ITEMS = 4, VECTOR = 16 };

uint32_t rp_broadcast_count(const rp_broadcast *form) {
    return (form->keep_p ? form->p : 1) * (form->keep_q ? form->q : 1) *
           (form->keep_wide ? form->wide : 1);
}

rp_err rp_broadcast_multiply(const rp_layer_call *call, const rp_broadcast *form,
                             const rp_tensor *y, const rp_tensor *a, const rp_tensor *b, bool add) {
    const uint32_t row = form->keep_wide ? form->wide : 1;
    const uint32_t plane = (form->keep_q ? form->q : 1) * row;
    const size_t rows = (size_t)form->n * form->p * form->q;
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "mul", "mul_rows", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, y);
    rp_arg_tensor(&launch, a);
    rp_arg_tensor(&launch, b);
    rp_arg_u32(&launch, form->n);
    rp_arg_u32(&launch, form->p);
    rp_arg_u32(&launch, form->q);
    rp_arg_u32(&launch, form->wide);
    rp_arg_u64(&launch, form->shared ? 0 : rp_broadcast_count(form));
    rp_arg_u32(&launch, form->keep_p ? plane : 0);
    rp_arg_u32(&launch, form->keep_q ? row : 0);
    rp_arg_u32(&launch, form->keep_wide);
    rp_arg_u32(&launch, add);
    return rp_layer_run_items(&launch, rp_layer_divide_up(form->wide, VECTOR) * rows, GROUP_ITEMS);
}

rp_err rp_broadcast_sum(const rp_layer_call *call, const rp_broadcast *form, rp_buffer *out,
                        uint64_t out_first, const rp_tensor *dy, const rp_tensor *a,
                        uint32_t images, bool add) {
    const uint32_t sums = rp_broadcast_count(form);
    const size_t items =
        form->keep_wide ? sums / form->wide * rp_layer_divide_up(form->wide, VECTOR) : sums;
    const size_t groups = rp_layer_divide_up(form->n, images);
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "mul", form->keep_wide ? "mul_sum_columns" : "mul_sum_rows",
                                NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, out);
    rp_arg_u64(&launch, out_first);
    rp_arg_tensor(&launch, dy);
    rp_arg_tensor(&launch, a);
    rp_arg_u32(&launch, form->n);
    rp_arg_u32(&launch, form->p);
    rp_arg_u32(&launch, form->q);
    rp_arg_u32(&launch, form->wide);
    rp_arg_u32(&launch, form->keep_p);
    rp_arg_u32(&launch, form->keep_q);
    rp_arg_u32(&launch, images);
    rp_arg_u32(&launch, add);
    return rp_launch_run(&launch, 2, (size_t[]){items, groups}, (size_t[]){SUM_ITEMS, 1});
}
