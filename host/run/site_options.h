/* `sites.keep`, `drift`, `optimizer`, `clip` and `delta`: options of a site's round in a federated
 * run. */
#ifndef RP_RUN_SITE_OPTIONS_H
#define RP_RUN_SITE_OPTIONS_H

#include <stdbool.h>

#include "base/config.h"
#include "codec/delta.h"
#include "nn/model.h"
#include "optim/optim.h"

enum { RP_SITE_PATTERNS_MAX = 32 };

/* They are the options of `ringpipe round` of the same names. */
typedef struct {
    const rp_node *keep;  /* patterns of tensors that never leave a site; NULL: none */
    bool drift;           /* SCAFFOLD without additional bytes */
    bool keeps_optimizer; /* its state goes on in the site's next round */
    double clip;          /* longest difference that leaves a site; 0: not limited */
    rp_delta delta;       /* how a difference that leaves a site is coded */
} rp_site_options;

/* Reads the keys of `sites`. errors  USAGE with file, line and key */
rp_err rp_site_options_read(rp_node *sites, rp_site_options *out) RP_MUST_CHECK;

/* Does a site keep anything from one round to the next? */
bool rp_site_options_keep_state(const rp_site_options *options);

/* Each pattern matches a tensor of the model, and one tensor at least is averaged.
 * errors  USAGE at the pattern */
rp_err rp_site_options_check_model(const rp_site_options *options,
                                   const rp_model *model) RP_MUST_CHECK;

/* The drift is computed from the sum of a site's updates, which must be the rate times the
 * gradient, with the same sum of rates at all sites. errors  USAGE at `at` */
rp_err rp_site_options_check_drift(const rp_optim *optim, const rp_lr_schedule *lr,
                                   const rp_node *at) RP_MUST_CHECK;

#endif
