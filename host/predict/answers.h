/* Answers, one for each sample, as text, CSV, or one JSON object.
 *
 *   text  cat.jpg: cat 97.31 %, dog 1.92 %
 *         rows.csv:12: setosa 99.87 %
 *         x.npy[3]: 7 81.40 %
 *   CSV   input,sample,class,probability[,class_2,probability_2 ...]
 *   JSON  {"version": 1, "device": ..., "weights": ...,
 *          "predictions": [{"input": "cat.jpg", "class": "cat", "index": 3, "probability": 0.97,
 *                           "top": [{"class", "index", "probability"}, ...]}, ...],
 *          "samples": 2}; a prediction also has `line` for a CSV row, `element` for an array
 *
 * With a class for each pixel of an image, an answer has the classes with their shares of the
 * pixels: `share` instead of `probability`. In JSON `mask` is the class of each pixel, row by row.
 *
 * Without classes an answer has the values of the outputs, with the names of targets if they have
 * names. In JSON they are a list `values`, and `names` precedes the predictions. */
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
    uint32_t outputs; /* of a sample, or of a pixel */
    uint32_t pixels;  /* that have a class each, as outputs [outputs, pixels]; 0: none */
    uint32_t top;     /* number of classes in an answer, 1 to outputs */
    const char *weights, *device;
} rp_answers_options;

/* Opens answers in `arena`; the options' texts are borrowed. errors IO, MEMORY */
rp_err rp_answers_open(rp_arena *arena, const rp_answers_options *options,
                       rp_answers **out) RP_MUST_CHECK;
/* Adds an answer. y: all outputs of the net for the sample. errors NUMERIC: an output is not
 * finite; IO; FORMAT: a name that is not UTF-8, in JSON */
rp_err rp_answers_add(rp_answers *answers, const rp_input_place *place,
                      const float *y) RP_MUST_CHECK;
uint64_t rp_answers_count(const rp_answers *answers);
/* Writes the rest; JSON is written only here, as a whole. */
rp_err rp_answers_finish(rp_answers *answers) RP_MUST_CHECK;
void rp_answers_close(rp_answers **answers); /* accepts NULL inside */

#endif
