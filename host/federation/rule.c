#include "federation/rule.h"

#include <math.h>
#include <stdlib.h>

/* All sites of a round together move the centre by 0.9 of its distance to their mean, as lanes do
 * (EASGD's beta). */
static const double BETA = 0.9;

bool rp_rule_has_m(const rp_rule *rule) {
    return rule->kind == RP_RULE_FEDADAM || rule->kind == RP_RULE_FEDYOGI;
}

bool rp_rule_has_v(const rp_rule *rule) {
    return rule->kind == RP_RULE_FEDAVGM || rp_rule_has_m(rule);
}

double rp_rule_alpha(const rp_rule *rule, uint32_t count) {
    return rule->alpha > 0 ? rule->alpha : BETA / count;
}

/* D of value j. Differences come first, so that weights that no site has changed stay as they are.
 */
static double mean_change(const rp_rule_round *round, const rp_rule_values *values, size_t j) {
    double sum = 0;
    for (uint32_t i = 0; i < round->count; i++) {
        sum += round->member[i].weight * (values->y[i][j] - values->x[j]);
    }
    return sum;
}

static void apply_mean(const rp_rule_round *round, const rp_rule_values *values) {
    for (size_t j = 0; j < values->count; j++) {
        values->next[j] = values->x[j] + mean_change(round, values, j);
    }
}

static void apply_momentum(const rp_rule_round *round, const rp_rule_values *values) {
    const rp_rule *rule = round->rule;
    for (size_t j = 0; j < values->count; j++) {
        const double g = -mean_change(round, values, j);
        const double v = rule->momentum * values->v[j] + g;
        values->v[j] = v;
        values->next[j] = values->x[j] - rule->lr * (rule->nesterov ? g + rule->momentum * v : v);
    }
}

/* Server's rate with the correction of the bias that the variant has. */
static double corrected_rate(const rp_rule *rule, uint64_t update) {
    const bool corrected = rule->variant == RP_RULE_ADAM ||
                           (rule->variant == RP_RULE_FLOWER && rule->kind == RP_RULE_FEDADAM);
    const double exponent = (double)update + (rule->variant == RP_RULE_FLOWER ? 1 : 0);
    return corrected
               ? rule->lr * sqrt(1 - pow(rule->beta2, exponent)) / (1 - pow(rule->beta1, exponent))
               : rule->lr;
}

static double sign_of(double value) {
    return (value > 0) - (value < 0);
}

static void apply_moments(const rp_rule_round *round, const rp_rule_values *values) {
    const rp_rule *rule = round->rule;
    const double rate = corrected_rate(rule, round->update);
    const double first = rule->variant == RP_RULE_PAPER ? rule->tau * rule->tau : 0;
    for (size_t j = 0; j < values->count; j++) {
        const double d = mean_change(round, values, j);
        const double m = rule->beta1 * values->m[j] + (1 - rule->beta1) * d;
        double v = round->update == 1 ? first : values->v[j];
        v = rule->kind == RP_RULE_FEDADAM ? rule->beta2 * v + (1 - rule->beta2) * d * d
                                          : v - (1 - rule->beta2) * d * d * sign_of(v - d * d);
        values->m[j] = m;
        values->v[j] = v;
        values->next[j] = values->x[j] + rate * m / (sqrt(v) + rule->tau);
    }
}

/* A member without a step has changed nothing, and adds nothing. */
static void apply_nova(const rp_rule_round *round, const rp_rule_values *values) {
    double all = 0;
    for (uint32_t i = 0; i < round->count; i++) {
        all += round->member[i].weight * round->member[i].steps;
    }
    for (size_t j = 0; j < values->count; j++) {
        double sum = 0;
        for (uint32_t i = 0; i < round->count; i++) {
            const rp_rule_member *member = &round->member[i];
            sum += member->steps > 0
                       ? member->weight / member->steps * (values->y[i][j] - values->x[j])
                       : 0;
        }
        values->next[j] = values->x[j] + all * sum;
    }
}

static void apply_elastic(const rp_rule_round *round, const rp_rule_values *values) {
    const double alpha = rp_rule_alpha(round->rule, round->count);
    for (size_t j = 0; j < values->count; j++) {
        double moved = values->x[j];
        for (uint32_t i = 0; i < round->count; i++) {
            const double pull = alpha * (values->y[i][j] - values->x[j]);
            moved += pull;
            values->moved[i][j] = values->y[i][j] - pull;
        }
        values->next[j] = moved;
    }
}

/* Members are a ring in the order of the split file. Each weighs its own weights and those of its
 * neighbours the same, which are the weights of Metropolis: 1 / (1 + the larger number of
 * neighbours of the two). They add up to 1 over the neighbours of each member and over the members
 * that have it as a neighbour, so the mean stays the same. */
static void apply_gossip(const rp_rule_round *round, const rp_rule_values *values) {
    const uint32_t count = round->count;
    for (size_t j = 0; j < values->count; j++) {
        for (uint32_t i = 0; i < count; i++) {
            const double y = values->y[i][j];
            double pull = values->y[(i + 1) % count][j] - y;
            pull += count > 2 ? values->y[(i + count - 1) % count][j] - y : 0;
            values->moved[i][j] = y + pull / (count > 2 ? 3 : 2);
        }
    }
    apply_mean(round, values);
}

static int by_size(const void *left, const void *right) {
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The mean of the values that are left when `cut` are cut off at each end. */
static void apply_trimmed(const rp_rule_round *round, const rp_rule_values *values, uint32_t cut) {
    for (size_t j = 0; j < values->count; j++) {
        double sum = 0;
        for (uint32_t i = 0; i < round->count; i++) {
            values->column[i] = values->y[i][j];
        }
        qsort(values->column, round->count, sizeof *values->column, by_size);
        for (uint32_t i = cut; i < round->count - cut; i++) {
            sum += values->column[i];
        }
        values->next[j] = sum / (round->count - 2 * cut);
    }
}

void rp_rule_apply(const rp_rule_round *round, const rp_rule_values *values) {
    const rp_rule *rule = round->rule;
    switch (rule->kind) {
    case RP_RULE_FEDAVGM:
        (values->is_statistic ? apply_mean : apply_momentum)(round, values);
        break;
    case RP_RULE_FEDADAM:
    case RP_RULE_FEDYOGI:
        (values->is_statistic ? apply_mean : apply_moments)(round, values);
        break;
    case RP_RULE_FEDNOVA:
        (values->is_statistic ? apply_mean : apply_nova)(round, values);
        break;
    case RP_RULE_ELASTIC:
        apply_elastic(round, values);
        break;
    case RP_RULE_GOSSIP:
        apply_gossip(round, values);
        break;
    case RP_RULE_MEDIAN:
        apply_trimmed(round, values, (round->count - 1) / 2);
        break;
    case RP_RULE_TRIMMED_MEAN:
        apply_trimmed(round, values, (uint32_t)(rule->trim * round->count));
        break;
    default:
        apply_mean(round, values);
        break;
    }
}
