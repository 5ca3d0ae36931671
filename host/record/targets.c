#include "record/targets.h"

#include <math.h>

#include "base/json_values.h"

const char *rp_targets_word(rp_targets targets) {
    return targets == RP_TARGETS_SINGLE ? NULL : targets == RP_TARGETS_PIXELS ? "pixels" : "tokens";
}

double rp_perplexity(double loss) {
    return exp(loss);
}

void rp_targets_put_loss(json_t *object, rp_targets targets, double loss, double bits, bool *good) {
    if (rp_targets_are_tokens(targets)) {
        rp_json_put(object, "perplexity", rp_json_of_real(rp_perplexity(loss)), good);
    }
    if (targets == RP_TARGETS_TEXT) {
        rp_json_put(object, "bits", rp_json_of_real(bits), good);
    }
}
