/* summary.json: the summary of a run, for programs. */
#include "record/sink.h"

static rp_err open_sink(rp_arena *arena, const rp_sink_run *run, void **sink) {
    char *path = NULL;
    rp_err err = RP_OK;
    if (run->folder) {
        RP_TRY(rp_arena_printf(arena, &path, "%s/summary.json", run->folder));
        *sink = path;
    }
fail:
    return err;
}

static rp_err close_sink(void *sink, const rp_summary *summary) {
    return summary ? rp_summary_write(summary, sink) : RP_OK;
}

const rp_sink_kind rp_sink_summary = {.name = "summary", .open = open_sink, .close = close_sink};
