/* Answers, one a sample, as lines for a person, rows of CSV, or one JSON object.
 *
 *   text  cat.jpg: cat 97.31 %, dog 1.92 %       rows.csv:12: setosa 99.87 %      x.npy[3]: 7 81.40
 * % CSV   input,sample,class,probability[,class_2,probability_2 ...] JSON  {"version": 1, "device":
 * ..., "weights": ..., "predictions": [{"input": "cat.jpg", "class": "cat", "index": 3,
 * "probability": 0.97, "top": [{"class", "index", "probability"}, ...]}, ...], "samples": 2};
 * `line` of a CSV row, `element` of an array
 *
 * Without classes the outputs follow as they are, under the names of the targets where they have
 * some: in JSON a list `values`, with `names` in front of the predictions. */
#ifndef RP_PREDICT_ANSWERS_H
#define RP_PREDICT_ANSWERS_H

#include <stdio.h>

#include "data/inputs.h"

typedef enum { RP_PREDICT_TEXT, RP_PREDICT_CSV, RP_PREDICT_JSON } rp_predict_format;

typedef struct rp_answers rp_answers;

typedef struct {
    FILE *file;
    rp_predict_format format;
    const rp_description *about;
    uint32_t outputs;
    uint32_t top; /* classes of an answer, 1 to outputs */
    const char *weights, *device;
} rp_answers_options;

/* Lives in `arena`; the options' texts are borrowed. errors IO, MEMORY */
rp_err rp_answers_open(rp_arena *arena, const rp_answers_options *options,
                       rp_answers **out) RP_MUST_CHECK;
/* y: the net's outputs for the sample. errors NUMERIC: one is not finite; IO; FORMAT: a name that
 * JSON cannot have */
rp_err rp_answers_add(rp_answers *answers, const rp_input_place *place,
                      const float *y) RP_MUST_CHECK;
uint64_t rp_answers_count(const rp_answers *answers);
/* What is not written yet: JSON appears as a whole. */
rp_err rp_answers_finish(rp_answers *answers) RP_MUST_CHECK;
void rp_answers_close(rp_answers **answers); /* accepts NULL inside */

#endif
