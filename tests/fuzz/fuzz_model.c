/* Text as a model file: whatever is read has shapes that fit, and can be cut in two. */
#include "fuzz.h"

#include "nn/cut.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 256 << 20);
    rp_node *root;
    rp_model *model;
    const rp_model_data data = {.sample = rp_shape_3(3, 32, 32), .classes = 10, .tokens = 65};
    if (rp_config_read_text(&arena, (const char *)bytes, count, "fuzz", &root) == RP_OK &&
        rp_model_parse(&arena, root, &data, &model) == RP_OK) {
        for (uint32_t i = 0; i < model->layer_count; i++) {
            RP_ASSERT(rp_shape_check(&model->plan[i].out));
        }
        if (model->layer_count > 1) {
            rp_cut cut = {2, (const uint32_t[]){0, 1, model->layer_count}};
            rp_boundary boundary;
            if (rp_cut_check(model, &cut) == RP_OK) {
                RP_ASSERT(rp_cut_boundary(model, &cut, 1, &boundary) == RP_OK);
                RP_ASSERT(boundary.count > 0 && boundary.count <= RP_CUT_TENSORS_MAX);
            }
        }
    }
    rp_arena_finish(&arena);
    return 0;
}
