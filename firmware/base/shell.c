#include "base/shell.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Whether no character has a special meaning to a shell; `~` and `=` have one in some positions. */
static bool is_plain(const char *text) {
    for (const char *at = text; *at; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c > 127 || (!isalnum(c) && !strchr("/._-+:@%,", c))) {
            return false;
        }
    }
    return text[0] != '\0';
}

rp_err rp_shell_word(rp_arena *arena, const char *text, const char **out) {
    /* ends the quotes, adds a quote, and starts quotes again */
    static const char quote[] = "'\\''";
    size_t bytes = 3;
    char *word;
    *out = text;
    if (is_plain(text)) {
        return RP_OK;
    }
    for (const char *at = text; *at; at++) {
        bytes += *at == '\'' ? sizeof quote - 1 : 1;
    }
    rp_err err = RP_ARENA_NEW(arena, bytes, &word);
    if (err != RP_OK) {
        return err;
    }
    *out = word;
    *word++ = '\'';
    for (; *text; text++) {
        const bool special = *text == '\'';
        memcpy(word, special ? quote : text, special ? sizeof quote - 1 : 1);
        word += special ? sizeof quote - 1 : 1;
    }
    *word++ = '\'';
    *word = '\0';
    return RP_OK;
}
