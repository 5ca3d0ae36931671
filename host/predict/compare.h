/* Compares a net's outputs with those of another framework for the same inputs. */
#ifndef RP_PREDICT_COMPARE_H
#define RP_PREDICT_COMPARE_H

#include "data/npz.h"
#include "predict/network.h"

enum { RP_COMPARE_INPUTS_MAX = 8 };

/* A function of the last axis that the outputs of the file have and the net leaves out. */
typedef enum { RP_END_NONE, RP_END_SOFTMAX, RP_END_LOG_SOFTMAX } rp_net_end;

typedef struct {
    const rp_npz *arrays;
    const char *path; /* of the arrays, for messages */
    /* Arrays of the inputs, in the order in which a sample concatenates them. */
    const char *input[RP_COMPARE_INPUTS_MAX];
    rp_shape shape[RP_COMPARE_INPUTS_MAX]; /* of one sample */
    uint32_t input_count;
    bool ids;           /* inputs are token ids */
    const char *output; /* the array of the outputs */
    rp_net_end end;
    uint32_t row; /* size of the last axis of the output */
} rp_compare_options;

typedef struct {
    uint32_t samples;
    /* Largest difference, as a part of the largest output of the file; not finite if an output of
     * the net is not finite. */
    double error;
    bool same; /* several samples have the same outputs in the file, which shows little */
} rp_comparison;

/* Runs the net, which has been started, on all samples of the file.
 * errors  FORMAT naming file and array: missing, of another shape, or not finite; DEVICE; MEMORY */
rp_err rp_compare_outputs(rp_arena *arena, rp_network *network, const rp_compare_options *options,
                          rp_comparison *out) RP_MUST_CHECK;

#endif
