/* What a site does in a round in addition to training: tensors that it keeps, its anchor, its
 * drift, its optimiser, a bound of the difference that leaves it, and how that is coded. */
#ifndef RP_SITES_RULES_H
#define RP_SITES_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/safetensors.h"
#include "codec/delta.h"

typedef struct {
    const char *const *keep; /* shell patterns of tensors that never leave the site */
    uint32_t keep_count;
    double anchor;        /* mu of FedProx; 0: none */
    bool drift;           /* SCAFFOLD, computed from the weights of the next round */
    bool keeps_optimizer; /* its state goes on in the next round */
    double clip;          /* longest difference from the given weights; 0: not limited */
    rp_delta delta;       /* an update leaves the site instead of weights (update.h) */
} rp_round_rules;

/* Does the rules' site keep the tensor? */
bool rp_site_keeps(const rp_round_rules *rules, const char *name);
/* errors  USAGE: a pattern matches no tensor of floats in `given` */
rp_err rp_site_check_keep(const rp_round_rules *rules, const rp_st_reader *given,
                          const char *path) RP_MUST_CHECK;

#endif
