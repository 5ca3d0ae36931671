#include "simsites/lives.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cluster.h"
#include "simsites/draw.h"
#include "simsites/verdict.h"
#include "simsites/virtual.h"

enum { LIVES_MAX = 60, FOLDER_BYTES = 300 };

/* A run takes longer than without faults because sites train again and the host restarts. Beyond
 * this many times as long, and the time of the faults themselves, it counts as hung. */
static const double LONGER = 10;
static const double LONGER_S = 3600;
/* The user starts a run again after this time. */
static const int64_t REST_NS = 2 * RP_NS_PER_S;

typedef struct {
    const rp_sim_sites_case *what;
    rp_virtual *v;
    rp_eventlog log;
    char folder[FOLDER_BYTES];
    int64_t limit_ns;
    uint32_t faults; /* that had begun when the newest life began */
    FILE *result;    /* of the newest life; NULL: not wanted */
} lives;

/* ---- a life ---------------------------------------------------------------------------------- */

static rp_err open_life(lives *l, rp_federation **out) {
    const rp_sim_sites_case *what = l->what;
    char path[FOLDER_BYTES + 32];
    (void)snprintf(path, sizeof path, "%s/federation.json", l->folder);
    const bool resume = access(path, F_OK) == 0;
    const rp_federation_options options = {.run_path = resume ? l->folder : what->run_path,
                                           .set = resume ? NULL : what->set,
                                           .set_count = resume ? 0 : what->set_count,
                                           .out = resume ? NULL : l->folder,
                                           .resume = resume,
                                           .json = what->json,
                                           .temporary = what->out == NULL,
                                           .progress = what->progress,
                                           .result = l->result,
                                           .engine = rp_virtual_engine(l->v)};
    if (!resume) {
        rp_sim_folder_remove(l->folder); /* what a kill has left has no journal yet */
    }
    rp_virtual_begin_host(l->v, l->folder);
    return rp_federation_open(rp_virtual_clock(l->v), &options, out);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* A suspended host does nothing, while its sites go on. */
static rp_err stay_still(lives *l, int64_t until_ns) {
    rp_err err = RP_OK;
    while (rp_virtual_now_ns(l->v) < until_ns && !rp_virtual_is_killed(l->v)) {
        RP_TRY(rp_virtual_advance(l->v, least(rp_virtual_next_ns(l->v), until_ns)));
    }
fail:
    return err;
}

/* Steps the run until it ends, is killed, or its time is over. */
static rp_err drive(lives *l, rp_federation *federation) {
    rp_err err = RP_OK;
    while (rp_virtual_now_ns(l->v) <= l->limit_ns) {
        const int64_t due_ns =
            rp_federation_step(federation, rp_clock_now_ns(rp_virtual_clock(l->v))) -
            RP_VIRTUAL_BEGIN_NS;
        if (rp_federation_has_ended(federation) || rp_virtual_is_killed(l->v)) {
            break;
        }
        const int64_t now_ns = rp_virtual_now_ns(l->v);
        const int64_t next_ns = least(due_ns, rp_virtual_next_ns(l->v));
        RP_TRY(rp_virtual_advance(l->v, next_ns > now_ns ? next_ns : now_ns));
        const rp_virtual_host host = rp_virtual_take_host(l->v);
        if (rp_virtual_is_killed(l->v)) {
            break;
        }
        for (uint32_t i = 0; i < host.interrupts; i++) {
            rp_federation_interrupt(federation);
        }
        RP_TRY(stay_still(l, host.still_until_ns));
    }
fail:
    return err;
}

typedef enum { LIFE_FINISHED, LIFE_KILLED, LIFE_STOPPED, LIFE_LATE, LIFE_WRONG } life_end;

/* *why: how a stopped run ended. */
static life_end run_life(lives *l, rp_err *why) {
    rp_federation *federation = NULL;
    l->faults = rp_virtual_faults(l->v);
    *why = open_life(l, &federation);
    if (*why != RP_OK) {
        return rp_virtual_is_killed(l->v) ? LIFE_KILLED : LIFE_WRONG;
    }
    const rp_err err = drive(l, federation);
    const bool killed = rp_virtual_is_killed(l->v);
    *why = rp_federation_close(&federation);
    return err != RP_OK                                         ? LIFE_WRONG
           : killed                                             ? LIFE_KILLED
           : rp_virtual_now_ns(l->v) > l->limit_ns              ? LIFE_LATE
           : *why == RP_OK                                      ? LIFE_FINISHED
           : *why == RP_ERR_INTERRUPTED || *why == RP_ERR_FAULT ? LIFE_STOPPED
                                                                : LIFE_WRONG;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Time passes until the user starts the run again. */
static rp_err rest(lives *l) {
    const int64_t until_ns = rp_virtual_now_ns(l->v) + REST_NS;
    rp_err err = RP_OK;
    while (rp_virtual_now_ns(l->v) < until_ns) {
        RP_TRY(rp_virtual_advance(l->v, least(rp_virtual_next_ns(l->v), until_ns)));
    }
fail:
    return err;
}

static void note(lives *l, const char *text) {
    rp_eventlog_add(&l->log, rp_virtual_now_ns(l->v), "run", "%s", text);
}

/* Only the result of the last life is shown. */
static rp_err begin_result(lives *l) {
    if (l->result) {
        (void)fclose(l->result);
    }
    l->result = l->what->result ? tmpfile() : NULL;
    return l->what->result && !l->result
               ? rp_fail(RP_ERR_IO, "no temporary file for the result of a run")
               : RP_OK;
}

static void show_result(const lives *l) {
    int byte;
    rewind(l->result);
    while ((byte = fgetc(l->result)) != EOF) {
        (void)fputc(byte, l->what->result);
    }
}

/* The states with which sites have trained; *out NULL: they keep none. */
static rp_err list_from(const lives *l, rp_arena *arena, rp_sim_from **out) {
    const rp_sim_sites_subject *subject = l->what->subject;
    const uint32_t rounds = subject->run.federated.rounds;
    uint64_t *from;
    rp_err err = RP_OK;
    *out = NULL;
    if (!subject->keeps_state) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, out));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)subject->list.sites * ((size_t)rounds + 1), &from));
    for (uint32_t site = 0; site < subject->list.sites; site++) {
        for (uint32_t round = 0; round <= rounds; round++) {
            from[(size_t)site * (rounds + 1) + round] = rp_virtual_from(l->v, site, round);
        }
    }
    **out = (rp_sim_from){.of = from, .rounds = rounds};
fail:
    return err;
}

static rp_sim_outcome judge_end(lives *l, uint32_t life) {
    rp_sim_from *from;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "states", 0);
    RP_TRY(list_from(l, &arena, &from));
    err = rp_sim_sites_compare(l->what, from, l->folder);
fail:
    rp_arena_finish(&arena);
    if (err != RP_OK) {
        note(l, rp_err_message());
        return RP_SIM_WRONG;
    }
    return life == 0 ? RP_SIM_FINISHED : RP_SIM_STOPPED_RESUMABLE;
}

static rp_err run_lives(lives *l, rp_sim_outcome *outcome) {
    rp_err err = RP_OK;
    *outcome = RP_SIM_HUNG; /* stays so when all lives stop */
    for (uint32_t life = 0; life < LIVES_MAX; life++) {
        rp_err why;
        RP_TRY(begin_result(l));
        const life_end end = run_life(l, &why);
        if (end == LIFE_LATE) {
            note(l, "the run takes too long");
            return RP_OK;
        }
        if (end == LIFE_FINISHED) {
            *outcome = judge_end(l, life);
            return RP_OK;
        }
        const bool reason = end == LIFE_KILLED || rp_virtual_faults(l->v) > 0;
        if (end == LIFE_WRONG || !reason) {
            note(l, rp_err_message());
            *outcome = RP_SIM_WRONG;
            return RP_OK;
        }
        note(l, end == LIFE_KILLED ? "killed; it starts again" : "stopped; it starts again");
        RP_TRY(rp_virtual_repair(l->v));
        RP_TRY(rest(l));
    }
fail:
    return err;
}

/* ---- one seed -------------------------------------------------------------------------------- */

static rp_err make_folder(const rp_sim_sites_case *what, char *parent, size_t bytes,
                          char folder[FOLDER_BYTES]) {
    const char *where = getenv("TMPDIR");
    parent[0] = '\0';
    if (what->out) {
        (void)snprintf(folder, FOLDER_BYTES, "%s", what->out);
        return RP_OK;
    }
    (void)snprintf(parent, bytes, "%s/ringpipe-sim-XXXXXX", where ? where : "/dev/shm");
    if (!mkdtemp(parent)) {
        (void)snprintf(parent, bytes, "/tmp/ringpipe-sim-XXXXXX");
        if (!mkdtemp(parent)) {
            return rp_fail(RP_ERR_IO, "cannot make a folder for the simulated run under /tmp");
        }
    }
    (void)snprintf(folder, FOLDER_BYTES, "%s/run", parent);
    return RP_OK;
}

static int64_t find_limit(const rp_sim_sites_case *what, const rp_sim_faults *faults) {
    const rp_federated_keys *keys = &what->subject->run.federated;
    double limit_s = LONGER_S + LONGER * what->subject->round_s * keys->rounds +
                     LONGER * keys->rounds * keys->wait_s;
    for (uint32_t i = 0; i < faults->count; i++) {
        const rp_sim_fault *fault = &faults->fault[i];
        limit_s += (double)(fault->at_ns + fault->for_ns) * 1e-9;
    }
    return limit_s < 9e9 ? (int64_t)(limit_s * 1e9) : INT64_MAX;
}

static void note_result(const lives *l, rp_sim_result *out) {
    out->faults = rp_virtual_faults(l->v);
    for (uint32_t k = 0; k < RP_SIM_FAULT_KINDS; k++) {
        out->marks.kind[k] = rp_virtual_fault_kinds(l->v)[k];
    }
    for (uint32_t s = 0; s < RP_FEDERATION_AT_STATES; s++) {
        out->marks.kill[s] = rp_virtual_kills(l->v)[s];
    }
    out->events = l->log.count;
    out->event_hash = l->log.hash;
    out->virtual_s = (double)rp_virtual_now_ns(l->v) * 1e-9;
}

rp_err rp_sim_sites_judge(const rp_sim_sites_case *what, uint64_t seed, rp_sim_result *out) {
    rp_rng rng = rp_rng_named(seed, "simsites/faults");
    char parent[256] = "";
    lives l = {.what = what};
    rp_sim_faults faults = {0};
    rp_arena arena;
    rp_err err;
    *out = (rp_sim_result){.outcome = RP_SIM_WRONG};
    rp_arena_init(&arena, "simulation", 0);
    RP_TRY(make_folder(what, parent, sizeof parent, l.folder));
    if (what->faults) {
        faults = *what->faults;
    } else if (what->draws_faults) {
        rp_sim_sites_draw(&rng, what->subject, &faults);
    }
    if (what->trace) {
        (void)fprintf(what->trace, "# seed: %" PRIu64 "\n", seed);
        rp_sim_faults_write(&faults, what->trace);
    }
    rp_eventlog_open(&l.log, what->trace);
    RP_TRY(rp_virtual_open(&arena, what->subject, &faults, rp_rng_named(seed, "simsites/run"),
                           &l.log, &l.v));
    l.limit_ns = find_limit(what, &faults);
    RP_TRY(run_lives(&l, &out->outcome));
    note_result(&l, out);
    if (l.result) {
        show_result(&l);
    }
fail:
    if (l.result) {
        (void)fclose(l.result);
    }
    if (parent[0]) {
        rp_sim_folder_remove(parent);
    }
    rp_arena_finish(&arena);
    return err;
}
