/* keys: this account's keys and the trusted ones. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json_print.h"
#include "base/quote.h"
#include "cli/roster_args.h"
#include "link/link.h"
#include "run/runfile.h"

/* ---- printing -------------------------------------------------------------------------------- */

static json_t *key_object(const char *z85) {
    char word[RP_KEY_WORD];
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_key_write(z85, word);
    rp_key_fingerprint(z85, fingerprint);
    return json_pack("{s:s, s:s}", "key", word, "fingerprint", fingerprint);
}

/* Prints only the key on standard output, for scripts; the fingerprint goes to standard error. */
static rp_err print_key(const rp_cli_args *args, const char *z85) {
    char word[RP_KEY_WORD];
    char fingerprint[RP_KEY_FINGERPRINT];
    if (rp_cli_is_json(args)) {
        return rp_json_print(json_pack("{s:i, s:o}", "version", 1, "own", key_object(z85)), 0,
                             stdout);
    }
    rp_key_write(z85, word);
    rp_key_fingerprint(z85, fingerprint);
    (void)printf("%s\n", word);
    (void)fflush(stdout);
    if (!args->quiet) {
        rp_print(stderr, "fingerprint %s\n", fingerprint);
    }
    return RP_OK;
}

static void print_line(const char *name, const char *z85) {
    char word[RP_KEY_WORD];
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_key_write(z85, word);
    rp_key_fingerprint(z85, fingerprint);
    (void)printf("%-16s  %s  %s\n", name, fingerprint, word);
}

/* ---- own keys -------------------------------------------------------------------------------- */

static rp_err print_roster_line(const rp_cli_args *args, const char *z85) {
    const char *name = args->words.item[0];
    const char *address = args->words.count > 1 ? args->words.item[1] : NULL;
    char word[RP_KEY_WORD];
    rp_err err;
    RP_TRY(rp_cli_check_name(name));
    if (address && strcmp(address, "dials") != 0 && !rp_roster_is_address(address)) {
        return rp_fail(RP_ERR_USAGE,
                       "invalid address '%s': expected " RP_ROSTER_ADDRESS ", or dials", address);
    }
    rp_key_write(z85, word);
    (void)printf("  - {name: ");
    rp_quote_put(stdout, name);
    if (address) {
        (void)printf(", address: ");
        rp_quote_put(stdout, address);
    }
    (void)printf(", key: %s}\n", word);
fail:
    return err;
}

static rp_err show_own(const rp_cli_args *args, const char *folder) {
    rp_keypair pair;
    rp_err err = rp_keys_read(folder, &pair);
    if (err == RP_OK) {
        err = args->as_line ? print_roster_line(args, pair.public_text)
                            : print_key(args, pair.public_text);
    }
    explicit_bzero(&pair, sizeof pair);
    return err;
}

/* ---- the list -------------------------------------------------------------------------------- */

static rp_err print_list_json(const char *folder, const char *own, const rp_trusted *list,
                              uint32_t count) {
    json_t *trusted = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_t *one = key_object(list[i].key);
        (void)json_object_set_new(one, "name", json_string(list[i].name));
        (void)json_array_append_new(trusted, one);
    }
    json_t *root = json_pack("{s:i, s:s, s:o, s:o}", "version", 1, "folder", folder, "own",
                             own ? key_object(own) : json_null(), "trusted", trusted);
    return rp_json_print(root, 0, stdout);
}

static rp_err list_keys(rp_arena *arena, const rp_cli_args *args, const char *folder) {
    rp_keypair pair = {0};
    const rp_trusted *list;
    uint32_t count;
    char *path;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &path, "%s/public.key", folder));
    const bool has_own = access(path, F_OK) == 0;
    RP_TRY(has_own ? rp_keys_read(folder, &pair) : RP_OK);
    explicit_bzero(pair.secret_text, sizeof pair.secret_text);
    RP_TRY(rp_trusted_read(arena, folder, &list, &count));
    if (rp_cli_is_json(args)) {
        return print_list_json(folder, has_own ? pair.public_text : NULL, list, count);
    }
    (void)printf("keys of %s\n", folder);
    if (has_own) {
        print_line("(own)", pair.public_text);
    } else {
        (void)printf("%-16s  missing; make keys with `keys new`\n", "(own)");
    }
    for (uint32_t i = 0; i < count; i++) {
        print_line(list[i].name, list[i].key);
    }
    (void)printf("%u trusted\n", count);
fail:
    return err;
}

static rp_err trust_key(const rp_cli_args *args, const char *folder) {
    const char *name = args->words.item[0];
    const char *key = args->words.item[1];
    char z85[RP_KEY_TEXT];
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_err err = rp_trusted_add(folder, name, key);
    if (err == RP_OK && !args->quiet && !rp_key_parse(key, z85)) {
        rp_key_fingerprint(z85, fingerprint);
        rp_print(stderr, "%s is trusted, fingerprint %s\n", name, fingerprint);
    }
    return err;
}

/* ---- the verbs ------------------------------------------------------------------------------- */

static rp_err find_folder(rp_arena *arena, const rp_cli_args *args, const char **out) {
    *out = args->keys;
    return args->keys ? RP_OK : rp_keys_home(arena, out);
}

rp_err rp_verb_keys_new(rp_arena *arena, const rp_cli_args *args) {
    const char *folder;
    rp_err err = find_folder(arena, args, &folder);
    err = err == RP_OK ? rp_keys_new(folder) : err;
    return err == RP_OK ? show_own(args, folder) : err;
}

rp_err rp_verb_keys_show(rp_arena *arena, const rp_cli_args *args) {
    const char *folder;
    if (args->as_line != (args->words.count > 0)) {
        return rp_fail(RP_ERR_USAGE, "expected: keys show, or keys show --roster NAME [ADDRESS]");
    }
    const rp_err err = find_folder(arena, args, &folder);
    return err == RP_OK ? show_own(args, folder) : err;
}

rp_err rp_verb_keys_list(rp_arena *arena, const rp_cli_args *args) {
    const char *folder;
    const rp_err err = find_folder(arena, args, &folder);
    return err == RP_OK ? list_keys(arena, args, folder) : err;
}

rp_err rp_verb_keys_trust(rp_arena *arena, const rp_cli_args *args) {
    const char *folder;
    const rp_err err = find_folder(arena, args, &folder);
    return err == RP_OK ? trust_key(args, folder) : err;
}

rp_err rp_verb_keys_untrust(rp_arena *arena, const rp_cli_args *args) {
    const char *folder;
    const rp_err err = find_folder(arena, args, &folder);
    return err == RP_OK ? rp_trusted_remove(folder, args->words.item[0]) : err;
}
