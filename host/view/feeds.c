#include "view/feeds.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "view/metrics.h"
#include "view/state_json.h"

static const int64_t SEARCH_NS = 5 * RP_NS_PER_S;
static const int64_t ACTIVE_NS = RP_NS_PER_S;
static const int64_t ENDED_NS = RP_NS_PER_S / 4;

/* ---- the set --------------------------------------------------------------------------------- */

static bool is_taken(const rp_view_feeds *feeds, const char *name) {
    for (uint32_t i = 0; i < feeds->count; i++) {
        if (strcmp(feeds->feed[i]->run.name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Shortest end of the path, of whole names, that no other run has. */
static void choose_name(const rp_view_feeds *feeds, const char *folder,
                        char out[RP_VIEW_NAME_BYTES]) {
    const char *at = folder + strlen(folder);
    do {
        while (at > folder && at[-1] != '/') {
            at--;
        }
        (void)snprintf(out, RP_VIEW_NAME_BYTES, "%s", at);
        at -= at > folder;
    } while (at > folder && (is_taken(feeds, out) || strcmp(out, ".") == 0));
    if (is_taken(feeds, out)) {
        (void)snprintf(out, RP_VIEW_NAME_BYTES, "%.200s-%u", folder, feeds->count);
    }
}

static rp_err add_feed(rp_view_feeds *feeds, const char *folder) {
    rp_view_feed *feed;
    char *copy;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < feeds->count; i++) {
        if (strcmp(feeds->feed[i]->run.folder, folder) == 0) {
            return RP_OK;
        }
    }
    if (feeds->count == RP_RUNS_MAX) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(feeds->arena, 1, &feed));
    RP_TRY(rp_arena_string(feeds->arena, folder, &copy));
    feed->run.folder = copy;
    choose_name(feeds, folder, feed->run.name);
    rp_arena_init(&feed->arena, "run", 0);
    rp_view_log_begin(&feed->run.log.totals);
    feeds->feed[feeds->count++] = feed;
fail:
    return err;
}

static rp_err find_runs(rp_view_feeds *feeds) {
    static rp_runs runs; /* large for a stack */
    rp_arena arena;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "search", 0);
    runs = (rp_runs){.count = 0};
    for (uint32_t i = 0; i < feeds->dir_count; i++) { /* one may have been removed */
        const rp_err below = rp_runs_below(&arena, feeds->dir[i], &runs);
        err = err == RP_OK ? below : err;
    }
    if (feeds->dir_count == 0) {
        err = rp_runs_at_work(&arena, &runs);
    }
    for (uint32_t i = 0; i < runs.count; i++) {
        const rp_err added = add_feed(feeds, runs.folder[i]);
        err = err == RP_OK ? added : err;
    }
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_view_feeds_open(rp_arena *arena, const char *const *dir, uint32_t dir_count,
                          rp_view_feeds **out) {
    rp_view_feeds *feeds;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &feeds));
    *feeds = (rp_view_feeds){.arena = arena, .dir = dir, .dir_count = dir_count};
    RP_TRY(find_runs(feeds));
    *out = feeds;
fail:
    return err;
}

void rp_view_feeds_close(rp_view_feeds *feeds) {
    for (uint32_t i = 0; feeds && i < feeds->count; i++) {
        rp_arena_finish(&feeds->feed[i]->arena);
    }
}

void rp_view_feeds_search(rp_view_feeds *feeds, int64_t now_ns) {
    if (feeds->found_ns != 0 && now_ns - feeds->found_ns < SEARCH_NS) {
        return;
    }
    feeds->found_ns = now_ns;
    const bool held = rp_err_hold(feeds->has_failed); /* a lasting failure is logged once */
    feeds->has_failed = find_runs(feeds) != RP_OK;
    (void)rp_err_hold(held);
}

static bool is_active(const rp_view_feed *feed) {
    return feed->known && feed->facts.state.owner.life == RP_OWNER_ALIVE;
}

rp_view_feed *rp_view_feeds_find(const rp_view_feeds *feeds, const char *name) {
    for (uint32_t i = 0; i < feeds->count; i++) {
        if (name ? strcmp(feeds->feed[i]->run.name, name) == 0
                 : feeds->count == 1 || is_active(feeds->feed[i])) {
            return feeds->feed[i];
        }
    }
    return !name && feeds->count > 0 ? feeds->feed[0] : NULL;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void make_state(rp_view_feed *feed) {
    rp_view_text text = {.arena = &feed->arena};
    rp_view_state_json(&feed->facts, &text);
    feed->state = text.err == RP_OK ? text.data : NULL;
    feed->state_bytes = feed->state ? text.used : 0;
    feed->version++;
}

void rp_view_feed_update(rp_view_feed *feed, int64_t now_ns) {
    const int64_t every_ns = is_active(feed) ? ACTIVE_NS : ENDED_NS;
    if (feed->read_ns != 0 && now_ns - feed->read_ns < every_ns) {
        return;
    }
    const uint64_t stamp = rp_view_stamp(&feed->run);
    feed->read_ns = now_ns;
    if (feed->known && stamp == feed->stamp && !is_active(feed) && !feed->run.log.more) {
        return;
    }
    rp_arena_finish(&feed->arena);
    rp_arena_init(&feed->arena, "run", 0);
    feed->stamp = stamp;
    feed->state = NULL;
    feed->known = rp_run_is_folder(feed->run.folder) && /* it may have been removed */
                  rp_view_read(&feed->arena, &feed->run, &feed->facts) == RP_OK;
    if (feed->known) {
        make_state(feed);
    }
}

void rp_view_feed_follow(rp_view_feed *feed) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/log.jsonl", feed->run.folder) < (int)sizeof path) {
        (void)rp_view_log_update(&feed->run.log, path);
    }
}

/* ---- all runs -------------------------------------------------------------------------------- */

void rp_view_feeds_json(rp_view_feeds *feeds, int64_t now_ns, rp_view_text *out) {
    bool any = false;
    rp_view_feeds_search(feeds, now_ns);
    rp_view_add(out, "{\"version\":1,\"runs\":[");
    for (uint32_t i = 0; i < feeds->count; i++) {
        rp_view_feed *feed = feeds->feed[i];
        rp_view_feed_update(feed, now_ns);
        if (feed->known) {
            rp_view_add(out, any ? ",\n" : "\n");
            rp_view_row_json(&feed->run, &feed->facts.state, out);
            any = true;
        }
    }
    rp_view_add(out, "]}\n");
}

rp_err rp_view_feeds_metrics(rp_view_feeds *feeds, rp_arena *arena, int64_t now_ns,
                             rp_view_text *out) {
    rp_view_run **runs;
    rp_view_facts *facts;
    uint32_t count = 0;
    rp_err err;
    rp_view_feeds_search(feeds, now_ns);
    RP_TRY(RP_ARENA_NEW(arena, feeds->count + 1, &runs));
    RP_TRY(RP_ARENA_NEW(arena, feeds->count + 1, &facts));
    for (uint32_t i = 0; i < feeds->count; i++) {
        rp_view_feed *feed = feeds->feed[i];
        rp_view_feed_update(feed, now_ns);
        if (feed->known) {
            runs[count] = &feed->run;
            facts[count++] = feed->facts;
        }
    }
    rp_view_metrics(runs, facts, count, out);
    err = out->err;
fail:
    return err;
}
