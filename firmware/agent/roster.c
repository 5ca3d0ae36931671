#include "agent/roster.h"

#include <string.h>

#include "base/config.h"
#include "link/link.h"

enum { HOSTS_MAX = 64 };

static rp_err read_host(rp_arena *arena, rp_node *host, const char **key) {
    const char *name;
    const char *text = "";
    char z85[RP_KEY_TEXT];
    char *copy;
    rp_err err;
    if (!rp_node_is_map(host)) {
        return rp_node_fail(host, "expected {name, key}");
    }
    RP_TRY(rp_node_need(host, "name"));
    RP_TRY(rp_node_string(host, "name", &name));
    RP_TRY(rp_node_need(host, "key"));
    RP_TRY(rp_node_string(host, "key", &text));
    RP_TRY(rp_node_done(host));
    const char *wrong = rp_key_parse(text, z85);
    if (wrong) {
        return rp_node_fail(rp_node_find(host, "key"), "key of %s: %s", name, wrong);
    }
    RP_TRY(rp_arena_string(arena, z85, &copy));
    *key = copy;
fail:
    return err;
}

rp_err rp_roster_hosts(rp_arena *arena, const char *path, const char *const **keys,
                       uint32_t *count) {
    rp_node *root;
    const char **all;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, path, &root));
    rp_node *hosts = rp_node_find(root, "hosts");
    (void)rp_node_find(root, "boards"); /* the controller's half */
    RP_TRY(rp_node_done(root));
    if (!hosts || !rp_node_is_list(hosts) || rp_node_count(hosts) > HOSTS_MAX) {
        return rp_node_fail(root, "hosts: expected a list of at most %d {name, key}", HOSTS_MAX);
    }
    uint32_t more = rp_node_count(hosts);
    RP_TRY(RP_ARENA_NEW(arena, *count + more + 1, &all));
    for (uint32_t i = 0; i < *count; i++) {
        all[i] = (*keys)[i];
    }
    for (uint32_t i = 0; i < more; i++) {
        RP_TRY(read_host(arena, rp_node_item(hosts, i), &all[*count + i]));
    }
    *keys = all;
    *count += more;
fail:
    return err;
}
