/* The verb about keys: this account's own, and whom it trusts. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "link/link.h"

static rp_err show_own(const char *folder) {
    rp_keypair pair;
    rp_err err = rp_keys_read(folder, &pair);
    if (err == RP_OK) {
        (void)printf("%s\n", pair.public_text);
    }
    explicit_bzero(&pair, sizeof pair);
    return err;
}

static rp_err run_verb(const rp_cli_args *args, const char *folder) {
    const char *what = args->word[0];
    const uint32_t words = args->word_count;
    if (strcmp(what, "new") == 0 && words == 1) {
        rp_err err = rp_keys_new(folder);
        return err == RP_OK ? show_own(folder) : err;
    }
    if (strcmp(what, "show") == 0 && words == 1) {
        return show_own(folder);
    }
    if (strcmp(what, "trust") == 0 && words == 3) {
        return rp_keys_trust(folder, args->word[1], args->word[2]);
    }
    return rp_fail(RP_ERR_USAGE, "expected: keys new | keys show | keys trust NAME KEY");
}

rp_err rp_verb_keys(const rp_cli_args *args) {
    rp_arena arena;
    const char *folder = args->dir;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "keys", 0);
    if (!folder) {
        RP_TRY(rp_keys_home(&arena, &folder));
    }
    err = run_verb(args, folder);
fail:
    rp_arena_finish(&arena);
    return err;
}
