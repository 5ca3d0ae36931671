/* The folder of a federated run. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "federation/federation_own.h"
#include "federation/site_files.h"
#include "run/paths.h"
#include "runs/owner.h"
#include "runs/place.h"
#include "sites/state.h"

enum { DEPTH = 16 };

/* ---- removing -------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *facts, int type, struct FTW *where) {
    (void)facts;
    (void)type;
    (void)where;
    return remove(path);
}

/* errors  IO; a folder that does not exist is removed already */
static rp_err remove_tree(const char *path) {
    return access(path, F_OK) != 0 || nftw(path, remove_entry, DEPTH, FTW_DEPTH | FTW_PHYS) == 0
               ? RP_OK
               : rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
}

/* Removes the folder of an open round in one step, so that no kill leaves a part of it. */
static rp_err discard(const rp_federation *f, const char *path) {
    rp_err err;
    RP_TRY(remove_tree(f->discarded));
    if (rename(path, f->discarded) != 0 && errno != ENOENT) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    err = remove_tree(f->discarded);
fail:
    return err;
}

/* ---- taking it ------------------------------------------------------------------------------- */

static rp_err name_folder(rp_federation *f) {
    char *path;
    rp_err err = RP_OK;
    f->folder = f->options.resume ? f->options.run_path : f->options.out;
    if (!f->folder) {
        RP_TRY(rp_run_place_make(&f->arena, f->model_name, "sites", &path));
        f->folder = path;
    }
fail:
    return err;
}

static rp_err name_site(rp_federation *f, rp_site *site) {
    /* No site's name begins with a point. */
    const struct {
        char **to;
        const char *start, *ending;
    } files[] = {{&site->run_yaml, "", "yaml"},
                 {&site->log, "", "log"},
                 {&site->kept, "", "state"},
                 {&site->own, "", "safetensors"},
                 {&site->next_own, ".next-", "safetensors"}};
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        RP_TRY(rp_arena_printf(&f->arena, files[i].to, "%s/sites/%s%s.%s", f->folder,
                               files[i].start, site->name, files[i].ending));
    }
fail:
    return err;
}

static rp_err name_files(rp_federation *f) {
    const struct {
        char **to;
        const char *name;
    } files[] = {
        {&f->run_yaml, "run.yaml"},           {&f->next_run, ".next-run.yaml"},
        {&f->model_yaml, "model.yaml"},       {&f->journal, "federation.json"},
        {&f->center, "center.safetensors"},   {&f->next_center, "next-center.safetensors"},
        {&f->state, "state.safetensors"},     {&f->next_state, "next-state.safetensors"},
        {&f->weights, "weights.safetensors"}, {&f->scores, "scores.json"},
        {&f->summary, "summary.json"},        {&f->log_path, "log.jsonl"},
        {&f->eval_log, "eval.log"},           {&f->discarded, ".discarded"},
    };
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        RP_TRY(rp_arena_printf(&f->arena, files[i].to, "%s/%s", f->folder, files[i].name));
    }
    for (uint32_t i = 0; i < f->sites; i++) {
        RP_TRY(name_site(f, &f->site[i]));
    }
fail:
    return err;
}

static rp_err lock_folder(rp_federation *f) {
    f->folder_fd = open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->folder_fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", f->folder, strerror(errno));
    }
    return flock(f->folder_fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: another ringpipe trains in this folder; stop it or wait for its end",
                         f->folder);
}

rp_err rp_federation_take_folder(rp_federation *f) {
    char *sites;
    rp_err err;
    RP_TRY(name_folder(f));
    RP_TRY(name_files(f));
    RP_TRY(rp_folders_make(f->folder, 0777));
    RP_TRY(lock_folder(f));
    RP_TRY(f->options.resume ? RP_OK : rp_run_place_check(&f->arena, f->folder));
    RP_TRY(rp_owner_write(f->folder));
    f->owns_folder = true;
    RP_TRY(rp_arena_printf(&f->arena, &sites, "%s/sites", f->folder));
    RP_TRY(rp_folders_make_own(sites, 0777));
    RP_TRY(remove_tree(f->discarded)); /* what a kill has left of it */
    RP_TRY(rp_federation_open_log(f));
fail:
    return err;
}

void rp_federation_leave_folder(rp_federation *f) {
    if (f->log) {
        (void)fclose(f->log);
    }
    if (f->owns_folder) {
        rp_owner_remove(f->folder);
    }
    if (f->folder_fd >= 0) {
        (void)close(f->folder_fd);
    }
}

/* ---- run files of the sites ------------------------------------------------------------------ */

/* `data.site` of a site. JSON with blanks is YAML too. */
static rp_err set_site(rp_arena *arena, rp_node *root, const char *split, const char *name) {
    char text[RP_FEDERATION_PATH];
    char *path;
    char *set;
    rp_err err;
    RP_TRY(rp_paths_absolute(arena, split, &path));
    json_t *site = json_pack("{s:s, s:s}", "split", path, "name", name);
    const size_t used = site ? json_dumpb(site, text, sizeof text, 0) : 0;
    json_decref(site);
    if (used == 0 || used > sizeof text) {
        return rp_fail(RP_ERR_USAGE, "sites.split: expected a path in UTF-8 of less than %zu bytes",
                       sizeof text);
    }
    RP_TRY(rp_arena_printf(arena, &set, "data.site=%.*s", (int)used, text));
    err = rp_config_set(arena, root, set);
fail:
    return err;
}

/* A split file may give a site a validation part, which excludes this key; it is 0 here. */
static rp_err drop_validation(rp_arena *arena, rp_node *root) {
    const rp_node *data = rp_node_at(root, "data");
    char *text;
    char *set;
    rp_err err = RP_OK;
    if (rp_node_at(root, "data.validation")) {
        RP_TRY(rp_config_text_without(arena, data, "validation", &text));
        RP_TRY(rp_arena_printf(arena, &set, "data=%s", text));
        RP_TRY(rp_config_set(arena, root, set));
    }
fail:
    return err;
}

/* Writes the run file of a site: `from` for its samples, with the model of the whole run. If it
 * changes, the site begins its open round again. */
static rp_err write_site(rp_federation *f, rp_arena *arena, const rp_node *from,
                         const rp_site *site) {
    char folder[RP_FEDERATION_PATH];
    rp_node *before;
    rp_node *root;
    char *text;
    rp_err err;
    RP_TRY(rp_config_text_without(arena, from, "sites", &text));
    RP_TRY(rp_config_read_text(arena, text, strlen(text), site->run_yaml, &root));
    RP_TRY(rp_config_set(arena, root, "model=../model.yaml"));
    RP_TRY(rp_config_set(arena, root, "train.eval_epochs=0")); /* that of the run counts rounds */
    RP_TRY(drop_validation(arena, root));
    RP_TRY(set_site(arena, root, f->keys.split, site->name));
    RP_TRY(rp_config_read_file_if_any(arena, site->run_yaml, &before));
    if (before && rp_node_same(before, root)) {
        return RP_OK;
    }
    rp_federation_name_round(f, f->round + 1, site, folder);
    RP_TRY(discard(f, folder));
    RP_TRY(rp_site_drop_state(site->kept, f->round + 1));
    err = rp_config_replace(root, site->run_yaml);
fail:
    return err;
}

/* A site with a run file of its own has its own ring and its own data, but the run's model. */
static rp_err write_own_site(rp_federation *f, const rp_node *file, const rp_site *site) {
    rp_arena arena;
    rp_runfile own = {0};
    rp_err err;
    rp_arena_init(&arena, "site", 0);
    RP_TRY(rp_runfile_read(&arena, rp_node_text(file), NULL, 0, &own));
    RP_TRY(rp_paths_make_absolute(&arena, own.root));
    err = write_site(f, &arena, own.root, site);
fail:
    rp_runfile_close(&own);
    rp_arena_finish(&arena);
    return err;
}

/* Reads the file as the site will: this checks the split file against the data set. */
static rp_err check_site(const rp_site *site) {
    rp_arena arena;
    rp_runfile own = {0};
    rp_arena_init(&arena, "site", 0);
    const rp_err err = rp_runfile_read(&arena, site->run_yaml, NULL, 0, &own);
    rp_runfile_close(&own);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_federation_write_sites(rp_federation *f) {
    bool checked = false;
    rp_node *whole; /* with all defaults, so that it is the same for a resume */
    rp_err err;
    RP_TRY(rp_config_read_file(&f->arena, f->next_run, &whole));
    for (uint32_t i = 0; i < f->sites; i++) {
        const rp_node *file = rp_site_files_find(&f->keys, f->site[i].name);
        RP_TRY(file ? write_own_site(f, file, &f->site[i])
                    : write_site(f, &f->arena, whole, &f->site[i]));
        RP_TRY(file || !checked ? check_site(&f->site[i]) : RP_OK);
        checked = checked || !file;
    }
fail:
    return err;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

void rp_federation_name_round(const rp_federation *f, uint64_t round, const rp_site *site,
                              char out[RP_FEDERATION_PATH]) {
    (void)snprintf(out, RP_FEDERATION_PATH, "%.3900s/rounds/%" PRIu64 "/%.64s", f->folder, round,
                   site->name);
}

void rp_federation_remove_weights(const rp_federation *f, uint64_t round, const rp_site *site) {
    static const char *const names[] = {
        "start.safetensors", "weights.safetensors",  "update.safetensors",
        "error.safetensors", "received.safetensors", "run/weights.safetensors",
        "run/checkpoint",    "run/trace.json",       "run/events.out.tfevents.ringpipe"};
    char folder[RP_FEDERATION_PATH];
    char path[RP_FEDERATION_PATH + 32];
    rp_federation_name_round(f, round, site, folder);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)nftw(path, remove_entry, DEPTH, FTW_DEPTH | FTW_PHYS);
    }
}

rp_err rp_federation_remove_round(const rp_federation *f, uint64_t round) {
    char path[RP_FEDERATION_PATH];
    rp_err err;
    (void)snprintf(path, sizeof path, "%.3900s/rounds/%" PRIu64, f->folder, round);
    RP_TRY(discard(f, path));
    for (uint32_t i = 0; i < f->sites; i++) { /* after the answers, which promise them */
        RP_TRY(rp_site_drop_state(f->site[i].kept, round));
    }
fail:
    return err;
}
