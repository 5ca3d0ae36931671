/* Divides the training samples of a set among sites, by a rule and a seed.
 *
 * source  IID, by classes, by shards: McMahan et al. 2017 (1602.05629), section 3; by Dirichlet
 *         shares of each class: Hsu et al. 2019 (1909.06335), with the cut points floor(cumulative
 *         share * samples) that NIID-Bench uses (Li et al., 2102.02079) */
#ifndef RP_DATA_PARTITION_H
#define RP_DATA_PARTITION_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { RP_SITES_MAX = 1024 };

typedef enum {
    RP_PARTITION_IID,       /* equal parts of a shuffled order */
    RP_PARTITION_DIRICHLET, /* of each class, shares drawn from Dir(alpha) */
    RP_PARTITION_CLASSES,   /* `per_site` classes at each site, in turns */
    RP_PARTITION_SHARDS,    /* `per_site` pieces of the order by class */
    RP_PARTITION_QUANTITY   /* a shuffled order, cut in proportion to 1, 2, .. (linear), to their
                               squares, to 2, 4, .. (exp), or to shares drawn from Dir(alpha) */
} rp_partition_kind;

typedef enum {
    RP_QUANTITY_LINEAR,
    RP_QUANTITY_SQUARE,
    RP_QUANTITY_EXP,
    RP_QUANTITY_DIRICHLET
} rp_quantity;

typedef struct {
    rp_partition_kind kind;
    double alpha;      /* of Dir(alpha), above 0 */
    uint32_t per_site; /* classes or shards, at least 1 */
    rp_quantity quantity;
} rp_partition_rule;

typedef struct {
    const int32_t *label; /* [count], from 0 to classes - 1; NULL: samples have no class */
    uint32_t count, classes;
    uint32_t sites; /* 1 to RP_SITES_MAX */
    uint32_t least; /* Dirichlet shares are drawn again until no site has fewer samples */
    uint64_t seed;
} rp_partition_samples;

/* Reads "iid", "dirichlet:0.5", "classes:2", "shards:2", "quantity:linear", "quantity:square",
 * "quantity:exp" or "quantity:dirichlet:0.5".
 * errors  USAGE: another text, or a number out of range */
rp_err rp_partition_parse(const char *text, rp_partition_rule *out) RP_MUST_CHECK;

/* Sets site[i], below `sites`, for each sample. The result depends on the arguments only.
 * errors  USAGE: the rule needs classes, some classes or sites would get nothing, or no draw gives
 *         each site `least` samples; MEMORY */
rp_err rp_partition_make(const rp_partition_rule *rule, const rp_partition_samples *samples,
                         uint32_t *site) RP_MUST_CHECK;

/* Holds floor(share * count) samples out of those of a site, which are ascending: both results are
 * too, and `rest` gets those that remain. They depend on the arguments only, and on the site's
 * name. errors  MEMORY */
rp_err rp_partition_hold_out(rp_arena *arena, const uint32_t *sample, uint32_t count, double share,
                             uint64_t seed, const char *site, uint32_t *held,
                             uint32_t *rest) RP_MUST_CHECK;

/* Numbers of samples that parts of `all` get by shares that add up to 1: the differences of
 * floor(cumulative share * all); the last part gets the rest. */
void rp_partition_cut(uint32_t all, const double *share, uint32_t parts, uint32_t *count);

#endif
