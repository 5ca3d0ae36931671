#include "data/split_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_values.h"
#include "base/replace.h"
#include "data/partition.h"

bool rp_site_name_is_valid(const char *name) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t length = strlen(name);
    return length > 0 && length <= RP_SITE_NAME_MAX && strspn(name, letters) == length &&
           name[0] != '.' && name[0] != '-';
}

const rp_site_samples *rp_split_list_find(const rp_split_list *list, const char *name) {
    for (uint32_t i = 0; i < list->sites; i++) {
        if (strcmp(list->site[i].name, name) == 0) {
            return &list->site[i];
        }
    }
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Ascending numbers; two or more in a row are written as "first-last". */
static json_t *json_of_samples(const uint32_t *sample, uint32_t count, bool *good) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count;) {
        char text[32];
        uint32_t end = i + 1;
        while (end < count && sample[end] == sample[end - 1] + 1) {
            end++;
        }
        (void)snprintf(text, sizeof text, "%u-%u", sample[i], sample[end - 1]);
        json_t *item = end > i + 1 ? json_string(text) : rp_json_of_whole(sample[i]);
        *good = json_array_append_new(list, item) == 0 && *good;
        i = end;
    }
    return list;
}

static json_t *json_of_site(const rp_site_samples *site, bool *good) {
    json_t *object = json_object();
    rp_json_put(object, "name", json_string(site->name), good);
    rp_json_put(object, "train", json_of_samples(site->train, site->train_count, good), good);
    if (site->validation_count > 0) {
        rp_json_put(object, "validation",
                    json_of_samples(site->validation, site->validation_count, good), good);
    }
    return object;
}

rp_err rp_split_file_write(const char *path, const rp_split_list *list) {
    bool good = true;
    json_t *sites = json_array();
    json_t *root = json_object();
    for (uint32_t i = 0; i < list->sites; i++) {
        good = json_array_append_new(sites, json_of_site(&list->site[i], &good)) == 0 && good;
    }
    rp_json_put(root, "version", json_integer(1), &good);
    rp_json_put(root, "set", json_string(list->set), &good);
    rp_json_put(root, "digest", json_string(list->digest), &good);
    rp_json_put(root, "seed", rp_json_of_whole(list->seed), &good);
    rp_json_put(root, "rule", json_string(list->rule), &good);
    rp_json_put(root, "samples", rp_json_of_whole(list->samples), &good);
    rp_json_put(root, "sites", sites, &good);
    FILE *file = good ? rp_replace_begin(path) : NULL;
    if (good && !file) {
        good = false;
        json_decref(root);
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    good = good && json_dumpf(root, file, JSON_INDENT(1)) == 0 && fputc('\n', file) != EOF;
    json_decref(root);
    return file ? rp_replace_end(file, path, good)
                : rp_fail(RP_ERR_MEMORY, "%s: no memory for the lists of samples", path);
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct {
    const char *path;
    rp_arena *arena;
    rp_split_list *list;
    bool *taken; /* [samples] */
    const char *site;
} reading;

static rp_err read_whole(const reading *r, const json_t *root, const char *key, uint64_t most,
                         uint64_t *out) {
    const json_t *value = json_object_get(root, key);
    const json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    *out = number < 0 ? 0 : (uint64_t)number;
    return number >= 0 && *out <= most
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%s: '%s': expected a whole number from 0 to %llu", r->path,
                         key, (unsigned long long)most);
}

static rp_err read_string(const reading *r, const json_t *object, const char *key,
                          const char **out) {
    const json_t *value = json_object_get(object, key);
    char *copy = NULL;
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value)) {
        return rp_fail(RP_ERR_USAGE, "%s: '%s': expected a text", r->path, key);
    }
    const rp_err err = rp_arena_printf(r->arena, &copy, "%s", json_string_value(value));
    *out = copy;
    return err;
}

/* Reads 203 or "0-99"; *end is the number after the last one. */
static rp_err read_range(const reading *r, const json_t *item, uint32_t *begin, uint32_t *end) {
    const char *text = json_is_string(item) ? json_string_value(item) : "";
    const size_t first = strspn(text, "0123456789");
    const size_t last = text[first] == '-' ? strspn(text + first + 1, "0123456789") : 0;
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    if (json_is_integer(item) && json_integer_value(item) >= 0) {
        low = high = (uint64_t)json_integer_value(item);
    } else if (first > 0 && first <= 10 && last > 0 && last <= 10 &&
               text[first + 1 + last] == '\0') {
        low = strtoull(text, NULL, 10);
        high = strtoull(text + first + 1, NULL, 10);
    }
    if (low > high || high >= r->list->samples) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: site '%s': expected samples from 0 to %u as numbers or as \"0-99\"",
                       r->path, r->site, r->list->samples - 1);
    }
    *begin = (uint32_t)low;
    *end = (uint32_t)high + 1;
    return RP_OK;
}

static rp_err take_range(const reading *r, uint32_t begin, uint32_t end, uint32_t *count) {
    for (uint32_t i = begin; i < end; i++) {
        if (r->taken[i]) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: site '%s': sample %u occurs twice in the file; expected each "
                           "sample at most once",
                           r->path, r->site, i);
        }
        r->taken[i] = true;
    }
    *count += end - begin;
    return RP_OK;
}

/* Reads a list of samples in two passes: check and count, then store. */
static rp_err read_samples(const reading *r, const json_t *list, const uint32_t **out,
                           uint32_t *count) {
    uint32_t *sample;
    uint32_t begin;
    uint32_t end;
    uint32_t at = 0;
    rp_err err;
    *count = 0;
    if (!json_is_array(list)) {
        return rp_fail(RP_ERR_USAGE, "%s: site '%s': expected a list of samples", r->path, r->site);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        RP_TRY(read_range(r, json_array_get(list, i), &begin, &end));
        if (i > 0 && begin < at) {
            return rp_fail(RP_ERR_USAGE, "%s: site '%s': expected samples in ascending order",
                           r->path, r->site);
        }
        at = end;
        RP_TRY(take_range(r, begin, end, count));
    }
    RP_TRY(RP_ARENA_NEW(r->arena, *count + 1, &sample));
    *out = sample;
    for (size_t i = 0; i < json_array_size(list); i++) {
        RP_TRY(read_range(r, json_array_get(list, i), &begin, &end));
        while (begin < end) {
            *sample++ = begin++;
        }
    }
fail:
    return err;
}

static rp_err read_site(reading *r, const json_t *object, rp_site_samples *out) {
    const json_t *validation = json_object_get(object, "validation");
    rp_err err;
    RP_TRY(read_string(r, object, "name", &out->name));
    if (!rp_site_name_is_valid(out->name) || rp_split_list_find(r->list, out->name)) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: 'name': expected a name of at most %d letters, digits, '.', '_' and "
                       "'-' that no other site has",
                       r->path, RP_SITE_NAME_MAX);
    }
    r->site = out->name;
    RP_TRY(read_samples(r, json_object_get(object, "train"), &out->train, &out->train_count));
    if (out->train_count == 0) {
        return rp_fail(RP_ERR_USAGE, "%s: site '%s' has no training sample", r->path, r->site);
    }
    if (validation) {
        RP_TRY(read_samples(r, validation, &out->validation, &out->validation_count));
    }
fail:
    return err;
}

static rp_err read_sites(reading *r, const json_t *sites) {
    const size_t count = json_array_size(sites); /* 0 unless it is a list */
    rp_site_samples *site;
    rp_err err;
    if (count == 0 || count > RP_SITES_MAX) {
        return rp_fail(RP_ERR_USAGE, "%s: 'sites': expected a list of 1 to %d sites", r->path,
                       RP_SITES_MAX);
    }
    RP_TRY(RP_ARENA_NEW(r->arena, count, &site));
    r->list->site = site;
    for (size_t i = 0; i < count; i++) {
        RP_TRY(read_site(r, json_array_get(sites, i), &site[i]));
        r->list->sites++;
    }
fail:
    return err;
}

rp_err rp_split_file_read(rp_arena *arena, const char *path, rp_split_list *out) {
    reading r = {.path = path, .arena = arena, .list = out};
    json_t *root = NULL;
    rp_arena scratch;
    uint64_t number;
    rp_err err;
    *out = (rp_split_list){0};
    rp_arena_init(&scratch, "split", 0);
    RP_TRY(rp_json_read(path, &root));
    RP_TRY(read_whole(&r, root, "version", 1, &number));
    if (number != 1) {
        RP_TRY(rp_fail(RP_ERR_USAGE, "%s: 'version': expected 1", path));
    }
    RP_TRY(read_whole(&r, root, "samples", INT32_MAX, &number));
    out->samples = (uint32_t)number;
    RP_TRY(read_whole(&r, root, "seed", INT64_MAX, &out->seed));
    RP_TRY(read_string(&r, root, "set", &out->set));
    RP_TRY(read_string(&r, root, "digest", &out->digest));
    RP_TRY(read_string(&r, root, "rule", &out->rule));
    RP_TRY(RP_ARENA_NEW(&scratch, out->samples + 1, &r.taken));
    err = read_sites(&r, json_object_get(root, "sites"));
fail:
    rp_arena_finish(&scratch);
    json_decref(root);
    return err;
}
