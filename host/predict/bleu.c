#include "predict/bleu.h"

#include <math.h>
#include <string.h>

#include "data/unicode.h"

/* ---- words ----------------------------------------------------------------------------------- */

/* A text that grows; each step of 13a makes it at most three times as long. */
typedef struct {
    char *at;
    size_t bytes;
} text;

static rp_err make_text(rp_arena *arena, size_t room, text *out) {
    *out = (text){0};
    return rp_arena_alloc(arena, 1, room + 1, (void **)&out->at);
}

static void append(text *to, char c) {
    to->at[to->bytes++] = c;
}

/* Replaces what HTML escapes, and line ends by blanks; a blank before and after the line. */
static rp_err unescape(rp_arena *arena, const rp_text *line, text *out) {
    static const char *const from[] = {"<skipped>", "-\n", "\n", "&quot;", "&amp;", "&lt;", "&gt;"};
    static const char *const to[] = {"", "", " ", "\"", "&", "<", ">"};
    enum { PATTERNS = sizeof from / sizeof *from };
    rp_text now = *line;
    rp_err err = RP_OK;
    for (size_t k = 0; k < PATTERNS; k++) { /* in sequence, as sacrebleu does */
        const size_t bytes = strlen(from[k]);
        text next;
        RP_TRY(make_text(arena, now.bytes, &next));
        for (size_t i = 0; i < now.bytes;) {
            if (now.bytes - i >= bytes && memcmp(now.at + i, from[k], bytes) == 0) {
                for (const char *c = to[k]; *c; c++) {
                    append(&next, *c);
                }
                i += bytes;
            } else {
                append(&next, now.at[i++]);
            }
        }
        now = (rp_text){.at = next.at, .bytes = next.bytes};
    }
    RP_TRY(make_text(arena, now.bytes + 2, out));
    append(out, ' ');
    memcpy(out->at + 1, now.at, now.bytes);
    out->bytes += now.bytes;
    append(out, ' ');
fail:
    return err;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* [\{-\~\[-\` -\&\(-\+\:-\@\/] */
static bool is_symbol(char c) {
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static bool is_point(char c) {
    return c == '.' || c == ',';
}

static bool stops_after(char a, char b) {
    return !is_digit(a) && is_point(b);
}

static bool starts_with_point(char a, char b) {
    return is_point(a) && !is_digit(b);
}

static bool is_dash_after_digit(char a, char b) {
    return is_digit(a) && b == '-';
}

/* Puts blanks around each symbol. */
static rp_err separate_symbols(rp_arena *arena, text *line) {
    text out;
    rp_err err = make_text(arena, 3 * line->bytes, &out);
    for (size_t i = 0; err == RP_OK && i < line->bytes; i++) {
        const bool symbol = is_symbol(line->at[i]);
        if (symbol) {
            append(&out, ' ');
        }
        append(&out, line->at[i]);
        if (symbol) {
            append(&out, ' ');
        }
    }
    *line = err == RP_OK ? out : *line;
    return err;
}

/* Puts blanks around the second character of a pair, or around the first. Pairs do not overlap. A
 * character of several bytes is no digit and no point, so its last byte stands for it. */
static rp_err separate_pairs(rp_arena *arena, bool (*is_pair)(char a, char b), bool first,
                             bool before, text *line) {
    text out;
    rp_err err = make_text(arena, 3 * line->bytes, &out);
    for (size_t i = 0; err == RP_OK && i < line->bytes; i++) {
        if (i + 1 == line->bytes || !is_pair(line->at[i], line->at[i + 1])) {
            append(&out, line->at[i]);
            continue;
        }
        if (first) {
            append(&out, ' ');
        }
        append(&out, line->at[i++]);
        append(&out, ' ');
        append(&out, line->at[i]);
        if (before) {
            append(&out, ' ');
        }
    }
    *line = err == RP_OK ? out : *line;
    return err;
}

/* Words between white space, also that of other scripts. */
static rp_err split_words(rp_arena *arena, const text *line, rp_text **words, uint32_t *count) {
    const char *end = line->at + line->bytes;
    bool in_word = false;
    rp_err err = RP_ARENA_NEW(arena, line->bytes / 2 + 1, words);
    *count = 0;
    for (const char *at = line->at; err == RP_OK && at < end;) {
        uint32_t code = 0;
        const uint32_t read = rp_unicode_read(at, end, &code);
        const uint32_t bytes = read > 0 ? read : 1; /* not UTF-8: part of a word */
        const bool space = read > 0 && rp_unicode_is_space(code);
        if (!space && !in_word) {
            (*words)[(*count)++] = (rp_text){.at = at};
        }
        in_word = !space;
        if (in_word) {
            (*words)[*count - 1].bytes += bytes;
        }
        at += bytes;
    }
    return err;
}

rp_err rp_bleu_words(rp_arena *arena, const rp_text *line, rp_text **words, uint32_t *count) {
    text now;
    rp_err err;
    RP_TRY(unescape(arena, line, &now));
    RP_TRY(separate_symbols(arena, &now));
    RP_TRY(separate_pairs(arena, stops_after, false, true, &now));
    RP_TRY(separate_pairs(arena, starts_with_point, true, false, &now));
    RP_TRY(separate_pairs(arena, is_dash_after_digit, false, true, &now));
    RP_TRY(split_words(arena, &now, words, count));
fail:
    return err;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static bool is_same(const rp_text *a, const rp_text *b, uint32_t order) {
    for (uint32_t i = 0; i < order; i++) {
        if (a[i].bytes != b[i].bytes || memcmp(a[i].at, b[i].at, a[i].bytes) != 0) {
            return false;
        }
    }
    return true;
}

static uint32_t count_same(const rp_text *words, uint32_t count, const rp_text *gram,
                           uint32_t order) {
    uint32_t same = 0;
    for (uint32_t i = 0; i + order <= count; i++) {
        same += is_same(words + i, gram, order);
    }
    return same;
}

/* N-grams of `words` that the reference has too, each at most as often. */
static uint32_t count_matches(const rp_text *words, uint32_t count, const rp_text *ref,
                              uint32_t ref_count, uint32_t order) {
    uint32_t matches = 0;
    for (uint32_t i = 0; i + order <= count; i++) {
        const uint32_t before = count_same(words, i + order - 1, words + i, order);
        matches += before < count_same(ref, ref_count, words + i, order);
    }
    return matches;
}

rp_err rp_bleu_add(rp_bleu *bleu, const rp_text *translation, const rp_text *reference) {
    rp_arena arena;
    rp_text *words;
    rp_text *ref;
    uint32_t count;
    uint32_t ref_count;
    rp_err err;
    rp_arena_init(&arena, "bleu", 0);
    RP_TRY(rp_bleu_words(&arena, translation, &words, &count));
    RP_TRY(rp_bleu_words(&arena, reference, &ref, &ref_count));
    for (uint32_t n = 1; n <= RP_BLEU_ORDER; n++) {
        bleu->match[n - 1] += count_matches(words, count, ref, ref_count, n);
        bleu->total[n - 1] += count >= n ? count - n + 1 : 0;
    }
    bleu->words += count;
    bleu->reference_words += ref_count;
fail:
    rp_arena_finish(&arena);
    return err;
}

double rp_bleu_score(const rp_bleu *bleu) {
    double logs = 0;
    double halves = 1;
    if (bleu->match[0] == 0) {
        return 0;
    }
    for (uint32_t n = 0; n < RP_BLEU_ORDER; n++) {
        if (bleu->total[n] == 0) {
            return 0;
        }
        double match = (double)bleu->match[n];
        if (bleu->match[n] == 0) { /* smoothing `exp`: a half, a quarter ... of a match */
            halves /= 2;
            match = halves;
        }
        logs += log(match / (double)bleu->total[n]) / RP_BLEU_ORDER;
    }
    const double ratio = (double)bleu->reference_words / (double)bleu->words;
    return 100 * exp(logs + (ratio > 1 ? 1 - ratio : 0));
}
