#include "planning/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of shares that are the same: as they come back from a text. */
static const double SAME = 1e-6;

/* ---- which ----------------------------------------------------------------------------------- */

static bool have_same_shares(const rp_trial_plan *a, const rp_trial_plan *b, uint32_t boards) {
    bool same = memcmp(a->group, b->group, ((size_t)a->stages + 1) * sizeof *a->group) == 0;
    for (uint32_t k = 0; same && k < boards; k++) {
        same = fabs(a->share[k] - b->share[k]) < SAME;
    }
    return same;
}

static bool are_same(const rp_trial_plan *a, const rp_trial_plan *b, uint32_t boards) {
    return a->stages == b->stages && a->is_shared == b->is_shared &&
           memcmp(a->first, b->first, ((size_t)a->stages + 1) * sizeof *a->first) == 0 &&
           (!a->is_shared || have_same_shares(a, b, boards));
}

rp_trial_plan rp_trial_plan_of(const rp_joint_plan *from) {
    rp_trial_plan plan = {.stages = from->stages > 0 ? from->stages : from->count,
                          .is_shared = rp_joint_is_shared(from),
                          .has_codecs = from->plain_s > 0,
                          .has_sizes = rp_joint_is_shared(from) && from->even_s > 0,
                          .even_s = from->even_s,
                          .predicted_s = from->step_s,
                          .measured_s = (double)NAN};
    memcpy(plan.first, from->first, sizeof plan.first);
    memcpy(plan.group, from->group, sizeof plan.group);
    memcpy(plan.share, from->share, sizeof plan.share);
    memcpy(plan.codec, from->codec, sizeof plan.codec);
    memcpy(plan.size, from->size, sizeof plan.size);
    return plan;
}

rp_trial_plan rp_trial_plan_in_force(const rp_plan *plan, const rp_cut *cut) {
    rp_trial_plan now = {.stages = plan->stage_count};
    memcpy(now.first, cut->first, ((size_t)now.stages + 1) * sizeof *now.first);
    for (uint32_t k = 0; k < plan->node_count && k < RP_JOINT_BOARDS_MAX; k++) {
        const rp_plan_hold *hold = &plan->hold[plan->node[k].hold_first];
        now.group[hold->stage + 1] = k + 1;
        now.share[k] = hold->share[1];
        now.is_shared = now.is_shared || hold->share[1] - hold->share[0] < 1;
    }
    return now;
}

static void add(rp_trial *trial, const rp_joint_plan *from) {
    const rp_trial_plan plan = rp_trial_plan_of(from);
    if (trial->count < RP_TRIAL_PLANS_MAX &&
        rp_trial_find(trial, trial->boards, &plan) == trial->count) {
        trial->plan[trial->count++] = plan;
    }
}

/* Cuts of boards with a stage each keep the codecs that the run began with. */
static void drop_codecs(rp_trial *trial) {
    bool shared = false;
    for (uint32_t i = 0; i < trial->count; i++) {
        shared = shared || trial->plan[i].is_shared;
    }
    for (uint32_t i = 0; i < trial->count; i++) {
        trial->plan[i].has_codecs = trial->plan[i].has_codecs && shared;
    }
}

void rp_trial_open(rp_trial *trial, const rp_joint_plan *first, const rp_joint_answer *answer) {
    *trial = (rp_trial){.boards = first->count};
    add(trial, first);
    for (uint32_t i = 0; answer->is_known && i < answer->count; i++) {
        const rp_joint_plan *other = &answer->plan[i];
        const bool same_ring =
            other->count == first->count && other->schedule == first->schedule &&
            memcmp(other->place, first->place, first->count * sizeof *first->place) == 0;
        if (same_ring) {
            add(trial, other);
        }
    }
    drop_codecs(trial);
    trial->count = trial->count > 1 ? trial->count : 0;
}

uint32_t rp_trial_find(const rp_trial *trial, uint32_t boards, const rp_trial_plan *own) {
    uint32_t at = 0;
    if (boards != trial->boards) {
        return trial->count;
    }
    while (at < trial->count && !are_same(&trial->plan[at], own, boards)) {
        at++;
    }
    return at;
}

uint32_t rp_trial_next(const rp_trial *trial) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < trial->count; i++) {
        if (isnan(trial->plan[i].measured_s)) {
            return i;
        }
        best = trial->plan[i].measured_s < trial->plan[best].measured_s ? i : best;
    }
    return best;
}

bool rp_trial_is_measured(const rp_trial *trial) {
    bool all = true;
    for (uint32_t i = 0; i < trial->count; i++) {
        all = all && !isnan(trial->plan[i].measured_s);
    }
    return all;
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

double rp_trial_median(double *seconds, uint32_t count) {
    qsort(seconds, count, sizeof *seconds, compare);
    return (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
}

/* ---- as text --------------------------------------------------------------------------------- */

static rp_err put_numbers(rp_arena *arena, const uint32_t *value, uint32_t count, char **out) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; err == RP_OK && k < count; k++) {
        err = rp_arena_printf(arena, out, "%s%s%u", *out, k > 0 ? "," : "", value[k]);
    }
    return err;
}

static rp_err put_shares(rp_arena *arena, const rp_trial_plan *plan, uint32_t boards, char **out) {
    rp_err err;
    RP_TRY(rp_arena_printf(arena, out, "%s/g", *out));
    RP_TRY(put_numbers(arena, plan->group + 1, plan->stages - 1, out));
    RP_TRY(rp_arena_printf(arena, out, "%s/s", *out));
    for (uint32_t k = 0; k < boards; k++) {
        RP_TRY(rp_arena_printf(arena, out, "%s%s%.9g", *out, k > 0 ? "," : "", plan->share[k]));
    }
fail:
    return err;
}

static rp_err put_codecs(rp_arena *arena, const rp_trial_plan *plan, char **out) {
    rp_err err;
    RP_TRY(rp_arena_printf(arena, out, "%s/c", *out));
    for (uint32_t k = 0; k + 1 < plan->stages; k++) {
        RP_TRY(rp_arena_printf(arena, out, "%s%s%s:%s", *out, k > 0 ? "," : "",
                               rp_codec_name(plan->codec[k][0]), rp_codec_name(plan->codec[k][1])));
    }
fail:
    return err;
}

static rp_err plan_text(rp_arena *arena, const rp_trial *trial, uint32_t at, char **out) {
    const rp_trial_plan *plan = &trial->plan[at];
    rp_err err;
    RP_TRY(rp_arena_printf(arena, out, "%s%s%.9g/", *out, at ? ";" : "", plan->predicted_s));
    if (isnan(plan->measured_s)) {
        RP_TRY(rp_arena_printf(arena, out, "%s-/", *out));
    } else {
        RP_TRY(rp_arena_printf(arena, out, "%s%.9g/", *out, plan->measured_s));
    }
    RP_TRY(put_numbers(arena, plan->first + 1, plan->stages - 1, out));
    RP_TRY(plan->is_shared ? put_shares(arena, plan, trial->boards, out) : RP_OK);
    RP_TRY(plan->has_codecs ? put_codecs(arena, plan, out) : RP_OK);
fail:
    return err;
}

rp_err rp_trial_text(rp_arena *arena, const rp_trial *trial, char **out) {
    rp_err err = rp_arena_string(arena, "", out);
    for (uint32_t i = 0; err == RP_OK && i < trial->count; i++) {
        err = plan_text(arena, trial, i, out);
    }
    return err;
}

/* ---- back from it ---------------------------------------------------------------------------- */

/* Behind it stands a '/'. Words only where `may_lack`. */
static bool read_seconds(const char **at, bool may_lack, double *out) {
    static const struct {
        const char *word;
        double seconds;
    } words[] = {{"-/", (double)NAN}, {"inf/", (double)INFINITY}};
    char *end = NULL;
    for (size_t i = 0; may_lack && i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i].word);
        if (strncmp(*at, words[i].word, length) == 0) {
            *out = words[i].seconds;
            *at += length;
            return true;
        }
    }
    *out = strtod(*at, &end);
    const bool good = (*at)[0] >= '0' && (*at)[0] <= '9' && *end == '/' && isfinite(*out);
    *at = good ? end + 1 : *at;
    return good;
}

/* The part is over. */
static bool is_end(char c) {
    return c == '\0' || c == ';' || c == '/';
}

/* Takes what separates values, and says whether one more is to come. */
static bool goes_on(const char **at) {
    const bool more = **at == ',';
    *at += more;
    return more;
}

/* Rising numbers behind out[0] and below `limit`, maybe none; *count: of them and out[0]. */
static bool read_rising(const char **at, uint32_t limit, uint32_t *out, uint32_t *count) {
    bool good = true;
    out[0] = 0;
    *count = 1;
    for (bool more = !is_end(**at); good && more; ++*count) {
        char *end = NULL;
        const unsigned long value = strtoul(*at, &end, 10);
        good = **at >= '0' && **at <= '9' && value > out[*count - 1] && value < limit &&
               *count < RP_JOINT_BOARDS_MAX && (*end == ',' || is_end(*end));
        if (good) {
            out[*count] = (uint32_t)value;
            *at = end;
            more = goes_on(at);
        }
    }
    return good;
}

/* "/g" and "/s": every stage ends with a share of 1, and each board has samples. */
static bool read_shares(const char **at, rp_trial_plan *plan, uint32_t *boards) {
    uint32_t stages;
    uint32_t count = 0;
    bool good = true;
    *at += 2;
    good = read_rising(at, RP_JOINT_BOARDS_MAX, plan->group, &stages) && stages == plan->stages &&
           strncmp(*at, "/s", 2) == 0;
    *at += good ? 2 : 0;
    for (bool more = good; good && more; count++) {
        char *end = NULL;
        const double share = strtod(*at, &end);
        good = **at >= '0' && **at <= '9' && share > 0 && share <= 1 &&
               count < RP_JOINT_BOARDS_MAX && (*end == ',' || is_end(*end));
        if (good) {
            plan->share[count] = share;
            *at = end;
            more = goes_on(at);
        }
    }
    good = good && count > plan->stages && plan->group[stages - 1] < count;
    plan->group[stages] = count;
    plan->is_shared = good;
    *boards = count;
    for (uint32_t k = 0, stage = 0; good && k < count; k++) {
        stage += k == plan->group[stage + 1];
        const double before = k == plan->group[stage] ? 0 : plan->share[k - 1];
        const bool last = k + 1 == plan->group[stage + 1];
        good = plan->share[k] > before && (plan->share[k] >= 1) == last;
    }
    return good;
}

static bool read_codec(const char **at, char behind, rp_codec *out) {
    const size_t length = strcspn(*at, ":,/;");
    char name[24] = "";
    bool good = length < sizeof name && (behind ? (*at)[length] == behind : true);
    if (good) {
        memcpy(name, *at, length);
        *out = rp_codec_find(name);
        good = *out != RP_CODECS;
        *at += length + (behind ? 1 : 0);
    }
    return good;
}

/* "/c", of as many boundaries as there are. */
static bool read_codecs(const char **at, rp_trial_plan *plan) {
    bool good = true;
    *at += 2;
    for (uint32_t k = 0; good && k + 1 < plan->stages; k++) {
        good = (k == 0 || goes_on(at)) && read_codec(at, ':', &plan->codec[k][0]) &&
               read_codec(at, '\0', &plan->codec[k][1]);
    }
    plan->has_codecs = good;
    return good;
}

/* Behind the seconds. All plans are of as many boards. */
static bool read_stages(const char **at, uint32_t layers, rp_trial *trial, rp_trial_plan *plan) {
    uint32_t boards;
    bool good = read_rising(at, layers, plan->first, &plan->stages);
    plan->is_shared = plan->has_codecs = false;
    plan->first[plan->stages] = layers;
    boards = plan->stages;
    if (good && strncmp(*at, "/g", 2) == 0) {
        good = read_shares(at, plan, &boards);
    }
    if (good && strncmp(*at, "/c", 2) == 0) {
        good = read_codecs(at, plan);
    }
    good = good && boards > 1 && (trial->count == 0 || trial->boards == boards);
    trial->boards = boards;
    return good;
}

bool rp_trial_read(const char *text, uint32_t layers, rp_trial *out) {
    const char *at = text;
    bool more = text && text[0];
    bool good = true;
    *out = (rp_trial){.count = 0};
    while (good && more) {
        rp_trial_plan *plan = &out->plan[out->count];
        good = read_seconds(&at, false, &plan->predicted_s) &&
               read_seconds(&at, true, &plan->measured_s) && read_stages(&at, layers, out, plan) &&
               (*at == ';' || *at == '\0');
        out->count += good;
        more = good && *at == ';';
        at += more;
        good = good && !(more && out->count == RP_TRIAL_PLANS_MAX);
    }
    good = good && out->count != 1;
    if (!good) {
        *out = (rp_trial){.count = 0};
    }
    return good;
}
