#include "run/links.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/listing.h"
#include "run/paths.h"
#include "run/tracefile.h"

enum { PROFILES_MAX = 64 };

/* Limit of the text of all links, which is a part of one message to a board. */
#define TEXT_BYTES_MAX ((size_t)800 << 10)

static const char ending[] = ".yaml";

/* ---- names ----------------------------------------------------------------------------------- */

const char *rp_links_folder(void) {
    const char *folder = getenv("RINGPIPE_LINKS");
    return folder ? folder : RP_LINKS_DIR;
}

rp_err rp_links_names(rp_arena *arena, const char *const **out, uint32_t *count) {
    return rp_listing_read(arena, rp_links_folder(), ending, out, count);
}

static rp_err fail_unknown(rp_arena *arena, const rp_node *node, const char *name) {
    const char *const *names;
    uint32_t count;
    char *known;
    rp_err err;
    RP_TRY(rp_links_names(arena, &names, &count));
    RP_TRY(rp_arena_string(arena, "", &known));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(rp_arena_printf(arena, &known, "%s%s%s", known, i ? ", " : "", names[i]));
    }
    return rp_node_fail(node, "unknown link profile '%s': expected %s, or a path to a file", name,
                        known);
fail:
    return err;
}

static rp_err path_of_name(rp_arena *arena, const char *name, char **out) {
    return rp_arena_printf(arena, out, "%s/%s%s", rp_links_folder(), name, ending);
}

rp_err rp_links_about(rp_arena *arena, const char *name, const char **out) {
    rp_node *root;
    char *path;
    rp_err err;
    *out = "";
    RP_TRY(path_of_name(arena, name, &path));
    RP_TRY(rp_config_read_file(arena, path, &root));
    RP_TRY(rp_node_string(root, "about", out));
fail:
    return err;
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct {
    bool in_profile;   /* paths are relative to the profile; those of a run file are resolved */
    uint32_t profiles; /* read so far */
} place;

static rp_err read_trace(void *context, rp_arena *arena, const rp_node *node,
                         const rp_link_trace **out) {
    const place *at = context;
    const char *path = rp_node_text(node);
    rp_err err;
    RP_TRY(at->in_profile ? rp_node_path(arena, node, &path) : RP_OK);
    RP_TRY(rp_tracefile_read(arena, path, out));
fail:
    return err;
}

static rp_err read_profile_file(rp_arena *arena, const char *path, rp_link_profile *all,
                                rp_link_hops *hops) {
    place here = {.in_profile = true};
    const rp_link_ends ends = {.reader = {.arena = arena, .context = &here, .trace = read_trace}};
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, path, &root));
    (void)rp_node_find(root, "about"); /* known keys without an effect on the link */
    (void)rp_node_find(root, "source");
    RP_TRY(rp_link_hops_parse(root, &ends, all, hops));
fail:
    return err;
}

static rp_err read_profile(void *context, rp_arena *arena, const rp_node *node,
                           rp_link_profile *all, rp_link_hops *hops) {
    const char *name = rp_node_text(node);
    place *at = context;
    char *path;
    rp_err err;
    if (at->profiles++ == PROFILES_MAX) {
        return rp_node_fail(node, "expected at most %d profiles in one run file", PROFILES_MAX);
    }
    if (rp_paths_is_path(name)) {
        return read_profile_file(arena, name, all, hops);
    }
    RP_TRY(path_of_name(arena, name, &path));
    if (access(path, F_OK) != 0) {
        return fail_unknown(arena, node, name);
    }
    RP_TRY(read_profile_file(arena, path, all, hops));
fail:
    return err;
}

/* ---- ring.link ------------------------------------------------------------------------------- */

static rp_err check_size(const rp_node *link, const rp_link_profile *all,
                         const rp_link_hops *hops) {
    rp_arena arena;
    char *text;
    rp_arena_init(&arena, "text of links", 0);
    rp_err err = rp_link_hops_text(&arena, all, hops, "  ", &text);
    if (err == RP_OK && strlen(text) > TEXT_BYTES_MAX) {
        err = rp_node_fail(link,
                           "the links with all traces take %zu bytes, and a board accepts at most "
                           "%zu: expected fewer or shorter traces",
                           strlen(text), TEXT_BYTES_MAX);
    }
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_links_read(rp_arena *arena, rp_node *link, uint32_t boards, const char *const *name,
                     rp_link_profile *all, rp_link_hops *hops) {
    place at = {0};
    const rp_link_ends ends = {.boards = boards,
                               .name = name,
                               .reader = {.arena = arena, .context = &at, .trace = read_trace},
                               .profile = read_profile};
    rp_err err;
    RP_TRY(rp_link_hops_parse(link, &ends, all, hops));
    RP_TRY(check_size(link, all, hops));
fail:
    return err;
}
