/* A setup as one line of words "key=value", for checkpoints. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/setup.h"

static const char VERSION[] = "2";
static const char NAME_LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                   "_.-";

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes a name; bytes outside of NAME_LETTERS become %XX. */
static void put_name(FILE *file, const char *name) {
    for (const char *at = name; *at; at++) {
        if (strchr(NAME_LETTERS, *at)) {
            (void)fputc(*at, file);
        } else {
            (void)fprintf(file, "%%%02X", (unsigned char)*at);
        }
    }
}

static const char *comma(uint32_t k) {
    return k > 0 ? "," : "";
}

static void put_stages(FILE *file, const rp_setup *setup, const rp_model *model) {
    const uint32_t count = setup->cut.stage_count;
    (void)fprintf(file, " stages=%u", setup->stages);
    (void)fputs(count > 0 ? " cut=" : "", file);
    for (uint32_t k = 0; k < count; k++) {
        (void)fputs(comma(k), file);
        put_name(file, model->layer[setup->cut.first[k]].name);
    }
    (void)fputs(setup->group ? " group=" : "", file);
    for (uint32_t k = 0; setup->group && k <= count; k++) {
        (void)fprintf(file, "%s%u", comma(k), setup->group[k]);
    }
    (void)fputs(setup->group ? " share=" : "", file);
    for (uint32_t k = 0; setup->group && k < setup->group[count]; k++) {
        (void)fprintf(file, "%s%.17g", comma(k), setup->share[k]);
    }
}

static void put_links(FILE *file, const rp_setup *setup) {
    (void)fputs(setup->codec_stages > 1 ? " codec=" : "", file);
    for (uint32_t k = 0; k + 1 < setup->codec_stages; k++) {
        (void)fprintf(file, "%s%s/%s", comma(k), rp_codec_name(setup->codec[k][0]),
                      rp_codec_name(setup->codec[k][1]));
    }
    (void)fputs(setup->size_stages > 0 ? " sizes=" : "", file);
    for (uint32_t k = 0; k < setup->size_stages; k++) {
        (void)fprintf(file, "%s%u/%u", comma(k), setup->size[k][0], setup->size[k][1]);
    }
    (void)fprintf(file, " micro=%u inputs=%s", setup->micro, rp_codec_name(setup->input_codec));
}

static void put_method(FILE *file, const rp_setup *setup) {
    (void)fprintf(file, " schedule=%u", setup->schedule);
    (void)fprintf(file, " split=%u,%u,%u,%u", setup->split_count, setup->whole, setup->said_count,
                  setup->said_whole);
    (void)fprintf(file, " advance=%u,%u", setup->advance, setup->advance_stages);
    (void)fputs(setup->ahead_count > 0 ? " ahead=" : "", file);
    for (uint32_t k = 0; k < setup->ahead_count; k++) {
        (void)fprintf(file, "%s%u", comma(k), setup->ahead[k]);
    }
    (void)fprintf(file, " auto=%d,%d,%d,%d", setup->micro_auto, setup->boards_auto,
                  setup->schedule_auto, setup->ahead_auto);
}

static void put_setup(FILE *file, const rp_setup *setup, const rp_model *model) {
    (void)fprintf(file, "version=%s boards=", VERSION);
    for (uint32_t k = 0; setup->roster && k < setup->boards; k++) {
        (void)fputs(comma(k), file);
        put_name(file, setup->roster[k].name);
    }
    if (!setup->roster) {
        (void)fprintf(file, "%u", setup->boards);
    }
    put_stages(file, setup, model);
    put_links(file, setup);
    put_method(file, setup);
}

/* Upper bound of the text's length, with every letter of a name escaped. */
static size_t text_bytes(const rp_setup *setup) {
    const size_t stages = (size_t)setup->cut.stage_count + setup->codec_stages + setup->size_stages;
    return 1024 + stages * (3 * RP_LAYER_NAME_MAX + 64) +
           (size_t)setup->boards * (3 * RP_ROSTER_NAME_MAX + 32);
}

rp_err rp_setup_text(rp_arena *arena, const rp_setup *setup, const rp_runfile *run, char **out) {
    const size_t bytes = text_bytes(setup);
    rp_err err;
    RP_ASSERT(rp_setup_check(setup, run) == NULL);
    RP_TRY(RP_ARENA_NEW(arena, bytes, out));
    FILE *file = fmemopen(*out, bytes, "w");
    if (!file) {
        return rp_fail(RP_ERR_MEMORY, "no memory for the text of a setup");
    }
    put_setup(file, setup, run->model);
    const bool written = fclose(file) == 0;
    RP_ASSERT(written && strlen(*out) + 1 < bytes);
fail:
    return err;
}

/* ---- reading parts --------------------------------------------------------------------------- */

/* Reads a number up to `most` that is followed by `end`. */
static bool take_number(const char **at, char end, uint64_t most, uint64_t *out) {
    const char *first = *at;
    char *stop;
    errno = 0;
    *out = strtoull(first, &stop, 10);
    *at = stop + (*stop != '\0');
    return first[0] >= '0' && first[0] <= '9' && errno == 0 && *stop == end && *out <= most;
}

/* Reads `count` numbers, "a,b,c". */
static bool take_numbers(const char *text, uint32_t count, uint64_t most, uint32_t *out) {
    const char *at = text;
    bool valid = count > 0;
    for (uint32_t k = 0; valid && k < count; k++) {
        uint64_t number = 0;
        valid = take_number(&at, k + 1 < count ? ',' : '\0', most, &number);
        out[k] = (uint32_t)number;
    }
    return valid;
}

static uint32_t count_parts(const char *text) {
    uint32_t count = 1;
    for (const char *at = text; (at = strchr(at, ',')); at++) {
        count++;
    }
    return count;
}

rp_err rp_setup_read_cut(rp_arena *arena, const rp_model *model, const char *names, rp_cut *out) {
    uint32_t *first;
    uint32_t count = 0;
    rp_err err;
    *out = (rp_cut){0};
    RP_TRY(RP_ARENA_NEW(arena, (size_t)model->layer_count + 1, &first));
    for (const char *at = names; at && *at;) {
        const size_t length = strcspn(at, ",");
        uint32_t layer = 0;
        while (layer < model->layer_count && (strncmp(model->layer[layer].name, at, length) != 0 ||
                                              model->layer[layer].name[length] != '\0')) {
            layer++;
        }
        const bool in_order = count == 0 ? layer == 0 : layer > first[count - 1];
        if (layer == model->layer_count || !in_order) {
            return RP_OK;
        }
        first[count++] = layer;
        at += length + (at[length] == ',');
    }
    first[count] = model->layer_count;
    *out = (rp_cut){.stage_count = count, .first = first};
fail:
    return err;
}

/* Reads one name up to `end`, and moves *at past it. */
static bool take_codec(const char **at, char end, bool gradients, rp_codec *out) {
    char name[16];
    const size_t length = strcspn(*at, "/,");
    if (length >= sizeof name || (*at)[length] != end) {
        return false;
    }
    memcpy(name, *at, length);
    name[length] = '\0';
    *at += length + (end != '\0');
    *out = rp_codec_find(name);
    return *out < RP_CODECS && *out != RP_CODEC_UINT8 /* only for inputs */ &&
           (gradients || rp_codec_kept(*out) == 0);
}

bool rp_setup_read_codecs(const char *text, uint32_t stages, rp_codec (*out)[2]) {
    const char *at = text;
    bool valid = stages > 1;
    for (uint32_t k = 0; valid && k + 1 < stages; k++) {
        valid = take_codec(&at, '/', false, &out[k][0]) &&
                take_codec(&at, k + 2 < stages ? ',' : '\0', true, &out[k][1]);
    }
    return valid;
}

bool rp_setup_read_sizes(const char *text, uint32_t stages, uint32_t batch, uint32_t (*out)[2]) {
    const char *at = text;
    bool valid = stages > 0;
    for (uint32_t i = 0; valid && i < 2 * stages; i++) {
        uint64_t number = 0;
        const char end = i % 2 == 0 ? '/' : i / 2 + 1 < stages ? ',' : '\0';
        valid = take_number(&at, end, batch, &number) && number > 0;
        out[i / 2][i % 2] = (uint32_t)number;
    }
    return valid;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct {
    rp_arena *arena;
    const rp_runfile *run;
    rp_setup *out;
    uint32_t *group; /* [`groups`] numbers of the text; join_groups() checks them with the cut */
    double *share;
    uint32_t groups, shares;
} reading;

static bool take_name(const char **at, char *out, size_t bytes) {
    size_t used = 0;
    bool valid = true;
    for (; valid && **at && **at != ','; (*at)++) {
        unsigned code = (unsigned char)**at;
        if (**at == '%') {
            valid = sscanf(*at, "%%%2X", &code) == 1 && (*at)[1] && (*at)[2];
            *at += valid ? 2 : 0;
        }
        valid = valid && used + 1 < bytes;
        out[used] = (char)code;
        used += valid;
    }
    *at += **at == ',';
    out[used] = '\0';
    return valid && used > 0;
}

/* Puts the named boards first, in this order; the rest of the roster becomes spares. */
static rp_err read_roster(reading *r, const char *text, bool *valid) {
    const uint32_t all = r->run->boards + r->run->spares;
    const uint32_t count = count_parts(text);
    rp_roster_entry *roster;
    rp_err err = RP_OK;
    if (count > all) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(r->arena, all, &roster));
    memcpy(roster, r->run->roster, all * sizeof *roster);
    for (uint32_t k = 0; *valid && k < count; k++) {
        char name[RP_ROSTER_NAME_MAX + 1];
        uint32_t at = k;
        *valid = take_name(&text, name, sizeof name);
        while (at < all && strcmp(roster[at].name, name) != 0) {
            at++;
        }
        if (at == all) {
            return RP_OK;
        }
        const rp_roster_entry entry = roster[at];
        memmove(&roster[k + 1], &roster[k], (at - k) * sizeof *roster);
        roster[k] = entry;
    }
    r->out->roster = roster;
    r->out->boards = count;
    r->out->spares = all - count;
fail:
    return err;
}

static rp_err read_boards(reading *r, const char *text, bool *valid) {
    uint64_t count = 0;
    if (!r->run->local) {
        return read_roster(r, text, valid);
    }
    *valid = take_number(&text, '\0', RP_CUT_STAGES_MAX, &count) && count > 0;
    r->out->boards = (uint32_t)count;
    return RP_OK;
}

static rp_err read_stages(reading *r, const char *text, bool *valid) {
    *valid = take_numbers(text, 1, RP_CUT_STAGES_MAX, &r->out->stages) && r->out->stages > 0;
    return RP_OK;
}

static rp_err read_cut(reading *r, const char *text, bool *valid) {
    *valid = text[0] != '\0';
    return rp_setup_read_cut(r->arena, r->run->model, text, &r->out->cut);
}

static rp_err read_group(reading *r, const char *text, bool *valid) {
    rp_err err;
    r->groups = count_parts(text);
    RP_TRY(RP_ARENA_NEW(r->arena, r->groups, &r->group));
    *valid = take_numbers(text, r->groups, RP_CUT_STAGES_MAX, r->group);
fail:
    return err;
}

static rp_err read_share(reading *r, const char *text, bool *valid) {
    const char *at = text;
    rp_err err;
    r->shares = count_parts(text);
    RP_TRY(RP_ARENA_NEW(r->arena, r->shares, &r->share));
    for (uint32_t k = 0; *valid && k < r->shares; k++) {
        char *stop;
        r->share[k] = strtod(at, &stop);
        *valid = stop > at && *stop == (k + 1 < r->shares ? ',' : '\0') && r->share[k] >= 0 &&
                 r->share[k] <= 1;
        at = stop + (*stop != '\0');
    }
fail:
    return err;
}

static rp_err read_codecs(reading *r, const char *text, bool *valid) {
    const uint32_t stages = count_parts(text) + 1;
    rp_codec(*codec)[2];
    rp_err err;
    RP_TRY(RP_ARENA_NEW(r->arena, stages - 1, &codec));
    *valid = rp_setup_read_codecs(text, stages, codec);
    r->out->codec = (const rp_codec(*)[2])codec;
    r->out->codec_stages = stages;
fail:
    return err;
}

static rp_err read_sizes(reading *r, const char *text, bool *valid) {
    const uint32_t stages = count_parts(text);
    uint32_t(*size)[2];
    rp_err err;
    RP_TRY(RP_ARENA_NEW(r->arena, stages, &size));
    *valid = rp_setup_read_sizes(text, stages, r->run->batch, size);
    r->out->size = (const uint32_t(*)[2])size;
    r->out->size_stages = stages;
fail:
    return err;
}

/* A microbatch above the run's batch is ignored: train.batch was changed since. */
static rp_err read_micro(reading *r, const char *text, bool *valid) {
    uint32_t micro = 0;
    *valid = take_numbers(text, 1, UINT32_MAX, &micro) && micro > 0;
    r->out->micro = micro <= r->run->batch ? micro : r->out->micro;
    return RP_OK;
}

static rp_err read_inputs(reading *r, const char *text, bool *valid) {
    r->out->input_codec = rp_codec_find(text);
    *valid = r->out->input_codec < RP_CODECS;
    return RP_OK;
}

static rp_err read_schedule(reading *r, const char *text, bool *valid) {
    uint32_t index = 0;
    *valid = take_numbers(text, 1, RP_SCHEDULES_MAX - 1, &index);
    if (*valid && index < r->run->schedules.count) {
        rp_setup_take_schedule(r->out, r->run, index);
    }
    return RP_OK;
}

static rp_err read_split(reading *r, const char *text, bool *valid) {
    uint32_t number[4];
    *valid = take_numbers(text, 4, UINT32_MAX, number) && number[0] <= RP_SPLIT_STAGES_MAX &&
             number[2] <= RP_SPLIT_STAGES_MAX;
    r->out->split_count = number[0];
    r->out->whole = number[1];
    r->out->said_count = number[2];
    r->out->said_whole = number[3];
    return RP_OK;
}

static rp_err read_advance(reading *r, const char *text, bool *valid) {
    uint32_t number[2];
    *valid = take_numbers(text, 2, RP_CUT_STAGES_MAX, number) && number[0] <= RP_ADVANCE_MAX;
    r->out->advance = number[0];
    r->out->advance_stages = number[1];
    return RP_OK;
}

static rp_err read_ahead(reading *r, const char *text, bool *valid) {
    const uint32_t count = count_parts(text);
    uint32_t number[RP_SPLIT_STAGES_MAX];
    *valid = count <= RP_SPLIT_STAGES_MAX && take_numbers(text, count, RP_AHEAD_MAX, number);
    for (uint32_t k = 0; *valid && k < count; k++) {
        *valid = number[k] > 0;
        r->out->ahead[k] = (uint16_t)number[k];
    }
    r->out->ahead_count = *valid ? count : 0;
    return RP_OK;
}

static rp_err read_auto(reading *r, const char *text, bool *valid) {
    uint32_t number[4] = {0};
    *valid = take_numbers(text, 4, 1, number);
    r->out->micro_auto = number[0] > 0;
    r->out->boards_auto = number[1] > 0;
    r->out->schedule_auto = number[2] > 0;
    r->out->ahead_auto = number[3] > 0;
    return RP_OK;
}

/* Older programs tried several plans and listed them here; the cut in the text is kept. */
static rp_err ignore_trial(reading *r, const char *text, bool *valid) {
    (void)r;
    (void)text;
    (void)valid;
    return RP_OK;
}

static rp_err read_version(reading *r, const char *text, bool *valid) {
    (void)r;
    *valid = strcmp(text, VERSION) == 0;
    return RP_OK;
}

typedef rp_err read_part(reading *r, const char *text, bool *valid);
static const struct {
    const char *key;
    read_part *read;
    bool is_needed;
} words[] = {{"version", read_version, true},   {"boards", read_boards, true},
             {"stages", read_stages, true},     {"cut", read_cut, false},
             {"group", read_group, false},      {"share", read_share, false},
             {"codec", read_codecs, false},     {"sizes", read_sizes, false},
             {"micro", read_micro, true},       {"inputs", read_inputs, true},
             {"schedule", read_schedule, true}, {"split", read_split, true},
             {"advance", read_advance, true},   {"ahead", read_ahead, false},
             {"auto", read_auto, true},         {"trial", ignore_trial, false}};
enum { WORDS = sizeof words / sizeof *words };

static rp_err fail_word(const char *path, const char *word) {
    return rp_fail(
        RP_ERR_FORMAT,
        "%s: `setup` is invalid at '%.60s': the checkpoint is damaged, or was written by an "
        "incompatible version of ringpipe",
        path, word);
}

/* Reads one word. Words come in the order of the table; *next: index of the first that may follow.
 */
static rp_err read_word(reading *r, char *word, const char *path, uint32_t *next) {
    char *value = strchr(word, '=');
    bool valid = true;
    rp_err err;
    if (!value) {
        return fail_word(path, word);
    }
    *value = '\0';
    while (*next < WORDS && strcmp(words[*next].key, word) != 0 && !words[*next].is_needed) {
        (*next)++;
    }
    const bool known = *next < WORDS && strcmp(words[*next].key, word) == 0;
    *value = '=';
    if (!known) {
        return fail_word(path, word);
    }
    RP_TRY(words[*next].read(r, value + 1, &valid));
    (*next)++;
    return valid ? RP_OK : fail_word(path, word);
fail:
    return err;
}

/* Takes the groups only if they fit the cut, the shares and the boards of the text. */
static void join_groups(reading *r) {
    rp_setup *out = r->out;
    const bool fits = r->group && r->share && out->cut.stage_count > 0 &&
                      r->groups == out->cut.stage_count + 1 && r->shares == out->boards &&
                      r->group[0] == 0 && r->group[r->groups - 1] == out->boards;
    out->group = fits ? r->group : NULL;
    out->share = fits ? r->share : NULL;
}

rp_err rp_setup_read(rp_arena *arena, const char *text, const rp_runfile *run, const char *path,
                     rp_setup *out) {
    reading r = {.arena = arena, .run = run, .out = out};
    uint32_t next = 0;
    char *copy;
    char *rest;
    rp_err err;
    *out = rp_setup_of(run);
    out->cut = (rp_cut){0};
    out->codec = NULL;
    out->size = NULL;
    out->codec_stages = out->size_stages = out->ahead_count = 0;
    RP_TRY(rp_arena_string(arena, text, &copy));
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        RP_TRY(read_word(&r, word, path, &next));
    }
    for (; next < WORDS; next++) {
        if (words[next].is_needed) {
            return fail_word(path, text);
        }
    }
    join_groups(&r);
    const char *why = rp_setup_check(out, run);
    if (why) {
        return rp_fail(RP_ERR_FORMAT, "%s: `setup` %s", path, why);
    }
fail:
    return err;
}
