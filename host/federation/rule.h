/* The rules by which weights of sites become the next centre: pure functions over values in double.
 *
 * D is the weighted mean of the differences y_i - x of the sites' weights y_i from the centre x,
 * summed in the order of the members; p_i are the members' weights.
 *
 *   fedavg        x + D
 *   fedavgm       v = momentum v - D;  x - lr v,  or with nesterov x - lr (momentum v - D)
 *   fedadam       m = beta1 m + (1 - beta1) D;  v = beta2 v + (1 - beta2) D^2;
 *                 x + rate m / (sqrt(v) + tau); rate: lr, corrected as the variant says
 *   fedyogi       the same with v = v - (1 - beta2) D^2 sign(v - D^2)
 *   fednova       x + (sum p_i a_i) sum p_i (y_i - x) / a_i;  a_i: see rp_rule_member.steps
 *   elastic       z + sum alpha (y_i - z); a site goes on from y_i - alpha (y_i - z)
 *   gossip        x + D;  a site goes on from the mean of its own weights and those of its two
 *                 neighbours in the ring of members, or of one if there are two members
 *   median        of each value; the mean of the middle two if the count is even
 *   trimmed-mean  without the floor(trim count) smallest and largest of each value
 *
 * source  McMahan 2017 (1602.05629); Hsu 2019 (1909.06335); Reddi 2021 (2003.00295), algorithm 2;
 *         Wang 2020 (2007.07481); Zhang 2015 (1412.6651); Lian 2017 (1705.09056);
 *         Yin 2018 (1803.01498); fedavgm with nesterov and equal weights is DiLoCo's outer step,
 *         Douillard 2023 (2311.08105) */
#ifndef RP_FEDERATION_RULE_H
#define RP_FEDERATION_RULE_H

#include <stddef.h>

#include "run/federated.h"

typedef struct {
    double weight; /* p_i; those of all members add up to 1 */
    double steps;  /* a_i: sum of the weights of the steps' gradients in the result, at least 0 */
} rp_rule_member;

typedef struct {
    const rp_rule *rule;
    const rp_rule_member *member; /* [count] */
    uint32_t count;               /* at least 1 */
    uint64_t update;              /* number of this update of the centre, from 1 */
} rp_rule_round;

/* A stretch of values of one tensor, borrowed. */
typedef struct {
    size_t count;
    const double *x;        /* [count] the centre */
    const double *const *y; /* [members][count] */
    double *m, *v;          /* [count] state of the server, 0 before the first update; NULL if the
                               rule has none */
    double *const *moved; /* [members][count] elastic, gossip: weights from which the sites go on */
    double *column;       /* [members] scratch */
    double *next;         /* [count] the next centre */
    /* Running statistics: momentum and moments are not for them. They become x + D for the rules
     * with a server state and for fednova. */
    bool is_statistic;
} rp_rule_values;

bool rp_rule_has_m(const rp_rule *rule);
bool rp_rule_has_v(const rp_rule *rule);
/* The coefficient of one of `count` members, for the rule elastic. */
double rp_rule_alpha(const rp_rule *rule, uint32_t count);

/* Writes values->next, and m, v and moved where the rule has them. */
void rp_rule_apply(const rp_rule_round *round, const rp_rule_values *values);

#endif
