#include "federation/site_files.h"

#include <string.h>

const rp_node *rp_site_files_find(const rp_federated_keys *keys, const char *name) {
    for (uint32_t i = 0; keys->files && i < rp_node_count(keys->files); i++) {
        if (strcmp(rp_node_key(keys->files, i), name) == 0) {
            return rp_node_item(keys->files, i);
        }
    }
    return NULL;
}

static bool is_site(const rp_split_list *list, const char *name) {
    for (uint32_t i = 0; i < list->sites; i++) {
        if (strcmp(list->site[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_rates_of(const rp_runfile *own, const rp_runfile *run) {
    const rp_lr_schedule *a = &own->lr;
    const rp_lr_schedule *b = &run->lr;
    return own->optim.lr == run->optim.lr && a->kind == b->kind &&
           a->warmup_steps == b->warmup_steps && a->power == b->power && a->min_lr == b->min_lr;
}

static rp_err check_file(const rp_runfile *run, const rp_node *file) {
    rp_arena arena;
    rp_runfile own = {0};
    rp_err err;
    rp_arena_init(&arena, "site", 0);
    RP_TRY(rp_runfile_read(&arena, rp_node_text(file), NULL, 0, &own));
    if (!rp_node_same(own.model_root, run->model_root)) {
        RP_TRY(rp_node_fail(file, "%s has another model than this run: expected the same",
                            rp_node_text(file)));
    }
    if (own.federated.given || own.lanes.count > 0) {
        RP_TRY(rp_node_fail(file, "%s has `sites` or `lanes`: expected a run with one ring",
                            rp_node_text(file)));
    }
    if (run->federated.options.drift && !has_rates_of(&own, run)) {
        RP_TRY(rp_node_fail(file,
                            "%s has other learning rates than this run, but sites.drift "
                            "needs the same sum of them at all sites: expected the same "
                            "optimizer.lr and lr_schedule",
                            rp_node_text(file)));
    }
    RP_TRY(rp_federated_check_optimizer(&run->federated, &own.optim, &own.lr,
                                        rp_node_find(own.root, "optimizer")));
fail:
    rp_runfile_close(&own);
    rp_arena_finish(&arena);
    return err;
}

/* A roster is one ring, which trains one site at a time. */
static rp_err check_ring(const rp_runfile *run, uint32_t shared) {
    return run->local || shared < 2 || run->federated.at_once == 1
               ? RP_OK
               : rp_node_fail(rp_node_at(run->root, "sites.at_once"),
                              "%u sites train in the ring of this run, whose boards are a roster "
                              "and train one site at a time: expected 1, or `sites.files` with a "
                              "ring for each of them",
                              shared);
}

rp_err rp_site_files_check(const rp_runfile *run, const rp_split_list *list) {
    const rp_node *files = run->federated.files;
    const uint32_t count = files ? rp_node_count(files) : 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < count; i++) {
        const rp_node *file = rp_node_item(files, i);
        if (!is_site(list, rp_node_key(files, i))) {
            return rp_node_fail(file, "%s has no site '%s'", run->federated.split,
                                rp_node_key(files, i));
        }
        RP_TRY(check_file(run, file));
    }
    err = check_ring(run, list->sites - count);
fail:
    return err;
}
