/* For tests: a small run file in the test's folder, read. Include it behind folder.h. */
#ifndef RP_TESTS_RUN_OF_H
#define RP_TESTS_RUN_OF_H

#include "run/runfile.h"

/* Two boards, a model of three dense layers on glyphs; `more`: lines of the run file. */
static inline void read_run(rp_runfile *out, const char *more) {
    static const char model[] = "input: data\n"
                                "layers:\n"
                                "  - {name: fc1, kind: dense, out: 8}\n"
                                "  - {name: fc2, kind: dense, out: 8}\n"
                                "  - {name: fc3, kind: dense, out: classes}\n";
    char text[1024];
    (void)unlink(in_folder("model.yaml"));
    (void)unlink(in_folder("run.yaml"));
    append("model.yaml", model, sizeof model - 1);
    const int used = snprintf(text, sizeof text,
                              "model: %s/model.yaml\n"
                              "data: {set: glyphs, train: 64, test: 24, size: 12}\n"
                              "ring: {boards: 2}\n"
                              "train: {epochs: 2, batch: 16, microbatch: 8, seed: 1}\n"
                              "loss: cross-entropy\n"
                              "%s",
                              folder, more);
    append("run.yaml", text, (size_t)used);
    (void)snprintf(text, sizeof text, "%s/run.yaml", folder);
    expect_ok(rp_runfile_read(&arena, text, NULL, 0, out));
}

#endif
