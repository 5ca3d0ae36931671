#include "data/partition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

enum { DRAWS_MAX = 1000, NAME_BYTES = 48 };
#define ALPHA_MIN 1e-3
#define ALPHA_MAX 1e6

/* Memory of one division. */
typedef struct {
    const rp_partition_samples *of;
    rp_arena arena;
    uint32_t *order;  /* [count]: samples, by class where the rule needs it */
    uint32_t *first;  /* [classes + 1]: where each class begins in the order */
    double *share;    /* [sites] */
    uint32_t *number; /* [max(sites, classes)] */
} work;

/* ---- the rule as text ------------------------------------------------------------------------ */

static rp_err refuse_rule(const char *text) {
    return rp_fail(RP_ERR_USAGE,
                   "--by: rule '%s': expected iid, dirichlet:ALPHA, classes:N, shards:N, "
                   "quantity:linear|square|exp, quantity:dirichlet:ALPHA or column:FILE",
                   text);
}

static rp_err parse_alpha(const char *text, const char *number, double *out) {
    char *end = NULL;
    *out = number[0] ? strtod(number, &end) : 0;
    if (!end || *end || !(*out >= ALPHA_MIN && *out <= ALPHA_MAX)) {
        return rp_fail(RP_ERR_USAGE, "--by: rule '%s': expected an alpha from %g to %g", text,
                       ALPHA_MIN, ALPHA_MAX);
    }
    return RP_OK;
}

static rp_err parse_per_site(const char *text, const char *number, uint32_t *out) {
    const bool digits = number[0] && strlen(number) <= 6 && !number[strspn(number, "0123456789")];
    *out = digits ? (uint32_t)strtoul(number, NULL, 10) : 0;
    return *out > 0
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "--by: rule '%s': expected a whole number above 0", text);
}

static rp_err parse_quantity(const char *text, const char *word, rp_partition_rule *out) {
    static const char *const words[] = {"linear", "square", "exp"};
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0) {
            out->quantity = (rp_quantity)i;
            return RP_OK;
        }
    }
    if (strncmp(word, "dirichlet:", 10) != 0) {
        return refuse_rule(text);
    }
    out->quantity = RP_QUANTITY_DIRICHLET;
    return parse_alpha(text, word + 10, &out->alpha);
}

rp_err rp_partition_parse(const char *text, rp_partition_rule *out) {
    const char *colon = strchr(text, ':');
    const char *rest = colon ? colon + 1 : "";
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    *out = (rp_partition_rule){.kind = RP_PARTITION_IID};
    if (strcmp(text, "iid") == 0) {
        return RP_OK;
    }
    if (length == 9 && strncmp(text, "dirichlet", length) == 0) {
        out->kind = RP_PARTITION_DIRICHLET;
        return parse_alpha(text, rest, &out->alpha);
    }
    if (length == 7 && strncmp(text, "classes", length) == 0) {
        out->kind = RP_PARTITION_CLASSES;
        return parse_per_site(text, rest, &out->per_site);
    }
    if (length == 6 && strncmp(text, "shards", length) == 0) {
        out->kind = RP_PARTITION_SHARDS;
        return parse_per_site(text, rest, &out->per_site);
    }
    if (length == 8 && strncmp(text, "quantity", length) == 0) {
        out->kind = RP_PARTITION_QUANTITY;
        return parse_quantity(text, rest, out);
    }
    return refuse_rule(text);
}

/* ---- what is drawn --------------------------------------------------------------------------- */

/* Uniform in (0, 1), 53 bits. */
static double draw_open(rp_rng *rng) {
    const uint64_t high = rp_rng_u32(rng) >> 5;
    const uint64_t low = rp_rng_u32(rng) >> 6;
    return ((double)(high * 67108864 + low) + 0.5) / 9007199254740992.0;
}

static double draw_normal(rp_rng *rng) {
    const double radius = sqrt(-2 * log(draw_open(rng)));
    return radius * cos(2 * 3.14159265358979323846 * draw_open(rng));
}

/* The logarithm of a draw from Gamma(alpha, 1), because draws with a small alpha underflow.
 * source  Marsaglia, Tsang: A simple method for generating gamma variables (2000) */
static double draw_log_gamma(rp_rng *rng, double alpha) {
    const double boost = alpha < 1 ? log(draw_open(rng)) / alpha : 0;
    const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
    const double c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = draw_normal(rng);
        const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
        if (v > 0 && log(draw_open(rng)) < 0.5 * x * x + d - d * v + d * log(v)) {
            return log(d * v) + boost;
        }
    }
}

static void draw_dirichlet(rp_rng *rng, double alpha, double *share, uint32_t parts) {
    double most = -INFINITY;
    double sum = 0;
    for (uint32_t i = 0; i < parts; i++) {
        share[i] = draw_log_gamma(rng, alpha);
        most = fmax(most, share[i]);
    }
    for (uint32_t i = 0; i < parts; i++) {
        share[i] = exp(share[i] - most);
        sum += share[i];
    }
    for (uint32_t i = 0; i < parts; i++) {
        share[i] /= sum;
    }
}

void rp_partition_cut(uint32_t all, const double *share, uint32_t parts, uint32_t *count) {
    double sum = 0;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < parts; i++) {
        sum += share[i];
        const double at = floor(sum * all);
        const uint32_t end = i + 1 == parts || at >= all ? all : at > begin ? (uint32_t)at : begin;
        count[i] = end - begin;
        begin = end;
    }
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void shuffle_range(const work *w, const char *name, uint32_t begin, uint32_t end) {
    rp_rng rng = rp_rng_named(w->of->seed, name);
    rp_rng_shuffle(&rng, w->order + begin, end - begin);
}

/* Sorts the samples by class; samples of a class keep their order. */
static void order_by_class(work *w) {
    const rp_partition_samples *s = w->of;
    memset(w->first, 0, (s->classes + 1) * sizeof *w->first);
    for (uint32_t i = 0; i < s->count; i++) {
        w->first[s->label[i] + 1]++;
    }
    for (uint32_t c = 0; c < s->classes; c++) {
        w->first[c + 1] += w->first[c];
    }
    for (uint32_t i = 0; i < s->count; i++) {
        w->order[w->first[s->label[i]]++] = i;
    }
    for (uint32_t c = s->classes; c > 0; c--) {
        w->first[c] = w->first[c - 1];
    }
    w->first[0] = 0;
}

static void shuffle_classes(const work *w) {
    for (uint32_t c = 0; c < w->of->classes; c++) {
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof name, "split/class/%u", c);
        shuffle_range(w, name, w->first[c], w->first[c + 1]);
    }
}

/* Gives the samples of [begin, end) of the order to the sites, `number` to each. */
static void deal_range(const work *w, uint32_t begin, uint32_t *site) {
    for (uint32_t k = 0; k < w->of->sites; k++) {
        for (uint32_t i = 0; i < w->number[k]; i++) {
            site[w->order[begin++]] = k;
        }
    }
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void fill_quantity(const work *w, const rp_partition_rule *rule, rp_rng *rng) {
    const uint32_t sites = w->of->sites;
    double sum = 0;
    if (rule->quantity == RP_QUANTITY_DIRICHLET) {
        draw_dirichlet(rng, rule->alpha, w->share, sites);
        return;
    }
    for (uint32_t k = 0; k < sites; k++) {
        const double x = k + 1;
        w->share[k] = rule->quantity == RP_QUANTITY_LINEAR   ? x
                      : rule->quantity == RP_QUANTITY_SQUARE ? x * x
                                                             : exp2(x - sites);
        sum += w->share[k];
    }
    for (uint32_t k = 0; k < sites; k++) {
        w->share[k] /= sum;
    }
}

/* Divides by shares: of the whole order, or of each class. */
static void divide_once(work *w, const rp_partition_rule *rule, uint32_t draw, uint32_t *site) {
    const rp_partition_samples *s = w->of;
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "split/shares/%u", draw);
    rp_rng rng = rp_rng_named(s->seed, name);
    if (rule->kind != RP_PARTITION_DIRICHLET) {
        if (rule->kind == RP_PARTITION_QUANTITY) {
            fill_quantity(w, rule, &rng);
            rp_partition_cut(s->count, w->share, s->sites, w->number);
        } else {
            for (uint32_t k = 0; k < s->sites; k++) {
                w->number[k] = (uint32_t)((uint64_t)s->count * (k + 1) / s->sites -
                                          (uint64_t)s->count * k / s->sites);
            }
        }
        deal_range(w, 0, site);
        return;
    }
    for (uint32_t c = 0; c < s->classes; c++) {
        draw_dirichlet(&rng, rule->alpha, w->share, s->sites);
        rp_partition_cut(w->first[c + 1] - w->first[c], w->share, s->sites, w->number);
        deal_range(w, w->first[c], site);
    }
}

static uint32_t smallest_site(const work *w, const uint32_t *site) {
    uint32_t least = UINT32_MAX;
    memset(w->number, 0, w->of->sites * sizeof *w->number);
    for (uint32_t i = 0; i < w->of->count; i++) {
        w->number[site[i]]++;
    }
    for (uint32_t k = 0; k < w->of->sites; k++) {
        least = w->number[k] < least ? w->number[k] : least;
    }
    return least;
}

static rp_err divide_by_shares(work *w, const rp_partition_rule *rule, uint32_t *site) {
    const bool drawn =
        rule->kind == RP_PARTITION_DIRICHLET ||
        (rule->kind == RP_PARTITION_QUANTITY && rule->quantity == RP_QUANTITY_DIRICHLET);
    const uint32_t draws = drawn ? DRAWS_MAX : 1;
    const uint32_t least = drawn && w->of->least > 0 ? w->of->least : 1;
    uint32_t best = 0;
    if (rule->kind == RP_PARTITION_DIRICHLET) {
        shuffle_classes(w);
    } else {
        shuffle_range(w, "split/order", 0, w->of->count);
    }
    for (uint32_t draw = 0; draw < draws; draw++) {
        divide_once(w, rule, draw, site);
        const uint32_t found = smallest_site(w, site);
        if (found >= least || !drawn) {
            return RP_OK;
        }
        best = found > best ? found : best;
    }
    return rp_fail(RP_ERR_USAGE,
                   "in %u draws some site had fewer than %u samples (the best draw has %u): use a "
                   "larger alpha, fewer sites, or a smaller --least",
                   draws, least, best);
}

/* Site k has the classes k * n, k * n + 1, .. of a shuffled order of the classes, around its end. A
 * class's samples are cut into equal parts for the sites that have it. */
static rp_err divide_by_classes(work *w, const rp_partition_rule *rule, uint32_t *site) {
    const rp_partition_samples *s = w->of;
    const uint64_t slots = (uint64_t)s->sites * rule->per_site;
    uint32_t *turn;
    rp_err err;
    if (rule->per_site > s->classes || slots < s->classes) {
        return rp_fail(RP_ERR_USAGE,
                       "%u sites with %u classes each: the set has %u classes, so expected at most "
                       "%u for a site, and at least %u to leave no class out",
                       s->sites, rule->per_site, s->classes, s->classes,
                       (s->classes + s->sites - 1) / s->sites);
    }
    RP_TRY(RP_ARENA_NEW(&w->arena, s->classes, &turn));
    shuffle_classes(w);
    for (uint32_t c = 0; c < s->classes; c++) {
        turn[c] = c;
    }
    rp_rng rng = rp_rng_named(s->seed, "split/classes");
    rp_rng_shuffle(&rng, turn, s->classes);
    for (uint32_t at = 0; at < s->classes; at++) {
        const uint32_t begin = w->first[turn[at]];
        const uint64_t all = w->first[turn[at] + 1] - begin;
        const uint64_t parts = (slots - at + s->classes - 1) / s->classes;
        for (uint64_t part = 0; part < parts; part++) {
            const uint32_t owner = (uint32_t)((at + part * s->classes) / rule->per_site);
            for (uint64_t i = all * part / parts; i < all * (part + 1) / parts; i++) {
                site[w->order[begin + i]] = owner;
            }
        }
    }
fail:
    return err;
}

static rp_err divide_by_shards(work *w, const rp_partition_rule *rule, uint32_t *site) {
    const rp_partition_samples *s = w->of;
    const uint64_t shards = (uint64_t)s->sites * rule->per_site;
    uint32_t *turn;
    rp_err err;
    if (shards > s->count) {
        return rp_fail(RP_ERR_USAGE,
                       "%u sites with %u shards each need at least %llu samples, "
                       "found %u",
                       s->sites, rule->per_site, (unsigned long long)shards, s->count);
    }
    RP_TRY(RP_ARENA_NEW(&w->arena, shards, &turn));
    for (uint32_t i = 0; i < shards; i++) {
        turn[i] = i;
    }
    rp_rng rng = rp_rng_named(s->seed, "split/shards");
    rp_rng_shuffle(&rng, turn, (uint32_t)shards);
    for (uint64_t i = 0; i < shards; i++) {
        const uint64_t end = s->count * (turn[i] + UINT64_C(1)) / shards;
        for (uint64_t at = s->count * (uint64_t)turn[i] / shards; at < end; at++) {
            site[w->order[at]] = (uint32_t)(i / rule->per_site);
        }
    }
fail:
    return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static rp_err open_work(work *w, bool by_class) {
    const rp_partition_samples *s = w->of;
    const uint32_t numbers = s->sites > s->classes ? s->sites : s->classes;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&w->arena, s->count, &w->order));
    RP_TRY(RP_ARENA_NEW(&w->arena, s->classes + 1, &w->first));
    RP_TRY(RP_ARENA_NEW(&w->arena, s->sites, &w->share));
    RP_TRY(RP_ARENA_NEW(&w->arena, numbers, &w->number));
    for (uint32_t i = 0; i < s->count; i++) {
        w->order[i] = i;
    }
    if (by_class) {
        order_by_class(w);
    }
fail:
    return err;
}

rp_err rp_partition_make(const rp_partition_rule *rule, const rp_partition_samples *samples,
                         uint32_t *site) {
    const bool by_class = rule->kind == RP_PARTITION_DIRICHLET ||
                          rule->kind == RP_PARTITION_CLASSES || rule->kind == RP_PARTITION_SHARDS;
    work w = {.of = samples};
    rp_err err;
    if (by_class && (!samples->label || samples->classes == 0)) {
        return rp_fail(RP_ERR_USAGE, "this rule divides samples by class, and the samples have no "
                                     "class: use iid or quantity");
    }
    if (samples->sites > samples->count) {
        return rp_fail(RP_ERR_USAGE, "%u samples are too few for %u sites", samples->count,
                       samples->sites);
    }
    rp_arena_init(&w.arena, "partition", 0);
    RP_TRY(open_work(&w, by_class));
    err = rule->kind == RP_PARTITION_CLASSES  ? divide_by_classes(&w, rule, site)
          : rule->kind == RP_PARTITION_SHARDS ? divide_by_shards(&w, rule, site)
                                              : divide_by_shares(&w, rule, site);
    if (err == RP_OK && smallest_site(&w, site) == 0) {
        err = rp_fail(RP_ERR_USAGE,
                      "%u samples leave a site of %u without one: use fewer sites or another rule",
                      samples->count, samples->sites);
    }
fail:
    rp_arena_finish(&w.arena);
    return err;
}

/* ---- validation parts ------------------------------------------------------------------------ */

rp_err rp_partition_hold_out(rp_arena *arena, const uint32_t *sample, uint32_t count, double share,
                             uint64_t seed, const char *site, uint32_t *held, uint32_t *rest) {
    const uint32_t wanted = (uint32_t)(share * count);
    char name[2 * NAME_BYTES];
    uint32_t *order;
    bool *taken;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &order));
    RP_TRY(RP_ARENA_NEW(arena, count + 1, &taken));
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    (void)snprintf(name, sizeof name, "validation/%s", site);
    rp_rng rng = rp_rng_named(seed, name);
    rp_rng_shuffle(&rng, order, count);
    for (uint32_t i = 0; i < wanted; i++) {
        taken[order[i]] = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        *(taken[i] ? held++ : rest++) = sample[i];
    }
fail:
    return err;
}
