#include "data/classes.h"

#include <stdio.h>

enum { SHOWN_MAX = 5, SHOWN_BYTES = 256 };

/* Adds ", 7" or ", cat" to a text of SHOWN_BYTES. */
static void add_class(char *text, size_t *used, uint32_t class, const char *const *name) {
    const size_t room = SHOWN_BYTES - *used;
    const char *comma = *used > 0 ? ", " : "";
    const int more = name ? snprintf(text + *used, room, "%s%s", comma, name[class])
                          : snprintf(text + *used, room, "%s%u", comma, class);
    *used += more < 0 ? 0 : (size_t)more < room ? (size_t)more : room - 1;
}

/* `what` is counted; `advice` is for classes without names. */
static rp_err note_counts(rp_arena *arena, const uint32_t *samples, uint32_t classes,
                          const char *const *name, const char *what, const char *advice,
                          rp_notes *notes) {
    char text[SHOWN_BYTES] = "";
    size_t used = 0;
    uint32_t empty = 0;
    uint32_t last = 0; /* last class that has samples */
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < classes; k++) {
        if (samples[k] > 0) {
            last = k;
        } else if (empty++ < SHOWN_MAX) {
            add_class(text, &used, k, name);
        }
    }
    if (empty > 0) {
        RP_TRY(rp_notes_add(arena, notes, "%u of %u classes have no training %s: %s%s%s", empty,
                            classes, what, text, empty > SHOWN_MAX ? ", ..." : "",
                            name ? "" : advice));
    }
    if (classes - empty == 1) {
        used = 0;
        add_class(text, &used, last, name);
        RP_TRY(rp_notes_add(arena, notes, "all training %ss have one class, %s", what, text));
    }
fail:
    return err;
}

rp_err rp_classes_note(rp_arena *arena, const uint32_t *samples, uint32_t classes,
                       const char *const *name, rp_notes *notes) {
    return note_counts(arena, samples, classes, name, "sample",
                       "; if the numbers are not classes, list the names of classes in `classes` "
                       "of `data`",
                       notes);
}

rp_err rp_classes_note_pixels(rp_arena *arena, const uint32_t *pixels, uint32_t classes,
                              const char *const *name, rp_notes *notes) {
    char advice[120];
    (void)snprintf(advice, sizeof advice,
                   "; if %u marks pixels that should not count, set `ignore: %u` in `loss`",
                   classes - 1, classes - 1);
    return note_counts(arena, pixels, classes, name, "pixel", advice, notes);
}
