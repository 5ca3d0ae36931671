/* What a run's net says about files, from the run's folder alone. */
#ifndef RP_PREDICT_PREDICT_H
#define RP_PREDICT_PREDICT_H

#include "predict/answers.h"
#include "predict/network.h"

/* Borrowed as long as the predictor lives. */
typedef struct {
    const char *folder;       /* of the run: data.json, model.yaml, weights.safetensors */
    const char *weights;      /* other weights; NULL: the folder's own */
    const char *const *input; /* paths; "-": the standard input */
    uint32_t input_count;
    uint32_t top; /* classes of an answer; more than there are: all */
    rp_predict_format format;
    FILE *out;
    FILE *progress; /* a terminal to say on how far it is; NULL: nobody */
} rp_predict_options;

typedef struct rp_predictor rp_predictor;

/* Reads and checks the folder. Lives in `arena`. errors IO, FORMAT, USAGE, SHAPE naming the file
 * and what it lacks */
rp_err rp_predict_open(rp_arena *arena, const rp_predict_options *options,
                       rp_predictor **out) RP_MUST_CHECK;
/* Every sample of every file, in their order. errors as rp_inputs_read(), rp_network_run(),
 * rp_answers_add(): what was written before stays */
rp_err rp_predict_run(rp_predictor *predictor, rp_device *device) RP_MUST_CHECK;
void rp_predict_close(rp_predictor **predictor); /* accepts NULL inside; before the device */

#endif
