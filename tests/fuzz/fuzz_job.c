/* Text as an assignment, the untrusted twin of a run file: whatever is read can be laid out. */
#include "fuzz.h"

#include <string.h>

#include "stage/layout.h"

static const char model_text[] =
    "input: data\nlayers:\n  - {name: c, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
    "  - {name: b, kind: batchnorm}\n  - {name: r, kind: relu}\n"
    "  - {name: a, kind: add, from: [c, r]}\n  - {name: f, kind: dense, out: classes}\n";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    rp_arena arena;
    rp_arena_init(&arena, "fuzz", 64 << 20);
    rp_node *root;
    rp_node *model;
    rp_job job;
    rp_layout *layout;
    if (rp_config_read_text(&arena, (const char *)bytes, count, "fuzz", &root) == RP_OK &&
        rp_config_read_text(&arena, model_text, strlen(model_text), "model", &model) == RP_OK &&
        rp_job_parse(&arena, root, model, &job) == RP_OK) {
        /* the op list of a huge batch of single samples takes its time: not what is looked for */
        if (job.batch / job.micro <= 64 &&
            rp_layout_make(&arena, &job, RP_GEMM_PANEL, 128, &layout) == RP_OK) {
            RP_ASSERT(layout->slots > 0 && layout->tensor_count > layout->input_count);
        }
    }
    rp_arena_finish(&arena);
    return 0;
}
