#include "agent/hosts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"

enum { HOSTS_MAX = 64, ADDRESS_MAX = 99, NAME_SHOWN = 64 };

static rp_err read_host(rp_arena *arena, rp_node *host, rp_trusted *out) {
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
    *out = (rp_trusted){.name = name, .key = copy};
fail:
    return err;
}

rp_err rp_hosts_read(rp_arena *arena, const char *path, const rp_trusted **hosts, uint32_t *count) {
    static const char *const keys[] = {"hosts", "boards", "groups",
                                       NULL}; /* the controller's two */
    rp_node *root;
    rp_trusted *all;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, path, &root));
    RP_TRY(rp_node_keys(root, keys));
    RP_TRY(rp_node_need(root, "hosts"));
    const rp_node *list = rp_node_find(root, "hosts");
    if (!rp_node_is_list(list) || rp_node_count(list) > HOSTS_MAX) {
        return rp_node_fail(list, "expected a list of at most %d {name, key}", HOSTS_MAX);
    }
    uint32_t more = rp_node_count(list);
    RP_TRY(RP_ARENA_NEW(arena, *count + more + 1, &all));
    for (uint32_t i = 0; i < *count; i++) {
        all[i] = (*hosts)[i];
    }
    for (uint32_t i = 0; i < more; i++) {
        RP_TRY(read_host(arena, rp_node_item(list, i), &all[*count + i]));
    }
    *hosts = all;
    *count += more;
fail:
    return err;
}

/* ---- the host that is dialled ---------------------------------------------------------------- */

bool rp_hosts_is_address(const char *text) {
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    const unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    return colon && colon > text && strchr(text, ':') == colon && colon - text <= ADDRESS_MAX &&
           isdigit((unsigned char)colon[1]) && !*end && port >= 1 && port <= 65533 &&
           strcspn(text, " \t/*@") == strlen(text);
}

bool rp_hosts_is_placeholder(const char *address) {
    return strncmp(address, "HOST:", 5) == 0 || strncmp(address, "ADDRESS:", 8) == 0;
}

static rp_err find_name(const char *name, size_t bytes, const rp_trusted *hosts, uint32_t count,
                        const char **key) {
    char known[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (strlen(hosts[i].name) == bytes && strncmp(hosts[i].name, name, bytes) == 0) {
            *key = hosts[i].key;
            return RP_OK;
        }
        if (used < sizeof known) {
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     hosts[i].name);
        }
    }
    return rp_fail(RP_ERR_USAGE, "--host: no trusted host is called '%.*s'; trusted are: %s",
                   (int)(bytes < NAME_SHOWN ? bytes : NAME_SHOWN), name, known);
}

rp_err rp_hosts_find(rp_arena *arena, const char *text, const rp_trusted *hosts, uint32_t count,
                     const char **endpoint, const char **key) {
    const char *at = strchr(text, '@');
    const char *address = at ? at + 1 : text;
    char *copy;
    rp_err err;
    address += strncmp(address, "tcp://", 6) == 0 ? 6 : 0;
    if (!rp_hosts_is_address(address)) {
        return rp_fail(RP_ERR_USAGE,
                       "--host: expected [NAME@]ADDRESS:PORT, ADDRESS a name or an IPv4 address, "
                       "PORT from 1 to 65533, found '%s'",
                       text);
    }
    if (rp_hosts_is_placeholder(address)) {
        return rp_fail(RP_ERR_USAGE,
                       "--host: '%s' is the manual's example: expected this host's "
                       "own name or address",
                       address);
    }
    if (count == 0) {
        return rp_fail(RP_ERR_USAGE, "--host: this board trusts no host, so it does not know the "
                                     "host's key: add it with `ringpipe keys trust NAME KEY`");
    }
    if (!at && count > 1) {
        return rp_fail(
            RP_ERR_USAGE,
            "--host: %u hosts are trusted; expected the name of one of them, as in %s@%s", count,
            hosts[0].name, address);
    }
    *key = hosts[0].key;
    RP_TRY(at ? find_name(text, (size_t)(at - text), hosts, count, key) : RP_OK);
    RP_TRY(rp_arena_printf(arena, &copy, "tcp://%s", address));
    *endpoint = copy;
fail:
    return err;
}
