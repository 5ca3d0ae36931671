/* data split: divides a training set among sites. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json_print.h"
#include "base/json_values.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/output_file.h"
#include "data/data.h"
#include "data/partition.h"
#include "data/site_ids.h"
#include "run/runfile.h"

enum { CLASSES_SHOWN_MAX = 20, SITES_SHOWN_MAX = 50 };

/* What is divided, and the result. */
typedef struct {
    const rp_data *data;
    rp_partition_rule rule;
    const char *ids; /* file of rule `column`; NULL: another rule */
    rp_partition_samples samples;
    rp_split_list list;
    bool held_out; /* some site has validation samples */
    char digest[RP_SPLIT_DIGEST];
    uint32_t *classes; /* [sites][classes]: samples of each class at each site; NULL: no classes */
} divided;

/* ---- dividing -------------------------------------------------------------------------------- */

static rp_err read_labels(rp_arena *arena, divided *d) {
    const rp_data *data = d->data;
    int32_t *label;
    rp_err err = RP_OK;
    if (!rp_data_has_class(data)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, d->samples.count + 1, &label));
    for (uint32_t i = 0; i < d->samples.count; i++) {
        RP_TRY(rp_data_class(data, i, &label[i]));
    }
    d->samples.label = label;
    d->samples.classes = data->classes;
fail:
    return err;
}

/* Lists the samples of each site in ascending order. */
static rp_err list_sites(rp_arena *arena, divided *d, const rp_site_ids *ids) {
    const uint32_t *site = ids->site;
    const rp_partition_samples *s = &d->samples;
    rp_site_samples *made;
    uint32_t **next;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, s->sites, &made));
    RP_TRY(RP_ARENA_NEW(arena, s->sites, &next));
    for (uint32_t i = 0; i < s->count; i++) {
        made[site[i]].train_count++;
    }
    for (uint32_t k = 0; k < s->sites; k++) {
        char *name;
        RP_TRY(ids->name ? rp_arena_string(arena, ids->name[k], &name)
                         : rp_arena_printf(arena, &name, "site-%u", k));
        RP_TRY(RP_ARENA_NEW(arena, made[k].train_count + 1, &next[k]));
        made[k].name = name;
        made[k].train = next[k];
    }
    for (uint32_t i = 0; i < s->count; i++) {
        *next[site[i]]++ = i;
    }
    d->list.site = made;
    d->list.sites = s->sites;
fail:
    return err;
}

/* Refuses a share that gives no site a validation sample. Each site keeps a training sample,
 * because the share is below 1 and rounded down. */
static rp_err check_held_out(const divided *d, double share) {
    uint32_t without = 0; /* sites without a validation sample */
    uint32_t most = 0;
    for (uint32_t k = 0; k < d->list.sites; k++) {
        const rp_site_samples *site = &d->list.site[k];
        const uint32_t all = site->train_count + site->validation_count;
        most = all > most ? all : most;
        without += site->validation_count == 0;
    }
    if (without == d->list.sites) {
        return rp_fail(RP_ERR_USAGE,
                       "data split: --validation: %g holds out no sample of any site, because the "
                       "largest site has %u samples: expected at least 1/%u",
                       share, most, most);
    }
    if (without > 0) {
        rp_log_info("--validation: %u of %u sites are too small for a validation sample", without,
                    d->list.sites);
    }
    return RP_OK;
}

/* Moves a share of each site's samples to its validation part. */
static rp_err hold_out(rp_arena *arena, divided *d, double share) {
    rp_site_samples *site = (rp_site_samples *)(uintptr_t)d->list.site;
    rp_err err = RP_OK;
    for (uint32_t k = 0; share > 0 && k < d->list.sites; k++) {
        const uint32_t all = site[k].train_count;
        uint32_t *held;
        uint32_t *rest;
        RP_TRY(RP_ARENA_NEW(arena, all + 1, &held));
        RP_TRY(RP_ARENA_NEW(arena, all + 1, &rest));
        RP_TRY(rp_partition_hold_out(arena, site[k].train, all, share, d->samples.seed,
                                     site[k].name, held, rest));
        site[k].validation_count = (uint32_t)(share * all);
        site[k].validation = held;
        site[k].train_count = all - site[k].validation_count;
        site[k].train = rest;
        d->held_out = d->held_out || site[k].validation_count > 0;
    }
    err = share > 0 ? check_held_out(d, share) : RP_OK;
fail:
    return err;
}

static rp_err count_classes(rp_arena *arena, divided *d) {
    const rp_partition_samples *s = &d->samples;
    rp_err err = RP_OK;
    if (!s->label) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)s->sites * s->classes, &d->classes));
    for (uint32_t k = 0; k < s->sites; k++) {
        const rp_site_samples *site = &d->list.site[k];
        for (uint32_t i = 0; i < site->train_count; i++) {
            d->classes[(size_t)k * s->classes + (uint32_t)s->label[site->train[i]]]++;
        }
    }
fail:
    return err;
}

/* Sets the site of each sample. */
static rp_err choose_sites(rp_arena *arena, divided *d, rp_site_ids *out) {
    rp_err err;
    *out = (rp_site_ids){0};
    if (!d->ids) {
        RP_TRY(RP_ARENA_NEW(arena, d->samples.count + 1, &out->site));
        RP_TRY(rp_partition_make(&d->rule, &d->samples, out->site));
        return RP_OK;
    }
    RP_TRY(rp_site_ids_read(arena, d->ids, d->samples.count, out));
    if (d->samples.sites > 0 && d->samples.sites != out->sites) {
        return rp_fail(RP_ERR_USAGE, "data split: --sites: %s names %u sites, found %u", d->ids,
                       out->sites, d->samples.sites);
    }
    d->samples.sites = out->sites;
fail:
    return err;
}

static rp_err divide(rp_arena *arena, const rp_cli_args *args, divided *d) {
    rp_site_ids ids;
    rp_err err;
    d->samples = (rp_partition_samples){.count = d->data->count[RP_SPLIT_TRAIN] +
                                                 d->data->count[RP_SPLIT_VALIDATION],
                                        .sites = args->split.sites,
                                        .least = args->split.least,
                                        .seed = args->sim.seeds.first};
    RP_TRY(read_labels(arena, d));
    RP_TRY(choose_sites(arena, d, &ids));
    RP_TRY(list_sites(arena, d, &ids));
    RP_TRY(hold_out(arena, d, args->split.validation));
    RP_TRY(count_classes(arena, d));
    RP_TRY(rp_data_split_digest(d->data, d->digest));
    d->list.set = d->data->kind->name;
    d->list.digest = d->digest;
    d->list.rule = d->ids ? "column" : args->split.by;
    d->list.seed = d->samples.seed;
    d->list.samples = d->samples.count;
fail:
    return err;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Entropy of a site's classes, as a fraction of that of equally many samples of each class; NAN:
 * samples have no class. */
static double evenness(const divided *d, uint32_t site) {
    const uint32_t classes = d->samples.classes;
    const double all = d->list.site[site].train_count;
    double sum = 0;
    if (!d->classes || classes < 2) {
        return NAN;
    }
    for (uint32_t c = 0; c < classes; c++) {
        const double share = d->classes[(size_t)site * classes + c] / all;
        sum -= share > 0 ? share * log(share) : 0;
    }
    return sum / log(classes);
}

static void print_site(const divided *d, uint32_t site) {
    const uint32_t classes = d->samples.classes;
    (void)printf("%-10s %8u", d->list.site[site].name, d->list.site[site].train_count);
    if (d->held_out) {
        (void)printf(" %10u", d->list.site[site].validation_count);
    }
    if (d->classes) {
        (void)printf(" %8.2f", evenness(d, site));
    }
    for (uint32_t c = 0; d->classes && classes <= CLASSES_SHOWN_MAX && c < classes; c++) {
        (void)printf(" %6u", d->classes[(size_t)site * classes + c]);
    }
    (void)printf("\n");
}

static void print_text(const divided *d, const char *path) {
    (void)printf("%-10s %8s%s%s", "site", "samples", d->held_out ? " validation" : "",
                 d->classes ? " evenness" : "");
    for (uint32_t c = 0;
         d->classes && d->samples.classes <= CLASSES_SHOWN_MAX && c < d->samples.classes; c++) {
        (void)printf(" %6u", c);
    }
    (void)printf("\n");
    for (uint32_t k = 0; k < d->list.sites && k < SITES_SHOWN_MAX; k++) {
        print_site(d, k);
    }
    if (d->list.sites > SITES_SHOWN_MAX) {
        (void)printf("... and %u more\n", d->list.sites - SITES_SHOWN_MAX);
    }
    (void)printf("%s: %u samples of '%s' at %u sites, %s, seed %llu\n", path, d->list.samples,
                 d->list.set, d->list.sites, d->list.rule, (unsigned long long)d->list.seed);
}

static json_t *json_of_site(const divided *d, uint32_t site, bool *good) {
    const uint32_t classes = d->samples.classes;
    json_t *object = json_object();
    json_t *counts = json_array();
    rp_json_put(object, "name", json_string(d->list.site[site].name), good);
    rp_json_put(object, "samples", rp_json_of_whole(d->list.site[site].train_count), good);
    for (uint32_t c = 0; d->classes && c < classes; c++) {
        json_t *count = rp_json_of_whole(d->classes[(size_t)site * classes + c]);
        *good = json_array_append_new(counts, count) == 0 && *good;
    }
    rp_json_put(object, "validation", rp_json_of_whole(d->list.site[site].validation_count), good);
    rp_json_put(object, "classes", counts, good);
    rp_json_put(object, "evenness", rp_json_of_real(evenness(d, site)), good);
    return object;
}

static rp_err print_json(const divided *d, const char *path) {
    bool good = true;
    json_t *sites = json_array();
    for (uint32_t k = 0; k < d->list.sites; k++) {
        good = json_array_append_new(sites, json_of_site(d, k, &good)) == 0 && good;
    }
    json_t *object = json_object();
    rp_json_put(object, "version", json_integer(1), &good);
    rp_json_put(object, "file", rp_json_path(path), &good);
    rp_json_put(object, "set", json_string(d->list.set), &good);
    rp_json_put(object, "digest", json_string(d->list.digest), &good);
    rp_json_put(object, "rule", json_string(d->list.rule), &good);
    rp_json_put(object, "seed", rp_json_of_whole(d->list.seed), &good);
    rp_json_put(object, "samples", rp_json_of_whole(d->list.samples), &good);
    rp_json_put(object, "sites", sites, &good);
    if (!good) {
        json_decref(object);
        return rp_fail(RP_ERR_MEMORY, "data split: no memory for the answer");
    }
    return rp_json_print(object, 0, stdout);
}

/* *ids: the file of rule `column`, or NULL. */
static rp_err check_options(const rp_cli_args *args, const char **ids) {
    static const char column[] = "column:";
    const bool by_column = strncmp(args->split.by, column, strlen(column)) == 0;
    *ids = by_column ? args->split.by + strlen(column) : NULL;
    if (by_column && access(*ids, R_OK) != 0) {
        return rp_fail(RP_ERR_USAGE,
                       "data split: --by: '%s': %s: expected column:FILE, a file with the name of "
                       "a site in a line for each training sample",
                       args->split.by, (*ids)[0] ? strerror(errno) : "the file is missing");
    }
    if (!by_column && (args->split.sites == 0 || args->split.sites > RP_SITES_MAX)) {
        return rp_fail(RP_ERR_USAGE,
                       "data split: --sites: missing or 0: expected 1 to %d, or --by column:FILE",
                       RP_SITES_MAX);
    }
    if (!(args->split.validation < 1)) {
        return rp_fail(RP_ERR_USAGE,
                       "data split: --validation: expected a share below 1, so that each site "
                       "keeps training samples; found %g",
                       args->split.validation);
    }
    return RP_OK;
}

rp_err rp_verb_data_split(rp_arena *arena, const rp_cli_args *args) {
    rp_runfile run = {0};
    divided d = {.data = &run.data};
    const char *set[RP_OPTION_ITEMS_MAX + 1];
    rp_err err;
    RP_TRY(check_options(args, &d.ids));
    for (uint32_t i = 0; i < args->set.count; i++) {
        set[i] = args->set.item[i];
    }
    set[args->set.count] = "data.site=none"; /* the file that is about to be made */
    RP_TRY(d.ids ? RP_OK : rp_partition_parse(args->split.by, &d.rule));
    RP_TRY(rp_cli_check_inputs(args, args->out));
    RP_TRY(rp_cli_check_output(args, args->out));
    RP_TRY(rp_runfile_read(arena, args->words.item[0], set, args->set.count + 1, &run));
    RP_TRY(divide(arena, args, &d));
    RP_TRY(rp_split_file_write(args->out, &d.list));
    if (rp_cli_is_json(args)) {
        err = print_json(&d, args->out);
    } else {
        print_text(&d, args->out);
    }
fail:
    rp_runfile_close(&run);
    return err;
}
