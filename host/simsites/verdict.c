#include "simsites/verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"

enum { PATH_BYTES = 400, LINE_BYTES = 1 << 16 };

typedef struct {
    const rp_sim_sites_case *what;
    rp_arena arena;
    rp_sim_round *round; /* [rounds]: sites that took part, as the log says */
    uint32_t *rows;      /* [rounds]: lines about asked sites */
    uint64_t closed;     /* rounds whose line is in the log */
    uint64_t *late;      /* [sites]: rounds that it missed */
    const rp_sim_from *from;
} comparison;

/* ---- the log --------------------------------------------------------------------------------- */

static bool has_site(const rp_sim_round *round, uint32_t site) {
    for (uint32_t i = 0; i < round->count; i++) {
        if (round->member[i] == site) {
            return true;
        }
    }
    return false;
}

/* The index of a site; the number of sites if the name is unknown. */
static uint32_t find_site(const rp_sim_sites_subject *s, const char *name) {
    uint32_t i = 0;
    while (name && i < s->list.sites && strcmp(s->list.site[i].name, name) != 0) {
        i++;
    }
    return name ? i : s->list.sites;
}

static rp_err take_site(comparison *c, const json_t *line, uint64_t number) {
    const char *name = json_string_value(json_object_get(line, "site"));
    const char *status = json_string_value(json_object_get(line, "status"));
    const uint32_t site = find_site(c->what->subject, name);
    rp_sim_round *round = &c->round[number - 1];
    if (number != c->closed + 1 || !status || !has_site(&c->what->asked[number - 1], site)) {
        return rp_fail(RP_ERR_FAULT, "round %" PRIu64 ": site %s was not asked, or too late",
                       number, name ? name : "?");
    }
    c->rows[number - 1]++;
    if (strcmp(status, "finished") != 0) {
        c->late[site]++;
        return RP_OK;
    }
    if (round->count > 0 && round->member[round->count - 1] >= site) {
        return rp_fail(RP_ERR_FAULT, "round %" PRIu64 ": site %s has two lines", number, name);
    }
    round->member[round->count++] = site;
    return RP_OK;
}

static rp_err take_round(comparison *c, uint64_t number) {
    const rp_sim_round *asked = &c->what->asked[number - 1];
    const rp_sim_round *round = &c->round[number - 1];
    const uint32_t wanted = c->what->subject->run.federated.least;
    const uint32_t least = wanted > 0 && wanted < asked->count ? wanted : asked->count;
    if (number != c->closed + 1 || c->rows[number - 1] != asked->count) {
        return rp_fail(RP_ERR_FAULT,
                       "round %" PRIu64 " follows round %" PRIu64 " in the log, with lines of %u "
                       "of %u sites",
                       number, c->closed, c->rows[number - 1], asked->count);
    }
    if (round->count < least) {
        return rp_fail(RP_ERR_FAULT, "round %" PRIu64 " has %u sites, expected at least %u", number,
                       round->count, least);
    }
    c->closed = number;
    return RP_OK;
}

static rp_err take_line(comparison *c, const char *text) {
    json_t *line = json_loads(text, 0, NULL);
    const char *event = json_string_value(json_object_get(line, "event"));
    const json_int_t number = json_integer_value(json_object_get(line, "round"));
    const bool is_site = event && strcmp(event, "site") == 0;
    rp_err err = RP_OK;
    if (!line) {
        err = rp_fail(RP_ERR_FAULT, "log.jsonl: a line is no JSON: %.200s", text);
    } else if (is_site || !event) {
        const bool good = number > 0 && number <= c->what->subject->run.federated.rounds;
        err = !good     ? rp_fail(RP_ERR_FAULT, "log.jsonl: unknown round: %.200s", text)
              : is_site ? take_site(c, line, (uint64_t)number)
                        : take_round(c, (uint64_t)number);
    }
    json_decref(line);
    return err;
}

static rp_err read_log(comparison *c, const char *folder) {
    char path[PATH_BYTES];
    char *text;
    FILE *file = NULL;
    rp_err err;
    (void)snprintf(path, sizeof path, "%s/log.jsonl", folder);
    RP_TRY(RP_ARENA_NEW(&c->arena, LINE_BYTES, &text));
    file = fopen(path, "re");
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    while (fgets(text, LINE_BYTES, file)) {
        RP_TRY(take_line(c, text));
    }
    if (c->closed != c->what->subject->run.federated.rounds) {
        RP_TRY(rp_fail(RP_ERR_FAULT, "%s ends after round %" PRIu64, path, c->closed));
    }
fail:
    if (file) {
        (void)fclose(file);
    }
    return err;
}

/* ---- the centre ------------------------------------------------------------------------------ */

static rp_err compare_center(comparison *c, const char *folder) {
    const rp_sim_sites_subject *s = c->what->subject;
    char path[PATH_BYTES];
    float *want;
    float *found;
    rp_err err;
    (void)snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    RP_TRY(RP_ARENA_NEW(&c->arena, (size_t)s->standin.values + 1, &want));
    RP_TRY(RP_ARENA_NEW(&c->arena, (size_t)s->standin.values + 1, &found));
    RP_TRY(rp_sim_reference_center(s, c->what->asked, c->round, c->from, want));
    RP_TRY(rp_standin_read(&s->standin, path, found));
    for (uint32_t j = 0; j < s->standin.values; j++) {
        if (memcmp(&found[j], &want[j], sizeof *want) != 0) {
            return rp_fail(RP_ERR_FAULT, "value %u of the centre is %.9g, expected %.9g", j,
                           (double)found[j], (double)want[j]);
        }
    }
fail:
    return err;
}

/* ---- the sums -------------------------------------------------------------------------------- */

static uint64_t whole_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (uint64_t)json_integer_value(value) : UINT64_MAX;
}

static rp_err compare_site(const comparison *c, const json_t *object, uint32_t site) {
    const rp_sim_sites_subject *s = c->what->subject;
    const uint64_t missed = whole_of(object, "late") + whole_of(object, "failed");
    uint64_t rounds = 0;
    for (uint32_t r = 0; r < s->run.federated.rounds; r++) {
        rounds += has_site(&c->round[r], site);
    }
    return whole_of(object, "rounds") == rounds && missed == c->late[site] &&
                   whole_of(object, "samples") == rounds * s->time[site].samples &&
                   whole_of(object, "up_bytes") == rounds * s->cost.update_bytes
               ? RP_OK
               : rp_fail(RP_ERR_FAULT,
                         "summary.json: site %s has %" PRIu64 " rounds and %" PRIu64
                         " samples; expected %" PRIu64 " rounds",
                         s->list.site[site].name, whole_of(object, "rounds"),
                         whole_of(object, "samples"), rounds);
}

static rp_err compare_sums(const comparison *c, const char *folder) {
    const rp_sim_sites_subject *s = c->what->subject;
    char path[PATH_BYTES];
    json_t *root = NULL;
    rp_err err;
    (void)snprintf(path, sizeof path, "%s/summary.json", folder);
    RP_TRY(rp_json_read(path, &root));
    const json_t *list = json_object_get(root, "sites");
    if (json_array_size(list) != s->list.sites) {
        RP_TRY(rp_fail(RP_ERR_FAULT, "%s: expected %u sites", path, s->list.sites));
    }
    for (uint32_t i = 0; i < s->list.sites; i++) {
        RP_TRY(compare_site(c, json_array_get(list, i), i));
    }
fail:
    json_decref(root);
    return err;
}

rp_err rp_sim_sites_compare(const rp_sim_sites_case *what, const rp_sim_from *from,
                            const char *folder) {
    const rp_sim_sites_subject *s = what->subject;
    const uint32_t rounds = s->run.federated.rounds;
    comparison c = {.what = what, .from = from};
    rp_err err;
    rp_arena_init(&c.arena, "verdict", 0);
    RP_TRY(RP_ARENA_NEW(&c.arena, (size_t)rounds + 1, &c.round));
    RP_TRY(RP_ARENA_NEW(&c.arena, (size_t)rounds + 1, &c.rows));
    RP_TRY(RP_ARENA_NEW(&c.arena, (size_t)s->list.sites + 1, &c.late));
    for (uint32_t r = 0; r < rounds; r++) {
        RP_TRY(RP_ARENA_NEW(&c.arena, (size_t)s->cost.members + 1, &c.round[r].member));
    }
    RP_TRY(read_log(&c, folder));
    RP_TRY(compare_center(&c, folder));
    RP_TRY(compare_sums(&c, folder));
fail:
    rp_arena_finish(&c.arena);
    return err;
}
