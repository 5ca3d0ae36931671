/* `sites`: a federated run. Several sites with private data train in rounds, and a rule averages
 * their weights. */
#ifndef RP_RUN_FEDERATED_H
#define RP_RUN_FEDERATED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "optim/optim.h"
#include "run/site_options.h"

enum { RP_FEDERATED_MEMBERS_MAX = 256, RP_FEDERATED_AT_ONCE_MAX = 64 };

typedef enum {
    RP_RULE_FEDAVG,
    RP_RULE_FEDAVGM,
    RP_RULE_FEDADAM,
    RP_RULE_FEDYOGI,
    RP_RULE_FEDNOVA,
    RP_RULE_ELASTIC,
    RP_RULE_MEDIAN,
    RP_RULE_TRIMMED_MEAN,
    RP_RULE_GOSSIP, /* in a simulation only */
    RP_RULES
} rp_rule_kind;

/* Implementations of fedadam and fedyogi differ in the first value of v and in the correction of
 * the bias. */
typedef enum {
    RP_RULE_PAPER, /* v starts at tau^2, no correction */
    RP_RULE_ADAM,  /* v starts at 0; corrected as in Adam, with exponent 1 in the first round */
    RP_RULE_FLOWER /* v starts at 0; fedadam: exponent 2 in the first round; fedyogi: no correction
                    */
} rp_rule_variant;

/* How the weights of the sites become the next centre. Fields that a kind does not use are 0. */
typedef struct {
    rp_rule_kind kind;
    rp_rule_variant variant;  /* fedadam, fedyogi */
    bool equal;               /* all sites weigh the same, not by their samples */
    bool nesterov;            /* fedavgm */
    double lr;                /* fedavgm, fedadam, fedyogi: server's learning rate, above 0 */
    double momentum;          /* fedavgm: 0 to below 1 */
    double beta1, beta2, tau; /* fedadam, fedyogi */
    double alpha;             /* elastic: of one site; 0: 0.9 / sites of the round */
    double trim;              /* trimmed-mean: share cut off at each end, 0 to below 0.5 */
} rp_rule;

const char *rp_rule_name(rp_rule_kind kind);
/* Do sites go on from weights of their own? */
bool rp_rule_moves_sites(rp_rule_kind kind);

typedef struct {
    bool given;        /* the run file has `sites`; false: no further field has a meaning */
    const char *split; /* path of the split file */
    rp_rule rule;
    uint32_t rounds;
    uint32_t steps, epochs; /* length of a round at a site; exactly one of them is above 0 */
    double share;           /* of the sites in a round, above 0; 0: not given */
    uint32_t count;         /* sites in a round; 0: not given */
    const char *trace;      /* path of the availability trace; NULL: all sites are always there */
    double trace_s;         /* seconds that a round lasts on the clock of the trace */
    uint32_t least;         /* sites without which a round does not close; 0: all that take part */
    uint32_t wait_s;        /* a round closes after this time with at least `least`; 0: no limit */
    uint32_t at_once;       /* sites that train at a time */
    const rp_node *files;   /* map from the name of a site to its run file, or NULL */
    rp_site_options options;
} rp_federated_keys;

/* errors USAGE with file, line and key */
rp_err rp_federated_read(rp_node *root, rp_federated_keys *out) RP_MUST_CHECK;

/* Do an optimiser and its rates fit the rule and the options? FedNova divides by the weights of the
 * steps' gradients, which are known for plain SGD only. A drift comes from `sites.drift`, never
 * from train.anchor. errors USAGE at `at` */
rp_err rp_federated_check_optimizer(const rp_federated_keys *keys, const rp_optim *optim,
                                    const rp_lr_schedule *lr, const rp_node *at) RP_MUST_CHECK;

/* For real runs. errors USAGE at sites.rule: a rule that is only simulated */
rp_err rp_federated_check_real(const rp_federated_keys *keys, rp_node *root) RP_MUST_CHECK;

/* For verbs that do not run sites. errors USAGE naming the run file */
rp_err rp_federated_refuse(const rp_federated_keys *keys, const char *run_path) RP_MUST_CHECK;

#endif
