#include "cli/push_lines.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/printable.h"

/* Time between two lines with counts of bytes if they cannot be rewritten. */
static const int64_t EACH_NS = 10 * RP_NS_PER_S;

void rp_push_lines_end(rp_push_lines *lines) {
    if (lines->open) {
        (void)fputc('\n', stderr);
    }
    lines->open = false;
}

static void count_bytes(rp_push_lines *lines, const rp_push_progress *progress) {
    const int64_t now_ns = rp_clock_now_ns(lines->clock);
    const double mb = (double)progress->bytes / 1e6;
    const double all_mb = (double)progress->of / 1e6;
    if (lines->rewrites) {
        (void)fputc('\r', stderr);
        rp_print(stderr, "%s: %.1f of %.1f MB", progress->board, mb, all_mb);
        lines->open = true;
    } else if (progress->begins || now_ns - lines->said_ns >= EACH_NS) {
        rp_print(stderr, "%s: %.1f of %.1f MB\n", progress->board, mb, all_mb);
        lines->said_ns = now_ns;
    }
}

void rp_push_lines_show(rp_push_lines *lines, const rp_push_progress *progress) {
    const char *board = progress->board;
    if (lines->quiet) {
        return;
    }
    if (progress->phase == RP_PUSH_SENDS) {
        count_bytes(lines, progress);
        return;
    }
    rp_push_lines_end(lines);
    switch (progress->phase) {
    case RP_PUSH_CHECKS:
        rp_print(stderr, "%s: received all %.1f MB; verifying\n", board,
                 (double)progress->of / 1e6);
        break;
    case RP_PUSH_TRIES:
        rp_print(stderr, "%s: release %" PRIu64 " is on trial%s\n", board, progress->release,
                 lines->waits ? "; waiting for the end of the trial" : "");
        break;
    case RP_PUSH_INSTALLS:
        rp_print(stderr, "%s: writes the whole system and reboots%s\n", board,
                 lines->waits ? "; waiting for the end of the trial" : "");
        break;
    case RP_PUSH_SENDS:
        break;
    }
}
