/* Predictions for files by the net of a run folder. */
#ifndef RP_PREDICT_PREDICT_H
#define RP_PREDICT_PREDICT_H

#include "predict/answers.h"
#include "predict/trained.h"

/* Borrowed as long as the predictor lives. */
typedef struct {
    const char *folder;       /* run folder: data.json, model.yaml, weights.safetensors */
    const char *weights;      /* file of weights; NULL: that of the folder */
    const char *const *input; /* paths; "-": standard input */
    uint32_t input_count;
    uint32_t top; /* classes in an answer; a larger number than exist means all */
    rp_predict_format format;
    FILE *out;
    FILE *progress; /* a terminal for the progress; NULL: no progress */
} rp_predict_options;

typedef struct rp_predictor rp_predictor;

/* Reads and checks the folder. *out lives in `arena`. errors IO, FORMAT, USAGE, SHAPE naming the
 * file and the problem */
rp_err rp_predict_open(rp_arena *arena, const rp_predict_options *options,
                       rp_predictor **out) RP_MUST_CHECK;
/* Predicts every sample of every file, in order. errors as rp_inputs_read(), rp_network_run(),
 * rp_answers_add(); answers written before an error remain */
rp_err rp_predict_run(rp_predictor *predictor, rp_device *device) RP_MUST_CHECK;
void rp_predict_close(rp_predictor **predictor); /* accepts NULL inside; before the device */

#endif
