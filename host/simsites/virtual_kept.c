/* Rounds with options of `sites`: a simulated site uses the files of a real one (room sites), so
 * its states may be old or lost after a fault. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/folders.h"
#include "sim/cluster.h"
#include "simsites/virtual_own.h"
#include "sites/start.h"
#include "sites/update.h"
#include "sites/weights.h"

enum { NAME_BYTES = RP_VIRTUAL_PATH + 64 };

static void name_file(const rp_virtual_site *site, const char *name, char out[NAME_BYTES]) {
    (void)snprintf(out, NAME_BYTES, "%s/%s", site->out, name);
}

/* ---- states ---------------------------------------------------------------------------------- */

/* The newest round before `before` whose state the site has; with `unsure` also one that it may
 * have. */
static uint64_t find_saved(const rp_virtual_site *site, uint64_t before, bool unsure) {
    for (uint64_t round = before; round-- > 1;) {
        if (site->saved[round] == RP_VIRTUAL_SAVED ||
            (unsure && site->saved[round] == RP_VIRTUAL_UNSURE)) {
            return round;
        }
    }
    return RP_SITE_NO_ROUND;
}

/* The state that a site finds is the newest one that it has saved and not lost. */
static rp_err check_from(rp_virtual_site *site, uint64_t from) {
    const uint64_t sure = find_saved(site, site->round, false);
    const uint64_t perhaps = find_saved(site, site->round, true);
    const bool good = from == sure || (from == perhaps && site->saved[from] == RP_VIRTUAL_UNSURE);
    for (uint64_t round = 1; round < site->round; round++) {
        if (site->saved[round] == RP_VIRTUAL_UNSURE) {
            site->saved[round] = round == from ? RP_VIRTUAL_SAVED : RP_VIRTUAL_ABSENT;
        }
    }
    return good ? RP_OK
                : rp_fail(RP_ERR_FORMAT,
                          "%s: round %" PRIu64 " begins with the state of round %" PRIu64
                          ", expected that of round %" PRIu64,
                          site->kept, site->round, from, sure);
}

static rp_err make_start(const rp_virtual *v, uint32_t index, rp_arena *arena) {
    const rp_sim_sites_subject *subject = v->subject;
    rp_virtual_site *site = &v->site[index];
    char begin[NAME_BYTES];
    char *state = NULL;
    uint64_t from = RP_SITE_NO_ROUND;
    rp_err err = RP_OK;
    if (subject->keeps_state) {
        RP_TRY(rp_site_find_state(arena, site->kept, site->round, &state, &from));
        RP_TRY(check_from(site, from));
    }
    const rp_site_start_order order = {.rules = &subject->rules,
                                       .given = site->given,
                                       .state = state,
                                       .round = site->round,
                                       .from = from,
                                       .site = subject->list.site[index].name,
                                       .optimizer = subject->run.optim.kind->name};
    site->from[site->round] = from;
    name_file(site, "start.safetensors", begin);
    err = rp_site_make_start(arena, &order, begin);
fail:
    return err;
}

rp_err rp_virtual_begin_kept(rp_virtual *v, uint32_t index) {
    rp_arena arena;
    rp_arena_init(&arena, "start", 0);
    const rp_err err = make_start(v, index, &arena);
    rp_arena_finish(&arena);
    return err;
}

void rp_virtual_note_damage(rp_virtual *v, uint32_t index) {
    rp_virtual_site *site = &v->site[index];
    if (v->subject->keeps_state) {
        site->saved[site->round] = RP_VIRTUAL_UNSURE;
    }
}

rp_err rp_virtual_lose_kept(rp_virtual *v, uint32_t index) {
    rp_virtual_site *site = &v->site[index];
    const uint64_t newest = find_saved(site, v->subject->run.federated.rounds + 1, true);
    rp_err err = RP_OK;
    if (newest == RP_SITE_NO_ROUND) {
        return RP_OK;
    }
    if (site->loses_all) {
        rp_sim_folder_remove(site->kept);
    } else {
        RP_TRY(rp_site_drop_state(site->kept, newest));
    }
    for (uint64_t round = site->loses_all ? 1 : newest; round <= newest; round++) {
        site->saved[round] = RP_VIRTUAL_ABSENT;
    }
    rp_eventlog_add(v->log, rp_virtual_time_ns(v), v->subject->list.site[index].name,
                    "loses %s, the newest of round %" PRIu64,
                    site->loses_all ? "its states" : "its newest state", newest);
fail:
    return err;
}

/* ---- the end of a round ---------------------------------------------------------------------- */

typedef struct {
    char begin[NAME_BYTES], trained[NAME_BYTES], result[NAME_BYTES], errors[NAME_BYTES];
} files;

static rp_err write_result(const rp_virtual *v, const rp_virtual_site *site, rp_arena *arena,
                           const files *of) {
    const rp_sim_sites_subject *subject = v->subject;
    const rp_update_facts facts = {.rules = &subject->rules,
                                   .model = subject->run.model,
                                   .given = site->given,
                                   .digest = site->in};
    const rp_update_files paths = {
        .trained = of->trained, .start = of->begin, .update = of->result, .errors = of->errors};
    rp_site_difference difference;
    return subject->rules.delta.kind != RP_DELTA_NONE
               ? rp_update_write(arena, &facts, &paths, &difference)
               : rp_site_write_weights(arena, site->given, of->trained, of->result, &subject->rules,
                                       &difference);
}

/* A site keeps its last two states. */
static void note_saved(rp_virtual_site *site) {
    const uint64_t second = find_saved(site, site->round, true);
    for (uint64_t round = 1; second != RP_SITE_NO_ROUND && round < second; round++) {
        site->saved[round] = RP_VIRTUAL_ABSENT;
    }
    site->saved[site->round] = RP_VIRTUAL_SAVED;
}

static rp_err save_state(rp_virtual *v, uint32_t index, rp_arena *arena, const files *of) {
    const rp_sim_sites_subject *subject = v->subject;
    rp_virtual_site *site = &v->site[index];
    const uint64_t steps = subject->time[index].steps;
    const rp_site_state state = {.rules = &subject->rules,
                                 .folder = site->kept,
                                 .site = subject->list.site[index].name,
                                 .round = site->round,
                                 .trained = of->trained,
                                 .optimizer = subject->run.optim.kind->name,
                                 .updates = site->round * steps,
                                 .errors =
                                     subject->rules.delta.kind != RP_DELTA_NONE ? of->errors : NULL,
                                 .rates = rp_standin_rates(steps)};
    note_saved(site);
    return rp_site_save_state(arena, &state);
}

static rp_err train_round(rp_virtual *v, uint32_t index, rp_arena *arena) {
    const rp_sim_sites_subject *subject = v->subject;
    rp_virtual_site *site = &v->site[index];
    const bool coded = subject->rules.delta.kind != RP_DELTA_NONE;
    files of;
    rp_err err;
    name_file(site, "start.safetensors", of.begin);
    name_file(site, "trained.safetensors", of.trained);
    name_file(site, coded ? "update.safetensors" : "weights.safetensors", of.result);
    name_file(site, "error.safetensors", of.errors);
    RP_TRY(rp_standin_read_start(&subject->standin, of.begin, &site->state));
    rp_standin_train(&subject->standin, subject->list.site[index].name, site->round,
                     subject->time[index].steps, &site->state);
    RP_TRY(rp_standin_write_trained(&subject->standin, of.trained, &site->state));
    RP_TRY(write_result(v, site, arena, &of));
    err = subject->keeps_state ? save_state(v, index, arena, &of) : RP_OK;
fail:
    return err;
}

rp_err rp_virtual_train_kept(rp_virtual *v, uint32_t index) {
    rp_arena arena;
    rp_arena_init(&arena, "round", 0);
    const rp_err err = train_round(v, index, &arena);
    rp_arena_finish(&arena);
    return err;
}
