#include "view/text_file.h"

#include <stdio.h>

#include "base/replace.h"

/* The collector reads files named *.prom, so it never sees the temporary one. */
rp_err rp_view_text_file_write(rp_view_feeds *feeds, const char *folder, int64_t now_ns) {
    char path[RP_REPLACE_PATH_BYTES];
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "text file", 0);
    rp_view_text text = {.arena = &arena};
    RP_TRY(rp_view_feeds_metrics(feeds, &arena, now_ns, &text));
    if (snprintf(path, sizeof path, "%s/ringpipe.prom", folder) >= RP_REPLACE_PATH_BYTES) {
        err = rp_fail(RP_ERR_USAGE, "--text-file %s: the path is too long", folder);
        goto fail;
    }
    FILE *file = rp_replace_begin(path);
    RP_TRY(rp_replace_end(file, path, file && fwrite(text.data, 1, text.used, file) == text.used));
fail:
    rp_arena_finish(&arena);
    return err;
}
