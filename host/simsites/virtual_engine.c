/* The engine with which a federated run starts simulated work. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "simsites/virtual_own.h"

enum { EXIT_KILLED = 137, EXIT_FAILED = 3, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* A site that is away fails this long after its start. */
static const int64_t FAILS_NS = 200 * RP_NS_PER_MS;
/* An interrupted site ends after this time. */
static const int64_t ENDS_NS = 100 * RP_NS_PER_MS;
static const int64_t SCORE_NS = 500 * RP_NS_PER_MS;
/* A site is told again that has not ended in this time, as rp_child_press() does; then killed. */
static const int64_t PATIENCE_NS = 140 * RP_NS_PER_S;

/* ---- the engine ------------------------------------------------------------------------------ */

static bool is_done(const char *folder) {
    char path[RP_VIRTUAL_PATH + 32];
    (void)snprintf(path, sizeof path, "%s/round.json", folder);
    return access(path, F_OK) == 0;
}

/* Opens the round in its folder, which survives the site's process. If the run has removed
 * the folder, the site starts the round from its first step. *same: false if the folder is of other
 * weights. */
static rp_err open_round(rp_virtual *v, rp_virtual_site *site, const rp_round_order *order,
                         bool *same) {
    char digest[RP_SITES_DIGEST];
    const bool goes_on = site->round == order->round && access(order->out, F_OK) == 0;
    rp_err err;
    *same = true;
    RP_TRY(v->subject->keeps_state ? rp_folders_make(order->kept, 0777) : RP_OK);
    RP_TRY(rp_sites_digest_file(order->in, digest));
    if (goes_on) {
        *same = strcmp(site->in, digest) == 0;
        return RP_OK;
    }
    RP_TRY(mkdir(order->out, 0777) == 0 ? RP_OK : rp_folders_make(order->out, 0777));
    RP_TRY(rp_standin_read(&v->subject->standin, order->in, site->state.values));
    memcpy(site->in, digest, sizeof site->in);
    (void)snprintf(site->out, sizeof site->out, "%s", order->out);
    (void)snprintf(site->given, sizeof site->given, "%s", order->in);
    (void)snprintf(site->kept, sizeof site->kept, "%s", order->kept);
    site->round = order->round;
    site->trained = 0;
    err = v->subject->has_options ? rp_virtual_begin_kept(v, order->site) : RP_OK;
fail:
    return err;
}

static rp_err start_round(void *context, rp_child *child, const rp_round_order *order) {
    rp_virtual *v = context;
    rp_virtual_site *site = &v->site[order->site];
    bool same = true;
    rp_err err = RP_OK;
    RP_ASSERT(site->phase == RP_VIRTUAL_NONE && child->pid == 0);
    *child = (rp_child){.pid = (pid_t)order->site + 1};
    site->told_ns = 0;
    if (site->gone || rp_virtual_now_ns(v) < site->away_until_ns) {
        site->phase = RP_VIRTUAL_FAILING;
        site->code = EXIT_FAILED;
        site->left_ns = (double)FAILS_NS;
        return RP_OK;
    }
    RP_TRY(open_round(v, site, order, &same));
    site->phase = RP_VIRTUAL_START;
    site->left_ns = v->subject->time[order->site].start_s * 1e9;
    if (!same || is_done(order->out)) { /* the answer of a finished round is given again */
        site->phase = RP_VIRTUAL_FAILING;
        site->code = same ? 0 : EXIT_USAGE;
    }
    rp_eventlog_add(v->log, rp_virtual_now_ns(v), order->name, "round %" PRIu64 " from %s",
                    order->round, site->in);
fail:
    return err;
}

static rp_err start_score(void *context, rp_child *child, const rp_score_order *order) {
    rp_virtual *v = context;
    *child = (rp_child){.pid = (pid_t)v->sites + 1};
    (void)snprintf(v->scores, sizeof v->scores, "%s", order->scores);
    v->scoring = true;
    v->score_ended = false;
    v->score_ns = rp_virtual_now_ns(v) + SCORE_NS;
    return RP_OK;
}

static rp_virtual_site *site_of(rp_virtual *v, const rp_child *child) {
    return child->pid > 0 && (uint32_t)child->pid <= v->sites ? &v->site[child->pid - 1] : NULL;
}

static void tell(void *context, rp_child *child, int64_t now_ns) {
    rp_virtual *v = context;
    rp_virtual_site *site = site_of(v, child);
    if (child->pid == 0) {
        return;
    }
    child->told++;
    child->told_ns = now_ns;
    if (site && site->phase != RP_VIRTUAL_ENDED && site->told_ns == 0) {
        rp_virtual_keep_checkpoint(v, (uint32_t)child->pid - 1);
        site->phase = RP_VIRTUAL_ENDING;
        site->code = EXIT_INTERRUPTED;
        site->left_ns = (double)ENDS_NS;
        site->told_ns = now_ns;
    }
}

static void press(void *context, rp_child *child, int64_t now_ns) {
    rp_virtual *v = context;
    const rp_virtual_site *site = site_of(v, child);
    if (site && site->phase != RP_VIRTUAL_ENDED && site->told_ns > 0 &&
        now_ns - site->told_ns > PATIENCE_NS) {
        rp_virtual_end_site(v, (uint32_t)child->pid - 1, EXIT_KILLED);
    }
}

static bool reap(void *context, rp_child *child, int *code) {
    rp_virtual *v = context;
    rp_virtual_site *site = site_of(v, child);
    const bool scored = child->pid > 0 && !site && v->score_ended;
    if (scored) {
        v->scoring = v->score_ended = false;
    } else if (!site || site->phase != RP_VIRTUAL_ENDED) {
        return false;
    }
    *code = scored ? 0 : site->code;
    if (site) {
        site->phase = RP_VIRTUAL_NONE;
    }
    *child = (rp_child){.pid = 0};
    return true;
}

static void kill_child(void *context, rp_child *child) {
    rp_virtual *v = context;
    rp_virtual_site *site = site_of(v, child);
    if (site && site->phase != RP_VIRTUAL_ENDED) {
        rp_virtual_end_site(v, (uint32_t)child->pid - 1, EXIT_KILLED);
    }
    if (site) {
        site->phase = RP_VIRTUAL_NONE;
    } else if (child->pid > 0) {
        v->scoring = v->score_ended = false;
    }
    *child = (rp_child){.pid = 0};
}

static rp_err begin_center(void *context, const rp_runfile *run, const char *path) {
    const rp_virtual *v = context;
    rp_arena arena;
    float *values;
    rp_err err;
    (void)run;
    rp_arena_init(&arena, "first centre", 0);
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)v->subject->standin.values + 1, &values));
    rp_standin_begin(&v->subject->standin, values);
    err = rp_standin_write(&v->subject->standin, path, values, 0);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Stand-ins are small, so the bytes are those of the model. */
static uint64_t file_bytes(void *context, const char *path) {
    const rp_virtual *v = context;
    const bool is_update = strstr(path, "/update.safetensors") != NULL;
    return is_update ? v->subject->cost.update_bytes : v->subject->cost.weights_bytes;
}

/* A kill while the log is written leaves a part of its lines. */
static void tear_log(rp_virtual *v) {
    struct stat facts;
    if (stat(v->log_path, &facts) == 0 && facts.st_size > v->log_bytes) {
        const uint32_t bytes = (uint32_t)(facts.st_size - v->log_bytes);
        (void)!truncate(v->log_path, v->log_bytes + rp_rng_below(&v->draw, bytes + 1));
    }
}

const char *rp_virtual_state_name(rp_federation_at state) {
    static const char *const names[] = {"begin",  "answer", "average", "journal", "placing",
                                        "placed", "log",    "cleared", "scored",  "exported"};
    _Static_assert(sizeof names / sizeof *names == RP_FEDERATION_AT_STATES, "a name each");
    return names[state];
}

static rp_err enter(void *context, rp_federation_at state) {
    rp_virtual *v = context;
    struct stat facts;
    if (state == RP_FEDERATION_AT_PLACED) {
        v->log_bytes = stat(v->log_path, &facts) == 0 ? facts.st_size : 0;
    }
    if (v->armed == 0 || (--v->armed > 0 && state != RP_FEDERATION_AT_EXPORTED)) {
        return v->killed ? RP_ERR_INTERRUPTED : RP_OK;
    }
    v->armed = 0;
    if (state == RP_FEDERATION_AT_LOG) {
        tear_log(v);
    }
    v->kills[state]++;
    v->killed = v->host.killed = true;
    rp_eventlog_add(v->log, rp_virtual_now_ns(v), "host", "killed in state %s",
                    rp_virtual_state_name(state));
    return RP_ERR_INTERRUPTED;
}

rp_site_engine rp_virtual_engine(rp_virtual *v) {
    static const rp_site_engine_kind kind = {.start_round = start_round,
                                             .start_score = start_score,
                                             .tell = tell,
                                             .press = press,
                                             .reap = reap,
                                             .kill = kill_child,
                                             .begin_center = begin_center,
                                             .file_bytes = file_bytes,
                                             .enter = enter};
    return (rp_site_engine){.kind = &kind, .context = v};
}
