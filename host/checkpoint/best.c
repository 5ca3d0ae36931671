/* The best model so far: its weights as a file, and a note of its score and step. */
#include "checkpoint/checkpoint_own.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/replace.h"

enum { PATH_BYTES = 512 };

rp_err rp_checkpoint_mark_best(const char *folder, const rp_checkpoint_best *best) {
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/best", folder);
    FILE *file = rp_replace_begin(path);
    const bool good =
        file && fprintf(file, "%" PRIu64 " %.17g %" PRIu64 " %" PRIu32 " %" PRIu64 "\n", best->step,
                        best->value, best->last, best->since, best->end) > 0;
    return rp_replace_end(file, path, good);
}

void rp_checkpoint_read_best(const char *folder, rp_checkpoint_best *out) {
    char path[PATH_BYTES];
    char line[128] = "";
    rp_checkpoint_best best = {0};
    (void)snprintf(path, sizeof path, "%s/best", folder);
    FILE *file = fopen(path, "r");
    const bool read = file && fgets(line, sizeof line, file) &&
                      sscanf(line, "%" SCNu64 " %lf %" SCNu64 " %" SCNu32 " %" SCNu64, &best.step,
                             &best.value, &best.last, &best.since, &best.end) == 5;
    if (file) {
        (void)fclose(file);
    }
    *out = read && best.step <= best.last ? best : (rp_checkpoint_best){0};
}

static rp_err copy_weights(rp_arena *arena, const rp_runfile *run, const char *from,
                           const char *to) {
    const char *const plain[] = {"format", "pt", NULL};
    rp_checkpoint_list list;
    rp_st_reader *reader = NULL;
    rp_st_writer *writer = NULL;
    rp_err err;
    RP_TRY(rp_st_open(arena, from, &reader));
    RP_TRY(rp_checkpoint_make_list(arena, run, false, &list));
    RP_TRY(rp_st_create(arena, to, list.entry, list.count, plain, false, &writer));
    for (uint32_t i = 0; i < list.count; i++) {
        const rp_st_entry *entry = &list.entry[i];
        const float *values;
        RP_TRY(rp_st_need_f32(reader, entry->name, entry->dims, entry->dim, &values));
        RP_TRY(rp_st_write(writer, i, 0, values, entry->bytes));
    }
    RP_TRY(rp_st_commit(&writer));
fail:
    rp_st_abandon(&writer);
    rp_st_close(&reader);
    return err;
}

rp_err rp_checkpoint_keep_best(const rp_runfile *run, const char *folder, uint64_t step,
                               const char *path) {
    rp_arena arena;
    char *from;
    rp_err err;
    rp_arena_init(&arena, "best weights", 0);
    RP_TRY(rp_arena_printf(&arena, &from, "%s/step-%010" PRIu64 ".safetensors", folder, step));
    RP_TRY(copy_weights(&arena, run, from, path));
fail:
    rp_arena_finish(&arena);
    return err;
}
