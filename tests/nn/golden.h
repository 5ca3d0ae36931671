/* Runs one layer on the device as a stage would, and golden cases of tests/golden through it. */
#ifndef RP_TESTS_NN_GOLDEN_H
#define RP_TESTS_NN_GOLDEN_H

#include "expect.h"

#include "base/safetensors.h"
#include "nn/layer.h"

/* float32 in [-1, 1), element i a hash of (stream, i); values() in tests/golden/golden.py. */
void golden_values(const char *stream, size_t count, float *out);

/* The machine's first OpenCL device, opened once a process and closed at exit; without one the
 * program ends as skipped. */
rp_device *golden_device(void);

/* ---- one layer with all its memory ---------------------------------------------------------- */

typedef struct {
    rp_arena arena;
    rp_darena *memory;
    rp_layer layer;
    rp_layer_plan plan;
    /* Every x, y, dx and dy, and what is saved, begins with sample `lead` of its memory. */
    uint32_t lead;
    double rel; /* of a golden case: allowed relative error, GOLDEN_REL unless the case says more */
    uint64_t digest; /* of the bits of every result that golden_run() looked at */
    rp_tensor x[RP_LAYER_INPUTS_MAX], y, dy, dx[RP_LAYER_INPUTS_MAX];
    rp_tensor param[RP_LAYER_PARAMS_MAX], dparam[RP_LAYER_PARAMS_MAX];
    /* Points at all of the above, except dx of token ids; training, want_dx and want_dw are set,
     * all else is 0. Change it and pass it to rig->layer.kind->forward/backward/commit. */
    rp_layer_call call;
} layer_rig;

/* `keys` is a YAML map like {kind: dense, out: 3} (flow style); `name` becomes the layer's name.
 * The device memory is zeroed; x, dy and parameters are to be filled. Fails the test on an error.
 */
void rig_open(layer_rig *rig, const char *name, const char *keys, uint32_t n, const rp_shape *in,
              uint32_t input_count);
/* The same with x, y, dx and dy between guards. */
void rig_open_inside(layer_rig *rig, const char *name, const char *keys, uint32_t n,
                     const rp_shape *in, uint32_t input_count);
void rig_close(layer_rig *rig);
/* The samples before and behind those of each x, y, dx and dy are as they were. */
void rig_expect_guards(layer_rig *rig);
/* Whole tensors; read waits for the queue. The result of rig_read lives in the rig's arena. */
void rig_write(layer_rig *rig, rp_tensor *to, const float *from);
float *rig_read(layer_rig *rig, const rp_tensor *from);
/* rig_write of golden_values(). */
void rig_draw(layer_rig *rig, rp_tensor *to, const char *stream);

/* ---- golden cases --------------------------------------------------------------------------- */

typedef struct {
    const rp_st_reader *reader;
    const char *name;
} golden_case;

/* Opens a rig for the case and fills x, dy and the parameters. */
void golden_open(layer_rig *rig, const golden_case *golden, uint32_t lead);
/* tensor == <case>/<what> within rel * (|want| + the tensor's largest |want|). */
void golden_compare(layer_rig *rig, const golden_case *golden, const rp_tensor *got,
                    const char *what, double rel);
/* Calls `run` for every case of tests/golden/<stem>.safetensors, once with each GEMM; where kernels
 * are interpreted, with CLBlast only for cases that are small products. */
void golden_each(const char *stem, void (*run)(const golden_case *golden));
/* A file without layers (losses, optimisers): tensors by rp_st_need_f32 and rp_st_find. */
rp_st_reader *golden_file(rp_arena *arena, const char *stem);

/* The standard run of a case: forward; backward plain, then accumulating with dx_add, then dx and
 * dw asked for one by one; when the plan says in_place, both directions in place too. All of it
 * once with tensors that begin their memory and once with tensors that lie in the middle of it
 * between guards, which gives the same bits. Where the plan does not say that backward is `whole`,
 * also backward in two parts of the samples of one forward. */
void golden_run(const golden_case *golden);
#define GOLDEN_REL 1e-5

/* Central differences: for `samples` elements of each input and trained parameter,
 * (L(v + h) - L(v - h)) / 2h = dv with L = sum(y * dy) in double, within `tolerance` of the largest
 * gradient. The rig is filled with drawn values. */
void golden_differences(const char *keys, uint32_t n, const rp_shape *in, uint32_t input_count,
                        float h, double tolerance);

#endif
