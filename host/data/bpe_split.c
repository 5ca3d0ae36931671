#include "data/bpe_split.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"
#include "base/utf8.h"

enum {
    STEPS_MAX = 4 << 20,    /* of a match */
    HEAP_KIB_MAX = 1 << 20, /* for what a match has to remember */
    STACK_FIRST = 32 << 10, /* bytes, for compiled matches */
    STACK_MAX = 4 << 20,
    OPEN_GROUPS_MAX = 50,
    ROOM = 16 * RP_BPE_PATTERN_BYTES_MAX
};

/* White space of Unicode; PCRE2's \s also has U+180E. */
#define SPACES                                                                                     \
    "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"                \
    "\\x{205f}\\x{3000}"

struct rp_bpe_splitter {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack; /* NULL: patterns are interpreted */
};

/* ---- from Oniguruma's syntax to that of PCRE2 ------------------------------------------------ */

typedef struct {
    const char *where, *pattern, *at;
    char *out; /* [ROOM] */
    size_t used;
} translation;

static rp_err fail_pattern(const translation *t, const char *expected) {
    char shown[40];
    return rp_fail(RP_ERR_FORMAT,
                   "%s: character %zu of the pattern, '%s': expected %s; this program knows only "
                   "the pattern elements that Oniguruma and PCRE2 have in common",
                   t->where, (size_t)(t->at - t->pattern),
                   rp_utf8_show(t->at, 8, shown, sizeof shown), expected);
}

static rp_err put_text(translation *t, const char *text, size_t bytes) {
    if (bytes > ROOM - 1 - t->used) {
        return fail_pattern(t, "a shorter pattern");
    }
    memcpy(t->out + t->used, text, bytes);
    t->used += bytes;
    return RP_OK;
}

/* Copies the next `bytes` of the pattern. */
static rp_err copy_text(translation *t, size_t bytes) {
    const rp_err err = put_text(t, t->at, bytes);
    t->at += bytes;
    return err;
}

/* Replaces the next `bytes` of the pattern. */
static rp_err replace_text(translation *t, size_t bytes, const char *by) {
    t->at += bytes;
    return put_text(t, by, strlen(by));
}

/* "\p{Name}" or "\x{1f}". */
static rp_err copy_named(translation *t, const char *letters) {
    const char *name = t->at + 2;
    const size_t length = *name == '{' ? strspn(name + 1, letters) : 0;
    if (length == 0 || length > 32 || name[1 + length] != '}') {
        return fail_pattern(t, "{ and } with a name or number");
    }
    return copy_text(t, length + 4);
}

static rp_err translate_escape(translation *t, bool in_class) {
    static const char marks[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ";
    const char next = t->at[1];
    if (next == 's') {
        return replace_text(t, 2, in_class ? SPACES : "[" SPACES "]");
    }
    if (next == 'S' && !in_class) {
        return replace_text(t, 2, "[^" SPACES "]");
    }
    if (next == 'd' || next == 'D') {
        return replace_text(t, 2, next == 'd' ? "\\p{Nd}" : "\\P{Nd}");
    }
    if (next == 'p' || next == 'P') {
        return copy_named(t, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");
    }
    if (next == 'x') {
        return copy_named(t, "0123456789abcdefABCDEF");
    }
    if (next != '\0' && (strchr("rntf", next) || strchr(marks, next))) {
        return copy_text(t, 2);
    }
    return fail_pattern(t, in_class ? "\\p{..}, \\s, \\d, \\r, \\n, \\t, \\x{..} or a mark"
                                    : "\\p{..}, \\s, \\S, \\d, \\r, \\n, \\t, \\x{..} or a mark");
}

/* "[...]" without a class inside. */
static rp_err translate_class(translation *t) {
    rp_err err;
    RP_TRY(copy_text(t, t->at[1] == '^' ? 2 : 1));
    if (*t->at == ']') {
        return fail_pattern(t, "a class that is not empty");
    }
    while (*t->at != ']') {
        if (*t->at == '\0' || *t->at == '[' || (t->at[0] == '&' && t->at[1] == '&')) {
            return fail_pattern(t, "the end of a class, without a class inside");
        }
        RP_TRY(*t->at == '\\' ? translate_escape(t, true) : copy_text(t, 1));
    }
    RP_TRY(copy_text(t, 1));
fail:
    return err;
}

static rp_err translate_group(translation *t) {
    static const char *const heads[] = {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    if (t->at[1] != '?') {
        return replace_text(t, 1, "(?:");
    }
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (strncmp(t->at, heads[i], strlen(heads[i])) == 0) {
            return copy_text(t, strlen(heads[i]));
        }
    }
    return fail_pattern(t, "(?:, (?i:, (?=, (?!, (?<=, (?<! or (?>");
}

/* "{2}", "{2,}" or "{2,5}", which Oniguruma does not make possessive or lazy. */
static rp_err copy_repetition(translation *t) {
    static const char digits[] = "0123456789";
    const char *at = t->at + 1;
    const size_t first = strspn(at, digits);
    const size_t second = at[first] == ',' ? 1 + strspn(at + first + 1, digits) : 0;
    const char *end = at + first + second;
    if (first == 0 || end[0] != '}' || strchr("+?*{", end[1] ? end[1] : ' ')) {
        return fail_pattern(t, "a repetition such as {1,3}, with no sign after it");
    }
    return copy_text(t, (size_t)(end + 1 - t->at));
}

static rp_err translate_pattern(translation *t) {
    rp_err err = RP_OK;
    while (*t->at) {
        switch (*t->at) {
        case '\\':
            RP_TRY(translate_escape(t, false));
            break;
        case '[':
            RP_TRY(translate_class(t));
            break;
        case '(':
            RP_TRY(translate_group(t));
            break;
        case '{':
            RP_TRY(copy_repetition(t));
            break;
        case '.':
        case '^':
        case '$':
        case ']':
        case '}':
            return fail_pattern(t, "no ., ^, $, ] and } without \\");
        default:
            RP_TRY(copy_text(t, 1));
        }
    }
    t->out[t->used] = '\0';
fail:
    return err;
}

/* ---- matching -------------------------------------------------------------------------------- */

static rp_err compile(rp_bpe_splitter *s, const char *where, const char *pattern) {
    PCRE2_UCHAR why[120] = "";
    uint32_t empty = 1;
    int problem;
    size_t place;
    pcre2_compile_context *bounds = pcre2_compile_context_create(NULL);
    if (!bounds) {
        return rp_fail(RP_ERR_MEMORY, "no memory for a pattern");
    }
    (void)pcre2_set_parens_nest_limit(bounds, OPEN_GROUPS_MAX);
    s->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                            &problem, &place, bounds);
    pcre2_compile_context_free(bounds);
    if (!s->code) {
        (void)pcre2_get_error_message(problem, why, sizeof why);
        return rp_fail(RP_ERR_FORMAT, "%s: the pattern is invalid: %s", where, (const char *)why);
    }
    (void)pcre2_pattern_info(s->code, PCRE2_INFO_MATCHEMPTY, &empty);
    return empty ? rp_fail(RP_ERR_FORMAT,
                           "%s: expected a pattern that matches at least one character", where)
                 : RP_OK;
}

static rp_err prepare(rp_bpe_splitter *s) {
    s->match = pcre2_match_data_create(1, NULL);
    s->limits = pcre2_match_context_create(NULL);
    if (!s->match || !s->limits) {
        return rp_fail(RP_ERR_MEMORY, "no memory for a pattern");
    }
    (void)pcre2_set_match_limit(s->limits, STEPS_MAX);
    (void)pcre2_set_heap_limit(s->limits, HEAP_KIB_MAX);
    if (pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE) == 0) {
        s->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MAX, NULL);
        pcre2_jit_stack_assign(s->limits, NULL, s->stack);
    }
    return RP_OK;
}

rp_err rp_bpe_splitter_open(const char *pattern, const char *where, rp_bpe_splitter **out) {
    rp_bpe_splitter *s = NULL;
    translation t = {.where = where, .pattern = pattern, .at = pattern};
    rp_arena scratch;
    rp_err err;
    *out = NULL;
    if (strlen(pattern) > RP_BPE_PATTERN_BYTES_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: the pattern has %zu bytes, expected at most %d", where,
                       strlen(pattern), RP_BPE_PATTERN_BYTES_MAX);
    }
    rp_arena_init(&scratch, "pattern", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, ROOM, &t.out));
    RP_TRY(rp_block_new(sizeof *s, (void **)&s));
    *s = (rp_bpe_splitter){0};
    RP_TRY(translate_pattern(&t));
    RP_TRY(compile(s, where, t.out));
    RP_TRY(prepare(s));
    *out = s;
    s = NULL;
fail:
    rp_arena_finish(&scratch);
    rp_bpe_splitter_close(&s);
    return err;
}

rp_err rp_bpe_split(rp_bpe_splitter *splitter, const char *text, size_t bytes, size_t at,
                    size_t *length) {
    int found = pcre2_match(splitter->code, (PCRE2_SPTR)text, bytes, at, PCRE2_NO_UTF_CHECK,
                            splitter->match, splitter->limits);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
        found = pcre2_match(splitter->code, (PCRE2_SPTR)text, bytes, at,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, splitter->match, splitter->limits);
    }
    *length = bytes - at;
    if (found == PCRE2_ERROR_NOMATCH) {
        return RP_OK;
    }
    if (found < 0) {
        PCRE2_UCHAR why[120] = "";
        (void)pcre2_get_error_message(found, why, sizeof why);
        return rp_fail(RP_ERR_LIMIT, "the pattern that splits the text fails at byte %zu of it: %s",
                       at, (const char *)why);
    }
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(splitter->match);
    *length = place[0] > at ? place[0] - at : place[1] - at;
    return RP_OK;
}

void rp_bpe_splitter_close(rp_bpe_splitter **splitter) {
    rp_bpe_splitter *s = *splitter;
    if (s) {
        pcre2_match_data_free(s->match);
        pcre2_match_context_free(s->limits);
        pcre2_jit_stack_free(s->stack);
        pcre2_code_free(s->code);
        rp_block_free(s);
    }
    *splitter = NULL;
}
