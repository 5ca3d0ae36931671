#include "image/node.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/replace.h"
#include "image/wifi.h"

enum { TEXT_BYTES = 2048, PATH_BYTES = 4096 };

bool rp_image_is_name(const char *name) {
    const size_t length = strlen(name);
    for (const char *at = name; *at; at++) {
        if (!isalnum((unsigned char)*at) && *at != '-') {
            return false;
        }
    }
    return length > 0 && length <= RP_IMAGE_NAME_MAX && name[0] != '-' && name[length - 1] != '-' &&
           strcmp(name, "host") != 0;
}

/* Checks a text that is used inside of double quotes of a shell, and as a word of systemd. */
static rp_err check_word(const char *what, const char *text) {
    for (const char *at = text; at && *at; at++) {
        if (!isalnum((unsigned char)*at) && !strchr("._:@/-[]", *at)) {
            return rp_fail(RP_ERR_USAGE, "%s: expected an address, found '%s'", what, text);
        }
    }
    return RP_OK;
}

/* Checks a file of public keys, one in each line, as ssh-keygen writes them. */
static rp_err check_ssh(const char *path, const char *text) {
    uint32_t line = 0;
    uint32_t keys = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        static const char *const kinds[] = {"ssh-", "ecdsa-", "sk-"};
        bool is_key = false;
        line++;
        if (strncmp(at, "-----BEGIN", 10) == 0) {
            return rp_fail(RP_ERR_USAGE,
                           "%s:%u: this is a secret key; expected the public one, whose file name "
                           "ends in .pub",
                           path, line);
        }
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            is_key = is_key || strncmp(at, kinds[i], strlen(kinds[i])) == 0;
        }
        if (!is_key && *at != '\n' && *at != '#') {
            return rp_fail(RP_ERR_USAGE, "%s:%u: expected a public key of ssh (ssh-ed25519 ...)",
                           path, line);
        }
        keys += is_key;
    }
    return keys > 0 ? RP_OK
                    : rp_fail(RP_ERR_USAGE, "%s: expected at least one public key of ssh", path);
}

static rp_err read_ssh(rp_arena *arena, const char *path, const char **text) {
    size_t bytes;
    rp_err err;
    RP_TRY(rp_config_load(arena, path, text, &bytes));
    RP_TRY(check_ssh(path, *text));
fail:
    return err;
}

rp_err rp_image_write_file(const char *folder, const char *name, const char *text) {
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        return rp_fail(RP_ERR_USAGE, "%s: the path is too long", folder);
    }
    FILE *file = rp_replace_begin(path);
    const bool good = file && fchmod(fileno(file), 0600) == 0 && fputs(text, file) >= 0;
    return rp_replace_end(file, path, good);
}

static void write_conf(const rp_image_node *node, char *out, size_t bytes) {
    (void)snprintf(out, bytes,
                   "# Identity of this board; first-boot reads it once.\n"
                   "node=\"%s\"\n"
                   "agent=\"%s %s --name %s --board %s --enrol %s\"\n",
                   node->name, node->dial ? "--host" : "--listen",
                   node->dial ? node->dial : node->listen, node->name, node->board, node->token);
}

/* Checks the files, and writes them if `folder` is not NULL. */
static rp_err put_node(const rp_image_node *node, const char *folder) {
    char text[TEXT_BYTES];
    const char *more = NULL;
    size_t bytes;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "image", 0);
    if (!rp_image_is_name(node->name)) {
        RP_TRY(rp_fail(RP_ERR_USAGE,
                       "--node '%s': expected 1 to %d letters, digits and -, as in a host name",
                       node->name, RP_IMAGE_NAME_MAX));
    }
    RP_TRY(check_word("--listen", node->listen));
    RP_TRY(check_word("--dial", node->dial));
    RP_TRY(check_word("--host", strchr(node->token, '@')));
    write_conf(node, text, sizeof text);
    RP_TRY(folder ? rp_image_write_file(folder, "node.conf", text) : RP_OK);
    if (node->ssh_key) {
        RP_TRY(read_ssh(&arena, node->ssh_key, &more));
        RP_TRY(folder ? rp_image_write_file(folder, "authorized_keys", more) : RP_OK);
    }
    if (node->wifi) {
        rp_image_wifi wifi;
        RP_TRY(rp_image_read_wifi(&arena, node->wifi, &wifi));
        RP_TRY(rp_image_wifi_text(&arena, &wifi, &more));
        RP_TRY(folder ? rp_image_write_file(folder, "wifi.conf", more) : RP_OK);
    }
    if (node->update_key) {
        RP_TRY(rp_config_load(&arena, node->update_key, &more, &bytes));
        RP_TRY(folder ? rp_image_write_file(folder, "update.key", more) : RP_OK);
    }
fail:
    explicit_bzero(text, sizeof text);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_image_check_node(const rp_image_node *node) {
    return put_node(node, NULL);
}

rp_err rp_image_write_node(const rp_image_node *node, const char *folder) {
    return put_node(node, folder);
}
