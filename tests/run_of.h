/* For tests: a small run file in the test's folder. Include it after folder.h. */
#ifndef RP_TESTS_RUN_OF_H
#define RP_TESTS_RUN_OF_H

#include "run/runfile.h"

#define GPIPE "schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\n"

/* Two boards, a model of three dense layers on glyphs; `more`: lines of the run file. Returns its
 * path. */
static inline const char *write_run(const char *more) {
    char text[1024];
    char *path;
    write_text("model.yaml", "input: data\n"
                             "onnx: {inputs: [x], outputs: [y]}\n"
                             "layers:\n"
                             "  - {name: fc1, kind: dense, out: 8}\n"
                             "  - {name: fc2, kind: dense, out: 8}\n"
                             "  - {name: fc3, kind: dense, out: classes}\n");
    (void)snprintf(text, sizeof text,
                   "model: %s/model.yaml\n"
                   "data: {set: glyphs, train: 64, test: 24, size: 12}\n"
                   "ring: {boards: 2}\n"
                   "train: {epochs: 2, batch: 16, microbatch: 8, seed: 1}\n"
                   "loss: cross-entropy\n"
                   "%s",
                   folder, more);
    expect_ok(rp_arena_string(&arena, write_text("run.yaml", text), &path));
    return path;
}

static inline void read_run(rp_runfile *out, const char *more) {
    expect_ok(rp_runfile_read(&arena, write_run(more), NULL, 0, out));
}

#endif
