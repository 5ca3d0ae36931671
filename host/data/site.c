#include "data/data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

bool rp_data_has_class(const rp_data *data) {
    return data->classes > 0 && data->target_width == 1 && !data->masks && !data->by_token;
}

rp_err rp_data_class(const rp_data *data, uint32_t stored, int32_t *out) {
    const rp_data_kind *kind = data->kind;
    const size_t count = rp_shape_count(&data->sample);
    rp_arena scratch;
    double *value; /* room for the sample in any of the three types */
    rp_err err;
    *out = 0;
    if (kind->read_label) {
        return kind->read_label(data, stored, out);
    }
    rp_arena_init(&scratch, "class", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, count + 1, &value));
    err = kind->read_ids
              ? kind->read_ids(data, RP_SPLIT_TRAIN, stored, (int32_t *)(void *)value, NULL, out)
          : kind->read_real
              ? kind->read_real(data, RP_SPLIT_TRAIN, stored, value, NULL, out)
              : kind->read(data, RP_SPLIT_TRAIN, stored, (float *)(void *)value, NULL, out);
fail:
    rp_arena_finish(&scratch);
    return err;
}

rp_err rp_data_split_digest(const rp_data *data, char out[RP_SPLIT_DIGEST]) {
    const uint32_t count = data->count[RP_SPLIT_TRAIN] + data->count[RP_SPLIT_VALIDATION];
    char about[128];
    uint64_t hash;
    rp_err err = RP_OK;
    (void)snprintf(about, sizeof about, "%s %u %zu %u", data->kind->name, count,
                   rp_shape_count(&data->sample), data->classes);
    hash = XXH3_64bits(about, strlen(about));
    for (uint32_t i = 0; i < count && err == RP_OK && rp_data_has_class(data); i++) {
        int32_t label;
        err = rp_data_class(data, i, &label);
        hash = err == RP_OK ? XXH3_64bits_withSeed(&label, sizeof label, hash) : hash;
    }
    (void)snprintf(out, RP_SPLIT_DIGEST, "%016" PRIx64, hash);
    return err;
}

static rp_err check_set(const rp_data *data, const rp_node *at, const char *path,
                        const rp_split_list *list) {
    char digest[RP_SPLIT_DIGEST];
    const rp_err err = rp_data_split_digest(data, digest);
    if (err != RP_OK) {
        return err;
    }
    if (strcmp(list->set, data->kind->name) != 0 || list->samples != data->count[RP_SPLIT_TRAIN] ||
        strcmp(list->digest, digest) != 0) {
        return rp_node_fail(at,
                            "%s divides %u samples of set '%s' with digest %s, but this set is "
                            "'%s' with %u samples and digest %s: divide it with `ringpipe data "
                            "split`",
                            path, list->samples, list->set, list->digest, data->kind->name,
                            data->count[RP_SPLIT_TRAIN], digest);
    }
    return RP_OK;
}

static rp_err check_file(const rp_node *at, const char *path) {
    return access(path, R_OK) == 0
               ? RP_OK
               : rp_node_fail(at,
                              "'%s': %s: expected a file that `ringpipe data split` has written",
                              path, strerror(errno));
}

static rp_err find_site(const rp_split_list *list, const rp_node *at, const char *path,
                        const char *name, const rp_site_samples **out) {
    *out = rp_split_list_find(list, name);
    return *out ? RP_OK
                : rp_node_fail(at, "%s has no site '%s'; its %u sites are from '%s' to '%s'", path,
                               name, list->sites, list->site[0].name,
                               list->site[list->sites - 1].name);
}

static void take_samples(rp_data *data, const rp_site_samples *site) {
    data->sited = true;
    data->part[RP_SPLIT_TRAIN] = site->train;
    data->count[RP_SPLIT_TRAIN] = site->train_count;
    if (site->validation_count > 0) {
        data->part[RP_SPLIT_VALIDATION] = site->validation;
        data->count[RP_SPLIT_VALIDATION] = site->validation_count;
    }
}

rp_err rp_data_take_site(rp_arena *arena, rp_data *data, rp_node *keys) {
    rp_node *node = rp_node_find(keys, "site");
    const rp_site_samples *site;
    rp_split_list list;
    const char *path;
    const char *name;
    double held_out = 0;
    rp_err err;
    RP_TRY(rp_node_default(keys, "site", "none"));
    if (!node || (rp_node_is_scalar(node) && strcmp(rp_node_text(node), "none") == 0)) {
        return RP_OK;
    }
    if (!rp_node_is_map(node)) {
        return rp_node_fail(node, "expected a map like {split: split.json, name: site-0}");
    }
    RP_TRY(rp_node_need(node, "split"));
    RP_TRY(rp_node_string(node, "split", &path));
    RP_TRY(rp_node_need(node, "name"));
    RP_TRY(rp_node_string(node, "name", &name));
    RP_TRY(rp_node_done(node));
    RP_TRY(check_file(rp_node_find(node, "split"), path));
    RP_TRY(rp_split_file_read(arena, path, &list));
    RP_TRY(check_set(data, rp_node_find(node, "split"), path, &list));
    RP_TRY(find_site(&list, rp_node_find(node, "name"), path, name, &site));
    RP_TRY(rp_node_f64(keys, "validation", 0, 1e9, &held_out)); /* run.yaml of a folder has 0 */
    if (site->validation_count > 0 && held_out > 0) {
        return rp_node_fail(rp_node_find(keys, "validation"),
                            "%s has a validation part for site '%s': remove this key", path, name);
    }
    take_samples(data, site);
fail:
    return err;
}
