/* Predictions for a text: its class, its translation, or how a language model continues it. */
#ifndef RP_PREDICT_TEXT_H
#define RP_PREDICT_TEXT_H

#include "predict/answers.h"
#include "predict/trained.h"

/* Borrowed as long as it is used. */
typedef struct {
    const char *folder;  /* run folder */
    const char *weights; /* file of weights; NULL: that of the folder */
    const char *text;
    uint32_t tokens; /* that continue the text; 0: not given, 100 */
    /* 0: the likeliest token; otherwise drawn from softmax(y / temperature); negative: not given, 0
     */
    double temperature;
    uint32_t beam; /* hypotheses of a translation; 0: not given, 1 */
    uint64_t seed; /* of what is drawn */
    uint32_t top;  /* classes in an answer; 0: not given, 1 */
    rp_predict_format format;
    FILE *out;
} rp_text_options;

typedef struct rp_texter rp_texter;

/* Reads the folder and encodes the text. Of a text that is longer than a sample of the net, a
 * classifier reads the first tokens, as in training, and a language model the last. errors  as
 * rp_trained_read(), rp_text_encode(); USAGE: the net takes no token ids */
rp_err rp_text_open(rp_arena *arena, const rp_text_options *options, rp_texter **out) RP_MUST_CHECK;
/* errors  DEVICE; NUMERIC: an output is not finite; IO */
rp_err rp_text_run(rp_texter *texter, rp_device *device) RP_MUST_CHECK;
void rp_text_close(rp_texter **texter); /* accepts NULL inside; before the device */

#endif
