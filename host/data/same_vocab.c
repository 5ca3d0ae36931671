/* Compares the vocabulary of a set with that of a run folder. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "data/describe.h"

enum { SHOWN_BYTES = 40, SHOWN_ROOM = 4 * SHOWN_BYTES + 1 };

static rp_err fail_vocab(const rp_data *data, const char *path, const char *what, const char *now,
                         const char *before) {
    return rp_fail(RP_ERR_USAGE,
                   "data set %s: %s is %s, but %s in %s: the same ids would mean other tokens; "
                   "expected the vocabulary that the weights were trained with",
                   data->kind->name, what, now, before, path);
}

static rp_err compare_names(const rp_data *data, const char *path, const rp_vocab *before) {
    const rp_vocab *now = data->vocab;
    char what[40];
    char shown[2][SHOWN_ROOM + 2];
    for (uint32_t i = 0; now->name && i < now->count; i++) {
        if (strcmp(now->name[i], before->name[i]) != 0) {
            char text[2][SHOWN_ROOM];
            (void)snprintf(what, sizeof what, "token %u", i);
            (void)snprintf(shown[0], sizeof *shown, "'%s'",
                           rp_utf8_show(now->name[i], SHOWN_BYTES, text[0], SHOWN_ROOM));
            (void)snprintf(shown[1], sizeof *shown, "'%s'",
                           rp_utf8_show(before->name[i], SHOWN_BYTES, text[1], SHOWN_ROOM));
            return fail_vocab(data, path, what, shown[0], shown[1]);
        }
    }
    return RP_OK;
}

static bool are_same_added(const rp_bpe *now, const rp_bpe *before) {
    bool same = now->added_count == before->added_count;
    for (uint32_t i = 0; same && i < now->added_count; i++) {
        const rp_bpe_added *a = &now->added[i];
        const rp_bpe_added *b = &before->added[i];
        same = a->id == b->id && a->strip_left == b->strip_left &&
               a->strip_right == b->strip_right && a->normalised == b->normalised;
    }
    return same;
}

static bool are_same_merges(const rp_bpe *now, const rp_bpe *before) {
    bool same = now->merges == before->merges;
    for (uint32_t i = 0; same && i < now->merges; i++) {
        same = now->merge[i].left == before->merge[i].left &&
               now->merge[i].right == before->merge[i].right;
    }
    return same;
}

/* What makes other ids of the same text, with the same names. */
static rp_err compare_bpes(const rp_data *data, const char *path, const rp_bpe *now,
                           const rp_bpe *before) {
    const char *what = strcmp(now->pattern, before->pattern) != 0  ? "pattern"
                       : !are_same_merges(now, before)             ? "list of merges"
                       : !are_same_added(now, before)              ? "list of added tokens"
                       : now->whole_words != before->whole_words   ? "`ignore_merges`"
                       : now->prefix_space != before->prefix_space ? "`add_prefix_space`"
                       : now->nfc != before->nfc                   ? "`normalizer`"
                                                                   : NULL;
    return what ? rp_fail(RP_ERR_USAGE,
                          "data set %s: the tokeniser's %s differs from that in %s: the same text "
                          "would have other ids; expected the tokeniser that the weights were "
                          "trained with",
                          data->kind->name, what, path)
                : RP_OK;
}

static rp_err compare_vocabs(const rp_data *data, const char *path, const rp_description *about) {
    static const rp_token_rules none = {.kind = RP_TOKENS_IDS};
    const rp_token_rules *now = data->vocab ? &data->vocab->rules : &none;
    const rp_token_rules *before = &about->vocab.rules;
    char text[2][16];
    if (now->kind != before->kind) {
        return fail_vocab(data, path, "`tokens`", rp_token_kinds[now->kind],
                          rp_token_kinds[before->kind]);
    }
    if (now->lower != before->lower) {
        return fail_vocab(data, path, "`lower`", now->lower ? "true" : "false",
                          before->lower ? "true" : "false");
    }
    if (now->by_space != before->by_space) {
        return fail_vocab(data, path, "`split`", rp_token_splits[now->by_space],
                          rp_token_splits[before->by_space]);
    }
    if (!data->vocab) {
        return RP_OK; /* ids of arrays have no known meaning */
    }
    if (data->vocab->count != about->tokens || data->vocab->special != about->vocab.special) {
        (void)snprintf(text[0], sizeof *text, "%u", data->vocab->count);
        (void)snprintf(text[1], sizeof *text, "%u", about->tokens);
        return fail_vocab(data, path, "the number of tokens", text[0], text[1]);
    }
    const rp_err err = compare_names(data, path, &about->vocab);
    return err == RP_OK && data->vocab->bpe
               ? compare_bpes(data, path, data->vocab->bpe, about->vocab.bpe)
               : err;
}

rp_err rp_data_check_vocab(const rp_data *data, const char *path) {
    rp_description about;
    rp_arena arena;
    rp_err err = RP_OK;
    if (data->type != RP_I32 || access(path, F_OK) != 0) {
        return RP_OK;
    }
    rp_arena_init(&arena, "vocabulary", 0);
    RP_TRY(rp_data_read_description(&arena, path, &about));
    RP_TRY(about.type == RP_I32 ? compare_vocabs(data, path, &about) : RP_OK);
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_data_check_weights(const rp_data *data, const char *weights) {
    const char *slash = strrchr(weights, '/');
    const int bytes = slash ? (int)(slash + 1 - weights) : 0;
    rp_arena arena;
    char *path;
    char *run;
    rp_err err;
    rp_arena_init(&arena, "vocabulary", 0);
    RP_TRY(rp_arena_printf(&arena, &path, "%.*sdata.json", bytes, weights));
    RP_TRY(rp_arena_printf(&arena, &run, "%.*srun.yaml", bytes, weights));
    RP_TRY(access(run, F_OK) == 0 ? rp_data_check_vocab(data, path) : RP_OK);
fail:
    rp_arena_finish(&arena);
    return err;
}
