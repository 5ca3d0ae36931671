#include "cli/boards_ask.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/json_print.h"
#include "base/printable.h"
#include "enrol/pending.h"

static const char *state_of(const rp_pending *one, int64_t now_s) {
    return one->used_by ? "used" : one->ends_s > now_s ? "open" : "ended";
}

static json_t *token_object(const rp_pending *one, int64_t now_s) {
    char id[RP_KEY_FINGERPRINT];
    char board[RP_KEY_FINGERPRINT];
    rp_pending_id(one, id);
    if (one->used_by) {
        rp_key_fingerprint(one->used_by, board);
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:s?}", "name", one->name, "id", id, "state",
                     state_of(one, now_s), "ends", (json_int_t)one->ends_s, "used_by",
                     one->used_by ? board : NULL);
}

static rp_err print_json(const char *folder, const rp_pending *list, uint32_t count,
                         int64_t now_s) {
    json_t *tokens = json_array();
    for (uint32_t i = 0; i < count; i++) {
        (void)json_array_append_new(tokens, token_object(&list[i], now_s));
    }
    json_t *all = json_pack("{s:i, s:s, s:o}", "version", 1, "folder", folder, "tokens", tokens);
    return rp_json_print(all, 0, stdout);
}

static void print_line(const rp_pending *one, int64_t now_s) {
    char id[RP_KEY_FINGERPRINT];
    char board[RP_KEY_FINGERPRINT];
    rp_pending_id(one, id);
    (void)printf("%-16s  %s  %s", one->name, id, state_of(one, now_s));
    if (one->used_by) {
        rp_key_fingerprint(one->used_by, board);
        (void)printf(" by the board with fingerprint %s", board);
    } else if (one->ends_s > now_s) {
        const int64_t minutes = (one->ends_s - now_s + 59) / 60;
        (void)printf(" for %lld h %02lld min", (long long)(minutes / 60),
                     (long long)(minutes % 60));
    }
    (void)printf("\n");
}

static rp_err list_tokens(rp_arena *arena, const rp_cli_args *args, const char *folder) {
    const int64_t now_s = rp_wall_s();
    rp_pending *list;
    uint32_t count;
    rp_err err;
    RP_TRY(rp_pending_read(arena, folder, &list, &count));
    if (rp_cli_is_json(args)) {
        return print_json(folder, list, count, now_s);
    }
    for (uint32_t i = 0; i < count; i++) {
        print_line(&list[i], now_s);
    }
    (void)printf("%u token%s in %s\n", count, count == 1 ? "" : "s", folder);
fail:
    return err;
}

static rp_err withdraw_tokens(const rp_cli_args *args, const char *folder) {
    const rp_err err = rp_pending_withdraw(folder, args->words.item, args->words.count);
    for (uint32_t i = 0; i < args->words.count && err == RP_OK && !args->quiet; i++) {
        rp_print(stderr, "the token %s is withdrawn: no board can enrol with it\n",
                 args->words.item[i]);
    }
    return err;
}

rp_err rp_cli_boards_tokens(rp_arena *arena, const rp_cli_args *args, const char *keys_folder) {
    const bool names = args->words.count > 0;
    if (args->enrol.token || args->enrol.open || args->enrol.list == args->enrol.withdraw ||
        names != args->enrol.withdraw) {
        return rp_fail(RP_ERR_USAGE, "expected: boards enrol --list [--keys DIR] | boards enrol "
                                     "--withdraw NAME|ID... [--keys DIR]");
    }
    return args->enrol.list ? list_tokens(arena, args, keys_folder)
                            : withdraw_tokens(args, keys_folder);
}
