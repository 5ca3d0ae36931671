#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

enum { LINE_COLUMNS = 80, TEXT_COLUMN = 30, GROUPS = 8 };

typedef struct {
    const rp_option *table;
    const char *verb, *colon; /* the beginning of every message */
    char *values;
    bool seen[RP_OPTIONS_MAX];
    const rp_option *chosen[GROUPS + 1]; /* option given of each group */
    bool ended;
} parsing;

/* ---- values ---------------------------------------------------------------------------------- */

static bool read_count(const char *text, char **end, uint64_t most, uint64_t *out) {
    *out = strtoull(text, end, 10);
    return *end != text && text[0] >= '0' && text[0] <= '9' && *out <= most;
}

static bool read_range(const rp_option *option, const char *text, rp_option_range *out) {
    const bool both = strstr(option->value, "..") != NULL;
    char *end;
    if (!read_count(text, &end, INT64_MAX, &out->first)) {
        return false;
    }
    if (!both) {
        out->last = out->first;
        return !*end;
    }
    return strncmp(end, "..", 2) == 0 && read_count(end + 2, &end, INT64_MAX, &out->last) &&
           !*end && out->first <= out->last;
}

static bool has_word(const char *words, const char *text) {
    const size_t length = strlen(text);
    for (const char *at = words; *at;) {
        const size_t own = strcspn(at, "|");
        if (own == length && strncmp(at, text, own) == 0) {
            return true;
        }
        at += own + (at[own] == '|');
    }
    return false;
}

static bool store_value(const rp_option *option, char *text, void *to) {
    rp_option_list *list = to;
    uint64_t number;
    uint32_t small;
    double real;
    char *end;
    switch (option->kind) {
    case RP_OPTION_CHOICE:
        if (!has_word(option->value, text)) {
            return false;
        }
        memcpy(to, &text, sizeof text);
        return true;
    case RP_OPTION_TEXT:
        memcpy(to, &text, sizeof text);
        return true;
    case RP_OPTION_NUMBER:
        if (!read_count(text, &end, option->most, &number) || *end) {
            return false;
        }
        small = (uint32_t)number;
        memcpy(to, &small, sizeof small);
        return true;
    case RP_OPTION_REAL:
        real = strtod(text, &end);
        memcpy(to, &real, sizeof real);
        return end != text && !*end && real >= 0 && real <= option->most;
    case RP_OPTION_RANGE:
        return read_range(option, text, to);
    case RP_OPTION_LIST:
        list->item[list->count++] = text;
        return true;
    default: /* RP_OPTION_FLAG, RP_OPTION_END */
        memcpy(to, &(bool){true}, sizeof(bool));
        return true;
    }
}

static rp_err take_option(parsing *p, const rp_option *option, char *text) {
    void *to = p->values + option->offset;
    const rp_option *other = p->chosen[option->group];
    const rp_option_list *list = to;
    if (option->group && other && other != option) {
        return rp_fail(RP_ERR_USAGE, "%s%s--%s and --%s exclude each other", p->verb, p->colon,
                       other->name, option->name);
    }
    if (option->kind == RP_OPTION_LIST && list->count == option->most) {
        return rp_fail(RP_ERR_USAGE, "%s%smore than %u --%s", p->verb, p->colon, option->most,
                       option->name);
    }
    if (!store_value(option, text, to)) {
        const bool counts = option->kind == RP_OPTION_NUMBER || option->kind == RP_OPTION_REAL;
        char most[16] = "";
        (void)snprintf(most, sizeof most, "%u", option->most);
        return rp_fail(RP_ERR_USAGE, "%s%s--%s: expected %s%s, found '%s'", p->verb, p->colon,
                       option->name, counts ? "a number from 0 to " : option->value,
                       counts ? most : "", text);
    }
    p->seen[option - p->table] = true;
    p->chosen[option->group] = option;
    p->ended = option->kind == RP_OPTION_END;
    return RP_OK;
}

/* ---- names ----------------------------------------------------------------------------------- */

static rp_err no_option(const parsing *p, const char *dashes, const char *word) {
    char known[512] = "";
    size_t used = 0;
    rp_nearest nearest = {.word = word};
    for (const rp_option *at = p->table; at->name; at++) {
        rp_nearest_offer(&nearest, at->name);
        if (at->about && used < sizeof known) {
            used += (size_t)snprintf(known + used, sizeof known - used, " --%s", at->name);
        }
    }
    return nearest.best ? rp_fail(RP_ERR_USAGE, "%s%sno option '%s%s'; did you mean '--%s'?",
                                  p->verb, p->colon, dashes, word, nearest.best)
                        : rp_fail(RP_ERR_USAGE, "%s%sno option '%s%s'; there are:%s", p->verb,
                                  p->colon, dashes, word, known);
}

static bool has_value(const rp_option *option) {
    return option->kind != RP_OPTION_FLAG && option->kind != RP_OPTION_END;
}

/* *next is the argument after this one, or NULL; set to NULL when used as the value. */
static rp_err take_named(parsing *p, const rp_option *option, char *value, char **next) {
    if (!has_value(option) && value) {
        return rp_fail(RP_ERR_USAGE, "%s%s--%s takes no value, found '%s'", p->verb, p->colon,
                       option->name, value);
    }
    if (has_value(option) && !value) {
        value = *next;
        *next = NULL;
        if (!value) {
            return rp_fail(RP_ERR_USAGE, "%s%s--%s: expected %s after it", p->verb, p->colon,
                           option->name, option->value);
        }
    }
    return take_option(p, option, value);
}

/* Parses "--name" or "--name=value". */
static rp_err take_long(parsing *p, char *text, char **next) {
    const size_t length = strcspn(text, "=");
    const rp_option *option = p->table;
    while (option->name &&
           (strncmp(option->name, text, length) != 0 || option->name[length] != '\0')) {
        option++;
    }
    if (!option->name) {
        char word[64];
        (void)snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), text);
        return no_option(p, "--", word);
    }
    return take_named(p, option, text[length] ? text + length + 1 : NULL, next);
}

/* Parses "-q", several flags "-qf", or a value "-oFILE". */
static rp_err take_letters(parsing *p, char *text, char **next) {
    rp_err err = RP_OK;
    for (char *at = text; *at && !p->ended; at++) {
        const rp_option *option = p->table;
        while (option->name && option->letter != *at) {
            option++;
        }
        if (!option->name) {
            return no_option(p, "-", (const char[]){*at, '\0'});
        }
        const bool rest = has_value(option) && at[1];
        RP_TRY(take_named(p, option, rest ? at + 1 : NULL, next));
        if (rest) {
            break;
        }
    }
fail:
    return err;
}

/* ---- the line -------------------------------------------------------------------------------- */

static rp_err check_missing(const parsing *p, const rp_option_words *words) {
    for (const rp_option *at = p->table; at->name; at++) {
        if (at->required && !p->seen[at - p->table]) {
            return rp_fail(RP_ERR_USAGE, "%s%s--%s %s is missing", p->verb, p->colon, at->name,
                           at->value);
        }
    }
    return words->count >= words->least
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%s%sexpected %s", p->verb, p->colon, words->about);
}

rp_err rp_options_parse(const rp_option *table, const char *verb, int argc, char *const *argv,
                        void *values, rp_option_words *words) {
    parsing p = {.table = table, .verb = verb, .colon = verb[0] ? ": " : "", .values = values};
    bool only_words = false;
    rp_err err = RP_OK;
    words->count = 0;
    for (int i = 0; i < argc && !p.ended; i++) {
        char *next = i + 1 < argc ? argv[i + 1] : NULL;
        const bool had = next != NULL;
        if (only_words || argv[i][0] != '-' || !argv[i][1]) {
            if (words->count == words->most) {
                return rp_fail(RP_ERR_USAGE, "%s%sunexpected '%s'", verb, p.colon, argv[i]);
            }
            words->item[words->count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else {
            RP_TRY(argv[i][1] == '-' ? take_long(&p, argv[i] + 2, &next)
                                     : take_letters(&p, argv[i] + 1, &next));
            i += had && !next;
        }
    }
    err = p.ended ? RP_OK : check_missing(&p, words);
fail:
    return err;
}

/* ---- help ------------------------------------------------------------------------------------ */

void rp_options_wrap(FILE *file, const char *text, int column) {
    int at = column;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (at > column && at + 1 + length >= LINE_COLUMNS) {
            (void)fprintf(file, "\n%*s", column, "");
            at = column;
        }
        (void)fprintf(file, "%s%.*s", at > column ? " " : "", length, text);
        at += length + (at > column);
        text += length + (text[length] == ' ');
    }
    (void)fprintf(file, "\n");
}

void rp_options_print(FILE *file, const rp_option *table) {
    for (const rp_option *at = table; at->name; at++) {
        if (!at->about) {
            continue;
        }
        char letter[] = {'-', at->letter, ',', '\0'};
        const int used = fprintf(file, "  %3s --%s%s%s", at->letter ? letter : "", at->name,
                                 at->value ? " " : "", at->value ? at->value : "");
        if (used >= TEXT_COLUMN) {
            (void)fprintf(file, "\n%*s", TEXT_COLUMN, "");
        } else {
            (void)fprintf(file, "%*s", TEXT_COLUMN - used, "");
        }
        rp_options_wrap(file, at->about, TEXT_COLUMN);
    }
}
