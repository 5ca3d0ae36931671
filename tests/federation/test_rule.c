/* The rules in double, against vectors that numpy computed from the papers' formulas, and against
 * the rules that they become in special cases. */
#include "expect.h"

#include <math.h>
#include <string.h>

#include "golden.h"

static const double EXACT = 1e-12;

typedef struct {
    rp_rule rule;
    const uint32_t *steps; /* of each site */
    double momentum;       /* of the sites */
    double x[WEIGHTS], m[WEIGHTS], v[WEIGHTS];
    double own[SITES][WEIGHTS]; /* elastic: weights from which the sites go on */
    uint64_t update;
} run;

static run begin(rp_rule rule, const uint32_t *steps) {
    run r = {.rule = rule, .steps = steps};
    memcpy(r.x, start, sizeof start);
    for (uint32_t i = 0; i < SITES; i++) {
        memcpy(r.own[i], start, sizeof start);
    }
    return r;
}

/* Sites `who` take part. */
static void take_round(run *r, const uint32_t *who, uint32_t count) {
    double y[SITES][WEIGHTS];
    double moved[SITES][WEIGHTS];
    double next[WEIGHTS];
    double column[SITES];
    const double *values[SITES];
    double *to[SITES];
    rp_rule_member member[SITES];
    double all = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t site = who[i];
        const double *from = rp_rule_moves_sites(r->rule.kind) ? r->own[site] : r->x;
        train_site(site, from, r->steps[site], r->momentum, y[i]);
        values[i] = y[i];
        to[i] = moved[i];
        member[i].weight = r->rule.equal ? 1 : samples[site];
        member[i].steps = sum_of_steps(r->steps[site], r->momentum);
        all += member[i].weight;
    }
    for (uint32_t i = 0; i < count; i++) {
        member[i].weight /= all;
    }
    const rp_rule_round round = {
        .rule = &r->rule, .member = member, .count = count, .update = ++r->update};
    rp_rule_apply(&round, &(rp_rule_values){.count = WEIGHTS,
                                            .x = r->x,
                                            .y = values,
                                            .m = r->m,
                                            .v = r->v,
                                            .moved = to,
                                            .column = column,
                                            .next = next});
    memcpy(r->x, next, sizeof next);
    for (uint32_t i = 0; i < count && rp_rule_moves_sites(r->rule.kind); i++) {
        memcpy(r->own[who[i]], moved[i], sizeof moved[i]);
    }
}

static const uint32_t everyone[SITES] = {0, 1, 2};

static run after(rp_rule rule, const uint32_t *steps, uint32_t rounds) {
    run r = begin(rule, steps);
    while (rounds-- > 0) {
        take_round(&r, everyone, SITES);
    }
    return r;
}

#define MOMENTS(rule, way)                                                                         \
    {                                                                                              \
        .kind = RP_RULE_##rule, .variant = RP_RULE_##way, .lr = 0.1, .beta1 = 0.9, .beta2 = 0.99,  \
        .tau = 1e-3                                                                                \
    }
#define AVGM                                                                                       \
    { .kind = RP_RULE_FEDAVGM, .lr = 1, .momentum = 0.9 }
#define DILOCO                                                                                     \
    { .kind = RP_RULE_FEDAVGM, .equal = true, .nesterov = true, .lr = 0.7, .momentum = 0.9 }

static const struct {

    rp_rule rule;
    const uint32_t *steps;
    uint32_t rounds;
    double want[WEIGHTS];
} cases[] = {
    {{.kind = RP_RULE_FEDAVG}, unequal, 1, {0.9295276780799998, -1.5380119999999997}},
    {{.kind = RP_RULE_FEDAVG}, unequal, 2, {0.8695890909720374, -1.2488287634479998}},
    {AVGM, unequal, 1, {0.9295276780799998, -1.5380119999999997}},
    {AVGM, unequal, 2, {0.8061640012440373, -0.8330395634479996}},
    {AVGM, unequal, 3, {0.6536376883807631, -0.1730732540017289}},
    {DILOCO, equal, 1, {1.1874904546666665, -1.202759208333333}},
    {DILOCO, equal, 2, {1.4016486852755412, -0.4614258092173338}},
    {DILOCO, equal, 3, {1.6041992976855062, 0.04903848220955975}},
    {MOMENTS(FEDADAM, PAPER), unequal, 1, {0.9131806966056644, -1.9021409102757232}},
    {MOMENTS(FEDADAM, PAPER), unequal, 2, {0.7937133651904347, -1.7699593219533811}},
    {MOMENTS(FEDADAM, ADAM), unequal, 1, {0.9124266328613474, -1.9021186979329985}},
    {MOMENTS(FEDADAM, ADAM), unequal, 2, {0.8232720878352708, -1.8039672154135953}},
    {MOMENTS(FEDADAM, FLOWER), unequal, 1, {0.9349802963644568, -1.9273270691786777}},
    {MOMENTS(FEDADAM, FLOWER), unequal, 2, {0.8581442840818764, -1.843166918856791}},
    {MOMENTS(FEDYOGI, PAPER), unequal, 1, {0.913188209726078, -1.9021411345651258}},
    {MOMENTS(FEDYOGI, PAPER), unequal, 2, {0.7940533465955892, -1.770312326511165}},
    {MOMENTS(FEDYOGI, FLOWER), unequal, 1, {0.9124266328613475, -1.9021186979329985}},
    {MOMENTS(FEDYOGI, FLOWER), unequal, 2, {0.7926724021421491, -1.7702735803221907}},
    {{.kind = RP_RULE_FEDNOVA}, unequal, 1, {0.966851134656, -1.7320133999999996}},
    {{.kind = RP_RULE_ELASTIC, .equal = true, .alpha = 0.3},
     equal,
     1,
     {1.1268732399999999, -1.46051375}},
    {{.kind = RP_RULE_ELASTIC, .equal = true, .alpha = 0.3},
     equal,
     2,
     {1.1862782758311634, -1.2381404278414063}},
};

static void rules_give_the_vectors(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const run r = after(cases[i].rule, cases[i].steps, cases[i].rounds);
        for (uint32_t j = 0; j < WEIGHTS; j++) {
            expect_close_at(r.x[j], cases[i].want[j], 0, EXACT, "case", i, __FILE__, __LINE__);
        }
    }
}

static void more_vectors(void **state) {
    static const double two[WEIGHTS] = {0.981678857142857, -2.204428571428571};
    static const double nova[WEIGHTS] = {0.9299327683675405, -1.5207279329495083};
    static const double own[WEIGHTS] = {1.7406421062, -1.4303987726632812};
    static const double drifted[WEIGHTS] = {1.659990791264585, -0.3940904295992008};
    run r = begin((rp_rule){.kind = RP_RULE_FEDAVG}, unequal);
    (void)state;
    take_round(&r, (const uint32_t[]){0, 2}, 2);
    expect_close_all(r.x, two, WEIGHTS, 0, EXACT);
    r = begin((rp_rule){.kind = RP_RULE_FEDNOVA}, unequal);
    r.momentum = 0.9;
    take_round(&r, everyone, SITES);
    expect_close_all(r.x, nova, WEIGHTS, 0, EXACT);
    r = after((rp_rule){.kind = RP_RULE_ELASTIC, .equal = true, .alpha = 0.3}, equal, 2);
    expect_close_all(r.own[0], own, WEIGHTS, 0, EXACT);
    r = after((rp_rule){.kind = RP_RULE_FEDAVG, .equal = true}, equal, 400);
    expect_close_all(r.x, drifted, WEIGHTS, 0, 1e-9);
}

static void expect_same(rp_rule a, rp_rule b, const uint32_t *steps, uint32_t rounds) {
    const run one = after(a, steps, rounds);
    const run two = after(b, steps, rounds);
    expect_close_all(one.x, two.x, WEIGHTS, 0, EXACT);
}

static void special_cases_are_fedavg(void **state) {
    const rp_rule fedavg = {.kind = RP_RULE_FEDAVG};
    const rp_rule mean = {.kind = RP_RULE_FEDAVG, .equal = true};
    rp_rule outer = DILOCO;
    (void)state;
    expect_same((rp_rule){.kind = RP_RULE_FEDNOVA}, fedavg, equal, 3);
    expect_same((rp_rule){.kind = RP_RULE_FEDAVGM, .lr = 1}, fedavg, unequal, 3);
    outer.lr = 1;
    outer.momentum = 0;
    expect_same(outer, mean, unequal, 3);
    expect_same((rp_rule){.kind = RP_RULE_TRIMMED_MEAN, .equal = true, .trim = 0.3}, mean, unequal,
                3); /* floor(0.9) = 0 values are cut off */
    expect_same((rp_rule){.kind = RP_RULE_TRIMMED_MEAN, .equal = true, .trim = 0.34},
                (rp_rule){.kind = RP_RULE_MEDIAN, .equal = true}, unequal, 3);
    /* The first centre of elastic averages is a mean: z+ = (1 - 3 a) z + 3 a mean y. */
    const run z = after((rp_rule){.kind = RP_RULE_ELASTIC, .equal = true, .alpha = 0.3}, equal, 1);
    const run y = after(mean, equal, 1);
    for (uint32_t j = 0; j < WEIGHTS; j++) {
        expect_close(z.x[j], 0.1 * start[j] + 0.9 * y.x[j], 0, EXACT);
    }
}

/* Seven sites, of which the last one lies. */
static void one_liar_does_not_count(void **state) {
    static const double rows[7][WEIGHTS] = {{1.0, 2.0}, {1.2, 1.8}, {0.9, 2.2},   {1.1, 2.1},
                                            {1.0, 1.9}, {0.8, 2.0}, {50.0, -40.0}};
    static const double x[WEIGHTS] = {7, 7};
    const double *y[7];
    double column[7];
    double next[WEIGHTS];
    rp_rule rule = {.kind = RP_RULE_MEDIAN, .equal = true};
    rp_rule_member member[7];
    (void)state;
    for (uint32_t i = 0; i < 7; i++) {
        y[i] = rows[i];
        member[i] = (rp_rule_member){.weight = 1.0 / 7, .steps = 1};
    }
    rp_rule_round round = {.rule = &rule, .member = member, .count = 7, .update = 1};
    const rp_rule_values values = {
        .count = WEIGHTS, .x = x, .y = y, .column = column, .next = next};
    rp_rule_apply(&round, &values);
    expect_close(next[0], 1.0, 0, 0);
    expect_close(next[1], 2.0, 0, 0);
    round.count = 6; /* the mean of the middle two: 1.0 and 1.0, 2.0 and 2.0 */
    rp_rule_apply(&round, &values);
    expect_close(next[0], 1.0, 0, 0);
    expect_close(next[1], 2.0, 0, 0);
    round.count = 4; /* 0.9 1.0 1.1 1.2; 1.8 2.0 2.1 2.2 */
    rp_rule_apply(&round, &values);
    expect_close(next[0], 1.05, 0, EXACT);
    expect_close(next[1], 2.05, 0, EXACT);
    rule = (rp_rule){.kind = RP_RULE_TRIMMED_MEAN, .equal = true, .trim = 0.15};
    round.count = 7;
    rp_rule_apply(&round, &values);
    expect_close(next[0], 1.04, 0, EXACT);
    expect_close(next[1], 1.96, 0, EXACT);
}

/* Running statistics are averaged plainly, and what no site changes stays exactly. */
static void statistics_and_what_stays(void **state) {
    static const double x[WEIGHTS] = {1.0 / 3, -0.1};
    static const double moved[WEIGHTS] = {1, 2};
    const double *y[2] = {x, moved};
    const double *still[2] = {x, x};
    const rp_rule_member member[2] = {{.weight = 0.25, .steps = 1}, {.weight = 0.75, .steps = 9}};
    const rp_rule kinds[] = {{.kind = RP_RULE_FEDAVG},
                             {.kind = RP_RULE_FEDAVGM, .lr = 0.5, .momentum = 0.9},
                             MOMENTS(FEDADAM, PAPER),
                             MOMENTS(FEDYOGI, FLOWER),
                             {.kind = RP_RULE_FEDNOVA}};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double m[WEIGHTS] = {0};
        double v[WEIGHTS] = {0};
        double next[WEIGHTS];
        const rp_rule_round round = {.rule = &kinds[k], .member = member, .count = 2, .update = 1};
        rp_rule_values values = {
            .count = WEIGHTS, .x = x, .y = y, .m = m, .v = v, .next = next, .is_statistic = true};
        rp_rule_apply(&round, &values);
        for (uint32_t j = 0; j < WEIGHTS; j++) {
            expect_close(next[j], 0.25 * x[j] + 0.75 * moved[j], 0, EXACT);
            expect_close(m[j], 0, 0, 0);
            expect_close(v[j], 0, 0, 0);
        }
        values.is_statistic = false;
        values.y = still;
        rp_rule_apply(&round, &values);
        expect_close_all(next, x, WEIGHTS, 0, 0);
    }
}

/* A ring of four sites, as numpy has multiplied it with the matrix of Metropolis' weights. */
static void gossip_mixes_neighbours(void **state) {
    enum { RING = 4 };
    static const double y[RING][WEIGHTS] = {{1, 0}, {2, 4}, {3, -8}, {6, 4}};
    static const double want[RING][WEIGHTS] = {
        {3, 8.0 / 3}, {2, -4.0 / 3}, {11.0 / 3, 0}, {10.0 / 3, -4.0 / 3}};
    const rp_rule rule = {.kind = RP_RULE_GOSSIP, .equal = true};
    const rp_rule_member member[RING] = {{0.25, 1}, {0.25, 1}, {0.25, 1}, {0.25, 1}};
    const double *values[RING] = {y[0], y[1], y[2], y[3]};
    double moved[RING][WEIGHTS];
    double *to[RING] = {moved[0], moved[1], moved[2], moved[3]};
    double next[WEIGHTS];
    (void)state;
    for (uint32_t count = RING; count > 0; count--) { /* also with fewer members */
        rp_rule_member of[RING];
        for (uint32_t i = 0; i < count; i++) {
            of[i] = (rp_rule_member){1.0 / count, 1};
        }
        rp_rule_apply(
            &(rp_rule_round){
                .rule = &rule, .member = count == RING ? member : of, .count = count, .update = 1},
            &(rp_rule_values){
                .count = WEIGHTS, .x = start, .y = values, .moved = to, .next = next});
        for (uint32_t j = 0; j < WEIGHTS; j++) {
            double mean = 0;
            for (uint32_t i = 0; i < count; i++) {
                mean += moved[i][j] / count;
                assert_true(count < RING || fabs(moved[i][j] - want[i][j]) < EXACT);
            }
            assert_true(fabs(mean - next[j]) < EXACT); /* the mean stays */
        }
    }
    assert_memory_equal(moved[0], y[0], sizeof y[0]); /* a site on its own */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gossip_mixes_neighbours),
        cmocka_unit_test(rules_give_the_vectors),
        cmocka_unit_test(more_vectors),
        cmocka_unit_test(special_cases_are_fedavg),
        cmocka_unit_test(one_liar_does_not_count),
        cmocka_unit_test(statistics_and_what_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
