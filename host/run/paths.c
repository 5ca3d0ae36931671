#include "run/paths.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "data/vocab.h"

enum { SHOWN_BYTES = 400 };

/* Keys whose value is a path; `train.init` unless it is a map or `none`, `data.test` unless it is a
 * count, `data.tokens` if it ends in .json. */
static const char *const keys[] = {
    "data.path",       "data.test",   "data.tokens", "data.site.split", "train.init",
    "train.init.from", "ring.roster", "keys",        "sites.split",     "sites.availability.trace"};

static bool is_path(const char *key, const rp_node *node) {
    const char *text = node && rp_node_is_scalar(node) ? rp_node_text(node) : "";
    const bool nothing = (strcmp(key, "train.init") == 0 && strcmp(text, "none") == 0) ||
                         (strcmp(key, "data.tokens") == 0 && !rp_tokens_names_file(text));
    return text[0] && text[strspn(text, "0123456789")] && !nothing;
}

bool rp_paths_is_path(const char *text) {
    const size_t length = strlen(text);
    return strchr(text, '/') || (length > 5 && strcmp(text + length - 5, ".yaml") == 0);
}

typedef struct {
    rp_arena *arena;
    rp_err (*node)(rp_arena *arena, rp_node *node); /* is called for each node that is a path */
} visit;

static rp_err visit_profile(const visit *v, rp_node *node) {
    return node && rp_node_is_scalar(node) && rp_paths_is_path(rp_node_text(node))
               ? v->node(v->arena, node)
               : RP_OK;
}

static rp_err visit_link(const visit *v, rp_node *link) {
    rp_node *trace = rp_node_at(link, "trace");
    rp_err err;
    RP_TRY(visit_profile(v, rp_node_at(link, "profile")));
    if (trace && rp_node_is_scalar(trace) && rp_node_text(trace)[0] &&
        strcmp(rp_node_text(trace), "none") != 0) {
        RP_TRY(v->node(v->arena, trace));
    }
fail:
    return err;
}

static rp_err visit_links(const visit *v, rp_node *root) {
    rp_node *link = rp_node_at(root, "ring.link");
    const rp_node *hops = link && rp_node_is_map(link) ? rp_node_at(link, "hops") : NULL;
    rp_err err;
    RP_TRY(visit_profile(v, link));
    RP_TRY(link && rp_node_is_map(link) ? visit_link(v, link) : RP_OK);
    for (uint32_t i = 0; hops && rp_node_is_list(hops) && i < rp_node_count(hops); i++) {
        rp_node *hop = rp_node_item(hops, i);
        RP_TRY(rp_node_is_map(hop) ? visit_link(v, hop) : RP_OK);
    }
fail:
    return err;
}

/* Run files of sites. */
static rp_err visit_sites(const visit *v, rp_node *root) {
    const rp_node *files = rp_node_at(root, "sites.files");
    rp_err err = RP_OK;
    for (uint32_t i = 0; files && rp_node_is_map(files) && i < rp_node_count(files); i++) {
        rp_node *file = rp_node_item(files, i);
        RP_TRY(rp_node_is_scalar(file) ? v->node(v->arena, file) : RP_OK);
    }
fail:
    return err;
}

static rp_err visit_paths(const visit *v, rp_node *root) {
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        rp_node *node = rp_node_at(root, keys[i]);
        RP_TRY(is_path(keys[i], node) ? v->node(v->arena, node) : RP_OK);
    }
    RP_TRY(visit_links(v, root));
    RP_TRY(visit_sites(v, root));
fail:
    return err;
}

static rp_err resolve_node(rp_arena *arena, rp_node *node) {
    const char *path;
    const rp_err err = rp_node_path(arena, node, &path);
    if (err == RP_OK && path != rp_node_text(node)) {
        rp_node_set_text(node, path);
    }
    return err;
}

rp_err rp_paths_resolve(rp_arena *arena, rp_node *root) {
    const visit v = {arena, resolve_node};
    return visit_paths(&v, root);
}

rp_err rp_paths_absolute(rp_arena *arena, const char *path, char **out) {
    char here[4096];
    if (path[0] == '/') {
        return rp_arena_string(arena, path, out);
    }
    return getcwd(here, sizeof here)
               ? rp_arena_printf(arena, out, "%s/%s", here, path)
               : rp_fail(RP_ERR_IO, "cannot find the current folder: %s", strerror(errno));
}

static rp_err check_node(rp_arena *arena, rp_node *node) {
    char shown[SHOWN_BYTES];
    char *path;
    rp_err err = rp_paths_absolute(arena, rp_node_text(node), &path);
    if (err == RP_OK && !rp_utf8_is_valid(path)) {
        return rp_node_fail(node,
                            "the path is not UTF-8, so it cannot be written to run.yaml of the run "
                            "folder: %s",
                            rp_utf8_show(path, SHOWN_BYTES, shown, sizeof shown));
    }
    return err;
}

rp_err rp_paths_check(rp_arena *arena, rp_node *root) {
    const visit v = {arena, check_node};
    return visit_paths(&v, root);
}

static rp_err make_absolute(rp_arena *arena, rp_node *node) {
    char *path;
    if (rp_node_text(node)[0] == '/') {
        return RP_OK;
    }
    const rp_err err = rp_paths_absolute(arena, rp_node_text(node), &path);
    if (err == RP_OK) {
        rp_node_set_text(node, path);
    }
    return err;
}

rp_err rp_paths_make_absolute(rp_arena *arena, rp_node *root) {
    const visit v = {arena, make_absolute};
    return visit_paths(&v, root);
}
