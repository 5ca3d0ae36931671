/* Rounds of a federated run: who takes part, starting, closing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "federation/federation_own.h"
#include "federation/sample.h"
#include "federation/take.h"
#include "sites/state.h"

static const int64_t AGAIN_NS = 500 * RP_NS_PER_MS; /* doubled with every failure in the round */
static const int64_t SAY_EVERY_NS = 60 * RP_NS_PER_S;
enum { MISSING_BYTES = 300, ADVANCES_AT_ONCE = 100, ADVANCES_MAX = 1000000 };

/* ---- who takes part -------------------------------------------------------------------------- */

/* Lists the sites that are there at a time of the trace, in f->list. */
static uint32_t list_there(const rp_federation *f, double at_s) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->sites; i++) {
        if (!f->trace || rp_trace_is_there(&f->trace[i], at_s)) {
            f->list[count++] = i;
        }
    }
    return count;
}

static uint32_t least_of(const rp_federation *f) {
    return f->keys.least > 0 ? f->keys.least : 1;
}

/* Names of sites, separated by commas, cut off at the end of the room. */
static void list_names(const rp_federation *f, bool (*wanted)(const rp_federation *, uint32_t),
                       char out[MISSING_BYTES]) {
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < f->sites && used < MISSING_BYTES - RP_SITE_NAME_MAX - 8; i++) {
        if (wanted(f, i)) {
            used += (size_t)snprintf(out + used, MISSING_BYTES - used, "%s%s", used > 0 ? ", " : "",
                                     f->site[i].name);
        }
    }
    if (used >= MISSING_BYTES - RP_SITE_NAME_MAX - 8) {
        (void)snprintf(out + used, MISSING_BYTES - used, " ...");
    }
}

static bool is_away(const rp_federation *f, uint32_t i) {
    return f->trace && !rp_trace_is_there(&f->trace[i], f->virtual_s);
}

static bool is_missing(const rp_federation *f, uint32_t i) {
    const rp_site_condition condition = f->site[i].condition;
    return condition != RP_SITE_IDLE && condition != RP_SITE_DONE;
}

/* While fewer than `least` sites are there, the clock of the trace goes on by the length of a
 * round. It goes on a limited number of times in a call, which then has to be repeated. */
static rp_err wait_for_sites(rp_federation *f, uint32_t *there) {
    char missing[MISSING_BYTES];
    const uint32_t least = least_of(f);
    *there = list_there(f, f->virtual_s);
    if (*there < least && f->advances == 0) {
        list_names(f, is_away, missing);
        const rp_err err =
            rp_federation_log_event(f, &(rp_run_event){.kind = RP_EVENT_SITES_MISSING,
                                                       .round = f->round + 1,
                                                       .least = least,
                                                       .sites = missing});
        if (err != RP_OK) {
            return err;
        }
    }
    for (uint32_t n = 0; *there < least && n < ADVANCES_AT_ONCE; n++) {
        f->advances++;
        f->virtual_s += f->keys.trace_s;
        *there = list_there(f, f->virtual_s);
    }
    return *there >= least || f->advances < ADVANCES_MAX
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: %u sites are never there together at the start of a round of %g s, "
                         "as sites.take.least asks for",
                         f->keys.trace, least, f->keys.trace_s);
}

static rp_err begin_round(rp_federation *f) {
    rp_arena arena;
    uint32_t there;
    uint32_t *member;
    rp_err err;
    rp_arena_init(&arena, "sample", 0);
    RP_TRY(wait_for_sites(f, &there));
    if (there < least_of(f)) {
        goto fail; /* to be repeated */
    }
    f->advances = 0;
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)f->size + 1, &member));
    RP_TRY(
        rp_sample_draw(&arena, f->seed, f->round + 1, f->list, there, f->size, member, &f->asked));
    for (uint32_t i = 0; i < f->sites; i++) {
        f->site[i].condition = RP_SITE_IDLE;
        f->site[i].tries = 0;
        f->site[i].sent = false;
        f->site[i].waits[0] = '\0';
    }
    for (uint32_t i = 0; i < f->asked; i++) {
        f->site[member[i]].condition = RP_SITE_QUEUED;
    }
    f->round_ns = f->now_ns;
    f->said_ns = 0;
    err = rp_federation_enter(f, RP_FEDERATION_AT_BEGIN);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- sites that end -------------------------------------------------------------------------- */

static rp_err give_up(rp_federation *f, rp_site *site) {
    site->condition = RP_SITE_GIVEN_UP;
    return rp_federation_log_event(f, &(rp_run_event){.kind = RP_EVENT_SITE_LOST,
                                                      .site = site->name,
                                                      .round = site->trains,
                                                      .tries = site->tries,
                                                      .file = site->log});
}

/* A retry would give the same weights. */
static rp_err refuse_weights(rp_federation *f, rp_site *site) {
    char why[RP_ERR_MESSAGE_BYTES];
    (void)snprintf(why, sizeof why, "%s", rp_err_message());
    site->condition = RP_SITE_GIVEN_UP;
    return rp_federation_log_event(
        f, &(rp_run_event){.kind = RP_EVENT_SITE_REFUSED, .site = site->name, .error = why});
}

static rp_err try_again(rp_federation *f, rp_site *site) {
    if (++site->tries > RP_SITE_TRIES_MAX) {
        return give_up(f, site);
    }
    site->condition = RP_SITE_RESTS;
    site->start_ns = f->now_ns + (AGAIN_NS << (site->tries - 1));
    return rp_federation_log_event(f, &(rp_run_event){.kind = RP_EVENT_SITE_ENDED,
                                                      .site = site->name,
                                                      .round = site->trains,
                                                      .exit_code = (uint64_t)site->exit_code,
                                                      .file = site->log});
}

/* Says so if what a site kept from its last round is gone, for example with its folder. */
static rp_err note_fresh(rp_federation *f, const rp_site *site) {
    const uint64_t from = site->answer.from;
    const bool lost = rp_site_options_keep_state(&f->keys.options) && site->last_round > 0 &&
                      (from == RP_SITE_NO_ROUND || from < site->last_round);
    return lost ? rp_federation_log_event(f, &(rp_run_event){.kind = RP_EVENT_SITE_FRESH,
                                                             .site = site->name,
                                                             .round = site->trains,
                                                             .file = site->kept})
                : RP_OK;
}

/* Damaged files are removed, because `ringpipe round` would give them again to a resume. */
static rp_err take_answer(rp_federation *f, rp_site *site) {
    rp_err err = rp_member_read_answer(f, site);
    site->condition = RP_SITE_DONE;
    if (err == RP_OK) {
        RP_TRY(note_fresh(f, site));
        return rp_federation_enter(f, RP_FEDERATION_AT_ANSWER);
    }
    RP_TRY(refuse_weights(f, site));
    err = rp_federation_remove_member(f, site);
fail:
    return err;
}

rp_err rp_federation_note_ended(rp_federation *f, rp_site *site) {
    if (site->trains <= f->round) { /* it was late */
        rp_federation_remove_weights(f, site->trains, site);
        return RP_OK;
    }
    if (f->phase != RP_FEDERATION_WORK || site->condition != RP_SITE_TRAINS) {
        return RP_OK;
    }
    if (site->exit_code == 0) {
        return take_answer(f, site);
    }
    if (site->exit_code != 2) {
        return try_again(f, site);
    }
    /* A retry cannot help with invalid input. */
    return f->keys.least > 0
               ? give_up(f, site)
               : rp_federation_stop(f, RP_ERR_USAGE, "site %s cannot train (exit 2); see %.300s",
                                    site->name, site->log);
}

/* ---- starting -------------------------------------------------------------------------------- */

static bool is_due(const rp_federation *f, const rp_site *site) {
    return site->child.pid == 0 &&
           (site->condition == RP_SITE_QUEUED ||
            (site->condition == RP_SITE_RESTS && f->now_ns >= site->start_ns));
}

static uint32_t count_running(const rp_federation *f) {
    uint32_t running = 0;
    for (uint32_t i = 0; i < f->sites; i++) {
        running += f->site[i].child.pid > 0;
    }
    return running;
}

static rp_err start_sites(rp_federation *f) {
    uint32_t running = count_running(f);
    rp_err err = RP_OK;
    /* Every round begins with another site, so that a deadline is not always that of the last
     * ones. */
    for (uint32_t i = 0; i < f->sites && running < f->keys.at_once; i++) {
        rp_site *site = &f->site[(i + f->round) % f->sites];
        if (is_due(f, site)) {
            RP_TRY(rp_member_start(f, site));
            running++;
        }
    }
fail:
    return err;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Applies the rule to the sites that are done, in the order of the split file. *done: false if a
 * site was refused. */
static rp_err average_sites(rp_federation *f, rp_arena *arena, bool *done) {
    char weights[RP_FEDERATION_PATH];
    rp_center_member *member;
    rp_site **of;
    char *path;
    uint32_t bad;
    rp_err err;
    rp_center_round round = {.center = f->center,
                             .next = f->next_center,
                             .state = access(f->state, F_OK) == 0 ? f->state : NULL,
                             .next_state = f->next_state,
                             .round = f->round + 1,
                             .rule = &f->keys.rule,
                             .keep = f->keys.options.keep,
                             .model = f->model};
    *done = false;
    RP_TRY(RP_ARENA_NEW(arena, f->asked, &member));
    RP_TRY(RP_ARENA_NEW(arena, f->asked, &of));
    for (uint32_t i = 0; i < f->sites; i++) {
        rp_site *site = &f->site[i];
        if (site->condition != RP_SITE_DONE) {
            continue;
        }
        rp_member_name_weights(f, site, weights);
        RP_TRY(rp_arena_string(arena, weights, &path));
        of[round.count] = site;
        member[round.count++] = (rp_center_member){.weights = path,
                                                   .moved = site->next_own,
                                                   .samples = (double)site->answer.held,
                                                   .steps = site->answer.steps_weight};
    }
    round.member = member;
    err = rp_center_make(&round, f->digest, &bad);
    *done = err == RP_OK;
    return err != RP_OK && bad < round.count ? refuse_weights(f, of[bad]) : err;
fail:
    return err;
}

/* Adds the round to the sums of its sites. */
static void note_round(rp_federation *f) {
    /* of the round's start: it is replaced later */
    const uint64_t down = f->engine.kind->file_bytes(f->engine.context, f->center);
    double loss = 0;
    double held = 0;
    for (uint32_t i = 0; i < f->sites; i++) {
        rp_site *site = &f->site[i];
        const rp_site_answer *answer = &site->answer;
        site->late += site->condition == RP_SITE_TRAINS || site->condition == RP_SITE_QUEUED ||
                      site->condition == RP_SITE_RESTS;
        site->failed += site->condition == RP_SITE_GIVEN_UP;
        site->down_bytes += site->sent ? down : 0;
        if (site->condition != RP_SITE_DONE) {
            continue;
        }
        loss += (double)answer->held * answer->loss;
        held += (double)answer->held;
        site->rounds++;
        site->last_round = f->round;
        site->samples += answer->samples;
        site->seconds += isfinite(answer->seconds) ? answer->seconds : 0;
        site->up_bytes += answer->bytes;
        site->loss = answer->loss;
        site->accuracy = answer->accuracy;
    }
    f->loss = loss / held;
}

/* What is too late for the round ends. */
static rp_err end_late(rp_federation *f) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < f->sites; i++) {
        rp_site *site = &f->site[i];
        const bool late = site->condition == RP_SITE_TRAINS || site->condition == RP_SITE_QUEUED ||
                          site->condition == RP_SITE_RESTS;
        if (site->child.told == 0) {
            f->engine.kind->tell(f->engine.context, &site->child, f->now_ns);
        }
        RP_TRY(late ? rp_federation_log_event(f, &(rp_run_event){.kind = RP_EVENT_SITE_LATE,
                                                                 .site = site->name,
                                                                 .round = f->round,
                                                                 .wait_s = f->keys.wait_s})
                    : RP_OK);
    }
fail:
    return err;
}

static void remove_weights(const rp_federation *f) {
    for (uint32_t i = 0; i < f->sites; i++) {
        if (f->site[i].child.pid == 0 && f->site[i].condition != RP_SITE_IDLE) {
            rp_federation_remove_weights(f, f->round, &f->site[i]);
        }
    }
}

bool rp_federation_is_to_be_scored(const rp_federation *f) {
    return f->round == f->keys.rounds ||
           (f->round > 0 && f->eval_rounds > 0 && f->round % f->eval_rounds == 0 && f->has_test);
}

/* The round counts once it is in the journal. */
static rp_err close_round(rp_federation *f) {
    rp_arena arena;
    bool done;
    rp_err err;
    rp_arena_init(&arena, "round", 0);
    RP_TRY(average_sites(f, &arena, &done));
    if (!done) {
        goto fail; /* the decision is made again without the refused site */
    }
    RP_TRY(rp_federation_enter(f, RP_FEDERATION_AT_AVERAGE));
    f->round++;
    f->closed++;
    note_round(f);
    f->virtual_s += f->keys.trace_s;
    RP_TRY(rp_federation_make_rows(f));
    RP_TRY(rp_federation_write_journal(f));
    RP_TRY(rp_federation_enter(f, RP_FEDERATION_AT_JOURNAL));
    RP_TRY(rp_federation_place_files(f));
    RP_TRY(rp_federation_enter(f, RP_FEDERATION_AT_PLACED));
    rp_federation_log_rows(f);
    RP_TRY(rp_federation_enter(f, RP_FEDERATION_AT_LOG));
    RP_TRY(end_late(f));
    remove_weights(f);
    RP_TRY(rp_federation_enter(f, RP_FEDERATION_AT_CLEARED));
    f->round_ns = 0;
    f->phase = rp_federation_is_to_be_scored(f) ? RP_FEDERATION_EVALUATE : RP_FEDERATION_WORK;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- deciding -------------------------------------------------------------------------------- */

/* Names the missing sites when the time is over, and again every minute. */
static rp_err name_missing(rp_federation *f, int64_t wait_ns) {
    char missing[MISSING_BYTES];
    const int64_t first_ns = wait_ns > 0 ? wait_ns : SAY_EVERY_NS;
    if (f->now_ns - f->round_ns < first_ns ||
        (f->said_ns > 0 && f->now_ns - f->said_ns < SAY_EVERY_NS)) {
        return RP_OK;
    }
    f->said_ns = f->now_ns;
    list_names(f, is_missing, missing);
    return rp_federation_log_event(f, &(rp_run_event){.kind = RP_EVENT_SITES_MISSING,
                                                      .round = f->round + 1,
                                                      .least = least_of(f),
                                                      .sites = missing});
}

static rp_err fail_round(rp_federation *f) {
    char missing[MISSING_BYTES];
    list_names(f, is_missing, missing);
    return rp_federation_stop(f, RP_ERR_FAULT,
                              "round %" PRIu64 " cannot have the %u sites that it needs; missing: "
                              "%s",
                              f->round + 1, f->keys.least > 0 ? f->keys.least : f->asked, missing);
}

rp_err rp_federation_step_round(rp_federation *f) {
    const int64_t wait_ns = f->keys.wait_s * RP_NS_PER_S;
    rp_err err;
    RP_TRY(f->round_ns == 0 ? begin_round(f) : RP_OK);
    if (f->round_ns == 0) {
        return RP_OK;
    }
    RP_TRY(start_sites(f));
    RP_TRY(rp_federation_watch_boards(f));
    const rp_take_facts facts = {.asked = f->asked,
                                 .done = rp_federation_count(f, RP_SITE_DONE),
                                 .given_up = rp_federation_count(f, RP_SITE_GIVEN_UP),
                                 .least = f->keys.least,
                                 .waited_ns = f->now_ns - f->round_ns,
                                 .wait_ns = wait_ns};
    switch (rp_take_decide(&facts)) {
    case RP_TAKE_CLOSES:
        return close_round(f);
    case RP_TAKE_FAILS:
        return fail_round(f);
    default:
        return name_missing(f, wait_ns);
    }
fail:
    return err;
}

int64_t rp_federation_due_ns(const rp_federation *f) {
    int64_t due_ns = INT64_MAX;
    if (f->phase == RP_FEDERATION_EVALUATE && f->scorer.pid == 0) {
        return f->now_ns;
    }
    if (f->phase != RP_FEDERATION_WORK) {
        return due_ns;
    }
    if (f->round_ns == 0) {
        return f->now_ns;
    }
    if (count_running(f) >= f->keys.at_once) {
        return due_ns; /* nothing starts before a site ends */
    }
    for (uint32_t i = 0; i < f->sites; i++) {
        const rp_site *site = &f->site[i];
        const bool rests = site->condition == RP_SITE_RESTS && site->child.pid == 0;
        due_ns = rests && site->start_ns < due_ns ? site->start_ns : due_ns;
    }
    return due_ns;
}
