/* Fills the sentences of words.c with the facts of an event, and reads facts by their names. */
#include "record/words.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_values.h"
#include "base/utf8.h"

/* ---- facts ----------------------------------------------------------------------------------- */

typedef enum { FACT_TEXT, FACT_COUNT, FACT_REAL } fact_type;

typedef struct {
    const char *name, *about;
    fact_type type;
    size_t offset; /* in rp_run_event */
} fact;

#define TEXT_ROW(id, about) {#id, (about), FACT_TEXT, offsetof(rp_run_event, id)},
#define COUNT_ROW(id, about) {#id, (about), FACT_COUNT, offsetof(rp_run_event, id)},
#define REAL_ROW(id, about) {#id, (about), FACT_REAL, offsetof(rp_run_event, id)},
static const fact facts[] = {RP_EVENT_FACTS(TEXT_ROW, COUNT_ROW, REAL_ROW)};
enum { FACTS = sizeof facts / sizeof *facts };

static const char *text_of(const rp_run_event *event, const fact *of) {
    const char *text;
    memcpy(&text, (const char *)event + of->offset, sizeof text);
    return text ? text : "";
}

static uint64_t count_of(const rp_run_event *event, const fact *of) {
    uint64_t count;
    memcpy(&count, (const char *)event + of->offset, sizeof count);
    return count;
}

static double real_of(const rp_run_event *event, const fact *of) {
    double real;
    memcpy(&real, (const char *)event + of->offset, sizeof real);
    return real;
}

static bool is_known(const rp_run_event *event, const fact *of) {
    return of->type == FACT_TEXT   ? text_of(event, of)[0] != '\0'
           : of->type == FACT_REAL ? !isnan(real_of(event, of))
                                   : true;
}

static bool is_there(const rp_run_event *event, const fact *of) {
    return is_known(event, of) && (of->type == FACT_TEXT   ? true
                                   : of->type == FACT_REAL ? real_of(event, of) != 0
                                                           : count_of(event, of) != 0);
}

static const fact *find_fact(const char *name, size_t length) {
    for (uint32_t i = 0; i < FACTS; i++) {
        if (strlen(facts[i].name) == length && strncmp(facts[i].name, name, length) == 0) {
            return &facts[i];
        }
    }
    return NULL;
}

/* Returns the next fact of a list from *at on, and moves *at to its end. NULL: the list ends. */
static const fact *next_fact(const char **at) {
    const char *name = *at + strspn(*at, " ");
    const size_t length = strcspn(name, " ");
    *at = name + length;
    return length > 0 ? find_fact(name, length) : NULL;
}

static bool has_fact(const rp_event_row *row, const fact *of) {
    const char *at = row->facts;
    const fact *own = &facts[0]; /* `step`, which all have */
    while (own && own != of) {
        own = next_fact(&at);
    }
    return own != NULL;
}

/* A room must not set facts that the kind lacks, because they would be lost. */
static void check_facts(const rp_run_event *event) {
    for (uint32_t i = 0; i < FACTS; i++) {
        RP_ASSERT(!is_there(event, &facts[i]) || has_fact(&rp_event_rows[event->kind], &facts[i]));
    }
}

/* ---- sentences ------------------------------------------------------------------------------- */

typedef struct {
    const rp_run_event *event;
    char *text;
    size_t bytes, used;
} sentence;

/* Returns the fact that is named at *at, and moves *at to the end of the name. */
static const fact *read_name(const rp_run_event *event, const char **at) {
    const size_t length = strspn(*at, "abcdefghijklmnopqrstuvwxyz_0123456789");
    const fact *of = find_fact(*at, length);
    RP_ASSERT(of && has_fact(&rp_event_rows[event->kind], of));
    *at += length;
    return of;
}

static void put_text(sentence *out, const char *text, size_t length) {
    const size_t room = out->bytes - 1 - out->used;
    rp_utf8_show(text, length, out->text + out->used, room + 1);
    out->used += strlen(out->text + out->used);
}

/* `at` points to what follows the name: "*100:.0f}", or ":.1f}". */
static void put_real(sentence *out, double value, const char *at) {
    char text[64];
    char *rest;
    int digits = 6;
    if (*at == '*') {
        value *= strtod(at + 1, &rest);
        at = rest;
    }
    RP_ASSERT(*at == ':');
    if (*++at == '.') {
        digits = (int)strtol(at + 1, &rest, 10);
        at = rest;
    }
    RP_ASSERT((*at == 'f' || *at == 'g') && at[1] == '}');
    const int length = *at == 'f' ? snprintf(text, sizeof text, "%.*f", digits, value)
                                  : snprintf(text, sizeof text, "%.*g", digits, value);
    put_text(out, text, (size_t)length);
}

/* `at` points to the name in "{name}". */
static void put_fact(sentence *out, const char *at) {
    const fact *of = read_name(out->event, &at);
    char text[24];
    switch (of->type) {
    case FACT_REAL:
        put_real(out, real_of(out->event, of), at);
        return;
    case FACT_COUNT:
        (void)snprintf(text, sizeof text, "%" PRIu64, count_of(out->event, of));
        put_text(out, text, sizeof text);
        break;
    default:
        put_text(out, text_of(out->event, of), SIZE_MAX);
        break;
    }
    RP_ASSERT(*at == '}');
}

/* Writes the words up to `end`, which contain no "[". */
static void put_words(sentence *out, const char *at, const char *end) {
    while (at < end) {
        const size_t plain = strcspn(at, "{");
        const size_t length = plain < (size_t)(end - at) ? plain : (size_t)(end - at);
        put_text(out, at, length);
        at += length;
        if (at < end) {
            put_fact(out, at + 1);
            at = strchr(at, '}') + 1;
        }
    }
}

/* `at` points to the name in "[name?one|other]". Returns what follows the bracket. */
static const char *put_choice(sentence *out, const char *at) {
    const fact *of = read_name(out->event, &at);
    const char *end = strchr(at, ']');
    RP_ASSERT(*at == '?' && end);
    const char *bar = memchr(at, '|', (size_t)(end - at));
    if (is_there(out->event, of)) {
        put_words(out, at + 1, bar ? bar : end);
    } else if (bar) {
        put_words(out, bar + 1, end);
    }
    return end + 1;
}

const char *rp_words_write(const rp_run_event *event, char *text, size_t bytes) {
    sentence out = {.event = event, .text = text, .bytes = bytes};
    RP_ASSERT(event->kind > RP_EVENT_NONE && event->kind < RP_EVENT_KINDS && bytes > 0);
    check_facts(event);
    text[0] = '\0';
    for (const char *at = rp_event_rows[event->kind].words; *at;) {
        const char *end = at + strcspn(at, "[");
        put_words(&out, at, end);
        at = *end ? put_choice(&out, end + 1) : end;
    }
    return text;
}

const char *rp_words_of(rp_event_kind kind) {
    RP_ASSERT(kind < RP_EVENT_KINDS && rp_event_rows[kind].facts[0] == '\0');
    return rp_event_rows[kind].words;
}

/* ---- events ---------------------------------------------------------------------------------- */

const char *rp_words_kind(rp_event_kind kind, char name[static RP_WORDS_KIND]) {
    size_t length = 0;
    for (const char *at = rp_event_rows[kind].kind; *at && length + 1 < RP_WORDS_KIND; at++) {
        name[length++] = (char)tolower((unsigned char)*at);
    }
    name[length] = '\0';
    return name;
}

bool rp_words_fact(uint32_t index, const char **name, const char **about) {
    if (index >= FACTS) {
        return false;
    }
    *name = facts[index].name;
    *about = facts[index].about;
    return true;
}

bool rp_words_stay(const char *event) {
    for (uint32_t kind = RP_EVENT_NONE + 1; kind < RP_EVENT_KINDS; kind++) {
        const rp_event_row *row = &rp_event_rows[kind];
        if (row->event && strcmp(row->event, event) == 0) {
            return row->flags & RP_EVENT_STAYS;
        }
    }
    return false;
}

static json_t *json_of(const rp_run_event *event, const fact *of) {
    char text[RP_WORDS_BYTES];
    return of->type == FACT_REAL ? rp_json_of_real(real_of(event, of))
           : of->type == FACT_COUNT
               ? rp_json_of_whole(count_of(event, of))
               : json_string(rp_utf8_show(text_of(event, of), SIZE_MAX, text, sizeof text));
}

void rp_words_put_facts(const rp_run_event *event, json_t *line) {
    const char *at = rp_event_rows[event->kind].facts;
    char kind[RP_WORDS_KIND];
    (void)json_object_set_new(line, "kind", json_string(rp_words_kind(event->kind, kind)));
    for (const fact *of = next_fact(&at); of; of = next_fact(&at)) {
        if (is_known(event, of)) {
            (void)json_object_set_new(line, of->name, json_of(event, of));
        }
    }
}

rp_err rp_words_copy(rp_arena *arena, const rp_run_event *event, rp_run_event *out) {
    rp_err err = RP_OK;
    char *copy;
    *out = *event;
    for (uint32_t i = 0; i < FACTS; i++) {
        if (facts[i].type == FACT_TEXT && is_there(event, &facts[i])) {
            RP_TRY(rp_arena_string(arena, text_of(event, &facts[i]), &copy));
            memcpy((char *)out + facts[i].offset, &copy, sizeof copy);
        }
    }
fail:
    return err;
}
